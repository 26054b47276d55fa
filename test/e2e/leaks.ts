/** An upstream that leaks secrets in every form of error, for the test of secrets. */
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const WORD = 'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n';
const DONE = 'data: [DONE]\n\n';

/** The error text of a careless proxy: the received credential, its own address, and a stack trace. */
function leakOf({ headers }: RecordedRequest): string {
  const host = headers.host ?? '';
  const stack =
    '\n    at Proxy.handle (/srv/proxy/node_modules/relay/index.js:10:5)\n    at node:internal/main:1:1';
  return `No route for ${headers.authorization} at http://${host}/v1/internal (also ${host})${stack}`;
}

type Form = (leak: string) => Omit<Replay, 'chunks'> & { readonly body: string };

function everywhere(leak: string) {
  return { message: leak, type: leak, code: leak, param: leak };
}

function refusal(status: number): Form {
  return (leak) => ({ status, headers: JSON_TYPE, body: JSON.stringify({ error: everywhere(leak) }) });
}

function streamed(...events: ((leak: string) => string)[]): Form {
  return (leak) => ({ body: events.map((event) => event(leak)).join('') });
}

/** Error texts that leaked in an attack. The secret is hunter2 or its Base64. */
const TEXTS: readonly string[] = [
  'postgres://admin:hunter2@db.prod:5432/x is down',
  'redis://:hunter2@cache-1:6379 is down',
  'sent Authorization: Basic aHVudGVyMjpodW50ZXIy to it',
  'sent Authorization: Token hunter2 to it',
  'AKIAHUNTER2HUNTER2AB is not allowed',
  `AIza${'hunter2'.repeat(5)} is not allowed`,
  `ghp_${'hunter2'.repeat(5)} is not allowed`,
  `hf_${'hunter2'.repeat(5)} is not allowed`,
  'nvapi-hunter2hunter2 is not allowed',
  'xai-hunter2hunter2 is not allowed',
  'no answer of hunter2-7:8443',
  'no answer of api-hunter2.prod.example.com:9090',
  'dial grpc://hunter2:50051',
  'connect unix:/var/run/hunter2.sock',
  'boom; File "/srv/hunter2.py", line 12, in f',
  'boom goroutine 7 [running]: main.hunter2(...) /srv/x.go:12',
  "boom thread 'main' panicked at src/hunter2.rs:10:5",
];

function formsOf(text: string, at: number): [name: string, form: Form][] {
  return [
    [`text-${at}-400`, () => refusal(400)(text)],
    [`text-${at}-500`, () => refusal(500)(text)],
    [
      `text-${at}-later`,
      streamed(
        () => WORD,
        () => `data: ${JSON.stringify({ error: everywhere(text) })}\n\n`,
      ),
    ],
  ];
}

const FORMS: Readonly<Record<string, Form>> = {
  ...Object.fromEntries(
    [400, 401, 402, 404, 413, 422, 429, 500, 503].map((at) => [`leak-${at}`, refusal(at)]),
  ),
  ...Object.fromEntries(TEXTS.flatMap(formsOf)),
  'leak-string': (leak) => ({ status: 400, headers: JSON_TYPE, body: JSON.stringify({ error: leak }) }),
  'leak-object': (leak) => ({
    status: 422,
    headers: JSON_TYPE,
    body: JSON.stringify({ object: 'error', ...everywhere(leak) }),
  }),
  'leak-detail': (leak) => ({
    status: 422,
    headers: JSON_TYPE,
    body: JSON.stringify({ detail: [{ loc: [leak], msg: leak, type: leak }] }),
  }),
  'leak-text': (leak) => ({ status: 500, headers: { 'content-type': 'text/plain' }, body: leak }),
  'leak-html': (leak) => ({
    status: 502,
    headers: { 'content-type': 'text/html' },
    body: `<html><head><title>${leak}</title></head><body>${leak}</body></html>`,
  }),
  'leak-200': (leak) => ({ headers: JSON_TYPE, body: JSON.stringify({ error: everywhere(leak) }) }),
  'leak-event': streamed((leak) => `event: error\ndata: ${JSON.stringify(everywhere(leak))}\n\n`),
  'leak-event-text': streamed((leak) => `event: error\ndata: ${leak.replaceAll('\n', '\ndata: ')}\n\n`),
  'leak-data': streamed((leak) => `data: ${JSON.stringify({ error: everywhere(leak) })}\n\n`),
  'leak-later': streamed(
    () => WORD,
    (leak) => `data: ${JSON.stringify({ error: everywhere(leak) })}\n\n`,
  ),
  'leak-later-event': streamed(
    () => WORD,
    (leak) => `event: error\ndata: ${JSON.stringify(everywhere(leak))}\n\n`,
  ),
  'leak-junk': streamed(
    () => WORD,
    (leak) => `data: ${JSON.stringify(leak)}\n\n`,
  ),
  'leak-comment': streamed(
    (leak) => `: ${JSON.stringify(leak)}\n\n`,
    () => WORD,
    () => DONE,
  ),
  'leak-finish': streamed(
    () => WORD,
    (leak) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: leak }] })}\n\n`,
    () => DONE,
  ),
};

export const LEAKS: readonly string[] = Object.keys(FORMS);

export function leak(request: RecordedRequest): Replay | undefined {
  const model = String(request.body?.model);
  const form = Object.hasOwn(FORMS, model) ? FORMS[model] : undefined;
  if (form === undefined) return undefined;
  const { body, ...head } = form(leakOf(request));
  return { ...head, chunks: [Buffer.from(body)] };
}

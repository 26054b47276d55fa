/** An upstream that leaks secrets in every form of error: for the test of secrets. */
import type { RecordedRequest, Replay } from '../simulator/server.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const WORD = 'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n';
const DONE = 'data: [DONE]\n\n';

/** What a careless proxy puts into its errors: the credential it received, its own address, and a stack trace. */
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

const FORMS: Readonly<Record<string, Form>> = {
  ...Object.fromEntries(
    [400, 401, 402, 404, 413, 422, 429, 500, 503].map((at) => [`leak-${at}`, refusal(at)]),
  ),
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

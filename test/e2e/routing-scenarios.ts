/** Scenarios of failing targets, and a gateway with aliases for them, for the tests of routing. */
import { afterAll, beforeAll } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import { contentOf, findClosedPort, finishesOf, jsonOf } from './client.ts';
import { type Gateway, startGateway, type Vars } from './gateway.ts';
import { CLOCKS_OFF, event, replayOf, type Scenario } from './scenarios.ts';

export const CHAT = '/v1/chat/completions';
const ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const JSON_TYPE = { 'content-type': 'application/json' };
const refusal = (status: number, headers = {}): Scenario => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  chunks: [JSON.stringify({ error: { message: 'no', code: `code_${status}` } })],
});

/** Failures before any output, by the model's name. */
const FAILURES: Readonly<Record<string, Scenario>> = {
  '401': refusal(401),
  '402': refusal(402),
  '403': refusal(403),
  '404': refusal(404),
  '408': refusal(408),
  '409': refusal(409),
  '425': refusal(425),
  '429': refusal(429),
  '429-later': refusal(429, { 'retry-after': '60' }),
  '500': refusal(500),
  '503': refusal(503),
  '529': refusal(529),
  'error-first': { chunks: ['data: {"error":{"message":"no","code":"busy"}}\n\n'], ending: 'hang' },
  'error-after-role': { chunks: [': queued\n\n', ROLE, 'data: {"error":"no"}\n\n'], ending: 'hang' },
  'error-json': { headers: JSON_TYPE, chunks: ['{"error":{"message":"no","code":"busy"}}'] },
  'error-event': { chunks: ['event: error\ndata: {"message":"no","code":"busy"}\n\n'], ending: 'hang' },
  'no-json': { headers: JSON_TYPE, chunks: ['oops'] },
  'no-choice': { headers: JSON_TYPE, chunks: ['{"ok":true}'] },
  'cut-json': { headers: JSON_TYPE, chunks: ['{"choices":[{"mess'], gapMs: 20, ending: 'reset' },
  'no-json-line': { chunks: [ROLE, 'data: oops\n\n'], ending: 'hang' },
  html: { headers: { 'content-type': 'text/html' }, chunks: ['<html><body>Please log in</body></html>'] },
  empty: { chunks: [] },
  'role-then-end': { chunks: [ROLE] },
  'role-then-reset': { chunks: [ROLE], gapMs: 20, ending: 'reset' },
  'role-then-nothing': { chunks: [ROLE], ending: 'hang' },
  nothing: { chunks: [], ending: 'hang' },
};
/** Models that only the alias's timeout ends. */
const SILENT = ['role-then-nothing', 'nothing', 'hung-up'];
/** Not in the simulator: nothing listens on the port. */
export const UNREACHABLE = 'opentoken/anything';

/** Results without output that are final: the caller's mistake, and a complete response. */
const STANDING: Readonly<Record<string, Scenario>> = {
  '400': refusal(400),
  '413': refusal(413),
  '422': refusal(422),
  '403-flagged': {
    status: 403,
    headers: JSON_TYPE,
    chunks: ['{"error":{"code":"content_filter","message":"Your input was flagged"}}'],
  },
  'error-400-first': {
    chunks: ['data: {"error":{"message":"no","type":"invalid_request_error","code":"code_400"}}\n\n'],
    ending: 'hang',
  },
  'no-text': { chunks: [ROLE, event('', 'stop'), 'data: [DONE]\n\n'] },
};

const delta = (fields: object, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: fields, finish_reason: null, ...more }] })}\n\n`;
const call = { index: 0, id: 'c', function: { name: 'find', arguments: '' } };
/** More bytes than are buffered, and no output. */
const LOGPROBS = Array.from({ length: 4000 }, () => ({
  token: '',
  logprob: 0,
  bytes: null,
  top_logprobs: [],
}));

/** Output that a target sends before it fails, after which no other is tried. */
const OUTPUTS: Readonly<Record<string, string>> = {
  content: event('Half'),
  reasoning: delta({ reasoning_content: 'Half' }),
  refusal: delta({ refusal: 'Half' }),
  'tool-name': delta({ tool_calls: [call] }),
  'tool-arguments': delta({ tool_calls: [{ ...call, function: { name: 'f', arguments: '{' } }] }),
  vendor: 'data: {"type":"x_research.step"}\n\n',
  'more-than-is-held': delta({}, { logprobs: { content: LOGPROBS } }),
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ...FAILURES,
  ...STANDING,
  ...Object.fromEntries(
    Object.entries(OUTPUTS).flatMap(([name, output]): [string, Scenario][] => [
      [`cut-${name}`, { chunks: [ROLE, output], gapMs: 20, ending: 'reset' }],
      [`error-${name}`, { chunks: [ROLE, output, 'data: {"error":"no"}\n\n'], gapMs: 20, ending: 'hang' }],
    ]),
  ),
};

export const STEP_SECONDS = 0.6;
export const GOOD = 'mistral/mistral-small-latest';
export const standing = Object.keys(STANDING).map((name) => `openai/${name}`);
export const begun = Object.keys(OUTPUTS).flatMap((name) => [`openai/cut-${name}`, `openai/error-${name}`]);
export const models = [
  UNREACHABLE,
  ...Object.keys(FAILURES).map((name) => `openai/${name}`),
  'deepseek/deepseek-chat:hang',
];
/** An alias for each failure: the failing model, then one that works; and the same after a heartbeat. */
const ALIASES = Object.fromEntries(
  [...models, ...standing, ...begun].flatMap((model, i) => {
    const isSilent = SILENT.some((name) => model.endsWith(`/${name}`)) || model.endsWith(':hang');
    const step = { model, ...(isSilent ? { timeout_seconds: STEP_SECONDS } : {}) };
    // One model each, so that no circuit makes them skipped.
    const slow = { model: `xerotier/nothing-${i}`, timeout_seconds: STEP_SECONDS };
    return [
      [`first ${model}`, [step, GOOD]],
      [`late ${model}`, [slow, step, GOOD]],
    ];
  }),
);

interface Exchange {
  readonly response: Response;
  readonly text: string;
  readonly upstreams: readonly RecordedRequest[];
}

/** The gateway of a test file with these targets. Its members are set after `beforeAll`. */
export interface Routing {
  readonly gateway: Gateway;
  /** The default settings, which tests extend. */
  readonly vars: Vars;
  /** How often each model still fails before it works. */
  readonly failing: Map<string, number>;
  readonly ask: (body: JsonObject, init?: RequestInit) => Promise<Exchange>;
  /** The complete record of a response, from the API. */
  readonly recordOf: (response: Response) => Promise<JsonObject>;
}

/** Starts the gateway before the tests of the calling file and stops it after them. */
export function startRouting(): () => Routing {
  let routing: Routing | undefined;
  beforeAll(async () => {
    const failing = new Map<string, number>();
    const closed = `http://127.0.0.1:${await findClosedPort()}/v1`;
    const vars = { ...CLOCKS_OFF, ALIASES: JSON.stringify(ALIASES), OPENTOKEN_BASE_URL: closed };
    const gateway = await startGateway({ replay: (request) => replay(request, failing), vars });
    routing = {
      gateway,
      vars,
      failing,
      ask: async (body, init) => {
        const before = gateway.simulator.requests.length;
        const response = await gateway.post(CHAT, body, init);
        const text = await response.text();
        return { response, text, upstreams: gateway.simulator.requests.slice(before) };
      },
      recordOf: async (response) => {
        await gateway.record(response);
        const id = response.headers.get('x-weir-request-id');
        const headers = { authorization: 'Bearer admin-token-of-the-tests' };
        return jsonOf(await gateway.fetch(`/v1/usage/records/${id}`, { headers }));
      },
    };
  });
  afterAll(() => routing?.gateway[Symbol.asyncDispose]());
  return () => {
    if (routing === undefined) throw new Error('The gateway has not started');
    return routing;
  };
}

function replay(request: RecordedRequest, failing: Map<string, number>) {
  const model = textOf(request.body?.model);
  const left = failing.get(model) ?? 0;
  failing.set(model, left - 1);
  if (left > 0) return replayOf({ [model]: refusal(503) })(request);
  if (model.startsWith('nothing-')) return replayOf({ [model]: { chunks: [], ending: 'hang' } })(request);
  return replayOf(SCENARIOS)(request);
}

/** The text and the finish reasons of a streaming or non-streaming response. */
export function answerOf(text: string): { content: string; finishes: string[] } {
  if (text.startsWith('data:') || text.startsWith(':'))
    return { content: contentOf(text), finishes: finishesOf(text) };
  const choices = objectsOf((JSON.parse(text) as JsonObject).choices);
  return {
    content: choices.map(({ message }) => textOf((message as JsonObject).content)).join(''),
    finishes: choices.map(({ finish_reason }) => textOf(finish_reason)),
  };
}

/** Targets, fallbacks and retries under real workerd, over real connections: the client gets one whole answer, whatever fails (R1-R12). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../simulator/json.ts';
import type { RecordedRequest } from '../simulator/server.ts';
import {
  chat,
  contentOf,
  DONE,
  errorOf,
  findClosedPort,
  finishesOf,
  framesOf,
  jsonOf,
  streamedChat,
} from './client.ts';
import { type Gateway, startGateway, type Vars } from './gateway.ts';
import { CLOCKS_OFF, event, type Play, replayOf } from './plays.ts';

const CHAT = '/v1/chat/completions';
const ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';
const JSON_TYPE = { 'content-type': 'application/json' };
const refusal = (status: number, headers = {}): Play => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  chunks: [JSON.stringify({ error: { message: 'no', code: `code_${status}` } })],
});

/** By the model's name: how it fails before any output. */
const FAILURES: Readonly<Record<string, Play>> = {
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
/** Those that only their step's time ends. */
const SILENT = ['role-then-nothing', 'nothing', 'hung-up'];
/** Not in the simulator: nobody listens. */
const REFUSED = 'opentoken/anything';

/** What stands though it has no output: the caller's own mistake, and an answer that is whole. */
const STANDING: Readonly<Record<string, Play>> = {
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
/** More than is held, and no output. */
const LOGPROBS = Array.from({ length: 4000 }, () => ({
  token: '',
  logprob: 0,
  bytes: null,
  top_logprobs: [],
}));

/** What a target sends before it fails, after which no other is asked. */
const OUTPUTS: Readonly<Record<string, string>> = {
  content: event('Half'),
  reasoning: delta({ reasoning_content: 'Half' }),
  refusal: delta({ refusal: 'Half' }),
  'tool-name': delta({ tool_calls: [call] }),
  'tool-arguments': delta({ tool_calls: [{ ...call, function: { arguments: '{' } }] }),
  vendor: 'data: {"type":"x_research.step"}\n\n',
  'more-than-is-held': delta({}, { logprobs: { content: LOGPROBS } }),
};

const PLAYS: Readonly<Record<string, Play>> = {
  ...FAILURES,
  ...STANDING,
  ...Object.fromEntries(
    Object.entries(OUTPUTS).flatMap(([name, output]): [string, Play][] => [
      [`cut-${name}`, { chunks: [ROLE, output], gapMs: 20, ending: 'reset' }],
      [`error-${name}`, { chunks: [ROLE, output, 'data: {"error":"no"}\n\n'], gapMs: 20, ending: 'hang' }],
    ]),
  ),
};

const STEP_SECONDS = 0.6;
const GOOD = 'mistral/mistral-small-latest';
const standing = Object.keys(STANDING).map((name) => `openai/${name}`);
const begun = Object.keys(OUTPUTS).flatMap((name) => [`openai/cut-${name}`, `openai/error-${name}`]);
const models = [
  REFUSED,
  ...Object.keys(FAILURES).map((name) => `openai/${name}`),
  'deepseek/deepseek-chat:hang',
];
/** An alias for each failure: it, then a model that answers; and the same after a heartbeat. */
const ALIASES = Object.fromEntries(
  [...models, ...standing, ...begun].flatMap((model, i) => {
    const isSilent = SILENT.some((name) => model.endsWith(`/${name}`)) || model.endsWith(':hang');
    const step = { model, ...(isSilent ? { timeout_seconds: STEP_SECONDS } : {}) };
    // Each its own, so that none of them is left out by its circuit.
    const slow = { model: `xerotier/nothing-${i}`, timeout_seconds: STEP_SECONDS };
    return [
      [`first ${model}`, [step, GOOD]],
      [`late ${model}`, [slow, step, GOOD]],
    ];
  }),
);

let gateway: Gateway;
/** Failures left for a model that recovers. */
const failing = new Map<string, number>();

function replay(request: RecordedRequest) {
  const model = textOf(request.body?.model);
  const left = failing.get(model) ?? 0;
  failing.set(model, left - 1);
  if (left > 0) return replayOf({ [model]: refusal(503) })(request);
  if (model.startsWith('nothing-')) return replayOf({ [model]: { chunks: [], ending: 'hang' } })(request);
  return replayOf(PLAYS)(request);
}

let fixed: Vars;

beforeAll(async () => {
  const closed = `http://127.0.0.1:${await findClosedPort()}/v1`;
  fixed = { ...CLOCKS_OFF, ALIASES: JSON.stringify(ALIASES), OPENTOKEN_BASE_URL: closed };
  gateway = await startGateway({ replay, vars: fixed });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Asked {
  readonly response: Response;
  readonly text: string;
  readonly upstreams: readonly RecordedRequest[];
}

async function ask(body: JsonObject, init?: RequestInit): Promise<Asked> {
  const before = gateway.simulator.requests.length;
  const response = await gateway.post(CHAT, body, init);
  const text = await response.text();
  return { response, text, upstreams: gateway.simulator.requests.slice(before) };
}

/** The text and the finishes of either kind of answer. */
function answerOf(text: string): { content: string; finishes: string[] } {
  if (text.startsWith('data:') || text.startsWith(':'))
    return { content: contentOf(text), finishes: finishesOf(text) };
  const choices = objectsOf((JSON.parse(text) as JsonObject).choices);
  return {
    content: choices.map(({ message }) => textOf((message as JsonObject).content)).join(''),
    finishes: choices.map(({ finish_reason }) => textOf(finish_reason)),
  };
}

/** The whole record of an answered request, by its route. */
async function recordOf(response: Response): Promise<JsonObject> {
  await gateway.record(response);
  const id = response.headers.get('x-weir-request-id');
  const headers = { authorization: 'Bearer admin-token-of-the-tests' };
  return jsonOf(await gateway.fetch(`/v1/usage/records/${id}`, { headers }));
}

describe.each([
  ['streamed', true],
  ['whole', false],
] as const)('R4 %s', (_, stream) => {
  let expected: string;
  beforeAll(async () => {
    // A new isolate, which knows of no failure.
    await gateway.set({ ...fixed, HEARTBEAT_SECONDS: stream ? '100' : '200' });
    const { text } = await ask(chat(GOOD, { stream }));
    expected = answerOf(text).content;
  });

  test.each(models)(
    '%s: the next target answers, once and whole; one record has both attempts',
    async (model) => {
      const { response, text, upstreams } = await ask(chat(`first ${model}`, { stream }));
      expect(response.status).toBe(200);
      expect(answerOf(text)).toEqual({ content: expected, finishes: ['stop'] });
      expect(text).not.toContain('"error"');
      expect(text).toContain(`"model":"${GOOD}"`);
      if (stream) expect(framesOf(text).at(-1)).toBe(DONE);
      expect(text.match(/"role":"assistant"/g)).toHaveLength(1);
      expect(response.headers.get('x-weir-provider')).toBe('mistral');
      expect(response.headers.get('x-weir-attempts')).toMatch(
        /^\S+ \w+ \d+ms, mistral\/mistral-small-latest 200 \d+ms$/,
      );
      const record = await recordOf(response);
      expect(record).toMatchObject({ status: 'finished', provider: 'mistral', asked: `first ${model}` });
      expect(objectsOf(record.attempts)).toHaveLength(2);
      expect(upstreams).toHaveLength(model === REFUSED ? 1 : 2);
      // R9: nothing of what was given up goes on.
      await Promise.all(upstreams.map(({ closed }) => closed));
    },
  );
});

describe('R5 after a heartbeat', () => {
  beforeAll(() => gateway.set({ ...fixed, HEARTBEAT_SECONDS: '0.2' }));
  afterAll(() => gateway.set(fixed));

  test.each(models)('%s: the 200 is committed, the target is not', async (model) => {
    const { response, text, upstreams } = await ask(streamedChat(`late ${model}`));
    expect(text.startsWith(': heartbeat\n\n')).toBe(true);
    expect(response.headers.get('x-weir-attempts')).toBeNull();
    expect(response.headers.get('x-weir-model')).toBeNull();
    expect(finishesOf(text)).toEqual(['stop']);
    expect(text).not.toContain('"error"');
    expect(new Set(text.match(/"model":"[^"]+"/g))).toEqual(new Set([`"model":"${GOOD}"`]));
    const record = await recordOf(response);
    expect(objectsOf(record.attempts).map(({ provider }) => provider)).toEqual([
      'xerotier',
      model.split('/')[0],
      'mistral',
    ]);
    await Promise.all(upstreams.map(({ closed }) => closed));
  });
});

const PASSES_VENDOR = { headers: { 'x-weir-vendor-events': 'pass' } };

/** The providers of the targets that were asked. */
const attemptsOf = (record: JsonObject) => objectsOf(record.attempts).map(({ provider }) => provider);

describe.each([
  ['streamed', true],
  ['whole', false],
] as const)('R4 R5 %s: what does not move on', (_, stream) => {
  beforeAll(() => gateway.set({ ...fixed, HEARTBEAT_SECONDS: stream ? '300' : '400' }));
  afterAll(() => gateway.set(fixed));

  test.each(standing)('%s: it is the answer, and nobody else is asked', async (model) => {
    const { response, text, upstreams } = await ask(chat(`first ${model}`, { stream }));
    const isWhole = model.endsWith('no-text');
    expect(response.status).toBe(isWhole ? 200 : Number(/\b4(?!03)\d\d\b/.exec(model)?.[0] ?? 400));
    if (isWhole) expect(answerOf(text)).toEqual({ content: '', finishes: ['stop'] });
    else expect(text).not.toContain('asked');
    expect(response.headers.get('x-weir-attempts')).toBeNull();
    expect(upstreams).toHaveLength(1);
    expect(attemptsOf(await recordOf(response))).toEqual(['openai']);
    await upstreams[0]?.closed;
  });

  // For an object what passes in a stream alone is none of its answer.
  const outputs = stream ? begun : begun.filter((model) => !/vendor|held/.test(model));
  test.each(outputs)('%s: the error ends it, and nobody else is asked', async (model) => {
    const { response, text, upstreams } = await ask(chat(`first ${model}`, { stream }), PASSES_VENDOR);
    expect(response.status).toBe(stream ? 200 : 502);
    expect(text.match(/"error":/g)).toHaveLength(1);
    if (stream) expect(framesOf(text).at(-1)).toBe(DONE);
    expect(upstreams).toHaveLength(1);
    const record = await recordOf(response);
    expect(record).toMatchObject({ status: 'failed', provider: 'openai' });
    expect(attemptsOf(record)).toEqual(['openai']);
    await upstreams[0]?.closed;
  });
});

describe('R4 R5 after a heartbeat: what does not move on', () => {
  beforeAll(() => gateway.set({ ...fixed, HEARTBEAT_SECONDS: '0.2' }));
  afterAll(() => gateway.set(fixed));

  test.each([...standing, ...begun])('%s: it ends the stream, and nobody else is asked', async (model) => {
    const { response, text, upstreams } = await ask(streamedChat(`late ${model}`), PASSES_VENDOR);
    expect(text.startsWith(': heartbeat\n\n')).toBe(true);
    const isWhole = model.endsWith('no-text');
    expect(text.match(/"error":/g) ?? []).toHaveLength(isWhole ? 0 : 1);
    expect(framesOf(text).at(-1)).toBe(DONE);
    expect(text).not.toContain('mistral');
    const record = await recordOf(response);
    expect(record.status).toBe(isWhole ? 'finished' : 'failed');
    expect(attemptsOf(record)).toEqual(['xerotier', 'openai']);
    await Promise.all(upstreams.map(({ closed }) => closed));
  });
});

describe('R4 AUTH=passthrough', () => {
  beforeAll(() => gateway.set({ ...fixed, AUTH: 'passthrough' }));
  afterAll(() => gateway.set(fixed));
  const withKey = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  test.each(['401', '402', '403', '404'])('a %s is the caller’s own: nobody else is asked', async (name) => {
    for (const stream of [true, false]) {
      const body = chat(`openai/${name}`, { models: ['openai/gpt-4o-mini'], stream });
      const { response, upstreams } = await ask(body, withKey('sim-own'));
      expect([response.status, upstreams.length]).toEqual([Number(name), 1]);
    }
  });

  test('only targets of the first one’s provider are tried: nobody else gets the key', async () => {
    const body = chat('openai/503', { models: [GOOD, 'openai/gpt-4o-mini'] });
    const { response, upstreams } = await ask(body, withKey('sim-own'));
    expect(response.headers.get('x-weir-attempts')).toMatch(
      /^mistral\/mistral-small-latest other_provider, openai\/503 503 \d+ms, openai\/gpt-4o-mini 200 /,
    );
    expect(upstreams.map(({ body: sent }) => sent?.model)).toEqual(['503', 'gpt-4o-mini']);
  });
});

test('R8 if all fail, the error is the last one’s and tells what was tried', async () => {
  for (const stream of [true, false]) {
    const body = chat('openai/500', { models: [REFUSED, 'deepseek/429'], stream });
    const response = await gateway.post(CHAT, body);
    const { status, error } = await errorOf(response);
    expect([status, error.code]).toEqual([429, 'code_429']);
    expect(error.message).toBe(
      'DeepSeek: no (asked 3 times: openai/500 500, opentoken/anything upstream_unreachable, deepseek/429 429)',
    );
    expect(await recordOf(response)).toMatchObject({
      status: 'failed',
      provider: 'deepseek',
      total_tokens: 0,
    });
  }
});

describe('R6 further passes', () => {
  beforeAll(() => gateway.set({ ...fixed, RETRIES: undefined }));
  afterAll(() => gateway.set(fixed));

  test.each([true, false])(
    'a model that is busy once is asked again, by default (streamed: %s)',
    async (stream) => {
      failing.set('gpt-4o-mini', 1);
      const { response, text, upstreams } = await ask(chat('openai/gpt-4o-mini', { stream }));
      expect(answerOf(text).finishes).toEqual(['stop']);
      expect(upstreams).toHaveLength(2);
      expect(response.headers.get('x-weir-attempts')).toMatch(
        /^openai\/gpt-4o-mini 503 \d+ms, openai\/gpt-4o-mini 200 /,
      );
    },
  );

  test('a model that asks for a minute is not', async () => {
    const { response, upstreams } = await ask(chat('openai/429-later'));
    expect([response.status, response.headers.get('retry-after'), upstreams.length]).toEqual([429, '60', 1]);
  });
});

describe('R9 T4 a client that leaves', () => {
  beforeAll(() => gateway.set({ ...fixed, HEARTBEAT_SECONDS: '0.2', RETRIES: '5' }));
  afterAll(() => gateway.set(fixed));

  test.each(['nothing', 'role-then-nothing'])(
    '%s: before any output: its upstream is cancelled, and nobody else is asked',
    async (name) => {
      const before = gateway.simulator.requests.length;
      const client = new AbortController();
      const body = streamedChat('openai/503', { models: [`openai/${name}`, GOOD] });
      const asked = gateway.post(CHAT, body, { signal: client.signal });
      asked.catch(() => {});
      const upstream = await gateway.simulator.request(before + 1);
      client.abort();
      expect(await upstream.closed).toBe('disconnected');
      const later = await ask(chat(GOOD));
      const record = await recordOf(later.response);
      expect(record.status).toBe('finished');
      expect(gateway.simulator.requests).toHaveLength(before + 3);
      const lines = gateway
        .logs()
        .filter((line) => line.includes(`"model":"${name}"`) && line.includes('cancelled'));
      expect(lines.length).toBeGreaterThan(0);
    },
  );
});

test('R7 a target that fails five times in a row is left out for the next ones', async () => {
  await gateway.set({ ...fixed, ALIASES: JSON.stringify({ both: ['openai/503', GOOD] }) });
  const told: (string | null)[] = [];
  for (let i = 0; i < 7; i++) told.push((await ask(chat('both'))).response.headers.get('x-weir-attempts'));
  expect(told.slice(0, 5).every((text) => text?.startsWith('openai/503 503 '))).toBe(true);
  for (const text of told.slice(5))
    expect(text).toMatch(/^openai\/503 circuit_open, mistral\/\S+ 200 \d+ms$/);
});

test('R2 R11 one conversation stays with one target, and the alias is told and listed', async () => {
  const steps = [
    { model: 'openai/gpt-4o-mini', weight: 1 },
    { model: GOOD, weight: 1 },
  ];
  await gateway.set({ ...fixed, ALIASES: JSON.stringify({ both: steps, 'claude-*': GOOD }) });
  const pick = async (user: string) => {
    const { response } = await ask(chat('both', { user }));
    expect(response.headers.get('x-weir-alias')).toBe('both');
    return response.headers.get('x-weir-model');
  };
  const picks = async () => Promise.all(Array.from({ length: 16 }, (_, i) => pick(`user ${i}`)));
  const first = await picks();
  expect(await picks()).toEqual(first);
  expect(new Set(first).size).toBe(2);
  const { data } = await jsonOf(await gateway.fetch('/v1/models'));
  const own = objectsOf(data).filter(({ owned_by }) => owned_by === 'weir');
  expect(own.map(({ id }) => id)).toEqual(['both']);
  expect((await ask(chat('claude-opus-9'))).response.headers.get('x-weir-model')).toBe(
    'mistral-small-latest',
  );
});

test('R5 R9 M1 200 at once, while one of three targets comes and goes: every client gets one whole answer', async () => {
  const COUNT = 200;
  const ways = ['openai/flapping', 'openai/role-then-nothing', 'openai/error-first', REFUSED];
  const aliases = Object.fromEntries(
    ways.map((model, i) => [
      `way${i}`,
      [{ model, timeout_seconds: STEP_SECONDS }, GOOD, 'deepseek/deepseek-chat'],
    ]),
  );
  await gateway.set({ ...fixed, HEARTBEAT_SECONDS: '0.2', RETRIES: '1', ALIASES: JSON.stringify(aliases) });
  failing.set('flapping', COUNT);
  const asked = Array.from({ length: COUNT }, (_, i) => {
    const stream = i % 3 !== 0;
    return gateway.post(CHAT, chat(`way${i % ways.length}`, { stream })).then(async (response) => {
      return { response, text: await response.text() };
    });
  });
  const before = (await Promise.all(asked)).map(({ response, text }) => {
    const { finishes } = answerOf(text.replaceAll(': heartbeat\n\n', ''));
    const named = new Set(text.match(/"model":"[^"]+"/g));
    return [response.status, finishes, named.size, text.includes('"error"')];
  });
  expect(new Set(before.map((one) => JSON.stringify(one)))).toEqual(
    new Set([JSON.stringify([200, ['stop'], 1, false])]),
  );
  const records = await Promise.all(
    (await Promise.all(asked)).map(({ response }) => gateway.record(response)),
  );
  expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(COUNT);
  expect(records.every(({ status }) => status === 'finished')).toBe(true);
  await Promise.all(gateway.simulator.requests.map(({ closed }) => closed));
});

/** Tests the response head in workerd: when it is sent, and which earlier errors become its status (H3, E1, T2, T3). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { chat, contentOf, DONE, errorOf, framesOf, streamedChat } from './client.ts';
import { type Gateway, startGateway, type Vars } from './gateway.ts';
import { CLOCKS_OFF, event, many, replayOf, type Scenario } from './scenarios.ts';

const CHAT = '/v1/chat/completions';
const HEARTBEAT = ': heartbeat\n\n';
/** After the first heartbeat of 0.3 s, also if a busy machine stops workerd for two seconds. */
const LATE_MS = 3000;
/** Longer than the time limit of a test. */
const NEVER = '600';

const ERROR = { message: 'Slow down', type: 'rate_limit_error', code: 'too_fast' };
const REFUSED = JSON.stringify({ error: ERROR });
const JSON_TYPE = { 'content-type': 'application/json' };

/** Upstream responses by model name. */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'first-then-nothing': { chunks: [event('Hello')], ending: 'hang' },
  'comments-then-nothing': { chunks: [': waiting\n\n', ': waiting\n\n'], ending: 'hang' },
  'comments-for-ever': { chunks: many(': waiting\n\n', 400), gapMs: 50 },
  'with-pauses': {
    chunks: [event('one '), event('two '), event('three', 'stop'), `${DONE}\n\n`],
    gapMs: 700,
  },
  'error-event-first': { chunks: [`event: error\ndata: ${JSON.stringify(ERROR)}\n\n`], ending: 'hang' },
  'error-data-first': { chunks: [`data: ${JSON.stringify({ error: ERROR })}\n\n`], ending: 'hang' },
  'error-after-comments': { chunks: [': waiting\n\n', `data: ${JSON.stringify({ error: ERROR })}\n\n`] },
  'error-as-json': { headers: JSON_TYPE, chunks: [JSON.stringify({ error: ERROR })] },
  'error-with-status': {
    chunks: [
      `data: ${JSON.stringify({ error: { message: 'Slow down', status: 429, code: 'too_fast' } })}\n\n`,
    ],
  },
  'error-with-status-code': {
    headers: JSON_TYPE,
    chunks: [JSON.stringify({ error: { message: 'Slow down', code: 'too_fast' }, status_code: 429 })],
  },
  'late-error': { chunks: [': waiting\n\n', `data: ${REFUSED}\n\n`], gapMs: LATE_MS },
  'late-refusal': { status: 429, chunks: [REFUSED.slice(0, 9), REFUSED.slice(9)], gapMs: LATE_MS },
  'late-json-error': {
    headers: { 'content-type': 'application/json' },
    chunks: [REFUSED.slice(0, 9), REFUSED.slice(9)],
    gapMs: LATE_MS,
  },
  refused: {
    status: 429,
    headers: { ...JSON_TYPE, 'retry-after': '7' },
    chunks: [JSON.stringify({ error: ERROR })],
  },
};

let gateway: Gateway;

function setUp(vars: Vars): void {
  beforeAll(async () => {
    gateway = await startGateway({ replay: replayOf(SCENARIOS), vars: { ...CLOCKS_OFF, ...vars } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
}

/** Sends a request and waits only for the response head; also returns the upstream request. */
async function ask(body: JsonObject, init?: RequestInit) {
  const requestCount = gateway.simulator.requests.length;
  const response = await gateway.post(CHAT, body, init);
  return { response, upstream: await gateway.simulator.request(requestCount) };
}

/** Reads one chunk of an open stream, then cancels it. */
async function readOnce(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return Buffer.from(value ?? []).toString();
}

describe('H3: no heartbeat within the test', () => {
  setUp({ HEARTBEAT_SECONDS: NEVER });

  test('the head and the first event are sent at once, although no other event follows', async () => {
    const { response } = await ask(streamedChat('openai/first-then-nothing'));
    expect(response.status).toBe(200);
    expect(contentOf(await readOnce(response))).toBe('Hello');
  });

  test.each([
    'error-event-first',
    'error-data-first',
    'error-after-comments',
    'error-as-json',
    'error-with-status',
    'error-with-status-code',
  ])('E1 %s: a 200 whose first event is an error gets the status of that error', async (name) => {
    const { response } = await ask(streamedChat(`openai/${name}`));
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await errorOf(response)).toEqual({
      status: 429,
      error: { message: 'OpenAI: Slow down', type: 'rate_limit_error', param: null, code: 'too_fast' },
    });
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      error_code: 'too_fast',
      total_tokens: 0,
      estimated: false,
    });
  });

  test('E1 H2 an upstream error keeps its status and its retry-after', async () => {
    const { response } = await ask(streamedChat('openai/refused'));
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
    expect(await gateway.record(response)).toMatchObject({ status: 'failed', error_code: 'too_fast' });
  });

  test.each([400, 404, 413, 422, 429])(
    'E1 an upstream error keeps its status %d, streaming and non-streaming',
    async (status) => {
      const model = `openai/gpt-4o-mini:status-${status}-openai`;
      for (const body of [streamedChat(model), chat(model)]) {
        const { response } = await ask(body);
        expect(await errorOf(response)).toMatchObject({ status, error: { code: `simulated_${status}` } });
      }
    },
  );
});

describe('H3 T1: heartbeats of 0.3 s', () => {
  setUp({ HEARTBEAT_SECONDS: '0.3' });

  test.each([
    'openai/comments-then-nothing',
    'deepseek/deepseek-chat:hang',
    'deepseek/deepseek-chat:stall-head',
  ])('%s: the head is sent with the first heartbeat, not with a comment', async (model) => {
    const { response } = await ask(streamedChat(model));
    expect(response.status).toBe(200);
    expect(await readOnce(response)).toBe(HEARTBEAT);
  });

  test.each(['late-error', 'late-refusal', 'late-json-error'])(
    'H3 E2 %s: after the first heartbeat an error is a frame of type server_error, then [DONE]',
    async (name) => {
      const { response } = await ask(streamedChat(`openai/${name}`));
      const text = await response.text();
      expect(response.status).toBe(200);
      const error = { message: 'OpenAI: Slow down', type: 'server_error', param: null, code: 'too_fast' };
      const ending = `data: ${JSON.stringify({ error })}\n\n${DONE}\n\n`;
      expect(text.replaceAll(HEARTBEAT, '')).toBe(ending);
      expect(text.startsWith(HEARTBEAT)).toBe(true);
      expect(await gateway.record(response)).toMatchObject({ status: 'failed', error_code: 'too_fast' });
    },
  );
});

describe('T1 T2 T3: all timers off', () => {
  setUp({});

  test('pauses in the output: no heartbeat, no timeout, complete text', async () => {
    const { response } = await ask(streamedChat('openai/with-pauses'));
    const text = await response.text();
    expect(contentOf(text)).toBe('one two three');
    expect(text).not.toMatch(/heartbeat|"error"/);
    expect(framesOf(text).at(-1)).toBe(DONE);
    expect(await gateway.record(response)).toMatchObject({ status: 'finished' });
  });
});

/** A slow machine reaches the upstream within it. */
const DEADLINE_SECONDS = '3';
const LATE = {
  message: `did not finish within ${DEADLINE_SECONDS} seconds`,
  type: 'timeout_error',
  code: 'timeout',
};
const IDLE = {
  message: 'sent nothing for 0.5 seconds',
  type: 'stream_idle_timeout',
  code: 'stream_idle_timeout',
};

describe.each([
  ['T2', 'an idle timeout', { IDLE_TIMEOUT_SECONDS: '0.5', HEARTBEAT_SECONDS: NEVER }, IDLE],
  ['T3', 'a deadline', { DEADLINE_SECONDS, HEARTBEAT_SECONDS: NEVER }, LATE],
  ['T2', 'an idle timeout, heartbeats off', { IDLE_TIMEOUT_SECONDS: '0.5' }, IDLE],
  ['T3', 'a deadline, heartbeats off', { DEADLINE_SECONDS }, LATE],
] as const)('%s: %s, before the first heartbeat', (_rule, _name, vars, expected) => {
  setUp(vars);

  test.each(['hang', 'stall-head'])(
    'E1 %s: 504 and no stream; timed_out with an estimated prompt, and the upstream is cancelled',
    async (fault) => {
      const { response, upstream } = await ask(streamedChat(`deepseek/deepseek-chat:${fault}`));
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await errorOf(response)).toEqual({
        status: 504,
        error: { ...expected, param: null, message: `DeepSeek ${expected.message}` },
      });
      expect(await upstream.closed).toBe('disconnected');
      const record = await gateway.record(response);
      expect(record).toMatchObject({
        status: 'timed_out',
        error_code: expected.code,
        bytes_out: 0,
        estimated: true,
      });
      expect(record.prompt_tokens).toBeGreaterThan(0);
    },
  );
});

describe('T3: endless comments', () => {
  setUp({ DEADLINE_SECONDS: '4', IDLE_TIMEOUT_SECONDS: '3' });

  test('E1 they only postpone the idle timeout: the deadline causes a 504, and the upstream is cancelled', async () => {
    const { response, upstream } = await ask(streamedChat('openai/comments-for-ever'));
    expect(await errorOf(response)).toMatchObject({ status: 504, error: { code: 'timeout' } });
    expect(await upstream.closed).toBe('disconnected');
  });
});

/** Tests Anthropic behind the gateway over HTTP: headers, errors, and usage records (A1, A3-A6, A9). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, contentOf, DONE, errorOf, finishesOf, framesOf, jsonOf, streamedChat } from './client.ts';
import { CREDENTIALS, type Gateway, startGateway } from './gateway.ts';
import { CLOCKS_OFF, replayOf } from './scenarios.ts';

const CHAT = '/v1/chat/completions';

const named = (type: string, more: JsonObject = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const USAGE = {
  input_tokens: 10,
  cache_read_input_tokens: 200,
  cache_creation_input_tokens: 3000,
  output_tokens: 1,
};
const START = named('message_start', {
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [],
    usage: USAGE,
  },
});
const TEXT =
  named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
  named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'A weir' } });
const stop = (usage: JsonObject) =>
  named('message_delta', { delta: { stop_reason: 'end_turn' }, usage }) + named('message_stop');
const error = (type: string, message: string) => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_1',
});
const refusal = (status: number, type: string, message: string) => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(error(type, message))],
});
const iterations = [
  { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 50_000 },
  { type: 'message', input_tokens: 10, output_tokens: 7 },
];

const SCENARIOS = {
  'claude-sonnet-4-5': { chunks: [START, TEXT, stop({ output_tokens: 7, iterations })] },
  'claude-overloaded-first': { chunks: [named('error', error('overloaded_error', 'Overloaded'))] },
  'claude-overloaded-start': { chunks: [START, named('error', error('overloaded_error', 'Overloaded'))] },
  'claude-overloaded-mid': { chunks: [START, TEXT, named('error', error('overloaded_error', 'Overloaded'))] },
  'claude-haiku-4-5-20251001': {
    chunks: [
      START.replace(
        '"output_tokens":1',
        '"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"output_tokens":1',
      ),
      TEXT,
      stop({ output_tokens: 7, cache_creation_input_tokens: 3000 }),
    ],
  },
  'claude-truncated': { chunks: [START, TEXT] },
  'claude-529': refusal(529, 'overloaded_error', 'Overloaded'),
  'claude-429': refusal(429, 'rate_limit_error', 'This request would exceed your rate limit'),
  'claude-poor': refusal(
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API.',
  ),
  'claude-401': refusal(401, 'authentication_error', 'invalid x-api-key'),
  'claude-404': refusal(404, 'not_found_error', 'model: claude-404'),
  'claude-413': refusal(413, 'request_too_large', 'Request exceeds the maximum size'),
  'claude-400': refusal(400, 'invalid_request_error', 'messages.1: all messages must have non-empty content'),
  'claude-thinks': {
    chunks: [START, ...Array.from({ length: 5 }, () => named('ping')), TEXT, stop({})],
    gapMs: 500,
  },
};

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ replay: replayOf(SCENARIOS) });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const complete = (model: string, more: JsonObject = {}) =>
  gateway.post(CHAT, streamedChat(`anthropic/${model}`, more));

describe('Anthropic, requests', () => {
  test('A1 H2 sends Anthropic’s path, credential and version, and no authorization', async () => {
    await (await complete('claude-haiku-4-5')).text();
    const request = gateway.simulator.requests.at(-1);
    expect(request?.path).toBe('/anthropic/v1/messages');
    expect(request?.headers).toMatchObject({
      'x-api-key': CREDENTIALS.ANTHROPIC_API_KEY,
      'anthropic-version': '2023-06-01',
    });
    expect(request?.headers).not.toHaveProperty('authorization');
  });

  test('A1 the same response, streamed and not', async () => {
    const streamed = await (await complete('claude-haiku-4-5')).text();
    const json = await jsonOf(await gateway.post(CHAT, chat('anthropic/claude-haiku-4-5')));
    const [choice] = objectsOf(json.choices);
    expect(textOf(objectOf(choice?.message).content)).toBe(contentOf(streamed));
    expect(finishesOf(streamed)).toEqual(['stop']);
    expect(json.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 9, total_tokens: 11 });
  });

  test('Q5 A2 drops what the family refuses, and names it in the header', async () => {
    const response = await complete('claude-opus-5-5', { temperature: 0.2, seed: 7 });
    await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-dropped')).toBe('temperature, seed');
  });
});

describe('Anthropic, usage', () => {
  test('A5 the prompt includes cache tokens; extra billed tokens are only in the record and its cost', async () => {
    const response = await complete('claude-sonnet-4-5', { stream_options: { include_usage: true } });
    const text = await response.text();
    expect(text).toContain(
      '"usage":{"prompt_tokens":3210,"completion_tokens":7,"total_tokens":3217,"prompt_tokens_details":{"cached_tokens":200,"cache_write_tokens":3000}}',
    );
    // $3, $0.30 and $3.75 per million prompt tokens, $15 per million completion tokens.
    const nanos = 110 * 3000 + 50_200 * 300 + 3000 * 3750 + 27 * 15_000;
    expect(await gateway.record(response)).toMatchObject({
      prompt_tokens: 3210 + 50_100,
      completion_tokens: 27,
      cached_tokens: 50_200,
      cache_write_tokens: 3000,
      finish_reason: 'end_turn',
      cost_nanos: nanos,
      cost_source: 'table',
      estimated: false,
    });
  });

  test('P1 P5 one-hour cache writes cost twice the input; a client that asks for the cost gets the record’s', async () => {
    const nanos = 10 * 1000 + 200 * 100 + 1000 * 1250 + 2000 * 2000 + 7 * 5000;
    const response = await complete('claude-haiku-4-5-20251001', { usage: { include: true } });
    const text = await response.text();
    expect(text).toContain(`"cache_write_tokens":3000},"cost":${nanos / 1e9}}`);
    expect(await gateway.record(response)).toMatchObject({ cost_nanos: nanos, cache_write_tokens: 3000 });
    const other = await complete('claude-sonnet-4-5', { usage: { include: true } });
    const cost = /"cost":([\d.]+)\}/.exec(await other.text())?.[1];
    expect((await gateway.record(other)).cost_nanos).toBe(Math.round(Number(cost) * 1e9));
  });

  test('A5 H3 overloaded before the first block: an HTTP error, and the reported prompt', async () => {
    const response = await complete('claude-overloaded-start');
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      error: { code: 'upstream_overloaded', message: 'Anthropic: Overloaded' },
    });
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      prompt_tokens: 3210,
      completion_tokens: 0,
      estimated: false,
    });
  });

  test('A5 M3 a truncated stream has the reported prompt and an estimated completion', async () => {
    const response = await complete('claude-truncated');
    const text = await response.text();
    expect(framesOf(text).slice(-2)).toEqual([expect.stringContaining('upstream_truncated'), DONE]);
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      prompt_tokens: 3210,
      estimated: true,
      error_code: 'upstream_truncated',
    });
  });
});

describe('Anthropic, errors', () => {
  test.each([
    ['claude-overloaded-first', 503, 'upstream_overloaded', 'Overloaded'],
    ['claude-529', 503, 'upstream_overloaded', 'Overloaded'],
    ['claude-429', 429, 'rate_limited', 'exceed your rate limit'],
    ['claude-poor', 502, 'upstream_balance', "refused this deployment's balance"],
    ['claude-401', 502, 'upstream_credential', "refused this deployment's credential"],
    ['claude-404', 404, 'model_not_found', 'model: claude-404'],
    ['claude-413', 413, 'request_too_large', 'maximum size'],
    ['claude-400', 400, 'invalid_request', 'all messages must have non-empty content'],
  ])('A4 E1 %s: %d %s', async (model, status, code, message) => {
    const { status: actual, error } = await errorOf(await complete(model));
    expect([actual, error.code]).toEqual([status, code]);
    expect(textOf(error.message)).toContain(message);
  });

  test('A3 E2 overloaded during the stream: an error frame without a finish', async () => {
    const response = await complete('claude-overloaded-mid');
    const text = await response.text();
    expect(contentOf(text)).toBe('A weir');
    expect(finishesOf(text)).toEqual([]);
    expect(framesOf(text).slice(-2)).toEqual([expect.stringContaining('"code":"overloaded_error"'), DONE]);
  });

  test('A3 R2 an error as the first event: the next model is tried', async () => {
    const models = ['anthropic/claude-overloaded-first', 'anthropic/claude-haiku-4-5'];
    const response = await gateway.post(CHAT, { ...streamedChat(models[0] ?? ''), models });
    expect(finishesOf(await response.text())).toEqual(['stop']);
    expect(response.headers.get('x-weir-model')).toBe('claude-haiku-4-5');
  });
});

describe('Anthropic, settings', () => {
  test('A6 T2 pings delay the idle timeout, also after the first event', async () => {
    await gateway.set({ ...CLOCKS_OFF, IDLE_TIMEOUT_SECONDS: '2.7' });
    const text = await (await complete('claude-thinks')).text();
    expect([contentOf(text), finishesOf(text)]).toEqual(['A weir', ['stop']]);
  });

  test('A9 PROMPT_CACHE: a history is cached by default, and not if it is off', async () => {
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'Hello' },
    ];
    const sent = async () => {
      await (await complete('claude-sonnet-5', { messages })).text();
      return gateway.simulator.requests.at(-1)?.body?.cache_control;
    };
    await gateway.set({});
    expect(await sent()).toEqual({ type: 'ephemeral' });
    await gateway.set({ PROMPT_CACHE: 'off' });
    expect(await sent()).toBeUndefined();
  });

  test('A1 a base URL that ends in /v1, as in other SDKs, gives the same paths', async () => {
    await gateway.set({ ANTHROPIC_BASE_URL: `${gateway.simulator.url}/anthropic/v1` });
    expect((await complete('claude-haiku-4-5')).status).toBe(200);
    const models = objectsOf((await jsonOf(await gateway.fetch('/v1/models'))).data);
    expect(models.find(({ id }) => id === 'anthropic/claude-opus-5-5')).toMatchObject({
      id: 'anthropic/claude-opus-5-5',
      object: 'model',
      created: Date.parse('2026-09-22T00:00:00Z') / 1000,
      owned_by: 'anthropic',
    });
  });
});

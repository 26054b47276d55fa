/** Tests usage records in KV: one exact record for each request that reached an upstream, for every end (M1 to M4). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordSummary } from '../../src/metering/record.ts';
import { decodeObject, type JsonObject } from '../../tools/simulator/json.ts';
import { chat, streamedChat } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ pace: 2 });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const CHAT = '/v1/chat/completions';

/** What the simulator bills, as its scene files document: prompt tokens are words, and cached ones are words of the system message. */
interface Kind {
  readonly path: string;
  readonly model: string;
  readonly stream: boolean;
  readonly status: RecordSummary['status'];
  readonly completion: number;
  readonly reasoning: number | null;
  /** Whether the provider reports cache hits, and accepts system messages. */
  readonly caches: boolean;
}

function finished(model: string, stream: boolean, completion: number, reasoning: number | null): Kind {
  return { path: CHAT, model, stream, status: 'finished', completion, reasoning, caches: true };
}

const KINDS: readonly Kind[] = [
  finished('deepseek/deepseek-chat', true, 16, null),
  finished('deepseek/deepseek-reasoner', false, 20, 9),
  finished('mistral/mistral-small-latest', true, 12, null),
  finished('mistral/magistral-medium-latest', false, 15, null),
  finished('opentoken/google/gemini-3-pro', true, 31, 24),
  finished('xerotier/llama-3.1-8b', true, 13, null),
  finished('openai/o4-mini', false, 37, 32),
  { ...finished('compatible/openai/gpt-oss-20b', true, 14, 8), caches: false },
  { ...finished('codestral/codestral-latest', true, 7, null), path: '/v1/fim/completions' },
  { ...finished('openai/gpt-3.5-turbo-instruct', false, 7, 0), path: '/v1/completions' },
  { ...finished('deepseek/deepseek-chat-busy', true, 6, null), status: 'failed' },
  { ...finished('deepseek/deepseek-chat:status-500', true, 0, null), status: 'failed', caches: false },
];

interface Sent {
  readonly kind: Kind;
  readonly id: string | null;
  readonly words: number;
  readonly systemWords: number;
}

/** Sends one request, reads the response and returns what its record must contain. */
async function send(kind: Kind, turn: number): Promise<Sent> {
  const { path, model, stream } = kind;
  const words = 1 + (turn % 7);
  const systemWords = path === CHAT ? turn % 4 : 0;
  const prompt = 'word '.repeat(words);
  const system = { role: 'system', content: 'rule '.repeat(systemWords) };
  const sent = path === CHAT ? { messages: [system, { role: 'user', content: prompt }] } : { prompt };
  const response = await gateway.post(path, { model, stream, ...sent });
  await response.text();
  return { kind, id: response.headers.get('x-weir-request-id'), words, systemWords };
}

function expectedOf({ kind, id, words, systemWords }: Sent) {
  const { completion, reasoning, status, caches } = kind;
  // A refused request costs nothing.
  const prompt = completion === 0 ? 0 : words + systemWords;
  return {
    request_id: id,
    status,
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cached_tokens: caches ? systemWords : null,
    reasoning_tokens: reasoning,
    estimated: false,
  };
}

function pick(record: RecordSummary): ReturnType<typeof expectedOf> {
  const { request_id, status, prompt_tokens, completion_tokens, total_tokens } = record;
  const { cached_tokens, reasoning_tokens, estimated } = record;
  const sums = { prompt_tokens, completion_tokens, total_tokens };
  return { request_id, status, ...sums, cached_tokens, reasoning_tokens, estimated };
}

const byId = (a: { request_id: string | null }, b: { request_id: string | null }) =>
  String(a.request_id) < String(b.request_id) ? -1 : 1;

describe('many at a time', () => {
  const REQUESTS = 120;
  const AT_A_TIME = 24;

  test(`M1 M4: ${REQUESTS} requests, ${AT_A_TIME} at a time, leave exactly ${REQUESTS} exact records`, async () => {
    const turns = Array.from({ length: REQUESTS }, (_, turn) => turn).values();
    const sent: Sent[] = [];
    async function sendOneByOne(): Promise<void> {
      for (const turn of turns) {
        const kind = KINDS[turn % KINDS.length];
        if (kind !== undefined) sent.push(await send(kind, turn));
      }
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, sendOneByOne));
    const records = await gateway.records(REQUESTS);
    expect(records.map(pick).sort(byId)).toEqual(sent.map(expectedOf).sort(byId));
    const logged = gateway
      .logs()
      .map((line) => decodeObject(line))
      // Refusals open a circuit, too.
      .flatMap((line) => (line?.event === 'request' ? [line.request_id] : []));
    expect(logged.sort()).toEqual(sent.map(({ id }) => id).sort());
  });
});

describe('one record', () => {
  /** The record's value in KV, and its key. */
  async function entryOf(response: Response): Promise<{ value: JsonObject | undefined; key: string }> {
    const { request_id } = await gateway.record(response);
    const [entry] = (await gateway.entries('usage/')).filter(({ name }) => name.endsWith(request_id));
    return { value: decodeObject(entry?.value ?? ''), key: entry?.name ?? '' };
  }

  test('M2 L1 a finished stream: the record has every field, in its value and in its metadata', async () => {
    const before = Date.now();
    const model = 'deepseek/deepseek-reasoner';
    const response = await gateway.post(CHAT, streamedChat(model));
    const bytes = (await response.arrayBuffer()).byteLength;
    const record = await gateway.record(response);
    const { value, key } = await entryOf(response);
    const { time, ended, first_token_ms, total_ms, ...rest } = record;
    expect(rest).toEqual({
      request_id: response.headers.get('x-weir-request-id'),
      key_id: 'open',
      user: null,
      session: null,
      // The user agent of Node's fetch.
      app: 'node',
      asked: model,
      provider: 'deepseek',
      model: 'deepseek-reasoner',
      route: 'chat',
      client: 'chat',
      status: 'finished',
      error_code: null,
      error: null,
      fault: null,
      finish_reason: 'stop',
      prompt_tokens: 2,
      completion_tokens: 20,
      total_tokens: 22,
      cached_tokens: 0,
      cache_write_tokens: null,
      reasoning_tokens: 9,
      vendor_events: 0,
      vendor_tokens: 0,
      bytes_out: bytes,
      estimated: false,
      cost_nanos: null,
      currency: null,
      cost_source: 'none',
      price_since: null,
      cost_estimated: false,
    });
    const attempts = [
      {
        provider: 'deepseek',
        model: 'deepseek-reasoner',
        status: 200,
        error_code: null,
        ms: expect.any(Number),
      },
    ];
    expect(value).toEqual({ ...record, tags: {}, attempts });
    expect(Date.parse(ended)).toBe(Date.parse(time) + total_ms);
    expect(key).toBe(`usage/${time.slice(0, 10)}/open/${time.slice(11)}-${record.request_id}`);
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(time) + total_ms).toBeLessThanOrEqual(Date.now());
    expect(first_token_ms).toBeGreaterThanOrEqual(0);
    expect(total_ms).toBeGreaterThanOrEqual(first_token_ms ?? Number.POSITIVE_INFINITY);
  });

  test('M2 a non-streaming response: bytes_out are the bytes of the body', async () => {
    const response = await gateway.post(CHAT, chat('mistral/open-mistral-7b'));
    const bytes = (await response.arrayBuffer()).byteLength;
    const record = await gateway.record(response);
    expect(record).toMatchObject({ bytes_out: bytes, finish_reason: 'model_length', completion_tokens: 8 });
  });

  test('M3 a truncated stream: failed, with an estimate of the forwarded text', async () => {
    const response = await gateway.post(CHAT, streamedChat('deepseek/deepseek-chat:cut'));
    const bytes = (await response.arrayBuffer()).byteLength;
    const record = await gateway.record(response);
    expect(record).toMatchObject({
      status: 'failed',
      error_code: 'upstream_truncated',
      finish_reason: null,
      bytes_out: bytes,
      estimated: true,
    });
    // Eight of sixteen words were forwarded.
    expect(record.completion_tokens).toBeGreaterThanOrEqual(8);
    expect(record.completion_tokens).toBeLessThan(16);
    expect(record.prompt_tokens).toBeGreaterThanOrEqual(2);
    expect(record.total_tokens).toBe(record.prompt_tokens + record.completion_tokens);
  });

  test('M1 M3 T4 a stream whose client disconnects: the record is cancelled, and the upstream, too', async () => {
    const sent = gateway.simulator.requests.length;
    const abort = new AbortController();
    const body = streamedChat('openai/gpt-4o-mini:flood');
    const response = await gateway.post(CHAT, body, { signal: abort.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.read();
    abort.abort();
    const upstream = await gateway.simulator.request(sent);
    expect(await upstream.closed).toBe('disconnected');
    const record = await gateway.record(response);
    expect(record).toMatchObject({ status: 'cancelled', error_code: null, estimated: true });
    expect(record.completion_tokens).toBeGreaterThan(0);
  });

  test.each([
    ['422', 'invalid_request_error'],
    ['401', 'upstream_credential'],
  ])('M1 a request that the upstream refused with %s: failed, without tokens', async (status, code) => {
    const model = `deepseek/deepseek-chat:status-${status}`;
    const response = await gateway.post(CHAT, streamedChat(model));
    await response.text();
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      error_code: code,
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      first_token_ms: null,
      bytes_out: 0,
      estimated: false,
    });
  });

  test.each([
    ['no model', { messages: [] }],
    ['an unknown model', chat('nowhere/model')],
  ])('M1 a request that reached no upstream (%s) has no record', async (_, body) => {
    const refused = await gateway.post(CHAT, body);
    await refused.text();
    const served = await gateway.post(CHAT, chat('deepseek/deepseek-chat'));
    await gateway.record(served);
    const names = (await gateway.entries('usage/')).map(({ name }) => name);
    expect(names.some((name) => name.endsWith(String(served.headers.get('x-weir-request-id'))))).toBe(true);
    expect(names.some((name) => name.endsWith(String(refused.headers.get('x-weir-request-id'))))).toBe(false);
  });

  test.each([
    ['deep-think', 6, 200 + 75],
    ['research', 4, 0],
  ])('V3 a %s response: the record has the vendor events and their tokens', async (name, events, tokens) => {
    for (const policy of ['strip', 'pass']) {
      const headers = { 'x-weir-vendor-events': policy };
      const body = streamedChat(`xerotier/llama-3.1-8b-${name}`);
      const response = await gateway.post(CHAT, body, { headers });
      const text = await response.text();
      expect(text.includes('"type":"x_')).toBe(policy === 'pass');
      expect(await gateway.record(response)).toMatchObject({
        vendor_events: events,
        vendor_tokens: tokens,
        completion_tokens: 13,
      });
    }
  });
});

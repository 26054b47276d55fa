/** Tests `GET /v1/usage` over real records, for a key and for the admin (M5), and the limit of a record's metadata (M4). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const DAY_MS = 24 * 60 * 60 * 1000;
const LONG_PROVIDER = 'p'.repeat(32);
const HUGE = Number.MAX_SAFE_INTEGER;

let gateway: Gateway;

/** A key of the deployment and what its owner sends. */
interface Owner {
  readonly id: string;
  readonly headers: { readonly authorization: string };
}
let ann: Owner;
let bob: Owner;

beforeAll(async () => {
  gateway = await startGateway({
    vars: (simulatorUrl) => ({
      AUTH: 'keys',
      PROVIDERS: JSON.stringify({ [LONG_PROVIDER]: { base_url: `${simulatorUrl}/compatible/v1` } }),
    }),
    replay,
  });
  ann = await makeOwner('ann');
  bob = await makeOwner('bob');
  await send(ann, streamedChat('deepseek/deepseek-reasoner'));
  await send(ann, chat('deepseek/deepseek-chat'));
  await send(ann, streamedChat('deepseek/deepseek-chat:cut'));
  await send(bob, chat('openai/o4-mini'));
  await send(bob, chat('openai/o4-mini:status-500'));
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function makeOwner(name: string): Promise<Owner> {
  const { id, key } = await jsonOf(await gateway.post('/admin/keys', { name }, { headers: ADMIN }));
  return { id: textOf(id), headers: { authorization: `Bearer ${textOf(key)}` } };
}

async function send({ headers }: Owner, body: JsonObject) {
  const response = await gateway.post(CHAT, body, { headers });
  await response.text();
  return gateway.record(response);
}

async function report(query: string, headers: Record<string, string>): Promise<JsonObject> {
  const response = await gateway.fetch(`/v1/usage?${query}`, { headers });
  expect(response.status).toBe(200);
  return jsonOf(response);
}

function day(daysFromNow: number): string {
  return new Date(Date.now() + daysFromNow * DAY_MS).toISOString().slice(0, 10);
}

/** From yesterday to the day after tomorrow, so that midnight may pass during the test. */
const AROUND = `from=${day(-1)}&to=${day(2)}`;

describe('GET /v1/usage', () => {
  test('M5 P5 a key gets the sums of its own records', async () => {
    const { data, ...rest } = await report(`${AROUND}&group_by=model`, bob.headers);
    const sums = {
      requests: 2,
      prompt_tokens: 2,
      completion_tokens: 37,
      total_tokens: 39,
      cached_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 32,
      estimated_requests: 0,
      failed_requests: 1,
      unpriced_requests: 0,
      cancelled_requests: 0,
      cut_requests: 0,
      cached_share: 0,
      median_first_token_ms: expect.any(Number),
      // There is no rate for an output that arrived at once, as it does on a machine that is not busy.
      median_tokens_per_second: expect.toBeOneOf([null, expect.any(Number)]),
      p95_first_token_ms: expect.any(Number),
      p99_first_token_ms: expect.any(Number),
      p5_tokens_per_second: expect.toBeOneOf([null, expect.any(Number)]),
      p1_tokens_per_second: expect.toBeOneOf([null, expect.any(Number)]),
      // At 1.1 and 4.4 dollars per million tokens.
      cost: { USD: 0.000165 },
      estimated_cost: {},
      cost_parts: { input: { USD: 0.0000022 }, cached: {}, output: { USD: 0.0001628 } },
    };
    const failed = {
      requests: 1,
      failed_requests: 1,
      cached_share: null,
      median_first_token_ms: null,
      p95_first_token_ms: null,
      p99_first_token_ms: null,
      cost: {},
      cost_parts: undefined,
    };
    const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, reasoning_tokens: 0 };
    expect(rest).toEqual({
      object: 'list',
      from: day(-1),
      to: day(2),
      group_by: ['model'],
      total: sums,
      distribution: {
        first_token_ms: [{ from: expect.any(Number), to: expect.any(Number), requests: 1 }],
        tokens_per_second: expect.any(Array),
      },
      named: { count: 2, is_exact: true, cost: { USD: 0.000165 } },
    });
    expect(data).toEqual([
      { model: 'openai/o4-mini', ...sums, requests: 1, failed_requests: 0 },
      { model: 'openai/o4-mini:status-500', ...sums, ...zero, ...failed },
    ]);
  });

  test('M5 the same reports without /v1', async () => {
    const response = await gateway.fetch(`/usage?${AROUND}`, { headers: ann.headers });
    expect(objectOf((await jsonOf(response)).total)).toMatchObject({ requests: 3, estimated_requests: 1 });
  });

  test('M5 the admin gets the sums of all keys, grouped by key', async () => {
    const { data, total } = await report(`${AROUND}&group_by=key`, ADMIN);
    const rows = objectsOf(data).map(({ key, requests, failed_requests }) => [
      key,
      requests,
      failed_requests,
    ]);
    expect(rows).toEqual(
      [
        [ann.id, 3, 1],
        [bob.id, 2, 1],
      ].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    );
    expect(total).toMatchObject({ requests: 5, failed_requests: 2, reasoning_tokens: 9 + 32 });
  });

  test('M5 rows are grouped by several fields, in the requested order', async () => {
    const { data, group_by } = await report(`${AROUND}&group_by=provider,status`, ADMIN);
    expect(group_by).toEqual(['provider', 'status']);
    const rows = objectsOf(data).map(({ provider, status, requests }) => [provider, status, requests]);
    expect(rows).toEqual([
      ['deepseek', 'failed', 1],
      ['deepseek', 'finished', 2],
      ['openai', 'failed', 1],
      ['openai', 'finished', 1],
    ]);
  });

  test('M5 groups by hour, and filters by provider, model, route and status', async () => {
    const of = async (query: string) => (await report(`${AROUND}&group_by=hour&${query}`, ADMIN)).total;
    expect(await of('provider=openai')).toMatchObject({ requests: 2, failed_requests: 1 });
    expect(await of('provider=openai&status=failed')).toMatchObject({ requests: 1, cut_requests: 0 });
    expect(await of('model=deepseek/deepseek-chat:cut&route=chat')).toMatchObject({
      requests: 1,
      failed_requests: 1,
      cut_requests: 1,
    });
    expect(await of('route=fim')).toMatchObject({ requests: 0, median_first_token_ms: null });
    const { data } = await report(`${AROUND}&group_by=hour`, ADMIN);
    for (const { hour } of objectsOf(data)) expect(hour).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:00Z$/);
  });

  test.each([
    ['days before', () => `from=${day(-9)}&to=${day(-1)}`, 0],
    ['days after', () => `from=${day(2)}&to=${day(9)}`, 0],
    ['a span that contains today', () => `from=${day(-9)}&to=${day(9)}`, 3],
    ['no span: this month', () => '', 3],
  ])('M5 `from` is inclusive, `to` exclusive (%s)', async (_, query, requests) => {
    expect((await report(query(), ann.headers)).total).toMatchObject({ requests });
  });

  test('M5 `from` includes and `to` excludes the millisecond of a record', async () => {
    const { time } = await send(ann, chat('mistral/mistral-small-latest'));
    const next = new Date(Date.parse(time) + 1).toISOString();
    const before = new Date(Date.parse(time) - 1).toISOString();
    const of = async (from: string, to: string) =>
      (await report(`from=${from}&to=${to}&group_by=model`, ann.headers)).data;
    const row = expect.objectContaining({ model: 'mistral/mistral-small-latest', requests: 1 });
    expect(await of(time, next)).toEqual([row]);
    expect(await of(before, time)).toEqual([]);
  });

  test.each([
    ['from=yesterday', 'from'],
    ['to=2026-13-01', 'to'],
    ['from=2026-02-02&to=2026-02-02', 'to'],
    ['from=2026-02-02&to=2026-02-01', 'to'],
    ['from=2020-01-01&to=2026-01-01', 'from'],
    ['group_by=colour', 'group_by'],
    ['group_by=day,', 'group_by'],
    ['group_by=key', 'group_by'],
    ['status=broken', 'status'],
    ['format=xml', 'format'],
    ['key=0123456789abcdef', 'key'],
  ])('M5 %s is refused for a key, with a message that names the valid values', async (query, param) => {
    const { status, error } = await errorOf(
      await gateway.fetch(`/v1/usage?${query}`, { headers: ann.headers }),
    );
    expect(status).toBe(400);
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_request', param });
    expect(textOf(error.message)).not.toBe('');
  });

  test.each([
    ['no key', {}],
    ['an unknown key', { authorization: 'Bearer weir_0123456789abcdef' }],
    ['a token that is almost the admin token', { authorization: `Bearer ${ADMIN_TOKEN}x` }],
  ])('K3 %s gets 401', async (_, headers) => {
    const { status, error } = await errorOf(await gateway.fetch('/v1/usage', { headers }));
    expect([status, error.code]).toEqual([401, 'invalid_api_key']);
  });
});

/** A response with the longest texts and numbers, for models whose name begins with 水. */
function replay({ body }: RecordedRequest): Replay | undefined {
  const model = textOf(body?.model);
  if (!model.startsWith('水')) return undefined;
  const choices = [{ index: 0, delta: { content: 'x' }, finish_reason: 'w'.repeat(32) }];
  const usage = {
    prompt_tokens: HUGE,
    completion_tokens: HUGE,
    total_tokens: HUGE,
    prompt_tokens_details: { cached_tokens: HUGE },
    completion_tokens_details: { reasoning_tokens: HUGE },
  };
  const vendor = { type: 'x_deep_think.subtask_completed', input_tokens: HUGE, output_tokens: 0 };
  const error = { message: 'too long', type: 'server_error', code: '"\\誤'.repeat(500) };
  const events = [vendor, { model, choices, usage }, { error }];
  return { chunks: events.map((event) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`)) };
}

describe('metadata', () => {
  test.each([
    ['wide characters', '水'.repeat(256)],
    ['surrogate pairs', '水' + '🌊'.repeat(127)],
    ['what JSON escapes', '水' + '"\\'.repeat(127)],
  ])('M4 has at most 1,024 bytes with the longest texts and numbers (%s)', async (_, name) => {
    for (const provider of [LONG_PROVIDER, 'xerotier']) {
      const record = await send(ann, streamedChat(`${provider}/${name}`.slice(0, 256)));
      expect(record).toMatchObject({ status: 'failed', provider, prompt_tokens: HUGE, estimated: false });
      const entries = await gateway.entries('usage/');
      const entry = entries.find((candidate) => candidate.name.endsWith(record.request_id));
      const bytes = Buffer.byteLength(JSON.stringify(entry?.metadata));
      expect(bytes).toBeGreaterThan(350);
      expect(bytes).toBeLessThanOrEqual(1024);
    }
  });
});

/** Tests the bounds of what one request can cause, from any caller: KV calls, and the size of reports (M5). */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';
import { residentBytes, workerdIds } from './processes.ts';

const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const MODEL = 'openai/gpt-4o-mini';
const ISOLATE_BYTES = 128 * 1024 * 1024;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ entrypoint: 'watched-kv-worker.ts', vars: { AUTH: 'passthrough' } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function callsIn(lines: readonly JsonObject[]): string[] {
  return lines.filter((line) => line.event === 'kv').map(({ call, key }) => `${call} ${key}`);
}

function callerKey(token: string): string {
  return `caller/${createHash('sha256').update(token).digest('hex').slice(0, 16)}`;
}

function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}

let marks = 0;

/** Makes a unique KV call, waits until it is in the log, and returns all calls before it. The log is in order. */
async function mark(): Promise<string[]> {
  const token = `mark-${++marks}`;
  await gateway.fetch('/v1/usage', { headers: bearer(token) });
  let before: string[] = [];
  await gateway.logged((lines) => {
    const calls = callsIn(lines);
    const at = calls.indexOf(`get ${callerKey(token)}`);
    before = calls.slice(0, at);
    return at >= 0;
  });
  // An isolate reads prices once a minute.
  return before.filter((call) => call !== 'get config/prices');
}

async function kvCallsDuring(run: () => Promise<void>): Promise<string[]> {
  const before = (await mark()).length;
  await run();
  // The first call after the mark is the mark itself.
  return (await mark()).slice(before + 1);
}

/** Sends a chat with this credential, and waits for its record. */
async function send(token: string, body: JsonObject): Promise<number> {
  const response = await gateway.post(CHAT, body, { headers: bearer(token) });
  await response.text();
  await gateway.record(response);
  return response.status;
}

describe('AUTH=passthrough', () => {
  test('M5 a report with an invented credential lists no records', async () => {
    const calls = await kvCallsDuring(async () => {
      const query = 'from=2025-01-01&to=2026-01-01&group_by=model';
      const report = await jsonOf(await gateway.fetch(`/v1/usage?${query}`, { headers: bearer('made-up') }));
      expect(report).toMatchObject({ data: [], total: { requests: 0 } });
    });
    expect(calls).toEqual([`get ${callerKey('made-up')}`]);
  });

  test.each([
    ['a stream', streamedChat],
    ['a non-streaming response', chat],
  ])(
    'M1 an invented credential that the provider refuses (%s) causes one write, its record',
    async (_, body) => {
      const calls = await kvCallsDuring(async () => {
        expect(await send('made-up', body(MODEL))).toBe(401);
      });
      expect(calls).toEqual([expect.stringMatching(/^put usage\//)]);
    },
  );

  test('M5 a credential that was served is remembered with one write, and its records are listed', async () => {
    const served = await kvCallsDuring(async () => {
      for (const body of [chat(MODEL), streamedChat(MODEL)]) expect(await send('sim-own', body)).toBe(200);
    });
    expect(served.filter((call) => !call.startsWith('put usage/'))).toEqual([`put ${callerKey('sim-own')}`]);
    expect(served).toHaveLength(3);
    const report = await gateway.fetch('/v1/usage', { headers: bearer('sim-own') });
    expect(await jsonOf(report)).toMatchObject({ total: { requests: 2, failed_requests: 0 } });
  });
});

describe('reports', () => {
  const DAY = 'from=2026-11-01&to=2026-11-02';

  async function report(query: string): Promise<Response> {
    return gateway.fetch(`/v1/usage?${DAY}&${query}`, { headers: ADMIN });
  }

  test.each([
    ['one group twice', 'day,day', 'group_by names day twice'],
    ['one group 2,000 times', Array(2000).fill('day').join(), 'group_by names day twice'],
    ['one group twice with a space', 'model,key,%20model', 'group_by names model twice'],
  ])('M5 %s: refused', async (_, groups, message) => {
    const { status, error } = await errorOf(await report(`group_by=${groups}`));
    expect([status, error.param, error.message]).toEqual([400, 'group_by', message]);
  });

  test.each(['from=2026-02-30', 'from=2026-02-29T00:00:00Z', 'to=2026-11-31', 'from=2026-13-01'])(
    'M5 %s, a day that does not exist: refused',
    async (query) => {
      const response = await gateway.fetch(`/v1/usage?${query}`, { headers: ADMIN });
      const { status, error } = await errorOf(response);
      expect([status, error.param]).toEqual([400, query.split('=')[0]]);
    },
  );

  test('M5 a report with 10,000 rows succeeds, and one with 10,001 is refused', async () => {
    await gateway.set({ AUTH: 'keys', LISTED_RECORDS: '10000' });
    expect(objectsOf((await jsonOf(await report('group_by=model'))).data)).toHaveLength(10_000);
    await gateway.set({ AUTH: 'keys', LISTED_RECORDS: '10001' });
    const { status, error } = await errorOf(await report('group_by=model'));
    expect([status, error.param]).toEqual([400, 'group_by']);
    expect(textOf(error.message)).toContain('at most 10000 rows');
    expect(await jsonOf(await report('group_by=day'))).toMatchObject({
      data: [{ day: '2026-11-01', requests: 10_001 }],
    });
  });

  test('Y5 a report over 30,000 users has 1,001 rows, and the last one sums all others', async () => {
    await gateway.set({ AUTH: 'keys', LISTED_RECORDS: '30000' });
    const before = residentBytes(workerdIds());
    const { data, total } = await jsonOf(await report('group_by=user'));
    expect(residentBytes(workerdIds()) - before).toBeLessThan(ISOLATE_BYTES);
    const rows = objectsOf(data);
    expect(rows).toHaveLength(1001);
    expect(rows.at(-1)).toMatchObject({ user: '(other)', requests: 29_000 });
    expect(total).toMatchObject({ requests: 30_000 });
    expect(objectsOf((await jsonOf(await report('group_by=user&limit=10000'))).data)).toHaveLength(10_001);
  });
});

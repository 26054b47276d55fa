/** What one call may cost the deployment, whoever makes it: KV calls and reports (M5, findings 8 and 13). */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const MODEL = 'openai/gpt-4o-mini';

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

/** Makes a KV call that nothing else makes; resolves with all calls up to it, as soon as it is in the log, which is in order. */
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
  // Prices are the isolate's, which reads them once a minute.
  return before.filter((call) => call !== 'get config/prices');
}

async function kvCallsDuring(run: () => Promise<void>): Promise<string[]> {
  const before = (await mark()).length;
  await run();
  // The first one after the mark is the mark's own.
  return (await mark()).slice(before + 1);
}

/** Sends a chat with that credential, and awaits its record. */
async function ask(token: string, body: JsonObject): Promise<number> {
  const response = await gateway.post(CHAT, body, { headers: bearer(token) });
  await response.text();
  await gateway.record(response);
  return response.status;
}

describe('AUTH=passthrough, finding 8', () => {
  test('M5 a made-up credential that asks for a year: nothing is listed', async () => {
    const calls = await kvCallsDuring(async () => {
      const query = 'from=2025-01-01&to=2026-01-01&group_by=model';
      const report = await jsonOf(await gateway.fetch(`/v1/usage?${query}`, { headers: bearer('made-up') }));
      expect(report).toMatchObject({ data: [], total: { requests: 0 } });
    });
    expect(calls).toEqual([`get ${callerKey('made-up')}`]);
  });

  test.each([
    ['a stream', streamedChat],
    ['a plain answer', chat],
  ])('M1 a made-up credential that its provider refuses, %s: one write, its record', async (_, body) => {
    const calls = await kvCallsDuring(async () => {
      expect(await ask('made-up', body(MODEL))).toBe(401);
    });
    expect(calls).toEqual([expect.stringMatching(/^put usage\//)]);
  });

  test('M5 a credential that was served once: is remembered once, and its records are listed', async () => {
    const served = await kvCallsDuring(async () => {
      for (const body of [chat(MODEL), streamedChat(MODEL)]) expect(await ask('sim-own', body)).toBe(200);
    });
    expect(served.filter((call) => !call.startsWith('put usage/'))).toEqual([`put ${callerKey('sim-own')}`]);
    expect(served).toHaveLength(3);
    const report = await gateway.fetch('/v1/usage', { headers: bearer('sim-own') });
    expect(await jsonOf(report)).toMatchObject({ total: { requests: 2, failed_requests: 0 } });
  });
});

describe('reports, finding 13', () => {
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
    'M5 %s, a day that there is not: refused',
    async (query) => {
      const response = await gateway.fetch(`/v1/usage?${query}`, { headers: ADMIN });
      const { status, error } = await errorOf(response);
      expect([status, error.param]).toEqual([400, query.split('=')[0]]);
    },
  );

  test("M5 10,000 models of the callers' own are 10,000 rows, and one more is refused, which grouped by day is one row", async () => {
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
});

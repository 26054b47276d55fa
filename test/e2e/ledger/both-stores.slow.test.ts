/** The same 800 mixed requests in both stores, over HTTP: the same sums, while the objects are disturbed at every step. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { chat, jsonOf, streamedChat } from '../client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../gateway.ts';

const REQUESTS = 800;
const AT_A_TIME = 24;
const RUN_EVERY_MS = 1000;
const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const DAY_MS = 86_400_000;
const day = (fromNow: number) => new Date(Date.now() + fromNow * DAY_MS).toISOString().slice(0, 10);
const AROUND = `from=${day(-1)}&to=${day(2)}`;

interface Owner {
  readonly id: string;
  readonly headers: { readonly authorization: string };
}

const OBJECT = { AUTH: 'keys', LEDGER: 'object' };
let gateway: Gateway;
const owners: Owner[] = [];

beforeAll(async () => {
  gateway = await startGateway({ vars: OBJECT, entrypoint: 'ledger/bad-ledger-worker.ts' });
  for (const name of ['ann', 'bob', 'eve']) {
    const { id, key } = await jsonOf(await gateway.post('/admin/keys', { name }, { headers: ADMIN }));
    owners.push({ id: textOf(id), headers: { authorization: `Bearer ${textOf(key)}` } });
  }
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Finished with and without streaming, cached tokens or reasoning; truncated; failed; refused; and cancelled. */
const BODIES: readonly ((turn: number) => JsonObject)[] = [
  (turn) => streamedChat('deepseek/deepseek-chat', withSystem(turn)),
  (turn) => chat('deepseek/deepseek-reasoner', withSystem(turn)),
  (turn) => chat('mistral/mistral-small-latest', withSystem(turn)),
  () => chat('openai/o4-mini'),
  (turn) => chat('xerotier/llama-3.1-8b', withSystem(turn)),
  () => streamedChat('deepseek/deepseek-chat:cut'),
  () => chat('openai/gpt-4o-mini'),
  () => streamedChat('deepseek/deepseek-chat-busy'),
  () => chat('deepseek/deepseek-chat:status-500'),
  () => streamedChat('openai/gpt-4o-mini:flood'),
];
const isCancelled = (turn: number) => turn % BODIES.length === BODIES.length - 1;

function withSystem(turn: number): JsonObject {
  const system = { role: 'system', content: 'rule '.repeat(1 + (turn % 5)) };
  return { messages: [system, { role: 'user', content: 'word '.repeat(1 + (turn % 7)) }] };
}

async function ask(turn: number): Promise<void> {
  const owner = owners[turn % owners.length];
  const body = BODIES[turn % BODIES.length]?.(turn);
  if (owner === undefined || body === undefined) throw new Error();
  const client = new AbortController();
  const response = await gateway.post(CHAT, body, { headers: owner.headers, signal: client.signal });
  if (!isCancelled(turn)) return void (await response.arrayBuffer());
  await response.body?.getReader().read();
  client.abort();
}

async function report(query: string, headers: Record<string, string>): Promise<JsonObject> {
  const response = await gateway.fetch(`/v1/usage?${AROUND}&${query}`, { headers });
  expect(response.status).toBe(200);
  return jsonOf(response);
}

const QUERIES = ['day', 'model', 'status,provider', 'route,model,status'].map(
  (groups) => `group_by=${groups}`,
);

/** Every kind of report, and single records page by page. */
async function everything() {
  const reports = [];
  for (const { headers } of owners) for (const query of QUERIES) reports.push(await report(query, headers));
  for (const query of [...QUERIES, 'group_by=key,status,day']) reports.push(await report(query, ADMIN));
  for (const { id } of owners) reports.push(await report(`group_by=model&key=${id}`, ADMIN));
  const lists = [];
  for (const { headers } of owners) lists.push(await list(headers));
  return { reports, lists, all: await list(ADMIN) };
}

async function list(headers: Record<string, string>): Promise<JsonObject[]> {
  const records: JsonObject[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await jsonOf(
      await gateway.fetch(`/v1/usage/records?${AROUND}&limit=300${from}`, { headers }),
    );
    records.push(...objectsOf(page.data));
    cursor = page.has_more === true ? textOf(page.next_cursor) : null;
  }
  return records;
}

/** Waits until all are settled. Records that failed wait in KV for the daily run, which is called here. */
async function everyRecord(): Promise<void> {
  const settled = gateway.logged((lines) => {
    const ids = lines.filter(({ event }) => event === 'settled').map(({ request_id }) => request_id);
    return new Set(ids).size >= REQUESTS;
  });
  let isWaiting = true;
  void settled.then(() => {
    isWaiting = false;
  });
  while (isWaiting) {
    await gateway.fetch('/daily');
    await Promise.race([settled, setTimeout(RUN_EVERY_MS)]);
  }
}

test(`L3 L4 M1 ${REQUESTS} mixed requests: the same sums, lists and records in either store, each request once`, async () => {
  const turns = Array.from({ length: REQUESTS }, (_, turn) => turn).values();
  const askOneByOne = async () => {
    for (const turn of turns) await ask(turn);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, askOneByOne));
  await everyRecord();
  expect(gateway.logs().filter((line) => line.includes('record_lost'))).toEqual([]);
  // The alarm's calls also fail at times.
  for (const { id } of owners)
    for (let tries = 0; tries < 12; tries++) await gateway.fetch(`/fire?name=${id}`).catch(() => undefined);
  const inObjects = await everything();
  await gateway.set({ ...OBJECT, LEDGER: 'kv' });
  const inKv = await everything();
  expect(inObjects).toEqual(inKv);
  const total = objectOf(inKv.reports.at(-4)?.total);
  expect(total.requests).toBe(REQUESTS);
  expect(inKv.all).toHaveLength(REQUESTS);
  const statuses = new Set(inKv.all.map(({ status }) => status));
  expect([...statuses].sort()).toEqual(['cancelled', 'failed', 'finished']);
  expect(inKv.all.filter(({ estimated }) => estimated).length).toBeGreaterThan(REQUESTS / 10);
  expect(Number(total.cached_tokens)).toBeGreaterThan(0);
  expect(Object.keys(objectOf(total.cost))).toEqual(['CNY', 'USD']);
});

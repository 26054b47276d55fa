/** The records of a spread key, in workerd: reports, lists, single records, export and erasure are those of a key without shards (L10). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ErasedUser, UserLine } from '../../../src/http/context.ts';
import { objectOfShard } from '../../../src/ledger/ledger-calls.ts';
import { shardName } from '../../../src/ledger/limits/spread.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import { ledgersOfUsers, listKeyIds } from '../../../src/ledger/user-stores.ts';
import type { RecordQuery } from '../../../src/metering/ledger.ts';
import type { ChargedRecord, UsageRecord } from '../../../src/metering/record.ts';
import { type Group, Report } from '../../../src/metering/report.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { manyRecords } from '../../metering/many-records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TODAY = Math.floor(Date.now() / DAY) * DAY;
const FROM = TODAY - 3 * DAY;
const USERS = ['ada', 'ben', null];

const KEY = 'spread-key';
const OTHER = 'other-key';
const SHARDS = [shardName('EU', 0), shardName('EU', 1), shardName('NA', 0)].map((name) =>
  objectOfShard(KEY, name),
);
/** Where each record of the key goes: the shards, and its own object. */
const LEDGERS = [...SHARDS, KEY];

const records = manyRecords(300, [KEY, OTHER], { fromMs: FROM, toMs: TODAY + DAY }, 76).map(
  (one, i): UsageRecord => ({ ...one, user: USERS[i % USERS.length] ?? null, session: `s${i % 7}` }),
);
const own = records.filter(({ key_id }) => key_id === KEY);
/** The last ledger is the key's own, whose records name no shard. */
const charged = records.map((one, i): ChargedRecord => {
  const shard = LEDGERS[i % LEDGERS.length];
  if (one.key_id !== KEY || shard === undefined || shard === KEY) return one;
  return { ...one, charge: { tokens: one.total_tokens, cost: null, shard } };
});

let ledgers: Ledgers;
let ledger: ObjectLedger;

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, log: () => {} });
  await ledgers.call(KEY, 'changeLimits', { budget: { tokens: 1e12 }, rpm: 1e6 });
  for (let at = 0; at < charged.length; at += 100) await ledger.put(charged.slice(at, at + 100));
});
afterAll(() => ledgers[Symbol.asyncDispose]());

function expected(of: readonly UsageRecord[], fromMs: number, toMs: number, groups: readonly Group[]) {
  const report = new Report(groups);
  for (const one of of) {
    const time = Date.parse(one.time);
    if (time >= fromMs && time < toMs) report.addRecord(one);
  }
  return { rows: report.rows, total: report.total };
}

async function reported(keyId: string | null, fromMs: number, toMs: number, groups: readonly Group[]) {
  const result = await ledger.report({ fromMs, toMs, keyId, groups });
  if (result.kind === 'error') throw new Error(result.error.message);
  return { rows: result.value.rows, total: result.value.total };
}

async function listed(query: Partial<RecordQuery>): Promise<string[]> {
  const ids: string[] = [];
  const all = { keyId: KEY, model: null, statuses: null, limit: 37, fromId: firstIdAt(FROM) };
  for (let beforeId: string | null = firstIdAt(TODAY + DAY); beforeId !== null; ) {
    const page = await ledger.list({ ...all, ...query, beforeId });
    if (page.kind === 'error') throw new Error(page.error.message);
    ids.push(...page.value.records.map(({ request_id }) => request_id));
    beforeId = page.value.next;
  }
  return ids;
}

const newestFirst = (of: readonly UsageRecord[]) =>
  of
    .map(({ request_id }) => request_id)
    .toSorted()
    .reverse();

test('L10 charges without a reservation reach the key by the alarms of its shards', async () => {
  for (const name of SHARDS) await ledgers.call(name, 'fireAlarm');
  expect(await ledgers.call(KEY, 'shards')).toEqual(SHARDS);
  const tokens = own.reduce((sum, { total_tokens }) => sum + total_tokens, 0);
  const days = own.filter(({ time }) => Date.parse(time) >= FROM);
  expect(days).toHaveLength(own.length);
  expect(await ledgers.call(KEY, 'standing')).toMatchObject({ budget: { spent: tokens, reserved: 0 } });
});

describe('L10 of the key', () => {
  test.each<[what: string, from: number, to: number, groups: readonly Group[]]>([
    ['all, by day', FROM, TODAY + DAY, ['day']],
    ['by model and status', FROM, TODAY + DAY, ['model', 'status']],
    ['by user', FROM, TODAY + DAY, ['user']],
    ['by session and day', FROM, TODAY, ['session', 'day']],
    ['hours', FROM + 5 * HOUR, FROM + 9 * HOUR, ['hour']],
    ['a part of an hour', FROM + DAY + 600_000, FROM + DAY + 5 * HOUR, ['provider']],
  ])('a report: %s', async (_, from, to, groups) => {
    expect(await reported(KEY, from, to, groups)).toEqual(expected(own, from, to, groups));
  });

  test('a list, page by page, with and without a filter', async () => {
    expect(await listed({})).toEqual(newestFirst(own));
    expect(await listed({ only: { user: 'ada' } })).toEqual(
      newestFirst(own.filter(({ user }) => user === 'ada')),
    );
    expect(await listed({ statuses: ['failed'], limit: 5 })).toEqual(
      newestFirst(own.filter(({ status }) => status === 'failed')),
    );
  });

  test('each record by its id', async () => {
    for (const one of own.slice(0, 12))
      expect(await ledger.find(one.request_id, KEY)).toEqual({ kind: 'ok', value: one });
    expect(await ledger.find(records.find(({ key_id }) => key_id === OTHER)?.request_id ?? '', KEY)).toEqual({
      kind: 'ok',
      value: null,
    });
  });
});

describe('L10 of all keys, once the directories have the sums', () => {
  beforeAll(async () => {
    for (const name of [...LEDGERS, OTHER]) await ledgers.call(name, 'sendSums');
  });

  test.each<[groups: readonly Group[]]>([
    [['key']],
    [['key', 'day']],
    [['key', 'user']],
    [['model']],
    [['user']],
  ])('a report by %s names the key, not its shards', async (groups) => {
    expect(await reported(null, FROM, TODAY + DAY, groups)).toEqual(
      expected(records, FROM, TODAY + DAY, groups),
    );
  });

  test('a list and a record', async () => {
    expect(await listed({ keyId: null, limit: 100 })).toEqual(newestFirst(records));
    const [one] = own;
    expect(await ledger.find(one?.request_id ?? '', null)).toEqual({ kind: 'ok', value: one });
  });
});

describe('L10 of a user', () => {
  const ada: ErasedUser = {
    names: ['ada'],
    isName: async (name) => name === 'ada',
    hash: async () => 'hash',
    beforeId: null,
    ownKeys: [],
  };

  async function exported(names: readonly string[]): Promise<UserLine[]> {
    const store = ledgersOfUsers(ledgers.namespace);
    if (store.scope !== 'key') throw new Error('The store is searched for one caller at a time');
    const lines: UserLine[] = [];
    for (const keyId of await listKeyIds(ledgers.namespace)(null))
      for await (const line of store.read({} as never, names, keyId)) lines.push(line);
    return lines;
  }

  test('an export has all records, and sums with the id of the key', async () => {
    const lines = await exported(['ada']);
    const ids = lines.flatMap((line) => (line.type === 'record' ? [line.record.request_id] : []));
    expect(ids.toSorted()).toEqual(newestFirst(records.filter(({ user }) => user === 'ada')).reverse());
    const sums = lines.flatMap((line) => (line.type === 'sum' ? [line.fields.key_id] : []));
    expect(new Set(sums)).toEqual(new Set([KEY, OTHER]));
  });

  test('an erasure erases all of them, and the sums of the key stay', async () => {
    const store = ledgersOfUsers(ledgers.namespace);
    if (store.scope !== 'key') throw new Error('The store is searched for one caller at a time');
    for (const keyId of await listKeyIds(ledgers.namespace)(null))
      for (let cursor: string | null = null; ; ) {
        const part = await store.erase({} as never, ada, keyId, cursor);
        cursor = part.next;
        if (cursor === null) break;
      }
    expect(await exported(['ada'])).toEqual([]);
    expect(await listed({})).toEqual(newestFirst(own.filter(({ user }) => user !== 'ada')));
    expect((await reported(KEY, FROM, TODAY + DAY, ['day'])).total).toEqual(
      expected(own, FROM, TODAY + DAY, ['day']).total,
    );
  });
});

test('L10 a revoked key: its shards report their last charges, and records stay', async () => {
  const [shard = ''] = SHARDS;
  const asked = {
    ...{ id: 'r1', promptTokens: 10, estimatedPromptTokens: 4, outputTokens: 90, choices: 1 },
    ...{ price: null, expiresAfterMs: 600_000 },
  };
  expect(await ledgers.call(shard, 'reserveInShard', asked)).toMatchObject({ kind: 'reserved' });
  await ledgers.call(KEY, 'run', 'INSERT OR REPLACE INTO held_key VALUES (1, NULL)');
  await ledgers.call(shard, 'settleReservation', 'r1', { tokens: 40, cost: null });
  await ledgers.call(KEY, 'fireAlarm');
  expect(await ledgers.call(KEY, 'run', 'SELECT count(*) FROM key_shards')).toEqual([[0]]);
  expect(await ledgers.call(shard, 'run', 'SELECT count(*) FROM link')).toEqual([[0]]);
  const [[spent]] = (await ledgers.call(KEY, 'run', 'SELECT sum(tokens) FROM spent')) as [[number]];
  expect(spent).toBe(own.reduce((sum, { total_tokens }) => sum + total_tokens, 0) + 40);
  expect(await listed({})).toHaveLength(own.filter(({ user }) => user !== 'ada').length);
  // Of a request that was not reserved, after the shard has closed.
  const [late] = manyRecords(1, [KEY], { fromMs: TODAY, toMs: TODAY + DAY }, 77);
  if (late === undefined) throw new Error('There is no record');
  const { total_tokens: tokens } = late;
  await ledger.put([{ ...late, charge: { tokens, cost: null, shard } }] as readonly ChargedRecord[]);
  await ledgers.call(shard, 'fireAlarm');
  expect(await ledgers.call(KEY, 'run', 'SELECT sum(tokens) FROM spent')).toEqual([[spent + tokens]]);
  await ledgers.call(KEY, 'fireAlarm');
  expect(await ledgers.call(KEY, 'run', 'SELECT count(*) FROM key_shards')).toEqual([[0]]);
  expect(await ledgers.call(shard, 'reserveInShard', { ...asked, id: 'r2' })).toMatchObject({
    kind: 'revoked',
  });
});

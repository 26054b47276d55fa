/** The directories in workerd: updates from 0.2, what they delete, bounds of names, restarts of keys, and the cursors of lists (L9). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DIRECTORIES, directoryOf, FIRST_DIRECTORY } from '../../../src/ledger/ledger-calls.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import { type RecordQuery, readCursor, writeCursor } from '../../../src/metering/ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { type Group, Report } from '../../../src/metering/report.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { record } from '../../metering/records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TODAY = Math.floor(Date.now() / DAY) * DAY;

let ledgers: Ledgers;
let ledger: ObjectLedger;

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, recordDays: 60, log: () => {} });
});
afterAll(() => ledgers[Symbol.asyncDispose]());

async function reported(groups: readonly Group[], fromMs: number, toMs: number) {
  const result = await ledger.report({ fromMs, toMs, keyId: null, groups });
  if (result.kind === 'error') throw new Error(result.error.message);
  return result.value.rows;
}

function expected(records: readonly UsageRecord[], groups: readonly Group[]) {
  const report = new Report(groups);
  for (const one of records) report.addRecord(one);
  return report.rows;
}

const on = (day: number, fields: Partial<UsageRecord>, n = 0) =>
  record({ time: new Date(day + n * 1000).toISOString(), cost_nanos: 5, currency: 'USD', ...fields }, n);

test('a key has one directory of sixteen, and keys are spread evenly', () => {
  const counts = Map.groupBy(
    Array.from({ length: 16_000 }, (_, n) => directoryOf(n.toString(16).padStart(16, '0'))),
    (name) => name,
  );
  expect([...counts.keys()].sort()).toEqual(DIRECTORIES.toSorted());
  for (const names of counts.values()) expect(Math.abs(names.length - 1000)).toBeLessThan(250);
});

describe('L9 an update from 0.2', () => {
  test('a key that 0.2 has told of: in each report once, before and after its directory knows it', async () => {
    const day = TODAY - 5 * DAY;
    const key_id = 'of-0-2';
    const own = [0, 1, 2].map((n) => on(day, { key_id, user: `u${n}` }, n));
    // Settled by 0.2: the object has told no directory of this release.
    await ledgers.call(key_id, 'settle', own);
    const columns = { numbers: [3, ...Array.from({ length: 18 }, () => 0)], speeds: '' };
    const dimensions = ['mistral', 'mistral-small-latest', 'chat', 'finished', '', '', 'USD'];
    await ledgers.call(FIRST_DIRECTORY, 'takeDays', key_id, [{ day: day / DAY, dimensions, columns }]);
    for (let reads = 0; reads < 5; reads++)
      for (const groups of [['key'], ['user'], ['hour', 'model']] as const)
        expect(await reported(groups, day, day + DAY)).toEqual(expected(own, groups));
    const waiting = () => ledgers.call(FIRST_DIRECTORY, 'count', 'unannounced');
    await expect.poll(waiting, { interval: 50 }).toBe(0);
    expect(
      await ledgers.call(directoryOf(key_id), 'run', `SELECT day FROM key_days WHERE key = '${key_id}'`),
    ).toEqual([[day / DAY]]);
    for (const groups of [['key'], ['user'], ['hour', 'model']] as const)
      expect(await reported(groups, day, day + DAY)).toEqual(expected(own, groups));
  });

  test('a rollback: what 0.2 reads is as 0.2 left it, and what it told meanwhile is told again', async () => {
    const key_id = 'rolled-back';
    const day = TODAY - 7 * DAY;
    await ledger.put([on(day, { key_id }, 0)]);
    await ledgers.call(key_id, 'sendSums');
    // 0.2 compares its table with the hours: it has told nothing of this day.
    expect(await ledgers.call(key_id, 'count', 'days')).toBe(0);
    expect(await ledgers.call(key_id, 'run', "SELECT value FROM marks WHERE name = 'open_day'")).toEqual([]);
    // 0.2 stores a record, and notes that it told the directory of its time.
    await ledgers.call(key_id, 'run', 'UPDATE hours SET requests = 2');
    await ledgers.call(key_id, 'run', 'INSERT INTO days SELECT * FROM sent_days');
    await ledgers.call(key_id, 'run', 'UPDATE days SET requests = 2');
    await ledgers.call(key_id, 'loseAlarm').catch(() => undefined);
    await ledgers.call(key_id, 'count', 'days').catch(() => undefined);
    await ledgers.call(key_id, 'sendSums');
    expect(await reported(['key'], day, day + DAY)).toMatchObject([{ key: key_id, requests: 2 }]);
  });
});

test('L9 after a restart a whole day is sent again, and counts once', async () => {
  const key_id = 'restarted';
  const day = TODAY - 9 * DAY;
  const own = Array.from({ length: 12 }, (_, n) => on(day, { key_id, user: `u${n % 3}`, app: 'a' }, n));
  for (const [n, one] of own.entries()) {
    await ledger.put([one]);
    await ledgers.call(key_id, 'sendSums');
    if (n % 3 === 0) await ledgers.call(key_id, 'loseAlarm').catch(() => undefined);
  }
  for (const groups of [['user'], ['hour'], ['app', 'key']] as const)
    expect(await reported(groups, day, day + DAY)).toEqual(expected(own, groups));
});

test('L9 sums by user end with RECORD_DAYS in a directory; reports then read the keys', async () => {
  const key_id = 'long-kept';
  const day = TODAY - 20 * DAY;
  const own = [0, 1, 2].map((n) => on(day, { key_id, user: `u${n}` }, n));
  await ledger.put(own);
  await ledgers.call(key_id, 'sendSums');
  const directory = directoryOf(key_id);
  const kept = `SELECT COUNT(*) FROM key_facts WHERE key = '${key_id}'`;
  expect(await ledgers.call(directory, 'run', kept)).toEqual([[3]]);
  const nothing = { days: [], hours: [], facts: [], factTotals: [], records: [], recordDays: 15 };
  await ledgers.call(directory, 'takeSums', 'other', nothing);
  await ledgers.call(directory, 'fireAlarm');
  expect(await ledgers.call(directory, 'run', kept)).toEqual([[0]]);
  for (const groups of [['user'], ['key', 'hour'], ['hour'], ['model']] as const)
    expect(await reported(groups, day, day + DAY)).toEqual(expected(own, groups));
});

describe('L9 the records that a directory has', () => {
  /** Far enough from the other tests' days, and recent enough to be sent again. */
  const hour = Math.floor(Date.now() / HOUR) * HOUR - 3 * HOUR;
  let ids = 1_000_000;
  const of = (key_id: string, count: number) =>
    Array.from({ length: count }, (_, n) => {
      const facts = { key_id, user: `u${n % 4}`, app: `a${n % 3}`, session: `${key_id}-${n}` };
      return record({ ...facts, time: new Date(hour + n * 1000).toISOString() }, ids++);
    });
  const put = async (records: readonly UsageRecord[]) => {
    await ledger.put(records);
    expect(await ledgers.call(records[0]?.key_id ?? '', 'sendSums')).toBe(true);
  };
  const kept = (keyId: string) =>
    ledgers.call(directoryOf(keyId), 'run', `SELECT TOTAL(requests) FROM recent WHERE key = '${keyId}'`);
  const forgotten = (keyId: string) => ledgers.call(keyId, 'run', 'DELETE FROM records');

  async function listed(only: RecordQuery['only'] = {}, limit = 7) {
    const ids: string[] = [];
    for (let next: string | null = firstIdAt(hour + HOUR); next !== null; ) {
      const at: Partial<RecordQuery> | null = readCursor(next);
      const query = { keyId: null, model: null, statuses: null, limit, only, fromId: firstIdAt(hour) };
      const page = await ledger.list({ ...query, beforeId: next, ...at });
      if (page.kind === 'error') throw new Error(page.error.message);
      ids.push(...page.value.records.map(({ request_id }) => request_id));
      next = page.value.next;
    }
    return ids;
  }

  const own = of('recent-a', 45);
  const others = of('recent-b', 30);

  test('reports of parts of hours, two groupings at once, lists and records by id read no object of a key', async () => {
    await put(own.slice(0, 40));
    // Unlike the first message, the second one has what is new.
    await put(own.slice(35));
    await put(others);
    await forgotten('recent-a');
    await forgotten('recent-b');
    const part = [...own, ...others].filter(({ time }) => Date.parse(time) >= hour + 10_000);
    for (const groups of [['user'], ['app', 'user'], ['hour', 'app'], ['model', 'key']] as const)
      expect(await reported(groups, hour + 10_000, hour + HOUR)).toEqual(expected(part, groups));
    const all = [...own, ...others].map(({ request_id }) => request_id);
    expect(await listed()).toEqual(all.toSorted().reverse());
    expect(await listed({ user: 'u2' })).toHaveLength(
      [...own, ...others].filter(({ user }) => user === 'u2').length,
    );
    expect(await listed({ session: 'recent-b-7' })).toEqual([others[7]?.request_id]);
    expect(await ledger.find(own[3]?.request_id ?? '', null)).toEqual({ kind: 'ok', value: own[3] });
  });

  test('records of a key that are missing are read from the key, and the next message brings them', async () => {
    const mine = of('missing', 60);
    await put(mine.slice(0, 50));
    expect(await kept('missing')).toEqual([[50]]);
    await ledgers.call(directoryOf('missing'), 'run', "DELETE FROM recent WHERE key = 'missing'");
    const everything = [...own, ...others, ...mine.slice(0, 50)];
    for (const groups of [['user'], ['app', 'user']] as const)
      expect(await reported(groups, hour + 1, hour + HOUR)).toEqual(
        expected(
          everything.filter(({ time }) => Date.parse(time) > hour),
          groups,
        ),
      );
    // The others' records are only in the directory.
    const found = new Set(await listed());
    for (const { request_id } of mine.slice(0, 50)) expect(found).toContain(request_id);
    expect(await ledger.find(mine[1]?.request_id ?? '', null)).toEqual({ kind: 'ok', value: mine[1] });
    await ledgers.call('missing', 'loseAlarm').catch(() => undefined);
    await put(mine.slice(50));
    expect(await kept('missing')).toEqual([[60]]);
    expect((await listed()).toSorted()).toEqual(
      [...own, ...others, ...mine].map(({ request_id }) => request_id).sort(),
    );
  });

  test('many records of one hour: in several parts, each once, although messages repeat', async () => {
    const mine = of('in-parts', 300).map((one, n) => ({ ...one, asked: `${n}${'x'.repeat(800)}` }));
    for (let at = 0; at < mine.length; at += 100) {
      await put(mine.slice(Math.max(at - 50, 0), at + 100));
      await ledgers.call('in-parts', 'loseAlarm').catch(() => undefined);
    }
    expect(await kept('in-parts')).toEqual([[300]]);
    const [[parts] = []] = (await ledgers.call(
      directoryOf('in-parts'),
      'run',
      "SELECT COUNT(*) FROM recent WHERE key = 'in-parts'",
    )) as number[][];
    expect(parts).toBeGreaterThan(3);
    await forgotten('in-parts');
    expect((await listed({ user: 'u1' }, 100)).length).toBeGreaterThanOrEqual(75);
    const found = await listed({}, 100);
    expect(found).toHaveLength(new Set(found).size);
    for (const { request_id } of mine) expect(found).toContain(request_id);
  });

  test('an erased user is in no record, and the hour stays complete', async () => {
    const mine = of('erased-of', 12);
    await put(mine);
    await ledgers.call('erased-of', 'eraseUser', ['u1'], { day: 0, id: '' }, null);
    const left = mine.filter(({ user }) => user !== 'u1');
    await forgotten('erased-of');
    const rows = await reported(['key', 'app'], hour + 1, hour + HOUR);
    const requests = rows.filter(({ key }) => key === 'erased-of').map(({ requests: some }) => some);
    expect(requests.reduce((sum, some) => sum + some, 0)).toBe(left.length - 1);
    expect(await ledger.find(mine[1]?.request_id ?? '', null)).toEqual({ kind: 'ok', value: null });
  });
});

test('L9 a directory without room deletes the oldest hours of records, and reports then read the keys', async () => {
  await using small = await startLedgers({ vars: { RECENT_BYTES: '30000' } });
  const own = new ObjectLedger({ ledgers: small.namespace, log: () => {} });
  const start = TODAY - 12 * HOUR;
  const records = Array.from({ length: 60 }, (_, n) =>
    on(start, { key_id: 'k', user: `u${n % 2}` }, n * 600),
  );
  await own.put(records);
  await small.call('k', 'sendSums');
  await small.call(directoryOf('k'), 'fireAlarm');
  const [[hours, first] = []] = (await small.call(
    directoryOf('k'),
    'run',
    'SELECT COUNT(DISTINCT hour), MIN(hour) FROM recent',
  )) as number[][];
  expect(hours).toBeGreaterThan(2);
  expect(first).toBeGreaterThan(start / HOUR);
  const query = {
    fromMs: start + 1000,
    toMs: start + 11 * HOUR,
    keyId: null,
    groups: ['user', 'hour'],
  } as const;
  const report = await own.report(query);
  if (report.kind === 'error') throw new Error(report.error.message);
  const part = records.filter(({ time }) => Date.parse(time) > start);
  expect(report.value.rows).toEqual(expected(part, query.groups));
  const bounds = { fromId: firstIdAt(start), beforeId: firstIdAt(start + DAY), limit: 100 };
  const page = await own.list({ ...bounds, keyId: null, model: null, statuses: null });
  if (page.kind === 'error') throw new Error(page.error.message);
  expect(page.value.records).toHaveLength(records.length);
});

test('L9 cursors: an id, or an id with the keys of an hour; anything else is none', () => {
  const [beforeId, boundId] = [firstIdAt(5), firstIdAt(9)];
  const portion = { boundId, beforeKey: 'b-1', lastKey: '' };
  expect(readCursor(writeCursor(beforeId, null))).toEqual({ beforeId });
  expect(readCursor(writeCursor(beforeId, portion))).toEqual({ beforeId, portion });
  for (const text of [
    '',
    'x',
    `${beforeId}.`,
    `${beforeId}.x.a.b`,
    `${beforeId}.${boundId}.a.b.c`,
    `${beforeId}.${boundId}.a'.b`,
  ])
    expect(readCursor(text)).toBeNull();
});

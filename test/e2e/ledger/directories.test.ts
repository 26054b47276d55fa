/** The directories in workerd: updates from 0.2, what they delete, bounds of names, restarts of keys, and the cursors of lists (L9). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DIRECTORIES, directoryOf, FIRST_DIRECTORY } from '../../../src/ledger/ledger-calls.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import { readCursor, writeCursor } from '../../../src/metering/ledger.ts';
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

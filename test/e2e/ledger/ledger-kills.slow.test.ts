/** A ledger object that is killed at each step of its work, in workerd: each record is stored once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { directoryOf } from '../../../src/ledger/ledger-calls.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { type Group, Report } from '../../../src/metering/report.ts';
import { record } from '../../metering/records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

const DAY = 24 * 3_600_000;
const TODAY = Math.floor(Date.now() / DAY) * DAY;
/** More steps than any work of an object has. */
const MAX_STEPS = 60;
const NEVER = 1_000_000;

let ledgers: Ledgers;
let ledger: ObjectLedger;

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, log: () => {} });
});
afterAll(() => ledgers[Symbol.asyncDispose]());

async function reported(keyId: string | null) {
  const result = await ledger.report({
    fromMs: TODAY - 60 * DAY,
    toMs: TODAY + DAY,
    keyId,
    groups: ['key', 'day', 'model'],
  });
  if (result.kind === 'error') throw new Error(result.error.message);
  return result.value.rows;
}

function sumsOf(records: readonly UsageRecord[], groups: readonly Group[] = ['key', 'day', 'model']) {
  const report = new Report(groups);
  for (const one of records) report.addRecord(one);
  return report.rows;
}

/** Repeats the work with one more step before the kill, until it completes, and calls `check` after each. */
async function killAtEachStep(
  name: string,
  work: (turn: number) => Promise<unknown>,
  check: (turn: number) => Promise<void>,
) {
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    await ledgers.call(name, 'killAfter', steps);
    const isKilled = await work(steps).then(
      () => false,
      (error) => {
        expect(String(error)).toContain('killed by the test');
        return true;
      },
    );
    await ledgers.call(name, 'killAfter', NEVER);
    await check(steps);
    if (!isKilled) return steps;
  }
  throw new Error('The work never completed');
}

test('L4 M1 killed at each step of a settlement: all records or none, and after the retry each once', async () => {
  const key_id = 'settling';
  const batchOf = (turn: number) => {
    const models = ['m1', `m${turn}`, 'm1'];
    return models.map((model, n) =>
      record(
        { key_id, model, time: new Date(TODAY + n).toISOString(), cost_nanos: 3, currency: 'USD' },
        turn,
      ),
    );
  };
  const settled: UsageRecord[] = [];
  const steps = await killAtEachStep(
    key_id,
    (turn) => ledger.put(batchOf(turn)),
    async (turn) => {
      const [before, after] = [sumsOf(settled), sumsOf([...settled, ...batchOf(turn)])];
      expect([before, after]).toContainEqual(await reported(key_id));
      await ledger.put(batchOf(turn));
      settled.push(...batchOf(turn));
      expect(await reported(key_id)).toEqual(after);
    },
  );
  // Reading the state, inserting the records, adding them to their hours, counting groups, and setting the alarm.
  expect(steps).toBeGreaterThanOrEqual(4);
});

test('L4 killed at each step of the first settlement: there is never a record without an alarm', async () => {
  const found = [];
  for (let steps = 0; steps < 12; steps++) {
    const key_id = `first-${steps}`;
    await ledgers.call(key_id, 'killAfter', steps);
    const isKilled = await ledger.put([record({ key_id })]).then(
      () => false,
      () => true,
    );
    await ledgers.call(key_id, 'killAfter', NEVER);
    const count = await ledgers.call(key_id, 'count', 'records');
    found.push([isKilled, count]);
    expect((await ledgers.call(key_id, 'alarmTime')) !== null).toBe(count === 1);
  }
  expect(found[0]).toEqual([true, 0]);
  expect(found.at(-1)).toEqual([false, 1]);
});

test('L4 an object that is reset during a call: read a second time', async () => {
  const key_id = 'read';
  await ledger.put([record({ key_id, time: new Date(TODAY).toISOString() })]);
  await ledgers.call(key_id, 'killAfter', 0);
  expect(await reported(key_id)).toHaveLength(1);
  await ledgers.call(key_id, 'killAfter', 0);
  const found = await ledger.find(record({ key_id, time: new Date(TODAY).toISOString() }).request_id, key_id);
  expect(found).toMatchObject({ kind: 'ok', value: { key_id } });
});

test('L4 killed at each step of the alarm: the key’s reports are always exact, and the directory’s after the alarm', async () => {
  const key_id = 'sending';
  const settled: UsageRecord[] = [];
  async function add(turn: number) {
    // Records of a closed day, of an open day, and of a day older than RECORD_DAYS.
    const records = [2, 0, 45].map((ago) =>
      record({ key_id, model: 'm', time: new Date(TODAY - ago * DAY).toISOString() }, turn),
    );
    const [closed, open, old] = records;
    const taken = turn === 0 ? records : [closed, open].filter((one) => one !== undefined);
    expect(old).toBeDefined();
    await ledger.put(taken);
    settled.push(...taken);
  }
  await add(0);
  const steps = await killAtEachStep(
    key_id,
    () => ledgers.call(key_id, 'fireAlarm'),
    async (turn) => {
      expect(await reported(key_id)).toEqual(sumsOf(settled));
      await ledgers.call(key_id, 'fireAlarm');
      expect(await reported(key_id)).toEqual(sumsOf(settled));
      const all = await reported(null);
      expect(all.filter(({ key }) => key === key_id)).toEqual(sumsOf(settled));
      await add(turn + 1);
    },
  );
  // Reading, sending, storing and closing the days, deleting old records, and setting the alarm.
  expect(steps).toBeGreaterThanOrEqual(6);
});

test('L4 L9 the directory killed at each step of storing sums and records: nothing counts twice, and what was not stored is sent again', async () => {
  const key_id = 'taken';
  const settled: UsageRecord[] = [];
  // Two facts at once are summed from records.
  const facts = ['key', 'user', 'app'] as const;
  async function found() {
    const span = { fromMs: TODAY - DAY, toMs: TODAY + DAY, keyId: null };
    const sums = (await reported(null)).filter(({ key }) => key === key_id);
    const result = await ledger.report({ ...span, groups: facts });
    if (result.kind === 'error') throw new Error(result.error.message);
    return { sums, facts: result.value.rows.filter(({ key }) => key === key_id) };
  }
  const expected = (records: readonly UsageRecord[]) => ({
    sums: sumsOf(records),
    facts: sumsOf(records, facts),
  });
  for (let steps = 0; steps < 24; steps++) {
    const records = ['a', 'b', 'c'].map((model) =>
      record(
        { key_id, model, user: 'ada', app: model, time: new Date(TODAY).toISOString() },
        10 * steps + model.charCodeAt(0),
      ),
    );
    const before = expected(settled);
    await ledger.put(records);
    settled.push(...records);
    await ledgers.call(directoryOf(key_id), 'killAfter', steps);
    // Sending fails, and the object stays alive.
    await ledgers.call(key_id, 'fireAlarm');
    await ledgers.call(directoryOf(key_id), 'killAfter', NEVER);
    const between = await found();
    expect([before.sums, expected(settled).sums]).toContainEqual(between.sums);
    expect([before.facts, expected(settled).facts]).toContainEqual(between.facts);
    await ledgers.call(key_id, 'fireAlarm');
    expect(await found()).toEqual(expected(settled));
  }
});

/** The ledger objects in workerd: records, exact reports and lists, and the directory. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { directoryOf, type LedgerStub, userObject } from '../../../src/ledger/ledger-calls.ts';
import { MAX_FACT_ROWS } from '../../../src/ledger/records/fact-sums.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import {
  AMOUNTS,
  type Columns,
  type DayRow,
  MAX_SPEED_CHARS,
} from '../../../src/ledger/records/sum-columns.ts';
import { MAX_DAY_GROUPS } from '../../../src/ledger/records/sums.ts';
import type { SumsMessage } from '../../../src/ledger/records/unsent-sums.ts';
import type { Ledger, RecordQuery, ReportQuery } from '../../../src/metering/ledger.ts';
import { encodePrefix } from '../../../src/metering/prompt-hashes.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import type { RefusalGroup } from '../../../src/metering/refusals.ts';
import { type Group, matchesFilter, Report } from '../../../src/metering/report.ts';
import { firstIdAt, requestId } from '../../../src/metering/time.ts';
import { manyRecords } from '../../metering/many-records.ts';
import { record } from '../../metering/records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The start of today, which is an open day. Earlier days are closed. */
const TODAY = Math.floor(Date.now() / DAY) * DAY;

let ledgers: Ledgers;
let ledger: Ledger;
const logged: unknown[] = [];

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, log: (entry) => logged.push(entry) });
});
afterAll(() => ledgers[Symbol.asyncDispose]());

/** The rows of a report. */
async function reported(query: ReportQuery) {
  const result = await ledger.report(query);
  if (result.kind === 'error') return result.error.message;
  const { rows, total } = result.value;
  return { rows, total };
}

/** The same report, summed from the records. */
function expected(records: readonly UsageRecord[], { fromMs, toMs, keyId, groups }: ReportQuery) {
  const report = new Report(groups);
  for (const one of records) {
    const time = Date.parse(one.time);
    if (time >= fromMs && time < toMs && (keyId === null || keyId === one.key_id)) report.addRecord(one);
  }
  return { rows: report.rows, total: report.total };
}

async function listed(query: Partial<RecordQuery> & { readonly fromId: string }): Promise<string[]> {
  const ids: string[] = [];
  let beforeId: string | null = query.beforeId ?? firstIdAt(TODAY + DAY);
  for (let pages = 0; beforeId !== null; pages++) {
    if (pages > 200) throw new Error('The list does not end');
    const page = await ledger.list({
      keyId: null,
      model: null,
      statuses: null,
      limit: 100,
      ...query,
      beforeId,
    });
    if (page.kind === 'error') throw new Error(page.error.message);
    ids.push(...page.value.records.map(({ request_id }) => request_id));
    beforeId = page.value.next;
  }
  return ids;
}

const newestFirst = (records: readonly UsageRecord[]) =>
  records
    .map(({ request_id }) => request_id)
    .sort()
    .reverse();

/** Generates unique names. */
let names = 0;
const newKey = () => `key-${++names}`;

describe('settle', () => {
  test('L4 a record that is settled twice: the first one stays and counts once', async () => {
    const key_id = newKey();
    const one = record({ key_id, time: new Date(TODAY).toISOString() });
    await ledger.put([one, one]);
    await ledger.put([{ ...one, total_tokens: 99 }]);
    expect(await ledger.find(one.request_id, key_id)).toEqual({ kind: 'ok', value: one });
    const { total } = expected([one], { fromMs: 0, toMs: TODAY + DAY, keyId: key_id, groups: [] });
    expect(
      await reported({ fromMs: TODAY, toMs: TODAY + DAY, keyId: key_id, groups: ['day'] }),
    ).toMatchObject({ total });
  });

  test('L4 a batch of several keys: each record is only in the object of its key', async () => {
    const [a, b] = [newKey(), newKey()];
    const records = manyRecords(20, [a, b], { fromMs: TODAY, toMs: TODAY + HOUR }, 1);
    await ledger.put(records);
    for (const one of records) {
      const other = one.key_id === a ? b : a;
      expect(await ledger.find(one.request_id, one.key_id)).toEqual({ kind: 'ok', value: one });
      expect(await ledger.find(one.request_id, other)).toEqual({ kind: 'ok', value: null });
    }
  });
});

const GROUPS: readonly (readonly Group[])[] = [
  ['day'],
  ['model'],
  ['provider', 'status'],
  ['route', 'day'],
  ['hour', 'status'],
  ['key', 'model'],
  ['day', 'provider', 'model', 'route', 'status', 'key'],
];

describe('report', () => {
  const [a, b, c] = [newKey(), newKey(), newKey()];
  const from = TODAY - 20 * DAY;
  const records = manyRecords(1500, [a, b, c], { fromMs: from, toMs: TODAY + DAY }, 20261121);

  beforeAll(async () => {
    // In random order, and some of them twice.
    for (let at = 0; at < records.length; at += 100) await ledger.put(records.slice(at, at + 100));
    await ledger.put(records.slice(500, 600));
  });

  const spans: readonly [what: string, fromMs: number, toMs: number][] = [
    ['all of it', from, TODAY + DAY],
    ['whole days', from + 3 * DAY, from + 9 * DAY],
    ['one day', from + 5 * DAY, from + 6 * DAY],
    ['whole hours over several days', from + 3 * DAY + 7 * HOUR, from + 6 * DAY + 2 * HOUR],
    ['hours of one day', from + 4 * DAY + 7 * HOUR, from + 4 * DAY + 9 * HOUR],
    ['parts of hours over several days', from + 3 * DAY + 1234567, from + 6 * DAY + 7654321],
    ['a part of one hour', from + 2 * DAY + 600_000, from + 2 * DAY + 1_800_000],
    ['a part over a full hour', from + 2 * DAY + 1_800_000, from + 2 * DAY + 5_400_000],
    ['yesterday and today', TODAY - DAY, TODAY + DAY],
    ['days without requests', TODAY - 90 * DAY, TODAY - 60 * DAY],
  ];

  describe.each(['before the directory has the sums', 'when it has them', 'and after a late record'])(
    '%s',
    (when) => {
      const late = record({
        key_id: a,
        time: new Date(from + 5 * DAY + 12 * HOUR).toISOString(),
        cost_nanos: 7,
        currency: 'USD',
      });
      const known = when === 'and after a late record' ? [...records, late] : records;

      beforeAll(async () => {
        if (when === 'when it has them') for (const key of [a, b, c]) await ledgers.call(key, 'fireAlarm');
        if (when === 'and after a late record') await ledger.put([late]);
      });

      test.each(spans)('L4 M5 of one key, of %s: the exact sums of its records', async (_, fromMs, toMs) => {
        for (const groups of GROUPS) {
          const query = { fromMs, toMs, keyId: a, groups };
          expect(await reported(query)).toEqual(expected(known, query));
        }
      });
    },
  );

  test('the admin finds the first record of a key on a day at once, without its key', async () => {
    const key = 'aa00000000000001';
    const first = record({ key_id: key, time: new Date().toISOString() });
    await ledger.put([first]);
    // The object's own alarm tells the directory. Without it, this takes 30 s.
    await expect
      .poll(async () => await ledger.find(first.request_id, null), { interval: 50 })
      .toMatchObject({ kind: 'ok', value: { request_id: first.request_id } });
  });

  test('L4 over all keys: whole days, from the directory, once each object has sent them', async () => {
    for (const key of [a, b, c]) await ledgers.call(key, 'fireAlarm');
    const others = new Set([a, b, c]);
    for (const groups of GROUPS.filter((some) => some.includes('key'))) {
      const query = { fromMs: from, toMs: TODAY + DAY, keyId: null, groups };
      const all = await reported(query);
      if (typeof all === 'string') throw new Error(all);
      const late = record({
        key_id: a,
        time: new Date(from + 5 * DAY + 12 * HOUR).toISOString(),
        cost_nanos: 7,
        currency: 'USD',
      });
      const { rows } = expected([...records, late], query);
      expect(all.rows.filter(({ key }) => others.has(key ?? ''))).toEqual(rows);
    }
  });

  test('L4 L9 over all keys, by hour and for parts of days: from the objects that had requests', async () => {
    for (const groups of [
      ['hour', 'key'],
      ['key', 'model'],
    ] as const) {
      const query = { fromMs: from + 12 * DAY + HOUR, toMs: from + 13 * DAY + 1234567, keyId: null, groups };
      const all = await reported(query);
      if (typeof all === 'string') throw new Error(all);
      const own = all.rows.filter(({ key }) => [a, b, c].includes(key ?? ''));
      expect(own).toEqual(expected(records, query).rows);
    }
  });

  test('L4 M5 filtered by provider, model and status, from days, hours and records', async () => {
    const only = { provider: 'mistral', model: 'mistral/model-1', status: 'failed' };
    const within = records.filter(
      ({ provider, model, status }) => provider === 'mistral' && model === 'model-1' && status === 'failed',
    );
    for (const fromMs of [from, from + 7 * HOUR + 1234567]) {
      const query = { fromMs, toMs: TODAY + DAY, keyId: b, groups: ['day', 'model'] as const, only };
      expect(await reported(query)).toEqual(expected(within, query));
    }
    const whole = { fromMs: from, toMs: TODAY + DAY, keyId: null, groups: ['key'] as const, only };
    const all = await reported(whole);
    if (typeof all === 'string') throw new Error(all);
    const own = all.rows.filter(({ key }) => [a, b, c].includes(key ?? ''));
    expect(own).toEqual(expected(within, whole).rows);
  });

  test('L2 a list of one key: all records, the latest first, page by page', async () => {
    const own = records.filter(
      ({ key_id, request_id }) => key_id === a && request_id >= firstIdAt(from + 6 * DAY),
    );
    expect(await listed({ keyId: a, fromId: firstIdAt(from + 6 * DAY), limit: 37 })).toEqual(
      newestFirst(own),
    );
  });

  test('L2 a list of one key, filtered by model and status', async () => {
    const query = { model: 'mistral/model-1', statuses: ['failed', 'timed_out'] };
    const own = records.filter(
      ({ key_id, provider, model, status }) =>
        key_id === b && `${provider}/${model}` === query.model && query.statuses.includes(status),
    );
    expect(own.length).toBeGreaterThan(5);
    expect(await listed({ keyId: b, fromId: firstIdAt(from), limit: 7, ...query })).toEqual(newestFirst(own));
  });

  test('L2 a list over all keys: in one order across objects', async () => {
    const some = records.filter(
      ({ request_id }) => request_id < firstIdAt(TODAY - DAY) && request_id >= firstIdAt(TODAY - 9 * DAY),
    );
    const query = { fromId: firstIdAt(TODAY - 9 * DAY), beforeId: firstIdAt(TODAY - DAY) };
    expect(await listed({ ...query, limit: 61 })).toEqual(newestFirst(some));
    const cut = some.filter(({ status }) => status === 'timed_out');
    expect(await listed({ ...query, statuses: ['timed_out'], limit: 13 })).toEqual(newestFirst(cut));
  });

  test('L2 a record by its id alone: found among the objects of its day', async () => {
    const wanted = records.find(({ key_id }) => key_id === c);
    expect(await ledger.find(wanted?.request_id ?? '', null)).toEqual({ kind: 'ok', value: wanted });
    const unknown = record({ time: new Date(TODAY - 3 * DAY).toISOString() });
    expect(await ledger.find(unknown.request_id, null)).toEqual({ kind: 'ok', value: null });
  });
});

/** Columns with these numbers; all others are 0. */
function columnsOf(numbers: Readonly<Record<string, number>>, speeds = ''): Columns {
  return { numbers: AMOUNTS.slice(0, -1).map((name) => numbers[name] ?? 0), speeds };
}

/** A message with the sums of days alone. */
function messageOf(days: readonly DayRow[]): SumsMessage {
  return { days, hours: [], facts: [], factTotals: [], records: [], recordDays: 35 };
}

/** The shortest form: each letter at most once. */
const EACH_ONCE = /^(?:([A-Za-r])(?!.*\1)\d*)+$/;

describe('medians', () => {
  test('L4 M5 a busy hour: its text of speeds stays short, and its medians match its records', async () => {
    const key_id = newKey();
    const records = Array.from({ length: 1500 }, (_, n) => {
      const first_token_ms = 20 + ((n * 7919) % 30_000);
      const total_ms = first_token_ms + 100 + ((n * 104_729) % 60_000);
      const time = new Date(TODAY - DAY + n).toISOString();
      return record({ key_id, time, first_token_ms, total_ms, completion_tokens: 900 }, n);
    });
    for (let at = 0; at < records.length; at += 50) await ledger.put(records.slice(at, at + 50));
    const [[chars] = []] = (await ledgers.call(
      key_id,
      'run',
      'SELECT LENGTH(speeds) FROM hours',
    )) as unknown[][];
    expect(Number(chars)).toBeLessThanOrEqual(MAX_SPEED_CHARS);
    const query = { fromMs: TODAY - DAY, toMs: TODAY, keyId: key_id, groups: ['model'] as const };
    expect(await reported(query)).toEqual(expected(records, query));
    await ledgers.call(key_id, 'fireAlarm');
    expect(await reported(query)).toEqual(expected(records, query));
    expect(await ledgers.call(key_id, 'run', 'SELECT speeds FROM sent_days')).toEqual([
      [expect.stringMatching(EACH_ONCE)],
    ]);
  });

  test('L4 M5 more text of speeds than a value of SQLite holds: each response counts once in the medians', async () => {
    const speeds = [...'ABCDEFGHIJKLMNOPQRSTUVWX']
      .map((letter) => `${letter}1000000`)
      .join('')
      .repeat(17);
    const days = 40;
    const models = 100;
    for (let day = 20; day < 20 + days; day++) {
      const rows = Array.from({ length: models }, (_, n) => ({
        day,
        dimensions: ['p', `m${n}`, 'chat', 'finished', '', '', 'USD'],
        columns: columnsOf({ requests: 1, total_tokens: 7 }, speeds),
      }));
      await ledgers.call(directoryOf('long'), 'takeSums', 'long', messageOf(rows));
    }
    expect(speeds.length * days * models).toBeGreaterThan(12_000_000);
    const query = { fromMs: 20 * DAY, toMs: (20 + days) * DAY, keyId: null, groups: ['provider'] as const };
    const shorter = { ...query, toMs: 21 * DAY };
    const { median_first_token_ms } = (
      (await reported(shorter)) as Exclude<Awaited<ReturnType<typeof reported>>, string>
    ).total;
    const total = { requests: days * models, total_tokens: 7 * days * models, median_first_token_ms };
    expect(await reported(query)).toMatchObject({ rows: [{ provider: 'p', ...total }], total });
  });
});

describe('tables of an earlier version', () => {
  const dimensions = ['provider', 'model', 'route', 'status', 'currency'];
  const now = ['hour INTEGER', ...dimensions.map((name) => `${name} TEXT`)];
  const counts = [
    'requests',
    'prompt_tokens',
    'completion_tokens',
    'total_tokens',
    'cached_tokens',
    'reasoning_tokens',
  ];
  const money = ['cost_units', 'cost_nanos', 'estimated_cost_units', 'estimated_cost_nanos'];
  const steps = Array.from({ length: 44 }, (_, at) => `speed_${at}`);
  const key = `PRIMARY KEY (hour, ${dimensions.join(', ')})`;
  const hour = TODAY / HOUR - 30;
  const group = `${hour}, 'mistral', 'mistral-small-latest', 'chat', 'finished', ''`;

  test.each([
    ['before there were medians', [], null],
    ['with a column each step of speed', steps, 93],
  ])('L4 %s: their sums stay, and new records are added to them', async (_, added, median) => {
    const key_id = newKey();
    await ledgers.call(key_id, 'find', 'none');
    const columns = [...now, ...[...counts, ...money, ...added].map((name) => `${name} INTEGER`)];
    await ledgers.call(key_id, 'run', 'DROP TABLE hours');
    await ledgers.call(
      key_id,
      'run',
      `CREATE TABLE hours (${columns.map((one) => `${one} NOT NULL`)}, ${key}) STRICT, WITHOUT ROWID`,
    );
    const speeds = added.map((__, at) => (at === 6 ? 3 : 0));
    const values = [3, 30, 15, 45, 6, 0, 0, 0, 0, 0, ...speeds].join(', ');
    await ledgers.call(key_id, 'run', `INSERT INTO hours VALUES (${group}, ${values})`);
    await ledgers.call(key_id, 'killAfter', 0);
    await expect(ledgers.call(key_id, 'settle', [])).rejects.toThrow();
    const query = { fromMs: TODAY - 2 * DAY, toMs: TODAY, keyId: key_id, groups: ['model'] as const };
    const before = { requests: 3, prompt_tokens: 30, cached_tokens: 6, cancelled_requests: 0, cost: {} };
    expect(await reported(query)).toMatchObject({ total: { ...before, median_first_token_ms: median } });
    const more = record({
      key_id,
      time: new Date(hour * HOUR).toISOString(),
      status: 'finished',
      cached_tokens: 1,
    });
    await ledger.put([more]);
    expect(await reported(query)).toMatchObject({
      rows: [{ ...before, requests: 4, prompt_tokens: 40, cached_tokens: 7 }],
    });
    expect(await ledgers.call(key_id, 'count', 'hours')).toBe(1);
  });
});

describe('the directory', () => {
  test('L4 a late or repeated message changes nothing', async () => {
    const key = newKey();
    const row = (requests: number) => ({
      day: 10,
      dimensions: ['p', 'm', 'chat', 'finished', '', '', 'USD'],
      columns: columnsOf({ requests, total_tokens: requests * 10 }),
    });
    for (const requests of [2, 5, 5, 3])
      await ledgers.call(directoryOf(key), 'takeSums', key, messageOf([row(requests)]));
    const query = { fromMs: 10 * DAY, toMs: 11 * DAY, keyId: null, groups: ['key'] as const };
    expect(await reported(query)).toMatchObject({ rows: [{ key, requests: 5, total_tokens: 50 }] });
  });

  test('L4 more sums than a message holds: sent in parts, and the key’s reports are always exact', async () => {
    const key_id = newKey();
    const records = [5, 4, 3].flatMap((ago) =>
      Array.from({ length: MAX_DAY_GROUPS - 100 }, (_, n) =>
        record({ key_id, model: `m${n}`, time: new Date(TODAY - ago * DAY).toISOString() }, n),
      ),
    );
    for (let at = 0; at < records.length; at += 300) await ledger.put(records.slice(at, at + 300));
    const own = { fromMs: TODAY - 9 * DAY, toMs: TODAY, keyId: key_id, groups: ['day'] as const };
    for (let alarms = 0; alarms < 2; alarms++) {
      await ledgers.call(key_id, 'fireAlarm');
      expect(await reported(own)).toEqual(expected(records, own));
    }
    const all = await reported({ ...own, keyId: null, groups: ['key'] });
    if (typeof all === 'string') throw new Error(all);
    expect(all.rows.find(({ key }) => key === key_id)).toMatchObject({ requests: records.length });
  });

  test('L4 a further record sets the alarm, within a minute', async () => {
    const key = newKey();
    const before = Date.now();
    const put = () => ledger.put([record({ key_id: key, time: new Date(TODAY).toISOString() })]);
    // The first record of a day is sent at once. The alarm that is set then is for the end of the record's time.
    await put();
    const alarmTime = async () => Number(await ledgers.call(key, 'alarmTime'));
    await expect.poll(alarmTime, { interval: 20 }).toBeGreaterThan(before + DAY);
    await put();
    const time = await alarmTime();
    expect(time).toBeGreaterThan(before);
    expect(time).toBeLessThanOrEqual(Date.now() + 60_000);
  });
});

test('L4 an alarm whose tries all failed is set again by the next instance, within a day', async () => {
  const withRecord = newKey();
  const empty = newKey();
  await ledger.put([record({ key_id: withRecord, time: new Date(TODAY).toISOString() })]);
  const alarmOf = async (key: string) => Number(await ledgers.call(key, 'alarmTime'));
  // The alarm of the first record of a day has run.
  await expect.poll(() => alarmOf(withRecord)).toBeGreaterThan(Date.now() + DAY);
  for (const key of [withRecord, empty]) {
    await ledgers.call(key, 'loseAlarm').catch(() => undefined);
    // Any call starts an instance.
    await ledgers.call(key, 'count', 'records').catch(() => undefined);
  }
  await expect.poll(() => alarmOf(withRecord)).toBeGreaterThan(Date.now());
  expect(await alarmOf(withRecord)).toBeLessThanOrEqual(Date.now() + DAY);
  expect(await alarmOf(empty), 'without work there is none').toBe(0);
});

describe('records', () => {
  test('L4 after RECORD_DAYS: deleted, while their sums stay; older records are not stored again', async () => {
    const key_id = newKey();
    const days = (ago: number) => new Date(TODAY - ago * DAY + 5000).toISOString();
    const records = [40, 37, 30, 1].map((ago) => record({ key_id, time: days(ago) }));
    const [oldest, , kept] = records;
    if (oldest === undefined || kept === undefined) throw new Error();
    await ledger.put(records);
    await ledgers.call(key_id, 'fireAlarm');
    expect(await ledgers.call(key_id, 'count', 'records')).toBe(2);
    expect(await ledger.find(oldest.request_id, key_id)).toEqual({ kind: 'ok', value: null });
    const query = { fromMs: TODAY - 50 * DAY, toMs: TODAY, keyId: key_id, groups: ['status'] as const };
    expect(await reported(query)).toEqual(expected(records, query));
    logged.length = 0;
    await ledger.put([oldest, kept]);
    expect(logged).toMatchObject([{ event: 'record_lost', record: oldest }]);
    expect(await reported(query)).toEqual(expected(records, query));
  });

  test('L4 recordDays of the gateway decides how many days records are kept', async () => {
    const key_id = newKey();
    const days = (ago: number) => new Date(TODAY - ago * DAY + 5000).toISOString();
    const own = new ObjectLedger({ ledgers: ledgers.namespace, recordDays: 60, log: () => {} });
    await own.put([70, 50, 1].map((ago) => record({ key_id, time: days(ago) })));
    await ledgers.call(key_id, 'fireAlarm');
    expect(await ledgers.call(key_id, 'count', 'records')).toBe(2);
  });

  test('L4 the next record to be deleted sets the alarm for its time', async () => {
    const key_id = newKey();
    const time = TODAY - 20 * DAY;
    await ledger.put([record({ key_id, time: new Date(time).toISOString() })]);
    await ledgers.call(key_id, 'fireAlarm');
    // The alarm of the settlement is due first, then this one.
    await ledgers.call(key_id, 'fireAlarm');
    expect(await ledgers.call(key_id, 'alarmTime')).toBeLessThanOrEqual(time + 36 * DAY);
  });

  test('L4 a report of a part of an hour whose records are deleted: refused, and the error names the alternative', async () => {
    const key_id = newKey();
    const time = new Date(TODAY - 50 * DAY + 600_000).toISOString();
    await ledger.put([record({ key_id, time })]);
    await ledgers.call(key_id, 'fireAlarm');
    const query = { fromMs: TODAY - 50 * DAY + 60_000, toMs: TODAY, keyId: key_id, groups: ['day'] as const };
    expect(await reported(query)).toMatch(/whole hours/);
    expect(await reported({ ...query, fromMs: TODAY - 50 * DAY })).toMatchObject({ total: { requests: 1 } });
  });
});

describe('hostile names and amounts', () => {
  test('L4 names with quotes, SQL and markup: stored unchanged, and grouped correctly', async () => {
    const key_id = newKey();
    const names = ["'; DROP TABLE records; --", '"', '\u202e', '<script>', '\u0000', '=1+1', '%', '?', ')'];
    const records = names.map((model, n) =>
      record({ key_id, model, time: new Date(TODAY).toISOString() }, n),
    );
    await ledger.put(records);
    const query = { fromMs: TODAY, toMs: TODAY + DAY, keyId: key_id, groups: ['model', 'key'] as const };
    expect(await reported(query)).toEqual(expected(records, query));
  });

  test('L4 M5 the largest numbers, repeatedly: sums stop at the largest exact integer, and money stays exact', async () => {
    const key_id = newKey();
    const MAX = Number.MAX_SAFE_INTEGER;
    const time = new Date(TODAY - 2 * DAY).toISOString();
    const huge = { key_id, time, prompt_tokens: MAX, total_tokens: MAX, cost_nanos: MAX, currency: 'USD' };
    const records = Array.from({ length: 1200 }, (_, n) => record(huge, n));
    for (let at = 0; at < records.length; at += 100) await ledger.put(records.slice(at, at + 100));
    for (const _ of ['from hours', 'from days']) {
      const query = { fromMs: TODAY - 3 * DAY, toMs: TODAY, keyId: key_id, groups: ['day'] as const };
      const answer = await reported(query);
      expect(answer).toEqual(expected(records, query));
      expect(answer).toMatchObject({ total: { total_tokens: MAX, cost: { USD: 10_808_639_105.689_19 } } });
      await ledgers.call(key_id, 'fireAlarm');
    }
  });

  test('L4 more models in a day than a report may have groups: the rest is summed under one name', async () => {
    const key_id = newKey();
    const records = Array.from({ length: MAX_DAY_GROUPS + 50 }, (_, n) =>
      record({ key_id, model: `m${n}`, time: new Date(TODAY - DAY + n).toISOString() }, n),
    );
    for (let at = 0; at < records.length; at += 100) await ledger.put(records.slice(at, at + 100));
    await ledger.put([record({ key_id, model: 'm7', time: new Date(TODAY - DAY + 5 * HOUR).toISOString() })]);
    const query = { fromMs: TODAY - DAY, toMs: TODAY, keyId: key_id, groups: ['model'] as const };
    const answer = await reported(query);
    if (typeof answer === 'string') throw new Error(answer);
    expect(answer.rows).toHaveLength(MAX_DAY_GROUPS + 1);
    expect(answer.rows.find(({ model }) => model === 'mistral/(other)')).toMatchObject({ requests: 50 });
    expect(answer.rows.find(({ model }) => model === 'mistral/m7')).toMatchObject({ requests: 2 });
    expect(answer.total).toMatchObject({ requests: MAX_DAY_GROUPS + 51 });
  });
});

describe('M10 causes of breaks of the prompt cache', () => {
  const prefix = { keyId: 'aa', target: 'b'.repeat(12), system: 'c'.repeat(12), settings: 'd'.repeat(12) };
  const step = (key_id: string, n: number, tools: string) => {
    const ms = TODAY - DAY + n * 60_000;
    const time = new Date(ms).toISOString();
    const ends = Array.from({ length: n + 1 }, (_, i) => String(i).padStart(12, '0'));
    const hashes = { ...prefix, first: 'e'.repeat(12), tools: tools.repeat(12), turns: n + 1, ends };
    return record({
      ...{ key_id, time, ended: time, session: 's', app: 'agent', prompt_tokens: 10_000 * (n + 1) },
      ...{ cached_tokens: tools === '1' ? 10_000 * n : 100, cost_nanos: 1000, currency: 'USD' },
      ...{ prefix: encodePrefix(hashes), cache_saves: 2_700_000_000 },
    });
  };

  test('each record has its cause, and a report sums them with what was lost', async () => {
    const key_id = newKey();
    for (const one of [step(key_id, 0, '1'), step(key_id, 1, '1'), step(key_id, 2, '2')]) {
      await ledger.put([one]);
      // A record that arrives twice is compared and summed once.
      await ledger.put([one]);
    }
    // So that the directory knows it.
    await ledgers.call(key_id, 'fireAlarm');
    const listed = await ledger.list({
      ...{ fromId: firstIdAt(0), beforeId: firstIdAt(TODAY + DAY), keyId: key_id, limit: 10 },
      ...{ model: null, statuses: null, only: { cache_cause: 'tools' } },
    });
    const cache = { cause: 'tools', lost_tokens: 19_900, lost_nanos: 53_730_000 };
    expect(listed).toMatchObject({ kind: 'ok', value: { records: [{ cache }] } });
    const lost = { lost_tokens: 19_900, lost_cost: { USD: 0.05373 } };
    for (const keyId of [key_id, null]) {
      const query = { fromMs: TODAY - DAY, toMs: TODAY, keyId, only: { app: 'agent' } };
      expect(await reported({ ...query, groups: ['cache_cause'], only: {} })).toMatchObject({
        rows: expect.arrayContaining([
          expect.objectContaining({ cache_cause: 'tools', requests: 1, ...lost }),
          expect.objectContaining({ cache_cause: 'none', requests: 1 }),
          expect.objectContaining({ cache_cause: 'first', requests: 1 }),
        ]),
      });
      expect(await reported({ ...query, groups: ['app'] })).toMatchObject({
        rows: [{ app: 'agent', ...lost }],
      });
    }
  });
});

describe('Y5 sums by user, session, app and tag', () => {
  const [a, b] = [newKey(), newKey()];
  const from = TODAY - 6 * DAY;
  const some = (values: readonly string[], n: number) => values[n % values.length] || null;
  const records = manyRecords(1200, [a, b], { fromMs: from, toMs: TODAY + DAY }, 20261122).map((one, n) => ({
    ...one,
    user: some(['ada', 'bob', "'; DROP TABLE fact_days --", ''], n),
    session: some(['', `s${n % 50}`], n),
    app: some(['claude-cli', '', 'opencode'], n),
    tags: n % 3 === 0 ? { team: String(some(['search', 'ads'], n)), env: 'prod' } : {},
  }));

  beforeAll(async () => {
    for (let at = 0; at < records.length; at += 100) await ledger.put(records.slice(at, at + 100));
    await ledger.put(records.slice(100, 200));
    // So that the directory knows both.
    for (const key of [a, b]) await ledgers.call(key, 'fireAlarm');
  });

  const groupings: readonly (readonly Group[])[] = [
    ['user'],
    ['session'],
    ['app', 'day'],
    ['tag:team'],
    ['tag:unknown'],
    ['model', 'user', 'status'],
    ['hour', 'app'],
    ['user', 'tag:env'],
  ];
  const spans: readonly [what: string, fromMs: number, toMs: number][] = [
    ['all of it', from, TODAY + DAY],
    ['whole days', from + DAY, from + 4 * DAY],
    ['parts of days', from + 7 * HOUR + 1234567, from + 3 * DAY + 2 * HOUR],
  ];

  test.each(spans)('of one key, of %s: the exact sums of its records', async (_, fromMs, toMs) => {
    for (const groups of groupings) {
      const query = { fromMs, toMs, keyId: a, groups };
      expect(await reported(query)).toEqual(expected(records, query));
    }
  });

  test('narrowed by a fact, or to the requests without it', async () => {
    for (const only of [
      { user: 'ada' },
      { user: '' },
      { 'tag:team': 'ads' },
      { app: '', model: 'mistral/model-1' },
    ]) {
      const within = records.filter((one) => matchesFilter(one, only));
      for (const groups of [['day'], ['user', 'model'], ['session', 'app']] as const) {
        const query = { fromMs: from, toMs: TODAY + DAY, keyId: a, groups, only };
        expect(await reported(query)).toEqual(expected(within, query));
      }
    }
    const ids = await listed({ fromId: firstIdAt(from), keyId: a, only: { 'tag:team': 'ads' } });
    const matching = records.filter(({ key_id, tags }) => key_id === a && tags.team === 'ads');
    expect(ids).toEqual(newestFirst(matching));
  });

  test('over all keys: the sums of both', async () => {
    const only = { 'tag:env': 'prod' };
    const query = {
      fromMs: from,
      toMs: TODAY + DAY,
      keyId: null,
      groups: ['key', 'tag:team'] as const,
      only,
    };
    const result = await reported(query);
    if (typeof result === 'string') throw new Error(result);
    const within = records.filter((one) => matchesFilter(one, only));
    const own = result.rows.filter(({ key }) => [a, b].includes(key ?? ''));
    expect(own).toEqual(expected(within, query).rows);
  });

  test('names beyond the limit of a day are summed as (other), and push no model into it', async () => {
    const key_id = newKey();
    const many = Array.from({ length: MAX_FACT_ROWS + 50 }, (_, n) =>
      record({ key_id, user: `u${n}`, time: new Date(TODAY - DAY + n).toISOString() }, n),
    );
    for (let at = 0; at < many.length; at += 1000) await ledger.put(many.slice(at, at + 1000));
    await ledger.put([record({ key_id, user: 'u7', time: new Date(TODAY - 1).toISOString() })]);
    const query = { fromMs: TODAY - DAY, toMs: TODAY, keyId: key_id };
    const byUser = await reported({ ...query, groups: ['user'] });
    if (typeof byUser === 'string') throw new Error(byUser);
    expect(byUser.rows.find(({ user }) => user === 'u7')).toMatchObject({ requests: 2 });
    expect(byUser.rows.find(({ user }) => user === '(other)')).toMatchObject({ requests: 50 });
    expect(byUser.total).toMatchObject({ requests: MAX_FACT_ROWS + 51 });
    const byModel = await reported({ ...query, groups: ['model'] });
    if (typeof byModel === 'string') throw new Error(byModel);
    expect(byModel.rows).toMatchObject([
      { model: 'mistral/mistral-small-latest', requests: MAX_FACT_ROWS + 51 },
    ]);
  });
});

test.each<[groups: readonly Group[], remedy: string]>([
  [['model'], 'from and to must be whole hours (UTC)'],
  [
    ['hour', 'user'],
    'query whole days (UTC), not by hour, and by one of user, session, app, team, tag and cache_cause',
  ],
])(
  'Y5 a report by %j that reads too many single records is refused with what to change',
  async (groups, remedy) => {
    const stub = { report: async () => ({ kind: 'parts', reason: 'too_many' }) };
    const full = new ObjectLedger({
      ledgers: { getByName: () => stub as unknown as LedgerStub },
      log: () => {},
    });
    const result = await full.report({ fromMs: TODAY, toMs: TODAY + 1, keyId: 'k', groups });
    expect(result).toMatchObject({ kind: 'error', error: { param: 'from', status: 400 } });
    expect(JSON.stringify(result)).toContain(remedy);
  },
);

test('M6 counts of refused requests: each batch once, for one key or all, summed by the groups', async () => {
  const hour = TODAY / HOUR;
  const batch = {
    id: requestId(Date.now(), crypto.randomUUID()),
    rows: [
      { hour, keyId: 'ann', code: 'rate_limited', requests: 5 },
      { hour: hour + 1, keyId: 'ann', code: 'rate_limited', requests: 2 },
      { hour: hour + 1, keyId: 'none', code: 'invalid_api_key', requests: 9 },
      { hour: hour - 500 * 24, keyId: 'none', code: 'invalid_api_key', requests: 1 },
    ],
  };
  await ledger.putRefusals(batch);
  await ledger.putRefusals(batch);
  await ledger.putRefusals({ ...batch, id: requestId(Date.now(), crypto.randomUUID()) });
  const rowsOf = async (keyId: string | null, groups: readonly RefusalGroup[], fromHour = 0) => {
    const found = await ledger.refusals({ fromHour, toHour: hour + 24, keyId, groups });
    return found.kind === 'ok' ? found.value : [];
  };
  expect(await rowsOf(null, ['code'])).toEqual([
    { hour: 0, keyId: '', code: 'invalid_api_key', requests: 18 },
    { hour: 0, keyId: '', code: 'rate_limited', requests: 14 },
  ]);
  expect(await rowsOf('ann', ['hour'], hour + 1)).toEqual([
    { hour: hour + 1, keyId: '', code: '', requests: 4 },
  ]);
  expect(await rowsOf(null, ['day', 'key'])).toEqual([
    { hour, keyId: 'ann', code: '', requests: 14 },
    { hour, keyId: 'none', code: '', requests: 18 },
  ]);
});

describe('Y6 objects of users', () => {
  const request = (id: string) => ({
    id,
    promptTokens: 10,
    estimatedPromptTokens: 4,
    outputTokens: 90,
    choices: 1,
    price: null,
    expiresAfterMs: HOUR,
  });

  test('the alarm of a revoked key deletes the objects of its users, once the key has counted what they were charged', async () => {
    const key = 'revoked-users';
    const users = ['ada', 'bob'].map((user) => userObject(key, user));
    await ledgers.call(key, 'changeLimits', { rpm: 1000, per_user: { rpm: 5 } });
    for (const user of users) {
      expect(await ledgers.call(user, 'reserveForUser', request(user))).toMatchObject({ kind: 'reserved' });
      expect(await ledgers.call(user, 'count', 'reservations')).toBe(1);
    }
    // This Worker has no KV. The object is revoked nevertheless.
    await expect(ledgers.call(key, 'revokeKey', key)).rejects.toThrow('WEIR_KV');
    await ledgers.call(key, 'fireAlarm');
    for (const user of users) {
      expect(await ledgers.call(user, 'count', 'reservations')).toBe(1);
      await ledgers.call(user, 'settleReservation', user, { tokens: 30, cost: null });
    }
    await ledgers.call(key, 'fireAlarm');
    expect(await ledgers.call(key, 'run', 'SELECT sum(tokens) FROM spent')).toEqual([[60]]);
    for (const user of users) {
      const tables = "SELECT name FROM sqlite_master WHERE name IN ('reservations', 'link', 'limits')";
      expect(await ledgers.call(user, 'run', tables)).toEqual([]);
      expect(await ledgers.call(user, 'alarmTime')).toBeNull();
      expect(await ledgers.call(user, 'reserveForUser', request('late'))).toEqual({ kind: 'revoked' });
    }
  });

  test('the lost alarm of a user’s object is set again by the next instance', async () => {
    const user = userObject('lost-alarm', 'ada');
    await ledgers.call('lost-alarm', 'changeLimits', { per_user: { rpm: 5 } });
    await ledgers.call(user, 'reserveForUser', request('r'));
    await ledgers.call(user, 'loseAlarm').catch(() => undefined);
    await ledgers.call(user, 'count', 'reservations').catch(() => undefined);
    await expect.poll(async () => Number(await ledgers.call(user, 'alarmTime'))).toBeGreaterThan(Date.now());
  });

  test('the object of a user that is killed at any step neither loses nor keeps allowance of its key', async () => {
    const key = 'killed-users';
    const user = userObject(key, 'ada');
    await ledgers.call(key, 'changeLimits', { budget: { tokens: 1_000_000 }, per_user: { rpm: 1000 } });
    let admitted = 0;
    for (let steps = 0; steps < 45; steps += 3) {
      const id = `r${steps}`;
      await ledgers.call(user, 'killAfter', steps);
      const reserved = await ledgers.call(user, 'reserveForUser', request(id)).catch(() => null);
      await ledgers.call(user, 'killAfter', 1e9).catch(() => null);
      if (reserved === null) await ledgers.call(user, 'settleReservation', id, { tokens: 0, cost: null });
      else {
        admitted++;
        await ledgers.call(user, 'settleReservation', id, { tokens: 7, cost: null });
      }
    }
    expect(admitted).toBeGreaterThan(0);
    await ledgers.call(user, 'fireAlarm');
    expect(await ledgers.call(key, 'standing')).toMatchObject({
      budget: { spent: 7 * admitted, reserved: 0 },
    });
  });
});

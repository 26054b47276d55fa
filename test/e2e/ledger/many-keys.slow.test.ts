/** Ledger objects of 1,000 keys in workerd: each report and list over all keys has what an independent sum over the records has (L9). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { directoryOf } from '../../../src/ledger/ledger-calls.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import { type RecordQuery, readCursor } from '../../../src/metering/ledger.ts';
import type { UsageRecord } from '../../../src/metering/record.ts';
import { type Group, matchesFilter, Report, type ReportFilter } from '../../../src/metering/report.ts';
import { firstIdAt } from '../../../src/metering/time.ts';
import { manyRecords } from '../../metering/many-records.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

const KEYS = 1000;
const RECORDS = 10_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Yesterday: all its records are before now. */
const FROM = Math.floor(Date.now() / DAY) * DAY - DAY;

const FAULTS = [null, null, 'provider', 'deployment', 'request'] as const;
const USERS = Array.from({ length: 700 }, (_, n) => `user-${n}@example.com`);
const CAUSES = ['none', 'tools', 'system', 'first'] as const;

const keyIds = Array.from({ length: KEYS }, (_, n) => `k${n.toString(16).padStart(15, '0')}`);
const records = manyRecords(RECORDS, keyIds, { fromMs: FROM, toMs: FROM + DAY }, 65).map(
  (one, n): UsageRecord => {
    const fault = FAULTS[n % FAULTS.length] ?? null;
    const cause = CAUSES[n % 7];
    return {
      ...one,
      fault,
      error: fault === null ? null : `code_${n % 3}`,
      user: USERS[(n * 31) % (USERS.length + 50)] ?? null,
      session: n % 4 === 0 ? null : `session-${n % 3000}`,
      app: n % 5 === 0 ? null : `app-${n % 6}`,
      tags: n % 3 === 0 ? {} : { team: `team-${n % 40}`, env: n % 2 === 0 ? 'prod' : 'test' },
      ...(cause !== undefined && { cache: { cause, lost_tokens: n % 1000, lost_nanos: n } }),
    } as UsageRecord;
  },
);

let ledgers: Ledgers;
let ledger: ObjectLedger;

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, log: () => {} });
  const byKey = [...Map.groupBy(records, ({ key_id }) => key_id)];
  for (let at = 0; at < byKey.length; at += 20)
    await Promise.all(
      byKey.slice(at, at + 20).map(async ([keyId, own]) => {
        // In two parts, so that the second one is added to what was sent.
        await ledger.put(own.slice(0, 7));
        await ledgers.call(keyId, 'sendSums');
        await ledger.put(own.slice(5));
        expect(await ledgers.call(keyId, 'sendSums')).toBe(true);
      }),
    );
});
afterAll(() => ledgers[Symbol.asyncDispose]());

async function reported(groups: readonly Group[], only: ReportFilter = {}, fromMs = FROM, toMs = FROM + DAY) {
  const result = await ledger.report({ fromMs, toMs, keyId: null, groups, only });
  if (result.kind === 'error') return result.error.message;
  const { rows, total, isTooLarge } = result.value;
  return isTooLarge ? 'too large' : { rows, total };
}

function expected(groups: readonly Group[], only: ReportFilter = {}, fromMs = FROM, toMs = FROM + DAY) {
  const report = new Report(groups);
  for (const one of records) {
    const time = Date.parse(one.time);
    if (time >= fromMs && time < toMs && matchesFilter(one, only)) report.addRecord(one);
  }
  const { rows, total, isTooLarge } = report;
  return isTooLarge ? 'too large' : { rows, total };
}

const GROUPINGS: readonly (readonly Group[])[] = [
  ['day'],
  ['hour'],
  ['provider'],
  ['model'],
  ['route'],
  ['status'],
  ['fault'],
  ['error'],
  ['fault', 'error', 'provider'],
  ['key'],
  ['key', 'model'],
  ['hour', 'model', 'status'],
  ['user'],
  ['session'],
  ['app'],
  ['cache_cause'],
  ['tag:team'],
  ['tag:env', 'day'],
  ['tag:none'],
  ['model', 'user'],
  ['key', 'app'],
];

describe(`L9 ${KEYS} keys with ${RECORDS} records on one day`, () => {
  test.each(GROUPINGS.map((groups) => [groups.join(','), groups] as const))(
    'a report of the day by %s: the sums of the records',
    async (_, groups) => {
      expect(await reported(groups)).toEqual(expected(groups));
    },
  );

  test.each<[ReportFilter]>([
    [{ provider: 'mistral' }],
    [{ model: 'mistral/model-2' }],
    [{ route: 'fim' }],
    [{ status: 'failed' }],
    [{ fault: 'provider' }],
    [{ error: 'code_1' }],
    [{ fault: '' }],
    [{ user: 'user-7@example.com' }],
    [{ user: '' }],
    [{ session: 'session-1501' }],
    [{ app: 'app-3' }],
    [{ cache_cause: 'tools' }],
    [{ 'tag:team': 'team-4', status: 'failed' }],
  ])('reports filtered by %j', async (only) => {
    for (const groups of [['day'], ['hour'], ['key'], ['model', 'status'], ['user']] as const)
      expect(await reported(groups, only)).toEqual(expected(groups, only));
  });

  test.each<[string, number, number]>([
    ['whole hours', FROM + 3 * HOUR, FROM + 20 * HOUR],
    ['parts of hours', FROM + 3 * HOUR + 1_234_567, FROM + 9 * HOUR + 7_654],
    ['a part of one hour', FROM + 5 * HOUR + 60_000, FROM + 5 * HOUR + 120_000],
    ['more than the day', FROM - 5 * DAY - 60_000, FROM + DAY + 60_000],
  ])('reports of %s', async (_, from, to) => {
    for (const groups of [['model'], ['hour'], ['user'], ['tag:team']] as const)
      expect(await reported(groups, {}, from, to)).toEqual(expected(groups, {}, from, to));
  });

  test('two groupings at once', async () => {
    for (const groups of [
      ['hour', 'app'],
      ['user', 'app'],
      ['tag:team', 'tag:env'],
    ] as const)
      expect(await reported(groups, {}, FROM + 2 * HOUR, FROM + 6 * HOUR)).toEqual(
        expected(groups, {}, FROM + 2 * HOUR, FROM + 6 * HOUR),
      );
    expect(await reported(['app', 'cache_cause'])).toEqual(expected(['app', 'cache_cause']));
  });

  /** The ids of all pages. */
  async function listed(given: Partial<RecordQuery>) {
    const ids: string[] = [];
    const pages: number[] = [];
    const query: RecordQuery = {
      ...{ fromId: firstIdAt(FROM), beforeId: firstIdAt(FROM + DAY), keyId: null },
      ...{ model: null, statuses: null, limit: 1000, ...given },
    };
    for (let next: Partial<RecordQuery> | null = {}; next !== null; ) {
      const page = await ledger.list({ ...query, ...next });
      if (page.kind === 'error') throw new Error(page.error.message);
      ids.push(...page.value.records.map(({ request_id }) => request_id));
      pages.push(page.value.records.length);
      next = page.value.next === null ? null : readCursor(page.value.next);
    }
    return { ids, pages };
  }

  const newestFirst = (some: readonly UsageRecord[]) =>
    some
      .map(({ request_id }) => request_id)
      .sort()
      .reverse();

  test('a list to its end: each record once, in order', async () => {
    const { ids } = await listed({});
    const all = newestFirst(records);
    expect(ids).toEqual(all);
  });

  test.each<[string, Partial<RecordQuery>]>([
    ['status', { statuses: ['failed', 'timed_out'] }],
    ['fault and error', { only: { fault: 'provider', error: 'code_1' } }],
    ['user', { only: { user: 'user-7@example.com' } }],
    ['tag', { only: { 'tag:team': 'team-4' } }],
    ['search', { only: { search: 'session-2999' } }],
    ['model', { model: 'mistral/model-2', limit: 300 }],
  ])('a list by %s to its end: each matching record once', async (_, given) => {
    const { model, statuses, only = {} } = { model: null, statuses: null, ...given } as RecordQuery;
    const { search, ...filter } = only;
    const matching = records.filter(
      (one) =>
        (model === null || `${one.provider}/${one.model}` === model) &&
        (statuses === null || statuses.includes(one.status)) &&
        (search === undefined || one.session?.includes(search) === true) &&
        matchesFilter(one, filter),
    );
    expect(matching.length).toBeGreaterThan(0);
    const { ids } = await listed(given);
    expect(ids.toSorted()).toEqual(newestFirst(matching).toSorted());
  });

  test('a record by its id, without its key', async () => {
    for (const one of [records[0], records[7000], records.at(-1)])
      expect(await ledger.find(one?.request_id ?? '', null)).toEqual({ kind: 'ok', value: one });
  });

  test('the erasure of a user reaches the directories', async () => {
    const names = ['user-11@example.com'];
    const gone = records.filter(({ user }) => user === names[0]);
    for (const keyId of new Set(gone.map(({ key_id }) => key_id)))
      await ledgers.call(keyId, 'eraseUser', names, { day: 0, id: '' }, null);
    const rows = await reported(['user']);
    if (typeof rows === 'string') throw new Error(rows);
    expect(rows.rows.filter(({ user }) => user === names[0])).toEqual([]);
    expect(rows.total.requests).toBe(RECORDS);
    expect((await listed({ only: { user: names[0] ?? '' } })).ids).toEqual([]);
    const sessions = await reported(['session']);
    if (typeof sessions === 'string') throw new Error(sessions);
    const others = new Set(records.filter(({ user }) => user !== names[0]).map(({ session }) => session));
    const erased = new Set(gone.map(({ session }) => session).filter((session) => !others.has(session)));
    expect(gone.length).toBeGreaterThan(0);
    expect(sessions.rows.filter(({ session }) => erased.has(session ?? null))).toEqual([]);
  });
});

test('L9 more records of one directory than one call reads: a search over all keys finds each', async () => {
  const own = Array.from({ length: 4000 }, (_, n) => `same-${n}`)
    .filter((id) => directoryOf(id) === '*7')
    .slice(0, 40);
  const day = FROM - 3 * DAY;
  const many = manyRecords(25_000, own, { fromMs: day, toMs: day + 3 * HOUR }, 7).map((one, n) => ({
    ...one,
    session: n % 500 === 0 ? `wanted-${n}` : `other-${n}`,
  }));
  for (const [keyId, some] of Map.groupBy(many, ({ key_id }) => key_id)) {
    // The messages after the first have all new records.
    for (const part of [some.slice(0, 1), some.slice(1)]) {
      await ledger.put(part);
      await ledgers.call(keyId, 'sendSums');
    }
  }
  const kept = await ledgers.call(
    '*7',
    'run',
    `SELECT SUM(requests) FROM recent WHERE hour < ${FROM / HOUR}`,
  );
  expect(kept).toEqual([[25_000]]);
  const found: string[] = [];
  const bounds = { fromId: firstIdAt(day), beforeId: firstIdAt(day + DAY), keyId: null, model: null };
  const query: RecordQuery = { ...bounds, statuses: null, limit: 7, only: { search: 'wanted-' } };
  for (let next: Partial<RecordQuery> | null = {}; next !== null; ) {
    const page = await ledger.list({ ...query, ...next });
    if (page.kind === 'error') throw new Error(page.error.message);
    found.push(...page.value.records.map(({ request_id }) => request_id));
    next = page.value.next === null ? null : readCursor(page.value.next);
  }
  const wanted = many.filter(({ session }) => session.startsWith('wanted-'));
  expect(found).toEqual(
    wanted
      .map(({ request_id }) => request_id)
      .sort()
      .reverse(),
  );
});

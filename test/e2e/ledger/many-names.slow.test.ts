/** Ledger objects whose keys have more users, or names of tags, on one day than they list: reports stay bounded, and say `(other)`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_DIRECTORY_FACT_ROWS } from '../../../src/ledger/directory/tables.ts';
import { directoryOf } from '../../../src/ledger/ledger-calls.ts';
import { MAX_FACT_ROWS } from '../../../src/ledger/records/fact-sums.ts';
import { ObjectLedger } from '../../../src/ledger/records/object-ledger.ts';
import { AMOUNTS } from '../../../src/ledger/records/sum-columns.ts';
import type { Group, ReportFilter } from '../../../src/metering/report.ts';
import { record } from '../../metering/records.ts';
import { residentBytes, workerdIds } from '../processes.ts';
import { type Ledgers, startLedgers } from './ledgers.ts';

/** Well beyond the limit of a day. */
const USERS = 3 * MAX_FACT_ROWS;
const BATCH = 1000;
const KEY = 'of many users';
const DAY = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY) * DAY;
/** An isolate has 128 MB. */
const MAX_GROWTH_BYTES = 128 * 1024 * 1024;

let ledgers: Ledgers;
let ledger: ObjectLedger;

beforeAll(async () => {
  ledgers = await startLedgers();
  ledger = new ObjectLedger({ ledgers: ledgers.namespace, log: () => {} });
  const time = new Date(TODAY).toISOString();
  for (let at = 0; at < USERS; at += BATCH) {
    const some = Array.from({ length: BATCH }, (_, i) => {
      const n = at + i;
      const cost = { cost_nanos: n + 1, currency: 'USD', cost_source: 'table' } as const;
      return record({ key_id: KEY, time, user: `user ${n}`, tags: { team: `team ${n % 7}` }, ...cost }, n);
    });
    await ledger.put(some);
  }
});
afterAll(() => ledgers[Symbol.asyncDispose]());

async function report(groups: readonly Group[], only: ReportFilter = {}, keyId = KEY) {
  const result = await ledger.report({ fromMs: TODAY, toMs: TODAY + DAY, keyId, groups, only });
  if (result.kind === 'error') throw new Error(result.error.message);
  return result.value;
}

describe(`Y5 ${USERS} users of one key and day`, () => {
  test('a report by user has the rows of its limit and one of all others, with the sums of all', async () => {
    const before = residentBytes(workerdIds());
    const found = await report(['user']);
    expect(residentBytes(workerdIds()) - before).toBeLessThan(MAX_GROWTH_BYTES);
    const rows = found.largest(1000);
    expect(rows).toHaveLength(1001);
    expect(rows.at(-1)?.user).toBe('(other)');
    expect(new Set(rows.map(({ user }) => user)).size).toBe(1001);
    expect(found.rows).toHaveLength(MAX_FACT_ROWS + 1);
    // The users beyond the limit of a day are one row.
    expect(found.rows.at(-1)).toMatchObject({ user: '(other)', requests: USERS - MAX_FACT_ROWS });
    for (const all of [rows, found.rows])
      expect(all.reduce((sum, { requests }) => sum + requests, 0)).toBe(USERS);
    const nanos = (USERS * (USERS + 1)) / 2;
    expect(found.total).toMatchObject({ requests: USERS, cost: { USD: nanos / 1e9 } });
  });

  test('other reports have all of them', async () => {
    expect((await report(['model'])).rows).toMatchObject([{ requests: USERS }]);
    const byTag = await report(['tag:team']);
    expect(byTag.rows).toHaveLength(7);
    expect(byTag.total).toMatchObject({ requests: USERS });
    expect((await report(['user'], { user: 'user 7' })).rows).toMatchObject([
      { user: 'user 7', requests: 1 },
    ]);
  });
});

test('Y5 names of tags beyond twice the limit of a day have no row, and requests with them count as ones without', async () => {
  const key_id = 'of many tags';
  const beyond = 60;
  const many = Array.from({ length: (2 * MAX_FACT_ROWS) / 8 + beyond }, (_, n) => {
    const tags = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`t${8 * n + i}`, 'v']));
    return record({ key_id, tags, time: new Date(TODAY + n).toISOString() }, n);
  });
  for (let at = 0; at < many.length; at += 500) await ledger.put(many.slice(at, at + 500));
  const rowsOf = async (tag: number) => {
    const found = await report([`tag:t${tag}`], {}, key_id);
    return found.rows.map((row) => [row[`tag:t${tag}`], row.requests]);
  };
  const all = many.length;
  expect(await rowsOf(0)).toEqual([
    ['', all - 1],
    ['v', 1],
  ]);
  // In the second half of the limit each name has a row of its own, but no value.
  expect(await rowsOf(MAX_FACT_ROWS + 1)).toEqual([
    ['', all - 1],
    ['(other)', 1],
  ]);
  expect(await rowsOf(2 * MAX_FACT_ROWS + 1)).toEqual([['', all]]);
});

test('L9 names beyond the limit of a directory are summed as (other), also if messages repeat and names grow', async () => {
  const day = TODAY / DAY - 3;
  const dimensions = ['p', 'm', 'chat', 'finished', '', '', 'USD'];
  const columnsOf = (requests: number) => ({
    numbers: AMOUNTS.slice(0, -1).map((name) => (name === 'requests' ? requests : 0)),
    speeds: '',
  });
  const perKey = 30_000;
  const [a, b] = ['names-a', ...SAME_DIRECTORY];
  const messageOf = (facts: readonly [name: string, requests: number][], total: number) => ({
    ...{ records: [], recordDays: 35, days: [{ day, dimensions, columns: columnsOf(total) }] },
    hours: [{ key: [day * 24, ...dimensions], columns: columnsOf(total) }],
    facts: facts.map(([name, requests]) => ({
      key: [day, 'user', name, ...dimensions],
      columns: columnsOf(requests),
    })),
    factTotals: [{ key: [day, 'user', ...dimensions], columns: columnsOf(total) }],
  });
  const send = (key: string, message: ReturnType<typeof messageOf>) =>
    ledgers.call(directoryOf(key), 'takeSums', key, message);
  const names = (key: string, from: number, to: number) =>
    Array.from({ length: to - from }, (_, i): [string, number] => [`${key}-${from + i}`, 1]);
  for (const key of [a, b])
    for (let at = 0; at < perKey; at += 2000) await send(key, messageOf(names(key, at, at + 2000), perKey));
  const sums = async () => {
    const span = { fromMs: day * DAY, toMs: (day + 1) * DAY, keyId: null, groups: ['user'] as const };
    const others = await ledger.report({ ...span, only: { user: '(other)' } });
    const all = await ledger.report(span);
    if (others.kind === 'error' || all.kind === 'error') throw new Error();
    return [others.value.total.requests, all.value.total.requests];
  };
  const beyond = 2 * perKey - MAX_DIRECTORY_FACT_ROWS;
  expect(await sums()).toEqual([beyond, 2 * perKey]);
  await send(b, messageOf(names(b, perKey - 2000, perKey), perKey));
  expect(await sums()).toEqual([beyond, 2 * perKey]);
  // One that has a row, and one that has none.
  await send(
    b,
    messageOf(
      [
        [`${b}-0`, 3],
        [`${b}-${perKey - 1}`, 6],
      ],
      perKey + 7,
    ),
  );
  expect(await sums()).toEqual([beyond + 5, 2 * perKey + 7]);
});

/** A key whose directory is that of the other. */
const SAME_DIRECTORY = Array.from({ length: 1000 }, (_, n) => `names-${n}`)
  .filter((key) => directoryOf(key) === directoryOf('names-a'))
  .slice(0, 1) as [string];

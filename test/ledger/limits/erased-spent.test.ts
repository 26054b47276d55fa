/** What an erased user has spent: the key remembers it under a hash until the period ends, and a user who comes back has it (Y10). */
import { expect, test } from 'vitest';
import {
  currentSpent,
  forgetSpent,
  hasErasedSpent,
  keepSpent,
  keptSpent,
  restoreSpent,
} from '../../../src/ledger/limits/erased-spent.ts';
import { createLimitTables } from '../../../src/ledger/limits/limit-tables.ts';
import { Reports } from '../../../src/ledger/limits/reports.ts';
import { limitsOf, MemorySql, NOW } from './memory-sql.ts';

const HASH = 'a hash';
const END_OF_MONTH = Date.UTC(2026, 11, 1);

/** A user's object with spend of last month, of yesterday and of today. */
function userObject() {
  const sql = new MemorySql();
  for (const [day, tokens] of [
    ['2026-10-31', 1],
    ['2026-11-20', 20],
    ['2026-11-21', 300],
  ])
    sql.exec(
      'INSERT INTO spent VALUES (?, ?, ?, ?)',
      String(day),
      'USD',
      Number(tokens),
      Number(tokens) * 10,
    );
  sql.exec("INSERT INTO unreported VALUES ('2026-11-21', 'USD', 5, 50)");
  return sql;
}

const tokensOf = (rows: readonly { readonly kind: string; readonly tokens: number }[]) =>
  rows.map(({ kind, tokens }) => [kind, tokens]);

test.each([
  [
    'day',
    [
      ['spent', 300],
      ['unreported', 5],
    ],
    Date.UTC(2026, 10, 22),
  ],
  [
    'week',
    [
      ['spent', 20],
      ['spent', 300],
      ['unreported', 5],
    ],
    Date.UTC(2026, 10, 23),
  ],
  [
    'month',
    [
      ['spent', 20],
      ['spent', 300],
      ['unreported', 5],
    ],
    END_OF_MONTH,
  ],
  [
    'total',
    [
      ['spent', 1],
      ['spent', 20],
      ['spent', 300],
      ['unreported', 5],
    ],
    null,
  ],
])('with a budget per %s, what its current period counts is kept until that ends', (per, kept, until) => {
  const limits = limitsOf({ per_user: { budget: { tokens: 1000, per } } });
  const spent = currentSpent(userObject(), limits, NOW);
  expect([tokensOf(spent.rows), spent.until]).toEqual([kept, until]);
});

test('without a budget for each user nothing is kept', () => {
  const spent = currentSpent(userObject(), limitsOf({ per_user: { rpm: 5 } }), NOW);
  expect(spent.rows).toEqual([]);
});

test('a key remembers it under the hash alone, and forgets it with the period', () => {
  const limits = limitsOf({ per_user: { budget: { tokens: 1000, per: 'month' } } });
  const key = new MemorySql();
  expect([keptSpent(key, HASH, NOW), forgetSpent(key, NOW, false), hasErasedSpent(key)]).toEqual([
    [],
    null,
    false,
  ]);
  keepSpent(key, { hash: HASH, ...currentSpent(userObject(), limits, NOW) });
  expect(tokensOf(keptSpent(key, HASH, NOW))).toHaveLength(3);
  expect(keptSpent(key, 'another hash', NOW)).toEqual([]);
  expect(keptSpent(key, HASH, END_OF_MONTH)).toEqual([]);
  expect(forgetSpent(key, NOW, false)).toBe(END_OF_MONTH);
  expect(forgetSpent(key, END_OF_MONTH, false)).toBeNull();
  expect(hasErasedSpent(key)).toBe(false);
});

test('a revoked key forgets it, also that of a budget without an end', () => {
  const limits = limitsOf({ per_user: { budget: { tokens: 1000, per: 'total' } } });
  const key = new MemorySql();
  keepSpent(key, { hash: HASH, ...currentSpent(userObject(), limits, NOW) });
  expect([forgetSpent(key, NOW, false), hasErasedSpent(key)]).toEqual([null, true]);
  forgetSpent(key, NOW, true);
  expect(hasErasedSpent(key)).toBe(false);
});

test('a second erasure in the period replaces what the first one kept', () => {
  const limits = limitsOf({ per_user: { budget: { tokens: 1000, per: 'day' } } });
  const key = new MemorySql();
  const again = userObject();
  again.exec("UPDATE spent SET tokens = 700 WHERE day = '2026-11-21'");
  for (const sql of [userObject(), again]) keepSpent(key, { hash: HASH, ...currentSpent(sql, limits, NOW) });
  expect(tokensOf(keptSpent(key, HASH, NOW))).toEqual([
    ['spent', 700],
    ['unreported', 5],
  ]);
});

test('the new object of the user has it, and does not report it to the key a second time', () => {
  const limits = limitsOf({ per_user: { budget: { tokens: 1000, per: 'month' } } });
  const sql = new MemorySql();
  createLimitTables(sql);
  const reports = new Reports(sql, null);
  reports.create(0);
  restoreSpent(sql, currentSpent(userObject(), limits, NOW).rows);
  expect(tokensOf(currentSpent(sql, limits, NOW).rows)).toHaveLength(3);
  expect(reports.next().charges).toEqual([]);
  sql.exec("UPDATE spent SET tokens = tokens + 7 WHERE day = '2026-11-21'");
  expect(reports.next().charges).toMatchObject([{ kind: 'spent', day: '2026-11-21', tokens: 7 }]);
});

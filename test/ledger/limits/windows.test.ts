/** Several budgets of one key, what admins add to them, and how both are stored. */
import { describe, expect, test } from 'vitest';
import {
  type Budget,
  encodeLimits,
  type Limits,
  NO_LIMITS,
  readLimits,
  showLimits,
  tightestUse,
  writeLimits,
} from '../../../src/auth/key-limits.ts';
import { limitHeaders, refusalResponse } from '../../../src/ledger/limits/limit-responses.ts';
import { readLimitStatus, storedLimits } from '../../../src/ledger/limits/limit-tables.ts';
import { settle } from '../../../src/ledger/limits/reservations.ts';
import { addToBudget, currentTopUps } from '../../../src/ledger/limits/top-ups.ts';
import { limitsOf, MemorySql, NOW, used } from './memory-sql.ts';

const DAY_MS = 86_400_000;
const DAILY = { USD: 20, per: 'day', mode: 'hard' };
const MONTHLY = { USD: 300, per: 'month', mode: 'hard' };
const TOKENS = { tokens: 1_000_000, per: 'total', mode: 'hard' };
const THREE = { budget: [DAILY, MONTHLY, TOKENS] };

describe('several budgets of a key', () => {
  test('are shown as they were requested, and one as before', () => {
    expect(writeLimits(limitsOf(THREE))).toEqual(THREE);
    expect(writeLimits(limitsOf({ budget: [DAILY] }))).toEqual({ budget: DAILY });
  });

  test('are stored as one hard budget and short texts beside it, which read the same', () => {
    const limits = limitsOf({ ...THREE, per_user: { budget: { USD: 1 } } });
    const stored = encodeLimits(limits);
    expect(stored).toEqual({
      budget: DAILY,
      windows: ['USD 300 month', 'tokens 1000000 total'],
      per_user: { budget: { USD: 1, per: 'total', mode: 'hard' } },
    });
    expect(readLimits(stored ?? {})).toEqual({ kind: 'limits', limits });
    expect(showLimits(stored)).toMatchObject(THREE);
  });

  test.each(['warn', 'running'])('are stored in their mode: %s', (mode) => {
    const budget = [DAILY, MONTHLY].map((one) => ({ ...one, mode }));
    const limits = limitsOf({ budget });
    expect(readLimits(encodeLimits(limits) ?? {})).toEqual({ kind: 'limits', limits });
    expect(showLimits(encodeLimits(limits))).toMatchObject({ budget });
  });

  test('a week is stored as what earlier versions know, and never allows more there', () => {
    const week = { USD: 5, per: 'week', mode: 'hard' };
    const limits = limitsOf({ budget: [week, DAILY], per_user: { budget: { ...week, mode: 'running' } } });
    const stored = encodeLimits(limits);
    expect(stored).toEqual({
      budget: { USD: 5, per: 'total', mode: 'hard' },
      windows: ['USD 20 day'],
      per_user: { budget: { USD: 5, per: 'total', mode: 'hard' } },
      user_mode: 'running',
      per: 'week',
      user_per: 'week',
    });
    expect(readLimits(stored ?? {})).toEqual({ kind: 'limits', limits });
    const later = limitsOf({ budget: [DAILY, week, { ...week, per: 'total' }] });
    expect(readLimits(encodeLimits(later) ?? {})).toEqual({ kind: 'limits', limits: later });
    const both = limitsOf({ budget: [week, { ...week, per: 'total' }] });
    expect(readLimits(encodeLimits(both) ?? {})).toEqual({ kind: 'limits', limits: both });
    expect(showLimits(encodeLimits(both))).toEqual({ budget: [week, { ...week, per: 'total' }] });
  });

  test.each([
    ['an amount with decimals', 0.000_000_001],
    ['the largest amount', 1_000_000],
  ])('are stored exactly: %s', (_, USD) => {
    const limits = limitsOf({ budget: [DAILY, { USD, per: 'total' }] });
    expect(readLimits(encodeLimits(limits) ?? {})).toEqual({ kind: 'limits', limits });
  });

  test.each([
    ['none', []],
    ['five', [1, 2, 3, 4, 5].map((USD) => ({ USD, per: 'day' }))],
    ['two of one unit and period', [DAILY, { ...DAILY, USD: 1 }]],
    ['two currencies', [DAILY, { CNY: 5, per: 'month' }]],
    ['two modes', [DAILY, { ...MONTHLY, mode: 'warn' }]],
    ['no budget', [DAILY, null]],
    ['a list in a list', [[DAILY]]],
  ])('are refused: %s', (_, budget) => {
    expect(readLimits({ budget })).toMatchObject({ kind: 'invalid', param: 'budget' });
  });

  test('of each user are refused', () => {
    expect(readLimits({ per_user: THREE })).toMatchObject({ kind: 'invalid', param: 'per_user' });
  });

  test('are replaced as a whole, and kept where a change names other limits', () => {
    const before = limitsOf(THREE);
    const read = (body: object) => readLimits({ ...body }, before);
    expect(read({ rpm: 1 })).toEqual({ kind: 'limits', limits: { ...before, rpm: 1 } });
    expect(read({ budget: DAILY })).toEqual({ kind: 'limits', limits: limitsOf({ budget: DAILY }) });
    expect(read({ budget: null })).toEqual({ kind: 'limits', limits: NO_LIMITS });
  });

  test('all hold: a request needs room in each, and the refusal is that of the one with room last', () => {
    // A request of the helper costs 190,000 nano-dollars.
    const sql = new MemorySql({
      budget: [
        { USD: 0.0004, per: 'day' },
        { USD: 0.0005, per: 'month' },
      ],
    });
    expect([sql.reserve('a').kind, sql.reserve('b').kind]).toEqual(['reserved', 'reserved']);
    settle(sql, 'a', used(100, 190_000), NOW);
    settle(sql, 'b', used(100, 190_000), NOW);
    expect(sql.reserve('c')).toMatchObject({ kind: 'refused', refusal: { kind: 'budget', window: 1 } });
    const tomorrow = sql.reserve('d', {}, NOW + DAY_MS);
    expect(tomorrow).toMatchObject({ kind: 'refused', refusal: { kind: 'budget', window: 1 } });
    if (tomorrow.kind !== 'refused') throw new Error();
    const { error, headers } = refusalResponse(tomorrow.refusal, tomorrow.standing);
    expect(error.message).toContain('a budget of 0.0005 USD a month: 0.00038 USD are spent');
    expect(Number(headers['retry-after'])).toBeGreaterThan(86_400);
    expect(sql.reserve('e', {}, NOW + 15 * DAY_MS).kind).toBe('reserved');
  });

  test('in tokens and in money are counted in their units', () => {
    const sql = new MemorySql({ budget: [{ USD: 100 }, { tokens: 150, per: 'day' }] });
    expect(sql.reserve('a').kind).toBe('reserved');
    expect(sql.reserve('b')).toMatchObject({ refusal: { kind: 'budget', needed: 100, window: 1 } });
  });

  test('report what is left of the tightest one', () => {
    const sql = new MemorySql(THREE);
    sql.reserve('a');
    settle(sql, 'a', used(100, 19_000_000_000), NOW);
    const status = readLimitStatus(sql, NOW);
    expect(tightestUse(status)?.budget).toMatchObject({ per: 'day' } satisfies Partial<Budget>);
    expect(limitHeaders(status)['x-weir-budget-remaining']).toBe('1.00 USD');
  });

  test('an earlier version refuses the stored row, because it does not know its fields', () => {
    const sql = new MemorySql(THREE);
    const [row] = sql.exec<{ json: string }>('SELECT json FROM limits').toArray();
    const known = ['version', 'budget', 'rpm', 'tpm', 'max_concurrent', 'max_output_tokens', 'per_user'];
    const unknown = Object.keys(JSON.parse(row?.json ?? '{}')).filter((field) => !known.includes(field));
    expect(unknown).toEqual(['windows']);
    expect(storedLimits(sql)).toEqual(limitsOf(THREE));
  });
});

describe('what is added to a budget', () => {
  const added = { id: 'a', actor: 'ada', note: '', unit: 'USD', amount: 10_000_000_000, per: null } as const;
  const both = { budget: [DAILY, MONTHLY] };
  const sqlOf = (limits: object): { readonly sql: MemorySql; readonly limits: Limits } => {
    const sql = new MemorySql({ ...limits });
    return { sql, limits: storedLimits(sql) };
  };
  const limitAt = (sql: MemorySql, now: number) => tightestUse(readLimitStatus(sql, now))?.budget.amount;

  test('raises the limit of the current period alone, once for each id', () => {
    const { sql, limits } = sqlOf({ budget: DAILY });
    expect(addToBudget(sql, limits, added, NOW)).toMatchObject({ kind: 'added', isNew: true });
    expect(addToBudget(sql, limits, added, NOW)).toMatchObject({ kind: 'added', isNew: false });
    expect(limitAt(sql, NOW)).toBe(30_000_000_000);
    expect(limitAt(sql, NOW + DAY_MS)).toBe(20_000_000_000);
    addToBudget(sql, limits, { ...added, id: 'b' }, NOW + DAY_MS);
    expect(limitAt(sql, NOW + DAY_MS)).toBe(30_000_000_000);
    expect(currentTopUps(sql, limits, NOW + DAY_MS).map(({ id }) => id)).toEqual(['b']);
  });

  test('lets a request pass that was refused', () => {
    const { sql, limits } = sqlOf({ budget: { USD: 0.0001, per: 'day' } });
    expect(sql.reserve('a').kind).toBe('refused');
    addToBudget(sql, limits, added, NOW);
    expect(sql.reserve('a').kind).toBe('reserved');
  });

  test('stays with a total budget', () => {
    const { sql, limits } = sqlOf({ budget: { USD: 20 } });
    addToBudget(sql, limits, added, NOW);
    expect(limitAt(sql, NOW + 500 * DAY_MS)).toBe(30_000_000_000);
  });

  test('raises the budget that per names', () => {
    const { sql, limits } = sqlOf(both);
    addToBudget(sql, limits, { ...added, per: 'month' }, NOW);
    const { budget, windows } = readLimitStatus(sql, NOW);
    expect([budget?.added, windows?.[0]?.added]).toEqual([undefined, 10_000_000_000]);
  });

  test.each([
    ['per is missing where two budgets have the unit', both, added, 'per'],
    ['the key has no budget in the unit', both, { ...added, unit: 'CNY' }, 'add'],
    ['the key has no such period', both, { ...added, per: 'total' } as const, 'add'],
    ['the key has no budget', { rpm: 5 }, added, 'add'],
    ['the sum is above the largest budget', { budget: DAILY }, { ...added, amount: 1e15 }, 'add'],
  ])('is refused where %s', (_, of, topUp, param) => {
    const { sql, limits } = sqlOf(of);
    expect(addToBudget(sql, limits, topUp, NOW)).toMatchObject({ kind: 'invalid', param });
    expect(sql.count('top_ups')).toBe(0);
  });

  test('is refused where its id has added another amount, and after 100 in a period', () => {
    const { sql, limits } = sqlOf({ budget: DAILY });
    for (let i = 0; i < 100; i++) addToBudget(sql, limits, { ...added, id: `n${i}`, amount: 1 }, NOW);
    expect(addToBudget(sql, limits, { ...added, id: 'n5', amount: 2 }, NOW)).toMatchObject({ param: 'id' });
    expect(addToBudget(sql, limits, added, NOW)).toMatchObject({ kind: 'invalid', param: 'add' });
    expect(addToBudget(sql, limits, added, NOW + DAY_MS)).toMatchObject({ kind: 'added' });
  });
});

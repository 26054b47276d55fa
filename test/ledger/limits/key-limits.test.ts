/** Limits of keys as requests set them: valid and invalid fields, and amounts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  enforcedBudgets,
  enforcedCurrencies,
  expectedOutputLimit,
  formatAmount,
  readAmount,
  readLimits,
  writeAmount,
  writeLimits,
} from '../../../src/auth/key-limits.ts';
import { limitsOf } from './memory-sql.ts';

describe('G1 readLimits', () => {
  test('reads money as integers of 10^-9, and adds defaults', () => {
    expect(limitsOf({ budget: { USD: 0.1 } }).budget).toEqual({
      unit: 'USD',
      amount: 100_000_000,
      per: 'total',
      mode: 'hard',
    });
    expect(limitsOf({ budget: { tokens: 2_000_000, per: 'day', mode: 'warn' } }).budget).toEqual({
      unit: 'tokens',
      amount: 2_000_000,
      per: 'day',
      mode: 'warn',
    });
  });

  test.each([
    ['several amounts', { USD: 5, EUR: 5 }],
    ['no amount', { per: 'day' }],
    ['an unknown field', { USD: 5, mood: 'hard' }],
    ['a currency in small letters', { usd: 5 }],
    ['a name that every object has', { constructor: 5 }],
    ['a negative amount', { USD: -1 }],
    ['an amount as text', { USD: '5' }],
    ['an amount that is null', { USD: null }],
    ['an endless amount', { USD: 1e308 }],
    ['more than a million', { USD: 1_000_000.01 }],
    ['ten decimals', { USD: 0.000_000_000_1 }],
    ['half a token', { tokens: 0.5 }],
    ['more tokens than are exact', { tokens: 2 ** 53 }],
    ['an unknown period', { USD: 5, per: 'year' }],
    ['an unknown mode', { USD: 5, mode: 'soft' }],
    ['a list', [5]],
    ['a number', 5],
  ])('refuses a budget with %s, and says what it should be', (_, budget) => {
    expect(readLimits({ budget })).toMatchObject({ kind: 'invalid', param: 'budget' });
  });

  test.each(['rpm', 'tpm', 'max_concurrent', 'max_output_tokens'])(
    'takes %s as a whole number from 1 up, or null',
    (field) => {
      expect(writeLimits(limitsOf({ [field]: 7 }))).toEqual({ [field]: 7 });
      expect(writeLimits(limitsOf({ [field]: null }))).toBeNull();
      for (const value of [0, -1, 1.5, '7', true, {}, 1e300]) {
        expect(readLimits({ [field]: value })).toMatchObject({ kind: 'invalid', param: field });
      }
    },
  );

  test('with earlier limits: an absent field keeps a limit, null removes it, a value replaces it', () => {
    const before = limitsOf({ budget: { USD: 5 }, rpm: 10, tpm: 100 });
    const read = readLimits({ rpm: 20, tpm: null }, before);
    expect(read).toEqual({
      kind: 'limits',
      limits: { ...before, rpm: 20, tpm: null },
    });
  });

  test('reads what writeLimits writes', () => {
    const nano = fc.integer({ min: 0, max: 1e15 });
    fc.assert(
      fc.property(nano, fc.constantFrom('day', 'month', 'total'), fc.nat(), (amount, per, rpm) => {
        const limits = limitsOf({ budget: { EUR: 1, per, mode: 'warn' }, rpm: rpm + 1 });
        if (limits.budget === null) throw new Error('There is a budget');
        const exact = readAmount(writeAmount(amount, 'EUR'), 'EUR');
        expect(exact).toBe(amount);
        const whole = { ...limits, budget: { ...limits.budget, amount } };
        expect(limitsOf(JSON.parse(JSON.stringify(writeLimits(whole))))).toEqual(whole);
      }),
    );
  });
});

test.each([
  [0, 'USD', '0.00 USD'],
  [1, 'USD', '0.000000001 USD'],
  [5_250_000_000, 'USD', '5.25 USD'],
  [-520_000_000, 'EUR', '-0.52 EUR'],
  [1e15, 'USD', '1000000.00 USD'],
  [1_999_000, 'tokens', '1999000 tokens'],
])('formatAmount %d %s: %s', (amount, unit, text) => {
  expect(formatAmount(amount, unit)).toBe(text);
});

test.each([
  [{ budget: { USD: 5 } }, ['USD']],
  [{ budget: { tokens: 5 }, per_user: { budget: { EUR: 1 } } }, ['EUR']],
  [{ budget: { USD: 5 }, per_user: { budget: { USD: 1 } } }, ['USD']],
  [{ budget: { USD: 5, mode: 'warn' } }, []],
  [{ rpm: 1 }, []],
  [null, []],
])('G2 the currencies in which %j needs prices: %j', (limits, expected) => {
  expect(enforcedCurrencies(limits)).toEqual(expected);
});

test.each([
  ['a limit of the key, and a higher one', { max_output_tokens: 500 }, 800, 500],
  ['a limit of the key, and a lower one', { max_output_tokens: 500 }, 100, 100],
  ['a limit of the key, and none', { max_output_tokens: 500 }, null, 500],
  ['a hard budget, and none', { budget: { tokens: 9 } }, null, 4096],
  ['a hard budget, and a limit', { budget: { tokens: 9 } }, 9000, 9000],
  ['a hard budget of each user, and none', { per_user: { budget: { tokens: 9 } } }, null, 4096],
  ['a budget that only warns, and none', { budget: { tokens: 9, mode: 'warn' } }, null, null],
  ['a rate alone', { rpm: 1 }, null, null],
  ['limits that cannot be read', { rpm: 'x' }, null, null],
])('G2 the output limit that a key leaves of a request: %s', (_, fields, requested, expected) => {
  expect(expectedOutputLimit(fields)(requested)).toBe(expected);
});

test('the limits that KV lists for a key: a request reads them once, however often it asks for them', () => {
  let reads = 0;
  const limits = {
    get budget() {
      reads++;
      return { USD: 5 };
    },
  };
  enforcedBudgets(limits);
  const once = reads;
  enforcedCurrencies(limits);
  expectedOutputLimit(limits);
  expect(enforcedBudgets(limits)).toMatchObject([{ unit: 'USD' }]);
  expect(reads).toBe(once);
});

/** Reservations: which requests are admitted, what is reserved, and the wait of a refused request. */
import { describe, expect, test } from 'vitest';
import { periodName } from '../../../src/auth/key-limits.ts';
import { readLimitStatus, UnreadableRow } from '../../../src/ledger/limits/limit-tables.ts';
import { expire, type ReserveRequest, settle } from '../../../src/ledger/limits/reservations.ts';
import { MemorySql, MINUTE, NOW, used } from './memory-sql.ts';

function admitted(sql: MemorySql, count: number, now = NOW): number {
  const kinds = Array.from({ length: count }, (_, i) => sql.reserve(`${now}-${i}`, {}, now).kind);
  return kinds.filter((kind) => kind === 'reserved').length;
}

describe('G2 reserve under a hard budget', () => {
  test('in tokens: admits exactly as many upper bounds as the budget holds', () => {
    const sql = new MemorySql({ budget: { tokens: 100 * 100 } });
    expect(admitted(sql, 200)).toBe(100);
  });

  test('in money: the upper bound is the highest price of prompt and output, rounded up', () => {
    // 10 x 1,000,000 + 90 x 2,000,000 pico = 190,000 nano.
    const sql = new MemorySql({ budget: { USD: 0.019 } });
    expect(admitted(sql, 200)).toBe(100);
    const price = { currency: 'USD', prompt: 1, output: 0 };
    const tiny = new MemorySql({ budget: { USD: 0.000_000_002 } });
    expect(tiny.reserve('a', { price }).kind).toBe('reserved');
    expect(tiny.reserve('b', { price }).kind).toBe('reserved');
    expect(tiny.reserve('c', { price }).kind).toBe('refused');
  });

  test.each([
    ['none', undefined, 0],
    ['two', 2, 2],
    ['no limit: as many as 90 tokens of output can request', null, 12],
    ['more than the output has room for', 500, 12],
  ])('in money: the searches of a request, %s', (_, searches, counted) => {
    const price = { currency: 'USD', prompt: 0, output: 0, search: 1_000_000_000 };
    const sql = new MemorySql({ budget: { USD: 1 } });
    const fields = searches === undefined ? { price } : { price, searches };
    expect(sql.reserve('a', fields).kind).toBe('reserved');
    expect(readLimitStatus(sql, NOW).budget?.reserved).toBe(counted * 1_000_000);
  });

  test('counts each of several choices', () => {
    const sql = new MemorySql({ budget: { tokens: 279 } });
    expect(sql.reserve('a', { choices: 3 }).kind).toBe('refused');
    sql.limit({ budget: { tokens: 280 } });
    expect(sql.reserve('a', { choices: 3 }).kind).toBe('reserved');
  });

  test('a request without an output limit: reserves 4,096 tokens of output, which become its limit', () => {
    const sql = new MemorySql({ budget: { tokens: 4106 } });
    expect(sql.reserve('a', { outputTokens: null })).toMatchObject({ kind: 'reserved', outputTokens: 4096 });
    expect(readLimitStatus(sql, NOW).budget?.reserved).toBe(4106);
  });

  test('called twice for one request: reserves once and returns the same', () => {
    const sql = new MemorySql({ budget: { tokens: 150 }, rpm: 1 });
    expect(sql.reserve('a')).toMatchObject({ kind: 'reserved', outputTokens: 90 });
    expect(sql.reserve('a')).toMatchObject({ kind: 'reserved', outputTokens: 90 });
    expect(sql.count('reservations')).toBe(1);
    expect(readLimitStatus(sql, NOW).requests?.used).toBe(1);
  });

  test.each([
    ['no price is known', null],
    ['the price is in another currency', { currency: 'CNY', prompt: 1, output: 1 }],
  ])('in money where %s: refuses, because the cost is unknown', (_, price) => {
    const sql = new MemorySql({ budget: { USD: 5 } });
    expect(sql.reserve('a', { price })).toMatchObject({ kind: 'refused', refusal: { kind: 'unpriced' } });
    sql.limit({ budget: { tokens: 1000 } });
    expect(sql.reserve('a', { price }).kind).toBe('reserved');
  });

  test('does not overflow: a cost above all exact integers is above the budget', () => {
    const sql = new MemorySql({ budget: { USD: 1_000_000 } });
    const price = { currency: 'USD', prompt: Number.MAX_SAFE_INTEGER, output: Number.MAX_SAFE_INTEGER };
    const request = { promptTokens: 1e9, outputTokens: Number.MAX_SAFE_INTEGER, choices: 1e6, price };
    expect(sql.reserve('a', request)).toMatchObject({ kind: 'refused', refusal: { kind: 'budget' } });
    expect(sql.reserve('b').kind).toBe('reserved');
  });

  test('a refused request leaves nothing behind', () => {
    const sql = new MemorySql({ budget: { tokens: 99 }, rpm: 10, tpm: 1000 });
    expect(sql.reserve('a').kind).toBe('refused');
    expect([sql.count('reservations'), sql.count('spent'), sql.count('seconds')]).toEqual([0, 0, 0]);
  });
});

test('G2 reserve under a budget that warns: refuses nothing, reserves nothing, and reports', () => {
  const sql = new MemorySql({ budget: { tokens: 10, mode: 'warn' } });
  expect(admitted(sql, 5)).toBe(5);
  settle(sql, `${NOW}-0`, used(25), NOW);
  expect(readLimitStatus(sql, NOW).budget).toMatchObject({ spent: 25, reserved: 0 });
});

describe('G1 max_output_tokens', () => {
  test.each([
    ['lowers what the caller asks for', 50, 50],
    ['leaves what is below it', 200, 90],
  ])('%s', (_, max_output_tokens, outputTokens) => {
    const sql = new MemorySql({ max_output_tokens });
    expect(sql.reserve('a')).toMatchObject({ kind: 'reserved', outputTokens });
  });

  test('applies where the client sets no limit; without it only a hard budget sets one', () => {
    const cases = [
      [{ max_output_tokens: 50 }, 50],
      [{ rpm: 5 }, null],
      [{ budget: { USD: 5, mode: 'warn' } }, null],
      [{ budget: { USD: 5 }, max_output_tokens: 70 }, 70],
    ] as const;
    for (const [limits, outputTokens] of cases) {
      expect(new MemorySql(limits).reserve('a', { outputTokens: null })).toMatchObject({ outputTokens });
    }
  });
});

describe('G5 the wait of a refused request', () => {
  test('budget: until the period ends; a second where running requests hold it; null where the request is too large', () => {
    const sql = new MemorySql({ budget: { tokens: 150, per: 'month' } });
    sql.reserve('a');
    expect(sql.reserve('b')).toMatchObject({ refusal: { kind: 'budget', needed: 100, waitMs: 1000 } });
    settle(sql, 'a', used(100), NOW);
    const untilDecember = Date.UTC(2026, 11, 1) - NOW;
    expect(sql.reserve('b')).toMatchObject({ refusal: { waitMs: untilDecember } });
    expect(sql.reserve('b', { promptTokens: 61 })).toMatchObject({ refusal: { waitMs: null } });
    sql.limit({ budget: { tokens: 150, per: 'total' } });
    expect(sql.reserve('b')).toMatchObject({ refusal: { waitMs: null } });
  });

  test('max_concurrent: a second; it is admitted when another request has ended', () => {
    const sql = new MemorySql({ max_concurrent: 2 });
    expect(admitted(sql, 5)).toBe(2);
    expect(sql.reserve('late')).toMatchObject({ refusal: { kind: 'concurrency', waitMs: 1000 } });
    settle(sql, `${NOW}-1`, used(5), NOW);
    expect(sql.reserve('late').kind).toBe('reserved');
  });
});

describe('G4 periods, in UTC', () => {
  const lastMoment = Date.UTC(2026, 10, 30, 23, 59, 59, 999);

  test.each([
    ['day', lastMoment, lastMoment + 1],
    ['month', lastMoment, lastMoment + 1],
    // A Sunday and a Monday.
    ['week', Date.UTC(2026, 10, 29, 23, 59, 59, 999), Date.UTC(2026, 10, 30)],
    ['week', Date.UTC(2027, 0, 3, 23, 59, 59), Date.UTC(2027, 0, 4)],
    ['month', Date.UTC(2028, 1, 29, 23, 59, 59), Date.UTC(2028, 2, 1)],
    ['month', Date.UTC(2026, 11, 31, 23, 59, 59), Date.UTC(2027, 0, 1)],
  ])('per %s: what was spent at the end of one period is not of the next', (per, before, after) => {
    const sql = new MemorySql({ budget: { tokens: 200, per } });
    expect(admitted(sql, 3, before)).toBe(2);
    expect(readLimitStatus(sql, before).budget?.resetsAt).toBe(
      Date.parse(new Date(after).toISOString().slice(0, 10)),
    );
    expect(admitted(sql, 3, after)).toBe(2);
    expect(readLimitStatus(sql, before).budget?.reserved).toBe(200);
  });

  test('per week: days of two months and years count together', () => {
    for (const monday of [Date.UTC(2026, 10, 30), Date.UTC(2026, 11, 28)]) {
      const sql = new MemorySql({ budget: { tokens: 700, per: 'week' } });
      for (let day = 0; day < 7; day++) expect(admitted(sql, 1, monday + day * 24 * 60 * MINUTE)).toBe(1);
      expect(admitted(sql, 1, monday + 7 * 24 * 60 * MINUTE - 1)).toBe(0);
      // All but the last have expired.
      const { spent = 0, reserved = 0 } = readLimitStatus(sql, monday).budget ?? {};
      expect(spent + reserved).toBe(700);
    }
  });

  test.each([
    [Date.UTC(2026, 0, 1), '2026-W01'],
    [Date.UTC(2026, 10, 29, 23, 59), '2026-W48'],
    [Date.UTC(2026, 10, 30), '2026-W49'],
    [Date.UTC(2027, 0, 3), '2026-W53'],
    [Date.UTC(2027, 0, 4), '2027-W01'],
    [Date.UTC(2024, 11, 30), '2025-W01'],
  ])('the name of the week at %s is %s, as ISO 8601 has it', (ms, name) => {
    expect(periodName('week', ms)).toBe(name);
  });

  test('a request that ends in the next period counts in the period of its reservation', () => {
    const sql = new MemorySql({ budget: { tokens: 100, per: 'month' } });
    sql.reserve('a', {}, lastMoment);
    settle(sql, 'a', used(90), NOW);
    expect(readLimitStatus(sql, lastMoment).budget?.spent).toBe(90);
    expect(readLimitStatus(sql, lastMoment + 5 * MINUTE).budget?.spent).toBe(0);
    expect(sql.reserve('b', {}, lastMoment + 5 * MINUTE).kind).toBe('reserved');
  });

  test('per total: never ends', () => {
    const sql = new MemorySql({ budget: { tokens: 100 } });
    sql.reserve('a');
    settle(sql, 'a', used(60), NOW);
    expect(sql.reserve('b', {}, Date.UTC(2036, 0, 1)).kind).toBe('refused');
    expect(readLimitStatus(sql, Date.UTC(2036, 0, 1)).budget).toMatchObject({ spent: 60, resetsAt: null });
  });

  test('a budget with a changed amount, unit or period counts what was spent before', () => {
    const sql = new MemorySql({ budget: { tokens: 1000, per: 'day' } });
    sql.reserve('a');
    settle(sql, 'a', used(40, 7_000_000), NOW);
    sql.reserve('running');
    const changes = [
      [
        { tokens: 50, per: 'month' },
        { spent: 40, reserved: 100 },
      ],
      [
        { USD: 3, per: 'total' },
        { spent: 7_000_000, reserved: 190_000 },
      ],
      [
        { EUR: 3, per: 'total' },
        { spent: 0, reserved: 0 },
      ],
      [
        { tokens: 50, mode: 'warn' },
        { spent: 40, reserved: 0 },
      ],
      [{ tokens: 50 }, { spent: 40, reserved: 100 }],
    ] as const;
    for (const [budget, standing] of changes) {
      sql.limit({ budget });
      expect(readLimitStatus(sql, NOW).budget).toMatchObject(standing);
    }
  });
});

describe('G1 an object without limits', () => {
  test('takes those that a request lists, once', () => {
    const sql = new MemorySql();
    expect(sql.reserve('a', { limits: { rpm: 1 } })).toMatchObject({ kind: 'reserved' });
    expect(sql.reserve('b', { limits: { rpm: 100 } })).toMatchObject({ kind: 'refused' });
    sql.limit({ rpm: null });
    for (const id of ['c', 'd'])
      expect(sql.reserve(id, { limits: { rpm: 1 } })).toMatchObject({ kind: 'reserved' });
  });

  test('refuses where a request lists none, and stores nothing', () => {
    const sql = new MemorySql();
    for (const fields of [{}, { limits: null }])
      expect(() => sql.reserve('a', fields)).toThrow(UnreadableRow);
    expect([sql.count('reservations'), sql.count('limits')]).toEqual([0, 0]);
  });
});

test('no leak: after 4,000 requests there is no reservation, and as many seconds as a window has', () => {
  const sql = new MemorySql({
    budget: { tokens: 1e9, per: 'month' },
    rpm: 1e6,
    tpm: 1e9,
    max_concurrent: 50,
  });
  let now = NOW;
  for (let i = 0; i < 4000; i++) {
    now += 37;
    expect(sql.reserve(`r${i}`, {}, now).kind).toBe('reserved');
    // One in fifty is never settled.
    if (i % 50 !== 0) settle(sql, `r${i}`, used(20, 30), now);
    if (i % 500 === 499) expire(sql, now + 11 * MINUTE);
  }
  expect(sql.count('reservations')).toBe(0);
  expect(sql.count('seconds')).toBeLessThanOrEqual(61);
  expect(sql.count('spent')).toBe(1);
  expect(readLimitStatus(sql, now).budget).toMatchObject({
    spent: 3920 * 20 + 80 * 100,
    reserved: 0,
    estimated: 8000,
  });
});

describe('G3 further attempts of one request', () => {
  test('are reserved in addition to the first, once each, and no rate counts them', () => {
    const sql = new MemorySql({ budget: { tokens: 350 }, rpm: 1, max_concurrent: 1 });
    for (const attempts of [1, 2, 2, 3, 1]) expect(sql.reserve('a', { attempts }).kind).toBe('reserved');
    expect(readLimitStatus(sql, NOW)).toMatchObject({
      budget: { reserved: 300 },
      requests: { used: 1 },
      running: 1,
    });
  });

  test('are refused where the budget has no room, and the reservation stays', () => {
    const sql = new MemorySql({ budget: { tokens: 250 } });
    sql.reserve('a', { attempts: 2 });
    expect(sql.reserve('a', { attempts: 3 })).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'budget', needed: 100 },
    });
    expect(readLimitStatus(sql, NOW)).toMatchObject({ budget: { reserved: 200 } });
  });
});

test('G9 a running budget reserves a search for each 500 tokens of output so far, a hard one for each that fits', () => {
  const price = { currency: 'USD', prompt: 0, output: 0, search: 10_000_000_000 };
  const reservedIn = (mode: string, likely?: ReserveRequest['likely']) => {
    const sql = new MemorySql({ budget: { USD: 1000, mode } });
    sql.reserve('a', { price, searches: null, outputTokens: 8000, ...(likely && { likely }) });
    return readLimitStatus(sql, NOW).budget?.reserved;
  };
  const likely = { promptTokens: 10, outputTokens: 2000 };
  const oneSearch = 10_000_000;
  expect(reservedIn('running', likely)).toBe(4 * oneSearch);
  expect(reservedIn('hard')).toBe(1000 * oneSearch);
});

test('a status reads each budget with one statement, as each costs a request more than the rows that it sums', () => {
  const sql = new MemorySql({
    budget: [
      { USD: 5, per: 'day' },
      { tokens: 900, per: 'week' },
    ],
  });
  sql.reserve('a');
  const queries: string[] = [];
  const counted = {
    exec: <Row>(query: string, ...bindings: readonly SqlStorageValue[]) => {
      queries.push(query);
      return sql.exec<Row>(query, ...bindings);
    },
  };
  readLimitStatus(counted, NOW);
  expect(queries.filter((query) => query.includes('FROM spent'))).toHaveLength(2);
  expect(queries).toHaveLength(3);
});

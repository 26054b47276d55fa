/** The sliding minute of rpm and tpm: exact under bursts, with exact waits and reset times. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readLimitStatus } from '../../../src/ledger/limits/limit-tables.ts';
import { settle } from '../../../src/ledger/limits/reservations.ts';
import { MemorySql, MINUTE, NOW, used } from './memory-sql.ts';

describe('G2 rpm', () => {
  test('a burst of 200 against 100: exactly 100 pass', () => {
    const sql = new MemorySql({ rpm: 100 });
    const kinds = Array.from({ length: 200 }, (_, i) => sql.reserve(`r${i}`).kind);
    expect(kinds.filter((kind) => kind === 'reserved')).toHaveLength(100);
  });

  test('no 60 seconds have more than the limit, whatever the arrival times', () => {
    const steps = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (gaps, rpm) => {
        const sql = new MemorySql({ rpm });
        const passed: number[] = [];
        let now = NOW + 137;
        for (const [i, gap] of gaps.entries()) {
          now += gap;
          if (sql.reserve(`r${i}`, {}, now).kind === 'reserved') passed.push(now);
        }
        for (const [i, at] of passed.entries()) {
          const next = passed[i + rpm];
          if (next !== undefined) expect(next - at).toBeGreaterThan(MINUTE - 1);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('the wait of a refused request is the shortest after which it is admitted', () => {
    const sql = new MemorySql({ rpm: 3 });
    for (const [i, at] of [0, 2500, 31_200].entries()) sql.reserve(`r${i}`, {}, NOW + at);
    const refused = sql.reserve('late', {}, NOW + 40_000);
    expect(refused).toMatchObject({ refusal: { kind: 'rpm', waitMs: 21_000 } });
    expect(sql.reserve('late', {}, NOW + 60_999).kind).toBe('refused');
    expect(sql.reserve('late', {}, NOW + 61_000).kind).toBe('reserved');
  });

  test('the reset is when no request counts any more', () => {
    const sql = new MemorySql({ rpm: 3 });
    sql.reserve('a', {}, NOW + 500);
    expect(sql.reserve('b', {}, NOW + 10_250)).toMatchObject({
      standing: { requests: { used: 2, resetMs: 60_750 } },
    });
    expect(readLimitStatus(sql, NOW + 71_000 - 1).requests).toEqual({ used: 1, resetMs: 1 });
    expect(readLimitStatus(sql, NOW + 71_000).requests).toEqual({ used: 0, resetMs: 0 });
  });
});

describe('G2 tpm', () => {
  test('counts the estimate and the output limit, then the actual tokens', () => {
    const sql = new MemorySql({ tpm: 200 });
    sql.reserve('a');
    expect(readLimitStatus(sql, NOW).tokens?.used).toBe(94);
    settle(sql, 'a', used(150), NOW);
    expect(readLimitStatus(sql, NOW + 5000).tokens?.used).toBe(150);
    expect(sql.reserve('b', {}, NOW + 5000)).toMatchObject({
      refusal: { kind: 'tpm', needed: 94, waitMs: 56_000 },
    });
    expect(sql.reserve('b', {}, NOW + 61_000).kind).toBe('reserved');
  });

  test('a request that ends after its minute does not change the current one', () => {
    const sql = new MemorySql({ tpm: 1000 });
    sql.reserve('a');
    sql.reserve('b', {}, NOW + 61_000);
    settle(sql, 'a', used(900), NOW + 61_000);
    expect(readLimitStatus(sql, NOW + 61_000).tokens?.used).toBe(94);
  });

  test('a request larger than the limit has no wait', () => {
    const sql = new MemorySql({ tpm: 93 });
    expect(sql.reserve('a')).toMatchObject({ refusal: { kind: 'tpm', waitMs: null } });
  });
});

test('G2 a status of a busy minute reads one row of it, not one for each second', () => {
  const sql = new MemorySql({ rpm: 1000, tpm: 1e6 });
  for (let second = 0; second < 60; second++) sql.reserve(`r${second}`, {}, NOW + second * 1000);
  let rows = 0;
  const counted = {
    exec: <Row>(query: string, ...bindings: readonly SqlStorageValue[]) => {
      const found = sql.exec<Row>(query, ...bindings).toArray();
      if (query.includes('FROM seconds')) rows += found.length;
      return { toArray: () => found };
    },
  };
  expect(readLimitStatus(counted, NOW + 59_000)).toMatchObject({ requests: { used: 60 } });
  expect(rows).toBe(1);
});

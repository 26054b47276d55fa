/** Tests medians of time to first token and of tokens per second, from histograms (M5). */
import { describe, expect, test } from 'vitest';
import { Report } from '../../src/metering/report.ts';
import { percentilesOf, SPEED_BUCKETS } from '../../src/metering/speeds.ts';
import { seeded } from '../random.ts';
import { record } from './records.ts';

function totalOf(...records: Parameters<typeof record>[0][]) {
  const report = new Report([]);
  for (const one of records) report.addRecord(record(one));
  return report.total;
}

function exactMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

describe('M5 medians', () => {
  test('of many requests: within a tenth of the exact ones, at any speed', () => {
    const random = seeded(14);
    for (const scale of [15, 200, 3_000, 40_000]) {
      const records = Array.from({ length: 400 }, () => {
        const first_token_ms = Math.round(scale * (0.5 + random() + random()));
        const total_ms = first_token_ms + Math.round(1000 + 9000 * random());
        return { first_token_ms, total_ms, completion_tokens: Math.round(50 + 400 * random()) };
      });
      const total = totalOf(...records);
      const first = exactMedian(records.map((one) => one.first_token_ms));
      const rate = exactMedian(
        records.map((one) => (one.completion_tokens * 1000) / (one.total_ms - one.first_token_ms)),
      );
      expect(Math.abs((total.median_first_token_ms ?? 0) / first - 1)).toBeLessThan(0.1);
      expect(Math.abs((total.median_tokens_per_second ?? 0) / rate - 1)).toBeLessThan(0.1);
    }
  });

  test('p95 of the time and the rate that 95 % reach: within a seventh of the exact ones', () => {
    const random = seeded(27);
    const records = Array.from({ length: 2000 }, () => {
      const first_token_ms = Math.round(300 * (0.5 + random() + 9 * random() ** 8));
      return {
        first_token_ms,
        total_ms: first_token_ms + Math.round(1000 + 9000 * random()),
        completion_tokens: 300,
      };
    });
    const total = totalOf(...records);
    const first = records.map((one) => one.first_token_ms).sort((a, b) => a - b);
    const rates = records.map((one) => 300_000 / (one.total_ms - one.first_token_ms)).sort((a, b) => a - b);
    expect(Math.abs((total.p95_first_token_ms ?? 0) / (first[1900] ?? 1) - 1)).toBeLessThan(1 / 7);
    expect(Math.abs((total.p5_tokens_per_second ?? 0) / (rates[100] ?? 1) - 1)).toBeLessThan(1 / 7);
    expect(totalOf({ first_token_ms: null })).toMatchObject({
      p95_first_token_ms: null,
      p5_tokens_per_second: null,
    });
  });

  test('p99 and p1, and a distribution that counts each request once, in the range that has its value', () => {
    const random = seeded(31);
    const records = Array.from({ length: 3000 }, () => {
      const first_token_ms = Math.round(5 + 4000 * random() ** 4);
      return {
        first_token_ms,
        total_ms: first_token_ms + Math.round(100 + 9000 * random()),
        completion_tokens: 300,
      };
    });
    const report = new Report([]);
    for (const one of records) report.addRecord(record(one));
    const first = records.map((one) => one.first_token_ms).sort((a, b) => a - b);
    const rates = records.map((one) => 300_000 / (one.total_ms - one.first_token_ms)).sort((a, b) => a - b);
    expect(Math.abs((report.total.p99_first_token_ms ?? 0) / (first[2970] ?? 1) - 1)).toBeLessThan(1 / 4);
    expect(Math.abs((report.total.p1_tokens_per_second ?? 0) / (rates[30] ?? 1) - 1)).toBeLessThan(1 / 4);
    for (const [spread, values, tolerance] of [
      [report.distribution.first_token_ms, first, 1],
      [report.distribution.tokens_per_second, rates, 0.1],
    ] as const) {
      expect(spread.reduce((sum, { requests }) => sum + requests, 0)).toBe(3000);
      expect(spread[0]?.requests).toBeGreaterThan(0);
      expect(spread.at(-1)?.requests).toBeGreaterThan(0);
      for (const [i, { from, to, requests }] of spread.entries()) {
        if (i > 0) expect(from).toBe(spread[i - 1]?.to);
        const upTo = (bound: number) => values.filter((value) => value < bound).length;
        // The bounds are rounded.
        expect(requests).toBeLessThanOrEqual(upTo((to ?? Infinity) + tolerance) - upTo(from - tolerance));
        expect(requests).toBeGreaterThanOrEqual(upTo((to ?? Infinity) - tolerance) - upTo(from + tolerance));
      }
    }
    expect(new Report([]).distribution).toEqual({ first_token_ms: [], tokens_per_second: [] });
  });

  test('null without any text; no rate for an output that arrived at once', () => {
    expect(totalOf({ first_token_ms: null })).toMatchObject({
      median_first_token_ms: null,
      median_tokens_per_second: null,
    });
    expect(totalOf({ first_token_ms: 890, total_ms: 900 }).median_tokens_per_second).toBeNull();
    expect(totalOf({ first_token_ms: 890, total_ms: 900 }).median_first_token_ms).not.toBeNull();
  });

  test('values beyond all buckets still have medians', () => {
    const far = [{ first_token_ms: 0, total_ms: 10 ** 9, completion_tokens: 2 }, { first_token_ms: 10 ** 9 }];
    for (const one of far) {
      const { median_first_token_ms, median_tokens_per_second } = totalOf(one);
      expect(Number.isFinite(median_first_token_ms)).toBe(true);
      expect(median_tokens_per_second).not.toBeNaN();
    }
    expect(percentilesOf(Array.from({ length: SPEED_BUCKETS }, () => Number.MAX_SAFE_INTEGER))).not.toContain(
      NaN,
    );
  });
});

test('M5 cut_requests counts outputs that began and failed, cancelled_requests disconnected clients', () => {
  const total = totalOf(
    { status: 'failed', first_token_ms: 5 },
    { status: 'timed_out', first_token_ms: 5 },
    { status: 'failed', first_token_ms: null },
    { status: 'cancelled', first_token_ms: 5 },
    {},
  );
  expect(total).toMatchObject({ failed_requests: 3, cut_requests: 2, cancelled_requests: 1 });
});

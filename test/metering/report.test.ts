/** Tests the usage report (M5): groups, sums, and which requests count as failed. */
import { describe, expect, test } from 'vitest';
import type { UsageRecord } from '../../src/metering/record.ts';
import { amountsOf, type Group, OTHER, Report } from '../../src/metering/report.ts';
import { record } from './records.ts';

function reportOf(groups: readonly Group[], ...records: Partial<UsageRecord>[]): Report {
  const report = new Report(groups);
  for (const one of records) report.addRecord(record(one));
  return report;
}

describe('Report', () => {
  test('M5 stored counts with more cached tokens than the prompt has: the row has those of the prompt', () => {
    const counts = { prompt_tokens: 7, cached_tokens: 161, cache_write_tokens: 5 };
    const { total } = reportOf(['route'], counts);
    expect(total).toMatchObject({
      prompt_tokens: 7,
      cached_tokens: 7,
      cache_write_tokens: 0,
      cached_share: 1,
    });
  });

  test('M5 a row sums up every number of its records, with null as zero', () => {
    const { rows, total } = reportOf(
      ['route'],
      {
        prompt_tokens: 1,
        completion_tokens: 2,
        total_tokens: 3,
        cached_tokens: 4,
        cache_write_tokens: 6,
        reasoning_tokens: null,
      },
      {
        prompt_tokens: 10,
        completion_tokens: 20,
        total_tokens: 30,
        cached_tokens: null,
        cache_write_tokens: 1,
        reasoning_tokens: 5,
      },
    );
    const sums = {
      requests: 2,
      prompt_tokens: 11,
      completion_tokens: 22,
      total_tokens: 33,
      cached_tokens: 4,
      cache_write_tokens: 7,
      reasoning_tokens: 5,
      estimated_requests: 0,
      failed_requests: 0,
      unpriced_requests: 2,
      cancelled_requests: 0,
      cut_requests: 0,
      cached_share: 0.3636,
      median_first_token_ms: 140,
      median_tokens_per_second: 3.4,
      p95_first_token_ms: 167,
      p99_first_token_ms: 170,
      p5_tokens_per_second: 2.3,
      p1_tokens_per_second: 2.3,
      cost: {},
      estimated_cost: {},
    };
    expect(rows).toEqual([{ route: 'chat', ...sums }]);
    expect(total).toEqual(sums);
    expect(Object.keys(rows[0] ?? {})).toEqual(['route', ...Object.keys(sums)]);
  });

  test.each<[group: Group, records: Partial<UsageRecord>[], values: string[]]>([
    [
      'day',
      [{ time: '2026-11-02T23:59:59.999Z' }, { time: '2026-11-01T00:00:00.000Z' }],
      ['2026-11-01', '2026-11-02'],
    ],
    [
      'hour',
      [{ time: '2026-11-02T01:00:00.000Z' }, { time: '2026-11-01T23:59:59.999Z' }],
      ['2026-11-01T23:00Z', '2026-11-02T01:00Z'],
    ],
    ['provider', [{ provider: 'mistral' }, { provider: 'deepseek' }], ['deepseek', 'mistral']],
    [
      'model',
      [
        { provider: 'a', model: 'm' },
        { provider: 'b', model: 'm' },
      ],
      ['a/m', 'b/m'],
    ],
    ['route', [{ route: 'fim' }, { route: 'chat' }], ['chat', 'fim']],
    ['status', [{ status: 'finished' }, { status: 'failed' }], ['failed', 'finished']],
    ['key', [{ key_id: 'b' }, { key_id: 'a' }], ['a', 'b']],
  ])('M5 grouped by %s: a row for each value, sorted by value', (group, records, values) => {
    const { rows } = reportOf([group], ...records, ...records);
    expect(rows.map((row) => row[group])).toEqual(values);
    expect(rows.map((row) => row.requests)).toEqual([2, 2]);
  });

  test('M5 two groups: a row for each pair, in the order of the query', () => {
    const records = [
      { route: 'chat', key_id: 'b' },
      { route: 'chat', key_id: 'a' },
      { route: 'agents', key_id: 'b' },
    ];
    const byRoute = reportOf(['route', 'key'], ...records).rows;
    expect(byRoute.map(({ route, key }) => [route, key])).toEqual([
      ['agents', 'b'],
      ['chat', 'a'],
      ['chat', 'b'],
    ]);
    const byKey = reportOf(['key', 'route'], ...records).rows;
    expect(Object.keys(byKey[0] ?? {}).slice(0, 2)).toEqual(['key', 'route']);
    expect(byKey.map(({ key }) => key)).toEqual(['a', 'b', 'b']);
  });

  test('M5 values that are equal only when joined are two rows', () => {
    const records = [
      { provider: 'a', route: 'b,c' },
      { provider: 'a,b', route: 'c' },
    ];
    expect(reportOf(['provider', 'route'], ...records).rows).toHaveLength(2);
  });

  test('M5 no groups: one row for all records', () => {
    const { rows, total } = reportOf([], { key_id: 'a' }, { key_id: 'b' });
    expect(rows).toEqual([total]);
  });

  test('M5 no records: no rows, and a total of zeros', () => {
    const { rows, total } = reportOf(['day']);
    expect([rows, total.requests, total.total_tokens, total.cost]).toEqual([[], 0, 0, {}]);
  });

  test('M5 failed_requests counts failed and timed_out, and not cancelled', () => {
    const records = (['finished', 'failed', 'timed_out', 'cancelled'] as const).map((status) => ({ status }));
    expect(reportOf([], ...records).total).toMatchObject({ requests: 4, failed_requests: 2 });
  });

  test('M3 estimated_requests counts requests with estimated tokens', () => {
    expect(reportOf([], { estimated: true }, { estimated: false }).total.estimated_requests).toBe(1);
  });

  test('P5 cost and estimated_cost: one sum for each currency, in whole units', () => {
    const { total } = reportOf(
      [],
      { cost_nanos: 128_000, currency: 'USD' },
      { cost_nanos: 1, currency: 'USD', cost_estimated: true },
      { cost_nanos: 2_500_000_000, currency: 'CNY' },
      { cost_nanos: 0, currency: 'EUR' },
    );
    expect(total).toMatchObject({
      cost: { CNY: 2.5, EUR: 0, USD: 0.000128001 },
      estimated_cost: { USD: 0.000000001 },
      unpriced_requests: 0,
    });
    expect(Object.keys(total.cost)).toEqual(['CNY', 'EUR', 'USD']);
  });

  test('P5 cost_parts: one sum for each kind of tokens and currency; absent where no cost is divided', () => {
    const parts = (input: number, cached: number, output: number) => ({
      cost_nanos: input + cached + output,
      currency: 'USD',
      cost_parts_nanos: { input, cached, output },
    });
    const whole = { cost_nanos: 500_000_000, currency: 'USD' };
    const { total } = reportOf([], parts(1_000_000_000, 20, 3_000_000), parts(5, 0, 7), whole, {
      ...parts(0, 0, 9_000_000_000),
      currency: 'CNY',
    });
    expect(total.cost_parts).toEqual({
      input: { USD: 1.000000005 },
      cached: { USD: 2e-8 },
      output: { CNY: 9, USD: 0.003000007 },
    });
    expect(reportOf([], whole).total).not.toHaveProperty('cost_parts');
  });

  test('M5 named: the groups and their cost whatever the limit, without requests that lack the fact, and whether there are more', () => {
    const users = ['ada', 'bob', null, 'cy', 'ada'];
    const report = new Report(['user']);
    const priced = { cost_nanos: 1_000_000_000, currency: 'USD' };
    for (const user of users) report.addRecord(record({ user, ...priced }));
    expect(report.largest(1)).toHaveLength(2);
    expect(report.named).toEqual({ count: 3, is_exact: true, cost: { USD: 4 } });
    report.add([OTHER], amountsOf(record({ ...priced, cost_nanos: 2_000_000_000 })));
    expect(report.named).toEqual({ count: 3, is_exact: false, cost: { USD: 6 } });
  });

  test('M5 named, by day or hour: how many groups each step has, without requests that lack the fact', () => {
    const of = (groups: readonly Group[]) => {
      const report = new Report(groups);
      for (const [time, user] of [
        ['2026-11-20T09:00:00.000Z', 'ada'],
        ['2026-11-20T10:00:00.000Z', 'ada'],
        ['2026-11-20T10:00:00.000Z', 'bob'],
        ['2026-11-21T10:00:00.000Z', 'ada'],
        ['2026-11-22T10:00:00.000Z', null],
      ] as const)
        report.addRecord(record({ time, user }));
      return report.named.steps;
    };
    expect(of(['day', 'user'])).toEqual({ '2026-11-20': 2, '2026-11-21': 1 });
    expect(of(['user', 'hour'])).toEqual({
      '2026-11-20T09:00Z': 1,
      '2026-11-20T10:00Z': 2,
      '2026-11-21T10:00Z': 1,
    });
    expect(of(['user', 'app'])).toBeUndefined();
  });

  test('P5 unpriced_requests counts requests with tokens and without a price', () => {
    const none = { total_tokens: 0, prompt_tokens: 0, completion_tokens: 0 };
    expect(reportOf([], {}, none, { cost_nanos: 5, currency: 'USD' }).total.unpriced_requests).toBe(1);
  });

  test('P4 sums beyond the integers that a double holds exactly are exact', () => {
    const cost = { cost_nanos: Number.MAX_SAFE_INTEGER, currency: 'USD' };
    const { total } = reportOf([], ...Array.from({ length: 1000 }, () => cost), {
      cost_nanos: 9_000,
      currency: 'USD',
    });
    // 1,000 × 9,007,199.254740991 and 0.000009: a sum of doubles would be 9007199254.74.
    expect(total.cost).toEqual({ USD: 9_007_199_254.741 });
  });

  test('M5 counts beyond the largest safe integer stay there, in any order', () => {
    const huge = { total_tokens: Number.MAX_SAFE_INTEGER };
    for (const records of [
      [huge, {}, huge],
      [{}, huge, huge],
    ])
      expect(reportOf([], ...records).total.total_tokens).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('Y5 a report by user, session, app or tag', () => {
  const users = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ user: `u${i}`, cost_nanos: i, currency: 'USD' }));

  test('groups by the fact; a request without it has an empty name', () => {
    const { rows } = reportOf(
      ['user', 'tag:team'],
      { user: 'ada', tags: { team: 'search' } },
      { user: 'ada' },
      { user: null, tags: { constructor: 'x' } },
    );
    expect(rows.map(({ user, 'tag:team': team, requests }) => [user, team, requests])).toEqual([
      ['', '', 1],
      ['ada', '', 1],
      ['ada', 'search', 1],
    ]);
  });

  test('has the rows with the largest costs, and the sum of all others in the row (other)', () => {
    const report = reportOf(['day', 'user'], ...users(5));
    const rows = report.largest(2);
    expect(rows.map(({ day, user, requests, cost }) => [day, user, requests, cost])).toEqual([
      ['2026-11-20', 'u3', 1, { USD: 3e-9 }],
      ['2026-11-20', 'u4', 1, { USD: 4e-9 }],
      ['(other)', '(other)', 3, { USD: 3e-9 }],
    ]);
    expect(report.largest(5)).toHaveLength(5);
    expect(report.total).toMatchObject({ requests: 5, cost: { USD: 1e-8 } });
  });

  test('a store’s own sum of further names and the rows beyond the limit are one row (other)', () => {
    const report = reportOf(['user'], ...users(5), { user: '(other)', cost_nanos: 50, currency: 'USD' });
    const named = (limit: number) => report.largest(limit).map(({ user, requests }) => [user, requests]);
    expect(named(2)).toEqual([
      ['u3', 1],
      ['u4', 1],
      ['(other)', 4],
    ]);
    expect(named(5).at(-1)).toEqual(['(other)', 1]);
    expect(named(5)).toHaveLength(6);
  });

  test('over 30,000 users stays bounded, and its total is exact', () => {
    const report = reportOf(['user'], ...users(30_000));
    expect(report.isTooLarge).toBe(false);
    const rows = report.largest(1000);
    expect(rows).toHaveLength(1001);
    expect(rows.at(-1)?.user).toBe('(other)');
    expect(rows.reduce((sum, { requests }) => sum + requests, 0)).toBe(30_000);
    expect(report.rows).toHaveLength(10_001);
    expect(report.total.requests).toBe(30_000);
  });
});

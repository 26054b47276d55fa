/** Tests what the dashboard computes of now: what is out of the ordinary, and what the month will have cost. */
import { describe, expect, test } from 'vitest';
import type { Row } from '../../src/dashboard/page/api/types.ts';
import { failureAnomalies, spendAnomalies } from '../../src/dashboard/page/views/now/anomalies.ts';
import { monthOf, monthSpan } from '../../src/dashboard/page/views/now/month.ts';
import { Report } from '../../src/metering/report.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-11-23T14:20:00Z');
const { total } = new Report(['day']);

function hourRow(key: string, hoursAgo: number, USD: number): Row {
  const hour = `${new Date(NOW - hoursAgo * HOUR_MS).toISOString().slice(0, 13)}:00Z`;
  return { ...total, key, hour, cost: { USD } };
}

const usual = (key: string, USD: number) => Array.from({ length: 24 }, (_, at) => hourRow(key, at + 2, USD));
const spent = (rows: readonly Row[]) => spendAnomalies(rows, ({ key = '' }) => key, 'USD', NOW);

describe('spendAnomalies', () => {
  test('an hour of four times the usual one: the group, its amount and its usual hour', () => {
    const rows = [
      ...usual('agents', 1),
      hourRow('agents', 1, 1.1),
      hourRow('agents', 0, 4),
      ...usual('web', 2),
    ];
    expect(spent([...rows, hourRow('web', 1, 3)])).toEqual([
      { kind: 'spend', of: 'agents', amount: 4, usual: 1, since: '2026-11-23T14:00Z' },
    ]);
  });

  test('the hour before counts, too, and one before that does not', () => {
    expect(spent([...usual('a', 1), hourRow('a', 1, 5)])).toMatchObject([{ since: '2026-11-23T13:00Z' }]);
    expect(spent([...usual('a', 1), hourRow('a', 2, 5)])).toEqual([]);
  });

  test.each([
    ['few hours before it', [...usual('a', 1).slice(0, 5), hourRow('a', 0, 9)]],
    ['a small part of all spend', [...usual('a', 0.001), hourRow('a', 0, 0.01), ...usual('b', 10)]],
    ['another currency', [...usual('a', 1), { ...hourRow('a', 0, 0), cost: { EUR: 9 } }]],
    ['no rows', []],
  ])('%s: nothing stands out', (_, rows) => {
    expect(spent(rows)).toEqual([]);
  });
});

/** One request a minute: `x` and `c` failed, by the fault of the provider and of the caller. */
function requests(states: string, asked = 'mistral/large') {
  return [...states].map((state, at) => ({
    asked,
    time: new Date(NOW - (states.length - at) * 60_000).toISOString(),
    status: state === '.' ? ('finished' as const) : ('failed' as const),
    fault: state === 'c' ? ('caller' as const) : state === 'x' ? ('provider' as const) : null,
  }));
}

describe('failureAnomalies', () => {
  test('many failures since a time: the part of the requests since the first of them', () => {
    const found = failureAnomalies([...requests('..........xx.x.xx'), ...requests('.........', 'other/one')]);
    expect(found).toEqual([
      { kind: 'failures', of: 'mistral/large', failed: 5, requests: 7, since: '2026-11-23T14:13:00.000Z' },
    ]);
  });

  test('a lone failure long before does not count to them', () => {
    const [found] = failureAnomalies(requests(`x${'.'.repeat(40)}xxxxx`));
    expect(found).toMatchObject({ failed: 5, requests: 5 });
  });

  test.each([
    ['four failures', '..xxxx'],
    ['mistakes of callers', 'cccccccc'],
    ['few of many', `${'x....'.repeat(4)}x.........`],
    ['none', '.....'],
    ['no requests', ''],
  ])('%s: nothing stands out', (_, states) => {
    expect(failureAnomalies(requests(states))).toEqual([]);
  });
});

describe('monthOf', () => {
  const day = (name: string, USD: number): Row => ({ ...total, day: name, cost: { USD } });

  test('a week at the same pace: the rest of the month goes on like it', () => {
    const days = Array.from({ length: 23 }, (_, at) => day(`2026-11-${String(at + 1).padStart(2, '0')}`, 24));
    const { today, spent: soFar, forecast } = monthOf(days, 'USD', Date.parse('2026-11-24T00:00:00Z') - 1);
    expect([today, soFar]).toEqual([24, 23 * 24]);
    expect(forecast).toBeCloseTo(30 * 24, 2);
  });

  test('on the first day of a month: the pace is that of the last days of the month before', () => {
    const days = [day('2026-11-29', 10), day('2026-11-30', 10), day('2026-12-01', 5)];
    const { spent: soFar, forecast } = monthOf(days, 'USD', Date.parse('2026-12-01T12:00:00Z'));
    expect(soFar).toBe(5);
    expect(forecast).toBeCloseTo(5 + 10 * 30.5, 6);
  });

  test('the first hour of a deployment is no pace for minutes; without spend there is no forecast', () => {
    const at = Date.parse('2026-11-23T00:00:10Z');
    expect(monthOf([day('2026-11-23', 1)], 'USD', at).forecast).toBeLessThan(200);
    expect(monthOf([], 'USD', at)).toEqual({ today: 0, spent: 0, forecast: null });
  });

  test('the asked days are those of the month and the last seven', () => {
    expect(monthSpan(NOW)).toEqual({ from: '2026-11-01', to: '2026-11-24' });
    expect(monthSpan(Date.parse('2026-12-02T01:00:00Z'))).toEqual({ from: '2026-11-26', to: '2026-12-03' });
  });
});

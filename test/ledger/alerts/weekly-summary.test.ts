/** The weekly summary: for which run it is made, and what it says (G12). */
import { describe, expect, test } from 'vitest';
import type { KeyStore } from '../../../src/auth/keys.ts';
import { apiError } from '../../../src/canonical/error.ts';
import { weeklySummary } from '../../../src/ledger/alerts/weekly-summary.ts';
import type { Ledger, ReportQuery } from '../../../src/metering/ledger.ts';
import { Report } from '../../../src/metering/report.ts';
import { failure, ok } from '../../../src/shared/result.ts';
import { MemoryStore, record } from '../../metering/records.ts';

const DAY = 24 * 60 * 60_000;
/** The run of a Monday. */
const MONDAY = Date.UTC(2026, 10, 30, 4, 23);
const NO_STORE = new MemoryStore() as unknown as KeyStore;

class Reports implements Pick<Ledger, 'report'> {
  readonly queries: ReportQuery[] = [];
  failing: string | null = null;
  readonly #records;

  constructor(...records: Parameters<Report['addRecord']>[0][]) {
    this.#records = records;
  }

  report: Ledger['report'] = async (query) => {
    this.queries.push(query);
    const [group = ''] = query.groups;
    if (group === this.failing) return failure(apiError('invalid_request', 'This range is too large'));
    const report = new Report(query.groups);
    for (const one of this.#records) report.addRecord(one);
    return ok(report);
  };
}

describe('G12 the weekly summary', () => {
  test('of a Monday has the sums of the week before, its models and keys with the largest costs first, and words', async () => {
    const cheap = record({
      key_id: 'k1',
      model: 'small',
      cost_nanos: 250_000_000,
      currency: 'USD',
      total_tokens: 10,
    });
    const dear = record({
      key_id: 'k2',
      model: 'large',
      cost_nanos: 2_500_000_000,
      currency: 'USD',
      total_tokens: 90,
    });
    const reports = new Reports(cheap, dear, { ...dear, status: 'failed', cost_nanos: 0 });
    const summary = await weeklySummary(reports, NO_STORE, MONDAY);
    const from = Date.UTC(2026, 10, 23);
    expect(reports.queries.map(({ fromMs, toMs, keyId }) => [fromMs, toMs, keyId])).toEqual([
      [from, from + 7 * DAY, null],
      [from, from + 7 * DAY, null],
    ]);
    const large = { requests: 2, total_tokens: 180, cost: { USD: 2.5 } };
    const small = { requests: 1, total_tokens: 10, cost: { USD: 0.25 } };
    const { provider } = cheap;
    expect(summary).toMatchObject({
      event: 'weekly_summary',
      subject: '2026-W48',
      fields: {
        ...{ period: '2026-W48', from: '2026-11-23', to: '2026-11-29' },
        ...{ requests: 3, failed_requests: 1, total_tokens: 190, cost: { USD: 2.75 } },
        models: [
          { model: `${provider}/large`, ...large },
          { model: `${provider}/small`, ...small },
        ],
        keys: [
          { key_id: 'k2', name: null, ...large },
          { key_id: 'k1', name: null, ...small },
        ],
      },
      text: `the week 2026-W48 (2026-11-23 to 2026-11-29): 3 requests, 190 tokens, 2.75 USD, 1 failed. Models: ${provider}/large 2.50 USD, ${provider}/small 0.25 USD. Keys: k2 2.50 USD, k1 0.25 USD`,
    });
  });

  test.each([
    ['the end of a Monday', Date.UTC(2026, 10, 30, 23, 59, 59), '2026-W48'],
    ['its beginning', Date.UTC(2026, 10, 30), '2026-W48'],
    ['the first Monday of a year', Date.UTC(2027, 0, 4, 4, 23), '2026-W53'],
    ['a Sunday', Date.UTC(2026, 10, 29, 23, 59), undefined],
    ['a Tuesday', Date.UTC(2026, 11, 1), undefined],
  ])('of a run that was due at %s', async (_, dueAt, period) => {
    const summary = await weeklySummary(new Reports(), NO_STORE, dueAt);
    expect(summary?.fields.period).toBe(period);
  });

  test('names five models and sums the others, last', async () => {
    const records = Array.from({ length: 9 }, (_, n) =>
      record({ model: `m${n}`, cost_nanos: (n + 1) * 1e9, currency: 'USD' }),
    );
    const summary = await weeklySummary(new Reports(...records), NO_STORE, MONDAY);
    const models = summary?.fields.models as { model: string; requests: number }[];
    expect(models.map(({ model }) => model.replace(/^.*\//, ''))).toEqual([
      'm8',
      'm7',
      'm6',
      'm5',
      'm4',
      '(other)',
    ]);
    expect(models.at(-1)).toMatchObject({ requests: 4, cost: { USD: 10 } });
  });

  test('names no keys where there are too many for one report, and is an error where the week cannot be summed', async () => {
    const reports = new Reports(record({}));
    reports.failing = 'key';
    const summary = await weeklySummary(reports, NO_STORE, MONDAY);
    expect([summary?.fields.keys, summary?.fields.requests]).toEqual([[], 1]);
    reports.failing = 'model';
    await expect(weeklySummary(reports, NO_STORE, MONDAY)).rejects.toThrow('This range is too large');
  });
});

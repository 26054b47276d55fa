/** Tests what a record says of its cost: the upstream's before the table's, else none (P3, P4). */
import { describe, expect, test } from 'vitest';
import { type PricedRequest, priceRecord } from '../../../src/metering/pricing/price-record.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/shipped.ts';
import { price, SINCE, usage } from './prices.ts';

const END = Date.parse('2026-11-20T12:00:00Z');
const TABLE = [[price({ input: 1, output: 4, currency: 'CNY' })]];

function request(fields: Partial<PricedRequest> = {}): PricedRequest {
  const counts = usage({ prompt: 10, completion: 5 });
  return { providers: ['p'], model: 'm', usage: counts, upstreamCost: null, endMs: END, ...fields };
}

const NONE = { cost: null, currency: null, cost_source: 'none', price_since: null, is_upper_bound: false };

describe('priceRecord', () => {
  test('P4 by the table: its cost, its currency and the since of the price', () => {
    expect(priceRecord(TABLE, request())).toEqual({
      cost: 30_000,
      currency: 'CNY',
      cost_source: 'table',
      price_since: SINCE,
      is_upper_bound: false,
    });
  });

  test.each([
    ['another than the table says', 12_345],
    ['nothing, as at a free model', 0],
  ])('P3 a cost that the upstream tells wins: %s', (_, upstreamCost) => {
    expect(priceRecord(TABLE, request({ upstreamCost }))).toEqual({
      cost: upstreamCost,
      currency: 'USD',
      cost_source: 'upstream',
      price_since: null,
      is_upper_bound: false,
    });
  });

  test('P3 a cost that the upstream tells of a model without a price: is the cost', () => {
    expect(priceRecord(TABLE, request({ model: 'n', upstreamCost: 7 }))).toMatchObject({ cost: 7 });
  });

  test('P4 no price, and a price that lacks a rate: no cost', () => {
    expect(priceRecord(TABLE, request({ model: 'n' }))).toEqual(NONE);
    expect(priceRecord([[price({ input: 1 })]], request())).toEqual(NONE);
  });

  test('P1 past the list of holidays: the peak price, flagged', () => {
    const asked = { providers: ['deepseek'], model: 'deepseek-flash' };
    const at = (time: string) =>
      priceRecord([SHIPPED_PRICES], request({ ...asked, endMs: Date.parse(time) }));
    expect(at('2026-12-30T02:00:00Z')).toMatchObject({ cost: 9000, is_upper_bound: false });
    expect(at('2027-01-04T02:00:00Z')).toMatchObject({ cost: 9000, is_upper_bound: true });
    expect(at('2027-01-04T12:00:00Z')).toMatchObject({ cost: 4500, is_upper_bound: false });
  });

  // shared/streams/xai--*: the ticks that xAI charged for these tokens, 10^10 a dollar.
  test.each<[what: string, model: string, counts: Parameters<typeof usage>[0], ticks: number]>([
    ['text', 'grok-4-fast', { prompt: 165, cached: 164, completion: 2, reasoning: 129, total: 296 }, 739_000],
    [
      'parallel tools',
      'grok-4-fast',
      { prompt: 432, cached: 153, completion: 68, reasoning: 136, total: 636 },
      1_654_500,
    ],
    [
      'grok-3-mini',
      'grok-3-mini',
      { prompt: 12, cached: 11, completion: 1, reasoning: 290, total: 303 },
      1_466_250,
    ],
  ])('P4 reasoning outside of the completion costs what xAI charged: %s', (_, model, counts, ticks) => {
    const priced = priceRecord(
      [SHIPPED_PRICES],
      request({ providers: ['xai'], model, usage: usage(counts) }),
    );
    // Its own rounding is not known: recorded before today's table was in force, and to the tick.
    expect(priced.cost).toBe(Math.round(ticks / 10));
  });
});

/** Tests what tokens cost at a price: parts of the prompt and the answer, tiers, unknown rates, rounding, hostile counts (P1, P4). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  costAtPrice,
  costOfRequest,
  costUpperBound,
  type PricedRequest,
} from '../../../src/metering/pricing/cost.ts';
import type { Price } from '../../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { MAX_COST_NANO } from '../../../src/shared/money.ts';
import { NOON, price, SINCE, usage } from './prices.ts';

const FLAT = price({ input: 1, cached_input: 0.1, cache_write: 1.25, output: 4 });
/** The writes that a cache keeps for an hour cost more than those of five minutes. */
const HOURLY = price({ input: 1, cached_input: 0.1, cache_write: 1.25, cache_write_long: 2, output: 4 });
const TIERED = price({
  input: 2,
  output: 12,
  cached_input: 0.2,
  above: { prompt_tokens: 200_000, input: 4, output: 18, cached_input: 0.4 },
});
const SEARCHING = price({ input: 1, output: 4, web_search: 10 });
const REASONING = price({ input: 1, output: 4, reasoning: 7 });
const SOUND = price({ input: 1, cached_input: 0.5, output: 4, audio_input: 30, audio_output: 60 });

type Counts = Parameters<typeof usage>[0];

describe('costAtPrice', () => {
  test.each<[what: string, at: Price, counts: Counts, nano: number]>([
    ['nothing used: nothing', FLAT, {}, 0],
    ['prompt and completion, each at its rate', FLAT, { prompt: 10, completion: 5 }, 30_000],
    ['cached tokens are part of the prompt', FLAT, { prompt: 10, cached: 4 }, 6400],
    ['written tokens are part of the prompt', FLAT, { prompt: 10, cached: 4, written: 6 }, 7900],
    ['cached above the prompt: cut to it', FLAT, { prompt: 7, cached: 161, completion: 8 }, 32_700],
    ['cached and written above the prompt: cut to it', FLAT, { prompt: 10, cached: 8, written: 8 }, 3300],
    ['written for an hour: dearer', HOURLY, { prompt: 10, written: 6, hourly: 2 }, 4000 + 5000 + 4000],
    [
      'written for an hour above what was written: cut to it',
      HOURLY,
      { prompt: 10, written: 6, hourly: 9 },
      16_000,
    ],
    [
      'searches cost a price each, beside the tokens',
      SEARCHING,
      { prompt: 10, searches: 3 },
      10_000 + 30_000_000,
    ],
    [
      'searches that are free cost nothing',
      { ...SEARCHING, web_search: 0 },
      { prompt: 10, searches: 3 },
      10_000,
    ],
    ['reasoning is part of the completion', FLAT, { prompt: 10, completion: 5, reasoning: 5 }, 30_000],
    ['reasoning at a rate of its own', REASONING, { prompt: 10, completion: 5, reasoning: 3 }, 39_000],
    ['reasoning above the completion: cut to it', REASONING, { completion: 2, reasoning: 25 }, 14_000],
    [
      'reasoning outside of the completion, as the total says',
      REASONING,
      { prompt: 10, completion: 5, reasoning: 100, total: 115 },
      730_000,
    ],
    [
      'thinking that only the total counts: output, as at Gemini',
      FLAT,
      { prompt: 10, completion: 5, total: 115 },
      430_000,
    ],
    ['a total below its parts: they count', FLAT, { prompt: 10, completion: 5, total: 3 }, 30_000],
    [
      'sound in and out, at its rates',
      SOUND,
      { prompt: 10, audioIn: 4, completion: 5, audioOut: 2 },
      258_000,
    ],
    ['sound that was cached is cached', SOUND, { prompt: 10, audioIn: 10, cached: 10 }, 5000],
    ['a prompt of the tier edge: the lower rates', TIERED, { prompt: 200_000, completion: 10 }, 400_120_000],
    [
      'one token more: all of the request at the higher',
      TIERED,
      { prompt: 200_001, completion: 10 },
      800_184_000,
    ],
    [
      'the tier follows the prompt, not what of it was cached',
      TIERED,
      { prompt: 200_001, cached: 200_001 },
      80_000_400,
    ],
  ])('P4 %s', (_, at, counts, nano) => {
    expect(costAtPrice(usage(counts), at, NOON)).toMatchObject({ nano, isUpperBound: false });
  });

  test.each<[what: string, at: Price, counts: Counts]>([
    ['input', price({ output: 1 }), { prompt: 1 }],
    ['a search', FLAT, { prompt: 1, searches: 1 }],
    ['output', price({ input: 1 }), { completion: 1 }],
    ['cache write', price({ input: 1, output: 1 }), { prompt: 1, written: 1 }],
    ['cache write for an hour', FLAT, { prompt: 1, written: 1, hourly: 1 }],
    ['sound in', price({ input: 1, output: 1 }), { prompt: 1, audioIn: 1 }],
    ['sound out', price({ input: 1, output: 1 }), { completion: 1, audioOut: 1 }],
    ['input above the edge', { ...FLAT, above: { prompt_tokens: 1, output: 1 } }, { prompt: 2 }],
  ])('P1 an unknown rate of tokens that were used (%s): no cost, and not 0', (_, at, counts) => {
    expect(costAtPrice(usage(counts), at, NOON)).toBeNull();
  });

  test('P1 an unknown rate of tokens that were not used: changes nothing', () => {
    const counts = usage({ prompt: 10, written: 0, audioIn: 0 });
    expect(costAtPrice(counts, price({ input: 1 }), NOON)).toMatchObject({
      nano: 10_000,
      isUpperBound: false,
    });
  });

  test('P1 an unknown rate of cached tokens: that of the input, which is said to be an upper bound', () => {
    const at = price({ input: 1, output: 4 });
    expect(costAtPrice(usage({ prompt: 10, cached: 4 }), at, NOON)).toMatchObject({
      nano: 10_000,
      isUpperBound: true,
    });
    expect(costAtPrice(usage({ prompt: 10, cached: 0 }), at, NOON)).toMatchObject({
      nano: 10_000,
      isUpperBound: false,
    });
  });

  test.each<[what: string, rate: number, tokens: number, nano: number]>([
    ['2.8 of them: 3', 0.0028, 1, 3],
    ['5.6 of them: 6, not twice 3', 0.0028, 2, 6],
    ['half of one: 1', 0.0005, 1, 1],
    ['less: 0', 0.000499, 1, 0],
    ['10^9 tokens', 0.123457, 999_999_999, 123_456_999_877],
    ['a million units', 1000, 1_000_000_000, MAX_COST_NANO],
  ])('P4 rounded once a request, %s', (_, input, prompt, nano) => {
    expect(costAtPrice(usage({ prompt }), price({ input }), NOON)?.nano).toBe(nano);
  });

  test('P4 any counts up to 10^9 at any rates of six decimals: exact', () => {
    const tokens = fc.nat(1_000_000_000);
    const millionths = fc.nat(200_000_000);
    fc.assert(
      fc.property(
        tokens,
        tokens,
        tokens,
        millionths,
        millionths,
        millionths,
        (fresh, cached, out, a, b, c) => {
          const at = price({ input: a / 1e6, cached_input: b / 1e6, output: c / 1e6 });
          const pico = BigInt(fresh) * BigInt(a) + BigInt(cached) * BigInt(b) + BigInt(out) * BigInt(c);
          const nano = (pico + 500n) / 1000n;
          const cost = costAtPrice(usage({ prompt: fresh + cached, cached, completion: out }), at, NOON);
          expect(cost?.nano ?? null).toBe(nano > MAX_COST_NANO ? null : Number(nano));
        },
      ),
      { seed: 20261121 },
    );
  });

  test.each([
    ['1e308', 1e308],
    ['infinite', Number.POSITIVE_INFINITY],
    ['NaN', Number.NaN],
    ['a fraction', 1.5],
    ['2^53 - 1', Number.MAX_SAFE_INTEGER],
  ])('P4 hostile counts (%s): no cost', (_, count) => {
    for (const name of ['prompt', 'completion', 'total'] as const) {
      expect(costAtPrice(usage({ prompt: 1, [name]: count }), FLAT, NOON)).toBeNull();
    }
    const parts = usage({ prompt: 10, cached: count, written: count, completion: 5, reasoning: count });
    const cost = costAtPrice(parts, FLAT, NOON)?.nano ?? 0;
    expect(cost).toBeGreaterThanOrEqual(0);
    expect(cost).toBeLessThanOrEqual(10 * 1250 + 5 * 4000);
  });

  test('P4 negative counts: none', () => {
    const counts = { prompt: -10, completion: -5, cached: -1, reasoning: -1, total: -15 };
    expect(costAtPrice(usage(counts), FLAT, NOON)).toMatchObject({ nano: 0, isUpperBound: false });
  });
});

describe('ceilingOf', () => {
  const PEAK = price({
    input: 1,
    output: 4,
    peak: { zone: '+08:00', days: [1], hours: [['09:00', '12:00']], input: 2, output: 8 },
  });

  test.each<[what: string, at: Price, nano: number | null]>([
    ['the dearest kind of prompt token', FLAT, 100 * 1250 + 10 * 4000],
    ['also that of a cache that keeps it long', HOURLY, 100 * 2000 + 10 * 4000],
    ['the dearest kind of output token', REASONING, 100 * 1000 + 10 * 7000],
    ['the higher tier, whatever the prompt', TIERED, 100 * 4000 + 10 * 18_000],
    ['the peak, whatever the hour', PEAK, 100 * 2000 + 10 * 8000],
    ['unknown, where a rate is', price({ input: 1 }), null],
  ])('P1 %s', (_, at, nano) => {
    expect(costUpperBound(at, 100, 10)).toBe(nano);
  });

  test('P4 no request costs more than its ceiling', () => {
    const tokens = fc.nat(300_000);
    const at = fc.constantFrom(FLAT, HOURLY, TIERED, REASONING, SOUND, PEAK);
    const parts = { cached: tokens, written: tokens, hourly: tokens, reasoning: tokens };
    const counts = fc.record({ prompt: tokens, completion: tokens, ...parts });
    fc.assert(
      fc.property(
        at,
        counts,
        fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }),
        (one, used, end) => {
          const cost = costAtPrice(usage(used), one, end.getTime())?.nano ?? 0;
          expect(cost).toBeLessThanOrEqual(costUpperBound(one, used.prompt, used.completion) ?? 0);
        },
      ),
      { seed: 20261121 },
    );
  });
});

const END = Date.parse('2026-11-20T12:00:00Z');
const TABLE = [[price({ input: 1, output: 4, currency: 'CNY' })]];

function request(fields: Partial<PricedRequest> = {}): PricedRequest {
  const counts = usage({ prompt: 10, completion: 5 });
  return { providers: ['p'], model: 'm', usage: counts, upstreamCost: null, endMs: END, ...fields };
}

describe('costOfRequest', () => {
  test('P4 by the table: its cost, its currency and the since of the price', () => {
    expect(costOfRequest(TABLE, request())).toEqual({
      nano: 30_000,
      currency: 'CNY',
      priceSince: SINCE,
      isUpperBound: false,
    });
  });

  test.each([
    ['another than the table says', 12_345],
    ['nothing, as at a free model', 0],
  ])('P3 a cost that the upstream tells wins: %s', (_, upstreamCost) => {
    expect(costOfRequest(TABLE, request({ upstreamCost }))).toEqual({
      nano: upstreamCost,
      currency: 'USD',
      priceSince: null,
      isUpperBound: false,
    });
  });

  test('P3 a cost that the upstream tells of a model without a price: is the cost', () => {
    expect(costOfRequest(TABLE, request({ model: 'n', upstreamCost: 7 }))).toMatchObject({ nano: 7 });
  });

  test('P4 no price, and a price that lacks a rate: no cost', () => {
    expect(costOfRequest(TABLE, request({ model: 'n' }))).toBeNull();
    expect(costOfRequest([[price({ input: 1 })]], request())).toBeNull();
  });

  test('P1 past the list of holidays: the peak price, flagged', () => {
    const asked = { providers: ['deepseek'], model: 'deepseek-flash' };
    const at = (time: string) =>
      costOfRequest([SHIPPED_PRICES], request({ ...asked, endMs: Date.parse(time) }));
    expect(at('2026-12-30T02:00:00Z')).toMatchObject({ nano: 9000, isUpperBound: false });
    expect(at('2027-01-04T02:00:00Z')).toMatchObject({ nano: 9000, isUpperBound: true });
    expect(at('2027-01-04T12:00:00Z')).toMatchObject({ nano: 4500, isUpperBound: false });
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
    const priced = costOfRequest(
      [SHIPPED_PRICES],
      request({ providers: ['xai'], model, usage: usage(counts) }),
    );
    // Its own rounding is not known: recorded before today's table was in force, and to the tick.
    expect(priced?.nano).toBe(Math.round(ticks / 10));
  });
});

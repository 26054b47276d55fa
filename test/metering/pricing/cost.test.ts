/** Tests costs: parts of the prompt and the output, tiers, unknown rates, rounding, invalid counts, reported costs (P1, P3, P4). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BilledUsage } from '../../../src/canonical/usage.ts';
import {
  costAtPrice,
  costOfRequest,
  costUpperBound,
  type PricedRequest,
} from '../../../src/metering/pricing/cost.ts';
import { layerOf, type Price } from '../../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { MAX_COST_NANO } from '../../../src/shared/money.ts';
import { NOON, price, SINCE, usage } from './prices.ts';

const FLAT = price({ input: 1, cached_input: 0.1, cache_write: 1.25, output: 4 });
/** Cache writes for an hour cost more than those for five minutes. */
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
    ['no tokens: zero', FLAT, {}, 0],
    ['prompt and completion, each at its rate', FLAT, { prompt: 10, completion: 5 }, 30_000],
    ['cached tokens are part of the prompt', FLAT, { prompt: 10, cached: 4 }, 6400],
    ['written tokens are part of the prompt', FLAT, { prompt: 10, cached: 4, written: 6 }, 7900],
    [
      'more cached tokens than the prompt: reduced to it',
      FLAT,
      { prompt: 7, cached: 161, completion: 8 },
      32_700,
    ],
    [
      'more cached and written tokens than the prompt: reduced to it',
      FLAT,
      { prompt: 10, cached: 8, written: 8 },
      3300,
    ],
    [
      'cache writes for an hour at their own rate',
      HOURLY,
      { prompt: 10, written: 6, hourly: 2 },
      4000 + 5000 + 4000,
    ],
    [
      'more cache writes for an hour than writes: reduced to them',
      HOURLY,
      { prompt: 10, written: 6, hourly: 9 },
      16_000,
    ],
    [
      'searches are paid in addition to the tokens',
      SEARCHING,
      { prompt: 10, searches: 3 },
      10_000 + 30_000_000,
    ],
    ['free searches cost nothing', { ...SEARCHING, web_search: 0 }, { prompt: 10, searches: 3 }, 10_000],
    ['reasoning is part of the completion', FLAT, { prompt: 10, completion: 5, reasoning: 5 }, 30_000],
    ['reasoning at its own rate', REASONING, { prompt: 10, completion: 5, reasoning: 3 }, 39_000],
    [
      'more reasoning than the completion: reduced to it',
      REASONING,
      { completion: 2, reasoning: 25 },
      14_000,
    ],
    [
      'reasoning in addition to the completion, by the total',
      REASONING,
      { prompt: 10, completion: 5, reasoning: 100, total: 115 },
      730_000,
    ],
    [
      'reasoning only in the total counts as output (Gemini)',
      FLAT,
      { prompt: 10, completion: 5, total: 115 },
      430_000,
    ],
    ['a total below its parts: the parts count', FLAT, { prompt: 10, completion: 5, total: 3 }, 30_000],
    [
      'audio input and output at their rates',
      SOUND,
      { prompt: 10, audioIn: 4, completion: 5, audioOut: 2 },
      258_000,
    ],
    ['cached audio has the cached rate', SOUND, { prompt: 10, audioIn: 10, cached: 10 }, 5000],
    ['a prompt at the threshold: the lower rates', TIERED, { prompt: 200_000, completion: 10 }, 400_120_000],
    [
      'one token above the threshold: the whole request at the higher rates',
      TIERED,
      { prompt: 200_001, completion: 10 },
      800_184_000,
    ],
    ['cached tokens count towards the threshold', TIERED, { prompt: 200_001, cached: 200_001 }, 80_000_400],
  ])('P4 %s', (_, at, counts, nano) => {
    expect(costAtPrice(usage(counts), at, NOON)).toMatchObject({ nano, isUpperBound: false });
  });

  test.each<[what: string, at: Price, counts: Counts]>([
    ['input', price({ output: 1 }), { prompt: 1 }],
    ['a search', FLAT, { prompt: 1, searches: 1 }],
    ['output', price({ input: 1 }), { completion: 1 }],
    ['cache write', price({ input: 1, output: 1 }), { prompt: 1, written: 1 }],
    ['cache write for an hour', FLAT, { prompt: 1, written: 1, hourly: 1 }],
    ['audio input', price({ input: 1, output: 1 }), { prompt: 1, audioIn: 1 }],
    ['audio output', price({ input: 1, output: 1 }), { completion: 1, audioOut: 1 }],
    ['input above the threshold', { ...FLAT, above: { prompt_tokens: 1, output: 1 } }, { prompt: 2 }],
  ])('P1 an unknown rate of used tokens (%s): the cost is unknown, not zero', (_, at, counts) => {
    expect(costAtPrice(usage(counts), at, NOON)).toBeNull();
  });

  test('P1 an unknown rate of unused tokens has no effect', () => {
    const counts = usage({ prompt: 10, written: 0, audioIn: 0 });
    expect(costAtPrice(counts, price({ input: 1 }), NOON)).toMatchObject({
      nano: 10_000,
      isUpperBound: false,
    });
  });

  test('P1 an unknown cached rate: the input rate, marked as an upper bound', () => {
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
    ['2.8 nanos: 3', 0.0028, 1, 3],
    ['5.6 nanos: 6, not 2 × 3', 0.0028, 2, 6],
    ['0.5 nanos: 1', 0.0005, 1, 1],
    ['0.499 nanos: 0', 0.000499, 1, 0],
    ['10^9 tokens', 0.123457, 999_999_999, 123_456_999_877],
    ['a million units', 1000, 1_000_000_000, MAX_COST_NANO],
  ])('P4 rounded once for a request, %s', (_, input, prompt, nano) => {
    expect(costAtPrice(usage({ prompt }), price({ input }), NOON)?.nano).toBe(nano);
  });

  test('P4 exact for any counts up to 10^9 and any rates with six decimals', () => {
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
  ])('P4 invalid counts (%s): the cost is unknown', (_, count) => {
    for (const name of ['prompt', 'completion', 'total'] as const) {
      expect(costAtPrice(usage({ prompt: 1, [name]: count }), FLAT, NOON)).toBeNull();
    }
    const parts = usage({ prompt: 10, cached: count, written: count, completion: 5, reasoning: count });
    const cost = costAtPrice(parts, FLAT, NOON)?.nano ?? 0;
    expect(cost).toBeGreaterThanOrEqual(0);
    expect(cost).toBeLessThanOrEqual(10 * 1250 + 5 * 4000);
  });

  test('P4 negative counts count as zero', () => {
    const counts = { prompt: -10, completion: -5, cached: -1, reasoning: -1, total: -15 };
    expect(costAtPrice(usage(counts), FLAT, NOON)).toMatchObject({ nano: 0, isUpperBound: false });
  });
});

describe('costUpperBound', () => {
  const PEAK = price({
    input: 1,
    output: 4,
    peak: { zone: '+08:00', days: [1], hours: [['09:00', '12:00']], input: 2, output: 8 },
  });

  test.each<[what: string, at: Price, nano: number | null]>([
    ['the highest rate of prompt tokens', FLAT, 100 * 1250 + 10 * 4000],
    ['also the rate of long cache writes', HOURLY, 100 * 2000 + 10 * 4000],
    ['the highest rate of output tokens', REASONING, 100 * 1000 + 10 * 7000],
    ['the rates above the threshold, for any prompt', TIERED, 100 * 4000 + 10 * 18_000],
    ['the peak rates, at any hour', PEAK, 100 * 2000 + 10 * 8000],
    ['unknown if a rate is unknown', price({ input: 1 }), null],
  ])('P1 %s', (_, at, nano) => {
    expect(costUpperBound(at, 100, 10)).toBe(nano);
  });

  test('P4 no request costs more than its upper bound', () => {
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
const TABLE = [layerOf([price({ input: 1, output: 4, currency: 'CNY' })])];

function request(fields: Partial<PricedRequest> = {}): PricedRequest {
  const counts = usage({ prompt: 10, completion: 5 });
  return { priceIds: ['p'], model: 'm', usage: counts, upstreamCost: null, endMs: END, ...fields };
}

describe('costOfRequest', () => {
  test('P4 by the table: the cost with currency and since of the price', () => {
    expect(costOfRequest(TABLE, request())).toEqual({
      nano: 30_000,
      parts: { input: 10_000, cached: 0, output: 20_000 },
      currency: 'CNY',
      priceSince: SINCE,
      isUpperBound: false,
    });
  });

  test('P4 the parts of any cost: whole numbers that sum up to it, cached and output as they cost alone, searches in none', () => {
    const rate = fc.nat(90_000_000).map((value) => value / 1e6);
    const tokens = fc.nat(200_000);
    fc.assert(
      fc.property(
        fc.record({ input: rate, cached_input: rate, cache_write: rate, output: rate, reasoning: rate }),
        fc.record({
          prompt: tokens,
          cached: tokens,
          written: tokens,
          completion: tokens,
          reasoning: tokens,
        }),
        fc.nat(3),
        (rates, used, searches) => {
          const one = price({ ...rates, web_search: 10 });
          const at = (counts: BilledUsage) => costAtPrice(counts, one, END);
          const all = { ...usage(used), searches };
          const { nano, parts = { input: -1, cached: 0, output: 0 } } = at(all) ?? { nano: 0 };
          expect(Object.values(parts).every((part) => Number.isSafeInteger(part) && part >= 0)).toBe(true);
          expect(parts.input + parts.cached + parts.output).toBe(nano - searches * 10_000_000);
          const cached = Math.min(used.prompt, used.cached);
          const ofCache = at(usage({ prompt: cached, cached, completion: 0 }))?.nano ?? 0;
          expect(Math.abs(parts.cached - ofCache)).toBeLessThanOrEqual(1);
          const { completion, reasoning } = used;
          const ofOutput = at(usage({ prompt: 0, completion, reasoning }))?.nano ?? 0;
          expect(Math.abs(parts.output - ofOutput)).toBeLessThanOrEqual(1);
        },
      ),
      { seed: 20261128 },
    );
  });

  test.each([
    ['another cost than by the table', 12_345],
    ['zero, as for a free model', 0],
  ])('P3 a reported cost comes before the table: %s', (_, upstreamCost) => {
    expect(costOfRequest(TABLE, request({ upstreamCost }))).toEqual({
      nano: upstreamCost,
      currency: 'USD',
      priceSince: null,
      isUpperBound: false,
    });
  });

  test('P3 a reported cost is used for a model without a price', () => {
    expect(costOfRequest(TABLE, request({ model: 'n', upstreamCost: 7 }))).toMatchObject({ nano: 7 });
  });

  test('P4 without a price, or with an unknown rate: null', () => {
    expect(costOfRequest(TABLE, request({ model: 'n' }))).toBeNull();
    expect(costOfRequest([layerOf([price({ input: 1 })])], request())).toBeNull();
  });

  test.each([
    ['a dearer tier', 'priority', undefined, 60_000, true],
    ['a cheaper tier', 'flex', undefined, 30_000, true],
    ['a tier at the same price', 'auto', undefined, 30_000, false],
    ['a dearer tier, and the response names the default one', 'priority', 'default', 30_000, false],
    ['a cheaper tier, and the response names it', 'flex', 'flex', 15_000, false],
  ])(
    'P2 P4 the request has %s: the dearer price where the response names none, else the price of its tier',
    (_, requestedTier, service_tier, nano, isUpperBound) => {
      const tiers = [
        price({ input: 1, output: 4 }),
        price({ input: 2, output: 8, service_tiers: ['priority'] }),
        price({ input: 0.5, output: 2, service_tiers: ['flex'] }),
      ];
      const counts = { ...usage({ prompt: 10, completion: 5 }), ...(service_tier && { service_tier }) };
      const cost = costOfRequest([layerOf(tiers)], request({ usage: counts, requestedTier }));
      expect(cost).toMatchObject({ nano, isUpperBound });
    },
  );

  test('P1 after the list of holidays: the peak price, as an upper bound', () => {
    const target = { priceIds: ['deepseek'], model: 'deepseek-flash' };
    const at = (time: string) =>
      costOfRequest([SHIPPED_PRICES], request({ ...target, endMs: Date.parse(time) }));
    expect(at('2026-12-30T02:00:00Z')).toMatchObject({ nano: 9000, isUpperBound: false });
    expect(at('2027-01-04T02:00:00Z')).toMatchObject({ nano: 9000, isUpperBound: true });
    expect(at('2027-01-04T12:00:00Z')).toMatchObject({ nano: 4500, isUpperBound: false });
  });

  // shared/streams/xai--*: the ticks that xAI reported for these tokens, 10^10 for a dollar.
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
  ])(
    'P4 the cost with reasoning outside of the completion equals the cost that xAI reported: %s',
    (_, model, counts, ticks) => {
      const priced = costOfRequest(
        [SHIPPED_PRICES],
        request({ priceIds: ['xai'], model, usage: usage(counts) }),
      );
      // xAI's rounding is unknown, so the ticks are rounded to 10^-9 dollars.
      expect(priced?.nano).toBe(Math.round(ticks / 10));
    },
  );
});

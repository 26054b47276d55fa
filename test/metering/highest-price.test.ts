/** The highest price of a request's tokens, by which its upper bound is reserved. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { costAtPrice } from '../../src/metering/pricing/cost.ts';
import { highestPrice, type PricedModel } from '../../src/metering/pricing/highest-price.ts';
import { layerOf, type Price } from '../../src/metering/pricing/price.ts';
import { NOW } from '../ledger/limits/memory-sql.ts';

const BASE: Price = {
  provider: 'p',
  models: ['m'],
  since: '2026-01-01T00:00:00Z',
  currency: 'USD',
  input: 1,
  output: 4,
};
const MODEL = { priceIds: ['p'], model: 'm' };
const HOUR = 60 * 60_000;

function highest(prices: readonly Price[], models: readonly PricedModel[] = [MODEL], toMs = NOW) {
  return highestPrice([layerOf(prices)], models, NOW, toMs);
}

describe('G2 highestPrice', () => {
  test('is the maximum over tiers, peak hours, caches and reasoning', () => {
    expect(highest([{ ...BASE, cached_input: 0.1 }])).toEqual({ currency: 'USD', prompt: 1e6, output: 4e6 });
    expect(highest([{ ...BASE, cache_write: 1.25, reasoning: 5 }])).toMatchObject({
      prompt: 1_250_000,
      output: 5e6,
    });
    expect(highest([{ ...BASE, above: { prompt_tokens: 200_000, input: 2, output: 8 } }])).toMatchObject({
      prompt: 2e6,
      output: 8e6,
    });
    expect(highest([{ ...BASE, cache_write: 1.25, cache_write_long: 2 }])).toMatchObject({ prompt: 2e6 });
    const peak = { zone: '+08:00', days: [1], hours: [['09:00', '12:00']] as const, input: 3, output: 9 };
    expect(highest([{ ...BASE, peak }])).toMatchObject({ prompt: 3e6, output: 9e6 });
  });

  test('a request without a cache lifetime: includes the default cache write, not the longer one', () => {
    const prices = [{ ...BASE, cache_write: 1.25, cache_write_long: 2.5 }];
    expect(highest(prices, [{ ...MODEL, hasDefaultCache: true }])).toMatchObject({ prompt: 1_250_000 });
    expect(highest(prices, [{ ...MODEL, hasDefaultCache: false }])).toMatchObject({ prompt: 2_500_000 });
  });

  test('a request that may search: includes the most expensive search; null where a search has no known price', () => {
    const searching = { ...MODEL, searches: true };
    expect(highest([{ ...BASE, web_search: 10 }], [searching])).toMatchObject({ search: 10_000_000_000 });
    expect(highest([BASE], [searching])).toBeNull();
    expect(highest([{ ...BASE, web_search: 10 }])).not.toHaveProperty('search');
  });

  test('a premium tier: uses a price that names it; null where there is none', () => {
    const dear = [{ ...MODEL, tier: 'priority' }];
    expect(highest([BASE], dear)).toBeNull();
    const priority = { ...BASE, input: 2, service_tiers: ['priority'] };
    expect(highest([BASE, priority], dear)).toMatchObject({ prompt: 2e6 });
    expect(highest([BASE, priority])).toMatchObject({ prompt: 1e6 });
  });

  test('includes a price that begins before the latest end of the request', () => {
    const raised = { ...BASE, since: new Date(NOW + HOUR).toISOString(), input: 2 };
    expect(highest([BASE, raised], [MODEL], NOW + HOUR - 1)).toMatchObject({ prompt: 1e6 });
    expect(highest([BASE, raised], [MODEL], NOW + HOUR)).toMatchObject({ prompt: 2e6 });
  });

  test('is the price of the most expensive model that may serve; null where one of them has none', () => {
    const dear = { ...BASE, models: ['dear'], output: 90 };
    const models = [MODEL, { priceIds: ['p'], model: 'dear' }];
    expect(highest([BASE, dear], models)).toMatchObject({ prompt: 1e6, output: 90e6 });
    expect(highest([BASE, { ...dear, currency: 'CNY' }], models)).toBeNull();
    expect(highest([BASE], models)).toBeNull();
    const { output: _, ...unknown } = BASE;
    expect(highest([unknown])).toBeNull();
  });

  test('multiplied by the tokens, is never below the cost', () => {
    const rate = fc.integer({ min: 0, max: 1e9 }).map((micro) => micro / 1e6);
    const tokens = fc.integer({ min: 0, max: 1e6 });
    fc.assert(
      fc.property(rate, rate, rate, tokens, tokens, (input, output, cached_input, prompt, completion) => {
        const price = { ...BASE, input, output, cached_input };
        const top = highest([price]);
        if (top === null) throw new Error('There is a price');
        const upperBound = BigInt(prompt) * BigInt(top.prompt) + BigInt(completion) * BigInt(top.output);
        const usage = {
          prompt_tokens: prompt,
          completion_tokens: completion,
          total_tokens: prompt + completion,
          prompt_tokens_details: { cached_tokens: prompt >> 1 },
        };
        expect(Number((upperBound + 999n) / 1000n)).toBeGreaterThanOrEqual(
          costAtPrice(usage, price, NOW)?.nano ?? 0,
        );
      }),
    );
  });
});

/** Tests costs by shipped prices, each computed by hand from the rates in the comment, per million tokens (P1, P2, P3). */
import { describe, expect, test } from 'vitest';
import { costOfRequest } from '../../../src/metering/pricing/cost.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { usage } from './prices.ts';

interface Example {
  readonly provider: string;
  readonly model: string;
  readonly counts: Parameters<typeof usage>[0];
  readonly tier?: string;
  /** In dollars. */
  readonly cost: number;
  readonly isUpperBound?: boolean;
  readonly at?: string;
}

const TODAY = '2026-11-23T12:00:00Z';

function costOf({ provider, model, counts, tier, at = TODAY }: Example) {
  return costOfRequest([SHIPPED_PRICES], {
    priceIds: [provider],
    model,
    usage: { ...usage(counts), ...(tier === undefined ? {} : { service_tier: tier }) },
    upstreamCost: null,
    endMs: Date.parse(at),
  });
}

describe('P3 a cost computed by hand', () => {
  const counts = { prompt: 100_000, cached: 80_000, completion: 1000 };

  test.each<[rates: string, example: Example]>([
    // 20,000 × 2 + 80,000 × 0.2 + 1,000 × 10, and twice that.
    ['gpt-6-sol: 2, 0.2, 10', { provider: 'openai', model: 'gpt-6-sol', counts, cost: 0.066 }],
    [
      'in fast mode: 4, 0.4, 20',
      { provider: 'openai', model: 'gpt-6-sol', counts, tier: 'priority', cost: 0.132 },
    ],
    [
      'gpt-6.1-sol, fast: 4, 0.2, 20',
      { provider: 'openai', model: 'gpt-6.1-sol', counts, tier: 'fast', cost: 0.116 },
    ],
    // Above 272,000: 20,000 × 8 + 280,000 × 0.8 + 1,000 × 30.
    [
      'gpt-6-sol, fast, a long prompt: 8, 0.8, 30',
      {
        provider: 'openai',
        model: 'gpt-6-sol',
        counts: { prompt: 300_000, cached: 280_000, completion: 1000 },
        tier: 'priority',
        cost: 0.414,
      },
    ],
    // Its promotion: 20,000 × 8 + 80,000 × 0.8 + 1,000 × 40.
    [
      'gpt-5.6-sol, fast, in September: 8, 0.8, 40',
      {
        provider: 'openai',
        model: 'gpt-5.6-sol',
        counts,
        tier: 'priority',
        cost: 0.264,
        at: '2026-09-15T12:00:00Z',
      },
    ],
    [
      'gpt-5.6-sol on the last promised day: 4, 0.4, 20',
      { provider: 'openai', model: 'gpt-5.6-sol', counts, cost: 0.132, at: '2026-11-21T23:59:59Z' },
    ],
    // Nothing says whether it ended: the price before it, marked.
    [
      'gpt-5.6-sol after it: 5, 0.5, 30',
      { provider: 'openai', model: 'gpt-5.6-sol', counts, cost: 0.17, isUpperBound: true },
    ],
    [
      'gpt-5.5, priority: 12.5, 1.25, 75',
      { provider: 'openai', model: 'gpt-5.5', counts, tier: 'priority', cost: 0.425 },
    ],
    ['kimi-k3: 3, 0.3, 15', { provider: 'moonshot', model: 'kimi-k3', counts, cost: 0.099 }],
    [
      'kimi-k2.7-code: 0.95, 0.19, 4',
      { provider: 'moonshot', model: 'kimi-k2.7-code', counts, cost: 0.0382 },
    ],
    ['glm-5.3: 1.4, 0.26, 4.4', { provider: 'zai', model: 'glm-5.3', counts, cost: 0.0532 }],
    ['GLM-5.3-Flash: 0.075, 0.015, 0.25', { provider: 'zai', model: 'GLM-5.3-Flash', counts, cost: 0.00295 }],
    [
      'Together, Kimi-K2.6: 1.2, 0.2, 4.5',
      { provider: 'together', model: 'moonshotai/Kimi-K2.6', counts, cost: 0.0445 },
    ],
    [
      'Fireworks, kimi-k3: 3, 0.3, 15',
      { provider: 'fireworks', model: 'accounts/fireworks/models/kimi-k3', counts, cost: 0.099 },
    ],
    // No cached rate: 100,000 × 0.35 + 1,000 × 0.75, an upper bound.
    [
      'Cerebras, gpt-oss-120b: 0.35, 0.75',
      { provider: 'cerebras', model: 'gpt-oss-120b', counts, cost: 0.03575, isUpperBound: true },
    ],
    // Sources disagree on the cached rate, 0.3 or 0.5: 20,000 × 2 + 80,000 × 0.5 + 1,000 × 6.
    ['grok-4.5: 2, 0.5, 6', { provider: 'xai', model: 'grok-4.5', counts, cost: 0.086, isUpperBound: true }],
  ])('%s', (_, example) => {
    const { cost, isUpperBound = false } = example;
    expect(costOf(example)).toMatchObject({ nano: Math.round(cost * 1e9), currency: 'USD', isUpperBound });
  });

  test('a tier without a price: no cost', () => {
    expect(costOf({ provider: 'openai', model: 'o1', counts, tier: 'priority', cost: 0 })).toBeNull();
  });
});

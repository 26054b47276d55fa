/** Tests how the cost that an upstream reports is read, in every place of usage, and which values do not count (P3). */
import { describe, expect, test } from 'vitest';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import type { Route } from '../../src/providers/provider.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { readAmount } from '../../src/shared/money.ts';
import { providerNamed } from '../request-translation/send.ts';

/** The cost accumulated from these events, in nano-dollars. */
function costOf(id: string, events: readonly JsonObject[], route: Route = 'chat'): number | null {
  const { endpoints, quirks = {} } = providerNamed(id);
  const accumulator = new UsageAccumulator(() => 0, 0);
  for (const event of events) {
    const usage = endpoints[route]?.protocol.open(quirks, 'p').event(event, '')?.usage;
    if (usage) accumulator.usage(usage);
  }
  return accumulator.upstreamCost;
}

function reported(usage: JsonObject): JsonObject {
  return { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, ...usage } };
}

describe('the cost that an upstream reports', () => {
  test.each<[what: string, provider: string, usage: JsonObject, nano: number | null]>([
    // shared/streams/openrouter--kimi-reasoning and openrouter--comment-free-model.
    [
      'OpenRouter, in dollars',
      'openrouter',
      { cost: 0.0005738, is_byok: false, cost_details: { upstream_inference_cost: 0.0005738 } },
      573_800,
    ],
    ['OpenRouter, a free model', 'openrouter', { cost: 0, is_byok: false }, 0],
    // tailcallhq/forgecode#1641.
    [
      "OpenRouter with a key of one's own: its fee and what the upstream charges",
      'openrouter',
      { cost: 0.001, is_byok: true, cost_details: { upstream_inference_cost: 0.0360795 } },
      37_079_500,
    ],
    [
      "OpenRouter with a key of one's own, the charge untold",
      'openrouter',
      { cost: 0, is_byok: true, cost_details: { upstream_inference_cost: null } },
      null,
    ],
    // shared/streams/xai--text.
    ['xAI, in ticks of 10^-10 dollars', 'xai', { cost_in_usd_ticks: 739_000 }, 73_900],
    ['Workers AI, in neurons of $0.011 per 1,000', 'cloudflare', { neurons: 12.44 }, 136_840],
    ['Workers AI, another’s word', 'cloudflare', { cost: 1 }, null],
    ["xAI, another's word", 'xai', { cost: 1 }, null],
    ["another provider's cost, of unknown unit", 'tolerant', { cost: 1, cost_in_usd_ticks: 1 }, null],
    ['none', 'openrouter', {}, null],
    ['a text', 'openrouter', { cost: '1' }, null],
    ['a negative one', 'openrouter', { cost: -1 }, null],
    ['1e308', 'openrouter', { cost: 1e308 }, null],
    ['1e308 ticks', 'xai', { cost_in_usd_ticks: 1e308 }, null],
    ['more than a million dollars', 'openrouter', { cost: 1_000_000.01 }, null],
  ])('P3 %s', (_, provider, usage, nano) => {
    expect(costOf(provider, [reported(usage)])).toBe(nano);
  });

  test('P3 on every chunk, without one at the end: the highest counts', () => {
    expect(
      costOf('xai', [reported({ cost_in_usd_ticks: 10 }), reported({ cost_in_usd_ticks: 30 }), reported({})]),
    ).toBe(3);
  });

  test('P3 in text completions, and inside a choice', () => {
    expect(costOf('openrouter', [reported({ cost: 1e-9 })], 'completions')).toBe(1);
    const inChoice = { choices: [{ index: 0, delta: {}, usage: { cost: 2e-9 } }] };
    expect(costOf('openrouter', [inChoice])).toBe(2);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -0.1, null, undefined, true, [1], {}])(
    'P3 readAmount of %s: none',
    (value) => {
      expect(readAmount(value)).toBeUndefined();
    },
  );
});

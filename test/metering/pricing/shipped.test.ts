/** Tests the shipped prices as data: form, source, and that no name has two prices with the same since (P1, P2). */
import { describe, expect, test } from 'vitest';
import { type Price, parsePrices } from '../../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { PROFILES, PROVIDERS } from '../../../src/providers/index.ts';
import { matchesAnyGlob } from '../../../src/shared/glob.ts';

const IDS = [...PROVIDERS, ...PROFILES].map(({ id }) => id);
const tierOf = ({ service_tiers }: Price) => (service_tiers === undefined ? '' : ` (${service_tiers})`);
const ROWS = SHIPPED_PRICES.all().map(
  (price) => [`${price.provider}/${price.models[0]} of ${price.since}${tierOf(price)}`, price] as const,
);

describe('SHIPPED_PRICES', () => {
  test('P2 the prices under a provider’s id are its own, and together they are all prices', () => {
    const lists = [...new Set(IDS)].map((id) => ({ id, prices: SHIPPED_PRICES.of(id) }));
    expect(lists.flatMap(({ id, prices }) => prices.filter(({ provider }) => provider !== id))).toEqual([]);
    expect(lists.flatMap(({ prices }) => prices)).toHaveLength(SHIPPED_PRICES.all().length);
  });

  test('P2 a provider’s prices are made once, and of an unknown provider there are none', () => {
    expect(SHIPPED_PRICES.of('openai')).toBe(SHIPPED_PRICES.of('openai'));
    expect(SHIPPED_PRICES.of('unknown')).toEqual([]);
  });

  test('P2 prices of 16 providers, under the ids of their addresses', () => {
    const providers = [...new Set(SHIPPED_PRICES.all().map(({ provider }) => provider))];
    expect(providers.sort()).toEqual(
      [
        ...[
          'anthropic',
          'cerebras',
          'codestral',
          'deepseek',
          'fireworks',
          'gemini',
          'groq',
          'mistral',
          'moonshot',
        ],
        ...['openai', 'together', 'xai', 'zai', 'bedrock', 'azure', 'cloudflare'],
      ].sort(),
    );
    expect(providers.filter((id) => !IDS.includes(id))).toEqual([]);
  });

  test.each(ROWS)('P1 %s: the parser of own prices accepts it', (_, price) => {
    expect(parsePrices([JSON.parse(JSON.stringify(price))])).toMatchObject({ kind: 'ok' });
  });

  test.each(ROWS)('P1 %s: has a source and a day', (_, price) => {
    expect(price.source).toMatch(/https:\/\/|#\d+/);
    expect(price.checked).toMatch(/^2026-\d{2}-\d{2}$/);
    expect(Date.parse(price.checked)).toBeLessThanOrEqual(Date.now());
  });

  test.each(ROWS)('P1 %s: the rates are plausible', (_, { above, peak, ...base }) => {
    const { input = Number.NaN, cached_input = 0, cache_write = input, output = 0 } = base;
    expect(base.cache_write_long ?? cache_write * 2).toBeGreaterThan(cache_write);
    expect(cached_input).toBeLessThan(input);
    expect(cache_write).toBeGreaterThanOrEqual(input);
    // Embeddings have no output.
    const hasOutput = !base.models.every((name) => /embed|\bbge-/.test(name));
    expect(output).toBeGreaterThanOrEqual(hasOutput ? input : 0);
    for (const higher of [above, peak]) {
      if (higher === undefined) continue;
      expect(Object.keys(higher)).toEqual(expect.arrayContaining(['input', 'output']));
      expect(higher.input).toBeGreaterThan(input);
      expect(higher.output).toBeGreaterThan(output);
      // A rate that only the base has would be unknown above the threshold or at peak hours.
      for (const rate of ['cached_input', 'cache_write', 'cache_write_long'] as const)
        expect(higher[rate] === undefined).toBe(base[rate] === undefined);
    }
  });

  test.each(ROWS)('P2 %s: its names have no other price with the same since', (_, price) => {
    const others = SHIPPED_PRICES.all().filter(
      (other) =>
        other !== price &&
        other.provider === price.provider &&
        other.since === price.since &&
        tierOf(other) === tierOf(price),
    );
    const names = price.models.map((name) => name.replaceAll('*', '-20261121'));
    const twice = others.filter((other) => names.some((name) => matchesAnyGlob(other.models, name)));
    expect(twice).toEqual([]);
  });
});

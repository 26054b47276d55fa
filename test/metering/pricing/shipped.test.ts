/** Tests the shipped prices as data: form, provenance, and that no name has two prices at once (P1, P2). */
import { describe, expect, test } from 'vitest';
import { type Price, parsePrices } from '../../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { PROFILES, PROVIDERS } from '../../../src/providers/index.ts';
import { matchesAnyGlob } from '../../../src/shared/glob.ts';

const IDS = [...PROVIDERS, ...PROFILES].map(({ id }) => id);
const tierOf = ({ service_tiers }: Price) => (service_tiers === undefined ? '' : ` (${service_tiers})`);
const ROWS = SHIPPED_PRICES.map(
  (price) => [`${price.provider}/${price.models[0]} of ${price.since}${tierOf(price)}`, price] as const,
);

describe('SHIPPED_PRICES', () => {
  test('P2 prices of eight providers, under the ids by which they are addressed', () => {
    const providers = [...new Set(SHIPPED_PRICES.map(({ provider }) => provider))];
    expect(providers.sort()).toEqual(
      ['anthropic', 'codestral', 'deepseek', 'gemini', 'groq', 'mistral', 'openai', 'xai'].sort(),
    );
    expect(providers.filter((id) => !IDS.includes(id))).toEqual([]);
  });

  test.each(ROWS)("P1 %s: of the form that a deployment's own prices have", (_, price) => {
    expect(parsePrices([JSON.parse(JSON.stringify(price))])).toMatchObject({ kind: 'ok' });
  });

  test.each(ROWS)('P1 %s: says where and when it was read', (_, price) => {
    expect(price.source).toMatch(/https:\/\/|#\d+/);
    expect(price.checked).toMatch(/^2026-\d{2}-\d{2}$/);
    expect(Date.parse(price.checked)).toBeLessThanOrEqual(Date.now());
  });

  test.each(ROWS)('P1 %s: rates that can be', (_, { above, peak, ...base }) => {
    const { input = Number.NaN, cached_input = 0, cache_write = input, output = 0 } = base;
    expect(base.cache_write_long ?? cache_write * 2).toBeGreaterThan(cache_write);
    expect(cached_input).toBeLessThan(input);
    expect(cache_write).toBeGreaterThanOrEqual(input);
    expect(output).toBeGreaterThanOrEqual(input);
    for (const higher of [above, peak]) {
      if (higher === undefined) continue;
      expect(Object.keys(higher)).toEqual(expect.arrayContaining(['input', 'output']));
      expect(higher.input).toBeGreaterThan(input);
      expect(higher.output).toBeGreaterThan(output);
      // A rate that the lower price has, and the higher one lacks, would be unknown there.
      for (const rate of ['cached_input', 'cache_write', 'cache_write_long'] as const)
        expect(higher[rate] === undefined).toBe(base[rate] === undefined);
    }
  });

  test.each(ROWS)('P2 %s: its names have no other price that begins at once', (_, price) => {
    const others = SHIPPED_PRICES.filter(
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

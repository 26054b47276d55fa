/** Tests which price is in force: layers, ids, exact names, globs, tiers and dates (P2). */
import { describe, expect, test } from 'vitest';
import { findPrice } from '../../../src/metering/pricing/cost.ts';
import { layerOf, type Price } from '../../../src/metering/pricing/price.ts';
import { SHIPPED_PRICES } from '../../../src/metering/pricing/price-book.ts';
import { NOON, price } from './prices.ts';

const JUNE = '2026-06-01T00:00:00Z';
const LATER = '2026-12-01T00:00:00Z';

function named(name: string, fields: Partial<Price>): Price {
  return price({ ...fields, source: name });
}

describe('findPrice', () => {
  test.each<[what: string, layers: Price[][], found: string | null]>([
    ['no price: null', [[], []], null],
    ['another provider: null', [[named('a', { provider: 'q' })]], null],
    ['another model: null', [[named('a', { models: ['n'] })]], null],
    ['a price that begins later: null', [[named('a', { since: LATER })]], null],
    ['two prices: the later', [[named('a', {}), named('b', { since: JUNE })]], 'b'],
    ['two prices in the other order: the later', [[named('b', { since: JUNE }), named('a', {})]], 'b'],
    ['two prices with the same since: the first', [[named('a', {}), named('b', {})]], 'a'],
    [
      'a later glob: the exact name',
      [[named('glob', { models: ['*'], since: JUNE }), named('exact', {})]],
      'exact',
    ],
    [
      'an exact name that begins later: the glob',
      [[named('glob', { models: ['*'] }), named('exact', { since: LATER })]],
      'glob',
    ],
    [
      'two globs: the later',
      [[named('a', { models: ['m*'] }), named('b', { models: ['*'], since: JUNE })]],
      'b',
    ],
    [
      'a first layer with a glob: it decides',
      [[named('own', { models: ['*'] })], [named('shipped', {})]],
      'own',
    ],
    [
      'a first layer without the model: the next',
      [[named('own', { models: ['n'] })], [named('shipped', {})]],
      'shipped',
    ],
    [
      'a first layer that begins later: the next',
      [[named('own', { since: LATER })], [named('shipped', {})]],
      'shipped',
    ],
    ['the second id, if the first has no price', [[named('host', { provider: 'host' })]], 'host'],
    ['both ids: the first', [[named('host', { provider: 'host' }), named('own', {})]], 'own'],
    [
      'own prices of the second id: before shipped ones of the first',
      [[named('host', { provider: 'host' })], [named('own', {})]],
      'host',
    ],
  ])('P2 %s', (_, layers, found) => {
    expect(findPrice(layers.map(layerOf), ['p', 'host'], 'm', NOON)?.source ?? null).toBe(found);
  });

  test('P2 a price is in force from the first millisecond of its since', () => {
    const layers = [[price({ since: JUNE })]];
    expect(findPrice(layers.map(layerOf), ['p'], 'm', Date.parse(JUNE) - 1)).toBeNull();
    expect(findPrice(layers.map(layerOf), ['p'], 'm', Date.parse(JUNE))).not.toBeNull();
    expect(findPrice(layers.map(layerOf), ['p'], 'm', Number.NaN)).toBeNull();
  });

  test.each<[provider: string, model: string, input: number | null]>([
    ['deepseek', 'deepseek-flash', 0.15],
    ['deepseek', 'deepseek-v4-flash', 0.15],
    ['deepseek', 'deepseek-v4-flash-vision-exp', 0.15],
    ['deepseek', 'deepseek-v4-pro', 0.66],
    ['deepseek', 'deepseek-chat', null],
    ['mistral', 'mistral-large-latest', 0.5],
    ['mistral', 'mistral-medium-latest', 1.5],
    ['mistral', 'mistral-small-latest', 0.15],
    ['mistral', 'codestral-latest', 0.3],
    ['codestral', 'codestral-latest', 0.3],
    ['codestral', 'mistral-large-latest', null],
    ['openai', 'gpt-4o-mini', 0.15],
    ['openai', 'gpt-4o-mini-2024-07-18', 0.15],
    ['openai', 'gpt-4o-mini-audio-preview', null],
    ['openai', 'gpt-5.6', 4],
    ['openai', 'gpt-5-mini-2025-08-07', 0.25],
    ['openai', 'gpt-7', null],
    ['openai', 'gpt-6.1-terra', 1],
    ['openai', 'gpt-6.2-astra', 8],
    ['openai', 'gpt-6.2-sol', 2],
    ['anthropic', 'claude-fable-5-2', 8],
    ['anthropic', 'claude-mythos-5-2', 8],
    ['gemini', 'gemini-4-argon', 2],
    ['xai', 'grok-4.7', 2],
    ['groq', 'qwen/qwen3.8-27b', 0.8],
    ['anthropic', 'claude-sonnet-4-6', 3],
    ['anthropic', 'claude-opus-5-5-20260922', 4],
    ['anthropic', 'claude-opus-5', 5],
    ['gemini', 'gemini-2.5-pro', 1.25],
    ['gemini', 'models/gemini-2.5-pro', 1.25],
    ['gemini', 'gemini-2.5-flash-image', null],
    ['gemini', 'gemini-3.5-flash-lite', 0.3],
    ['groq', 'openai/gpt-oss-20b', 0.075],
    ['xai', 'grok-4.6', 2],
    ['opentoken', 'google/gemini-3-flash', null],
    ['xerotier', 'llama-3.1-8b', null],
  ])('P2 the shipped prices, %s/%s: %s per million input tokens', (provider, model, input) => {
    expect(findPrice([SHIPPED_PRICES], [provider], model, NOON)?.input ?? null).toBe(input);
  });

  test.each<[model: string, day: string, input: number]>([
    ['gemini-2.5-pro', '2026-11-30', 1.25],
    ['gemini-2.5-pro', '2026-12-01', 0.75],
    ['gemini-2.5-pro', '2027-01-01', 1.5],
    ['models/gemini-2.5-flash', '2026-11-30', 0.3],
    ['gemini-2.5-flash-lite', '2026-12-01', 0.1],
    ['gemini-4-argon', '2026-12-01', 4],
  ])('P2 the shipped prices, gemini/%s on %s: %s per million input tokens', (model, day, input) => {
    expect(findPrice([SHIPPED_PRICES], ['gemini'], model, Date.parse(day))?.input).toBe(input);
  });

  test.each<[provider: string, model: string, day: string, search: number | undefined]>([
    ['deepseek', 'deepseek-flash', '2026-10-31T15:59:59Z', 0],
    ['deepseek', 'deepseek-flash', '2026-10-31T16:00:00Z', 0.75],
    ['deepseek', 'deepseek-v4-pro', '2026-11-01', 0.75],
    ['anthropic', 'claude-haiku-5-5', '2026-11-22', 10],
    ['openai', 'gpt-6.2-sol', '2026-11-22', 10],
    ['openai', 'gpt-4o', '2026-11-22', 25],
    ['gemini', 'gemini-3.8-flash', '2026-11-22', 14],
    ['gemini', 'gemini-2.5-flash', '2026-11-22', undefined],
    ['mistral', 'mistral-large-latest', '2026-11-22', undefined],
  ])('P1 the shipped prices, %s/%s on %s: %s per 1,000 searches', (provider, model, day, search) => {
    expect(findPrice([SHIPPED_PRICES], [provider], model, Date.parse(day))?.web_search).toBe(search);
  });

  test('P2 Gemini 2.5 Flash has the rates of 3.5 Flash-Lite from 2026-12-01', () => {
    const at = (model: string) => findPrice([SHIPPED_PRICES], ['gemini'], model, Date.parse('2026-12-01'));
    const { input, cached_input, output, audio_input } = at('gemini-3.5-flash-lite') ?? {};
    expect(at('gemini-2.5-flash')).toMatchObject({ input, cached_input, output, audio_input });
    expect(at('gemini-2.5-pro')?.above).toBeUndefined();
  });

  test('P1 OpenAI: a cache write for 12 hours costs 2.5 times the input, in each tier and for long prompts', () => {
    const at = (model: string, tier: string) => findPrice([SHIPPED_PRICES], ['openai'], model, NOON, tier);
    expect(at('gpt-6.2-sol', 'default')).toMatchObject({ cache_write: 2.5, cache_write_long: 5 });
    expect(at('gpt-6.2-sol', 'default')?.above).toMatchObject({ cache_write: 5, cache_write_long: 10 });
    expect(at('gpt-6.1-terra', 'flex')).toMatchObject({ cache_write: 0.625, cache_write_long: 1.25 });
  });

  test('P2 a price of the response’s tier comes before others of the same layer and of later layers', () => {
    const own = [
      { ...price({ input: 2 }), service_tiers: ['priority'] },
      { ...price({ input: 1 }), service_tiers: ['default', 'auto'] },
    ];
    const below = [price({ input: 9 })];
    const inputAt = (tier?: string) => findPrice([own, below].map(layerOf), ['p'], 'm', NOON, tier)?.input;
    expect([inputAt(), inputAt('auto'), inputAt('priority'), inputAt('other')]).toEqual([1, 1, 2, 9]);
    // It also comes before a later price for all tiers. An exact model name comes before both.
    const all = { ...price({ input: 3 }), since: JUNE };
    const glob = { ...price({ input: 4, models: ['m*'] }), service_tiers: ['other'] };
    const inputOf = (tier: string) =>
      findPrice([layerOf([...own, all, glob])], ['p'], 'm', NOON, tier)?.input;
    expect([inputOf('priority'), inputOf('other')]).toEqual([2, 3]);
  });

  test.each<[provider: string, model: string, tier: string, input: number | null]>([
    ['openai', 'gpt-5-mini', 'flex', 0.125],
    ['openai', 'gpt-5-mini', 'priority', 0.45],
    ['openai', 'gpt-5-nano', 'priority', null],
    ['gemini', 'gemini-2.5-pro', 'default', 1.25],
    ['gemini', 'gemini-2.5-pro', 'priority', null],
    ['groq', 'openai/gpt-oss-20b', 'on_demand', 0.075],
  ])(
    'P1 P2 the shipped prices, %s/%s in the tier %s: %s per million input tokens',
    (provider, model, tier, input) => {
      expect(findPrice([SHIPPED_PRICES], [provider], model, NOON, tier)?.input ?? null).toBe(input);
    },
  );

  test('P1 flex is half of every rate, also for long prompts', () => {
    const at = (tier: string) => findPrice([SHIPPED_PRICES], ['openai'], 'gpt-6-sol', NOON, tier);
    expect(at('flex')).toMatchObject({ input: 1, cached_input: 0.1, cache_write: 1.25, output: 5 });
    expect(at('flex')?.above).toEqual({
      prompt_tokens: 272_000,
      input: 2,
      cached_input: 0.2,
      cache_write: 2.5,
      cache_write_long: 5,
      output: 7.5,
    });
  });

  test('P2 an announced price is in force from its day on', () => {
    const inputAt = (day: string) =>
      findPrice([SHIPPED_PRICES], ['gemini'], 'gemini-3.8-flash', Date.parse(day))?.input;
    expect(inputAt('2026-12-31T23:59:59.999Z')).toBe(0.75);
    expect(inputAt('2027-01-01T00:00:00Z')).toBe(1.5);
  });
});

/**
 * Gemini's prices of the paid standard tier: https://ai.google.dev/gemini-api/docs/pricing. The storage of an explicit cache is not
 * part of a request's usage.
 */
import { priceOfTier, type Rates, type ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'gemini',
  currency: 'USD',
  since: '2026-05-01T00:00:00Z',
  source: 'https://ai.google.dev/gemini-api/docs/pricing, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-21',
} as const;

/** The OpenAI-compatible endpoint accepts names with and without the prefix. */
function named(...names: readonly string[]): string[] {
  return names.flatMap((name) => [name, `models/${name}`]);
}

const FLASH = {
  ...PAGE,
  models: named('gemini-3.8-flash*', 'gemini-3.7-flash*', 'gemini-3.6-flash*'),
} as const;

/** "Through December 31, 2026". Audio input has the same rate as text. */
const FLASH_2026: Rates = { input: 0.75, cached_input: 0.075, output: 3.75, audio_input: 0.75 };
const FLASH_2027: Rates = { input: 1.5, cached_input: 0.15, output: 7.5, audio_input: 1.5 };
const FLASH_LITE: Rates = { input: 0.3, cached_input: 0.03, output: 2.5, audio_input: 0.3 };

/** "Through November 30, 2026": BerriAI/litellm#46238 and iyulab/TokenMeter v0.13.1 (2026-10-13). */
const ARGON = {
  ...PAGE,
  models: named('gemini-4-argon*'),
  source: 'https://ai.google.dev/gemini-api/docs/pricing, cited by BerriAI/litellm#46238',
  checked: '2026-11-22',
} as const;

/**
 * From this day on, newer models serve these names at their own rates; 2.5 Flash-Lite stays. No page states the hour. Google Cloud has
 * other dates.
 */
const RETIRED_25 = {
  ...PAGE,
  since: '2026-12-01T00:00:00Z',
  source:
    'https://ai.google.dev/gemini-api/docs/deprecations, cited by https://dev.to/aideprecations (2026-11-10)',
  checked: '2026-11-22',
} as const;

/** The prices of the standard tier. */
function standardPrices(): readonly ShippedPrice[] {
  return [
    { ...ARGON, since: '2026-09-30T00:00:00Z', input: 2, cached_input: 0.1, output: 10 },
    { ...ARGON, since: '2026-12-01T00:00:00Z', input: 4, cached_input: 0.2, output: 20 },
    { ...FLASH, since: '2026-08-13T00:00:00Z', ...FLASH_2026 },
    { ...FLASH, since: '2027-01-01T00:00:00Z', ...FLASH_2027 },
    { ...RETIRED_25, models: named('gemini-2.5-pro'), ...FLASH_2026 },
    { ...RETIRED_25, models: named('gemini-2.5-pro'), since: '2027-01-01T00:00:00Z', ...FLASH_2027 },
    { ...RETIRED_25, models: named('gemini-2.5-flash'), ...FLASH_LITE },
    {
      ...PAGE,
      models: named('gemini-3.1-pro-preview*', 'gemini-3-pro-preview*'),
      input: 2,
      cached_input: 0.2,
      output: 12,
      above: { prompt_tokens: 200_000, input: 4, cached_input: 0.4, output: 18 },
    },
    { ...PAGE, models: named('gemini-3.5-flash'), input: 1.5, cached_input: 0.15, output: 9 },
    { ...PAGE, models: named('gemini-3.5-flash-lite*'), ...FLASH_LITE },
    {
      ...PAGE,
      models: named('gemini-3.1-flash-lite', 'gemini-3.1-flash-lite-preview*'),
      input: 0.25,
      cached_input: 0.025,
      output: 1.5,
      audio_input: 0.5,
    },
    {
      ...PAGE,
      models: named('gemini-3-flash-preview*'),
      input: 0.5,
      cached_input: 0.05,
      output: 3,
      audio_input: 1,
    },
    {
      ...PAGE,
      models: named('gemini-2.5-pro'),
      input: 1.25,
      cached_input: 0.125,
      output: 10,
      above: { prompt_tokens: 200_000, input: 2.5, cached_input: 0.25, output: 15 },
    },
    {
      ...PAGE,
      models: named('gemini-2.5-flash'),
      input: 0.3,
      cached_input: 0.03,
      output: 2.5,
      audio_input: 1,
    },
    {
      ...PAGE,
      models: named('gemini-2.5-flash-lite'),
      input: 0.1,
      cached_input: 0.01,
      output: 0.4,
      audio_input: 0.3,
    },
  ];
}

/**
 * Gemini 3 and later: $14 per 1,000 queries of Google Search beyond a free quota, which responses do not report. Gemini 2.5: $35 per
 * 1,000 prompts with any number of queries, which a rate per query cannot express. Sources: the page (2026-09-17) and
 * iyulab/TokenMeter v0.13.1 (2026-10-13).
 */
function webSearch({ models, since }: ShippedPrice): Pick<ShippedPrice, 'web_search'> {
  const is25 = models.some((name) => name.startsWith('gemini-2.5'));
  return is25 && since < RETIRED_25.since ? {} : { web_search: 14 };
}

/** Embeddings of texts have no output and no tiers. */
function embeddingPrices(): readonly ShippedPrice[] {
  return [
    { ...PAGE, models: named('gemini-embedding-001'), input: 0.15, output: 0 },
    { ...PAGE, models: named('gemini-embedding-2'), input: 0.2, output: 0 },
  ];
}

/**
 * The standard tier, and `flex` at half of its tokens' rates. `priority` has none: it costs 75 to 100 % more, by model
 * (https://ai.google.dev/gemini-api/docs/optimization, read 2026-11-28).
 */
export function geminiPrices(): readonly ShippedPrice[] {
  return [
    ...embeddingPrices(),
    ...standardPrices().flatMap((price) => {
      const whole = { ...price, ...webSearch(price) };
      return [{ ...whole, service_tiers: ['default', 'standard'] }, priceOfTier(whole, ['flex'], 0.5)];
    }),
  ];
}

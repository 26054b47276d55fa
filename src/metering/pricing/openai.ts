/** OpenAI's prices of the standard, the flex and the fast tier: https://developers.openai.com/api/docs/pricing. */
import type { Writable } from '../../shared/writable.ts';
import { priceOfTier, type Rates, type ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'openai',
  currency: 'USD',
  since: '2026-01-01T00:00:00Z',
  source: 'https://developers.openai.com/api/docs/pricing, cited by @pydantic/genai-prices 0.1.8',
  checked: '2026-11-21',
} as const;

/** Each name and its dated snapshots, such as `gpt-5-mini-2025-08-07`. */
function snapshots(...names: readonly string[]): string[] {
  return names.flatMap((name) => [name, `${name}-20*`]);
}

/** If the prompt has more than 272,000 tokens, the whole request costs twice the input rates and 1.5 times the output rate. */
function longContext(rates: Rates): Pick<ShippedPrice, keyof Rates | 'above'> {
  const above: Writable<Rates> & { prompt_tokens: number } = { prompt_tokens: 272_000 };
  for (const rate of ['input', 'cached_input', 'cache_write', 'cache_write_long'] as const) {
    if (rates[rate] !== undefined) above[rate] = rates[rate] * 2;
  }
  if (rates.output !== undefined) above.output = rates.output * 1.5;
  return { ...rates, above };
}

/**
 * A cache write for 12 hours costs 2.5 times the input, and one for 30 minutes 1.25 times: the pages of gpt-6.1-terra and gpt-6.2-sol
 * (2026-11-22). No page was found that confirms it for older models with cache writes; for them it is an upper bound.
 */
function cached(input: number, cached_input: number, output: number): Rates {
  return { input, cached_input, cache_write: input * 1.25, cache_write_long: input * 2.5, output };
}

/** The prices of the standard tier. */
function standardPrices(): readonly ShippedPrice[] {
  return [
    {
      ...PAGE,
      models: snapshots('gpt-6.2-astra'),
      since: '2026-11-17T00:00:00Z',
      ...longContext(cached(8, 0.4, 40)),
      source:
        'https://developers.openai.com/api/docs/models/gpt-6.2-astra, cited by BerriAI/litellm#52347 and https://vercel.com/ai-gateway/models/gpt-6.2-astra',
      checked: '2026-11-22',
    },
    {
      ...PAGE,
      models: snapshots('gpt-6.2-sol'),
      since: '2026-11-17T00:00:00Z',
      ...longContext(cached(2, 0.1, 10)),
      source: 'https://developers.openai.com/api/docs/models/gpt-6.2-sol',
      checked: '2026-11-22',
    },
    {
      ...PAGE,
      models: snapshots('gpt-6.1-terra'),
      since: '2026-10-26T00:00:00Z',
      ...longContext(cached(1, 0.05, 5)),
      source: 'https://developers.openai.com/api/docs/models/gpt-6.1-terra',
      checked: '2026-11-22',
    },
    {
      ...PAGE,
      models: snapshots('gpt-6.1-sol'),
      since: '2026-09-29T00:00:00Z',
      ...longContext(cached(2, 0.1, 10)),
      source:
        'https://developers.openai.com/api/docs/models/gpt-6.1-sol, cited by TheKrush/PromptFuel v1.0.22',
    },
    {
      ...PAGE,
      models: snapshots('gpt-6-sol'),
      since: '2026-09-22T00:00:00Z',
      ...longContext(cached(2, 0.2, 10)),
    },
    {
      ...PAGE,
      models: snapshots('gpt-6-luna'),
      since: '2026-09-22T00:00:00Z',
      ...longContext(cached(0.1, 0.01, 0.5)),
    },
    {
      ...PAGE,
      models: snapshots('gpt-6-astra'),
      since: '2026-09-03T00:00:00Z',
      ...longContext(cached(10, 1, 50)),
    },
    {
      ...PAGE,
      // The lower price was promised "at least through 2026-11-21" (Azure: 2026-11-30): raif#545 (2026-08-27),
      // anomalyco/models.dev#5992. Whether it ended was not found (2026-11-23), so this is the price before the promotion.
      models: snapshots('gpt-5.6', 'gpt-5.6-sol'),
      since: '2026-11-22T00:00:00Z',
      ...longContext(cached(5, 0.5, 30)),
      upper_bound: true,
      checked: '2026-11-23',
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.6', 'gpt-5.6-sol'),
      since: '2026-08-21T00:00:00Z',
      ...longContext(cached(4, 0.4, 20)),
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.6-terra'),
      since: '2026-07-30T00:00:00Z',
      ...longContext(cached(2, 0.2, 12)),
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.6-luna'),
      since: '2026-07-30T00:00:00Z',
      ...longContext(cached(0.2, 0.02, 1.2)),
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.5'),
      since: '2026-04-23T00:00:00Z',
      ...longContext({ input: 5, cached_input: 0.5, output: 30 }),
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.4'),
      since: '2026-03-05T00:00:00Z',
      ...longContext({ input: 2.5, cached_input: 0.25, output: 15 }),
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.4-mini'),
      since: '2026-03-17T00:00:00Z',
      input: 0.75,
      cached_input: 0.075,
      output: 4.5,
    },
    {
      ...PAGE,
      models: snapshots('gpt-5.4-nano'),
      since: '2026-03-17T00:00:00Z',
      input: 0.2,
      cached_input: 0.02,
      output: 1.25,
    },
    {
      ...PAGE,
      models: [
        ...snapshots('gpt-5.2'),
        'gpt-5.2-chat-latest',
        'gpt-5.2-codex',
        'gpt-5.3-chat-latest',
        'gpt-5.3-codex',
      ],
      input: 1.75,
      cached_input: 0.175,
      output: 14,
    },
    {
      ...PAGE,
      models: [
        ...snapshots('gpt-5', 'gpt-5.1'),
        'gpt-5-chat-latest',
        'gpt-5-codex',
        'gpt-5.1-chat-latest',
        'gpt-5.1-codex',
        'gpt-5.1-codex-max',
      ],
      input: 1.25,
      cached_input: 0.125,
      output: 10,
    },
    {
      ...PAGE,
      models: [...snapshots('gpt-5-mini'), 'gpt-5.1-codex-mini'],
      input: 0.25,
      cached_input: 0.025,
      output: 2,
    },
    { ...PAGE, models: snapshots('gpt-5-nano'), input: 0.05, cached_input: 0.005, output: 0.4 },
    { ...PAGE, models: snapshots('gpt-4.1'), input: 2, cached_input: 0.5, output: 8 },
    { ...PAGE, models: snapshots('gpt-4.1-mini'), input: 0.4, cached_input: 0.1, output: 1.6 },
    { ...PAGE, models: snapshots('gpt-4.1-nano'), input: 0.1, cached_input: 0.025, output: 0.4 },
    {
      ...PAGE,
      models: ['gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o-2024-11-20'],
      input: 2.5,
      cached_input: 1.25,
      output: 10,
    },
    { ...PAGE, models: ['gpt-4o-2024-05-13'], input: 5, output: 15 },
    { ...PAGE, models: snapshots('gpt-4o-mini'), input: 0.15, cached_input: 0.075, output: 0.6 },
    { ...PAGE, models: snapshots('o3'), input: 2, cached_input: 0.5, output: 8 },
    { ...PAGE, models: snapshots('o3-mini'), input: 1.1, cached_input: 0.55, output: 4.4 },
    { ...PAGE, models: snapshots('o4-mini'), input: 1.1, cached_input: 0.275, output: 4.4 },
    { ...PAGE, models: snapshots('o1'), input: 15, cached_input: 7.5, output: 60 },
    {
      ...PAGE,
      models: [...snapshots('gpt-audio'), 'gpt-audio-1.5'],
      input: 2.5,
      output: 10,
      audio_input: 32,
      audio_output: 64,
    },
    {
      ...PAGE,
      models: snapshots('gpt-audio-mini'),
      input: 0.6,
      output: 2.4,
      audio_input: 10,
      audio_output: 20,
    },
    { ...PAGE, models: snapshots('gpt-4-turbo'), input: 10, output: 30 },
    { ...PAGE, models: ['gpt-4', 'gpt-4-0613'], input: 30, output: 60 },
    { ...PAGE, models: ['gpt-3.5-turbo', 'gpt-3.5-turbo-0125'], input: 0.5, output: 1.5 },
    { ...PAGE, models: ['gpt-3.5-turbo-instruct', 'gpt-3.5-turbo-instruct-0914'], input: 1.5, output: 2 },
  ];
}

/** Half of all rates, the same as in a batch: https://developers.openai.com/api/docs/guides/flex-processing (read 2026-11-22). */
function flex(price: ShippedPrice): ShippedPrice {
  return priceOfTier(price, ['flex'], 0.5);
}

/** A request for `fast` or `priority` is answered with `priority`: anomalyco/models.dev#5375, 2026-08-25. */
const FAST = ['priority', 'fast'];

/**
 * From gpt-5.6 on fast mode costs twice all rates, also above the threshold: the "Fast mode" tab of the page, by anomalyco/models.dev#5375
 * (gpt-5.6-sol, 2026-08-25), and copies of it of 2026-09-23 (gpt-6) and 2026-10 (gpt-6.1-sol). gpt-6.1-terra and gpt-6.2 are taken to be
 * the same, and marked.
 */
function fast(price: ShippedPrice): ShippedPrice[] {
  if (!price.models.some((model) => /^gpt-(?:5\.6|6)/.test(model))) return [];
  const isStated = price.models.some((model) => /^gpt-(?:5\.6|6-|6\.1-sol)/.test(model));
  return [
    {
      ...priceOfTier(price, FAST, 2),
      ...(isStated ? {} : { upper_bound: true as const }),
      checked: '2026-11-23',
    },
  ];
}

const PRIORITY_PAGE = {
  ...PAGE,
  service_tiers: FAST,
  source:
    'https://openai.com/api-priority-processing/ and https://developers.openai.com/api/docs/pricing, cited by https://tokenmix.ai (2026-06-04)',
  checked: '2026-11-23',
} as const;

/** The older models that the page lists: their factors differ. It excludes long prompts, which no model here has a priority price for. */
function priorityPrices(): readonly ShippedPrice[] {
  return [
    { models: snapshots('gpt-5.5'), input: 12.5, cached_input: 1.25, output: 75 },
    { models: snapshots('gpt-5.4'), input: 5, cached_input: 0.5, output: 30 },
    { models: snapshots('gpt-5.4-mini'), input: 1.5, cached_input: 0.15, output: 9 },
    { models: snapshots('gpt-5.2'), input: 3.5, cached_input: 0.35, output: 28 },
    {
      models: [...snapshots('gpt-5', 'gpt-5.1'), 'gpt-5-codex', 'gpt-5.1-codex'],
      input: 2.5,
      cached_input: 0.25,
      output: 20,
    },
    { models: snapshots('gpt-5-mini'), input: 0.45, cached_input: 0.045, output: 3.6 },
    { models: snapshots('gpt-4.1'), input: 3.5, cached_input: 0.875, output: 14 },
    { models: snapshots('gpt-4.1-mini'), input: 0.7, cached_input: 0.175, output: 2.8 },
    { models: snapshots('gpt-4.1-nano'), input: 0.2, cached_input: 0.05, output: 0.8 },
    {
      models: ['gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o-2024-11-20'],
      input: 4.25,
      cached_input: 2.125,
      output: 17,
    },
    { models: ['gpt-4o-2024-05-13'], input: 8.75, output: 26.25 },
    { models: snapshots('gpt-4o-mini'), input: 0.25, cached_input: 0.125, output: 1 },
    { models: snapshots('o3'), input: 3.5, cached_input: 0.875, output: 14 },
    { models: snapshots('o4-mini'), input: 2, cached_input: 0.5, output: 8 },
  ].map((rates) => ({ ...PRIORITY_PAGE, ...rates }));
}

/**
 * Per 1,000 searches in all tiers: $10, or $25 with the preview tool at models that do not reason. The response does not name the
 * tool, so these models have the higher rate. https://developers.openai.com/api/docs/pricing, "Built-in tools" (read 2026-11-22)
 */
function webSearch({ models }: ShippedPrice): number {
  return models.some((name) => /^(gpt-4|gpt-3)/.test(name)) ? 25 : 10;
}

/** A stream of Responses begins with the requested `auto` and names the tier that was used at its end (recorded). */
const STANDARD = ['default', 'auto'];

/** Embeddings have no output, no tiers and no searches. */
function embeddingPrices(): readonly ShippedPrice[] {
  return [
    { ...PAGE, models: ['text-embedding-3-small'], input: 0.02, output: 0 },
    { ...PAGE, models: ['text-embedding-3-large'], input: 0.13, output: 0 },
    { ...PAGE, models: ['text-embedding-ada-002'], input: 0.1, output: 0 },
  ];
}

/** All prices of OpenAI. */
export function openaiPrices(): readonly ShippedPrice[] {
  const searching = [
    ...standardPrices().flatMap((price) => [
      { ...price, service_tiers: STANDARD },
      flex(price),
      ...fast(price),
    ]),
    ...priorityPrices(),
  ];
  return [...embeddingPrices(), ...searching.map((price) => ({ ...price, web_search: webSearch(price) }))];
}

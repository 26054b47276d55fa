/** Anthropic's prices: https://platform.claude.com/docs/en/about-claude/pricing. */
import { priceOfTier, type Rates, type ShippedPrice } from './price.ts';

const PAGE = {
  provider: 'anthropic',
  currency: 'USD',
  since: '2026-05-01T00:00:00Z',
  source: 'https://platform.claude.com/docs/en/about-claude/pricing',
  checked: '2026-11-21',
} as const;

/**
 * Claude 5.2. The models are on the models' page in @anthropic-ai/sdk 1.7.0 (2026-11-09). Not verified on the
 * provider's page; sources of the prices:
 * @earendil-works/pi-ai 1.5.2 (2026-11-10) and docs.laozhang.ai (2026-11-10).
 */
const V52 = {
  ...PAGE,
  source: `${PAGE.source}, cited by @earendil-works/pi-ai 1.5.2 and https://docs.laozhang.ai/en/announcements/claude-fable-5-2-2026-11`,
  checked: '2026-11-22',
} as const;

/**
 * Models that are newer than the copy of the page that was read. Not verified on the provider's page; sources:
 * TheKrush/PromptFuel v1.0.21 to v1.0.23 and synaps 0.10.2.
 */
const NEWER = { ...PAGE, source: `${PAGE.source}, cited by TheKrush/PromptFuel v1.0.23` } as const;

const SONNET_55 = {
  ...NEWER,
  models: ['claude-sonnet-5-5', 'claude-sonnet-5-5-20*'],
  input: 2,
  cache_write: 2.5,
  output: 10,
} as const;

/** The prices of the standard tier. */
function standardPrices(): readonly ShippedPrice[] {
  return [
    {
      ...V52,
      // No separate price was found for Mythos 5.2. Each earlier Mythos costs the same as its Fable.
      models: ['claude-fable-5-2', 'claude-fable-5-2-20*', 'claude-mythos-5-2'],
      since: '2026-11-09T00:00:00Z',
      input: 8,
      cached_input: 0.2,
      cache_write: 10,
      output: 40,
    },
    {
      ...NEWER,
      models: ['claude-fable-5-1', 'claude-fable-5-1-20*', 'claude-mythos-5-1'],
      since: '2026-09-01T00:00:00Z',
      input: 10,
      cached_input: 0.25,
      cache_write: 12.5,
      output: 50,
    },
    {
      ...PAGE,
      models: ['claude-fable-5', 'claude-fable-5-20*', 'claude-mythos-5'],
      input: 10,
      cached_input: 1,
      cache_write: 12.5,
      output: 50,
    },
    {
      ...NEWER,
      models: ['claude-opus-5-5', 'claude-opus-5-5-20*'],
      since: '2026-09-22T00:00:00Z',
      input: 4,
      cached_input: 0.2,
      cache_write: 5,
      output: 20,
    },
    {
      ...PAGE,
      models: [
        'claude-opus-5',
        'claude-opus-5-20*',
        'claude-opus-4-8*',
        'claude-opus-4-7*',
        'claude-opus-4-6*',
        'claude-opus-4-5*',
      ],
      input: 5,
      cached_input: 0.5,
      cache_write: 6.25,
      output: 25,
    },
    { ...SONNET_55, since: '2026-09-28T00:00:00Z', cached_input: 0.2 },
    { ...SONNET_55, since: '2026-10-07T00:00:00Z', cached_input: 0.1 },
    {
      ...PAGE,
      models: ['claude-sonnet-5', 'claude-sonnet-5-20*'],
      input: 2,
      cached_input: 0.2,
      cache_write: 2.5,
      output: 10,
    },
    {
      ...PAGE,
      models: ['claude-sonnet-4-6*', 'claude-sonnet-4-5*'],
      input: 3,
      cached_input: 0.3,
      cache_write: 3.75,
      output: 15,
    },
    {
      ...NEWER,
      models: ['claude-haiku-5-5', 'claude-haiku-5-5-20*'],
      since: '2026-10-07T00:00:00Z',
      input: 0.1,
      cached_input: 0.01,
      cache_write: 0.125,
      output: 0.5,
      above: { prompt_tokens: 100_000, input: 0.5, cached_input: 0.05, cache_write: 0.625, output: 2.5 },
    },
    {
      ...PAGE,
      models: ['claude-haiku-4-5*'],
      input: 1,
      cached_input: 0.1,
      cache_write: 1.25,
      output: 5,
    },
  ];
}

/** For every model, a cache write for one hour costs twice the input, and one for five minutes 1.25 times (the page, 2026-11-21). */
function withHourlyWrites<R extends Rates>(rates: R): R {
  return rates.input === undefined ? rates : { ...rates, cache_write_long: rates.input * 2 };
}

/** $10 per 1,000 web searches, which `usage.server_tool_use.web_search_requests` counts (the page, 2026-11-22). */
const WEB_SEARCH = 10;
/** A response names no tier in the normal case, which counts as `default`. */
const STANDARD = ['default'];

/**
 * `speed: "fast"` doubles the rate of every kind of token. Sources: https://platform.claude.com/docs/en/build-with-claude/fast-mode
 * (models; read 2026-11-22), Google's page of claude-fable-5-2 (factor), claudit v1.9.0 (2026-09-24) and OpenRouter's
 * claude-opus-5-fast (prices). Opus 4.8 has it until 2026-11-30; Opus 4.6 and 4.7 no longer have it.
 */
const FAST = /^claude-(?:opus-5-5|opus-5|opus-4-8|fable-5-2|mythos-5-2)(?:$|-20|\*)/;
/**
 * `inference_geo: "us"` multiplies all rates by 1.1, also those of `fast`. Sources:
 * https://docs.aws.amazon.com/claude-platform/latest/userguide/data-residency.html and
 * https://platform.claude.com/docs/en/manage-claude/data-residency (2026-11-22). Models before 4.6 reject it.
 */
const WITHOUT_GEO = /^claude-[a-z]+-4-5/;

/** The price of a tier, as responses name it, for the models that support it; none if no model does. */
function premiumTier(
  price: ShippedPrice,
  tier: string,
  factor: number,
  isSupported: (model: string) => boolean,
): ShippedPrice[] {
  const models = price.models.filter(isSupported);
  return models.length === 0 ? [] : [priceOfTier({ ...price, models }, [tier], factor)];
}

const isFast = (model: string) => FAST.test(model);
const hasGeo = (model: string) => !WITHOUT_GEO.test(model);

/** All prices of Anthropic. */
export function anthropicPrices(): readonly ShippedPrice[] {
  return standardPrices()
    .map((price) => ({
      ...withHourlyWrites(price),
      web_search: WEB_SEARCH,
      ...(price.above && { above: withHourlyWrites(price.above) }),
    }))
    .flatMap((price) => [
      { ...price, service_tiers: STANDARD },
      ...premiumTier(price, 'fast', 2, isFast),
      ...premiumTier(price, 'us', 1.1, hasGeo),
      ...premiumTier(price, 'fast+us', 2.2, (model) => isFast(model) && hasGeo(model)),
    ]);
}

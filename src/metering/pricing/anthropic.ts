/** Anthropic's prices: https://platform.claude.com/docs/en/about-claude/pricing. */
import type { Rates, ShippedPrice } from './price.ts';
import { timesRates } from './rates.ts';

const PAGE = {
  provider: 'anthropic',
  currency: 'USD',
  since: '2026-05-01T00:00:00Z',
  source: 'https://platform.claude.com/docs/en/about-claude/pricing',
  checked: '2026-11-21',
} as const;

/** Claude 5.2: the models' page in @anthropic-ai/sdk 1.7.0 (2026-11-09) names them; prices as @earendil-works/pi-ai 1.5.2 (2026-11-10) and docs.laozhang.ai (2026-11-10) read them. */
const V52 = {
  ...PAGE,
  source: `${PAGE.source}, as @earendil-works/pi-ai 1.5.2 and https://docs.laozhang.ai/en/announcements/claude-fable-5-2-2026-11 read it`,
  checked: '2026-11-22',
} as const;

/** Models after its stored copy, as TheKrush/PromptFuel v1.0.21 to v1.0.23 and synaps 0.10.2 read the page. */
const NEWER = { ...PAGE, source: `${PAGE.source}, as TheKrush/PromptFuel v1.0.23 read it` } as const;

const SONNET_55 = {
  ...NEWER,
  models: ['claude-sonnet-5-5', 'claude-sonnet-5-5-20*'],
  input: 2,
  cache_write: 2.5,
  output: 10,
} as const;

const PRICES: readonly ShippedPrice[] = [
  {
    ...V52,
    // For Mythos 5.2 no price of its own was found: each Mythos before it costs what its Fable does.
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

/** Of every model a write that is kept for an hour costs twice the input, one of five minutes 1.25 times (the page, 2026-11-21). */
function withHourlyWrites<R extends Rates>(rates: R): R {
  return rates.input === undefined ? rates : { ...rates, cache_write_long: rates.input * 2 };
}

/** $10 per 1,000 of its web searches, each counted in `usage.server_tool_use.web_search_requests` (the page, 2026-11-22). */
const WEB_SEARCH = 10;
/** Messages name no tier where they are made as all are: then it is the default. */
const STANDARD = ['default'];

/**
 * `speed: "fast"` costs twice as much of every kind of token: https://platform.claude.com/docs/en/build-with-claude/fast-mode has
 * the models (read 2026-11-22), Google's page of claude-fable-5-2 the factor, and claudit v1.9.0 (2026-09-24) and OpenRouter's
 * claude-opus-5-fast its prices. Opus 4.8 has it until 2026-11-30; what Opus 4.6 and 4.7 had is gone.
 */
const FAST = /^claude-(?:opus-5-5|opus-5|opus-4-8|fable-5-2|mythos-5-2)(?:$|-20|\*)/;
/**
 * `inference_geo: "us"` costs 1.1 times as much, on top of that: https://docs.aws.amazon.com/claude-platform/latest/userguide/data-residency.html
 * and https://platform.claude.com/docs/en/manage-claude/data-residency (2026-11-22). Models of before 4.6 refuse it.
 */
const WITHOUT_PLACE = /^claude-[a-z]+-4-5/;

/** The price of the models that can be asked so, as answers name what they were made with. */
function dearer(price: ShippedPrice, tier: string, factor: number, takes: (model: string) => boolean) {
  const models = price.models.filter(takes);
  const { above } = price;
  const dear: ShippedPrice = {
    ...price,
    ...timesRates(price, factor),
    ...(above && { above: { ...timesRates(above, factor), prompt_tokens: above.prompt_tokens } }),
    models,
    service_tiers: [tier],
  };
  return models.length === 0 ? [] : [dear];
}

const isFast = (model: string) => FAST.test(model);
const hasPlaces = (model: string) => !WITHOUT_PLACE.test(model);

export const ANTHROPIC: readonly ShippedPrice[] = PRICES.map((price) => ({
  ...withHourlyWrites(price),
  web_search: WEB_SEARCH,
  ...(price.above && { above: withHourlyWrites(price.above) }),
})).flatMap((price) => [
  { ...price, service_tiers: STANDARD },
  ...dearer(price, 'fast', 2, isFast),
  ...dearer(price, 'us', 1.1, hasPlaces),
  ...dearer(price, 'fast+us', 2.2, (model) => isFast(model) && hasPlaces(model)),
]);

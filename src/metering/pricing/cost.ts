/** Computes what a request costs: finds the price in force and applies its rates to the tokens. */
import type { BilledUsage } from '../../canonical/usage.ts';
import { matchesAnyGlob } from '../../shared/glob.ts';
import { MAX_COST_NANO } from '../../shared/money.ts';
import {
  type Calendar,
  type Peak,
  type Price,
  type PriceTable,
  pricesOf,
  RATES,
  type Rates,
} from './price.ts';

export interface Cost {
  /** Integer of 10^-9 of the currency. */
  readonly nano: number;
  readonly currency: string;
  /** The `since` of the price that was applied; null: the upstream reported the cost. */
  readonly priceSince: string | null;
  /** The true cost may be lower. */
  readonly isUpperBound: boolean;
  /** What the tokens of each kind cost. Absent: the upstream reported one sum. */
  readonly parts?: CostParts;
}

/** The cost by kinds of tokens, in integers of 10^-9 of the currency. Searches are in none, so the parts may be less than the whole. */
export interface CostParts {
  /** The prompt, writes to the cache included, without what was read from it. */
  readonly input: number;
  /** What was read from the provider's cache. */
  readonly cached: number;
  /** The completion, reasoning included. */
  readonly output: number;
}

export interface PricedRequest {
  /** Ids under which the provider's prices are looked up, in order (`ConfiguredProvider.priceIds`). */
  readonly priceIds: readonly string[];
  /** The provider's name of the model. */
  readonly model: string;
  readonly usage: BilledUsage;
  /** The service tier that was sent to the provider. A response without a tier had this one or the default one. Absent: none. */
  readonly requestedTier?: string | undefined;
  /** The cost that the upstream reports: an integer of 10^-9 US dollars, or null. */
  readonly upstreamCost: number | null;
  /** The request's end, in ms since the epoch. */
  readonly endMs: number;
}

/** The cost that the upstream reports, else the cost by the price table; null if unknown. */
export function costOfRequest(table: PriceTable, request: PricedRequest): Cost | null {
  const { priceIds, model, usage, requestedTier, upstreamCost, endMs } = request;
  if (upstreamCost !== null)
    return { nano: upstreamCost, currency: 'USD', priceSince: null, isUpperBound: false };
  const costIn = (tier: string | undefined) => {
    const price = findPrice(table, priceIds, model, endMs, tier);
    return price === null ? null : costAtPrice(usage, price, endMs);
  };
  const cost = costIn(usage.service_tier);
  if (usage.service_tier !== undefined || requestedTier === undefined || cost === null) return cost;
  return dearer(cost, costIn(requestedTier));
}

/** Either may be the true cost. */
function dearer(cost: Cost, other: Cost | null): Cost {
  if (other?.currency !== cost.currency || other.nano === cost.nano) return cost;
  return { ...(other.nano > cost.nano ? other : cost), isUpperBound: true };
}

/** The tier of a response that names none. */
const DEFAULT_TIER = 'default';

/**
 * Finds the price in force. The first layer with a price decides. In it, an exact model name comes before a glob, then a price for
 * the service tier before one for all tiers, then the latest `since` that is not after the end, then the order of the list.
 * @param priceIds ids under which the provider's prices are looked up, in order (`ConfiguredProvider.priceIds`)
 * @param model the provider's name of the model
 * @param endMs the request's end, in ms since the epoch
 * @param tier the service tier that the response names
 * @returns null if there is no price
 */
export function findPrice(
  table: PriceTable,
  priceIds: readonly string[],
  model: string,
  endMs: number,
  tier = DEFAULT_TIER,
): Price | null {
  for (const layer of table) {
    for (const provider of priceIds) {
      const { exact, globbed } = candidatesIn(layer.ofModel(provider, model), model);
      const found = latest(exact, endMs, tier) ?? latest(globbed, endMs, tier);
      if (found !== null) return found;
    }
  }
  return null;
}

/** The models that prices of these providers name without a glob. */
export function pricedModels(table: PriceTable, priceIds: readonly string[]): string[] {
  return pricesOf(table, priceIds).flatMap(({ models }) => models.filter((model) => !model.includes('*')));
}

interface DatedPrice {
  readonly price: Price;
  /** ms since the epoch. */
  readonly since: number;
}

interface Candidates {
  readonly exact: readonly DatedPrice[];
  readonly globbed: readonly DatedPrice[];
}

/** A cache of the candidates by the list of a provider's prices, then by model. */
const cache = new WeakMap<readonly Price[], Map<string, Candidates>>();
/** Entries of one provider in one layer. The cache is cleared beyond that, because callers may send any model name. */
const MAX_CACHED = 500;

function candidatesIn(prices: readonly Price[], model: string): Candidates {
  const byModel = cache.get(prices) ?? new Map<string, Candidates>();
  cache.set(prices, byModel);
  const found = byModel.get(model);
  if (found !== undefined) return found;
  const dated = prices.map((price) => ({ price, since: Date.parse(price.since) }));
  const candidates = {
    exact: dated.filter(({ price }) => price.models.includes(model)),
    globbed: dated.filter(({ price }) => matchesAnyGlob(price.models, model)),
  };
  if (byModel.size >= MAX_CACHED) byModel.clear();
  byModel.set(model, candidates);
  return candidates;
}

function latest(candidates: readonly DatedPrice[], endMs: number, tier: string): Price | null {
  let found: (DatedPrice & { readonly isOfTier: boolean }) | null = null;
  for (const candidate of candidates) {
    const { since, price } = candidate;
    const tiers = price.service_tiers;
    const isOfTier = tiers?.includes(tier) === true;
    const isInForce = since <= endMs && (tiers === undefined || isOfTier);
    if (!isInForce) continue;
    const isBefore = isOfTier === found?.isOfTier ? since > found.since : isOfTier;
    if (found === null || isBefore) found = { ...candidate, isOfTier };
  }
  return found?.price ?? null;
}

/** Rates have six decimals and are per million tokens, so one token costs an integer of 10^-12. */
const PICO_PER_RATE = 1e6;
const PICO_PER_NANO = 1000n;
/** Rates of searches are per thousand. */
const PICO_PER_SEARCH_RATE = 1e9;

/**
 * @param endMs the request's end, in ms since the epoch, which decides about peak hours
 * @returns null if a rate is unknown for tokens that were used, or if the cost is implausibly high
 */
export function costAtPrice(usage: BilledUsage, price: Price, endMs: number): Cost | null {
  const { rates, isUpperBound } = ratesInForce(
    price,
    usage.priced_prompt?.tokens ?? usage.prompt_tokens,
    endMs,
  );
  const tokens = splitTokens(usage);
  // A cached token never costs more than an uncached one.
  const isCacheUnknown = tokens.cached_input > 0 && rates.cached_input === undefined;
  const searches = costOfSearches(usage.searches ?? 0, price);
  if (searches === null) return null;
  const counts = {
    ...rates,
    cached_input: rates.cached_input ?? rates.input,
    reasoning: rates.reasoning ?? rates.output,
  };
  const nano = priceTokens(tokens, counts, searches);
  if (nano === null) return null;
  const { currency, since } = price;
  return {
    nano,
    parts: partsOf(nano, tokens, counts, searches),
    currency,
    priceSince: since,
    isUpperBound: isUpperBound || isCacheUnknown || price.upper_bound === true,
  };
}

/** Divides a cost: each part is rounded, and the input takes the difference, so that they sum up to the cost without searches. */
function partsOf(nano: number, tokens: Tokens, rates: PartialRates, searches: bigint): CostParts {
  const { cached_input, output, reasoning, audio_output } = tokens;
  const whole = nano - (priceTokens(NO_TOKENS, {}, searches) ?? 0);
  const cached = Math.min(whole, priceTokens({ ...NO_TOKENS, cached_input }, rates) ?? 0);
  const ofOutput = priceTokens({ ...NO_TOKENS, output, reasoning, audio_output }, rates) ?? 0;
  const outputCost = Math.min(whole - cached, ofOutput);
  return { input: whole - cached - outputCost, cached, output: outputCost };
}

/** An integer of 10^-12 of the price's currency; null if searches ran and their rate is unknown. */
export function costOfSearches(searches: number, { web_search }: Price): bigint | null {
  if (searches === 0) return 0n;
  if (web_search === undefined || !Number.isSafeInteger(searches)) return null;
  return BigInt(searches) * BigInt(Math.round(web_search * PICO_PER_SEARCH_RATE));
}

/**
 * An upper bound of a request's cost at a price, for any end and any use of a cache. It is reserved from the budget.
 * @param keepsLong whether a cache may keep the prompt for longer than its default time
 * @returns an integer of 10^-9 of the price's currency; null if the price has no rate for input or output
 */
export function costUpperBound(
  price: Price,
  promptTokens: number,
  outputTokens: number,
  keepsLong = true,
): number | null {
  const all: readonly Rates[] = [price, price.above ?? {}, price.peak ?? {}];
  if (price.input === undefined || price.output === undefined) return null;
  const input = Math.max(
    ...all.flatMap((rates) => [
      rates.input ?? 0,
      rates.cached_input ?? 0,
      rates.cache_write ?? 0,
      (keepsLong ? rates.cache_write_long : undefined) ?? 0,
      rates.audio_input ?? 0,
    ]),
  );
  const output = Math.max(
    ...all.flatMap((rates) => [rates.output ?? 0, rates.reasoning ?? 0, rates.audio_output ?? 0]),
  );
  return priceTokens({ ...NO_TOKENS, input: promptTokens, output: outputTokens }, { input, output });
}

type Tokens = { readonly [R in keyof Rates]-?: number };
type PartialRates = { readonly [R in keyof Rates]?: number | undefined };

const NO_TOKENS: Tokens = {
  input: 0,
  cached_input: 0,
  cache_write: 0,
  cache_write_long: 0,
  output: 0,
  reasoning: 0,
  audio_input: 0,
  audio_output: 0,
};

/** Assigns each token to one rate. Some providers report parts that exceed their whole; these are reduced to it. */
function splitTokens(usage: BilledUsage): Tokens {
  const { completion_tokens, total_tokens } = usage;
  const prompt = usage.prompt_tokens_details ?? {};
  const completion = usage.completion_tokens_details ?? {};
  const { tokens, cached, cacheWrite } = usage.priced_prompt ?? {
    tokens: usage.prompt_tokens,
    cached: prompt.cached_tokens,
    cacheWrite: prompt.cache_write_tokens,
  };
  const cached_input = within(tokens, cached);
  const cacheWrites = within(tokens - cached_input, cacheWrite);
  const cache_write_long = within(cacheWrites, usage.cache_write_long_tokens);
  const audio_input = within(tokens - cached_input - cacheWrites, prompt.audio_tokens);
  // Reasoning is part of the completion, except where some servers count it only in the total.
  const output = Math.max(completion_tokens, total_tokens - usage.prompt_tokens);
  const reasoning = within(output, completion.reasoning_tokens);
  const audio_output = within(output - reasoning, completion.audio_tokens);
  return {
    input: tokens - cached_input - cacheWrites - audio_input,
    cached_input,
    cache_write: cacheWrites - cache_write_long,
    cache_write_long,
    audio_input,
    output: output - reasoning - audio_output,
    reasoning,
    audio_output,
  };
}

function within(whole: number, part: number | undefined): number {
  return Math.max(0, Math.min(whole, part ?? 0));
}

/** @param extra a cost in addition to the tokens, in 10^-12 of the currency */
function priceTokens(tokens: Tokens, rates: PartialRates, extra = 0n): number | null {
  let pico = extra;
  for (const rate of RATES) {
    const used = tokens[rate];
    const priced = rates[rate];
    if (used <= 0) continue;
    if (priced === undefined || !Number.isSafeInteger(used)) return null;
    pico += BigInt(used) * BigInt(Math.round(priced * PICO_PER_RATE));
  }
  const nano = (pico + PICO_PER_NANO / 2n) / PICO_PER_NANO;
  return nano > MAX_COST_NANO ? null : Number(nano);
}

const NANOS_PER_UNIT = 1e9;

/**
 * How much less a million tokens of a prompt cost where they are read from the cache: an integer of 10^-9 of the price's currency; null
 * if the price has no rate for either.
 */
export function cacheSaving(price: Price, promptTokens: number, endMs: number): number | null {
  const { input, cached_input } = ratesInForce(price, promptTokens, endMs).rates;
  if (input === undefined || cached_input === undefined) return null;
  return Math.max(0, Math.round((input - cached_input) * NANOS_PER_UNIT));
}

interface RatesInForce {
  readonly rates: Rates;
  /** The rates may be too high, because it is unknown whether the day is a holiday. */
  readonly isUpperBound: boolean;
}

/**
 * The rates for a prompt of this size, or at this hour.
 * @param endMs ms since the epoch
 */
export function ratesInForce(price: Price, promptTokens: number, endMs: number): RatesInForce {
  const { above, peak } = price;
  if (above !== undefined && promptTokens > above.prompt_tokens) return { rates: above, isUpperBound: false };
  if (peak === undefined) return { rates: price, isUpperBound: false };
  const hour = peakHour(peak, endMs);
  return { rates: hour === 'off' ? price : peak, isUpperBound: hour === 'unknown' };
}

/** `unknown`: a peak hour, unless the day is a holiday that has not been announced yet. */
function peakHour({ zone, days, hours, holidays }: Peak, endMs: number): 'peak' | 'off' | 'unknown' {
  const local = new Date(endMs + offsetMs(zone));
  const weekday = local.getUTCDay() === 0 ? 7 : local.getUTCDay();
  const minute = local.getUTCHours() * 60 + local.getUTCMinutes();
  const isWithin =
    days.includes(weekday) && hours.some(([from, to]) => minute >= minuteOf(from) && minute < minuteOf(to));
  if (!isWithin) return 'off';
  if (holidays === undefined) return 'peak';
  const holiday = isHoliday(holidays, local.toISOString().slice(0, 'yyyy-mm-dd'.length));
  if (holiday === null) return 'unknown';
  return holiday ? 'off' : 'peak';
}

/** The minute of the day of a time such as `08:30`. */
function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
}

/** The offset of a zone such as `+08:00`, in ms. */
function offsetMs(zone: string): number {
  return (zone.startsWith('-') ? -1 : 1) * minuteOf(zone.slice(1)) * 60_000;
}

interface HolidayList {
  /** The range that the list covers: the first day, and the first day after it. */
  readonly from: string;
  readonly until: string;
  /** First and last days, both inclusive. */
  readonly holidays: readonly (readonly [string, string])[];
}

/** Public holidays, as days in the provider's zone. Add a year when it is announced. */
const HOLIDAYS: { readonly [C in Calendar]: HolidayList } = {
  // The State Council's notice of 2025-11-04, https://www.gov.cn/zhengce/content/202511/content_7047090.htm (2026-11-21). Weekends that
  // become workdays in exchange are omitted: no provider has peak hours on weekends.
  cn: {
    from: '2026-01-01',
    until: '2027-01-01',
    holidays: [
      ['2026-01-01', '2026-01-03'],
      ['2026-02-15', '2026-02-23'],
      ['2026-04-04', '2026-04-06'],
      ['2026-05-01', '2026-05-05'],
      ['2026-06-19', '2026-06-21'],
      ['2026-09-25', '2026-09-27'],
      ['2026-10-01', '2026-10-07'],
    ],
  },
};

/**
 * Whether a day is a public holiday; null if the day is outside the list.
 * @param day in the provider's zone, such as `2026-10-01`
 */
function isHoliday(calendar: Calendar, day: string): boolean | null {
  const { from, until, holidays } = HOLIDAYS[calendar];
  if (day < from || day >= until) return null;
  return holidays.some(([first, last]) => day >= first && day <= last);
}

/** What a request's tokens cost at a price: integers of 10^-9 of the currency, rounded once (P4). */

import type { BilledUsage } from '../../canonical/usage.ts';
import { MAX_COST_NANO } from '../../shared/limits.ts';
import { type Price, RATES, type Rates } from './price.ts';
import { ratesInForce } from './rates.ts';

/** The cost of one request at one price. */
export interface Cost {
  /** Integer of 10^-9 of the price's currency. */
  readonly nano: number;
  /** The true cost may be lower: what decides it is not known. */
  readonly isUpperBound: boolean;
}

/** Rates have six decimals and are per million tokens: a token's is an integer of 10^-12. */
const PICO_PER_RATE = 1e6;
const PICO_PER_NANO = 1000n;
/** That of searches is per thousand. */
const PICO_PER_SEARCH_RATE = 1e9;

/**
 * @param endMs the request's end, in ms since the epoch: peak hours are judged by it
 * @returns null where a rate is unknown for tokens that were used, and where no request could cost that much
 */
export function costOf(usage: BilledUsage, price: Price, endMs: number): Cost | null {
  const { rates, isUpperBound } = ratesInForce(price, usage.prompt_tokens, endMs);
  const tokens = splitTokens(usage);
  // A cached token never costs more than one that was read.
  const isCacheUnknown = tokens.cached_input > 0 && rates.cached_input === undefined;
  const searches = costOfSearches(usage.searches ?? 0, price);
  if (searches === null) return null;
  const known = {
    ...rates,
    cached_input: rates.cached_input ?? rates.input,
    reasoning: rates.reasoning ?? rates.output,
  };
  const nano = sumOf(tokens, known, searches);
  return nano === null ? null : { nano, isUpperBound: isUpperBound || isCacheUnknown };
}

/** An integer of 10^-12 of the price's currency, or null where none is known for searches that ran. */
export function costOfSearches(searches: number, { web_search }: Price): bigint | null {
  if (searches === 0) return 0n;
  if (web_search === undefined || !Number.isSafeInteger(searches)) return null;
  return BigInt(searches) * BigInt(Math.round(web_search * PICO_PER_SEARCH_RATE));
}

/**
 * The most that a request can cost at a price, whenever it ends and whatever a cache does: what is reserved for it (G2).
 * @param keepsLong whether a cache may keep its prompt for longer than by default
 * @returns an integer of 10^-9 of the price's currency, or null where the price can't tell
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
  return sumOf({ ...NO_TOKENS, input: promptTokens, output: outputTokens }, { input, output });
}

type Tokens = { readonly [R in keyof Rates]-?: number };

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

/** Each token under one rate. Parts that are larger than their whole are cut to it: some providers report such. */
function splitTokens(usage: BilledUsage): Tokens {
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const prompt = usage.prompt_tokens_details ?? {};
  const completion = usage.completion_tokens_details ?? {};
  const cached_input = within(prompt_tokens, prompt.cached_tokens);
  const written = within(prompt_tokens - cached_input, prompt.cache_write_tokens);
  const cache_write_long = within(written, usage.cache_write_long_tokens);
  const audio_input = within(prompt_tokens - cached_input - written, prompt.audio_tokens);
  // Reasoning is part of the completion, unless the total has more than both: some servers count it in the total alone.
  const output = Math.max(completion_tokens, total_tokens - prompt_tokens);
  const reasoning = within(output, completion.reasoning_tokens);
  const audio_output = within(output - reasoning, completion.audio_tokens);
  return {
    input: prompt_tokens - cached_input - written - audio_input,
    cached_input,
    cache_write: written - cache_write_long,
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

/** @param besides what else is paid for, in 10^-12 of the currency */
function sumOf(
  tokens: Tokens,
  rates: { readonly [R in keyof Rates]?: number | undefined },
  besides = 0n,
): number | null {
  let pico = besides;
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

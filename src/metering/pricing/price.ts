/** What a price says: the form of the shipped table, of the setting `PRICES` and of the KV key `config/prices` (P1). */

/**
 * Units of the currency per million tokens, with at most six decimals. An absent rate is unknown, which is not free; but for
 * the cached input, whose bound is the input's, and for reasoning, which is output where nothing else is said.
 */
export interface Rates {
  /** Tokens of the prompt that no cache held. */
  readonly input?: number;
  /** Tokens of the prompt that a cache held. */
  readonly cached_input?: number;
  /** Tokens of the prompt that were written into a cache. */
  readonly cache_write?: number;
  /** Those of them that the cache keeps for longer than by default: an hour at Anthropic, 12 hours at OpenAI. */
  readonly cache_write_long?: number;
  readonly output?: number;
  readonly reasoning?: number;
  /** Tokens of sound in the prompt, and in the answer. */
  readonly audio_input?: number;
  readonly audio_output?: number;
}

export const RATES = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_long',
  'output',
  'reasoning',
  'audio_input',
  'audio_output',
] as const satisfies readonly (keyof Rates)[];

/** Where a price's public holidays are listed (`holidays.ts`). */
export const CALENDARS = ['cn'] as const;
export type Calendar = (typeof CALENDARS)[number];

/** The hours in which other rates hold, as the vendor states them: in its own zone. */
export interface Peak extends Rates {
  /** The zone's offset from UTC, as `+08:00`. */
  readonly zone: string;
  /** Days of the week in that zone: 1 is Monday, 7 is Sunday. */
  readonly days: readonly number[];
  /** From a time of the day up to another, which is not within, as `["09:00", "12:00"]`. */
  readonly hours: readonly (readonly [string, string])[];
  /** Whose public holidays have no peak hours; absent: holidays are like other days. */
  readonly holidays?: Calendar;
}

/** One provider's price of some models from one moment on. */
export interface Price extends Rates {
  readonly provider: string;
  /** Names of models at the provider, or globs. */
  readonly models: readonly string[];
  /** ISO 8601, UTC: the first moment at which it holds. */
  readonly since: string;
  /** ISO 4217. */
  readonly currency: string;
  /** The service tiers whose price it is, as answers name them; absent: of all. */
  readonly service_tiers?: readonly string[];
  /** Units of the currency per 1,000 web searches that the provider runs for an answer; absent: unknown. */
  readonly web_search?: number;
  /** The rates of the whole request where its prompt has more tokens than that. A price has this or peak hours, not both. */
  readonly above?: Rates & { readonly prompt_tokens: number };
  readonly peak?: Peak;
  /** Where it was read, and on which day. */
  readonly source?: string;
  readonly checked?: string;
}

/** A price of the shipped table: where it was read is part of it. */
export type ShippedPrice = Price & { readonly source: string; readonly checked: string };

/** Layers of prices: the first that has a price decides, so that a deployment's own lie over the shipped ones (P2). */
export type PriceTable = readonly (readonly Price[])[];

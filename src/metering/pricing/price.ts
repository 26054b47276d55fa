/** The form of a price, in the shipped tables, in the setting `PRICES` and in the KV key `config/prices`, and its parser. */
import { isObject, type JsonObject, objectOf, readText } from '../../shared/json.ts';
import { didYouMean } from '../../shared/nearest.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { Writable } from '../../shared/writable.ts';

/** Prices in a deployment's own list. Every record searches it. */
export const MAX_OWN_PRICES = 500;

/** Models of one price. */
const MAX_PRICE_MODELS = 50;

/**
 * Units of the currency per million tokens, with at most six decimals. An absent rate is unknown, which does not mean free. Two have a
 * substitute: `cached_input` is priced as `input`, as an upper bound, and `reasoning` as `output`.
 */
export interface Rates {
  /** Prompt tokens that were neither read from a cache nor written to one. */
  readonly input?: number;
  /** Prompt tokens that were read from a cache. */
  readonly cached_input?: number;
  /** Prompt tokens that were written to a cache. */
  readonly cache_write?: number;
  /** Of these, tokens that the cache keeps for longer than its default time: an hour at Anthropic, 12 hours at OpenAI. */
  readonly cache_write_long?: number;
  readonly output?: number;
  readonly reasoning?: number;
  /** Audio tokens of the prompt and of the output. */
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

/** Lists of public holidays (`HOLIDAYS` in `cost.ts`). */
const CALENDARS = ['cn'] as const;
export type Calendar = (typeof CALENDARS)[number];

/** Rates of peak hours. The hours are in the provider's own zone, as its page states them. */
export interface Peak extends Rates {
  /** The zone's offset from UTC, such as `+08:00`. */
  readonly zone: string;
  /** Days of the week in that zone: 1 is Monday, 7 is Sunday. */
  readonly days: readonly number[];
  /** Start (inclusive) and end (exclusive), such as `["09:00", "12:00"]`. */
  readonly hours: readonly (readonly [string, string])[];
  /** The public holidays without peak hours; absent: none. */
  readonly holidays?: Calendar;
}

/** The rates of some models of one provider from one moment on. */
export interface Price extends Rates {
  readonly provider: string;
  /** The provider's names of the models, or globs. */
  readonly models: readonly string[];
  /** The first moment at which the price is in force: ISO 8601, UTC. */
  readonly since: string;
  /** ISO 4217. */
  readonly currency: string;
  /** The price is for these service tiers, as responses name them; absent: for all tiers. */
  readonly service_tiers?: readonly string[];
  /** Units of the currency per 1,000 web searches that the provider runs; absent: unknown. */
  readonly web_search?: number;
  /** The rates of the whole request if its prompt has more than `prompt_tokens`. A price has `above` or `peak`, not both. */
  readonly above?: Rates & { readonly prompt_tokens: number };
  readonly peak?: Peak;
  /** The true rates may be lower, because sources disagree and this is the highest: costs are marked (`cost_estimated`). Absent: false. */
  readonly upper_bound?: true;
  /**
   * Where the price was read, and on which day. `<page>, cited by <other>`: read at the other one, and not verified on the provider's
   * page.
   */
  readonly source?: string;
  readonly checked?: string;
}

/** A price of a shipped table. Its source is required. */
export type ShippedPrice = Price & { readonly source: string; readonly checked: string };

/** The models of one price, its input, its output and its cached input. */
export type PriceRow = readonly [models: readonly string[], input: number, output: number, cached?: number];

/** The prices of a provider with one page. @param page what they have in common */
export function pricesOfRows<Page extends Omit<ShippedPrice, 'models'>>(
  page: Page,
  rows: readonly PriceRow[],
): readonly (Page & ShippedPrice)[] {
  return rows.map(([models, input, output, cached_input]) => ({
    ...{ ...page, models, input, output },
    ...(cached_input !== undefined && { cached_input }),
  }));
}

const NO_PRICES: readonly never[] = [];

/** Prices by provider. Those of a provider are made when they are first looked up: start-up and requests do not pay for the others. */
export class PriceLayer<P extends Price = Price> {
  readonly #makers: ReadonlyMap<string, () => readonly P[]>;
  readonly #made = new Map<string, readonly P[]>();

  /** @param makers by the provider's id; each is called at most once, and all of its prices are that provider's */
  constructor(makers: ReadonlyMap<string, () => readonly P[]>) {
    this.#makers = makers;
  }

  /** The prices of one provider, always the same list; empty if it has none. */
  of(provider: string): readonly P[] {
    const known = this.#made.get(provider);
    if (known !== undefined) return known;
    const make = this.#makers.get(provider);
    if (make === undefined) return NO_PRICES;
    const prices = make();
    this.#made.set(provider, prices);
    return prices;
  }

  /** The prices of one provider among which that of the model is, always the same list. */
  ofModel(provider: string, _model: string): readonly P[] {
    return this.of(provider);
  }

  /** The prices of all providers. */
  all(): readonly P[] {
    return [...this.#makers.keys()].flatMap((provider) => this.of(provider));
  }
}

/** A layer of prices that are already there, such as a deployment's own. */
export function layerOf<P extends Price>(prices: readonly P[]): PriceLayer<P> {
  const byProvider = Map.groupBy(prices, ({ provider }) => provider);
  return new PriceLayer(new Map([...byProvider].map(([provider, list]) => [provider, () => list])));
}

/** Layers of prices. The first layer with a matching price decides, so a deployment's own prices come before the shipped ones. */
export type PriceTable = readonly PriceLayer[];

/** All prices of a provider. @param priceIds ids under which they are looked up (`ConfiguredProvider.priceIds`) */
export function pricesOf(table: PriceTable, priceIds: readonly string[]): readonly Price[] {
  return table.flatMap((layer) => priceIds.flatMap((provider) => layer.of(provider)));
}

/** Multiplies each rate by a factor. */
export function timesRates(rates: Rates, factor: number): Rates {
  const scaledRates = RATES.flatMap((rate) =>
    rates[rate] === undefined ? [] : [[rate, rates[rate] * factor]],
  );
  return Object.fromEntries(scaledRates);
}

/** All rates of a price times a factor, for the tiers as responses name them. */
export function priceOfTier(
  price: ShippedPrice,
  service_tiers: readonly string[],
  factor: number,
): ShippedPrice {
  const { above } = price;
  return {
    ...price,
    ...timesRates(price, factor),
    ...(above && { above: { ...timesRates(above, factor), prompt_tokens: above.prompt_tokens } }),
    service_tiers,
  };
}

const OTHER_FIELDS = [
  'provider',
  'models',
  'since',
  'currency',
  'service_tiers',
  'web_search',
  'above',
  'peak',
  'upper_bound',
  'source',
  'checked',
];

const SINCE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;
const ZONE = /^[+-](0\d|1[0-4]):[0-5]\d$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;
const MIDNIGHT = '24:00';
const MAX_TEXT_CHARS = 512;
/** Units of a currency per million tokens. A higher rate is taken for a mistake. */
const MAX_RATE = 1_000_000;
const RATE_STEPS = 1e6;
const RATE_DECIMALS = 6;
/** Entries of `days` and of `hours`. */
const MAX_SPANS = 24;

/**
 * Parses a deployment's own prices.
 * @param value a list of prices, as parsed JSON
 * @returns the prices, or the first problem: it names the price and the field, and never contains a value
 */
export function parsePrices(value: unknown): Result<readonly Price[], string> {
  if (!Array.isArray(value)) return failure('must be a list of prices');
  if (value.length > MAX_OWN_PRICES) return failure(`must be at most ${MAX_OWN_PRICES} prices`);
  const prices: Price[] = [];
  for (const [i, entry] of value.entries()) {
    const reader = new FieldReader(objectOf(entry), '');
    if (!isObject(entry)) reader.fail('must be an object');
    const price = readPrice(reader);
    if (reader.problem !== null) return failure(`price ${i + 1}: ${reader.problem}`);
    prices.push(price);
  }
  return ok(prices);
}

const FIELD_NAME = /^[a-z_]{1,32}$/i;

/** Reads one object's fields and keeps the first problem. An invalid field is read as a placeholder, which is never used. */
class FieldReader {
  problem: string | null = null;
  readonly object: JsonObject;
  readonly #path: string;

  /** @param path of the object in its price, such as `peak.` */
  constructor(object: JsonObject, path: string) {
    this.object = object;
    this.#path = path;
  }

  fail(message: string): void {
    this.problem ??= this.#path + message;
  }

  allowOnly(fields: readonly string[]): void {
    const unknown = Object.keys(this.object).find((field) => !fields.includes(field));
    if (unknown === undefined) return;
    // A longer name may be a value in the wrong place.
    const named = FIELD_NAME.test(unknown)
      ? `has no field ${unknown}${didYouMean(unknown, fields)}`
      : 'has an unknown field';
    this.fail(`${named.replace(/\?$/, '')}; the fields are ${fields.join(', ')}`);
  }

  text(field: string, isValid: (text: string) => boolean, message: string): string {
    const text = readText(this.object[field]) ?? '';
    if (text.length > MAX_TEXT_CHARS || !isValid(text)) this.fail(`${field} must be ${message}`);
    return text;
  }

  rates(): Rates {
    const rates: Writable<Rates> = {};
    for (const name of RATES) {
      const rate = this.rate(name, 'million tokens');
      if (rate !== undefined) rates[name] = rate;
    }
    return rates;
  }

  rate(name: string, unit: string): number | undefined {
    const value = this.object[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'number' && isRate(value)) return value;
    this.fail(
      `${name} must be a number from 0 to ${MAX_RATE}, per ${unit}, with at most ${RATE_DECIMALS} decimals`,
    );
    return undefined;
  }

  /** Reads a nested object. Its problem is also a problem of this one. */
  nested<Value>(field: string, read: (reader: FieldReader) => Value): Value | undefined {
    const value = this.object[field];
    if (value === undefined || value === null) return undefined;
    const reader = new FieldReader(objectOf(value), `${field}.`);
    const nested = read(reader);
    if (!isObject(value)) this.fail(`${field} must be an object`);
    else if (reader.problem !== null) this.fail(reader.problem);
    return nested;
  }
}

function readPrice(reader: FieldReader): Price {
  reader.allowOnly([...OTHER_FIELDS, ...RATES]);
  const provider = reader.text('provider', (text) => text !== '', 'the id of a provider, such as "deepseek"');
  const models = readNames(reader, 'models', 'names or globs, such as ["gpt-5*"]');
  const since = reader.text(
    'since',
    isTime,
    'a day or a UTC time, such as 2026-11-01 or 2026-11-01T16:00:00Z',
  );
  const currency = reader.text(
    'currency',
    (text) => /^[A-Z]{3}$/.test(text),
    'an ISO 4217 code, such as USD',
  );
  const service_tiers =
    reader.object.service_tiers === undefined
      ? undefined
      : readNames(reader, 'service_tiers', 'names, such as ["priority"]');
  const rates = reader.rates();
  const web_search = reader.rate('web_search', 'thousand searches');
  const above = reader.nested('above', readAbove);
  const peak = reader.nested('peak', readPeak);
  const { upper_bound } = reader.object;
  if (typeof (upper_bound ?? false) !== 'boolean') reader.fail('upper_bound must be true or false');
  if (above !== undefined && peak !== undefined) reader.fail('must not have both above and peak');
  if (Object.keys(rates).length === 0) reader.fail(`needs at least one of ${RATES.join(', ')}`);
  return {
    provider,
    models,
    since,
    currency,
    ...(service_tiers === undefined ? {} : { service_tiers }),
    ...rates,
    ...(web_search === undefined ? {} : { web_search }),
    ...(above === undefined ? {} : { above }),
    ...(peak === undefined ? {} : { peak }),
    ...(upper_bound === true ? { upper_bound } : {}),
  };
}

function readNames(reader: FieldReader, field: string, what: string): string[] {
  const list = reader.object[field];
  const names = Array.isArray(list) ? list : [];
  const valid = names.filter(
    (name) => typeof name === 'string' && name !== '' && name.length <= MAX_TEXT_CHARS,
  );
  if (valid.length === 0 || valid.length !== names.length || valid.length > MAX_PRICE_MODELS)
    reader.fail(`${field} must be a list of 1 to ${MAX_PRICE_MODELS} ${what}`);
  return valid;
}

function readAbove(reader: FieldReader): NonNullable<Price['above']> {
  reader.allowOnly(['prompt_tokens', ...RATES]);
  const { prompt_tokens } = reader.object;
  const isCount =
    typeof prompt_tokens === 'number' && Number.isSafeInteger(prompt_tokens) && prompt_tokens > 0;
  if (!isCount) reader.fail('prompt_tokens must be a positive integer');
  return { prompt_tokens: isCount ? prompt_tokens : 0, ...reader.rates() };
}

function readPeak(reader: FieldReader): Peak {
  reader.allowOnly(['zone', 'days', 'hours', 'holidays', ...RATES]);
  const zone = reader.text('zone', (text) => ZONE.test(text), 'an offset from UTC, such as "+08:00"');
  const days = list(reader.object.days).filter(isDay);
  if (days.length === 0 || days.length !== list(reader.object.days).length)
    reader.fail('days must be a list of 1 (Monday) to 7 (Sunday)');
  const hours = list(reader.object.hours).flatMap((span) => readSpan(span));
  if (hours.length === 0 || hours.length !== list(reader.object.hours).length)
    reader.fail('hours must be a list of spans within a day, such as [["09:00", "12:00"]]');
  const holidays = CALENDARS.find((calendar) => calendar === reader.object.holidays);
  if (holidays === undefined && (reader.object.holidays ?? null) !== null)
    reader.fail(`holidays must be one of: ${CALENDARS.join(', ')}`);
  return { zone, days, hours, ...(holidays === undefined ? {} : { holidays }), ...reader.rates() };
}

/** A list of days or spans; empty if it is invalid or too long. */
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.length <= MAX_SPANS ? value : [];
}

function isDay(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 7;
}

function readSpan(span: unknown): [string, string][] {
  const [from, to, ...others] = Array.isArray(span) ? span : [];
  if (typeof from !== 'string' || typeof to !== 'string' || others.length > 0) return [];
  return TIME.test(from) && (TIME.test(to) || to === MIDNIGHT) && from < to ? [[from, to]] : [];
}

function isRate(value: number): boolean {
  const steps = value * RATE_STEPS;
  return value >= 0 && value <= MAX_RATE && Math.abs(steps - Math.round(steps)) < 1e-3;
}

/** Whether the text is a valid time. `Date.parse` accepts February 30 as a day in March, so the day is compared. */
function isTime(text: string): boolean {
  const ms = SINCE.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 10));
}

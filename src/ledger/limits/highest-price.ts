/** The most that a request's tokens may cost, whichever model serves it and whenever it ends (G2). */
import { costOfSearches, costUpperBound, findPrice } from '../../metering/pricing/cost.ts';
import type { Price, PriceTable } from '../../metering/pricing/price.ts';
import type { HighestPrice } from './reserve.ts';

/** A model that the request may reach: ids under which its provider's prices may stand, and its name there. */
export interface PricedModel {
  readonly providers: readonly string[];
  readonly model: string;
  /** The service tier asked for, where it may cost more than others: its price is one that names it. */
  readonly tier?: string | undefined;
  /** The request names no time for which a cache keeps its prompt: what it writes costs the default's price. */
  readonly hasDefaultCache?: boolean;
  /** Its provider may search for the request. */
  readonly searches?: boolean;
}

/**
 * @param models every model that may serve the request
 * @param fromMs the earliest end of the request, in ms since the epoch
 * @param toMs and the latest: a price that begins between them counts, too
 * @returns null where a price is not known, or two are in different currencies
 */
export function highestPrice(
  table: PriceTable,
  models: readonly PricedModel[],
  fromMs: number,
  toMs: number,
): HighestPrice | null {
  const prices: HighestPrice[] = [];
  for (const { providers, model, tier, hasDefaultCache = false, searches = false } of models) {
    for (const ms of [fromMs, toMs]) {
      const price = findPrice(table, providers, model, ms, tier);
      const isOfTier = tier === undefined || price?.service_tiers?.includes(tier) === true;
      const rates = price === null || !isOfTier ? null : highestRates(price, !hasDefaultCache);
      const search = price === null || !searches ? 0n : costOfSearches(1, price);
      if (rates === null || search === null) return null;
      prices.push({ ...rates, search: Number(search) });
    }
  }
  const currency = prices[0]?.currency;
  if (currency === undefined || prices.some((price) => price.currency !== currency)) return null;
  const prompt = Math.max(...prices.map((price) => price.prompt));
  const output = Math.max(...prices.map((price) => price.output));
  const search = Math.max(...prices.map((price) => price.search ?? 0));
  return { currency, prompt, output, ...(search === 0 ? {} : { search }) };
}

/** What a million tokens cost in 10^-9 is, divided by a thousand, what one costs in 10^-12. */
const MILLION = 1_000_000;

function highestRates(price: Price, keepsLong: boolean): HighestPrice | null {
  const prompt = costUpperBound(price, MILLION, 0, keepsLong);
  const output = costUpperBound(price, 0, MILLION);
  if (prompt === null || output === null) return null;
  return { currency: price.currency, prompt: Math.ceil(prompt / 1000), output: Math.ceil(output / 1000) };
}

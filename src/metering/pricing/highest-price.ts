/** The highest price that a request's tokens may have, at any model that may serve it and whenever it ends. */
import { costOfSearches, costUpperBound, findPrice } from './cost.ts';
import { type Price, type PriceTable, pricesOf } from './price.ts';

/** The highest prices that the request's tokens may have, as integers of 10^-12 of the currency per token. */
export interface HighestPrice {
  readonly currency: string;
  readonly prompt: number;
  readonly output: number;
  /** Of one web search; absent: none is billed. */
  readonly search?: number;
}

/** A model that may serve the request. */
export interface PricedModel {
  /** The provider ids under which its price may be listed. */
  readonly priceIds: readonly string[];
  /** The model's name at its provider. */
  readonly model: string;
  /** The requested premium tier, if any. Only a price that names it counts. */
  readonly tier?: string | undefined;
  /** The request sets no cache lifetime, so cache writes have the default's price. */
  readonly hasDefaultCache?: boolean;
  /** Its provider may run web searches for the request. */
  readonly searches?: boolean;
}

/**
 * The highest price of each kind of token over all models and end times.
 * @param models every model that may serve the request
 * @param fromMs the earliest end of the request, in ms since the epoch
 * @param toMs the latest end: a price that begins before it counts, too
 * @returns null where a price is not known, or prices are in different currencies
 */
export function highestPrice(
  table: PriceTable,
  models: readonly PricedModel[],
  fromMs: number,
  toMs: number,
): HighestPrice | null {
  const prices: HighestPrice[] = [];
  for (const { priceIds, model, tier, hasDefaultCache = false, searches = false } of models) {
    for (const ms of [fromMs, toMs]) {
      const price = findPrice(table, priceIds, model, ms, tier);
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

/** Whether a model has a price in the currency, be it for one service tier alone. @param nowMs in ms since the epoch */
export function hasPriceIn(
  table: PriceTable,
  currency: string,
  { priceIds, model }: Pick<PricedModel, 'priceIds' | 'model'>,
  nowMs: number,
): boolean {
  const isPriced = (tier?: string) =>
    highestPrice(table, [{ priceIds, model, tier, hasDefaultCache: true }], nowMs, nowMs)?.currency ===
    currency;
  if (isPriced()) return true;
  return [...new Set(pricesOf(table, priceIds).flatMap(({ service_tiers }) => service_tiers ?? []))].some(
    isPriced,
  );
}

const MILLION = 1_000_000;

/** The cost of a million tokens in 10^-9, divided by 1,000, is the cost of one token in 10^-12. */
function highestRates(price: Price, mayCacheLonger: boolean): HighestPrice | null {
  const prompt = costUpperBound(price, MILLION, 0, mayCacheLonger);
  const output = costUpperBound(price, 0, MILLION);
  if (prompt === null || output === null) return null;
  return { currency: price.currency, prompt: Math.ceil(prompt / 1000), output: Math.ceil(output / 1000) };
}

/** Finds the price that was in force for a model at a moment (P2). */
import { matchesAnyGlob } from '../../canonical/glob.ts';
import type { Price, PriceTable } from './price.ts';

/**
 * The price in force: of the first layer that has one; there, one that names the model exactly before one with a glob, and
 * among these the latest `since` that is not after the end, and of two that began at once the first.
 * @param providers ids under which the provider's prices may stand, its own first (`ConfiguredProvider.priceIds`)
 * @param model the upstream's name of the model
 * @param endMs the request's end, in ms since the epoch
 * @returns null where no price is known
 */
export function findPrice(
  table: PriceTable,
  providers: readonly string[],
  model: string,
  endMs: number,
): Price | null {
  for (const prices of table) {
    for (const provider of providers) {
      const own = prices.filter((price) => price.provider === provider);
      const exact = own.filter(({ models }) => models.includes(model));
      const globbed = own.filter(({ models }) => matchesAnyGlob(models, model));
      const found = latest(exact, endMs) ?? latest(globbed, endMs);
      if (found !== null) return found;
    }
  }
  return null;
}

function latest(prices: readonly Price[], endMs: number): Price | null {
  let found: Price | null = null;
  let foundSince = Number.NEGATIVE_INFINITY;
  for (const price of prices) {
    const since = Date.parse(price.since);
    if (since <= endMs && since > foundSince) {
      found = price;
      foundSince = since;
    }
  }
  return found;
}

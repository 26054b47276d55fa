/** Finds the price that was in force for a model at a moment (P2). */
import { matchesGlob } from '../../canonical/glob.ts';
import type { Price, PriceTable } from './price.ts';

/**
 * The price in force: of the first layer that has one; there, one that names the model exactly before one with a glob, and
 * among these the latest `since` that is not after the end.
 * @param providers ids under which the provider's prices may stand, its own first (`ConfiguredProvider.priceIds`)
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
      const inForce = prices.filter((price) => price.provider === provider && Date.parse(price.since) <= endMs);
      const found =
        latest(inForce.filter(({ models }) => models.includes(model))) ??
        latest(inForce.filter(({ models }) => models.some((glob) => matchesGlob(glob, model))));
      if (found !== null) return found;
    }
  }
  return null;
}

/** Of two that began at once, the first: it stands higher in the list. */
function latest(prices: readonly Price[]): Price | null {
  let found: Price | null = null;
  for (const price of prices) {
    if (found === null || Date.parse(price.since) > Date.parse(found.since)) found = price;
  }
  return found;
}

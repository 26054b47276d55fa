/** Finds the price that was in force for a model at a moment (P2). */
import { matchesAnyGlob } from '../../shared/glob.ts';
import type { Price, PriceTable } from './price.ts';

/** Where an answer names no service tier. */
const DEFAULT_TIER = 'default';

/**
 * The price in force: of the first layer that has one; there, one that names the model exactly before one with a glob, and
 * among these one that names the service tier, then the latest `since` that is not after the end, and of two that began at once the first.
 * @param providers ids under which the provider's prices may stand, its own first (`ConfiguredProvider.priceIds`)
 * @param model the upstream's name of the model
 * @param endMs the request's end, in ms since the epoch
 * @param tier the service tier that the answer named
 * @returns null where no price is known
 */
export function findPrice(
  table: PriceTable,
  providers: readonly string[],
  model: string,
  endMs: number,
  tier = DEFAULT_TIER,
): Price | null {
  for (const prices of table) {
    for (const provider of providers) {
      const { exact, globbed } = candidatesIn(prices, provider, model);
      const found = latest(exact, endMs, tier) ?? latest(globbed, endMs, tier);
      if (found !== null) return found;
    }
  }
  return null;
}

/** The models that prices name one by one. */
export function pricedModels(table: PriceTable, providers: readonly string[]): string[] {
  const prices = table.flat().filter(({ provider }) => providers.includes(provider));
  return prices.flatMap(({ models }) => models.filter((model) => !model.includes('*')));
}

interface Candidate {
  readonly price: Price;
  /** ms since the epoch. */
  readonly since: number;
}

interface Candidates {
  readonly exact: readonly Candidate[];
  readonly globbed: readonly Candidate[];
}

/** Of each layer, by provider and model: what a model's next request asks for is known. */
const known = new WeakMap<readonly Price[], Map<string, Candidates>>();
/** A layer's: names that callers make up are forgotten with the others. */
const MAX_KNOWN = 500;

function candidatesIn(prices: readonly Price[], provider: string, model: string): Candidates {
  const ofLayer = known.get(prices) ?? new Map<string, Candidates>();
  known.set(prices, ofLayer);
  const name = `${provider}/${model}`;
  const found = ofLayer.get(name);
  if (found !== undefined) return found;
  const own = prices
    .filter((price) => price.provider === provider)
    .map((price) => ({ price, since: Date.parse(price.since) }));
  const candidates = {
    exact: own.filter(({ price }) => price.models.includes(model)),
    globbed: own.filter(({ price }) => matchesAnyGlob(price.models, model)),
  };
  if (ofLayer.size >= MAX_KNOWN) ofLayer.clear();
  ofLayer.set(name, candidates);
  return candidates;
}

function latest(candidates: readonly Candidate[], endMs: number, tier: string): Price | null {
  let found: (Candidate & { readonly isOfTier: boolean }) | null = null;
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

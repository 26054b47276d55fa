/** What a record says about its cost, and where the figure comes from (P3, P4). */
import type { BilledUsage } from '../../canonical/usage.ts';
import { costOf } from './cost.ts';
import { findPrice } from './find-price.ts';
import type { PriceTable } from './price.ts';

/** A record's fields about money. `cost` is an integer of 10^-9 of the currency. */
export type RecordCost =
  | {
      readonly cost: number;
      readonly currency: string;
      readonly cost_source: 'upstream';
      readonly price_since: null;
      readonly is_upper_bound: false;
    }
  | {
      readonly cost: number;
      readonly currency: string;
      readonly cost_source: 'table';
      /** The `since` of the price. */
      readonly price_since: string;
      readonly is_upper_bound: boolean;
    }
  | {
      readonly cost: null;
      readonly currency: null;
      readonly cost_source: 'none';
      readonly price_since: null;
      readonly is_upper_bound: false;
    };

export interface PricedRequest {
  /** Ids under which the provider's prices may stand, its own first (`ConfiguredProvider.priceIds`). */
  readonly providers: readonly string[];
  /** The upstream's name of the model. */
  readonly model: string;
  readonly usage: BilledUsage;
  /** What the upstream says it costs, as an integer of 10^-9 US dollars (`Tally.upstreamCost`), or null. */
  readonly upstreamCost: number | null;
  /** ms since the epoch. */
  readonly endMs: number;
}

/** The cost of a request: as the upstream tells it, else by the table, else unknown. */
export function priceRecord(table: PriceTable, request: PricedRequest): RecordCost {
  const { providers, model, usage, upstreamCost, endMs } = request;
  if (upstreamCost !== null) {
    return {
      cost: upstreamCost,
      currency: 'USD',
      cost_source: 'upstream',
      price_since: null,
      is_upper_bound: false,
    };
  }
  const price = findPrice(table, providers, model, endMs, usage.service_tier);
  const cost = price === null ? null : costOf(usage, price, endMs);
  if (price === null || cost === null) return UNPRICED;
  return {
    cost: cost.nano,
    currency: price.currency,
    cost_source: 'table',
    price_since: price.since,
    is_upper_bound: cost.isUpperBound,
  };
}

const UNPRICED: RecordCost = {
  cost: null,
  currency: null,
  cost_source: 'none',
  price_since: null,
  is_upper_bound: false,
};

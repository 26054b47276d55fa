/** Sums up what the attempts of a request used and cost: one that was given up has its price, too (R8). */
import type { AttemptMeter } from './attempt-meter.ts';
import type { PriceTable } from './prices/price.ts';
import { priceRecord, type RecordCost } from './prices/price-record.ts';
import type { UsageRecord } from './record.ts';

type Sums = Pick<
  UsageRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'cache_write_tokens'
  | 'reasoning_tokens'
  | 'vendor_events'
  | 'vendor_tokens'
  | 'estimated'
  | 'cost_nanos'
  | 'currency'
  | 'cost_source'
  | 'price_since'
  | 'cost_estimated'
>;

/**
 * @param attempts at least one, the last of which served
 * @param endMs the request's end, by which its cost is fixed (P4)
 */
export function sumUp(attempts: readonly AttemptMeter[], table: PriceTable, endMs: number): Sums {
  const counted = attempts.map((attempt) => ({ attempt, ...attempt.countUsage() }));
  const usages = counted.map(({ usage }) => usage);
  const paid = counted.filter(
    ({ usage, attempt }) => usage.total_tokens > 0 || attempt.upstreamCost !== null,
  );
  // Where none used anything, the last one tells whether its price is known.
  const costs = (paid.length === 0 ? counted.slice(-1) : paid).map(({ attempt, usage }) =>
    priceRecord(table, {
      providers: attempt.facts.priceIds,
      model: attempt.facts.model,
      usage,
      upstreamCost: attempt.upstreamCost,
      endMs,
    }),
  );
  const estimated = counted.some((one) => one.estimated);
  return {
    prompt_tokens: sum(usages.map((usage) => usage.prompt_tokens)),
    completion_tokens: sum(usages.map((usage) => usage.completion_tokens)),
    total_tokens: sum(usages.map((usage) => usage.total_tokens)),
    cached_tokens: sumOfKnown(usages.map((usage) => usage.prompt_tokens_details?.cached_tokens)),
    cache_write_tokens: sumOfKnown(usages.map((usage) => usage.prompt_tokens_details?.cache_write_tokens)),
    reasoning_tokens: sumOfKnown(usages.map((usage) => usage.completion_tokens_details?.reasoning_tokens)),
    vendor_events: sum(attempts.map(({ tally }) => tally.vendorEvents)),
    vendor_tokens: sum(attempts.map(({ tally }) => tally.vendorTokens)),
    estimated,
    ...sumOfCosts(costs, estimated),
  };
}

type Cost = Pick<UsageRecord, 'cost_nanos' | 'currency' | 'cost_source' | 'price_since' | 'cost_estimated'>;

const UNKNOWN: Cost = {
  cost_nanos: null,
  currency: null,
  cost_source: 'none',
  price_since: null,
  cost_estimated: false,
};

/** One sum in one currency, or unknown. What upstreams tell is no estimate, whatever the tokens are. */
function sumOfCosts(costs: readonly RecordCost[], estimated: boolean): Cost {
  const known = costs.filter((one) => one.cost !== null);
  const last = known.at(-1);
  if (last === undefined || known.length < costs.length) return UNKNOWN;
  if (known.some(({ currency }) => currency !== last.currency)) return UNKNOWN;
  const priced = known.filter((one) => one.cost_source === 'table');
  const since = priced.at(-1)?.price_since;
  return {
    cost_nanos: sum(known.map(({ cost }) => cost)),
    currency: last.currency,
    cost_source: since === undefined ? 'upstream' : 'table',
    price_since: since === undefined ? null : new Date(since).toISOString(),
    cost_estimated: since !== undefined && (estimated || priced.some((one) => one.is_upper_bound)),
  };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Null where none is known: absent is not zero. */
function sumOfKnown(counts: readonly (number | undefined)[]): number | null {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? null : sum(known);
}

/** Sums up what the attempts of a request used and cost: one that was given up has its price, too (R8). */
import type { AttemptMeter } from './attempt-meter.ts';
import type { PriceTable } from './pricing/price.ts';
import { priceRecord, type RecordCost } from './pricing/price-record.ts';
import type { UsageRecord } from './record.ts';

type Sums = Pick<
  UsageRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'cache_write_tokens'
  | 'reasoning_tokens'
  | 'cache_write_long_tokens'
  | 'searches'
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
  const sums: Counts = { ...NOTHING };
  const costs: RecordCost[] = [];
  let longWrites = 0;
  let searches = 0;
  for (const attempt of attempts) {
    const { usage, estimated } = attempt.countUsage();
    sums.prompt_tokens += usage.prompt_tokens;
    sums.completion_tokens += usage.completion_tokens;
    sums.total_tokens += usage.total_tokens;
    const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage;
    sums.cached_tokens = addKnown(sums.cached_tokens, prompt?.cached_tokens);
    sums.cache_write_tokens = addKnown(sums.cache_write_tokens, prompt?.cache_write_tokens);
    sums.reasoning_tokens = addKnown(sums.reasoning_tokens, completion?.reasoning_tokens);
    longWrites += usage.cache_write_long_tokens ?? 0;
    searches += usage.searches ?? 0;
    sums.vendor_events += attempt.accumulator.vendorEvents;
    sums.vendor_tokens += attempt.accumulator.vendorTokens;
    sums.estimated ||= estimated;
    const isPaid = usage.total_tokens > 0 || attempt.upstreamCost !== null;
    // Where none used anything, the last one tells whether its price is known.
    if (isPaid || (costs.length === 0 && attempt === attempts.at(-1))) {
      costs.push(costOfAttempt(attempt, table, endMs));
    }
  }
  return {
    ...sums,
    ...(longWrites === 0 ? {} : { cache_write_long_tokens: longWrites }),
    ...(searches === 0 ? {} : { searches }),
    ...sumOfCosts(costs, sums.estimated),
  };
}

/** What an attempt costs by what is counted of it, estimates included. */
export function costOfAttempt(attempt: AttemptMeter, table: PriceTable, endMs: number): RecordCost {
  const { facts, upstreamCost } = attempt;
  const { priceIds: providers, model } = facts;
  const { usage } = attempt.countUsage();
  return priceRecord(table, { providers, model, usage, upstreamCost, endMs });
}

/** The sums but for the cost, and for those that are absent where nothing was counted. */
type Counts = {
  -readonly [Name in Exclude<keyof Sums, keyof Cost | 'cache_write_long_tokens' | 'searches'>]: Sums[Name];
};

const NOTHING: Counts = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  cached_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  vendor_events: 0,
  vendor_tokens: 0,
  estimated: false,
};

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
  const [first] = costs;
  if (first === undefined) return UNKNOWN;
  let cost_nanos = 0;
  let since: string | undefined;
  let hasUpperBound = false;
  for (const one of costs) {
    if (one.cost === null || one.currency !== first.currency) return UNKNOWN;
    cost_nanos += one.cost;
    if (one.cost_source !== 'table') continue;
    since = one.price_since;
    hasUpperBound ||= one.is_upper_bound;
  }
  return {
    cost_nanos,
    currency: first.currency,
    cost_source: since === undefined ? 'upstream' : 'table',
    price_since: since === undefined ? null : new Date(since).toISOString(),
    cost_estimated: since !== undefined && (estimated || hasUpperBound),
  };
}

/** Null where none is known: absent is not zero. */
function addKnown(sum: number | null, count: number | undefined): number | null {
  return count === undefined ? sum : (sum ?? 0) + count;
}

/** Histograms of time to first token and of tokens per second, from which reports compute percentiles. Histograms can be summed. */
import type { RecordSummary } from './record.ts';

/** The ratio of a bucket's bounds. It makes a median accurate to about a tenth. */
const RATIO = 1.5;
/** `from` is the upper bound of the first bucket. The first and the last bucket are open-ended. */
const FIRST_TOKEN_MS = { from: 10, buckets: 24 };
const TOKENS_PER_SECOND = { from: 1, buckets: 20 };

/** A rate is not measured over less time or fewer tokens. */
const MIN_RATE_MS = 20;
const MIN_RATE_TOKENS = 2;

/** Number of buckets: those of the time to first token, then those of the rate. */
export const SPEED_BUCKETS = FIRST_TOKEN_MS.buckets + TOKENS_PER_SECOND.buckets;

/** The index of a bucket and the number of requests in it. Empty buckets are absent. */
export type SpeedCount = readonly [bucket: number, count: number];

/** The buckets of one request; none if its output had no text. */
export function speedsOf(record: RecordSummary): SpeedCount[] {
  const { first_token_ms, total_ms, completion_tokens } = record;
  if (first_token_ms === null) return [];
  const counts: SpeedCount[] = [[bucketOf(first_token_ms, FIRST_TOKEN_MS), 1]];
  const ms = total_ms - first_token_ms;
  if (ms >= MIN_RATE_MS && completion_tokens >= MIN_RATE_TOKENS)
    counts.push([FIRST_TOKEN_MS.buckets + bucketOf((completion_tokens * 1000) / ms, TOKENS_PER_SECOND), 1]);
  return counts;
}

export interface Percentiles {
  /** From the arrival to the first text of the output; null if nothing was measured. */
  readonly median_first_token_ms: number | null;
  /** Completion tokens per second from the first text to the end; null if nothing was measured. */
  readonly median_tokens_per_second: number | null;
  /** 95 % of the requests had their first text within this time. */
  readonly p95_first_token_ms: number | null;
  readonly p99_first_token_ms: number | null;
  /** 95 % of the requests were at least this fast. The slow end, as for the time to the first text. */
  readonly p5_tokens_per_second: number | null;
  readonly p1_tokens_per_second: number | null;
}

/** @param counts the counts of all {@link SPEED_BUCKETS} buckets */
export function percentilesOf(counts: readonly number[]): Percentiles {
  const first = counts.slice(0, FIRST_TOKEN_MS.buckets);
  const rates = counts.slice(FIRST_TOKEN_MS.buckets);
  const firstAt = (part: number) => round(percentile(first, FIRST_TOKEN_MS.from, part), 1);
  const rateAt = (part: number) => round(percentile(rates, TOKENS_PER_SECOND.from, part), 10);
  return {
    median_first_token_ms: firstAt(0.5),
    median_tokens_per_second: rateAt(0.5),
    p95_first_token_ms: firstAt(0.95),
    p99_first_token_ms: firstAt(0.99),
    p5_tokens_per_second: rateAt(0.05),
    p1_tokens_per_second: rateAt(0.01),
  };
}

/** Requests by ranges of a measured value. `from` is 0 in the first, and `to` is null in the last. */
export interface Spread {
  readonly from: number;
  readonly to: number | null;
  readonly requests: number;
}

/** How many requests were within each range; without the empty ranges before the first and behind the last one. */
export interface Distribution {
  readonly first_token_ms: readonly Spread[];
  readonly tokens_per_second: readonly Spread[];
}

/** @param counts the counts of all {@link SPEED_BUCKETS} buckets; empty if nothing was measured */
export function distributionOf(counts: readonly number[]): Distribution {
  return {
    first_token_ms: spread(counts.slice(0, FIRST_TOKEN_MS.buckets), FIRST_TOKEN_MS.from, 1),
    tokens_per_second: spread(counts.slice(FIRST_TOKEN_MS.buckets), TOKENS_PER_SECOND.from, 10),
  };
}

function spread(counts: readonly number[], from: number, parts: number): Spread[] {
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return [];
  const last = counts.findLastIndex((count) => count > 0);
  const bound = (bucket: number) => round(from * RATIO ** bucket, parts);
  return counts.slice(first, last + 1).map((requests, i) => ({
    from: first + i === 0 ? 0 : (bound(first + i - 1) ?? 0),
    to: first + i === counts.length - 1 ? null : bound(first + i),
    requests,
  }));
}

function bucketOf(value: number, { from, buckets }: typeof TOKENS_PER_SECOND): number {
  const bucket = value <= 0 ? 0 : Math.floor(Math.log(value / from) / Math.log(RATIO)) + 1;
  return Math.min(Math.max(bucket, 0), buckets - 1);
}

function round(value: number | null, parts: number): number | null {
  return value === null ? null : Math.round(value * parts) / parts;
}

/**
 * Interpolates within the bucket of the percentile, on a logarithmic scale.
 * @param part from 0 to 1; 0.5 is the median
 */
function percentile(counts: readonly number[], from: number, part: number): number | null {
  const rank = counts.reduce((sum, count) => sum + count, 0) * part;
  if (rank === 0) return null;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (below + count >= rank) return from * RATIO ** (bucket - 1 + (rank - below) / count);
    below += count;
  }
  return null;
}

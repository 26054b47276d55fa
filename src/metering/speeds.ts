/** How fast answers came, as counts in steps of half again as much: such counts can be summed, and tell a median (M5). */
import type { RecordSummary } from './record.ts';

/** Each step's upper bound is half again its lower one's, so that a median within it is true to a tenth or so. */
const STEP = 1.5;
/** Below the first and above the last bound there is one more step each. */
const FIRST_TOKEN = { from: 10, steps: 24 };
const RATE = { from: 1, steps: 20 };

/** A shorter time, or fewer tokens, tells nothing of a rate. */
const MIN_RATE_MS = 20;
const MIN_RATE_TOKENS = 2;

/** Counts of an answer: those of the first token's time, then those of the rate. */
export const SPEED_COUNTS = FIRST_TOKEN.steps + RATE.steps;

/** How many answers are in one step: its place and the count. What has none is absent. */
export type SpeedCount = readonly [at: number, count: number];

/** Where one request's answer counts; nowhere where it had no text. */
export function speedsOf(record: RecordSummary): SpeedCount[] {
  const { first_token_ms, total_ms, completion_tokens } = record;
  if (first_token_ms === null) return [];
  const counts: SpeedCount[] = [[stepOf(first_token_ms, FIRST_TOKEN), 1]];
  const ms = total_ms - first_token_ms;
  if (ms >= MIN_RATE_MS && completion_tokens >= MIN_RATE_TOKENS)
    counts.push([FIRST_TOKEN.steps + stepOf((completion_tokens * 1000) / ms, RATE), 1]);
  return counts;
}

export interface Medians {
  /** From the request's arrival to the answer's first text; null where no answer had one. */
  readonly median_first_token_ms: number | null;
  /** Completion tokens a second from the first text to the end; null where no answer tells. */
  readonly median_tokens_per_second: number | null;
}

/** @param counts as many as {@link SPEED_COUNTS} */
export function mediansOf(counts: readonly number[]): Medians {
  const first = median(counts.slice(0, FIRST_TOKEN.steps), FIRST_TOKEN.from);
  const rate = median(counts.slice(FIRST_TOKEN.steps), RATE.from);
  return {
    median_first_token_ms: first === null ? null : Math.round(first),
    median_tokens_per_second: rate === null ? null : Math.round(rate * 10) / 10,
  };
}

function stepOf(value: number, { from, steps }: typeof RATE): number {
  const step = value <= 0 ? 0 : Math.floor(Math.log(value / from) / Math.log(STEP)) + 1;
  return Math.min(Math.max(step, 0), steps - 1);
}

/** As if a step's answers were spread over it evenly, by its logarithm. */
function median(counts: readonly number[], from: number): number | null {
  const half = counts.reduce((sum, count) => sum + count, 0) / 2;
  if (half === 0) return null;
  let below = 0;
  for (const [step, count] of counts.entries()) {
    if (below + count >= half) return from * STEP ** (step - 1 + (half - below) / count);
    below += count;
  }
  return null;
}

/** Charges a request: as its providers reported, and at its bound for what they did not report (G3). */

import type { PriceTable } from '../../metering/pricing/price.ts';
import { type Charge, chargeOfRecord, type UsageRecord } from '../../metering/record.ts';
import { type AttemptMeter, costOfAttempt, type Unreported } from '../../metering/request-meter.ts';
import { MAX_PROMPT_TOKENS } from './prompt-bound.ts';
import { atMost, type HighestPrice, mostCost } from './reserve.ts';

/** The most that one attempt of a request may use, as it is reserved for each. */
export interface AttemptBound {
  readonly promptTokens: number;
  /** Of all of its choices. */
  readonly outputTokens: number;
  readonly searches: number;
  readonly price: HighestPrice | null;
}

/** @param attempts that the record sums up */
export function chargeOf(
  record: UsageRecord,
  attempts: readonly AttemptMeter[],
  bound: AttemptBound,
  table: PriceTable,
): Charge {
  const ofRecord = chargeOfRecord(record);
  if (attempts.every(({ unreported }) => unreported === null)) return ofRecord;
  const endMs = Date.parse(record.ended);
  const parts = attempts.map((attempt) => partOf(attempt, bound, table, endMs));
  const unreported = parts.filter(({ isUnreported }) => isUnreported);
  const currency = bound.price?.currency ?? null;
  const isPriced = currency !== null && parts.every((part) => part.currency === currency);
  return {
    tokens: sumOf(parts.map(({ tokens }) => tokens)),
    cost: isPriced ? { currency, nano: sumOf(parts.map(({ nano }) => nano)) } : ofRecord.cost,
    unreported: {
      tokens: sumOf(unreported.map(({ tokens }) => tokens)),
      nano: isPriced ? sumOf(unreported.map(({ nano }) => nano)) : (ofRecord.cost?.nano ?? 0),
    },
    recordedTokens: record.total_tokens,
  };
}

/** What one attempt is charged with. */
interface Part {
  readonly tokens: number;
  readonly nano: number;
  /** Null where its price is not known. */
  readonly currency: string | null;
  readonly isUnreported: boolean;
}

function partOf(attempt: AttemptMeter, bound: AttemptBound, table: PriceTable, endMs: number): Part {
  const { unreported } = attempt;
  const { price } = bound;
  if (unreported === null) {
    const { usage } = attempt.countUsage();
    const cost = costOfAttempt(attempt, table, endMs);
    const isUsed = usage.total_tokens > 0 || cost !== null;
    const known = (isUsed ? cost : price)?.currency ?? null;
    return { tokens: usage.total_tokens, nano: cost?.nano ?? 0, currency: known, isUnreported: false };
  }
  const prompt = promptOf(unreported, bound);
  const output = outputOf(unreported, bound);
  return {
    tokens: prompt + output,
    nano: mostCost(price, prompt, output, bound.searches),
    currency: price?.currency ?? null,
    isUnreported: true,
  };
}

/** A prompt that was reported is final, unless its provider may read more for it while it answers. */
function promptOf({ promptTokens }: Unreported, bound: AttemptBound): number {
  if (promptTokens === null) return bound.promptTokens;
  return bound.promptTokens < MAX_PROMPT_TOKENS ? promptTokens : Math.max(promptTokens, bound.promptTokens);
}

function outputOf(unreported: Unreported, bound: AttemptBound): number {
  const { outputTokens, maxOutputTokens, minOutputTokens } = unreported;
  if (outputTokens !== null) return outputTokens;
  return Math.max(minOutputTokens, Math.min(maxOutputTokens ?? bound.outputTokens, bound.outputTokens));
}

function sumOf(amounts: readonly number[]): number {
  return atMost(amounts.reduce((sum, amount) => sum + amount, 0));
}

/** What a request's tokens cost at a price: integers of 10^-9 of the currency, rounded once (P4). */
import type { Usage } from '../../canonical/usage.ts';
import type { Price } from './price.ts';

/** The cost of one request at one price. */
export interface Cost {
  /** Integer of 10^-9 of the price's currency. */
  readonly nano: number;
  /** The true cost may be lower: what decides it is not known (P1). */
  readonly isUpperBound: boolean;
}

/**
 * @param endMs the request's end, in ms since the epoch: peak hours are judged by it
 * @returns null where a rate is unknown for tokens that were used
 */
export function costOf(usage: Usage, price: Price, endMs: number): Cost | null {
  if (Date.parse(price.since) > endMs) return null;
  const input = BigInt(Math.round((price.input ?? 0) * 1e6));
  const output = BigInt(Math.round((price.output ?? 0) * 1e6));
  const pico = BigInt(usage.prompt_tokens) * input + BigInt(usage.completion_tokens) * output;
  return { nano: Number((pico + 500n) / 1000n), isUpperBound: false };
}

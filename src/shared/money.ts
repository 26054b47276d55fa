/** Money: integers of 10^-9 of a currency, so that sums are exact (P4). */
import { MAX_COST_NANO } from './limits.ts';

/** What of a currency's unit is one of these integers. */
const NANO_PER_UNIT = 1e9;

/**
 * An amount that an upstream told, as an integer of 10^-9 of the currency, or undefined where it is none.
 * @param unitsPerWhole how many of the amount's own units make one of the currency: 1 where it is told in dollars
 */
export function readAmount(value: unknown, unitsPerWhole = 1): number | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return undefined;
  const nano = Math.round(value * (NANO_PER_UNIT / unitsPerWhole));
  return nano <= MAX_COST_NANO ? nano : undefined;
}

/** The amount in units of the currency, as JSON has it. */
export function wholeAmount(nano: number): number {
  return nano / NANO_PER_UNIT;
}

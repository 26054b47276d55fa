/** Amounts of money: integers of 10^-9 of a currency unit, so that sums are exact (P4). */

const NANO_PER_UNIT = 1e9;

/** The upper bound of one request's cost: a million units of the currency. A higher amount is a mistake and counts as unknown. */
export const MAX_COST_NANO = 1_000_000 * NANO_PER_UNIT;

/**
 * Reads an amount that an upstream reported, or undefined if it is not a valid amount.
 * @param unitsPerWhole the number of the amount's units in one unit of the currency: 1 for dollars
 */
export function readAmount(value: unknown, unitsPerWhole = 1): number | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return undefined;
  const nano = Math.round(value * (NANO_PER_UNIT / unitsPerWhole));
  return nano <= MAX_COST_NANO ? nano : undefined;
}

/** The amount in units of the currency, for JSON. */
export function wholeAmount(nano: number): number {
  return nano / NANO_PER_UNIT;
}

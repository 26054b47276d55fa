/** Amounts of a budget: integers of tokens, or of 10^-9 of a currency, so that sums never round (P4). */
import { MAX_COST_NANO, wholeAmount } from '../../shared/money.ts';

/** What a budget is counted in: `tokens`, or a currency's ISO 4217 code. */
export type Unit = string;

export const TOKENS = 'tokens';
const CURRENCY = /^[A-Z]{3}$/;

const NANO = 1e9;
/** A million of any currency, or 10^15 tokens: with what runs beside it, still far from 2^53. */
export const MAX_AMOUNT = MAX_COST_NANO;

export function isUnit(name: string): boolean {
  return name === TOKENS || CURRENCY.test(name);
}

/** The amount as an integer, or undefined: not a number from 0 up, finer than the unit's smallest part, or too large. */
export function readAmount(value: unknown, unit: Unit): number | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return undefined;
  const scale = unit === TOKENS ? 1 : NANO;
  const amount = Math.round(value * scale);
  return amount <= MAX_AMOUNT && amount / scale === value ? amount : undefined;
}

/** The amount as a caller writes it: 5.25 for 5,250,000,000 nano-units. */
export function writeAmount(amount: number, unit: Unit): number {
  return unit === TOKENS ? amount : wholeAmount(amount);
}

/** For messages and headers: `4.999872 USD`, `1999000 tokens`; never in exponents. */
export function formatAmount(amount: number, unit: Unit): string {
  if (unit === TOKENS) return `${amount} tokens`;
  const sign = amount < 0 ? '-' : '';
  const digits = String(Math.abs(amount)).padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0+$/, '').padEnd(2, '0');
  return `${sign}${digits.slice(0, -9)}.${fraction} ${unit}`;
}

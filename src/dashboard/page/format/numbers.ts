/** Formats numbers in the browser's locale. An unknown number is a dash. */

export const NONE = '–';

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compactly = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });
const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 });
const one = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, minimumFractionDigits: 1 });

/** @param noun in the singular, such as `token` */
export function count(value: number | null | undefined, noun?: string): string {
  if (value === null || value === undefined) return NONE;
  return whole.format(value) + (noun === undefined ? '' : ` ${noun}${value === 1 ? '' : 's'}`);
}

/** Large numbers in short form: 12.3K. */
export function compact(value: number): string {
  return value < 10_000 ? whole.format(value) : compactly.format(value);
}

export function share(part: number): string {
  return percents.format(part);
}

export function milliseconds(ms: number | null): string {
  if (ms === null) return NONE;
  if (ms < 1000) return `${whole.format(Math.round(ms))} ms`;
  if (ms < 60_000) return `${one.format(ms / 1000)} s`;
  return `${whole.format(Math.floor(ms / 60_000))} min ${whole.format(Math.round((ms % 60_000) / 1000))} s`;
}

export function rate(tokensPerSecond: number | null): string {
  if (tokensPerSecond === null) return NONE;
  return (tokensPerSecond < 10 ? one : whole).format(tokensPerSecond);
}

export function bytes(size: number): string {
  return count(size, 'byte');
}

/**
 * Formats money with the number of decimals that the largest amount of a column needs, so that the column is aligned.
 * @param largest 0: no column
 * @param least the minimum number of decimals
 */
export function moneyFormat(currency: string, largest: number, least?: number): (amount: number) => string {
  const decimals = largest === 0 || largest >= 1 ? 2 : largest >= 0.01 ? 4 : 6;
  const digits = { minimumFractionDigits: least ?? decimals, maximumFractionDigits: decimals };
  const format = currencyFormat(currency, digits);
  const smallest = 10 ** -decimals;
  return (amount) => (amount > 0 && amount < smallest / 2 ? `< ${format(smallest)}` : format(amount));
}

/** A single amount, with the number of decimals that it needs. */
export function money(amount: number, currency: string): string {
  return moneyFormat(currency, amount, 2)(amount);
}

function currencyFormat(currency: string, digits: Intl.NumberFormatOptions): (amount: number) => string {
  try {
    const format = new Intl.NumberFormat(undefined, { style: 'currency', currency, ...digits });
    return (amount) => format.format(amount);
  } catch {
    // A provider may report a currency that does not exist.
    const format = new Intl.NumberFormat(undefined, digits);
    return (amount) => `${format.format(amount)} ${currency}`;
  }
}

/** An amount of a budget, whose unit is tokens or a currency. */
export function amount(value: number, unit: string): string {
  return unit === 'tokens' ? count(value, 'token') : money(value, unit);
}

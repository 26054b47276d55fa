/** Formats numbers in the browser's locale. An unknown number is a dash. */

export const NONE = '–';
/** In place of a value that is loading, which is not the same as none. */
export const WAITING = '…';

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compactly = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });
const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 });
const two = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
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

/** A smaller share is not told from none. */
const LEAST_SHARE = 0.001;

export function share(part: number): string {
  return part > 0 && part < LEAST_SHARE ? `< ${percents.format(LEAST_SHARE)}` : percents.format(part);
}

/** A factor in words, such as 4.3 times. */
export function times(factor: number): string {
  return `${two.format(factor)} times`;
}

/** From this factor on, a change is a factor, not percents. */
const MIN_FACTOR = 3;
/** A smaller change is none. */
const LEAST_CHANGE = 0.005;

/** How much a value differs from the one before: percents or a factor; for shares, points. Null: too little to be seen. */
export function change(now: number, before: number, isShare: boolean): string | null {
  if (isShare) {
    const points = Math.round(Math.abs(now - before) * 100);
    return points === 0 ? null : count(points, 'point');
  }
  const part = before === 0 ? 0 : now / before - 1;
  if (Math.abs(part) < LEAST_CHANGE) return null;
  return part + 1 >= MIN_FACTOR ? `×${two.format(part + 1)}` : share(Math.abs(part));
}

export function milliseconds(ms: number | null): string {
  if (ms === null) return NONE;
  if (Math.round(ms) < 1000) return `${whole.format(Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${one.format(ms / 1000)} s`;
  return `${whole.format(Math.floor(seconds / 60))} min ${whole.format(seconds % 60)} s`;
}

export function rate(tokensPerSecond: number | null): string {
  if (tokensPerSecond === null) return NONE;
  return (tokensPerSecond < 10 ? one : whole).format(tokensPerSecond);
}

export function bytes(size: number): string {
  return count(size, 'byte');
}

/** A smaller amount is not told from none. */
const LEAST_AMOUNT = 0.000001;

/** An amount of money: two decimals from 1 on, and two significant digits below. */
export function money(amount: number, currency: string): string {
  const format = (value: number) => {
    const size = Math.abs(value);
    const decimals = size === 0 ? 0 : size >= 0.995 ? 2 : Math.max(2, 1 - Math.floor(Math.log10(size)));
    return currencyFormat(currency, decimals)(value);
  };
  return amount > 0 && amount < LEAST_AMOUNT ? `< ${format(LEAST_AMOUNT)}` : format(amount);
}

/** The rates of a price for a million tokens; a price may lack one, which is not known then. */
export function rates({
  input,
  output,
  currency,
}: {
  input?: number;
  output?: number;
  currency: string;
}): string {
  const known = [
    ...(input === undefined ? [] : [`${money(input, currency)} in`]),
    ...(output === undefined ? [] : [`${money(output, currency)} out`]),
  ];
  return known.join(', ') || 'no price is known';
}

const formats = new Map<string, (amount: number) => string>();
/** Providers report a few currencies, with up to eight decimals. */
const MAX_FORMATS = 200;

function currencyFormat(currency: string, decimals: number): (amount: number) => string {
  const id = `${currency} ${decimals}`;
  const cachedFormat = formats.get(id);
  if (cachedFormat !== undefined) return cachedFormat;
  const made = newCurrencyFormat(currency, {
    minimumFractionDigits: Math.min(2, decimals),
    maximumFractionDigits: decimals,
  });
  if (formats.size < MAX_FORMATS) formats.set(id, made);
  return made;
}

function newCurrencyFormat(currency: string, digits: Intl.NumberFormatOptions): (amount: number) => string {
  try {
    // The short symbols of other currencies are ambiguous: ¥ is that of two.
    const currencyDisplay = currency === 'USD' ? 'narrowSymbol' : 'symbol';
    const style = { style: 'currency', currency, currencyDisplay } as const;
    const format = new Intl.NumberFormat(undefined, { ...style, ...digits });
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

/** Which of a price's rates hold for a request: by the size of its prompt, or by the vendor's hours at its end (P1). */
import { isHoliday } from './holidays.ts';
import { type Peak, type Price, RATES, type Rates } from './price.ts';

interface RatesInForce {
  readonly rates: Rates;
  /** They may be too high: whether the day is a holiday is not known. */
  readonly isUpperBound: boolean;
}

/** @param endMs ms since the epoch */
export function ratesInForce(price: Price, promptTokens: number, endMs: number): RatesInForce {
  const { above, peak } = price;
  if (above !== undefined && promptTokens > above.prompt_tokens) return { rates: above, isUpperBound: false };
  if (peak === undefined) return { rates: price, isUpperBound: false };
  const hour = peakHour(peak, endMs);
  return { rates: hour === 'off' ? price : peak, isUpperBound: hour === 'unknown' };
}

/** Each rate by a factor. */
export function timesRates(rates: Rates, factor: number): Rates {
  const known = RATES.flatMap((rate) => (rates[rate] === undefined ? [] : [[rate, rates[rate] * factor]]));
  return Object.fromEntries(known);
}

/** `unknown`: a peak hour, unless the day is a holiday that no list knows yet. */
function peakHour({ zone, days, hours, holidays }: Peak, endMs: number): 'peak' | 'off' | 'unknown' {
  const local = new Date(endMs + offsetMs(zone));
  const iso = local.toISOString();
  const day = iso.slice(0, 'yyyy-mm-dd'.length);
  const time = iso.slice('yyyy-mm-ddT'.length, 'yyyy-mm-ddThh:mm'.length);
  const weekday = local.getUTCDay() === 0 ? 7 : local.getUTCDay();
  const isWithin = days.includes(weekday) && hours.some(([from, to]) => time >= from && time < to);
  if (!isWithin) return 'off';
  if (holidays === undefined) return 'peak';
  const holiday = isHoliday(holidays, day);
  if (holiday === null) return 'unknown';
  return holiday ? 'off' : 'peak';
}

/** The zone's lead over UTC, as `+08:00` states it. */
function offsetMs(zone: string): number {
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6));
  return (zone.startsWith('-') ? -1 : 1) * minutes * 60_000;
}

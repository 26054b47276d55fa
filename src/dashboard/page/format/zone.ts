/** The time zone of the page: UTC, as reports and budgets count, or the reader's own. Days and hours everywhere are those of this zone. */

export type Zone = 'UTC' | 'local';

const STORED = 'weir-zone';
const DAY_MS = 86_400_000;
/** Dispatched on `window` when the zone changes. */
export const ZONE_CHANGE = 'weir-zone';

let zone: Zone = readStored();

function readStored(): Zone {
  try {
    return localStorage.getItem(STORED) === 'local' ? 'local' : 'UTC';
  } catch {
    return 'UTC';
  }
}

export function zoneOf(): Zone {
  return zone;
}

/** Changes the zone, also for later visits. */
export function setZone(chosen: Zone): void {
  zone = chosen;
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // A browser without storage forgets it.
  }
  dispatchEvent(new Event(ZONE_CHANGE));
}

/** The name of the zone at a time, such as `UTC` or `CET`. */
export function zoneName(ms = Date.now()): string {
  if (zone === 'UTC') return 'UTC';
  const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' }).formatToParts(ms);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'local';
}

/** The day of a time in the page's zone, as `2026-11-23`. */
export function dayOf(ms: number): string {
  const { year, month, day } = partsOf(ms);
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}`;
}

/** The UTC day of a time, as reports name it. */
export function utcDayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** When a day of the page's zone begins, in ms since the epoch; NaN: no such day. */
export function startOfDay(day: string, plus = 0): number {
  const utc = Date.parse(day);
  if (zone === 'UTC' || Number.isNaN(utc)) return utc + plus * DAY_MS;
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + plus).getTime();
}

/** A time as ISO 8601 in the page's zone, for CSV: `2026-11-23T12:00:00.000Z`, or with an offset. */
export function isoTime(iso: string): string {
  if (zone === 'UTC') return iso;
  const at = new Date(iso);
  const offset = -at.getTimezoneOffset();
  const local = new Date(at.getTime() + offset * 60_000).toISOString().slice(0, -1);
  const size = Math.abs(offset);
  return `${local}${offset < 0 ? '-' : '+'}${twoDigits(Math.floor(size / 60))}:${twoDigits(size % 60)}`;
}

function partsOf(ms: number): { readonly year: number; readonly month: number; readonly day: number } {
  const at = new Date(ms);
  return zone === 'UTC'
    ? { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, day: at.getUTCDate() }
    : { year: at.getFullYear(), month: at.getMonth() + 1, day: at.getDate() };
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

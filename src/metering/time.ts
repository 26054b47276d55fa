/** Times as records and reports write them: ISO 8601 in UTC, days, and request ids, which contain their time. */
import { flatText } from '../shared/json.ts';

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
const SECOND_MS = 1000;

/** The latest time that a `Date` can hold. */
const MAX_TIME_MS = 8.64e15;

/** The second that was formatted last, and its text up to the milliseconds: one request formats several times of one second. */
let lastSecond = Number.NaN;
let lastPrefix = '';

/**
 * ISO 8601, UTC, with milliseconds.
 * @param ms since the epoch
 */
export function isoTime(ms: number): string {
  if (ms > MAX_TIME_MS) return isoTime(MAX_TIME_MS);
  const second = Math.floor(ms / SECOND_MS);
  if (second !== lastSecond) {
    lastPrefix = new Date(ms).toISOString().slice(0, -'000Z'.length);
    lastSecond = second;
  }
  return flatText(lastPrefix, String(Math.floor(ms) - second * SECOND_MS).padStart(3, '0'), 'Z');
}

/**
 * The UTC day, such as `2026-11-22`.
 * @param ms since the epoch
 */
export function isoDay(ms: number): string {
  return isoTime(ms).slice(0, 10);
}

/** The UTC days of the range from `fromMs` (inclusive) to `toMs` (exclusive). */
export function daysBetween(fromMs: number, toMs: number): string[] {
  const days: string[] = [];
  for (let ms = Math.floor(fromMs / DAY_MS) * DAY_MS; ms < toMs; ms += DAY_MS) days.push(isoDay(ms));
  return days;
}

// Request ids are UUIDv7 (RFC 9562): an id contains the request's time of arrival, and ids sort by it.

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const POSITION = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME_DIGITS = 12;
const ZERO_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * @param ms since the epoch
 * @param random a random UUID (version 4); its random bits are kept
 */
export function requestId(ms: number, random: string): string {
  const time = ms.toString(16).padStart(TIME_DIGITS, '0');
  return flatText(time.slice(0, 8), '-', time.slice(8), '-7', random.slice(15));
}

/** A lower bound: ids of this time or later sort after it or equal it, and ids of earlier times sort before it. */
export function firstIdAt(ms: number): string {
  return requestId(ms, ZERO_UUID);
}

/** The first ms that has no id before this one. */
export function endOfIds(beforeId: string): number {
  const ms = idTime(beforeId);
  return beforeId > firstIdAt(ms) ? ms + 1 : ms;
}

/** The least id after this one. */
export function idAfter(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Whether the text is a valid bound between ids: an id, or a result of {@link firstIdAt}. */
export function isPosition(text: string): boolean {
  return POSITION.test(text);
}

/** Whether a text has the form of a request's id, a UUID of version 7. */
export function isRequestId(text: string): boolean {
  return ID.test(text);
}

/** The time in an id, in ms since the epoch. */
export function idTime(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

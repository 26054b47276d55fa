/** What a month will have cost at the pace of its last days. */
import type { Row } from '../../api/types.ts';

const DAY_MS = 86_400_000;
const PACE_DAYS = 7;
/** A pace needs some time. */
const MIN_PACE_MS = 3_600_000;

export interface Month {
  readonly today: number;
  /** Up to now. */
  readonly spent: number;
  /** Of the whole month; null before there is spend. */
  readonly forecast: number | null;
}

/** The days (UTC) whose reports {@link monthOf} needs: those of the month, and the last seven. */
export function monthSpan(nowMs: number): { readonly from: string; readonly to: string } {
  const from = Math.min(startOfMonth(nowMs), startOfDay(nowMs) - (PACE_DAYS - 1) * DAY_MS);
  return { from: dayOf(from), to: dayOf(startOfDay(nowMs) + DAY_MS) };
}

/** @param rows by day (UTC) */
export function monthOf(rows: readonly Row[], currency: string, nowMs: number): Month {
  const sum = (sinceMs: number) =>
    rows.reduce(
      (all, { day = '', cost }) => all + (Date.parse(day) >= sinceMs ? (cost[currency] ?? 0) : 0),
      0,
    );
  const today = startOfDay(nowMs);
  const spent = sum(startOfMonth(nowMs));
  const days = rows.filter(({ cost }) => (cost[currency] ?? 0) > 0).map(({ day = '' }) => Date.parse(day));
  const since = Math.max(Math.min(...days), today - (PACE_DAYS - 1) * DAY_MS);
  const pace = sum(since) / Math.max(nowMs - since, MIN_PACE_MS);
  return {
    today: sum(today),
    spent,
    forecast: days.length === 0 ? null : spent + pace * (endOfMonth(nowMs) - nowMs),
  };
}

function startOfDay(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

function startOfMonth(ms: number): number {
  const at = new Date(ms);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
}

function endOfMonth(ms: number): number {
  const at = new Date(ms);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

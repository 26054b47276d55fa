/** Days as reports and stores name them, in UTC. */
import { isoTime } from './record.ts';

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** @param ms since the epoch */
export function isoDay(ms: number): string {
  return isoTime(ms).slice(0, 10);
}

/** The days of a time from `fromMs` up to `toMs`, which is not within. */
export function daysBetween(fromMs: number, toMs: number): string[] {
  const days: string[] = [];
  for (let ms = Math.floor(fromMs / DAY_MS) * DAY_MS; ms < toMs; ms += DAY_MS) days.push(isoDay(ms));
  return days;
}

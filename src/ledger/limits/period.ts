/** The periods of budgets, in UTC. A period's name is part of what is counted, so that nothing is ever reset (G4). */
import type { Per } from './limits.ts';

/** The UTC day of a moment, as `2026-11-21`: the grain in which spend is kept. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The period's name: `2026-11-21`, `2026-11` or `total`. */
export function periodName(per: Per, ms: number): string {
  return per === 'total' ? per : daysPrefix(per, ms);
}

/** The beginning that all days of the period have: `2026-11-21`, `2026-11`, or nothing for all time. */
export function daysPrefix(per: Per, ms: number): string {
  switch (per) {
    case 'day':
      return dayOf(ms);
    case 'month':
      return dayOf(ms).slice(0, 7);
    case 'total':
      return '';
  }
}

/** When the period ends, in ms since the epoch; null: never. */
export function periodEnd(per: Per, ms: number): number | null {
  const now = new Date(ms);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (per) {
    case 'day':
      return Date.UTC(year, month, day + 1);
    case 'month':
      return Date.UTC(year, month + 1, 1);
    case 'total':
      return null;
  }
}

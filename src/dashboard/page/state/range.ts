/** The time that a view shows: the last hours or days, or whole days that were chosen, and the same length before it. */
import type { Problem } from '../api/fetch-api.ts';
import type { Params } from './route.ts';

export const RANGES = [
  { name: '24h', label: '24 h' },
  { name: '7d', label: '7 d' },
  { name: '30d', label: '30 d' },
  { name: '90d', label: '90 d' },
] as const;
type RangeName = (typeof RANGES)[number]['name'];
const DEFAULT = RANGES[1];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAYS = /^\d{4}-\d{2}-\d{2}$/;

export interface Range {
  /** Null where days were chosen. */
  readonly name: RangeName | null;
  /** ms since the epoch; `toMs` is not within. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly step: 'hour' | 'day';
  /** Why there can be nothing in it; null: there can. */
  readonly problem: Problem | null;
}

export function readRange(params: Params, now = Date.now()): Range {
  const { from = '', to = '' } = params;
  if (from !== '' || to !== '') {
    const problem = impossible(from, to, dayOf(now));
    if (problem !== null) return { name: null, fromMs: 0, toMs: 0, step: 'day', problem };
    const fromMs = Date.parse(from);
    const toMs = Date.parse(to) + DAY_MS;
    return { name: null, fromMs, toMs, step: toMs - fromMs <= 2 * DAY_MS ? 'hour' : 'day', problem };
  }
  const { name } = RANGES.find((known) => known.name === params.range) ?? DEFAULT;
  if (name === '24h') {
    const toMs = Math.floor(now / HOUR_MS + 1) * HOUR_MS;
    return { name, fromMs: toMs - DAY_MS, toMs, step: 'hour', problem: null };
  }
  const toMs = Math.floor(now / DAY_MS + 1) * DAY_MS;
  return { name, fromMs: toMs - Number.parseInt(name, 10) * DAY_MS, toMs, step: 'day', problem: null };
}

function isDay(text: string): boolean {
  return DAYS.test(text) && !Number.isNaN(Date.parse(text));
}

function impossible(from: string, to: string, today: string): Problem | null {
  const message =
    !isDay(from) || !isDay(to)
      ? 'Choose the first and the last day.'
      : from > to
        ? `It begins on ${from}, after its end on ${to}.`
        : from > today && `It begins on ${from}, and today is ${today} (UTC).`;
  return message ? { kind: 'refused', status: 400, code: '', message, param: 'range' } : null;
}

export function before({ fromMs, toMs, ...range }: Range): Range {
  return { ...range, fromMs: fromMs - (toMs - fromMs), toMs: fromMs };
}

/** As the API takes it. */
export function spanOf({ fromMs, toMs }: Range): { readonly from: string; readonly to: string } {
  return { from: iso(fromMs), to: iso(toMs) };
}

/** The starts of its hours or days, as reports name them. */
export function stepsOf({ fromMs, toMs, step }: Range): string[] {
  const steps: string[] = [];
  const ms = step === 'hour' ? HOUR_MS : DAY_MS;
  for (let at = fromMs; at < toMs; at += ms)
    steps.push(step === 'hour' ? `${new Date(at).toISOString().slice(0, 13)}:00Z` : iso(at));
  return steps;
}

/** A day, or a minute where it is none's beginning. */
function iso(ms: number): string {
  const text = new Date(ms).toISOString();
  return ms % DAY_MS === 0 ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}

/** Of a range, where it has days. */
export function daysOf(params: Params, { name, fromMs, toMs }: Range): { from: string; to: string } {
  const { from = '', to = '' } = params;
  // The end is not within.
  const shown = (text: string) => (isDay(text) ? text : '');
  return name === null ? { from: shown(from), to: shown(to) } : { from: dayOf(fromMs), to: dayOf(toMs - 1) };
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

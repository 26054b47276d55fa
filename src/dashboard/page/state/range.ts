/** The time range of a view: the last hours or days, or chosen days. */
import type { Problem } from '../api/problem.ts';
import { dayOf, startOfDay, utcDayOf, zoneName, zoneOf } from '../format/zone.ts';
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
  /** Null for chosen days. */
  readonly name: RangeName | null;
  /** ms since the epoch; `toMs` is exclusive. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly step: 'hour' | 'day';
  /** Why the range is invalid; null: it is valid. */
  readonly problem: Problem | null;
}

export function readRange(params: Params, now = Date.now()): Range {
  const { from = '', to = '' } = params;
  const { hour = '' } = params;
  if (isHour(hour)) {
    const fromMs = Date.parse(hour);
    return { name: null, fromMs, toMs: fromMs + HOUR_MS, step: 'hour', problem: null };
  }
  if (from !== '' || to !== '') {
    const problem = rangeProblem(from, to, dayOf(now));
    if (problem !== null) return { name: null, fromMs: 0, toMs: 0, step: 'day', problem };
    const fromMs = startOfDay(from);
    const toMs = startOfDay(to, 1);
    return {
      name: null,
      fromMs,
      toMs,
      step: from === to || startOfDay(from, 1) === startOfDay(to) ? 'hour' : 'day',
      problem,
    };
  }
  const { name } = RANGES.find((known) => known.name === params.range) ?? DEFAULT;
  if (name === '24h') {
    const toMs = Math.floor(now / HOUR_MS + 1) * HOUR_MS;
    return { name, fromMs: toMs - DAY_MS, toMs, step: 'hour', problem: null };
  }
  const today = dayOf(now);
  const fromMs = startOfDay(today, 1 - Number.parseInt(name, 10));
  return { name, fromMs, toMs: startOfDay(today, 1), step: 'day', problem: null };
}

/** An hour as reports name them, which a click on a bar selects. */
function isHour(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:00Z$/.test(text) && !Number.isNaN(Date.parse(text));
}

function isDay(text: string): boolean {
  return DAYS.test(text) && !Number.isNaN(Date.parse(text));
}

function rangeProblem(from: string, to: string, today: string): Problem | null {
  const message =
    !isDay(from) || !isDay(to)
      ? 'Choose the first and the last day.'
      : from > to
        ? `It begins on ${from}, after its end on ${to}.`
        : from > today && `It begins on ${from}, and today is ${today} (${zoneName()}).`;
  return message ? { kind: 'refused', status: 400, code: '', message, param: 'range' } : null;
}

/** The range of the same length before this one. */
export function previousRange({ fromMs, toMs, ...range }: Range): Range {
  return { ...range, fromMs: fromMs - (toMs - fromMs), toMs: fromMs };
}

/** The range as parameters of the API. */
export function spanOf({ fromMs, toMs }: Range): { readonly from: string; readonly to: string } {
  return { from: iso(fromMs), to: iso(toMs) };
}

/** The hours of the range as reports name them, or its days in the page's zone. */
export function stepsOf({ fromMs, toMs, step }: Range): string[] {
  const steps: string[] = [];
  if (step === 'hour') {
    for (let at = fromMs; at < toMs; at += HOUR_MS)
      steps.push(`${new Date(at).toISOString().slice(0, 13)}:00Z`);
    return steps;
  }
  const first = dayOf(fromMs);
  for (let at = fromMs, n = 1; at < toMs; at = startOfDay(first, n++)) steps.push(dayOf(at));
  return steps;
}

/** The steps of the range in UTC, as a report by them names them in every zone. */
export function utcStepsOf(range: Range): string[] {
  if (range.step === 'hour') return stepsOf(range);
  const steps: string[] = [];
  for (let at = Date.parse(utcDayOf(range.fromMs)); at < range.toMs; at += DAY_MS) steps.push(utcDayOf(at));
  return steps;
}

/** What a report is grouped by for the steps of the range: reports count UTC days, so the days of another zone are summed from hours. */
export function reportStep({ step }: Range): Range['step'] {
  return zoneOf() === 'UTC' ? step : 'hour';
}

/** The range of a chart of percentiles: by hours where its days are not those of reports. */
export function lineRange(range: Range): Range {
  return { ...range, step: reportStep(range) };
}

/** The step that a row of such a report belongs to. */
export function stepOfRow({ fromMs, step }: Range, name: string): string {
  if (zoneOf() === 'UTC' || step === 'hour') return name;
  // An hour of a report may begin before the day of a zone like that of India.
  return dayOf(Math.max(fromMs, Date.parse(name)));
}

/** A day if the time is the start of one, otherwise a minute. */
function iso(ms: number): string {
  const text = new Date(ms).toISOString();
  return ms % DAY_MS === 0 ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}

/** The first and the last day of a range; empty where they are invalid. */
export function daysOf(params: Params, { name, fromMs, toMs }: Range): { from: string; to: string } {
  const { from = '', to = '' } = params;
  const shown = (text: string) => (isDay(text) ? text : '');
  return name === null && !isHour(params.hour ?? '')
    ? { from: shown(from), to: shown(to) }
    : { from: dayOf(fromMs), to: dayOf(toMs - 1) };
}

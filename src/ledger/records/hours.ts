/** A key's sums an hour, which are made with each record, and a day, which are made of them (L4). */

import type { RecordSummary } from '../../metering/record.ts';
import { amountsOf } from '../../metering/report.ts';
import { HOUR_MS } from '../../metering/time.ts';
import { MAX_DAY_GROUPS } from '../../shared/limits.ts';
import {
  AMOUNTS,
  addition,
  type Columns,
  DIMENSIONS,
  readColumns,
  readSums,
  rowsFrom,
  SUMS,
  toColumns,
  valuesOf,
} from './columns.ts';
import { type LedgerState, readState, setState } from './settings-table.ts';
import { MAX_SPEED_CHARS, shortenSpeeds } from './speed-text.ts';
import { createSumTable } from './sum-table.ts';

export const HOURS_PER_DAY = 24;

/** The sums of one day's requests of one kind. */
export interface DayRow {
  /** Days since the epoch. */
  readonly day: number;
  /** In the order of {@link DIMENSIONS}. */
  readonly dimensions: readonly string[];
  readonly columns: Columns;
}

/** The model under which sums are kept once a day has too many groups: callers choose the names. */
const OTHER_MODEL = '(other)';

/** Rows of one message to the directory. */
export const MAX_MESSAGE_ROWS = 2000;

/** After every day that has a date. */
const LAST_DAY = 100_000_001;

const MODEL = DIMENSIONS.indexOf('model');
const KEYS = DIMENSIONS.join(', ');
const SAME = DIMENSIONS.map((name) => `${name} = ?`).join(' AND ');

export function createSums(sql: SqlStorage): void {
  createSumTable(sql, 'hours', { hour: 'INTEGER' });
  createSumTable(sql, 'days', { day: 'INTEGER' });
}

/** One hour's requests of one kind. */
interface HourGroup {
  /** Hours since the epoch. */
  readonly hour: number;
  /** In the order of {@link DIMENSIONS}. */
  readonly dimensions: readonly string[];
}

interface HourRow extends HourGroup {
  readonly columns: Columns;
}

/** Adds records to their hours, which are those of their arrival. */
export function addToHours(
  sql: SqlStorage,
  records: readonly RecordSummary[],
  { open_day }: LedgerState,
): void {
  if (records.length === 0) return;
  const rows = records.map(hourRow);
  for (const group of addRows(sql, rows)) if (isTooMany(sql, group)) moveToOther(sql, group);
  // What is counted into a day that was closed opens it again.
  const firstDay = Math.min(...rows.map(dayOf));
  if (firstDay < open_day) setState(sql, 'open_day', firstDay);
}

function hourRow(record: RecordSummary): HourRow {
  const amounts = amountsOf(record);
  const { provider, model, route, status } = record;
  return {
    hour: Math.floor(Date.parse(record.time) / HOUR_MS),
    dimensions: [provider, model, route, status, amounts.currency ?? ''],
    columns: toColumns(amounts),
  };
}

function dayOf({ hour }: HourGroup): number {
  return Math.floor(hour / HOURS_PER_DAY);
}

const ADD = `INSERT INTO hours ${rowsFrom(1)}
  ON CONFLICT DO UPDATE SET ${addition((name) => `excluded.${name}`)}
  RETURNING requests, LENGTH(speeds), hour, ${KEYS}`;

/** Adds each request to its hour, and returns the groups of which it is the first. */
function addRows(sql: SqlStorage, rows: readonly HourRow[]): HourGroup[] {
  const json = JSON.stringify(
    rows.map(({ hour, dimensions, columns }) => [hour, ...dimensions, ...valuesOf(columns)]),
  );
  const first: HourGroup[] = [];
  for (const [requests, speedChars, hour, ...dimensions] of [...sql.exec(ADD, json).raw()]) {
    const group = { hour: Number(hour), dimensions: dimensions.map(String) };
    if (requests === 1) first.push(group);
    if (Number(speedChars) > MAX_SPEED_CHARS) shortenGroup(sql, group);
  }
  return first;
}

const SPEEDS = `SELECT speeds FROM hours WHERE hour = ? AND ${SAME}`;
const SET_SPEEDS = `UPDATE hours SET speeds = ? WHERE hour = ? AND ${SAME}`;

function shortenGroup(sql: SqlStorage, { hour, dimensions }: HourGroup): void {
  const speeds = String(sql.exec(SPEEDS, hour, ...dimensions).one().speeds);
  // In a batch a group comes several times, and is short after the first.
  if (speeds.length > MAX_SPEED_CHARS) sql.exec(SET_SPEEDS, shortenSpeeds(speeds), hour, ...dimensions);
}

const REMOVE = `DELETE FROM hours WHERE hour = ? AND ${SAME} RETURNING ${AMOUNTS.join(', ')}`;

function moveToOther(sql: SqlStorage, { hour, dimensions }: HourGroup): void {
  const [removed = []] = sql.exec(REMOVE, hour, ...dimensions).raw();
  addRows(sql, [{ hour, dimensions: dimensions.with(MODEL, OTHER_MODEL), columns: readColumns(removed) }]);
}

const OTHER_HOURS = Array.from({ length: HOURS_PER_DAY - 1 }, () => '?').join(', ');
const IS_IN_DAY = `SELECT 1 FROM hours WHERE hour IN (${OTHER_HOURS}) AND ${SAME} LIMIT 1`;
const COUNT_GROUPS = `SELECT COUNT(*) AS groups FROM (SELECT DISTINCT ${KEYS} FROM hours WHERE hour >= ? AND hour < ?)`;

/** Whether a new group is one more than its day may have. */
function isTooMany(sql: SqlStorage, group: HourGroup): boolean {
  if (group.dimensions[MODEL] === OTHER_MODEL) return false;
  const first = dayOf(group) * HOURS_PER_DAY;
  const others = Array.from({ length: HOURS_PER_DAY }, (_, i) => first + i).filter(
    (hour) => hour !== group.hour,
  );
  // An hour's first request of a kind is seldom the day's first.
  const isKnown = !sql.exec(IS_IN_DAY, ...others, ...group.dimensions).next().done;
  if (isKnown) return false;
  const { groups } = sql.exec(COUNT_GROUPS, first, first + HOURS_PER_DAY).one();
  return Number(groups) > MAX_DAY_GROUPS;
}

const CHANGED = `SELECT hour / ${HOURS_PER_DAY} AS day, ${KEYS}, ${SUMS} FROM hours WHERE hour >= ? AND hour < ?
  GROUP BY day, ${KEYS}
  HAVING TOTAL(requests) > COALESCE((SELECT requests FROM days WHERE day = hour / ${HOURS_PER_DAY}
    AND ${DIMENSIONS.map((name) => `days.${name} = hours.${name}`).join(' AND ')}), 0)
  LIMIT ${MAX_MESSAGE_ROWS}`;

/** Sums of days that have grown since they were last kept, of days before `until`: at most as many as one message holds. */
export function changedDays(sql: SqlStorage, { open_day }: LedgerState, until = LAST_DAY): DayRow[] {
  const rows = sql.exec(CHANGED, open_day * HOURS_PER_DAY, until * HOURS_PER_DAY).raw();
  return [...rows].map(([day, ...rest]) => ({
    day: Number(day),
    dimensions: rest.slice(0, DIMENSIONS.length).map(String),
    columns: readSums(rest.slice(DIMENSIONS.length)),
  }));
}

const KEEP = `INSERT INTO days ${rowsFrom(1)} ON CONFLICT DO UPDATE SET
  ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')}`;

/** Keeps sums of days, which the directory has by now, and closes the days before `day` that are whole in `days`. */
export function keepDays(sql: SqlStorage, rows: readonly DayRow[], day: number): void {
  sql.exec(KEEP, JSON.stringify(rows.map((row) => [row.day, ...row.dimensions, ...valuesOf(row.columns)])));
  const marks = readState(sql);
  if (marks.open_day < day && changedDays(sql, marks, day).length === 0) setState(sql, 'open_day', day);
}

/** A key's sums an hour, which are made with each record, and a day, which are made of them (L4). */
import { MAX_DAY_GROUPS } from '../../canonical/limits.ts';
import type { RecordSummary } from '../record.ts';
import { amountsOf } from '../report.ts';
import { AMOUNTS, addition, type Columns, DEFINITIONS, DIMENSIONS, SUMS, toColumns } from './columns.ts';
import { readMark, setMark } from './marks.ts';

export const HOUR_MS = 3_600_000;
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
export const OTHER_MODEL = '(other)';

/** Rows of one message to the directory. */
export const MAX_MESSAGE_ROWS = 2000;

/** After every day that has a date. */
const LAST_DAY = 100_000_001;

const KEYS = DIMENSIONS.join(', ');
const SAME = DIMENSIONS.map((name) => `${name} = ?`).join(' AND ');
const VALUES = [...DIMENSIONS, ...AMOUNTS].map(() => '?').join(', ');

export function createSums(sql: SqlStorage): void {
  for (const [table, period] of [
    ['hours', 'hour'],
    ['days', 'day'],
  ])
    sql.exec(`CREATE TABLE IF NOT EXISTS ${table} (
      ${period} INTEGER NOT NULL, ${DEFINITIONS}, PRIMARY KEY (${period}, ${KEYS})
    ) STRICT, WITHOUT ROWID`);
}

const ADD = `INSERT INTO hours VALUES (?, ${VALUES})
  ON CONFLICT DO UPDATE SET ${addition((name) => `excluded.${name}`)}`;

/** Adds a record to its hour: that of its arrival. */
export function addToHour(sql: SqlStorage, record: RecordSummary): void {
  const hour = Math.floor(Date.parse(record.time) / HOUR_MS);
  const day = Math.floor(hour / HOURS_PER_DAY);
  const amounts = amountsOf(record);
  const { provider, model, route, status } = record;
  const currency = amounts.currency ?? '';
  const dimensions = [provider, model, route, status, currency];
  const isNew = sql.exec(`SELECT 1 FROM hours WHERE hour = ? AND ${SAME}`, hour, ...dimensions).next().done;
  if (isNew && isFull(sql, day, dimensions)) dimensions[1] = OTHER_MODEL;
  sql.exec(ADD, hour, ...dimensions, ...toColumns(amounts));
  // What is counted into a day that was closed opens it again.
  if (day < readMark(sql, 'open_day')) setMark(sql, 'open_day', day);
}

/** Whether the day has as many groups as it may have, and none of these dimensions. */
function isFull(sql: SqlStorage, day: number, dimensions: readonly string[]): boolean {
  const { groups, known } = sql
    .exec(
      `SELECT COUNT(*) AS groups, TOTAL(${SAME}) AS known
        FROM (SELECT DISTINCT ${KEYS} FROM hours WHERE hour >= ? AND hour < ?)`,
      ...dimensions,
      day * HOURS_PER_DAY,
      (day + 1) * HOURS_PER_DAY,
    )
    .one();
  return known === 0 && Number(groups) >= MAX_DAY_GROUPS;
}

const CHANGED = `SELECT hour / ${HOURS_PER_DAY} AS day, ${KEYS}, ${SUMS} FROM hours WHERE hour >= ? AND hour < ?
  GROUP BY day, ${KEYS}
  HAVING TOTAL(requests) > COALESCE((SELECT requests FROM days WHERE day = hour / ${HOURS_PER_DAY}
    AND ${DIMENSIONS.map((name) => `days.${name} = hours.${name}`).join(' AND ')}), 0)
  LIMIT ${MAX_MESSAGE_ROWS}`;

/** Sums of days that have grown since they were last kept, of days before `until`: at most as many as one message holds. */
export function changedDays(sql: SqlStorage, until = LAST_DAY): DayRow[] {
  const rows = sql.exec(CHANGED, readMark(sql, 'open_day') * HOURS_PER_DAY, until * HOURS_PER_DAY).raw();
  return [...rows].map(([day, ...rest]) => ({
    day: Number(day),
    dimensions: rest.slice(0, DIMENSIONS.length).map(String),
    columns: rest.slice(DIMENSIONS.length).map(Number),
  }));
}

const KEEP = `INSERT INTO days VALUES (?, ${VALUES}) ON CONFLICT DO UPDATE SET
  ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')}`;

/** Keeps sums of days, which the directory has by now, and closes the days before `day` that are whole in `days`. */
export function keepDays(sql: SqlStorage, rows: readonly DayRow[], day: number): void {
  for (const row of rows) sql.exec(KEEP, row.day, ...row.dimensions, ...row.columns);
  const isBehind = readMark(sql, 'open_day') < day;
  if (isBehind && changedDays(sql, day).length === 0) setMark(sql, 'open_day', day);
}

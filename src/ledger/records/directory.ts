/** The directory object: the day sums of all keys, so that a report over all keys is one call, and counts of refused requests. */
import type { ReportQuery } from '../../metering/ledger.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import { DAY_MS, firstIdAt, HOUR_MS, idTime } from '../../metering/time.ts';
import { MAX_QUERIED_LEDGERS, MAX_REPORT_ROWS, REFUSALS_KEPT_DAYS } from '../../shared/limits.ts';
import { AMOUNTS, createSumTable, type DayRow, rowsFrom, type SumRow, valuesOf } from './sum-columns.ts';
import { sumRows } from './sums.ts';

export function createDirectory(sql: SqlStorage): void {
  createSumTable(sql, 'ledger_days', { day: 'INTEGER', key: 'TEXT' });
  sql.exec(`CREATE TABLE IF NOT EXISTS refusals (
    hour INTEGER NOT NULL, key TEXT NOT NULL, code TEXT NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (hour, key, code)
  ) STRICT, WITHOUT ROWID`);
  sql.exec('CREATE TABLE IF NOT EXISTS refusal_batches (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID');
}

/** The number of requests of a sum only grows, so a late or repeated message changes nothing. */
const REPLACE_DAYS = `INSERT INTO ledger_days ${rowsFrom(2)} ON CONFLICT DO UPDATE SET
  ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')} WHERE excluded.requests > requests`;

/** Replaces day sums of a key. */
export function takeDays(sql: SqlStorage, keyId: string, rows: readonly DayRow[]): void {
  sql.exec(
    REPLACE_DAYS,
    JSON.stringify(
      rows.map(({ day, dimensions, columns }) => [day, keyId, ...dimensions, ...valuesOf(columns)]),
    ),
  );
}

/** Reports over all keys, for whole days. */
export function directoryReport(sql: SqlStorage, query: ReportQuery): SumRow[] {
  const select = 'SELECT * FROM ledger_days WHERE day >= ? AND day < ?';
  return sumRows(sql, { select, bindings: [query.fromMs / DAY_MS, query.toMs / DAY_MS] }, query);
}

/** The keys that had requests on a day. */
export interface ActiveDay {
  /** Days since the epoch. */
  readonly day: number;
  readonly keyIds: readonly string[];
}

export interface ActiveDays {
  /** The latest first. */
  readonly days: readonly ActiveDay[];
  /** There are more keys than one response may read: earlier days are left out. */
  readonly isCut: boolean;
}

/**
 * The days from `from` to `to`, both inclusive, on which there were requests.
 * @returns whole days with together at most {@link MAX_QUERIED_LEDGERS} keys: no day if the latest one has more
 */
export function activeDays(sql: SqlStorage, from: number, to: number): ActiveDays {
  const select =
    'SELECT DISTINCT day, key FROM ledger_days WHERE day >= ? AND day <= ? ORDER BY day DESC LIMIT ?';
  const rows = [...sql.exec(select, from, to, MAX_QUERIED_LEDGERS + 1).raw()];
  const byDay = Map.groupBy(rows, ([day]) => Number(day));
  const days = [...byDay].map(([day, pairs]) => ({ day, keyIds: pairs.map(([, key]) => String(key)) }));
  const isCut = rows.length > MAX_QUERIED_LEDGERS;
  return { days: isCut ? days.slice(0, -1) : days, isCut };
}

/** Ids of one page of keys. */
const MAX_KEY_IDS = 1000;

/** The keys that ever had requests, in order of their ids, after this one. */
export function keyIdsAfter(sql: SqlStorage, after: string): readonly string[] {
  const select = `SELECT DISTINCT key FROM ledger_days WHERE key > ? ORDER BY key LIMIT ${MAX_KEY_IDS}`;
  return [...sql.exec(select, after).raw()].map(([key]) => String(key));
}

/** How long a batch of refusals may be repeated. */
const BATCHES_KEPT_MS = DAY_MS;

const ADD_REFUSALS = `INSERT INTO refusals SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE TRUE
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`;

/** Adds a batch unless it is already counted. The caller wraps this in a transaction. */
export function takeRefusals(sql: SqlStorage, { id, rows }: RefusalBatch): void {
  const isNew = !sql.exec('INSERT OR IGNORE INTO refusal_batches VALUES (?) RETURNING id', id).next().done;
  if (!isNew) return;
  const values = rows.map(({ hour, keyId, code, requests }) => [hour, keyId, code, requests]);
  sql.exec(ADD_REFUSALS, JSON.stringify(values));
  const now = idTime(id);
  sql.exec('DELETE FROM refusal_batches WHERE id < ?', firstIdAt(now - BATCHES_KEPT_MS));
  sql.exec('DELETE FROM refusals WHERE hour < ?', Math.floor((now - REFUSALS_KEPT_DAYS * DAY_MS) / HOUR_MS));
}

/** Refusals summed by the query's groups. One row more than a report may have signals that there are too many. */
export function sumRefusals(sql: SqlStorage, query: RefusalQuery): RefusalRow[] {
  const { fromHour, toHour, keyId, groups } = query;
  const day = groups.includes('day') ? 'hour / 24 * 24' : '0';
  const columns = [
    groups.includes('hour') ? 'hour' : day,
    groups.includes('key') ? 'key' : "''",
    groups.includes('code') ? 'code' : "''",
  ];
  const rows = sql.exec(
    `SELECT ${columns.join(', ')}, SUM(requests) FROM refusals WHERE hour >= ? AND hour < ? AND (? IS NULL OR key = ?)
      GROUP BY 1, 2, 3 LIMIT ${MAX_REPORT_ROWS + 1}`,
    ...[fromHour, toHour, keyId, keyId],
  );
  return [...rows.raw()].map(([hour, key, code, requests]) => ({
    hour: Number(hour),
    keyId: String(key),
    code: String(code),
    requests: Number(requests),
  }));
}

/** Counts of refused requests, in the object `*`. */
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import { DAY_MS, firstIdAt, HOUR_MS, idTime } from '../../metering/time.ts';
import { MAX_REPORT_ROWS, REFUSALS_KEPT_DAYS } from '../../shared/limits.ts';

export function createRefusals(sql: SqlStorage): void {
  sql.exec(`CREATE TABLE IF NOT EXISTS refusals (
    hour INTEGER NOT NULL, key TEXT NOT NULL, code TEXT NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (hour, key, code)
  ) STRICT, WITHOUT ROWID`);
  sql.exec('CREATE TABLE IF NOT EXISTS refusal_batches (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID');
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

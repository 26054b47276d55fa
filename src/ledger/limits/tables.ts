/** The tables in which a key's object keeps its limits, what was spent under them and what is reserved. */
import { type JsonObject, objectOf, parseJson } from '../../shared/json.ts';
import { type Limits, type LimitsResult, NO_LIMITS, readLimits, writeLimits } from './limits.ts';

/** The part of a Durable Object's SQL storage that limits use. */
export interface Sql {
  exec<Row extends Record<string, SqlStorageValue>>(
    query: string,
    ...bindings: readonly SqlStorageValue[]
  ): { toArray(): Row[] };
}

/**
 * - `reservations`: requests that run. They are summed up anew for every request: no counter that could drift from them.
 * - `spent`: a row for each UTC day and currency (`''`: no price is known); months and totals are sums of days.
 * - `unreported`: the part of `spent` that is charged at its bound, because no provider reported it.
 * - `expired`: reservations that were charged because nothing settled them, for a settle that still comes.
 * - `unreserved`: ids of requests that were settled without a reservation, so that each counts once.
 * - `seconds`: what was asked in each of the last 61 seconds; a slot is used again and again.
 */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS limits (only INTEGER PRIMARY KEY CHECK (only = 1), json TEXT NOT NULL)',
  `CREATE TABLE IF NOT EXISTS reservations (
    id TEXT PRIMARY KEY, day TEXT NOT NULL, second INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    tokens INTEGER NOT NULL, expected_tokens INTEGER NOT NULL, currency TEXT NOT NULL, cost INTEGER NOT NULL,
    output_tokens INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS spent (
    day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    PRIMARY KEY (day, currency)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS unreported (
    day TEXT NOT NULL, currency TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    PRIMARY KEY (day, currency)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS expired (
    id TEXT PRIMARY KEY, day TEXT NOT NULL, tokens INTEGER NOT NULL, currency TEXT NOT NULL, cost INTEGER NOT NULL,
    expired_at INTEGER NOT NULL
  ) WITHOUT ROWID`,
  'CREATE TABLE IF NOT EXISTS unreserved (id TEXT PRIMARY KEY, settled_at INTEGER NOT NULL) WITHOUT ROWID',
  `CREATE TABLE IF NOT EXISTS seconds (
    slot INTEGER PRIMARY KEY, second INTEGER NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL
  )`,
];

/** Makes the tables where they are missing. */
export function createLimitTables(sql: Sql): void {
  for (const table of TABLES) sql.exec(table);
}

/** The key's limits; {@link NO_LIMITS} where none were ever set. */
export function storedLimits(sql: Sql): Limits {
  const [row] = sql.exec<{ json: string }>('SELECT json FROM limits').toArray();
  if (row === undefined) return NO_LIMITS;
  const stored = parseJson(row.json);
  const read = readLimits(objectOf(stored));
  return read.kind === 'limits' ? read.limits : NO_LIMITS;
}

/** Whether limits were ever set: nothing is counted before. */
export function hadLimits(sql: Sql): boolean {
  return sql.exec('SELECT 1 FROM limits').toArray().length > 0;
}

/**
 * Sets the limits that the fields name, and leaves the others. Nothing of what was spent or is reserved is touched: the next
 * request is held against the new limits (G4).
 */
export function changeLimits(sql: Sql, fields: JsonObject): LimitsResult {
  const read = readLimits(fields, storedLimits(sql));
  if (read.kind === 'limits') {
    const json = JSON.stringify(writeLimits(read.limits) ?? {});
    sql.exec('INSERT INTO limits VALUES (1, ?) ON CONFLICT DO UPDATE SET json = excluded.json', json);
  }
  return read;
}

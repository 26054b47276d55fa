/** The SQL tables in which a key's ledger object stores its limits and their use, and the key's status against them. */
import {
  type Budget,
  type BudgetStatus,
  dayOf,
  encodeLimits,
  isEnforced,
  type LimitStatus,
  type Limits,
  type LimitsResult,
  NO_LIMITS,
  periodDays,
  periodEnd,
  periodName,
  type RateStatus,
  readLimits,
  STORED_LIMIT_FIELDS,
  TOKENS,
} from '../../auth/key-limits.ts';
import { isObject, type JsonObject, parseJson } from '../../shared/json.ts';

/** The part of a Durable Object's SQL storage that limits use. */
export interface Sql {
  exec<Row extends Record<string, SqlStorageValue>>(
    query: string,
    ...bindings: readonly SqlStorageValue[]
  ): { toArray(): Row[] };
}

/**
 * - `reservations`: running requests. Each status sums them again, because a separate counter could drift.
 * - `spent`: one row for each UTC day and currency (`''`: no known price); weeks, months and totals are sums of days.
 * - `unreported`: the part of `spent` that was charged at its upper bound because no provider reported it.
 * - `expired`: reservations that were charged because nothing settled them in time. A late settlement replaces the charge.
 * - `unreserved`: ids of requests that were settled without a reservation, so that each counts once.
 * - `counted`: what providers counted of prompts.
 * - `top_ups`: what was added to a budget, for one period, such as `2026-11`. The name of a period says of which budget it is.
 * - `seconds`: requests and expected tokens of each of the last 61 seconds, in slots that are reused.
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
  'CREATE TABLE IF NOT EXISTS counted (slot INTEGER PRIMARY KEY, hash TEXT NOT NULL, tokens INTEGER NOT NULL, at INTEGER NOT NULL)',
  `CREATE TABLE IF NOT EXISTS top_ups (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, note TEXT NOT NULL, unit TEXT NOT NULL, per TEXT NOT NULL,
    period TEXT NOT NULL, amount INTEGER NOT NULL
  ) WITHOUT ROWID`,
];

export function createLimitTables(sql: Sql): void {
  createTables(sql, TABLES);
}

/** By object, the names of its tables, as they were read after the last change of them. */
const known = new WeakMap<Sql, ReadonlySet<string>>();

/** Whether an object has a table that {@link createTables} creates. */
export function hasTable(sql: Sql, name: string): boolean {
  const tables = known.get(sql) ?? readTables(sql);
  known.set(sql, tables);
  return tables.has(name);
}

function readTables(sql: Sql): ReadonlySet<string> {
  const query = "SELECT name FROM sqlite_master WHERE type = 'table'";
  const rows = sql.exec<{ name: string }>(query).toArray();
  return new Set(rows.map(({ name }) => name));
}

const CREATED = /^CREATE TABLE IF NOT EXISTS (\w+)/;

/** Creates those tables that do not exist. @param statements each begins with `CREATE TABLE IF NOT EXISTS` */
export function createTables(sql: Sql, statements: readonly string[]): void {
  const missing = statements.filter((statement) => !hasTable(sql, CREATED.exec(statement)?.[1] ?? ''));
  if (missing.length > 0) forgetTables(sql);
  for (const statement of missing) sql.exec(statement);
}

/** Tables may be gone: a transaction was rolled back, or all data of the object is deleted. */
export function forgetTables(sql: Sql): void {
  known.delete(sql);
}

/** The version of the row of limits. Code of an earlier version must not leave out a limit that it does not know. */
const VERSION = 1;

const UNREADABLE = 'ledger_unreadable: ';

/**
 * What the object has stored of a key cannot be read. It leaves the object as the exception of the call, which so decides nothing: no
 * request is admitted by limits that are not known.
 */
export class UnreadableRow extends Error {
  constructor(reason: string) {
    super(UNREADABLE + reason);
  }
}

/** The reason of an {@link UnreadableRow} that was thrown here or in another object; null: another error. */
export function unreadableReason(error: unknown): string | null {
  const message = error instanceof Error ? error.message : '';
  const at = message.indexOf(UNREADABLE);
  return at < 0 ? null : message.slice(at + UNREADABLE.length);
}

/** By object, the row of limits that was read last. A request reads it several times, and it rarely changes. */
const lastRows = new WeakMap<Sql, { readonly json: string; readonly limits: Limits }>();

/**
 * The key's limits; {@link NO_LIMITS} itself where none were ever set. A removal leaves its row.
 * @param listed the limits that KV lists for the key. An object that never had limits takes them: it is new, as after a restoration
 * from a backup
 * @throws UnreadableRow
 */
export function storedLimits(sql: Sql, listed: JsonObject | null = null): Limits {
  const json = storedJson(sql);
  if (json !== null) {
    const last = lastRows.get(sql);
    if (last?.json === json) return last.limits;
    const limits = decodeLimits(parseJson(json));
    lastRows.set(sql, { json, limits });
    return limits;
  }
  if (listed === null) return NO_LIMITS;
  const limits = decodeLimits(listed);
  storeLimits(sql, limits);
  return limits;
}

/** The row as it is stored; null: limits were never set. */
function storedJson(sql: Sql): string | null {
  const [row] = sql.exec<{ json: string }>('SELECT json FROM limits').toArray();
  return row === undefined ? null : String(row.json);
}

/** What is stored of a key's limits. */
export interface LimitsRow {
  /** JSON text, unless it is damaged; null: limits were never set. */
  readonly row: string | null;
  /** Why it cannot be read; null: it can. */
  readonly problem: string | null;
}

/** The row as it is, with what is wrong with it. */
export function readLimitsRow(sql: Sql): LimitsRow {
  try {
    storedLimits(sql);
    return { row: storedJson(sql), problem: null };
  } catch (error) {
    const problem = unreadableReason(error);
    if (problem === null) throw error;
    return { row: storedJson(sql), problem };
  }
}

/** @returns whether they differ from the stored ones */
export function storeLimits(sql: Sql, limits: Limits): boolean {
  const json = limitsRow(limits);
  if (storedJson(sql) === json) return false;
  sql.exec('INSERT INTO limits VALUES (1, ?) ON CONFLICT DO UPDATE SET json = excluded.json', json);
  return true;
}

/** The text of the row, which {@link decodeLimits} reads. */
export function limitsRow(limits: Limits): string {
  return JSON.stringify({ version: VERSION, ...encodeLimits(limits) });
}

/** Rows of the first version have no number. A field that is not known may be a limit, so it is not left out. */
export function decodeLimits(stored: unknown): Limits {
  if (!isObject(stored)) throw new UnreadableRow('the limits are no JSON object');
  const { version = VERSION, ...fields } = stored;
  if (version !== VERSION)
    throw new UnreadableRow(`the limits have the version ${String(version)}, and this code reads ${VERSION}`);
  const unknown = Object.keys(fields).find((field) => !STORED_LIMIT_FIELDS.some((known) => known === field));
  if (unknown !== undefined)
    throw new UnreadableRow(`the limits have an unknown field ${unknown.slice(0, 100)}`);
  const parsedLimits = readLimits(fields);
  if (parsedLimits.kind === 'invalid') throw new UnreadableRow(parsedLimits.message);
  return parsedLimits.limits;
}

/** Whether limits were ever set. Before that, nothing is counted. */
export function hadLimits(sql: Sql): boolean {
  return sql.exec('SELECT 1 FROM limits').toArray().length > 0;
}

/** Sets the limits that the fields name. What was spent and is reserved stays: the next request is checked against the new limits. */
export function changeLimits(sql: Sql, fields: JsonObject): LimitsResult {
  const parsedLimits = readLimits(fields, storedLimits(sql));
  if (parsedLimits.kind === 'limits') storeLimits(sql, parsedLimits.limits);
  return parsedLimits;
}

/** The table of what a holder has lent to its children. */
export const HELD_TABLE = 'held';
/** The same of shards. */
export const SHARD_HELD_TABLE = 'shard_held';

/** What the children of a holder hold of its limits. */
export interface HeldByChildren {
  /** What they hold of the budget in its current period. */
  ofBudget(budget: Budget, now: number): number;
  readonly running: number;
  /** Not used yet, so the minute counts them as of now. */
  readonly requests: number;
  readonly tokens: number;
}

const NOTHING_HELD: HeldByChildren = { ofBudget: () => 0, running: 0, requests: 0, tokens: 0 };

/**
 * @param now in ms since the epoch
 * @param day the UTC day whose budgets are read: that of a grant, by the clock of the object that made it, or of an earlier reservation
 */
export function readLimitStatus(
  sql: Sql,
  now: number,
  held: HeldByChildren = NOTHING_HELD,
  limits: Limits = storedLimits(sql),
  day: string = dayOf(now),
): LimitStatus {
  const { budget, windows, rpm, tpm, maxConcurrent } = limits;
  const rates = rpm === null && tpm === null ? null : readRates(sql, now, held);
  const inPeriod = day === dayOf(now) ? now : Date.parse(day);
  const statusOf = (one: Budget) => readBudgetStatus(sql, one, inPeriod, held);
  return {
    limits,
    budget: budget === null ? null : statusOf(budget),
    ...(windows !== undefined && { windows: windows.map(statusOf) }),
    requests: rpm === null || rates === null ? null : rates.requests,
    tokens: tpm === null || rates === null ? null : rates.tokens,
    running: maxConcurrent === null ? null : countRunning(sql) + held.running,
  };
}

function countRunning(sql: Sql): number {
  const [row] = sql.exec<{ running: number }>('SELECT count(*) AS running FROM reservations').toArray();
  return row?.running ?? 0;
}

/** The amounts of a budget's current period. */
type BudgetSums = Readonly<Record<'added' | 'spent' | 'reserved' | 'estimated' | 'unreported', number>>;

/** All in one statement: each that a request runs costs more than what it sums. @param amounts the sum of a table's rows in the unit */
function budgetSumsQuery(amounts: (table: string) => string): string {
  return `SELECT
    (SELECT coalesce(sum(amount), 0) FROM top_ups WHERE unit = ?3 AND period = ?4) AS added,
    (${amounts('spent')}) AS spent, (${amounts('reservations')}) AS reserved,
    (${amounts('expired')}) AS estimated, (${amounts('unreported')}) AS unreported`;
}

const IN_DAYS = 'WHERE day >= ?1 AND day <= ?2';
const TOKEN_SUMS = budgetSumsQuery((table) => `SELECT coalesce(sum(tokens), 0) FROM ${table} ${IN_DAYS}`);
const MONEY_SUMS = budgetSumsQuery(
  (table) => `SELECT coalesce(sum(cost), 0) FROM ${table} ${IN_DAYS} AND currency = ?3`,
);

const NO_SUMS: BudgetSums = { added: 0, spent: 0, reserved: 0, estimated: 0, unreported: 0 };

function readBudgetStatus(sql: Sql, budget: Budget, now: number, held: HeldByChildren): BudgetStatus {
  const { unit, per } = budget;
  const { first, last } = periodDays(per, now);
  const query = unit === TOKENS ? TOKEN_SUMS : MONEY_SUMS;
  const [sums = NO_SUMS] = sql.exec<BudgetSums>(query, first, last, unit, periodName(per, now)).toArray();
  const { added, spent, reserved, estimated, unreported } = sums;
  return {
    ...(added > 0 && { added }),
    spent,
    reserved: isEnforced(budget) ? reserved + held.ofBudget(budget, now) : 0,
    estimated,
    unreported,
    resetsAt: periodEnd(per, now),
  };
}

/** What was added to the budget in its current period. */
export function addedTo(sql: Sql, { unit, per }: Budget, now: number): number {
  const query = 'SELECT coalesce(sum(amount), 0) AS sum FROM top_ups WHERE unit = ? AND period = ?';
  const [row] = sql.exec<{ sum: number }>(query, unit, periodName(per, now)).toArray();
  return row?.sum ?? 0;
}

/** Sums the rows of the budget's current period, in its unit. */
export function sumOfPeriod(
  sql: Sql,
  table: 'spent' | 'held' | 'shard_held' | 'team_held',
  { unit, per }: Budget,
  now: number,
): number {
  const { first, last } = periodDays(per, now);
  const days = `FROM ${table} WHERE day >= ? AND day <= ?`;
  const sum =
    unit === TOKENS
      ? sql.exec<{ sum: number }>(`SELECT coalesce(sum(tokens), 0) AS sum ${days}`, first, last)
      : sql.exec<{ sum: number }>(
          `SELECT coalesce(sum(cost), 0) AS sum ${days} AND currency = ?`,
          ...[first, last, unit],
        );
  return sum.toArray()[0]?.sum ?? 0;
}

/** The current second and the 60 before it: a request counts for 60 to 61 seconds. */
export const WINDOW_SECONDS = 61;

/** What counts in the sliding minute of `rpm` and `tpm`, read as one row: in a busy minute, 61 rows took more than all other statements. */
function readRates(
  sql: Sql,
  now: number,
  held: HeldByChildren,
): Readonly<Record<'requests' | 'tokens', RateStatus>> {
  const query = `SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(tokens), 0) AS tokens,
    max(CASE WHEN requests > 0 THEN second END) AS last_requests, max(CASE WHEN tokens > 0 THEN second END) AS last_tokens
    FROM seconds WHERE second > ?`;
  type Sums = { requests: number; tokens: number; last_requests: number | null; last_tokens: number | null };
  const [sums] = sql.exec<Sums>(query, lastExpired(now)).toArray();
  const rate = (used: number, last: number | null, ahead: number): RateStatus => {
    const lastSecond = ahead > 0 ? secondOf(now) : last;
    return { used: used + ahead, resetMs: lastSecond === null ? 0 : msUntilExpiry(lastSecond, now) };
  };
  return {
    requests: rate(sums?.requests ?? 0, sums?.last_requests ?? null, held.requests),
    tokens: rate(sums?.tokens ?? 0, sums?.last_tokens ?? null, held.tokens),
  };
}

/**
 * ms until at most `atMost` count in the sliding minute. No 60 seconds contain more than the limit, including a burst around a full minute.
 * @param now in ms since the epoch
 */
export function waitForRate(
  sql: Sql,
  now: number,
  counted: 'requests' | 'tokens',
  atMost: number,
  { requests, tokens }: HeldByChildren = NOTHING_HELD,
): number {
  const query = 'SELECT second, requests, tokens FROM seconds WHERE second > ? ORDER BY second';
  type Second = { second: number; requests: number; tokens: number };
  const rows = sql.exec<Second>(query, lastExpired(now)).toArray();
  const seconds = [...rows, { second: secondOf(now), requests, tokens }];
  let used = seconds.reduce((sum, second) => sum + second[counted], 0);
  for (const second of seconds) {
    if (used <= atMost) break;
    used -= second[counted];
    if (used <= atMost) return msUntilExpiry(second.second, now);
  }
  return 0;
}

/** The last second that no longer counts. */
function lastExpired(now: number): number {
  return secondOf(now) - WINDOW_SECONDS;
}

/** ms until requests of that second no longer count. */
export function msUntilExpiry(second: number, now: number): number {
  return (second + WINDOW_SECONDS) * 1000 - now;
}

export function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Counts requests in their second. Tokens below 0 are none. */
export function addToWindow(sql: Sql, second: number, tokens: number, requests = 1): void {
  sql.exec(
    `INSERT INTO seconds VALUES (?1, ?2, ?4, max(0, ?3)) ON CONFLICT DO UPDATE SET
      requests = CASE WHEN second = ?2 THEN requests + ?4 ELSE ?4 END,
      tokens = max(0, CASE WHEN second = ?2 THEN tokens + ?3 ELSE ?3 END),
      second = ?2`,
    second % WINDOW_SECONDS,
    second,
    tokens,
    requests,
  );
}

/** Replaces the expected tokens of a request by its actual ones, while its second still counts. */
export function correctWindow(sql: Sql, second: number, moreTokens: number): void {
  sql.exec(
    'UPDATE seconds SET tokens = max(0, tokens + ?3) WHERE slot = ?1 AND second = ?2',
    second % WINDOW_SECONDS,
    second,
    moreTokens,
  );
}

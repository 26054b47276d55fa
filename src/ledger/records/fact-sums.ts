/** A key's day sums by user, session, app, team and tag. They have a separate table, so that names of callers never displace models. */
import type { ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { type Amounts, CACHE_CAUSE, type FactGroup, OTHER, TEAM } from '../../metering/report.ts';
import {
  AMOUNTS,
  type Columns,
  combine,
  type DayRow,
  DIMENSIONS,
  fromColumns,
  readColumns,
  type SumRow,
  toColumns,
} from './sum-columns.ts';
import { type SumKey, SumTable } from './sum-tables.ts';

/** Rows of one day for users, for sessions, for apps, and for all tags together. Further names are summed under {@link OTHER}. */
export const MAX_FACT_ROWS = 10_000;

/** The days' sums by fact. */
export const FACT_DAYS = new SumTable('fact_days', { day: 'INTEGER', fact: 'TEXT', name: 'TEXT' });

export function createFactSums(sql: SqlStorage): void {
  FACT_DAYS.create(sql);
  sql.exec(`CREATE TABLE IF NOT EXISTS fact_counts (
    day INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (day, kind)
  ) STRICT, WITHOUT ROWID`);
}

/** What one record adds to a day. */
export interface RecordSums {
  readonly record: UsageRecord;
  /** Days since the epoch. */
  readonly day: number;
  /** In the order of {@link DIMENSIONS}, as the sums without facts have them. */
  readonly dimensions: readonly string[];
  readonly columns: Columns;
}

interface FactRow extends Omit<RecordSums, 'record'> {
  readonly fact: FactGroup;
  readonly name: string;
}

/** Adds each record to the days of its facts. A record without facts writes nothing. */
export function addFacts(sql: SqlStorage, sums: readonly RecordSums[]): void {
  const rows = sums.flatMap(({ record, ...own }) =>
    factsOfRecord(record).map(([fact, name]): FactRow => ({ ...own, fact, name })),
  );
  if (rows.length === 0) return;
  for (const row of addRows(sql, withoutNewNames(sql, rows))) countRow(sql, row);
}

const SAME = FACT_DAYS.keys.map((name) => `${name} = ?`).join(' AND ');
const FULL = `SELECT kind, count FROM fact_counts WHERE day = ? AND count >= ${MAX_FACT_ROWS}`;
const EXISTS = `SELECT 1 FROM fact_days WHERE ${SAME}`;

/** Where a day is full, new names become {@link OTHER} before they are written: rows read are cheap, and rows written are not. */
function withoutNewNames(sql: SqlStorage, rows: readonly FactRow[]): readonly FactRow[] {
  const days = [...new Set(rows.map(({ day }) => day))];
  const full = new Map(days.map((day) => [day, new Map([...sql.exec(FULL, day).raw()].map(readCount))]));
  const exists = ({ day, fact, name, dimensions }: FactRow) =>
    !sql.exec(EXISTS, day, fact, name, ...dimensions).next().done;
  return rows.flatMap((row) => {
    const count = full.get(row.day)?.get(kindOf(row.fact));
    if (count === undefined || exists(row)) return row;
    const other = { ...row, name: OTHER };
    return count < maxRows(other) || exists(other) ? other : [];
  });
}

function readCount([kind, count]: readonly SqlStorageValue[]): [string, number] {
  return [String(kind), Number(count)];
}

/**
 * The highest count of rows with a new one. The groups of a day bound the rows of {@link OTHER}, except for tags: callers choose the
 * names of tags, so these rows have twice the limit. Beyond it, a request has no row and counts as one without the tag.
 */
function maxRows({ fact, name }: { readonly fact: string; readonly name: string }): number {
  if (name !== OTHER) return MAX_FACT_ROWS;
  return kindOf(fact) === 'tag' ? 2 * MAX_FACT_ROWS : Number.POSITIVE_INFINITY;
}

/** What {@link MAX_FACT_ROWS} counts. */
export function kindOf(fact: string): string {
  return fact.startsWith('tag:') ? 'tag' : fact;
}

/** The facts of a record, with their names. */
export function factsOfRecord({
  user,
  session,
  app,
  tags,
  cache,
  team,
}: UsageRecord): (readonly [FactGroup, string])[] {
  const facts: (readonly [FactGroup, string])[] = Object.entries(tags).map(([name, value]) => [
    `tag:${name}`,
    value,
  ]);
  if (user !== null) facts.push(['user', user]);
  if (session !== null) facts.push(['session', session]);
  if (app !== null) facts.push(['app', app]);
  if (cache !== undefined) facts.push([CACHE_CAUSE, cache.cause]);
  if (team !== undefined) facts.push([TEAM, team]);
  return facts;
}

/** @returns the keys of the rows that are new */
function addRows(sql: SqlStorage, rows: readonly FactRow[]): SumKey[] {
  const sums = rows.map(({ day, fact, name, dimensions, columns }) => ({
    key: [day, fact, name, ...dimensions],
    columns,
  }));
  return FACT_DAYS.add(sql, sums).flatMap(({ key, requests }) => (requests === 1 ? [key] : []));
}

const COUNT = `INSERT INTO fact_counts VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count`;
const UNCOUNT = 'UPDATE fact_counts SET count = count - 1 WHERE day = ? AND kind = ?';
const REMOVE = `DELETE FROM fact_days WHERE ${SAME} RETURNING ${AMOUNTS.join(', ')}`;

/** Counts a new row, and moves it to {@link OTHER} if there are then too many. */
function countRow(sql: SqlStorage, key: SumKey): void {
  const [day = 0, fact = '', name = '', ...dimensions] = key;
  const count = Number(sql.exec(COUNT, day, kindOf(String(fact))).one().count);
  if (count <= maxRows({ fact: String(fact), name: String(name) })) return;
  const [removed = []] = sql.exec(REMOVE, ...key).raw();
  sql.exec(UNCOUNT, day, kindOf(String(fact)));
  if (name === OTHER) return;
  const row = { day: Number(day), dimensions: dimensions.map(String), columns: readColumns(removed) };
  for (const added of addRows(sql, [{ ...row, fact: decodeFact(fact), name: OTHER }])) countRow(sql, added);
}

/** Only {@link addFacts} writes these texts. */
function decodeFact(text: SqlStorageValue): FactGroup {
  return String(text) as FactGroup; // decode
}

/** A SELECT over whole days whose column `name` has the names of one fact. */
export function factSource(
  fact: FactGroup,
  days: { readonly from: number; readonly to: number },
  keyId: string,
) {
  return {
    select: `SELECT NULL AS hour, day, ? AS key, name, ${[...DIMENSIONS, ...AMOUNTS].join(', ')} FROM fact_days
      WHERE fact = ? AND day >= ? AND day < ?`,
    bindings: [keyId, fact, days.from, days.to],
  };
}

/** Days whose sums of a user one part reads. */
const MAX_USER_DAYS = 100;

const DAYS = `SELECT day FROM fact_counts WHERE kind = 'user' AND day >= ? ORDER BY day LIMIT ${MAX_USER_DAYS + 1}`;
const OF_USER = `day IN (SELECT value FROM json_each(?)) AND fact = 'user' AND name IN (SELECT value FROM json_each(?))`;

/**
 * The sums under these names of a user, from a day on.
 * @returns `next`: the day of the next part; null: this was the last one
 */
export function userSums(
  sql: SqlStorage,
  names: readonly string[],
  from: number,
): { readonly rows: readonly DayRow[]; readonly next: number | null } {
  const { days, next } = daysOfUsers(sql, from);
  const select = `SELECT day, ${[...DIMENSIONS, ...AMOUNTS].join(', ')} FROM fact_days WHERE ${OF_USER} ORDER BY day`;
  const rows = [...sql.exec(select, JSON.stringify(days), JSON.stringify(names)).raw()];
  return { rows: rows.map(readDayRow), next };
}

/**
 * Deletes the sums under these names of a user, from a day on.
 * @param until the last day; null: all
 */
export function deleteUserSums(
  sql: SqlStorage,
  names: readonly string[],
  from: number,
  until: number | null,
): { readonly rows: number; readonly next: number | null } {
  const { days, next } = daysOfUsers(sql, from);
  const some = days.filter((day) => until === null || day <= until);
  const deleted = `DELETE FROM fact_days WHERE ${OF_USER} RETURNING day`;
  const rows = [...sql.exec(deleted, JSON.stringify(some), JSON.stringify(names)).raw()];
  for (const [day] of rows) sql.exec(UNCOUNT, Number(day), 'user');
  return { rows: rows.length, next: next !== null && (until === null || next <= until) ? next : null };
}

/** Deletes the sums of sessions on these days. */
export function deleteSessionSums(
  sql: SqlStorage,
  sessions: readonly { readonly day: number; readonly name: string }[],
): void {
  const one = "DELETE FROM fact_days WHERE day = ? AND fact = 'session' AND name = ? RETURNING day";
  const distinct = new Map(sessions.map((session) => [JSON.stringify(session), session]));
  for (const { day, name } of distinct.values())
    for (const _ of [...sql.exec(one, day, name).raw()]) sql.exec(UNCOUNT, day, 'session');
}

function readDayRow([day, ...rest]: readonly SqlStorageValue[]): DayRow {
  const dimensions = rest.slice(0, DIMENSIONS.length).map(String);
  return { day: Number(day), dimensions, columns: readColumns(rest.slice(DIMENSIONS.length)) };
}

function daysOfUsers(sql: SqlStorage, from: number) {
  const found = [...sql.exec(DAYS, from).raw()].map(([day]) => Number(day));
  return { days: found.slice(0, MAX_USER_DAYS), next: found[MAX_USER_DAYS] ?? null };
}

/**
 * Subtracts sums from sums, group by group.
 * @param name the value of the fact's group in the rows that are returned
 */
export function remainder(
  all: readonly SumRow[],
  parts: readonly SumRow[],
  { groups }: Pick<ReportQuery, 'groups'>,
  fact: FactGroup,
  name: string,
): SumRow[] {
  const idOf = ({ values, currency }: SumRow) =>
    JSON.stringify([values.filter((_, i) => groups[i] !== fact), currency]);
  const left = new Map<string, { readonly row: SumRow; amounts: Amounts }>();
  for (const row of all) {
    const leftRow = left.get(idOf(row));
    const amounts = fromColumns(row.currency, row.columns);
    left.set(idOf(row), {
      row,
      amounts: leftRow === undefined ? amounts : combine(leftRow.amounts, amounts, 1),
    });
  }
  for (const row of parts) {
    const entry = left.get(idOf(row));
    if (entry !== undefined)
      entry.amounts = combine(entry.amounts, fromColumns(row.currency, row.columns), -1);
  }
  return [...left.values()].flatMap(({ row, amounts }) => {
    if (amounts.requests === 0) return [];
    const values = row.values.map((value, i) => (groups[i] === fact ? name : value));
    return { values, currency: row.currency, columns: toColumns(amounts) };
  });
}

/** A key's usage sums: hours, which each record updates, days, which are summed from hours, and reports over both. */
import type { ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import {
  amountsOf,
  type FactGroup,
  factsOf,
  filterEntries,
  type Group,
  groupValues,
  isFactGroup,
  matchesFilter,
  OTHER,
} from '../../metering/report.ts';
import { DAY_MS, firstIdAt, HOUR_MS, isoDay, isoTime } from '../../metering/time.ts';
import { MAX_PART_RECORDS, MAX_REPORT_ROWS } from '../../shared/limits.ts';
import { addFacts, createFactSums, factSource, remainder } from './fact-sums.ts';
import { type LedgerState, lostBefore, readState, setState } from './records.ts';
import {
  AMOUNTS,
  addColumns,
  type Columns,
  type DayRow,
  DIMENSIONS,
  readColumns,
  readSums,
  SUMS,
  type SumRow,
  toColumns,
} from './sum-columns.ts';
import { SumTable } from './sum-tables.ts';

/** Groups of one key's day sums, by provider, model, route, status, fault, error and currency. Callers choose the model names. */
export const MAX_DAY_GROUPS = 1000;

export const HOURS_PER_DAY = 24;

/** Clients choose model names, so a day has at most so many groups: further models are summed under this name. */
export const OTHER_MODEL = '(other)';

/** Changed day sums that are read at once. */
export const MAX_CHANGED_ROWS = 2000;

/** Later than every day that a date can have. */
const LAST_DAY = 100_000_001;

export const MODEL = DIMENSIONS.indexOf('model');
const KEYS = DIMENSIONS.join(', ');
const SAME = DIMENSIONS.map((name) => `${name} = ?`).join(' AND ');

/** Each record is added to its hour. */
export const HOURS = new SumTable('hours', { hour: 'INTEGER' });
/** The sums of days as the directory has received them. */
const SENT_DAYS = new SumTable('sent_days', { day: 'INTEGER' });
/** What 0.2 told the directory of its time: it goes on from there after a rollback. */
const DAYS_OF_0_2 = new SumTable('days', { day: 'INTEGER' });

export function createSums(sql: SqlStorage): void {
  HOURS.create(sql);
  SENT_DAYS.create(sql);
  DAYS_OF_0_2.create(sql);
  reopenDays(sql);
  createFactSums(sql);
}

/** Opens closed days to which 0.2 added after a rollback. */
function reopenDays(sql: SqlStorage): void {
  const { sent_day } = readState(sql);
  const { first } = sql
    .exec(
      `SELECT MIN(day) AS first FROM days WHERE day < ? AND requests > COALESCE((SELECT requests FROM sent_days WHERE
        ${SENT_DAYS.keys.map((name) => `sent_days.${name} = days.${name}`).join(' AND ')}), 0)`,
      sent_day,
    )
    .one();
  if (first !== null) setState(sql, 'sent_day', Number(first));
}

/** A group of requests of one hour. */
interface HourGroup {
  /** Hours since the epoch. */
  readonly hour: number;
  /** In the order of {@link DIMENSIONS}. */
  readonly dimensions: readonly string[];
}

interface HourRow extends HourGroup {
  readonly columns: Columns;
}

/** Adds records to the hours in which their requests arrived. */
export function addToHours(
  sql: SqlStorage,
  records: readonly UsageRecord[],
  { open_day, sent_day }: LedgerState,
): void {
  if (records.length === 0) return;
  const rows = records.map(hourRow);
  const moved = new Set<string>();
  for (const group of addRows(sql, rows)) {
    if (!isTooMany(sql, group)) continue;
    moveToOther(sql, group);
    moved.add(groupId(group));
  }
  // Facts are summed in the same groups, so that the sums can be compared.
  addFacts(
    sql,
    records.flatMap((record, i) => {
      const row = rows[i];
      if (row === undefined) return [];
      const { dimensions, columns } = row;
      const stored = moved.has(groupId(row)) ? dimensions.with(MODEL, OTHER_MODEL) : dimensions;
      return { record, day: dayOf(row), dimensions: stored, columns };
    }),
  );
  // A record of a closed day opens the day again.
  const firstDay = Math.min(...rows.map(dayOf));
  if (firstDay < open_day) setState(sql, 'open_day', firstDay);
  if (firstDay < sent_day) setState(sql, 'sent_day', firstDay);
}

/** The row of the hours to which a record is added, unless its day has too many groups. */
export function hourRow(record: UsageRecord): HourRow {
  const amounts = amountsOf(record);
  const { provider, model, route, status, fault, error } = record;
  return {
    hour: Math.floor(Date.parse(record.time) / HOUR_MS),
    dimensions: [provider, model, route, status, fault ?? '', error ?? '', amounts.currency ?? ''],
    columns: toColumns(amounts),
  };
}

function groupId({ hour, dimensions }: HourGroup): string {
  return JSON.stringify([hour, dimensions]);
}

export function dayOf({ hour }: HourGroup): number {
  return Math.floor(hour / HOURS_PER_DAY);
}

/** Adds each request to its hour, and returns the groups that had no request before. */
function addRows(sql: SqlStorage, rows: readonly HourRow[]): HourGroup[] {
  const sums = rows.map(({ hour, dimensions, columns }) => ({ key: [hour, ...dimensions], columns }));
  return HOURS.add(sql, sums).flatMap(({ key: [hour, ...dimensions], requests }) =>
    requests === 1 ? [{ hour: Number(hour), dimensions: dimensions.map(String) }] : [],
  );
}

const REMOVE = `DELETE FROM hours WHERE hour = ? AND ${SAME} RETURNING ${AMOUNTS.join(', ')}`;

function moveToOther(sql: SqlStorage, { hour, dimensions }: HourGroup): void {
  const [removed = []] = sql.exec(REMOVE, hour, ...dimensions).raw();
  addRows(sql, [{ hour, dimensions: dimensions.with(MODEL, OTHER_MODEL), columns: readColumns(removed) }]);
}

const OTHER_HOURS = Array.from({ length: HOURS_PER_DAY - 1 }, () => '?').join(', ');
const IS_IN_DAY = `SELECT 1 FROM hours WHERE hour IN (${OTHER_HOURS}) AND ${SAME} LIMIT 1`;
const COUNT_GROUPS = `SELECT COUNT(*) AS groups FROM (SELECT DISTINCT ${KEYS} FROM hours WHERE hour >= ? AND hour < ?)`;

/** Whether a new group exceeds the number of groups of its day. */
function isTooMany(sql: SqlStorage, group: HourGroup): boolean {
  if (group.dimensions[MODEL] === OTHER_MODEL) return false;
  const first = dayOf(group) * HOURS_PER_DAY;
  const others = Array.from({ length: HOURS_PER_DAY }, (_, i) => first + i).filter(
    (hour) => hour !== group.hour,
  );
  // Most groups of an hour exist in another hour of the day, which is cheaper to look up than to count the groups.
  const isKnown = !sql.exec(IS_IN_DAY, ...others, ...group.dimensions).next().done;
  if (isKnown) return false;
  const { groups } = sql.exec(COUNT_GROUPS, first, first + HOURS_PER_DAY).one();
  return Number(groups) > MAX_DAY_GROUPS;
}

const CHANGED = `SELECT hour / ${HOURS_PER_DAY} AS day, ${KEYS}, ${SUMS} FROM hours WHERE hour >= ? AND hour < ?
  GROUP BY day, ${KEYS}
  HAVING TOTAL(requests) > COALESCE((SELECT requests FROM sent_days WHERE day = hour / ${HOURS_PER_DAY}
    AND ${DIMENSIONS.map((name) => `sent_days.${name} = hours.${name}`).join(' AND ')}), 0)
  LIMIT ${MAX_CHANGED_ROWS}`;

/** Day sums before `until` that have grown since the directory received them, up to {@link MAX_CHANGED_ROWS}. */
export function changedDays(sql: SqlStorage, { sent_day }: LedgerState, until = LAST_DAY): DayRow[] {
  const rows = sql.exec(CHANGED, sent_day * HOURS_PER_DAY, until * HOURS_PER_DAY).raw();
  return [...rows].map(([day, ...rest]) => ({
    day: Number(day),
    dimensions: rest.slice(0, DIMENSIONS.length).map(String),
    columns: readSums(rest.slice(DIMENSIONS.length)),
  }));
}

/** Whether the directory has received sums of this day, since 1970. */
export function hasSentDay(sql: SqlStorage, day: number): boolean {
  return [...sql.exec('SELECT 1 FROM sent_days WHERE day = ? LIMIT 1', day)].length > 0;
}

/** Whether the directory has received anything. */
export function hasSent(sql: SqlStorage): boolean {
  return [...sql.exec('SELECT 1 FROM sent_days LIMIT 1')].length > 0;
}

/** Stores day sums that the directory has received, and closes the days before `day` that are completely stored. */
export function keepDays(sql: SqlStorage, rows: readonly DayRow[], day: number): void {
  SENT_DAYS.replace(
    sql,
    rows.map((row) => ({ key: [row.day, ...row.dimensions], columns: row.columns })),
  );
  const state = readState(sql);
  if (state.sent_day < day && changedDays(sql, state, day).length === 0) setState(sql, 'sent_day', day);
}

/** An object returns it by RPC. */
export type RowsResult =
  | { readonly kind: 'rows'; readonly rows: readonly SumRow[] }
  /** The parts of hours at the ends of the time have too many records, or their records are deleted. */
  | { readonly kind: 'parts'; readonly reason: 'too_many' | 'too_old' };

export interface Span {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** The single records from one id to another, which is excluded. */
type EachRecord = (fromId: string, beforeId: string) => AsyncIterable<UsageRecord>;

/** A report of one key: closed days and hours from their sums, parts of hours from single records. */
export async function keyReport(
  sql: SqlStorage,
  query: ReportQuery,
  keyId: string,
  eachRecord: EachRecord,
): Promise<RowsResult> {
  const { fromMs, toMs, groups, only = {} } = query;
  const facts = factsOf(groups, only);
  const [fact] = facts;
  // Sums have one fact each and no hours, so other reports by facts read single records.
  const isSummed = facts.length <= 1 && (fact === undefined || !groups.includes('hour'));
  const unit = fact === undefined ? HOUR_MS : DAY_MS;
  const whole = isSummed
    ? { from: Math.ceil(fromMs / unit), to: Math.floor(toMs / unit) }
    : { from: Number.POSITIVE_INFINITY, to: 0 };
  const parts = partsOfTime({ from: fromMs, to: toMs }, whole, unit);
  const isLost = ({ from }: Span) => from < lostBefore(readState(sql));
  if (parts.some(isLost)) return { kind: 'parts', reason: 'too_old' };
  const records = [];
  let rowsRead = 0;
  for (const { from, to } of parts) {
    for await (const record of eachRecord(firstIdAt(from), firstIdAt(to))) {
      if (++rowsRead > MAX_PART_RECORDS) return { kind: 'parts', reason: 'too_many' };
      if (matchesFilter(record, only)) records.push(record);
    }
  }
  // They may have been deleted while others were read.
  if (parts.some(isLost)) return { kind: 'parts', reason: 'too_old' };
  if (whole.from >= whole.to) return { kind: 'rows', rows: sumRecords(records, groups) };
  const { sent_day } = readState(sql);
  if (fact !== undefined) {
    const hours = { from: whole.from * HOURS_PER_DAY, to: whole.to * HOURS_PER_DAY };
    const sources = { all: sourceOf(hours, sent_day, keyId), fact: factSource(fact, whole, keyId) };
    const sums = factRows(sql, sources, query, fact);
    return { kind: 'rows', rows: [...sums, ...sumRecords(records, groups)] };
  }
  // A report by hour can't use day sums.
  const sentDay = groups.includes('hour') ? 0 : sent_day;
  const sums = sumRows(sql, sourceOf(whole, sentDay, keyId), query);
  return { kind: 'rows', rows: [...sums, ...sumRecords(records, groups)] };
}

/**
 * The sums of whole days by one fact. Requests without the fact have no rows: their sums are all sums minus those by the fact.
 * @param sources the sums of all requests, and those by the fact
 */
export function factRows(
  sql: SqlStorage,
  sources: { readonly all: SumSource; readonly fact: SumSource },
  query: Pick<ReportQuery, 'groups' | 'only'>,
  fact: FactGroup,
): SumRow[] {
  const { groups, only = {} } = query;
  const named = only[fact];
  if (named !== undefined && named !== '') return sumRows(sql, sources.fact, query, fact);
  // All groups besides the fact.
  const { [fact]: _, ...others } = only;
  const all = { groups, only: others };
  const total = sumRows(sql, sources.all, all);
  const withFact = sumRows(sql, sources.fact, all);
  const without = remainder(total, withFact, query, fact, '');
  if (named === '') return without;
  const rows = sumRows(sql, sources.fact, all, fact);
  // The first remainder is empty unless there are more rows than one report may have.
  return [...rows, ...remainder(withFact, rows, query, fact, OTHER), ...without];
}

/** The parts of the time that are not in whole hours or days. `whole` and `unit`: in ms. */
export function partsOfTime({ from, to }: Span, whole: Span, unit: number): Span[] {
  if (whole.from > whole.to) return [{ from, to }];
  const parts = [
    { from, to: whole.from * unit },
    { from: whole.to * unit, to },
  ];
  return parts.filter((part) => part.from < part.to);
}

/** The columns of a source besides its keys. */
export const COLUMNS = [...DIMENSIONS, ...AMOUNTS].join(', ');

/** Closed whole days come from `sent_days`, which has fewer rows; all other hours come from `hours`. */
function sourceOf(hours: Span, openDay: number, keyId: string): SumSource {
  const days = {
    from: Math.ceil(hours.from / HOURS_PER_DAY),
    to: Math.min(Math.floor(hours.to / HOURS_PER_DAY), openDay),
  };
  const hasDays = days.from < days.to;
  const before = hasDays ? days.from * HOURS_PER_DAY : hours.to;
  const after = hasDays ? days.to * HOURS_PER_DAY : hours.to;
  return {
    select: `SELECT NULL AS hour, day, ? AS key, ${COLUMNS} FROM sent_days WHERE day >= ? AND day < ?
      UNION ALL SELECT hour, hour / ${HOURS_PER_DAY} AS day, ? AS key, ${COLUMNS} FROM hours
      WHERE (hour >= ? AND hour < ?) OR (hour >= ? AND hour < ?)`,
    bindings: [
      ...[keyId, hasDays ? days.from : 0, hasDays ? days.to : 0],
      ...[keyId, hours.from, before, after, hours.to],
    ],
  };
}

/** A report with more rows is refused. The same group may occur in several currencies. */
export const MAX_ROWS = 4 * MAX_REPORT_ROWS;

/** Characters of speeds that SQLite concatenates into one value, which is limited to two million bytes. */
const MAX_JOINED_CHARS = 1_000_000;

const EXPRESSIONS: Readonly<Record<SummedGroup, string>> = {
  day: 'day',
  hour: 'hour',
  provider: 'provider',
  model: "provider || '/' || model",
  route: 'route',
  status: 'status',
  fault: 'fault',
  error: 'error',
  key: 'key',
};

type SummedGroup = Exclude<Group, FactGroup>;

/** A SELECT whose rows have `day`, `key`, `hour` where a report groups by it, the dimensions and the amounts. */
export interface SumSource {
  readonly select: string;
  readonly bindings: readonly (string | number)[];
}

/**
 * Sums the rows of tables of sums by the groups of a report.
 * @param fact the fact whose names the source has in the column `name`
 */
export function sumRows(
  sql: SqlStorage,
  source: SumSource,
  { groups, only = {} }: Pick<ReportQuery, 'groups' | 'only'>,
  fact?: FactGroup,
): SumRow[] {
  const expressionOf = (group: Group) =>
    isFactGroup(group) ? (group === fact ? 'name' : "''") : EXPRESSIONS[group];
  const values = groups.map((group, i) => `${expressionOf(group)} AS value${i}`);
  const by = [...groups.map((_, i) => `value${i}`), 'currency'];
  const filters = filterEntries(only);
  const conditions = ['TRUE', ...filters.map(([name]) => `${expressionOf(name)} = ?`)];
  const order = fact === undefined ? '' : 'ORDER BY TOTAL(cost_units) + TOTAL(cost_nanos) / 1e9 DESC';
  const rest = [...source.bindings, ...filters.map(([, value]) => value)];
  const where = `FROM (${source.select}) WHERE ${conditions.join(' AND ')}`;
  const { chars } = sql.exec(`SELECT TOTAL(LENGTH(speeds)) AS chars ${where}`, ...rest).one();
  const parts = Math.floor(Number(chars) / MAX_JOINED_CHARS);
  // A group whose speeds exceed one value is returned in several rows.
  const part = `SUM(LENGTH(speeds)) OVER (PARTITION BY ${by.join(', ')} ROWS UNBOUNDED PRECEDING) / ${MAX_JOINED_CHARS}`;
  const rows = sql.exec(
    parts === 0
      ? `SELECT ${[...values, 'currency', SUMS].join(', ')} ${where} GROUP BY ${by.join(', ')} ${order} LIMIT ${MAX_ROWS}`
      : `SELECT ${by.join(', ')}, ${SUMS} FROM (SELECT *, ${part} AS part FROM (SELECT ${values.join(', ')}, * ${where}))
          GROUP BY ${by.join(', ')}, part LIMIT ${MAX_ROWS + parts}`,
    ...rest,
  );
  return [...rows.raw()].map((row) => ({
    values: groups.map((group, i) => readGroupValue(group, row[i])),
    currency: String(row[groups.length]),
    columns: readSums(row.slice(groups.length + 1)),
  }));
}

function readGroupValue(group: Group, value: SqlStorageValue | undefined): string {
  if (group === 'day') return isoDay(Number(value) * DAY_MS);
  if (group === 'hour') return `${isoTime(Number(value) * HOUR_MS).slice(0, 13)}:00Z`;
  return String(value);
}

/** Sums single records by the groups of a report. */
function sumRecords(records: Iterable<UsageRecord>, groups: readonly Group[]): SumRow[] {
  const rows = new Map<string, SumRow>();
  for (const record of records) {
    const amounts = amountsOf(record);
    const values = groupValues(record, groups);
    const currency = amounts.currency ?? '';
    const id = JSON.stringify([values, currency]);
    const columns = toColumns(amounts);
    const earlierColumns = rows.get(id)?.columns;
    rows.set(id, {
      values,
      currency,
      columns: earlierColumns === undefined ? columns : addColumns(earlierColumns, columns),
    });
  }
  return [...rows.values()];
}

/** How what was used is kept in columns: sums that SQLite makes, each a number that JavaScript reads exactly. */
import { type Amounts, COUNTS } from '../report.ts';
import { SPEED_COUNTS, type SpeedCount } from '../speeds.ts';

/** By these sums are kept apart. A currency of `''` is none: what has no price. */
export const DIMENSIONS = ['provider', 'model', 'route', 'status', 'currency'] as const;

const NANOS_PER_UNIT = 1_000_000_000;
/** SQLite's integers have 64 bits, but are numbers of JavaScript on their way in and out: money is kept in two of them. */
const MONEY = ['cost', 'estimated_cost'] as const;
const MONEY_COLUMNS = MONEY.flatMap((name) => [`${name}_units`, `${name}_nanos`]);

const SPEED_COLUMNS = Array.from({ length: SPEED_COUNTS }, (_, at) => `speed_${at}`);

export const AMOUNTS: readonly string[] = [...COUNTS, ...MONEY_COLUMNS, ...SPEED_COLUMNS];

export const DEFINITIONS = [
  ...DIMENSIONS.map((name) => `${name} TEXT NOT NULL`),
  ...AMOUNTS.map((name) => `${name} INTEGER NOT NULL`),
].join(', ');

/** Adds the columns that a table of an earlier version lacks; what it summed until then has nothing in them. */
export function addMissingColumns(sql: SqlStorage, table: string): void {
  const { columnNames } = sql.exec(`SELECT * FROM ${table} LIMIT 0`);
  for (const name of AMOUNTS)
    if (!columnNames.includes(name))
      sql.exec(`ALTER TABLE ${table} ADD COLUMN ${name} INTEGER NOT NULL DEFAULT 0`);
}

/** The values of a row's columns in the order of {@link AMOUNTS}. */
export type Columns = readonly number[];

/** Sums of some requests, by what a report groups by. */
export interface SumRow {
  readonly values: readonly string[];
  readonly currency: string;
  readonly columns: Columns;
}

export function toColumns(amounts: Amounts): Columns {
  const speeds = SPEED_COLUMNS.map(() => 0);
  for (const [at, count] of amounts.speeds) speeds[at] = count;
  const counts = COUNTS.map((name) => amounts[name]);
  return [...counts, ...split(amounts.cost), ...split(amounts.estimatedCost), ...speeds];
}

export function fromColumns(currency: string, columns: Columns): Amounts {
  const count = (name: (typeof COUNTS)[number]) => columns[COUNTS.indexOf(name)] ?? 0;
  return {
    requests: count('requests'),
    prompt_tokens: count('prompt_tokens'),
    completion_tokens: count('completion_tokens'),
    total_tokens: count('total_tokens'),
    cached_tokens: count('cached_tokens'),
    reasoning_tokens: count('reasoning_tokens'),
    estimated_requests: count('estimated_requests'),
    failed_requests: count('failed_requests'),
    unpriced_requests: count('unpriced_requests'),
    cancelled_requests: count('cancelled_requests'),
    cut_requests: count('cut_requests'),
    currency: currency === '' ? null : currency,
    cost: join(columns, COUNTS.length),
    estimatedCost: join(columns, COUNTS.length + 2),
    speeds: speedsIn(columns.slice(COUNTS.length + MONEY_COLUMNS.length)),
  };
}

function speedsIn(columns: Columns): SpeedCount[] {
  return columns.flatMap((count, at): SpeedCount[] => (count === 0 ? [] : [[at, count]]));
}

function split(nanos: bigint): readonly [number, number] {
  const unit = BigInt(NANOS_PER_UNIT);
  return [Number(nanos / unit), Number(nanos % unit)];
}

function join(columns: Columns, at: number): bigint {
  return BigInt(columns[at] ?? 0) * BigInt(NANOS_PER_UNIT) + BigInt(columns[at + 1] ?? 0);
}

/**
 * Rows as one parameter, so that many of them are one statement: each call into SQLite costs more than a row does.
 * @param before columns that come before the dimensions and the amounts
 */
export function rowsFrom(before: number): string {
  const columns = Array.from(
    { length: before + DIMENSIONS.length + AMOUNTS.length },
    (_, i) => `value ->> ${i}`,
  );
  // Without a condition SQLite takes the ON of a conflict for that of a join.
  return `SELECT ${columns.join(', ')} FROM json_each(?) WHERE TRUE`;
}

/** Where sums stay that leave the numbers that are exact. */
const MAX = Number.MAX_SAFE_INTEGER;

/** Assignments that add another row, whose columns `of` names, to the one that is there. */
export function addition(of: (column: string) => string): string {
  const counts = [...COUNTS, ...SPEED_COLUMNS].map((name) => `${name} = MIN(${name} + ${of(name)}, ${MAX})`);
  const money = MONEY.flatMap((name) => {
    const nanos = `(${name}_nanos + ${of(`${name}_nanos`)})`;
    const units = `${name}_units + ${of(`${name}_units`)} + ${nanos} / ${NANOS_PER_UNIT}`;
    return [`${name}_units = MIN(${units}, ${MAX})`, `${name}_nanos = ${nanos} % ${NANOS_PER_UNIT}`];
  });
  return [...counts, ...money].join(', ');
}

/** Sums over a group, as integers. TOTAL never overflows, and is exact as far as numbers of JavaScript are. */
export const SUMS = [
  ...COUNTS.map(sumOf),
  ...MONEY.flatMap((name) => {
    const nanos = `CAST(TOTAL(${name}_nanos) AS INTEGER)`;
    const units = `CAST(MIN(TOTAL(${name}_units), ${MAX - 1e9}) AS INTEGER)`;
    return [`${units} + ${nanos} / ${NANOS_PER_UNIT}`, `${nanos} % ${NANOS_PER_UNIT}`];
  }),
  ...SPEED_COLUMNS.map(sumOf),
].join(', ');

function sumOf(column: string): string {
  return `CAST(MIN(TOTAL(${column}), ${MAX}) AS INTEGER)`;
}

/** How what was used is kept in columns: sums that SQLite makes, each a number that JavaScript reads exactly. */
import { type Amounts, COUNTS } from '../../metering/report.ts';
import { readSpeeds, shortenSpeeds, writeSpeeds } from './speed-text.ts';

/** By these sums are kept apart. A currency of `''` is none: what has no price. */
export const DIMENSIONS = ['provider', 'model', 'route', 'status', 'currency'] as const;

const NANOS_PER_UNIT = 1_000_000_000;
/** SQLite's integers have 64 bits, but are numbers of JavaScript on their way in and out: money is kept in two of them. */
const MONEY = ['cost', 'estimated_cost'] as const;
const MONEY_COLUMNS = MONEY.flatMap((name) => [`${name}_units`, `${name}_nanos`]);

const NUMBERS: readonly string[] = [...COUNTS, ...MONEY_COLUMNS];

export const AMOUNTS: readonly string[] = [...NUMBERS, 'speeds'];

export const DEFINITIONS = [
  ...DIMENSIONS.map((name) => `${name} TEXT NOT NULL`),
  ...NUMBERS.map((name) => `${name} INTEGER NOT NULL`),
  'speeds TEXT NOT NULL',
].join(', ');

/** What some requests used, as a row has it. */
export interface Columns {
  /** In the order of {@link AMOUNTS}, whose last is no number. */
  readonly numbers: readonly number[];
  readonly speeds: string;
}

/** The values of a row's columns in the order of {@link AMOUNTS}. */
export function valuesOf({ numbers, speeds }: Columns): (number | string)[] {
  return [...numbers, speeds];
}

/** @param values what SQLite gives, in the order of {@link AMOUNTS} */
export function readColumns(values: readonly SqlStorageValue[]): Columns {
  return { numbers: values.slice(0, -1).map(Number), speeds: String(values.at(-1)) };
}

/** The same of {@link SUMS}, whose text is as long as those of all its rows. */
export function readSums(values: readonly SqlStorageValue[]): Columns {
  const { numbers, speeds } = readColumns(values);
  return { numbers, speeds: shortenSpeeds(speeds) };
}

/** Sums of some requests, by what a report groups by. */
export interface SumRow {
  readonly values: readonly string[];
  readonly currency: string;
  readonly columns: Columns;
}

export function toColumns(amounts: Amounts): Columns {
  const counts = COUNTS.map((name) => amounts[name]);
  return {
    numbers: [...counts, ...split(amounts.cost), ...split(amounts.estimatedCost)],
    speeds: writeSpeeds(amounts.speeds),
  };
}

export function fromColumns(currency: string, { numbers, speeds }: Columns): Amounts {
  const count = (name: (typeof COUNTS)[number]) => numbers[COUNTS.indexOf(name)] ?? 0;
  return {
    requests: count('requests'),
    prompt_tokens: count('prompt_tokens'),
    completion_tokens: count('completion_tokens'),
    total_tokens: count('total_tokens'),
    cached_tokens: count('cached_tokens'),
    cache_write_tokens: count('cache_write_tokens'),
    reasoning_tokens: count('reasoning_tokens'),
    estimated_requests: count('estimated_requests'),
    failed_requests: count('failed_requests'),
    unpriced_requests: count('unpriced_requests'),
    cancelled_requests: count('cancelled_requests'),
    cut_requests: count('cut_requests'),
    currency: currency === '' ? null : currency,
    cost: join(numbers, COUNTS.length),
    estimatedCost: join(numbers, COUNTS.length + 2),
    speeds: readSpeeds(speeds),
  };
}

function split(nanos: bigint): readonly [number, number] {
  const unit = BigInt(NANOS_PER_UNIT);
  return [Number(nanos / unit), Number(nanos % unit)];
}

function join(numbers: readonly number[], at: number): bigint {
  return BigInt(numbers[at] ?? 0) * BigInt(NANOS_PER_UNIT) + BigInt(numbers[at + 1] ?? 0);
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
  const counts = COUNTS.map((name) => `${name} = MIN(${name} + ${of(name)}, ${MAX})`);
  const money = MONEY.flatMap((name) => {
    const nanos = `(${name}_nanos + ${of(`${name}_nanos`)})`;
    const units = `${name}_units + ${of(`${name}_units`)} + ${nanos} / ${NANOS_PER_UNIT}`;
    return [`${name}_units = MIN(${units}, ${MAX})`, `${name}_nanos = ${nanos} % ${NANOS_PER_UNIT}`];
  });
  return [...counts, ...money, `speeds = speeds || ${of('speeds')}`].join(', ');
}

/**
 * Sums over a group, as integers. TOTAL never overflows, and is exact as far as numbers of JavaScript are.
 * The text is as long as those of all rows together, which has to stay within what a value of SQLite holds.
 */
export const SUMS = [
  ...COUNTS.map((name) => `CAST(MIN(TOTAL(${name}), ${MAX}) AS INTEGER)`),
  ...MONEY.flatMap((name) => {
    const nanos = `CAST(TOTAL(${name}_nanos) AS INTEGER)`;
    const units = `CAST(MIN(TOTAL(${name}_units), ${MAX - 1e9}) AS INTEGER)`;
    return [`${units} + ${nanos} / ${NANOS_PER_UNIT}`, `${nanos} % ${NANOS_PER_UNIT}`];
  }),
  "GROUP_CONCAT(speeds, '')",
].join(', ');

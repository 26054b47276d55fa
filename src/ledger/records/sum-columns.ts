/** The SQL columns and tables of usage sums: integers that JavaScript reads exactly, and response speeds as one text. */
import { COST_PARTS } from '../../metering/record.ts';
import { type Amounts, COUNTS } from '../../metering/report.ts';
import { SPEED_BUCKETS, type SpeedCount } from '../../metering/speeds.ts';

/** The columns by which sums are grouped. A currency of `''` means that there is no price. */
export const DIMENSIONS = ['provider', 'model', 'route', 'status', 'fault', 'error', 'currency'] as const;

const NANOS_PER_UNIT = 1_000_000_000;
/** SQLite's integers have 64 bits but pass through JavaScript numbers, so an amount of money is stored in two columns. */
const MONEY = ['cost', 'estimated_cost', 'lost_cost', 'input_cost', 'cached_cost', 'output_cost'] as const;
const MONEY_COLUMNS = MONEY.flatMap((name) => [`${name}_units`, `${name}_nanos`]);

/** Integers that are not amounts of money. */
const PLAIN = [...COUNTS, 'lost_tokens'] as const;

const NUMBERS: readonly string[] = [...PLAIN, ...MONEY_COLUMNS];

export const AMOUNTS: readonly string[] = [...NUMBERS, 'speeds'];

/** The amounts of one row. */
export interface Columns {
  /** In the order of {@link AMOUNTS}, without the last one. New ones come at the end. */
  readonly numbers: readonly number[];
  readonly speeds: string;
}

/** The sums of one group of requests on one day. */
export interface DayRow {
  /** Days since the epoch. */
  readonly day: number;
  /** In the order of {@link DIMENSIONS}. */
  readonly dimensions: readonly string[];
  readonly columns: Columns;
}

/** One row of a report: the values of its groups, and its sums in one currency. */
export interface SumRow {
  readonly values: readonly string[];
  readonly currency: string;
  readonly columns: Columns;
}

export function toColumns(amounts: Amounts): Columns {
  const counts = COUNTS.map((name) => amounts[name]);
  return {
    numbers: [
      ...counts,
      amounts.lostTokens,
      ...splitNanos(amounts.cost),
      ...splitNanos(amounts.estimatedCost),
      ...splitNanos(amounts.lostCost),
      ...COST_PARTS.flatMap((part) => splitNanos(amounts.costParts[part])),
    ],
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
    lostTokens: numbers[COUNTS.length] ?? 0,
    cost: joinNanos(numbers, PLAIN.length),
    estimatedCost: joinNanos(numbers, PLAIN.length + 2),
    lostCost: joinNanos(numbers, PLAIN.length + 4),
    costParts: {
      input: joinNanos(numbers, PLAIN.length + 6),
      cached: joinNanos(numbers, PLAIN.length + 8),
      output: joinNanos(numbers, PLAIN.length + 10),
    },
    speeds: readSpeeds(speeds),
  };
}

function splitNanos(nanos: bigint): readonly [number, number] {
  const unit = BigInt(NANOS_PER_UNIT);
  return [Number(nanos / unit), Number(nanos % unit)];
}

function joinNanos(numbers: readonly number[], at: number): bigint {
  return BigInt(numbers[at] ?? 0) * BigInt(NANOS_PER_UNIT) + BigInt(numbers[at + 1] ?? 0);
}

/** Adds sums, or subtracts them with the sign -1: no result is below 0. */
export function combine(a: Amounts, b: Amounts, sign: 1 | -1): Amounts {
  const bounded = (count: number) => Math.min(Math.max(count, 0), Number.MAX_SAFE_INTEGER);
  const counts = Object.fromEntries(COUNTS.map((name) => [name, bounded(a[name] + sign * b[name])]));
  const speeds = new Map(a.speeds);
  for (const [bucket, count] of b.speeds)
    speeds.set(bucket, bounded((speeds.get(bucket) ?? 0) + sign * count));
  const money = (x: bigint, y: bigint) => {
    const sum = x + BigInt(sign) * y;
    return sum < 0n ? 0n : sum;
  };
  return {
    ...a,
    ...counts,
    cost: money(a.cost, b.cost),
    estimatedCost: money(a.estimatedCost, b.estimatedCost),
    lostTokens: bounded(a.lostTokens + sign * b.lostTokens),
    lostCost: money(a.lostCost, b.lostCost),
    costParts: {
      input: money(a.costParts.input, b.costParts.input),
      cached: money(a.costParts.cached, b.costParts.cached),
      output: money(a.costParts.output, b.costParts.output),
    },
    speeds: [...speeds].filter(([, count]) => count > 0).sort(([x], [y]) => x - y),
  };
}

/** Adds two rows in JavaScript. Nanos may exceed a unit here: the few records of a report keep the sum exact. */
export function addColumns(a: Columns, b: Columns): Columns {
  return {
    numbers: NUMBERS.map((_, i) => Math.min((a.numbers[i] ?? 0) + (b.numbers[i] ?? 0), MAX)),
    speeds: a.speeds + b.speeds,
  };
}

/** The values of a row in the order of {@link AMOUNTS}. The object of another version sends fewer numbers, or more at their end. */
export function valuesOf({ numbers, speeds }: Columns): (number | string)[] {
  return [...NUMBERS.map((_, i) => numbers[i] ?? 0), speeds];
}

/** @param values a row from SQLite, in the order of {@link AMOUNTS} */
export function readColumns(values: readonly SqlStorageValue[]): Columns {
  return { numbers: values.slice(0, -1).map(Number), speeds: String(values.at(-1)) };
}

/** Reads a row of {@link SUMS}, whose text is the concatenation of all summed rows. */
export function readSums(values: readonly SqlStorageValue[]): Columns {
  const { numbers, speeds } = readColumns(values);
  return { numbers, speeds: shortenSpeeds(speeds) };
}

/**
 * A SELECT that takes all rows as one JSON parameter: each call into SQLite costs more than a row.
 * @param before how many columns precede the dimensions and the amounts
 */
export function rowsFrom(before: number): string {
  const columns = Array.from(
    { length: before + DIMENSIONS.length + AMOUNTS.length },
    (_, i) => `value ->> ${i}`,
  );
  // Without WHERE, SQLite parses the ON of ON CONFLICT as part of a join.
  return `SELECT ${columns.join(', ')} FROM json_each(?) WHERE TRUE`;
}

/** Sums stop here, as larger integers are not exact in JavaScript. */
const MAX = Number.MAX_SAFE_INTEGER;

/** SQL assignments that add another row, whose columns `of` names, to the stored one. */
export function addition(of: (column: string) => string): string {
  const counts = PLAIN.map((name) => `${name} = MIN(${name} + ${of(name)}, ${MAX})`);
  const money = MONEY.flatMap((name) => {
    const nanos = `(${name}_nanos + ${of(`${name}_nanos`)})`;
    const units = `${name}_units + ${of(`${name}_units`)} + ${nanos} / ${NANOS_PER_UNIT}`;
    return [`${name}_units = MIN(${units}, ${MAX})`, `${name}_nanos = ${nanos} % ${NANOS_PER_UNIT}`];
  });
  return [...counts, ...money, `speeds = speeds || ${of('speeds')}`].join(', ');
}

/** SQL expressions that sum the numbers of a group. TOTAL never overflows, and is exact as far as JavaScript numbers are. */
export const NUMBER_SUMS = [
  ...PLAIN.map((name) => `CAST(MIN(TOTAL(${name}), ${MAX}) AS INTEGER)`),
  ...MONEY.flatMap((name) => {
    const nanos = `CAST(TOTAL(${name}_nanos) AS INTEGER)`;
    const units = `CAST(MIN(TOTAL(${name}_units), ${MAX - 1e9}) AS INTEGER)`;
    return [`${units} + ${nanos} / ${NANOS_PER_UNIT}`, `${nanos} % ${NANOS_PER_UNIT}`];
  }),
].join(', ');

/** The text of speeds is as long as those of all rows together, and must stay within SQLite's limit of a value. */
export const SUMS = `${NUMBER_SUMS}, GROUP_CONCAT(speeds, '')`;

/**
 * Each letter stands for one step of the speed histogram. The number behind it is the count of responses, where that is more than
 * one. The concatenation of two texts is their sum.
 */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr';

/**
 * A stored text that is longer is shortened: each request adds a letter or two. With counts below 10^10 the shortest form has fewer
 * characters than this, so it is not shortened again at once.
 */
export const MAX_SPEED_CHARS = 512;

function writeSpeeds(speeds: readonly SpeedCount[]): string {
  return speeds.map(([at, count]) => `${LETTERS[at]}${count === 1 ? '' : count}`).join('');
}

const ZERO = '0'.charCodeAt(0);
const NINE = '9'.charCodeAt(0);
/** The step of each letter, by its character code. */
const STEPS = Array.from({ length: 128 }, (_, code) => LETTERS.indexOf(String.fromCharCode(code)));

/** Each step once, in order, even if the text repeats it. */
function readSpeeds(text: string): SpeedCount[] {
  const counts = Array.from({ length: SPEED_BUCKETS }, () => 0);
  for (let i = 0; i < text.length; ) {
    const at = STEPS[text.charCodeAt(i)] ?? -1;
    let count = 0;
    for (i++; text.charCodeAt(i) >= ZERO && text.charCodeAt(i) <= NINE; i++)
      count = count * 10 + text.charCodeAt(i) - ZERO;
    if (at >= 0) counts[at] = Math.min((counts[at] ?? 0) + (count || 1), MAX);
  }
  return counts.flatMap((count, at): SpeedCount[] => (count === 0 ? [] : [[at, count]]));
}

/** The shortest text with the same counts. */
export function shortenSpeeds(text: string): string {
  return writeSpeeds(readSpeeds(text));
}

const DEFINITIONS = [
  ...DIMENSIONS.map((name) => `${name} TEXT NOT NULL`),
  ...NUMBERS.map((name) => `${name} INTEGER NOT NULL`),
  'speeds TEXT NOT NULL',
].join(', ');

/**
 * Creates a table of sums, or copies one that an earlier version created into the current columns. All writes are one transaction,
 * as the object does not yield in between.
 * @param before the columns that precede the dimensions, with their types: together they are the primary key
 */
export function createSumTable(
  sql: SqlStorage,
  table: string,
  before: Readonly<Record<string, 'INTEGER' | 'TEXT'>>,
): void {
  const keys = [...Object.keys(before), ...DIMENSIONS];
  const create = (name: string) =>
    sql.exec(`CREATE TABLE IF NOT EXISTS ${name} (
      ${Object.entries(before)
        .map(([column, type]) => `${column} ${type} NOT NULL, `)
        .join('')}
      ${DEFINITIONS}, PRIMARY KEY (${keys.join(', ')})
    ) STRICT, WITHOUT ROWID`);
  create(table);
  const columns = [...keys, ...AMOUNTS];
  const { columnNames } = sql.exec(`SELECT * FROM ${table} LIMIT 0`);
  // The order matters: inserts name no columns.
  if (columns.join() === columnNames.join()) return;
  create(`${table}_new`);
  sql.exec(
    `INSERT INTO ${table}_new SELECT ${columns.map((name) => columnFrom(name, columnNames))} FROM ${table}`,
  );
  sql.exec(`DROP TABLE ${table}`);
  sql.exec(`ALTER TABLE ${table}_new RENAME TO ${table}`);
}

/** The expression that reads a current column from an earlier version's table. A column that is missing there is empty. */
function columnFrom(name: string, present: readonly string[]): string {
  if (present.includes(name)) return name;
  if (DIMENSIONS.some((dimension) => dimension === name)) return "''";
  if (name !== 'speeds') return '0';
  return present.includes('speed_0') ? FROM_STEP_COLUMNS : "''";
}

/** An earlier version had one column for each step of the speed histogram. */
const FROM_STEP_COLUMNS = [...LETTERS]
  .map((letter, at) => `CASE speed_${at} WHEN 0 THEN '' ELSE '${letter}' || speed_${at} END`)
  .join(' || ');

/** The rows of a report: SQLite sums them over tables of sums, and records of a part of an hour are put to them (L4). */

import type { ReportQuery } from '../../metering/ledger.ts';
import type { RecordSummary } from '../../metering/record.ts';
import { amountsOf, FILTERS, type Group, groupValues } from '../../metering/report.ts';
import { DAY_MS, HOUR_MS, isoDay, isoTime } from '../../metering/time.ts';
import { MAX_REPORT_ROWS } from '../../shared/limits.ts';
import { type Columns, readSums, SUMS, type SumRow, toColumns } from './columns.ts';

/** A report with more rows is refused; the same group may come in several currencies. */
const MAX_ROWS = 4 * MAX_REPORT_ROWS;

/** Characters of speeds that SQLite puts together: a value of it has at most two million bytes. */
const MAX_JOINED_CHARS = 1_000_000;

const EXPRESSIONS: { readonly [G in Group]: string } = {
  day: 'day',
  hour: 'hour',
  provider: 'provider',
  model: "provider || '/' || model",
  route: 'route',
  status: 'status',
  key: 'key',
};

/** A SELECT whose rows have the columns `day`, `key`, where it is grouped by them `hour`, the dimensions and the amounts. */
export interface Source {
  readonly select: string;
  readonly bindings: readonly (string | number)[];
}

type What = Pick<ReportQuery, 'groups' | 'only'>;

export function sumRows(sql: SqlStorage, source: Source, { groups, only = {} }: What): SumRow[] {
  const values = groups.map((group, i) => `${EXPRESSIONS[group]} AS value${i}`);
  const by = [...groups.map((_, i) => `value${i}`), 'currency'];
  const filters = FILTERS.flatMap((name) => (only[name] === undefined ? [] : [[name, only[name]] as const]));
  const conditions = ['TRUE', ...filters.map(([name]) => `${EXPRESSIONS[name]} = ?`)];
  const rest = [...source.bindings, ...filters.map(([, value]) => value)];
  const where = `FROM (${source.select}) WHERE ${conditions.join(' AND ')}`;
  const { chars } = sql.exec(`SELECT TOTAL(LENGTH(speeds)) AS chars ${where}`, ...rest).one();
  const parts = Math.floor(Number(chars) / MAX_JOINED_CHARS);
  // A group with more of them than one value holds comes in several rows.
  const part = `SUM(LENGTH(speeds)) OVER (PARTITION BY ${by.join(', ')} ROWS UNBOUNDED PRECEDING) / ${MAX_JOINED_CHARS}`;
  const rows = sql.exec(
    parts === 0
      ? `SELECT ${[...values, 'currency', SUMS].join(', ')} ${where} GROUP BY ${by.join(', ')} LIMIT ${MAX_ROWS}`
      : `SELECT ${by.join(', ')}, ${SUMS} FROM (SELECT *, ${part} AS part FROM (SELECT ${values.join(', ')}, * ${where}))
          GROUP BY ${by.join(', ')}, part LIMIT ${MAX_ROWS + parts}`,
    ...rest,
  );
  return [...rows.raw()].map((row) => ({
    values: groups.map((group, i) => readValue(group, row[i])),
    currency: String(row[groups.length]),
    columns: readSums(row.slice(groups.length + 1)),
  }));
}

function readValue(group: Group, value: SqlStorageValue | undefined): string {
  if (group === 'day') return isoDay(Number(value) * DAY_MS);
  if (group === 'hour') return `${isoTime(Number(value) * HOUR_MS).slice(0, 13)}:00Z`;
  return String(value);
}

/** The same of single records. */
export function sumRecords(records: Iterable<RecordSummary>, groups: readonly Group[]): SumRow[] {
  const rows = new Map<string, SumRow>();
  for (const record of records) {
    const amounts = amountsOf(record);
    const values = groupValues(record, groups);
    const currency = amounts.currency ?? '';
    const id = JSON.stringify([values, currency]);
    const columns = toColumns(amounts);
    const known = rows.get(id)?.columns;
    rows.set(id, { values, currency, columns: known === undefined ? columns : sum(known, columns) });
  }
  return [...rows.values()];
}

/** Nanos may go beyond a unit here: so few records make no sum that is not exact. */
function sum(a: Columns, b: Columns): Columns {
  return {
    numbers: a.numbers.map((value, i) => Math.min(value + (b.numbers[i] ?? 0), Number.MAX_SAFE_INTEGER)),
    speeds: a.speeds + b.speeds,
  };
}

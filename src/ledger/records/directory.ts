/** The directory: one object that has every ledger's sums of days, so that a report over all keys asks it alone (L4). */

import type { ReportQuery } from '../../metering/ledger.ts';
import { DAY_MS } from '../../metering/time.ts';
import { MAX_ASKED_LEDGERS } from '../../shared/limits.ts';
import { AMOUNTS, rowsFrom, type SumRow, valuesOf } from './columns.ts';
import type { DayRow } from './hours.ts';
import { sumRows } from './sum-rows.ts';
import { createSumTable } from './sum-table.ts';

/** The directory's name among the ledgers: no key has such an id. */
export const DIRECTORY = '*';

export function createDirectory(sql: SqlStorage): void {
  createSumTable(sql, 'ledger_days', { day: 'INTEGER', key: 'TEXT' });
}

/** A sum only ever grows by requests, so that a message which comes late, or again, changes nothing. */
const TAKE = `INSERT INTO ledger_days ${rowsFrom(2)} ON CONFLICT DO UPDATE SET
  ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')} WHERE excluded.requests > requests`;

/** Takes a ledger's sums of days, in the place of those that it has. */
export function takeDays(sql: SqlStorage, keyId: string, rows: readonly DayRow[]): void {
  sql.exec(
    TAKE,
    JSON.stringify(
      rows.map(({ day, dimensions, columns }) => [day, keyId, ...dimensions, ...valuesOf(columns)]),
    ),
  );
}

/** Over all keys, of whole days. */
export function directoryReport(sql: SqlStorage, query: ReportQuery): SumRow[] {
  const select = 'SELECT * FROM ledger_days WHERE day >= ? AND day < ?';
  return sumRows(sql, { select, bindings: [query.fromMs / DAY_MS, query.toMs / DAY_MS] }, query);
}

/** Who had requests on a day. */
export interface ActiveDay {
  /** Days since the epoch. */
  readonly day: number;
  readonly keyIds: readonly string[];
}

export interface ActiveDays {
  /** The latest first. */
  readonly days: readonly ActiveDay[];
  /** There are more ledgers than one answer asks: the days before these are left out. */
  readonly isCut: boolean;
}

/**
 * The days from one to another, both within, on which there were requests, and whose they were.
 * @returns whole days, of no more ledgers than one answer asks: none where the latest day has more
 */
export function activeDays(sql: SqlStorage, from: number, to: number): ActiveDays {
  const select =
    'SELECT DISTINCT day, key FROM ledger_days WHERE day >= ? AND day <= ? ORDER BY day DESC LIMIT ?';
  const rows = [...sql.exec(select, from, to, MAX_ASKED_LEDGERS + 1).raw()];
  const byDay = Map.groupBy(rows, ([day]) => Number(day));
  const days = [...byDay].map(([day, pairs]) => ({ day, keyIds: pairs.map(([, key]) => String(key)) }));
  const isCut = rows.length > MAX_ASKED_LEDGERS;
  return { days: isCut ? days.slice(0, -1) : days, isCut };
}

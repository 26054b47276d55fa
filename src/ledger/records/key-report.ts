/** A key's own report: whole days and hours from their sums, and what is less than an hour from its records (L4). */

import type { ReportQuery } from '../../metering/ledger.ts';
import { matchesFilter } from '../../metering/report.ts';
import { firstIdAt, HOUR_MS } from '../../metering/time.ts';
import { MAX_PART_RECORDS } from '../../shared/limits.ts';
import { AMOUNTS, DIMENSIONS, type SumRow } from './columns.ts';
import { HOURS_PER_DAY } from './hours.ts';
import { eachRecord } from './records.ts';
import { readState } from './settings-table.ts';
import { type Source, sumRecords, sumRows } from './sum-rows.ts';

export type RowsResult =
  | { readonly kind: 'rows'; readonly rows: readonly SumRow[] }
  /** There are too many records in the parts of hours, or none any more. */
  | { readonly kind: 'parts'; readonly reason: 'too_many' | 'too_old' };

interface Span {
  readonly from: number;
  /** Not within. */
  readonly to: number;
}

export function keyReport(sql: SqlStorage, query: ReportQuery, keyId: string): RowsResult {
  const { fromMs, toMs, groups, only = {} } = query;
  const hours = { from: Math.ceil(fromMs / HOUR_MS), to: Math.floor(toMs / HOUR_MS) };
  const parts = partsOf({ from: fromMs, to: toMs }, hours);
  const marks = readState(sql);
  if (parts.some(({ from }) => from < marks.deleted_before)) return { kind: 'parts', reason: 'too_old' };
  const records = [];
  let read = 0;
  for (const { from, to } of parts) {
    for (const record of eachRecord(sql, firstIdAt(from), firstIdAt(to))) {
      if (++read > MAX_PART_RECORDS) return { kind: 'parts', reason: 'too_many' };
      if (matchesFilter(record, only)) records.push(record);
    }
  }
  // Days have no hours.
  const openDay = groups.includes('hour') ? 0 : marks.open_day;
  const sums = hours.from < hours.to ? sumRows(sql, sourceOf(hours, openDay, keyId), query) : [];
  return { kind: 'rows', rows: [...sums, ...sumRecords(records, groups)] };
}

/** What of the time is in no whole hour. */
function partsOf({ from, to }: Span, hours: Span): Span[] {
  if (hours.from > hours.to) return [{ from, to }];
  const parts = [
    { from, to: hours.from * HOUR_MS },
    { from: hours.to * HOUR_MS, to },
  ];
  return parts.filter((part) => part.from < part.to);
}

const COLUMNS = [...DIMENSIONS, ...AMOUNTS].join(', ');

/** Whole days that are closed come from `days`, whose rows are fewer; all other hours from `hours`. */
function sourceOf(hours: Span, openDay: number, keyId: string): Source {
  const days = {
    from: Math.ceil(hours.from / HOURS_PER_DAY),
    to: Math.min(Math.floor(hours.to / HOURS_PER_DAY), openDay),
  };
  const hasDays = days.from < days.to;
  const before = hasDays ? days.from * HOURS_PER_DAY : hours.to;
  const after = hasDays ? days.to * HOURS_PER_DAY : hours.to;
  return {
    select: `SELECT NULL AS hour, day, ? AS key, ${COLUMNS} FROM days WHERE day >= ? AND day < ?
      UNION ALL SELECT hour, hour / ${HOURS_PER_DAY} AS day, ? AS key, ${COLUMNS} FROM hours
      WHERE (hour >= ? AND hour < ?) OR (hour >= ? AND hour < ?)`,
    bindings: [
      ...[keyId, hasDays ? days.from : 0, hasDays ? days.to : 0],
      ...[keyId, hours.from, before, after, hours.to],
    ],
  };
}

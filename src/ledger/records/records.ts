/** Single records in a key's ledger: each once, by its request id, listed, and gone after their time (L2, L4). */

import { matchesQuery, type RecordQuery } from '../../metering/ledger.ts';
import { type ChargedRecord, type UsageRecord, withoutCharges } from '../../metering/record.ts';
import { firstIdAt, idTime } from '../../metering/time.ts';
import { MAX_SCANNED_RECORDS } from '../../shared/limits.ts';
import { type LedgerState, setState } from './settings-table.ts';

/** Records that one alarm deletes. */
const MAX_DELETED = 10_000;

/** Request ids sort by time (L2), so that the primary key is the only index, and a record is one row written. */
export function createRecords(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID',
  );
}

const INSERT = `INSERT OR IGNORE INTO records SELECT value ->> 'request_id', value FROM json_each(?) RETURNING id`;

/** @returns those that were not there before, each once */
export function insertRecords(sql: SqlStorage, records: readonly ChargedRecord[]): ChargedRecord[] {
  const inserted = [...sql.exec(INSERT, JSON.stringify(withoutCharges(records))).raw()].map(([id]) => id);
  return inserted.flatMap((id) => records.find(({ request_id }) => request_id === id) ?? []);
}

/** The record of a request, as it was settled, or null where there is none. */
export function findRecord(sql: SqlStorage, id: string): UsageRecord | null {
  const [row] = sql.exec('SELECT record FROM records WHERE id = ?', id);
  return row === undefined ? null : decodeStored(row.record);
}

/** The records from one id up to another, which is not within. */
export function* eachRecord(sql: SqlStorage, fromId: string, toId: string): Iterable<UsageRecord> {
  const select = 'SELECT record FROM records WHERE id >= ? AND id < ?';
  for (const { record } of sql.exec(select, fromId, toId)) yield decodeStored(record);
}

/** Records of one ledger, the latest first. */
export interface LedgerPage {
  readonly records: readonly UsageRecord[];
  /** All that are left are before this id; null where none are. */
  readonly next: string | null;
}

export function listRecords(sql: SqlStorage, query: RecordQuery): LedgerPage {
  const records: UsageRecord[] = [];
  const select = `SELECT record FROM records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ${MAX_SCANNED_RECORDS + 1}`;
  let scanned = 0;
  let last = query.beforeId;
  for (const { record: text } of sql.exec(select, query.fromId, query.beforeId)) {
    if (scanned === MAX_SCANNED_RECORDS || records.length === query.limit) return { records, next: last };
    const record = decodeStored(text);
    if (matchesQuery(record, query)) records.push(record);
    last = record.request_id;
    scanned++;
  }
  return { records, next: null };
}

/** Whether a record that comes now may have been here before: then it is not known whether it was counted. */
export function isForgotten({ request_id }: UsageRecord, { deleted_before }: LedgerState): boolean {
  return request_id < firstIdAt(deleted_before);
}

/**
 * Deletes records from before that time, in ms since the epoch.
 * @returns the time of the oldest that is left, or null
 */
export function deleteRecords(sql: SqlStorage, before: number): number | null {
  const oldest = `SELECT id FROM records WHERE id < ? ORDER BY id LIMIT ${MAX_DELETED}`;
  const { rowsWritten } = sql.exec(`DELETE FROM records WHERE id IN (${oldest})`, firstIdAt(before));
  if (rowsWritten > 0) setState(sql, 'deleted_before', before);
  const [row] = sql.exec('SELECT MIN(id) AS id FROM records');
  return typeof row?.id === 'string' ? idTime(row.id) : null;
}

/** Only this file writes them. */
function decodeStored(text: unknown): UsageRecord {
  return JSON.parse(String(text)) as UsageRecord; // decode
}

/** Single records in a key's ledger object: each once, by its request id (L4). */
import type { UsageRecord } from '../record.ts';

/** Request ids sort by time (L2), so that the primary key is the only index, and a record is one row written. */
const TABLE = `CREATE TABLE IF NOT EXISTS records (
  id TEXT PRIMARY KEY,
  record TEXT NOT NULL
) STRICT, WITHOUT ROWID`;

export function createRecords(sql: SqlStorage): void {
  sql.exec(TABLE);
}

/** @returns false where the record is there already */
export function insertRecord(sql: SqlStorage, record: UsageRecord): boolean {
  const { rowsWritten } = sql.exec(
    'INSERT OR IGNORE INTO records VALUES (?, ?)',
    record.request_id,
    JSON.stringify(record),
  );
  return rowsWritten > 0;
}

/** The record of a request, as it was settled, or null where there is none. */
export function findRecord(sql: SqlStorage, id: string): UsageRecord | null {
  const [row] = sql.exec('SELECT record FROM records WHERE id = ?', id);
  return row === undefined ? null : decodeStored(row.record);
}

/** Only this file writes them. */
function decodeStored(text: unknown): UsageRecord {
  return JSON.parse(String(text)) as UsageRecord; // decode
}

/** In the object `*`: the keys whose objects are full and have deleted records, or cannot archive them. */
import type { FullKey } from '../../metering/ledger.ts';
import { DAY_MS, isoTime } from '../../metering/time.ts';

/** What an object says of itself. Absolute, so that a repeated message changes nothing; times are in ms since the epoch. */
export interface FullLedger {
  readonly deletedRecords: number;
  /** Of records from before this time some are deleted. */
  readonly deletedBefore: number;
  /** Null: the archive works, or there is none. */
  readonly failingSince: number | null;
  /** Why the archive fails. */
  readonly reason: string | null;
}

/** How long a key is listed after its last message. */
const LISTED_MS = 30 * DAY_MS;
/** Keys that are listed. */
const MAX_LISTED = 20;
const MAX_REASON_CHARS = 500;

export function createFullLedgers(sql: SqlStorage): void {
  sql.exec(`CREATE TABLE IF NOT EXISTS full_ledgers (
    key TEXT PRIMARY KEY, noted INTEGER NOT NULL, deleted INTEGER NOT NULL, before INTEGER NOT NULL, failing INTEGER, reason TEXT
  ) STRICT, WITHOUT ROWID`);
}

/** Notes what an object says. One that has deleted nothing and works is forgotten. */
export function noteFull(sql: SqlStorage, keyId: string, ledger: FullLedger, now: number): void {
  const { deletedRecords, deletedBefore, failingSince, reason } = ledger;
  sql.exec('DELETE FROM full_ledgers WHERE key = ? OR noted < ?', keyId, now - LISTED_MS);
  if (deletedRecords === 0 && failingSince === null) return;
  const values = [deletedRecords, deletedBefore, failingSince, reason?.slice(0, MAX_REASON_CHARS) ?? null];
  sql.exec('INSERT INTO full_ledgers VALUES (?, ?, ?, ?, ?, ?)', keyId, now, ...values);
}

/** First those whose archive fails, then the latest. */
export function listFull(sql: SqlStorage, now: number): FullKey[] {
  const select = `SELECT * FROM full_ledgers WHERE noted >= ? ORDER BY failing IS NULL, noted DESC, key LIMIT ${MAX_LISTED}`;
  return [...sql.exec(select, now - LISTED_MS)].map(({ key, deleted, before, failing, reason }) => ({
    key_id: String(key),
    deleted_records: Number(deleted),
    deleted_before: deleted === 0 ? null : isoTime(Number(before)),
    archive_failing_since: failing === null ? null : isoTime(Number(failing)),
    reason: reason === null ? null : String(reason),
  }));
}

/** The newest records of a directory's keys, which lists over all keys begin with. */
import { matchesQuery, type RecordQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { decodeStored, type LedgerPage } from '../records/records.ts';
import { MAX_NEWEST } from '../records/unsent-sums.ts';

export function createNewest(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS newest (id TEXT PRIMARY KEY, key TEXT NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID',
  );
  // The bound below which records are missing.
  sql.exec('CREATE TABLE IF NOT EXISTS newest_from (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID');
}

export interface NewestPage extends LedgerPage {
  /** Every record that was sent and has this id or a later one is here. */
  readonly from: string;
}

/** Keeps the newest of these and of the stored records. The caller wraps this in a transaction. */
export function takeNewest(sql: SqlStorage, keyId: string, records: readonly UsageRecord[]): void {
  if (records.length === 0) return;
  sql.exec(
    `INSERT OR IGNORE INTO newest SELECT value ->> 'request_id', ?, value FROM json_each(?) WHERE value ->> 'request_id' >= ?`,
    keyId,
    JSON.stringify(records),
    newestFrom(sql),
  );
  const oldest = `SELECT id FROM newest ORDER BY id DESC LIMIT 1 OFFSET ${MAX_NEWEST - 1}`;
  const deleted = sql.exec(`DELETE FROM newest WHERE id < (${oldest}) RETURNING id`).toArray();
  if (deleted.length > 0) setFrom(sql, String(sql.exec('SELECT MIN(id) AS id FROM newest').one().id));
}

function newestFrom(sql: SqlStorage): string {
  const [row] = sql.exec('SELECT id FROM newest_from');
  return row === undefined ? '' : String(row.id);
}

function setFrom(sql: SqlStorage, id: string): void {
  if (id <= newestFrom(sql)) return;
  sql.exec('DELETE FROM newest_from');
  sql.exec('INSERT INTO newest_from VALUES (?)', id);
}

export function listNewest(sql: SqlStorage, query: RecordQuery): NewestPage {
  const from = newestFrom(sql);
  const first = from > query.fromId ? from : query.fromId;
  const select = 'SELECT record FROM newest WHERE id >= ? AND id < ? ORDER BY id DESC';
  const records: UsageRecord[] = [];
  for (const { record: text } of sql.exec(select, first, query.beforeId)) {
    const record = decodeStored(text);
    if (!matchesQuery(record, query)) continue;
    if (records.length === query.limit) return { records, next: records.at(-1)?.request_id ?? null, from };
    records.push(record);
  }
  return { records, next: null, from };
}

/** Deletes records of a key's user. @param beforeId only those with a smaller id; null: all */
export function eraseNewest(
  sql: SqlStorage,
  keyId: string,
  users: readonly string[],
  beforeId: string | null,
): void {
  sql.exec(
    `DELETE FROM newest WHERE key = ?1 AND (?2 IS NULL OR id < ?2) AND record ->> 'user' IN (SELECT value FROM json_each(?3))`,
    ...[keyId, beforeId, JSON.stringify(users)],
  );
}

/** Deletes records with a smaller id. */
export function deleteNewest(sql: SqlStorage, beforeId: string): void {
  sql.exec('DELETE FROM newest WHERE id < ?', beforeId);
}

export function findNewest(sql: SqlStorage, id: string): UsageRecord | null {
  const [row] = sql.exec('SELECT record FROM newest WHERE id = ?', id);
  return row === undefined ? null : decodeStored(row.record);
}

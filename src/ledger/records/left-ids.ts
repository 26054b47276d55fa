/** The ids of records that have left a ledger object, so that one that is delivered again does not count again. */
import { DAY_MS, idTime } from '../../metering/time.ts';

/** A Queue delivers for at most 14 days. */
const KEPT_MS = 15 * DAY_MS;
/** Of all ids, 16 bytes each. */
export const MAX_LEFT_ID_BYTES = 500_000_000;
const ID_BYTES = 16;

/** A row has the ids of one piece. Packed, they take 16 bytes each, and one written row for thousands. */
function createLeftIds(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS left_ids (until INTEGER NOT NULL, since INTEGER NOT NULL, ids BLOB NOT NULL) STRICT',
  );
  sql.exec('CREATE INDEX IF NOT EXISTS left_ids_times ON left_ids (until, since)');
}

/**
 * Remembers these ids, which are in their order, once their records are deleted: an object that was full when this version was deployed
 * has room for the table only then.
 */
export function addLeftIds(sql: SqlStorage, ids: readonly string[]): void {
  const [first, last] = [ids[0], ids.at(-1)];
  if (first === undefined || last === undefined) return;
  createLeftIds(sql);
  const bytes = new Uint8Array(ids.length * ID_BYTES);
  for (const [at, id] of ids.entries()) bytes.set(idBytes(id), at * ID_BYTES);
  sql.exec('INSERT INTO left_ids VALUES (?, ?, ?)', idTime(last), idTime(first), bytes.buffer);
}

/** Whether a record with this id has left the object. */
export function hasLeft(sql: SqlStorage, id: string): boolean {
  const time = idTime(id);
  const select = 'SELECT 1 FROM left_ids WHERE until >= ? AND since <= ? AND instr(ids, ?) > 0 LIMIT 1';
  return !sql.exec(select, time, time, idBytes(id).buffer).next().done;
}

/**
 * Forgets ids that are too old or too many.
 * @returns the time up to which ids are forgotten, in ms since the epoch; null: none was
 */
export function trimLeftIds(sql: SqlStorage, now: number, maxBytes: number): number | null {
  const { bytes } = sql.exec('SELECT TOTAL(LENGTH(ids)) AS bytes FROM left_ids').one();
  let excess = Number(bytes) - maxBytes;
  let until: number | null = null;
  const rows = [
    ...sql.exec('SELECT rowid AS row, until, LENGTH(ids) AS bytes FROM left_ids ORDER BY until LIMIT 100'),
  ];
  for (const row of rows) {
    const time = Number(row.until);
    if (excess <= 0 && time >= now - KEPT_MS) break;
    sql.exec('DELETE FROM left_ids WHERE rowid = ?', row.row ?? null);
    excess -= Number(row.bytes);
    until = time;
  }
  return until;
}

function idBytes(id: string): Uint8Array<ArrayBuffer> {
  const hex = id.replaceAll('-', '');
  return Uint8Array.from({ length: ID_BYTES }, (_, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}

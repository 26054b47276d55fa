/** The records and the sums of one user in a key's ledger object, read and erased in bounded parts. */
import type { UsageRecord } from '../../metering/record.ts';
import { DAY_MS, idTime } from '../../metering/time.ts';
import { ERASED } from '../../shared/limits.ts';
import { deleteCacheSessions } from './cache-sessions.ts';
import { deleteSessionSums, deleteUserSums, userSums } from './fact-sums.ts';
import { decodeStored, lostBefore, readState } from './records.ts';
import type { DayRow } from './sum-columns.ts';

/** Where the next part begins. */
export interface UserCursor {
  /** The first day of sums, in days since the epoch; null: all sums were read. */
  readonly day: number | null;
  /** The id before the first record; null: all records were read. */
  readonly id: string | null;
}

export interface UserPart {
  readonly records: readonly UsageRecord[];
  readonly sums: readonly DayRow[];
  /** Null: this was the last part. */
  readonly next: UserCursor | null;
}

/** The cursor of the first part. */
export const USER_START: UserCursor = { day: 0, id: '' };

/** Records that one part scans. */
const MAX_SCANNED = 10_000;
/** Records of the user in one part. */
const MAX_RECORDS = 500;

/** `?1` is the id before the window, `?2` the JSON list of names. */
const OF_USER = `id > ?1 AND record ->> 'user' IN (SELECT value FROM json_each(?2))`;

/** The records and sums under these names, from the cursor on. */
export function readUser(sql: SqlStorage, names: readonly string[], { day, id }: UserCursor): UserPart {
  const sums = day === null ? { rows: [], next: null } : userSums(sql, names, day);
  const records = id === null ? { rows: [], next: null } : recordsAfter(sql, names, id);
  const next = { day: sums.next, id: records.next };
  return {
    records: records.rows,
    sums: sums.rows,
    next: next.day === null && next.id === null ? null : next,
  };
}

interface RecordPart {
  readonly rows: readonly UsageRecord[];
  readonly next: string | null;
}

function recordsAfter(sql: SqlStorage, names: readonly string[], after: string): RecordPart {
  const end = windowEnd(sql, after);
  const select = `SELECT record FROM records WHERE ${OF_USER} AND (?3 IS NULL OR id <= ?3) ORDER BY id LIMIT ${MAX_RECORDS}`;
  const found = [...sql.exec(select, after, JSON.stringify(names), end)];
  const rows = found.map(({ record }) => decodeStored(record));
  return { rows, next: rows.length === MAX_RECORDS ? (rows.at(-1)?.request_id ?? null) : end };
}

/** The last id of the records that one part scans; null: fewer are left. */
function windowEnd(sql: SqlStorage, after: string): string | null {
  const select = `SELECT id FROM records WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${MAX_SCANNED - 1}`;
  const [row] = sql.exec(select, after);
  return row === undefined ? null : String(row.id);
}

export interface ErasedUserPart {
  /** Rows that were deleted. */
  readonly records: number;
  readonly sums: number;
  /** Null: this was the last part. */
  readonly next: UserCursor | null;
}

/** Records of the user that the caller erases from the archive. */
export interface ErasedFromArchive {
  readonly records: readonly Pick<UsageRecord, 'request_id' | 'session'>[];
  /** As {@link UserCursor.id}: up to it, all archived records were searched. */
  readonly next: string | null;
}

/**
 * Erases the records and sums under these names, from the cursor on, with the sums and hashes of the sessions of these records and of
 * archived ones. The caller wraps this in a transaction.
 * @param beforeId only records with a smaller id, and the sums of their days; null: all
 */
export function eraseUser(
  sql: SqlStorage,
  names: readonly string[],
  { day, id }: UserCursor,
  beforeId: string | null,
  archived: ErasedFromArchive,
): ErasedUserPart {
  const until = beforeId === null ? null : Math.floor(idTime(beforeId) / DAY_MS);
  const sums = day === null ? { rows: 0, next: null } : deleteUserSums(sql, names, day, until);
  const records =
    id === null ? { rows: 0, next: null } : deleteRecordsAfter(sql, names, id, beforeId, archived);
  if (sums.rows + records.rows > 0) {
    // Hashes of prompts have no user. They are of a day, and only make the next reservations larger.
    sql.exec('DELETE FROM counted');
  }
  const rest = { day: sums.next, id: records.next };
  const next = rest.day === null && rest.id === null ? null : rest;
  if (next === null) eraseElsewhere(sql, names);
  return { records: records.rows, sums: sums.rows, next };
}

/** A session that had requests on a day (since the epoch). */
export interface SessionDay {
  readonly day: number;
  readonly name: string;
}

export function sessionDays(
  records: readonly Pick<UsageRecord, 'request_id' | 'session'>[],
): readonly SessionDay[] {
  return records.flatMap(({ request_id, session }) =>
    session === null ? [] : [{ day: Math.floor(idTime(request_id) / DAY_MS), name: session }],
  );
}

/** The sessions of the records that {@link eraseUser} deletes from the cursor on. */
export function sessionsOfUser(
  sql: SqlStorage,
  names: readonly string[],
  { id }: UserCursor,
  beforeId: string | null,
): readonly SessionDay[] {
  if (id === null) return [];
  const select = `SELECT id, record ->> 'session' AS session FROM records
    WHERE ${OF_USER} AND (?3 IS NULL OR id <= ?3) AND (?4 IS NULL OR id < ?4) AND record ->> 'session' IS NOT NULL`;
  const found = sql.exec(select, id, JSON.stringify(names), windowEnd(sql, id), beforeId);
  return sessionDays([...found].map((row) => ({ request_id: String(row.id), session: String(row.session) })));
}

function deleteRecordsAfter(
  sql: SqlStorage,
  names: readonly string[],
  after: string,
  beforeId: string | null,
  archived: ErasedFromArchive,
): { readonly rows: number; readonly next: string | null } {
  const end = windowEnd(sql, after);
  const found = sql.exec(
    `DELETE FROM records WHERE ${OF_USER} AND (?3 IS NULL OR id <= ?3) AND (?4 IS NULL OR id < ?4)
      RETURNING id, record ->> 'session' AS session`,
    ...[after, JSON.stringify(names), end, beforeId],
  );
  const own = [...found].map(({ id, session }) => ({
    request_id: String(id),
    session: session === null ? null : String(session),
  }));
  const sessions = sessionDays([...own, ...archived.records]);
  deleteSessionSums(sql, sessions);
  deleteCacheSessions(
    sql,
    sessions.map(({ name }) => name),
    lostBefore(readState(sql)),
  );
  const ends = [end, archived.next].filter((one) => one !== null).sort();
  const next = ends.find((one) => beforeId === null || one < beforeId) ?? null;
  return { rows: own.length + archived.records.length, next };
}

/** An admin who added to a budget. */
function eraseElsewhere(sql: SqlStorage, names: readonly string[]): void {
  const update = `UPDATE top_ups SET actor = '${ERASED}' WHERE actor IN (SELECT value FROM json_each(?))`;
  sql.exec(update, JSON.stringify(names));
}

export interface UsersPart {
  readonly names: readonly string[];
  /** The last id that was read; null: there are no more records. */
  readonly next: string | null;
}

/** The users of records between two ids, as far as one part scans. */
export function usersOfRecords(sql: SqlStorage, after: string, beforeId: string): UsersPart {
  const end = windowEnd(sql, after);
  const select = `SELECT DISTINCT record ->> 'user' AS user FROM records
    WHERE id > ?1 AND id < ?2 AND (?3 IS NULL OR id <= ?3) AND record ->> 'user' IS NOT NULL`;
  const names = [...sql.exec(select, after, beforeId, end)].map(({ user }) => String(user));
  return { names, next: end !== null && end < beforeId ? end : null };
}

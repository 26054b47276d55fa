/** The records and the sums of one user in a key's ledger object, read in bounded parts. */
import type { UsageRecord } from '../../metering/record.ts';
import { userSums } from './fact-sums.ts';
import { decodeStored } from './records.ts';
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

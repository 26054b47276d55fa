/** The single usage records that a key's ledger object has: stored once by request id, listed, and deleted after `RECORD_DAYS`. */
import { matchesQuery, type RecordQuery } from '../../metering/ledger.ts';
import {
  type ChargedRecord,
  completeRecord,
  type UsageRecord,
  withoutCharges,
} from '../../metering/record.ts';
import { firstIdAt, idTime } from '../../metering/time.ts';
import { hasLeft } from './left-ids.ts';

/** Records that are scanned for the matching ones of one page. */
const MAX_SCANNED_RECORDS = 10_000;

/** Records that one alarm deletes. */
const MAX_DELETED = 10_000;

/** Request ids sort by time, so the primary key is the only index, and a record is one written row. */
export function createRecords(sql: SqlStorage): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID',
  );
  sql.exec(
    'CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID',
  );
}

const INSERT = `INSERT OR IGNORE INTO records SELECT value ->> 'request_id', value FROM json_each(?) RETURNING id`;

/** @returns the records that were not stored before, each once */
export function insertRecords(sql: SqlStorage, records: readonly ChargedRecord[]): ChargedRecord[] {
  const inserted = [...sql.exec(INSERT, JSON.stringify(withoutCharges(records))).raw()].map(([id]) => id);
  return inserted.flatMap((id) => records.find(({ request_id }) => request_id === id) ?? []);
}

export function findRecord(sql: SqlStorage, id: string): UsageRecord | null {
  const [row] = sql.exec('SELECT record FROM records WHERE id = ?', id);
  return row === undefined ? null : decodeStored(row.record);
}

/** The records from one id to another, which is excluded, in order, up to a limit. */
export function recordsFrom(sql: SqlStorage, fromId: string, toId: string, limit: number): UsageRecord[] {
  const select = 'SELECT record FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?';
  return [...sql.exec(select, fromId, toId, limit)].map(({ record }) => decodeStored(record));
}

/** Records of one ledger, latest first. */
export interface LedgerPage {
  readonly records: readonly UsageRecord[];
  /** All remaining records are before this id; null: there are none. */
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

/**
 * Whether a record is new, stored already or has left (`known`), or so old that an earlier copy of it may have been deleted
 * (`forgotten`): it may have been counted then.
 */
export function placeOf(
  sql: SqlStorage,
  { request_id }: UsageRecord,
  { deleted_before, moved_before, known_from }: LedgerState,
): 'new' | 'known' | 'forgotten' {
  // 0.2.0 knows one of the marks, and may set it back.
  if (request_id >= firstIdAt(Math.max(deleted_before, moved_before))) return 'new';
  const time = idTime(request_id);
  if (time < known_from || time >= moved_before) return 'forgotten';
  return hasLeft(sql, request_id) ? 'known' : 'new';
}

/**
 * Deletes records from before that time, in ms since the epoch.
 * @returns the time of the oldest remaining record, or null
 */
export function deleteRecords(sql: SqlStorage, before: number): number | null {
  const oldest = `SELECT id FROM records WHERE id < ? ORDER BY id LIMIT ${MAX_DELETED}`;
  const { rowsWritten } = sql.exec(`DELETE FROM records WHERE id IN (${oldest})`, firstIdAt(before));
  if (rowsWritten > 0)
    for (const name of ['deleted_before', 'lost_before', 'known_from'] as const)
      raiseState(sql, name, before);
  const [row] = sql.exec('SELECT MIN(id) AS id FROM records');
  return typeof row?.id === 'string' ? idTime(row.id) : null;
}

/** Only {@link insertRecords} writes these texts. */
export function decodeStored(text: unknown): UsageRecord {
  return completeRecord(JSON.parse(String(text))) as unknown as UsageRecord; // decode
}

/** Numbers that a ledger object stores about itself, in the table `marks`. Each is 0 until it is set; times are in ms since the epoch. */
export interface LedgerState {
  /** As 0.2 set it, which reads it after a rollback: the days before (since the epoch) were closed, and have no records since. */
  readonly open_day: number;
  /** Days since the epoch. The days before are closed: their sums are complete in `sent_days`. */
  readonly sent_day: number;
  /** Records from before this time may not be in the object. 0.2.0 takes them for deleted. */
  readonly deleted_before: number;
  /** How many days records are kept, as the gateway's last call set it. */
  readonly record_days: number;
  /** Records from before this time have left because of `RECORD_BYTES`. */
  readonly moved_before: number;
  /** Records from before this time may be deleted, also from the archive. */
  readonly lost_before: number;
  /** The ids of those that left are known from this time on. */
  readonly known_from: number;
  /** The archive has records from the one time up to the other, which is excluded. */
  readonly archived_from: number;
  readonly archived_until: number;
  /** When the archive was last asked what it has. */
  readonly archive_checked: number;
  /** How many records were deleted because of `RECORD_BYTES`. */
  readonly deleted_records: number;
  /** Since when records cannot be archived; 0: they can. */
  readonly archive_failing: number;
  /** 1: the directory has to learn one of the last two. */
  readonly is_note_due: number;
}

const MARKS = [
  ...([
    'open_day',
    'sent_day',
    'deleted_before',
    'record_days',
    'moved_before',
    'lost_before',
    'known_from',
  ] as const),
  ...(['archived_from', 'archived_until', 'archive_checked', 'deleted_records', 'archive_failing'] as const),
  'is_note_due',
] as const satisfies readonly (keyof LedgerState)[];

export function readState(sql: SqlStorage): LedgerState {
  const rows = [...sql.exec('SELECT name, value FROM marks').raw()];
  const values = new Map(rows.map(([name, value]) => [name, Number(value)]));
  const entries = MARKS.map((name) => [name, values.get(name) ?? 0]);
  return Object.fromEntries(entries) as unknown as LedgerState; // decode
}

/** Single records from before this time may be deleted. 0.2.0 deletes by age, and sets one mark only. */
export function lostBefore({ lost_before, deleted_before, moved_before }: LedgerState): number {
  return deleted_before > moved_before ? Math.max(lost_before, deleted_before) : lost_before;
}

/** Sets a mark, unless it is higher already. */
export function raiseState(sql: SqlStorage, name: keyof LedgerState, value: number): void {
  if (readState(sql)[name] < value) setState(sql, name, value);
}

export function setState(sql: SqlStorage, name: keyof LedgerState, value: number): void {
  sql.exec('INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', name, value);
}

/** Whether single records are stored. */
export function hasRecords(sql: SqlStorage): boolean {
  return sql.exec('SELECT 1 FROM records LIMIT 1').toArray().length > 0;
}

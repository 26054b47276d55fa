/** The records of one key, wherever they are: in its ledger object, or in pieces in the archive once they have left it. */
import { matchesQuery, type RecordQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { DAY_MS, firstIdAt, idTime } from '../../metering/time.ts';
import {
  Archive,
  type ArchiveBucket,
  dayStart,
  idBefore,
  newProblem,
  type Piece,
  type StartTimer,
} from './archive.ts';
import { addLeftIds, MAX_LEFT_ID_BYTES, trimLeftIds } from './left-ids.ts';
import {
  findRecord,
  type LedgerPage,
  listRecords,
  raiseState,
  readState,
  recordsFrom,
  setState,
} from './records.ts';
import {
  type ErasedUserPart,
  eraseUser,
  readUser,
  type SessionDay,
  sessionDays,
  sessionsOfUser,
  type UserCursor,
  type UserPart,
  type UsersPart,
  usersOfRecords,
} from './user-records.ts';

/** A piece has at most so many bytes when it is first written, and at most the second number with late records. */
const PIECE_BYTES = 4_000_000;
const MAX_PIECE_BYTES = 12_000_000;
/** The pieces of an object that keeps few records are smaller: this part of what it keeps. */
const PIECES_OF_LIMIT = 8;
/** Up to this limit the bytes of the records are compared with it, above it the size of the whole database. */
const COUNTED_BYTES = 16_000_000;
/** The archive is asked so often whether it has more than the object remembers, which was restored then. */
const CHECK_AFTER_MS = 3_600_000;
/** After a failure it is asked again. */
const RETRY_AFTER_MS = 60_000;
/** Records of the object that one part of a reading has. */
const MAX_PART = 2000;
/** Later than every id. */
const AFTER_ALL = '~';

/** What an object may keep. */
export interface RoomLimits {
  /** Beyond it, the oldest records leave. */
  readonly recordBytes: number;
  /** While the archive fails, records stay up to this size of the database. */
  readonly objectBytes: number;
}

/** What has left an object. */
export interface Moved {
  readonly archived: number;
  readonly deleted: number;
  /** More has to leave. */
  readonly isOver: boolean;
  /** Why records could not be archived. */
  readonly problem: string | null;
}

/** A record of the object, as it is stored. */
interface StoredLine {
  readonly id: string;
  readonly line: string;
}

export interface KeyRecordsPorts {
  readonly sql: SqlStorage;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly keyId: string;
  /** Null: none is bound, and records that leave are deleted. */
  readonly bucket: ArchiveBucket | null;
  /** In ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: StartTimer;
}

export class KeyRecords {
  readonly #ports: KeyRecordsPorts;
  readonly #archive: Archive | null;
  /** The last change of the archive: one at a time. */
  #lastChange: Promise<unknown> = Promise.resolve();
  /** No earlier than this time, in ms since the epoch, the archive is asked again. */
  #checkAt = 0;

  constructor(ports: KeyRecordsPorts) {
    this.#ports = ports;
    const { bucket, keyId, startTimer } = ports;
    this.#archive = bucket === null ? null : new Archive(bucket, keyId, startTimer);
  }

  async find(id: string): Promise<UsageRecord | null> {
    const own = findRecord(this.#ports.sql, id);
    if (own !== null) return own;
    return (await this.#archiveFrom(id))?.find(id) ?? null;
  }

  /** One page, latest first. All methods read the object first: what moves meanwhile is then in the archive, too. */
  async list(query: RecordQuery): Promise<LedgerPage> {
    const own = listRecords(this.#ports.sql, query);
    const from = own.next ?? query.fromId;
    const archive = await this.#archiveFrom(from);
    if (archive === null) return own;
    const { beforeId, limit } = query;
    const part = await archive.latest(from, beforeId, (record) => matchesQuery(record, query), limit);
    const next = latest(own.next, part.next);
    const records = merge(own.records, part.records)
      .filter(({ request_id }) => next === null || request_id >= next)
      .reverse();
    if (records.length <= limit) return { records, next };
    const page = records.slice(0, limit);
    return { records: page, next: page.at(-1)?.request_id ?? next };
  }

  /** All records from one id to another, which is excluded, in order. */
  async *each(fromId: string, beforeId: string): AsyncGenerator<UsageRecord> {
    for (let after: string | null = idBefore(fromId); after !== null; ) {
      const from: string = after;
      const rows = recordsFrom(this.#ports.sql, from, beforeId, MAX_PART);
      const own = { rows, next: rows.length === MAX_PART ? (rows.at(-1)?.request_id ?? null) : null };
      const part = await this.#withArchived(from, beforeId, own, () => true);
      yield* part.rows;
      after = part.next;
    }
  }

  async readUser(names: readonly string[], cursor: UserCursor): Promise<UserPart> {
    const own = readUser(this.#ports.sql, names, cursor);
    if (cursor.id === null) return own;
    const isWanted = ({ user }: UsageRecord) => user !== null && names.includes(user);
    const rows = { rows: own.records, next: own.next?.id ?? null };
    const part = await this.#withArchived(cursor.id, AFTER_ALL, rows, isWanted);
    return { ...own, records: part.rows, next: cursorOf(own.next?.day ?? null, part.next) };
  }

  /** @param beforeId only records with a smaller id, and the sums of their days; null: all */
  async eraseUser(
    names: readonly string[],
    cursor: UserCursor,
    beforeId: string | null,
    eraseSums: (sessions: readonly SessionDay[]) => Promise<void>,
  ): Promise<ErasedUserPart> {
    const { sql, transaction } = this.#ports;
    const end = beforeId ?? AFTER_ALL;
    const isErased = ({ user, request_id }: UsageRecord) =>
      user !== null && names.includes(user) && request_id < end;
    return this.#change(async () => {
      const after = cursor.id;
      const archive = after === null ? null : await this.#archiveFrom(after);
      const found = after === null ? undefined : await archive?.piecesAfter(after, end);
      const changes: { piece: Piece; kept: string[]; etag: string }[] = [];
      const erased: UsageRecord[] = [];
      for (const piece of found?.pieces ?? []) {
        const read = await archive?.read(piece);
        const own = read?.records.filter(({ record }) => isErased(record)) ?? [];
        if (read == null || own.length === 0) continue;
        erased.push(...own.map(({ record }) => record));
        const kept = read.records.flatMap((one) => (own.includes(one) ? [] : one.line));
        changes.push({ piece, kept, etag: read.etag });
      }
      // The sums of sessions first: a repetition finds the sessions again only as long as the records are there.
      const archived = { records: erased, next: found?.next ?? null };
      await eraseSums([...sessionsOfUser(sql, names, cursor, beforeId), ...sessionDays(erased)]);
      const part = transaction(() => eraseUser(sql, names, cursor, beforeId, archived));
      for (const { piece, kept, etag } of changes) {
        if (kept.length > 0) await archive?.write(piece, kept, etag);
        else await archive?.remove([piece]);
      }
      return part;
    });
  }

  async usersOfRecords(after: string, beforeId: string): Promise<UsersPart> {
    const own = usersOfRecords(this.#ports.sql, after, beforeId);
    const rows = { rows: [], next: own.next };
    const part = await this.#withArchived(after, beforeId, rows, ({ user }) => user !== null);
    const names = new Set([...own.names, ...part.rows.flatMap(({ user }) => user ?? [])]);
    return { names: [...names], next: part.next !== null && part.next < beforeId ? part.next : null };
  }

  /** Adds what the archive has to a part of a reading by ascending ids. Each record occurs once. */
  async #withArchived(
    after: string,
    beforeId: string,
    own: { readonly rows: readonly UsageRecord[]; readonly next: string | null },
    isWanted: (record: UsageRecord) => boolean,
  ): Promise<{ readonly rows: readonly UsageRecord[]; readonly next: string | null }> {
    const archive = await this.#archiveFrom(after);
    if (archive === null) return own;
    const { pieces, next: archivedUntil } = await archive.piecesAfter(after, beforeId);
    const next = earliest(own.next, archivedUntil);
    const isInPart = (record: UsageRecord) =>
      record.request_id > after &&
      record.request_id < beforeId &&
      (next === null || record.request_id <= next) &&
      isWanted(record);
    const archived: UsageRecord[] = [];
    for (const piece of pieces)
      for (const { record } of (await archive.read(piece))?.records ?? [])
        if (isInPart(record)) archived.push(record);
    return { rows: merge(own.rows.filter(isInPart), archived), next };
  }

  /** The archive, if it may have records with this id or later ones. */
  async #archiveFrom(id: string): Promise<Archive | null> {
    const { sql } = this.#ports;
    await this.#check();
    const { archived_until } = readState(sql);
    if (archived_until === 0 || id >= firstIdAt(archived_until)) return null;
    if (this.#archive === null)
      throw newProblem('is not bound, and has records of that time: bind the bucket again');
    return this.#archive;
  }

  /** An object that was restored to an earlier time does not know what was archived after that time. */
  async #check(): Promise<void> {
    const { sql, transaction, now } = this.#ports;
    const archive = this.#archive;
    if (archive === null || now() < Math.max(this.#checkAt, readState(sql).archive_checked + CHECK_AFTER_MS))
      return;
    this.#checkAt = now() + RETRY_AFTER_MS;
    try {
      const days = await archive.days();
      const [first, last] = [days[0], days.at(-1)];
      const pieces = last === undefined ? [] : await archive.piecesOf(last);
      transaction(() => {
        for (const piece of pieces) raiseState(sql, 'archived_until', idTime(piece.last) + 1);
        if (first !== undefined) this.#noteFirstDay(first);
        setState(sql, 'archive_checked', now());
      });
    } catch {
      // What the object remembers is right unless it was restored. It asks again later.
    }
  }

  #noteFirstDay(day: number): void {
    const { sql } = this.#ports;
    const { archived_from } = readState(sql);
    if (archived_from === 0 || archived_from > day) setState(sql, 'archived_from', day);
  }

  /** Changes of the archive read a piece and write it, so they follow one another. */
  #change<Value>(change: () => Promise<Value>): Promise<Value> {
    const next = this.#lastChange.then(change, change);
    this.#lastChange = next.catch(() => undefined);
    return next;
  }

  /** How much may be added before `makeRoom` has to run, in bytes of the database. */
  freeBytes({ recordBytes }: RoomLimits): number {
    const { sql } = this.#ports;
    return recordBytes > COUNTED_BYTES
      ? recordBytes - sql.databaseSize
      : recordBytes - countBytes(sql, recordBytes).bytes;
  }

  /** Moves the oldest records into the archive, or deletes them, until the others fit. @param until when it stops, in ms since the epoch */
  async makeRoom(limits: RoomLimits, until: number): Promise<Moved> {
    const { sql, now } = this.#ports;
    const sum = { archived: 0, deleted: 0 };
    let problem: string | null = null;
    for (;;) {
      const end = overflowEnd(sql, limits.recordBytes);
      const isOver = end !== null;
      if (end === null || now() >= until) return { ...sum, isOver, problem };
      const bytes = Math.min(PIECE_BYTES, limits.recordBytes / PIECES_OF_LIMIT);
      if (this.#archive !== null && problem === null) {
        const archive = this.#archive;
        try {
          sum.archived += await this.#change(() => this.#archiveOldest(archive, end, bytes));
          continue;
        } catch (error) {
          problem = error instanceof Error ? error.message : String(error);
        }
      }
      // A full object would stop the key, with its budgets.
      if (this.#archive !== null && sql.databaseSize <= limits.objectBytes)
        return { ...sum, isOver, problem };
      const oldest = oldestLines(sql, end, bytes);
      if (oldest.length === 0) return { ...sum, isOver: false, problem };
      this.#leave(oldest, 'deleted');
      sum.deleted += oldest.length;
    }
  }

  /** @returns how many records have left */
  async #archiveOldest(archive: Archive, end: string, bytes: number): Promise<number> {
    const copied = await copy(archive, oldestLines(this.#ports.sql, end, bytes));
    this.#leave(copied, 'archived');
    return copied.length;
  }

  #leave(lines: readonly StoredLine[], how: 'archived' | 'deleted'): void {
    const { sql, transaction, now } = this.#ports;
    const ids = lines.map(({ id }) => id);
    const [first, last] = [ids[0], ids.at(-1)];
    if (first === undefined || last === undefined) throw new Error('No records can leave');
    transaction(() => {
      const state = readState(sql);
      sql.exec('DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids));
      // Of records from before, which were deleted by their age, no ids are known.
      if (state.moved_before === 0) raiseState(sql, 'known_from', state.deleted_before);
      addLeftIds(sql, ids);
      const forgotten = trimLeftIds(sql, now(), MAX_LEFT_ID_BYTES);
      if (forgotten !== null) raiseState(sql, 'known_from', forgotten + 1);
      const before = idTime(last) + 1;
      raiseState(sql, 'moved_before', before);
      raiseState(sql, 'deleted_before', before);
      if (how === 'archived') {
        raiseState(sql, 'archived_until', before);
        this.#noteFirstDay(dayStart(first));
      } else {
        raiseState(sql, 'lost_before', before);
        setState(sql, 'deleted_records', state.deleted_records + ids.length);
        setState(sql, 'is_note_due', 1);
      }
    });
  }

  /**
   * Deletes archived days that ended before that time, in ms since the epoch.
   * @returns the start of the first day that remains; null: none
   */
  async deleteArchived(before: number): Promise<number | null> {
    const { sql, transaction } = this.#ports;
    const archive = this.#archive;
    const { archived_from, archived_until } = readState(sql);
    if (archived_until === 0) return null;
    if (archived_from + DAY_MS > before) return archived_from;
    // What a bucket has that is not bound any more is for the operator to delete.
    if (archive === null) {
      if (archived_until <= before) transaction(() => setState(sql, 'archived_until', 0));
      return archived_from;
    }
    return this.#change(async () => {
      const days = await archive.days();
      for (const day of days.filter((one) => one + DAY_MS <= before))
        await archive.remove(await archive.piecesOf(day));
      const first = days.find((day) => day + DAY_MS > before) ?? null;
      transaction(() => {
        raiseState(sql, 'lost_before', before);
        setState(sql, 'archived_from', first ?? 0);
        if (first === null) setState(sql, 'archived_until', 0);
      });
      return first;
    });
  }
}

/** Copies lines of one day. @returns those that are in the archive now, at least one */
async function copy(archive: Archive, lines: readonly StoredLine[]): Promise<readonly StoredLine[]> {
  const [first, last] = [lines[0]?.id, lines.at(-1)?.id];
  if (first === undefined || last === undefined) return [];
  const near = (await archive.piecesOf(dayStart(first), first)).filter((piece) => piece.first <= last);
  const covering = near.filter((piece) => piece.first <= first);
  const others = near.filter((piece) => piece.first > first);
  // As far as the same pieces may have the records.
  const end = covering.map((piece) => piece.last).reduce(least, last);
  const border = others.map((piece) => piece.first).reduce(least, AFTER_ALL);
  const part = lines.filter(({ id }) => id <= end && id < border);
  let missing = part;
  for (const piece of covering) {
    const known = new Set((await archive.read(piece))?.records.map(({ record }) => record.request_id));
    missing = missing.filter(({ id }) => !known.has(id));
  }
  if (missing.length === 0) return part;
  const range = { first: missing[0]?.id ?? first, last: missing.at(-1)?.id ?? last };
  const size = missing.reduce((sum, { line }) => sum + line.length, 0);
  const target =
    covering.find((piece) => piece.first === range.first && piece.last === range.last) ??
    covering.find((piece) => piece.bytes + size <= MAX_PIECE_BYTES);
  const read = target === undefined ? null : await archive.read(target);
  if (target === undefined || read === null)
    await archive.write(
      range,
      missing.map(({ line }) => line),
      null,
    );
  else {
    const all = [...read.records.map(({ record, line }) => ({ id: record.request_id, line })), ...missing];
    all.sort((a, b) => (a.id < b.id ? -1 : 1));
    await archive.write(
      target,
      all.map(({ line }) => line),
      read.etag,
    );
  }
  return part;
}

/** The oldest records of one day, with smaller ids than `end`, together about so many bytes, and at least one. */
function oldestLines(sql: SqlStorage, end: string, bytes: number): StoredLine[] {
  const lines: StoredLine[] = [];
  let size = 0;
  for (const row of sql.exec('SELECT id, record FROM records WHERE id < ? ORDER BY id', end)) {
    const [id, line] = [String(row.id), String(row.record)];
    const day = dayStart(lines[0]?.id ?? id);
    if (dayStart(id) !== day || (lines.length > 0 && size + line.length > bytes)) break;
    lines.push({ id, line });
    size += line.length;
  }
  return lines;
}

/** The id before which records have to leave; null: all fit. */
function overflowEnd(sql: SqlStorage, limit: number): string | null {
  if (sql.databaseSize <= limit) return null;
  if (limit > COUNTED_BYTES) return AFTER_ALL;
  if (!countBytes(sql, limit).isOver) return null;
  return countBytes(sql, limit - limit / PIECES_OF_LIMIT).end;
}

/** The newest records that have together at most so many bytes. `end`: before the first of them. */
function countBytes(sql: SqlStorage, limit: number) {
  let bytes = 0;
  let end = AFTER_ALL;
  const select = 'SELECT id, LENGTH(CAST(record AS BLOB)) AS bytes FROM records ORDER BY id DESC';
  for (const row of sql.exec(select)) {
    if (bytes + Number(row.bytes) > limit) return { bytes, end, isOver: true };
    bytes += Number(row.bytes);
    end = String(row.id);
  }
  return { bytes, end, isOver: false };
}

/** Each record once, in the order of the ids. */
function merge(a: readonly UsageRecord[], b: readonly UsageRecord[]): UsageRecord[] {
  const byId = new Map([...b, ...a].map((record) => [record.request_id, record]));
  return [...byId.values()].sort((one, other) => (one.request_id < other.request_id ? -1 : 1));
}

function cursorOf(day: number | null, id: string | null): UserCursor | null {
  return day === null && id === null ? null : { day, id };
}

function least(a: string, b: string): string {
  return a < b ? a : b;
}

/** Null is the end of all. */
function earliest(a: string | null, b: string | null): string | null {
  return a === null || b === null ? (a ?? b) : least(a, b);
}

function latest(a: string | null, b: string | null): string | null {
  return a === null || b === null ? (a ?? b) : a > b ? a : b;
}

/** The records of a directory's keys as far as it has room: lists over all keys, and reports that no sum answers, read them. */
import { matchesQuery, type RecordQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { FACTS, isTagGroup, type ReportFilter } from '../../metering/report.ts';
import { endOfIds, firstIdAt, HOUR_MS, idAfter, idTime } from '../../metering/time.ts';
import { decodeStored, type LedgerPage } from '../records/records.ts';
import { HOURS_PER_DAY, type Span } from '../records/sums.ts';
import { readDirectoryState } from './tables.ts';

/** A part is appended to until it has so many characters. A page of a list reads one part of each key. */
const PART_CHARS = 16_384;
/** What the records of a directory take at most, about; the oldest hours are deleted beyond it. */
export const MAX_RECENT_BYTES = 1_000_000_000;
/** Pages of SQLite beside the part of a row that is in the table itself. */
const PAGE_BYTES = 4096;
const LOCAL_BYTES = 500;
/** Records that one page of a list reads. */
const MAX_SCANNED_RECORDS = 10_000;

/** Lines of JSON, in parts of an hour and a key. `requests` counts erased records, too. */
export function createRecent(sql: SqlStorage): void {
  sql.exec(`CREATE TABLE IF NOT EXISTS recent (
    hour INTEGER NOT NULL, key TEXT NOT NULL, part INTEGER NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL,
    requests INTEGER NOT NULL, chars INTEGER NOT NULL, records TEXT NOT NULL, PRIMARY KEY (hour, key, part)
  ) STRICT, WITHOUT ROWID`);
}

/** A page of a directory's records. */
export interface RecentPage extends LedgerPage {
  /** Every matching record that was sent, has this id or a later one, and is before the query's bound, is on this page or a next one. */
  readonly from: string;
}

/** Stores records of a key, each once. The caller wraps this in a transaction. */
export function takeRecent(sql: SqlStorage, keyId: string, records: readonly UsageRecord[]): void {
  const byHour = Map.groupBy(records, ({ request_id }) => Math.floor(idTime(request_id) / HOUR_MS));
  for (const [hour, own] of byHour) {
    const stored = [
      ...sql.exec(
        'SELECT part, first, last, chars FROM recent WHERE hour = ? AND key = ? ORDER BY part',
        ...[hour, keyId],
      ),
    ].map(readPart);
    const fresh = new Map(own.map((record) => [record.request_id, record]));
    for (const { part, first, last } of stored) {
      const near = [...fresh.keys()].filter((id) => id >= first && id <= last);
      if (near.length === 0) continue;
      const { records: text } = sql
        .exec('SELECT records FROM recent WHERE hour = ? AND key = ? AND part = ?', hour, keyId, part)
        .one();
      for (const id of near) if (String(text).includes(idField(id))) fresh.delete(id);
    }
    append(sql, { hour, keyId, after: stored.at(-1) ?? null }, [...fresh.values()]);
  }
}

interface Part {
  readonly part: number;
  readonly first: string;
  readonly last: string;
  readonly chars: number;
}

function readPart({ part, first, last, chars }: Record<string, SqlStorageValue>): Part {
  return { part: Number(part), first: String(first), last: String(last), chars: Number(chars) };
}

/** As {@link append} writes it. */
function idField(id: string): string {
  return `"request_id":"${id}"`;
}

const APPEND = `INSERT INTO recent VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
  first = MIN(first, excluded.first), last = MAX(last, excluded.last), requests = requests + excluded.requests,
  chars = chars + excluded.chars, records = records || excluded.records`;

function append(
  sql: SqlStorage,
  { hour, keyId, after }: { readonly hour: number; readonly keyId: string; readonly after: Part | null },
  records: readonly UsageRecord[],
): void {
  let part = after?.part ?? 0;
  let chars = after?.chars ?? 0;
  let lines: string[] = [];
  let ids: string[] = [];
  const write = () => {
    const [first, last, text] = [ids[0], ids.at(-1), lines.join('')];
    if (first === undefined || last === undefined) return;
    sql.exec(APPEND, hour, keyId, part, first, last, ids.length, text.length, text);
    [lines, ids] = [[], []];
  };
  for (const record of records.toSorted((a, b) => (a.request_id < b.request_id ? -1 : 1))) {
    const line = `${JSON.stringify(record)}\n`;
    if (chars > 0 && chars + line.length > PART_CHARS) {
      write();
      part++;
      chars = 0;
    }
    chars += line.length;
    lines.push(line);
    ids.push(record.request_id);
  }
  write();
}

function decode(text: SqlStorageValue | undefined): UsageRecord[] {
  return String(text)
    .split('\n')
    .flatMap((line) => (line === '' ? [] : decodeStored(line)));
}

/**
 * A SELECT of `hour` and `key` where the records of an hour are not as many as its sums say: they were deleted, or never sent. Its
 * bindings are the first hour and the one after the last.
 */
export const INCOMPLETE = `SELECT hour, key FROM key_hours WHERE hour >= ? AND hour < ? GROUP BY hour, key
  HAVING SUM(requests) IS NOT (SELECT SUM(requests) FROM recent WHERE recent.hour = key_hours.hour AND recent.key = key_hours.key)`;

/** The hours of these (since the epoch) in which records of this key are missing. */
export function missingHours(sql: SqlStorage, keyId: string, hours: Iterable<number>): number[] {
  const select = `SELECT hour FROM (${INCOMPLETE}) WHERE key = ?`;
  return [...hours].filter((hour) => !sql.exec(select, hour, hour + 1, keyId).next().done);
}

/** The first hour from which on the sums of hours say which keys had requests. */
function hoursKnownFrom(sql: SqlStorage): number {
  const { last } = sql.exec('SELECT MAX(day) AS last FROM unsummed_days').one();
  const unsummed = last === null ? 0 : Number(last) + 1;
  return Math.max(readDirectoryState(sql).details_from, unsummed) * HOURS_PER_DAY;
}

/** Texts that the line of each matching record has, so that most others need not be read. */
function needlesOf(only: ReportFilter): readonly string[] {
  const values = [only.error, ...FACTS.map((fact) => only[fact])];
  for (const name of Object.keys(only)) if (isTagGroup(name)) values.push(only[name]);
  return values.flatMap((value) => (value === undefined || value === '' ? [] : JSON.stringify(value)));
}

const HAS_NEEDLES = '(SELECT COUNT(*) FROM json_each(?) WHERE instr(records, value) = 0) = 0';

/** The latest matching records first, hour by hour as far as all keys have sent theirs. */
export function listRecent(sql: SqlStorage, query: RecordQuery): RecentPage {
  const known = hoursKnownFrom(sql);
  const scan = new Scan(query);
  const firstHour = Math.floor(idTime(query.fromId) / HOUR_MS);
  const least = Math.max(firstHour, known);
  const select = 'SELECT MAX(hour) AS hour FROM key_hours WHERE hour <= ? AND hour >= ?';
  for (let at = Math.floor((endOfIds(query.beforeId) - 1) / HOUR_MS); ; ) {
    const { hour } = sql.exec(select, at, least).one();
    if (hour === null) return { ...scan.page, from: known > firstHour ? bounded(known, query) : '' };
    at = Number(hour);
    if (!sql.exec(`${INCOMPLETE} LIMIT 1`, at, at + 1).next().done)
      return { ...scan.page, from: bounded(at + 1, query) };
    const next = scan.hour(sql, at);
    if (next !== null) return { records: scan.page.records, next, from: '' };
    at--;
  }
}

/** The start of an hour, or the bound of the query where that is earlier. */
function bounded(hour: number, { beforeId }: RecordQuery): string {
  const id = firstIdAt(hour * HOUR_MS);
  return id < beforeId ? id : beforeId;
}

/** Collects the records of one page. */
class Scan {
  readonly #query: RecordQuery;
  readonly #records: UsageRecord[] = [];
  readonly #needles: string;
  #scanned = 0;

  constructor(query: RecordQuery) {
    this.#query = query;
    this.#needles = JSON.stringify(needlesOf(query.only ?? {}));
  }

  get page(): LedgerPage {
    return { records: this.#records, next: null };
  }

  /** Adds the matching records of an hour. @returns where the next page begins; null: the page has room for more */
  hour(sql: SqlStorage, hour: number): string | null {
    const { fromId, beforeId } = this.#query;
    const parts = sql.exec(
      `SELECT key, part, first, last, chars FROM recent WHERE hour = ? AND first < ? AND last >= ? AND ${HAS_NEEDLES} ORDER BY last DESC`,
      ...[hour, beforeId, fromId, this.#needles],
    );
    const select = 'SELECT records FROM recent WHERE hour = ? AND key = ? AND part = ?';
    let waiting: UsageRecord[] = [];
    for (const row of [...parts]) {
      const { part, last } = readPart(row);
      // All later records are known. Parts at the bound are always read, so that each page ends before the one before it.
      if (last < beforeId) {
        waiting = this.#take(waiting, last);
        if (this.#records.length >= this.#query.limit) return this.#end;
        if (this.#scanned >= MAX_SCANNED_RECORDS) return idAfter(last);
      }
      const own = decode(sql.exec(select, hour, String(row.key), part).one().records);
      if (last < beforeId) this.#scanned += own.length;
      waiting.push(...own.filter((record) => this.#isWanted(record)));
      // More than a page has no room in memory. They are read again for the next page.
      if (waiting.length > 2 * this.#query.limit) waiting = newestOf(waiting).slice(0, this.#query.limit);
    }
    this.#take(waiting, '');
    return this.#records.length >= this.#query.limit ? this.#end : null;
  }

  get #end(): string {
    return this.#records.at(-1)?.request_id ?? '';
  }

  #isWanted(record: UsageRecord): boolean {
    const { fromId, beforeId } = this.#query;
    const { request_id } = record;
    return request_id >= fromId && request_id < beforeId && matchesQuery(record, this.#query);
  }

  /** Moves records after this id onto the page, the latest first. @returns the others */
  #take(waiting: readonly UsageRecord[], after: string): UsageRecord[] {
    const sorted = newestOf(waiting);
    const later = sorted.filter(({ request_id }) => request_id > after);
    this.#records.push(...later.slice(0, this.#query.limit - this.#records.length));
    return sorted.slice(later.length);
  }
}

function newestOf(records: readonly UsageRecord[]): UsageRecord[] {
  return records.toSorted((a, b) => (a.request_id < b.request_id ? 1 : -1));
}

/** The records of these hours, of keys after one and up to another; null: of all. No other statement may change them meanwhile. */
export function* recentRecords(
  sql: SqlStorage,
  { from, to }: Span,
  { after, last }: { readonly after: string; readonly last: string | null },
  only: ReportFilter,
  isRead: (keyId: string, day: number) => boolean,
): Generator<UsageRecord> {
  const known = hoursKnownFrom(sql);
  const select = `SELECT hour, key, records FROM recent
    WHERE hour >= ?1 AND hour < ?2 AND key > ?3 AND (?4 IS NULL OR key <= ?4) AND ${HAS_NEEDLES.replace('?', '?5')}`;
  const needles = JSON.stringify(needlesOf(only));
  for (const row of sql.exec(select, Math.max(from, known), to, after, last, needles))
    if (isRead(String(row.key), Math.floor(Number(row.hour) / HOURS_PER_DAY))) yield* decode(row.records);
}

export function findRecent(sql: SqlStorage, id: string): UsageRecord | null {
  const hour = Math.floor(idTime(id) / HOUR_MS);
  const rows = sql.exec(
    'SELECT records FROM recent WHERE hour = ?1 AND first <= ?2 AND last >= ?2 AND instr(records, ?3) > 0',
    ...[hour, id, idField(id)],
  );
  for (const { records } of rows)
    for (const record of decode(records)) if (record.request_id === id) return record;
  return null;
}

/** Deletes records of a key's user. @param beforeId only those with a smaller id; null: all */
export function eraseRecent(
  sql: SqlStorage,
  keyId: string,
  users: readonly string[],
  beforeId: string | null,
): void {
  const names = JSON.stringify(users.map((user) => JSON.stringify(user)));
  const select = `SELECT hour, part FROM recent WHERE key = ? AND EXISTS (SELECT 1 FROM json_each(?) WHERE instr(records, value) > 0)`;
  const same = 'hour = ? AND key = ? AND part = ?';
  for (const [hour = 0, part = 0] of [...sql.exec(select, keyId, names).raw()]) {
    const { records } = sql.exec(`SELECT records FROM recent WHERE ${same}`, hour, keyId, part).one();
    const kept = decode(records).filter(
      ({ user, request_id }) =>
        user === null || !users.includes(user) || (beforeId !== null && request_id >= beforeId),
    );
    const text = kept.map((record) => `${JSON.stringify(record)}\n`).join('');
    sql.exec(
      `UPDATE recent SET records = ?, chars = ? WHERE ${same}`,
      ...[text, text.length, hour, keyId, part],
    );
  }
}

const BYTES = `TOTAL(${LOCAL_BYTES} + (chars + ${PAGE_BYTES - LOCAL_BYTES}) / ${PAGE_BYTES} * ${PAGE_BYTES})`;

/** Deletes the oldest hours of records that have no room. */
export function trimRecent(sql: SqlStorage, maxBytes: number): void {
  let excess = Number(sql.exec(`SELECT ${BYTES} AS bytes FROM recent`).one().bytes) - maxBytes;
  while (excess > 0) {
    const [oldest] = sql.exec(
      `SELECT hour, ${BYTES} AS bytes FROM recent GROUP BY hour ORDER BY hour LIMIT 1`,
    );
    if (oldest === undefined) return;
    sql.exec('DELETE FROM recent WHERE hour = ?', oldest.hour ?? null);
    excess -= Number(oldest.bytes);
  }
}

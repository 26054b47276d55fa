/** The ledger in KV (`LEDGER=kv`): each record is a separate, immutable entry, and queries read the entries' metadata. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, readArray, readCount, readText } from '../shared/json.ts';
import { MAX_BULK_GET, REFUSALS_KEPT_DAYS } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { compareSession } from './cache-breaks.ts';
import {
  type Ledger,
  type ListedRecord,
  matchesQuery,
  type RecordPage,
  type RecordQuery,
  type ReportQuery,
} from './ledger.ts';
import {
  decodeRecord,
  decodeUsageRecord,
  encodeRecord,
  type RecordSummary,
  recordText,
  type UsageRecord,
  withoutUser,
} from './record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from './refusals.ts';
import { CACHE_CAUSE, factsOf, isTagGroup, matchesFilter, Report } from './report.ts';
import { DAY_MS, daysBetween, endOfIds, firstIdAt, HOUR_MS, idTime, isoDay, isoTime } from './time.ts';

/** KV listings of 1,000 records each in one usage report: below the subrequest limit of Workers Free. */
export const MAX_REPORT_LISTINGS = 900;

/** Concurrent KV listings: a Worker may have six open connections. */
export const REPORT_LISTINGS_AT_ONCE = 6;

/** The part of a KV namespace that the ledger uses. */
export type LedgerStore = Pick<KVNamespace, 'get' | 'put' | 'list'>;

/**
 * The ledger in KV (`LEDGER=kv`): one entry for each record, with its numbers in the metadata, so that a report lists
 * and reads no values.
 */
export class KvLedger implements Ledger {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** The value is the complete record; the metadata is its summary. Idempotent: a record always has the same key and value. */
  async put(records: readonly UsageRecord[]): Promise<void> {
    await Promise.all(records.map((record) => putRecord(this.#store, record)));
  }

  async report({ fromMs, toMs, keyId, groups, only = {} }: ReportQuery): Promise<Result<Report, ApiError>> {
    const facts = factsOf(groups, only);
    if (facts.includes(CACHE_CAUSE)) return failure(NO_CAUSES);
    if (facts.some(isTagGroup)) return failure(NO_TAGS);
    const report = new Report(groups);
    const listings = new Listings(this.#store);
    const isComplete = await listings.read(dayPrefixes(daysBetween(fromMs, toMs), keyId), ({ metadata }) => {
      const record = decodeRecord(metadata);
      const time = Date.parse(record?.time ?? '');
      if (record !== null && time >= fromMs && time < toMs && matchesFilter(record, only))
        report.addRecord(record);
    });
    return isComplete ? ok(report) : failure(TOO_MANY_RECORDS);
  }

  /** A list of one session explains the breaks of its prompt cache. */
  async list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    const page = await this.#list(query);
    const session = query.only?.session ?? '';
    if (page.kind === 'error' || session === '') return page;
    return ok({ ...page.value, records: await this.#withCaches(page.value.records, session, query) });
  }

  /**
   * Compares records with those of their session, whatever else the query selects. A session that is too large to be
   * read has no comparison.
   */
  async #withCaches(
    records: readonly ListedRecord[],
    session: string,
    { keyId }: RecordQuery,
  ): Promise<readonly ListedRecord[]> {
    const times = records.filter(({ prefix }) => prefix !== undefined).map(({ time }) => Date.parse(time));
    if (times.length === 0) return records;
    const whole = await this.#list({
      fromId: firstIdAt(Math.min(...times) - COMPARED_MS),
      beforeId: firstIdAt(Math.max(...times) + 1),
      keyId,
      model: null,
      statuses: null,
      only: { session },
      limit: MAX_COMPARED_RECORDS,
    });
    if (whole.kind === 'error') return records;
    const complete = whole.value.records.filter(isComplete);
    // Two keys may use the same name of a session.
    const reports = new Map(
      [...Map.groupBy(complete, ({ key_id }) => key_id).values()].flatMap((own) => [...compareSession(own)]),
    );
    return records.map((record) => {
      const cache = reports.get(record.request_id);
      return cache === undefined ? record : { ...record, cache };
    });
  }

  /** KV lists in ascending order only, so the latest records of a day are known when the whole day has been read. */
  async #list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    const { fromId, beforeId, keyId, limit, only = {} } = query;
    const facts = factsOf([], only);
    if (facts.includes(CACHE_CAUSE)) return failure(NO_CAUSES);
    if (facts.some(isTagGroup)) return failure(NO_TAGS);
    const newest = new NewestRecords(limit);
    const listings = new Listings(this.#store);
    const days = daysBetween(idTime(fromId), endOfIds(beforeId)).reverse();
    /** The first id of the days that were read completely. */
    let readFrom: string | null = null;
    let at = 0;
    for (let size = 1; at < days.length && !newest.isFull; at += size, size = REPORT_LISTINGS_AT_ONCE) {
      const some = days.slice(at, at + size);
      const isComplete = await listings.read(dayPrefixes(some, keyId), ({ name, metadata }) => {
        const id = requestIdOf(name);
        const record = id >= fromId && id < beforeId ? decodeRecord(metadata) : null;
        if (record !== null && matchesQuery(record, query)) newest.add(record);
      });
      if (!isComplete) {
        if (readFrom === null) return failure(TOO_MANY_RECORDS);
        // The next page begins with the days that were read only in part.
        const complete = newest.records.filter(({ request_id }) => request_id >= String(readFrom));
        return ok({ records: await readAll(this.#store, complete), next: readFrom });
      }
      readFrom = firstIdAt(Date.parse(some.at(-1) ?? ''));
    }
    const { records } = newest;
    const hasMore = newest.isTruncated || at < days.length;
    const next = hasMore ? (records.at(-1)?.request_id ?? null) : null;
    return ok({ records: await readAll(this.#store, records), next });
  }

  async find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>> {
    if (keyId !== null) {
      const value = await this.#store.get(recordKey({ request_id: requestId, key_id: keyId }), 'json');
      return ok(decodeUsageRecord(value));
    }
    let found: RecordSummary | null = null;
    const prefix = dayPrefix(isoDay(idTime(requestId)), null);
    const isComplete = await new Listings(this.#store).read([prefix], ({ name, metadata }) => {
      if (requestIdOf(name) === requestId) found = decodeRecord(metadata);
    });
    if (found === null) return isComplete ? ok(null) : failure(TOO_MANY_RECORDS);
    const [record] = await readAll(this.#store, [found]);
    return ok(record ?? null);
  }

  /** Idempotent: a batch always has the same keys and values. */
  async putRefusals({ id, rows }: RefusalBatch): Promise<void> {
    const byDay = Map.groupBy(rows, ({ hour }) => isoDay(hour * HOUR_MS));
    const entries = [...byDay].flatMap(([day, own]) =>
      Array.from({ length: Math.ceil(own.length / ROWS_PER_ENTRY) }, (_, n) => {
        const some = own.slice(n * ROWS_PER_ENTRY, (n + 1) * ROWS_PER_ENTRY);
        const metadata = {
          rows: some.map(({ hour, keyId, code, requests }) => [hour, keyId, code, requests]),
        };
        return { name: `${REFUSALS}${day}/${id}-${n}`, metadata };
      }),
    );
    await Promise.all(
      entries.map(({ name, metadata }) =>
        this.#store.put(name, '', { metadata, expirationTtl: REFUSALS_KEPT_SECONDS }),
      ),
    );
  }

  async refusals({
    fromHour,
    toHour,
    keyId,
  }: RefusalQuery): Promise<Result<readonly RefusalRow[], ApiError>> {
    const days = daysBetween(fromHour * HOUR_MS, toHour * HOUR_MS);
    const months = new Set(days.map((day) => `${REFUSALS}${day.slice(0, 7)}`));
    const prefixes = days.length <= MAX_REFUSAL_DAYS ? days.map((day) => `${REFUSALS}${day}/`) : [...months];
    const rows: RefusalRow[] = [];
    const isComplete = await new Listings(this.#store).read(prefixes, ({ metadata }) => {
      for (const row of decodeRefusals(metadata)) {
        const isInRange = row.hour >= fromHour && row.hour < toHour;
        if (isInRange && (keyId === null || keyId === row.keyId)) rows.push(row);
      }
    });
    return isComplete ? ok(rows) : failure(TOO_MANY_RECORDS);
  }
}

/** The names of one KV listing. */
const MAX_LISTED_NAMES = 1000;

/** A page of all records in KV, in the order of their days. @param cursor null: the first page */
export async function listRecords(
  store: Pick<LedgerStore, 'list'>,
  cursor: string | null,
  limit = MAX_LISTED_NAMES,
): Promise<{ readonly records: readonly RecordSummary[]; readonly next: string | null }> {
  const page: KVNamespaceListResult<unknown> = await store.list({ prefix: RECORDS, cursor, limit });
  const records = page.keys.flatMap(({ metadata }) => decodeRecord(metadata) ?? []);
  return { records, next: page.list_complete ? null : page.cursor };
}

/** Adds the fields that only values have. A record whose value KV does not return yet stays a summary. */
export async function* readRecords(
  store: Pick<LedgerStore, 'get'>,
  records: readonly RecordSummary[],
): AsyncGenerator<ListedRecord> {
  for (let at = 0; at < records.length; at += MAX_BULK_GET) {
    const some = records.slice(at, at + MAX_BULK_GET);
    const values: ReadonlyMap<string, unknown> = await store.get(some.map(recordKey), 'json');
    for (const summary of some) yield { ...summary, ...decodeUsageRecord(values.get(recordKey(summary))) };
  }
}

/**
 * Writes records again without who sent them and what a provider said about them. Their tokens and costs stay in reports.
 * @returns the number of calls
 */
export async function forgetUser(
  store: Pick<LedgerStore, 'get' | 'put'>,
  records: readonly RecordSummary[],
): Promise<number> {
  const complete = await readAll(store, records);
  const erased = complete.map((record) => withoutUser({ tags: {}, attempts: [], ...record }));
  await Promise.all(erased.map((record) => putRecord(store, record)));
  return erased.length + Math.ceil(erased.length / MAX_BULK_GET);
}

function putRecord(store: Pick<LedgerStore, 'put'>, record: UsageRecord): Promise<void> {
  return store.put(recordKey(record), recordText(record), { metadata: encodeRecord(record) });
}

function readAll(
  store: Pick<LedgerStore, 'get'>,
  records: readonly RecordSummary[],
): Promise<readonly ListedRecord[]> {
  return Array.fromAsync(readRecords(store, records));
}

/** How long before the first record of a page the earlier requests of its session are read. */
const COMPARED_MS = DAY_MS;
/** Records of a session that are compared at once. */
const MAX_COMPARED_RECORDS = 1000;

/** Whether KV has returned the record's value. */
function isComplete(record: ListedRecord): record is UsageRecord {
  return record.attempts !== undefined;
}

/** A listing reads metadata, which has no room for tags. */
const NO_TAGS = apiError(
  'invalid_request',
  'Reports and lists by tag need LEDGER=object: with LEDGER=kv, tags are in single records only',
  'tag',
);

/** Requests are compared when a session is read, so that no listing knows their causes. */
const NO_CAUSES = apiError(
  'invalid_request',
  'Reports and lists by cache_cause need LEDGER=object: with LEDGER=kv, only lists of one session have it',
  'cache_cause',
);

const TOO_MANY_RECORDS = apiError(
  'invalid_request',
  `The query reads more records than KV can list for one request (${MAX_REPORT_LISTINGS * 1000}). Query fewer days or one key, or set LEDGER=object, which has no such limit`,
  'from',
);

// Keys of records: `usage/<day>/<key id>/<time>-<request id>`, so one prefix selects a day, or one key's day. Each record has its own
// key, because KV takes one write a second for a key. The key follows from the request id and the key id.

const RECORDS = 'usage/';
/** `-<request id>` at the end. */
const ID_CHARS = 36;
/** `2026-11-22`. */
const DAY_CHARS = 10;

/** The name of a record's KV entry, from which its day and its key can be listed. */
export function recordKey({ request_id, key_id }: Pick<RecordSummary, 'request_id' | 'key_id'>): string {
  const time = isoTime(idTime(request_id));
  return `${dayPrefix(time.slice(0, DAY_CHARS), key_id)}${time.slice(DAY_CHARS + 1)}-${request_id}`;
}

function requestIdOf(key: string): string {
  return key.slice(-ID_CHARS);
}

/** @param keyId null: all keys */
export function dayPrefix(day: string, keyId: string | null): string {
  return keyId === null ? `${RECORDS}${day}/` : `${RECORDS}${day}/${keyId}/`;
}

function dayPrefixes(days: readonly string[], keyId: string | null): string[] {
  return days.map((day) => dayPrefix(day, keyId));
}

// Counts of refused requests: `refused/<day>/<batch id>-<n>`, with some rows in the metadata of each entry.

const REFUSALS = 'refused/';
/** A row takes at most 90 bytes, and metadata holds 1,024. */
const ROWS_PER_ENTRY = 10;
const REFUSALS_KEPT_SECONDS = REFUSALS_KEPT_DAYS * (DAY_MS / 1000);
/** Longer ranges list whole months: the entries are few, and one listing reads up to a thousand of them. */
const MAX_REFUSAL_DAYS = 3;

function decodeRefusals(metadata: unknown): RefusalRow[] {
  return readArray(isObject(metadata) ? metadata.rows : undefined).flatMap((row) => {
    const [first, second, third, fourth] = readArray(row);
    const hour = readCount(first);
    const keyId = readText(second);
    const code = readText(third);
    const requests = readCount(fourth);
    const isRow = hour !== undefined && keyId !== undefined && code !== undefined && requests !== undefined;
    return isRow ? { hour, keyId, code, requests } : [];
  });
}

interface KvEntry {
  readonly name: string;
  readonly metadata: unknown;
}

/** Lists KV entries, a thousand for each call, up to the calls that one request may make. */
class Listings {
  readonly #store: Pick<KVNamespace, 'list'>;
  #callsLeft = MAX_REPORT_LISTINGS;

  constructor(store: Pick<KVNamespace, 'list'>) {
    this.#store = store;
  }

  /**
   * Passes every entry below the prefixes to `onEntry`, in no particular order. Several prefixes are read concurrently.
   * @returns false if no calls are left: some entries were not read
   */
  async read(prefixes: readonly string[], onEntry: (entry: KvEntry) => void): Promise<boolean> {
    const remaining = prefixes[Symbol.iterator]();
    const readRemaining = async (): Promise<boolean> => {
      for (const prefix of remaining) if (!(await this.#readPrefix(prefix, onEntry))) return false;
      return true;
    };
    const readers = Array.from({ length: REPORT_LISTINGS_AT_ONCE }, readRemaining);
    return (await Promise.all(readers)).every(Boolean);
  }

  async #readPrefix(prefix: string, onEntry: (entry: KvEntry) => void): Promise<boolean> {
    let cursor: string | null = null;
    do {
      if (this.#callsLeft-- <= 0) return false;
      const page: KVNamespaceListResult<unknown> = await this.#store.list({ prefix, cursor });
      for (const { name, metadata } of page.keys) onEntry({ name, metadata });
      cursor = page.list_complete ? null : page.cursor;
    } while (cursor !== null);
    return true;
  }
}

/** Keeps the latest `limit` records of many that are added in no particular order. */
class NewestRecords {
  readonly #limit: number;
  #records: RecordSummary[] = [];
  #isTruncated = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(record: RecordSummary): void {
    this.#records.push(record);
    if (this.#records.length >= 4 * this.#limit) this.#truncate();
  }

  get isFull(): boolean {
    return this.#records.length >= this.#limit;
  }

  /** The latest first. */
  get records(): readonly RecordSummary[] {
    this.#truncate();
    return this.#records;
  }

  /** More records were added than are kept. */
  get isTruncated(): boolean {
    return this.#isTruncated || this.#records.length > this.#limit;
  }

  #truncate(): void {
    this.#records.sort((a, b) => (a.request_id > b.request_id ? -1 : 1));
    if (this.#records.length <= this.#limit) return;
    this.#isTruncated = true;
    this.#records = this.#records.slice(0, this.#limit);
  }
}

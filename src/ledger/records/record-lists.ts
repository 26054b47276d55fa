/** Lists of records over all keys: from the directories as far as they have them, before that hour by hour from the objects of keys. */
import { type KeyPortion, type RecordPage, type RecordQuery, writeCursor } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { firstIdAt, HOUR_MS } from '../../metering/time.ts';
import { MAX_QUERIED_LEDGERS, QUERIED_LEDGERS_AT_ONCE } from '../../shared/limits.ts';
import type { ActiveHour, ActiveHours } from '../directory/active-keys.ts';
import type { RecentPage } from '../directory/recent-records.ts';
import { DIRECTORIES } from '../ledger-calls.ts';
import type { LedgerPage } from './records.ts';

/** The fewest records that one call reads from an object, however many objects there are. */
const MIN_CHUNK = 20;

export interface ListCalls {
  recent(directory: string, query: RecordQuery): Promise<RecentPage>;
  hours(directory: string, query: RecordQuery, beforeKey: string | null): Promise<ActiveHours>;
  ofKey(keyId: string, query: RecordQuery): Promise<LedgerPage>;
}

/** Calls of directories for one page, which may have to search for matching records. */
const MAX_DIRECTORY_CALLS = 4 * DIRECTORIES.length;

/**
 * The latest records of all keys first. A page reads {@link MAX_QUERIED_LEDGERS} objects of keys at most, each again as
 * far as it is needed.
 */
export async function listAll(query: RecordQuery, calls: ListCalls): Promise<RecordPage> {
  if (query.portion !== undefined) return listHours(query, [], calls);
  const { records, next, floor } = await listRecent(query, calls);
  if (next !== null || floor <= query.fromId) return { records, next };
  const beforeId = floor < query.beforeId ? floor : query.beforeId;
  return listHours({ ...query, beforeId }, records, calls);
}

/** A page of the records of one key that is spread over several ledgers, the latest first. */
export async function listLedgers(
  ledgers: readonly string[],
  query: RecordQuery,
  read: ReadSource,
): Promise<RecordPage> {
  const merge = new Merge(ledgers, query, read, 2 * MAX_QUERIED_LEDGERS);
  await merge.start();
  const records: UsageRecord[] = [];
  while (records.length < query.limit) {
    const record = await merge.next();
    if (record === null) return { records, next: null };
    if (record === 'spent') return { records, next: merge.position };
    records.push(record);
  }
  return { records, next: records.at(-1)?.request_id ?? null };
}

/** The part of a page that directories have. */
interface RecentPart {
  readonly records: readonly UsageRecord[];
  /** Not null: the page ends here. */
  readonly next: string | null;
  /** All matching records with this id or a later one are among them. */
  readonly floor: string;
}

async function listRecent(query: RecordQuery, calls: ListCalls): Promise<RecentPart> {
  let floor = '';
  const read = async (name: string, own: RecordQuery) => {
    const page = await calls.recent(name, own);
    if (page.from > floor) floor = page.from;
    return page;
  };
  const merge = new Merge(DIRECTORIES, query, read, MAX_DIRECTORY_CALLS);
  await merge.start();
  const records: UsageRecord[] = [];
  while (records.length < query.limit) {
    const record = await merge.next();
    const at = record === 'spent' ? merge.position : record?.request_id;
    if (at == null || at < floor) return { records, next: null, floor };
    if (record === 'spent') return { records, next: at, floor };
    if (record !== null) records.push(record);
  }
  return { records, next: records.at(-1)?.request_id ?? null, floor };
}

/** @param newer the records before these, on the same page */
async function listHours(
  query: RecordQuery,
  newer: readonly UsageRecord[],
  calls: ListCalls,
): Promise<RecordPage> {
  const records = [...newer];
  const active = await hoursOf(query, calls);
  let { hours } = active;
  let { beforeId } = query;
  let read = 0;
  for (let isFirst = true; hours.length > 0; isFirst = false) {
    const batch = isFirst
      ? firstBatch(active, query, query.limit - records.length)
      : completeHours({ ...active, hours }, query.limit - records.length);
    const end = firstIdAt(((hours[0]?.hour ?? 0) + 1) * HOUR_MS);
    // The keys of the last hour are known in part: the next page asks for them first.
    if (batch === null) return { records, next: end };
    const { keyIds, fromHour, portion, rest } = batch;
    const start = firstIdAt(fromHour * HOUR_MS);
    const fromId = start > query.fromId ? start : query.fromId;
    const merge = new Merge(keyIds, { ...query, fromId, beforeId }, calls.ofKey, 2 * MAX_QUERIED_LEDGERS);
    await merge.start();
    for (;;) {
      const last = records.at(-1);
      if (records.length === query.limit && last !== undefined)
        return { records, next: writeCursor(last.request_id, portion) };
      const record = await merge.next();
      if (record === null) break;
      if (record === 'spent') return { records, next: writeCursor(merge.position ?? fromId, portion) };
      records.push(record);
    }
    if (portion !== null && portion.lastKey !== '') {
      const next = { boundId: portion.boundId, beforeKey: portion.lastKey, lastKey: '' };
      return { records, next: writeCursor(portion.boundId, next) };
    }
    read += merge.calls;
    beforeId = start;
    hours = rest;
    if (read >= MAX_QUERIED_LEDGERS && hours.length > 0) return { records, next: beforeId };
  }
  return { records, next: null };
}

/** The hours with records, from all directories: as many as are known completely. */
async function hoursOf(query: RecordQuery, calls: ListCalls): Promise<ActiveHours> {
  const { portion } = query;
  const beforeKey = portion === undefined || portion.beforeKey === '' ? null : portion.beforeKey;
  const own = { ...query, beforeId: portion?.boundId ?? query.beforeId };
  const all = await Promise.all(DIRECTORIES.map((name) => calls.hours(name, own, beforeKey)));
  // What a directory has left out is before its last one.
  const ends = all.flatMap(({ hours, isCut }) => (isCut ? (hours.at(-1) ?? []) : []));
  const end = ends.sort(compare)[0];
  const merged = all
    .flatMap(({ hours }) => hours)
    .filter((one) => end === undefined || compare(one, end) <= 0)
    .sort(compare);
  return {
    hours: merged.slice(0, MAX_QUERIED_LEDGERS),
    isCut: end !== undefined || merged.length > MAX_QUERIED_LEDGERS,
  };
}

/** The latest hour first, in it the last key. */
function compare(a: ActiveHour, b: ActiveHour): number {
  if (a.hour !== b.hour) return b.hour - a.hour;
  return a.keyId < b.keyId ? 1 : a.keyId > b.keyId ? -1 : 0;
}

interface Batch {
  readonly keyIds: readonly string[];
  readonly fromHour: number;
  /** Not null: these are only some keys of the hour. */
  readonly portion: KeyPortion | null;
  readonly rest: readonly ActiveHour[];
}

/** What a page begins with: the portion that the one before left, some keys of an hour that has too many, or whole hours. */
function firstBatch(active: ActiveHours, { portion, beforeId }: RecordQuery, wanted: number): Batch | null {
  const [first] = active.hours;
  if (first === undefined) return null;
  const { hour } = first;
  const own = active.hours.filter((one) => one.hour === hour);
  const rest = active.hours.slice(own.length);
  const isPart = active.isCut && rest.length === 0;
  const end = firstIdAt((hour + 1) * HOUR_MS);
  // The portion's hour may have no further keys.
  const isPortion =
    portion !== undefined && portion.boundId > firstIdAt(hour * HOUR_MS) && portion.boundId <= end;
  if (!isPart && !isPortion) return completeHours(active, wanted);
  const left = isPortion ? portion : { boundId: beforeId < end ? beforeId : end, beforeKey: '', lastKey: '' };
  const lastKey = left.lastKey || (isPart ? (own.at(-1)?.keyId ?? '') : '');
  const keyIds = own.map(({ keyId }) => keyId).filter((keyId) => keyId >= lastKey);
  return { keyIds, fromHour: hour, portion: { ...left, lastKey }, rest };
}

/** About as many hours as have the wanted records. Null: the keys of the first one are known in part. */
function completeHours({ hours, isCut }: ActiveHours, wanted: number): Batch | null {
  const byHour = [...Map.groupBy(hours, ({ hour }) => hour)];
  const complete = isCut ? byHour.slice(0, -1) : byHour;
  let requests = 0;
  let taken = 0;
  while (taken < complete.length && requests < Math.max(wanted, 1))
    requests += (complete[taken++]?.[1] ?? []).reduce((sum, one) => sum + one.requests, 0);
  const some = complete.slice(0, taken);
  const [fromHour] = some.at(-1) ?? [];
  if (fromHour === undefined) return null;
  const keyIds = new Set(some.flatMap(([, keys]) => keys.map(({ keyId }) => keyId)));
  const count = some.reduce((sum, [, keys]) => sum + keys.length, 0);
  return { keyIds: [...keyIds], fromHour, portion: null, rest: hours.slice(count) };
}

type ReadSource = (name: string, query: RecordQuery) => Promise<LedgerPage>;

/** Merges the records of several objects, latest first. Reads each only as far as its records are next. */
class Merge {
  readonly #sources: readonly RecordSource[];
  readonly #query: RecordQuery;
  readonly #read: ReadSource;
  readonly #maxCalls: number;
  calls = 0;

  constructor(names: readonly string[], query: RecordQuery, read: ReadSource, maxCalls: number) {
    this.#sources = names.map((name) => new RecordSource(name, query.beforeId));
    const share = Math.ceil((2 * query.limit) / names.length);
    this.#query = { ...query, limit: Math.min(query.limit, Math.max(MIN_CHUNK, share)) };
    this.#read = read;
    this.#maxCalls = maxCalls;
  }

  /** Reads the first page of each source. */
  async start(): Promise<void> {
    for (let at = 0; at < this.#sources.length; at += QUERIED_LEDGERS_AT_ONCE)
      await Promise.all(
        this.#sources.slice(at, at + QUERIED_LEDGERS_AT_ONCE).map((source) => this.#readPage(source)),
      );
  }

  async #readPage(source: RecordSource): Promise<void> {
    this.calls++;
    const beforeId = source.position ?? this.#query.fromId;
    source.addPage(await this.#read(source.name, { ...this.#query, beforeId }));
  }

  /** All remaining records are before this id, if none has been read that is next; null: there are none. */
  get position(): string | null {
    return this.#leading?.position ?? null;
  }

  /** Null: there are no more. `spent`: no further call may be made. */
  async next(): Promise<UsageRecord | 'spent' | null> {
    for (let source = this.#leading; source !== undefined; source = this.#leading) {
      const record = source.shift();
      if (record !== undefined) return record;
      if (this.calls >= this.#maxCalls) return 'spent';
      await this.#readPage(source);
    }
    return null;
  }

  /** The source whose next record may be the latest of all. */
  get #leading(): RecordSource | undefined {
    let best: RecordSource | undefined;
    for (const source of this.#sources) {
      if (source.position !== null && source.position > (best?.position ?? '')) best = source;
    }
    return best;
  }
}

/** The records of one object: a page that was read, and where the next page begins. */
class RecordSource {
  readonly name: string;
  #records: UsageRecord[] = [];
  #next: string | null;

  constructor(name: string, beforeId: string) {
    this.name = name;
    this.#next = beforeId;
  }

  /** The id of the next record, or an id before which the next record is; null where no record is left. */
  get position(): string | null {
    return this.#records[0]?.request_id ?? this.#next;
  }

  addPage({ records, next }: LedgerPage): void {
    this.#records = [...records];
    this.#next = next;
  }

  shift(): UsageRecord | undefined {
    return this.#records.shift();
  }
}

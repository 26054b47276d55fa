/** The ledger in KV: immutable records, one key each, summed and listed from their metadata (LEDGER=kv, M1, M4, L3). */
import { apiError } from '../../canonical/error.ts';
import { MAX_REPORT_LISTINGS, REPORT_LISTINGS_AT_ONCE } from '../../shared/limits.ts';
import { daysBetween, isoDay } from '../days.ts';
import {
  type FindResult,
  type Ledger,
  type LedgerRefusal,
  type ListedRecord,
  matches,
  type RecordPage,
  type RecordQuery,
  type RefusalsResult,
  type ReportQuery,
  type ReportResult,
} from '../ledger.ts';
import {
  decodeRecord,
  decodeUsageRecord,
  encodeRecord,
  type RecordSummary,
  type UsageRecord,
} from '../record.ts';
import type { RefusalBatch, RefusalQuery } from '../refusals.ts';
import { isWithin, Report } from '../report.ts';
import { firstIdAt, idTime } from '../request-id.ts';
import { dayPrefix, dayPrefixes, recordKey, requestIdOf } from './keys.ts';
import { Listings } from './listings.ts';
import { Newest } from './newest.ts';
import { listRefusals, putRefusals } from './refusals.ts';

/** The part of a KV namespace that the ledger uses. */
export type LedgerStore = Pick<KVNamespace, 'get' | 'put' | 'list'>;

/** Values that one call may get. */
const MAX_BULK_GET = 100;

export class KvLedger implements Ledger {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** The value is the whole record; listings read the metadata. The same key and value each time: a repeated call changes nothing. */
  async put(records: readonly UsageRecord[]): Promise<void> {
    await Promise.all(
      records.map((record) =>
        this.#store.put(recordKey(record), JSON.stringify(record), { metadata: encodeRecord(record) }),
      ),
    );
  }

  async report({ fromMs, toMs, keyId, groups, only = {} }: ReportQuery): Promise<ReportResult> {
    const report = new Report(groups);
    const listings = new Listings(this.#store, MAX_REPORT_LISTINGS);
    const isWhole = await listings.read(dayPrefixes(daysBetween(fromMs, toMs), keyId), ({ metadata }) => {
      const record = decodeRecord(metadata);
      const time = Date.parse(record?.time ?? '');
      if (record !== null && time >= fromMs && time < toMs && isWithin(record, only))
        report.addRecord(record);
    });
    return isWhole ? { kind: 'report', report } : TOO_MANY_RECORDS;
  }

  /** KV lists in one order alone, so that the latest of a day are known when all of the day was read. */
  async list(query: RecordQuery): Promise<RecordPage | LedgerRefusal> {
    const { fromId, beforeId, keyId, limit } = query;
    const newest = new Newest(limit);
    const listings = new Listings(this.#store, MAX_REPORT_LISTINGS);
    const days = daysBetween(idTime(fromId), endOf(beforeId)).reverse();
    let readFrom: string | null = null;
    let at = 0;
    for (let size = 1; at < days.length && !newest.isFull; at += size, size = REPORT_LISTINGS_AT_ONCE) {
      const some = days.slice(at, at + size);
      const isWhole = await listings.read(dayPrefixes(some, keyId), ({ name, metadata }) => {
        const id = requestIdOf(name);
        const record = id >= fromId && id < beforeId ? decodeRecord(metadata) : null;
        if (record !== null && matches(record, query)) newest.add(record);
      });
      if (!isWhole) {
        if (readFrom === null) return TOO_MANY_RECORDS;
        // What was read in part is left to the next page.
        const readWhole = newest.records.filter(({ request_id }) => request_id >= String(readFrom));
        return { kind: 'page', records: await this.#whole(readWhole), next: readFrom };
      }
      readFrom = firstIdAt(Date.parse(some.at(-1) ?? ''));
    }
    const { records } = newest;
    const isMore = newest.isCut || at < days.length;
    const next = isMore ? (records.at(-1)?.request_id ?? null) : null;
    return { kind: 'page', records: await this.#whole(records), next };
  }

  async find(requestId: string, keyId: string | null): Promise<FindResult> {
    if (keyId !== null) {
      const value = await this.#store.get(recordKey({ request_id: requestId, key_id: keyId }), 'json');
      return { kind: 'record', record: decodeUsageRecord(value) };
    }
    let found: RecordSummary | null = null;
    const listings = new Listings(this.#store, MAX_REPORT_LISTINGS);
    const isWhole = await listings.read(
      [dayPrefix(isoDay(idTime(requestId)), null)],
      ({ name, metadata }) => {
        if (requestIdOf(name) === requestId) found = decodeRecord(metadata);
      },
    );
    if (found === null) return isWhole ? { kind: 'record', record: null } : TOO_MANY_RECORDS;
    const [record] = await this.#whole([found]);
    return { kind: 'record', record: record ?? null };
  }

  putRefusals(batch: RefusalBatch): Promise<void> {
    return putRefusals(this.#store, batch);
  }

  async refusals(query: RefusalQuery): Promise<RefusalsResult> {
    const rows = await listRefusals(this.#store, query);
    return rows === null ? TOO_MANY_RECORDS : { kind: 'rows', rows };
  }

  /** The records with what is in their values alone; as a listing has them, where KV does not show a value yet. */
  async #whole(records: readonly RecordSummary[]): Promise<ListedRecord[]> {
    const whole: ListedRecord[] = [];
    for (let at = 0; at < records.length; at += MAX_BULK_GET) {
      const some = records.slice(at, at + MAX_BULK_GET);
      const values = await this.#store.get(some.map(recordKey), 'json');
      for (const summary of some)
        whole.push({ ...summary, ...decodeUsageRecord(values.get(recordKey(summary))) });
    }
    return whole;
  }
}

/** The first ms of which no id is before this one. */
function endOf(beforeId: string): number {
  const ms = idTime(beforeId);
  return beforeId > firstIdAt(ms) ? ms + 1 : ms;
}

const TOO_MANY_RECORDS: LedgerRefusal = {
  kind: 'error',
  error: apiError(
    'invalid_request',
    `These are more records than KV lists for one answer (${MAX_REPORT_LISTINGS * 1000}): ask for fewer days or one key, or set LEDGER=object, whose reports have no such limit`,
    'from',
  ),
};

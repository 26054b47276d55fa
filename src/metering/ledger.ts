/** The interface of a store of usage records: it takes records and counts of refused requests, and answers queries about them. */
import type { ApiError } from '../canonical/error.ts';
import type { Result } from '../shared/result.ts';
import type { RecordSummary, Tags, UsageRecord } from './record.ts';
import type { RecordSink } from './record-writer.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from './refusals.ts';
import { type Group, isTruncated, matchesFilter, type Report, type ReportFilter } from './report.ts';
import { isPosition } from './time.ts';

/**
 * Two implementations: `KvLedger` (`LEDGER=kv`) and `ObjectLedger` (`LEDGER=object`). A query fails with the error for the client if
 * the store cannot answer it; the message names a query that it can answer.
 */
export interface Ledger extends RecordSink {
  /** Sums the records of a time range. */
  report(query: ReportQuery): Promise<Result<Report, ApiError>>;
  /** Lists single records, the latest first. */
  list(query: RecordQuery): Promise<Result<RecordPage, ApiError>>;
  /**
   * Finds one record; the value is null if there is none.
   * @param keyId the record's key; null to search the records of all keys
   */
  find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>>;
  /** Adds counts of refused requests. Idempotent by the batch id. */
  putRefusals(batch: RefusalBatch): Promise<void>;
  /** The counts of a range of hours. A store may sum up rows that the query's groups do not tell apart. */
  refusals(query: RefusalQuery): Promise<Result<readonly RefusalRow[], ApiError>>;
}

/** Where records are, besides those that queries find. */
export interface LedgerStatus {
  readonly store: 'kv' | 'object';
  /** Records pass through a Queue first. */
  readonly has_queue: boolean;
  /** Records that wait in KV because their ledger object could not be reached, up to 1,000. */
  readonly waiting_records: number;
  /** Records that leave their object go into an archive. */
  readonly has_archive: boolean;
  /** Keys whose objects are full and have deleted records within 30 days, or cannot archive them; up to 20. */
  readonly full_keys: readonly FullKey[];
}

/** A key whose ledger object was full. Times are ISO 8601. */
export interface FullKey {
  readonly key_id: string;
  /** How many records were deleted because the object was full. */
  readonly deleted_records: number;
  /** All deleted ones are from before this time; null: none was deleted. */
  readonly deleted_before: string | null;
  /** Null: the archive works, or there is none. */
  readonly archive_failing_since: string | null;
  /** Why the archive fails. */
  readonly reason: string | null;
}

export interface ReportQuery {
  /** ms since the epoch; `toMs` is exclusive. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Null: all keys. */
  readonly keyId: string | null;
  readonly groups: readonly Group[];
  /** Absent: all requests. */
  readonly only?: ReportFilter;
}

export interface RecordQuery {
  /** Bounds of request ids; `beforeId` is exclusive. */
  readonly fromId: string;
  readonly beforeId: string;
  /** Null: all keys. */
  readonly keyId: string | null;
  /** The requested model, or the address that served; null: any. */
  readonly model: string | null;
  /** Null: any. */
  readonly statuses: readonly string[] | null;
  /** Absent: any. */
  readonly only?: RecordFilter;
  readonly limit: number;
  /** The part of an hour's keys that this page goes on with; absent: a page of all. */
  readonly portion?: KeyPortion;
}

/** Some keys of an hour that has more than one page may read. Their order is downwards. */
export interface KeyPortion {
  /** All records of the hour are before this id. */
  readonly boundId: string;
  /** Keys before this one; empty: all. */
  readonly beforeKey: string;
  /** The last of the keys; empty: as many as one page may read. */
  readonly lastKey: string;
}

/** The text of a page's `next`: an id, and for a part of an hour's keys, which. */
export function writeCursor(beforeId: string, portion: KeyPortion | null): string {
  if (portion === null) return beforeId;
  return [beforeId, portion.boundId, portion.beforeKey, portion.lastKey].join('.');
}

/** The name of a ledger: a key's id, or a shard of it. */
const KEY_OF_CURSOR = /^[\w-]{0,128}(?:\/s\/[A-Za-z]+\/\d+)?$/;

/** Null: no page has such a cursor. */
export function readCursor(text: string): Pick<RecordQuery, 'beforeId' | 'portion'> | null {
  const [beforeId = '', boundId, beforeKey = '', lastKey = '', ...rest] = text.split('.');
  if (!isPosition(beforeId) || rest.length > 0) return null;
  if (boundId === undefined) return { beforeId };
  const isPortion = isPosition(boundId) && [beforeKey, lastKey].every((key) => KEY_OF_CURSOR.test(key));
  return isPortion ? { beforeId, portion: { boundId, beforeKey, lastKey } } : null;
}

/** Further conditions on the records of a list. Absent fields select all. */
interface RecordFilter extends ReportFilter {
  /** Part of the model, the id of the request or the key, the user, the session or the app, in lower case. */
  readonly search?: string;
  readonly client?: string;
  /** The output began, and then failed. */
  readonly truncated?: true;
}

/** A record in a list. Only the summary is certain: a store may not have the other fields yet. */
export type ListedRecord = RecordSummary & Partial<UsageRecord>;

export interface RecordPage {
  /** The latest first. A page may have fewer records than its limit, or none, although more follow. */
  readonly records: readonly ListedRecord[];
  /** The cursor of the next page, as {@link writeCursor} writes it; null if this is the last one. */
  readonly next: string | null;
}

/** Whether a record fits the query's filters. Stores select by id and key themselves. */
export function matchesQuery(record: RecordSummary & { readonly tags?: Tags }, query: RecordQuery): boolean {
  const { model, statuses, only = {} } = query;
  const served = `${record.provider}/${record.model}`;
  const { search } = only;
  return (
    (model === null || model === record.asked || model === served) &&
    (statuses === null || statuses.includes(record.status)) &&
    (only.client === undefined || only.client === record.client) &&
    (only.truncated === undefined || isTruncated(record)) &&
    matchesFilter(record, only) &&
    (search === undefined || SEARCHED.some((read) => read(record)?.toLowerCase().includes(search)))
  );
}

/** What `search` is compared with. */
const SEARCHED: readonly ((record: RecordSummary) => string | null)[] = [
  ({ asked }) => asked,
  ({ provider, model }) => `${provider}/${model}`,
  ({ request_id }) => request_id,
  ({ key_id }) => key_id,
  ({ user }) => user,
  ({ session }) => session,
  ({ app }) => app,
];

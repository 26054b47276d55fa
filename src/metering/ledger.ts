/** What every store of usage records does, whichever it is (L2, L3, L4). */
import type { ApiError } from '../canonical/error.ts';
import type { RecordSummary, UsageRecord } from './record.ts';
import type { RecordSink } from './record-writer.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from './refusals.ts';
import type { Group, Report, ReportFilter } from './report.ts';

export interface ReportQuery {
  /** ms since the epoch; `toMs` is not within. */
  readonly fromMs: number;
  readonly toMs: number;
  /** One key's, or all (null). */
  readonly keyId: string | null;
  readonly groups: readonly Group[];
  /** Absent: of all requests. */
  readonly only?: ReportFilter;
}

export interface RecordQuery {
  /** Bounds of request ids; `beforeId` is not within. */
  readonly fromId: string;
  readonly beforeId: string;
  /** One key's, or all (null). */
  readonly keyId: string | null;
  /** As the caller named it, or the address that served; null for any. */
  readonly model: string | null;
  /** One of these; null for any. */
  readonly statuses: readonly string[] | null;
  readonly limit: number;
}

/** A record as a list has it: where a store can't give all of it at once, what reports need. */
export type ListedRecord = RecordSummary & Partial<UsageRecord>;

export interface RecordPage {
  readonly kind: 'page';
  /** The latest first. A page may have fewer than its limit, or none, and others may follow. */
  readonly records: readonly ListedRecord[];
  /** All that are left are before this id; null where none are. */
  readonly next: string | null;
}

/** What the store can't answer, and what to ask instead. */
export interface LedgerRefusal {
  readonly kind: 'error';
  readonly error: ApiError;
}

export type ReportResult = { readonly kind: 'report'; readonly report: Report } | LedgerRefusal;
export type FindResult = { readonly kind: 'record'; readonly record: ListedRecord | null } | LedgerRefusal;
export type RefusalsResult = { readonly kind: 'rows'; readonly rows: readonly RefusalRow[] } | LedgerRefusal;

/** Its `put` may be repeated: a record that is there already, by its request id, changes nothing. */
export interface Ledger extends RecordSink {
  report(query: ReportQuery): Promise<ReportResult>;
  list(query: RecordQuery): Promise<RecordPage | LedgerRefusal>;
  /** @param keyId whose record it must be; null for anyone's */
  find(requestId: string, keyId: string | null): Promise<FindResult>;
  /** Adds counts of refused requests; a batch that is there already changes nothing. */
  putRefusals(batch: RefusalBatch): Promise<void>;
  /** The counts of those hours, in rows that may be summed already where the groups do not tell them apart. */
  refusals(query: RefusalQuery): Promise<RefusalsResult>;
}

/** Whether the record is one of those that a list asks for; its id and key are the store's matter. */
export function matches(record: RecordSummary, { model, statuses }: RecordQuery): boolean {
  const isModel = model === null || model === record.asked || model === `${record.provider}/${record.model}`;
  return isModel && (statuses === null || statuses.includes(record.status));
}

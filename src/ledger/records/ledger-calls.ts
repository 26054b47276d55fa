/** The ledger objects as the gateway calls them: `WEIR_LEDGER`, or whatever stands in for it. */

import type { RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import type { ChargedRecord, UsageRecord } from '../../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import type { SumRow } from './columns.ts';
import type { ActiveDays } from './directory.ts';
import type { DayRow } from './hours.ts';
import type { RowsResult } from './key-report.ts';
import type { LedgerPage } from './records.ts';

/** One key's ledger, or the directory. A stub that has thrown may be of no more use: ask the namespace for another. */
export interface LedgerStub {
  /**
   * Takes records of this key, all or none; one that is there already changes nothing.
   * @param recordDays for so many days it keeps single records from now on; absent: as before
   * @returns the ids of those that are too old to tell whether they were there: they are not taken
   */
  settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]>;
  find(requestId: string): Promise<UsageRecord | null>;
  list(query: RecordQuery): Promise<LedgerPage>;
  report(query: ReportQuery): Promise<RowsResult>;
  /** The directory's: takes a ledger's sums of days. */
  takeDays(keyId: string, rows: readonly DayRow[]): Promise<void>;
  /** The directory's: over all keys, of whole days. */
  reportAll(query: ReportQuery): Promise<readonly SumRow[]>;
  /** The directory's: whose ledgers have requests of those days (since the epoch, both within), the latest first. */
  activeDays(from: number, to: number): Promise<ActiveDays>;
  /** The directory's: adds counts of refused requests, each batch once. */
  takeRefusals(batch: RefusalBatch): Promise<void>;
  /** The directory's: the counts, of one key or of all. */
  refusals(query: RefusalQuery): Promise<readonly RefusalRow[]>;
}

/** A Durable Object namespace of `LedgerObject`. */
export interface LedgerNamespace {
  /** @param name a key's id, or the directory's name */
  getByName(name: string): LedgerStub;
}

/** One of the directories: the sums and the records of its keys, for reports and lists over all keys. */
import type { RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import { DAY_MS, HOUR_MS, idTime } from '../../metering/time.ts';
import { QUERIED_LEDGERS_AT_ONCE } from '../../shared/limits.ts';
import type { RowsResult } from '../records/sums.ts';
import type { SumsMessage } from '../records/unsent-sums.ts';
import type { SessionDay } from '../records/user-records.ts';
import type { Job, Role } from '../roles/role.ts';
import { type ActiveHours, activeHours, keysOfHour } from './active-keys.ts';
import { type ReportPart, reportPart } from './directory-reports.ts';
import {
  createRecent,
  eraseRecent,
  findRecent,
  listRecent,
  missingHours,
  type RecentPage,
  takeRecent,
  trimRecent,
} from './recent-records.ts';
import { DirectoryTables } from './tables.ts';

/** Ids of one page of keys. */
export const MAX_KEY_IDS = 1000;

/** What a directory reads from the object of a key. */
interface KeyReader {
  report(query: ReportQuery): Promise<RowsResult>;
  find(requestId: string): Promise<UsageRecord | null>;
}

export interface DirectoryPorts {
  readonly sql: SqlStorage;
  readonly transaction: <Value>(act: () => Value) => Value;
  /** What single records take at most. */
  readonly maxRecordBytes: number;
  /** Calls the object of a key. */
  readonly read: <Value>(keyId: string, call: (ledger: KeyReader) => Promise<Value>) => Promise<Value>;
}

/** What is erased of a user in a directory. */
export interface ErasedSums {
  readonly users: readonly string[];
  /** Only records with a smaller id, and the sums of their days; null: all. */
  readonly beforeId: string | null;
  /** Of erased records. */
  readonly sessions: readonly SessionDay[];
}

/** A record of a directory's keys, or where the search goes on. */
export interface FoundRecord {
  readonly record: UsageRecord | null;
  /** The key after which the next call searches; null: all were searched. */
  readonly next: string | null;
}

export class Directory implements Role {
  readonly kind = 'a directory';
  readonly jobs: readonly Job[] = [(now) => this.#deleteOld(now)];
  readonly #ports: DirectoryPorts;
  readonly #tables: DirectoryTables;

  constructor(ports: DirectoryPorts) {
    this.#ports = ports;
    this.#tables = new DirectoryTables(ports.sql);
    createRecent(ports.sql);
  }

  /** @returns the hours of the message (since the epoch) of which records are missing */
  async takeSums(keyId: string, { records, ...sums }: SumsMessage): Promise<readonly number[]> {
    const { sql, transaction } = this.#ports;
    return transaction(() => {
      this.#tables.take(keyId, sums);
      takeRecent(sql, keyId, records);
      return missingHours(sql, keyId, new Set(sums.hours.map(({ key: [hour] }) => Number(hour))));
    });
  }

  async reportPart(query: ReportQuery, after: string | null): Promise<ReportPart> {
    const { sql, read } = this.#ports;
    return reportPart(sql, query, after, (keyId, own) => read(keyId, (ledger) => ledger.report(own)));
  }

  async listRecent(query: RecordQuery): Promise<RecentPage> {
    return listRecent(this.#ports.sql, query);
  }

  async activeHours(query: RecordQuery, beforeKey: string | null): Promise<ActiveHours> {
    return activeHours(this.#ports.sql, query, beforeKey);
  }

  /** Finds a record, also in the objects of keys whose records of its hour are missing here. */
  async findOfAll(requestId: string, after: string | null): Promise<FoundRecord> {
    const { sql, read } = this.#ports;
    const recent = after === null ? findRecent(sql, requestId) : null;
    if (recent !== null) return { record: recent, next: null };
    const keyIds = keysOfHour(sql, Math.floor(idTime(requestId) / HOUR_MS), after ?? '');
    for (let at = 0; at < keyIds.length; at += QUERIED_LEDGERS_AT_ONCE) {
      const some = keyIds.slice(at, at + QUERIED_LEDGERS_AT_ONCE);
      const found = await Promise.all(some.map((keyId) => read(keyId, (ledger) => ledger.find(requestId))));
      const record = found.find((one) => one !== null);
      if (record !== undefined) return { record, next: null };
    }
    return { record: null, next: keyIds.at(-1) ?? null };
  }

  async keyIdsAfter(after: string): Promise<readonly string[]> {
    return this.#tables.keyIdsAfter(after, MAX_KEY_IDS);
  }

  async eraseSums(keyId: string, { users, beforeId, sessions }: ErasedSums): Promise<void> {
    const { sql, transaction } = this.#ports;
    const until = beforeId === null ? null : Math.floor(idTime(beforeId) / DAY_MS);
    transaction(() => {
      this.#tables.erase(keyId, users, until, sessions);
      eraseRecent(sql, keyId, users, beforeId);
    });
  }

  get hasWork(): boolean {
    return !this.#tables.isEmpty;
  }

  /** @returns when the alarm is due again */
  #deleteOld(now: number): number | null {
    const { sql, transaction, maxRecordBytes } = this.#ports;
    if (this.#tables.isEmpty) return null;
    const hasMore = transaction(() => {
      trimRecent(sql, maxRecordBytes);
      return this.#tables.deleteOld(now);
    });
    return hasMore ? now : now + HOUR_MS;
  }
}

/** The Durable Object that is one key's ledger: what a request used and what its limits allow change in one transaction (L4). */
import { DurableObject } from 'cloudflare:workers';
import type { KeyStore } from '../auth/keys.ts';
import type { RecordQuery, ReportQuery } from '../metering/ledger.ts';
import type { Charge, ChargedRecord, UsageRecord } from '../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../metering/refusals.ts';
import { DAY_MS } from '../metering/time.ts';
import { readRecordDays } from '../settings/settings.ts';
import type { JsonObject } from '../shared/json.ts';
import { type KeyCalls, type KeyChange, type KeyChangeResult, LedgerKey } from './held-key.ts';
import type { LimitsStub } from './limits/limit-calls.ts';
import type { LimitsResult } from './limits/limits.ts';
import { type Reservation, type ReserveRequest, reserve } from './limits/reserve.ts';
import { expire, nextExpiry, settle, settleRecords, settleUnreserved } from './limits/settle.ts';
import { type LimitStatus, readLimitStatus } from './limits/status.ts';
import { changeLimits, createLimitTables } from './limits/tables.ts';
import type { SumRow } from './records/columns.ts';
import {
  type ActiveDays,
  activeDays,
  createDirectory,
  DIRECTORY,
  directoryReport,
  takeDays,
} from './records/directory.ts';
import {
  addToHours,
  changedDays,
  createSums,
  type DayRow,
  keepDays,
  MAX_MESSAGE_ROWS,
} from './records/hours.ts';
import { keyReport, type RowsResult } from './records/key-report.ts';
import type { LedgerNamespace } from './records/ledger-calls.ts';
import {
  createRecords,
  deleteRecords,
  findRecord,
  insertRecords,
  isForgotten,
  type LedgerPage,
  listRecords,
} from './records/records.ts';
import { createRefusals, sumRefusals, takeRefusals } from './records/refusals.ts';
import { createStateTable, readState, setState } from './records/settings-table.ts';

/** The part of an object's storage that is used. */
export type LedgerStorage = Pick<DurableObjectStorage, 'sql' | 'transactionSync' | 'getAlarm' | 'setAlarm'>;

export interface LedgerEnv {
  readonly WEIR_LEDGER: LedgerNamespace;
  readonly WEIR_KV?: KeyStore;
  readonly [name: string]: unknown;
}

/** An object has one alarm, which several jobs share: each does what is due and tells when it is needed next (ms), or null. */
type Job = (now: number) => number | null | Promise<number | null>;

/** The directory has a ledger's sums within a minute. */
const SEND_AFTER_MS = 30_000;
const RETRY_AFTER_MS = 60_000;
/** A directory that hangs holds up no other job. */
const MAX_SEND_MS = 10_000;

export class LedgerObject extends DurableObject<LedgerEnv> implements LimitsStub, KeyCalls {
  readonly #storage: LedgerStorage;
  readonly #sql: SqlStorage;
  readonly #keyId: string;
  readonly #jobs: readonly Job[];
  readonly #key: LedgerKey;

  /** @param storage the object's own, or one around it */
  constructor(context: DurableObjectState, env: LedgerEnv, storage: LedgerStorage = context.storage) {
    super(context, env);
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#keyId = context.id.name ?? '';
    this.#key = new LedgerKey({
      sql: this.#sql,
      transaction: (act) => storage.transactionSync(act),
      store: env.WEIR_KV ?? null,
      wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    });
    if (this.#keyId === DIRECTORY) {
      createDirectory(this.#sql);
      createRefusals(this.#sql);
      this.#jobs = [];
      return;
    }
    createStateTable(this.#sql);
    createRecords(this.#sql);
    createSums(this.#sql);
    createLimitTables(this.#sql);
    // The one that waits for another object comes last.
    this.#jobs = [
      (now) => this.#expireReservations(now),
      (now) => this.#deleteOld(now),
      (now) => this.#sendDays(now),
    ];
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    const alarm = await this.#storage.getAlarm();
    const forgotten = this.#storage.transactionSync(() => {
      const marks = readState(this.#sql);
      const days = recordDays ?? marks.record_days;
      if (days !== marks.record_days) setState(this.#sql, 'record_days', days);
      const old = records.filter((record) => isForgotten(record, marks));
      const taken = insertRecords(
        this.#sql,
        old.length === 0 ? records : records.filter((one) => !old.includes(one)),
      );
      addToHours(this.#sql, taken, marks);
      settleRecords(this.#sql, taken);
      return old.map((record) => record.request_id);
    });
    // In the turn of the transaction, so that there is never a record without an alarm.
    const due = Date.now() + SEND_AFTER_MS;
    if (alarm === null || alarm > due) await this.#storage.setAlarm(due);
    return forgotten;
  }

  async find(requestId: string): Promise<UsageRecord | null> {
    return findRecord(this.#sql, requestId);
  }

  async list(query: RecordQuery): Promise<LedgerPage> {
    return listRecords(this.#sql, query);
  }

  async report(query: ReportQuery): Promise<RowsResult> {
    return keyReport(this.#sql, query, this.#keyId);
  }

  async takeDays(keyId: string, rows: readonly DayRow[]): Promise<void> {
    this.#storage.transactionSync(() => takeDays(this.#sql, keyId, rows));
  }

  async reportAll(query: ReportQuery): Promise<readonly SumRow[]> {
    return directoryReport(this.#sql, query);
  }

  async activeDays(from: number, to: number): Promise<ActiveDays> {
    return activeDays(this.#sql, from, to);
  }

  async takeRefusals(batch: RefusalBatch): Promise<void> {
    this.#storage.transactionSync(() => takeRefusals(this.#sql, batch));
  }

  async refusals(query: RefusalQuery): Promise<readonly RefusalRow[]> {
    return sumRefusals(this.#sql, query);
  }

  async reserve(request: ReserveRequest): Promise<Reservation> {
    const alarm = await this.#storage.getAlarm();
    const now = Date.now();
    const reservation = this.#storage.transactionSync(() => reserve(this.#sql, request, now));
    // In the turn of the transaction, so that there is never a reservation without an alarm.
    const due = now + request.expiresAfterMs;
    if (reservation.kind === 'reserved' && (alarm === null || alarm > due)) await this.#storage.setAlarm(due);
    return reservation;
  }

  async settleReservation(id: string, charge: Charge): Promise<void> {
    this.#storage.transactionSync(() => settle(this.#sql, id, charge));
  }

  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    const now = Date.now();
    this.#storage.transactionSync(() => settleUnreserved(this.#sql, id, charge, day, now));
  }

  async standing(): Promise<LimitStatus> {
    return readLimitStatus(this.#sql, Date.now());
  }

  async changeLimits(fields: JsonObject): Promise<LimitsResult> {
    return this.#storage.transactionSync(() => changeLimits(this.#sql, fields));
  }

  async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    return this.#key.changeKey(change);
  }

  async revokeKey(id: string): Promise<void> {
    return this.#key.revokeKey(id);
  }

  #expireReservations(now: number): number | null {
    const expired = this.#storage.transactionSync(() => expire(this.#sql, now));
    for (const reservation of expired)
      log({ event: 'reservation_expired', key_id: this.#keyId, ...reservation });
    return nextExpiry(this.#sql);
  }

  override async alarm(): Promise<void> {
    const next: number[] = [];
    for (const job of this.#jobs) {
      const time = await job(Date.now());
      if (time !== null) next.push(time);
    }
    if (next.length > 0) await this.#wakeBy(Math.min(...next));
  }

  /** Has the alarm go off at that time (ms since the epoch) or before. */
  async #wakeBy(time: number): Promise<void> {
    const set = await this.#storage.getAlarm();
    if (set === null || set > time) await this.#storage.setAlarm(time);
  }

  /** Sends sums of days to the directory. What can't be sent is sent later, and the ledger's own reports are exact meanwhile. */
  async #sendDays(now: number): Promise<number | null> {
    const rows = changedDays(this.#sql, readState(this.#sql));
    if (rows.length === 0) return null;
    const directory = this.env.WEIR_LEDGER.getByName(DIRECTORY);
    if (!(await succeeds(directory.takeDays(this.#keyId, rows), MAX_SEND_MS))) return now + RETRY_AFTER_MS;
    // Yesterday stays open, as a request may end on the day after its arrival.
    this.#storage.transactionSync(() => keepDays(this.#sql, rows, Math.floor(now / DAY_MS) - 1));
    return rows.length === MAX_MESSAGE_ROWS ? now : null;
  }

  #deleteOld(now: number): number | null {
    const keptMs = (readState(this.#sql).record_days || readRecordDays(this.env)) * DAY_MS;
    const oldest = this.#storage.transactionSync(() => deleteRecords(this.#sql, now - keptMs));
    if (oldest === null) return null;
    // Once a day is enough for what falls due.
    return oldest < now - keptMs ? now : oldest + keptMs + DAY_MS;
  }
}

/** Whether the call succeeds within so many ms; never rejects. */
async function succeeds(call: Promise<void>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), ms);
  const isDone = await Promise.race([
    call.then(
      () => true,
      () => false,
    ),
    late.promise,
  ]);
  clearTimeout(timer);
  return isDone;
}

function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: an object's log is its console, as a Worker's is.
  console.log(JSON.stringify(entry));
}

/** The ledger on Durable Objects, one a key, and a directory over all of them (LEDGER=object, L4). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Ledger, ListedRecord, RecordPage, RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import { Report } from '../../metering/report.ts';
import { DAY_MS, firstIdAt, idTime } from '../../metering/time.ts';
import {
  ASKED_LEDGERS_AT_ONCE,
  MAX_ASKED_LEDGERS,
  MAX_PART_RECORDS,
  SUMMED_LEDGERS_AT_ONCE,
} from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { fromColumns, type SumRow } from './columns.ts';
import { type ActiveDays, DIRECTORY } from './directory.ts';

import type { LedgerNamespace, LedgerStub } from './ledger-calls.ts';
import { listAll } from './list-all.ts';

export interface ObjectLedgerPorts {
  readonly ledgers: LedgerNamespace;
  /** For so many days each keeps single records; absent: as its own environment says. */
  readonly recordDays?: number;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

export class ObjectLedger implements Ledger {
  readonly #ports: ObjectLedgerPorts;

  constructor(ports: ObjectLedgerPorts) {
    this.#ports = ports;
  }

  /** Always a new stub: one whose object was reset throws for ever. */
  #ledger(name: string): LedgerStub {
    return this.#ports.ledgers.getByName(name);
  }

  /** Reads from an object, a second time where the first one fails: a deployment resets every object once. */
  async #read<T>(name: string, read: (ledger: LedgerStub) => Promise<T>): Promise<T> {
    try {
      return await read(this.#ledger(name));
    } catch {
      return read(this.#ledger(name));
    }
  }

  async put(records: readonly UsageRecord[]): Promise<void> {
    const byKey = Map.groupBy(records, (record) => record.key_id);
    await Promise.all(
      [...byKey].map(async ([keyId, own]) => {
        const forgotten = await this.#ledger(keyId).settle(own, this.#ports.recordDays);
        for (const id of forgotten) {
          const record = own.find(({ request_id }) => request_id === id);
          const reason = 'it is older than RECORD_DAYS, and may have been counted';
          this.#ports.log({ event: 'record_lost', reason, record });
        }
      }),
    );
  }

  async report(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const { keyId, groups } = query;
    if (keyId === null) return this.#reportAll(query);
    const result = await this.#read(keyId, (ledger) => ledger.report(query));
    return result.kind === 'rows' ? reportOf(result.rows, groups) : refuseParts(result.reason);
  }

  async #reportAll(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const { fromMs, toMs, groups } = query;
    const isOfDays = fromMs % DAY_MS === 0 && toMs % DAY_MS === 0 && !groups.includes('hour');
    return isOfDays
      ? reportOf(await this.#read(DIRECTORY, (directory) => directory.reportAll(query)), groups)
      : this.#reportEach(query);
  }

  /** The directory has days alone: for hours, and for parts of days, the ledgers that it names are asked themselves. */
  async #reportEach(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const { days, isCut } = await this.#activeDays(
      Math.floor(query.fromMs / DAY_MS),
      Math.floor((query.toMs - 1) / DAY_MS),
    );
    if (isCut) return refuse(TOO_MANY_LEDGERS, 'from');
    const keyIds = [...new Set(days.flatMap((day) => day.keyIds))];
    const report = new Report(query.groups);
    for (let at = 0; at < keyIds.length && !report.isTooLarge; at += SUMMED_LEDGERS_AT_ONCE) {
      const some = keyIds.slice(at, at + SUMMED_LEDGERS_AT_ONCE);
      const results = await Promise.all(
        some.map((id) => this.#read(id, (ledger) => ledger.report({ ...query, keyId: id }))),
      );
      for (const result of results) {
        if (result.kind === 'parts') return refuseParts(result.reason);
        addRows(report, result.rows);
      }
    }
    return ok(report);
  }

  async list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    const { keyId, fromId, beforeId } = query;
    if (keyId !== null) return ok(await this.#read(keyId, (ledger) => ledger.list(query)));
    const { days, isCut } = await this.#activeDays(dayOf(fromId), lastDayBefore(beforeId));
    const earliest = days.at(-1);
    if (isCut && earliest === undefined) return refuse(TOO_MANY_KEYS, 'key');
    const page = await listAll(query, days, (id, own) => this.#read(id, (ledger) => ledger.list(own)));
    const isMore = page.next === null && isCut && earliest !== undefined;
    return ok(isMore ? { ...page, next: firstIdAt(earliest.day * DAY_MS) } : page);
  }

  #activeDays(from: number, to: number): Promise<ActiveDays> {
    return this.#read(DIRECTORY, (directory) => directory.activeDays(from, to));
  }

  async find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>> {
    if (keyId !== null) return ok(await this.#read(keyId, (ledger) => ledger.find(requestId)));
    const day = dayOf(requestId);
    const { days, isCut } = await this.#activeDays(day, day);
    if (isCut) return refuse(TOO_MANY_KEYS, 'key');
    const keyIds = days.flatMap((active) => active.keyIds);
    for (let at = 0; at < keyIds.length; at += ASKED_LEDGERS_AT_ONCE) {
      const some = keyIds.slice(at, at + ASKED_LEDGERS_AT_ONCE);
      const found = await Promise.all(some.map((id) => this.#read(id, (ledger) => ledger.find(requestId))));
      const record = found.find((one) => one !== null);
      if (record !== undefined) return ok(record);
    }
    return ok(null);
  }

  putRefusals(batch: RefusalBatch): Promise<void> {
    return this.#ledger(DIRECTORY).takeRefusals(batch);
  }

  async refusals(query: RefusalQuery): Promise<Result<readonly RefusalRow[], ApiError>> {
    return ok(await this.#read(DIRECTORY, (directory) => directory.refusals(query)));
  }
}

const TOO_MANY_KEYS = `More than ${MAX_ASKED_LEDGERS} keys had requests on that day: name one with key=`;

const TOO_MANY_LEDGERS = `Over all keys hours and parts of days are read of at most ${MAX_ASKED_LEDGERS} keys with requests on a day: ask for whole days (UTC) without hours, or name a key with key=`;

/** The day of an id, in days since the epoch. */
function dayOf(id: string): number {
  return Math.floor(idTime(id) / DAY_MS);
}

/** The latest day of which an id can be before this one. */
function lastDayBefore(id: string): number {
  const day = dayOf(id);
  return id > firstIdAt(day * DAY_MS) ? day : day - 1;
}

function reportOf(rows: readonly SumRow[], groups: ReportQuery['groups']): Result<Report, ApiError> {
  const report = new Report(groups);
  addRows(report, rows);
  return ok(report);
}

function addRows(report: Report, rows: readonly SumRow[]): void {
  for (const { values, currency, columns } of rows) report.add(values, fromColumns(currency, columns));
}

function refuseParts(reason: 'too_many' | 'too_old'): Result<never, ApiError> {
  const message =
    reason === 'too_old'
      ? 'Single records of that time are gone: from and to must be whole hours (UTC)'
      : `A part of an hour has more than ${MAX_PART_RECORDS} records: from and to must be whole hours (UTC)`;
  return refuse(message, 'from');
}

function refuse(message: string, param: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message, param));
}

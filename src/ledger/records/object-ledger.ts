/** The store of usage records on Durable Objects (`LEDGER=object`): one object for each key, and directories over all of them. */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Ledger, ListedRecord, RecordPage, RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import { type ChargedRecord, ledgerOfRecord, type UsageRecord } from '../../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import { factsOf, Report } from '../../metering/report.ts';
import { callOnce, callTwice } from '../../shared/durable-objects.ts';
import { MAX_PART_RECORDS } from '../../shared/limits.ts';
import type { Log } from '../../shared/log-event.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { FoundRecord } from '../directory/directory.ts';
import type { ReportPart } from '../directory/directory-reports.ts';
import { DIRECTORIES, FIRST_DIRECTORY, type LedgerNamespace, type LedgerStub } from '../ledger-calls.ts';
import { shardsOf } from '../shards.ts';
import { archiveProblem } from './archive.ts';
import { listAll, listLedgers } from './record-lists.ts';
import { fromColumns, type SumRow } from './sum-columns.ts';

/** Directories, or ledgers of a key, whose sums are held at a time. Each may have thousands of rows. */
const LEDGERS_AT_ONCE = 8;

export interface ObjectLedgerPorts {
  readonly ledgers: LedgerNamespace;
  /** How many days objects keep single records; absent: as their own environment says. */
  readonly recordDays?: number;
  readonly log: Log;
}

export class ObjectLedger implements Ledger {
  readonly #ports: ObjectLedgerPorts;

  constructor(ports: ObjectLedgerPorts) {
    this.#ports = ports;
  }

  /** Always a new stub: the stub of an object that was reset fails forever. */
  #ledger(name: string): LedgerStub {
    return this.#ports.ledgers.getByName(name);
  }

  #read<T>(name: string, read: (ledger: LedgerStub) => Promise<T>): Promise<T> {
    return callTwice(() => this.#ledger(name), read);
  }

  async put(records: readonly ChargedRecord[]): Promise<void> {
    const byLedger = Map.groupBy(records, ledgerOfRecord);
    await Promise.all(
      [...byLedger].map(async ([name, own]) => {
        const forgotten = await callOnce(() => this.#ledger(name).settle(own, this.#ports.recordDays));
        for (const id of forgotten) {
          const record = own.find(({ request_id }) => request_id === id);
          const reason = 'it is older than RECORD_DAYS, and may have been counted';
          this.#ports.log({ event: 'record_lost', reason, record });
        }
      }),
    );
  }

  report(query: ReportQuery): Promise<Result<Report, ApiError>> {
    return orArchiveProblem(this.#report(query));
  }

  list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    return orArchiveProblem(this.#list(query));
  }

  find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>> {
    return orArchiveProblem(this.#find(requestId, keyId));
  }

  async #report(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const { keyId, groups } = query;
    if (keyId === null) return this.#reportAll(query);
    const report = new Report(groups);
    const names = await this.#ledgersOf(keyId);
    for (let at = 0; at < names.length; at += LEDGERS_AT_ONCE) {
      const some = names.slice(at, at + LEDGERS_AT_ONCE);
      const results = await Promise.all(
        some.map((name) => this.#read(name, (ledger) => ledger.report(query))),
      );
      for (const result of results) {
        if (result.kind === 'parts') return refuseParts(result.reason, query);
        addRows(report, result.rows);
      }
    }
    return ok(report);
  }

  /** The ledgers that may have records of a key: its own object, and its shards. */
  async #ledgersOf(keyId: string): Promise<readonly string[]> {
    return [keyId, ...(await shardsOf(this.#ports.ledgers, keyId))];
  }

  /** Adds what each directory has, some at a time, because each may have thousands of rows. */
  async #reportAll(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const report = new Report(query.groups);
    const names = [FIRST_DIRECTORY, ...DIRECTORIES].values();
    let refused: Result<never, ApiError> | null = null;
    const addNext = async () => {
      for (const name of names) {
        for (let after: string | null = null, isMore = true; isMore; isMore = after !== null) {
          if (report.isTooLarge || refused !== null) return;
          const at: string | null = after;
          const part: ReportPart = await this.#read<ReportPart>(name, (directory) =>
            directory.reportPart(query, at),
          );
          if (part.kind === 'parts') {
            refused ??= refuseParts(part.reason, query);
            return;
          }
          addRows(report, part.rows);
          after = part.next;
        }
      }
    };
    await Promise.all(Array.from({ length: LEDGERS_AT_ONCE }, addNext));
    return refused ?? ok(report);
  }

  async #list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    const { keyId } = query;
    if (keyId !== null) {
      const names = await this.#ledgersOf(keyId);
      return ok(
        names.length === 1
          ? await this.#read(keyId, (ledger) => ledger.list(query))
          : await listLedgers(names, query, (name, own) => this.#read(name, (ledger) => ledger.list(own))),
      );
    }
    return ok(
      await listAll(query, {
        recent: (name, own) => this.#read(name, (directory) => directory.listRecent(own)),
        hours: (name, own, beforeKey) =>
          this.#read(name, (directory) => directory.activeHours(own, beforeKey)),
        ofKey: (id, own) => this.#read(id, (ledger) => ledger.list(own)),
      }),
    );
  }

  async #find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>> {
    if (keyId !== null) {
      const read = (name: string) => this.#read(name, (ledger) => ledger.find(requestId));
      const own = await read(keyId);
      if (own !== null) return ok(own);
      const ofShards = await Promise.all((await shardsOf(this.#ports.ledgers, keyId)).map(read));
      return ok(ofShards.find((record) => record !== null) ?? null);
    }
    const found = await Promise.all(DIRECTORIES.map((name) => this.#findIn(name, requestId)));
    return ok(found.find((record) => record !== null) ?? null);
  }

  async #findIn(directory: string, requestId: string): Promise<UsageRecord | null> {
    for (let after: string | null = null; ; ) {
      const at: string | null = after;
      const { record, next }: FoundRecord = await this.#read<FoundRecord>(directory, (stub) =>
        stub.findOfAll(requestId, at),
      );
      if (record !== null || next === null) return record;
      after = next;
    }
  }

  putRefusals(batch: RefusalBatch): Promise<void> {
    return callOnce(() => this.#ledger(FIRST_DIRECTORY).takeRefusals(batch));
  }

  async refusals(query: RefusalQuery): Promise<Result<readonly RefusalRow[], ApiError>> {
    return ok(await this.#read(FIRST_DIRECTORY, (directory) => directory.refusals(query)));
  }
}

/** Records of the time may be in an archive that cannot be read now. */
async function orArchiveProblem<Value>(
  answer: Promise<Result<Value, ApiError>>,
): Promise<Result<Value, ApiError>> {
  try {
    return await answer;
  } catch (error) {
    const reason = archiveProblem(error);
    if (reason === null) throw error;
    return failure(apiError('ledger_unreachable', reason));
  }
}

function addRows(report: Report, rows: readonly SumRow[]): void {
  for (const { values, currency, columns } of rows) report.add(values, fromColumns(currency, columns));
}

function refuseParts(
  reason: 'too_many' | 'too_old',
  { groups, only = {} }: ReportQuery,
): Result<never, ApiError> {
  const isByFact = factsOf(groups, only).length > 0;
  const remedy = isByFact
    ? 'query whole days (UTC), not by hour, and by one of user, session, app, team, tag and cache_cause'
    : 'from and to must be whole hours (UTC)';
  const message =
    reason === 'too_old'
      ? `Single records of that time are deleted: ${remedy}`
      : `The report reads single records, and a key has more than ${MAX_PART_RECORDS} of that time: ${remedy}`;
  return refuse(message, 'from');
}

function refuse(message: string, param: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message, param));
}

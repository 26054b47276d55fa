/** The store of usage records on Durable Objects (`LEDGER=object`): one object for each key, and a directory over all of them. */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { Ledger, ListedRecord, RecordPage, RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import type { UsageRecord } from '../../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../../metering/refusals.ts';
import { factsOf, Report } from '../../metering/report.ts';
import { DAY_MS, endOfIds, firstIdAt, idTime } from '../../metering/time.ts';
import { callTwice } from '../../shared/durable-objects.ts';
import { MAX_PART_RECORDS, MAX_QUERIED_LEDGERS, QUERIED_LEDGERS_AT_ONCE } from '../../shared/limits.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { DIRECTORY, type LedgerNamespace, type LedgerStub } from '../ledger-calls.ts';
import { archiveProblem } from './archive.ts';
import type { ActiveDay, ActiveDays } from './directory.ts';
import type { LedgerPage } from './records.ts';
import { fromColumns, type SumRow } from './sum-columns.ts';

/** Ledgers whose sums are held at a time. Each may have thousands of rows. */
const SUMMED_LEDGERS_AT_ONCE = 6;

export interface ObjectLedgerPorts {
  readonly ledgers: LedgerNamespace;
  /** How many days objects keep single records; absent: as their own environment says. */
  readonly recordDays?: number;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
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
    const result = await this.#read(keyId, (ledger) => ledger.report(query));
    return result.kind === 'rows' ? reportOf(result.rows, groups) : refuseParts(result.reason, query);
  }

  async #reportAll(query: ReportQuery): Promise<Result<Report, ApiError>> {
    const { fromMs, toMs, groups, only = {} } = query;
    const isSummed = !groups.includes('hour') && factsOf(groups, only).length === 0;
    const isOfDays = fromMs % DAY_MS === 0 && toMs % DAY_MS === 0 && isSummed;
    return isOfDays
      ? reportOf(await this.#read(DIRECTORY, (directory) => directory.reportAll(query)), groups)
      : this.#reportEach(query);
  }

  /** The directory has only days: for hours and parts of days, reads the objects of the keys that it lists. */
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
        if (result.kind === 'parts') return refuseParts(result.reason, query);
        addRows(report, result.rows);
      }
    }
    return ok(report);
  }

  async #list(query: RecordQuery): Promise<Result<RecordPage, ApiError>> {
    const { keyId, fromId, beforeId } = query;
    if (keyId !== null) return ok(await this.#read(keyId, (ledger) => ledger.list(query)));
    const { days, isCut } = await this.#activeDays(dayOf(fromId), lastDayBefore(beforeId));
    const earliestDay = days.at(-1);
    if (isCut && earliestDay === undefined) return refuse(TOO_MANY_KEYS, 'key');
    const page = await listAll(query, days, (id, own) => this.#read(id, (ledger) => ledger.list(own)));
    const hasMore = page.next === null && isCut && earliestDay !== undefined;
    return ok(hasMore ? { ...page, next: firstIdAt(earliestDay.day * DAY_MS) } : page);
  }

  #activeDays(from: number, to: number): Promise<ActiveDays> {
    return this.#read(DIRECTORY, (directory) => directory.activeDays(from, to));
  }

  async #find(requestId: string, keyId: string | null): Promise<Result<ListedRecord | null, ApiError>> {
    if (keyId !== null) return ok(await this.#read(keyId, (ledger) => ledger.find(requestId)));
    const day = dayOf(requestId);
    const { days, isCut } = await this.#activeDays(day, day);
    if (isCut) return refuse(TOO_MANY_KEYS, 'key');
    const keyIds = days.flatMap((active) => active.keyIds);
    for (let at = 0; at < keyIds.length; at += QUERIED_LEDGERS_AT_ONCE) {
      const some = keyIds.slice(at, at + QUERIED_LEDGERS_AT_ONCE);
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

const TOO_MANY_KEYS = `More than ${MAX_QUERIED_LEDGERS} keys had requests on that day: name one with key=`;

const TOO_MANY_LEDGERS = `A report over all keys by hour, for parts of days, or by user, session, app, tag or cache_cause reads at most ${MAX_QUERIED_LEDGERS} keys with requests on a day: choose whole days (UTC) without these, or one key with key=`;

/** The day of an id, in days since the epoch. */
function dayOf(id: string): number {
  return Math.floor(idTime(id) / DAY_MS);
}

/** The latest day that has ids before this one. */
function lastDayBefore(id: string): number {
  return Math.floor((endOfIds(id) - 1) / DAY_MS);
}

function reportOf(rows: readonly SumRow[], groups: ReportQuery['groups']): Result<Report, ApiError> {
  const report = new Report(groups);
  addRows(report, rows);
  return ok(report);
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
    ? 'query whole days (UTC), not by hour, and by one of user, session, app, tag and cache_cause'
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

/** The fewest records that one call reads from an object, however many objects there are. */
const MIN_CHUNK = 20;

type ListOne = (keyId: string, query: RecordQuery) => Promise<LedgerPage>;

/**
 * Merges the records of several keys, latest first. Reads each object only as far as its records are next.
 * @param days the keys to read, latest day first
 */
async function listAll(
  query: RecordQuery,
  days: readonly ActiveDay[],
  listOne: ListOne,
): Promise<LedgerPage> {
  const records: UsageRecord[] = [];
  let calls = 0;
  for (const { day, keyIds } of days) {
    const fromId = latest(query.fromId, firstIdAt(day * DAY_MS));
    const beforeId = earliest(query.beforeId, firstIdAt((day + 1) * DAY_MS));
    const sources = keyIds.map((keyId) => new RecordSource(keyId, beforeId));
    const share = Math.ceil((2 * query.limit) / sources.length);
    const limit = Math.min(query.limit, Math.max(MIN_CHUNK, share));
    const readSource = async (source: RecordSource) => {
      calls++;
      source.addPage(
        await listOne(source.keyId, { ...query, fromId, beforeId: source.position ?? fromId, limit }),
      );
    };
    for (let at = 0; at < sources.length; at += QUERIED_LEDGERS_AT_ONCE)
      await Promise.all(sources.slice(at, at + QUERIED_LEDGERS_AT_ONCE).map(readSource));
    for (let source = leading(sources); source !== undefined; source = leading(sources)) {
      const last = records.at(-1);
      if (records.length === query.limit && last !== undefined) return { records, next: last.request_id };
      const record = source.shift();
      if (record !== undefined) records.push(record);
      else if (calls < 2 * MAX_QUERIED_LEDGERS) await readSource(source);
      else return { records, next: source.position };
    }
  }
  return { records, next: null };
}

/** The records of one key: a page that was read, and where the next page begins. */
class RecordSource {
  readonly keyId: string;
  #records: UsageRecord[] = [];
  #next: string | null;

  constructor(keyId: string, beforeId: string) {
    this.keyId = keyId;
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

/** The source whose next record may be the latest of all. */
function leading(sources: readonly RecordSource[]): RecordSource | undefined {
  let best: RecordSource | undefined;
  for (const source of sources) {
    if (source.position !== null && source.position > (best?.position ?? '')) best = source;
  }
  return best;
}

function latest(a: string, b: string): string {
  return a > b ? a : b;
}

function earliest(a: string, b: string): string {
  return a < b ? a : b;
}

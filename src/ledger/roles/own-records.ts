/** The records of one ledger, the object of a key or of a shard of it: their settlement, their sums, and what leaves the object. */
import type { SentPrefix } from '../../metering/cache-breaks.ts';
import type { RecordQuery, ReportQuery } from '../../metering/ledger.ts';
import type { ChargedRecord, UsageRecord } from '../../metering/record.ts';
import { DAY_MS, isoTime } from '../../metering/time.ts';
import { callTwice } from '../../shared/durable-objects.ts';
import type { ErasedSums } from '../directory/directory.ts';
import {
  archiveOf,
  directoryOf,
  FIRST_DIRECTORY,
  type RecordCalls,
  type StoredRecordCalls,
} from '../ledger-calls.ts';
import { compareRecords, compareSent, createCacheSessions } from '../records/cache-sessions.ts';
import { KeyRecords } from '../records/key-records.ts';
import {
  createRecords,
  deleteRecords,
  hasRecords,
  insertRecords,
  type LedgerPage,
  placeOf,
  readState,
  setState,
} from '../records/records.ts';
import { addToHours, createSums, hasSent, hasSentDay, keyReport, type RowsResult } from '../records/sums.ts';
import { SEND_AFTER_MS, SumsSender } from '../records/sums-sender.ts';
import type { ErasedUserPart, UserCursor, UserPart, UsersPart } from '../records/user-records.ts';
import type { RolePorts } from './ports.ts';
import { answerWithin, type Job, succeeds } from './role.ts';

const RETRY_AFTER_MS = 60_000;
/** Another object that does not respond must not delay the next alarm. */
const MAX_CALL_MS = 10_000;

/** How long one alarm moves records. */
const MAX_ROOM_MS = 20_000;
/** After records have left, the alarm runs early only once so many bytes were added. */
const MIN_ROOM_BYTES = 65_536;

interface LedgerIdentity {
  readonly keyId: string;
  /** The name of the object. */
  readonly ledger: string;
  /** Charges newly stored records, in the transaction that stores them. */
  readonly charge: (records: readonly ChargedRecord[]) => void;
}

export class OwnRecords implements Omit<RecordCalls, 'readUser'>, StoredRecordCalls {
  readonly #ports: RolePorts;
  readonly #keyId: string;
  readonly #ledger: string;
  readonly #charge: LedgerIdentity['charge'];
  readonly #records: KeyRecords;
  readonly #sums: SumsSender;
  /** The size of the database at which records have to leave, in bytes; it is known once the alarm has run. */
  #fullAt = Number.POSITIVE_INFINITY;

  constructor(ports: RolePorts, { keyId, ledger, charge }: LedgerIdentity) {
    const { sql, transaction, bucket, now, startTimer, objects } = ports;
    this.#ports = ports;
    this.#keyId = keyId;
    this.#ledger = ledger;
    this.#charge = charge;
    this.#records = new KeyRecords({ sql, transaction, keyId: archiveOf(ledger), bucket, now, startTimer });
    this.#sums = new SumsSender({
      ...{ sql, transaction, now },
      recordDays: () => this.#recordDays,
      tell: (message) => {
        const directory = objects().getByName(directoryOf(ledger));
        return answerWithin(directory.takeSums(ledger, message), MAX_CALL_MS);
      },
    });
    createRecords(sql);
    createSums(sql);
    createCacheSessions(sql);
  }

  readonly deleteOld: Job = (now) => this.#deleteOld(now);
  readonly send: Job = (now) => this.#sums.send(now);
  /** They call others. */
  readonly room: readonly Job[] = [(now) => this.#deleteArchived(now), (now) => this.#makeRoom(now)];

  get hasWork(): boolean {
    const { sql } = this.#ports;
    return hasRecords(sql) || readState(sql).archived_until > 0;
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    const { sql, transaction, alarm } = this.#ports;
    const setFor = await alarm.read();
    const { forgotten, isNew } = transaction(() => {
      const state = readState(sql);
      const days = recordDays ?? state.record_days;
      if (days !== state.record_days) setState(sql, 'record_days', days);
      const byPlace = Map.groupBy(records, (record) => placeOf(sql, record, state));
      const { new: fresh = [], forgotten: old = [] } = Object.fromEntries(byPlace);
      const inserted = insertRecords(sql, compareRecords(sql, fresh));
      addToHours(sql, inserted, state);
      this.#charge(inserted);
      this.#sums.note(inserted);
      return {
        forgotten: old.map((record) => record.request_id),
        isNew: inserted.some(({ time }) => !hasSentDay(sql, Math.floor(Date.parse(time) / DAY_MS))),
      };
    });
    // Without an await after the transaction, so that there is never a record without an alarm.
    const now = this.#ports.now();
    // The directory learns at once on which days a key has records, and then finds each of them. A directory that fails
    // is not called more often.
    const isUrgent = isNew && (setFor === null || setFor > now + RETRY_AFTER_MS);
    const isFull = sql.databaseSize > this.#fullAt;
    alarm.wakeBy(isUrgent || isFull ? now : now + SEND_AFTER_MS);
    return forgotten;
  }

  async find(requestId: string): Promise<UsageRecord | null> {
    return this.#records.find(requestId);
  }

  async list(query: RecordQuery): Promise<LedgerPage> {
    return this.#records.list(query);
  }

  async report(query: ReportQuery): Promise<RowsResult> {
    const readRecords = (from: string, before: string) => this.#records.each(from, before);
    return keyReport(this.#ports.sql, query, this.#keyId, readRecords);
  }

  async reportUnsent(query: ReportQuery): Promise<RowsResult> {
    return hasSent(this.#ports.sql) ? { kind: 'rows', rows: [] } : this.report(query);
  }

  async sendSums(): Promise<boolean> {
    const next = await this.#sums.send(this.#ports.now());
    if (next !== null) await this.#ports.alarm.setBy(next);
    return next === null;
  }

  async readUser(names: readonly string[], cursor: UserCursor): Promise<UserPart> {
    return this.#records.readUser(names, cursor);
  }

  async eraseUser(
    names: readonly string[],
    cursor: UserCursor,
    beforeId: string | null,
  ): Promise<ErasedUserPart> {
    const eraseSums = (sessions: ErasedSums['sessions']) =>
      callTwice(
        () => this.#ports.objects().getByName(directoryOf(this.#ledger)),
        (directory) => directory.eraseSums(this.#ledger, { users: names, beforeId, sessions }),
      );
    // What is sent meanwhile would arrive after the directory has erased it.
    return this.#sums.pausedFor(() => this.#records.eraseUser(names, cursor, beforeId, eraseSums));
  }

  async usersOfRecords(after: string, beforeId: string): Promise<UsersPart> {
    return this.#records.usersOfRecords(after, beforeId);
  }

  async compareCache(session: string, sent: SentPrefix): Promise<string> {
    return compareSent(this.#ports.sql, session, sent);
  }

  /** How many days single records are kept, wherever they are. */
  get #recordDays(): number {
    return readState(this.#ports.sql).record_days || this.#ports.recordDays();
  }

  #deleteOld(now: number): number | null {
    const { sql, transaction } = this.#ports;
    const keptMs = this.#recordDays * DAY_MS;
    const oldest = transaction(() => deleteRecords(sql, now - keptMs));
    if (oldest === null) return null;
    // Records are deleted once a day.
    return oldest < now - keptMs ? now : oldest + keptMs + DAY_MS;
  }

  /** Deletes days of the archive, as old records of the object. */
  async #deleteArchived(now: number): Promise<number | null> {
    const keptMs = this.#recordDays * DAY_MS;
    try {
      const first = await this.#records.deleteArchived(now - keptMs);
      return first === null ? null : Math.max(first + keptMs + DAY_MS, now + DAY_MS);
    } catch (error) {
      this.#ports.log({ event: 'archive_failed', key_id: this.#keyId, reason: String(error) });
      return now + RETRY_AFTER_MS;
    }
  }

  /** Lets the oldest records leave, if there are too many. */
  async #makeRoom(now: number): Promise<number | null> {
    const { sql, transaction, roomLimits, log } = this.#ports;
    const limits = await roomLimits();
    const { archived, deleted, isOver, problem } = await this.#records.makeRoom(limits, now + MAX_ROOM_MS);
    const state = readState(sql);
    if (state.archive_failing > 0 !== (problem !== null))
      transaction(() => {
        setState(sql, 'archive_failing', problem === null ? 0 : now);
        setState(sql, 'is_note_due', 1);
      });
    const key_id = this.#keyId;
    const before = isoTime(state.moved_before);
    if (archived > 0) log({ event: 'records_archived', key_id, records: archived, before });
    if (deleted > 0) log({ event: 'records_deleted', key_id, records: deleted, before });
    if (problem !== null) log({ event: 'archive_failed', key_id, reason: problem });
    const free = Math.max(this.#records.freeBytes(limits), MIN_ROOM_BYTES);
    this.#fullAt = problem === null ? sql.databaseSize + free : Number.POSITIVE_INFINITY;
    const isNoted = await this.#noteFull(problem);
    return problem !== null || !isNoted ? now + RETRY_AFTER_MS : isOver ? now : null;
  }

  /** Tells the directory that records were deleted, or that the archive fails or works again, so that an admin sees it. */
  async #noteFull(reason: string | null): Promise<boolean> {
    const { sql, objects } = this.#ports;
    const state = readState(sql);
    if (state.is_note_due === 0) return true;
    const note = {
      deletedRecords: state.deleted_records,
      deletedBefore: state.moved_before,
      failingSince: state.archive_failing || null,
      reason,
    };
    const directory = objects().getByName(FIRST_DIRECTORY);
    if (!(await succeeds(directory.noteFull(this.#ledger, note), MAX_CALL_MS))) return false;
    setState(sql, 'is_note_due', 0);
    return true;
  }
}

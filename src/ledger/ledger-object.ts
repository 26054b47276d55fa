/** The Durable Object of one gateway key: its limits, its usage records and the key itself. Some objects are directories of all keys. */
import { DurableObject } from 'cloudflare:workers';
import type {
  KeyStanding,
  LimitStatus,
  Limits,
  LimitsResult,
  NewTopUp,
  TopUpResult,
} from '../auth/key-limits.ts';
import { type KeyChange, type KeyChangeResult, type KeyStore, readKey } from '../auth/keys.ts';
import { readTeam, TEAM_ID } from '../auth/teams.ts';
import type { Erasure } from '../http/erasure.ts';
import { log } from '../http/log.ts';
import type { SentPrefix } from '../metering/cache-breaks.ts';
import type { FullKey, RecordQuery, ReportQuery } from '../metering/ledger.ts';
import type { Charge, ChargedRecord, UsageRecord } from '../metering/record.ts';
import type { RefusalBatch, RefusalQuery, RefusalRow } from '../metering/refusals.ts';
import { DAY_MS, isoTime } from '../metering/time.ts';
import { inJurisdiction, type PlaceableNamespace } from '../settings/placement.ts';
import { SettingsReader } from '../settings/reader.ts';
import { callTwice } from '../shared/durable-objects.ts';
import type { JsonObject } from '../shared/json.ts';
import { type OperatorAlert, OperatorAlerts, type ProviderCounts } from './alerts/operator-alerts.ts';
import type { AlertSettings } from './alerts/send-alert.ts';
import type { ActiveHours } from './directory/active-keys.ts';
import { Directory, type ErasedSums, type FoundRecord } from './directory/directory.ts';
import type { ReportPart } from './directory/directory-reports.ts';
import { FirstDirectory } from './directory/first-directory.ts';
import { MAX_RECENT_BYTES, type RecentPage } from './directory/recent-records.ts';
import { createRefusals, sumRefusals, takeRefusals } from './directory/refusals.ts';
import { ErasureRun } from './erasures.ts';
import {
  ALERTS,
  DIRECTORIES,
  directoryOf,
  ERASURES,
  FIRST_DIRECTORY,
  type LedgerNamespace,
  type LedgerStub,
  readObjectName,
  teamIdOf,
  teamObject,
  userObject,
} from './ledger-calls.ts';
import type { Amounts, LeaseAnswer, LeaseMessage, OpenAnswer } from './limits/allowance.ts';
import { BudgetAlerts } from './limits/budget-alerts.ts';
import { forgetSpent, hasErasedSpent } from './limits/erased-spent.ts';
import { Holder } from './limits/holder.ts';
import { changeLimits, createLimitTables, type LimitsRow, readLimitsRow } from './limits/limit-tables.ts';
import { boundedParents } from './limits/parent-calls.ts';
import { nextExpiry, type Reservation, type ReserveRequest } from './limits/reservations.ts';
import { addToBudget, currentTopUps } from './limits/top-ups.ts';
import type { ArchiveBucket } from './records/archive.ts';
import { compareRecords, compareSent, createCacheSessions } from './records/cache-sessions.ts';
import { createFullLedgers, type FullLedger, listFull, noteFull } from './records/full-ledgers.ts';
import { KeyRecords, type RoomLimits } from './records/key-records.ts';
import {
  createRecords,
  deleteRecords,
  hasRecords,
  insertRecords,
  type LedgerPage,
  placeOf,
  readState,
  setState,
} from './records/records.ts';
import type { DayRow } from './records/sum-columns.ts';
import {
  addToHours,
  changedDays,
  createSums,
  hasSent,
  hasSentDay,
  keepDays,
  keyReport,
  MAX_CHANGED_ROWS,
  type RowsResult,
} from './records/sums.ts';
import { type SumsMessage, UnsentSums } from './records/unsent-sums.ts';
import type { ErasedUserPart, UserCursor, UsersPart } from './records/user-records.ts';
import { readAlertSettings, readRecordDays, readRoomLimits } from './settings.ts';
import { StoredKey } from './stored-key.ts';

/** The part of an object's storage that the class uses. */
export type LedgerStorage = Pick<
  DurableObjectStorage,
  'sql' | 'transactionSync' | 'getAlarm' | 'setAlarm' | 'deleteAlarm' | 'deleteAll'
>;

export interface LedgerEnv {
  readonly WEIR_LEDGER: PlaceableNamespace<LedgerStub>;
  readonly WEIR_ARCHIVE?: ArchiveBucket;
  readonly WEIR_KV?: KeyStore;
  readonly [name: string]: unknown;
}

/** An object has one alarm, which several jobs share. Each does the work that is due, and returns when it is due next (ms since the epoch), or null. */
type Job = (now: number) => number | null | Promise<number | null>;

/** The directory receives new sums within a minute. */
const SEND_AFTER_MS = 30_000;
const RETRY_AFTER_MS = 60_000;
/** A directory that does not respond must not delay the next alarm. */
const MAX_SEND_MS = 10_000;

/** How long one alarm moves records. */
const MAX_ROOM_MS = 20_000;
/** After records have left, the alarm runs early only once so many bytes were added. */
const MIN_ROOM_BYTES = 65_536;

/** A request waits so long for what other users hold in advance. */
const MAX_RETURN_MS = 1000;
/** Objects of users of a revoked key that one alarm deletes. */
const MAX_CLEARED = 100;

export class LedgerObject extends DurableObject<LedgerEnv> implements LedgerStub {
  readonly #storage: LedgerStorage;
  readonly #sql: SqlStorage;
  readonly #keyId: string;
  readonly #jobs: readonly Job[];
  #storedKey: StoredKey | null = null;
  readonly #records: KeyRecords;
  /** The size of the database at which records have to leave, in bytes; it is known once the alarm has run. */
  #fullAt = Number.POSITIVE_INFINITY;
  /** The limits of the key, or of the user whose object this is. */
  readonly #holder: Holder;
  readonly #isUser: boolean;
  /** Null unless this is the object of a team. */
  readonly #teamId: string | null;
  /** Null unless this is the object of a key. */
  #alerts: BudgetAlerts | null = null;
  /** Null unless this is the object of alerts to the operator. */
  #operatorAlerts: OperatorAlerts | null = null;
  /** Null unless this is the object that runs erasures. */
  #erasures: ErasureRun | null = null;
  readonly #unsent: UnsentSums;
  #sending: Promise<number | null> | null = null;
  /** Erasures of users that run. */
  #erasing = 0;
  /** Null unless this is a directory. */
  #directory: Directory | null = null;
  /** Null unless this is the directory of 0.2. */
  #firstDirectory: FirstDirectory | null = null;
  /** The time of the alarm; undefined: it was not read yet. */
  #alarmAt: number | null | undefined;

  /** @param storage the object's own, or a wrapper around it */
  constructor(context: DurableObjectState, env: LedgerEnv, storage: LedgerStorage = context.storage) {
    super(context, env);
    this.#storage = storage;
    this.#sql = storage.sql;
    const { keyId, user } = readObjectName(context.id.name ?? '');
    this.#keyId = keyId;
    this.#records = new KeyRecords({
      sql: this.#sql,
      transaction: (act) => storage.transactionSync(act),
      keyId,
      bucket: env.WEIR_ARCHIVE ?? null,
      now: () => Date.now(),
      startTimer: (ms, onFire) => {
        const timer = setTimeout(onFire, ms);
        return () => clearTimeout(timer);
      },
    });
    this.#unsent = new UnsentSums({
      sql: this.#sql,
      recordDays: () => this.#recordDays,
      now: () => Date.now(),
    });
    this.#isUser = user !== null;
    this.#teamId = teamIdOf(keyId);
    this.#holder = this.#openHolder(user);
    if (this.#isUser) {
      this.#jobs = [() => this.#holder.alarm()];
      context.waitUntil(this.#setMissingAlarm());
      return;
    }
    if (DIRECTORIES.includes(this.#keyId)) {
      const directory = new Directory({ ...this.#directoryPorts, maxRecordBytes: this.maxRecentBytes });
      this.#directory = directory;
      this.#jobs = [(now) => directory.alarm(now)];
      context.waitUntil(this.#setMissingAlarm());
      return;
    }
    if (this.#keyId === FIRST_DIRECTORY) {
      createRefusals(this.#sql);
      createFullLedgers(this.#sql);
      const directory = new FirstDirectory(this.#directoryPorts);
      this.#firstDirectory = directory;
      this.#jobs = [(now) => directory.alarm(now)];
      if (directory.hasWork) context.waitUntil(this.#setAlarmBy(Date.now()));
      return;
    }
    if (this.#keyId === ERASURES) {
      const run = new ErasureRun({
        sql: this.#sql,
        now: () => Date.now(),
        store: () => {
          if (env.WEIR_KV === undefined)
            throw new Error('WEIR_KV is not bound in the Worker that has LedgerObject');
          return env.WEIR_KV;
        },
        step: (erasure) => this.stepErasure(erasure),
        setAlarm: (at) => this.#setAlarmBy(at),
      });
      this.#erasures = run;
      this.#jobs = [() => run.alarm()];
      context.waitUntil(this.#setMissingAlarm());
      return;
    }
    if (this.#keyId === ALERTS) {
      const alerts = new OperatorAlerts({
        sql: this.#sql,
        settings: () => this.alertSettings(),
        wake: () => this.#setAlarmBy(Date.now()),
        fetch: (input, init) => fetch(input, init),
        log,
      });
      this.#operatorAlerts = alerts;
      this.#jobs = [(now) => alerts.send(now)];
      context.waitUntil(this.#setMissingAlarm());
      return;
    }
    createLimitTables(this.#sql);
    const alerts = new BudgetAlerts({
      keyId,
      teamId: this.#teamId,
      keyName: () => this.#keyName(),
      sql: this.#sql,
      transaction: (act) => storage.transactionSync(act),
      settings: () => this.alertSettings(),
      fetch: (input, init) => fetch(input, init),
      log,
    });
    this.#alerts = alerts;
    const sendAlerts = async (now: number) => {
      await alerts.note(now);
      return alerts.send(now);
    };
    if (this.#teamId !== null) {
      this.#jobs = [() => this.#holder.alarm(), sendAlerts];
      context.waitUntil(this.#setMissingAlarm());
      return;
    }
    createRecords(this.#sql);
    createSums(this.#sql);
    createCacheSessions(this.#sql);
    // The jobs that call others are last.
    this.#jobs = [
      () => this.#holder.alarm(),
      (now) => this.#clearUsers(now),
      (now) => this.#storage.transactionSync(() => forgetSpent(this.#sql, now, this.#key.isSurelyRevoked)),
      (now) => this.#deleteOld(now),
      (now) => this.#sendChanged(now),
      sendAlerts,
      (now) => this.#deleteArchived(now),
      (now) => this.#makeRoom(now),
    ];
    context.waitUntil(this.#setMissingAlarm());
  }

  /** Sets the alarm of an object that has work for it: one whose tries all failed is gone. A later day is early enough, as it is rare. */
  async #setMissingAlarm(): Promise<void> {
    if ((await this.#readAlarm()) !== null || !this.#hasWork) return;
    await this.#setAlarmBy(Date.now() + DAY_MS);
  }

  /** The other objects, in the same jurisdiction. */
  get #objects(): LedgerNamespace {
    return inJurisdiction(this.env.WEIR_LEDGER, this.ctx.id.jurisdiction);
  }

  get #directoryPorts() {
    return {
      sql: this.#sql,
      transaction: <Value>(act: () => Value) => this.#storage.transactionSync(act),
      read: <Value>(keyId: string, call: (ledger: LedgerStub) => Promise<Value>) =>
        callTwice(() => this.#objects.getByName(keyId), call),
    };
  }

  /** What the records of a directory take at most. */
  protected get maxRecentBytes(): number {
    return MAX_RECENT_BYTES;
  }

  get #hasWork(): boolean {
    if (this.#isUser) return this.#holder.isOpen;
    if (this.#directory !== null) return this.#directory.hasWork;
    if (this.#erasures !== null) return this.#erasures.nextDue !== null;
    if (this.#operatorAlerts !== null) return this.#operatorAlerts.nextDue !== null;
    const hasLimitWork = nextExpiry(this.#sql) !== null || (this.#alerts?.nextDue ?? null) !== null;
    if (this.#teamId !== null || hasLimitWork || this.#holder.hasTeams)
      return hasLimitWork || this.#holder.hasTeams;
    return hasRecords(this.#sql) || readState(this.#sql).archived_until > 0;
  }

  /** The name of the key in KV; null: there is no such key, or it cannot be read now. */
  async #keyName(): Promise<string | null> {
    const { WEIR_KV: store } = this.env;
    if (store === undefined) return null;
    if (this.#teamId !== null)
      return (await answerWithin(readTeam(store, this.#teamId), MAX_SEND_MS))?.name ?? null;
    const found = await answerWithin(readKey(store, this.#keyId), MAX_SEND_MS);
    return found === null || found === 'unreadable' ? null : found.key.name;
  }

  get #key(): StoredKey {
    this.#storedKey ??= new StoredKey({
      sql: this.#sql,
      transaction: (act) => this.#storage.transactionSync(act),
      store: this.env.WEIR_KV ?? null,
      isTeam: this.#teamId !== null,
      wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    });
    return this.#storedKey;
  }

  async settle(records: readonly ChargedRecord[], recordDays?: number): Promise<readonly string[]> {
    const alarm = await this.#readAlarm();
    const { forgotten, isNew } = this.#storage.transactionSync(() => {
      const state = readState(this.#sql);
      const days = recordDays ?? state.record_days;
      if (days !== state.record_days) setState(this.#sql, 'record_days', days);
      const byPlace = Map.groupBy(records, (record) => placeOf(this.#sql, record, state));
      const { new: fresh = [], forgotten: old = [] } = Object.fromEntries(byPlace);
      const inserted = insertRecords(this.#sql, compareRecords(this.#sql, fresh));
      addToHours(this.#sql, inserted, state);
      this.#holder.settleRecords(inserted);
      this.#unsent.note(inserted);
      return {
        forgotten: old.map((record) => record.request_id),
        isNew: inserted.some(({ time }) => !hasSentDay(this.#sql, Math.floor(Date.parse(time) / DAY_MS))),
      };
    });
    // Without an await after the transaction, so that there is never a record without an alarm.
    const now = Date.now();
    // The directory learns at once on which days a key has records, and then finds each of them. A directory that fails is not called more often.
    const isUrgent = isNew && (alarm === null || alarm > now + RETRY_AFTER_MS);
    const isFull = this.#sql.databaseSize > this.#fullAt;
    const due = isUrgent || isFull ? now : now + SEND_AFTER_MS;
    this.#wakeBy(due);
    await this.#noteAlerts(now);
    return forgotten;
  }

  async find(requestId: string): Promise<UsageRecord | null> {
    return this.#records.find(requestId);
  }

  async list(query: RecordQuery): Promise<LedgerPage> {
    return this.#records.list(query);
  }

  async report(query: ReportQuery): Promise<RowsResult> {
    return keyReport(this.#sql, query, this.#keyId, (from, before) => this.#records.each(from, before));
  }

  async reportUnsent(query: ReportQuery): Promise<RowsResult> {
    return hasSent(this.#sql) ? { kind: 'rows', rows: [] } : this.report(query);
  }

  async sendSums(): Promise<boolean> {
    const next = await this.#sendChanged(Date.now());
    if (next !== null) await this.#setAlarmBy(next);
    return next === null;
  }

  async readUser(names: readonly string[], cursor: UserCursor) {
    return { ...(await this.#records.readUser(names, cursor)), users: this.#holder.children.among(names) };
  }

  async eraseUser(
    names: readonly string[],
    cursor: UserCursor,
    beforeId: string | null,
  ): Promise<ErasedUserPart> {
    if (beforeId === null) await this.#key.revokeOf(names, this.#keyId);
    // What is sent meanwhile would arrive after the directory has erased it.
    this.#erasing++;
    try {
      await this.#sending;
      return await this.#erase(names, cursor, beforeId);
    } finally {
      this.#erasing--;
    }
  }

  #erase(names: readonly string[], cursor: UserCursor, beforeId: string | null): Promise<ErasedUserPart> {
    const eraseSums = (sessions: ErasedSums['sessions']) =>
      callTwice(
        () => this.#objects.getByName(directoryOf(this.#keyId)),
        (directory) => directory.eraseSums(this.#keyId, { users: names, beforeId, sessions }),
      );
    return this.#records.eraseUser(names, cursor, beforeId, eraseSums);
  }

  async usersOfRecords(after: string, beforeId: string): Promise<UsersPart> {
    return this.#records.usersOfRecords(after, beforeId);
  }

  /** Takes steps of an erasure. A Worker overrides it with its gateway, which knows all stores. */
  protected async stepErasure(_erasure: Erasure): Promise<Erasure | null> {
    throw new Error('This class has no gateway: export gateway.objects.LedgerObject');
  }

  async startErasure(erasure: Erasure): Promise<Erasure> {
    return this.#run.start(erasure);
  }

  async findErasure(id: string): Promise<Erasure | null> {
    return this.#run.find(id);
  }

  get #run(): ErasureRun {
    if (this.#erasures === null) throw new Error('Not the object of erasures');
    return this.#erasures;
  }

  get #asAlerts(): OperatorAlerts {
    if (this.#operatorAlerts === null) throw new Error('Not the object of alerts');
    return this.#operatorAlerts;
  }

  async takeCalls(counts: ProviderCounts): Promise<number | null> {
    return this.#asAlerts.takeCalls(counts, Date.now());
  }

  async noteAlert(alert: OperatorAlert): Promise<number> {
    return this.#asAlerts.note(alert, Date.now());
  }

  async compareCache(session: string, sent: SentPrefix): Promise<string> {
    return compareSent(this.#sql, session, sent);
  }

  get #asDirectory(): Directory {
    if (this.#directory === null) throw new Error('Not a directory');
    return this.#directory;
  }

  async takeSums(keyId: string, message: SumsMessage): Promise<readonly number[]> {
    return this.#asDirectory.takeSums(keyId, message);
  }

  async reportPart(query: ReportQuery, after: string | null): Promise<ReportPart> {
    return (this.#firstDirectory ?? this.#asDirectory).reportPart(query, after);
  }

  async listRecent(query: RecordQuery): Promise<RecentPage> {
    return this.#asDirectory.listRecent(query);
  }

  async activeHours(query: RecordQuery, beforeKey: string | null): Promise<ActiveHours> {
    return this.#asDirectory.activeHours(query, beforeKey);
  }

  async findOfAll(requestId: string, after: string | null): Promise<FoundRecord> {
    return this.#asDirectory.findOfAll(requestId, after);
  }

  async keyIdsAfter(after: string): Promise<readonly string[]> {
    return (this.#firstDirectory ?? this.#asDirectory).keyIdsAfter(after);
  }

  async eraseSums(keyId: string, erased: ErasedSums): Promise<void> {
    this.#asDirectory.eraseSums(keyId, erased);
  }

  async takeDays(keyId: string, rows: readonly DayRow[]): Promise<void> {
    this.#firstDirectory?.takeDays(keyId, rows);
    await this.#setAlarmBy(Date.now());
  }

  async noteFull(keyId: string, ledger: FullLedger): Promise<void> {
    this.#storage.transactionSync(() => noteFull(this.#sql, keyId, ledger, Date.now()));
  }

  async fullLedgers(): Promise<readonly FullKey[]> {
    return listFull(this.#sql, Date.now());
  }

  async takeRefusals(batch: RefusalBatch): Promise<void> {
    this.#storage.transactionSync(() => takeRefusals(this.#sql, batch));
  }

  async refusals(query: RefusalQuery): Promise<readonly RefusalRow[]> {
    return sumRefusals(this.#sql, query);
  }

  async reserve(request: ReserveRequest): Promise<Reservation> {
    await this.#readAlarm();
    return this.#holder.reserve(request);
  }

  reserveForUser(request: ReserveRequest): Promise<Reservation> {
    return this.reserve(request);
  }

  async settleReservation(id: string, charge: Charge): Promise<void> {
    await this.#readAlarm();
    this.#holder.settle(id, charge);
    await this.#noteAlerts(Date.now());
  }

  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    await this.#readAlarm();
    await this.#holder.settleUnreserved(id, charge, day);
    await this.#noteAlerts(Date.now());
  }

  /** Has alerts sent by the alarm, as soon as what was spent reaches one. */
  async #noteAlerts(now: number): Promise<void> {
    if (await this.#alerts?.note(now)) await this.#setAlarmBy(now);
  }

  /** Where alerts go, by the variables of the Worker. A Worker overrides it with the settings of its gateway, which has options. */
  protected async alertSettings(): Promise<AlertSettings> {
    return readAlertSettings(new SettingsReader(this.env));
  }

  async standing(listed: JsonObject | null = null): Promise<KeyStanding> {
    const limits = this.#holder.limits(listed);
    const keys = this.#teamId === null ? {} : { keys: this.#holder.children.members };
    return {
      ...this.#holder.standing(limits),
      topUps: currentTopUps(this.#sql, limits, Date.now()),
      ...keys,
    };
  }

  async addToBudget(added: NewTopUp, listed: JsonObject | null = null): Promise<TopUpResult> {
    const limits = this.#holder.limits(listed);
    return this.#storage.transactionSync(() => addToBudget(this.#sql, limits, added, Date.now()));
  }

  async limitsRow(): Promise<LimitsRow> {
    return readLimitsRow(this.#sql);
  }

  async changeLimits(fields: JsonObject): Promise<LimitsResult> {
    const missing = await this.#joinTeam(fields);
    if (missing !== null) return missing;
    const result = this.#storage.transactionSync(() => changeLimits(this.#sql, fields));
    await this.#holder.changed();
    return result;
  }

  /** Before a key names a team, the team counts it. @returns the error if there is no such team */
  async #joinTeam({ team = null }: JsonObject): Promise<Extract<LimitsResult, { kind: 'invalid' }> | null> {
    if (typeof team !== 'string' || this.#teamId !== null) return null;
    await this.#setAlarmBy(Date.now() + RETRY_AFTER_MS);
    if (TEAM_ID.test(team) && (await this.#holder.join(team))) return null;
    return { kind: 'invalid', message: `There is no team ${team.slice(0, 100)}`, param: 'team' };
  }

  async deleteTeam(): Promise<number> {
    const keys = this.#holder.children.members;
    if (keys === 0) await this.#key.revokeKey(this.#teamId ?? '');
    return keys;
  }

  async openUser(user: string, listed: JsonObject | null = null, hash?: string): Promise<OpenAnswer> {
    await this.#readAlarm();
    await this.#restoreTeam();
    return this.#holder.openChild(user, listed, hash);
  }

  /** The object of a team that is new, as after a restoration from a backup, takes the team from KV. */
  async #restoreTeam(): Promise<void> {
    const { WEIR_KV: store } = this.env;
    if (this.#teamId === null || store === undefined || this.#key.isStored) return;
    const key = await readTeam(store, this.#teamId);
    if (key !== null) await this.#key.changeKey({ key, fields: {}, limits: key.limits ?? {} });
  }

  async lease(message: LeaseMessage): Promise<LeaseAnswer> {
    await this.#readAlarm();
    await this.#restoreTeam();
    const answer = await this.#holder.lend(message);
    const until = message.erased?.until ?? null;
    if (until !== null) await this.#setAlarmBy(until);
    if (message.charges.length > 0) await this.#noteAlerts(Date.now());
    return answer;
  }

  /** Deletes the objects of the users of a revoked key. The key counts what they were charged. */
  async #clearUsers(now: number): Promise<number | null> {
    const users = this.#holder.children.names(MAX_CLEARED);
    if (users.length === 0 || !this.#key.isSurelyRevoked) return null;
    const cleared = await Promise.all(
      users.map(async (user) => {
        const object = this.#objects.getByName(userObject(this.#keyId, user));
        // An object of an earlier version returns nothing.
        const clearing = object.clearUser().then((isDone) => isDone !== false);
        const isCleared = (await answerWithin(clearing, MAX_SEND_MS)) === true;
        if (isCleared) this.#storage.transactionSync(() => this.#holder.children.remove(user));
        return isCleared;
      }),
    );
    return cleared.every((isCleared) => isCleared) ? now : now + RETRY_AFTER_MS;
  }

  #openHolder(user: string | null): Holder {
    const keyId = this.#keyId;
    return new Holder({
      level: user !== null ? 'user' : this.#teamId === null ? 'key' : 'team',
      name: user ?? keyId,
      sql: this.#sql,
      transaction: (act) => this.#storage.transactionSync(act),
      now: () => Date.now(),
      parent:
        this.#teamId === null
          ? boundedParents(
              (team) => this.#objects.getByName(user === null ? teamObject(team) : keyId),
              () => Date.now(),
            )
          : null,
      isRevoked: () =>
        user === null && (this.#key.isRevoked || (this.#teamId !== null && !this.#key.isStored)),
      returnLease: async (child) => {
        const name = this.#teamId === null ? userObject(keyId, child) : child;
        await succeeds(this.#objects.getByName(name).returnLease(), MAX_RETURN_MS);
      },
      wakeBy: (time) => this.#wakeBy(time),
      forget: async () => {
        this.#alarmAt = null;
        await this.#storage.deleteAlarm();
        await this.#storage.deleteAll();
      },
      log: (entry) => log({ ...entry, key_id: keyId }),
    });
  }

  async userStanding(limits: Limits): Promise<LimitStatus | null> {
    return this.#holder.status(limits);
  }

  async userSpent(): Promise<readonly Amounts[]> {
    return this.#holder.spent;
  }

  async eraseLimits(hash: string): Promise<boolean> {
    await this.#readAlarm();
    return this.#holder.drain(hash);
  }

  async returnLease(): Promise<void> {
    await this.#readAlarm();
    await this.#holder.returnLease();
  }

  async clearUser(): Promise<boolean> {
    await this.#readAlarm();
    return this.#holder.drain(null);
  }

  async changeKey(change: KeyChange): Promise<KeyChangeResult> {
    // A key whose change is refused joins no team.
    const refused = this.#key.refusalOf(change) ?? (await this.#joinTeam(change.limits));
    if (refused !== null) return refused;
    const result = await this.#key.changeKey(change);
    await this.#holder.changed();
    return result;
  }

  async revokeKey(id: string): Promise<void> {
    try {
      await this.#key.revokeKey(id);
    } finally {
      const isKept =
        this.#holder.children.names(1).length > 0 || this.#holder.hasTeams || hasErasedSpent(this.#sql);
      if (isKept) await this.#setAlarmBy(Date.now());
    }
  }

  override async alarm(): Promise<void> {
    // The runtime has removed it.
    this.#alarmAt = null;
    const next: number[] = [];
    const problems: unknown[] = [];
    for (const job of this.#jobs) {
      try {
        const time = await job(Date.now());
        if (time !== null) next.push(time);
      } catch (error) {
        // The last job may make the room that another one lacks.
        problems.push(error);
      }
    }
    if (next.length > 0) await this.#setAlarmBy(Math.min(...next));
    // The runtime tries again.
    if (problems.length > 0) throw problems[0];
  }

  /** The time of the alarm, which is read from storage once. */
  async #readAlarm(): Promise<number | null> {
    if (this.#alarmAt === undefined) {
      const alarm = await this.#storage.getAlarm();
      this.#alarmAt ??= alarm;
    }
    return this.#alarmAt;
  }

  /** Sets the alarm to that time (ms since the epoch), unless it is already set to an earlier one. Its time was read before. */
  #wakeBy(time: number): void {
    if (typeof this.#alarmAt === 'number' && this.#alarmAt <= time) return;
    this.#alarmAt = time;
    void this.#storage.setAlarm(time);
  }

  async #setAlarmBy(time: number): Promise<void> {
    await this.#readAlarm();
    this.#wakeBy(time);
  }

  /** Sends changed sums to the key's directory, and retries later if that fails. The key's own reports do not depend on it. */
  #sendChanged(now: number): Promise<number | null> {
    if (this.#erasing > 0) return Promise.resolve(now + SEND_AFTER_MS);
    // Two at once would each count on what the other sends.
    this.#sending ??= this.#send(now).finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async #send(now: number): Promise<number | null> {
    const rows = changedDays(this.#sql, readState(this.#sql));
    if (rows.length === 0) return null;
    const missing = new Set<number>();
    for (const message of this.#unsent.messages(rows)) {
      const hours = await this.#tellDirectory(message);
      if (hours === null) {
        this.#unsent.forget();
        return now + RETRY_AFTER_MS;
      }
      // The message of an hour may be followed by one with its records.
      for (const hour of hours) missing.add(hour);
    }
    for (const hour of missing)
      for (const message of this.#unsent.recordsOfHour(hour))
        if ((await this.#tellDirectory(message)) === null) {
          this.#unsent.forget();
          return now + RETRY_AFTER_MS;
        }
    // Yesterday stays open: a request counts on the day of its arrival and may end on the next.
    this.#storage.transactionSync(() => keepDays(this.#sql, rows, Math.floor(now / DAY_MS) - 1));
    return rows.length === MAX_CHANGED_ROWS ? now : null;
  }

  /** @returns the hours of which the directory does not have all records; null: it cannot be reached */
  #tellDirectory(message: SumsMessage): Promise<readonly number[] | null> {
    const directory = this.#objects.getByName(directoryOf(this.#keyId));
    return answerWithin(directory.takeSums(this.#keyId, message), MAX_SEND_MS);
  }

  get #recordDays(): number {
    return readState(this.#sql).record_days || readRecordDays(this.env);
  }

  /** How long single records are kept, wherever they are. */
  get #keptMs(): number {
    return this.#recordDays * DAY_MS;
  }

  #deleteOld(now: number): number | null {
    const keptMs = this.#keptMs;
    const oldest = this.#storage.transactionSync(() => deleteRecords(this.#sql, now - keptMs));
    if (oldest === null) return null;
    // Records are deleted once a day.
    return oldest < now - keptMs ? now : oldest + keptMs + DAY_MS;
  }

  /** Deletes days of the archive, as old records of the object. */
  async #deleteArchived(now: number): Promise<number | null> {
    const keptMs = this.#keptMs;
    try {
      const first = await this.#records.deleteArchived(now - keptMs);
      return first === null ? null : Math.max(first + keptMs + DAY_MS, now + DAY_MS);
    } catch (error) {
      log({ event: 'archive_failed', key_id: this.#keyId, reason: String(error) });
      return now + RETRY_AFTER_MS;
    }
  }

  /** What the object may keep, by the variables of the Worker. A Worker overrides it with the settings of its gateway, which has options. */
  protected async roomLimits(): Promise<RoomLimits> {
    return readRoomLimits(new SettingsReader(this.env));
  }

  /** Lets the oldest records leave, if there are too many. */
  async #makeRoom(now: number): Promise<number | null> {
    const limits = await this.roomLimits();
    const { archived, deleted, isOver, problem } = await this.#records.makeRoom(limits, now + MAX_ROOM_MS);
    const state = readState(this.#sql);
    if (state.archive_failing > 0 !== (problem !== null))
      this.#storage.transactionSync(() => {
        setState(this.#sql, 'archive_failing', problem === null ? 0 : now);
        setState(this.#sql, 'is_note_due', 1);
      });
    const key_id = this.#keyId;
    const before = isoTime(state.moved_before);
    if (archived > 0) log({ event: 'records_archived', key_id, records: archived, before });
    if (deleted > 0) log({ event: 'records_deleted', key_id, records: deleted, before });
    if (problem !== null) log({ event: 'archive_failed', key_id, reason: problem });
    const free = Math.max(this.#records.freeBytes(limits), MIN_ROOM_BYTES);
    this.#fullAt = problem === null ? this.#sql.databaseSize + free : Number.POSITIVE_INFINITY;
    const isNoted = await this.#noteFull(problem);
    return problem !== null || !isNoted ? now + RETRY_AFTER_MS : isOver ? now : null;
  }

  /** Tells the directory that records were deleted, or that the archive fails or works again, so that an admin sees it. */
  async #noteFull(reason: string | null): Promise<boolean> {
    const state = readState(this.#sql);
    if (state.is_note_due === 0) return true;
    const note = {
      deletedRecords: state.deleted_records,
      deletedBefore: state.moved_before,
      failingSince: state.archive_failing || null,
      reason,
    };
    const directory = this.#objects.getByName(FIRST_DIRECTORY);
    if (!(await succeeds(directory.noteFull(this.#keyId, note), MAX_SEND_MS))) return false;
    setState(this.#sql, 'is_note_due', 0);
    return true;
  }
}

/** Whether the call succeeds within the time. Never rejects. */
async function succeeds(call: Promise<void>, ms: number): Promise<boolean> {
  return (
    (await answerWithin(
      call.then(() => true),
      ms,
    )) === true
  );
}

/** What the call returns within the time; null: it fails, or takes longer. Never rejects. */
async function answerWithin<Value>(call: Promise<Value>, ms: number): Promise<Value | null> {
  const timeout = Promise.withResolvers<null>();
  const timer = setTimeout(() => timeout.resolve(null), ms);
  const answer = await Promise.race([call.catch(() => null), timeout.promise]);
  clearTimeout(timer);
  return answer;
}

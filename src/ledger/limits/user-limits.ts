/** The limits of one user of a key, in the user's own ledger object, which leases from the allowance of the key what its requests need. */
import { dayOf, type LimitStatus, type Limits, limitsOfUser, periodEnd } from '../../auth/key-limits.ts';
import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  createLimitTables,
  readLimitStatus,
  type Sql,
  storedLimits,
  storeLimits,
  unreadableReason,
} from './limit-tables.ts';
import {
  expire,
  insertReservation,
  type LimitRefusal,
  type Needed,
  nextExpiry,
  outputLimit,
  type ReportedCharge,
  type ReserveRequest,
  readNeed,
  refuse,
  settle,
  settleUnreserved,
  type UpperBound,
  withReservation,
} from './reservations.ts';
import {
  hasTable,
  type LeaseAnswer,
  type LeaseMessage,
  type OpenAnswer,
  type Rate,
  type RunningSum,
  type Surplus,
} from './user-leases.ts';

/** The calls to the object of the key. A call that throws may have run. */
export interface KeyLeases {
  /** @param listed the limits that KV lists for the key */
  openUser(user: string, listed?: JsonObject | null): Promise<OpenAnswer>;
  lease(message: LeaseMessage): Promise<LeaseAnswer>;
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
}

export interface UserLimitsPorts {
  /** As it is stored; `''`: requests without a user. */
  readonly user: string;
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly now: () => number;
  readonly key: () => KeyLeases;
  /**
   * Sets the alarm to that time (ms since the epoch), unless it is already set to an earlier one. It does so before it returns, so that
   * it is stored together with what was written before.
   */
  readonly wakeBy: (time: number) => void;
  /** Deletes all data of the object, and its alarm. */
  readonly deleteAll: () => Promise<void>;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

export type UserReservation =
  | {
      readonly kind: 'reserved';
      readonly outputTokens: number | null;
      /** The limits of the user, and the limits of the key of kinds that the user has none of. */
      readonly standing: LimitStatus;
    }
  | {
      readonly kind: 'refused';
      readonly refusal: LimitRefusal;
      /** Of the object that refused. */
      readonly standing: LimitStatus;
      readonly by: 'user' | 'key';
    }
  /** `max_users` other users had requests on this day: the request counts against the allowance that all further users share. */
  | { readonly kind: 'shared' }
  | { readonly kind: 'revoked' };

/** How long allowance that is leased in advance, and limits of the key, may be used before the key is called again. */
const LEASE_MS = 10_000;
const RETRY_AFTER_MS = 60_000;
/** Needs of one message. */
const MAX_NEEDS = 500;
/** How often one request is checked again because limits change meanwhile. */
const MAX_ROUNDS = 5;
/** For how many requests the first lease is in advance, and the highest number. Each lease is for twice the requests of the last one. */
const FIRST_EXTRA = 15;
const MAX_EXTRA = 1000;
/** Objects of users are deleted after the end of the month, spread over this time. */
const DELETE_SPREAD_MS = 24 * 60 * 60 * 1000;

/**
 * - `link`: the last message to the key, and whether its answer has arrived.
 * - `reported`: the charges that the key has counted: before the message `seq` (`base`), and with it. A repeated message has the same
 *   difference.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS link (
    only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, is_answered INTEGER NOT NULL
  )`,
  `CREATE TABLE IF NOT EXISTS reported (
    kind TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, seq INTEGER NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, base_tokens INTEGER NOT NULL, base_cost INTEGER NOT NULL, PRIMARY KEY (kind, day, currency)
  ) WITHOUT ROWID`,
];

/** A request that waits for the key. */
interface Waiting {
  readonly request: ReserveRequest;
  readonly needed: Needed;
  readonly need: UpperBound;
  /** Null: the limits have changed, so the request is checked again. */
  readonly result: PromiseWithResolvers<UserReservation | null>;
  /** The request has ended: nothing is reserved for it. */
  isEnded: boolean;
}

/** A running request, as the minute of the key counts it. */
interface CountedRequest {
  readonly expectedTokens: number;
  /** Null: as part of a surplus, whose use is not reported yet. */
  second: number | null;
}

interface Correction {
  second: number | null;
  readonly moreTokens: number;
}

/**
 * What the object holds of the key's allowance is never less than what its requests may use:
 * - A message returns all surplus, and has the running requests. The key then holds exactly these for the user, and what it grants
 *   with the answer. Until the answer arrives, no request is admitted here.
 * - A settled request is charged here at once, and held by the key until the next message reports the charge.
 * - The surplus is only in memory. If that or an answer is lost, the alarm sends a message, and the key takes back what is not used.
 */
export class UserLimits {
  readonly #ports: UserLimitsPorts;
  readonly #sql: Sql;
  #isOpen: boolean;
  #opening: Promise<OpenAnswer> | null = null;
  #closing: Promise<void> | null = null;
  /** The day (UTC) on which this user shares the allowance of all further users. */
  #sharedDay: string | null = null;

  /** When the limits were read from the key, in ms since the epoch. */
  #limitsAt = Number.NEGATIVE_INFINITY;
  #standingOfKey: LimitStatus | null = null;
  #isExact = true;

  #surplus: (Surplus & { readonly until: number }) | null = null;
  /** The used part of the surplus; null: unknown. */
  #used: Rate | null = null;
  /** Requests that were admitted since the last message with needs. */
  #admitted = 0;
  /** By the ids of running requests. */
  readonly #counted = new Map<string, CountedRequest>();
  #corrections: Correction[] = [];

  #waiting: Waiting[] = [];
  /** The requests of the message whose answer has not arrived. */
  #sent: readonly Waiting[] = [];
  /** Sends messages until no request waits; null: no message is sent. */
  #sending: Promise<void> | null = null;
  /** Resolves when the answer of the last message has arrived. */
  #message: Promise<void> | null = null;
  #sendsAgain = false;
  /** The limits that KV lists for the key. */
  #listed: JsonObject | null = null;
  /** What the key holds for this object may differ from its running requests. */
  #isUnreported = true;

  constructor(ports: UserLimitsPorts) {
    this.#ports = ports;
    this.#sql = ports.sql;
    this.#isOpen = hasTable(ports.sql, 'link');
  }

  /** Whether the user had requests, so that there are rows. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Admits or refuses a request. A repeated call with the same id and attempts reserves nothing more. */
  async reserve(request: ReserveRequest): Promise<UserReservation> {
    this.#listed = request.limits ?? null;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const closed = await this.#open();
      if (closed !== null) return { kind: closed };
      const result = await this.#tryReserve(request);
      if (result !== null) return result;
    }
    throw new Error('The limits of the key change too often');
  }

  /** @returns null where the request must be checked again */
  async #tryReserve(request: ReserveRequest): Promise<UserReservation | null> {
    const { now, transaction, wakeBy } = this.#ports;
    const earlier = this.#allWaiting().find((one) => one.request.id === request.id);
    if (earlier !== undefined) await earlier.result.promise;
    const result = transaction(() => this.#reserveHere(request, now()));
    // Without an await after the transaction, so that there is never a reservation without an alarm.
    if (result.kind === 'reserved') wakeBy(now() + LEASE_MS);
    if (result.kind !== 'waits' && result.kind !== 'stale') return result;
    if (result.kind === 'stale') {
      await this.#send();
      return null;
    }
    this.#waiting.push(result.waiting);
    // A failure rejects all waiting requests.
    this.#send().catch(ignore);
    return result.waiting.result.promise;
  }

  /** Checks the limits of the user, then takes from the surplus, or waits for the key. */
  #reserveHere(
    request: ReserveRequest,
    now: number,
  ): UserReservation | { readonly kind: 'waits'; readonly waiting: Waiting } | { readonly kind: 'stale' } {
    // The alarm may be late, and what has expired must not keep its place.
    this.#expire(now);
    const limits = this.#limits;
    if (limits === null) return { kind: 'stale' };
    const own = limitsOfUser(limits);
    const needed = readNeed(
      this.#sql,
      { ...request, outputTokens: outputLimit(limits, request.outputTokens) },
      own,
    );
    const { need, outputTokens } = needed;
    const before = readLimitStatus(this.#sql, now, undefined, own);
    if (need === null) return { kind: 'reserved', outputTokens, standing: this.#merge(before) };
    const status = this.#allWaiting().reduce((sum, one) => withReservation(sum, one.need, now), before);
    const refusal = refuse(this.#sql, status, need, now);
    if (refusal !== null) {
      const isFresh = now - this.#limitsAt < LEASE_MS;
      return isFresh ? { kind: 'refused', refusal, standing: status, by: 'user' } : { kind: 'stale' };
    }
    if (this.#takeSurplus(need, now)) {
      return this.#insert({ request, needed, need }, null, before, now);
    }
    const result = Promise.withResolvers<UserReservation | null>();
    // A caller that has disconnected does not await it.
    result.promise.catch(ignore);
    return { kind: 'waits', waiting: { request, needed, need, result, isEnded: false } };
  }

  /** The limits of the key; null: this copy of them cannot be read, and the next message to the key replaces it. */
  get #limits(): Limits | null {
    try {
      return storedLimits(this.#sql);
    } catch (error) {
      const reason = unreadableReason(error);
      if (reason === null) throw error;
      this.#ports.log({ event: 'ledger_unreadable', reason });
      return null;
    }
  }

  #takeSurplus(need: UpperBound, now: number): boolean {
    const surplus = this.#surplus;
    if (surplus === null || surplus.until <= now || need.currency !== surplus.currency) return false;
    const left = {
      ...surplus,
      requests: surplus.requests - need.requests,
      tokens: surplus.tokens - need.tokens,
      expectedTokens: surplus.expectedTokens - need.expectedTokens,
      cost: surplus.cost - need.cost,
    };
    if (Math.min(left.requests, left.tokens, left.expectedTokens, left.cost) < 0) return false;
    this.#surplus = left;
    const { requests, tokens } = this.#used ?? { requests: 0, tokens: 0 };
    this.#used = { requests: requests + need.requests, tokens: tokens + need.expectedTokens };
    return true;
  }

  /** @param second in which the key's minute counts the request; null: as part of the surplus */
  #insert(
    { request, needed, need }: Pick<Waiting, 'request' | 'needed' | 'need'>,
    second: number | null,
    before: LimitStatus,
    now: number,
  ): Extract<UserReservation, { kind: 'reserved' }> {
    insertReservation(this.#sql, request, needed, before, now);
    this.#isUnreported = true;
    if (need.requests === 1) {
      this.#admitted++;
      this.#counted.set(request.id, { expectedTokens: need.expectedTokens, second });
    }
    const standing = this.#merge(withReservation(before, need, now));
    return { kind: 'reserved', outputTokens: needed.outputTokens, standing };
  }

  #allWaiting(): readonly Waiting[] {
    return [...this.#sent, ...this.#waiting].filter(({ isEnded }) => !isEnded);
  }

  /** The limits of the user, and the limits of the key of kinds that the user has none of. */
  #merge(own: LimitStatus): LimitStatus {
    const key = this.#standingOfKey;
    if (key === null) return own;
    const { budget, rpm, tpm, maxConcurrent } = own.limits;
    return {
      limits: {
        ...key.limits,
        budget: budget ?? key.limits.budget,
        rpm: rpm ?? key.limits.rpm,
        tpm: tpm ?? key.limits.tpm,
        maxConcurrent: maxConcurrent ?? key.limits.maxConcurrent,
      },
      budget: budget === null ? key.budget : own.budget,
      requests: own.requests ?? key.requests,
      tokens: own.tokens ?? key.tokens,
      running: own.running ?? key.running,
    };
  }

  /** Settles a request, or ends one that still waits. A repeated call changes nothing. */
  settle(id: string, charge: Charge): void {
    for (const waiting of this.#allWaiting()) {
      if (waiting.request.id !== id) continue;
      waiting.isEnded = true;
      waiting.result.reject(new Error('The request has ended'));
    }
    if (!this.#isOpen) return;
    const { transaction } = this.#ports;
    if (!transaction(() => settle(this.#sql, id, charge))) return;
    const counted = this.#counted.get(id);
    this.#counted.delete(id);
    if (counted !== undefined) {
      const moreTokens = (charge.recordedTokens ?? charge.tokens) - counted.expectedTokens;
      this.#correct(counted.second, moreTokens);
    }
    this.#reportLater();
  }

  #correct(second: number | null, moreTokens: number): void {
    if (second !== null || this.#message !== null) this.#corrections.push({ second, moreTokens });
    else if (this.#used !== null) this.#used = { ...this.#used, tokens: this.#used.tokens + moreTokens };
  }

  /** Settles a request that may have no reservation. A repeated call changes nothing. */
  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    const { now, transaction, key } = this.#ports;
    if ((await this.#open()) !== null) return key().settleUnreserved(id, charge, day);
    transaction(() => settleUnreserved(this.#sql, id, charge, day, now()));
    this.#reportLater();
  }

  #reportLater(): void {
    this.#isUnreported = true;
    this.#ports.wakeBy(this.#ports.now() + LEASE_MS);
    // Near the end of the key's allowance, other requests need what this one did not use.
    if (this.#isExact) this.#send(true).catch(ignore);
  }

  /** Returns what is leased in advance: the key needs it. */
  async returnLease(): Promise<void> {
    await this.#message;
    if (this.#surplus !== null) await this.#send(true);
  }

  /** The use of these limits; null: the user has no requests yet. */
  status(limits: Limits): LimitStatus | null {
    if (!this.#isOpen) return null;
    return readLimitStatus(this.#sql, this.#ports.now(), undefined, limitsOfUser(limits));
  }

  /** Deletes the object of a user whose key is revoked. */
  async clear(): Promise<void> {
    this.#isOpen = false;
    this.#surplus = null;
    this.#counted.clear();
    await this.#ports.deleteAll();
  }

  /**
   * Charges reservations that were not settled, and returns to the key what is not used.
   * @returns when it has work again, in ms since the epoch; null: never
   */
  async alarm(): Promise<number | null> {
    const { now, transaction } = this.#ports;
    if (!this.#isOpen) return null;
    transaction(() => this.#expire(now()));
    try {
      if (this.#isUnreported || this.#surplus !== null) await this.#send(true);
      const next = nextExpiry(this.#sql);
      if (this.#isUnreported) return now() + LEASE_MS;
      return next ?? (await this.#deleteOld());
    } catch {
      return now() + RETRY_AFTER_MS;
    }
  }

  #expire(now: number): void {
    for (const { id, day, tokens, currency, cost } of expire(this.#sql, now)) {
      this.#counted.delete(id);
      this.#isUnreported = true;
      this.#ports.log({ event: 'reservation_expired', id, day, tokens, currency, cost });
    }
  }

  /** Deletes the object when no budget period needs what it has: after the month of its last charge. */
  async #deleteOld(): Promise<number | null> {
    const { now, user } = this.#ports;
    const limits = this.#limits;
    if (limits === null) {
      await this.#send(true);
      return now();
    }
    if (limits.perUser?.budget?.per === 'total') return null;
    // A request has just arrived.
    if (this.#sending !== null) return now() + LEASE_MS;
    const month = dayOf(now()).slice(0, 7);
    const [row] = this.#sql.exec<{ last: string | null }>('SELECT max(day) AS last FROM spent').toArray();
    if ((row?.last ?? '') >= month) {
      return (periodEnd('month', now()) ?? now()) + spreadOf(user);
    }
    if (now() - this.#limitsAt >= LEASE_MS) {
      // The limits may have changed since the last request.
      await this.#send(true);
      return now();
    }
    this.#closing = this.#close().finally(() => {
      this.#closing = null;
    });
    await this.#closing;
    return null;
  }

  async #close(): Promise<void> {
    const { transaction, key } = this.#ports;
    await key().lease(transaction(() => this.#write([], true)));
    await this.clear();
  }

  /** @returns null where the object has its tables, or why it gets none */
  async #open(): Promise<'shared' | 'revoked' | null> {
    const { now, transaction, user, key } = this.#ports;
    await this.#closing?.catch(ignore);
    if (this.#sharedDay === dayOf(now())) return 'shared';
    if (this.#isOpen) return null;
    this.#opening ??= key()
      .openUser(user, this.#listed)
      .finally(() => {
        this.#opening = null;
      });
    const opened = await this.#opening;
    if (opened.kind === 'shared') this.#sharedDay = dayOf(now());
    if (opened.kind !== 'opened') return opened.kind;
    if (this.#isOpen) return null;
    transaction(() => {
      createLimitTables(this.#sql);
      for (const table of TABLES) this.#sql.exec(table);
      this.#sql.exec('INSERT OR REPLACE INTO link VALUES (1, ?, 1)', opened.seq);
      storeLimits(this.#sql, opened.limits);
    });
    this.#isOpen = true;
    this.#limitsAt = now();
    return null;
  }

  /**
   * Sends the waiting requests and unreported charges to the key. Rejects if the key can't be reached.
   * @param isNew whether another message follows the one whose answer has not arrived
   */
  #send(isNew = false): Promise<void> {
    if (this.#sending !== null) this.#sendsAgain ||= isNew;
    this.#sending ??= this.#sendAll();
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    // So `#sending` is set before it is unset, even if the first message fails at once.
    await Promise.resolve();
    try {
      do {
        this.#sendsAgain = false;
        await this.#sendWaiting(this.#waiting.splice(0, MAX_NEEDS).filter(({ isEnded }) => !isEnded));
      } while (this.#waiting.length > 0 || this.#sendsAgain);
    } finally {
      // Without an await after the last check for waiting requests. After a failure, some may have arrived since.
      this.#sending = null;
      if (this.#waiting.length > 0) this.#send().catch(ignore);
    }
  }

  async #sendWaiting(sent: readonly Waiting[]): Promise<void> {
    this.#sent = sent;
    try {
      // First repeats a message whose answer was lost: the key may have applied it.
      if (!this.#isAnswered()) await this.#sendOne([], true);
      await this.#sendOne(sent, false);
    } catch (error) {
      this.#isUnreported = true;
      for (const { result } of [...sent, ...this.#waiting]) result.reject(error);
      this.#waiting = [];
      throw error;
    } finally {
      this.#sent = [];
    }
  }

  #isAnswered(): boolean {
    const [row] = this.#sql.exec<{ is_answered: number }>('SELECT is_answered FROM link').toArray();
    return row?.is_answered === 1;
  }

  async #sendOne(sent: readonly Waiting[], isRepeated: boolean): Promise<void> {
    const { now, transaction, key, wakeBy } = this.#ports;
    const sentAt = now();
    const needs = sent.map(({ need }) => need);
    const message = transaction(() => (isRepeated ? this.#repeat() : this.#write(needs, false)));
    if (needs.length > 0) wakeBy(sentAt + LEASE_MS);
    const answered = key().lease(message);
    this.#message = answered.then(ignore, ignore);
    let answer: LeaseAnswer;
    try {
      answer = await answered;
    } catch (error) {
      this.#forgetCounts();
      throw error;
    } finally {
      this.#message = null;
    }
    if (answer.kind === 'unknown') {
      await this.clear();
      throw new Error('The key does not know this user');
    }
    transaction(() => this.#receive(answer, { sent, isRepeated, sentAt }));
    if (answer.kind === 'repeated' && !isRepeated) throw new Error('The key has later messages of this user');
  }

  #receive(
    answer: Exclude<LeaseAnswer, { kind: 'unknown' }>,
    { sent, isRepeated, sentAt }: { sent: readonly Waiting[]; isRepeated: boolean; sentAt: number },
  ): void {
    const now = this.#ports.now();
    this.#sql.exec('UPDATE link SET is_answered = 1');
    if (isRepeated) return this.#forgetCounts();
    // They are admitted, refused, or checked again.
    this.#sent = [];
    switch (answer.kind) {
      case 'repeated':
        // Only after the storage of this object was restored from a backup.
        this.#sql.exec('UPDATE link SET seq = ?', answer.seq);
        return this.#forgetCounts();
      case 'shared':
      case 'revoked':
        if (answer.kind === 'shared') this.#sharedDay = dayOf(now);
        this.#forgetCounts();
        for (const { result } of sent) result.resolve({ kind: answer.kind });
        return;
      case 'leased':
        return this.#takeLease(answer, sent, sentAt);
    }
  }

  #takeLease(
    { second, surplus, outcomes, isExact, limits, standing }: Extract<LeaseAnswer, { kind: 'leased' }>,
    sent: readonly Waiting[],
    sentAt: number,
  ): void {
    const now = this.#ports.now();
    for (const counted of this.#counted.values()) counted.second ??= second;
    for (const correction of this.#corrections) correction.second ??= second;
    const hasChanged = storeLimits(this.#sql, limits);
    this.#limitsAt = now;
    this.#standingOfKey = standing;
    if (sent.length > 0) this.#isExact = isExact;
    this.#used = { requests: 0, tokens: 0 };
    this.#surplus = surplus === null ? null : { ...surplus, until: leaseEnd(sentAt) };
    // All that waits was checked against the limits before.
    const outdated = hasChanged ? this.#waiting.splice(0) : [];
    for (const { result } of outdated) result.resolve(null);
    const own = limitsOfUser(limits);
    for (const [i, waiting] of sent.entries()) {
      const { result, isEnded } = waiting;
      const outcome = outcomes[i];
      if (typeof outcome === 'object') {
        result.resolve({ kind: 'refused', refusal: outcome, standing, by: 'key' });
      } else if (outcome === undefined || isEnded || hasChanged) {
        // What is granted for it returns with the next message.
        this.#isUnreported = true;
        result.resolve(null);
      } else {
        const before = readLimitStatus(this.#sql, now, undefined, own);
        result.resolve(this.#insert(waiting, outcome, before, now));
      }
    }
    if (sent.length > 0) this.#ports.wakeBy(now + LEASE_MS);
  }

  /** Without these, the key's minute counts requests by their expected tokens. */
  #forgetCounts(): void {
    this.#used = null;
    this.#counted.clear();
    this.#corrections = [];
  }

  /** Writes the next message. Nothing is admitted until its answer arrives. */
  #write(needs: readonly UpperBound[], isLast: boolean): LeaseMessage {
    const [link] = this.#sql
      .exec<{ seq: number }>('UPDATE link SET seq = seq + 1, is_answered = 0 RETURNING seq')
      .toArray();
    const seq = link?.seq ?? 0;
    this.#recordCharges(seq);
    const used = this.#used;
    const corrections = this.#corrections.flatMap(({ second, moreTokens }) =>
      second === null ? [] : [{ second, moreTokens }],
    );
    const extra = Math.min(MAX_EXTRA, Math.max(FIRST_EXTRA, 2 * this.#admitted));
    if (needs.length > 0) this.#admitted = 0;
    this.#corrections = [];
    this.#surplus = null;
    this.#isUnreported = false;
    return { ...this.#stateOf(seq), used, corrections, needs, extra, isLast, limits: this.#listed };
  }

  /** The last message without its needs: the requests that needed them have failed. */
  #repeat(): LeaseMessage {
    const [link] = this.#sql.exec<{ seq: number }>('SELECT seq FROM link').toArray();
    this.#surplus = null;
    const none = { used: null, corrections: [], needs: [], extra: 0, isLast: false };
    return { ...this.#stateOf(link?.seq ?? 0), ...none };
  }

  #stateOf(seq: number): Pick<LeaseMessage, 'user' | 'seq' | 'charges' | 'running'> {
    const charges = this.#sql.exec<ReportedCharge & Record<string, SqlStorageValue>>(
      `SELECT kind, day, currency, tokens - base_tokens AS tokens, cost - base_cost AS cost FROM reported WHERE seq = ?`,
      seq,
    );
    // The charges of a message do not include later ones. The key still holds their allowance.
    const running = this.#sql.exec<RunningSum & Record<string, SqlStorageValue>>(
      `SELECT day, currency, sum(tokens) AS tokens, sum(cost) AS cost, sum(running) AS running FROM (
        SELECT day, currency, tokens, cost, 1 AS running FROM reservations
        UNION ALL SELECT day, currency, max(0, spent.tokens - coalesce(known.tokens, 0)),
          max(0, spent.cost - coalesce(known.cost, 0)), 0
          FROM spent LEFT JOIN (SELECT * FROM reported WHERE kind = 'spent') AS known USING (day, currency)
          WHERE spent.tokens > coalesce(known.tokens, 0) OR spent.cost > coalesce(known.cost, 0)
      ) GROUP BY day, currency`,
    );
    return { user: this.#ports.user, seq, charges: charges.toArray(), running: running.toArray() };
  }

  /** Stores what has been charged since the last message, so that the next one can be repeated. */
  #recordCharges(seq: number): void {
    this.#sql.exec(
      `INSERT INTO reported
        SELECT now.kind, now.day, now.currency, ?1, now.tokens, now.cost, coalesce(old.tokens, 0), coalesce(old.cost, 0)
        FROM (
          SELECT 'spent' AS kind, day, currency, tokens, cost FROM spent
          UNION ALL SELECT 'unreported', day, currency, tokens, cost FROM unreported
          UNION ALL SELECT 'expired', day, currency, sum(tokens), sum(cost) FROM expired GROUP BY day, currency
          UNION ALL SELECT kind, day, currency, 0, 0 FROM reported
            WHERE kind = 'expired' AND NOT EXISTS (
              SELECT 1 FROM expired WHERE expired.day = reported.day AND expired.currency = reported.currency
            )
        ) AS now LEFT JOIN reported AS old USING (kind, day, currency)
        WHERE now.tokens IS NOT coalesce(old.tokens, 0) OR now.cost IS NOT coalesce(old.cost, 0)
      ON CONFLICT DO UPDATE SET seq = ?1, base_tokens = tokens, base_cost = cost,
        tokens = excluded.tokens, cost = excluded.cost`,
      seq,
    );
  }
}

function ignore(): void {}

/** Allowance of one day is not used on the next. */
function leaseEnd(sentAt: number): number {
  return Math.min(sentAt + LEASE_MS, periodEnd('day', sentAt) ?? Number.POSITIVE_INFINITY);
}

function spreadOf(user: string): number {
  let hash = 0;
  for (const char of user) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % DELETE_SPREAD_MS;
  return hash;
}

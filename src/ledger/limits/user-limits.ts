/** The limits of one user of a key, in the user's own ledger object, which leases from the allowance of the key what its requests need. */
import {
  dayOf,
  type LimitStatus,
  type Limits,
  limitsOfUser,
  outputLimit,
  periodDays,
  periodEnd,
} from '../../auth/key-limits.ts';
import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { Log } from '../../shared/log-event.ts';
import {
  type Amounts,
  hasTables,
  type KeyLeases,
  type LeaseAnswer,
  type LeaseMessage,
  type LeaseState,
  type LimitRefusal,
  MinuteReport,
  takeFrom,
  type UpperBound,
} from './allowance.ts';
import { currentSpent, restoreSpent } from './erased-spent.ts';
import {
  createLimitTables,
  hasTable,
  readLimitStatus,
  type Sql,
  secondOf,
  storedLimits,
  storeLimits,
  unreadableReason,
} from './limit-tables.ts';
import {
  estimateRequest,
  expire,
  forgetSettled,
  insertReservation,
  type Needed,
  nextExpiry,
  type Reservation,
  type ReserveRequest,
  readNeed,
  refuse,
  reservedFor,
  settle,
  settleUnreserved,
  withReservation,
} from './reservations.ts';
import {
  createReportTables,
  isAnswered,
  LINK_TABLE,
  lastReport,
  markAnswered,
  nextReport,
} from './user-reports.ts';

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
  readonly log: Log;
}

/** The standing of a reservation has the limits of the user, and the limits of the key of kinds that the user has none of. */
export type UserReservation =
  | Extract<Reservation, { kind: 'reserved' }>
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

/** Only what other requests of the user wait for keeps the request out. */
interface DelayedReservation {
  readonly kind: 'delayed';
  /** The refusal, if they take what they wait for. */
  readonly otherwise: UserReservation;
}

/** How long allowance that is leased in advance, and limits of the key, may be used before the key is called again. */
const LEASE_MS = 10_000;
const RETRY_AFTER_MS = 60_000;
/** Needs of one message. */
const MAX_NEEDS = 500;
/** How often one request is checked again because limits change meanwhile. */
const MAX_ROUNDS = 5;
/** How often one request waits for the answers to others. Its caller waits 5 s. */
const MAX_WAITS = 50;
/** For how many requests the first lease is in advance, and the highest number. Each lease is for twice the requests of the last one. */
const FIRST_EXTRA = 15;
const MAX_EXTRA = 1000;
/** Objects of users are deleted after the end of the month, spread over this time. */
const DELETE_SPREAD_MS = 24 * 60 * 60 * 1000;

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

/** A request that only what others wait for keeps out. */
interface Delayed {
  readonly id: string;
}

/** What the key said last. */
interface LastAnswer {
  /** In ms since the epoch. */
  readonly at: number;
  readonly standing: LimitStatus | null;
  /** So little is left that each settlement is reported at once. */
  readonly isExact: boolean;
}

/** What the key counts for the object is never less than what its requests may use (docs/decisions/0007-allowances.md). */
export class UserLimits {
  readonly #ports: UserLimitsPorts;
  readonly #sql: Sql;
  #lease: LeaseState<Waiting>;
  /** Requests that the next message asks for. */
  #waiting: Waiting[] = [];
  /** Those that have not ended. */
  readonly #delayed = new Set<Delayed>();
  /** Sends messages until no request waits, and another one if it is wanted; null: none is sent. */
  #sending: { readonly done: Promise<void>; isWantedAgain: boolean } | null = null;
  #lastAnswer: LastAnswer = { at: Number.NEGATIVE_INFINITY, standing: null, isExact: true };
  /** Null: what the minute of the key has counted is not known. */
  #minute: MinuteReport | null = null;
  /** What the key holds for this object may differ from its running requests. */
  #isUnreported = true;
  /** The day (UTC) on which this user shares the allowance of all further users. */
  #sharedDay: string | null = null;

  constructor(ports: UserLimitsPorts) {
    this.#ports = ports;
    this.#sql = ports.sql;
    this.#lease = { kind: hasTable(ports.sql, LINK_TABLE) ? 'unsure' : 'none' };
    // An object of an earlier version has fewer tables.
    if (this.isOpen) createLimitTables(ports.sql);
  }

  /** Whether the user had requests, so that there are rows. */
  get isOpen(): boolean {
    return hasTables(this.#lease);
  }

  /** Admits or refuses a request. A repeated call with the same id and attempts reserves nothing more. */
  async reserve(request: ReserveRequest): Promise<UserReservation> {
    let waits = 0;
    for (let round = 0; round < MAX_ROUNDS; ) {
      const refused = await this.#open(request.limits ?? null, request.userHash);
      if (refused !== null) return { kind: refused };
      const result = await this.#tryReserve(request);
      if (result === null) round++;
      else if (result.kind !== 'delayed') return result;
      else if (waits++ === MAX_WAITS) return result.otherwise;
      else await this.#answers(request.id);
    }
    throw new Error('The limits of the key change too often');
  }

  /** Waits until the key has decided about a request that waits for it. */
  async #answers(id: string): Promise<void> {
    const delayed: Delayed = { id };
    this.#delayed.add(delayed);
    await Promise.race(this.#allWaiting().map(({ result }) => result.promise.then(ignore, ignore)));
    if (!this.#delayed.delete(delayed)) throw new Error('The request has ended');
  }

  /** @returns null where the request must be checked again */
  async #tryReserve(request: ReserveRequest): Promise<UserReservation | DelayedReservation | null> {
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
    requested: ReserveRequest,
    now: number,
  ):
    | UserReservation
    | DelayedReservation
    | { readonly kind: 'waits'; readonly waiting: Waiting }
    | { readonly kind: 'stale' } {
    // The alarm may be late, and what has expired must not keep its place.
    this.#expire(now);
    const limits = this.#limits;
    if (limits === null) return { kind: 'stale' };
    const request = estimateRequest(this.#sql, requested, limits, now);
    const userLimits = limitsOfUser(limits);
    const needed = readNeed(
      this.#sql,
      { ...request, outputTokens: outputLimit(limits, request.outputTokens) },
      userLimits,
    );
    const { need, outputTokens } = needed;
    const day = need?.day ?? dayOf(now);
    const before = readLimitStatus(this.#sql, now, undefined, userLimits, day);
    if (need === null) return reservedFor(request, outputTokens, this.#merge(before));
    const status = this.#allWaiting().reduce((sum, one) => withReservation(sum, one.need, now), before);
    const refusal = refuse(this.#sql, status, need, now);
    if (refusal !== null) {
      const refused = { kind: 'refused', refusal, standing: status, by: 'user' } as const;
      // The key may refuse what others wait for.
      if (refuse(this.#sql, before, need, now) === null) return { kind: 'delayed', otherwise: refused };
      const isFresh = now - this.#lastAnswer.at < LEASE_MS;
      return isFresh ? refused : { kind: 'stale' };
    }
    if (this.#takeSurplus(need, day, now)) return this.#insert({ request, needed, need }, before, day);
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

  get #surplus() {
    return this.#lease.kind === 'leased' ? this.#lease.surplus : null;
  }

  /** @param day in which the need counts: what was leased for another day has no room for it */
  #takeSurplus(need: UpperBound, day: string, now: number): boolean {
    const lease = this.#lease;
    if (lease.kind !== 'leased' || lease.surplus === null) return false;
    if (lease.until <= now || lease.day !== day) return false;
    const surplus = takeFrom(lease.surplus, need);
    if (surplus !== null) this.#lease = { ...lease, surplus };
    return surplus !== null;
  }

  #insert(
    { request, needed, need }: Pick<Waiting, 'request' | 'needed' | 'need'>,
    before: LimitStatus,
    day: string,
  ): Extract<UserReservation, { kind: 'reserved' }> {
    const now = this.#ports.now();
    insertReservation(this.#sql, request, needed, before, now, day);
    this.#isUnreported = true;
    if (need.requests === 1) this.#minute?.admit(secondOf(now), need.expectedTokens);
    const standing = this.#merge(withReservation(before, need, now));
    return reservedFor(request, needed.outputTokens, standing);
  }

  #allWaiting(): readonly Waiting[] {
    const waiting = this.#lease.kind === 'sent' ? this.#lease.requests : [];
    return [...waiting, ...this.#waiting].filter(({ isEnded }) => !isEnded);
  }

  /** The limits of the user, and the limits of the key of kinds that the user has none of. */
  #merge(own: LimitStatus): LimitStatus {
    const key = this.#lastAnswer.standing;
    if (key === null) return own;
    const { budget, rpm, tpm, maxConcurrent } = own.limits;
    const ofBudget = budget === null ? key : own;
    return {
      limits: {
        ...key.limits,
        budget: ofBudget.limits.budget,
        windows: ofBudget.limits.windows ?? [],
        rpm: rpm ?? key.limits.rpm,
        tpm: tpm ?? key.limits.tpm,
        maxConcurrent: maxConcurrent ?? key.limits.maxConcurrent,
      },
      budget: ofBudget.budget,
      windows: ofBudget.windows ?? [],
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
    for (const delayed of this.#delayed) if (delayed.id === id) this.#delayed.delete(delayed);
    if (!this.isOpen) return;
    const { now, transaction } = this.#ports;
    const settled = transaction(() => settle(this.#sql, id, charge, now()));
    if (settled === null) return;
    if (settled.second !== null) this.#minute?.correct(settled.second, settled.moreTokens);
    this.#reportLater();
  }

  /** Settles a request that may have no reservation. A repeated call changes nothing. */
  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    const { now, transaction, key } = this.#ports;
    if ((await this.#open(null)) !== null) return key().settleUnreserved(id, charge, day);
    transaction(() => settleUnreserved(this.#sql, id, charge, day, now()));
    this.#reportLater();
  }

  #reportLater(): void {
    this.#isUnreported = true;
    this.#ports.wakeBy(this.#ports.now() + LEASE_MS);
    // Near the end of the key's allowance, other requests need what this one did not use.
    if (this.#lastAnswer.isExact) this.#send(true).catch(ignore);
  }

  /** Returns what is leased in advance: the key needs it. */
  async returnLease(): Promise<void> {
    if (this.#lease.kind === 'sent') await this.#lease.answered;
    if (this.#surplus !== null) await this.#send(true);
  }

  /** What is charged: a row for each day and currency. */
  get spent(): readonly Amounts[] {
    if (!this.isOpen) return [];
    return this.#sql.exec<Amounts>('SELECT day, currency, tokens, cost FROM spent ORDER BY day').toArray();
  }

  /** The use of these limits; null: the user has no requests yet. */
  status(limits: Limits): LimitStatus | null {
    if (!this.isOpen) return null;
    return readLimitStatus(this.#sql, this.#ports.now(), undefined, limitsOfUser(limits));
  }

  /**
   * Deletes the object of a user who is erased. The key remembers what was spent in the current period.
   * @returns false while requests run
   */
  async erase(hash: string): Promise<boolean> {
    const { now, transaction } = this.#ports;
    if (this.#lease.kind === 'closing') await this.#lease.closed;
    if (!this.isOpen) return true;
    transaction(() => this.#expire(now()));
    // The limits may have changed since the last request. All that was leased in advance returns.
    await this.#send(true);
    const isBusy = this.#sending !== null || this.#allWaiting().length > 0;
    if (isBusy || this.#sql.exec('SELECT 1 AS one FROM reservations LIMIT 1').toArray().length > 0)
      return false;
    const closed = this.#close(hash);
    this.#lease = { kind: 'closing', closed: closed.catch(ignore) };
    await closed;
    return true;
  }

  /** Deletes the object of a user whose key is revoked. */
  async clear(): Promise<void> {
    this.#lease = { kind: 'none' };
    this.#minute = null;
    await this.#ports.deleteAll();
  }

  /**
   * Charges reservations that were not settled, and returns to the key what is not used.
   * @returns when it has work again, in ms since the epoch; null: never
   */
  async alarm(): Promise<number | null> {
    const { now, transaction } = this.#ports;
    if (!this.isOpen) return null;
    transaction(() => {
      this.#expire(now());
      forgetSettled(this.#sql, now());
    });
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
      this.#isUnreported = true;
      this.#ports.log({ event: 'reservation_expired', id, day, tokens, currency, cost });
    }
  }

  /** Deletes the object when no budget period needs what it has: after the month and the week of its last charge. */
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
    const starts = (['week', 'month'] as const).map((per) => periodDays(per, now()).first);
    const first = starts.reduce((a, b) => (a < b ? a : b));
    const [row] = this.#sql.exec<{ last: string | null }>('SELECT max(day) AS last FROM spent').toArray();
    if ((row?.last ?? '') >= first) {
      const ends = (['week', 'month'] as const).map((per) => periodEnd(per, now()) ?? now());
      return Math.max(...ends) + spreadOf(user);
    }
    if (now() - this.#lastAnswer.at >= LEASE_MS) {
      // The limits may have changed since the last request.
      await this.#send(true);
      return now();
    }
    const closed = this.#close();
    this.#lease = { kind: 'closing', closed: closed.catch(ignore) };
    await closed;
    return null;
  }

  /** @param hash of the name of a user who is erased, so that the key remembers what was spent */
  async #close(hash?: string): Promise<void> {
    const { now, transaction, key } = this.#ports;
    const message = transaction((): LeaseMessage => {
      const last = this.#write([], null, true);
      const limits = this.#limits;
      if (hash === undefined || limits === null) return last;
      return { ...last, erased: { hash, ...currentSpent(this.#sql, limits, now()) } };
    });
    try {
      await key().lease(message);
    } catch (error) {
      this.#lease = { kind: 'unsure' };
      throw error;
    }
    await this.clear();
  }

  /**
   * @param listed the limits that KV lists for the key
   * @param hash of the user's name
   * @returns null where the object has its tables, or why it gets none
   */
  async #open(listed: JsonObject | null, hash?: string): Promise<'shared' | 'revoked' | null> {
    const { now, transaction, user, key } = this.#ports;
    if (this.#lease.kind === 'closing') await this.#lease.closed;
    if (this.#sharedDay === dayOf(now())) return 'shared';
    if (this.isOpen) return null;
    const opening = this.#lease.kind === 'opening' ? this.#lease.opened : key().openUser(user, listed, hash);
    this.#lease = { kind: 'opening', opened: opening };
    try {
      const opened = await opening;
      if (opened.kind === 'shared') this.#sharedDay = dayOf(now());
      if (opened.kind !== 'opened') return opened.kind;
      // Another request may have opened it.
      if (this.#lease.kind !== 'opening') return await this.#open(listed, hash);
      transaction(() => {
        createLimitTables(this.#sql);
        createReportTables(this.#sql, opened.seq);
        restoreSpent(this.#sql, opened.spent ?? []);
        storeLimits(this.#sql, opened.limits);
      });
      this.#lease = { kind: 'leased', surplus: null, day: dayOf(now()), until: now() };
      this.#lastAnswer = { ...this.#lastAnswer, at: now() };
      // The key has leased nothing yet.
      if (opened.seq === 0) this.#minute = new MinuteReport(0);
      return null;
    } finally {
      if (this.#lease.kind === 'opening' && this.#lease.opened === opening) this.#lease = { kind: 'none' };
    }
  }

  /**
   * Sends the waiting requests and unreported charges to the key. Rejects if the key can't be reached.
   * @param isNew whether another message follows the one whose answer has not arrived
   */
  #send(isNew = false): Promise<void> {
    if (this.#sending !== null) this.#sending.isWantedAgain ||= isNew;
    else {
      // It runs after this assignment, because it begins with an await.
      this.#sending = { done: this.#sendAll(), isWantedAgain: false };
    }
    return this.#sending.done;
  }

  async #sendAll(): Promise<void> {
    await Promise.resolve();
    let waiting: readonly Waiting[] = [];
    try {
      do {
        if (this.#sending !== null) this.#sending.isWantedAgain = false;
        waiting = this.#waiting.splice(0, MAX_NEEDS).filter(({ isEnded }) => !isEnded);
        // First repeats a message whose answer was lost: the key may have applied it.
        if (!isAnswered(this.#sql)) await this.#sendOne(waiting, true);
        await this.#sendOne(waiting, false);
      } while (this.#waiting.length > 0 || this.#sending?.isWantedAgain === true);
    } catch (error) {
      this.#isUnreported = true;
      for (const { result } of [...waiting, ...this.#waiting.splice(0)]) result.reject(error);
      throw error;
    } finally {
      // Without an await after the last check for waiting requests.
      this.#sending = null;
    }
  }

  /** @param isRepeat sends the last message again, and asks for nothing new: that waits for the next message */
  async #sendOne(requests: readonly Waiting[], isRepeat: boolean): Promise<void> {
    const { now, transaction, key, wakeBy } = this.#ports;
    const sentAt = now();
    const message = transaction(() => (isRepeat ? this.#repeat() : this.#write(requests, this.#minute)));
    if (requests.length > 0) wakeBy(sentAt + LEASE_MS);
    const answering = key().lease(message);
    this.#lease = { kind: 'sent', requests, answered: answering.then(ignore, ignore) };
    if (!isRepeat) this.#minute = this.#minute?.next() ?? new MinuteReport(secondOf(sentAt));
    let answer: LeaseAnswer;
    try {
      answer = await answering;
    } catch (error) {
      this.#beUnsure();
      throw error;
    }
    if (answer.kind === 'unknown') {
      await this.clear();
      throw new Error('The key does not know this user');
    }
    transaction(() => this.#receive(answer, isRepeat ? null : requests, sentAt));
    if (answer.kind === 'repeated' && !isRepeat) throw new Error('The key has later messages of this user');
  }

  /** @param requests null: the answer is to a repeated message */
  #receive(
    answer: Exclude<LeaseAnswer, { kind: 'unknown' }>,
    requests: readonly Waiting[] | null,
    sentAt: number,
  ): void {
    markAnswered(this.#sql);
    if (requests === null) return this.#beUnsure();
    switch (answer.kind) {
      case 'repeated':
        // Only after the storage of this object was restored from a backup.
        markAnswered(this.#sql, answer.seq);
        return this.#beUnsure();
      case 'shared':
      case 'revoked':
        if (answer.kind === 'shared') this.#sharedDay = dayOf(this.#ports.now());
        this.#beUnsure();
        for (const { result } of requests) result.resolve({ kind: answer.kind });
        return;
      case 'leased':
        return this.#takeLease(answer, requests, sentAt);
    }
  }

  #takeLease(
    { surplus, refusals, isExact, limits, standing, day }: Extract<LeaseAnswer, { kind: 'leased' }>,
    requests: readonly Waiting[],
    sentAt: number,
  ): void {
    const now = this.#ports.now();
    const hasChanged = storeLimits(this.#sql, limits);
    this.#lastAnswer = {
      at: now,
      standing,
      isExact: requests.length > 0 ? isExact : this.#lastAnswer.isExact,
    };
    const grantDay = day ?? dayOf(now);
    this.#lease = { kind: 'leased', surplus, day: grantDay, until: sentAt + LEASE_MS };
    // All that waits was checked against the limits before.
    const outdated = hasChanged ? this.#waiting.splice(0) : [];
    for (const { result } of outdated) result.resolve(null);
    const userLimits = limitsOfUser(limits);
    for (const [i, waiting] of requests.entries()) {
      const { result, isEnded } = waiting;
      const refusal = refusals[i];
      if (refusal !== null && refusal !== undefined) {
        result.resolve({ kind: 'refused', refusal, standing, by: 'key' });
      } else if (refusal === undefined || isEnded || hasChanged) {
        // What is granted for it returns with the next message.
        this.#isUnreported = true;
        result.resolve(null);
      } else {
        result.resolve(this.#insertGranted(waiting, userLimits, waiting.need.day ?? grantDay));
      }
    }
    if (requests.length > 0) this.#ports.wakeBy(now + LEASE_MS);
  }

  /** It was checked in the day of this object's clock, and may count in another one: that of the key's. */
  #insertGranted(waiting: Waiting, userLimits: Limits, day: string): UserReservation {
    const now = this.#ports.now();
    const before = readLimitStatus(this.#sql, now, undefined, userLimits, day);
    const refusal = refuse(this.#sql, before, waiting.need, now);
    if (refusal === null) return this.#insert(waiting, before, day);
    // What is granted for it returns with the next message.
    this.#isUnreported = true;
    return { kind: 'refused', refusal, standing: before, by: 'user' };
  }

  /** The minute of the key then counts all that was leased. */
  #beUnsure(): void {
    this.#lease = { kind: 'unsure' };
    this.#minute = null;
  }

  /** Writes the next message. Nothing is admitted until its answer arrives. */
  #write(requests: readonly Waiting[], minute: MinuteReport | null, isLast = false): LeaseMessage {
    this.#isUnreported = false;
    return {
      ...nextReport(this.#sql),
      user: this.#ports.user,
      minute: minute?.seconds ?? null,
      needs: requests.map(({ need }) => need),
      extra: Math.min(MAX_EXTRA, Math.max(FIRST_EXTRA, 2 * (minute?.requests ?? 0))),
      isLast,
      limits: requests[0]?.request.limits ?? null,
    };
  }

  /** The last message without its needs: the requests that needed them have failed. */
  #repeat(): LeaseMessage {
    const { user } = this.#ports;
    return { ...lastReport(this.#sql), user, minute: null, needs: [], extra: 0, isLast: false };
  }
}

function ignore(): void {}

function spreadOf(user: string): number {
  let hash = 0;
  for (const char of user) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % DELETE_SPREAD_MS;
  return hash;
}

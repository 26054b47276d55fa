/** What a holder has of its parent's allowance, and the messages by which it asks for more, reports and returns. */
import { dayOf } from '../../auth/key-limits.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  type Allowance,
  type ErasedSpent,
  hasTables,
  type LeaseAnswer,
  type LeaseMessage,
  type LeaseState,
  MinuteReport,
  type OpenAnswer,
  type ParentCalls,
  type ParentRefusal,
  type SecondSum,
  takeFrom,
  times,
  type UpperBound,
} from './allowance.ts';
import type { Asking } from './asking.ts';
import { secondOf } from './limit-tables.ts';
import type { Reports } from './reports.ts';

type Leased = Extract<LeaseAnswer, { kind: 'leased' }>;
type Opened = Extract<OpenAnswer, { kind: 'opened' }>;
/** The holder gets nothing: it uses the shared allowance, or its key is revoked. */
type Closed = Exclude<OpenAnswer, Opened>['kind'];

/** What the parent answers to a claim. Null: the limits have changed, so the claim is checked again. */
export type ClaimAnswer =
  | {
      readonly kind: 'leased';
      /** For each need why it is refused; null: it is granted. */
      readonly refusals: readonly (ParentRefusal | null)[];
      readonly answer: Leased;
      /** The UTC day in which the grants count. */
      readonly day: string;
    }
  | { readonly kind: Closed }
  | null;

/** What waits for the parent. */
export interface Claim {
  readonly asking: Asking;
  /** What the holder's own limits have room for. */
  readonly needs: readonly UpperBound[];
  /** Takes what is granted, in the transaction in which the answer is received. It settles `done`. */
  readonly answered: (answer: ClaimAnswer) => void;
  readonly done: Pick<PromiseWithResolvers<unknown>, 'promise' | 'reject'>;
}

export interface ParentLeasePorts {
  /** The name of the holder among the children of its parent. */
  readonly name: string;
  readonly reports: Reports;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly now: () => number;
  readonly parent: () => ParentCalls;
  readonly wakeBy: (time: number) => void;
  /** Whether children may hold something in advance. */
  readonly areChildrenAhead: () => boolean;
  /** Whether the holder has left this parent, or is revoked: it then only reports the end of its requests. */
  readonly isLeaving: () => boolean;
  /** Creates the tables of the holder, in a transaction. */
  readonly opened: (answer: Opened) => void;
  /** @returns whether the limits have changed by which claims were checked */
  readonly heard: (answer: Leased) => boolean;
  /** Deletes what is stored for this parent: of a user, all data of its object, and the alarm. */
  readonly forget: () => Promise<void>;
}

/** How long allowance that is leased in advance, and limits of the parent, may be used before the parent is called again. */
export const LEASE_MS = 10_000;
/** Needs of one message, unless one claim has more. */
const MAX_NEEDS = 500;
/** For how many requests the first lease is in advance, and the highest number. Each lease is for twice the requests of the last one. */
const FIRST_EXTRA = 15;
const MAX_EXTRA = 1000;

/** What the parent said last. */
interface LastAnswer {
  /** In ms since the epoch. */
  readonly at: number;
  readonly standing: Leased['standing'] | null;
  /** So little is left that each settlement is reported at once. */
  readonly isExact: boolean;
}

/** What the parent counts for the holder is never less than what its requests and children may use (docs/decisions/0007-allowances.md). */
export class ParentLease {
  readonly #ports: ParentLeasePorts;
  readonly #reports: Reports;
  #state: LeaseState<Claim>;
  /** What the next message asks for. */
  #waiting: Claim[] = [];
  /** Sends messages until no claim waits, and another one if it is wanted; null: none is sent. */
  #sending: { readonly done: Promise<void>; isWantedAgain: boolean } | null = null;
  #lastAnswer: LastAnswer = { at: Number.NEGATIVE_INFINITY, standing: null, isExact: true };
  /** Null: what the minute of the parent has counted is not known. */
  #minute: MinuteReport | null = null;
  /** What the parent holds for this object may differ from what it uses. */
  #isUnreported = true;
  /** The day (UTC) on which this holder shares the allowance of all further users. */
  #sharedDay: string | null = null;

  constructor(ports: ParentLeasePorts) {
    this.#ports = ports;
    this.#reports = ports.reports;
    this.#state = { kind: ports.reports.isLinked ? 'unsure' : 'none' };
  }

  /** Whether the holder had requests, so that there are rows. */
  get isOpen(): boolean {
    return hasTables(this.#state);
  }

  get lastAnswer(): LastAnswer {
    return this.#lastAnswer;
  }

  /** Whether the parent's limits, and its allowance, are not older than a lease. */
  get isFresh(): boolean {
    return this.#ports.now() - this.#lastAnswer.at < LEASE_MS;
  }

  /** Whether a report or the return of a surplus is due. */
  get isUnreported(): boolean {
    return this.#isUnreported;
  }

  get isBusy(): boolean {
    return this.#sending !== null || this.pending.length > 0;
  }

  /** The claims that wait. */
  get pending(): readonly Claim[] {
    const claims = this.#state.kind === 'sent' ? this.#state.claims : [];
    return [...claims, ...this.#waiting].filter(({ asking }) => !asking.isOver());
  }

  /** Sends a claim with the next message. Without an await before the claim is pending. */
  ask(claim: Claim): void {
    // A caller that has disconnected does not await it.
    claim.done.promise.catch(ignore);
    this.#waiting.push(claim);
    // A failure rejects all claims.
    this.send().catch(ignore);
  }

  /** Waits until the parent has decided about a claim, if any waits. */
  async nextAnswer(): Promise<void> {
    const answers = this.pending.map(({ done }) => done.promise.then(ignore, ignore));
    if (answers.length > 0) await Promise.race(answers);
  }

  /**
   * Takes needs from what is leased in advance, all or none.
   * @param day in which they count: what was leased for another day has no room for them
   */
  take(needs: readonly UpperBound[], day: string): boolean {
    const state = this.#state;
    if (state.kind !== 'leased' || state.surplus === null || state.until <= this.#ports.now()) return false;
    let surplus: Allowance | null = state.surplus;
    for (const need of needs) {
      if ((need.day ?? day) !== state.day) return false;
      surplus = surplus && takeFrom(surplus, need);
    }
    if (surplus === null) return false;
    this.#state = { ...state, surplus };
    return true;
  }

  /** Takes what is leased in advance for up to `count` requests like the need. @returns null: there is no room for them */
  takeAhead(need: UpperBound, count: number): Allowance | null {
    const state = this.#state;
    if (state.kind !== 'leased' || state.surplus === null) return null;
    const ahead = times(need, Math.min(count, state.surplus.requests));
    const surplus = ahead.requests === 0 ? null : takeFrom(state.surplus, ahead);
    if (surplus === null) return null;
    this.#state = { ...state, surplus };
    return ahead;
  }

  /** A request was admitted in that second, or those of a child were. */
  admit(second: number, tokens: number, requests = 1): void {
    this.#minute?.admit(second, tokens, requests);
  }

  /** Requests of that second used more than expected, or less. */
  correct(second: number, moreTokens: number): void {
    this.#minute?.correct(second, moreTokens);
  }

  /** What a child reports of the minute. */
  pass(seconds: readonly SecondSum[]): void {
    for (const { second, requests, tokens } of seconds)
      if (requests > 0) this.admit(second, tokens, requests);
      else this.correct(second, tokens);
  }

  /** What the parent holds differs from what is used: the next message says so. */
  note(): void {
    this.#isUnreported = true;
  }

  /** Reports within the time of a lease what has changed. Near the end of the parent's allowance, at once: others need the room. */
  reportLater(): void {
    this.note();
    this.#ports.wakeBy(this.#ports.now() + LEASE_MS);
    if (this.#lastAnswer.isExact) this.send(true).catch(ignore);
  }

  /** Reports what has changed, and returns what is leased in advance. Rejects if the parent can't be reached. */
  async report(): Promise<void> {
    await this.#sending?.done;
    if (this.#isUnreported || this.#surplus !== null) await this.send(true);
  }

  /** Returns what is leased in advance: the parent needs it. @param hasLent whether children have just returned something */
  async returnSurplus(hasLent: boolean): Promise<void> {
    if (this.#state.kind === 'sent') await this.#state.answered;
    if (this.#surplus !== null || (hasLent && this.isOpen)) await this.send(true);
  }

  get #surplus(): Allowance | null {
    return this.#state.kind === 'leased' ? this.#state.surplus : null;
  }

  /**
   * @param listed the limits that KV lists for the key
   * @param hash of the user's name
   * @returns null where the object has its tables, or why it gets none
   */
  async open(listed: JsonObject | null, hash?: string): Promise<Closed | null> {
    const { now, transaction, name, parent, opened } = this.#ports;
    if (this.#state.kind === 'closing') await this.#state.closed;
    if (this.#sharedDay === dayOf(now())) return 'shared';
    if (this.isOpen) return null;
    const opening =
      this.#state.kind === 'opening' ? this.#state.opened : parent().openUser(name, listed, hash);
    this.#state = { kind: 'opening', opened: opening };
    try {
      const answer = await opening;
      if (answer.kind === 'shared') this.#sharedDay = dayOf(now());
      if (answer.kind !== 'opened') return answer.kind;
      // Another request may have opened it.
      if (this.#state.kind !== 'opening') return await this.open(listed, hash);
      transaction(() => {
        this.#reports.create(answer.seq);
        opened(answer);
      });
      this.#state = { kind: 'leased', surplus: null, day: dayOf(now()), until: now() };
      // It may have charges of former requests.
      this.note();
      this.#lastAnswer = { ...this.#lastAnswer, at: now() };
      // The parent has leased nothing yet.
      if (answer.seq === 0) this.#minute = new MinuteReport(0);
      return null;
    } finally {
      if (this.#state.kind === 'opening' && this.#state.opened === opening)
        this.#state = { kind: this.#reports.isLinked ? 'unsure' : 'none' };
    }
  }

  /**
   * Registers the holder, also where there was a link: the holder may have left. The link is stored first: if the
   * answer is lost, the holder leaves by it again.
   * @returns false: the parent refuses
   */
  async register(): Promise<boolean> {
    await this.closed();
    const { transaction, parent, name, opened } = this.#ports;
    if (!this.isOpen) {
      transaction(() => this.#reports.create(0));
      return (await this.open(null)) === null;
    }
    const answer = await parent().openUser(name);
    if (answer.kind !== 'opened') return false;
    transaction(() => {
      this.#reports.atLeast(answer.seq);
      opened(answer);
    });
    return true;
  }

  /** Whether no request runs, and nothing is lent or unreported. */
  get isEmpty(): boolean {
    return !this.isBusy && this.#reports.isAnswered && this.#reports.running.length === 0;
  }

  /** Waits for a last message that is sent. */
  async closed(): Promise<void> {
    if (this.#state.kind === 'closing') await this.#state.closed;
  }

  /** Sends the last message, and forgets all. @param erased reads what the key remembers of a user who is erased */
  async close(erased: () => ErasedSpent | null = () => null): Promise<void> {
    const closing = this.#close(erased);
    this.#state = { kind: 'closing', closed: closing.catch(ignore) };
    await closing;
  }

  async #close(readErased: () => ErasedSpent | null): Promise<void> {
    const { transaction, parent } = this.#ports;
    const message = transaction((): LeaseMessage => {
      const last = this.#write([], null, true);
      const erased = readErased();
      return erased === null ? last : { ...last, erased };
    });
    try {
      await parent().lease(message);
    } catch (error) {
      // The next report repeats the message. A parent that has got it knows no such holder any more.
      this.#beUnsure();
      this.#isUnreported = true;
      throw error;
    }
    await this.#clear();
  }

  async #clear(): Promise<void> {
    this.#state = { kind: 'none' };
    this.#minute = null;
    await this.#ports.forget();
  }

  /**
   * Sends the claims that wait, and unreported charges, to the parent. Rejects if the parent can't be reached.
   * @param isNew whether another message follows the one whose answer has not arrived
   */
  send(isNew = false): Promise<void> {
    if (this.#sending !== null) this.#sending.isWantedAgain ||= isNew;
    else {
      // It runs after this assignment, because it begins with an await.
      this.#sending = { done: this.#sendAll(), isWantedAgain: false };
    }
    return this.#sending.done;
  }

  async #sendAll(): Promise<void> {
    await Promise.resolve();
    let claims: readonly Claim[] = [];
    try {
      do {
        if (this.#sending !== null) this.#sending.isWantedAgain = false;
        claims = this.#nextClaims();
        // First repeats a message whose answer was lost: the parent may have applied it.
        if (!this.#reports.isAnswered) await this.#sendOne(claims, true);
        await this.#sendOne(claims, false);
      } while (this.#waiting.length > 0 || this.#sending?.isWantedAgain === true);
    } catch (error) {
      this.#isUnreported = true;
      for (const { done } of [...claims, ...this.#waiting.splice(0)]) done.reject(error);
      throw error;
    } finally {
      // Without an await after the last check for waiting claims.
      this.#sending = null;
    }
  }

  /** As many as one message takes. */
  #nextClaims(): readonly Claim[] {
    let needs = 0;
    const last = this.#waiting.findIndex((claim, i) => {
      needs += claim.needs.length;
      return i > 0 && needs > MAX_NEEDS;
    });
    return this.#waiting
      .splice(0, last === -1 ? this.#waiting.length : last)
      .filter(({ asking }) => !asking.isOver());
  }

  /** @param isRepeat sends the last message again, and asks for nothing new: that waits for the next message */
  async #sendOne(claims: readonly Claim[], isRepeat: boolean): Promise<void> {
    const { now, transaction, parent, wakeBy } = this.#ports;
    const sentAt = now();
    const message = transaction(() => (isRepeat ? this.#repeat() : this.#write(claims, this.#minute)));
    if (claims.length > 0) wakeBy(sentAt + LEASE_MS);
    const answering = parent().lease(message);
    this.#state = { kind: 'sent', claims, answered: answering.then(ignore, ignore) };
    if (!isRepeat) this.#minute = this.#minute?.next() ?? new MinuteReport(secondOf(sentAt));
    let answer: LeaseAnswer;
    try {
      answer = await answering;
    } catch (error) {
      this.#beUnsure();
      throw error;
    }
    if (answer.kind === 'unknown') {
      await this.#clear();
      throw new Error('The parent does not know this holder');
    }
    transaction(() => this.#receive(answer, isRepeat ? null : claims, sentAt));
    if (answer.kind === 'repeated' && !isRepeat)
      throw new Error('The parent has later messages of this holder');
  }

  /** @param claims null: the answer is to a repeated message */
  #receive(
    answer: Exclude<LeaseAnswer, { kind: 'unknown' }>,
    claims: readonly Claim[] | null,
    sentAt: number,
  ): void {
    this.#reports.markAnswered();
    if (claims === null) return this.#beUnsure();
    switch (answer.kind) {
      case 'repeated':
        // Only after the storage of this object was restored from a backup.
        this.#reports.markAnswered(answer.seq);
        return this.#beUnsure();
      case 'shared':
      case 'revoked':
        if (answer.kind === 'shared') this.#sharedDay = dayOf(this.#ports.now());
        this.#beUnsure();
        for (const claim of claims) claim.answered({ kind: answer.kind });
        return;
      case 'leased':
        return this.#takeLease(answer, claims, sentAt);
    }
  }

  #takeLease(answer: Leased, claims: readonly Claim[], sentAt: number): void {
    const { now, heard, wakeBy } = this.#ports;
    const { surplus, isExact, standing, refusals } = answer;
    const at = now();
    const hasChanged = heard(answer);
    this.#lastAnswer = { at, standing, isExact: claims.length > 0 ? isExact : this.#lastAnswer.isExact };
    const day = answer.day ?? dayOf(at);
    this.#state = { kind: 'leased', surplus, day, until: sentAt + LEASE_MS };
    // All that waits was checked against the limits before.
    const outdated = hasChanged ? this.#waiting.splice(0) : [];
    for (const claim of outdated) claim.answered(null);
    let next = 0;
    for (const claim of claims) {
      const own = refusals.slice(next, next + claim.needs.length);
      next += claim.needs.length;
      const isMissing = own.length < claim.needs.length;
      const isRefused = own.every((refusal) => refusal !== null);
      if (isMissing || (hasChanged && !isRefused)) {
        // What is granted for it returns with the next message.
        this.#isUnreported = true;
        claim.answered(null);
      } else claim.answered({ kind: 'leased', refusals: own, answer, day });
    }
    if (claims.length > 0) wakeBy(at + LEASE_MS);
  }

  /** The minute of the parent then counts all that was leased. */
  #beUnsure(): void {
    this.#state = { kind: 'unsure' };
    this.#minute = null;
  }

  /** Writes the next message. Nothing is granted until its answer arrives. */
  #write(claims: readonly Claim[], minute: MinuteReport | null, isLast = false): LeaseMessage {
    this.#isUnreported = false;
    const likely = Math.max(FIRST_EXTRA, 2 * (minute?.requests ?? 0));
    const extras = claims.map(({ asking }) => asking.extra() ?? likely);
    return {
      ...this.#reports.next(isLast),
      user: this.#ports.name,
      minute: minute?.seconds ?? null,
      needs: claims.flatMap(({ needs }) => needs),
      extra: Math.min(MAX_EXTRA, extras.length === 0 ? likely : Math.max(...extras)),
      ...(this.#ports.areChildrenAhead() && { isAhead: true }),
      ...(this.#ports.isLeaving() && { isLeaving: true as const }),
      isLast,
      limits: claims[0]?.asking.listed ?? null,
    };
  }

  /** The last message without its needs: the requests that needed them have failed. */
  #repeat(): LeaseMessage {
    const { name, areChildrenAhead, isLeaving } = this.#ports;
    return {
      ...this.#reports.last(),
      user: name,
      ...{ minute: null, needs: [], extra: 0, isLast: false },
      ...(areChildrenAhead() && { isAhead: true }),
      ...(isLeaving() && { isLeaving: true as const }),
    };
  }
}

function ignore(): void {}

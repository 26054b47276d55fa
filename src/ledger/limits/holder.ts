/**
 * One holder in the tree of allowances: it has limits, leases from its parent, lends to its children and admits
 * requests (docs/decisions/0007-allowances.md).
 */
import {
  budgetUses,
  dayOf,
  isEnforced,
  type LimitStatus,
  type Limits,
  limitsInTeam,
  limitsOfUser,
  NO_LIMITS,
  periodDays,
  periodEnd,
  remainingOf,
  TOKENS,
} from '../../auth/key-limits.ts';
import type { Charge, ChargedRecord } from '../../metering/record.ts';
import { type JsonObject, parseJson } from '../../shared/json.ts';
import type { Log } from '../../shared/log-event.ts';
import {
  type Amounts,
  type HolderKind,
  type LeaseAnswer,
  type LeaseMessage,
  type Level,
  type OpenAnswer,
  type ParentCalls,
  type ParentRefusal,
  type Refused,
  times,
  type UpperBound,
} from './allowance.ts';
import { type Asking, askingChild, askingRequest } from './asking.ts';
import { Children } from './children.ts';
import { currentSpent, keepSpent, keptSpent, restoreSpent } from './erased-spent.ts';
import {
  createLimitTables,
  decodeLimits,
  limitsRow,
  readLimitStatus,
  type Sql,
  secondOf,
  storedLimits,
  storeLimits,
  UnreadableRow,
  unreadableReason,
} from './limit-tables.ts';
import { type ClaimAnswer, LEASE_MS, ParentLease } from './parent-lease.ts';
import { linkedTeams, Reports, unreportedTeams } from './reports.ts';
import {
  expire,
  forgetSettled,
  nextExpiry,
  type Reservation,
  type ReserveRequest,
  refuse,
  type Settled,
  settle,
  settleRecords,
  settleUnreserved,
  withReservation,
} from './reservations.ts';
import { isShard, KeySpread, keepShard, regionOf, type Spread } from './spread.ts';
import { currentTeam, NO_TEAM, switchTeam } from './team-shares.ts';

const PARENTS: Readonly<Record<HolderKind, Level>> = {
  shard: 'key',
  user: 'key',
  key: 'team',
  team: 'team',
};

export interface HolderPorts {
  readonly level: HolderKind;
  /** Of its parent: a user of a team is a person without a key. Absent: that of the next higher level. */
  readonly parentLevel?: Level;
  /** Among the children of its parent. A user is named as it is stored; `''`: requests without a user. */
  readonly name: string;
  readonly sql: Sql;
  readonly transaction: <Value>(act: () => Value) => Value;
  readonly now: () => number;
  /** The key of a user or shard, or the team of a person; of a key its team of that id. Null: it has none. */
  readonly parent: ((team: string) => ParentCalls) | null;
  readonly isRevoked: () => boolean;
  /** Makes a child return what it holds in advance. Never rejects, and ends within a bound. @returns false: it fails */
  readonly returnLease: (child: string) => Promise<boolean>;
  /** Makes a shard report what it was charged. Never rejects, and ends within a bound. */
  readonly reportCharges: (shard: string) => Promise<void>;
  /** How long requests take at most, until their reservations expire. */
  readonly silentMs: () => number;
  /**
   * Sets the alarm to that time (ms since the epoch), unless it is already set to an earlier one. It does so before it returns, so that
   * it is stored together with what was written before.
   */
  readonly wakeBy: (time: number) => void;
  /** Deletes all data of the object of a user, and the alarm; of a shard what it has of its parent. */
  readonly forget: () => Promise<void>;
  readonly log: Log;
}

/** Of a shard. Not {@link NO_LIMITS} itself, which stands for limits that are missing. */
const NONE_OF_ITS_OWN: Limits = { ...NO_LIMITS };

const RETRY_AFTER_MS = 60_000;
/** How often needs are checked again because limits change meanwhile. */
const MAX_CHANGES = 5;
/** How often needs wait for the answers to others. The caller of a request waits 5 s. */
const MAX_WAITS = 50;
/** How often needs are checked again after children returned what they held. */
const MAX_RECALLS = 3;
/** Objects of users are deleted after the end of the month, spread over this time. */
const DELETE_SPREAD_MS = 24 * 60 * 60 * 1000;
/** If the limits have room for fewer requests, nothing is lent in advance. */
const EXACT_BELOW = 100;
/** One child holds at most 1/100 of the room in advance. A shard holds up to 1/40: its key is far, and has fewer shards than users. */
const LENT_PART = 100;
const LENT_PART_OF_SHARD = 40;

/** What is decided about needs. */
interface Decision {
  readonly kind: 'decided';
  /** Those without room. The others are granted. */
  readonly refused: ReadonlyMap<UpperBound, Refused>;
  /** The status with what is granted; where all is refused, without. */
  readonly standing: LimitStatus;
  /** So little is left that nothing is lent in advance, and each settlement is reported at once. */
  readonly isExact: boolean;
  /** Only what other claims wait for keeps needs out, and the parent may refuse these. */
  readonly isDelayed: boolean;
}

/** Nothing is decided: the request has ended, or the child has sent a later message. */
const OVER = { kind: 'over' } as const;
/** The holder's copy of its limits has to be replaced first. */
const STALE = { kind: 'stale' } as const;
/** The key has another team now. */
const MOVED = { kind: 'moved' } as const;

type Decided = Decision | typeof OVER | Extract<ClaimAnswer, { kind: 'shared' | 'revoked' }>;

/** A claim that waits for the parent. Null: needs have to be checked again. */
interface Waits {
  readonly kind: 'waits';
  readonly decided: Promise<Decided | null>;
}

export class Holder {
  readonly #ports: HolderPorts;
  readonly #sql: Sql;
  readonly children: Children;
  /**
   * By team; a user has one, under {@link NO_TEAM}. A key keeps the lease of a former team until the last request of
   * that team has ended.
   */
  readonly #leases = new Map<string, ParentLease>();
  /** The current team of a key: requests that are admitted now belong to it. */
  #team: string;
  /** The teams that a key joins now: it does not leave them before its limits name them. */
  readonly #joining = new Set<string>();
  /** What is not decided yet. */
  readonly #undecided = new Set<Asking>();
  /** How the requests of a key are spread over shards. */
  readonly #keySpread: KeySpread;
  /** How the key is spread, as a shard has heard. */
  #heardSpread: Spread | null = null;

  constructor(ports: HolderPorts) {
    const { sql, level, returnLease, reportCharges, now, silentMs } = ports;
    this.#ports = ports;
    this.#sql = sql;
    this.#team = currentTeam(sql);
    this.#keySpread = new KeySpread(sql, now);
    this.children = new Children({ sql, level, returnLease, reportCharges, now, silentMs });
    for (const team of linkedTeams(sql)) this.#leaseOf(team);
    // An object of an earlier version has fewer tables.
    if (this.#isCopy && this.#leaseOf(NO_TEAM)?.isOpen) createLimitTables(sql);
  }

  /** How the key is spread over shards; null: it has none. */
  get spread(): Spread | null {
    return this.#ports.level === 'shard' ? this.#heardSpread : this.#keySpread.current;
  }

  /** Whose limits this holder enforces. */
  get #level(): Level {
    const { level } = this.#ports;
    return level === 'shard' ? 'key' : level;
  }

  /** The lease of the parent that admits requests now; null: there is no parent. */
  get #lease(): ParentLease | null {
    if (this.#isCopy) return this.#leaseOf(NO_TEAM);
    return this.#team === NO_TEAM ? null : this.#leaseOf(this.#team);
  }

  #leaseOf(team: string): ParentLease | null {
    const { sql, transaction, now, parent, wakeBy, forget, name } = this.#ports;
    if (parent === null) return null;
    const known = this.#leases.get(team);
    if (known !== undefined) return known;
    const isCopy = this.#isCopy;
    const reports = new Reports(sql, isCopy ? null : team);
    const lease = new ParentLease({
      ...{ name, reports, transaction, now, wakeBy },
      parent: () => parent(team),
      areChildrenAhead: () => this.children.areAhead,
      isLeaving: () => !isCopy && this.#isLeaving(team),
      opened: ({ limits, spent = [] }) => {
        if (!isCopy) return void reports.storeLimits(limitsRow(limits));
        createLimitTables(sql);
        restoreSpent(sql, spent);
        this.#copy(limits);
      },
      heard: ({ limits, spread = null }) => {
        this.#heardSpread = spread;
        return isCopy ? this.#copy(limits) : reports.storeLimits(limitsRow(limits));
      },
      forget: isCopy ? forget : async () => transaction(() => reports.remove()),
    });
    this.#leases.set(team, lease);
    return lease;
  }

  /** Stores the limits of the key in the object of a user. @returns whether they differ from the stored ones */
  #copy(limits: Limits): boolean {
    switchTeam(this.#sql, limits.team ?? NO_TEAM);
    return storeLimits(this.#sql, limits);
  }

  /** Whether a key has left the team, or is revoked. */
  #isLeaving(team: string): boolean {
    if (team !== this.#team) return !this.#joining.has(team);
    try {
      return this.#ports.isRevoked();
    } catch (error) {
      if (unreadableReason(error) === null) throw error;
      return false;
    }
  }

  /** Makes the team that the limits of a key name the current one. Running requests stay with the team before. */
  #follow(listed: JsonObject | null): void {
    const { level, transaction, now, wakeBy } = this.#ports;
    if (level !== 'key') return;
    const { team = NO_TEAM } = storedLimits(this.#sql, listed);
    if (team === this.#team) return;
    const before = this.#lease;
    transaction(() => switchTeam(this.#sql, team));
    this.#team = team;
    if (before?.isOpen) {
      // The message returns what is leased in advance, and has `isLeaving`.
      before.send(true).catch(ignore);
      wakeBy(now() + LEASE_MS);
    }
  }

  /** Registers a key at its team, and learns the limits of the team. @returns false: there is no such team */
  async join(team: string): Promise<boolean> {
    const lease = this.#leaseOf(team);
    if (lease === null) return false;
    this.#joining.add(team);
    try {
      return await lease.register();
    } finally {
      this.#joining.delete(team);
    }
  }

  /** Called after the limits have changed: children return what they hold, and the former team gets a report if the team changed. */
  async changed(): Promise<void> {
    this.#follow(null);
    await this.children.recall();
  }

  /** Whether the key has a link to a team. */
  get hasTeams(): boolean {
    return !this.#isCopy && [...this.#leases.values()].some(({ isOpen }) => isOpen);
  }

  /** Whether the stored limits are a copy of the key's, of which a part is for each user. */
  get #isCopy(): boolean {
    const { level } = this.#ports;
    return level === 'user' || level === 'shard';
  }

  /** Whether there are tables. A user has them once there were requests. */
  get isOpen(): boolean {
    return !this.#isCopy || this.#lease?.isOpen === true;
  }

  /** The limits that are enforced here. */
  #own(limits: Limits): Limits {
    if (this.#ports.level === 'shard') return NONE_OF_ITS_OWN;
    return this.#isCopy ? limitsOfUser(limits) : limits;
  }

  /**
   * The stored limits; those of a key with the defaults and the budgets of its team. {@link NO_LIMITS} itself where none were ever set.
   * @throws UnreadableRow
   */
  limits(listed: JsonObject | null = null): Limits {
    const stored = storedLimits(this.#sql, this.#isCopy ? null : listed);
    if (this.#ports.level !== 'key' || stored.team === undefined) return stored;
    const ofTeam = new Reports(this.#sql, stored.team).limits;
    return ofTeam === null ? stored : limitsInTeam(stored, decodeLimits(parseJson(ofTeam)));
  }

  /** As {@link limits}; null: this copy of them cannot be read, and the next answer of the key replaces it. */
  #limits(listed: JsonObject | null = null): Limits | null {
    try {
      return this.limits(listed);
    } catch (error) {
      const reason = unreadableReason(error);
      if (reason === null || !this.#isCopy) throw error;
      this.#ports.log({ event: 'ledger_unreadable', reason });
      return null;
    }
  }

  /**
   * Admits or refuses a request. A repeated call with the same id and attempts reserves nothing more.
   * @returns at once where no other object has to be asked
   */
  reserve(request: ReserveRequest): Reservation | Promise<Reservation> {
    this.#follow(request.limits ?? null);
    const { region } = request;
    if (region !== undefined && this.#ports.level === 'key') this.#keySpread.note(region);
    const asking = askingRequest(this.#sql, request);
    const expiresAfterMs = this.#lease === null ? request.expiresAfterMs : LEASE_MS;
    const answer = (decided: Decided): Reservation => {
      if (decided.kind === 'over') throw new Error('The request has ended');
      if (decided.kind !== 'decided') return decided;
      const spread = region === undefined ? {} : { spread: this.spread };
      for (const refused of decided.refused.values()) return { kind: 'refused', ...refused, ...spread };
      // Without an await after the transaction, so that there is never a reservation without an alarm.
      this.#ports.wakeBy(this.#ports.now() + expiresAfterMs);
      return { ...asking.reserved(this.#merge(decided.standing)), ...spread };
    };
    if (this.#lease !== null || this.children.areAhead) return this.#decideLater(asking).then(answer);
    const decided = this.#decideNow(asking);
    if (decided.kind === 'decided') return answer(decided);
    throw new Error('A holder without a parent does not wait');
  }

  async #decideLater(asking: Asking): Promise<Decided> {
    this.#undecided.add(asking);
    try {
      return await this.#claim(asking);
    } finally {
      this.#undecided.delete(asking);
    }
  }

  /** Decides about what is asked, as often as others must answer first. */
  async #claim(asking: Asking): Promise<Decided> {
    let [waits, recalls] = [0, 0];
    for (let changes = 0; changes < MAX_CHANGES; ) {
      this.#follow(asking.listed);
      const closed = (await this.#lease?.open(asking.listed, asking.userHash)) ?? null;
      if (closed !== null) return { kind: closed };
      const earlier = this.#lease?.pending.find(({ asking: { id } }) => id !== null && id === asking.id);
      if (earlier !== undefined) await earlier.done.promise;
      const step = this.#decideNow(asking);
      const decided = step.kind === 'waits' ? await step.decided : step;
      if (decided === null || decided.kind === 'moved') changes++;
      else if (decided.kind === 'stale') {
        await this.#lease?.send();
        changes++;
      } else {
        if (decided.kind !== 'decided') return decided;
        asking.refused = decided.refused;
        if (decided.refused.size === 0 || asking.isAhead) return decided;
        if (decided.isDelayed) {
          if (waits++ === MAX_WAITS) return decided;
          await this.#lease?.nextAnswer();
        } else if (recalls < MAX_RECALLS && (await this.children.recall(asking.child))) recalls++;
        else if (this.#mayBeOutdated(decided)) {
          await this.#lease?.send();
          changes++;
        } else return decided;
      }
    }
    throw new Error('The limits of the key change too often');
  }

  /** Whether a refusal is by a copy of limits that may have changed. */
  #mayBeOutdated({ refused }: Decision): boolean {
    if (!this.#isCopy || this.#lease?.isFresh) return false;
    return [...refused.values()].some(({ by }) => by === this.#level);
  }

  #decideNow(asking: Asking) {
    const { now, transaction } = this.#ports;
    // The alarm may be late, and what has expired must not keep its place.
    transaction(() => this.#expire(now()));
    return transaction(() => this.#decide(asking, now()));
  }

  /** Checks the own limits, then takes from what the parent has leased, or waits for the parent. */
  #decide(asking: Asking, now: number): Decision | Waits | typeof OVER | typeof STALE | typeof MOVED {
    if (asking.isOver()) return OVER;
    const limits = this.#limits(asking.listed);
    if (limits === null) return STALE;
    if (this.#ports.level === 'key' && (limits.team ?? NO_TEAM) !== this.#team) return MOVED;
    // Only requests of keys with limits are reserved. So the limits are missing here, and nothing admits the request.
    if (limits === NO_LIMITS && this.#ports.level !== 'team')
      throw new UnreadableRow('the object has no limits, and the request lists none');
    const own = this.#own(limits);
    const needs = asking.needs(limits, own, now);
    const day = asking.day() ?? dayOf(now);
    const pending = this.#lease?.pending.flatMap((claim) => claim.needs) ?? [];
    const checked = this.#check(own, needs, day, pending, now);
    const { refused, granted } = checked;
    const isDelayed =
      pending.length > 0 &&
      refused.size > 0 &&
      this.#check(own, needs, day, [], now).refused.size < refused.size;
    if (granted.length > 0 && this.#lease?.take(granted, day) === false)
      return this.#ask(this.#lease, asking, checked, isDelayed);
    return this.#grant(
      asking,
      { ...checked, before: pending.length === 0 ? checked.before : null },
      own,
      day,
      isDelayed,
    );
  }

  /** Which needs have room in the own limits, one after the other. @param pending what other claims may take */
  #check(
    own: Limits,
    needs: readonly UpperBound[],
    today: string,
    pending: readonly UpperBound[],
    now: number,
  ) {
    const { held } = this.children;
    const refused = new Map<UpperBound, Refused>();
    const granted: UpperBound[] = [];
    const by = this.#level;
    const checkOn = (day: string): LimitStatus => {
      const before = [...pending, ...granted].reduce(
        (sum, need) => withReservation(sum, need, now, day),
        readLimitStatus(this.#sql, now, held, own, day),
      );
      let status = before;
      for (const need of needs) {
        if ((need.day ?? today) !== day) continue;
        const refusal = refuse(this.#sql, status, need, now, held);
        if (refusal !== null) refused.set(need, { refusal, standing: before, by });
        else {
          granted.push(need);
          status = withReservation(status, need, now);
        }
      }
      return before;
    };
    for (const day of new Set(needs.map((need) => need.day ?? today))) if (day !== today) checkOn(day);
    const before = checkOn(today);
    return { refused, granted, before };
  }

  /** Asks the parent for what the own limits have room for. */
  #ask(lease: ParentLease, asking: Asking, { granted: needs, refused }: Checked, isDelayed: boolean): Waits {
    const done = Promise.withResolvers<Decided | null>();
    const answered = (answer: ClaimAnswer) => {
      // The key has changed its team meanwhile: the next message returns what is granted here, and the other team is asked.
      const current = lease === this.#lease ? answer : null;
      if (current !== answer) lease.note();
      done.resolve(
        current?.kind === 'leased'
          ? this.#received(lease, asking, needs, refused, current, isDelayed)
          : current,
      );
    };
    lease.ask({ asking, needs, answered, done });
    return { kind: 'waits', decided: done.promise };
  }

  /** Takes what the parent has granted. It was checked in the day of this object's clock, and may count in another one. */
  #received(
    lease: ParentLease,
    asking: Asking,
    needs: readonly UpperBound[],
    refusedHere: ReadonlyMap<UpperBound, Refused>,
    { refusals, answer, day }: Extract<ClaimAnswer, { kind: 'leased' }>,
    isDelayed: boolean,
  ): Decision | typeof OVER {
    const now = this.#ports.now();
    const { level, parentLevel = PARENTS[level] } = this.#ports;
    const refused = new Map(refusedHere);
    const isOtherDay = asking.child !== null && (asking.day() ?? day) !== day;
    const granted = needs.filter((need, i) => {
      const refusal = refusals[i];
      const earlier = isOtherDay ? asking.refused.get(need) : undefined;
      if (refusal) refused.set(need, refusedBy(refusal, answer.standing, parentLevel));
      else if (earlier !== undefined) refused.set(need, earlier);
      return !refused.has(need);
    });
    if (asking.isOver()) {
      lease.note();
      return OVER;
    }
    const own = this.#own(this.limits());
    const grantDay = asking.day() ?? day;
    const again = this.#check(own, granted, grantDay, [], now);
    for (const [need, one] of again.refused) refused.set(need, one);
    // What is granted and not used returns with the next message.
    if (again.granted.length < refusals.filter((refusal) => refusal === null).length) lease.note();
    return this.#grant(asking, { ...again, refused }, own, grantDay, isDelayed);
  }

  /** Stores what is granted, for a child with as much in advance as there is plenty of. */
  #grant(asking: Asking, checked: Granted, own: Limits, day: string, isDelayed: boolean): Decision {
    const now = this.#ports.now();
    const { granted, refused } = checked;
    const before = checked.before ?? readLimitStatus(this.#sql, now, this.children.held, own, day);
    const standing = granted.reduce((sum, need) => withReservation(sum, need, now, day), before);
    const last = granted.findLast(({ requests }) => requests === 1);
    if (asking.child === null) {
      asking.take(granted, null, before, day, now);
      if (granted.length > 0) this.#lease?.note();
      if (last !== undefined) this.#lease?.admit(secondOf(now), last.expectedTokens);
      return { kind: 'decided', refused, standing, isExact: false, isDelayed };
    }
    const room = last === undefined ? 0 : roomFor(standing, last);
    // While a message waits for others, its own sender holds nothing in advance: see `recall`.
    const part = isShard(asking.child) ? LENT_PART_OF_SHARD : LENT_PART;
    const isScarce = room < EXACT_BELOW || refused.size > 0;
    const count = isScarce ? 0 : Math.min(asking.extra() ?? 0, Math.floor(room / part));
    const ahead = (need: UpperBound) =>
      this.#lease === null ? times(need, count) : this.#lease.takeAhead(need, count);
    asking.take(granted, last === undefined || count === 0 ? null : ahead(last), before, day, now);
    if (granted.length > 0) this.#lease?.note();
    const isExact = room < EXACT_BELOW || this.#lease?.lastAnswer.isExact === true;
    return { kind: 'decided', refused, standing, isExact, isDelayed };
  }

  /** The own limits, and those of the parent of kinds that this holder has none of. */
  #merge(own: LimitStatus): LimitStatus {
    const above = this.#lease?.lastAnswer.standing ?? null;
    if (above === null) return own;
    const { budget, rpm, tpm, maxConcurrent } = own.limits;
    const ofBudget = budget === null ? above : own;
    return {
      limits: {
        ...above.limits,
        budget: ofBudget.limits.budget,
        windows: ofBudget.limits.windows ?? [],
        rpm: rpm ?? above.limits.rpm,
        tpm: tpm ?? above.limits.tpm,
        maxConcurrent: maxConcurrent ?? above.limits.maxConcurrent,
      },
      budget: ofBudget.budget,
      windows: ofBudget.windows ?? [],
      requests: own.requests ?? above.requests,
      tokens: own.tokens ?? above.tokens,
      running: own.running ?? above.running,
    };
  }

  /**
   * Registers a child whose object is new. A repeated call changes nothing.
   * @param ofKey the limits that KV lists for the key
   * @param hash of the name: what an erased user has spent is remembered under it
   * @throws UnreadableRow
   */
  async openChild(child: string, ofKey: JsonObject | null = null, hash?: string): Promise<OpenAnswer> {
    const { transaction, now, isRevoked, level, wakeBy } = this.#ports;
    const listed = level === 'team' ? null : ofKey;
    const isClosed = isRevoked();
    if (isClosed && !isShard(child)) return { kind: 'revoked' };
    if (isClosed) {
      // It gets nothing, and may have records of requests that were not reserved. The alarm closes it again.
      wakeBy(now() + LEASE_MS);
    } else {
      this.#follow(listed);
      // The team may have limits for the users of its keys.
      const closed = (await this.#lease?.open(listed)) ?? null;
      if (closed !== null) return { kind: closed };
    }
    const limits = isClosed ? this.#readableLimits : this.limits(listed);
    const seq = transaction(() => {
      if (isShard(child)) keepShard(this.#sql, child);
      return this.children.register(child, limits, now());
    });
    if (seq === null) return { kind: 'shared' };
    // The object of a known child has it already.
    if (hash === undefined || seq > 0) return { kind: 'opened', limits, seq };
    return { kind: 'opened', limits, seq, spent: keptSpent(this.#sql, hash, now()) };
  }

  /**
   * Applies the message of a child at once, then grants what it needs. Before a need is refused, other children return
   * what they hold in advance.
   */
  async lend(sent: LeaseMessage): Promise<LeaseAnswer> {
    const { transaction, now, isRevoked, level } = this.#ports;
    // The limits of a key are not those of its team, which may have none.
    const message = level === 'team' ? { ...sent, limits: null } : sent;
    const isClosed = isRevoked();
    if (!isClosed) this.#follow(message.limits ?? null);
    // All grants of a message count in one day, also if it ends while other children return what they hold.
    const day = dayOf(now());
    const applied = transaction(() => this.#apply(message, isClosed, day));
    const { needs, user } = message;
    if (applied.kind !== 'applied') return applied;
    const { limits } = applied;
    if (needs.length > 0 || message.running.length > 0) this.#wakeForSilent();
    const spread = isShard(user) ? { spread: this.#keySpread.current } : {};
    if (isClosed || needs.length === 0) {
      this.#reportLater();
      if (needs.length > 0) return { kind: 'revoked' };
      const standing = this.#merge(readLimitStatus(this.#sql, now(), this.children.held, limits, day));
      return {
        ...{ kind: 'leased', limits, day, standing, refusals: [], surplus: null, isExact: false },
        ...spread,
      };
    }
    const { asking, result } = askingChild(message, this.children, this.#lease === null ? day : null);
    const decided = await this.#decideLater(asking).finally(() => {
      if (this.#lease?.isUnreported) this.#reportLater();
    });
    if (decided.kind === 'over') return { kind: 'repeated', seq: this.children.seqOf(message.user) ?? 0 };
    if (decided.kind !== 'decided') return decided;
    const { day: grantDay, surplus, refusals } = result();
    return {
      ...{ kind: 'leased', limits: this.limits(), day: grantDay ?? day, surplus, isExact: decided.isExact },
      ...spread,
      standing: this.#merge(decided.standing),
      refusals: refusals.map(
        (one): ParentRefusal | null =>
          one &&
          (one.by === this.#level ? one.refusal : { ...one.refusal, by: one.by, standing: one.standing }),
      ),
    };
  }

  /** @param day in which new requests count */
  #apply(
    message: LeaseMessage,
    isClosed: boolean,
    day: string,
  ): Exclude<LeaseAnswer, { kind: 'leased' }> | { readonly kind: 'applied'; readonly limits: Limits } {
    const { user, seq, needs, erased } = message;
    // Before anything is applied. What a revoked key cannot read keeps nothing from being counted.
    const limits = isClosed ? this.#readableLimits : this.limits(message.limits);
    const known = this.children.seqOf(user);
    if (known === undefined) return { kind: 'unknown' };
    if (seq <= known) return { kind: 'repeated', seq: known };
    const now = this.#ports.now();
    const { isOwn, seconds } = this.children.apply(message, limits, now, day, this.#team);
    this.#noteAll();
    if (isShard(user))
      this.#keySpread.note(
        regionOf(user),
        (message.minute ?? []).reduce((sum, one) => sum + one.requests, 0),
      );
    if (message.charges.some(({ team = NO_TEAM }) => team !== this.#team)) this.#reportFormer();
    this.#lease?.pass(seconds);
    if (erased !== undefined) keepSpent(this.#sql, erased);
    return isOwn || needs.length === 0 ? { kind: 'applied', limits } : { kind: 'shared' };
  }

  #noteAll(): void {
    for (const lease of this.#leases.values()) lease.note();
  }

  #reportLater(): void {
    for (const lease of this.#leases.values()) if (lease.isOpen) lease.reportLater();
    // The team of a revoked key has got the last message.
    if (!this.#isCopy && this.#lease?.isOpen === false) this.#reportFormer();
  }

  /** Sets the alarm, which reports to former teams, also to those that got a last message. */
  #reportFormer(): void {
    this.#ports.wakeBy(this.#ports.now() + LEASE_MS);
  }

  /** Opens the link to a former team again: the team got a last message, and a request of it was settled after that. */
  async #reopen(): Promise<void> {
    for (const team of unreportedTeams(this.#sql)) await this.#leaseOf(team)?.open(null);
  }

  /** Sets the alarm, which charges what children hold that send no messages. */
  #wakeForSilent(): void {
    const { now, silentMs, wakeBy } = this.#ports;
    wakeBy(this.children.silentAt ?? now() + silentMs());
  }

  get #readableLimits(): Limits {
    try {
      return this.limits();
    } catch (error) {
      if (unreadableReason(error) === null) throw error;
      return NO_LIMITS;
    }
  }

  /** Settles a request, or ends one that still waits. A repeated call changes nothing. */
  settle(id: string, charge: Charge): void {
    for (const asking of this.#undecided) if (asking.id === id) asking.isEnded = true;
    if (!this.isOpen) return;
    const { now, transaction } = this.#ports;
    this.#report([transaction(() => settle(this.#sql, id, charge, now()))]);
  }

  /** Settles a request that may have no reservation. A repeated call changes nothing. */
  async settleUnreserved(id: string, charge: Charge, day: string): Promise<void> {
    const { now, transaction, parent } = this.#ports;
    if (this.#isCopy && parent !== null && (await this.#lease?.open(null)) !== null)
      return parent(NO_TEAM).settleUnreserved(id, charge, day);
    transaction(() => settleUnreserved(this.#sql, id, charge, day, now()));
    this.#reportLater();
  }

  /** Settles requests by their newly stored records, in the transaction that stores them. */
  settleRecords(records: readonly ChargedRecord[]): void {
    this.#report(settleRecords(this.#sql, records, this.#ports.now()));
  }

  #report(settlements: readonly (Settled | null)[]): void {
    const settled = settlements.filter((one) => one !== null);
    for (const { second, moreTokens, team } of settled) {
      const lease = team === null || this.#isCopy ? this.#lease : this.#leaseOf(team);
      if (second !== null) lease?.correct(second, moreTokens);
    }
    if (settled.length > 0) this.#reportLater();
    if (!this.#isCopy && settled.some(({ team }) => team !== null)) this.#reportFormer();
  }

  /** Returns what is held in advance: the parent needs it. */
  async returnLease(): Promise<void> {
    const hasLent = await this.children.recall();
    await this.#lease?.returnSurplus(hasLent);
  }

  /** Tells the parent what was charged, and returns what is held in advance. */
  async report(): Promise<void> {
    if (this.isOpen) await this.#lease?.report();
  }

  /** Opens a shard that was charged for a request without a reservation, so that it reports the charge. */
  async openShard(): Promise<void> {
    if (this.#ports.level === 'shard') await this.#lease?.open(null);
  }

  /** What is charged: a row for each day and currency. */
  get spent(): readonly Amounts[] {
    if (!this.isOpen) return [];
    return this.#sql.exec<Amounts>('SELECT day, currency, tokens, cost FROM spent ORDER BY day').toArray();
  }

  /** The use of these limits; null: there were no requests yet. */
  status(limits: Limits): LimitStatus | null {
    return this.isOpen ? this.standing(limits) : null;
  }

  /** @param limits as they are stored */
  standing(limits: Limits): LimitStatus {
    const { now, transaction } = this.#ports;
    transaction(() => this.#expire(now()));
    return readLimitStatus(this.#sql, now(), this.children.held, this.#own(limits));
  }

  /**
   * Ends a holder whose user is erased, or whose key is revoked: its last message has all that it was charged. Its data is deleted.
   * @param hash of the name of a user who is erased: the key remembers what was spent in the current period
   * @returns false while requests run
   */
  async drain(hash: string | null): Promise<boolean> {
    const { now, transaction } = this.#ports;
    const lease = this.#lease;
    if (lease === null) return false;
    await lease.closed();
    if (!this.isOpen) return true;
    transaction(() => this.#expire(now()));
    // The limits may have changed since the last request. All that was leased in advance returns.
    await lease.send(true);
    const isRunning = this.#sql.exec('SELECT 1 AS one FROM reservations LIMIT 1').toArray().length > 0;
    if (lease.isBusy || isRunning) return false;
    await lease.close(() => {
      const limits = this.#limits();
      return hash === null || limits === null ? null : { hash, ...currentSpent(this.#sql, limits, now()) };
    });
    return true;
  }

  /**
   * Charges reservations that were not settled, and returns to the parent what is not used.
   * @returns when it has work again, in ms since the epoch; null: never
   */
  async alarm(): Promise<number | null> {
    const { now, transaction } = this.#ports;
    if (!this.isOpen) return null;
    transaction(() => {
      this.#expire(now(), true);
      forgetSettled(this.#sql, now());
    });
    const times: (number | null)[] = [];
    try {
      if (this.#ports.level === 'key') await this.#reopen();
    } catch {
      times.push(now() + RETRY_AFTER_MS);
    }
    for (const [team, lease] of this.#leases) if (lease.isOpen) times.push(await this.#reportTo(team, lease));
    times.push(this.isOpen ? nextExpiry(this.#sql) : null, this.children.silentAt);
    const due = times.filter((time) => time !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Reports to a parent. @returns when there is more to do, in ms since the epoch; null: not before something happens */
  async #reportTo(team: string, lease: ParentLease): Promise<number | null> {
    const { now } = this.#ports;
    if (this.#joining.has(team)) return now() + RETRY_AFTER_MS;
    try {
      await lease.report();
      if (lease.isUnreported) return now() + LEASE_MS;
      if (this.#ports.level === 'shard') return await this.#closeIdle(lease);
      if (this.#isCopy) return nextExpiry(this.#sql) === null ? await this.#deleteOld(lease) : null;
      if (!this.#isLeaving(team)) return null;
      if (!lease.isEmpty) return now() + RETRY_AFTER_MS;
      await lease.close();
      return null;
    } catch {
      return now() + RETRY_AFTER_MS;
    }
  }

  /** A shard without requests is no child of its key until the next one: the key asks it for nothing. Its records stay. */
  async #closeIdle(lease: ParentLease): Promise<null> {
    if (nextExpiry(this.#sql) === null && lease.isEmpty) await lease.close();
    return null;
  }

  /** Charges what nothing has settled in time: reservations, and what silent children hold. */
  #expire(now: number, isAlarm = false): void {
    const { log, level } = this.#ports;
    for (const { id, day, tokens, currency, cost } of expire(this.#sql, now)) {
      this.#noteAll();
      log({ event: 'reservation_expired', id, day, tokens, currency, cost });
    }
    for (const { day, tokens, currency, cost } of this.children.chargeSilent(now, this.#team, isAlarm)) {
      this.#noteAll();
      log({ event: 'lease_expired', level, day, tokens, currency, cost });
    }
  }

  /** Deletes the object when no budget period needs what it has: after the month and the week of its last charge. */
  async #deleteOld(lease: ParentLease): Promise<number | null> {
    const { now, name } = this.#ports;
    const limits = this.#limits();
    if (limits === null) {
      await lease.send(true);
      return now();
    }
    if (limits.perUser?.budget?.per === 'total') return null;
    // A request has just arrived.
    if (lease.isBusy) return now() + LEASE_MS;
    const starts = (['week', 'month'] as const).map((per) => periodDays(per, now()).first);
    const first = starts.reduce((a, b) => (a < b ? a : b));
    const [row] = this.#sql.exec<{ last: string | null }>('SELECT max(day) AS last FROM spent').toArray();
    if ((row?.last ?? '') >= first) {
      const ends = (['week', 'month'] as const).map((per) => periodEnd(per, now()) ?? now());
      return Math.max(...ends) + spreadOf(name);
    }
    if (!lease.isFresh) {
      // The limits may have changed since the last request.
      await lease.send(true);
      return now();
    }
    await lease.close();
    return null;
  }
}

interface Checked {
  readonly refused: ReadonlyMap<UpperBound, Refused>;
  readonly granted: readonly UpperBound[];
}

interface Granted extends Checked {
  /** The status without what is granted; null: it has to be read. */
  readonly before: LimitStatus | null;
}

/** @param parent the standing and the level of the parent, whose own refusals do not name them */
function refusedBy(
  { by, standing, ...refusal }: ParentRefusal,
  ofParent: LimitStatus,
  parent: Level,
): Refused {
  return { refusal, standing: standing ?? ofParent, by: by ?? parent };
}

/** For how many more such requests every limit has room. */
function roomFor(status: LimitStatus, need: UpperBound): number {
  const { limits, requests, tokens, running } = status;
  const rooms: number[] = [];
  const add = (left: number, each: number) => rooms.push(each === 0 ? Number.POSITIVE_INFINITY : left / each);
  for (const one of budgetUses(status)) {
    const each = one.budget.unit === TOKENS ? need.tokens : need.cost;
    if (isEnforced(one.budget)) add(remainingOf(one), each);
  }
  if (limits.rpm !== null && requests !== null) add(limits.rpm - requests.used, 1);
  if (limits.tpm !== null && tokens !== null) add(limits.tpm - tokens.used, need.expectedTokens);
  if (limits.maxConcurrent !== null && running !== null) add(limits.maxConcurrent - running, 1);
  return Math.min(...rooms);
}

function spreadOf(user: string): number {
  let hash = 0;
  for (const char of user) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % DELETE_SPREAD_MS;
  return hash;
}

function ignore(): void {}

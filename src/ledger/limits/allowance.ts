/**
 * The protocol by which room in a limit passes from the object that counts it to what uses it: a holder reserves it for a request, and
 * leases it to its children, such as a key to its users (docs/decisions/0007-allowances.md).
 */
import type { LimitStatus, Limits } from '../../auth/key-limits.ts';
import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { Spread } from './spread.ts';

/** Room in every kind of limit. */
export interface Allowance {
  readonly requests: number;
  readonly tokens: number;
  /** What `tpm` counts. */
  readonly expectedTokens: number;
  /** `''` where no price is known. */
  readonly currency: string;
  /** An integer of 10^-9 of the currency. */
  readonly cost: number;
}

/** What a request may use, or what a further attempt of it may use in addition. */
export interface UpperBound extends Allowance {
  /** 0 for a further attempt: it is part of a request that already runs, so no rate counts it. */
  readonly requests: 0 | 1;
  /** The UTC day in which it counts: that of the request which it extends. Absent: the day of its grant. */
  readonly day?: string;
}

/** The levels of holders, each the parent of the next one. */
export type Level = 'team' | 'key' | 'user';

/** What a holder is: a shard is a child of its key, for requests of no user with limits, and has no limits of its own. */
export type HolderKind = Level | 'shard';

/** Why a request is refused. `waitMs`: when it would be admitted if no other request came; null: waiting does not help. */
export type LimitRefusal =
  /** `window`: the place of the budget among those of the key; absent: it is the first. */
  | {
      readonly kind: 'budget';
      readonly needed: number;
      readonly waitMs: number | null;
      readonly window?: number;
    }
  /** The budget is in money, and the price of the request is not known. */
  | { readonly kind: 'unpriced' }
  | { readonly kind: 'rpm' | 'tpm' | 'concurrency'; readonly needed: number; readonly waitMs: number | null };

/** A refusal with the limits that refuse. */
export interface Refused {
  readonly refusal: LimitRefusal;
  readonly standing: LimitStatus;
  readonly by: Level;
}

/** A refusal by a parent. It names its level and its limits where these are not the parent's own. */
export type ParentRefusal = LimitRefusal & Partial<Pick<Refused, 'standing' | 'by'>>;

/** What of a request's need is its output; the rest is its prompt. */
export interface OutputNeed {
  readonly tokens: number;
  /** An integer of 10^-9 of the currency, with the searches that the output may cause. */
  readonly cost: number;
  /** Null: the request sets no output limit, and this many tokens are assumed for a choice. */
  readonly assumed: number | null;
}

/** A wait for running requests, whose end is not known. */
export const SOON_MS = 1000;

/** What a charge of a day consists of. */
export type Amounts = {
  readonly day: string;
  readonly tokens: number;
  /** `''` where no price is known. */
  readonly currency: string;
  /** An integer of 10^-9 of the currency. */
  readonly cost: number;
};

/** A sum of charges in a holder, which its parent also counts. Negative: less than reported before. */
export interface ReportedCharge extends Amounts {
  readonly kind: 'spent' | 'unreported' | 'expired';
  /** In a message to a key: the team that admitted the requests. Absent: the key had no team. */
  readonly team?: string;
}

/** Running requests of one day and currency. */
interface RunningSum extends Amounts {
  readonly running: number;
}

/** What a holder counts for running requests, or for what it has lent: of the latter, no second counts `requests` and `rate_tokens` yet. */
export interface HeldSum extends RunningSum {
  readonly requests?: number;
  readonly rate_tokens?: number;
  /** As in {@link ReportedCharge}. */
  readonly team?: string;
}

/** What `rpm` and `tpm` count in a second. `tokens` may be negative: less than was expected. */
export interface SecondSum {
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * A message from a holder to its parent. The holder sends its next message after the answer to this one, or repeats this one with the same
 * `seq` and `charges`. So the parent counts each charge once, even if messages or answers are lost.
 */
export interface LeaseMessage {
  /** The name of the holder among the children of its parent. */
  readonly user: string;
  readonly seq: number;
  /** What was charged since the last message. */
  readonly charges: readonly ReportedCharge[];
  /** The running requests, and what the holder has lent. They replace everything that it held before. */
  readonly running: readonly HeldSum[];
  /** What the minute of the parent has not counted yet. Null: unknown, so all that was leased counts, as of now. */
  readonly minute: readonly SecondSum[] | null;
  readonly needs: readonly UpperBound[];
  /** For how many further requests, each like the last need, allowance is leased in advance. */
  readonly extra: number;
  /** Children of the holder may hold something in advance: it makes them return that before it refuses. */
  readonly isAhead?: boolean;
  /** The holder deletes itself after this message. */
  readonly isLast: boolean;
  /** The key has left this team, or is revoked: it only reports the end of its requests of this team. */
  readonly isLeaving?: true;
  /** The limits that KV lists for the key, for an object of a key that never had any. */
  readonly limits?: JsonObject | null;
  /** With the last message of a user who is erased: what the key remembers. */
  readonly erased?: ErasedSpent;
}

/** What a user has spent in the current period, without the name. */
export interface ErasedSpent {
  /** Of the name, with a key. */
  readonly hash: string;
  readonly rows: readonly SpentRow[];
  /** The end of the period, in ms since the epoch; null: it has none. */
  readonly until: number | null;
}

export interface SpentRow extends Amounts {
  readonly kind: 'spent' | 'unreported';
}

export type LeaseAnswer =
  | {
      readonly kind: 'leased';
      /** Of the parent. */
      readonly limits: Limits;
      /**
       * The UTC day, by the clock of the highest holder, in which all that is granted counts. Absent from an object of
       * an earlier version.
       */
      readonly day?: string;
      /** Of the parent, with this lease, and of its parents for kinds of limits that it has none of. */
      readonly standing: LimitStatus;
      /** For each need why it is refused; null: it is granted. */
      readonly refusals: readonly (ParentRefusal | null)[];
      /** Leased in advance, for requests that have not arrived yet. */
      readonly surplus: Allowance | null;
      /** So little is left that nothing is leased in advance, and each settlement is reported at once. */
      readonly isExact: boolean;
      /** For a shard: how its key is spread now. */
      readonly spread?: Spread | null;
    }
  /** The message was applied before. `seq`: of the last message that was applied. */
  | { readonly kind: 'repeated'; readonly seq: number }
  /** The parent has removed the child, which then deletes what it stores for this parent. */
  | { readonly kind: 'unknown' }
  /** `max_users` other users had requests on this day: this one uses the shared allowance. */
  | { readonly kind: 'shared' }
  /** The key is revoked. */
  | { readonly kind: 'revoked' };

export type OpenAnswer =
  /** `spent`: by the user in the current period, before the erasure. Absent from an object of an earlier version. */
  | {
      readonly kind: 'opened';
      readonly limits: Limits;
      readonly seq: number;
      readonly spent?: readonly SpentRow[];
    }
  | Extract<LeaseAnswer, { kind: 'shared' | 'revoked' }>;

/** The calls to the object of a parent. A call that throws may have run. */
export interface ParentCalls {
  /**
   * Registers a child.
   * @param listed the limits that KV lists for the key
   * @param hash of the name, under which the key may remember what was spent
   */
  openUser(user: string, listed?: JsonObject | null, hash?: string): Promise<OpenAnswer>;
  lease(message: LeaseMessage): Promise<LeaseAnswer>;
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
}

/** The state of what a holder has of its parent's allowance. `Claim` is a claim that waits for the parent. */
export type LeaseState<Claim> =
  /** The parent knows no such child, and the object has no tables. */
  | { readonly kind: 'none' }
  /** The parent is asked to count the child. */
  | { readonly kind: 'opening'; readonly opened: Promise<OpenAnswer> }
  /** The parent counts what was leased, in that UTC day. Claims of the day take from the surplus until that time (ms since the epoch). */
  | {
      readonly kind: 'leased';
      readonly surplus: Allowance | null;
      readonly day: string;
      readonly until: number;
    }
  /** A message returns the surplus. Nothing is granted until its answer. `answered` never rejects. */
  | { readonly kind: 'sent'; readonly claims: readonly Claim[]; readonly answered: Promise<void> }
  /** An answer was lost, or the object's memory: the parent may count more than is used. The next message says what is. */
  | { readonly kind: 'unsure' }
  /** The last message is sent, and the object deletes its data. `closed` never rejects. */
  | { readonly kind: 'closing'; readonly closed: Promise<void> };

/** Whether the object has its tables in this state. */
export function hasTables({ kind }: LeaseState<unknown>): boolean {
  return kind !== 'none' && kind !== 'opening';
}

/** What is left after a need took its part; null: it does not fit. */
export function takeFrom(surplus: Allowance, need: Allowance): Allowance | null {
  if (need.currency !== surplus.currency) return null;
  const left = {
    requests: surplus.requests - need.requests,
    tokens: surplus.tokens - need.tokens,
    expectedTokens: surplus.expectedTokens - need.expectedTokens,
    currency: surplus.currency,
    cost: surplus.cost - need.cost,
  };
  return Math.min(left.requests, left.tokens, left.expectedTokens, left.cost) < 0 ? null : left;
}

export function times({ tokens, expectedTokens, currency, cost }: UpperBound, count: number): Allowance {
  return {
    requests: count,
    tokens: tokens * count,
    expectedTokens: expectedTokens * count,
    currency,
    cost: cost * count,
  };
}

/** What the minute of the parent has not counted yet, since the last message. */
export class MinuteReport {
  /** Only requests after this second are counted by their own seconds, so that only these can be corrected. */
  readonly #after: number;
  readonly #seconds = new Map<number, SecondSum>();

  constructor(after: number) {
    this.#after = after;
  }

  /** For what follows the message that has this report. */
  next(): MinuteReport {
    return new MinuteReport(this.#after);
  }

  admit(second: number, tokens: number, requests = 1): void {
    this.#add(second, requests, tokens);
  }

  /** The request of that second used more than expected, or less. */
  correct(second: number, moreTokens: number): void {
    if (second > this.#after) this.#add(second, 0, moreTokens);
  }

  #add(second: number, requests: number, tokens: number): void {
    const before = this.#seconds.get(second);
    const sums = { requests: (before?.requests ?? 0) + requests, tokens: (before?.tokens ?? 0) + tokens };
    this.#seconds.set(second, { second, ...sums });
  }

  get seconds(): readonly SecondSum[] {
    return [...this.#seconds.values()];
  }

  get requests(): number {
    return this.seconds.reduce((sum, { requests }) => sum + requests, 0);
  }
}

/**
 * The protocol by which room in a limit passes from the object that counts it to what uses it: an object reserves it for a request, and
 * the object of a key leases it to the objects of its users (docs/decisions/0007-allowances.md).
 */
import type { LimitStatus, Limits } from '../../auth/key-limits.ts';
import type { Charge } from '../../metering/record.ts';
import type { JsonObject } from '../../shared/json.ts';

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

/** A sum of charges in the object of a user, which the object of its key also counts. Negative: less than reported before. */
export interface ReportedCharge extends Amounts {
  readonly kind: 'spent' | 'unreported' | 'expired';
}

/** Running requests of one day and currency. */
export interface RunningSum extends Amounts {
  readonly running: number;
}

/** What `rpm` and `tpm` count in a second. `tokens` may be negative: less than was expected. */
export interface SecondSum {
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * A message from the object of a user to the object of its key. The object of the user sends its next message after the answer to this
 * one, or repeats this one with the same `seq` and `charges`. So the key counts each charge once, even if messages or answers are lost.
 */
export interface LeaseMessage {
  readonly user: string;
  readonly seq: number;
  /** What was charged since the last message. */
  readonly charges: readonly ReportedCharge[];
  /** The running requests. They replace everything that the user's object held before. */
  readonly running: readonly RunningSum[];
  /** What the minute of the key has not counted yet. Null: unknown, so all that was leased counts, as of now. */
  readonly minute: readonly SecondSum[] | null;
  readonly needs: readonly UpperBound[];
  /** For how many further requests, each like the last need, allowance is leased in advance. */
  readonly extra: number;
  /** The user's object deletes itself after this message. */
  readonly isLast: boolean;
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
      readonly limits: Limits;
      /** The UTC day, by the clock of the key, in which all that is granted counts. Absent from an object of an earlier version. */
      readonly day?: string;
      /** Of the key, with this lease. */
      readonly standing: LimitStatus;
      /** For each need why it is refused; null: it is granted. */
      readonly refusals: readonly (LimitRefusal | null)[];
      /** Leased in advance, for requests that have not arrived yet. */
      readonly surplus: Allowance | null;
      /** So little is left that nothing is leased in advance, and each settlement is reported at once. */
      readonly isExact: boolean;
    }
  /** The message was applied before. `seq`: of the last message that was applied. */
  | { readonly kind: 'repeated'; readonly seq: number }
  /** The user was removed: its object deletes its data. */
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

/** The calls to the object of the key. A call that throws may have run. */
export interface KeyLeases {
  /**
   * @param listed the limits that KV lists for the key
   * @param hash of the name, under which the key may remember what was spent
   */
  openUser(user: string, listed?: JsonObject | null, hash?: string): Promise<OpenAnswer>;
  lease(message: LeaseMessage): Promise<LeaseAnswer>;
  settleUnreserved(id: string, charge: Charge, day: string): Promise<void>;
}

/** The state of what the object of a user holds of its key's allowance. `Waiting` is a request that waits for the key. */
export type LeaseState<Waiting> =
  /** The key knows no such user, and the object has no tables. */
  | { readonly kind: 'none' }
  /** The key is asked to count the user. */
  | { readonly kind: 'opening'; readonly opened: Promise<OpenAnswer> }
  /** The key counts what was leased, in that UTC day. Requests of the day take from the surplus until that time (ms since the epoch). */
  | {
      readonly kind: 'leased';
      readonly surplus: Allowance | null;
      readonly day: string;
      readonly until: number;
    }
  /** A message returns the surplus. Nothing is admitted until its answer. `answered` never rejects. */
  | { readonly kind: 'sent'; readonly requests: readonly Waiting[]; readonly answered: Promise<void> }
  /** An answer was lost, or the object's memory: the key may count more than is used. The next message says what is. */
  | { readonly kind: 'unsure' }
  /** The last message is sent, and the object deletes its data. `closed` never rejects. */
  | { readonly kind: 'closing'; readonly closed: Promise<void> };

/** Whether the object has its tables in this state. */
export function hasTables({ kind }: LeaseState<unknown>): boolean {
  return kind !== 'none' && kind !== 'opening';
}

/** What is left after a need took its part; null: it does not fit. */
export function takeFrom(surplus: Allowance, need: UpperBound): Allowance | null {
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

/** What the minute of the key has not counted yet, since the last message. */
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

  admit(second: number, tokens: number): void {
    this.#add(second, 1, tokens);
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

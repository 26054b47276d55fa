/** One attempt's part of a request's record: who was asked, what came of it, and what it used (R8). */
import type { BilledUsage, CountedUsage } from '../canonical/usage.ts';
import type { Attempt } from './record.ts';
import { Tally } from './tally.ts';

export interface AttemptFacts {
  readonly provider: string;
  /** The model's name there. */
  readonly model: string;
  /** Ids under which the provider's prices may stand. */
  readonly priceIds: readonly string[];
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
}

/** How an attempt ended; `isRefused`: with an error in the place of an answer, so that it used no more than its upstream reported. */
export interface AttemptEnd {
  readonly errorCode: string | null;
  readonly isRefused: boolean;
}

export class AttemptMeter {
  readonly facts: AttemptFacts;
  readonly tally: Tally;
  /** The HTTP status of the upstream's answer, as soon as there is one. */
  status: number | null = null;
  /** Where it was asked in vain, and why, where a setting may be the cause. */
  cause: string | null = null;
  readonly #now: () => number;
  readonly #startedAt: number;
  #end: (AttemptEnd & { readonly at: number }) | null = null;
  #onEnd = (_attempt: Attempt) => {};

  /**
   * @param now the current time in ms since the epoch
   * @param promptEstimate tokens of the prompt, for an upstream that reports none
   */
  constructor(facts: AttemptFacts, now: () => number, promptEstimate: number) {
    this.facts = facts;
    this.tally = new Tally(now, promptEstimate);
    this.#now = now;
    this.#startedAt = now();
  }

  /** Calls back once, when it ends. */
  onEnd(callback: (attempt: Attempt) => void): void {
    this.#onEnd = callback;
  }

  /** Only the first call counts. */
  end(end: AttemptEnd): void {
    if (this.#end !== null) return;
    this.#end = { ...end, at: this.#now() };
    this.#onEnd(this.attempt);
  }

  /** The attempt as it ended, or as it stands. */
  get attempt(): Attempt {
    const { provider, model } = this.facts;
    const { errorCode = null, at = this.#now() } = this.#end ?? {};
    const { status, cause } = this;
    const ms = at - this.#startedAt;
    return { provider, model, status, error_code: errorCode, ms, ...(cause !== null && { cause }) };
  }

  countUsage(): CountedUsage<BilledUsage> {
    return this.#isRefused ? this.tally.countReported() : this.tally.countBilled();
  }

  /** What its upstream says that it costs: an integer of 10^-9 US dollars, or null (P3). */
  get upstreamCost(): number | null {
    return this.tally.upstreamCost;
  }

  get #isRefused(): boolean {
    return this.#end?.isRefused === true;
  }
}

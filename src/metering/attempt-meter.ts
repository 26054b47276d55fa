/** One attempt's part of a request's record: who was asked, what came of it, and what it used (R8). */
import type { BilledUsage, CountedUsage } from '../canonical/usage.ts';
import type { Attempt } from './record.ts';
import { UsageAccumulator } from './usage-accumulator.ts';

export interface AttemptFacts {
  readonly provider: string;
  /** The model's name there. */
  readonly model: string;
  /** Ids under which the provider's prices may stand. */
  readonly priceIds: readonly string[];
  /** Names of what the upstream's request lacks of the caller's, or has otherwise (Q5, Q6). */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** How many choices are asked for. */
  readonly choices: number;
  /** A whole answer shows every token that is billed: no reasoning or prediction is hidden (G3). */
  readonly showsAll: boolean;
}

/** How an attempt ended. */
export interface AttemptEnd {
  readonly errorCode: string | null;
  /** With an error in the place of an answer, so that its record has no more than what its upstream reported. */
  readonly isRefused: boolean;
  /** With a whole answer. */
  readonly isWhole?: boolean;
}

/** An attempt that is billed, or may be, and whose usage was not reported whole (G3). A null count is charged at its bound. */
export interface Unreported {
  /** As reported, also of an answer that was cut. */
  readonly promptTokens: number | null;
  /** As reported of a whole answer. */
  readonly outputTokens: number | null;
  /** The output has at least so many: as far as it was reported. */
  readonly leastOutputTokens: number;
  /** At most so many, where all of it was seen; null: some may be unseen. */
  readonly mostOutputTokens: number | null;
}

/** Codes with which Weir itself ends an answer that has begun: the upstream refused nothing, and may bill it. */
const BROKEN = [
  ...['upstream_truncated', 'upstream_invalid', 'upstream_event_too_large', 'stream_idle_timeout', 'timeout'],
  ...['overloaded', 'internal_error'],
];

export class AttemptMeter {
  readonly facts: AttemptFacts;
  readonly accumulator: UsageAccumulator;
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
    this.accumulator = new UsageAccumulator(now, promptEstimate);
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
    return this.#isRefused ? this.accumulator.countReported() : this.accumulator.countBilled();
  }

  /** Null where its upstream reported all of its usage, or bills nothing. */
  get unreported(): Unreported | null {
    const end = this.#end;
    if (this.#isRefused && !this.#isBroken) return null;
    const { accumulator } = this;
    const { choices, showsAll } = this.facts;
    const { prompt, output } = accumulator.reported;
    const isFinal = end?.isWhole === true || accumulator.finishesAtUsage >= choices;
    if (isFinal && prompt !== null && output !== null) return null;
    const isSeen = showsAll && accumulator.finishes >= choices;
    return {
      promptTokens: prompt,
      outputTokens: isFinal ? output : null,
      leastOutputTokens: output ?? 0,
      mostOutputTokens: isSeen ? accumulator.mostSeenTokens : null,
    };
  }

  /** Whether its upstream bills it, or may do so. */
  get isBilled(): boolean {
    const isReported = this.accumulator.countReported().usage.total_tokens > 0 || this.upstreamCost !== null;
    return isReported || this.unreported !== null;
  }

  get #isBroken(): boolean {
    const isAnswered = this.status !== null && this.status >= 200 && this.status < 300;
    return isAnswered && BROKEN.includes(this.#end?.errorCode ?? '');
  }

  /** What its upstream says that it costs: an integer of 10^-9 US dollars, or null (P3). */
  get upstreamCost(): number | null {
    return this.accumulator.upstreamCost;
  }

  get #isRefused(): boolean {
    return this.#end?.isRefused === true;
  }
}

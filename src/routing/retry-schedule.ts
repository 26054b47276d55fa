/** Which target is asked next, and after which wait: one pass over all of them, then further ones over those that may recover (R6, R7). */
import { FIRST_BACKOFF_MS, MAX_RETRY_AFTER_MS } from '../shared/limits.ts';
import type { CircuitBreakers } from './circuit-breaker.ts';
import type { Failure, Verdict } from './failures.ts';
import type { SkippedTarget, Target } from './targets.ts';

/** A target's turn. All times are ms since the epoch. */
interface Turn {
  readonly target: Target;
  /** It is not asked before. */
  readonly at: number;
}

export interface RetryScheduleOptions {
  readonly targets: readonly [Target, ...Target[]];
  readonly circuits: CircuitBreakers;
  /** Whose request it is: circuits may be open for one caller alone. */
  readonly caller: string;
  /** Under which name a target's circuit is known. */
  readonly circuitKey: (target: Target) => string;
  /** Further passes (`RETRIES`). */
  readonly retries: number;
  /** The request's end, whatever happens (T3); infinite where it has none. */
  readonly deadlineAt: number;
  /** From 0 up, below 1. */
  readonly random: () => number;
}

export class RetrySchedule {
  readonly #options: RetryScheduleOptions;
  #turns: Turn[];
  /** Of the next pass: `at` is null where the target said nothing of when. */
  #failed: { readonly target: Target; readonly at: number | null }[] = [];
  #pass = 0;
  #turnsGiven = 0;
  /** This request tries the target whose turn it is for all others (R7). */
  #isTrial = false;
  readonly #skipped: SkippedTarget[] = [];
  readonly #ignoresCircuits: boolean;

  constructor(options: RetryScheduleOptions, now: number) {
    const { targets, circuits, circuitKey, caller } = options;
    this.#options = options;
    this.#turns = targets.map((target) => ({ target, at: now }));
    // Where all are out, none is.
    this.#ignoresCircuits = targets.every((target) => circuits.isOpen(circuitKey(target), caller, now));
  }

  /** Those whose turn was passed over since the last call, because their circuit is open. */
  takeSkipped(): readonly SkippedTarget[] {
    return this.#skipped.splice(0);
  }

  /** Whether another attempt may follow the one that is under way. */
  get hasMore(): boolean {
    return this.#turns.length > 0 || this.#pass < this.#options.retries;
  }

  /** The next target and when it is asked; null where none is left, or its time would be after the deadline. */
  next(now: number): Turn | null {
    const { circuits, circuitKey, caller, deadlineAt } = this.#options;
    for (let turn = this.#shift(now); turn !== undefined; turn = this.#shift(now)) {
      const { target } = turn;
      const at = Math.max(turn.at, now);
      if (at >= deadlineAt) return null;
      const isLastResort = this.#turnsGiven === 0 && this.#turns.length === 0;
      const isOut = this.#pass === 0 && circuits.isOpen(circuitKey(target), caller, now);
      if (isOut && !this.#ignoresCircuits && !isLastResort) {
        this.#skipped.push({ target, reason: 'circuit_open' });
        continue;
      }
      this.#turnsGiven++;
      this.#isTrial = circuits.startProbe(circuitKey(target), now);
      return { target, at };
    }
    return null;
  }

  /** The target whose turn it was is not asked after all, or that told nothing of it. */
  releaseProbe(target: Target, now: number): void {
    const { circuits, circuitKey } = this.#options;
    if (this.#isTrial) circuits.releaseProbe(circuitKey(target), now);
  }

  /** The target whose turn it was has failed. */
  failed(
    target: Target,
    { retryAfterMs }: Failure,
    { isRecoverable, circuitEffect }: Verdict,
    now: number,
  ): void {
    const { circuits, circuitKey, caller } = this.#options;
    // The caller's own mistake is no try of the target: the next request tries it.
    if (circuitEffect === 'nothing') this.releaseProbe(target, now);
    circuits.failed(circuitKey(target), caller, circuitEffect, now);
    if (!isRecoverable || (retryAfterMs ?? 0) > MAX_RETRY_AFTER_MS) return;
    this.#failed.push({ target, at: retryAfterMs === null ? null : now + retryAfterMs });
  }

  /** It has output, or its answer is whole. */
  succeeded(target: Target): void {
    const { circuits, circuitKey } = this.#options;
    circuits.succeeded(circuitKey(target));
  }

  #shift(now: number): Turn | undefined {
    if (this.#turns.length === 0 && this.#pass < this.#options.retries) this.#beginPass(now);
    return this.#turns.shift();
  }

  /** Whoever may be asked first comes first; of those that said nothing, in their order. */
  #beginPass(now: number): void {
    const backoffMs = Math.floor(this.#options.random() * FIRST_BACKOFF_MS * 2 ** this.#pass);
    this.#pass++;
    this.#turns = this.#failed
      .map(({ target, at }) => ({ target, at: at ?? now + backoffMs }))
      .sort((a, b) => a.at - b.at);
    this.#failed = [];
  }
}

/**
 * Schedules attempts: every target once without delay, then up to `RETRIES` rounds over the targets whose failure is recoverable, with
 * exponential backoff or the provider's `retry-after`.
 */
import { ANSWERED_MS, type CircuitBreakers, type OpenCircuit } from './circuit-breaker.ts';
import type { Failure, Verdict } from './failures.ts';
import type { SkippedTarget, Target } from './targets.ts';

/** A target whose `retry-after` is longer is not retried. */
const MAX_RETRY_AFTER_MS = 5000;

/** The longest wait before the first retry round without a `retry-after`. It doubles with each round. */
const FIRST_BACKOFF_MS = 250;

/** A scheduled attempt. All times are in ms since the epoch. */
export interface ScheduledTarget {
  readonly target: Target;
  /** The earliest time of the attempt. */
  readonly at: number;
}

export interface RetryScheduleOptions {
  readonly targets: readonly [Target, ...Target[]];
  readonly circuits: CircuitBreakers;
  /** A circuit may be open for one caller only. */
  readonly caller: string;
  readonly circuitKey: (target: Target) => string;
  /** Rounds after the first one (`RETRIES`). */
  readonly retries: number;
  /** The request's deadline; infinity if it has none. */
  readonly deadlineAt: number;
  /**
   * The caller has limits, which each attempt that may be billed uses up: a target that leaves such attempts without an answer is not
   * called, not even if there is no other one.
   */
  readonly sparesBudget: boolean;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** The order and the times of one request's attempts. It asks the circuit breakers, and tells them each result. */
export class RetrySchedule {
  readonly #options: RetryScheduleOptions;
  #queue: ScheduledTarget[];
  /** The targets of the next round. `at` is null if the provider named no time. */
  #failed: { readonly target: Target; readonly at: number | null }[] = [];
  #round = 0;
  #attempts = 0;
  /** The current attempt probes a target whose circuit is half open. */
  #isProbe = false;
  readonly #skipped: SkippedTarget[] = [];
  readonly #ignoresCircuits: boolean;

  constructor(options: RetryScheduleOptions, now: number) {
    const { targets, circuits, circuitKey, caller } = options;
    this.#options = options;
    this.#queue = targets.map((target) => ({ target, at: now }));
    // If every circuit is open, all targets are tried.
    this.#ignoresCircuits = targets.every((target) => circuits.isOpen(circuitKey(target), caller, now));
  }

  /** The targets that were skipped since the last call because their circuit is open. */
  takeSkipped(): readonly SkippedTarget[] {
    return this.#skipped.splice(0);
  }

  /** Whether another attempt may follow the current one. */
  get hasMore(): boolean {
    return this.#queue.length > 0 || this.#round < this.#options.retries;
  }

  /** The next target; null if there is none, or if its time is after the deadline. */
  next(now: number): ScheduledTarget | null {
    const { circuits, circuitKey, caller, deadlineAt } = this.#options;
    for (let next = this.#shift(now); next !== undefined; next = this.#shift(now)) {
      const { target } = next;
      const at = Math.max(next.at, now);
      if (at >= deadlineAt) return null;
      const isLastResort = this.#attempts === 0 && this.#queue.length === 0;
      const isOpen = this.#round === 0 && circuits.isOpen(circuitKey(target), caller, now);
      if (this.#sparedMs(target, now) !== null || (isOpen && !this.#ignoresCircuits && !isLastResort)) {
        this.#skipped.push({ target, reason: 'circuit_open' });
        continue;
      }
      this.#attempts++;
      this.#isProbe = circuits.startProbe(circuitKey(target), caller, now);
      return { target, at };
    }
    return null;
  }

  /** When the first target may be called again, in ms, if `sparesBudget` keeps every one from being called; null: one may be called. */
  sparedMs(now: number): number | null {
    const ms = Math.min(...this.#options.targets.map((target) => this.#sparedMs(target, now) ?? 0));
    return ms === 0 ? null : ms;
  }

  #sparedMs(target: Target, now: number): number | null {
    const { circuits, circuitKey, caller, sparesBudget } = this.#options;
    return sparesBudget ? circuits.sparedMs(circuitKey(target), caller, now) : null;
  }

  /** Frees the circuit's half-open probe if the target was not called, or if its result says nothing about its health. */
  releaseProbe(target: Target, now: number): void {
    const { circuits, circuitKey, caller } = this.#options;
    if (this.#isProbe) circuits.releaseProbe(circuitKey(target), caller, now);
  }

  /** The target is called: {@link CircuitBreakers.startWaiting}. */
  startWaiting(target: Target, now: number): (isAnswer: boolean, now: number) => void {
    const { circuits, circuitKey } = this.#options;
    return circuits.startWaiting(circuitKey(target), now);
  }

  /**
   * Records the failure of the current attempt, and schedules a retry if the failure is recoverable.
   * @returns the target's circuit if this failure has opened it
   */
  failed(
    target: Target,
    { retryAfterMs, isBilled }: Pick<Failure, 'retryAfterMs' | 'isBilled'>,
    { isRecoverable, circuitEffect }: Verdict,
    now: number,
  ): OpenCircuit | null {
    const { circuits, circuitKey, caller } = this.#options;
    if (circuitEffect === 'nothing') this.releaseProbe(target, now);
    const opened = circuits.failed(circuitKey(target), caller, circuitEffect, now, isBilled);
    if (isRecoverable && (retryAfterMs ?? 0) <= MAX_RETRY_AFTER_MS)
      this.#failed.push({ target, at: retryAfterMs === null ? null : now + retryAfterMs });
    return opened;
  }

  /**
   * The current attempt has output, or its response is complete.
   * @returns whether the target's circuit was open, and is closed now
   */
  succeeded(target: Target): boolean {
    const { circuits, circuitKey, caller } = this.#options;
    return circuits.succeeded(circuitKey(target), caller);
  }

  /** The client left before the target answered. */
  abandoned(target: Target, waitedMs: number, now: number): void {
    const { circuits, circuitKey, caller, sparesBudget } = this.#options;
    if (sparesBudget && waitedMs >= ANSWERED_MS) circuits.abandoned(circuitKey(target), caller, now);
  }

  #shift(now: number): ScheduledTarget | undefined {
    if (this.#queue.length === 0 && this.#round < this.#options.retries) this.#beginRound(now);
    return this.#queue.shift();
  }

  /** Earliest retry time first. Targets without one get the backoff and keep their order. */
  #beginRound(now: number): void {
    const backoffMs = Math.floor(this.#options.random() * FIRST_BACKOFF_MS * 2 ** this.#round);
    this.#round++;
    this.#queue = this.#failed
      .map(({ target, at }) => ({ target, at: at ?? now + backoffMs }))
      .sort((a, b) => a.at - b.at);
    this.#failed = [];
  }
}

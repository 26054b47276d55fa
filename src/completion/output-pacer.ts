/** Extends the reservation of a stream while its output runs, and ends the stream where its budget is used up. */
import type { Clock } from '../stream/timers.ts';
import type { OutputSlices } from './admission.ts';

/** The reservation is extended when this part of a slice is left, so that the stream does not wait for it. */
const EXTENDED_AT = 0.5;

/** Without visible output for longer than this, a model may be writing what it does not show. */
const HIDDEN_AFTER_MS = 1000;

/** Between two looks at a stream of which nothing is seen. */
const MIN_TIMER_MS = 1000;
const MAX_TIMER_MS = 60_000;

interface PacedOutput {
  /** Tokens of all attempts that were seen or reported so far. */
  readonly seenTokens: () => number;
  /** The budget is used up. Called once. */
  readonly onUsedUp: () => void;
}

/**
 * Counts what passes and what may be written unseen. A slice is used up by both. While the answer to an extension is awaited, the
 * stream goes on.
 */
export class OutputPacer {
  readonly #slices: OutputSlices;
  readonly #output: PacedOutput;
  readonly #clock: Clock;
  #seen = 0;
  #lastSeenAt: number;
  /** Tokens that may have been written unseen before `#lastSeenAt`. */
  #hidden = 0;
  #isExtending = false;
  /** The budget has no room for another slice. */
  #isLast = false;
  #isOver = false;
  #cancelTimer = () => {};

  constructor(slices: OutputSlices, output: PacedOutput, clock: Clock) {
    this.#slices = slices;
    this.#output = output;
    this.#clock = clock;
    this.#lastSeenAt = clock.now();
    if (slices.hiddenTokensPerSecond !== null) this.#startTimer();
  }

  /** Call it after output was written. */
  check(): void {
    if (this.#isOver) return;
    const { reserved, sliceTokens, isWhole } = this.#slices;
    const used = this.#count();
    if (this.#isLast && used >= reserved) {
      this.stop();
      this.#output.onUsedUp();
    } else if (
      !isWhole &&
      !this.#isLast &&
      !this.#isExtending &&
      used >= reserved - sliceTokens * EXTENDED_AT
    ) {
      void this.#extend();
    }
  }

  /** The stream has ended. */
  stop(): void {
    if (!this.#isOver) this.#count();
    this.#isOver = true;
    this.#cancelTimer();
  }

  async #extend(): Promise<void> {
    this.#isExtending = true;
    this.#isLast = !(await this.#slices.extend());
    this.#isExtending = false;
    this.check();
  }

  /** @returns the tokens that may have been written so far */
  #count(): number {
    const { hiddenTokensPerSecond: speed } = this.#slices;
    const seen = this.#output.seenTokens();
    if (speed === null) return seen;
    const now = this.#clock.now();
    const silentMs = now - this.#lastSeenAt;
    const sum = this.#hidden + (silentMs > HIDDEN_AFTER_MS ? (silentMs * speed) / 1000 : 0);
    if (seen > this.#seen) {
      this.#hidden = sum;
      this.#lastSeenAt = now;
      this.#seen = seen;
    }
    const hidden = Math.ceil(sum);
    this.#slices.hiddenTokens = hidden;
    return seen + hidden;
  }

  #startTimer(): void {
    const { reserved, sliceTokens, hiddenTokensPerSecond } = this.#slices;
    const left = this.#isLast ? reserved : reserved - sliceTokens * EXTENDED_AT;
    const dueMs = ((left - this.#count()) / (hiddenTokensPerSecond ?? 1)) * 1000;
    this.#cancelTimer = this.#clock.startTimer(Math.min(MAX_TIMER_MS, Math.max(MIN_TIMER_MS, dueMs)), () => {
      this.check();
      if (!this.#isOver && !this.#slices.isWhole) this.#startTimer();
    });
  }
}

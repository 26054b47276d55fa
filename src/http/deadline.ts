/** The deadline of one request: one timer, which tells whoever works on the request when it is over; a stream has its own clocks (T3). */
import type { Clock } from '../stream/timers.ts';

export class Deadline {
  readonly #clock: Clock;
  readonly #at: number;
  #onOver = () => {};
  #cancelTimer: (() => void) | null = null;
  #isOver = false;

  /**
   * @param arrivedAt when the request arrived, in ms since the epoch
   * @param ms how long it may take from then on; 0 is no deadline
   */
  constructor(clock: Clock, arrivedAt: number, ms: number) {
    this.#clock = clock;
    this.#at = ms === 0 ? Number.POSITIVE_INFINITY : arrivedAt + ms;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** From now on it is this one that is told, and nobody before it. */
  watch(onOver: () => void): void {
    this.#onOver = onOver;
    if (this.#isOver) return onOver();
    if (this.#at === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer ??= this.#clock.startTimer(Math.max(0, this.#at - this.#clock.now()), () => {
      this.#isOver = true;
      this.#onOver();
    });
  }

  /** Resolves with the work's value, or with `late()` if the deadline passes first. The work itself is not cancelled. */
  async bound<Value>(work: Promise<Value>, late: () => Value): Promise<Value> {
    const over = Promise.withResolvers<Value>();
    this.watch(() => over.resolve(late()));
    return Promise.race([work, over.promise]);
  }

  /** Nobody is told any more. */
  stop(): void {
    this.#onOver = () => {};
    this.#cancelTimer?.();
  }
}

/** The clock and the deadline of one request. */
import type { Clock } from '../stream/timers.ts';

/** The longest time for which the runtime's timer is set. Most timers of a request are cancelled within it. */
const MAX_SET_MS = 10_000;

interface Timer {
  /** In ms since the epoch. */
  readonly at: number;
  readonly onFire: () => void;
}

/**
 * A clock whose timers share one timer of the runtime. Most timers of a request are cancelled long before they are due, so
 * starting one costs an entry in a list instead of a runtime timer.
 */
export class RequestClock implements Clock {
  readonly now: () => number;
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #firesAt = Number.POSITIVE_INFINITY;
  #cancel = () => {};

  constructor(clock: Clock) {
    this.now = clock.now;
    this.#clock = clock;
  }

  readonly startTimer = (ms: number, onFire: () => void): (() => void) => {
    const now = this.now();
    const timer = { at: now + ms, onFire };
    this.#timers.add(timer);
    if (timer.at < this.#firesAt) this.#set(ms, now);
    return () => void this.#timers.delete(timer);
  };

  #set(ms: number, now: number): void {
    this.#cancel();
    const setMs = Math.min(ms, MAX_SET_MS);
    this.#firesAt = now + setMs;
    this.#cancel = this.#clock.startTimer(setMs, () => this.#fire());
  }

  /** Calls what is due, and sets the runtime's timer again if any timers are left. */
  #fire(): void {
    // Within one turn of the event loop the Workers clock stands still, so it may be behind the timer that fired.
    const now = Math.max(this.now(), this.#firesAt);
    this.#firesAt = Number.POSITIVE_INFINITY;
    const due = [...this.#timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.#timers.delete(timer)) timer.onFire();
    const next = Math.min(...[...this.#timers].map(({ at }) => at));
    if (next < this.#firesAt) this.#set(next - now, now);
  }
}

/** The time limit of a request until its response begins. A stream has its own timers. */
export class Deadline {
  readonly #clock: Clock;
  readonly #at: number;
  #onOver = () => {};
  #cancelTimer: (() => void) | null = null;
  #isOver = false;

  /**
   * @param arrivedAt when the request arrived, in ms since the epoch
   * @param ms the time limit, counted from then; 0 for none
   */
  constructor(clock: Clock, arrivedAt: number, ms: number) {
    this.#clock = clock;
    this.#at = ms === 0 ? Number.POSITIVE_INFINITY : arrivedAt + ms;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sets the callback for when the deadline passes, in place of the one before. */
  watch(onOver: () => void): void {
    this.#onOver = onOver;
    if (this.#isOver) return onOver();
    if (this.#at === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer ??= this.#clock.startTimer(Math.max(0, this.#at - this.#clock.now()), () => {
      this.#isOver = true;
      this.#onOver();
    });
  }

  /** Resolves with the value of `work`, or with `late()` if the deadline passes first. It does not cancel `work`. */
  async bound<Value>(work: Promise<Value>, late: () => Value): Promise<Value> {
    const over = Promise.withResolvers<Value>();
    this.watch(() => over.resolve(late()));
    return Promise.race([work, over.promise]);
  }

  stop(): void {
    this.#onOver = () => {};
    this.#cancelTimer?.();
  }
}

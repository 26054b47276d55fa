/** The clock of one request, whose timers share one of the runtime's: most are cancelled long before they are due, and cost an entry in a list. */
import type { Clock } from '../stream/timers.ts';

/** The runtime's timer is set for no longer, so that what begins later in the request seldom is due before it fires. */
const MAX_SET_MS = 10_000;

interface Timer {
  /** In ms since the epoch. */
  readonly at: number;
  readonly onFire: () => void;
}

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
    const timer = { at: this.now() + ms, onFire };
    this.#timers.add(timer);
    if (timer.at < this.#firesAt) this.#set(ms);
    return () => void this.#timers.delete(timer);
  };

  #set(ms: number): void {
    this.#cancel();
    const setMs = Math.min(ms, MAX_SET_MS);
    this.#firesAt = this.now() + setMs;
    this.#cancel = this.#clock.startTimer(setMs, () => this.#fire());
  }

  /** Where nobody waits any more it is not set again. */
  #fire(): void {
    // The clock may lag behind the timer: it stands still within a turn.
    const now = Math.max(this.now(), this.#firesAt);
    this.#firesAt = Number.POSITIVE_INFINITY;
    const due = [...this.#timers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.#timers.delete(timer)) timer.onFire();
    const next = Math.min(...[...this.#timers].map(({ at }) => at));
    if (next < this.#firesAt) this.#set(next - now);
  }
}

/** A clock that only the test advances. */
import type { Clock } from '../../src/stream/timers.ts';

interface Timer {
  readonly at: number;
  readonly onFire: () => void;
}

export class FakeClock implements Clock {
  #now = 1_800_000_000_000;
  readonly #timers = new Set<Timer>();
  /** Timers that were ever started. */
  started = 0;

  /** Timers that are running. */
  get running(): number {
    return this.#timers.size;
  }

  readonly now = (): number => this.#now;

  readonly startTimer = (ms: number, onFire: () => void): (() => void) => {
    // A pause of 0 ms ends in the next turn of the event loop, as in the runtime.
    if (ms === 0) {
      const immediate = setImmediate(onFire);
      return () => clearImmediate(immediate);
    }
    const timer = { at: this.#now + ms, onFire };
    this.started++;
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** Advances the clock. Timers that are due meanwhile fire at their time. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.#nextDue(until); next !== undefined; next = this.#nextDue(until)) {
      this.#now = next.at;
      this.#timers.delete(next);
      next.onFire();
    }
    this.#now = until;
  }

  #nextDue(until: number): Timer | undefined {
    return [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
  }
}

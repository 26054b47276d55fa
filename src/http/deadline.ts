/** Bounds a request whose answer is not streamed: a stream has its own clocks, a plain answer has this one (T3). */
import type { Clock } from '../stream/pacing.ts';

export class Deadline {
  readonly #cancelTimer: () => void;
  #isOver = false;

  /** @param ms from now; 0 is no deadline */
  constructor(clock: Clock, ms: number, onOver: () => void) {
    const fire = () => {
      this.#isOver = true;
      onOver();
    };
    this.#cancelTimer = ms === 0 ? () => {} : clock.startTimer(ms, fire);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  stop(): void {
    this.#cancelTimer();
  }
}

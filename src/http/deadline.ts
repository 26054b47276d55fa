/** Bounds a request whose answer is not streamed: a stream has its own clocks, a plain answer has this one (T3). */
import type { Clock } from '../stream/pacing.ts';

export class Deadline {
  readonly #cancelTimer: () => void;
  #isOver = false;

  /**
   * @param arrivedAt when the request arrived, in ms since the epoch
   * @param ms how long it may take from then on; 0 is no deadline
   */
  constructor(clock: Clock, arrivedAt: number, ms: number, onOver: () => void) {
    const fire = () => {
      this.#isOver = true;
      onOver();
    };
    this.#cancelTimer =
      ms === 0 ? () => {} : clock.startTimer(Math.max(0, arrivedAt + ms - clock.now()), fire);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  stop(): void {
    this.#cancelTimer();
  }
}

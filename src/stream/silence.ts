/** Makes turns end: input that yields no output is read without a pause, and would keep other streams and clocks waiting (B4). */
import { MAX_SILENT_BYTES, SILENT_EVENT_BYTES } from '../canonical/limits.ts';
import type { Clock } from './pacing.ts';

export class Silence {
  readonly #clock: Clock;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * So much was read, and nothing came of it.
   * @returns when others have had their turn, or nothing where they are not due one
   */
  read(bytes: number, events: number): Promise<void> | undefined {
    this.#bytes += bytes + events * SILENT_EVENT_BYTES;
    if (this.#bytes < MAX_SILENT_BYTES) return undefined;
    this.#bytes = 0;
    return new Promise((resolve) => void this.#clock.startTimer(0, resolve));
  }

  /** There was output, and with its write a pause. */
  end(): void {
    this.#bytes = 0;
  }
}

/** The memory that all requests of an isolate share: what large bodies and events hold is counted, and what does not fit waits (B3). */
import {
  LARGE_BYTES,
  MAX_MEMORY_BYTES,
  MAX_MEMORY_WAIT_MS,
  MAX_TURN_MS,
  SMALL_BYTES,
  TURN_PAUSE_MS,
} from '../shared/limits.ts';
import type { Clock } from './timers.ts';

/** One body's or event's share of the memory, from before it is read until nothing of it is held. */
export interface Lease {
  /** Resolves where others have waited too long for what does not arrive: it must make way. What is small never must. */
  readonly revoked: Promise<'revoked'> | undefined;
  /** All of it is there: from now on it is held for as long as its request needs it. */
  readonly arrived: () => void;
  /**
   * Waits until this is the one large thing that is worked on: the work holds several times its bytes, which only the engine's
   * next collection frees.
   */
  readonly begin: () => Promise<void>;
  /** Between two pieces of work on what is large other streams have their turn (B4). */
  readonly pause: () => Promise<void>;
  /** The work is done, and the next one's may begin. */
  readonly end: () => void;
  /** The work is done, and nothing is held any more. Further calls do nothing. */
  readonly release: () => void;
}

/** {@link Memory.lease} for one request. */
export type LeaseMemory = (bytes: number) => Promise<Lease | null>;

/** Keeps a request's work alive when its client has gone: the runtime's `waitUntil`. */
type KeepAlive = (work: Promise<unknown>) => void;

interface Waiting {
  readonly bytes: number;
  readonly give: (lease: Lease | null) => void;
}

interface Arriving {
  readonly startedAt: number;
  readonly revoke: () => void;
}

const AT_ONCE = Promise.resolve();
const NOTHING = () => {};
/** The share of what is small, which is not counted. */
export const SMALL_LEASE: Lease = {
  revoked: undefined,
  arrived: NOTHING,
  begin: () => AT_ONCE,
  pause: () => AT_ONCE,
  end: NOTHING,
  release: NOTHING,
};

export class Memory {
  readonly #clock: Clock;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  readonly #arriving = new Set<Arriving>();
  #heldBytes = 0;
  #lastTurn = AT_ONCE;
  /** Turns that were begun or are waited for. */
  #turns = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Asks for room, first come, first served; there always is some for what is small.
   * @param bytes the most that will be held
   * @returns null where there was none within {@link MAX_MEMORY_WAIT_MS}
   */
  async lease(bytes: number, keepAlive: KeepAlive): Promise<Lease | null> {
    if (bytes <= SMALL_BYTES) return SMALL_LEASE;
    const given = Promise.withResolvers<Lease | null>();
    const ended = Promise.withResolvers<void>();
    // A request that the runtime ends while it has room, or waits for it, would never give it back.
    keepAlive(ended.promise);
    const waiting: Waiting = { bytes, give: given.resolve };
    this.#waiting.add(waiting);
    this.#serve();
    let cancelTimer = () => {};
    const wait = () => {
      cancelTimer = this.#clock.startTimer(MAX_MEMORY_WAIT_MS, () => {
        if (this.#revokeOldest()) wait();
        else this.#refuse(waiting);
      });
    };
    if (this.#waiting.has(waiting)) wait();
    const lease = await given.promise;
    cancelTimer();
    if (lease === null) {
      ended.resolve();
      return null;
    }
    return {
      ...lease,
      release: () => {
        lease.release();
        ended.resolve();
      },
    };
  }

  #serve(): void {
    for (const waiting of this.#waiting) {
      if (this.#heldBytes > 0 && this.#heldBytes + waiting.bytes > MAX_MEMORY_BYTES) return;
      this.#waiting.delete(waiting);
      waiting.give(this.#open(waiting.bytes));
    }
  }

  #open(bytes: number): Lease {
    this.#heldBytes += bytes;
    const revoked = Promise.withResolvers<'revoked'>();
    const arriving: Arriving = { startedAt: this.#clock.now(), revoke: () => revoked.resolve('revoked') };
    this.#arriving.add(arriving);
    const isLarge = bytes > LARGE_BYTES;
    let end = NOTHING;
    let isReleased = false;
    return {
      revoked: revoked.promise,
      arrived: () => void this.#arriving.delete(arriving),
      begin: async () => {
        if (isLarge) end = await this.#beginTurn();
      },
      pause: () => (isLarge ? this.#pause(0) : AT_ONCE),
      end: () => {
        end();
        end = NOTHING;
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        end();
        this.#arriving.delete(arriving);
        this.#heldBytes -= bytes;
        this.#serve();
      },
    };
  }

  /** @returns what ends the turn */
  async #beginTurn(): Promise<() => void> {
    const turn = Promise.withResolvers<void>();
    const before = this.#lastTurn;
    this.#lastTurn = turn.promise;
    const isFirst = this.#turns++ === 0;
    // The timer is this request's own: the runtime takes one that waits for another's promise alone for hung.
    const late = Promise.withResolvers<void>();
    const cancelTimer = this.#clock.startTimer(MAX_TURN_MS, late.resolve);
    await Promise.race([before, late.promise]);
    cancelTimer();
    await this.#pause(isFirst ? 0 : TURN_PAUSE_MS);
    return () => {
      this.#turns--;
      turn.resolve();
    };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.startTimer(ms, resolve));
  }

  /** The room goes from whoever took it long ago and does not send to those who wait. */
  #revokeOldest(): boolean {
    const [oldest] = this.#arriving;
    if (oldest === undefined || this.#clock.now() - oldest.startedAt < MAX_MEMORY_WAIT_MS) return false;
    this.#arriving.delete(oldest);
    oldest.revoke();
    return true;
  }

  #refuse(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return;
    waiting.give(null);
    this.#serve();
  }
}

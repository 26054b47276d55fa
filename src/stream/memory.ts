/** The memory that all requests of an isolate share: large bodies and events take their bytes, and wait if there is no room (B3). */
import type { Clock } from './timers.ts';

/** What large bodies and events may hold in one isolate at a time. Further ones wait. */
export const MAX_MEMORY_BYTES = 20 * 1024 * 1024;

/** Up to this size nothing is counted and nothing waits: the number of concurrent requests bounds the sum. */
export const SMALL_BYTES = 128 * 1024;

/** Above this size the work on a body yields between its pieces: half a MiB of 50,000 keys takes longer than another stream may wait. */
export const PAUSED_BYTES = 256 * 1024;

/** Above this size only one body is worked on at a time. */
export const LARGE_BYTES = 1024 * 1024;

/** The longest wait for room. A grant that is this old and whose body was not received is revoked for others. */
export const MAX_MEMORY_WAIT_MS = 10_000;

/** The pause between the work on two large bodies, in which other requests run. */
export const PAUSE_BETWEEN_TURNS_MS = 10;

/** After this time a turn no longer delays the next one. */
export const MAX_TURN_MS = 5000;

/** The share of one body or event, from before it is read until nothing of it is held. */
export interface MemoryGrant {
  /** Resolves if the body was not received for long and others need its room: its reader must fail. Undefined for small bodies. */
  readonly revoked: Promise<'revoked'> | undefined;
  /** All of it was received, so the grant can no longer be revoked. */
  readonly markReceived: () => void;
  /**
   * Waits for the turn to parse, translate or write a large body. There is one turn at a time, because the work takes several times
   * the body's bytes, which only the engine's next collection frees. Bodies of up to {@link LARGE_BYTES} do not wait.
   */
  readonly startWork: () => Promise<void>;
  /** Yields to other streams between two pieces of work on a body of more than {@link PAUSED_BYTES} (B4). */
  readonly pause: () => Promise<void>;
  /** Ends the turn. */
  readonly endWork: () => void;
  /** Ends the turn and the grant. Further calls do nothing. */
  readonly release: () => void;
}

/** {@link Memory.grant} for one request. */
export type TakeMemory = (bytes: number) => Promise<MemoryGrant | null>;

/** Keeps a request's work alive when its client has gone: the runtime's `waitUntil`. */
type KeepAlive = (work: Promise<unknown>) => void;

interface WaitingGrant {
  readonly bytes: number;
  readonly resolve: (grant: MemoryGrant | null) => void;
}

interface UnreceivedGrant {
  readonly startedAt: number;
  readonly revoke: () => void;
}

const RESOLVED = Promise.resolve();
const NOTHING = () => {};
/** The grant of everything small, which is not counted. */
export const SMALL_GRANT: MemoryGrant = {
  revoked: undefined,
  markReceived: NOTHING,
  startWork: () => RESOLVED,
  pause: () => RESOLVED,
  endWork: NOTHING,
  release: NOTHING,
};

/** The memory of one isolate, in bytes. Grants are granted first come, first served. */
export class Memory {
  readonly #clock: Clock;
  /** In order of arrival. */
  readonly #waiting = new Set<WaitingGrant>();
  readonly #unreceived = new Set<UnreceivedGrant>();
  #heldBytes = 0;
  #lastTurn = RESOLVED;
  /** The turns that are running or waiting. */
  #turns = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Grants room, first come, first served. Small ones are granted at once.
   * @param bytes the upper bound of what will be held
   * @param keepAlive keeps the request alive until the grant is released
   * @returns null if there was no room within {@link MAX_MEMORY_WAIT_MS}
   */
  async grant(bytes: number, keepAlive: KeepAlive): Promise<MemoryGrant | null> {
    if (bytes <= SMALL_BYTES) return SMALL_GRANT;
    const granted = Promise.withResolvers<MemoryGrant | null>();
    const ended = Promise.withResolvers<void>();
    // A request that the runtime ends early would never release its grant.
    keepAlive(ended.promise);
    const waiting: WaitingGrant = { bytes, resolve: granted.resolve };
    this.#waiting.add(waiting);
    this.#grantWaiting();
    let cancelTimer = () => {};
    const wait = () => {
      cancelTimer = this.#clock.startTimer(MAX_MEMORY_WAIT_MS, () => {
        if (this.#revokeOldest()) wait();
        else this.#deny(waiting);
      });
    };
    if (this.#waiting.has(waiting)) wait();
    const grant = await granted.promise;
    cancelTimer();
    if (grant === null) {
      ended.resolve();
      return null;
    }
    return {
      ...grant,
      release: () => {
        grant.release();
        ended.resolve();
      },
    };
  }

  #grantWaiting(): void {
    for (const waiting of this.#waiting) {
      if (this.#heldBytes > 0 && this.#heldBytes + waiting.bytes > MAX_MEMORY_BYTES) return;
      this.#waiting.delete(waiting);
      waiting.resolve(this.#grant(waiting.bytes));
    }
  }

  #grant(bytes: number): MemoryGrant {
    this.#heldBytes += bytes;
    const revoked = Promise.withResolvers<'revoked'>();
    const unreceived: UnreceivedGrant = {
      startedAt: this.#clock.now(),
      revoke: () => revoked.resolve('revoked'),
    };
    this.#unreceived.add(unreceived);
    const isLarge = bytes > LARGE_BYTES;
    let end = NOTHING;
    let isReleased = false;
    return {
      revoked: revoked.promise,
      markReceived: () => void this.#unreceived.delete(unreceived),
      startWork: async () => {
        if (isLarge) end = await this.#beginTurn();
      },
      pause: () => (bytes > PAUSED_BYTES ? this.#pause(0) : RESOLVED),
      endWork: () => {
        end();
        end = NOTHING;
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        end();
        this.#unreceived.delete(unreceived);
        this.#heldBytes -= bytes;
        this.#grantWaiting();
      },
    };
  }

  /** @returns the function that ends the turn */
  async #beginTurn(): Promise<() => void> {
    const turn = Promise.withResolvers<void>();
    const before = this.#lastTurn;
    this.#lastTurn = turn.promise;
    const isFirst = this.#turns++ === 0;
    // The timer belongs to this request. The runtime reports a request that waits only for another request's promise as hung.
    const timeout = Promise.withResolvers<void>();
    const cancelTimer = this.#clock.startTimer(MAX_TURN_MS, timeout.resolve);
    await Promise.race([before, timeout.promise]);
    cancelTimer();
    await this.#pause(isFirst ? 0 : PAUSE_BETWEEN_TURNS_MS);
    return () => {
      this.#turns--;
      turn.resolve();
    };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.startTimer(ms, resolve));
  }

  /** Revokes the oldest grant whose body was not received in time. */
  #revokeOldest(): boolean {
    const [oldest] = this.#unreceived;
    if (oldest === undefined || this.#clock.now() - oldest.startedAt < MAX_MEMORY_WAIT_MS) return false;
    this.#unreceived.delete(oldest);
    oldest.revoke();
    return true;
  }

  #deny(waiting: WaitingGrant): void {
    if (!this.#waiting.delete(waiting)) return;
    waiting.resolve(null);
    this.#grantWaiting();
  }
}

/**
 * One exchange for all requests of an isolate: a value such as a token, which is kept, renewed early by one request,
 * and awaited within a limit.
 */
import type { ApiError } from '../canonical/error.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Clock } from '../stream/timers.ts';

/** A value with an end. */
export interface Ending {
  /** In ms since the epoch. */
  readonly endsAt: number;
}

/** Why there is no credential. */
export interface CredentialFailure {
  readonly error: ApiError;
  /** For the log and the record: the address, and what went wrong there. */
  readonly cause: string;
}

/** A try that failed in a way that may pass. */
export interface PassingFailure {
  readonly kind: 'again';
  readonly failure: CredentialFailure;
}

/** A failure after which the same is tried once more. */
export function again(failed: CredentialFailure): PassingFailure {
  return { kind: 'again', failure: failed };
}

/** What an exchange needs of the request that makes it. */
export interface ExchangePorts {
  readonly clock: Clock;
  /** The exchange goes on when the client of its request disconnects, because other requests wait for it. */
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** A value is renewed this long before it ends, or in the last quarter of its life. */
const RENEWED_EARLY_MS = 5 * 60_000;
/** A value that ends sooner is not used any more: a request takes a moment to arrive. Of a short life, the last tenth. */
const UNUSED_BEFORE_END_MS = 10_000;
/** How long an exchange may take. The claim of one that was cut off ends then, and another request makes its own. */
export const MAX_EXCHANGE_MS = 10_000;
/** How long a request waits for another one's exchange, and for the one after it. */
const MAX_WAIT_MS = 2 * MAX_EXCHANGE_MS + 2000;
/** How long a failure stands for all requests, so that not each of them repeats it. */
const FAILURE_TTL_MS = 1000;
/** Values that are refused one after the other are made anew so often at most. */
const MIN_DROP_GAP_MS = 5000;
/** How often a waiting request looks, at first and at last. In Workers, a request must not wait for a promise of another request. */
const FIRST_POLL_MS = 5;
const LAST_POLL_MS = 100;

/** A value that one request at a time makes for all. */
export class Exchange<Value extends Ending> {
  #value: Value | null = null;
  #renewAt = 0;
  #usableUntil = 0;
  #failure: { readonly failure: CredentialFailure; readonly until: number } | null = null;
  #claimedAt = Number.NEGATIVE_INFINITY;
  #droppedAt = Number.NEGATIVE_INFINITY;

  /**
   * The value, made now if there is none.
   * @param make never rejects, and takes {@link MAX_EXCHANGE_MS} at most
   */
  async get(
    make: () => Promise<Result<Value, CredentialFailure>>,
    { clock, waitUntil }: ExchangePorts,
    late: () => CredentialFailure,
  ): Promise<Result<Value, CredentialFailure>> {
    const startedAt = clock.now();
    let pollMs = FIRST_POLL_MS;
    for (;;) {
      const now = clock.now();
      const isFree = now >= this.#claimedAt + MAX_EXCHANGE_MS;
      const failed = this.#failure !== null && now < this.#failure.until ? this.#failure.failure : null;
      if (this.#value !== null && now < this.#usableUntil) {
        if (now >= this.#renewAt && isFree && failed === null) waitUntil(this.#make(make, clock));
        return ok(this.#value);
      }
      if (failed !== null) return failure(failed);
      if (isFree) {
        const making = this.#make(make, clock);
        waitUntil(making);
        return making;
      }
      // After a look: on a busy machine the last pause may have been a long one.
      if (now >= startedAt + MAX_WAIT_MS) return failure(late());
      await elapsed(clock, pollMs);
      pollMs = Math.min(2 * pollMs, LAST_POLL_MS);
    }
  }

  /** The value was refused before its end. @returns whether there is, or will be, another one */
  drop(value: Value, now: number): boolean {
    if (this.#value !== value) return true;
    if (now < this.#droppedAt + MIN_DROP_GAP_MS) return false;
    this.#droppedAt = now;
    this.#value = null;
    return true;
  }

  /** The value that is in use; null: none. */
  get current(): Value | null {
    return this.#value;
  }

  async #make(
    make: () => Promise<Result<Value, CredentialFailure>>,
    clock: Clock,
  ): Promise<Result<Value, CredentialFailure>> {
    const claimedAt = clock.now();
    this.#claimedAt = claimedAt;
    const made = await make();
    const now = clock.now();
    if (made.kind === 'ok') this.#keep(made.value, now);
    else this.#failure = { failure: made.error, until: now + FAILURE_TTL_MS };
    if (this.#claimedAt === claimedAt) this.#claimedAt = Number.NEGATIVE_INFINITY;
    return made;
  }

  #keep(value: Value, now: number): void {
    const lifeMs = Math.max(0, value.endsAt - now);
    this.#value = value;
    this.#renewAt = value.endsAt - Math.min(RENEWED_EARLY_MS, lifeMs / 4);
    this.#usableUntil = value.endsAt - Math.min(UNUSED_BEFORE_END_MS, lifeMs / 10);
    this.#failure = null;
  }
}

function elapsed(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.startTimer(ms, resolve));
}

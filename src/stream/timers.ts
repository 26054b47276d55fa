/** The heartbeats, the idle timeout and the deadline of one stream, on one timer. */

/** In ms. 0 turns one off. */
export interface TimerLimits {
  readonly heartbeatMs: number;
  readonly idleTimeoutMs: number;
  readonly deadlineMs: number;
}

/** The current time and timers, passed in from outside. */
export interface Clock {
  /** ms since the epoch. */
  readonly now: () => number;
  /** Calls `onFire` once after `ms`. Returns a function that cancels it. */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
}

/**
 * What is due. `heartbeat`: the client received nothing for `heartbeatMs`; one that is not written is due again in the next turn of the
 * event loop. `idle`: the upstream sent nothing for too long. `deadline`: the request took too long. After the last two no timer runs
 * until `wait` or `resume`.
 */
export type Due = 'heartbeat' | 'idle' | 'deadline';

/** Activity only stores a time. No timer is set or cancelled for a chunk: the one timer compares times when it fires. */
export class StreamTimers {
  readonly #limits: TimerLimits;
  readonly #clock: Clock;
  readonly #onDue: (due: Due) => void;
  readonly #startedAt: number;
  #lastWriteAt: number;
  #lastEventAt: number;
  #hasEvent = false;
  #isWaiting = false;
  /** The current attempt's upstream may be silent for so long. */
  #silenceMs = 0;
  /** Writes that the client has not taken. Nothing is read meanwhile, so the upstream is not idle. */
  #pendingWrites = 0;
  #cancelTimer: (() => void) | undefined;

  /** @param startedAt when the request arrived, in ms since the epoch */
  constructor(limits: TimerLimits, clock: Clock, startedAt: number, onDue: (due: Due) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onDue = onDue;
    this.#startedAt = startedAt;
    this.#lastWriteAt = startedAt;
    this.#lastEventAt = startedAt;
    this.#arm();
  }

  /** Bytes were written to the client. */
  wrote(): void {
    this.#lastWriteAt = this.#clock.now();
    this.#pendingWrites++;
  }

  /** The client has taken a write, or never will. */
  taken(): void {
    this.#pendingWrites--;
  }

  /** Bytes were read from the upstream. Comments postpone the idle timeout only before the first data event (T2). */
  read(hasEvent: boolean): void {
    this.#hasEvent ||= hasEvent;
    if (hasEvent || !this.#hasEvent) this.#lastEventAt = this.#clock.now();
  }

  /** Pauses the idle timeout between attempts. */
  wait(): void {
    this.#isWaiting = true;
    this.#rearm();
  }

  /** The idle timeout of the current attempt, in ms. */
  get idleMs(): number {
    const { idleTimeoutMs } = this.#limits;
    return idleTimeoutMs === 0 ? 0 : Math.max(idleTimeoutMs, this.#silenceMs);
  }

  /**
   * Restarts the idle timeout for the next attempt, if it was paused.
   * @param silenceMs the least idle timeout of the attempt
   */
  resume(silenceMs = 0): void {
    this.#silenceMs = silenceMs;
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#hasEvent = false;
    this.#lastEventAt = this.#clock.now();
    this.#rearm();
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #rearm(): void {
    this.stop();
    this.#arm();
  }

  #arm(): void {
    const next = Math.min(this.#heartbeatAt, this.#idleAt, this.#deadlineAt);
    if (next === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#clock.startTimer(Math.max(next - this.#clock.now(), 0), () => this.#fire());
  }

  #fire(): void {
    const now = this.#clock.now();
    this.#cancelTimer = undefined;
    if (now >= this.#deadlineAt) return this.#onDue('deadline');
    const isBlocked = this.#pendingWrites > 0;
    if (now >= this.#idleAt) {
      if (!isBlocked) return this.#onDue('idle');
      this.#lastEventAt = now;
    }
    if (now >= this.#heartbeatAt) {
      // A slow client gets no heartbeats: they would only queue up.
      if (isBlocked) this.#lastWriteAt = now;
      else this.#onDue('heartbeat');
    }
    this.#arm();
  }

  get #heartbeatAt(): number {
    return due(this.#lastWriteAt, this.#limits.heartbeatMs);
  }

  get #idleAt(): number {
    return this.#isWaiting ? Number.POSITIVE_INFINITY : due(this.#lastEventAt, this.idleMs);
  }

  get #deadlineAt(): number {
    return due(this.#startedAt, this.#limits.deadlineMs);
  }
}

function due(since: number, ms: number): number {
  return ms === 0 ? Number.POSITIVE_INFINITY : since + ms;
}

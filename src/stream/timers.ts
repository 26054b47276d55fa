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

export interface TimerEvents {
  /** Whether the client has not taken the last write. Nothing is read then, so the upstream is not idle. */
  readonly isBlocked: () => boolean;
  /** The client received nothing for `heartbeatMs`. */
  readonly heartbeat: () => void;
  /**
   * The upstream sent nothing for too long (`idle`), or the request took too long (`deadline`). No timer runs after it until `wait` or
   * `resume`.
   */
  readonly timeout: (kind: 'idle' | 'deadline') => void;
}

/** Activity only stores a time. No timer is set or cancelled for a chunk: the one timer compares times when it fires. */
export class StreamTimers {
  readonly #limits: TimerLimits;
  readonly #clock: Clock;
  readonly #events: TimerEvents;
  readonly #startedAt: number;
  #lastWriteAt: number;
  #lastEventAt: number;
  #hasEvent = false;
  #isWaiting = false;
  #cancelTimer: (() => void) | undefined;

  /** @param startedAt when the request arrived, in ms since the epoch */
  constructor(limits: TimerLimits, clock: Clock, startedAt: number, events: TimerEvents) {
    this.#limits = limits;
    this.#clock = clock;
    this.#events = events;
    this.#startedAt = startedAt;
    this.#lastWriteAt = startedAt;
    this.#lastEventAt = startedAt;
    this.#arm();
  }

  /** Bytes were written to the client. */
  wrote(): void {
    this.#lastWriteAt = this.#clock.now();
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

  /** Restarts the idle timeout for the next attempt. */
  resume(): void {
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
    if (now >= this.#deadlineAt) return this.#events.timeout('deadline');
    const isBlocked = this.#events.isBlocked();
    if (now >= this.#idleAt) {
      if (!isBlocked) return this.#events.timeout('idle');
      this.#lastEventAt = now;
    }
    if (now >= this.#heartbeatAt) {
      this.#lastWriteAt = now;
      // A slow client gets no heartbeats: they would only queue up.
      if (!isBlocked) this.#events.heartbeat();
    }
    this.#arm();
  }

  get #heartbeatAt(): number {
    return due(this.#lastWriteAt, this.#limits.heartbeatMs);
  }

  get #idleAt(): number {
    return this.#isWaiting ? Number.POSITIVE_INFINITY : due(this.#lastEventAt, this.#limits.idleTimeoutMs);
  }

  get #deadlineAt(): number {
    return due(this.#startedAt, this.#limits.deadlineMs);
  }
}

function due(since: number, ms: number): number {
  return ms === 0 ? Number.POSITIVE_INFINITY : since + ms;
}

/** One stream's three clocks on one timer: heartbeats to the client, silence of the upstream, the whole request (T1-T3). */

/** In ms; 0 turns one off. */
export interface TimerLimits {
  readonly heartbeatMs: number;
  readonly idleTimeoutMs: number;
  readonly deadlineMs: number;
}

/** Time as it comes in from outside. */
export interface Clock {
  /** ms since the epoch. */
  readonly now: () => number;
  /** Calls back once after so many ms, unless it is cancelled with what it returned. */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
}

export interface TimerEvents {
  /** The client has not taken the last write, so nothing is read: the silence is then not the upstream's. */
  readonly isBlocked: () => boolean;
  /** The client has had no byte for a heartbeat's time. */
  readonly heartbeat: () => void;
  /** The upstream was silent for too long (`idle`), or the request took too long (`deadline`). Nothing fires after it, but for `wait`. */
  readonly timeout: (kind: 'idle' | 'deadline') => void;
}

/** Activity is only noted, as a time: no timer is armed or cleared for a chunk, the one that runs looks when it fires. */
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

  /** Bytes reached the client's side. */
  wrote(): void {
    this.#lastWriteAt = this.#clock.now();
  }

  /** Bytes came from the upstream: comments put the idle timeout off until the first data event, and no longer (T2). */
  read(hasEvent: boolean): void {
    this.#hasEvent ||= hasEvent;
    if (hasEvent || !this.#hasEvent) this.#lastEventAt = this.#clock.now();
  }

  /** No upstream is asked: until `resume` no silence counts. */
  wait(): void {
    this.#isWaiting = true;
    this.#rearm();
  }

  /** The next upstream is asked, and its silence begins. */
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
      // A slow reader gets none: heartbeats would only queue up.
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

/** One target that is asked: its upstream's answer, the time that it has until its output, and how it is given up (R2, R9). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { AttemptMeter } from '../metering/request-meter.ts';
import type { Clock } from '../stream/timers.ts';
import type { UpstreamErrorContext } from '../upstream/errors.ts';
import type { UpstreamResult } from '../upstream/fetch.ts';
import type { TargetFacts } from './replayable-request.ts';

export interface AttemptOptions {
  readonly facts: TargetFacts;
  readonly upstream: UpstreamErrorContext;
  readonly meter: AttemptMeter;
  /** Another one may take its place. */
  readonly isReplaceable: boolean;
  /** Its provider does not take the request: `call` asks nobody. */
  readonly isUnsent: boolean;
  /** The key's budget has no room for it: it is not sent, and no other follows. */
  readonly isOutOfRoom: boolean;
  readonly clock: Clock;
  /** Asks the upstream; never rejects. */
  readonly call: (signal: AbortSignal) => Promise<UpstreamResult>;
}

/** Nobody reads the reason: without one the runtime would make an exception, with its stack, for each request. */
const LET_GO = 'let go';

export class Attempt {
  readonly facts: TargetFacts;
  readonly upstream: UpstreamErrorContext;
  readonly meter: AttemptMeter;
  readonly isReplaceable: boolean;
  readonly isUnsent: boolean;
  readonly isOutOfRoom: boolean;
  /** The upstream's answer; never rejects. */
  readonly response: Promise<UpstreamResult>;
  /** The same, once it has come. */
  result: UpstreamResult | null = null;
  /** Set when its time was over before its output. */
  timeoutError: ApiError | null = null;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #cancelTimer = () => {};

  constructor(options: AttemptOptions) {
    const { facts, upstream, meter, isReplaceable, isUnsent, isOutOfRoom, clock, call } = options;
    this.facts = facts;
    this.upstream = upstream;
    this.meter = meter;
    this.isReplaceable = isReplaceable;
    this.isUnsent = isUnsent;
    this.isOutOfRoom = isOutOfRoom;
    this.#clock = clock;
    this.response = call(this.#abort.signal).then((result) => {
      this.result = result;
      meter.status = result.kind === 'answer' ? result.response.status : result.status;
      if (result.kind === 'error') meter.cause = result.cause;
      return result;
    });
  }

  /** The headers of the upstream's answer, or none where there is none yet. */
  get headers(): Headers {
    if (this.result === null) return new Headers();
    return this.result.kind === 'answer' ? this.result.response.headers : this.result.headers;
  }

  /** From now on its time runs, where its step has one: when it is over before `unwatch` and any output, the error for it is handed on. */
  startTimeout(onLate: (error: ApiError) => void, hasOutput = () => false): void {
    const { timeoutMs } = this.facts.target.aliasTarget;
    if (timeoutMs === null) return;
    this.#cancelTimer = this.#clock.startTimer(timeoutMs, () => {
      if (hasOutput()) return;
      const message = `${this.upstream.name} sent no output within ${timeoutMs / 1000} seconds`;
      this.timeoutError = apiError('timeout', message);
      onLate(this.timeoutError);
    });
  }

  stopTimeout(): void {
    this.#cancelTimer();
  }

  /** Cancels the upstream's request, or what is left of its answer. */
  cancel(): void {
    this.stopTimeout();
    this.#abort.abort(LET_GO);
  }
}

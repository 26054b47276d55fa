/** Asks the targets of a request, one after the other, until one has output: whoever answers sees one attempt at a time (R4-R9). */
import { mayUse } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import { pricedModels } from '../metering/pricing/cost.ts';
import type { AttemptEnd, AttemptFacts, RequestMeter } from '../metering/request-meter.ts';
import { apiHeaders } from '../providers/provider.ts';
import { lastError, skippedAttempt } from '../routing/attempt-summary.ts';
import { judge, readRetryAfter } from '../routing/failures.ts';
import type { RetrySchedule } from '../routing/retry-schedule.ts';
import type { Target } from '../routing/targets.ts';
import { didYouMean } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { endAttemptSpan, inAttemptSpan, type Tracing } from '../tracing/spans.ts';
import { callUpstream } from '../upstream/fetch.ts';
import { upstreamOf } from './answer-options.ts';
import { Attempt } from './attempt.ts';
import type { PreparedCompletion } from './prepare.ts';
import type { ReplayableRequest, TargetFacts, TargetRequest } from './replayable-request.ts';

export interface AttemptRunnerOptions {
  readonly prepared: PreparedCompletion;
  readonly meter: RequestMeter;
  readonly schedule: RetrySchedule;
  readonly replayable: ReplayableRequest;
  /** The client's own headers, of which few go on (H2). */
  readonly clientHeaders: Headers;
  /** Null where nobody sees the request's span: there are none below it. */
  readonly tracing: Tracing | null;
}

export class AttemptRunner {
  readonly #options: AttemptRunnerOptions;
  #current: Attempt;
  /** The target that is asked next, and when. */
  #turn: { readonly target: Target; readonly at: number } | null = null;
  #isServed = false;
  #isStopped = false;
  #wake = () => {};

  /** @param first what the first target is sent: it is asked at once */
  constructor(options: AttemptRunnerOptions, first: TargetRequest) {
    this.#options = options;
    this.#current = this.#ask(ok(first), first.facts);
  }

  /** The attempt under way, or the last one. */
  get current(): Attempt {
    return this.#current;
  }

  /** Whether it is known who answers: one has output, or there is but one. */
  get isDecided(): boolean {
    return this.#isServed || !this.#current.isReplaceable || this.#options.prepared.targets.length === 1;
  }

  /** The next attempt, when its turn has come; null: none is left, or the request is over. */
  async next(): Promise<Attempt | null> {
    const turn = this.#turn;
    this.#turn = null;
    if (turn === null || this.#isStopped) return null;
    await this.#waitUntil(turn.at);
    if (this.#isStopped) return null;
    const { replayable, meter, prepared } = this.#options;
    const noRoom = (await prepared.admission?.reserveAgain(meter.billedAttempts)) ?? null;
    if (this.#isStopped) return null;
    const written = noRoom === null ? await replayable.rewriteFor(turn.target) : failure(noRoom);
    if (this.#isStopped) return null;
    const facts = written.kind === 'ok' ? written.value.facts : unsentFacts(turn.target);
    meter.begin(attemptFacts(facts));
    this.#current = this.#ask(written, facts, noRoom !== null);
    return this.#current;
  }

  /** It has output, or its answer is whole: no other target is asked, whatever comes. */
  succeeded(attempt: Attempt): void {
    attempt.stopTimeout();
    this.#isServed = true;
    this.#options.schedule.succeeded(attempt.facts.target);
    this.#options.replayable.release();
  }

  /**
   * Its answer is whole and has no text: it stands, unless a filter stopped it and its alias moves on then (R2).
   * @returns whether another target is asked
   */
  endedEmpty(attempt: Attempt): boolean {
    const { target } = attempt.facts;
    const isFiltered = attempt.meter.accumulator.finishMeaning === FILTERED;
    if (isFiltered && target.aliasTarget.on.includes(FILTERED) && this.#moveOn()) {
      this.#giveUp(attempt, { errorCode: FILTERED, isRefused: false, isComplete: true });
      return true;
    }
    this.succeeded(attempt);
    return false;
  }

  /**
   * It failed without any output.
   * @param isSilent it was silent for too long
   * @returns the error with which the request ends, which tells what was tried; null: another target is asked
   */
  failed(attempt: Attempt, error: ApiError, isSilent = false): ApiError | null {
    const { prepared, schedule, replayable, meter } = this.#options;
    // Whatever comes of it now, the request has ended otherwise.
    if (this.#isStopped) return error;
    const { clock } = prepared.context.ports;
    const { target } = attempt.facts;
    const isTimeout = isSilent || attempt.timeoutError !== null;
    const outcome = {
      error,
      isUnsent: attempt.isUnsent,
      isTimeout,
      isFinal: attempt.isOutOfRoom || attempt.meter.accumulator.isMade,
      retryAfterMs: readRetryAfter(attempt.headers, clock.now()),
    };
    const verdict = judge(outcome, target, prepared.callerPays);
    schedule.failed(target, outcome, verdict, clock.now());
    this.#giveUp(attempt, { errorCode: error.code, isRefused: !isTimeout });
    if (verdict.triesNext && this.#moveOn()) return null;
    replayable.release();
    return lastError(withNearestModel(error, target, prepared), meter.attempts);
  }

  /** @returns whether there is another target */
  #moveOn(): boolean {
    const { prepared, schedule, meter } = this.#options;
    this.#turn = schedule.next(prepared.context.ports.clock.now());
    for (const skipped of schedule.takeSkipped()) meter.skip(skippedAttempt(skipped));
    return this.#turn !== null;
  }

  #giveUp(attempt: Attempt, end: AttemptEnd): void {
    attempt.meter.end(end);
    attempt.cancel();
  }

  /** The request is over: nobody is asked any more, and whoever is being asked is let go. */
  stop(): void {
    this.#isStopped = true;
    this.#current.cancel();
    this.#wake();
    this.#options.replayable.release();
  }

  #ask(written: Result<TargetRequest, ApiError>, facts: TargetFacts, isOutOfRoom = false): Attempt {
    const { prepared, meter, schedule, replayable, clientHeaders, tracing } = this.#options;
    const { ports } = prepared.context;
    const { target } = facts;
    const upstream = upstreamOf(prepared, target);
    const { current } = meter;
    const attempt = inAttemptSpan(tracing, prepared.route, current.facts, (span) => {
      if (span !== null) current.onEnd((ended) => endAttemptSpan(span, ended));
      return new Attempt({
        facts,
        upstream,
        meter: current,
        isReplaceable: schedule.hasMore,
        clock: ports.clock,
        isUnsent: written.kind === 'error',
        isOutOfRoom,
        call: (signal) => {
          if (written.kind === 'error')
            return Promise.resolve({ ...written, headers: new Headers(), status: null, cause: null });
          return callUpstream(ports.fetch, {
            upstream,
            url: written.value.url,
            body: written.value.json,
            isStreamed: prepared.isStreamed,
            clientHeaders,
            passedHeaders: (facts.passthrough && prepared.client.passthrough?.requestHeaders) ?? [],
            callerId: prepared.caller.keyId,
            apiHeaders: apiHeaders(target.provider, upstream.secret, target.headers),
            signal,
            clock: ports.clock,
          });
        },
      });
    });
    replayable.endWork();
    if (!attempt.isReplaceable) replayable.release(attempt.response);
    return attempt;
  }

  async #waitUntil(at: number): Promise<void> {
    const { clock } = this.#options.prepared.context.ports;
    const ms = at - clock.now();
    if (ms <= 0) return;
    const over = Promise.withResolvers<void>();
    const cancelTimer = clock.startTimer(ms, over.resolve);
    this.#wake = over.resolve;
    await over.promise;
    cancelTimer();
  }
}

/** A 404 about the model names the one that may be meant: of those that the provider listed lately, or that have a price. */
function withNearestModel(
  error: ApiError,
  target: Target,
  { caller, callerPays, context }: PreparedCompletion,
): ApiError {
  if (error.status !== 404) return error;
  const { priceIds, provider, model } = target;
  // A list is that of the deployment's credential.
  const listed = callerPays ? [] : context.modelLists.cachedNames(provider.id);
  const names = [...listed, ...pricedModels(context.prices.table, priceIds)];
  const usable = names.filter((name) => name !== model && mayUse(caller, `${provider.id}/${name}`));
  const hint = didYouMean(model, usable);
  return hint === '' ? error : { ...error, message: error.message.replace(/\.$/, '') + hint };
}

const FILTERED = 'content_filter';

/** For a target that gets no request. */
function unsentFacts(target: Target): TargetFacts {
  return { target, dropped: [], changed: [], choices: 1, showsAll: false, passthrough: null };
}

/** What of an attempt is recorded. */
export function attemptFacts({ target, dropped, changed, choices, showsAll }: TargetFacts): AttemptFacts {
  const { provider, model, priceIds } = target;
  return { provider: provider.id, model, priceIds, dropped, changed, choices, showsAll };
}

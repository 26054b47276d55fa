/**
 * Runs a request's attempts one at a time until one is final. `run` is the only loop over attempts: streamed, non-streaming and
 * embeddings responses differ in the `Delivery` that they give it.
 */
import { type ApiError, apiError, type FailureReason } from '../canonical/error.ts';
import { faultOfCall } from '../canonical/fault.ts';
import { sanitize } from '../canonical/upstream-error.ts';
import { shownFinding, tableLine } from '../fitting/rows.ts';
import { boundCredential, credentialMaker } from '../http/made-credential.ts';
import {
  type AttemptEnd,
  type AttemptMeter,
  endOf,
  type RequestEnd,
  RequestMeter,
} from '../metering/request-meter.ts';
import { isoTime } from '../metering/time.ts';
import type { OpenCircuit } from '../routing/circuit-breaker.ts';
import { isTimeout, judge, readRetryAfter, TIMED_OUT } from '../routing/failures.ts';
import type { RetrySchedule, ScheduledTarget } from '../routing/retry-schedule.ts';
import type { Target } from '../routing/targets.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { Relay } from '../stream/relay.ts';
import type { Clock } from '../stream/timers.ts';
import { type Failed, failedWith, type Outcome } from '../stream/types.ts';
import { classifyError, type UpstreamErrorContext } from '../upstream/errors.ts';
import { apiHeaders, callUpstream, type UpstreamFailure, type UpstreamResult } from '../upstream/fetch.ts';
import { MAX_KEPT_CHARS } from '../upstream/provider-message.ts';
import type { Admission, RequestSpan } from './admission.ts';
import { skippedAttempt, withAttempts, withNearestModel } from './attempt-texts.ts';
import type { CompletionRequest, PreparedRequest } from './prepare.ts';
import type { ReplayableRequest } from './replayable-request.ts';
import { causeOf, namesChange } from './second-try.ts';
import { sentPrompt, type TargetRequest, type TargetTraits } from './target-request.ts';

/** The body of the last attempt is kept until there is output. Above this size, only until a refusal would have come. */
const LARGE_BODY_BYTES = 1024 * 1024;
const LARGE_BODY_KEPT_MS = 2000;

/** What came of an attempt. Its outcome is not `MORE`. */
export interface Delivered<Value> {
  readonly outcome: Outcome;
  /** Its output is the response's, so no other attempt may follow. */
  readonly isCommitted: boolean;
  readonly value: Value | null;
}

/** How the output of an attempt reaches the client: as a stream, as one object, or as embeddings. */
export interface Delivery<Value> {
  /** Reads the attempt's response, up to its end or, for embeddings, until it is known to be good. */
  deliver(attempt: Attempt): Promise<Delivered<Value>>;
  /** Another attempt follows, so nothing of this one is sent. */
  discard(value: Value | null): void;
}

type Last = { readonly kind: 'done' } | Failed;

/** What came of the last attempt, or that the request was stopped. */
type LastOutcome<Value> = Last & { readonly value: Value | null };

/** The request has ended in another way: its deadline has passed, or its client has disconnected. */
export function stopped(): Failed {
  return failedWith(apiError('timeout', 'The request is over'), 'stopped');
}

/** The error of an HTTP response. */
export function httpErrorOf({ failure }: Failed): ApiError {
  return failure.httpError ?? failure.error;
}

/** The attempts of one request: calls targets, decides what follows each outcome, tells schedule and meter, and settles the request. */
export class AttemptRunner {
  readonly request: CompletionRequest;
  readonly meter: RequestMeter;
  /** Null: the key has no limits. */
  readonly admission: Admission | null;
  /** The value of `x-weir-cache`, or null. */
  readonly cacheReport: string | null;
  readonly #schedule: RetrySchedule;
  readonly #replayable: ReplayableRequest;
  /** Null: spans are not recorded. */
  readonly #span: RequestSpan | null;
  /** What is sent to the first target; null once it was. */
  #first: TargetRequest | null;
  #traits: TargetTraits;
  /** The attempt that runs, or the last one; null before the first one. */
  #current: Attempt | null = null;
  /** The next target, if the current attempt failed and another one follows. */
  #next: ScheduledTarget | null = null;
  /** Attempts whose messages are kept, with these as a client may see them. */
  readonly #messages: { readonly meter: AttemptMeter; readonly shown: string }[] = [];
  #isServed = false;
  #isStopped = false;
  #wake = () => {};

  constructor(
    { request, first, replayable, schedule, admission, cacheReport }: PreparedRequest,
    span: RequestSpan | null,
  ) {
    this.request = request;
    this.admission = admission;
    this.cacheReport = cacheReport;
    this.#schedule = schedule;
    this.#replayable = replayable;
    this.#span = span;
    const skipped = [...request.skipped, ...schedule.takeSkipped()].map(skippedAttempt);
    this.meter = new RequestMeter(request, skipped, first.traits, {
      addCharge: admission?.addCharge ?? ((record) => record),
      onRecord: (record, served) => span?.end(record, served),
    });
    this.#first = first;
    this.#traits = first.traits;
  }

  /** The traits of the request to the current target. */
  get traits(): TargetTraits {
    return this.#traits;
  }

  /** The headers of the current target's response; empty until it is there. */
  get upstreamHeaders(): Headers {
    return this.#current?.headers ?? new Headers();
  }

  /** Whether no other target can follow the current one, because it has output or is the last. A retry goes to the same one. */
  get isDecided(): boolean {
    return this.#isServed || this.#current?.hasSuccessor === false || this.request.targets.length === 1;
  }

  /**
   * Delivers one attempt after the other, until one has output or none may follow. Rejects only if `delivery` throws.
   * @returns the outcome of the last attempt
   */
  async run<Value>(delivery: Delivery<Value>): Promise<LastOutcome<Value>> {
    for (let attempt = this.#startFirst(); attempt !== null; attempt = await this.#startNext()) {
      attempt.startTimeout();
      const delivered = await delivery.deliver(attempt);
      attempt.stopTimeout();
      let last: Last | null = null;
      try {
        last = this.#decide(attempt, delivered);
      } finally {
        if (last === null) delivery.discard(delivered.value);
      }
      if (last !== null) return { ...last, value: delivered.value };
    }
    return { ...stopped(), value: null };
  }

  /** Null: another attempt follows. */
  #decide(attempt: Attempt, { outcome, isCommitted }: Delivered<unknown>): Last | null {
    if (outcome.kind === 'failed') return this.#decideFailed(attempt, outcome, isCommitted);
    if (outcome.kind === 'cancelled') return stopped();
    if (!isCommitted && this.#movesOn(attempt)) return null;
    this.succeeded(attempt);
    return { kind: 'done' };
  }

  /** The only place that classifies an error within a response. */
  #decideFailed(attempt: Attempt, outcome: Failed, isCommitted: boolean): Failed | null {
    const { error, upstreamError } = outcome.failure;
    const classified = upstreamError === null ? error : classifyError(upstreamError, attempt.upstream);
    if (upstreamError === null && outcome.reason !== 'stopped')
      this.#keepSentence(attempt, error, isCommitted);
    if (isCommitted) return { ...outcome, failure: { error, upstreamError, httpError: classified } };
    const last = this.#failed(attempt, classified, outcome.reason);
    if (last === null) return null;
    const withHints = (one: ApiError) =>
      withAttempts(withNearestModel(one, last, attempt.traits.target, this.request), this.meter.attempts);
    const httpError = withHints(last);
    if (upstreamError === null) return { ...outcome, failure: { error: httpError, upstreamError } };
    // A frame has the upstream's own message, unless an earlier refusal replaces it.
    const shown = last === classified ? error : { ...error, message: last.message };
    return { ...outcome, failure: { error: withHints(shown), upstreamError, httpError } };
  }

  /** The attempt has output, or its response is complete. No other target is tried, whatever happens. */
  succeeded(attempt: Attempt): void {
    if (this.#isServed) return;
    attempt.stopTimeout();
    this.#isServed = true;
    this.#logClosed(attempt, this.#schedule.succeeded(attempt.traits.target));
    this.#learn(attempt);
    this.#replayable.release();
  }

  /**
   * The attempt's response is complete and has no output. It is final, unless a content filter stopped it and the alias moves on to the
   * next target in this case.
   * @returns whether another attempt follows
   */
  #movesOn(attempt: Attempt): boolean {
    const { target } = attempt.traits;
    const isFiltered = attempt.meter.accumulator.finishMeaning === FILTERED;
    if (!isFiltered || !target.aliasTarget.on.includes(FILTERED) || !this.#scheduleNext()) return false;
    this.#giveUp(attempt, { errorCode: FILTERED, isRefused: false, isComplete: true });
    return true;
  }

  /**
   * The attempt failed without output.
   * @returns the error with which the request ends: `ownError`, or an earlier refusal; null: another attempt follows
   */
  #failed(attempt: Attempt, ownError: ApiError, reason: FailureReason): ApiError | null {
    // The request has already ended in another way.
    if (this.#isStopped) return ownError;
    const { request } = this;
    const now = request.context.ports.clock.now();
    const { target } = attempt.traits;
    const { isMade } = attempt.meter.accumulator;
    this.#keepMessage(attempt, ownError);
    // Only a response is a refusal that asks for a change.
    const isAnswered = reason === 'no_response' || reason === 'body';
    if (isAnswered && !isMade && this.#tryAgain(attempt, ownError, now)) return null;
    const { secondTries } = this.#replayable;
    if (ownError.refusal !== undefined) secondTries.forget(attempt.traits, ownError.refusal);
    const error = secondTries.shownError(attempt.traits, ownError);
    this.#giveUp(attempt, { ...endOf(ownError), isRefused: !isTimeout(reason) });
    const outcome = {
      error,
      reason,
      isMade,
      isBilled: attempt.meter.isBilled,
      retryAfterMs: readRetryAfter(attempt.headers, now),
    };
    const verdict = judge(outcome, target, request.callerPays);
    this.#logOpened(attempt, this.#schedule.failed(target, outcome, verdict, now));
    if (verdict.triesNext && this.#scheduleNext()) return null;
    this.#replayable.release();
    for (const { meter: failed, shown } of this.#messages)
      failed.isMessageShown = error.message.includes(shown);
    return error;
  }

  /** Logs the circuit that a failure has opened, with what the provider said, and the cause. */
  #logOpened({ traits, meter }: Attempt, opened: OpenCircuit | null): void {
    if (opened === null) return;
    const { alias, context } = this.request;
    const { status, error_code, message, cause } = meter.attempt;
    const line = {
      request_id: context.requestId,
      ...circuitOf(traits.target),
      // Null: for all callers.
      key_id: opened.caller,
      failures: opened.failures,
      open_until: isoTime(opened.openUntil),
      status,
      error_code,
      message: message ?? null,
    };
    context.ports.log({ event: 'circuit_opened', ...line, ...(cause !== undefined && { cause }) });
    // A caller's misspelt model is nothing that an operator can mend.
    const isCallers = alias === null && faultOfCall(status, error_code ?? '') === 'caller';
    if (!isCallers) context.circuitOpened?.(line, context);
  }

  #logClosed({ traits }: Attempt, isClosed: boolean): void {
    if (!isClosed) return;
    const { ports, requestId } = this.request.context;
    ports.log({ event: 'circuit_closed', request_id: requestId, ...circuitOf(traits.target) });
  }

  /** Keeps Weir's own sentence about a failure in the attempt's record. It has nothing of the response. */
  #keepSentence({ meter }: Attempt, { refusal, message }: ApiError, isCommitted: boolean): void {
    if (refusal !== undefined) return;
    meter.message = message.slice(0, MAX_KEPT_CHARS);
    if (isCommitted) meter.isMessageShown = true;
    else this.#messages.push({ meter, shown: message });
  }

  /** Keeps what the provider said in the attempt's record, while the request is there to compare it with. */
  #keepMessage({ meter, traits, upstream }: Attempt, { refusal }: ApiError): void {
    if (refusal === undefined) return;
    meter.message = this.#replayable.secondTries.providerMessage(traits, refusal, upstream);
    if (meter.message === null) return;
    this.#messages.push({ meter, shown: sanitize(refusal.message ?? '', upstream) });
  }

  /** Writes the usage record and ends the attempts. Only the first call counts. */
  settle(end: RequestEnd): void {
    this.meter.settle(end);
    if (end.kind === 'timed_out') this.#expired();
    if (end.kind === 'cancelled') this.#abandoned();
    // Cancels what the upstream may still send.
    if (end.kind !== 'finished') this.stop();
  }

  /** The request's deadline has passed. A target without output has failed. */
  #expired(): void {
    if (this.#isServed) return;
    this.#isServed = true;
    if (this.#current === null) return;
    const { traits, meter } = this.#current;
    const failed = { retryAfterMs: null, isBilled: meter.isBilled };
    const now = this.request.context.ports.clock.now();
    this.#logOpened(this.#current, this.#schedule.failed(traits.target, failed, TIMED_OUT, now));
  }

  /** The client has disconnected. */
  #abandoned(): void {
    if (this.#isServed) return;
    this.#isServed = true;
    if (this.#current === null) return;
    const { traits, meter } = this.#current;
    const { status, ms } = meter.attempt;
    if (status === null && ms !== null)
      this.#schedule.abandoned(traits.target, ms, this.request.context.ports.clock.now());
  }

  /** The request is over: cancels the current attempt and starts no other. */
  stop(): void {
    this.#isStopped = true;
    this.#current?.cancel();
    this.#wake();
    this.#replayable.release();
  }

  /**
   * The refusal asks for a change that Weir can make, such as another API: the same target is tried again at once. Its circuit learns
   * nothing from this (Z1).
   */
  #tryAgain(attempt: Attempt, error: ApiError, now: number): boolean {
    const { traits } = attempt;
    const { refusal } = error;
    const { secondTries } = this.#replayable;
    const mending = refusal === undefined ? null : secondTries.readRefusal(traits, refusal);
    if (refusal === undefined || mending === null) return false;
    // The provider names another field, so it took what was changed before.
    if (!namesChange(refusal, traits)) this.#learn(attempt);
    if (!secondTries.tryAgain(traits.target, mending, error)) return false;
    attempt.meter.cause ??= causeOf(mending);
    this.#giveUp(attempt, { ...endOf(error), isRefused: true });
    this.#next = { target: traits.target, at: now };
    return true;
  }

  /** The target took the changed request. */
  #learn({ traits }: Attempt): void {
    const { ports, requestId } = this.request.context;
    const { provider, model } = traits.target;
    for (const { finding, conditions } of this.#replayable.secondTries.learn(traits)) {
      ports.log({
        event: 'provider_learned',
        request_id: requestId,
        provider: provider.id,
        model,
        finding: shownFinding(finding),
        conditions,
        table: tableLine(finding, model),
      });
    }
  }

  /** @returns whether there is another target */
  #scheduleNext(): boolean {
    this.#next = this.#schedule.next(this.request.context.ports.clock.now());
    for (const skipped of this.#schedule.takeSkipped()) this.meter.skip(skippedAttempt(skipped));
    return this.#next !== null;
  }

  /** Null: the request is over. */
  #startFirst(): Attempt | null {
    const first = this.#first;
    this.#first = null;
    return first === null || this.#isStopped ? null : this.#start(ok(first), first.traits);
  }

  /** Waits for the time of the scheduled attempt and starts it; null: none is scheduled, or the request is over. */
  async #startNext(): Promise<Attempt | null> {
    const next = this.#next;
    this.#next = null;
    if (next === null || this.#isStopped) return null;
    await this.#waitUntil(next.at);
    if (this.#isStopped) return null;
    const budgetError = (await this.admission?.reserveAgain(this.meter.billedAttempts)) ?? null;
    if (this.#isStopped) return null;
    const targetRequest =
      budgetError === null ? await this.#replayable.rewriteFor(next.target) : failure(budgetError);
    if (this.#isStopped) return null;
    const traits = targetRequest.kind === 'ok' ? targetRequest.value.traits : unsentTraits(next.target);
    this.meter.begin(traits);
    const reason = budgetError === null ? 'unsent' : 'over_budget';
    const request = targetRequest.kind === 'ok' ? targetRequest : unsent(targetRequest.error, reason);
    return this.#start(request, traits);
  }

  #giveUp(attempt: Attempt, end: AttemptEnd): void {
    attempt.meter.end(end);
    attempt.cancel();
  }

  /** @param request what is sent, or why nothing is */
  #start(request: Result<TargetRequest, UpstreamFailure>, traits: TargetTraits): Attempt {
    const { onSent, ports } = this.request.context;
    const { clock } = ports;
    onSent?.(this.meter.interruptedRecord);
    const { current } = this.meter;
    const sent = request.kind === 'ok' ? request.value : null;
    const replayable = this.#replayable;
    this.#traits = traits;
    if (sent !== null) replayable.secondTries.sent(sent);
    const attempt = new Attempt(this.request, traits, current, {
      hasSuccessor: this.#schedule.hasMore,
      onAnswer: this.#schedule.startWaiting(traits.target, clock.now()),
    });
    this.#current = attempt;
    const send = () => {
      attempt.send((signal) => this.#call(request, attempt.upstream, signal));
      // After the request is on its way, so that it does not wait.
      if (sent !== null) this.#hashPrompt(sent, current);
    };
    if (this.#span === null) send();
    else {
      this.#span.inAttemptSpan(current.traits, (end) => {
        if (end !== null) current.onEnd(end);
        send();
      });
    }
    replayable.endWork();
    if (attempt.hasSuccessor) return attempt;
    // Only a refusal can need the body again.
    if (!replayable.readsRefusals) replayable.release(attempt.response);
    else if (sent !== null && sent.json.length > LARGE_BODY_BYTES) {
      const cancelTimer = clock.startTimer(LARGE_BODY_KEPT_MS, () => replayable.release(attempt.response));
      void attempt.response.then(({ kind }) => {
        cancelTimer();
        if (kind === 'ok') replayable.release();
      });
    }
    return attempt;
  }

  async #call(
    sent: Result<TargetRequest, UpstreamFailure>,
    upstream: UpstreamErrorContext,
    signal: AbortSignal,
  ): Promise<UpstreamResult> {
    if (sent.kind === 'error') return sent;
    const { context, isStreamed, headers, client, caller } = this.request;
    const { traits, url, json, refusedBetas } = sent.value;
    const { target, passthrough } = traits;
    const { fetch, clock } = context.ports;
    return callUpstream(target.fetch ?? fetch, {
      upstream,
      url,
      body: json,
      isStreamed,
      streamType: traits.passthrough === null ? traits.endpoint.protocol.framing?.mediaType : undefined,
      clientHeaders: headers,
      passedHeaders: (passthrough && client.passthrough?.requestHeaders) ?? [],
      refusedBetas,
      callerId: caller.keyId,
      apiHeaders: apiHeaders(target.provider, upstream.secret, { ...sent.value.headers, ...target.headers }),
      credential: boundCredential(target, caller, context),
      signal,
      clock,
    });
  }

  #hashPrompt(request: TargetRequest, meter: AttemptMeter): void {
    const { hashPrompt } = this.request;
    const { clientBody } = this.#replayable;
    if (hashPrompt === null || clientBody === null) return;
    meter.prefix = hashPrompt(sentPrompt(request), clientBody);
  }

  async #waitUntil(at: number): Promise<void> {
    const { clock } = this.request.context.ports;
    const ms = at - clock.now();
    if (ms <= 0) return;
    const over = Promise.withResolvers<void>();
    const cancelTimer = clock.startTimer(ms, over.resolve);
    this.#wake = over.resolve;
    await over.promise;
    cancelTimer();
  }
}

interface AttemptOptions {
  /** Whether the schedule has another attempt. Without one, only a changed request to the same target may follow. */
  readonly hasSuccessor: boolean;
  /** Called when the upstream has answered, or when the attempt has ended without an answer. Later calls have no effect. */
  readonly onAnswer: (isAnswer: boolean, now: number) => void;
}

/** Nothing reads the reason. Without one the runtime would create an exception and its stack for each request. */
const ABORT_REASON = 'aborted';

/** One try of a target: the upstream's response and the timeout of the alias. */
export class Attempt {
  readonly traits: TargetTraits;
  readonly upstream: UpstreamErrorContext;
  readonly meter: AttemptMeter;
  readonly hasSuccessor: boolean;
  /** Reads the response. A timeout ends it. */
  readonly relay: Relay;
  readonly #answered = Promise.withResolvers<UpstreamResult>();
  /** `response`, once it is there. */
  #result: UpstreamResult | null = null;
  readonly #clock: Clock;
  readonly #onAnswer: AttemptOptions['onAnswer'];
  readonly #abort = new AbortController();
  #cancelTimer = () => {};

  constructor(
    request: CompletionRequest,
    traits: TargetTraits,
    meter: AttemptMeter,
    { hasSuccessor, onAnswer }: AttemptOptions,
  ) {
    const { settings, ports } = request.context;
    const { clock } = ports;
    const upstream = upstreamErrorContext(request, traits.target);
    this.traits = traits;
    this.upstream = upstream;
    this.meter = meter;
    this.hasSuccessor = hasSuccessor;
    this.relay = new Relay({ upstream, clock, maxEventBytes: settings.maxEventBytes });
    this.#clock = clock;
    this.#onAnswer = onAnswer;
  }

  /** @param call sends the request, and never rejects */
  send(call: (signal: AbortSignal) => Promise<UpstreamResult>): void {
    const { meter } = this;
    void call(this.#abort.signal).then((result) => {
      this.#result = result;
      meter.status = result.kind === 'ok' ? result.value.status : result.error.status;
      const { runIdHeader } = this.traits.target.provider;
      if (runIdHeader !== undefined) meter.runId = runIdOf(result, runIdHeader);
      if (result.kind === 'error') {
        meter.cause = result.error.cause;
        meter.showsNoWork = result.error.showsNoWork;
      }
      const isAnswer = meter.status !== null && (result.kind === 'ok' || meter.showsNoWork);
      this.#onAnswer(isAnswer, this.#clock.now());
      this.#answered.resolve(result);
    });
  }

  /** Never rejects. */
  get response(): Promise<UpstreamResult> {
    return this.#answered.promise;
  }

  /** The response with its success status, or how the attempt ended before it. */
  async head(): Promise<Result<Response, Outcome>> {
    const called = await this.relay.until(this.response, cancelBody);
    if (called === null) return failure(this.relay.outcome);
    const { kind } = called;
    return kind === 'ok' ? called : failure(failedWith(called.error.error, called.error.reason));
  }

  /** The headers of the upstream's response; empty until it is there. */
  get headers(): Headers {
    if (this.#result === null) return new Headers();
    return this.#result.kind === 'ok' ? this.#result.value.headers : this.#result.error.headers;
  }

  /** Starts the timeout of the alias, if it sets one. It ends the attempt unless `stopTimeout` is called before. */
  startTimeout(): void {
    const { timeoutMs } = this.traits.target.aliasTarget;
    if (timeoutMs === null) return;
    this.#cancelTimer = this.#clock.startTimer(timeoutMs, () => {
      const message = `${this.upstream.name} sent no output within ${timeoutMs / 1000} seconds`;
      this.relay.end(failedWith(apiError('timeout', message), 'slow'));
    });
  }

  stopTimeout(): void {
    this.#cancelTimer();
  }

  /** Cancels the upstream's request or the rest of its response. */
  cancel(): void {
    this.stopTimeout();
    this.#abort.abort(ABORT_REASON);
    this.#onAnswer(false, this.#clock.now());
  }
}

/** The response came too late. */
function cancelBody(called: UpstreamResult): void {
  if (called.kind === 'ok') called.value.body?.cancel().catch(() => {});
}

/** What of a request says whose credential a call has. */
type CallScope = Pick<CompletionRequest, 'caller' | 'callerPays' | 'context'>;

/** What errors of a target's provider are classified with: its name and patterns, the credential to remove from texts, and who pays. */
export function upstreamErrorContext(scope: CallScope, target: Target): UpstreamErrorContext {
  const { caller, callerPays } = scope;
  const { provider, apiKey, keySetting, urlSetting } = target;
  const { name, refusals } = provider;
  const shared = { name, secret: caller.credential ?? apiKey, refusals, callerPays, keySetting, urlSetting };
  const maker = credentialMaker(target, caller, scope.context);
  if (maker === null) return shared;
  return {
    ...shared,
    // Read when a text is there: what the request was sent with is made after this.
    get madeSecrets() {
      return maker.secrets;
    },
  };
}

const FILTERED = 'content_filter';

function unsent(error: ApiError, reason: UpstreamFailure['reason']): Result<never, UpstreamFailure> {
  return failure({ error, reason, headers: new Headers(), status: null, cause: null, showsNoWork: true });
}

function unsentTraits(target: Target): TargetTraits {
  const { endpoint } = target;
  const scope = { providerId: target.provider.id, model: target.model, api: 'chat', keyId: '' };
  const traits = {
    scope,
    mends: [],
    dropped: [],
    changed: [],
    choices: 1,
    showsAll: false,
    passthrough: null,
  };
  return { ...traits, target, endpoint, api: 'chat' };
}

/** The target's parts in log events. */
function circuitOf({ provider, model }: Target) {
  return { provider: provider.id, model };
}

const RUN_ID = /^[\w.:-]{1,64}$/;

function runIdOf(result: UpstreamResult, header: string): string | null {
  const { headers } = result.kind === 'ok' ? result.value : result.error;
  const id = headers.get(header);
  return id !== null && RUN_ID.test(id) ? id : null;
}

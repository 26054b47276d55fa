/** Runs a request's attempts one at a time until a target produces output. Response code sees only the current attempt. */
import { mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { UpstreamRefusal } from '../canonical/refusal.ts';
import { sanitize } from '../canonical/upstream-error.ts';
import { pricedModels } from '../metering/pricing/cost.ts';
import type { Attempt as RecordedAttempt } from '../metering/record.ts';
import type { AttemptEnd, AttemptFacts, AttemptMeter, RequestMeter } from '../metering/request-meter.ts';
import { secondTry } from '../providers/api-refusals.ts';
import { namesOf, tableLine } from '../request-translation/mend.ts';
import { judge, readRetryAfter, TIMED_OUT } from '../routing/failures.ts';
import type { RetrySchedule, ScheduledTarget } from '../routing/retry-schedule.ts';
import type { SkippedTarget, Target } from '../routing/targets.ts';
import { didYouMean } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Clock } from '../stream/timers.ts';
import type { UpstreamErrorContext } from '../upstream/errors.ts';
import { apiHeaders, callUpstream, type UpstreamResult } from '../upstream/fetch.ts';
import type { RequestSpan } from './admission.ts';
import type { PreparedCompletion } from './prepare.ts';
import type { Mending, ReplayableRequest, TargetFacts, TargetRequest } from './replayable-request.ts';

/** Requests that are changed as a refusal asks, over all targets of one request. */
const MAX_MENDED_ROUNDS = 3;

/** A body above this is kept until there is output or until a refusal would have come. */
const LARGE_BODY_BYTES = 1024 * 1024;
const LARGE_BODY_KEPT_MS = 2000;

export interface AttemptRunnerOptions {
  readonly prepared: PreparedCompletion;
  readonly meter: RequestMeter;
  readonly schedule: RetrySchedule;
  readonly replayable: ReplayableRequest;
  readonly clientHeaders: Headers;
  /** Null: spans are not recorded. */
  readonly span: RequestSpan | null;
  /** Called when a further attempt begins. */
  readonly onAttempt: () => void;
}

export class AttemptRunner {
  readonly #options: AttemptRunnerOptions;
  #current: Attempt;
  /** The next target, if the current attempt failed and another one follows. */
  #next: ScheduledTarget | null = null;
  /** The first refusal of each target that was tried again with a changed request. */
  readonly #refusals = new Map<Target, ApiError>();
  /** Attempts whose messages are kept, with these as a client may see them. */
  readonly #messages: { readonly meter: AttemptMeter; readonly shown: string }[] = [];
  #mendedRounds = 0;
  #hasSwitchedApi = false;
  #isServed = false;
  #isStopped = false;
  #wake = () => {};

  /** Calls the first target at once. */
  constructor(options: AttemptRunnerOptions, firstRequest: TargetRequest) {
    this.#options = options;
    this.#current = this.#start(ok(firstRequest), firstRequest.facts);
  }

  /** The attempt that runs, or the last one. */
  get current(): Attempt {
    return this.#current;
  }

  /** Whether the current attempt's response is final: it has output, or no other attempt can follow. */
  get isDecided(): boolean {
    return this.#isServed || !this.#current.isReplaceable || this.#options.prepared.targets.length === 1;
  }

  /** Every attempt, from the current one on. Report the result of each by `succeeded`, `endedEmpty` or `failed`. */
  async *attempts(): AsyncGenerator<Attempt, void, void> {
    for (let next: Attempt | null = this.#current; next !== null; next = await this.#startNext()) yield next;
  }

  /** The attempt has output, or its response is complete. No other target is tried, whatever happens. */
  succeeded(attempt: Attempt): void {
    attempt.stopTimeout();
    this.#isServed = true;
    this.#options.schedule.succeeded(attempt.facts.target);
    this.#learn(attempt);
    this.#options.replayable.release();
  }

  /**
   * The attempt's response is complete and has no output. It is final, unless a content filter stopped it and the alias moves on to the
   * next target in this case.
   * @returns whether another attempt follows
   */
  endedEmpty(attempt: Attempt): boolean {
    const { target } = attempt.facts;
    const isFiltered = attempt.meter.accumulator.finishMeaning === FILTERED;
    if (isFiltered && target.aliasTarget.on.includes(FILTERED) && this.#scheduleNext()) {
      this.#giveUp(attempt, { errorCode: FILTERED, isRefused: false, isComplete: true });
      return true;
    }
    this.succeeded(attempt);
    return false;
  }

  /**
   * The attempt failed without output.
   * @param isIdle it ended by the idle timeout
   * @returns the error with which the request ends; null: another attempt follows
   */
  failed(attempt: Attempt, ownError: ApiError, isIdle = false): ApiError | null {
    const { prepared, schedule, replayable, meter } = this.#options;
    // The request has already ended in another way.
    if (this.#isStopped) return ownError;
    const now = prepared.context.ports.clock.now();
    const { target } = attempt.facts;
    const isTimeout = isIdle || attempt.timeoutError !== null;
    this.#keepMessage(attempt, ownError);
    if (!isTimeout && this.#tryAgain(attempt, ownError, now)) return null;
    this.#forget(attempt, ownError);
    const error = this.#firstRefusal(attempt, ownError);
    this.#giveUp(attempt, { errorCode: ownError.code, isRefused: !isTimeout });
    const outcome = {
      error,
      isUnsent: attempt.isUnsent,
      isTimeout,
      isFinal: attempt.isOverBudget || attempt.meter.accumulator.isMade,
      isBilled: attempt.meter.isBilled,
      retryAfterMs: readRetryAfter(attempt.headers, now),
    };
    const verdict = judge(outcome, target, prepared.callerPays);
    schedule.failed(target, outcome, verdict, now);
    if (verdict.triesNext && this.#scheduleNext()) return null;
    replayable.release();
    for (const { meter: failed, shown } of this.#messages)
      failed.isMessageShown = error.message.includes(shown);
    return withAttempts(withNearestModel(error, target, prepared), meter.attempts);
  }

  /** Keeps what the provider said in the attempt's record, while the request is there to compare it with. */
  #keepMessage({ meter, upstream }: Attempt, { refusal }: ApiError): void {
    if (refusal === undefined) return;
    meter.message = this.#options.replayable.providerMessage(refusal.message ?? '', upstream);
    if (meter.message === null) return;
    this.#messages.push({ meter, shown: sanitize(refusal.message ?? '', upstream) });
  }

  /** The request's deadline has passed. A target without output has failed. */
  expired(): void {
    if (this.#isServed) return;
    this.#isServed = true;
    const { schedule, prepared } = this.#options;
    const { facts, meter } = this.#current;
    const failed = { retryAfterMs: null, isBilled: meter.isBilled };
    schedule.failed(facts.target, failed, TIMED_OUT, prepared.context.ports.clock.now());
  }

  /** The request is over: cancels the current attempt and starts no other. */
  stop(): void {
    this.#isStopped = true;
    this.#current.cancel();
    this.#wake();
    this.#options.replayable.release();
  }

  /**
   * The refusal asks for a change that Weir can make, such as another API: the same target is tried again at once. Its circuit learns
   * nothing from this (Z1).
   */
  #tryAgain(attempt: Attempt, error: ApiError, now: number): boolean {
    const { replayable } = this.#options;
    const { facts, isUnsent, isOverBudget } = attempt;
    if (error.refusal === undefined || isUnsent || isOverBudget || attempt.meter.accumulator.isMade)
      return false;
    const mending = replayable.readRefusal(facts, error.refusal);
    if (mending === null) return false;
    if (mending.kind === 'api') {
      if (this.#hasSwitchedApi) return false;
      this.#hasSwitchedApi = true;
    } else if (this.#mendedRounds++ >= MAX_MENDED_ROUNDS) return false;
    replayable.tryAgain(facts.target, mending);
    if (!this.#refusals.has(facts.target)) this.#refusals.set(facts.target, error);
    attempt.meter.cause ??= this.#causeOf(mending, attempt);
    this.#giveUp(attempt, { errorCode: error.code, isRefused: true });
    this.#next = { target: facts.target, at: now };
    return true;
  }

  /** For which words of the refusal the request is changed; only the names of the fields if no words are kept. */
  #causeOf(mending: Mending, { upstream }: Attempt): string {
    if (mending.kind !== 'fields') return `refused: ${mending.kind}`;
    const whys = mending.statements.map(
      ({ words, finding }) =>
        this.#options.replayable.providerMessage(words, upstream) ?? namesOf(finding).join(', '),
    );
    return `refused: ${whys.join('; ')}`;
  }

  /**
   * The refusal for the client after a request was changed: the last one, if it is about something else, such as a prompt that is too
   * long; otherwise the first, which is about what the client sent.
   */
  #firstRefusal({ facts }: Attempt, error: ApiError): ApiError {
    const first = this.#refusals.get(facts.target);
    const { refusal } = error;
    if (first === undefined || refusal === undefined) return error;
    return namesChange(refusal, facts) ? first : error;
  }

  /** The target took the changed request. */
  #learn({ facts }: Attempt): void {
    const { prepared, replayable } = this.#options;
    if (!this.#refusals.has(facts.target)) return;
    const { context, callerPays } = prepared;
    if (callerPays) return;
    const { provider, model } = facts.target;
    const learned = replayable.learn(facts, context.learned, context.ports.clock.now());
    for (const { finding, conditions, words } of learned) {
      context.ports.log({
        event: 'provider_learned',
        request_id: context.requestId,
        provider: provider.id,
        model,
        finding,
        conditions,
        words: sanitize(words, { name: provider.name, secret: facts.target.apiKey }),
        table: tableLine(finding, model),
      });
    }
  }

  /** A request that was changed as earlier refusals said was refused all the same. */
  #forget({ facts }: Attempt, { refusal }: ApiError): void {
    if (refusal === undefined || refusal.kind !== null || facts.mends.length === 0) return;
    const words = wordsOf(refusal);
    const findings = facts.mends.map(({ finding }) => finding);
    const refused = findings.filter((finding) => namesOf(finding).some((name) => words.has(name)));
    this.#options.prepared.context.learned.forget(facts.scope, refused);
  }

  /** @returns whether there is another target */
  #scheduleNext(): boolean {
    const { prepared, schedule, meter } = this.#options;
    this.#next = schedule.next(prepared.context.ports.clock.now());
    for (const skipped of schedule.takeSkipped()) meter.skip(skippedAttempt(skipped));
    return this.#next !== null;
  }

  /** Waits for the time of the scheduled attempt and starts it; null: none is scheduled, or the request is over. */
  async #startNext(): Promise<Attempt | null> {
    const next = this.#next;
    this.#next = null;
    if (next === null || this.#isStopped) return null;
    await this.#waitUntil(next.at);
    if (this.#isStopped) return null;
    const { replayable, meter, prepared, onAttempt } = this.#options;
    const budgetError = (await prepared.admission?.reserveAgain(meter.billedAttempts)) ?? null;
    if (this.#isStopped) return null;
    const written = budgetError === null ? await replayable.rewriteFor(next.target) : failure(budgetError);
    if (this.#isStopped) return null;
    const facts = written.kind === 'ok' ? written.value.facts : unsentFacts(next.target);
    meter.begin(attemptFacts(facts));
    onAttempt();
    this.#current = this.#start(written, facts, budgetError !== null);
    return this.#current;
  }

  #giveUp(attempt: Attempt, end: AttemptEnd): void {
    attempt.meter.end(end);
    attempt.cancel();
  }

  #start(written: Result<TargetRequest, ApiError>, facts: TargetFacts, isOverBudget = false): Attempt {
    const { prepared, meter, schedule, replayable, span } = this.#options;
    const upstream = upstreamErrorContext(prepared, facts.target);
    const { current } = meter;
    const start = () =>
      new Attempt({
        facts,
        upstream,
        meter: current,
        isReplaceable: schedule.hasMore,
        clock: prepared.context.ports.clock,
        isUnsent: written.kind === 'error',
        isOverBudget,
        call: (signal) => this.#call(written, upstream, signal),
      });
    const attempt =
      span === null
        ? start()
        : span.inAttemptSpan(current.facts, (end) => {
            if (end !== null) current.onEnd(end);
            return start();
          });
    replayable.endWork();
    if (attempt.isReplaceable) return attempt;
    if (!replayable.readsRefusals) replayable.release(attempt.response);
    else {
      // Only a refusal is read.
      void attempt.response.then(({ kind }) => kind === 'ok' && replayable.release());
      const isLarge = written.kind === 'ok' && written.value.json.length > LARGE_BODY_BYTES;
      if (isLarge) {
        const { clock } = prepared.context.ports;
        const cancelTimer = clock.startTimer(LARGE_BODY_KEPT_MS, () => replayable.release(attempt.response));
        void attempt.response.then(cancelTimer);
      }
    }
    return attempt;
  }

  async #call(
    written: Result<TargetRequest, ApiError>,
    upstream: UpstreamErrorContext,
    signal: AbortSignal,
  ): Promise<UpstreamResult> {
    if (written.kind === 'error') {
      const unsent = { headers: new Headers(), status: null, cause: null, showsNoWork: true };
      return failure({ error: written.error, ...unsent });
    }
    const { prepared, clientHeaders } = this.#options;
    const { facts, url, json } = written.value;
    const { target, passthrough } = facts;
    const { fetch, clock } = prepared.context.ports;
    return callUpstream(target.fetch ?? fetch, {
      upstream,
      url,
      body: json,
      isStreamed: prepared.isStreamed,
      clientHeaders,
      passedHeaders: (passthrough && prepared.client.passthrough?.requestHeaders) ?? [],
      refusedBetas: written.value.refusedBetas,
      callerId: prepared.caller.keyId,
      apiHeaders: apiHeaders(target.provider, upstream.secret, target.headers),
      signal,
      clock,
    });
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

interface AttemptOptions {
  readonly facts: TargetFacts;
  readonly upstream: UpstreamErrorContext;
  readonly meter: AttemptMeter;
  /** Another attempt may follow this one. */
  readonly isReplaceable: boolean;
  /** The request can't be sent: `call` returns the error. */
  readonly isUnsent: boolean;
  /** The key's budget has no room for the attempt: no other one follows. */
  readonly isOverBudget: boolean;
  readonly clock: Clock;
  /** Calls the upstream. Never rejects. */
  readonly call: (signal: AbortSignal) => Promise<UpstreamResult>;
}

/** Nothing reads the reason. Without one the runtime would create an exception and its stack for each request. */
const ABORT_REASON = 'aborted';

/** One try of a target: the upstream's response and the timeout of the alias. */
export class Attempt {
  readonly facts: TargetFacts;
  readonly upstream: UpstreamErrorContext;
  readonly meter: AttemptMeter;
  readonly isReplaceable: boolean;
  readonly isUnsent: boolean;
  readonly isOverBudget: boolean;
  /** Never rejects. */
  readonly response: Promise<UpstreamResult>;
  /** Set when the timeout ended the attempt. */
  timeoutError: ApiError | null = null;
  /** `response`, once it is there. */
  #result: UpstreamResult | null = null;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #cancelTimer = () => {};

  constructor(options: AttemptOptions) {
    const { facts, upstream, meter, isReplaceable, isUnsent, isOverBudget, clock, call } = options;
    this.facts = facts;
    this.upstream = upstream;
    this.meter = meter;
    this.isReplaceable = isReplaceable;
    this.isUnsent = isUnsent;
    this.isOverBudget = isOverBudget;
    this.#clock = clock;
    this.response = call(this.#abort.signal).then((result) => {
      this.#result = result;
      meter.status = result.kind === 'ok' ? result.value.status : result.error.status;
      if (result.kind === 'error') {
        meter.cause = result.error.cause;
        meter.showsNoWork = result.error.showsNoWork;
      }
      return result;
    });
  }

  /** The headers of the upstream's response; empty until it is there. */
  get headers(): Headers {
    if (this.#result === null) return new Headers();
    return this.#result.kind === 'ok' ? this.#result.value.headers : this.#result.error.headers;
  }

  /** Starts the timeout of the alias, if it sets one. It ends the attempt unless `stopTimeout` is called or there is output before. */
  startTimeout(onTimeout: (error: ApiError) => void, hasOutput = () => false): void {
    const { timeoutMs } = this.facts.target.aliasTarget;
    if (timeoutMs === null) return;
    this.#cancelTimer = this.#clock.startTimer(timeoutMs, () => {
      if (hasOutput()) return;
      const message = `${this.upstream.name} sent no output within ${timeoutMs / 1000} seconds`;
      this.timeoutError = apiError('timeout', message);
      onTimeout(this.timeoutError);
    });
  }

  stopTimeout(): void {
    this.#cancelTimer();
  }

  /** Cancels the upstream's request or the rest of its response. */
  cancel(): void {
    this.stopTimeout();
    this.#abort.abort(ABORT_REASON);
  }
}

export function upstreamErrorContext(
  { caller, callerPays }: Pick<PreparedCompletion, 'caller' | 'callerPays'>,
  { provider, apiKey, keySetting, urlSetting }: Target,
): UpstreamErrorContext {
  const { name, refusals } = provider;
  return { name, secret: caller.credential ?? apiKey, refusals, callerPays, keySetting, urlSetting };
}

/** Adds to a 404 about the model the nearest name among those that the provider listed recently or that have a price. */
function withNearestModel(
  error: ApiError,
  target: Target,
  { caller, callerPays, context }: PreparedCompletion,
): ApiError {
  if (error.status !== 404) return error;
  const { priceIds, provider, model } = target;
  // Lists are fetched with the deployment's credential.
  const listed = callerPays ? [] : context.modelLists.cachedNames(provider.id);
  const names = [...listed, ...pricedModels(context.prices.table, priceIds)];
  const usable = names.filter((name) => name !== model && mayUse(caller, `${provider.id}/${name}`));
  const hint = didYouMean(model, usable);
  return hint === '' ? error : { ...error, message: error.message.replace(/\.$/, '') + hint };
}

const FILTERED = 'content_filter';

/** Whether a refusal of a changed request is about the change: it names what Weir set, or asks for the API that refused first. */
function namesChange(refusal: UpstreamRefusal, { mends, api }: TargetFacts): boolean {
  const words = wordsOf(refusal);
  const names = mends.flatMap(({ finding }) => namesOf(finding));
  return secondTry(refusal, api)?.kind === 'api' || names.some((name) => words.has(name));
}

function wordsOf({ message = '', field = '' }: UpstreamRefusal): ReadonlySet<string> {
  return new Set(`${message} ${field}`.toLowerCase().match(/[a-z$][\w$]{0,127}/g) ?? []);
}

function unsentFacts(target: Target): TargetFacts {
  const { endpoint } = target;
  const scope = { providerId: target.provider.id, model: target.model, api: 'chat' };
  const facts = {
    scope,
    mends: [],
    dropped: [],
    changed: [],
    choices: 1,
    showsAll: false,
    passthrough: null,
  };
  return { ...facts, target, endpoint, api: 'chat' };
}

/** The facts for the usage record. */
export function attemptFacts({
  target,
  dropped,
  changed,
  choices,
  showsAll,
  api,
}: TargetFacts): AttemptFacts {
  const { provider, model, priceIds } = target;
  const facts = { provider: provider.id, model, priceIds, dropped, changed, choices, showsAll };
  return api === 'responses' ? { ...facts, api } : facts;
}

/** A skipped target in the list of attempts. */
export function skippedAttempt({ target, reason }: SkippedTarget): RecordedAttempt {
  const { provider, model } = target;
  return { provider: provider.id, model, status: null, error_code: reason, ms: null };
}

/** The value of `x-weir-attempts`: `deepseek/deepseek-flash 503 412ms, mistral/mistral-small-latest 200 80ms`. */
export function attemptsHeader(attempts: readonly RecordedAttempt[]): string {
  return joinBounded(
    attempts.map((attempt) => {
      const summary = summarize(attempt);
      return attempt.ms === null ? summary : `${summary} ${attempt.ms}ms`;
    }),
  );
}

/** Adds a summary of all attempts to the message of the last error, if there were several. */
export function withAttempts(error: ApiError, attempts: readonly RecordedAttempt[]): ApiError {
  if (attempts.length <= 1) return error;
  const called = attempts.filter(({ ms }) => ms !== null).length;
  const times = called === 1 ? 'once' : `${called} times`;
  return { ...error, message: `${error.message} (tried ${times}: ${joinBounded(attempts.map(summarize))})` };
}

/** The target with the upstream's HTTP status, or with the error's code if that came within a 200. */
function summarize({ provider, model, status, error_code }: RecordedAttempt): string {
  const result = error_code === null || (status !== null && status !== 200) ? (status ?? 200) : error_code;
  return `${encodeName(`${provider}/${model}`)} ${result}`;
}

/** The bound on the summary of attempts in a header or a message. */
export const MAX_ATTEMPTS_CHARS = 1024;

function joinBounded(texts: readonly string[]): string {
  let joined = '';
  for (const text of texts) {
    const next = joined === '' ? text : `${joined}, ${text}`;
    if (next.length > MAX_ATTEMPTS_CHARS) return `${joined}, ...`;
    joined = next;
  }
  return joined;
}

/** A header may contain only printable ASCII. Commas separate the attempts. */
function encodeName(name: string): string {
  return name.toWellFormed().replace(/[^\x21-\x2b\x2d-\x7e]/gu, encodeURIComponent);
}

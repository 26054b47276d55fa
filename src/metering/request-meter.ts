/** Meters one request over all of its attempts and writes its usage record exactly once, however the request ends. */
import type { ChatApi } from '../canonical/conversation.ts';
import { type ApiError, apiError, errorRow } from '../canonical/error.ts';
import { faultOf, isCode, storedCode, weirCode } from '../canonical/fault.ts';
import type { FinishMeaning } from '../canonical/finish-reason.ts';
import type { ChoicePart, StreamMeter, VendorTokens } from '../canonical/part.ts';
import {
  type BilledUsage,
  billedUsage,
  type CountedUsage,
  countUsage,
  mergeUsage,
  reportedSums,
  type UsageReport,
} from '../canonical/usage.ts';
import type { Log } from '../shared/log-event.ts';
import type { Writable } from '../shared/writable.ts';
import { TokenCount } from './estimate.ts';
import type { InFlight } from './in-flight.ts';
import { type Cost, cacheSaving, costOfRequest, findPrice } from './pricing/cost.ts';
import type { PriceTable } from './pricing/price.ts';
import type { PriceBook } from './pricing/price-book.ts';
import {
  type Attribution,
  boundRecord,
  type ChargedRecord,
  COST_PARTS,
  extendRecord,
  type RecordedAttempt,
  recordText,
  type UsageRecord,
  withoutCharge,
} from './record.ts';
import type { RecordWriter, StartTimer } from './record-writer.ts';
import { isoTime } from './time.ts';

/** A request, as far as its meter reads it. */
export interface MeteredRequest {
  readonly context: {
    readonly requestId: string;
    /** In ms since the epoch. */
    readonly arrivedAt: number;
    readonly ports: {
      readonly clock: { readonly now: () => number; readonly startTimer: StartTimer };
      readonly log: Log;
    };
    readonly records: Pick<RecordWriter, 'write'>;
    readonly prices: Pick<PriceBook, 'table'>;
    readonly inFlight: Pick<InFlight, 'begin'>;
  };
  readonly caller: { readonly keyId: string; readonly team?: string };
  readonly route: string;
  readonly client: { readonly id: UsageRecord['client'] };
  /** The model or agent as the client named it: an alias, an address, or a bare name. */
  readonly requestedModel: string;
  /** The same, if it is an alias. */
  readonly alias: string | null;
  /** Tokens of the prompt, estimated. */
  readonly promptTokens: number;
  readonly attribution: Attribution;
  /** The credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller. */
  readonly callerPays: boolean;
}

/**
 * How the request ended. `refused`: no upstream sent output, as it refused, could not be reached, or was not called, so
 * only reported usage counts.
 */
export type RequestEnd =
  /** `endedBy`: the gateway ended the output as one that has reached its limit. */
  | { readonly kind: 'finished'; readonly endedBy?: UsageRecord['ended_by'] }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out' | 'refused'; readonly error: ApiError };

/**
 * Adds to a record what its key's limits charge, and marks it as an estimate where that is one. `attempts` are those
 * that the record sums up.
 */
export type AddCharge = (record: UsageRecord, attempts: readonly AttemptMeter[]) => ChargedRecord;

interface MeterHooks {
  readonly addCharge: AddCharge;
  /** Called once, with the attempt that served the request or was the last one. */
  readonly onRecord: (record: UsageRecord, served: AttemptTraits) => void;
}

const INTERRUPTED = apiError('interrupted', 'The gateway restarted during the request');

/** The meter of one request: begins and ends its attempts, and writes its record once, by `settle`. */
export class RequestMeter {
  readonly #request: MeteredRequest;
  readonly #hooks: MeterHooks;
  readonly #settled = Promise.withResolvers<UsageRecord>();
  /** In order; a plain `RecordedAttempt` is a skipped target. */
  readonly #attempts: (AttemptMeter | RecordedAttempt)[] = [];
  #current: AttemptMeter;
  readonly #endInFlight: () => void;
  #isSettled = false;
  #bytesOut = 0;

  /**
   * @param skipped targets that were skipped before the first attempt
   * @param first the first attempt, which begins now
   */
  constructor(
    request: MeteredRequest,
    skipped: readonly RecordedAttempt[],
    first: AttemptTraits,
    hooks: MeterHooks,
  ) {
    this.#request = request;
    this.#hooks = hooks;
    this.#attempts.push(...skipped);
    this.#current = this.#begin(first);
    this.#endInFlight = request.context.inFlight.begin();
  }

  /** Resolves when the record was written; never rejects. For `waitUntil`, from the start of the request. */
  get settled(): Promise<UsageRecord> {
    return this.#settled.promise;
  }

  /** The running attempt, or the last one. */
  get current(): AttemptMeter {
    return this.#current;
  }

  /** All attempts so far, as the record has them. */
  get attempts(): readonly RecordedAttempt[] {
    return this.#attempts.map((one) => (one instanceof AttemptMeter ? one.attempt : one));
  }

  /** Whether there was more than one attempt, or a skipped target. */
  get hasSeveral(): boolean {
    return this.#attempts.length > 1;
  }

  /** Output tokens of all attempts that were seen or reported so far. */
  get seenTokens(): number {
    const seen = this.#meters.map(({ accumulator }) =>
      Math.max(accumulator.seenTokens, accumulator.reported.output ?? 0),
    );
    return seen.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** How many attempts are billed, or may be billed, by their upstreams. */
  get billedAttempts(): number {
    return this.#meters.filter((attempt) => attempt.isBilled).length;
  }

  get #meters(): readonly AttemptMeter[] {
    return this.#attempts.filter((one) => one instanceof AttemptMeter);
  }

  /** Begins the next attempt. */
  begin(traits: AttemptTraits): AttemptMeter {
    this.#current = this.#begin(traits);
    return this.#current;
  }

  /** Adds a target that was skipped. */
  skip(attempt: RecordedAttempt): void {
    this.#attempts.push(attempt);
  }

  /** The record to write if the isolate ends before the request is settled. */
  get interruptedRecord(): ChargedRecord {
    const record = this.#record({ kind: 'failed', error: INTERRUPTED });
    return this.#hooks.addCharge(record, this.#meters);
  }

  /** Counts bytes that were sent to the client. */
  wrote(bytes: number): void {
    this.#bytesOut += bytes;
  }

  /** Writes the record and the log line. Later calls have no effect: a client's disconnect is reported in several ways. */
  settle(end: RequestEnd): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#endInFlight();
    this.#current.end({
      ...('error' in end ? endOf(end.error) : { errorCode: null }),
      isRefused: end.kind === 'refused',
      isComplete: end.kind === 'finished' && end.endedBy === undefined,
    });
    const { ports, records } = this.#request.context;
    const { addCharge, onRecord } = this.#hooks;
    const charged = addCharge(this.#record(end), this.#meters);
    const record = charged.charge === undefined ? charged : withoutCharge(charged);
    // The spread is the first: V8 copies what follows others field by field.
    ports.log({ ...record, event: 'request' }, `{"event":"request",${recordText(record).slice(1)}`);
    this.#logRemovedReasoning();
    this.#withPrefix(charged, (complete) =>
      records.write(complete, ports.clock.startTimer).then(() => this.#settled.resolve(record)),
    );
    onRecord(record, this.#current.traits);
  }

  #logRemovedReasoning(): void {
    const { accumulator, traits } = this.#current;
    const reasons = [...accumulator.removalReasons];
    if (reasons.length === 0) return;
    const { provider, model } = traits.target;
    const { ports, requestId } = this.#request.context;
    ports.log({
      event: 'reasoning_removed',
      request_id: requestId,
      provider: provider.id,
      model,
      reasons,
    });
  }

  /** Adds by what the request is compared with others of its session. The hashes are there long before the provider responds. */
  #withPrefix(record: ChargedRecord, write: (record: ChargedRecord) => void): void {
    const { prefix, traits } = this.#current;
    if (prefix === null) return write(record);
    const { prompt_tokens, service_tier } = this.#current.countUsage().usage;
    const { priceIds, model } = traits.target;
    const endMs = Date.parse(record.ended);
    const price = findPrice(this.#request.context.prices.table, priceIds, model, endMs, service_tier);
    const saves = price === null ? null : cacheSaving(price, prompt_tokens, endMs);
    const fields = saves === null ? {} : { cache_saves: saves };
    void prefix.then((text) => write(extendRecord(record, { prefix: text, ...fields })));
  }

  #begin(traits: AttemptTraits): AttemptMeter {
    const attempt = new AttemptMeter(
      traits,
      this.#request.context.ports.clock.now,
      this.#request.promptTokens,
    );
    this.#attempts.push(attempt);
    return attempt;
  }

  #record(end: RequestEnd): UsageRecord {
    const { context, caller, requestedModel, alias, route, client, attribution, callerPays } = this.#request;
    const { requestId, arrivedAt, ports, prices } = context;
    const error = 'error' in end ? end.error : null;
    const { accumulator, traits } = this.#current;
    const { target, dropped } = traits;
    const isRemoved = accumulator.removalReasons.size > 0 && !traits.changed.includes('reasoning');
    const changed = isRemoved ? [...traits.changed, 'reasoning'] : traits.changed;
    const now = ports.clock.now();
    const endedBy = end.kind === 'finished' ? end.endedBy : undefined;
    const { sums, cost } = sumAttempts(this.#meters, prices.table, now, endedBy !== undefined);
    const record: Writable<UsageRecord> = {
      request_id: requestId,
      time: isoTime(arrivedAt),
      ended: isoTime(now),
      key_id: caller.keyId,
      // No spread: V8 calls its runtime for each field that follows one.
      user: attribution.user,
      session: attribution.session,
      app: attribution.app,
      tags: attribution.tags,
      asked: requestedModel,
      provider: target.provider.id,
      model: target.model,
      route,
      client: client.id,
      status: end.kind === 'refused' ? 'failed' : end.kind,
      error_code: error && storedCode(error),
      error: error && weirCode(error),
      fault: error && faultOf(error, { isAlias: alias !== null, callerPays }),
      finish_reason: accumulator.finishWord,
      prompt_tokens: sums.prompt_tokens,
      completion_tokens: sums.completion_tokens,
      total_tokens: sums.total_tokens,
      cached_tokens: sums.cached_tokens,
      cache_write_tokens: sums.cache_write_tokens,
      reasoning_tokens: sums.reasoning_tokens,
      vendor_events: sums.vendor_events,
      vendor_tokens: sums.vendor_tokens,
      estimated: sums.estimated,
      cost_nanos: cost.cost_nanos,
      currency: cost.currency,
      cost_source: cost.cost_source,
      price_since: cost.price_since,
      cost_estimated: cost.cost_estimated,
      first_token_ms: accumulator.firstTokenAt === null ? null : accumulator.firstTokenAt - arrivedAt,
      total_ms: now - arrivedAt,
      bytes_out: this.#bytesOut,
      attempts: this.attempts,
    };
    if (cost.cost_parts_nanos !== undefined) record.cost_parts_nanos = cost.cost_parts_nanos;
    if (sums.cache_write_long_tokens > 0) record.cache_write_long_tokens = sums.cache_write_long_tokens;
    if (sums.searches > 0) record.searches = sums.searches;
    if (caller.team !== undefined) record.team = caller.team;
    if (endedBy !== undefined) record.ended_by = endedBy;
    if (dropped.length > 0) record.dropped = dropped;
    if (changed.length > 0) record.changed = changed;
    return boundRecord(record);
  }
}

/** The request to one target, as far as its meter reads it. */
export interface AttemptTraits {
  readonly target: {
    readonly provider: { readonly id: string };
    /** The provider's name of the model. */
    readonly model: string;
    /** Ids under which the provider's prices are looked up, in order. */
    readonly priceIds: readonly string[];
  };
  /** Names of request fields that were not sent to the provider, or were sent with another value. */
  readonly dropped: readonly string[];
  readonly changed: readonly string[];
  /** The service tier that was sent to the provider; absent: none. */
  readonly requestedTier?: string | undefined;
  /** The number of requested choices. */
  readonly choices: number;
  /** A complete output shows every token that is billed: there is no hidden reasoning or prediction (G3). */
  readonly showsAll: boolean;
  /** The API of a translated request. */
  readonly api: ChatApi;
}

/** How an attempt ended. */
export interface AttemptEnd {
  readonly errorCode: string | null;
  /** Weir itself ends an output that may have begun. The upstream did not refuse and may bill it. */
  readonly isInterrupted?: boolean;
  /** The attempt failed without output, and not by a timeout of Weir's: only reported usage is recorded. */
  readonly isRefused: boolean;
  /** The output is complete. */
  readonly isComplete?: boolean;
}

/** What an error says of an attempt's end. */
export function endOf(error: ApiError): Pick<AttemptEnd, 'errorCode' | 'isInterrupted'> {
  return { errorCode: storedCode(error), isInterrupted: errorRow(error)?.interrupts === true };
}

/** Usage that an upstream bills, or may bill, and did not report completely. A null count is charged at its upper bound. */
export interface Unreported {
  /** As reported, also for a truncated output. */
  readonly promptTokens: number | null;
  /** As reported, if the output is complete. */
  readonly outputTokens: number | null;
  /** A lower bound of the output: what was reported so far. */
  readonly minOutputTokens: number;
  /** An upper bound of the output, if all of it was seen; null if some may be unseen. */
  readonly maxOutputTokens: number | null;
  /**
   * How long the attempt took if the upstream ended it without a response: the output cannot be longer than this time allows. Null: it had
   * a response, or Weir ended it, after which the upstream may go on.
   */
  readonly unansweredMs: number | null;
  /** Web searches that were reported or seen. */
  readonly searches: number;
  /** What was received until the attempt ended; null: it has not ended. */
  readonly received: ReceivedOutput | null;
}

export interface ReceivedOutput {
  /** Weir closed the connection of a response with success: its client has left, or its budget is used up. */
  readonly isClosed: boolean;
  /** An estimate. */
  readonly tokens: number;
  /** An upper bound of the same. */
  readonly maxTokens: number;
  /** How long the attempt took. */
  readonly ms: number;
  /** There is no other output. */
  readonly showsAll: boolean;
}

/** Meters one attempt. */
export class AttemptMeter {
  readonly traits: AttemptTraits;
  readonly accumulator: UsageAccumulator;
  /** The HTTP status of the upstream's response, once it is known. */
  status: number | null = null;
  /** The upstream refused the request before any work, as far as its response or the connection shows. */
  showsNoWork = false;
  /** The upstream address and the reason of a failure that a setting may have caused. */
  cause: string | null = null;
  /** What the provider said about the failure, without the prompt, or what Weir says of it. */
  message: string | null = null;
  /** The provider's id of the run. */
  runId: string | null = null;
  /** The client's error has this message. */
  isMessageShown = false;
  /** The hashes of the prompt as it was sent; null: it is not hashed. Never rejects. */
  prefix: Promise<string> | null = null;
  readonly #now: () => number;
  readonly #startedAt: number;
  #end: (AttemptEnd & { readonly at: number }) | null = null;
  #onEnd: ((attempt: RecordedAttempt) => void) | null = null;

  /**
   * @param now the current time in ms since the epoch
   * @param promptEstimate tokens of the prompt, for an upstream that reports none
   */
  constructor(traits: AttemptTraits, now: () => number, promptEstimate: number) {
    this.traits = traits;
    this.accumulator = new UsageAccumulator(now, promptEstimate);
    this.#now = now;
    this.#startedAt = now();
  }

  /** Sets a callback that runs once, when the attempt ends. */
  onEnd(callback: (attempt: RecordedAttempt) => void): void {
    this.#onEnd = callback;
  }

  /** Ends the attempt. Later calls have no effect. */
  end(end: AttemptEnd): void {
    if (this.#end !== null) return;
    this.#end = { ...end, at: this.#now() };
    this.#onEnd?.(this.attempt);
  }

  /** The attempt as the record has it: at its end, or now if it is running. */
  get attempt(): RecordedAttempt {
    const { target, api } = this.traits;
    const { errorCode = null, at = this.#now() } = this.#end ?? {};
    const { status, cause, message, isMessageShown, runId } = this;
    const ms = at - this.#startedAt;
    const attempt: Writable<RecordedAttempt> = {
      provider: target.provider.id,
      model: target.model,
      status,
      error_code: errorCode,
      ms,
    };
    if (api === 'responses') attempt.api = api;
    if (runId !== null) attempt.run_id = runId;
    if (message !== null) attempt.message = message;
    if (isMessageShown) attempt.message_shown = true;
    if (cause !== null) attempt.cause = cause;
    return attempt;
  }

  /** The usage to record and to price. */
  countUsage(): CountedUsage<BilledUsage> {
    return this.#isRefused ? this.accumulator.countReported() : this.accumulator.countBilled();
  }

  /** Null if the upstream reported all of its usage, or bills nothing. */
  get unreported(): Unreported | null {
    if (this.#isRefused && (this.#isAnswered ? !this.#isInterrupted : this.showsNoWork)) return null;
    const { accumulator } = this;
    const { choices, showsAll } = this.traits;
    const ms = (this.#end?.at ?? this.#startedAt) - this.#startedAt;
    const { prompt, output } = accumulator.reported;
    const isFinal = this.#end?.isComplete === true || accumulator.finishesAtUsage >= choices;
    if (isFinal && prompt !== null && output !== null) return null;
    const isAllSeen = showsAll && accumulator.finishes >= choices;
    return {
      promptTokens: prompt,
      outputTokens: isFinal ? output : null,
      minOutputTokens: output ?? 0,
      maxOutputTokens: isAllSeen ? accumulator.maxSeenTokens : null,
      unansweredMs: this.#isRefused && !this.#isAnswered ? ms : null,
      searches: accumulator.seenSearches,
      received:
        this.#end === null
          ? null
          : {
              isClosed: this.#isClosed,
              tokens: accumulator.seenTokens,
              maxTokens: accumulator.maxSeenTokens,
              ms,
              showsAll,
            },
    };
  }

  get #isClosed(): boolean {
    const end = this.#end;
    return (
      this.#isAnswered && end !== null && end.errorCode === null && !end.isRefused && end.isComplete !== true
    );
  }

  /** Whether the upstream bills this attempt, or may bill it. */
  get isBilled(): boolean {
    const { accumulator, unreported } = this;
    const isReported =
      accumulator.countReported().usage.total_tokens > 0 || accumulator.upstreamCost !== null;
    return isReported || unreported !== null;
  }

  get #isRefused(): boolean {
    return this.#end?.isRefused === true;
  }

  /** The upstream responded with success. */
  get #isAnswered(): boolean {
    return this.status !== null && this.status >= 200 && this.status < 300;
  }

  /** Weir ended the attempt after a response with success. */
  get #isInterrupted(): boolean {
    return this.#end?.isInterrupted === true;
  }
}

/** Other words of a provider do not belong into records and logs. */
function loggedWord(word: string): string {
  return isCode(word) ? word : 'other';
}

/** Reasons for which a provider removed reasoning. OpenAI has five. */
const MAX_REMOVAL_REASONS = 8;

/** Accumulates what one upstream response reports and contains while it passes. */
export class UsageAccumulator implements StreamMeter {
  readonly #now: () => number;
  readonly #promptEstimate: number;
  readonly #text = new TokenCount();
  #reported: UsageReport = {};
  #serviceTier: string | undefined;
  #vendorTokensAdded = 0;
  #vendorTokensTotal = 0;
  vendorEvents = 0;
  #begunSearches = 0;
  /** Choices that are finished. */
  finishes = 0;
  /** The value of `finishes` at the last usage report. A report before the end may cover only a part of the output. */
  finishesAtUsage = 0;
  /** The upstream has made a complete output with an id. A retry would make, and bill, another one. */
  isMade = false;
  /** The finish reason of the first choice that finished, as the upstream sent it last, and its meaning. */
  finishWord: string | null = null;
  finishMeaning: FinishMeaning | null = null;
  #isFinishReplaced = false;
  /** Why the provider removed reasoning from the conversation that it was sent. */
  readonly removalReasons = new Set<string>();
  /** Time of the first text, in ms since the epoch. */
  firstTokenAt: number | null = null;

  /**
   * @param now the current time in ms since the epoch
   * @param promptEstimate tokens of the prompt, for an upstream that reports none
   */
  constructor(now: () => number, promptEstimate: number) {
    this.#now = now;
    this.#promptEstimate = promptEstimate;
  }

  delta(choice: ChoicePart): void {
    this.#text.add(choice.content);
    this.#text.add(choice.reasoning);
    this.#text.add(choice.refusal);
    for (const call of choice.toolCalls) {
      if (call.name !== undefined) this.#text.addCall();
      this.#text.add(call.name ?? '');
      this.#text.add(call.arguments);
    }
    if (this.firstTokenAt === null && this.#text.tokens > 0) this.firstTokenAt = this.#now();
  }

  rawText(bytes: Uint8Array, from: number, to: number): void {
    this.#text.addRaw(bytes, from, to);
    this.firstTokenAt ??= this.#now();
  }

  usage(report: UsageReport): void {
    this.#reported = mergeUsage(this.#reported, report);
    this.finishesAtUsage = this.finishes;
  }

  /** The last name counts: a stream may begin with the requested tier and end with the one that was used. */
  serviceTier(name: string): void {
    this.#serviceTier = name;
  }

  vendor(tokens: VendorTokens | null): void {
    this.vendorEvents++;
    if (tokens?.kind === 'add') this.#vendorTokensAdded += tokens.tokens;
    if (tokens?.kind === 'total') this.#vendorTokensTotal = Math.max(this.#vendorTokensTotal, tokens.tokens);
  }

  searches(begun: number): void {
    this.#begunSearches = Math.max(this.#begunSearches, begun);
  }

  finish(word: string, meaning: FinishMeaning): void {
    this.finishes++;
    if (this.finishWord !== null && !this.#isFinishReplaced) return;
    this.finishWord = loggedWord(word);
    this.finishMeaning = meaning;
    this.#isFinishReplaced = false;
  }

  /** The word stays until the next one: it is the last that the upstream sent. */
  resumed(): void {
    this.finishes--;
    this.finishesAtUsage = Math.min(this.finishesAtUsage, this.finishes);
    this.#isFinishReplaced = this.finishes === 0;
  }

  generated(): void {
    this.isMade = true;
  }

  removedReasoning(reasons: readonly string[]): void {
    for (const reason of reasons.slice(0, MAX_REMOVAL_REASONS)) {
      if (this.removalReasons.size < MAX_REMOVAL_REASONS) this.removalReasons.add(loggedWord(reason));
    }
  }

  /** Reported tokens of the prompt and of the output; null if not reported. */
  get reported(): { readonly prompt: number | null; readonly output: number | null } {
    const { prompt, completion, total = 0 } = reportedSums(this.#reported, this.#text.tokens > 0);
    // Some providers count reasoning only in the total.
    const output = completion === undefined ? null : Math.max(completion, total - (prompt ?? total));
    return { prompt: prompt ?? null, output };
  }

  /** An estimate of the tokens of the text that passed. */
  get seenTokens(): number {
    return this.#text.tokens;
  }

  /** An upper bound of the tokens of the text that passed. */
  get maxSeenTokens(): number {
    return this.#text.maxTokens;
  }

  /** Web searches that were reported, or that were seen to begin. */
  get seenSearches(): number {
    return Math.max(this.#begunSearches, this.#reported.searches ?? 0);
  }

  /** Whether the report says what of the prompt a cache read or took. */
  get reportsCache(): boolean {
    return this.#reported.cached !== undefined || this.#reported.cacheWrite !== undefined;
  }

  /** Tokens of vendor events: the sum of the tasks, or the reported total if that is higher, because it includes them. */
  get vendorTokens(): number {
    return Math.max(this.#vendorTokensAdded, this.#vendorTokensTotal);
  }

  /** The cost that the upstream reports: an integer of 10^-9 US dollars, or null. */
  get upstreamCost(): number | null {
    return this.#reported.cost ?? null;
  }

  /** The usage that the client receives: reported, or estimated. */
  countUsage(): CountedUsage {
    return countUsage(this.#reported, {
      prompt: () => this.#promptEstimate,
      completion: () => this.#text.tokens,
    });
  }

  /** The client's usage and what is billed in addition, such as a compaction. The client's context does not contain the latter. */
  countBilled(): CountedUsage<BilledUsage> {
    return this.#billed(this.countUsage());
  }

  /** Reported usage only: for a response that failed before its output began, no other usage is known to be billed. */
  countReported(): CountedUsage<BilledUsage> {
    const counted = countUsage(this.#reported, { prompt: () => 0, completion: () => 0 });
    return this.#billed({ ...counted, estimated: false });
  }

  #billed(counted: CountedUsage): CountedUsage<BilledUsage> {
    const usage = billedUsage(counted.usage, this.#reported);
    const service_tier = this.#serviceTier;
    return { ...counted, usage: service_tier === undefined ? usage : { ...usage, service_tier } };
  }
}

type TokenSums = Pick<
  UsageRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'cache_write_tokens'
  | 'reasoning_tokens'
  | 'vendor_events'
  | 'vendor_tokens'
  | 'estimated'
> &
  Required<Pick<UsageRecord, 'cache_write_long_tokens' | 'searches'>>;
type CostFields = Pick<
  UsageRecord,
  'cost_parts_nanos' | 'cost_nanos' | 'currency' | 'cost_source' | 'price_since' | 'cost_estimated'
>;

/**
 * Sums up the usage and the cost of all attempts: failed ones are billed, too.
 * @param attempts at least one; the last one served the request
 * @param endMs the request's end, which decides the prices in force
 * @param isEnded the gateway has ended the output, so that what was reported may not be all
 */
function sumAttempts(
  attempts: readonly AttemptMeter[],
  table: PriceTable,
  endMs: number,
  isEnded: boolean,
): { readonly sums: TokenSums; readonly cost: CostFields } {
  const sums: Writable<TokenSums> = {
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    cached_tokens: null,
    cache_write_tokens: null,
    reasoning_tokens: null,
    vendor_events: 0,
    vendor_tokens: 0,
    estimated: isEnded,
    cache_write_long_tokens: 0,
    searches: 0,
  };
  const costs: (Cost | null)[] = [];
  let isUpperBound = false;
  for (const attempt of attempts) {
    const { usage, estimated, ...counted } = attempt.countUsage();
    isUpperBound ||= counted.isUpperBound === true;
    sums.prompt_tokens += usage.prompt_tokens;
    sums.completion_tokens += usage.completion_tokens;
    sums.total_tokens += usage.total_tokens;
    const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage;
    sums.cached_tokens = addReported(sums.cached_tokens, prompt?.cached_tokens);
    sums.cache_write_tokens = addReported(sums.cache_write_tokens, prompt?.cache_write_tokens);
    sums.reasoning_tokens = addReported(sums.reasoning_tokens, completion?.reasoning_tokens);
    sums.cache_write_long_tokens += usage.cache_write_long_tokens ?? 0;
    sums.searches += usage.searches ?? 0;
    sums.vendor_events += attempt.accumulator.vendorEvents;
    sums.vendor_tokens += attempt.accumulator.vendorTokens;
    sums.estimated ||= estimated;
    const isPaid = usage.total_tokens > 0 || attempt.accumulator.upstreamCost !== null;
    // If no attempt used anything, the last one decides whether the cost is zero or unknown.
    if (isPaid || (costs.length === 0 && attempt === attempts.at(-1))) {
      costs.push(costOfAttempt(attempt, usage, table, endMs));
    }
  }
  return { sums, cost: sumCosts(costs, sums.estimated || isUpperBound) };
}

/**
 * The cost of an attempt; null if unknown.
 * @param usage as {@link AttemptMeter.countUsage} counts it, estimates included
 * @param endMs the request's end, in ms since the epoch
 */
export function costOfAttempt(
  { traits, accumulator }: AttemptMeter,
  usage: BilledUsage,
  table: PriceTable,
  endMs: number,
): Cost | null {
  const { target, requestedTier } = traits;
  const { priceIds, model } = target;
  const { upstreamCost } = accumulator;
  return costOfRequest(table, { priceIds, model, usage, requestedTier, upstreamCost, endMs });
}

/** What an attempt used, of which its upstream reported the prompt. */
export interface PartlyReportedUse {
  /** Tokens that were read into the prompt after the report. */
  readonly morePromptTokens: number;
  /** Of all choices. */
  readonly outputTokens: number;
  readonly searches: number;
  /** The cost is a bound: a prompt may have been taken by a cache, at a higher price, of which the report says nothing. */
  readonly isBound: boolean;
}

/**
 * The cost of an attempt whose upstream reported its prompt: each kind of token as reported, at its own price.
 * @param endMs the request's end, in ms since the epoch
 * @returns null where the price of a kind is not known
 */
export function costOfPartlyReported(
  { traits, accumulator }: AttemptMeter,
  { morePromptTokens, outputTokens, searches, isBound }: PartlyReportedUse,
  table: PriceTable,
  endMs: number,
): Cost | null {
  const { target, requestedTier } = traits;
  const { priceIds, model } = target;
  const { usage } = accumulator.countReported();
  const price = findPrice(table, priceIds, model, endMs, usage.service_tier);
  if (isBound && price?.cache_write !== undefined && !accumulator.reportsCache) return null;
  const prompt = usage.prompt_tokens + morePromptTokens;
  const priced = usage.priced_prompt;
  const all: BilledUsage = {
    ...usage,
    prompt_tokens: prompt,
    completion_tokens: outputTokens,
    total_tokens: prompt + outputTokens,
    searches,
    ...(priced !== undefined && { priced_prompt: { ...priced, tokens: priced.tokens + morePromptTokens } }),
  };
  const request = { priceIds, model, usage: all, requestedTier, endMs };
  return costOfRequest(table, { ...request, upstreamCost: null });
}

const UNKNOWN_COST: CostFields = {
  cost_nanos: null,
  currency: null,
  cost_source: 'none',
  price_since: null,
  cost_estimated: false,
};

/** The sum, or unknown if one cost is unknown or in another currency. A cost that the upstream reports is never an estimate. */
function sumCosts(costs: readonly (Cost | null)[], estimated: boolean): CostFields {
  const currency = costs[0]?.currency;
  if (currency === undefined) return UNKNOWN_COST;
  let cost_nanos = 0;
  const parts = { input: 0, cached: 0, output: 0 };
  let since: string | null = null;
  let hasUpperBound = false;
  for (const cost of costs) {
    if (cost?.currency !== currency) return UNKNOWN_COST;
    cost_nanos += cost.nano;
    for (const part of COST_PARTS) parts[part] += cost.parts?.[part] ?? 0;
    since = cost.priceSince ?? since;
    hasUpperBound ||= cost.isUpperBound;
  }
  const sum: Writable<CostFields> = {
    cost_nanos,
    currency,
    cost_source: since === null ? 'upstream' : 'table',
    price_since: since === null ? null : new Date(since).toISOString(),
    cost_estimated: since !== null && (estimated || hasUpperBound),
  };
  if (COST_PARTS.some((part) => parts[part] > 0)) sum.cost_parts_nanos = parts;
  return sum;
}

/** Null as long as nothing was reported: an unreported count is not zero. */
function addReported(sum: number | null, count: number | undefined): number | null {
  return count === undefined ? sum : (sum ?? 0) + count;
}

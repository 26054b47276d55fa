/**
 * The interfaces of features that completions use: `attribution` reads who sent a request, `ledger` admits or refuses it, `tracing` records
 * spans. The gateway passes the implementations.
 */
import type { Caller, LimitedUser } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import type { SentPrefix } from '../metering/cache-breaks.ts';
import type { SentPrompt } from '../metering/prompt-hashes.ts';
import type { Attribution, ChargedRecord, RecordedAttempt, UsageRecord } from '../metering/record.ts';
import type { AddCharge, AttemptTraits } from '../metering/request-meter.ts';
import type { Route } from '../providers/provider.ts';
import type { Target } from '../routing/targets.ts';
import type { JsonObject } from '../shared/json.ts';
import type { Result } from '../shared/result.ts';
import type { ReplayableRequest } from './replayable-request.ts';
import type { TargetRequest } from './target-request.ts';

/** What a completion takes from the gateway besides what every route has. */
export interface CompletionContext extends RequestContext {
  readonly attribute: Attribute;
  readonly admission: Admissions;
  readonly tracing: RequestTracing;
  /** Null where sessions are not kept by what stores the records. */
  readonly compareCache: CompareCache | null;
  /** Called where a failure has opened a circuit and the caller is not to blame; null: no feature reports it. */
  readonly circuitOpened: CircuitOpened | null;
  /**
   * Called before each attempt is sent upstream. The feature `durable-responses` stores the record that is to be written if the isolate
   * ends before the request does.
   */
  readonly onSent?: ((interrupted: ChargedRecord) => void) | undefined;
  /** Why the gateway itself has aborted the request; null or absent: its client has disconnected. */
  readonly abortError?: (() => ApiError | null) | undefined;
}

/** Has the operator told of a circuit that has opened. The feature `ledger` implements it. */
export type CircuitOpened = (
  opened: OpenedCircuit,
  context: Pick<RequestContext, 'ports' | 'settings' | 'waitUntil'>,
) => void;

/** A circuit that a failure has opened, as the log has it. */
export interface OpenedCircuit extends JsonObject {
  readonly provider: string;
  readonly model: string;
  /** Null: for all callers. */
  readonly key_id: string | null;
  readonly failures: number;
  readonly open_until: string;
}

/** Reads who sent a request and for what. Fails if the caller's key requires a user and the request names none. */
export type Attribute = (request: AttributedRequest) => Promise<Result<Attributed, ApiError>>;

interface AttributedRequest {
  readonly headers: Headers;
  /** The body as the client sent it. */
  readonly body: JsonObject;
  readonly caller: Caller;
}

interface Attributed {
  /** What is recorded. */
  readonly attribution: Attribution;
  /** As the client sent it, never stored; null: it is not known. */
  readonly session: string | null;
  /** Hashes prompts of the session, so that breaks of the prompt cache can be explained; null: none are hashed. */
  readonly hashPrompt: HashPrompt | null;
  /** The session, or else the user whom the request itself names. Never stored; null: neither is known. */
  readonly affinity: string | null;
}

/** Compares a request with the earlier ones of its session. @returns the value of `x-weir-cache`; null: it is not known */
export type CompareCache = (
  context: Pick<RequestContext, 'ports' | 'requestId' | 'known'>,
  keyId: string,
  session: string,
  sent: SentPrefix,
) => Promise<string | null>;

/** @returns the text of the hashes */
export type HashPrompt = (prompt: SentPrompt, clientBody: JsonObject) => Promise<string>;

/** Admits requests of keys with limits, or refuses them. */
export interface Admissions {
  readonly admit: Admit;
  readonly admitEarly: AdmitEarly;
}

/** Checks a request of a key with limits against them, and reserves what it may use. */
export type Admit = (request: AdmissionRequest) => Promise<Result<Admitted, Refusal>>;

/** Checks a request of a key with limits before it is read to its end, and reserves what is known of it. {@link Admit} extends that. */
export type AdmitEarly = (request: EarlyAdmissionRequest) => Promise<Result<EarlyAdmission, Refusal>>;

export interface EarlyAdmissionRequest
  extends Pick<AdmissionRequest, 'context' | 'keyId' | 'limits' | 'listed' | 'user'> {
  /** Null: no model runs. */
  readonly targets: readonly Target[] | null;
  /** The size of the texts of the prompt, in bytes of UTF-8. The bound of the whole prompt is not less. */
  readonly textBytes: number;
  /** The client's own output limit, or null. */
  readonly outputTokens: number | null;
}

export interface EarlyAdmission {
  /** Releases the reservation of a request that is not sent upstream. */
  readonly release: () => void;
}

export interface AdmissionRequest {
  readonly context: RequestContext;
  readonly keyId: string;
  /** The limits that KV lists for the key, with those of its team. */
  readonly limits: JsonObject;
  /** The limits that KV lists for the key itself, or for the team of a person. */
  readonly listed: JsonObject;
  /** Whose object admits it; null: that of the key. */
  readonly user: LimitedUser | null;
  /** The session, as it is stored, else the user; null: neither is known. */
  readonly affinity: string | null;
  readonly targets: readonly Target[];
  /** The request for the first of the targets. */
  readonly first: TargetRequest;
  /** Gets the output limit under which the requests for all targets are written. */
  readonly replayable: ReplayableRequest;
  /** Estimated. */
  readonly promptTokens: number;
  /** The client's protocol. */
  readonly client: UsageRecord['client'];
  readonly isStreamed: boolean;
}

export interface Admitted {
  readonly admission: Admission;
  /** The request for the first target, with an output limit where the key has one. */
  readonly first: TargetRequest;
}

/** An admitted request. It lives as long as the response, so it holds nothing of the prompt. */
export interface Admission {
  /** Headers of the response that report the limits. */
  readonly headers: Readonly<Record<string, string>>;
  /** Writing the charged record settles the reservation. */
  readonly addCharge: AddCharge;
  /**
   * Reserves for one more attempt in addition to those that the provider bills, or may bill.
   * @returns the error where the budget has no room for it, or null
   */
  readonly reserveAgain: (billedAttempts: number) => Promise<ApiError | null>;
  /** Null: the output is reserved whole. */
  readonly slices: OutputSlices | null;
  /** Releases the reservation of a request that is not sent upstream. */
  readonly release: () => void;
}

/** The reservation of a stream's output, which is extended while the output runs. Tokens are those of all choices and attempts. */
export interface OutputSlices {
  readonly sliceTokens: number;
  /** The tokens that are reserved. */
  readonly reserved: number;
  /** All that the output limit allows is reserved. */
  readonly isWhole: boolean;
  /** How fast output may be written that is not shown, in tokens per second; null: all of it is shown. */
  readonly hiddenTokensPerSecond: number | null;
  /** How many tokens may have been written that were not shown. Whoever follows the stream sets it. */
  hiddenTokens: number;
  /** Reserves a further slice. @returns false: the budget has no room for it */
  extend(): Promise<boolean>;
}

export interface Refusal {
  readonly error: ApiError;
  readonly headers: Readonly<Record<string, string>>;
}

/** Records the spans of requests and attempts. The feature `tracing` implements it. */
interface RequestTracing {
  /** Runs a request in its span. `run` gets null if spans are not recorded. */
  readonly inRequestSpan: <Value>(request: TracedRequest, run: (span: RequestSpan | null) => Value) => Value;
}

interface TracedRequest {
  readonly route: Route;
  readonly requestedModel: string;
  readonly isStreamed: boolean;
}

export interface RequestSpan {
  /** Runs an attempt in a span below the request's. `run` gets the function that ends this span, or null if it is not recorded. */
  readonly inAttemptSpan: <Value>(
    attempt: AttemptTraits,
    run: (end: ((attempt: RecordedAttempt) => void) | null) => Value,
  ) => Value;
  /** @param served the traits of the last attempt */
  readonly end: (record: UsageRecord, served: AttemptTraits) => void;
}

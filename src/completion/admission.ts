/** The interface of the limits of gateway keys: admits or refuses a request. The feature `ledger` implements it. */
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import type { MeteredRecords } from '../metering/request-meter.ts';
import type { Target } from '../routing/targets.ts';
import type { Result } from '../shared/result.ts';
import type { ReplayableRequest, TargetRequest } from './replayable-request.ts';

/** What a completion takes from the gateway besides what every route has. */
export interface CompletionContext extends RequestContext {
  readonly admit: Admit;
}

/** Checks a request of a key with limits against them, and reserves what it may use. */
export type Admit = (request: AdmissionRequest) => Promise<Result<Admitted, Refusal>>;

export interface AdmissionRequest {
  readonly context: RequestContext;
  readonly keyId: string;
  readonly targets: readonly Target[];
  /** The request for the first of the targets. */
  readonly first: TargetRequest;
  /** Gets the output limit under which the requests for all targets are written. */
  readonly replayable: ReplayableRequest;
  /** Estimated. */
  readonly promptTokens: number;
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
  /** Writes the record and settles the reservation. */
  readonly records: MeteredRecords;
  /**
   * Reserves for one more attempt in addition to those that the provider bills, or may bill.
   * @returns the error where the budget has no room for it, or null
   */
  readonly reserveAgain: (billedAttempts: number) => Promise<ApiError | null>;
  /** Releases the reservation of a request that is not sent upstream. */
  readonly release: () => void;
}

export interface Refusal {
  readonly error: ApiError;
  readonly headers: Readonly<Record<string, string>>;
}

/** The error codes of Weir with their HTTP statuses and types, and the JSON body of every error (E1). */
import type { UpstreamRefusal } from './refusal.ts';

/** What an error means for the request, its targets and its record. */
export interface ErrorKind {
  readonly status: number;
  readonly type: string;
  /** The value of the `retry-after` header. */
  readonly retryAfterSeconds?: number;
  /** Whose fault it is (E6). Default: the provider's from 500 on, else the caller's. */
  readonly fault?: 'deployment' | 'gateway';
  /** What follows for the attempt, whatever else is known of it: see `routing/failures.ts`. */
  readonly verdict?: 'mistake' | 'unsuitable' | 'refused' | 'timed_out';
  /** Weir ends an output with it that has begun: the upstream did not refuse, and may bill it. */
  readonly interrupts?: true;
  /**
   * A retry cannot change it. Without `x-should-retry: false` SDKs retry twice, and Claude Code many times (2.1.197, 2026-11-22).
   */
  readonly isFinal?: true;
}

const INVALID = 'invalid_request_error';
const FORBIDDEN = { status: 403, type: 'permission_error' } as const;
const OF_SERVER = 'server_error';

/** Every code that Weir itself sends. A client may also see an upstream's own code. */
export const ERRORS = {
  invalid_json: { status: 400, type: INVALID },
  invalid_request: { status: 400, type: INVALID },
  unsupported_route: { status: 400, type: INVALID },
  user_required: { status: 400, type: INVALID },
  unsupported_parameter: { status: 400, type: INVALID },
  invalid_api_key: { status: 401, type: 'authentication_error' },
  model_not_allowed: FORBIDDEN,
  user_being_erased: FORBIDDEN,
  cross_site: FORBIDDEN,
  admin_closed: FORBIDDEN,
  not_found: { status: 404, type: 'not_found_error' },
  model_not_found: { status: 404, type: 'not_found_error' },
  method_not_allowed: { status: 405, type: INVALID },
  websocket_unsupported: { status: 426, type: INVALID },
  request_timeout: { status: 408, type: 'timeout_error' },
  request_too_large: { status: 413, type: INVALID },
  unsupported_encoding: { status: 415, type: INVALID },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  // Clients do not retry an error of this type.
  budget_exceeded: { status: 429, type: 'insufficient_quota' },
  kept_limit_reached: { status: 429, type: 'insufficient_quota', isFinal: true },
  // Weir itself is out of memory: another target would not help.
  overloaded: {
    status: 503,
    type: OF_SERVER,
    retryAfterSeconds: 10,
    fault: 'gateway',
    verdict: 'mistake',
    interrupts: true,
  },
  origin_loop: { status: 508, type: OF_SERVER },
  response_unreadable: { status: 500, type: OF_SERVER, fault: 'gateway' },
  ledger_unreadable: { status: 500, type: OF_SERVER, fault: 'gateway' },
  misconfigured: { status: 500, type: OF_SERVER, fault: 'deployment', isFinal: true },
  internal_error: {
    status: 500,
    type: OF_SERVER,
    fault: 'gateway',
    verdict: 'mistake',
    interrupts: true,
  },
  upstream_credential: {
    status: 502,
    type: OF_SERVER,
    fault: 'deployment',
    verdict: 'refused',
    isFinal: true,
  },
  upstream_balance: { status: 502, type: OF_SERVER, fault: 'deployment', verdict: 'refused', isFinal: true },
  upstream_refused: {
    status: 502,
    type: OF_SERVER,
    fault: 'deployment',
    verdict: 'unsuitable',
    isFinal: true,
  },
  upstream_unreachable: { status: 502, type: OF_SERVER },
  upstream_error: { status: 502, type: OF_SERVER },
  upstream_invalid: { status: 502, type: OF_SERVER, interrupts: true },
  upstream_truncated: { status: 502, type: OF_SERVER, interrupts: true },
  upstream_event_too_large: { status: 502, type: OF_SERVER, verdict: 'timed_out', interrupts: true },
  access_unreachable: { status: 503, type: OF_SERVER, retryAfterSeconds: 5, fault: 'gateway' },
  secret_unreadable: { status: 503, type: OF_SERVER, retryAfterSeconds: 5, fault: 'gateway' },
  ledger_unreachable: { status: 503, type: OF_SERVER, fault: 'gateway' },
  interrupted: { status: 503, type: OF_SERVER, fault: 'gateway' },
  upstream_overloaded: { status: 503, type: OF_SERVER },
  timeout: { status: 504, type: 'timeout_error', interrupts: true },
  stream_idle_timeout: { status: 504, type: 'stream_idle_timeout', interrupts: true },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** An error for a client. `code` is one of {@link ERRORS} or the upstream's own. */
export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly retryAfterSeconds?: number;
  /** Weir's code, if `code` is the upstream's own. */
  readonly weirCode?: ErrorCode;
  /** The provider's refusal, if the error is one. No client gets it. */
  readonly refusal?: UpstreamRefusal;
}

/** An error as an upstream reported it, in any form. Absent members are undefined. */
export interface UpstreamError {
  readonly message: string | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  /** The HTTP status in the error's body, if there is one. */
  readonly status: number | undefined;
}

/** @param message states what happened and what to do */
export function apiError(code: ErrorCode, message: string, param: string | null = null): ApiError {
  const { status, type, retryAfterSeconds }: ErrorKind = ERRORS[code];
  return { status, type, ...(retryAfterSeconds && { retryAfterSeconds }), code, message, param };
}

/** The row of an error that Weir found; undefined where the error or its word is the provider's, which may be a code of Weir's, too. */
export function errorRow({ code, weirCode }: ApiError): ErrorKind | undefined {
  return weirCode === undefined ? ROWS.get(code) : undefined;
}

const ROWS: ReadonlyMap<string, ErrorKind> = new Map(Object.entries(ERRORS));

/** The JSON `{"error":{"message","type","param","code"}}`: a response's body, or the data of an error frame. */
export function errorBody(error: ApiError): string {
  const { message, type, param, code } = error;
  return JSON.stringify({ error: { message, type, param, code } });
}

/**
 * Why an output failed, besides what its failure says.
 * - `unsent`, `over_budget`: the request was not sent, because it can't be written for the target or the key's budget has no room for it.
 * - `no_response`: the upstream refused or could not be reached, or its response could not be opened.
 * - `body`: what the upstream sent, or that it ended.
 * - `slow`, `idle`, `deadline`: a timeout: of the alias (until the first output), of a silent upstream, of the request.
 * - `stopped`: the gateway ended the request.
 */
export type FailureReason =
  | 'unsent'
  | 'over_budget'
  | 'no_response'
  | 'body'
  | 'slow'
  | 'idle'
  | 'deadline'
  | 'stopped';

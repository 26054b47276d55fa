/** The error codes of Weir with their HTTP statuses and types, and the JSON body of every error (E1). */
import type { UpstreamRefusal } from './refusal.ts';

interface ErrorKind {
  readonly status: number;
  readonly type: string;
  /** The value of the `retry-after` header. */
  readonly retryAfterSeconds?: number;
}

/** Every code that Weir itself sends. A client may also see an upstream's own code. */
export const ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error' },
  invalid_request: { status: 400, type: 'invalid_request_error' },
  unsupported_route: { status: 400, type: 'invalid_request_error' },
  user_required: { status: 400, type: 'invalid_request_error' },
  unsupported_parameter: { status: 400, type: 'invalid_request_error' },
  invalid_api_key: { status: 401, type: 'authentication_error' },
  model_not_allowed: { status: 403, type: 'permission_error' },
  user_being_erased: { status: 403, type: 'permission_error' },
  cross_site: { status: 403, type: 'permission_error' },
  admin_closed: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'not_found_error' },
  model_not_found: { status: 404, type: 'not_found_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  websocket_unsupported: { status: 426, type: 'invalid_request_error' },
  request_timeout: { status: 408, type: 'timeout_error' },
  request_too_large: { status: 413, type: 'invalid_request_error' },
  unsupported_encoding: { status: 415, type: 'invalid_request_error' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  // Clients do not retry an error of this type.
  budget_exceeded: { status: 429, type: 'insufficient_quota' },
  kept_limit_reached: { status: 429, type: 'insufficient_quota' },
  overloaded: { status: 503, type: 'server_error', retryAfterSeconds: 10 },
  origin_loop: { status: 508, type: 'server_error' },
  response_unreadable: { status: 500, type: 'server_error' },
  ledger_unreadable: { status: 500, type: 'server_error' },
  misconfigured: { status: 500, type: 'server_error' },
  internal_error: { status: 500, type: 'server_error' },
  upstream_credential: { status: 502, type: 'server_error' },
  upstream_balance: { status: 502, type: 'server_error' },
  upstream_refused: { status: 502, type: 'server_error' },
  upstream_unreachable: { status: 502, type: 'server_error' },
  upstream_error: { status: 502, type: 'server_error' },
  upstream_invalid: { status: 502, type: 'server_error' },
  upstream_truncated: { status: 502, type: 'server_error' },
  upstream_event_too_large: { status: 502, type: 'server_error' },
  access_unreachable: { status: 503, type: 'server_error', retryAfterSeconds: 5 },
  secret_unreadable: { status: 503, type: 'server_error', retryAfterSeconds: 5 },
  ledger_unreachable: { status: 503, type: 'server_error' },
  interrupted: { status: 503, type: 'server_error' },
  upstream_overloaded: { status: 503, type: 'server_error' },
  timeout: { status: 504, type: 'timeout_error' },
  stream_idle_timeout: { status: 504, type: 'stream_idle_timeout' },
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
  return { ...ERRORS[code], code, message, param };
}

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

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
  /** the body is not a JSON object, or beyond [the limits](docs/operations.md#limits) */
  invalid_json: { status: 400, type: INVALID },
  /** a field, a query parameter or a header is invalid: correct `param` */
  invalid_request: { status: 400, type: INVALID },
  /** the provider does not have this route ([table](docs/providers.md#built-in-providers)) */
  unsupported_route: { status: 400, type: INVALID },
  /** the key has [`require_user`](docs/attribution.md#what-a-key-fixes): send `x-weir-user` or the field `user` */
  user_required: { status: 400, type: INVALID },
  /**
   * the provider has no equivalent of this field, or would ignore it; or `UNSUPPORTED=refuse`: remove `param`, or send
   * `x-weir-unsupported: drop`
   */
  unsupported_parameter: { status: 400, type: INVALID },
  /**
   * no key, or an unknown, revoked, disabled or expired one; or an invalid token of [Cloudflare
   * Access](docs/attribution.md#cloudflare-access)
   */
  invalid_api_key: { status: 401, type: 'authentication_error' },
  /**
   * not one of the key's `models`; or its hard budget is in money, and the model, its tier or its searches have [no
   * price](docs/prices.md#your-own-prices)
   */
  model_not_allowed: FORBIDDEN,
  /** the data of the user is [being erased](docs/privacy.md#erase-a-user): send the request when that is done */
  user_being_erased: FORBIDDEN,
  /**
   * Access stands for a key, and [another site may have sent the request](docs/attribution.md#cloudflare-access): send
   * `content-type: application/json` from a page of the deployment or a program, or send a key
   */
  cross_site: FORBIDDEN,
  /** teams have [groups](docs/sign-in.md#limits-for-people), and the token of Access does not tell those of the caller */
  groups_unknown: FORBIDDEN,
  /** `/admin/keys` without `ADMIN_TOKEN` and `ACCESS_ADMINS` */
  admin_closed: FORBIDDEN,
  /** no such route, key or record; a route for stored responses */
  not_found: { status: 404, type: 'not_found_error' },
  /** the name leads to no configured provider */
  model_not_found: { status: 404, type: 'not_found_error' },
  /** the [team](docs/budgets.md#teams) to delete has keys: the message counts them */
  team_has_keys: { status: 409, type: INVALID, isFinal: true },
  /** the route has other methods: see `allow` */
  method_not_allowed: { status: 405, type: INVALID },
  /** send the request over HTTP, as Codex then does */
  websocket_unsupported: { status: 426, type: INVALID },
  /** the body did not arrive within `DEADLINE_SECONDS` */
  request_timeout: { status: 408, type: 'timeout_error' },
  /**
   * larger than `MAX_REQUEST_BYTES`, or grown beyond [its limit](docs/operations.md#limits) in request translation;
   * `param` names the field
   */
  request_too_large: { status: 413, type: INVALID },
  /** the body is compressed (`content-encoding`), or not in UTF-8; the message names the encoding */
  unsupported_encoding: { status: 415, type: INVALID },
  /**
   * the provider's limit, `rpm`, `tpm` or `max_concurrent` of the key or [of each
   * user](docs/budgets.md#limits-for-each-user), or `LIMITER`; or a kept response has 16 readers
   */
  rate_limited: { status: 429, type: 'rate_limit_error' },
  // Clients do not retry an error of this type.
  /** the [budget](docs/budgets.md#hard-budgets) of the key, or of each user */
  budget_exceeded: { status: 429, type: 'insufficient_quota' },
  /**
   * a background request whose owner [keeps as much as it may](docs/durable-responses.md#how-much-is-kept): delete
   * responses, or send `store: false` without `background`
   */
  kept_limit_reached: { status: 429, type: 'insufficient_quota', isFinal: true },
  // Weir itself is out of memory: another target would not help.
  /** no room for a body or an event within 10 s ([limits](docs/streams.md#limits)); or the object of a kept response cannot be reached */
  overloaded: {
    status: 503,
    type: OF_SERVER,
    retryAfterSeconds: 10,
    fault: 'gateway',
    verdict: 'mistake',
    interrupts: true,
  },
  /** `ORIGIN` leads back to this Worker */
  origin_loop: { status: 508, type: OF_SERVER },
  /** a [kept response](docs/durable-responses.md#what-is-kept) was written by a later version, or is damaged */
  response_unreadable: { status: 500, type: OF_SERVER, fault: 'gateway' },
  /** the key's limits or entry [cannot be read](docs/budgets.md#limits-that-cannot-be-read) */
  ledger_unreadable: { status: 500, type: OF_SERVER, fault: 'gateway' },
  /** [a setting or binding is invalid](docs/settings.md#invalid-settings) */
  misconfigured: { status: 500, type: OF_SERVER, fault: 'deployment', isFinal: true },
  /** Weir failed, or the host's `onRequest` did: see the log event with the request id */
  internal_error: {
    status: 500,
    type: OF_SERVER,
    fault: 'gateway',
    verdict: 'mistake',
    interrupts: true,
  },
  /** the provider refuses the deployment's key: check the setting that the message names */
  upstream_credential: {
    status: 502,
    type: OF_SERVER,
    fault: 'deployment',
    verdict: 'refused',
    isFinal: true,
  },
  /** the provider refuses the deployment's balance */
  upstream_balance: { status: 502, type: OF_SERVER, fault: 'deployment', verdict: 'refused', isFinal: true },
  /**
   * a 403 about something that the request names, such as a file; or a 402 because the balance is too low for this
   * request's `max_tokens`
   */
  upstream_refused: {
    status: 502,
    type: OF_SERVER,
    fault: 'deployment',
    verdict: 'unsuitable',
    isFinal: true,
  },
  /** no connection; also of `ORIGIN` */
  upstream_unreachable: { status: 502, type: OF_SERVER },
  /** the provider's own failure: any other 5xx or 4xx, a redirect, a failed finish such as `MALFORMED_FUNCTION_CALL` */
  upstream_error: { status: 502, type: OF_SERVER },
  /** not JSON, not a response of the protocol, too many values or tool calls, or pieces of arguments that are not JSON together */
  upstream_invalid: { status: 502, type: OF_SERVER, interrupts: true },
  /** the connection broke, or the output ended before it was complete, for example within a tool call whose finish says `tool_calls` */
  upstream_truncated: { status: 502, type: OF_SERVER, interrupts: true },
  /**
   * an event above `MAX_EVENT_BYTES`, or a non-streaming response above 8 MiB: stream it; in records also a background
   * response above `RESPONSE_BYTES`
   */
  upstream_event_too_large: { status: 502, type: OF_SERVER, verdict: 'timed_out', interrupts: true },
  /** the keys of Access cannot be read within 5 s */
  access_unreachable: { status: 503, type: OF_SERVER, retryAfterSeconds: 5, fault: 'gateway' },
  /** the request needs a secret that [Secrets Store](docs/settings.md#w5) does not return; it is read again after 5 s */
  secret_unreadable: { status: 503, type: OF_SERVER, retryAfterSeconds: 5, fault: 'gateway' },
  /** the key's ledger object cannot be reached within 5 s, and `BUDGET_FAIL` is `closed`; or a change of a key needs it */
  ledger_unreachable: { status: 503, type: OF_SERVER, fault: 'gateway' },
  /** the key's ledger object [gets more requests than it takes](docs/operations.md#limits-of-the-ledger), and `BUDGET_FAIL` is `closed` */
  ledger_overloaded: { status: 503, type: OF_SERVER, retryAfterSeconds: 2, fault: 'gateway' },
  /** in records: the object of a [background response](docs/durable-responses.md#what-ends-a-run) restarted during the run */
  interrupted: { status: 503, type: OF_SERVER, fault: 'gateway' },
  /**
   * the provider responds with 503 or 529, or a key with limits is kept from an [outage that may be
   * billed](docs/routing.md#circuit-breaker)
   */
  upstream_overloaded: { status: 503, type: OF_SERVER },
  /** `DEADLINE_SECONDS`, the `timeout_seconds` of a step, the provider's own timeout, or the key store (KV) */
  timeout: { status: 504, type: 'timeout_error', interrupts: true },
  /** the provider sent nothing for `IDLE_TIMEOUT_SECONDS` */
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

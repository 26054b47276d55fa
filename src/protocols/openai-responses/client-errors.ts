/** Errors with the codes by which Responses clients decide whether and when to retry: HTTP responses, and the last events of a stream. */
import { type ApiError, errorBody } from '../../canonical/error.ts';
import { isCode } from '../../canonical/fault.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { ErrorResponse } from '../shared/client-protocol.ts';

/**
 * Codex 0.169 retries a 503 with any other code 25 times (tried 2026-11-22). Providers send their own codes with a 503: DeepSeek
 * `invalid_request_error`, Mistral `5030`.
 */
const OVERLOADED = 'server_is_overloaded';
const OVERLOADED_STATUSES: readonly (number | undefined)[] = [503, 529];

/** OpenAI's codes for Weir's. */
const CODES: Readonly<Record<string, string>> = {
  rate_limited: 'rate_limit_exceeded',
  rate_limit_error: 'rate_limit_exceeded',
  budget_exceeded: 'insufficient_quota',
  overloaded_error: OVERLOADED,
};

/** An error before the headers, as a client of Responses expects it: its status, and a body in OpenAI's form. */
export function responsesError(error: ApiError): ErrorResponse {
  const { status } = error;
  const code = OVERLOADED_STATUSES.includes(status) ? OVERLOADED : (CODES[error.code] ?? error.code);
  return { status, body: errorBody({ ...error, code }) };
}

/**
 * Codes that end a Codex turn or delay its retry: codex-rs, codex-api/src/sse/responses.rs (read 2026-11). The others
 * are the protocol's codes for invalid requests: openai-node 7.55 `ResponseError`.
 */
const STREAM_CODES: readonly string[] = [
  'context_length_exceeded',
  'insufficient_quota',
  'usage_not_included',
  'invalid_prompt',
  'cyber_policy',
  'rate_limit_exceeded',
  'server_is_overloaded',
  'slow_down',
  'bio_policy',
  'misalignment_policy_violation',
  'data_residency_mismatch',
  'vector_store_timeout',
];
/** The protocol has thirteen codes for invalid images. */
const IMAGE_CODE = /image/;

/** For all other codes: once a response has begun, a client's error can't be the cause. */
const SERVER_ERROR = 'server_error';

export interface StreamError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** An error after the headers, with a code that clients of Responses know. It may be kept: a `param` in the form of a code only (E5). */
export function streamErrorOf({ error, upstreamError }: StreamFailure): StreamError {
  const { message, param, status } = error;
  const isOverload = OVERLOADED_STATUSES.includes(upstreamError?.status ?? status);
  const ownCode = isOverload ? OVERLOADED : (CODES[error.code] ?? error.code);
  const isKnown = STREAM_CODES.includes(ownCode) || (IMAGE_CODE.test(ownCode) && isCode(ownCode));
  const code = isKnown ? ownCode : SERVER_ERROR;
  return { type: code, code, message, param: param !== null && isCode(param) ? param : null };
}

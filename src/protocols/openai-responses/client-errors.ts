/** Errors in the words that Responses' clients go by, before the head and in a stream (I1, I4). */
import { type ApiError, errorBody } from '../../canonical/error.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { ErrorResponse } from '../shared/client-protocol.ts';

/**
 * Codex 0.169 asks 25 times after a 503 with any other code (tried 2026-11-22). Providers have codes of their own for it: DeepSeek's is
 * `invalid_request_error`, Mistral's `5030`.
 */
const OVERLOADED = 'server_is_overloaded';
const OVERLOADED_STATUSES: readonly (number | undefined)[] = [503, 529];

/** OpenAI's words for Weir's codes: Codex decides by them whether and when it tries again. */
const CODES: Readonly<Record<string, string>> = {
  rate_limited: 'rate_limit_exceeded',
  rate_limit_error: 'rate_limit_exceeded',
  budget_exceeded: 'insufficient_quota',
  overloaded_error: OVERLOADED,
};

/**
 * Words that end a turn, or that say when to try again: codex-rs, codex-api/src/sse/responses.rs (read 2026-11). Behind them those of
 * the protocol that blame the request: openai-node 7.55 `ResponseError`.
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
/** What is wrong with an image has thirteen codes. */
const IMAGE_CODE = /image/;

/** In a stream every other code is a server's error: none that is a client's would be true of an answer that had begun. */
const SERVER_ERROR = 'server_error';

export function responsesError(error: ApiError): ErrorResponse {
  const { status } = error;
  const code = OVERLOADED_STATUSES.includes(status) ? OVERLOADED : (CODES[error.code] ?? error.code);
  return { status, body: errorBody({ ...error, code }) };
}

export interface StreamError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** The error with which a stream ends. */
export function streamErrorOf({ error, upstreamError }: StreamFailure): StreamError {
  const { code, message, param, status } = error;
  const isOverload = OVERLOADED_STATUSES.includes(upstreamError?.status ?? status);
  const word = isOverload ? OVERLOADED : (CODES[code] ?? code);
  const isKnown = STREAM_CODES.includes(word) || IMAGE_CODE.test(word);
  return { type: isKnown ? word : SERVER_ERROR, code: isKnown ? word : SERVER_ERROR, message, param };
}

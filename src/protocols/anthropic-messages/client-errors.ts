/** Errors as Anthropic's clients read them: by the type, which decides whether they try again or ask for a new login (I1, 5.10). */
import type { ApiError } from '../../canonical/error.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { ErrorResponse } from '../shared/client-protocol.ts';

/** By Weir's status; any other is `api_error`. https://platform.claude.com/docs/en/api/errors (2026-11) */
const TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [405, 'invalid_request_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [413, 'request_too_large'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
]);

/** Anthropic's own status for an overloaded upstream. */
const OVERLOADED = 529;

/** A prompt that is too long has many words; Claude Code makes room in its history on these alone (2.7). */
const TOO_LONG_WORDS = 'prompt is too long';
const TOO_LONG =
  /context.{0,10}(?:length|window|size)|(?:prompt|input|request).{0,24}too (?:long|large)|maximum.{0,16}(?:context|tokens)|too many (?:input )?tokens|token (?:count|limit).{0,40}exceed/i;
const CONTEXT_CODES = ['context_length_exceeded', 'model_context_window_exceeded'];

/** Words of an upstream's own for what happened in the midst of its answer, which tell clients to try again. */
const STREAM_TYPES = ['overloaded_error', 'rate_limit_error', 'timeout_error'];

/** The data of an `error` event. */
export function errorEvent({ error, upstreamError }: StreamFailure, requestId: string): string {
  const { type = '', status } = upstreamError ?? {};
  const told = STREAM_TYPES.includes(type)
    ? type
    : (TYPES.get(status === OVERLOADED ? 503 : (status ?? 0)) ?? '');
  return errorJson(error, requestId, STREAM_TYPES.includes(told) ? told : typeOf(error));
}

/** An error before the head: a refusal of the deployment's own credential is never an `authentication_error`. */
export function errorAnswer(error: ApiError, requestId: string): ErrorResponse {
  const status = error.status === 503 ? OVERLOADED : error.status;
  return { status, body: errorJson(error, requestId, typeOf(error)) };
}

function errorJson(error: ApiError, requestId: string, type: string): string {
  const { code, param } = error;
  // Weir's own word for what happened has a place beside the message, where clients look for details.
  const details = { error_code: code, ...(param === null ? {} : { param }) };
  const message = messageOf(error);
  return JSON.stringify({
    type: 'error',
    error: { type, message, details },
    request_id: requestId,
  });
}

function typeOf({ status }: ApiError): string {
  return TYPES.get(status) ?? 'api_error';
}

function messageOf({ status, code, message }: ApiError): string {
  const isRefused = status === 400 || status === 413 || status === 422;
  const isTooLong = CONTEXT_CODES.includes(code) || (isRefused && TOO_LONG.test(message));
  const isSaid = message.toLowerCase().includes(TOO_LONG_WORDS);
  return isTooLong && !isSaid && code !== 'request_too_large' ? `${TOO_LONG_WORDS}: ${message}` : message;
}

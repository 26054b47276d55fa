/** Writes errors in the form of the Messages API, whose error type decides whether clients retry or ask for a new login. */
import type { ApiError } from '../../canonical/error.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../../shared/limits.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { ErrorResponse } from '../shared/client-protocol.ts';

/** Error types by status; any other status is `api_error`. https://platform.claude.com/docs/en/api/errors (2026-11) */
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
  [415, 'invalid_request_error'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
]);

/** Anthropic's status for an overloaded upstream. */
const OVERLOADED = 529;

/** Types of an upstream's error within a stream that are passed on, because they tell clients to retry. */
const RETRYABLE_TYPES = ['overloaded_error', 'rate_limit_error', 'timeout_error'];

/** An error before any output. A refused deployment credential has status 502, so it never is an `authentication_error`. */
export function errorResponse(error: ApiError, requestId: string): ErrorResponse {
  const status = error.status === 503 ? OVERLOADED : error.status;
  return { status, body: errorJson(error, requestId, typeOf(error)) };
}

/** The data of an `error` event in a stream. */
export function errorEvent({ error, upstreamError }: StreamFailure, requestId: string): string {
  const { type = '', status } = upstreamError ?? {};
  const upstreamType = RETRYABLE_TYPES.includes(type)
    ? type
    : (TYPES.get(status === OVERLOADED ? 503 : (status ?? 0)) ?? '');
  return errorJson(error, requestId, RETRYABLE_TYPES.includes(upstreamType) ? upstreamType : typeOf(error));
}

function errorJson(error: ApiError, requestId: string, type: string): string {
  const { code, param } = error;
  // The API has no `code` and `param`; clients look for further data in `details`.
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

/** Claude Code compacts its history only if the message has these words. Other providers use different ones. */
const TOO_LONG_PREFIX = 'prompt is too long';
const TOO_LONG =
  /context.{0,10}(?:length|window|size)|(?:prompt|input|request).{0,24}too (?:long|large)|maximum.{0,16}(?:context|tokens)|too many (?:input )?tokens|token (?:count|limit).{0,40}exceed/i;
const CONTEXT_CODES = ['context_length_exceeded', 'model_context_window_exceeded'];

function messageOf({ status, code, message }: ApiError): string {
  const isRefused = status === 400 || status === 413 || status === 422;
  const isTooLong =
    CONTEXT_CODES.includes(code) || (isRefused && TOO_LONG.test(message.slice(0, MAX_ERROR_MESSAGE_CHARS)));
  const hasPrefix = message.toLowerCase().includes(TOO_LONG_PREFIX);
  return isTooLong && !hasPrefix && code !== 'request_too_large' ? `${TOO_LONG_PREFIX}: ${message}` : message;
}

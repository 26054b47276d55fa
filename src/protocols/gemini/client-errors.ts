/** Writes errors in the form of Google's APIs, in which clients read the status, and the wait before a retry. */
import type { ApiError } from '../../canonical/error.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { ErrorResponse } from '../shared/client-protocol.ts';

/** Names by HTTP status: https://cloud.google.com/apis/design/errors (from memory, 2026-11-28). Other statuses are `INTERNAL`. */
const STATUSES: ReadonlyMap<number, string> = new Map([
  ...[400, 405, 413, 415, 422, 426].map((status) => [status, 'INVALID_ARGUMENT'] as const),
  [401, 'UNAUTHENTICATED'],
  [402, 'FAILED_PRECONDITION'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [408, 'DEADLINE_EXCEEDED'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

/** Statuses of an upstream's error within a stream that are passed on, because they tell clients to retry. */
const RETRYABLE = [429, 503, 504];

/** An error before any output. */
export function errorResponse(error: ApiError, requestId: string, retryAfterSeconds?: number): ErrorResponse {
  const seconds = error.refusal?.retryAfterSeconds ?? retryAfterSeconds ?? error.retryAfterSeconds;
  const retry = seconds === undefined ? null : { '@type': RETRY_INFO, retryDelay: `${seconds}s` };
  return { status: error.status, body: errorJson(error, error.status, requestId, retry) };
}

/**
 * The element that ends a failed stream.
 * @param retry Google's own `RetryInfo`; null: there was none
 */
export function errorElement(
  { error, upstreamError }: StreamFailure,
  requestId: string,
  retry: JsonObject | null = null,
): string {
  const given = upstreamError?.status ?? 0;
  const status = RETRYABLE.includes(given) ? given : error.status;
  const seconds = error.refusal?.retryAfterSeconds ?? error.retryAfterSeconds;
  const stated = seconds === undefined ? null : { '@type': RETRY_INFO, retryDelay: `${seconds}s` };
  return errorJson(error, status, requestId, retry ?? stated);
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo';

/** The `RetryInfo` in the details of one of Google's errors; null: it has none. */
export function retryInfoOf(body: JsonObject): JsonObject | null {
  const details = readArray(objectOf(body.error).details).filter(isObject);
  return details.find((one) => one['@type'] === RETRY_INFO && readText(one.retryDelay) !== undefined) ?? null;
}

function errorJson(
  { code, message, param }: ApiError,
  status: number,
  requestId: string,
  retry: JsonObject | null,
): string {
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: code.toUpperCase(),
    domain: 'weir',
    metadata: { request_id: requestId, ...(param === null ? {} : { param }) },
  };
  const details = retry === null ? [info] : [info, retry];
  return JSON.stringify({
    error: { code: status, message, status: STATUSES.get(status) ?? 'INTERNAL', details },
  });
}

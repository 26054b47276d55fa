/** Makes the responses that are not streams: JSON, errors, and the headers that every answer has (H1, E1). */
import { type ApiError, errorBody } from '../canonical/error.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': JSON_TYPE } });
}

/** @param others the answer's other headers, such as those of the upstream's that go on */
export function errorResponse(error: ApiError, others: HeadersInit = {}): Response {
  const headers = new Headers(others);
  headers.set('content-type', JSON_TYPE);
  if (error.retryAfterSeconds !== undefined) headers.set('retry-after', String(error.retryAfterSeconds));
  return new Response(errorBody(error), { status: error.status, headers });
}

/** A header's value may hold printable ASCII alone; whatever else a name holds is percent-encoded, so nothing is injected. */
export function headerValue(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

/** Makes the responses that are not streams: JSON, errors, and the headers that every answer has (H1, E1). */
import { type ApiError, errorBody } from '../canonical/error.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(value: unknown, status = 200): Response {
  return textResponse(JSON.stringify(value), status);
}

/** JSON that is text already. */
export function textResponse(json: string, status = 200, headers = new Headers()): Response {
  headers.set('content-type', JSON_TYPE);
  return new Response(json, { status, headers });
}

/** @param headers what of the upstream's headers goes on: `retry-after` and the rate limits */
export function errorResponse(error: ApiError, headers = new Headers()): Response {
  return textResponse(errorBody(error), error.status, headers);
}

/** A header's value may hold printable ASCII alone; whatever else a name holds is percent-encoded, so nothing is injected. */
export function headerValue(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

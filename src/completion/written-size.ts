/** Holds what is sent to a provider against what came: no request grows on its way without a bound (B2). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type JsonObject, writeJson } from '../shared/json.ts';
import { SMALL_BYTES } from '../stream/memory.ts';

/** A request for a provider has at most this many times the bytes of the client's request, plus {@link SMALL_BYTES} that Weir adds. */
const MAX_WRITTEN_FACTOR = 4;

const MAX_BYTES_A_UNIT = 3;

/** @param maxRequestBytes the bound on what comes */
export function maxWrittenBytes(sentBytes: number, maxRequestBytes: number): number {
  return Math.min(sentBytes * MAX_WRITTEN_FACTOR, maxRequestBytes) + SMALL_BYTES;
}

/**
 * A body's JSON text, or the error for one that is larger than it may be.
 * @param provider its name in messages
 */
export function writeBody(body: JsonObject, maxBytes: number, provider: string): string | ApiError {
  const json = writeJson(body);
  if (json !== undefined && isWithin(json, maxBytes)) return json;
  const message = `Written for ${provider}, the request is larger than the ${maxBytes} bytes that this one may have, most of it by ${largestField(body)}: send less at once`;
  return apiError('request_too_large', message, largestField(body));
}

function isWithin(json: string, maxBytes: number): boolean {
  if (json.length > maxBytes) return false;
  return json.length * MAX_BYTES_A_UNIT <= maxBytes || new TextEncoder().encode(json).length <= maxBytes;
}

function largestField(body: JsonObject): string {
  const sizes = Object.entries(body).map(([field, value]) => [writeJson(value)?.length, field] as const);
  const [, largest = ''] = sizes.reduce((a, b) => ((b[0] ?? Infinity) > (a[0] ?? Infinity) ? b : a), [0, '']);
  return largest.slice(0, MAX_FIELD_CHARS);
}

const MAX_FIELD_CHARS = 64;

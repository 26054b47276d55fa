/** Reads an upstream's response: as an event stream, or as one JSON object. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { brokenConnection, type Upstream, unwrapErrorList } from '../canonical/upstream-error.ts';
import {
  isObject,
  isWithinJsonBounds,
  type JsonObject,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  parseJsonExactly,
} from '../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Lease, LeaseMemory } from '../stream/memory.ts';
import { readBodyText } from '../stream/read-body.ts';

export type ResponseBody =
  | { readonly kind: 'events'; readonly events: ReadableStream<Uint8Array> }
  /** The object may be an error. Its work has begun: release the lease. */
  | { readonly kind: 'object'; readonly object: JsonObject; readonly lease: Lease };

/**
 * Opens a response with a success status. An upstream may send an event stream where an object was requested, and the reverse.
 * @param isStreamRequested decides for a content type that is neither of the two
 */
export async function openResponse(
  response: Response,
  upstream: Upstream,
  isStreamRequested: boolean,
  leaseMemory: LeaseMemory,
): Promise<Result<ResponseBody, ApiError>> {
  const { body } = response;
  if (body !== null && isEventStream(response, isStreamRequested))
    return ok({ kind: 'events', events: body });
  const read = await readBodyText({ message: response, maxBytes: MAX_RESPONSE_BYTES }, leaseMemory);
  if (read.kind === 'too_large') return failure(responseTooLarge(upstream));
  if (read.kind === 'memory_exhausted') return failure(memoryExhausted(upstream));
  if (read.kind !== 'text') return failure(brokenConnection(upstream));
  const { text, lease } = read;
  const isBounded = isWithinJsonBounds(text);
  await lease.pause();
  // A tool call's input may be a JSON object, in which an id must not be rounded.
  const object = isBounded ? unwrapErrorList(parseJsonExactly(text)) : undefined;
  if (isObject(object)) return ok({ kind: 'object', object, lease });
  lease.release();
  return failure(isBounded ? notAnObject(upstream) : tooNested(upstream));
}

function isEventStream(response: Response, isStreamRequested: boolean): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (/event-stream/i.test(type)) return true;
  return isStreamRequested && !/json|html/i.test(type);
}

export function responseTooLarge(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent an answer larger than ${MAX_RESPONSE_BYTES} bytes`;
  return apiError('upstream_event_too_large', message);
}

export function memoryExhausted(upstream: Upstream): ApiError {
  const message = `Too many large answers are being read at once, ${upstream.name}'s among them: try again`;
  return apiError('overloaded', message);
}

function tooNested(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent an answer of more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values`;
  return apiError('upstream_invalid', message);
}

function notAnObject(upstream: Upstream): ApiError {
  return apiError('upstream_invalid', `${upstream.name} answered with what is not a JSON object`);
}

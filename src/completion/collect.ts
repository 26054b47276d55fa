/** Reads an upstream's answer that is not passed on as it comes: a plain one, or a streamed one for a client that asked for an object. */
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
import type { EventReader } from '../stream/event-reader.ts';
import { type Lease, type LeaseMemory, SMALL_BYTES } from '../stream/memory.ts';
import { YieldBudget } from '../stream/pipeline.ts';
import { readBodyText } from '../stream/read-body.ts';
import type { Clock } from '../stream/timers.ts';

/** A stream that is collected into one response: most of its bytes are the frames around the text. */
const MAX_COLLECTED_STREAM_BYTES = 64 * 1024 * 1024;

/** Whether an answer is an event stream; one that calls itself neither that nor JSON nor a page is taken for what was asked. */
export function isEventStream(response: Response, isAskedFor: boolean): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (/event-stream/i.test(type)) return true;
  return isAskedFor && !/json|html/i.test(type);
}

/** A plain answer, which may tell of an error, or why it is none. */
export type PlainResult =
  /** The work on it has begun: `lease` is to be released. */
  | { readonly kind: 'answer'; readonly answer: JsonObject; readonly lease: Lease }
  | { readonly kind: 'error'; readonly error: ApiError };

/** Reads a plain answer whole. Never throws. */
export async function readPlainAnswer(
  response: Response,
  upstream: Upstream,
  leaseMemory: LeaseMemory,
): Promise<PlainResult> {
  const read = await readBodyText({ message: response, maxBytes: MAX_RESPONSE_BYTES }, leaseMemory);
  if (read.kind === 'too_large') return { kind: 'error', error: tooLarge(upstream) };
  if (read.kind === 'memory_exhausted') return { kind: 'error', error: crowded(upstream) };
  if (read.kind !== 'text') return { kind: 'error', error: brokenConnection(upstream) };
  const { text, lease } = read;
  const isBounded = isWithinJsonBounds(text);
  await lease.pause();
  // A call's input is an object in some dialects: an id in it must not be rounded.
  const answer = isBounded ? unwrapErrorList(parseJsonExactly(text)) : undefined;
  if (isObject(answer)) return { kind: 'answer', answer, lease };
  lease.release();
  return { kind: 'error', error: isBounded ? noObject(upstream) : tooNested(upstream) };
}

/**
 * Feeds a streamed answer to a reader, for a client that asked for an object. Never throws.
 * @param heldChars how much of the answer is held by now
 * @returns what is held's share of the isolate's memory, to be released; null where it is small
 */
export async function readStreamedAnswer(
  response: Response,
  reader: EventReader,
  heldChars: () => number,
  upstream: Upstream,
  clock: Clock,
  leaseMemory: LeaseMemory,
): Promise<Lease | null> {
  const yields = new YieldBudget(clock);
  let lease: Lease | null = null;
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > MAX_COLLECTED_STREAM_BYTES) {
        reader.fail(tooLarge(upstream));
        return lease;
      }
      const eventsBefore = reader.events;
      reader.push(chunk);
      if (reader.isOver) return lease;
      if (lease === null && heldChars() > SMALL_BYTES) {
        lease = await leaseMemory(MAX_RESPONSE_BYTES);
        lease?.markReceived();
        if (lease === null) reader.fail(crowded(upstream));
      }
      await yields.read(chunk.length, reader.events - eventsBefore);
    }
    reader.end();
  } catch {
    reader.broken(brokenConnection(upstream));
  }
  return lease;
}

function tooLarge(upstream: Upstream): ApiError {
  return apiError(
    'upstream_event_too_large',
    `${upstream.name} sent an answer larger than ${MAX_RESPONSE_BYTES} bytes`,
  );
}

function crowded(upstream: Upstream): ApiError {
  return apiError(
    'overloaded',
    `Too many large answers are being read at once, ${upstream.name}'s among them: try again`,
  );
}

function tooNested(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent an answer of more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values`;
  return apiError('upstream_invalid', message);
}

function noObject(upstream: Upstream): ApiError {
  return apiError('upstream_invalid', `${upstream.name} answered with what is not a JSON object`);
}

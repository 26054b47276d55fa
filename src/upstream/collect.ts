/** Reads an upstream's answer that is not passed on as it comes: a plain one, or a streamed one for a client that asked for an object. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, type JsonObject, parseJson } from '../canonical/json.ts';
import { isWithinJsonBounds } from '../canonical/json-bounds.ts';
import {
  MAX_ANSWER_BYTES,
  MAX_COLLECTED_STREAM_BYTES,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
} from '../canonical/limits.ts';
import { brokenConnection, findUpstreamError, type Upstream } from '../canonical/upstream-error.ts';
import type { AnswerReader } from '../stream/answer-reader.ts';
import type { Clock } from '../stream/pacing.ts';
import { Silence } from '../stream/silence.ts';
import { classifyError } from './classify.ts';
import { readBounded } from './read-bounded.ts';

/** Whether an answer is an event stream; one that calls itself neither that nor JSON nor a page is taken for what was asked. */
export function isEventStream(response: Response, isAskedFor: boolean): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (/event-stream/i.test(type)) return true;
  return isAskedFor && !/json|html/i.test(type);
}

/** A plain answer, or why it is none. */
export type PlainResult =
  | { readonly kind: 'answer'; readonly answer: JsonObject }
  | { readonly kind: 'error'; readonly error: ApiError };

/**
 * Reads a plain answer whole. Never throws.
 * @param callerPays the credential was the caller's own, and so are errors about it
 */
export async function readPlainAnswer(
  response: Response,
  upstream: Upstream,
  callerPays: boolean,
): Promise<PlainResult> {
  try {
    const text = await readBounded(response.body, MAX_ANSWER_BYTES);
    if (text === null) return { kind: 'error', error: tooLarge(upstream) };
    if (!isWithinJsonBounds(text)) return { kind: 'error', error: tooNested(upstream) };
    const answer = parseJson(text);
    if (!isObject(answer)) return { kind: 'error', error: noObject(upstream) };
    const error = findUpstreamError(answer);
    return error === null
      ? { kind: 'answer', answer }
      : { kind: 'error', error: classifyError(error, upstream, callerPays) };
  } catch {
    return { kind: 'error', error: brokenConnection(upstream) };
  }
}

/** Feeds a streamed answer to a reader, for a client that asked for an object. Never throws. */
export async function readStreamedAnswer(
  response: Response,
  reader: AnswerReader,
  upstream: Upstream,
  clock: Clock,
): Promise<void> {
  const silence = new Silence(clock);
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > MAX_COLLECTED_STREAM_BYTES) return reader.fail(tooLarge(upstream));
      const eventsBefore = reader.events;
      reader.push(chunk);
      if (reader.isOver) return;
      await silence.read(chunk.length, reader.events - eventsBefore);
    }
    reader.end();
  } catch {
    reader.broken(brokenConnection(upstream));
  }
}

function tooLarge(upstream: Upstream): ApiError {
  return apiError(
    'upstream_event_too_large',
    `${upstream.name} sent an answer larger than ${MAX_ANSWER_BYTES} bytes`,
  );
}

function tooNested(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent an answer of more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values`;
  return apiError('upstream_invalid', message);
}

function noObject(upstream: Upstream): ApiError {
  return apiError('upstream_invalid', `${upstream.name} answered with what is not a JSON object`);
}

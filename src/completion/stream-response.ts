/** Responds with a stream. The headers are sent with the first output or heartbeat; an error before them is an HTTP error. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { clientError, internalError } from '../http/respond.ts';
import type { RequestEnd } from '../metering/request-meter.ts';
import { type AttemptCallbacks, CanonicalStream, type EmptyEnd, type StreamEnd } from '../stream/pipeline.ts';
import type { StreamFailure } from '../stream/types.ts';
import { errorBeforeHead } from '../upstream/errors.ts';
import { openResponse } from '../upstream/fetch.ts';
import { type Attempt, withAttempts } from './attempt-runner.ts';
import {
  eventReaderOptions,
  passthroughOptions,
  type ResponseContext,
  responseHeaders,
  writerOptions,
} from './response-context.ts';

const STREAM_TYPE = 'text/event-stream; charset=utf-8';

export async function respondWithStream(response: ResponseContext): Promise<Response> {
  const { prepared, meter, runner, settle } = response;
  const { context } = prepared;
  // The stream has its own deadline timer.
  context.deadline.stop();
  const stream = new CanonicalStream({
    writer: prepared.client.streamWriter(writerOptions(prepared)),
    limits: context.settings.timers,
    clock: context.ports.clock,
    arrivedAt: context.arrivedAt,
    pipe: new IdentityTransformStream(),
    leaseMemory: context.leaseMemory,
    onWrite: (bytes) => meter.wrote(bytes),
  });
  // The runtime waits for the meter, which settles after both have ended.
  void stream.ended.then((end) => settle(requestEnd(end, response)));
  void pumpAttempts(stream, response);
  const early = await stream.opened;
  if (early !== null) {
    return clientError(prepared.client, context, headError(early, response), responseHeaders(response));
  }
  const headers = responseHeaders(response, runner.isDecided);
  headers['content-type'] = STREAM_TYPE;
  headers['cache-control'] = 'no-cache, no-transform';
  return new Response(stream.readable, { headers });
}

/** Moves the output of one attempt after the other into the stream, until one is final. Never rejects. */
async function pumpAttempts(stream: CanonicalStream, response: ResponseContext): Promise<void> {
  const { runner, prepared } = response;
  try {
    for await (const attempt of runner.attempts()) await pumpAttempt(stream, attempt, response);
    // Ends a stream whose client disconnected between two attempts.
    stream.fail(apiError('timeout', 'The request is over'));
  } catch (error) {
    stream.fail(internalError(prepared.context, error));
  }
}

async function pumpAttempt(
  stream: CanonicalStream,
  attempt: Attempt,
  response: ResponseContext,
): Promise<void> {
  const { prepared } = response;
  const { isStreamed, context } = prepared;
  const callbacks = attemptCallbacks(attempt, response);
  const passthroughWriter =
    attempt.facts.passthrough === null
      ? undefined
      : prepared.client.passthrough?.streamWriter(passthroughOptions(prepared, attempt));
  let pump = stream.begin(eventReaderOptions(prepared, attempt), callbacks, passthroughWriter);
  attempt.startTimeout((error) => pump.fail(error));
  const result = await attempt.response;
  if (result.kind === 'error') return pump.fail(result.error.error);
  const opened = await openResponse(result.value, attempt.upstream, isStreamed, context.leaseMemory);
  if (opened.kind === 'error') return pump.fail(opened.error);
  const body = opened.value;
  if (body.kind === 'events') return pump.pump(body.events);
  // Passthrough writes events as they come, and a JSON object has none: the client's own writer writes them.
  if (passthroughWriter !== undefined && !pump.isOver) {
    pump = stream.begin(eventReaderOptions(prepared, attempt), callbacks);
  }
  const written = pump.sendResponse(body.object);
  body.lease.endWork();
  await written;
  body.lease.release();
}

function attemptCallbacks(attempt: Attempt, response: ResponseContext): AttemptCallbacks {
  return {
    isReplaceable: attempt.isReplaceable,
    onOutput: () => response.runner.succeeded(attempt),
    onEmptyEnd: (failure) => {
      try {
        return emptyEnd(failure, attempt, response);
      } catch (error) {
        const failed = internalError(response.prepared.context, error);
        return { kind: 'over', failure: { error: failed, upstreamError: null } };
      }
    },
  };
}

/** An attempt ended without output: another one follows, or this end is final. */
function emptyEnd(failure: StreamFailure | null, attempt: Attempt, { runner }: ResponseContext): EmptyEnd {
  if (failure === null) {
    return runner.endedEmpty(attempt) ? { kind: 'replaced' } : { kind: 'over', failure };
  }
  const { error, upstreamError } = failure;
  const isIdle = upstreamError === null && error.code === 'stream_idle_timeout';
  const classified = errorBeforeHead(failure, attempt.upstream);
  const last = runner.failed(attempt, classified, isIdle);
  if (last === null) return { kind: 'replaced' };
  // After two refused APIs it is the error of the first.
  if (upstreamError === null) return { kind: 'over', failure: { error: last, upstreamError } };
  // An error frame has the upstream's own message. The classified message is for HTTP errors.
  const message = last.message === classified.message ? error.message : last.message;
  return { kind: 'over', failure: { error: { ...error, message }, upstreamError } };
}

/** The HTTP error of a stream that failed before its headers. */
function headError(failure: StreamFailure, { meter, runner }: ResponseContext): ApiError {
  if (failure.upstreamError === null) return failure.error;
  return withAttempts(errorBeforeHead(failure, runner.current.upstream), meter.attempts);
}

/** An error in place of a response means that only the reported tokens were used. A timeout does not mean this. */
function requestEnd(end: StreamEnd, { runner }: ResponseContext): RequestEnd {
  if (end.kind === 'finished' || end.kind === 'cancelled') return end;
  const error = errorBeforeHead(end.failure, runner.current.upstream);
  // The client has the frame's code; whose fault it is follows from the refusal.
  if (end.isOpen) return { kind: end.kind, error: { ...end.failure.error, ...classOf(error) } };
  return { kind: end.kind === 'timed_out' ? 'timed_out' : 'refused', error };
}

function classOf({ refusal, weirCode }: ApiError): Pick<ApiError, 'refusal' | 'weirCode'> {
  return { ...(refusal && { refusal }), ...(weirCode && { weirCode }) };
}

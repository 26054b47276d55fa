/** Answers with a stream: the head as soon as there is something to send, or the error that came first (H3). */

import { type ApiError, apiError } from '../canonical/error.ts';
import { clientError, internalError } from '../http/respond.ts';
import type { RequestEnd } from '../metering/request-meter.ts';
import { lastError } from '../routing/attempt-summary.ts';
import { type AttemptCallbacks, CanonicalStream, type EmptyEnd, type StreamEnd } from '../stream/pipeline.ts';
import type { StreamFailure } from '../stream/types.ts';
import { errorBeforeHead } from '../upstream/errors.ts';
import { answerOptions, passthroughOptions, writerOptions } from './answer-options.ts';
import type { Attempt } from './attempt.ts';
import { isEventStream, readPlainAnswer } from './collect.ts';
import { answerHeaders, type ResponseContext } from './response-context.ts';

const STREAM_TYPE = 'text/event-stream; charset=utf-8';

export async function respondWithStream(answering: ResponseContext): Promise<Response> {
  const { prepared, meter, runner } = answering;
  const { context } = prepared;
  // From here on the stream's own clocks run.
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
  // The runtime waits for the meter, which is settled when both are over.
  void stream.ended.then((end) => {
    meter.settle(requestEnd(end, answering));
    // An answer that ended has cancelled what its upstream may yet send.
    if (end.kind !== 'finished') runner.stop();
  });
  void feedAll(stream, answering);
  const early = await stream.opened;
  if (early !== null) {
    return clientError(prepared.client, context, headError(early, answering), answerHeaders(answering));
  }
  const headers = answerHeaders(answering, runner.isDecided);
  headers['content-type'] = STREAM_TYPE;
  headers['cache-control'] = 'no-cache, no-transform';
  return new Response(stream.readable, { headers });
}

/** Gives the stream one answer, or in its place the next one; never rejects. */
async function feedAll(stream: CanonicalStream, answering: ResponseContext): Promise<void> {
  const { runner, prepared } = answering;
  try {
    let attempt: Attempt | null = runner.current;
    while (attempt !== null) {
      await feed(stream, attempt, answering);
      attempt = await runner.next();
    }
    // Where the client left while nobody was asked, nothing has ended the stream.
    stream.fail(apiError('timeout', 'The request is over'));
  } catch (error) {
    stream.fail(internalError(prepared.context, error));
  }
}

/** Gives the stream an attempt's answer, in whichever form the upstream sent it. */
async function feed(stream: CanonicalStream, attempt: Attempt, answering: ResponseContext): Promise<void> {
  const { prepared, runner } = answering;
  const { upstream, facts, meter } = attempt;
  const turn: AttemptCallbacks = {
    isReplaceable: attempt.isReplaceable,
    onOutput: () => runner.succeeded(attempt),
    onEmptyEnd: (failure) => {
      try {
        return emptyEnd(failure, attempt, answering);
      } catch (error) {
        return {
          kind: 'over',
          failure: { error: internalError(prepared.context, error), upstreamError: null },
        };
      }
    },
  };
  const passthrough =
    facts.passthrough === null
      ? undefined
      : prepared.client.passthrough?.streamWriter(passthroughOptions(prepared, facts));
  let answer = stream.begin(answerOptions(prepared, facts, meter.accumulator), turn, passthrough);
  attempt.startTimeout((error) => answer.fail(error));
  const result = await attempt.response;
  if (result.kind === 'error') return answer.fail(result.error);
  const { response } = result;
  if (response.body !== null && isEventStream(response, true)) return answer.pump(response.body);
  const read = await readPlainAnswer(response, upstream, prepared.context.leaseMemory);
  if (read.kind === 'error') return answer.fail(read.error);
  // A lane passes events, and there are none: the client's own writer makes them.
  if (passthrough !== undefined && !answer.isOver) {
    answer = stream.begin(answerOptions(prepared, facts, meter.accumulator), turn);
  }
  const written = answer.plain(read.answer);
  read.lease.endWork();
  await written;
  read.lease.release();
}

/** What becomes of an answer without any output: the next target's takes its place, or it stands as it is. */
function emptyEnd(failure: StreamFailure | null, attempt: Attempt, { runner }: ResponseContext): EmptyEnd {
  if (failure === null) {
    return runner.endedEmpty(attempt) ? { kind: 'replaced' } : { kind: 'over', failure };
  }
  const { error, upstreamError } = failure;
  const isSilent = upstreamError === null && error.code === 'stream_idle_timeout';
  const classified = errorBeforeHead(failure, attempt.upstream);
  const last = runner.failed(attempt, classified, isSilent);
  if (last === null) return { kind: 'replaced' };
  // In a frame it is told as the upstream's own, which the classification for the head is not.
  const message = last.message === classified.message ? error.message : last.message;
  return { kind: 'over', failure: { error: { ...error, message }, upstreamError } };
}

/** The error with which a request is answered whose answer failed before its head (E1). */
function headError(failure: StreamFailure, { meter, runner }: ResponseContext): ApiError {
  if (failure.upstreamError === null) return failure.error;
  return lastError(errorBeforeHead(failure, runner.current.upstream), meter.attempts);
}

/** An error in the place of an answer means that no tokens were used but those that it reports; silence until a timeout means no such thing. */
function requestEnd(end: StreamEnd, { runner }: ResponseContext): RequestEnd {
  if (end.kind === 'finished' || end.kind === 'cancelled') return end;
  if (end.isOpen) return { kind: end.kind, error: end.failure.error };
  const error = errorBeforeHead(end.failure, runner.current.upstream);
  return { kind: end.kind === 'timed_out' ? 'timed_out' : 'refused', error };
}

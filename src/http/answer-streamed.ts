/** Answers with a stream: the head as soon as there is something to send, or the error that came first (H3). */

import type { RequestEnd } from '../metering/request-meter.ts';
import { CanonicalStream, type StreamEnd } from '../stream/canonical-stream.ts';
import type { UpstreamResult } from '../upstream/call.ts';
import { errorBeforeHead } from '../upstream/classify.ts';
import { isEventStream, readPlainAnswer } from '../upstream/collect.ts';
import { type Answering, answerHeaders } from './answering.ts';
import { answerOptions, type Exchange } from './exchange.ts';
import { errorResponse } from './respond.ts';

const STREAM_TYPE = 'text/event-stream; charset=utf-8';

export async function answerStreamed({ exchange, meter, call, abort }: Answering): Promise<Response> {
  const { context, upstream, callerPays } = exchange;
  const stream = new CanonicalStream({
    ...answerOptions(exchange, meter.tally),
    limits: context.settings.pacing,
    clock: context.ports.clock,
    arrivedAt: context.arrivedAt,
    fastPath: true,
    pipe: new IdentityTransformStream(),
    leaseMemory: context.leaseMemory,
    onWrite: (bytes) => meter.wrote(bytes),
  });
  context.waitUntil(
    stream.ended.then((end) => {
      meter.settle(requestEnd(end, exchange));
      // The upstream may go on after its answer's end; its connection must not.
      abort();
    }),
  );
  let upstreamHeaders = new Headers();
  const fed = call.then((result) => {
    upstreamHeaders = result.kind === 'answer' ? result.response.headers : result.headers;
    return feed(stream, result, exchange);
  });
  context.waitUntil(fed);
  const early = await stream.opened;
  const headers = answerHeaders(exchange, upstreamHeaders);
  if (early !== null) return errorResponse(errorBeforeHead(early, upstream, callerPays), headers);
  headers.set('content-type', STREAM_TYPE);
  headers.set('cache-control', 'no-cache, no-transform');
  return new Response(stream.readable, { headers });
}

/** Gives the stream its answer, in whichever form the upstream sent it. */
async function feed(stream: CanonicalStream, result: UpstreamResult, exchange: Exchange): Promise<void> {
  if (result.kind === 'error') return stream.fail(result.error);
  const { response } = result;
  if (response.body !== null && isEventStream(response, true)) return stream.pump(response.body);
  const { upstream, callerPays, context } = exchange;
  const read = await readPlainAnswer(response, upstream, callerPays, context.leaseMemory);
  if (read.kind === 'error') return stream.fail(read.error);
  const written = stream.plain(read.answer);
  read.lease.end();
  await written;
  read.lease.release();
}

/** An error in the place of an answer means that no tokens were used; silence until a timeout means no such thing. */
function requestEnd(end: StreamEnd, { upstream, callerPays }: Exchange): RequestEnd {
  if (end.kind === 'finished' || end.kind === 'cancelled') return end;
  if (end.isOpen) return { kind: end.kind, error: end.failure.error };
  const error = errorBeforeHead(end.failure, upstream, callerPays);
  return { kind: end.kind === 'timed_out' ? 'timed_out' : 'refused', error };
}

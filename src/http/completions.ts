/** The four completion routes: the upstream's answer, its way to the client and its way into the ledger. */
import { estimatePromptTokens } from '../metering/estimate.ts';
import { RequestMeter } from '../metering/request-meter.ts';
import { Tally } from '../metering/tally.ts';
import type { Route } from '../providers/provider.ts';
import { canonicalStream } from '../stream/canonical-stream.ts';
import { CompletionBuilder } from '../stream/completion-builder.ts';
import { FrameWriter } from '../stream/frame-writer.ts';
import { callUpstream, pickResponseHeaders } from '../upstream/call.ts';
import { collectAnswer, isEventStream } from '../upstream/collect.ts';
import type { RequestContext } from './context.ts';
import { answerOptions, type Exchange, openExchange, upstreamRequest } from './exchange.ts';
import { errorResponse, headerValue, JSON_TYPE } from './respond.ts';

const STREAM_TYPE = 'text/event-stream; charset=utf-8';

const encoder = new TextEncoder();

export async function handleCompletion(
  request: Request,
  route: Route,
  context: RequestContext,
): Promise<Response> {
  const opened = await openExchange(request, route, context);
  return opened.kind === 'error' ? errorResponse(opened.error) : runExchange(opened.exchange);
}

/** Asks the upstream and answers. From here on exactly one record is written, whatever happens (M1). */
async function runExchange(exchange: Exchange): Promise<Response> {
  const { context, request, upstream } = exchange;
  const meter = openMeter(exchange);
  context.waitUntil(meter.settled);
  const abort = new AbortController();
  request.signal.addEventListener('abort', () => {
    meter.settle({ kind: 'cancelled' });
    abort.abort();
  });
  const result = await callUpstream(context.ports.fetch, {
    ...upstreamRequest(exchange),
    upstream,
    clientHeaders: request.headers,
    callerPays: exchange.callerPays,
    signal: abort.signal,
  });
  if (result.kind === 'error') {
    meter.settle({ kind: 'refused', error: result.error });
    return errorResponse(result.error, answerHeaders(exchange, result.headers));
  }
  const { response } = result;
  const { body } = response;
  if (!exchange.isStreamed || body === null || !isEventStream(response))
    return answerWhole(exchange, response, meter);
  const stream = canonicalStream(body, {
    ...answerOptions(exchange, meter.tally),
    onWrite: (bytes) => meter.wrote(bytes),
  });
  context.waitUntil(
    stream.ended.then((end) => {
      meter.settle(end);
      // The upstream may go on after its answer's end; its connection must not.
      abort.abort();
    }),
  );
  return new Response(stream.readable, { headers: streamHeaders(exchange, response) });
}

/** An answer that is read whole first: the client did not ask for a stream, or the upstream did not send one. */
async function answerWhole(exchange: Exchange, response: Response, meter: RequestMeter): Promise<Response> {
  const { isStreamed, policies, callerPays } = exchange;
  const sink = isStreamed ? new FrameWriter(policies.errorFrames) : new CompletionBuilder();
  const error = await collectAnswer(response, answerOptions(exchange, meter.tally), sink, callerPays);
  if (error !== null) {
    meter.settle({ kind: 'failed', error });
    return errorResponse(error, answerHeaders(exchange, pickResponseHeaders(response.headers)));
  }
  const bytes = encoder.encode(sink.take());
  meter.wrote(bytes.length);
  meter.settle({ kind: 'finished' });
  if (isStreamed) return new Response(bytes, { headers: streamHeaders(exchange, response) });
  const headers = answerHeaders(exchange, pickResponseHeaders(response.headers));
  headers.set('content-type', JSON_TYPE);
  return new Response(bytes, { headers });
}

function openMeter({ context, caller, target, route, body }: Exchange): RequestMeter {
  const { ports, requestId, arrivedAt } = context;
  const facts = {
    requestId,
    keyId: caller.keyId,
    provider: target.provider.id,
    model: target.model,
    route,
    arrivedAt,
  };
  return new RequestMeter(facts, new Tally(ports.now, estimatePromptTokens(body)), ports);
}

function streamHeaders(exchange: Exchange, response: Response): Headers {
  const headers = answerHeaders(exchange, pickResponseHeaders(response.headers));
  headers.set('content-type', STREAM_TYPE);
  headers.set('cache-control', 'no-cache, no-transform');
  return headers;
}

/** Says who answered (H1), beside what of the upstream's headers goes on (H2). */
function answerHeaders({ target }: Exchange, headers: Headers): Headers {
  headers.set('x-weir-provider', target.provider.id);
  headers.set('x-weir-model', headerValue(target.model));
  return headers;
}

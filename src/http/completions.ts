/** The four completion routes: a request that may be sent on is asked of its upstream and metered, streamed or whole. */
import { RequestMeter } from '../metering/request-meter.ts';
import { Tally } from '../metering/tally.ts';
import type { Route } from '../providers/provider.ts';
import { callUpstream } from '../upstream/call.ts';
import { answerStreamed } from './answer-streamed.ts';
import { answerWhole } from './answer-whole.ts';
import type { RequestContext } from './context.ts';
import { type Exchange, type ExchangeResult, openExchange } from './exchange.ts';
import { internalError } from './internal-error.ts';
import { errorResponse } from './respond.ts';

type Opened = Extract<ExchangeResult, { kind: 'exchange' }>;

export async function handleCompletion(
  request: Request,
  route: Route,
  context: RequestContext,
  pathModel?: string,
): Promise<Response> {
  const opened = await openExchange(request, route, context, pathModel);
  if (opened.kind === 'exchange') return runExchange(opened, request);
  return errorResponse(opened.error, opened.headers);
}

/** Asks the upstream and answers. From here on exactly one record is written, whatever happens (M1). */
async function runExchange(
  { exchange, upstreamUrl, upstreamBody, lease }: Opened,
  request: Request,
): Promise<Response> {
  const { context, upstream, callerPays } = exchange;
  const meter = openMeter(exchange);
  context.waitUntil(meter.settled);
  // Nobody waits for it: the prices are there when the answer ends.
  context.waitUntil(context.prices.load());
  if (callerPays) context.waitUntil(rememberCaller(meter, context));
  const abort = new AbortController();
  request.signal.addEventListener('abort', () => {
    meter.settle({ kind: 'cancelled' });
    abort.abort();
  });
  const call = callUpstream(context.ports.fetch, {
    upstream,
    url: upstreamUrl,
    body: upstreamBody,
    isStreamed: exchange.isStreamed,
    clientHeaders: request.headers,
    callerId: exchange.caller.keyId,
    staticHeaders: exchange.target.headers,
    callerPays,
    signal: abort.signal,
  });
  lease.end();
  void call.then(lease.release);
  const answer = exchange.isStreamed ? answerStreamed : answerWhole;
  try {
    return await answer({ exchange, meter, call, abort: () => abort.abort() });
  } catch (error) {
    // Whatever broke: an answer for the client, one record, and the upstream is cancelled (B5).
    const failure = internalError(context, error);
    meter.settle({ kind: 'failed', error: failure });
    abort.abort();
    return errorResponse(failure);
  }
}

function openMeter({
  context,
  caller,
  target,
  route,
  dropped,
  changed,
  promptTokens,
  admission,
}: Exchange): RequestMeter {
  const { ports, prices, requestId, arrivedAt } = context;
  const { clock, log } = ports;
  const facts = {
    requestId,
    keyId: caller.keyId,
    asked: target.asked,
    provider: target.provider.id,
    model: target.model,
    priceIds: target.priceIds,
    route,
    dropped,
    changed,
    arrivedAt,
  };
  const tally = new Tally(clock.now, promptTokens);
  const records = admission?.records ?? context.records;
  return new RequestMeter(facts, tally, { records, prices, log, now: clock.now });
}

/** A caller whose credential an upstream took has records to list, and is remembered for `GET /v1/usage`. */
async function rememberCaller(meter: RequestMeter, { knownCallers }: RequestContext): Promise<void> {
  const record = await meter.settled;
  if (record.status === 'finished') await knownCallers.add(record.key_id);
}

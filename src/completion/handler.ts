/** The routes of completions, in every client's dialect: a request that may be sent on is asked of its upstream and metered, streamed or whole. */

import type { RequestContext } from '../http/context.ts';
import { internalError } from '../http/internal-error.ts';
import { clientError } from '../http/respond.ts';
import { RequestMeter } from '../metering/request-meter.ts';
import { skippedAttempt } from '../routing/attempt-summary.ts';
import { endRequestSpan, inRequestSpan, type Span } from '../tracing/spans.ts';
import { Asking, recordedFacts } from './attempt-runner.ts';
import { answerWhole } from './json-response.ts';
import { type Exchange, type ExchangeResult, openExchange } from './prepare.ts';
import type { TargetFacts } from './replayable-request.ts';
import type { ClientRoute } from './request.ts';
import { answerStreamed } from './stream-response.ts';

type Opened = Extract<ExchangeResult, { kind: 'exchange' }>;

export async function handleCompletion<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: RequestContext,
  pathModel?: string,
): Promise<Response> {
  const opened = await openExchange(request, clientRoute, context, pathModel);
  if (opened.kind === 'error') return clientError(clientRoute.client, context, opened.error, opened.headers);
  const { tracing } = context.ports;
  return await inRequestSpan(tracing, opened.exchange, (span) => runExchange(opened, request, span));
}

/** Asks the upstreams and answers. From here on exactly one record is written, whatever happens (M1). */
async function runExchange(
  { exchange, first, held, passes }: Opened,
  request: Request,
  span: Span | null,
): Promise<Response> {
  const { context, callerPays } = exchange;
  const meter = openMeter(exchange, first.facts, span);
  context.known.isSentOn = true;
  context.waitUntil(meter.settled);
  // Nobody waits for it: the prices are there when the answer ends.
  if (context.prices.isStale) context.waitUntil(context.prices.load());
  if (callerPays) context.waitUntil(rememberCaller(meter, context));
  const tracing = span === null ? null : context.ports.tracing;
  const asking = new Asking(
    { exchange, meter, passes, held, clientHeaders: request.headers, tracing },
    first,
  );
  request.signal.addEventListener('abort', () => {
    meter.settle({ kind: 'cancelled' });
    asking.stop();
  });
  const answer = exchange.isStreamed ? answerStreamed : answerWhole;
  try {
    return await answer({ exchange, meter, asking });
  } catch (error) {
    // Whatever broke: an answer for the client, one record, and the upstream is cancelled (B5).
    const failure = internalError(context, error);
    meter.settle({ kind: 'failed', error: failure });
    asking.stop();
    return clientError(exchange.client, context, failure);
  }
}

function openMeter(exchange: Exchange, first: TargetFacts, span: Span | null): RequestMeter {
  const { context, caller, asked, leftOut, route, promptTokens, admission } = exchange;
  const client = exchange.client.id;
  const { ports, prices, requestId, arrivedAt } = context;
  const { clock, log } = ports;
  const facts = { requestId, keyId: caller.keyId, asked, route, client, arrivedAt, promptTokens };
  const records = admission?.records ?? context.records;
  const skipped = leftOut.map(skippedAttempt);
  return new RequestMeter(facts, skipped, recordedFacts(first), {
    records,
    prices,
    log,
    now: clock.now,
    startTimer: clock.startTimer,
    onRecord: (record, served) => {
      if (span !== null) endRequestSpan(span, record, served);
    },
  });
}

/** A caller whose credential an upstream took has records to list, and is remembered for `GET /v1/usage`. */
async function rememberCaller(meter: RequestMeter, { knownCallers }: RequestContext): Promise<void> {
  const record = await meter.settled;
  if (record.status === 'finished') await knownCallers.add(record.key_id);
}

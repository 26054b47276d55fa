/** The routes of completions, in every client's dialect: a request that may be sent on is asked of its upstream and metered, streamed or whole. */

import type { RequestContext } from '../http/context.ts';
import { clientError, internalError } from '../http/respond.ts';
import { RequestMeter } from '../metering/request-meter.ts';
import { skippedAttempt } from '../routing/attempt-summary.ts';
import { endRequestSpan, inRequestSpan, type Span } from '../tracing/spans.ts';
import type { CompletionContext } from './admission.ts';
import { AttemptRunner, attemptFacts } from './attempt-runner.ts';
import { respondWithJson } from './json-response.ts';
import { type PreparedCompletion, type PrepareResult, prepareCompletion } from './prepare.ts';
import type { TargetFacts } from './replayable-request.ts';
import type { ClientRoute } from './request.ts';
import { respondWithStream } from './stream-response.ts';

type Opened = Extract<PrepareResult, { kind: 'exchange' }>;

export async function handleCompletion<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  pathModel?: string,
): Promise<Response> {
  const opened = await prepareCompletion(request, clientRoute, context, pathModel);
  if (opened.kind === 'error') return clientError(clientRoute.client, context, opened.error, opened.headers);
  const { tracing } = context.ports;
  const { route, requestedModel, isStreamed } = opened.prepared;
  return await inRequestSpan(tracing, { route, asked: requestedModel, isStreamed }, (span) =>
    runExchange(opened, request, span),
  );
}

/** Asks the upstreams and answers. From here on exactly one record is written, whatever happens (M1). */
async function runExchange(
  { prepared, first, replayable, schedule }: Opened,
  request: Request,
  span: Span | null,
): Promise<Response> {
  const { context, callerPays } = prepared;
  const meter = openMeter(prepared, first.facts, span);
  context.known.isSentOn = true;
  context.waitUntil(meter.settled);
  // Nobody waits for it: the prices are there when the answer ends.
  if (context.prices.isStale) context.waitUntil(context.prices.load());
  if (callerPays) context.waitUntil(rememberCaller(meter, context));
  const tracing = span === null ? null : context.ports.tracing;
  const runner = new AttemptRunner(
    { prepared, meter, schedule, replayable, clientHeaders: request.headers, tracing },
    first,
  );
  request.signal.addEventListener('abort', () => {
    meter.settle({ kind: 'cancelled' });
    runner.stop();
  });
  const answer = prepared.isStreamed ? respondWithStream : respondWithJson;
  try {
    return await answer({ prepared, meter, runner });
  } catch (error) {
    // Whatever broke: an answer for the client, one record, and the upstream is cancelled (B5).
    const failure = internalError(context, error);
    meter.settle({ kind: 'failed', error: failure });
    runner.stop();
    return clientError(prepared.client, context, failure);
  }
}

function openMeter(prepared: PreparedCompletion, first: TargetFacts, span: Span | null): RequestMeter {
  const { context, caller, requestedModel, skipped, route, promptTokens, admission } = prepared;
  const client = prepared.client.id;
  const { ports, prices, requestId, arrivedAt } = context;
  const { clock, log } = ports;
  const facts = {
    requestId,
    keyId: caller.keyId,
    asked: requestedModel,
    route,
    client,
    arrivedAt,
    promptTokens,
  };
  const records = admission?.records ?? context.records;
  const skippedAttempts = skipped.map(skippedAttempt);
  return new RequestMeter(facts, skippedAttempts, attemptFacts(first), {
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

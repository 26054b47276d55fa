/** Handles a completion request of any client protocol: prepares it, runs attempts, responds, and settles exactly one usage record. */
import type { RequestContext } from '../http/context.ts';
import { clientError, internalError } from '../http/respond.ts';
import { type RequestEnd, RequestMeter } from '../metering/request-meter.ts';
import type { CompletionContext, RequestSpan } from './admission.ts';
import { AttemptRunner, attemptFacts, skippedAttempt } from './attempt-runner.ts';
import { respondWithEmbeddings } from './embeddings-response.ts';
import { respondWithJson } from './json-response.ts';
import { type PreparedCompletion, type PreparedRequest, prepareCompletion } from './prepare.ts';
import type { TargetFacts } from './replayable-request.ts';
import type { ClientRoute, Given } from './request.ts';
import { respondWithStream } from './stream-response.ts';

/**
 * Handles a completion: the response of the last attempt, or the error of a request that is not sent, in the client's protocol.
 * @param given what another feature has read of the request already
 */
export async function handleCompletion<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  given: Given = {},
): Promise<Response> {
  const result = await prepareCompletion(request, clientRoute, context, given);
  if (result.kind === 'error') {
    const { error, headers } = result.error;
    return clientError(clientRoute.client, context, error, headers);
  }
  const { route, requestedModel, isStreamed } = result.value.prepared;
  return await context.tracing.inRequestSpan({ route, requestedModel, isStreamed }, (span) =>
    runCompletion(result.value, request, context, span),
  );
}

/** Calls the upstreams and responds. From here on exactly one usage record is written, whatever happens. */
async function runCompletion(
  { prepared, firstRequest, replayable, schedule }: PreparedRequest,
  request: Request,
  { onSent, abortError }: Pick<CompletionContext, 'onSent' | 'abortError'>,
  span: RequestSpan | null,
): Promise<Response> {
  const { context, callerPays } = prepared;
  const meter = startMeter(prepared, firstRequest.facts, span);
  context.known.isSentOn = true;
  const onAttempt = () => onSent?.(meter.interruptedRecord);
  onAttempt();
  context.waitUntil(meter.settled);
  // Prices are needed when the response ends, so the request does not wait for them.
  if (context.prices.isStale) context.waitUntil(context.prices.load());
  if (callerPays) context.waitUntil(rememberCaller(meter, context));
  const clientHeaders = request.headers;
  const runner = new AttemptRunner(
    { prepared, meter, schedule, replayable, clientHeaders, span, onAttempt },
    firstRequest,
  );
  const settle = (end: RequestEnd) => {
    meter.settle(end);
    if (end.kind === 'timed_out') runner.expired();
    if (end.kind === 'cancelled') runner.abandoned();
    // Cancels what the upstream may still send.
    if (end.kind !== 'finished') runner.stop();
  };
  request.signal.addEventListener('abort', () => {
    const error = abortError?.() ?? null;
    settle(error === null ? { kind: 'cancelled' } : { kind: 'failed', error });
  });
  const respond = respondOf(prepared);
  try {
    return await respond({ prepared, meter, runner, settle });
  } catch (error) {
    const failure = internalError(context, error);
    settle({ kind: 'failed', error: failure });
    return clientError(prepared.client, context, failure);
  }
}

function respondOf({ route, isStreamed }: PreparedCompletion) {
  if (route === 'embeddings') return respondWithEmbeddings;
  return isStreamed ? respondWithStream : respondWithJson;
}

function startMeter(
  prepared: PreparedCompletion,
  first: TargetFacts,
  span: RequestSpan | null,
): RequestMeter {
  const { context, caller, requestedModel, skipped, route, promptTokens, admission, attribution } = prepared;
  const client = prepared.client.id;
  const { ports, prices, requestId, arrivedAt } = context;
  const { clock, log } = ports;
  const { keyId } = caller;
  const facts = {
    requestId,
    keyId,
    asked: requestedModel,
    route,
    client,
    arrivedAt,
    promptTokens,
    attribution,
    faultContext: { isAlias: prepared.alias !== null, callerPays: prepared.callerPays },
  };
  return new RequestMeter(facts, skipped.map(skippedAttempt), attemptFacts(first), {
    records: context.records,
    addCharge: admission?.addCharge ?? ((record) => record),
    prices,
    log,
    now: clock.now,
    startTimer: clock.startTimer,
    onRecord: (record, served) => span?.end(record, served),
  });
}

/** With `AUTH=passthrough`, `GET /v1/usage` accepts only callers whose credential an upstream has accepted before. */
async function rememberCaller(meter: RequestMeter, { knownCallers }: RequestContext): Promise<void> {
  const record = await meter.settled;
  if (record.status === 'finished') await knownCallers.add(record.key_id);
}

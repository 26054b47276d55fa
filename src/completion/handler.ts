/** Handles a completion request of any client protocol: prepares it, runs attempts, responds, and settles exactly one usage record. */
import { type Answer, internalError, refused } from '../http/respond.ts';
import { onDisconnect } from '../shared/disconnection.ts';
import type { CompletionContext, RequestSpan } from './admission.ts';
import { AttemptRunner } from './attempt-runner.ts';
import { respondWithEmbeddings } from './embeddings-response.ts';
import { respondWithJson } from './json-response.ts';
import { type CompletionRequest, type PreparedRequest, prepareCompletion } from './prepare.ts';
import type { ClientRoute, KnownRequest } from './request.ts';
import { respondWithStream } from './stream-response.ts';

/**
 * Handles a completion: the response of the last attempt, or the error of a request that is not sent, in the client's protocol.
 * @param given what another feature has read of the request already
 */
export async function handleCompletion<Session>(
  httpRequest: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  given: KnownRequest = {},
): Promise<Answer> {
  const prepared = await prepareCompletion(httpRequest, clientRoute, context, given);
  if (prepared.kind === 'error') {
    const { error, headers } = prepared.error;
    return refused(clientRoute.client, error, headers);
  }
  return await context.tracing.inRequestSpan(prepared.value.request, (span) =>
    runCompletion(prepared.value, httpRequest.signal, span),
  );
}

/** Calls the upstreams and responds. From here on exactly one usage record is written, whatever happens. */
async function runCompletion(
  prepared: PreparedRequest,
  signal: AbortSignal,
  span: RequestSpan | null,
): Promise<Answer> {
  const { request } = prepared;
  const { context, callerPays, client } = request;
  context.known.isSentOn = true;
  const runner = new AttemptRunner(prepared, span);
  context.waitUntil(runner.meter.settled);
  // Prices are needed when the response ends, so the request does not wait for them.
  if (context.prices.isStale) context.waitUntil(context.prices.load());
  if (callerPays) context.waitUntil(rememberCaller(runner));
  const stopWaiting = onDisconnect(signal, () => {
    const error = context.abortError?.() ?? null;
    runner.settle(error === null ? { kind: 'cancelled' } : { kind: 'failed', error });
  });
  void runner.meter.settled.then(stopWaiting);
  try {
    return await respondOf(request)(runner);
  } catch (error) {
    const failure = internalError(context, error);
    runner.settle({ kind: 'failed', error: failure });
    return refused(client, failure);
  }
}

function respondOf({ route, isStreamed }: CompletionRequest) {
  if (route === 'embeddings') return respondWithEmbeddings;
  return isStreamed ? respondWithStream : respondWithJson;
}

/** With `AUTH=passthrough`, `GET /v1/usage` accepts only callers whose credential an upstream has accepted before. */
async function rememberCaller({ meter, request }: AttemptRunner): Promise<void> {
  const record = await meter.settled;
  if (record.status === 'finished') await request.context.callers.accepted.add(record.key_id);
}

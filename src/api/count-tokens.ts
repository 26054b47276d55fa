/** Estimates the tokens of a prompt without sending it to a provider, for the token-counting routes of Messages and Responses. */

import { type ClientRoute, readCompletionRequest } from '../completion/request.ts';
import type { RequestContext } from '../http/context.ts';
import { identifyCaller } from '../http/request.ts';
import { clientError, jsonResponse } from '../http/respond.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';

/** @param view the response's body in the client protocol */
export async function handleCountTokens<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: RequestContext,
  view: (tokens: number) => object,
): Promise<Response> {
  const { client } = clientRoute;
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return clientError(client, context, identified.error);
  const read = await readCompletionRequest(request, clientRoute, context);
  if (read.kind === 'error') return clientError(client, context, read.error);
  const tokens = estimatePromptTokens(read.value.canonicalBody);
  read.value.lease.release();
  return jsonResponse(view(tokens));
}

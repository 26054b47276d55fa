/** Reads and checks a completion request's body: an invalid one is refused with what to do, before any upstream is asked. */
import type { ApiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { readRequestBody } from '../http/request-body.ts';
import { type BoundProtocol, bindSession, type ClientProtocol } from '../protocols/shared/client-protocol.ts';
import type { Route } from '../providers/provider.ts';
import { type RequestedModels, readRequestedModels } from '../routing/targets.ts';
import type { JsonObject } from '../shared/json.ts';
import type { Lease } from '../stream/memory.ts';

/** What a path stands for: which of a provider's endpoints is asked, and in which dialect the client speaks. */
export interface ClientRoute<Session> {
  readonly route: Route;
  readonly client: ClientProtocol<Session>;
}

/** What was read of a request, which may be sent on. */
export interface CompletionRequest {
  /** The canonical request, and the body as the client sent it. */
  readonly body: JsonObject;
  readonly sent: JsonObject;
  /** Of the latter, as it came. */
  readonly sentBytes: number;
  /** Why no provider of another dialect can be asked, or null. */
  readonly translationError: ApiError | null;
  /** It may be asked of one target alone. */
  readonly isPinned: boolean;
  /** Names of what it lacks of the client's. */
  readonly dropped: readonly string[];
  readonly client: BoundProtocol;
  readonly names: RequestedModels;
  /** The work on it has begun: to be released, or its work ended and the rest released later. */
  readonly lease: Lease;
}

export type CompletionRequestResult =
  | ({ readonly kind: 'body' } & CompletionRequest)
  | { readonly kind: 'error'; readonly error: ApiError };

/** @param pathModel the model, where the path names it */
export async function readCompletionRequest<Session>(
  request: Request,
  { route, client }: ClientRoute<Session>,
  context: RequestContext,
  pathModel?: string,
): Promise<CompletionRequestResult> {
  const sent = await readRequestBody(request, context.settings.maxRequestBytes, context);
  if (sent.kind === 'error') return sent;
  const { lease, bytes } = sent.value;
  const asked = pathModel === undefined ? sent.value.body : { ...sent.value.body, model: pathModel };
  const named = readRequestedModels(asked, route);
  if (named.kind === 'error') {
    lease.release();
    return named;
  }
  const read = client.readRequest(asked);
  if (read.kind === 'error') {
    lease.release();
    return read;
  }
  const { body, dropped, translationError, isPinned, session } = read.value;
  const names = named.value;
  const answering = bindSession(client, session);
  return {
    ...{ kind: 'body', body, sent: asked, sentBytes: bytes, dropped, translationError, isPinned },
    ...{ client: answering, names, lease },
  };
}

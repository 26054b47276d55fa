/** The routes of stored responses: creation with state, retrieval, resumption, cancellation, deletion, and input items. */
import type { Caller } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { ClientRoute } from '../completion/request.ts';
import { identifyAdmin, identifyCaller, readRequestBody } from '../http/request.ts';
import { clientError, internalError, JSON_TYPE, jsonResponse } from '../http/respond.ts';
import { responses } from '../protocols/openai-responses/client.ts';
import { readResponsesRequest } from '../protocols/openai-responses/client-request.ts';
import type { ResponsesSession } from '../protocols/openai-responses/session.ts';
import type { Route } from '../routes.ts';
import { type JsonObject, omit, readArray, readText } from '../shared/json.ts';
import { ok } from '../shared/result.ts';
import {
  type Continued,
  continueConversation,
  isReference,
  isResponseId,
  pageOfItems,
} from './conversation.ts';
import { responseId } from './durable-response.ts';
import { storeForeground } from './foreground.ts';
import {
  AFTER_HEADER,
  type Keeping,
  OWNER_HEADER,
  type ResponseNamespace,
  type ResponseStub,
  type StoredResponse,
} from './response-calls.ts';

const DAY_MS = 86_400_000;
/** How long a background response that is not stored stays after its end: developers.openai.com/api/docs/guides/background (2026-11). */
const UNSTORED_MS = 10 * 60_000;
/** The end of a foreground response waits no longer for its object. */
const MAX_STORE_MS = 2000;
/** How long clients wait between two reads of a running response. */
const POLL_AFTER_MS = 1000;

/** Responses as a client protocol where the gateway keeps them: every request is translated, so that any target can go on. */
const { passthrough: _, ...translated } = responses;
export const STORED_RESPONSES: ClientRoute<ResponsesSession> = {
  route: 'chat',
  client: {
    ...translated,
    readRequest: (body) =>
      ok(
        readResponsesRequest(omit(body, 'previous_response_id', 'background', 'store'), {
          previousId: readText(body.previous_response_id) ?? null,
          isStored: body.store !== false,
          isBackground: body.background === true,
        }),
      ),
  },
};

const STATELESS_RESPONSES: ClientRoute<ResponsesSession> = { route: 'chat', client: responses };

/** @param objects the objects of responses (`WEIR_RESPONSES`) */
export function durableRoutes(objects: ResponseNamespace): readonly Route[] {
  const handle = (request: Request, context: CompletionContext, id = '') =>
    handleStored(request, context, { objects, path: id });
  return [
    {
      name: 'responses',
      client: responses,
      path: '/responses',
      methods: { POST: (request, context) => createResponse(request, context, objects) },
    },
    {
      path: '/responses/:id+',
      methods: {
        GET: (request, context, { id }) => handle(request, context, id),
        POST: (request, context, { id }) => handle(request, context, id),
        DELETE: (request, context, { id }) => handle(request, context, id),
      },
      isListed: false,
    },
  ];
}

function refuse(context: CompletionContext, error: ApiError): Response {
  return clientError(responses, context, error);
}

async function createResponse(
  request: Request,
  context: CompletionContext,
  objects: ResponseNamespace,
): Promise<Response> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return refuse(context, identified.error);
  const caller = identified.value;
  const { settings, requestId, ports } = context;
  const read = await readRequestBody(request, settings.maxRequestBytes, context);
  if (read.kind === 'error') return refuse(context, read.error);
  const { body, lease } = read.value;
  let continued: Continued | null = null;
  if (isKept(body) || continuesState(body)) {
    try {
      const result = await continueConversation(body, {
        objects,
        owner: ownerOf(caller),
        maxChars: settings.maxRequestBytes,
        responseId: responseId(requestId),
      });
      if (result.kind === 'error') {
        lease.release();
        return refuse(context, result.error);
      }
      continued = result.value;
    } catch (error) {
      lease.release();
      return refuse(context, unreachable(context, error));
    }
  }
  if (continued !== null && body.background === true) {
    lease.release();
    return runInBackground(request, context, { objects, caller, continued });
  }
  // The request has passed the limiter.
  const identifiedContext = { ...context, hostCaller: caller, ports: { ...ports, limiter: null } };
  const given = { body: { ...read.value, body: continued?.body ?? body } };
  const route = continued === null ? STATELESS_RESPONSES : STORED_RESPONSES;
  const response = await handleCompletion(request, route, identifiedContext, given);
  if (continued === null || !isKept(body) || !response.ok) return response;
  const keeping = keepingOf(continued, caller, context);
  return storeForeground(response, body.stream === true, (events) =>
    storeInTime(() => objects.getByName(responseId(requestId)).put({ ...keeping, events }), context),
  );
}

/** OpenAI's default is to store. */
function isKept(body: JsonObject): boolean {
  return body.store !== false || body.background === true;
}

function continuesState(body: JsonObject): boolean {
  return readText(body.previous_response_id) !== undefined || readArray(body.input).some(isReference);
}

/** A response belongs to the key that made it. */
function ownerOf({ keyId }: Caller): string {
  return keyId;
}

function keepingOf({ body, input, chain }: Continued, caller: Caller, context: CompletionContext): Keeping {
  const { responsesDays, responseBytes } = context.settings;
  return {
    owner: ownerOf(caller),
    input,
    chain,
    keptMs: body.store === false ? UNSTORED_MS : responsesDays * DAY_MS,
    maxBytes: responseBytes,
  };
}

/** Whether the call succeeds in time. Never rejects. */
async function storeInTime(put: () => Promise<void>, context: CompletionContext): Promise<boolean> {
  const { ports, requestId } = context;
  const late = Promise.withResolvers<string>();
  const cancelTimer = ports.clock.startTimer(MAX_STORE_MS, () =>
    late.resolve(`No answer in ${MAX_STORE_MS} ms`),
  );
  const stored = put().then(
    () => null,
    (error: unknown) => String(error),
  );
  const reason = await Promise.race([stored, late.promise]);
  cancelTimer();
  if (reason === null) return true;
  ports.log({ event: 'response_not_stored', request_id: requestId, reason });
  return false;
}

interface Background {
  readonly objects: ResponseNamespace;
  readonly caller: Caller;
  readonly continued: Continued;
}

async function runInBackground(
  { headers }: Request,
  context: CompletionContext,
  { objects, caller, continued }: Background,
): Promise<Response> {
  const { requestId, arrivedAt } = context;
  const object = objects.getByName(responseId(requestId));
  try {
    const started = await object.start({
      ...keepingOf(continued, caller, context),
      requestId,
      caller,
      arrivedAt,
      headers: [...headers].filter(([name]) => !OWN_HEADERS.has(name)),
      body: JSON.stringify(continued.body),
    });
    if (started.kind === 'refused') {
      const { status, body } = started;
      return new Response(body, { status, headers: started.headers.map(([name, value]) => [name, value]) });
    }
    context.known.isSentOn = true;
    if (continued.body.stream === true) return await eventStream(object, ownerOf(caller), -1);
    return new Response(started.response, { headers: { 'content-type': JSON_TYPE, ...POLL } });
  } catch (error) {
    return refuse(context, unreachable(context, error));
  }
}

/** Headers of the client's request that concern its connection, or are secrets that the object does not need. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'content-length',
  'x-api-key',
  'cf-access-jwt-assertion',
]);
const POLL = { 'openai-poll-after-ms': String(POLL_AFTER_MS) };

async function eventStream(object: ResponseStub, owner: string, startingAfter: number): Promise<Response> {
  const headers = { [OWNER_HEADER]: owner, [AFTER_HEADER]: String(startingAfter) };
  const response = await object.fetch(new Request('https://weir-responses/', { headers }));
  // A copy, because the headers of a fetched response cannot be changed.
  return new Response(response.body, response);
}

interface StoredRequest {
  readonly objects: ResponseNamespace;
  /** Below `/responses/`. */
  readonly path: string;
}

async function handleStored(
  request: Request,
  context: CompletionContext,
  { objects, path }: StoredRequest,
): Promise<Response> {
  const identified = await identifyCaller(request, context);
  const [id = '', action = '', ...rest] = path.replace(/\/+$/, '').split('/');
  const route = rest.length > 0 ? undefined : ACTIONS[`${request.method} ${action}`];
  if (identified.kind === 'error') {
    // The admin owns no response.
    const admin = await identifyAdmin(request, context);
    const isByAdmin = admin.kind === 'ok' && admin.value;
    return refuse(context, isByAdmin ? notFound(id) : identified.error);
  }
  if (route === undefined) return refuse(context, noRoute(request.method, id));
  if (!isResponseId(id)) return refuse(context, notFound(id));
  try {
    const owner = ownerOf(identified.value);
    const { searchParams } = new URL(request.url);
    const result = await route({ object: objects.getByName(id), owner, id, query: searchParams });
    return result instanceof Response ? result : refuse(context, result);
  } catch (error) {
    return refuse(context, unreachable(context, error));
  }
}

interface Action {
  readonly object: ResponseStub;
  readonly owner: string;
  readonly id: string;
  readonly query: URLSearchParams;
}

const ACTIONS: Readonly<Record<string, (action: Action) => Promise<Response | ApiError>>> = {
  'GET ': (action) => (action.query.get('stream') === 'true' ? resume(action) : retrieve(action)),
  'GET input_items': async ({ object, owner, id, query }) => {
    const conversation = await object.conversation(owner);
    return conversation === null ? notFound(id) : jsonResponse(pageOfItems(conversation.input, query));
  },
  'POST cancel': async ({ object, owner, id }) => {
    const cancelled = await object.cancel(owner);
    if (cancelled.kind === 'none') return notFound(id);
    if (cancelled.kind === 'foreground') return NOT_BACKGROUND;
    return new Response(cancelled.response, { headers: { 'content-type': JSON_TYPE } });
  },
  'DELETE ': async ({ object, owner, id }) =>
    (await object.remove(owner)) ? jsonResponse({ id, object: 'response', deleted: true }) : notFound(id),
};

const NOT_BACKGROUND = apiError('invalid_request', 'Cannot cancel a synchronous response.', 'response_id');

async function retrieve({ object, owner, id }: Action): Promise<Response | ApiError> {
  const stored: StoredResponse | null = await object.read(owner);
  if (stored === null) return notFound(id);
  const headers = { 'content-type': JSON_TYPE, ...(stored.isOver ? {} : POLL) };
  return new Response(stored.response, { headers });
}

async function resume({ object, owner, id, query }: Action): Promise<Response | ApiError> {
  const after = query.get('starting_after');
  const number = after === null ? -1 : Number(after);
  if (!Number.isSafeInteger(number)) {
    return apiError('invalid_request', 'starting_after must be a sequence_number', 'starting_after');
  }
  const response = await eventStream(object, owner, number);
  return response.status === 404 ? notFound(id) : response;
}

const MAX_ID_CHARS = 100;

function notFound(id: string): ApiError {
  return apiError('not_found', `Response with id '${id.slice(0, MAX_ID_CHARS)}' not found.`);
}

function noRoute(method: string, id: string): ApiError {
  const message =
    method === 'POST' && id === 'compact'
      ? 'This gateway does not compact conversations, as few providers do: ask a model for a summary with POST /v1/responses, and send that in input'
      : 'A response has the routes GET and DELETE /v1/responses/<id>, GET /v1/responses/<id>/input_items and POST /v1/responses/<id>/cancel';
  return apiError('not_found', message);
}

function unreachable(context: CompletionContext, reason: unknown): ApiError {
  const { message, ...error } = apiError('overloaded', 'The store of responses did not answer: try again');
  internalError(context, reason);
  return { ...error, message };
}

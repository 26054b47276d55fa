/** The routes of stored responses: creation with state, retrieval, resumption, cancellation, deletion, and input items. */
import { handleCountTokens } from '../api/count-tokens.ts';
import type { Caller } from '../auth/caller.ts';
import { sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { ClientRoute } from '../completion/request.ts';
import { identifyAdmin, identifyCaller, type RequestBody, readRequestBody } from '../http/request.ts';
import { clientError, internalError, JSON_TYPE, jsonResponse } from '../http/respond.ts';
import { responses, responsesClient } from '../protocols/openai-responses/client.ts';
import { CONVERSATION } from '../protocols/openai-responses/client-request.ts';
import { responseIdOf } from '../protocols/openai-responses/response-object.ts';
import type { ResponsesSession } from '../protocols/openai-responses/session.ts';
import { isPresent } from '../protocols/shared/validate-types.ts';
import type { Route } from '../routes.ts';
import { type JsonObject, readArray, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { trimEnd } from '../shared/trim.ts';
import {
  type Continued,
  continueConversation,
  isReference,
  isResponseId,
  pageOfItems,
} from './conversation.ts';
import { MAX_READERS } from './event-log.ts';
import { EventRoom, storeForeground } from './foreground.ts';
import {
  AFTER_HEADER,
  type Keeping,
  MAX_CALL_BYTES,
  OWNER_HEADER,
  type ResponseNamespace,
  type ResponseStub,
  repeatedCalls,
  type StoredResponse,
} from './response-calls.ts';
import type { DurableSettings } from './settings.ts';

const DAY_MS = 86_400_000;
/** How long a background response that is not stored stays after its end: developers.openai.com/api/docs/guides/background (2026-11). */
const UNSTORED_MS = 10 * 60_000;
/** How long the end of a foreground response waits for its object. */
const MAX_STORE_MS = 2000;
/** How long clients are to wait between two reads of a running response. SDKs read it in `openai-poll-after-ms` (openai-node 7.55, lib/polling). */
const POLL_AFTER_MS = 1000;

const STATELESS: ClientRoute<ResponsesSession> = { route: 'chat', client: responses };

/** @param namespace the objects of responses (`WEIR_RESPONSES`) */
export function durableRoutes(
  namespace: ResponseNamespace,
  settings: Omit<DurableSettings, 'responses'>,
): readonly Route[] {
  const objects = repeatedCalls(namespace);
  const room = new EventRoom();
  const handle = (request: Request, context: CompletionContext, id = '') =>
    handleStored(request, context, { objects, path: id });
  return [
    {
      name: 'responses',
      client: responses,
      path: '/responses',
      methods: { POST: (request, context) => createResponse(request, context, { objects, room, settings }) },
    },
    {
      path: '/responses/input_tokens',
      methods: { POST: (request, context) => countInputTokens(request, context, objects) },
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

interface Kept {
  readonly objects: ResponseNamespace;
  readonly room: EventRoom;
  readonly settings: Omit<DurableSettings, 'responses'>;
}

async function createResponse(
  request: Request,
  context: CompletionContext,
  { objects, room, settings }: Kept,
): Promise<Response> {
  const read = await readContinued(request, context, objects);
  if (read.kind === 'error') return refuse(context, read.error);
  const { caller, owner, body, continued } = read.value;
  const identified = identifiedContext(context, caller);
  if (continued === null) return handleCompletion(request, STATELESS, identified, { body });
  const { input, chain, earlierChars, kept } = continued;
  const { responsesDays, responseBytes } = settings;
  const encoder = new TextEncoder();
  const keeping: Keeping = {
    owner,
    input: encoder.encode(input),
    chain,
    earlierChars,
    keptMs: kept.isStored ? responsesDays * DAY_MS : UNSTORED_MS,
    maxBytes: responseBytes,
  };
  if (kept.isBackground) {
    const json = encoder.encode(JSON.stringify(continued.body));
    body.lease.release();
    return runInBackground(request, context, { objects, caller, keeping, continued, json });
  }
  const given = { body: { ...body, body: continued.body, bytes: continued.chars } };
  const route = { route: 'chat', client: responsesClient(kept) } as const;
  const response = await handleCompletion(request, route, identified, given);
  if (!kept.isStored || !response.ok) return response;
  const object = objects.getByName(responseIdOf(context.requestId));
  const isStreamed = body.body.stream === true;
  const put = async (events: Uint8Array | null) => {
    if (events === null) throw new Error('Its events are too large to be held in memory until its end');
    await object.put({ ...keeping, events });
  };
  const store = (events: Uint8Array | null) =>
    storeInTime(put(events), () => object.remove(keeping.owner), context);
  return storeForeground(response, { isStreamed, store, room, signal: request.signal });
}

/** The tokens of a request with everything that it continues. */
async function countInputTokens(
  request: Request,
  context: CompletionContext,
  objects: ResponseNamespace,
): Promise<Response> {
  const read = await readContinued(request, context, objects);
  if (read.kind === 'error') return refuse(context, read.error);
  const { caller, body, continued } = read.value;
  const given = {
    body: continued === null ? body : { ...body, body: continued.body, bytes: continued.chars },
  };
  const view = (input_tokens: number) => ({ object: 'response.input_tokens', input_tokens });
  return handleCountTokens(request, STATELESS, identifiedContext(context, caller), view, given);
}

/** The context of a request that has passed the limiter and whose caller is known. */
function identifiedContext(context: CompletionContext, caller: Caller): CompletionContext {
  return { ...context, hostCaller: caller, ports: { ...context.ports, limiter: null } };
}

interface ReadRequest {
  readonly caller: Caller;
  readonly owner: string;
  /** As the client sent it. */
  readonly body: RequestBody;
  /** Null for a request that is neither kept nor continues anything. */
  readonly continued: Continued | null;
}

/** Reads a request and everything that it continues. */
async function readContinued(
  request: Request,
  context: CompletionContext,
  objects: ResponseNamespace,
): Promise<Result<ReadRequest, ApiError>> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return identified;
  const caller = identified.value;
  const owner = await ownerOf(caller, context);
  const { maxRequestBytes } = context.settings;
  const read = await readRequestBody(request, maxRequestBytes, context);
  if (read.kind === 'error') return read;
  const { body, lease } = read.value;
  const known = { caller, owner, body: read.value };
  const isKept = body.store !== false || body.background === true;
  if (!isKept && !continuesState(body)) return ok({ ...known, continued: null });
  let continued: Result<Continued, ApiError>;
  try {
    const scope = {
      objects,
      owner,
      ownBytes: read.value.bytes,
      maxChars: maxRequestBytes,
      hidesUser: context.factNames.hidesUsers,
    };
    continued = isPresent(body.conversation)
      ? failure(CONVERSATION)
      : await withinDeadline(continueConversation(body, scope), context);
  } catch (error) {
    continued = failure(unreachable(context, error));
  }
  lease.release();
  if (continued.kind === 'error') return continued;
  const { chars } = continued.value;
  const whole = await context.leaseMemory(Math.max(chars, read.value.bytes));
  if (whole === null) return failure(NO_MEMORY);
  whole.markReceived();
  await whole.startWork();
  return ok({ ...known, body: { ...read.value, lease: whole }, continued: continued.value });
}

const NO_MEMORY = apiError('overloaded', 'Too many large conversations are being read at once: try again');

function continuesState(body: JsonObject): boolean {
  return readText(body.previous_response_id) !== undefined || readArray(body.input).some(isReference);
}

/**
 * A response belongs to the key that made it, and to the user whom the key, the host or Access fixes. The object stores a digest of the
 * user's name as records have it; under USERS=off a digest with a secret, without which
 * the response belongs to the key alone.
 */
async function ownerOf({ keyId, facts }: Caller, { factNames }: CompletionContext): Promise<string> {
  const { user } = facts;
  if (user === null) return keyId;
  const name = await factNames.owner(user);
  return name === null ? keyId : `${keyId} ${await sha256(name)}`;
}

/** Whether the call succeeds in time. One that succeeds later is undone, because the client reads `store: false`. Never rejects. */
async function storeInTime(
  putting: Promise<void>,
  remove: () => Promise<boolean>,
  context: CompletionContext,
): Promise<boolean> {
  const { ports, requestId } = context;
  const late = Promise.withResolvers<string>();
  const cancelTimer = ports.clock.startTimer(MAX_STORE_MS, () =>
    late.resolve(`No answer in ${MAX_STORE_MS} ms`),
  );
  const stored = putting.then(
    () => null,
    (error: unknown) => String(error),
  );
  const reason = await Promise.race([stored, late.promise]);
  cancelTimer();
  if (reason === null) return true;
  ports.log({ event: 'response_not_stored', request_id: requestId, reason });
  const undo = async () => (await stored) === null && (await remove());
  context.waitUntil(undo().catch((error: unknown) => internalError(context, error)));
  return false;
}

function tooLargeToKeep(bytes: number): ApiError {
  const message = `A background request with its input has at most ${MAX_CALL_BYTES} bytes, and this one has ${bytes}: send less at once`;
  return apiError('request_too_large', message);
}

interface Background {
  readonly objects: ResponseNamespace;
  readonly caller: Caller;
  readonly keeping: Keeping;
  readonly continued: Continued;
  /** The body for the provider: JSON in UTF-8. */
  readonly json: Uint8Array;
}

async function runInBackground(
  { headers }: Request,
  context: CompletionContext,
  { objects, caller, keeping, continued, json }: Background,
): Promise<Response> {
  const { requestId, arrivedAt } = context;
  const object = objects.getByName(responseIdOf(requestId));
  const { body, kept } = continued;
  const bytes = json.length + keeping.input.length;
  if (bytes > MAX_CALL_BYTES) return refuse(context, tooLargeToKeep(bytes));
  try {
    const started = await object.start({
      ...keeping,
      requestId,
      caller,
      arrivedAt,
      headers: [...headers].filter(([name]) => !OWN_HEADERS.test(name)),
      body: json,
      kept,
    });
    if (started.kind === 'refused') {
      const { status, body } = started;
      return new Response(body, { status, headers: started.headers.map(([name, value]) => [name, value]) });
    }
    context.known.isSentOn = true;
    if (body.stream === true) return await eventStream(object, keeping.owner, -1);
    return new Response(started.response, { headers: { 'content-type': JSON_TYPE, ...POLL } });
  } catch (error) {
    return refuse(context, unreachable(context, error));
  }
}

/** Headers of the client's request that describe its connection, or are secrets that the object does not need. */
const OWN_HEADERS = /^(?:authorization|cookie|content-length|(?:x-)?api-key|cf-access-.*)$/;
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
  const [id = '', action = '', ...rest] = trimEnd(path, '/').split('/');
  const route = rest.length > 0 ? undefined : ACTIONS[`${request.method} ${action}`];
  const admin = identified.kind === 'error' ? await identifyAdmin(request, context) : null;
  const isByAdmin = admin?.kind === 'ok' && admin.value;
  if (identified.kind === 'error' && !isByAdmin) return refuse(context, identified.error);
  if (route === undefined) return refuse(context, noRoute(request.method, id));
  if (!isResponseId(id)) return refuse(context, notFound(id));
  try {
    const owner = identified.kind === 'error' ? null : await ownerOf(identified.value, context);
    const object = objects.getByName(id);
    const { searchParams: query } = new URL(request.url);
    // The admin owns no response, and deletes only what nobody can read.
    const call =
      owner === null ? handleUnreadable(request.method, object, id) : route({ object, owner, id, query });
    const result = await withinDeadline(call, context);
    return result instanceof Response ? result : refuse(context, result);
  } catch (error) {
    return refuse(context, unreachable(context, error));
  }
}

async function handleUnreadable(
  method: string,
  object: ResponseStub,
  id: string,
): Promise<Response | ApiError> {
  if (method === 'DELETE' && (await object.remove(null))) return deleted(id);
  return missing({ object, owner: null, id });
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
    const conversation = await object.conversation(owner, Number.POSITIVE_INFINITY);
    if (conversation === null) return missing({ object, owner, id });
    const page = pageOfItems(conversation.input, id, query);
    return page.kind === 'ok' ? jsonResponse(page.value) : page.error;
  },
  'POST cancel': async ({ object, owner, id }) => {
    const cancelled = await object.cancel(owner);
    if (cancelled.kind === 'none') return missing({ object, owner, id });
    if (cancelled.kind === 'foreground') return NOT_BACKGROUND;
    return new Response(cancelled.response, { headers: { 'content-type': JSON_TYPE } });
  },
  'DELETE ': async ({ object, owner, id }) => ((await object.remove(owner)) ? deleted(id) : notFound(id)),
};

function deleted(id: string): Response {
  return jsonResponse({ id, object: 'response', deleted: true });
}

/** The error for a response that was not found: there is none for this owner, or it cannot be read. */
async function missing({
  object,
  owner,
  id,
}: Pick<Action, 'object' | 'id'> & { readonly owner: string | null }): Promise<ApiError> {
  const reason = await object.unreadable(owner);
  if (reason === null) return notFound(id);
  return apiError(
    'response_unreadable',
    `${reason}: delete the response, or return to the version that wrote it`,
  );
}

const NOT_BACKGROUND = apiError('invalid_request', 'Cannot cancel a synchronous response.', 'response_id');

async function retrieve({ object, owner, id }: Action): Promise<Response | ApiError> {
  const stored: StoredResponse | null = await object.read(owner);
  if (stored === null) return missing({ object, owner, id });
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
  if (response.status === 404) return missing({ object, owner, id });
  return response.status === 429 ? TOO_MANY_READERS : response;
}

const TOO_MANY_READERS = {
  ...apiError(
    'rate_limited',
    `A response has at most ${MAX_READERS} readers at once: close one, then try again`,
  ),
  retryAfterSeconds: 10,
};

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

/** Rejects if the deadline passes before the calls of objects have ended. */
async function withinDeadline<Value>(
  calls: Promise<Value>,
  { deadline, settings }: CompletionContext,
): Promise<Value> {
  const ended = await deadline.bound<{ readonly value: Value } | null>(
    calls.then((value) => ({ value })),
    () => null,
  );
  if (ended === null) throw new Error(`No answer within ${settings.timers.deadlineMs / 1000} seconds`);
  return ended.value;
}

function unreachable(context: CompletionContext, reason: unknown): ApiError {
  internalError(context, reason);
  return apiError('overloaded', 'The store of responses did not answer: try again');
}

/** The routes of stored responses: creation with state, retrieval, resumption, cancellation, deletion, and input items. */

import { handleCountTokens } from '../api/count-tokens.ts';
import type { Caller } from '../auth/caller.ts';
import { sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import type { CompletionContext, EarlyAdmission, Refusal } from '../completion/admission.ts';
import { admitEarly } from '../completion/early-admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { ClientRoute } from '../completion/request.ts';
import type { KeptOwner, RequestContext, ShowKept } from '../http/context.ts';
import { identifyAdmin, identifyCaller, type RequestBody, readRequestBody } from '../http/request.ts';
import { type Answer, internalError, JSON_TYPE, jsonResponse, refused } from '../http/respond.ts';
import { responses, responsesClient } from '../protocols/openai-responses/client.ts';
import { CONVERSATION } from '../protocols/openai-responses/client-request.ts';
import { responseIdOf } from '../protocols/openai-responses/response-object.ts';
import type { ResponsesSession } from '../protocols/openai-responses/session.ts';
import { isPresent } from '../protocols/shared/validate-types.ts';
import type { HttpRoute } from '../routes.ts';
import { type JsonObject, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { trimEnd } from '../shared/trim.ts';
import type { TakeMemory } from '../stream/memory.ts';
import {
  type Continued,
  ConversationReader,
  continuesState,
  isResponseId,
  itemsOf,
  ownConversation,
  pageOfItems,
  textBytesOf,
} from './conversation.ts';
import { MAX_READERS } from './event-log.ts';
import { EventRoom, storeForeground } from './foreground.ts';
import { KeptPlace, releaseKept } from './kept-place.ts';
import { grantedResponse, RequestMemory, readGranted } from './request-memory.ts';
import {
  AFTER_HEADER,
  indexName,
  type Keeping,
  MAX_CALL_BYTES,
  OWNER_HEADER,
  type ResponseNamespace,
  type ResponseStub,
  repeatedCalls,
} from './response-calls.ts';
import type { DurableSettings } from './settings.ts';

const DAY_MS = 86_400_000;
/** How long a background response that is not stored stays after its end: developers.openai.com/api/docs/guides/background (2026-11). */
const UNSTORED_MS = 10 * 60_000;
/** How long the end of a foreground response waits for its object. */
const MAX_STORE_MS = 2000;
/**
 * How long clients are to wait between two reads of a running response. SDKs read it in `openai-poll-after-ms`
 * (openai-node 7.55, lib/polling).
 */
const POLL_AFTER_MS = 1000;

const STATELESS: ClientRoute<ResponsesSession> = { route: 'chat', client: responses };

/** @param namespace the objects of responses (`WEIR_RESPONSES`) */
export function durableRoutes(
  namespace: ResponseNamespace,
  settings: Omit<DurableSettings, 'responses'>,
): readonly HttpRoute[] {
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

interface Kept {
  readonly objects: ResponseNamespace;
  readonly room: EventRoom;
  readonly settings: Omit<DurableSettings, 'responses'>;
}

async function createResponse(
  request: Request,
  context: CompletionContext,
  { objects, room, settings }: Kept,
): Promise<Answer> {
  const continuedRequest = await readContinued(request, context, { objects, settings });
  if (continuedRequest.kind === 'error')
    return refused(responses, continuedRequest.error.error, continuedRequest.error.headers);
  const { caller, owner, body, continued, place, release } = continuedRequest.value;
  const identified = identifiedContext(context, caller);
  if (continued === null) return handleCompletion(request, STATELESS, identified, { body });
  const { input, chain, earlierChars, earlierTextBytes, kept } = continued;
  const encoder = new TextEncoder();
  const keeping: Keeping = {
    owner,
    input: encoder.encode(input),
    chain,
    earlierChars,
    earlierTextBytes,
    keptMs: keptMsOf(body.body, settings),
    maxBytes: settings.responseBytes,
  };
  if (kept.isBackground) {
    const json = encoder.encode(JSON.stringify(continued.body));
    body.grant.release();
    return runInBackground(request, context, { objects, caller, keeping, continued, json, release });
  }
  const preparedRequest = { body: { ...body, body: continued.body, bytes: continued.chars } };
  const route = { route: 'chat', client: responsesClient(kept) } as const;
  const answer = await handleCompletion(request, route, identified, preparedRequest);
  if (!context.known.isSentOn) release();
  if (!kept.isStored || !(answer instanceof Response) || !answer.ok) return answer;
  const object = objects.getByName(responseIdOf(context.requestId));
  const isStreamed = body.body.stream === true;
  const put = async (events: Uint8Array | null) => {
    if (events === null) throw new Error('Its events are too large to be held in memory until its end');
    const claimed = { headers: request.headers, body: body.body, caller };
    const full = await place?.claim(claimed, keeping.input.length + events.length, keeping.keptMs);
    if (full) throw new Error(full.message);
    await object.put({ ...keeping, events });
  };
  const remove = async () => {
    if (place?.isClaimed !== true) return;
    await object.remove(keeping.owner);
    place.release();
  };
  const store = (events: Uint8Array | null) => storeInTime(put(events), remove, context);
  return storeForeground(answer, { isStreamed, store, room, signal: request.signal });
}

/** How long a response is kept after its end, in ms. */
function keptMsOf({ store }: JsonObject, { responsesDays }: Pick<DurableSettings, 'responsesDays'>): number {
  return store === false ? UNSTORED_MS : responsesDays * DAY_MS;
}

/** The tokens of a request with everything that it continues. */
async function countInputTokens(
  request: Request,
  context: CompletionContext,
  objects: ResponseNamespace,
): Promise<Answer> {
  const continuedRequest = await readContinued(request, context, { objects, settings: null });
  if (continuedRequest.kind === 'error')
    return refused(responses, continuedRequest.error.error, continuedRequest.error.headers);
  const { caller, body, continued, release } = continuedRequest.value;
  const preparedRequest = {
    body: continued === null ? body : { ...body, body: continued.body, bytes: continued.chars },
    isAdmitted: continuesState(body.body),
  };
  const view = (input_tokens: number) => ({ object: 'response.input_tokens', input_tokens });
  try {
    return await handleCountTokens(
      request,
      STATELESS,
      identifiedContext(context, caller),
      view,
      preparedRequest,
    );
  } finally {
    release();
  }
}

/** The context of a request that has passed the limiter and whose caller is known. */
function identifiedContext(context: CompletionContext, caller: Caller): CompletionContext {
  return { ...context, hostCaller: caller, ports: { ...context.ports, limiter: null } };
}

interface ReadRequest {
  readonly caller: Caller;
  readonly owner: string;
  /** As the client sent it. Its grant holds what it continues, too. */
  readonly body: RequestBody;
  /** Null for a request that is neither kept nor continues anything. */
  readonly continued: Continued | null;
  /** Claimed for a background response; null for a request whose tokens are counted. */
  readonly place: KeptPlace | null;
  /** Releases what the limits of the key reserved early, for a request that is not sent upstream. */
  readonly release: () => void;
}

interface ReadScope {
  readonly objects: ResponseNamespace;
  /** Null: the tokens of the request are counted, and nothing is kept. */
  readonly settings: Omit<DurableSettings, 'responses'> | null;
}

/** Reads a request and everything that it continues. */
async function readContinued(
  request: Request,
  context: CompletionContext,
  { objects, settings }: ReadScope,
): Promise<Result<ReadRequest, Refusal>> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return withoutHeaders(identified.error);
  const caller = identified.value;
  const ownedBy = await ownerOf(keptOwnerOf(caller), context);
  if (ownedBy.kind === 'error') return withoutHeaders(ownedBy.error);
  const owner = ownedBy.value;
  const { maxRequestBytes } = context.settings;
  const parsedBody = await readRequestBody(request, maxRequestBytes, context);
  if (parsedBody.kind === 'error') return withoutHeaders(parsedBody.error);
  const { body, bytes } = parsedBody.value;
  const place = settings === null ? null : new KeptPlace({ objects, context, owner, limits: settings.kept });
  const ownedRequest = { caller, owner, body: parsedBody.value, place };
  const claim = async () =>
    settings === null || place === null || body.background !== true
      ? null
      : place.claimForRun({ headers: request.headers, body, caller }, bytes, keptMsOf(body, settings));
  const isKept = body.store !== false || body.background === true;
  const hidesUser = context.users.names.hidesUsers;
  const hasConversation = isPresent(body.conversation) && (isKept || continuesState(body));
  const isRun = settings !== null && body.background === true;
  if (!isRun && !hasConversation && !continuesState(body)) {
    const continued = isKept ? ownConversation(body, hidesUser, bytes) : null;
    return ok({ ...ownedRequest, continued, release: () => place?.release() });
  }
  const memory = new RequestMemory(parsedBody.value, context.takeMemory);
  let early: EarlyAdmission | null = null;
  const release = () => {
    early?.release();
    place?.release();
  };
  const steps = {
    memory,
    admit: async (earlierTextBytes: number) => {
      const textBytes = earlierTextBytes + textBytesOf(itemsOf(body.input));
      const isCounted = settings === null;
      const admitted = await admitEarly(request, context, caller, { body, textBytes, isCounted });
      if (admitted.kind === 'error') return admitted;
      early = admitted.value;
      const full = await claim();
      // The deadline has passed meanwhile.
      if (memory.isReleased) release();
      return full === null ? admitted : withoutHeaders(full);
    },
  };
  // A background run stores its input, so that it is admitted before. Any other request is admitted when it is sent on.
  const readOwn = async (): Promise<Result<Continued, Refusal>> => {
    const admitted = await steps.admit(0);
    if (admitted.kind === 'error') return admitted;
    await memory.grant.startWork();
    return ok(ownConversation(body, hidesUser, bytes));
  };
  const scope = { objects, owner, ownBytes: bytes, maxChars: maxRequestBytes, hidesUser };
  const result = await withinDeadline(
    hasConversation
      ? Promise.resolve(withoutHeaders(CONVERSATION))
      : continuesState(body)
        ? readInOrder(body, new ConversationReader(scope), steps)
        : readOwn(),
    context,
  ).catch((error: unknown) => withoutHeaders(unreachable(context, error)));
  if (result.kind === 'ok') {
    const whole = { ...parsedBody.value, grant: memory.grant };
    return ok({ ...ownedRequest, body: whole, continued: result.value, release });
  }
  release();
  memory.release();
  return result;
}

interface Steps {
  readonly memory: RequestMemory;
  /** @param textBytes of the chain */
  readonly admit: (textBytes: number) => Promise<Result<EarlyAdmission, Refusal>>;
}

/** First the size, then memory and limits, and only then the items: a refused request takes no memory and causes no reads. */
async function readInOrder(
  body: JsonObject,
  reader: ConversationReader,
  { memory, admit }: Steps,
): Promise<Result<Continued, Refusal>> {
  const previousId = readText(body.previous_response_id);
  const chain = previousId === undefined ? ok(NO_CHAIN) : await reader.chain(previousId);
  if (chain.kind === 'error') return withoutHeaders(chain.error);
  if (!(await memory.add(chain.value.chars))) return withoutHeaders(NO_MEMORY);
  const admitted = await admit(chain.value.textBytes);
  if (admitted.kind === 'error') return admitted;
  const referred = await reader.referredChars(body.input);
  if (referred.kind === 'error') return withoutHeaders(referred.error);
  if (!(await memory.add(referred.value))) return withoutHeaders(NO_MEMORY);
  await memory.grant.startWork();
  const continued = await reader.read(body, chain.value);
  return continued.kind === 'ok' ? continued : withoutHeaders(continued.error);
}

const NO_CHAIN = { ids: [], chars: 0, textBytes: 0 };
const NO_MEMORY = apiError('overloaded', 'Too many large conversations are being read at once: try again');

function withoutHeaders(error: ApiError): Result<never, Refusal> {
  return failure({ error, headers: {} });
}

/** What the caller keeps, and how much it may keep, for `GET /v1/key`. */
export function showKept(namespace: ResponseNamespace, { kept }: Pick<DurableSettings, 'kept'>): ShowKept {
  const objects = repeatedCalls(namespace);
  return async (keptOwner, context) => {
    try {
      const ownedBy = await ownerOf(keptOwner, context);
      if (ownedBy.kind === 'error') return ownedBy;
      const owner = ownedBy.value;
      const sums = await withinDeadline(objects.getByName(indexName(owner)).keptSums(owner), context);
      const show = (limit: number, used: number) => ({ limit, used, remaining: Math.max(0, limit - used) });
      return ok({
        responses: show(kept.responses, sums.responses),
        bytes: show(kept.bytes, sums.bytes),
      });
    } catch (error) {
      return failure(unreachable(context, error));
    }
  };
}

/**
 * A response belongs to the key that made it, and to the user whom the key, the host or Access fixes. The object stores a digest of the
 * user's name as records have it; under USERS=off a digest with a secret, without which
 * the response belongs to the key alone.
 */
async function ownerOf(
  { keyId, fixedUser }: KeptOwner,
  { users: { names: factNames } }: Pick<RequestContext, 'users'>,
): Promise<Result<string, ApiError>> {
  if (fixedUser === null) return ok(keyId);
  const name = await factNames.owner(fixedUser);
  if (isUnreadable(name)) return failure(secretUnreadable(name));
  return ok(name === null ? keyId : `${keyId} ${await sha256(name)}`);
}

function keptOwnerOf({ keyId, facts }: Caller): KeptOwner {
  return { keyId, fixedUser: facts.user };
}

/** Whether the call succeeds in time. Any other is undone, because the client reads `store: false`. Never rejects. */
async function storeInTime(
  putting: Promise<void>,
  remove: () => Promise<void>,
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
  const undo = async () => {
    await stored;
    await remove();
  };
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
  readonly release: () => void;
}

async function runInBackground(
  { headers }: Request,
  context: CompletionContext,
  { objects, caller, keeping, continued, json, release }: Background,
): Promise<Answer> {
  const { requestId, arrivedAt } = context;
  const object = objects.getByName(responseIdOf(requestId));
  const { body, kept } = continued;
  const bytes = json.length + keeping.input.length;
  if (bytes > MAX_CALL_BYTES) {
    release();
    return refused(responses, tooLargeToKeep(bytes));
  }
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
      release();
      const { status, body } = started;
      return new Response(body, { status, headers: started.headers.map(([name, value]) => [name, value]) });
    }
    context.known.isSentOn = true;
    if (body.stream === true) return await eventStream(object, keeping.owner, -1);
    return new Response(started.response, { headers: { 'content-type': JSON_TYPE, ...POLL } });
  } catch (error) {
    // It may have started, and then its record settles what is reserved.
    return refused(responses, unreachable(context, error));
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
): Promise<Answer> {
  const identified = await identifyCaller(request, context);
  const [id = '', action = '', ...rest] = trimEnd(path, '/').split('/');
  const route = rest.length > 0 ? undefined : ACTIONS[`${request.method} ${action}`];
  const admin = identified.kind === 'error' ? await identifyAdmin(request, context) : null;
  const isByAdmin = admin?.kind === 'ok' && admin.value;
  if (admin?.kind === 'error') return refused(responses, admin.error);
  if (identified.kind === 'error' && !isByAdmin) return refused(responses, identified.error);
  if (route === undefined) return refused(responses, noRoute(request.method, id));
  if (!isResponseId(id)) return refused(responses, notFound(id));
  try {
    const ownedBy =
      identified.kind === 'error' ? ok(null) : await ownerOf(keptOwnerOf(identified.value), context);
    if (ownedBy.kind === 'error') return refused(responses, ownedBy.error);
    const owner = ownedBy.value;
    const object = objects.getByName(id);
    const { searchParams: query } = new URL(request.url);
    // The admin owns no response, and deletes only what nobody can read.
    const call =
      owner === null
        ? handleUnreadable(request.method, object, id)
        : route({
            object,
            owner,
            id,
            query,
            takeMemory: context.takeMemory,
            release: () => releaseKept({ objects, context, owner, id }),
          });
    const result = await withinDeadline(call, context);
    return result instanceof Response ? result : refused(responses, result);
  } catch (error) {
    return refused(responses, unreachable(context, error));
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
  readonly takeMemory: TakeMemory;
  /** Gives the place of the deleted response back. */
  readonly release: () => void;
}

const ACTIONS: Readonly<Record<string, (action: Action) => Promise<Response | ApiError>>> = {
  'GET ': (action) => (action.query.get('stream') === 'true' ? resume(action) : retrieve(action)),
  'GET input_items': async ({ object, owner, id, query, takeMemory }) => {
    const storedInput = await readGranted((maxChars) => object.input(owner, maxChars), 'input', takeMemory);
    if (storedInput === null) return missing({ object, owner, id });
    if (storedInput === 'no memory') return NO_MEMORY;
    const page = pageOfItems(storedInput.json, id, query);
    if (page.kind === 'ok') return grantedResponse(JSON.stringify(page.value), {}, storedInput.grant);
    storedInput.grant.release();
    return page.error;
  },
  'POST cancel': async (action) => {
    const { kind } = await action.object.cancel(action.owner);
    if (kind === 'none') return missing(action);
    return kind === 'foreground' ? NOT_BACKGROUND : retrieve(action);
  },
  'DELETE ': async ({ object, owner, id, release }) => {
    if (!(await object.remove(owner))) return notFound(id);
    release();
    return deleted(id);
  },
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

async function retrieve({ object, owner, id, takeMemory }: Action): Promise<Response | ApiError> {
  const storedResponse = await readGranted(
    (maxChars) => object.read(owner, maxChars),
    'response',
    takeMemory,
  );
  if (storedResponse === null) return missing({ object, owner, id });
  if (storedResponse === 'no memory') return NO_MEMORY;
  return grantedResponse(storedResponse.json, storedResponse.stored.isOver ? {} : POLL, storedResponse.grant);
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
  { deadline, settings }: RequestContext,
): Promise<Value> {
  const ended = await deadline.bound<{ readonly value: Value } | null>(
    calls.then((value) => ({ value })),
    () => null,
  );
  if (ended === null) throw new Error(`No answer within ${settings.timers.deadlineMs / 1000} seconds`);
  return ended.value;
}

function unreachable(context: RequestContext, reason: unknown): ApiError {
  const error = internalError(context, reason);
  if (error.code === 'misconfigured') return error;
  return apiError('overloaded', 'The store of responses did not answer: try again');
}

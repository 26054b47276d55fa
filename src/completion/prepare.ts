/**
 * Prepares a completion request: identifies the caller, reads the body, finds the targets, writes the request for the first one, and checks
 * the key's limits.
 */
import { type Caller, isLimited, limitedUser, limitsOf, listedLimits, mayUse } from '../auth/caller.ts';
import { enforcedCurrencies, expectedOutputLimit } from '../auth/key-limits.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { RequestContext } from '../http/context.ts';
import { identifyCaller } from '../http/request.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
import { hasPriceIn } from '../metering/pricing/highest-price.ts';
import type { MeteredRequest } from '../metering/request-meter.ts';
import { chatBody } from '../protocols/openai-chat/conversation-writer.ts';
import type { BoundProtocol } from '../protocols/shared/client-protocol.ts';
import type { Route } from '../providers/provider.ts';
import { requestsCost } from '../request-translation/translate.ts';
import { RetrySchedule } from '../routing/retry-schedule.ts';
import {
  findAlias,
  findTargets,
  hashToUnit,
  type SkippedTarget,
  stickyKey,
  type Target,
  type TargetsRequest,
} from '../routing/targets.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Admission, CompletionContext, HashPrompt, Refusal } from './admission.ts';
import { ReplayableRequest } from './replayable-request.ts';
import {
  type ClientBody,
  type ClientRoute,
  type KnownRequest,
  readClientBody,
  readRequestPolicies,
} from './request.ts';
import { type ReplayedRequest, sentPrompt, type TargetRequest } from './target-request.ts';

/** A completion as its client requested it. It lives as long as the response streams, so it holds nothing of the prompt. */
export interface CompletionRequest extends ReplayedRequest, MeteredRequest {
  readonly context: CompletionContext;
  readonly route: Route;
  /** Writes the response. */
  readonly client: BoundProtocol;
  readonly caller: Caller;
  /** Null: the prompt is not hashed. */
  readonly hashPrompt: HashPrompt | null;
  /** In the order in which they are tried. */
  readonly targets: readonly [Target, ...Target[]];
  readonly skipped: readonly SkippedTarget[];
  readonly isStreamed: boolean;
  /** The client requested embeddings as base64. */
  readonly isBase64: boolean;
  /** The client requested a usage chunk (`stream_options.include_usage`). */
  readonly wantsUsage: boolean;
  /** The client requested the cost as a field of the usage. */
  readonly wantsCost: boolean;
}

/** A request that may be sent. */
export interface PreparedRequest {
  readonly request: CompletionRequest;
  /** What is sent to the first target. */
  readonly first: TargetRequest;
  /** Writes the requests for the other targets. It is released when no further attempt can follow. */
  readonly replayable: ReplayableRequest;
  readonly schedule: RetrySchedule;
  /** Null: the key has no limits. */
  readonly admission: Admission | null;
  /** How `first` compares with the earlier requests of its session; null: it is not asked for, or not known. */
  readonly cacheReport: string | null;
}

/**
 * Does all that precedes the first call. A refused request holds no memory and no reservation.
 * @returns the request for the first target, or the error and the headers of its response
 */
export async function prepareCompletion<Session>(
  httpRequest: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  given: KnownRequest,
): Promise<Result<PreparedRequest, Refusal>> {
  const { headers, signal } = httpRequest;
  const { route } = clientRoute;
  let grant = given.body?.grant;
  let result: Result<PreparedRequest, Refusal> | undefined;
  try {
    const identified = await identifyCaller(httpRequest, context);
    if (identified.kind === 'error') return refused(identified.error);
    const body = await readClientBody(httpRequest, clientRoute, context, given);
    if (body.kind === 'error') return refused(body.error);
    grant = body.value.grant;
    // After the body: workerd resets a connection on which it still arrives, and the client may lose the response.
    const policies = readRequestPolicies(headers, context.settings);
    if (policies.kind === 'error') return refused(policies.error);
    const sender = {
      context,
      route,
      headers,
      caller: identified.value,
      policies: policies.value.policies,
      unsupported: policies.value.unsupported,
    };
    const request = await completionRequest(body.value, sender);
    if (request.kind === 'error') return refused(request.error);
    result = await prepare(request.value, body.value, signal);
    return result;
  } finally {
    if (result?.kind !== 'ok') grant?.release();
  }
}

function refused(error: ApiError): Result<never, Refusal> {
  return failure({ error, headers: {} });
}

const BEING_ERASED = apiError(
  'user_being_erased',
  'The data of this user is being erased: requests are refused until that is done',
  'user',
);

/** Completes what is known of a request: who sent it and for what, its targets, and what its body asks of the response. */
async function completionRequest(
  body: ClientBody,
  sender: Pick<CompletionRequest, 'context' | 'route' | 'headers' | 'caller' | 'policies' | 'unsupported'>,
): Promise<Result<CompletionRequest, ApiError>> {
  const { context, route, headers, caller, policies } = sender;
  const { clientBody, fields, requestedModels, client } = body;
  const { aliases, providers } = context.settings;
  const attributed = await context.attribute({ headers, body: clientBody, caller });
  if (attributed.kind === 'error') return attributed;
  const { attribution, session, affinity, hashPrompt } = attributed.value;
  const erasing = attribution.user === null ? ok(false) : await context.users.isErasing(attribution.user);
  if (erasing.kind === 'error') return erasing;
  if (erasing.value) return failure(BEING_ERASED);
  const found = targetsOf(body, affinity, sender, await findUnpricedIn(caller, context));
  if (found.kind === 'error') return found;
  const { targets, skipped } = found.value;
  const [requestedModel] = requestedModels;
  if (body.isPinned && targets.length > 1) return failure(notPinned(requestedModel, body.translationError));
  if (route === 'embeddings') {
    const unlike = findUnlikeModels([...targets, ...skipped.map(({ target }) => target)]);
    if (unlike !== null) return failure(unlike);
  }
  return ok({
    // No spread: V8 calls its runtime for each field that follows one.
    context,
    route,
    headers,
    caller,
    unsupported: sender.unsupported,
    policies: client.takesVendorEvents ? policies : { ...policies, vendorEvents: [] },
    client,
    callerPays: caller.credential !== null,
    attribution,
    session,
    hashPrompt: route === 'chat' ? hashPrompt : null,
    requestedModel,
    alias: findAlias(aliases, requestedModel, providers) === undefined ? null : requestedModel,
    targets,
    skipped,
    isStreamed: route !== 'embeddings' && fields.stream === true,
    isBase64: fields.encoding_format === 'base64',
    wantsUsage: wantsUsage(fields),
    wantsCost: requestsCost(fields),
    // A client may send embeddings' texts in other fields.
    promptTokens: estimatePromptTokens(route === 'embeddings' ? fields : clientBody),
  });
}

async function prepare(
  request: CompletionRequest,
  body: ClientBody,
  signal: AbortSignal,
): Promise<Result<PreparedRequest, Refusal>> {
  const { context, caller, attribution, targets, promptTokens, client } = request;
  const { clock } = context.ports;
  const schedule = startSchedule(request);
  const scheduled = schedule.next(clock.now());
  const waitMs = scheduled === null ? schedule.sparedMs(clock.now()) : null;
  if (waitMs !== null) return failure(unanswered(targets[0], waitMs));
  const firstTarget = scheduled?.target ?? targets[0];
  const refuse = (refusal: Refusal) => {
    schedule.releaseProbe(firstTarget, clock.now());
    return failure(refusal);
  };
  const replayable = new ReplayableRequest(body, request);
  // The key's object decides, after the request was measured: most often as KV lists it, and then nothing is written twice.
  if (isLimited(caller)) replayable.limitOutput(expectedOutputLimit(limitsOf(caller)));
  const targetRequest = await replayable.writeFor(firstTarget);
  if (targetRequest.kind === 'error') return refuse({ error: targetRequest.error, headers: {} });
  const admitted = isLimited(caller)
    ? await context.admission.admit({
        context,
        keyId: caller.keyId,
        limits: limitsOf(caller) ?? {},
        listed: listedLimits(caller),
        user: limitedUser(caller, attribution.user),
        affinity: attribution.session ?? attribution.user,
        targets,
        first: targetRequest.value,
        replayable,
        promptTokens,
        client: client.id,
        isStreamed: request.isStreamed,
      })
    : null;
  if (admitted?.kind === 'error') return refuse(admitted.error);
  const admission = admitted?.value.admission ?? null;
  const first = admitted?.value.first ?? targetRequest.value;
  const cacheReport = await compareWithSession(request, first, body.clientBody);
  // After this point an abort event reports a disconnect.
  if (signal.aborted) {
    admission?.release();
    const error = apiError('invalid_request', 'The client left before its request was sent on');
    return refuse({ error, headers: {} });
  }
  return ok({ request, first, replayable, schedule, admission, cacheReport });
}

const NONE_UNPRICED = () => null;

/** Finds the models that a hard budget of the caller's key refuses because they have no price. */
export async function findUnpricedIn(
  caller: Caller,
  { prices, ports }: Pick<RequestContext, 'prices' | 'ports'>,
): Promise<TargetsRequest['unpricedIn']> {
  const limits = limitsOf(caller);
  const currencies = limits === null ? [] : enforcedCurrencies(limits);
  if (currencies.length === 0) return NONE_UNPRICED;
  const table = await prices.load();
  const now = ports.clock.now();
  return (model) => currencies.find((currency) => !hasPriceIn(table, currency, model, now)) ?? null;
}

/**
 * The targets of a request.
 * @param affinity of {@link CompletionContext.attribute}
 * @param unpricedIn of {@link findUnpricedIn}; absent: nothing is charged
 */
export function targetsOf(
  body: Pick<ClientBody, 'clientBody' | 'fields' | 'turns' | 'requestedModels'>,
  affinity: string | null,
  { route, context, caller }: Pick<CompletionRequest, 'route' | 'context' | 'caller'>,
  unpricedIn: TargetsRequest['unpricedIn'] = NONE_UNPRICED,
) {
  const { settings, ports } = context;
  return findTargets({
    settings,
    route,
    // Passthrough sends fields that the canonical request lacks.
    body: body.clientBody,
    names: body.requestedModels,
    stickyKey: () => stickyKey(chatBody(body), affinity, ports.random),
    mayUse: (address) => mayUse(caller, address),
    unpricedIn,
    callerPays: caller.credential !== null,
  });
}

/** With the value 1, the response has `x-weir-cache`. */
const CACHE_REPORT = 'x-weir-cache-report';

/** The value of `x-weir-cache`; null: it is not asked for, or not known. */
async function compareWithSession(
  { context, headers, caller, attribution, hashPrompt, requestedModel }: CompletionRequest,
  first: TargetRequest,
  clientBody: JsonObject,
): Promise<string | null> {
  const { compareCache, arrivedAt } = context;
  const { session } = attribution;
  const isWanted = hashPrompt !== null && headers.get(CACHE_REPORT) === '1';
  if (!isWanted || compareCache === null || session === null) return null;
  const prefix = await hashPrompt(sentPrompt(first), clientBody);
  const { provider, model } = first.traits.target;
  const sent = { prefix, provider: provider.id, model, asked: requestedModel, reason: null, at: arrivedAt };
  return compareCache(context, caller.keyId, session, sent);
}

/**
 * The request continues state that one of several targets keeps, and the gateway does not know which one.
 * @param translationError has the code by which clients know that they can send the whole conversation instead
 */
function notPinned(name: string, translationError: ApiError | null): ApiError {
  const message = `${name} stands for several targets, and only one of them keeps the state that this request continues: send <x-weir-provider>/<x-weir-model> of the earlier response as the model`;
  const error = apiError('invalid_request', message, 'model');
  return translationError === null ? error : { ...error, code: translationError.code };
}

/** Each attempt would use up the limits of the caller's key. */
function unanswered({ address }: Target, waitMs: number): Refusal {
  const seconds = Math.ceil(waitMs / 1000);
  const message = `${address} leaves requests unanswered, which its provider may bill: requests of keys with limits are sent again in ${seconds} s`;
  return {
    error: apiError('upstream_overloaded', message),
    headers: { 'retry-after': String(seconds) },
  };
}

/** Vectors of two models can't be compared, so embeddings fall back only to the same model at another provider. */
function findUnlikeModels(targets: readonly Pick<Target, 'model'>[]): ApiError | null {
  // The model names of routers begin with a provider: `openai/text-embedding-3-small`.
  const names = new Set(targets.map(({ model }) => model.slice(model.lastIndexOf('/') + 1)));
  if (names.size <= 1) return null;
  const message = `Embeddings of different models can't be mixed, and the request names ${[...names].join(', ')}: name one model, at several providers if you like`;
  return apiError('invalid_request', message, 'model');
}

function startSchedule({ targets, route, caller, context }: CompletionRequest): RetrySchedule {
  const { settings, ports, upstreams, arrivedAt } = context;
  const { retries, timers } = settings;
  const options = {
    targets,
    circuits: upstreams.circuits,
    caller: caller.keyId,
    // A model that fails on one route, such as fill-in-the-middle, may work on another.
    circuitKey: ({ address }: Target) => `${route} ${address}`,
    retries,
    sparesBudget: isLimited(caller),
    deadlineAt: timers.deadlineMs === 0 ? Number.POSITIVE_INFINITY : arrivedAt + timers.deadlineMs,
    random: () => hashToUnit(ports.random()),
  };
  return new RetrySchedule(options, ports.clock.now());
}

function wantsUsage(body: JsonObject): boolean {
  const { stream_options } = body;
  return (isObject(stream_options) && stream_options.include_usage === true) || requestsCost(body);
}

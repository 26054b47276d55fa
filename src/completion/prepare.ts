/** Prepares a completion request: identifies the caller, reads the body, finds the targets, translates the request for the first one, and checks the key's limits. */
import { type Caller, hasUserLimits, isLimited, mayUse } from '../auth/caller.ts';
import { hardCurrencies } from '../auth/key-limits.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Policies } from '../canonical/policies.ts';
import type { RequestContext } from '../http/context.ts';
import { identifyCaller } from '../http/request.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
import { hasPriceIn } from '../metering/pricing/highest-price.ts';
import type { Attribution } from '../metering/record.ts';
import type { BoundProtocol } from '../protocols/shared/client-protocol.ts';
import { betasOf } from '../providers/field-refusals.ts';
import type { Route } from '../providers/provider.ts';
import type { Unsupported } from '../request-translation/rules.ts';
import { requestsCost } from '../request-translation/translate.ts';
import { LearnedRefusals } from '../routing/learned-refusals.ts';
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
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Admission, CompletionContext, HashPrompt, Refusal } from './admission.ts';
import { maxWrittenBytes, ReplayableRequest, sentPrompt, type TargetRequest } from './replayable-request.ts';
import {
  type ClientRoute,
  type CompletionRequest,
  type Given,
  type RequestPolicies,
  readCompletionRequest,
  readRequestPolicies,
} from './request.ts';

/** The facts of a request that its response needs. It lives as long as the response streams, so it holds nothing of the prompt. */
export interface PreparedCompletion {
  readonly context: RequestContext;
  readonly route: Route;
  /** Writes the response. */
  readonly client: BoundProtocol;
  readonly caller: Caller;
  readonly attribution: Attribution;
  /** Null: the prompt is not hashed. */
  readonly hashPrompt: HashPrompt | null;
  /** How the request for the first target compares with the earlier ones of its session; null: it is not asked for, or not known. */
  readonly cacheReport: string | null;
  /** The model or agent as the client named it: an alias, an address, or a bare name. */
  readonly requestedModel: string;
  /** The same, if it is an alias. */
  readonly alias: string | null;
  /** In the order in which they are tried. */
  readonly targets: readonly [Target, ...Target[]];
  readonly skipped: readonly SkippedTarget[];
  readonly policies: Policies;
  readonly isStreamed: boolean;
  /** The client requested embeddings as base64. */
  readonly isBase64: boolean;
  /** The client requested a usage chunk (`stream_options.include_usage`). */
  readonly wantsUsage: boolean;
  /** The names by which the client's software calls itself. */
  readonly userAgent: string;
  /** The client requested the cost as a field of the usage. */
  readonly wantsCost: boolean;
  /** Estimated. */
  readonly promptTokens: number;
  /** The credential is the caller's own (`AUTH=passthrough`), so refusals of it concern the caller. */
  readonly callerPays: boolean;
  /** Null: the key has no limits. */
  readonly admission: Admission | null;
}

/** A request that may be sent. Everything but `prepared` is released when no further attempt can follow. */
export interface PreparedRequest {
  readonly prepared: PreparedCompletion;
  /** The request for the first target. */
  readonly firstRequest: TargetRequest;
  /** Writes the requests for the other targets. */
  readonly replayable: ReplayableRequest;
  readonly schedule: RetrySchedule;
}

/**
 * Does all that precedes the first call. A refused request holds no memory and no reservation.
 * @returns the request for the first target, or the error and the headers of its response
 */
export async function prepareCompletion<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  given: Given,
): Promise<Result<PreparedRequest, Refusal>> {
  let lease = given.body?.lease;
  let result: Result<PreparedRequest, Refusal> | undefined;
  try {
    const identified = await identifyCaller(request, context);
    if (identified.kind === 'error') return refused(identified.error);
    const requestPolicies = readRequestPolicies(request.headers, context.settings);
    if (requestPolicies.kind === 'error') return refused(requestPolicies.error);
    const read = await readCompletionRequest(request, clientRoute, context, given);
    if (read.kind === 'error') return refused(read.error);
    lease = read.value.lease;
    result = await prepare(read.value, {
      route: clientRoute.route,
      context,
      caller: identified.value,
      requestPolicies: requestPolicies.value,
      headers: request.headers,
      signal: request.signal,
    });
    return result;
  } finally {
    if (result?.kind !== 'ok') lease?.release();
  }
}

function refused(error: ApiError): Result<never, Refusal> {
  return failure({ error, headers: {} });
}

interface RequestScope {
  readonly route: Route;
  readonly context: CompletionContext;
  readonly caller: Caller;
  readonly requestPolicies: RequestPolicies;
  readonly headers: Headers;
  readonly signal: AbortSignal;
}

async function prepare(
  request: CompletionRequest,
  { route, context, caller, requestPolicies, headers, signal }: RequestScope,
): Promise<Result<PreparedRequest, Refusal>> {
  const { clientBody, canonicalBody, translationError, requestedModels, client } = request;
  const [requestedModel] = requestedModels;
  const { settings, ports } = context;
  const { policies, unsupported } = requestPolicies;
  const callerPays = caller.credential !== null;
  const attributed = await context.attribute({ headers, body: clientBody, caller });
  if (attributed.kind === 'error') return refused(attributed.error);
  const { attribution, session, affinity, hashPrompt } = attributed.value;
  const unpricedIn = await findUnpricedIn(caller, context);
  const found = targetsOf(request, affinity, { route, context, caller }, unpricedIn);
  if (found.kind === 'error') return refused(found.error);
  const { targets, skipped } = found.value;
  if (request.isPinned && targets.length > 1) {
    return refused(notPinned(requestedModel, translationError));
  }
  if (route === 'embeddings') {
    const unlike = findUnlikeModels([...targets, ...skipped.map(({ target }) => target)]);
    if (unlike !== null) return refused(unlike);
  }
  const schedule = startSchedule(targets, route, caller, context);
  const scheduled = schedule.next(ports.clock.now());
  const waitMs = scheduled === null ? schedule.sparedMs(ports.clock.now()) : null;
  if (waitMs !== null) return failure(unanswered(targets[0], waitMs));
  const firstTarget = scheduled?.target ?? targets[0];
  const refuse = (refusal: Refusal) => {
    schedule.releaseProbe(firstTarget, ports.clock.now());
    return failure(refusal);
  };
  const betas = betasOf(headers.get('anthropic-beta'));
  const passed = client.passthrough?.requestHeaders ?? [];
  const passedHeaders = passed.map((name) => headers.get(name) ?? '').join('\n');
  const scope = { route, context, callerPays, session, policies, unsupported, betas, passedHeaders };
  const replayable = replayableRequest(request, scope);
  const written = await replayable.writeFor(firstTarget);
  if (written.kind === 'error') return refuse({ error: written.error, headers: {} });
  const promptTokens = estimatePromptTokens(canonicalBody);
  const admitted = isLimited(caller)
    ? await context.admit({
        context,
        keyId: caller.keyId,
        limits: caller.key?.limits ?? {},
        user: hasUserLimits(caller) ? { name: attribution.user } : null,
        targets,
        first: written.value,
        replayable,
        promptTokens,
        client: client.id,
      })
    : null;
  if (admitted?.kind === 'error') return refuse(admitted.error);
  const hashesPrompt = route === 'chat' ? hashPrompt : null;
  const firstRequest = admitted?.value.first ?? written.value;
  const wantsReport = hashesPrompt !== null && headers.get(CACHE_REPORT) === '1';
  const cacheReport = wantsReport
    ? await compareWithSession(firstRequest, clientBody, hashesPrompt, {
        context,
        keyId: caller.keyId,
        session: attribution.session,
        asked: requestedModel,
      })
    : null;
  // After this point an abort event reports a disconnect.
  if (signal.aborted) {
    admitted?.value.admission.release();
    const error = apiError('invalid_request', 'The client left before its request was sent on');
    return refuse({ error, headers: {} });
  }
  return ok({
    firstRequest,
    replayable,
    schedule,
    prepared: {
      context,
      route,
      client,
      caller,
      attribution,
      hashPrompt: hashesPrompt,
      cacheReport,
      requestedModel,
      alias:
        findAlias(settings.aliases, requestedModel, settings.providers) === undefined ? null : requestedModel,
      targets,
      skipped: [...skipped, ...schedule.takeSkipped()],
      policies: client.takesVendorEvents ? policies : { ...policies, vendorEvents: [] },
      isStreamed: route !== 'embeddings' && canonicalBody.stream === true,
      isBase64: canonicalBody.encoding_format === 'base64',
      wantsUsage: wantsUsage(canonicalBody),
      userAgent: (headers.get('user-agent') ?? '').slice(0, MAX_NAME_CHARS),
      wantsCost: requestsCost(canonicalBody),
      promptTokens,
      callerPays,
      admission: admitted?.value.admission ?? null,
    },
  });
}

/** Finds the models that a hard budget of the caller's key refuses because they have no price. */
export async function findUnpricedIn(
  { key }: Caller,
  { prices, ports }: Pick<RequestContext, 'prices' | 'ports'>,
): Promise<TargetsRequest['unpricedIn']> {
  const currencies = hardCurrencies(key?.limits ?? null);
  if (currencies.length === 0) return () => null;
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
  {
    clientBody,
    canonicalBody,
    requestedModels,
  }: Pick<CompletionRequest, 'clientBody' | 'canonicalBody' | 'requestedModels'>,
  affinity: string | null,
  { route, context, caller }: Pick<RequestScope, 'route' | 'context' | 'caller'>,
  unpricedIn: TargetsRequest['unpricedIn'] = () => null,
) {
  const { settings, ports } = context;
  return findTargets({
    settings,
    route,
    // Passthrough sends fields that the canonical body lacks.
    body: clientBody,
    names: requestedModels,
    stickyKey: () => stickyKey(canonicalBody, affinity, ports.random),
    mayUse: (address) => mayUse(caller, address),
    unpricedIn,
    callerPays: caller.credential !== null,
  });
}

/** With the value 1, the response has `x-weir-cache`. */
const CACHE_REPORT = 'x-weir-cache-report';

interface ComparedRequest {
  readonly context: CompletionContext;
  readonly keyId: string;
  readonly session: string | null;
  readonly asked: string;
}

async function compareWithSession(
  request: TargetRequest,
  clientBody: JsonObject,
  hash: HashPrompt,
  { context, keyId, session, asked }: ComparedRequest,
): Promise<string | null> {
  const { compareCache } = context;
  if (compareCache === null || session === null) return null;
  const prefix = await hash(sentPrompt(request), clientBody);
  const { provider, model } = request.facts.target;
  const sent = { prefix, provider: provider.id, model, asked, reason: null, at: context.arrivedAt };
  return compareCache(context, keyId, session, sent);
}

interface TranslationScope {
  readonly route: Route;
  readonly context: RequestContext;
  readonly callerPays: boolean;
  /** The client's session; null: unknown. */
  readonly session: string | null;
  readonly policies: Policies;
  readonly unsupported: Unsupported;
  /** The entries of the client's header `anthropic-beta`. */
  readonly betas: readonly string[];
  /** The client's headers that passthrough sends on. */
  readonly passedHeaders: string;
}

/** The request as it can be written for any target. */
export function replayableRequest(
  { canonicalBody, clientBody, clientBodyBytes, client, translationError, dropped, lease }: CompletionRequest,
  { route, context, callerPays, session, policies, unsupported, betas, passedHeaders }: TranslationScope,
): ReplayableRequest {
  const { settings, ports, learned } = context;
  return new ReplayableRequest({
    canonicalBody,
    clientBody,
    passthrough: client.passthrough,
    translationError,
    dropped,
    lease,
    route,
    unsupported,
    promptCache: settings.promptCache,
    session,
    hidesReasoning: policies.reasoning === 'strip',
    maxBytes: maxWrittenBytes(clientBodyBytes, settings.maxRequestBytes),
    // A caller's own credential may have other rights at the provider than those of other callers.
    learned: callerPays ? new LearnedRefusals() : learned,
    mends: settings.learn === 'on',
    // A caller's own account and its refusals do not concern the deployment.
    keepsMessages: settings.errorTexts === 'on' && !callerPays,
    betas,
    passedHeaders,
    now: ports.clock.now,
  });
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

function startSchedule(
  targets: readonly [Target, ...Target[]],
  route: Route,
  caller: Caller,
  { settings, ports, circuits, arrivedAt }: RequestContext,
): RetrySchedule {
  const { retries, timers } = settings;
  const options = {
    targets,
    circuits,
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

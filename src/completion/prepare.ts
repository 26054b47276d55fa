/** A completion request that may be sent on, and everything for which it can be refused before an upstream is asked. */
import { type Caller, isLimited, mayUse } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Policies } from '../canonical/policies.ts';
import type { RequestContext } from '../http/context.ts';
import { identifyCaller } from '../http/identify.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
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
} from '../routing/targets.ts';
import type { Settings } from '../settings/settings.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import type { Admission, CompletionContext } from './admission.ts';
import { ReplayableRequest, type TargetRequest } from './replayable-request.ts';
import { type ClientRoute, type CompletionRequest, readCompletionRequest } from './request.ts';
import { type RequestPolicies, readRequestPolicies } from './request-policies.ts';
import { maxWrittenBytes } from './written-size.ts';

/** It lives as long as its answer streams, so it holds nothing of the prompt, which may be a thousand times its size. */
export interface PreparedCompletion {
  readonly context: RequestContext;
  readonly route: Route;
  /** Writes the answer. */
  readonly client: BoundProtocol;
  readonly caller: Caller;
  /** The model or agent as the caller named it: an alias, an address, or a bare name. */
  readonly requestedModel: string;
  /** The same, where it is an alias. */
  readonly alias: string | null;
  /** In the order in which they are tried. */
  readonly targets: readonly [Target, ...Target[]];
  readonly skipped: readonly SkippedTarget[];
  readonly policies: Policies;
  readonly isStreamed: boolean;
  /** The client asked for a usage chunk (U2). */
  readonly asksUsage: boolean;
  /** It asked for the cost, which stands in the usage (P5). */
  readonly asksCost: boolean;
  /** Estimated (M3). */
  readonly promptTokens: number;
  /** The credential is the caller's own (AUTH=passthrough), and so are refusals of it. */
  readonly callerPays: boolean;
  /** What the limits of its key say; null: it has none (G2). */
  readonly admission: Admission | null;
}

export type PrepareResult =
  | {
      readonly kind: 'exchange';
      readonly prepared: PreparedCompletion;
      /** What the first target is sent. */
      readonly first: TargetRequest;
      /** To be released. */
      readonly replayable: ReplayableRequest;
      /** In which order the others follow. */
      readonly schedule: RetrySchedule;
    }
  | ({ readonly kind: 'error' } & Refused);

interface Refused {
  readonly error: ApiError;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @param pathModel the model, where the path names it (Azure's clients) */
export async function prepareCompletion<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  pathModel?: string,
): Promise<PrepareResult> {
  const identified = await identifyCaller(request, context);
  if (identified.kind === 'error') return identified;
  const asked = readRequestPolicies(request.headers, context.settings);
  if (asked.kind === 'error') return asked;
  const read = await readCompletionRequest(request, clientRoute, context, pathModel);
  if (read.kind === 'error') return read;
  const { lease } = read;
  let result: PrepareResult | undefined;
  try {
    const caller = identified.value;
    result = await prepare(read, {
      route: clientRoute.route,
      context,
      caller,
      asked,
      signal: request.signal,
    });
    return result;
  } finally {
    if (result?.kind !== 'exchange') lease.release();
  }
}

interface Asker {
  readonly route: Route;
  readonly context: CompletionContext;
  readonly caller: Caller;
  readonly asked: RequestPolicies;
  readonly signal: AbortSignal;
}

/** Finds the request's targets, writes what the first one gets, and asks the limits of its key. */
async function prepare(read: CompletionRequest, scope: Asker): Promise<PrepareResult> {
  const { body, sent, sentBytes, translationError, dropped, names, lease, client } = read;
  const { route, context, caller, signal } = scope;
  const { policies, unsupported } = scope.asked;
  const callerPays = caller.credential !== null;
  const found = findTargets({
    settings: context.settings,
    route,
    // As it came: a lane passes what a chat has no words for (N1).
    body: sent,
    names,
    stickyKey: () => stickyKey(body, context.ports.random),
    mayUse: (address) => mayUse(caller, address),
    callerPays,
  });
  if (found.kind === 'error') return found;
  const { targets, skipped } = found.value;
  if (read.isPinned && targets.length > 1)
    return { kind: 'error', error: unpinned(names[0], translationError) };
  const schedule = openPasses(targets, route, caller, context);
  const turn = schedule.next(context.ports.clock.now());
  const replayable = new ReplayableRequest({
    body,
    sent,
    passthrough: client.passthrough ?? null,
    translationError,
    dropped,
    lease,
    route,
    unsupported,
    promptCache: context.settings.promptCache,
    hidesReasoning: policies.reasoning === 'strip',
    maxBytes: maxWrittenBytes(sentBytes, context.settings.maxRequestBytes),
  });
  const target = turn?.target ?? targets[0];
  const refuse = (refused: Refused): PrepareResult => {
    schedule.releaseProbe(target, context.ports.clock.now());
    return { kind: 'error', ...refused };
  };
  const written = await replayable.writeFor(target);
  if (written.kind === 'error') return refuse({ error: written.error });
  let first = written.value;
  const promptTokens = estimatePromptTokens(body);
  // A key without limits waits for nothing (G1).
  const admitted = isLimited(caller)
    ? await context.admit({ context, keyId: caller.keyId, targets, first, replayable, promptTokens })
    : null;
  if (admitted?.kind === 'error') return refuse(admitted.error);
  // Whoever asks from here on learns of a client that leaves; one that has left by now is asked for nobody (T4).
  if (signal.aborted) {
    admitted?.value.admission.release();
    return refuse({ error: apiError('invalid_request', 'The client left before its request was sent on') });
  }
  if (admitted !== null) first = admitted.value.first;
  return {
    kind: 'exchange',
    first,
    replayable,
    schedule,
    prepared: {
      context,
      route,
      client,
      caller,
      requestedModel: names[0],
      alias: isAlias(names[0], context.settings) ? names[0] : null,
      targets,
      skipped: [...skipped, ...schedule.takeSkipped()],
      policies: client.takesVendorEvents ? policies : { ...policies, vendorEvents: [] },
      isStreamed: body.stream === true,
      asksUsage: asksForUsage(body),
      asksCost: requestsCost(body),
      promptTokens,
      callerPays,
      admission: admitted?.value.admission ?? null,
    },
  };
}

/**
 * Nothing here knows which of several targets keeps what a request goes on with (N2).
 * @param translationError has the code by which clients know that they can send all of it
 */
function unpinned(name: string, translationError: ApiError | null): ApiError {
  const message = `${name} stands for several targets, and one of them alone keeps what this request goes on with: send <x-weir-provider>/<x-weir-model> of its answer as the model`;
  const error = apiError('invalid_request', message, 'model');
  return translationError === null ? error : { ...error, code: translationError.code };
}

/** A target's circuit is that of its route: a model that has no fill-in-the-middle may chat. */
function openPasses(
  targets: readonly [Target, ...Target[]],
  route: Route,
  { keyId }: Caller,
  { settings, ports, circuits, arrivedAt }: RequestContext,
): RetrySchedule {
  const { retries, timers } = settings;
  const options = {
    targets,
    circuits,
    caller: keyId,
    circuitKey: ({ address }: Target) => `${route} ${address}`,
    retries,
    deadlineAt: timers.deadlineMs === 0 ? Number.POSITIVE_INFINITY : arrivedAt + timers.deadlineMs,
    random: () => hashToUnit(ports.random()),
  };
  return new RetrySchedule(options, ports.clock.now());
}

function isAlias(name: string, { aliases, providers }: Settings): boolean {
  return findAlias(aliases, name, providers) !== undefined;
}

function asksForUsage(body: JsonObject): boolean {
  const { stream_options } = body;
  return (isObject(stream_options) && stream_options.include_usage === true) || requestsCost(body);
}

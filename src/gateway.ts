/** Wires one deployment's gateway: creates its shared state, gives each request its context, and adds what the listed features bring. */
import { ModelLists } from './api/model-lists.ts';
import { healthResponse } from './api/status.ts';
import { KnownKeys } from './auth/keys.ts';
import { KnownPeople } from './auth/people.ts';
import { KnownTeams } from './auth/teams.ts';
import { apiError } from './canonical/error.ts';
import type { CompletionContext } from './completion/admission.ts';
import { Credentials } from './credentials/credentials.ts';
import type {
  Before,
  BeforePorts,
  ConfiguredFeature,
  Deployment,
  FeatureParts,
  NewContext,
  StepErasure,
  VerifyAccess,
} from './feature.ts';
import { LearnedRefusals } from './fitting/learned.ts';
import { Deadline, RequestClock } from './http/clock.ts';
import type { Ports, UserData } from './http/context.ts';
import { ErasingUsers } from './http/erasure.ts';
import { CONTINUE, type Hooks, NO_HOOKS, runOnRequestHook, withRecordHook } from './http/hooks.ts';
import { hasCaller, takesAccessToken } from './http/request.ts';
import {
  type Answer,
  addCors,
  addNoStore,
  addRequestId,
  internalError,
  logRefusal,
  refused,
  written,
} from './http/respond.ts';
import type { Users } from './http/users.ts';
import { InFlight } from './metering/in-flight.ts';
import { KnownCallers } from './metering/known-callers.ts';
import type { Ledger } from './metering/ledger.ts';
import { PriceBook } from './metering/pricing/price-book.ts';
import { type Deliveries, RecordWriter } from './metering/record-writer.ts';
import { NO_KEY, RefusalCounts } from './metering/refusals.ts';
import { requestId } from './metering/time.ts';
import { clientOf, DEFAULT_CLIENT, type HttpRoute, Router, withoutQueryKey } from './routes.ts';
import { CircuitBreakers } from './routing/circuit-breaker.ts';
import { resalesOf } from './settings/configured-provider.ts';
import { PlaceCheck } from './settings/placement.ts';
import type { SettingProblem } from './settings/reader.ts';
import type { Settings } from './settings/settings.ts';
import { readText } from './shared/json.ts';
import { ok } from './shared/result.ts';
import { Memory } from './stream/memory.ts';
import { requestTracing, type Tracing } from './tracing/spans.ts';
import type { WorkerMessage } from './types.ts';
import {
  holdErasure,
  recordsInKv,
  refuseMessages,
  WITHOUT_ATTRIBUTION,
  WITHOUT_LIMITS,
} from './without-features.ts';

export interface GatewayPorts extends Ports {
  /** The runtime's tracing, or null where it has none. */
  readonly tracing: Tracing | null;
}

export interface Gateway {
  readonly fetch: (request: Request, context: Pick<ExecutionContext, 'waitUntil'>) => Promise<Response>;
  readonly newContext: NewContext;
  /** What it keeps in the isolate's memory; null: nothing. */
  readonly memory: GatewayMemory | null;
  /** Takes the next steps of an erasure. */
  readonly stepErasure: StepErasure;
  /** Stores the usage records that arrive through the queue. */
  readonly queue: (messages: readonly WorkerMessage[]) => Promise<void>;
  /**
   * The daily work of the features.
   * @param dueAt when it was due, in ms since the epoch
   */
  readonly scheduled: (dueAt: number) => Promise<void>;
}

/** What a gateway keeps in the isolate's memory, apart from what features keep. */
export type GatewayMemory = ReturnType<typeof createMemory>;

function createMemory(settings: Settings, ledger: Ledger, ports: GatewayPorts) {
  const { store, random, log, clock } = ports;
  const deliveries: Deliveries = { lost: 0, last: null };
  return {
    deliveries,
    refusals: new RefusalCounts({
      put: (batch) => ledger.putRefusals(batch),
      now: clock.now,
      random,
      log,
    }),
    bodies: new Memory(clock),
    callers: {
      keys: new KnownKeys(store),
      teams: new KnownTeams(store),
      people: new KnownPeople(store),
      accepted: new KnownCallers(store),
    },
    upstreams: {
      circuits: new CircuitBreakers(),
      credentials: new Credentials(),
      learned: new LearnedRefusals(),
      modelLists: new ModelLists(ports),
    },
    inFlight: new InFlight(),
    prices: new PriceBook(settings.prices, resalesOf(settings.providers), {
      ...{ store, log, now: clock.now, startTimer: clock.startTimer },
    }),
  };
}

/**
 * Creates the gateway of a deployment.
 * @param replaced the memory of the gateway that it replaces
 */
export function createGateway(
  { settings, features, running }: Deployment,
  ports: GatewayPorts,
  hooks: Hooks = NO_HOOKS,
  replaced: GatewayMemory | null = null,
): Gateway {
  const { store, random, log, clock } = ports;
  const router = new Router(settings.basePath, routesOf(features), hasSite(features));
  const parts = features.flatMap(({ start }) => start?.(ports) ?? []);
  const started: FeatureParts = Object.assign({}, ...parts);
  const { attribution = WITHOUT_ATTRIBUTION, limits = WITHOUT_LIMITS } = started;
  const { ledger, sinks, status, compareCache } = started.records ?? recordsInKv(store);
  const memory = replaced ?? createMemory(settings, ledger, ports);
  const { deliveries, refusals, bodies, ...kept } = memory;
  const records = new RecordWriter(sinks, log, deliveries);
  /** The same for all requests. */
  const shared = {
    settings,
    ledger,
    ...kept,
    keyObjects: limits.keyObjects,
    admission: limits.admission,
    showKept: started.showKept ?? null,
    attribute: attribution.attribute,
    users: {
      names: attribution.names,
      hash: attribution.hashUser,
      isErasing: isErasing(attribution.hashUser, ports),
    },
    userData: Object.assign({}, ...parts.map(({ userData }) => userData)) as UserData, // decode
    compareCache,
    circuitOpened: started.circuitOpened ?? null,
    deployment: {
      enforces: {
        limits: started.limits !== undefined,
        users: started.attribution !== undefined,
        groups: readsGroups(features),
      },
      hasAccessAdmins: hasAdmins(features),
      placeCheck: new PlaceCheck(store, settings.place),
      running,
    },
    tracing: requestTracing(ports.tracing),
    delivery: { status, byIsolate: records },
  };

  function newContext(...[facts, client, waitUntil]: Parameters<NewContext>): CompletionContext {
    const requestClock = new RequestClock(clock);
    const requestPorts = { ...ports, clock: requestClock };
    const { onRecord } = hooks;
    const hooked = onRecord === null ? records : withRecordHook(records, onRecord, { ports, waitUntil });
    return {
      // No spread: V8 calls its runtime for each field that follows one.
      settings: shared.settings,
      ledger: shared.ledger,
      callers: shared.callers,
      upstreams: shared.upstreams,
      inFlight: shared.inFlight,
      prices: shared.prices,
      keyObjects: shared.keyObjects,
      admission: shared.admission,
      showKept: shared.showKept,
      attribute: shared.attribute,
      users: shared.users,
      userData: shared.userData,
      compareCache: shared.compareCache,
      circuitOpened: shared.circuitOpened,
      deployment: shared.deployment,
      tracing: shared.tracing,
      delivery: shared.delivery,
      requestId: facts.requestId,
      arrivedAt: facts.arrivedAt,
      continent: facts.continent ?? null,
      ports: requestPorts,
      records: limits.settle(hooked, { ports: requestPorts, settings, waitUntil }),
      hostCaller: null,
      accessUser: null,
      client,
      takeMemory: (bytes) => bodies.grant(bytes, waitUntil),
      deadline: new Deadline(requestClock, facts.arrivedAt, settings.timers.deadlineMs),
      known: { keyId: NO_KEY, actor: null, team: null, isSentOn: false },
      waitUntil,
    };
  }

  /** Of work that no request started. */
  function ownContext(waitUntil: (work: Promise<unknown>) => void): CompletionContext {
    const arrivedAt = clock.now();
    return newContext({ requestId: requestId(arrivedAt, random()), arrivedAt }, DEFAULT_CLIENT, waitUntil);
  }

  return {
    fetch: async (given, context) => {
      const request = withoutQueryKey(given);
      const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
      const arrivedAt = clock.now();
      const continent = readText(given.cf?.continent) ?? null;
      const facts = { requestId: requestId(arrivedAt, random()), arrivedAt, continent };
      const requestContext = newContext(facts, router.clientOf(request), waitUntil);
      const answer = await respond(router, request, requestContext, {
        hooks,
        verifyAccess: attribution.verifyAccess,
      });
      requestContext.deadline.stop();
      const response = written(answer, requestContext);
      logRefusal(request, { answer, status: response.status }, requestContext, {
        route: () => router.nameOf(request),
        counts: refusals,
      });
      addRequestId(response, requestContext);
      addNoStore(request, response, requestContext);
      addCors(request, response, settings.corsOrigins);
      return request.method === 'HEAD' ? new Response(null, response) : response;
    },
    newContext,
    memory,
    stepErasure: async (erasure, waitUntil) =>
      started.stepErasure?.(ownContext(waitUntil), erasure) ?? holdErasure(erasure, ports),
    queue: started.queue ?? refuseMessages,
    scheduled: async (dueAt) => {
      for (const { scheduled } of parts) await scheduled?.(dueAt, ownContext);
    },
  };
}

/** If the list of erased users cannot be read, no request is refused: the second search erases what is recorded meanwhile. */
function isErasing(hash: Users['hash'], { store, clock, log }: GatewayPorts): Users['isErasing'] {
  if (hash === null) return async () => ok(false);
  const users = new ErasingUsers(store, hash);
  return async (user) => {
    try {
      return await users.has(user, clock.now());
    } catch (error) {
      log({ event: 'erasing_users_unreadable', reason: String(error) });
      return ok(false);
    }
  };
}

/** Whether a feature names admins, who need no admin token. */
export function hasAdmins(features: readonly ConfiguredFeature[]): boolean {
  return features.some((feature) => feature.hasAdmins === true);
}

/** Whether a feature reads the groups of people. */
function readsGroups(features: readonly ConfiguredFeature[]): boolean {
  return features.some((feature) => feature.readsGroups === true);
}

function hasSite(features: readonly ConfiguredFeature[]): boolean {
  return features.some((feature) => feature.hasSite === true);
}

function routesOf(features: readonly ConfiguredFeature[]): readonly HttpRoute[] {
  return features.flatMap(({ routes = [] }) => routes);
}

interface Checks {
  readonly hooks: Hooks;
  readonly verifyAccess: VerifyAccess | null;
}

/** The answer of the host's hook, or of the route. An unexpected exception is a 500 without its details. */
async function respond(
  router: Router,
  request: Request,
  context: CompletionContext,
  { hooks: { onRequest }, verifyAccess }: Checks,
): Promise<Answer> {
  try {
    // On every route with a caller, because an invalid token is never ignored.
    const isVerified = verifyAccess !== null && hasCaller(request, context);
    const access = isVerified ? await verifyAccess(request.headers, 'header') : NO_ACCESS_USER;
    if (access.kind === 'error') return refused(context.client, access.error);
    const verified = access.value === null ? context : { ...context, accessUser: access.value };
    const isHooked = onRequest !== null && hasCaller(request, context);
    const hook = isHooked ? await runOnRequestHook(onRequest, request, verified) : CONTINUE;
    if (hook.kind === 'answered') return hook.answer;
    if (hook.caller !== null) return await router.handle(request, { ...verified, hostCaller: hook.caller });
    // After the hook, because the host may have tokens of its own.
    const isRead = isVerified && (await takesAccessToken(request, context));
    const bearer = isRead ? await verifyAccess(request.headers, 'credential') : NO_ACCESS_USER;
    if (bearer.kind === 'error') return refused(context.client, bearer.error);
    return await router.handle(
      request,
      bearer.value === null ? verified : { ...context, accessUser: bearer.value },
    );
  } catch (error) {
    return refused(context.client, internalError(context, error));
  }
}

const NO_ACCESS_USER = ok(null);

/** The gateway of a deployment with invalid settings: every route but `/health` responds with an error that names them. */
export function misconfiguredGateway(
  problems: readonly SettingProblem[],
  { running }: Pick<Deployment, 'running'>,
  { clock, random }: Pick<Ports, 'clock' | 'random'>,
): Gateway {
  const [first] = problems;
  const message = problems.map((problem) => `${problem.setting} ${problem.message}`).join('; ');
  const misconfigured = apiError('misconfigured', message, first?.setting ?? null);
  return {
    fetch: async (request) => {
      const id = requestId(clock.now(), random());
      const client = clientOf(request);
      const response = new URL(request.url).pathname.endsWith('/health')
        ? healthResponse(running)
        : written(refused(client, misconfigured), { requestId: id });
      addRequestId(response, { client, requestId: id });
      return response;
    },
    newContext: () => {
      throw new Error(message);
    },
    memory: null,
    stepErasure: () => Promise.reject(new Error(message)),
    // Rejects, so that the queue delivers the messages again.
    queue: () => Promise.reject(new Error(message)),
    scheduled: () => Promise.reject(new Error(message)),
  };
}

/**
 * What runs before the gateway: the site beside it. It needs few settings, so that other invalid settings do not take the site down.
 * Null where nothing does.
 */
export function createBefore(
  { settings, features }: Deployment,
  ports: Omit<BeforePorts, 'hasRoute'>,
): Before | null {
  const router = new Router(settings.basePath, routesOf(features), hasSite(features));
  const hasRoute = (pathname: string) => router.hasRoute(pathname);
  for (const { before } of features) {
    const created = before?.({ ...ports, hasRoute }) ?? null;
    if (created !== null) return created;
  }
  return null;
}

/** Wires one deployment's gateway: creates its shared state, gives each request its context, and adds the features' routes. */
import { ModelLists } from './api/model-lists.ts';
import { createVerifyAccess, type VerifyAccess } from './attribution/access.ts';
import { createAttribution } from './attribution/attribution.ts';
import { KnownKeys } from './auth/keys.ts';
import { apiError } from './canonical/error.ts';
import type { CompletionContext } from './completion/admission.ts';
import { handleDashboard } from './dashboard/dashboard.ts';
import { createExchange } from './durable-responses/exchange.ts';
import type { Exchange, ResponseNamespace } from './durable-responses/response-calls.ts';
import { durableRoutes } from './durable-responses/routes.ts';
import { Deadline, RequestClock } from './http/clock.ts';
import type { ErrorClient, Ports, RequestContext } from './http/context.ts';
import { CONTINUE, type Hooks, NO_HOOKS, runOnRequestHook, withRecordHook } from './http/hooks.ts';
import { hasCaller } from './http/request.ts';
import {
  addCors,
  addRequestId,
  clientError,
  internalError,
  jsonResponse,
  logRefusal,
} from './http/respond.ts';
import { createAdmit, settlingRecords } from './ledger/admission.ts';
import type { LedgerNamespace } from './ledger/ledger-calls.ts';
import { LedgerClient } from './ledger/ledger-client.ts';
import { ObjectLedger } from './ledger/records/object-ledger.ts';
import { DeadLetters } from './metering/dead-letters.ts';
import { KnownCallers } from './metering/known-callers.ts';
import { KvLedger } from './metering/kv-ledger.ts';
import type { Ledger } from './metering/ledger.ts';
import { PriceBook } from './metering/pricing/price-book.ts';
import { consumeRecords, QueueSink, type RecordMessage } from './metering/queue.ts';
import { RecordWriter } from './metering/record-writer.ts';
import { NO_KEY, RefusalCounts } from './metering/refusals.ts';
import { requestId } from './metering/time.ts';
import { OriginProxy, type OriginProxyPorts } from './origin-proxy/origin-proxy.ts';
import { responses } from './protocols/openai-responses/client.ts';
import { clientOfPath, type Route, Router } from './routes.ts';
import { ApiMemory } from './routing/api-choice.ts';
import { CircuitBreakers } from './routing/circuit-breaker.ts';
import type { MountConfig } from './settings/mount-config.ts';
import type { SettingProblem, Settings } from './settings/settings.ts';
import { ok } from './shared/result.ts';
import { Memory } from './stream/memory.ts';
import { requestTracing, type Tracing } from './tracing/spans.ts';

/** Routes that the core does not know. */
const FEATURE_ROUTES: readonly Route[] = [
  { path: '/dashboard', prefixes: [''], methods: { GET: handleDashboard } },
];

export interface GatewayPorts extends Ports {
  /** The ledger objects (`WEIR_LEDGER`), or null where none are bound. */
  readonly ledgers: LedgerNamespace | null;
  /** The objects of responses (`WEIR_RESPONSES`), or null where none are bound. */
  readonly responses: ResponseNamespace | null;
  /** The runtime's tracing, or null where it has none. */
  readonly tracing: Tracing | null;
}

export interface Gateway {
  readonly fetch: (request: Request, context: Pick<ExecutionContext, 'waitUntil'>) => Promise<Response>;
  /** Runs background responses inside their objects. */
  readonly exchange: Exchange;
  /** Stores the usage records that arrive through the queue. */
  readonly consume: (messages: readonly RecordMessage[]) => Promise<void>;
  /** Stores usage records whose ledger object was unreachable before. Run once a day. */
  readonly replayDeadLetters: () => Promise<void>;
}

/** Creates the gateway of a deployment. */
export function createGateway(settings: Settings, ports: GatewayPorts, hooks: Hooks = NO_HOOKS): Gateway {
  const router = new Router(settings.basePath, [
    ...FEATURE_ROUTES,
    ...(settings.responses === 'durable' && ports.responses !== null ? durableRoutes(ports.responses) : []),
  ]);
  const { store, queue, random, log, clock } = ports;
  const ledger = openLedger(settings, ports);
  const deadLetters = new DeadLetters(store, ledger);
  const sinks = settings.ledger === 'kv' ? [ledger] : [deadLetters.ledger, deadLetters];
  const written = queue === null ? sinks : [new QueueSink(queue), ...sinks];
  const records = new RecordWriter(written, log);
  const refusals = new RefusalCounts({
    put: (batch) => ledger.putRefusals(batch),
    now: clock.now,
    random,
    log,
  });
  const memory = new Memory(clock);
  const circuits = new CircuitBreakers();
  const apis = new ApiMemory();
  const tracing = requestTracing(ports.tracing);
  const modelLists = new ModelLists(ports);
  const knownKeys = new KnownKeys(store);
  const keyObjects = new LedgerClient(ports.ledgers);
  const admit = createAdmit(keyObjects);
  const { attribute, names: factNames } = createAttribution(settings);
  const verifyAccess = createVerifyAccess(settings, {
    fetch: (url, init) => ports.fetch(url, init),
    now: clock.now,
    startTimer: clock.startTimer,
    log,
  });
  const knownCallers = new KnownCallers(store);
  const prices = new PriceBook(settings.prices, {
    store,
    log,
    now: clock.now,
    startTimer: clock.startTimer,
  });
  /** @param client the client protocol of the request's path */
  function newContext(
    { requestId, arrivedAt }: Pick<RequestContext, 'requestId' | 'arrivedAt'>,
    client: ErrorClient,
    waitUntil: (work: Promise<unknown>) => void,
  ): CompletionContext {
    const requestClock = new RequestClock(clock);
    const requestPorts = { ...ports, clock: requestClock };
    const { onRecord } = hooks;
    const hooked = onRecord === null ? records : withRecordHook(records, onRecord, { ports, waitUntil });
    return {
      settings,
      ports: requestPorts,
      ledger,
      records: settlingRecords(hooked, keyObjects, { ports: requestPorts, settings }),
      hostCaller: null,
      accessUser: null,
      client,
      modelLists,
      knownKeys,
      keyObjects,
      attribute,
      factNames,
      admit,
      knownCallers,
      leaseMemory: (bytes) => memory.lease(bytes, waitUntil),
      requestId,
      arrivedAt,
      deadline: new Deadline(requestClock, arrivedAt, settings.timers.deadlineMs),
      known: { keyId: NO_KEY, isSentOn: false },
      circuits,
      apis,
      tracing,
      waitUntil,
      prices,
    };
  }

  return {
    fetch: async (request, context) => {
      const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
      const arrivedAt = clock.now();
      const facts = { requestId: requestId(arrivedAt, random()), arrivedAt };
      const requestContext = newContext(facts, clientOfPath(request), waitUntil);
      const response = await respond(router, request, requestContext, { hooks, verifyAccess });
      requestContext.deadline.stop();
      logRefusal(request, response, requestContext, {
        route: () => router.nameOf(request),
        counts: refusals,
      });
      addRequestId(response, requestContext);
      addCors(request, response, settings.corsOrigins);
      return request.method === 'HEAD' ? new Response(null, response) : response;
    },
    exchange: createExchange((facts, waitUntil) => newContext(facts, responses, waitUntil)),
    consume: (messages) => consumeRecords(messages, { sinks, log }),
    replayDeadLetters: async () => log({ event: 'stranded_brought_in', ...(await deadLetters.replay()) }),
  };
}

function openLedger(settings: Settings, { store, ledgers, log }: GatewayPorts): Ledger {
  return settings.ledger === 'kv' || ledgers === null
    ? new KvLedger(store)
    : new ObjectLedger({ ledgers, recordDays: settings.recordDays, log });
}

interface Checks {
  readonly hooks: Hooks;
  readonly verifyAccess: VerifyAccess | null;
}

/** The response of the host's hook, or of the route. An unexpected exception is a 500 without its details. */
async function respond(
  router: Router,
  request: Request,
  context: CompletionContext,
  { hooks: { onRequest }, verifyAccess }: Checks,
): Promise<Response> {
  try {
    // On every route with a caller, because an invalid token is never ignored.
    const isVerified = verifyAccess !== null && hasCaller(request, context);
    const access = isVerified ? await verifyAccess(request.headers) : NO_ACCESS_USER;
    if (access.kind === 'error') return clientError(context.client, context, access.error);
    const verified = access.value === null ? context : { ...context, accessUser: access.value };
    const isHooked = onRequest !== null && hasCaller(request, context);
    const hook = isHooked ? await runOnRequestHook(onRequest, request, verified) : CONTINUE;
    if (hook.kind === 'answered') return hook.response;
    const identified = hook.caller === null ? verified : { ...verified, hostCaller: hook.caller };
    return await router.handle(request, identified);
  } catch (error) {
    return clientError(context.client, context, internalError(context, error));
  }
}

const NO_ACCESS_USER = ok(null);

/** The gateway of a deployment with invalid settings: every route but `/health` responds with an error that names them. */
export function misconfiguredGateway(
  problems: readonly SettingProblem[],
  { clock, random }: Pick<Ports, 'clock' | 'random'>,
): Gateway {
  const [first] = problems;
  const message = problems.map((problem) => `${problem.setting} ${problem.message}`).join('; ');
  const misconfigured = apiError('misconfigured', message, first?.setting ?? null);
  return {
    fetch: async (request) => {
      const id = requestId(clock.now(), random());
      const client = clientOfPath(request);
      const response = new URL(request.url).pathname.endsWith('/health')
        ? jsonResponse({ status: 'ok' })
        : clientError(client, { requestId: id }, misconfigured);
      addRequestId(response, { client, requestId: id });
      return response;
    },
    exchange: {
      run: () => Promise.reject(new Error(message)),
      queued: () => '',
      interrupted: (record) => record,
      writeRecord: () => Promise.reject(new Error(message)),
    },
    // Rejects, so that the queue delivers the messages again.
    consume: () => Promise.reject(new Error(message)),
    replayDeadLetters: () => Promise.reject(new Error(message)),
  };
}

/**
 * The proxy to the site that shares the Worker's host, or null where there is none. It runs before the gateway and needs only the
 * mount configuration, so that other invalid settings do not take the site down.
 */
export function createOriginProxy(mount: MountConfig | null, ports: OriginProxyPorts): OriginProxy | null {
  if (mount === null || mount.origin.kind === 'none') return null;
  const router = new Router(mount.basePath, FEATURE_ROUTES);
  return new OriginProxy(mount, (pathname) => router.hasRoute(pathname), ports);
}

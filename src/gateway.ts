/** Routes requests to their handlers: one deployment's gateway, with everything from outside handed in. */
import { type IRequest, IttyRouter } from 'itty-router';
import {
  handleChangeKey,
  handleCreateKey,
  handleListKeys,
  handleRevokeKey,
  handleShowKey,
} from './api/admin-keys.ts';
import { handleCountTokens } from './api/count-tokens.ts';
import { handleKey } from './api/key.ts';
import { ModelLists } from './api/model-lists.ts';
import { handleModel, handleModels } from './api/models.ts';
import { noCompaction, noResponses } from './api/unsupported-responses.ts';
import { handleUsage } from './api/usage.ts';
import { handleFindRecord, handleListRecords } from './api/usage-records.ts';
import { handleRefusals } from './api/usage-refusals.ts';
import { KnownKeys } from './auth/keys.ts';
import { apiError } from './canonical/error.ts';
import { handleCompletion } from './completion/handler.ts';
import { handleDashboard } from './dashboard/dashboard.ts';
import { Deadline, RequestClock } from './http/clock.ts';
import type { Ports, RequestContext } from './http/context.ts';
import { type Hooks, NO_HOOKS, runOnRequestHook, withRecordHook } from './http/hooks.ts';
import { logRefusal } from './http/log-refusal.ts';
import { clientOfPath, normalizePath, pathOf, routeNotFound } from './http/paths.ts';
import {
  addCors,
  addRequestId,
  clientError,
  internalError,
  jsonResponse,
  preflight,
} from './http/respond.ts';
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
import { messages } from './protocols/anthropic-messages/client.ts';
import { chat, completions, fim } from './protocols/openai-chat/client-writer.ts';
import { responses } from './protocols/openai-responses/client.ts';
import { CircuitBreakers } from './routing/circuit-breaker.ts';
import type { MountConfig } from './settings/mount-config.ts';
import type { SettingProblem, Settings } from './settings/settings.ts';
import { Memory } from './stream/memory.ts';

export interface Gateway {
  readonly fetch: (request: Request, context: Pick<ExecutionContext, 'waitUntil'>) => Promise<Response>;
  /** Settles records that come through the queue (L6). */
  readonly consume: (messages: readonly RecordMessage[]) => Promise<void>;
  /** Brings in records whose ledger could not be reached (L5): once a day is enough. */
  readonly replayDeadLetters: () => Promise<void>;
}

/** The gateway of a deployment. It answers every request: an internal failure is a 500 without its details (E4). */
export function createGateway(settings: Settings, ports: Ports, hooks: Hooks = NO_HOOKS): Gateway {
  let router: Router | undefined;
  const routes: Routes = {
    completions: completionPaths(settings.basePath),
    router: () => {
      router ??= createRouter(settings.basePath);
      return router;
    },
  };
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
  const modelLists = new ModelLists(ports);
  const knownKeys = new KnownKeys(store);
  const knownCallers = new KnownCallers(store);
  const prices = new PriceBook(settings.prices, {
    store,
    log,
    now: clock.now,
    startTimer: clock.startTimer,
  });
  return {
    fetch: async (request, context) => {
      const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
      const arrivedAt = clock.now();
      const requestClock = new RequestClock(clock);
      const deadline = new Deadline(requestClock, arrivedAt, settings.timers.deadlineMs);
      const requestContext: RequestContext = {
        settings,
        ports: { ...ports, clock: requestClock },
        ledger,
        records: withRecordHook(records, hooks, { ports, waitUntil }),
        hostCaller: null,
        client: clientOfPath(request),
        modelLists,
        knownKeys,
        knownCallers,
        leaseMemory: (bytes) => memory.lease(bytes, waitUntil),
        requestId: requestId(arrivedAt, random()),
        arrivedAt,
        deadline,
        known: { keyId: NO_KEY, isSentOn: false },
        circuits,
        waitUntil,
        prices,
      };
      const answer = await serve(routes, request, requestContext, hooks);
      deadline.stop();
      logRefusal(request, answer, requestContext, refusals);
      addRequestId(answer, requestContext);
      addCors(request, answer, settings.corsOrigins);
      return request.method === 'HEAD' ? new Response(null, answer) : answer;
    },
    consume: (messages) => consumeRecords(messages, { sinks, log }),
    replayDeadLetters: async () => log({ event: 'stranded_brought_in', ...(await deadLetters.replay()) }),
  };
}

function openLedger(settings: Settings, { store, ledgers, log }: Ports): Ledger {
  return settings.ledger === 'kv' || ledgers === null
    ? new KvLedger(store)
    : new ObjectLedger({ ledgers, recordDays: settings.recordDays, log });
}

type Handler = (request: Request, context: RequestContext) => Promise<Response>;

interface Routes {
  /** POST, by path: nearly every request, which is looked up and tried against no pattern. */
  readonly completions: ReadonlyMap<string, Handler>;
  /** All routes. Made when first asked for: its forty patterns are no part of a completion's cost in a fresh isolate. */
  readonly router: () => Router;
}

type Router = ReturnType<typeof createRouter>;

const CHAT = { route: 'chat', client: chat } as const;
const FIM = { route: 'fim', client: fim } as const;
const AGENTS = { route: 'agents', client: chat } as const;
const MESSAGES = { route: 'chat', client: messages } as const;
const RESPONSES = { route: 'chat', client: responses } as const;
const COMPLETIONS = { route: 'completions', client: completions } as const;

/** The paths of completions, with `/v1` or without. */
const COMPLETION_PATHS: readonly (readonly [path: string, handler: Handler])[] = [
  ['/chat/completions', (request, context) => handleCompletion(request, CHAT, context)],
  ['/fim/completions', (request, context) => handleCompletion(request, FIM, context)],
  ['/agents/completions', (request, context) => handleCompletion(request, AGENTS, context)],
  ['/completions', (request, context) => handleCompletion(request, COMPLETIONS, context)],
  ['/messages', (request, context) => handleCompletion(request, MESSAGES, context)],
  ['/responses', (request, context) => handleCompletion(request, RESPONSES, context)],
];

function completionPaths(basePath: string): ReadonlyMap<string, Handler> {
  return new Map(
    COMPLETION_PATHS.flatMap(([path, handler]) => [
      [`${basePath}${path}`, handler] as const,
      [`${basePath}/v1${path}`, handler] as const,
    ]),
  );
}

function createRouter(basePath: string) {
  const router = IttyRouter<IRequest, [RequestContext], Response | undefined>({ base: basePath });
  for (const [path, handler] of COMPLETION_PATHS) router.post(`(/v1)?${path}`, handler);
  return (
    router
      .get('/health', () => jsonResponse({ status: 'ok' }))
      .get('/dashboard', handleDashboard)
      // DeepSeek's own clients have /beta in their base URL, for fill-in-the-middle and prefixes.
      .post('/beta/chat/completions', (request, context) => handleCompletion(request, CHAT, context))
      .post('/beta/completions', (request, context) => handleCompletion(request, COMPLETIONS, context))
      .post('/openai/deployments/:model+/chat/completions', (request, context) =>
        handleCompletion(request, CHAT, context, decodePath(request.params.model)),
      )
      .post('(/v1)?/messages/count_tokens', (request, context) =>
        handleCountTokens(request, MESSAGES, context, (input_tokens) => ({ input_tokens })),
      )
      .post('(/v1)?/responses/input_tokens', (request, context) =>
        handleCountTokens(request, RESPONSES, context, (input_tokens) => ({
          object: 'response.input_tokens',
          input_tokens,
        })),
      )
      .get('(/v1)?/models', handleModels)
      .get('(/v1)?/models/:id+', (request, context) =>
        handleModel(request, context, decodePath(request.params.id)),
      )
      .get('(/v1)?/usage', handleUsage)
      .get('(/v1)?/usage/refusals', handleRefusals)
      .get('(/v1)?/usage/records', handleListRecords)
      .get('(/v1)?/usage/records/:id', (request, context) =>
        handleFindRecord(request, context, request.params.id ?? ''),
      )
      .get('(/v1)?/key', handleKey)
      .post('/admin/keys', handleCreateKey)
      .get('/admin/keys', handleListKeys)
      .get('/admin/keys/:id', (request, context) => handleShowKey(request, context, request.params.id))
      .delete('/admin/keys/:id', (request, context) => handleRevokeKey(request, context, request.params.id))
      .patch('/admin/keys/:id', (request, context) => handleChangeKey(request, context, request.params.id))
      .all('/(health|dashboard)', otherMethod('GET'))
      .all('(/v1|/beta)?/(chat/|fim/|agents/)?completions', otherMethod('POST'))
      .all('(/v1)?/messages(/count_tokens)?', otherMethod('POST'))
      .all('(/v1)?/responses(/input_tokens)?', otherMethod('POST'))
      .post('(/v1)?/responses/compact', noCompaction)
      .get('(/v1)?/responses/:id+', noResponses)
      .post('(/v1)?/responses/:id+', noResponses)
      .delete('(/v1)?/responses/:id+', noResponses)
      .all('(/v1)?/responses/:id+', otherMethod('GET, POST, DELETE'))
      .all('/openai/deployments/:model+/chat/completions', otherMethod('POST'))
      .all('(/v1)?/(models|usage|usage/records|usage/refusals|key)', otherMethod('GET'))
      .all('(/v1)?/models/:id+', otherMethod('GET'))
      .all('(/v1)?/usage/records/:id', otherMethod('GET'))
      .all('/admin/keys', otherMethod('GET, POST'))
      .all('/admin/keys/:id', otherMethod('GET, PATCH, DELETE'))
  );
}

/** Answers a method that a route of Weir's does not take: a page's preflight, or a mistake. */
function otherMethod(methods: string): (request: Request, context: RequestContext) => Response {
  return (request, context) => {
    if (request.method === 'OPTIONS') return preflight(request, methods, context.settings.corsOrigins);
    const error = apiError('method_not_allowed', `This route takes ${methods}`);
    return clientError(context.client, context, error, new Headers({ allow: methods }));
  };
}

/** Weir's answer; whatever breaks inside is one, too (B5). */
async function serve(
  { completions, router }: Routes,
  request: Request,
  context: RequestContext,
  hooks: Hooks,
): Promise<Response> {
  try {
    const hook = await runOnRequestHook(hooks, request, context);
    if (hook.kind === 'answered') return hook.response;
    const forgiven = normalizePath(request);
    const called = hook.caller === null ? context : { ...context, hostCaller: hook.caller };
    const completion = forgiven.method === 'POST' ? completions.get(pathOf(forgiven.url)) : undefined;
    if (completion !== undefined) return await completion(forgiven, called);
    const isHead = request.method === 'HEAD';
    const routed = isHead ? new Request(forgiven.url, { headers: forgiven.headers }) : forgiven;
    return (await router().fetch(routed, called)) ?? unknownRoute(forgiven, context);
  } catch (error) {
    return clientError(context.client, context, internalError(context, error));
  }
}

/** The preflight of a route that there is not succeeds, so that a page shows the error instead of "Connection error" (Q12). */
function unknownRoute(request: Request, context: RequestContext): Response {
  return request.method === 'OPTIONS'
    ? preflight(request, 'GET, POST, PATCH, DELETE', context.settings.corsOrigins)
    : routeNotFound(request, context);
}

/** A name in a path, where a slash may be written as `%2F`. */
function decodePath(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? '');
  } catch {
    return text ?? '';
  }
}

/** The gateway of a deployment whose settings are invalid: it names them on every route but `/health`. */
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
      const answer = new URL(request.url).pathname.endsWith('/health')
        ? jsonResponse({ status: 'ok' })
        : clientError(client, { requestId: id }, misconfigured);
      addRequestId(answer, { client, requestId: id });
      return answer;
    },
    // Thrown, so that the messages come again.
    consume: () => Promise.reject(new Error(message)),
    replayDeadLetters: () => Promise.reject(new Error(message)),
  };
}

/**
 * The site beside a gateway, or null where there is none. It is asked before the gateway and needs none of its settings,
 * so that no fault of theirs takes a page down (W1).
 */
export function createOriginProxy(mount: MountConfig | null, ports: OriginProxyPorts): OriginProxy | null {
  if (mount === null || mount.origin.kind === 'none') return null;
  const { routes } = createRouter(mount.basePath);
  return new OriginProxy(mount, (pathname) => routes.some(([, pattern]) => pattern.test(pathname)), ports);
}

/** Routes requests to their handlers: what `index.ts` runs, and what another Worker imports to mount Weir. */
import { type IRequest, IttyRouter } from 'itty-router';
import { apiError } from './canonical/error.ts';
import { handleCreateKey, handleListKeys, handleRevokeKey } from './http/admin-keys.ts';
import { handleCompletion } from './http/completions.ts';
import type { Ports, RequestContext } from './http/context.ts';
import { addCors, preflight } from './http/cors.ts';
import { handleModels } from './http/models.ts';
import { errorResponse, jsonResponse } from './http/respond.ts';
import { handleUsage } from './http/usage.ts';
import { RecordWriter } from './metering/record-writer.ts';
import type { SettingProblem, Settings } from './settings.ts';

export interface Gateway {
  readonly fetch: (request: Request, context: Pick<ExecutionContext, 'waitUntil'>) => Promise<Response>;
}

/** The gateway of a deployment. It answers every request: an internal failure is a 500 without its details (E4). */
export function createGateway(settings: Settings, ports: Ports): Gateway {
  const router = createRouter(settings.basePath);
  const { store, log, clock } = ports;
  const records = new RecordWriter({ store, log, startTimer: clock.startTimer });
  return {
    fetch: async (request, context) => {
      const requestContext: RequestContext = {
        settings,
        ports,
        records,
        requestId: ports.random(),
        arrivedAt: clock.now(),
        waitUntil: (work) => context.waitUntil(work),
      };
      const response = await route(router, request, requestContext);
      if (response === undefined && settings.origin === 'pass') return askOrigin(request, ports);
      const answer = response ?? errorResponse(apiError('not_found', 'There is no such route'));
      answer.headers.set('x-weir-request-id', requestContext.requestId);
      addCors(request, answer, settings.corsOrigins);
      return answer;
    },
  };
}

type GatewayRouter = ReturnType<typeof createRouter>;

function createRouter(basePath: string) {
  const router = IttyRouter<IRequest, [RequestContext], Response | undefined>({ base: basePath });
  return router
    .get('/health', () => jsonResponse({ status: 'ok' }))
    .post('(/v1)?/chat/completions', (request, context) => handleCompletion(request, 'chat', context))
    .post('(/v1)?/fim/completions', (request, context) => handleCompletion(request, 'fim', context))
    .post('(/v1)?/agents/completions', (request, context) => handleCompletion(request, 'agents', context))
    .post('(/v1)?/completions', (request, context) => handleCompletion(request, 'completions', context))
    .get('(/v1)?/models', handleModels)
    .get('(/v1)?/usage', handleUsage)
    .post('/admin/keys', handleCreateKey)
    .get('/admin/keys', handleListKeys)
    .delete('/admin/keys/:id', (request, context) =>
      handleRevokeKey(request, context, request.params.id ?? ''),
    )
    .all('/health', otherMethod('GET'))
    .all('(/v1)?/(chat/|fim/|agents/)?completions', otherMethod('POST'))
    .all('(/v1)?/(models|usage)', otherMethod('GET'))
    .all('/admin/keys', otherMethod('GET, POST'))
    .all('/admin/keys/:id', otherMethod('DELETE'));
}

/** Answers a method that a route of Weir's does not take: a page's preflight, or a mistake. */
function otherMethod(methods: string): (request: Request, context: RequestContext) => Response {
  return (request, context) => {
    if (request.method === 'OPTIONS') return preflight(request, methods, context.settings.corsOrigins);
    const error = apiError('method_not_allowed', `This route takes ${methods}`);
    return errorResponse(error, new Headers({ allow: methods }));
  };
}

async function route(
  router: GatewayRouter,
  request: Request,
  context: RequestContext,
): Promise<Response | undefined> {
  try {
    return await router.fetch(request, context);
  } catch (error) {
    context.ports.log({ event: 'internal_error', request_id: context.requestId, reason: String(error) });
    return errorResponse(apiError('internal_error', 'Weir failed on this request; its log has the reason'));
  }
}

/** A path that is not Weir's: the zone's own origin answers for itself, and its response is not Weir's to change. */
async function askOrigin(request: Request, ports: Ports): Promise<Response> {
  try {
    return await ports.fetch(request);
  } catch (error) {
    ports.log({ event: 'origin_unreachable', reason: String(error) });
    return errorResponse(apiError('upstream_unreachable', 'The origin could not be reached'));
  }
}

/** The gateway of a deployment whose settings are invalid: it names them on every route but `/health`. */
export function misconfiguredGateway(problems: readonly SettingProblem[]): Gateway {
  const [first] = problems;
  const message = problems.map((problem) => `${problem.setting} ${problem.message}`).join('; ');
  return {
    fetch: async (request) =>
      new URL(request.url).pathname.endsWith('/health')
        ? jsonResponse({ status: 'ok' })
        : errorResponse(apiError('misconfigured', message, first?.setting ?? null)),
  };
}

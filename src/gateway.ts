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

/** The gateway of a deployment. It answers every request: what breaks inside is a 500 that tells nothing of it (E4). */
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
        arrivedAt: ports.clock.now(),
        waitUntil: (work) => context.waitUntil(work),
      };
      const response =
        preflight(request, settings.corsOrigins) ?? (await route(router, request, requestContext));
      // The zone's own origin answers for itself: its response is not Weir's to change.
      if (response === undefined && settings.origin === 'pass') return ports.fetch(request);
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
    .all('/health', () => methodNotAllowed('GET'))
    .all('(/v1)?/(chat/|fim/|agents/)?completions', () => methodNotAllowed('POST'))
    .all('(/v1)?/(models|usage)', () => methodNotAllowed('GET'))
    .all('/admin/keys', () => methodNotAllowed('GET, POST'));
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
    return errorResponse(apiError('internal_error', 'Weir failed on this request; its log says why'));
  }
}

function methodNotAllowed(allowed: string): Response {
  return errorResponse(
    apiError('method_not_allowed', `This route takes ${allowed}`),
    new Headers({ allow: allowed }),
  );
}

/** The gateway of a deployment whose settings are wrong: it says which, by name, on every route but `/health`. */
export function misconfiguredGateway(problems: readonly SettingProblem[]): Gateway {
  const [first] = problems;
  const message = problems.map(({ setting, message }) => `${setting} ${message}`).join('; ');
  return {
    fetch: async (request) =>
      new URL(request.url).pathname.endsWith('/health')
        ? jsonResponse({ status: 'ok' })
        : errorResponse(apiError('misconfigured', message, first?.setting ?? null)),
  };
}

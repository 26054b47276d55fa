/** Makes a Worker's handlers of Weir: a deployment for each environment that they are called with, and a net under it. */
import { apiError } from '../canonical/error.ts';
import type { Hooks } from '../gateway.ts';
import { errorResponse } from '../http/respond.ts';
import type { Tracing } from '../tracing/spans.ts';
import { Deployment, log } from './deployment.ts';
import type { Weir, WeirOptions } from './types.ts';

/**
 * @param onFirstUse called once an environment, before its first request
 * @param started one that was made before any request, without options: it serves its environment, whose settings are not read twice
 */
export function createHandlers<Env>(
  options: WeirOptions<Env>,
  onFirstUse: (deployment: Deployment) => void,
  tracing: Tracing | null,
  started: Deployment | null = null,
): Weir<Env> {
  const { onRequest, onRecord, ...settings } = options;
  /** One of each an environment: settings do not change while an isolate lives. */
  const deployments = new WeakMap<object, Deployment>();

  function deploymentOf(env: Env): Deployment {
    const bindings = isGiven(env) ? env : NO_BINDINGS;
    const known = deployments.get(bindings);
    if (known !== undefined) return known;
    const deployment = started?.isOf(bindings) ? started : newDeployment(bindings, env);
    deployments.set(bindings, deployment);
    onFirstUse(deployment);
    return deployment;
  }

  function newDeployment(bindings: object, env: Env): Deployment {
    const hooks: Hooks = {
      onRequest:
        onRequest === undefined ? null : (request, requestId) => onRequest(request, { env, requestId }),
      onRecord:
        onRecord === undefined ? null : (record) => onRecord(record, { env, requestId: record.request_id }),
    };
    return new Deployment(bindings, settings, hooks, tracing);
  }

  return {
    fetch: async (request, env, ctx) => {
      if (!isGiven(env) || !isGiven(ctx)) return incomplete();
      let deployment: Deployment;
      try {
        deployment = deploymentOf(env);
      } catch (error) {
        return broken(error);
      }
      if (deployment.originProxy !== null) {
        const passThroughOnException = () => ctx.passThroughOnException?.();
        // What it throws is the runtime's, which asks the site's origin then.
        const passed = await deployment.originProxy.pass(request, { passThroughOnException });
        if (passed !== null) return passed;
      }
      try {
        return await deployment.gateway.fetch(request, ctx);
      } catch (error) {
        return broken(error);
      }
    },
    queue: async ({ messages }, env) => deploymentOf(env).gateway.consume(messages),
    scheduled: async (_, env) => deploymentOf(env).gateway.replayDeadLetters(),
  };
}

const NO_BINDINGS = {};

/** Hosts that are not typed may leave an argument out. */
function isGiven(argument: unknown): argument is object {
  return typeof argument === 'object' && argument !== null;
}

function incomplete(): Response {
  const message = 'fetch of weir-gateway takes (request, env, ctx): hand all three on';
  return errorResponse(apiError('misconfigured', message));
}

/** What breaks here breaks no other route of the host's (B5). */
function broken(reason: unknown): Response {
  log({ event: 'internal_error', reason: String(reason) });
  return errorResponse(apiError('internal_error', 'Weir failed on this request; its log has the reason'));
}

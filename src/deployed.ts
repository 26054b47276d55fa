/** The handlers of the deployed Worker, which is configured by its environment alone. */
import { env } from 'cloudflare:workers';
import { responseObjectClass } from './durable-responses/response-object.ts';
import { createHandlers, Environment } from './environment.ts';
import { NO_HOOKS } from './http/hooks.ts';
import { tracing } from './tracing/runtime.ts';

// Read at startup, so that invalid or missing settings are logged before the first request. `wrangler dev` shows the log.
const startup = new Environment({ ...env }, {}, NO_HOOKS, tracing);
startup.report();

export default createHandlers({}, tracing, startup).handlers;

/** Its gateway is the one of the startup's environment, because a deployment has one. */
export const ResponseObject = responseObjectClass(() => startup.gateway.exchange);

/** The Worker as it is deployed: Weir with nothing but its environment, which it checks at its start. */
import { env as startupEnv } from 'cloudflare:workers';
import { NO_HOOKS } from '../gateway.ts';
import { Deployment } from './deployment.ts';
import { createHandlers } from './handlers.ts';
import { tracing } from './tracing.ts';

// So that what is invalid or missing is in the log before the first request: under `wrangler dev`, in the terminal.
const deployment = new Deployment({ ...startupEnv }, {}, NO_HOOKS, tracing);
deployment.report();

export default createHandlers({}, () => {}, tracing, deployment);

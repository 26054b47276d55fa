/** The Worker as it is deployed: Weir, configured by its environment alone, and the Durable Object class of its ledger. */
import { env } from 'cloudflare:workers';
import { createHandlers, Environment } from './environment.ts';
import { NO_HOOKS } from './http/hooks.ts';
import { tracing } from './tracing/runtime.ts';

export { LedgerObject } from './ledger/ledger-object.ts';

// Read at startup, so that invalid or missing settings are logged before the first request. `wrangler dev` shows the log.
const startup = new Environment({ ...env }, {}, NO_HOOKS, tracing);
startup.report();

export default createHandlers({}, tracing, startup);

/** The Worker: builds the gateway and the site beside it from its environment once, and hands each request, message and tick to the one it is for. */
import { env as startupEnv } from 'cloudflare:workers';
import { createGateway, createSite, type Gateway, misconfiguredGateway, type Site } from './gateway.ts';
import type { LimitsNamespace } from './limits/limits-stub.ts';
import type { RecordQueue } from './metering/queue.ts';
import { placementOf } from './settings/placement.ts';
import {
  missingSettings,
  readSettings,
  type SettingProblem,
  type SettingsResult,
} from './settings/settings.ts';

interface Env {
  /** Keys and usage records. Everything else in the environment is read by `settings.ts`. */
  readonly WEIR_KV?: KVNamespace;
  /** The ledger objects: each key's, for LEDGER=object and for keys with limits. */
  readonly WEIR_LEDGER?: LimitsNamespace;
  readonly USAGE_QUEUE?: RecordQueue;
  /** A coarse shield against floods, asked before KV is read. */
  readonly LIMITER?: RateLimit;
  readonly [name: string]: unknown;
}

export { LedgerObject } from './ledger-object.ts';

/** One of each an environment: settings do not change while an isolate lives. */
const gateways = new WeakMap<Env, Gateway>();
const sites = new WeakMap<Env, Site | null>();

// Read at start, too, so that what is invalid or missing is in the log before the first request: under `wrangler dev`, in the
// terminal.
reportSettings({ ...startupEnv });

export default {
  fetch: async (request, env, context) => {
    const passed = await siteOf(env)?.pass(request, context);
    return passed ?? gatewayOf(env).fetch(request, context);
  },
  queue: (batch, env) => gatewayOf(env).consume(batch.messages),
  scheduled: (_, env) => gatewayOf(env).bringIn(),
} satisfies ExportedHandler<Env>;

function gatewayOf(env: Env): Gateway {
  const gateway = gateways.get(env) ?? buildGateway(env);
  gateways.set(env, gateway);
  return gateway;
}

function siteOf(env: Env): Site | null {
  const known = sites.get(env);
  if (known !== undefined) return known;
  const site = createSite(placementOf(env), { fetch: (input, init) => fetch(input, init), log });
  sites.set(env, site);
  return site;
}

interface StartResult {
  readonly settings: SettingsResult;
  readonly problems: readonly SettingProblem[];
}

function readStart(env: Env): StartResult {
  const settings = readSettings(env);
  const problems = settings.kind === 'invalid' ? [...settings.problems] : [];
  if (env.WEIR_KV === undefined) {
    problems.push({ setting: 'WEIR_KV', message: 'must be bound to a KV namespace' });
  }
  if (settings.kind === 'valid' && settings.settings.ledger === 'object' && env.WEIR_LEDGER === undefined) {
    problems.push({
      setting: 'WEIR_LEDGER',
      message: 'must be bound to the Durable Object LedgerObject, because LEDGER is object',
    });
  }
  return { settings, problems };
}

function reportSettings(env: Env): void {
  const { settings, problems } = readStart(env);
  if (problems.length > 0) log({ event: 'misconfigured', problems });
  else if (settings.kind === 'valid') {
    for (const hint of missingSettings(settings.settings)) log({ event: 'setting_missing', ...hint });
  }
}

function buildGateway(env: Env): Gateway {
  const { settings: read, problems } = readStart(env);
  const store = env.WEIR_KV;
  if (read.kind === 'invalid' || store === undefined || problems.length > 0)
    return misconfiguredGateway(problems);
  return createGateway(read.settings, {
    store,
    ledgers: env.WEIR_LEDGER ?? null,
    queue: env.USAGE_QUEUE ?? null,
    limiter: env.LIMITER ?? null,
    fetch: (input, init) => fetch(input, init),
    clock: { now: () => Date.now(), startTimer },
    random: () => crypto.randomUUID(),
    log,
  });
}

function startTimer(ms: number, onFire: () => void): () => void {
  const timer = setTimeout(onFire, ms);
  return () => clearTimeout(timer);
}

/** One line of JSON an event, which Workers Logs take apart into fields. */
function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: this is the edge, and a Worker's log is its console.
  console.log(JSON.stringify(entry));
}

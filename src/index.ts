/** The Worker: builds the gateway from its environment once, and hands it every request. */
import { createGateway, type Gateway, misconfiguredGateway } from './gateway.ts';
import { readSettings } from './settings.ts';

interface Env {
  /** Keys and usage records. Everything else in the environment is read by `settings.ts`. */
  readonly WEIR_KV?: KVNamespace;
  readonly [name: string]: unknown;
}

/** One gateway an environment: settings do not change while an isolate lives. */
const gateways = new WeakMap<Env, Gateway>();

export default {
  fetch(request, env, context) {
    const gateway = gateways.get(env) ?? buildGateway(env);
    gateways.set(env, gateway);
    return gateway.fetch(request, context);
  },
} satisfies ExportedHandler<Env>;

function buildGateway(env: Env): Gateway {
  const read = readSettings(env);
  const store = env.WEIR_KV;
  const problems = read.kind === 'invalid' ? [...read.problems] : [];
  if (store === undefined) problems.push({ setting: 'WEIR_KV', message: 'must be bound to a KV namespace' });
  if (read.kind === 'invalid' || store === undefined) {
    log({ event: 'misconfigured', problems });
    return misconfiguredGateway(problems);
  }
  return createGateway(read.settings, {
    store,
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

/** One environment as Weir reads it: the gateway of its settings and bindings, the site beside it, and what is wrong with them. */

import {
  createGateway,
  createOriginProxy,
  type Gateway,
  type Hooks,
  misconfiguredGateway,
  type OriginProxy,
} from '../gateway.ts';
import type { KeyObjects, Ports } from '../http/context.ts';
import type { RecordQueue } from '../metering/queue.ts';
import { mountConfigOf } from '../settings/mount-config.ts';
import { optionProblems, withOptions } from '../settings/options.ts';
import {
  missingSettings,
  misspeltSettings,
  readSettings,
  type SettingProblem,
  type SettingsResult,
} from '../settings/settings.ts';
import type { JsonObject } from '../shared/json.ts';
import type { Tracing } from '../tracing/spans.ts';

interface Env {
  /** Keys and usage records. Everything else in the environment is read by `settings.ts`. */
  readonly WEIR_KV?: KVNamespace;
  /** The ledger objects: each key's, for LEDGER=object and for keys with limits. */
  readonly WEIR_LEDGER?: KeyObjects;
  readonly USAGE_QUEUE?: RecordQueue;
  /** A coarse shield against floods, asked before KV is read. */
  readonly LIMITER?: RateLimit;
  readonly [name: string]: unknown;
}

export class Deployment {
  /** What is asked first, or null: all is the gateway's to answer. */
  readonly originProxy: OriginProxy | null;
  readonly #env: Env;
  readonly #read: SettingsResult;
  readonly #problems: readonly SettingProblem[];
  readonly #misspelt: readonly SettingProblem[];
  readonly #knowsCallers: boolean;
  readonly #openGateway: () => Gateway;
  #gateway: Gateway | undefined;

  /** @param options settings that lie over the environment's */
  constructor(env: object, options: JsonObject, hooks: Hooks, tracing: Tracing | null) {
    const bindings = decodeEnv(env);
    this.#env = bindings;
    const settings = withOptions(bindings, options);
    this.#read = readSettings(settings);
    const { names, kind } = this.#read;
    this.#misspelt = misspeltSettings(bindings, settings, names);
    this.#problems = [
      ...optionProblems(options, kind === 'valid' ? names : null),
      ...findProblems(this.#read, bindings),
    ];
    this.originProxy = createOriginProxy(mountConfigOf(settings), {
      fetch: (input, init) => fetch(input, init),
      log,
    });
    this.#knowsCallers = hooks.onRequest !== null;
    this.#openGateway = () => openGateway(this.#read, this.#problems, bindings, hooks, tracing);
  }

  /** Whether an environment holds what this one was made of: the runtime's at the start is another object than a handler's. */
  isOf(env: object): boolean {
    const entries = Object.entries(env);
    return (
      entries.length === Object.keys(this.#env).length &&
      entries.every(([name, value]) => this.#env[name] === value)
    );
  }

  get gateway(): Gateway {
    this.#gateway ??= this.#openGateway();
    return this.#gateway;
  }

  /** Logs what is wrong, still missing, or likely to be misspelt. */
  report(): void {
    for (const hint of this.#misspelt) log({ event: 'setting_unknown', ...hint });
    if (this.#problems.length > 0) return log({ event: 'misconfigured', problems: this.#problems });
    const missing = this.#read.kind === 'valid' ? missingSettings(this.#read.settings) : [];
    for (const hint of missing) {
      // A host that knows its callers itself needs no gateway keys.
      const isNeeded = hint.setting !== 'ADMIN_TOKEN' || !this.#knowsCallers;
      if (isNeeded) log({ event: 'setting_missing', ...hint });
    }
  }
}

/** The bindings are what the deployment's own file says that they are. */
function decodeEnv(env: object): Env {
  return env as Env; // decode
}

function findProblems(read: SettingsResult, env: Env): SettingProblem[] {
  const problems = read.kind === 'invalid' ? [...read.problems] : [];
  if (env.WEIR_KV === undefined) {
    problems.push({ setting: 'WEIR_KV', message: 'must be bound to a KV namespace' });
  }
  if (read.kind === 'valid' && read.settings.ledger === 'object' && env.WEIR_LEDGER === undefined) {
    problems.push({
      setting: 'WEIR_LEDGER',
      message: 'must be bound to the Durable Object LedgerObject, because LEDGER is object',
    });
  }
  return problems;
}

function openGateway(
  read: SettingsResult,
  problems: readonly SettingProblem[],
  env: Env,
  hooks: Hooks,
  tracing: Tracing | null,
): Gateway {
  const store = env.WEIR_KV;
  const clock = { now: () => Date.now(), startTimer };
  const random = () => crypto.randomUUID();
  if (read.kind === 'invalid' || store === undefined || problems.length > 0)
    return misconfiguredGateway(problems, { clock, random });
  const ports: Ports = {
    store,
    ledgers: env.WEIR_LEDGER ?? null,
    queue: env.USAGE_QUEUE ?? null,
    limiter: env.LIMITER ?? null,
    fetch: (input, init) => fetch(input, init),
    clock,
    random,
    tracing,
    log,
  };
  return createGateway(read.settings, ports, hooks);
}

function startTimer(ms: number, onFire: () => void): () => void {
  const timer = setTimeout(onFire, ms);
  return () => clearTimeout(timer);
}

/** One line of JSON an event, which Workers Logs take apart into fields. */
export function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: this is the edge, and a Worker's log is its console.
  console.log(JSON.stringify(entry));
}

/** From a Worker's environment to its handlers: reads settings and bindings, and serves requests with the gateway they describe. */
import { apiError } from './canonical/error.ts';
import type { Exchange, ResponseNamespace } from './durable-responses/response-calls.ts';
import {
  createGateway,
  createOriginProxy,
  type Gateway,
  type GatewayPorts,
  misconfiguredGateway,
} from './gateway.ts';
import type { Hooks } from './http/hooks.ts';
import { errorResponse } from './http/respond.ts';
import type { LedgerNamespace } from './ledger/ledger-calls.ts';
import type { RecordQueue } from './metering/queue.ts';
import type { OriginProxy } from './origin-proxy/origin-proxy.ts';
import { mountConfigOf } from './settings/mount-config.ts';
import { optionProblems, withOptions } from './settings/options.ts';
import {
  missingSettings,
  misspeltSettings,
  readSettings,
  type SettingProblem,
  type SettingsResult,
} from './settings/settings.ts';
import type { JsonObject } from './shared/json.ts';
import type { Tracing } from './tracing/spans.ts';
import type { Handlers, WeirOptions } from './types.ts';

export interface CreatedHandlers<Env> {
  readonly handlers: Handlers<Env>;
  /** Runs background responses with the gateway of an environment. */
  readonly exchangeOf: (env: Env) => Exchange;
}

/**
 * Creates a Worker's handlers.
 * @param startup the deployed Worker's environment, read and reported at startup; null: each environment is read and reported at
 * its first request
 */
export function createHandlers<Env>(
  options: WeirOptions<Env>,
  tracing: Tracing | null,
  startup: Environment | null = null,
): CreatedHandlers<Env> {
  const { onRequest, onRecord, ...settings } = options;
  /** Settings do not change while an isolate lives, so each environment is read once. */
  const environments = new WeakMap<object, Environment>();

  function environmentOf(env: Env): Environment {
    const bindings = isObject(env) ? env : NO_BINDINGS;
    const known = environments.get(bindings);
    if (known !== undefined) return known;
    // The runtime passes another object than at startup. Where it has the same values, its settings are not read again.
    const environment = startup?.hasValuesOf(bindings) ? startup : readEnvironment(bindings, env);
    environments.set(bindings, environment);
    if (startup === null) environment.report();
    return environment;
  }

  function readEnvironment(bindings: object, env: Env): Environment {
    const hooks: Hooks = {
      onRequest:
        onRequest === undefined ? null : (request, requestId) => onRequest(request, { env, requestId }),
      onRecord:
        onRecord === undefined ? null : (record) => onRecord(record, { env, requestId: record.request_id }),
    };
    return new Environment(bindings, settings, hooks, tracing);
  }

  const handlers: Handlers<Env> = {
    fetch: async (request, env, ctx) => {
      if (!isObject(env) || !isObject(ctx)) return missingArguments();
      let environment: Environment;
      try {
        environment = environmentOf(env);
      } catch (error) {
        return internalFailure(error);
      }
      if (environment.originProxy !== null) {
        const passThroughOnException = () => ctx.passThroughOnException?.();
        // Not caught: after passThroughOnException the runtime handles an exception by calling the origin.
        const passed = await environment.originProxy.pass(request, { passThroughOnException });
        if (passed !== null) return passed;
      }
      try {
        return await environment.gateway.fetch(request, ctx);
      } catch (error) {
        return internalFailure(error);
      }
    },
    queue: async ({ messages }, env) => environmentOf(env).gateway.consume(messages),
    scheduled: async (_, env) => environmentOf(env).gateway.replayDeadLetters(),
  };
  return { handlers, exchangeOf: (env) => environmentOf(env).gateway.exchange };
}

const NO_BINDINGS = {};

/** Checked at run time, because a host in JavaScript may omit arguments. */
function isObject(argument: unknown): argument is object {
  return typeof argument === 'object' && argument !== null;
}

function missingArguments(): Response {
  const message = 'fetch of weir-gateway takes (request, env, ctx): pass all three';
  return errorResponse(apiError('misconfigured', message));
}

/** A response instead of an exception, which would break the host Worker's other routes. */
function internalFailure(reason: unknown): Response {
  log({ event: 'internal_error', reason: String(reason) });
  return errorResponse(apiError('internal_error', 'Weir failed on this request; its log has the reason'));
}

/** The bindings that Weir uses. `settings.ts` reads everything else in the environment. */
interface Bindings {
  /** Keys and usage records. */
  readonly WEIR_KV?: KVNamespace;
  /** The Durable Objects of gateway keys, for `LEDGER=object` and for keys with limits. */
  readonly WEIR_LEDGER?: LedgerNamespace;
  /** The Durable Objects of responses, for `RESPONSES=durable`. */
  readonly WEIR_RESPONSES?: ResponseNamespace;
  readonly USAGE_QUEUE?: RecordQueue;
  /** A rate limiter, called before KV is read. */
  readonly LIMITER?: RateLimit;
  readonly [name: string]: unknown;
}

/** One environment, read once: its settings and what is wrong with them, its origin proxy and its gateway. */
export class Environment {
  /** Handles the requests that are not for Weir; null where Weir handles all requests. */
  readonly originProxy: OriginProxy | null;
  readonly #bindings: Bindings;
  readonly #read: SettingsResult;
  readonly #problems: readonly SettingProblem[];
  readonly #misspelt: readonly SettingProblem[];
  readonly #hooks: Hooks;
  readonly #tracing: Tracing | null;
  #gateway: Gateway | undefined;

  /** @param options settings that override the environment's */
  constructor(env: object, options: JsonObject, hooks: Hooks, tracing: Tracing | null) {
    this.#bindings = decodeBindings(env);
    this.#hooks = hooks;
    this.#tracing = tracing;
    const settings = withOptions(this.#bindings, options);
    this.#read = readSettings(settings);
    const { names, kind } = this.#read;
    this.#misspelt = misspeltSettings(this.#bindings, settings, names);
    this.#problems = [
      ...optionProblems(options, kind === 'valid' ? names : null),
      ...findProblems(this.#read, this.#bindings),
    ];
    this.originProxy = createOriginProxy(mountConfigOf(settings), { fetch: callFetch, log });
  }

  /** Whether another environment object has the same names and values as this one. */
  hasValuesOf(env: object): boolean {
    const entries = Object.entries(env);
    return (
      entries.length === Object.keys(this.#bindings).length &&
      entries.every(([name, value]) => this.#bindings[name] === value)
    );
  }

  /** Created at the first request that needs it. */
  get gateway(): Gateway {
    this.#gateway ??= this.#createGateway();
    return this.#gateway;
  }

  /** Logs settings that are invalid, missing, or probably misspelt. */
  report(): void {
    for (const hint of this.#misspelt) log({ event: 'setting_unknown', ...hint });
    if (this.#problems.length > 0) return log({ event: 'misconfigured', problems: this.#problems });
    const missing = this.#read.kind === 'valid' ? missingSettings(this.#read.settings) : [];
    for (const hint of missing) {
      // A host Worker with onRequest identifies its callers itself, and needs no admin token to make gateway keys.
      const isNeeded = hint.setting !== 'ADMIN_TOKEN' || this.#hooks.onRequest === null;
      if (isNeeded) log({ event: 'setting_missing', ...hint });
    }
  }

  #createGateway(): Gateway {
    const { WEIR_KV: store, WEIR_LEDGER, WEIR_RESPONSES, USAGE_QUEUE, LIMITER } = this.#bindings;
    const clock = { now: () => Date.now(), startTimer };
    const random = () => crypto.randomUUID();
    if (this.#read.kind === 'invalid' || store === undefined || this.#problems.length > 0)
      return misconfiguredGateway(this.#problems, { clock, random });
    const ports: GatewayPorts = {
      store,
      ledgers: WEIR_LEDGER ?? null,
      responses: WEIR_RESPONSES ?? null,
      queue: USAGE_QUEUE ?? null,
      limiter: LIMITER ?? null,
      fetch: callFetch,
      clock,
      random,
      tracing: this.#tracing,
      log,
    };
    return createGateway(this.#read.settings, ports, this.#hooks);
  }
}

/** Trusts the deployment's configuration that each binding has its documented type. */
function decodeBindings(env: object): Bindings {
  return env as Bindings; // decode
}

function findProblems(read: SettingsResult, bindings: Bindings): SettingProblem[] {
  const problems = read.kind === 'invalid' ? [...read.problems] : [];
  if (bindings.WEIR_KV === undefined) {
    problems.push({ setting: 'WEIR_KV', message: 'must be bound to a KV namespace' });
  }
  if (read.kind === 'valid' && read.settings.ledger === 'object' && bindings.WEIR_LEDGER === undefined) {
    problems.push({
      setting: 'WEIR_LEDGER',
      message: 'must be bound to the Durable Object LedgerObject, because LEDGER is object',
    });
  }
  if (
    read.kind === 'valid' &&
    read.settings.responses === 'durable' &&
    bindings.WEIR_RESPONSES === undefined
  ) {
    problems.push({
      setting: 'WEIR_RESPONSES',
      message: 'must be bound to the Durable Object ResponseObject, because RESPONSES is durable',
    });
  }
  return problems;
}

/** Calls the global `fetch`, which throws when it is called as a method of another object. */
const callFetch: GatewayPorts['fetch'] = (input, init) => fetch(input, init);

function startTimer(ms: number, onFire: () => void): () => void {
  const timer = setTimeout(onFire, ms);
  return () => clearTimeout(timer);
}

/** Writes an event as one line of JSON, which Workers Logs index by field. */
function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: the console is a Worker's log.
  console.log(JSON.stringify(entry));
}

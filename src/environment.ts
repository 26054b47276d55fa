/** From a Worker's environment to its handlers: reads settings and bindings, and serves requests with the gateway they describe. */
import { apiError } from './canonical/error.ts';
import {
  type Before,
  type Deployment,
  type ListedFeatures,
  type OpenGateway,
  readDeployment,
  readFeatures,
} from './feature.ts';
import {
  createBefore,
  createGateway,
  type Gateway,
  type GatewayMemory,
  type GatewayPorts,
  hasAdmins,
  misconfiguredGateway,
} from './gateway.ts';
import { type Hooks, NO_HOOKS } from './http/hooks.ts';
import { log } from './http/log.ts';
import { INTERNAL_ERROR, written } from './http/respond.ts';
import { unusedSettings } from './settings/feature-settings.ts';
import { optionProblems, withOptions } from './settings/options.ts';
import {
  type SecretBinding,
  type SecretValues,
  type SettingProblem,
  SettingsReader,
} from './settings/reader.ts';
import { missingSettings, misspeltSettings, weakSettings } from './settings/settings.ts';
import type { JsonObject } from './shared/json.ts';
import type { LogEntry } from './shared/log-event.ts';
import type { Tracing } from './tracing/spans.ts';
import type { Feature, Weir, WeirOptions } from './types.ts';

/**
 * Creates a Worker's handlers.
 * @param startupEnv the deployed Worker's environment, which is read and reported at startup; absent: each environment is read and
 * reported at its first request
 */
export function createHandlers<Env, const Features extends readonly Feature[]>(
  options: WeirOptions<Env, Features>,
  tracing: Tracing | null,
  startupEnv?: object,
): Weir<Env, Features> {
  const { onRequest, onRecord, features: listed, ...settings } = options;
  const features = readFeatures(listed);
  /** Settings do not change while an isolate lives, so each environment is read once. */
  const environments = new WeakMap<object, Environment>();
  const startup =
    startupEnv && new Environment({ env: startupEnv, options: settings, hooks: NO_HOOKS, features, tracing });
  startup?.report();

  function environmentOf(env: Env): Environment {
    const bindings = isObject(env) ? env : NO_BINDINGS;
    const existing = environments.get(bindings);
    if (existing !== undefined) return existing;
    // The runtime passes another object than at startup. Where it has the same values, its settings are not read again.
    const environment = startup?.hasValuesOf(bindings) ? startup : readEnvironment(bindings, env);
    environments.set(bindings, environment);
    if (startup === undefined) environment.report();
    return environment;
  }

  function readEnvironment(bindings: object, env: Env): Environment {
    const hooks: Hooks = {
      onRequest:
        onRequest === undefined ? null : (request, requestId) => onRequest(request, { env, requestId }),
      onRecord:
        onRecord === undefined ? null : (record) => onRecord(record, { env, requestId: record.request_id }),
    };
    return new Environment({ env: bindings, options: settings, hooks, features, tracing });
  }

  async function openGateway(env: Env): Promise<Gateway> {
    const environment = environmentOf(env);
    await environment.ready(NOT_WAITED_FOR);
    return environment.gateway;
  }

  const gateway: OpenGateway<Env> = {
    newContext: (env) => environmentOf(env).gateway.newContext,
    stepErasure: (env) => environmentOf(env).gateway.stepErasure,
    settings: (env) => environmentOf(env).settings,
    ready: (env) => environmentOf(env).ready(NOT_WAITED_FOR),
  };
  return {
    fetch: async (request, env, ctx) => {
      if (!isObject(env) || !isObject(ctx)) return missingArguments();
      let environment: Environment;
      try {
        environment = environmentOf(env);
        // Other requests wait for the secrets, even if this one's client disconnects.
        const loading = environment.ready((work) => ctx.waitUntil(work));
        if (loading !== null) await loading;
      } catch (error) {
        return internalFailure(error);
      }
      if (environment.before !== null) {
        const passThroughOnException = () => ctx.passThroughOnException?.();
        // Not caught: after passThroughOnException the runtime handles an exception by calling the origin.
        const passed = await environment.before(request, { passThroughOnException });
        if (passed !== null) return written(passed, NO_ID);
      }
      try {
        return await environment.gateway.fetch(request, ctx);
      } catch (error) {
        return internalFailure(error);
      }
    },
    queue: async ({ messages }, env) => (await openGateway(env)).queue(messages),
    scheduled: async (controller, env) => (await openGateway(env)).scheduled(dueAt(controller)),
    objects: decodeObjects(features.features.map(({ objects }) => objects?.(gateway))),
  };
}

/** When a scheduled run was due, in ms since the epoch. A host may call it without a controller. */
function dueAt(controller: unknown): number {
  const { scheduledTime = null } = isObject(controller) ? (controller as { scheduledTime?: unknown }) : {}; // decode
  return typeof scheduledTime === 'number' && Number.isFinite(scheduledTime) ? scheduledTime : Date.now();
}

/** The classes of all features. The names of the listed features say which there are. */
function decodeObjects<Env, Features extends readonly Feature[]>(
  classes: readonly (Readonly<Record<string, unknown>> | undefined)[],
): Weir<Env, Features>['objects'] {
  return Object.assign({}, ...classes) as Weir<Env, Features>['objects']; // decode
}

const NO_BINDINGS = {};

/** Of a request that no gateway has. */
const NO_ID = { requestId: '' };

/** The work of a Durable Object, a queue or a schedule goes on without. */
const NOT_WAITED_FOR = () => {};

/** Checked at run time, because a host in JavaScript may omit arguments. */
function isObject(argument: unknown): argument is object {
  return typeof argument === 'object' && argument !== null;
}

function missingArguments(): Response {
  const message = 'fetch of weir-gateway takes (request, env, ctx): pass all three';
  return written(apiError('misconfigured', message), NO_ID);
}

/** A response instead of an exception, which would break the host Worker's other routes. */
function internalFailure(reason: unknown): Response {
  log({ event: 'internal_error', reason: String(reason) });
  return written(INTERNAL_ERROR, NO_ID);
}

/** The bindings of the core. Features read theirs. */
interface Bindings {
  /** Keys and usage records. */
  readonly WEIR_KV?: KVNamespace;
  /** A rate limiter, called before KV is read. */
  readonly LIMITER?: RateLimit;
  readonly [name: string]: unknown;
}

/** What was read of an environment. */
interface ReadEnvironment {
  readonly deployment: Deployment;
  readonly problems: readonly SettingProblem[];
  /** Variables that have no effect. */
  readonly unused: readonly LogEntry[];
  readonly unread: ReadonlyMap<string, SecretBinding>;
  readonly before: Before | null;
}

interface EnvironmentOptions {
  readonly env: object;
  /** Settings that override the environment's. */
  readonly options: JsonObject;
  readonly hooks: Hooks;
  readonly features: ListedFeatures;
  readonly tracing: Tracing | null;
}

/** One environment, read once: its settings and what is wrong with them, and its gateway. */
export class Environment {
  readonly #options: EnvironmentOptions;
  readonly #bindings: Bindings;
  /** The settings of the environment and the options, which override it. */
  readonly #settings: JsonObject;
  /** The values of its secrets that were read. */
  #secrets: SecretValues = new Map();
  /** When a secret that could not be read is read again, by setting. */
  readonly #readAgainAt = new Map<string, number>();
  #read: ReadEnvironment;
  /** A request reads the secrets, and others wait for it. The claim expires, in case that request ends before it has read them. */
  #claimedAt = Number.NEGATIVE_INFINITY;
  #gateway: Gateway | undefined;
  /** What the last gateway keeps in memory. The one that replaces it takes it over. */
  #memory: GatewayMemory | null = null;

  constructor(options: EnvironmentOptions) {
    this.#options = options;
    this.#bindings = decodeBindings(options.env);
    this.#settings = withOptions(this.#bindings, options.options);
    this.#read = this.#readSettings();
  }

  /** Reads the environment's settings again. */
  get settings(): SettingsReader {
    return new SettingsReader(this.#settings, this.#secrets);
  }

  /** Handles the requests that are not for Weir; null where Weir handles all requests. */
  get before(): Before | null {
    return this.#read.before;
  }

  /** Resolves when requests can be served; null: they can, and no secret is to be read. */
  ready(waitUntil: (work: Promise<unknown>) => void): Promise<void> | null {
    return this.#due.size === 0 ? null : this.#load(waitUntil);
  }

  /** Whether there was a try to read each secret. Until then there is no gateway. */
  get #isRead(): boolean {
    return [...this.#read.unread.keys()].every((setting) => this.#readAgainAt.has(setting));
  }

  /** The secrets that are to be read now. */
  get #due(): ReadonlyMap<string, SecretBinding> {
    const { unread } = this.#read;
    if (unread.size === 0) return unread;
    const now = Date.now();
    return new Map([...unread].filter(([setting]) => now >= (this.#readAgainAt.get(setting) ?? 0)));
  }

  #readSettings(): ReadEnvironment {
    const { options, features } = this.#options;
    const settings = this.#settings;
    const { names, problems, overridden, unread, deployment } = readDeployment(
      settings,
      features.features,
      this.#secrets,
      this.#bindings,
    );
    const listed: ReadonlySet<string> = new Set(features.features.map(({ name }) => name));
    return {
      deployment,
      unread,
      unused: [
        ...misspeltSettings(this.#bindings, settings, names).map((hint) => ({
          event: 'setting_unknown' as const,
          ...hint,
        })),
        ...[...unusedSettings(this.#bindings, listed), ...overridden].map((hint) => ({
          event: 'setting_unused' as const,
          ...hint,
        })),
      ],
      problems: [
        ...features.problems,
        ...optionProblems(options, { names: problems.length === 0 ? names : null, listed }),
        ...problems,
        ...(this.#bindings.WEIR_KV === undefined ? [NO_STORE] : []),
      ],
      before: createBefore(deployment, { fetch: callFetch, log }),
    };
  }

  /**
   * Reads the secrets of Secrets Store that are due. Requests wait for the first try; for others, which may fail like it, only for a
   * moment. In Workers, a request must not wait for a promise of another request.
   */
  async #load(waitUntil: (work: Promise<unknown>) => void): Promise<void> {
    while (this.#due.size > 0) {
      const isFirst = !this.#isRead;
      if (Date.now() >= this.#claimedAt + 2 * MAX_SECRET_MS) {
        this.#claimedAt = Date.now();
        const reading = this.#readDue();
        waitUntil(reading);
        await (isFirst ? reading : Promise.race([reading, elapsed(MAX_REREAD_WAIT_MS)]));
      } else {
        await elapsed(POLL_MS);
      }
      if (!isFirst && Date.now() >= this.#claimedAt + MAX_REREAD_WAIT_MS) return;
    }
  }

  async #readDue(): Promise<void> {
    const due = this.#due;
    const isFirst = !this.#isRead;
    const values = await readSecrets(due);
    for (const setting of due.keys()) this.#readAgainAt.set(setting, Date.now() + READ_AGAIN_MS);
    this.#claimedAt = Number.NEGATIVE_INFINITY;
    if (values.size > 0) {
      this.#secrets = new Map([...this.#secrets, ...values]);
      this.#read = this.#readSettings();
      this.#gateway = undefined;
    }
    if (isFirst || values.size > 0) this.report();
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

  /** Logs settings that are invalid, missing, probably misspelt, or without effect, as soon as there was a try to read each secret. */
  report(): void {
    if (!this.#isRead) return;
    const { unused, problems, deployment } = this.#read;
    for (const hint of unused) log(hint);
    for (const hint of weakSettings(deployment.settings)) log({ event: 'setting_weak', ...hint });
    if (problems.length > 0) return log({ event: 'misconfigured', problems });
    const { settings, features } = deployment;
    for (const hint of missingSettings(settings, hasAdmins(features))) {
      // A host Worker with onRequest identifies its callers itself, and needs no admin token to make gateway keys.
      const isNeeded = hint.setting !== 'ADMIN_TOKEN' || this.#options.hooks.onRequest === null;
      if (isNeeded) log({ event: 'setting_missing', ...hint });
    }
  }

  #createGateway(): Gateway {
    const { WEIR_KV: store, LIMITER } = this.#bindings;
    const clock = { now: () => Date.now(), startTimer };
    const random = () => crypto.randomUUID();
    const { problems, deployment } = this.#read;
    if (!this.#isRead) throw new Error('The secrets are not read yet');
    if (store === undefined || problems.length > 0)
      return misconfiguredGateway(problems, deployment, { clock, random });
    const ports: GatewayPorts = {
      store,
      limiter: LIMITER ?? null,
      fetch: callFetch,
      clock,
      random,
      tracing: this.#options.tracing,
      log,
    };
    const gateway = createGateway(deployment, ports, this.#options.hooks, this.#memory);
    this.#memory = gateway.memory;
    return gateway;
  }
}

/** How long a secret may take. */
const MAX_SECRET_MS = 5000;
/** How often a waiting request checks whether the secrets are read. */
const POLL_MS = 10;
/** A secret that could not be read is read again after this time, by the next request. */
const READ_AGAIN_MS = 5000;
/** How long requests wait for such a secret. The gateway serves what does not need it. */
const MAX_REREAD_WAIT_MS = 1000;

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** Reads secrets at the same time. One that cannot be read is logged, and has no value. */
async function readSecrets(due: ReadonlyMap<string, SecretBinding>): Promise<SecretValues> {
  const secretReads = [...due].map(async ([setting, binding]): Promise<readonly [string, string][]> => {
    const late = Promise.withResolvers<never>();
    const cancelTimer = startTimer(MAX_SECRET_MS, () =>
      late.reject(new Error(`No answer within ${MAX_SECRET_MS} ms`)),
    );
    try {
      const text: unknown = await Promise.race([binding.get(), late.promise]);
      if (typeof text !== 'string' || text.trim() === '') throw new Error('It has no text');
      return [[setting, text]];
    } catch (error) {
      log({ event: 'secret_unreadable', setting, reason: String(error) });
      return [];
    } finally {
      cancelTimer();
    }
  });
  return new Map((await Promise.all(secretReads)).flat());
}

const NO_STORE: SettingProblem = { setting: 'WEIR_KV', message: 'must be bound to a KV namespace' };

/** Trusts the deployment's configuration that each binding has its documented type. */
function decodeBindings(env: object): Bindings {
  return env as Bindings; // decode
}

/** Calls the global `fetch`, which throws when it is called as a method of another object. */
const callFetch: GatewayPorts['fetch'] = (input, init) => fetch(input, init);

function startTimer(ms: number, onFire: () => void): () => void {
  const timer = setTimeout(onFire, ms);
  return () => clearTimeout(timer);
}

/** Starts the gateway as it is deployed, in workerd and over HTTP, with a simulator as its upstream. */

import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { dayPrefix } from '../../src/metering/kv-ledger.ts';
import { decodeRecord, type RecordSummary } from '../../src/metering/record.ts';
import { PROVIDERS } from '../../src/providers/index.ts';
import { SIMULATED_AWS } from '../../tools/simulator/aws.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { basePaths, cloudSettings, compatibleScenes } from '../../tools/simulator/scenes.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../../tools/simulator/server.ts';
import { startWorkers, type WorkerOptions } from './workers.ts';

/** Undefined removes a default variable. */
export type Vars = Readonly<Record<string, string | undefined>>;

export interface GatewayOptions extends Pick<SimulatorOptions, 'pace' | 'replay' | 'hasPromptCache'> {
  readonly vars?: Vars | ((simulatorUrl: string) => Vars);
  /** `127.0.0.1:<port>` of the origin behind the zone that the Worker runs on. */
  readonly zone?: string;
  /** The path of another Worker, for example one that wraps the gateway; absolute or relative to this folder. */
  readonly entrypoint?: string;
  /** As in `WorkerOptions`. */
  readonly bindings?: WorkerOptions['bindings'];
  readonly outbound?: WorkerOptions['outbound'];
  /** Where the bindings that run remotely are; absent: there is none. */
  readonly remote?: URL;
  /** The folder to which the runtime writes KV and Durable Objects. Default: a temporary one. */
  readonly persist?: string;
}

/** One entry of the KV namespace. */
interface Entry {
  readonly name: string;
  readonly value: string;
  readonly metadata: JsonObject;
}

export interface Gateway extends AsyncDisposable {
  /** Without a trailing slash. */
  readonly url: string;
  readonly simulator: Simulator;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Posts JSON. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  /** Restarts the Worker with these variables in addition to the default ones. KV is kept. */
  set(vars: Vars): Promise<void>;
  /** Writes a text to KV. */
  put(name: string, value: string): Promise<void>;
  /** All KV entries whose name has this prefix. */
  entries(prefix: string): Promise<Entry[]>;
  /** Waits for the usage record of a response in KV. */
  record(response: Response): Promise<RecordSummary>;
  /** Waits for this number of usage records in KV; returns those of all requests since the start. */
  records(count: number): Promise<RecordSummary[]>;
  /** The Worker's log. */
  logs(): string[];
  /** Waits until the Worker's JSON log lines fulfil the condition. */
  logged(isEnough: (lines: JsonObject[]) => boolean): Promise<void>;
}

export const ADMIN_TOKEN = 'admin-token-of-the-tests';

/** The simulator accepts every key that begins with `sim-`. */
const NAMED_CREDENTIALS = {
  DEEPSEEK_API_KEY: 'sim-deepseek-2f1c9a',
  MISTRAL_API_KEY: 'sim-mistral-83bd07',
  CODESTRAL_API_KEY: 'sim-codestral-c4410e',
  OPENTOKEN_API_KEY: 'sim-opentoken-9e5d62',
  XEROTIER_API_KEY: 'sim-xerotier-b7a0f8',
  OPENAI_API_KEY: 'sim-openai-15e6d3',
  ANTHROPIC_API_KEY: 'sim-anthropic-40bd71',
  GEMINI_API_KEY: 'sim-gemini-41d0e8',
  GROQ_API_KEY: 'sim-groq-0b6f31',
  XAI_API_KEY: 'sim-xai-d8e274',
  OPENROUTER_API_KEY: 'sim-openrouter-5c19af',
  TOGETHER_API_KEY: 'sim-together-72ce40',
  FIREWORKS_API_KEY: 'sim-fireworks-e3a95d',
  CEREBRAS_API_KEY: 'sim-cerebras-18f7b6',
  MOONSHOT_API_KEY: 'sim-moonshot-a4d203',
  ZAI_API_KEY: 'sim-zai-6f80cb',
  AWS_BEARER_TOKEN_BEDROCK: 'sim-bedrock-3ad915',
  AZURE_API_KEY: 'sim-azure-92b7e1',
  CLOUDFLARE_AI_TOKEN: 'sim-cloudflare-5de048',
  VERTEX_API_KEY: 'sim-vertex-8c10f4',
  COMPATIBLE_SECRET: 'sim-compatible-6c98b1',
} as const;

/** AWS's signatures in the place of Bedrock's API key. The simulator checks each. */
export const SIGNED_BEDROCK = {
  AWS_BEARER_TOKEN_BEDROCK: undefined,
  AWS_ACCESS_KEY_ID: SIMULATED_AWS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: SIMULATED_AWS.secretAccessKey,
  AWS_REGION: SIMULATED_AWS.region,
} as const;

const ofNoCloud = PROVIDERS.filter(({ cloud }) => cloud === undefined);

/** The deployment's credential at each provider, also at one that no test names. */
export const CREDENTIALS = {
  ...Object.fromEntries(ofNoCloud.map(({ id, apiKeySettings: [key] }) => [key, `sim-${id}-7d20c4`])),
  ...NAMED_CREDENTIALS,
};

/** A record is written shortly after its log line. After this many listings it counts as lost. */
const MAX_LISTINGS = 500;

/** What the shared gateway's simulator answers in the file that runs. */
let currentReplay: GatewayOptions['replay'];
let shared: Promise<Gateway> | undefined;

/**
 * The gateway with the default variables that all files of a process share, one after the other. For a file that does not restart it and
 * counts none of its entries; others start their own. It ends with the process.
 *
 * @param replay what its upstream answers in this file in place of the simulator's scenes
 */
export function sharedGateway(replay?: GatewayOptions['replay']): Promise<Gateway> {
  currentReplay = replay;
  shared ??= startGateway({ replay: (request) => currentReplay?.(request) });
  return shared;
}

/** A gateway of the file's own: with variables or a pace of its own, restarted, or with counted entries. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const { pace, replay, hasPromptCache = false } = options;
  const simulator = await createSimulator({
    hasPromptCache,
    ...(pace && { pace }),
    ...(replay && { replay }),
  });
  const vars = typeof options.vars === 'function' ? options.vars(simulator.url) : options.vars;
  const log = new Log();
  const workersOf = (added: Vars | undefined) => [
    {
      ...(options.entrypoint === undefined ? {} : { main: options.entrypoint }),
      ...(options.bindings && { bindings: options.bindings }),
      ...(options.outbound && { outbound: options.outbound }),
      vars: varsOf(simulator.url, added),
    },
  ];
  const runtime = await startWorkers({
    workers: workersOf(vars),
    onLog: (line) => log.add(line),
    ...(options.zone === undefined ? {} : { zone: options.zone }),
    ...(options.persist === undefined ? {} : { persist: options.persist }),
    ...(options.remote && { remote: options.remote }),
  });
  const { url } = runtime;

  /** Opened each time, because a restart of workerd replaces it. */
  const openStore = () => runtime.miniflare.getKVNamespace('WEIR_KV');

  async function entries(prefix: string): Promise<Entry[]> {
    const store = await openStore();
    const { keys } = await store.list({ prefix });
    return Promise.all(
      keys.map(async ({ name, metadata }) => {
        return { name, metadata: objectOf(metadata), value: textOf(await store.get(name)) };
      }),
    );
  }

  async function listRecords(prefix: string): Promise<RecordSummary[]> {
    const store = await openStore();
    const records: RecordSummary[] = [];
    for (let cursor: string | null = null, isWhole = false; !isWhole; ) {
      const page: Awaited<ReturnType<typeof store.list>> = await store.list({ prefix, cursor });
      records.push(...page.keys.flatMap(({ metadata }) => decodeRecord(metadata) ?? []));
      isWhole = page.list_complete;
      cursor = page.list_complete ? null : page.cursor;
    }
    return records;
  }

  async function stored(count: number, prefix: string): Promise<RecordSummary[]> {
    for (let listing = 0; listing < MAX_LISTINGS; listing++) {
      const records = await listRecords(prefix);
      if (records.length >= count) return records;
      await setImmediate();
    }
    throw new Error('The record was logged but never stored');
  }

  const gateway: Gateway = {
    url,
    simulator,
    fetch: (path, init) => fetch(url + path, { redirect: 'manual', ...init }),
    post: (path, body, init) => {
      const headers = { 'content-type': 'application/json', ...init?.headers };
      return gateway.fetch(path, { ...init, method: 'POST', headers, body: JSON.stringify(body) });
    },
    set: (vars) => runtime.set(workersOf(vars)),
    put: async (name, value) => (await openStore()).put(name, value),
    entries,
    record: async (response) => {
      const id = response.headers.get('x-weir-request-id');
      const isThis = (line: JsonObject) => line.event === 'request' && line.request_id === id;
      await log.until((lines) => lines.some(isThis));
      const { time, key_id } = log.objects.find(isThis) ?? {};
      const [day = '', moment = ''] = textOf(time).split('T');
      const [record] = await stored(1, `${dayPrefix(day, textOf(key_id))}${moment}-${id}`);
      if (record === undefined) throw new Error(`No record of ${id}`);
      return record;
    },
    records: async (count) => {
      await log.until((lines) => lines.filter((line) => line.event === 'request').length >= count);
      return stored(count, 'usage/');
    },
    logs: () => [...log.lines],
    logged: (isEnough) => log.until(isEnough),
    [Symbol.asyncDispose]: async () => {
      await runtime[Symbol.asyncDispose]();
      await simulator.close();
    },
  };
  return gateway;
}

/** The Worker's log, which tests can wait for. */
class Log {
  readonly lines: string[] = [];
  /** The lines that are JSON objects. */
  readonly objects: JsonObject[] = [];
  readonly #arrivals = new EventTarget();

  constructor() {
    // One listener for each record that a test waits for.
    setMaxListeners(0, this.#arrivals);
  }

  add(line: string): void {
    this.lines.push(line);
    const object = decodeObject(line);
    if (object !== undefined) this.objects.push(object);
    this.#arrivals.dispatchEvent(new Event('line'));
  }

  async until(isEnough: (lines: JsonObject[]) => boolean): Promise<void> {
    while (!isEnough(this.objects))
      await new Promise((arrived) => this.#arrivals.addEventListener('line', arrived, { once: true }));
  }
}

/** The default variables with these; those that are undefined are left out. */
function varsOf(simulatorUrl: string, vars: Vars = {}): Readonly<Record<string, string>> {
  const merged = Object.entries({ ...defaultVars(simulatorUrl), ...vars });
  return Object.fromEntries(merged.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/**
 * Configures every provider of the simulator; `compatible` has a secret, `keyless` has none. Entries replace the built-in providers with
 * their names, as in deployments from before these were built in.
 */
function defaultVars(simulatorUrl: string): Vars {
  const paths: Readonly<Record<string, string>> = basePaths;
  const base = (provider: string) => simulatorUrl + paths[provider];
  return {
    AUTH: 'open',
    ADMIN_TOKEN,
    // No retries, except in tests of retries.
    RETRIES: '0',
    ...CREDENTIALS,
    ...Object.fromEntries(ofNoCloud.map(({ id, baseUrlSettings: [setting] }) => [setting, base(id)])),
    ...Object.assign({}, ...Object.values(cloudSettings(simulatorUrl))),
    PROVIDERS: JSON.stringify({
      compatible: { base_url: base('compatible'), api_key: 'COMPATIBLE_SECRET' },
      keyless: { base_url: base('compatible') },
      ...Object.fromEntries(
        compatibleScenes.map(({ id, profile: like = id }) => [
          id,
          { base_url: `${simulatorUrl}/${id}/v1`, api_key: 'COMPATIBLE_SECRET', like },
        ]),
      ),
    }),
  };
}

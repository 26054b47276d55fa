/**
 * Reads LiteLLM's configuration (https://docs.litellm.ai/docs/proxy/configs and /proxy/config_settings, read 2026-11-23) and writes the
 * answers of `npm run setup`. Whatever has no counterpart becomes a note.
 */
import { isReserved, PROVIDERS } from '../../src/providers/index.ts';
import { vertexOrigin } from '../../src/providers/vertex.ts';
import { isOwnSecret } from '../../src/settings/providers.ts';
import { matchesAnyGlob } from '../../src/shared/glob.ts';
import { MAX_TARGETS } from '../../src/shared/limits.ts';
import { privateHost, wayToPrivateHost } from '../setup/private-hosts.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  numberOf,
  objectOf,
  objectsOf,
  textOf,
} from '../simulator/json.ts';

export interface Imported {
  /** The file for `npm run setup -- --answers`; null: nothing of the list of models has a counterpart. */
  readonly answers: JsonObject | null;
  /** What has no counterpart, what differs, and what is to be done. */
  readonly notes: readonly string[];
}

/** Where LiteLLM's provider is found: the id in Weir, and the address for those that are an entry of `PROVIDERS`. */
interface Counterpart {
  readonly id: string;
  readonly baseUrl?: string;
  readonly like?: string;
  /** The variable that LiteLLM reads if `api_key` is absent. */
  readonly key?: string;
}

/** By the part before the slash of `litellm_params.model`: https://docs.litellm.ai/docs/providers, read 2026-11-23. */
const COUNTERPARTS: Readonly<Record<string, Counterpart>> = {
  openai: { id: 'openai' },
  anthropic: { id: 'anthropic' },
  gemini: { id: 'gemini' },
  deepseek: { id: 'deepseek' },
  mistral: { id: 'mistral' },
  codestral: { id: 'codestral' },
  groq: { id: 'groq', baseUrl: 'https://api.groq.com/openai/v1', key: 'GROQ_API_KEY' },
  cerebras: { id: 'cerebras', baseUrl: 'https://api.cerebras.ai/v1', key: 'CEREBRAS_API_KEY' },
  xai: { id: 'xai', baseUrl: 'https://api.x.ai/v1', key: 'XAI_API_KEY' },
  openrouter: { id: 'openrouter', baseUrl: 'https://openrouter.ai/api/v1', key: 'OPENROUTER_API_KEY' },
  together_ai: { id: 'together', baseUrl: 'https://api.together.xyz/v1', key: 'TOGETHERAI_API_KEY' },
  fireworks_ai: {
    id: 'fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    key: 'FIREWORKS_AI_API_KEY',
  },
  moonshot: { id: 'moonshot', baseUrl: 'https://api.moonshot.ai/v1', key: 'MOONSHOT_API_KEY' },
  zai: { id: 'zai', baseUrl: 'https://api.z.ai/api/paas/v4', key: 'ZAI_API_KEY' },
  hosted_vllm: { id: 'vllm', like: 'vllm' },
  ollama: { id: 'ollama', like: 'ollama' },
  ollama_chat: { id: 'ollama', like: 'ollama' },
};

/** The ways of LiteLLM to call Bedrock, and a region, before the name of a model. */
const BEDROCK_ROUTE = /^(?:converse|converse_like|invoke|mantle|openai)\//;
const BEDROCK_REGION = /^([a-z]{2,4}(?:-[a-z]{2,9}){1,3}-\d{1,2})\//;
/** Credentials of AWS, which the set-up is given. */
const AWS_CREDENTIALS = [
  ...['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token', 'aws_profile_name'],
  ...['aws_role_name', 'aws_session_name', 'aws_web_identity_token'],
];

/** The APIs of Vertex AI by LiteLLM's names, the ids of their entries, and their paths below the location. */
const VERTEX_APIS = [
  { models: /^gemini-/, id: 'vertex', path: 'publishers/google' },
  { models: /^claude-/, id: 'vertex-claude', path: 'publishers/anthropic' },
  // LiteLLM calls tuned models by the number of their endpoint.
  { models: /^(?!gemini\/)[a-z0-9-]+\/[\w.-]+$/, id: 'vertex-open', path: 'endpoints/openapi' },
] as const;
const SERVICE_ACCOUNT_SECRET = 'GOOGLE_SERVICE_ACCOUNT';

/** Prices of `model_info` and their rates here, per million tokens. */
const RATES: readonly (readonly [from: string, to: string])[] = [
  ['input_cost_per_token', 'input'],
  ['cache_read_input_token_cost', 'cached_input'],
  ['cache_creation_input_token_cost', 'cache_write'],
  ['output_cost_per_token', 'output'],
  ['output_cost_per_reasoning_token', 'reasoning'],
];
/** In force for all requests. */
const PRICES_SINCE = '2024-01-01';
/** A variable of a Worker. */
const MAX_PRICES_BYTES = 5 * 1024;

/** Body fields of Chat Completions that a deployment may set. */
const BODY_FIELDS = new Set([
  ...[
    'temperature',
    'top_p',
    'max_tokens',
    'max_completion_tokens',
    'stop',
    'seed',
    'user',
    'reasoning_effort',
  ],
  ...[
    'presence_penalty',
    'frequency_penalty',
    'service_tier',
    'thinking',
    'top_k',
    'parallel_tool_calls',
    'verbosity',
  ],
]);
/** Fields of `litellm_params` that this file reads, or that have no meaning for a request. */
const READ_FIELDS = new Set([
  ...[
    'model',
    'api_base',
    'base_url',
    'api_key',
    'rpm',
    'tpm',
    'weight',
    'order',
    'timeout',
    'stream_timeout',
  ],
  ...['litellm_credential_name', 'extra_headers', 'aws_region_name', 'vertex_project', 'vertex_location'],
  ...['vertex_credentials', ...AWS_CREDENTIALS],
]);
const SECRET_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
/** What LiteLLM writes before the name of a variable of its environment. */
const REFERENCE = 'os.environ/';
/** Headers and parameters that have no secret. */
const PLAIN_HEADERS = new Set([
  ...['accept', 'content-type', 'user-agent', 'http-referer', 'referer', 'x-title'],
  ...['anthropic-version', 'anthropic-beta', 'openai-beta', 'openai-organization', 'openai-project'],
]);
const PLAIN_PARAMS = new Set(['api-version']);
const KEY_SETTINGS = new Set(PROVIDERS.flatMap(({ apiKeySettings }) => apiKeySettings));
const MAX_RETRIES = 5;

/** One deployment of `model_list`. */
interface Deployment {
  readonly group: string;
  readonly address: string;
  readonly weight: number | null;
  readonly order: number;
  readonly timeout: number | null;
  readonly set: JsonObject;
}

interface Step {
  model: string;
  weight?: number;
  timeout_seconds?: number;
  set?: JsonObject;
  on?: string[];
}

export function importLiteLlm(config: JsonObject): Imported {
  return new Import(config).run();
}

class Import {
  readonly #config: JsonObject;
  readonly #router: JsonObject;
  readonly #module: JsonObject;
  readonly #general: JsonObject;
  readonly #notes = new Set<string>();
  /** Built-in providers in use. */
  readonly #builtIn = new Set<string>();
  /** Entries of `PROVIDERS`, by id. */
  readonly #entries = new Map<string, JsonObject>();
  /** What each provider or entry stands for, so that a second key or address becomes an entry of its own. */
  readonly #places = new Map<string, string>();
  readonly #secrets = new Set<string>();
  /** Variables that follow from deployments. */
  readonly #vars: Record<string, Json> = {};
  readonly #prices: JsonObject[] = [];

  constructor(config: JsonObject) {
    this.#config = config;
    this.#router = objectOf(config.router_settings);
    this.#module = objectOf(config.litellm_settings);
    this.#general = objectOf(config.general_settings);
  }

  run(): Imported {
    const deployments = objectsOf(this.#config.model_list).flatMap(
      (entry) => this.#readDeployment(entry) ?? [],
    );
    const aliases = this.#aliases(deployments);
    const vars: Record<string, Json> = { ...this.#vars };
    this.#writePrices(vars);
    this.#readAlerting();
    if (Object.keys(aliases).length > 0) vars.ALIASES = { ...aliases };
    if (this.#entries.size > 0) vars.PROVIDERS = Object.fromEntries(this.#entries);
    this.#readRetries(vars);
    const key = this.#readKey();
    this.#noteRest();
    if (this.#builtIn.size + this.#entries.size === 0) return { answers: null, notes: [...this.#notes] };
    return {
      answers: { providers: [...this.#builtIn], secrets: [...this.#secrets], vars, key },
      notes: [...this.#notes],
    };
  }

  #note(text: string): void {
    this.#notes.add(text);
  }

  #readDeployment(entry: JsonObject): Deployment | null {
    const group = textOf(entry.model_name);
    const params = { ...this.#credential(entry), ...objectOf(entry.litellm_params) };
    const place = this.#placeOf(textOf(params.model), params, group);
    if (place === null) return null;
    const set: Record<string, Json> = {};
    for (const [name, value] of Object.entries(params)) {
      if (value === undefined || value === null || READ_FIELDS.has(name)) continue;
      if (BODY_FIELDS.has(name)) set[name] = value;
      else if (name !== 'api_version' || !place.isAzure) this.#note(`${group}: ${name} has no counterpart`);
    }
    if (Object.keys(set).length > 0)
      this.#note(
        `${group}: ${Object.keys(set).join(', ')} replaces what a request says; in LiteLLM it is a default`,
      );
    this.#readModelInfo(objectOf(entry.model_info), place, group);
    if (params.rpm !== undefined || params.tpm !== undefined)
      this.#note(`${group}: rpm and tpm of a deployment are weights here; limits belong to keys`);
    return {
      group,
      address: place.address,
      weight: numberOf(params.weight) ?? numberOf(params.rpm) ?? numberOf(params.tpm) ?? null,
      order: numberOf(params.order) ?? 0,
      timeout: numberOf(params.stream_timeout) ?? numberOf(params.timeout) ?? null,
      set,
    };
  }

  /** Prices of a deployment, and the model behind the name of Azure's. */
  #readModelInfo(
    info: JsonObject,
    { address, isAzure }: { address: string; isAzure: boolean },
    group: string,
  ) {
    const [id = ''] = address.split('/');
    const model = address.slice(id.length + 1);
    const base = textOf(info.base_model).replace(/^azure\//, '');
    const entry = this.#entries.get(id);
    if (isAzure && base !== '' && entry !== undefined) {
      const known = base.includes('/')
        ? base
        : `${base.startsWith('claude') ? 'anthropic' : 'openai'}/${base}`;
      this.#entries.set(id, { ...entry, models: { ...objectOf(entry.models), [model]: known } });
    }
    const rates = RATES.flatMap(([from, to]) => {
      const rate = numberOf(info[from]);
      return rate === undefined ? [] : [[to, Math.round(rate * 1e12) / 1e6] as const];
    });
    const others = Object.keys(info).filter(
      (name) => /cost/.test(name) && !RATES.some(([from]) => from === name),
    );
    if (others.length > 0)
      this.#note(`${group}: model_info has prices that are not copied: ${others.join(', ')}`);
    if (rates.length === 0) return;
    const price = { provider: id, models: [model], since: PRICES_SINCE, currency: 'USD' };
    this.#prices.push({ ...price, ...Object.fromEntries(rates) });
  }

  #writePrices(vars: Record<string, Json>): void {
    const unique = [...new Map(this.#prices.map((price) => [JSON.stringify(price), price])).values()];
    if (unique.length === 0) return;
    if (JSON.stringify(unique).length <= MAX_PRICES_BYTES) vars.PRICES = JSON.stringify(unique);
    else
      this.#note(
        `model_info: its ${unique.length} prices are larger than PRICES can be, so they are not written. Put them into KV under config/prices, docs/prices.md#your-own-prices`,
      );
  }

  /** Alerts go to one address, signed. */
  #readAlerting(): void {
    const { alerting } = this.#general;
    if (!Array.isArray(alerting) || alerting.length === 0) return;
    this.#secrets.add('ALERT_URL');
    this.#secrets.add('ALERT_SECRET');
    this.#note(
      `general_settings.alerting is ALERT_URL here, with ALERT_SECRET: give both to the set-up. Weir sends alerts of budgets and failing providers, and a weekly summary, signed, docs/alerts.md${alerting.includes('slack') ? '; Slack takes them at the URL of an incoming webhook' : ''}`,
    );
  }

  /** The values of `credential_list` to which a deployment refers. */
  #credential(entry: JsonObject): JsonObject {
    const name = objectOf(entry.litellm_params).litellm_credential_name;
    if (name === undefined) return {};
    const found = objectsOf(this.#config.credential_list).find(
      ({ credential_name }) => credential_name === name,
    );
    return objectOf(found?.credential_values);
  }

  /** The address in Weir of a deployment's model; null: it has none. */
  #placeOf(model: string, params: JsonObject, group: string): { address: string; isAzure: boolean } | null {
    const isAzure = model.startsWith('azure/');
    const given = textOf(params.api_base) || textOf(params.base_url);
    const slash = model.indexOf('/');
    const prefix = slash < 0 ? makerOf(model) : model.slice(0, slash);
    const name = slash < 0 ? model : model.slice(slash + 1);
    if (model === '*') {
      this.#note(
        `${group}: every model of every provider can be called by its address <provider>/<model>, and makers' own names work, too`,
      );
      return null;
    }
    if (isReference(given)) {
      this.#note(
        `${group}: api_base is ${given}: put the address itself into base_url of the entry, and run this again`,
      );
      return null;
    }
    if (prefix === 'bedrock') return this.#bedrockPlace(name, params, group);
    if (prefix === 'vertex_ai') return this.#vertexPlace(name, params, group);
    const known = isAzure ? { id: 'azure', like: 'openai' } : COUNTERPARTS[prefix ?? ''];
    if (prefix === null || (known === undefined && given === '')) {
      this.#note(`${group}: ${model} has no counterpart: no provider ${prefix ?? 'of this name'}`);
      return null;
    }
    const id = this.#providerId(known ?? { id: idOf(prefix) }, given, params, group);
    return id === null ? null : { address: `${id}/${name}`, isAzure };
  }

  /** Bedrock by an API key, in one region. */
  #bedrockPlace(
    given: string,
    params: JsonObject,
    group: string,
  ): { address: string; isAzure: boolean } | null {
    const route = given.replace(BEDROCK_ROUTE, '');
    const region = BEDROCK_REGION.exec(route)?.[1] ?? textOf(params.aws_region_name);
    const name = route.replace(BEDROCK_REGION, '');
    if (region === '' || isReference(region)) {
      this.#note(
        `${group}: bedrock/${name} is not copied: name its region in aws_region_name, and run this again`,
      );
      return null;
    }
    const known = this.#vars.AWS_REGION;
    if (known !== undefined && known !== region) {
      this.#note(
        `${group}: bedrock/${name} is not copied: it is in ${region}, and the provider bedrock is in ${String(known)}`,
      );
      return null;
    }
    if (AWS_CREDENTIALS.some((field) => params[field] !== undefined))
      this.#note(
        `${group}: keys and roles of IAM are not copied: give them to the set-up as AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=…, with the variable AWS_ROLE_ARN; or an API key of Bedrock as AWS_BEARER_TOKEN_BEDROCK=…`,
      );
    this.#vars.AWS_REGION = region;
    this.#builtIn.add('bedrock');
    return { address: `bedrock/${name}`, isAzure: false };
  }

  /** Gemini, Claude and open models on Vertex AI, each by an entry at their API, with a service account. */
  #vertexPlace(
    name: string,
    params: JsonObject,
    group: string,
  ): { address: string; isAzure: boolean } | null {
    const api = VERTEX_APIS.find(({ models }) => models.test(name));
    if (api === undefined) {
      this.#note(
        `${group}: vertex_ai/${name} has no counterpart: docs/providers.md#vertex-ai has what is called there`,
      );
      return null;
    }
    const project = textOf(params.vertex_project);
    const location = textOf(params.vertex_location) || 'us-central1';
    if (project === '' || isReference(project) || isReference(location)) {
      this.#note(
        `${group}: vertex_ai/${name} is not copied: name its project and location in vertex_project and vertex_location, and run this again`,
      );
      return null;
    }
    const secret = this.#serviceAccount(params.vertex_credentials, group);
    const origin = vertexOrigin({ VERTEX_PROJECT: project, VERTEX_LOCATION: location });
    const base_url = `${origin}/v1/projects/${project}/locations/${location}/${api.path}`;
    const place = `${base_url} ${secret}`;
    const found = this.#places.get(place);
    const id = found ?? this.#freeId(api.id);
    if (found === undefined) {
      this.#entries.set(id, { base_url, auth: { google: secret } });
      this.#places.set(place, id);
    }
    return { address: `${id}/${name}`, isAzure: false };
  }

  /** The name of the secret with the key of a deployment's service account. */
  #serviceAccount(credentials: Json | undefined, group: string): string {
    const place = `service account ${JSON.stringify(credentials ?? null)}`;
    const found = this.#places.get(place);
    if (found !== undefined) return found;
    const given = textOf(credentials);
    const referred = isReference(given) ? given.slice(REFERENCE.length) : '';
    const name =
      SECRET_NAME.test(referred) && !isOwnSecret(referred)
        ? referred
        : this.#newSecret(SERVICE_ACCOUNT_SECRET);
    this.#secrets.add(name);
    this.#places.set(place, name);
    this.#note(
      `${group}: keys of service accounts are not copied: give the set-up the path of the JSON file as ${name}=@key.json, docs/clouds.md#google-cloud`,
    );
    return name;
  }

  /** The id of the built-in provider, or of an entry of `PROVIDERS` that is made for this address and key. */
  #providerId(known: Counterpart, given: string, params: JsonObject, group: string): string | null {
    // A cloud's address is not its URL alone: its models become an entry.
    const builtIn = PROVIDERS.find(({ id, cloud }) => id === known.id && cloud === undefined);
    const isAzure = known.id === 'azure';
    const baseUrl = isAzure ? azureBase(given) : given || (known.baseUrl ?? builtIn?.defaultBaseUrl ?? '');
    if (!URL.canParse(baseUrl)) {
      this.#note(`${group}: api_base of ${known.id} is no URL`);
      return null;
    }
    const usual =
      builtIn?.apiKeySettings[0] ?? known.key ?? `${known.id.toUpperCase().replace(/\W/g, '_')}_API_KEY`;
    const hasOwnKey =
      params.api_key !== undefined || known.key !== undefined || builtIn !== undefined || isAzure;
    const key = hasOwnKey ? this.#secretOf(params.api_key, usual, group) : '';
    const url = new URL(baseUrl);
    const isOwnHost = builtIn?.defaultBaseUrl != null && url.host === new URL(builtIn.defaultBaseUrl).host;
    const place = `${baseUrl} ${key} ${JSON.stringify(params.extra_headers ?? null)}`;
    const found = this.#places.get(place);
    if (found !== undefined) return found;
    const isPlainUrl = url.username + url.password + url.search === '';
    if (
      builtIn !== undefined &&
      isOwnHost &&
      isPlainUrl &&
      key === usual &&
      params.extra_headers === undefined
    ) {
      this.#builtIn.add(builtIn.id);
      this.#places.set(place, builtIn.id);
      return builtIn.id;
    }
    const id = this.#freeId(builtIn === undefined ? known.id : isOwnHost ? `${known.id}-2` : hostId(baseUrl));
    const host = privateHost(baseUrl);
    if (host !== null) this.#note(`${group}: ${wayToPrivateHost(host, `the entry ${id}`)}`);
    const headers = { ...this.#headersOf(params, id, group), ...this.#userOf(url, id, group) };
    const query = this.#queryOf(url, id, group);
    this.#entries.set(id, {
      base_url: plainUrl(url, baseUrl),
      ...(key === '' ? {} : { api_key: key }),
      ...(known.like === undefined ? {} : { like: known.like }),
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
      ...(Object.keys(query).length === 0 ? {} : { query }),
    });
    if (key !== '') this.#secrets.add(key);
    this.#places.set(place, id);
    return id;
  }

  /** Headers as an entry has them. What may be a secret becomes the name of one. */
  #headersOf(params: JsonObject, id: string, group: string): Readonly<Record<string, string>> {
    if (!isObject(params.extra_headers)) return {};
    this.#note(`${group}: extra_headers are headers of every request to this provider`);
    return Object.fromEntries(
      Object.entries(params.extra_headers).map(([name, value]) => {
        const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
        const isPlain = PLAIN_HEADERS.has(name.toLowerCase()) && !text.startsWith('$') && !isReference(text);
        return [name, isPlain ? text : this.#secretText(text, `${id}_${name}`, `the header ${name}`, group)];
      }),
    );
  }

  /** User and password of a URL, as the header into which clients turn them. */
  #userOf({ username, password }: URL, id: string, group: string): Readonly<Record<string, string>> {
    if (username + password === '') return {};
    const name = this.#newSecret(`${id}_authorization`);
    this.#note(
      `${group}: api_base has a user or a password. It is not copied: give it to the set-up as ${name}='Basic …', with user:password in base64`,
    );
    return { authorization: `$${name}` };
  }

  #queryOf({ searchParams }: URL, id: string, group: string): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...searchParams].map(([name, value]) => [
        name,
        PLAIN_PARAMS.has(name.toLowerCase())
          ? value
          : this.#secretText(value, `${id}_${name}`, `the parameter ${name} of api_base`, group),
      ]),
    );
  }

  /** `$NAME`, for a value that may be a secret. */
  #secretText(value: string, wanted: string, what: string, group: string): string {
    const referred = isReference(value) ? value.slice(REFERENCE.length) : '';
    if (SECRET_NAME.test(referred) && !isOwnSecret(referred)) {
      this.#secrets.add(referred);
      return `$${referred}`;
    }
    const name = this.#newSecret(wanted);
    this.#note(
      `${group}: ${what} may be a secret. Its value is not copied: give it to the set-up as ${name}=…`,
    );
    return `$${name}`;
  }

  /** A name that no other secret has. */
  #newSecret(wanted: string): string {
    const plain = wanted
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')
      .replace(/^[^A-Z]+|_+$/g, '')
      .slice(0, 56);
    const isTaken = (name: string) => this.#secrets.has(name) || isOwnSecret(name) || KEY_SETTINGS.has(name);
    let name = plain === '' ? 'HEADER' : plain;
    for (let number = 2; isTaken(name); number++) name = `${plain}_${number}`;
    this.#secrets.add(name);
    return name;
  }

  #freeId(wanted: string): string {
    // An entry with the name of another built-in provider would replace one that is in use.
    const isTaken = (id: string) => this.#entries.has(id) || isReserved(id) || this.#builtIn.has(id);
    let id = wanted;
    for (let number = 2; isTaken(id); number++) id = `${wanted.replace(/-\d+$/, '')}-${number}`;
    return id;
  }

  /** The name of the secret with a key. A key that the file itself contains is not copied. */
  #secretOf(value: unknown, usual: string, group: string): string {
    const text = textOf(value);
    const name = isReference(text) ? text.slice(REFERENCE.length) : '';
    if (text === '' || name === usual) return usual;
    if (isOwnSecret(name)) {
      this.#note(
        `${group}: api_key is ${name}, a secret of Weir's own here, which no provider may get: give the provider's key to the set-up as ${usual}=…`,
      );
      return usual;
    }
    if (name !== '' && SECRET_NAME.test(name)) return name;
    if (text === 'none' || text === 'None') return '';
    this.#note(
      `${group}: the configuration contains a key. It is not copied: give it to the set-up as ${usual}=…`,
    );
    return usual;
  }

  #aliases(deployments: readonly Deployment[]): Readonly<Record<string, Json>> {
    const groups = Map.groupBy(deployments, ({ group }) => group);
    const own = new Map([...groups].map(([group, list]) => [group, stepsOf(list)]));
    const aliases: Record<string, Json> = {};
    for (const [group, steps] of own) {
      const all = this.#withFallbacks(group, steps, own);
      const [first, ...others] = all;
      // A model that is called by its address needs no alias.
      if (first === undefined || (others.length === 0 && isPlain(first) && first.model === group)) continue;
      aliases[group] = writeSteps(all);
    }
    for (const [name, value] of Object.entries(objectOf(this.#router.model_group_alias))) {
      const target = textOf(value) || textOf(objectOf(value).model);
      const steps = own.get(target);
      if (steps === undefined) this.#note(`model_group_alias ${name}: there is no model group ${target}`);
      else aliases[name] = writeSteps(this.#withFallbacks(target, steps, own));
      if (objectOf(value).hidden === true)
        this.#note(`model_group_alias ${name}: GET /v1/models lists it; hidden has no counterpart`);
    }
    return aliases;
  }

  /** The group's steps, then those of the groups that it falls back to. */
  #withFallbacks(
    group: string,
    steps: readonly Step[],
    own: ReadonlyMap<string, readonly Step[]>,
  ): readonly Step[] {
    const first = steps.map((step) => ({ ...step }));
    const added: Step[] = [];
    const kinds = [
      ['fallbacks', null],
      ['context_window_fallbacks', 'context_length'],
      ['content_policy_fallbacks', 'content_filter'],
    ] as const;
    for (const [setting, refusal] of kinds) {
      const names = this.#fallbacksOf(setting, group);
      if (names.length > 0 && refusal !== null)
        for (const step of first) step.on = [...(step.on ?? []), refusal];
      if (names.length > 0 && refusal !== null && this.#fallbacksOf('fallbacks', group).length > 0)
        this.#note(
          `${group}: an alias has one order of steps for all failures, so ${setting} follow its fallbacks`,
        );
      for (const name of names) {
        const found = own.get(name);
        if (found === undefined)
          this.#note(
            `${group}: its fallback ${name} is no model group of the configuration, or has no counterpart`,
          );
        for (const { model, timeout_seconds, set } of found ?? []) {
          if ([...first, ...added].some((step) => step.model === model)) continue;
          added.push({
            model,
            ...(timeout_seconds === undefined ? {} : { timeout_seconds }),
            ...(set === undefined ? {} : { set }),
          });
        }
      }
    }
    const all = [...first, ...added];
    if (all.length > MAX_TARGETS)
      this.#note(
        `${group}: an alias has at most ${MAX_TARGETS} steps, so ${all
          .slice(MAX_TARGETS)
          .map(({ model }) => model)
          .join(', ')} is left out`,
      );
    return all.slice(0, MAX_TARGETS);
  }

  /** The names after `group` or `*` in a list such as `[{"gpt-4o": ["claude"]}]`, in either section. */
  #fallbacksOf(setting: string, group: string): readonly string[] {
    const lists = [this.#router[setting], this.#module[setting]].flatMap((list) => objectsOf(list));
    const named =
      lists.find((entry) => group in entry)?.[group] ?? lists.find((entry) => '*' in entry)?.['*'];
    const others =
      setting === 'fallbacks'
        ? (this.#module.default_fallbacks ?? this.#router.default_fallbacks)
        : undefined;
    const names = named ?? others;
    return Array.isArray(names) ? names.map(textOf).filter((name) => name !== '' && name !== group) : [];
  }

  #readRetries(vars: Record<string, Json>): void {
    const retries = numberOf(this.#router.num_retries) ?? numberOf(this.#module.num_retries);
    if (retries !== undefined) vars.RETRIES = String(Math.min(MAX_RETRIES, retries));
    if (retries !== undefined && retries > MAX_RETRIES) this.#note(`num_retries is ${MAX_RETRIES} at most`);
    const timeout = numberOf(this.#router.timeout) ?? numberOf(this.#module.request_timeout);
    if (timeout === undefined) return;
    vars.DEADLINE_SECONDS = String(timeout);
    this.#note(
      'timeout and request_timeout become DEADLINE_SECONDS, the limit of the whole request with all its attempts',
    );
  }

  /** The limits that LiteLLM gives to a key without its own, as the body of `POST /admin/keys`. */
  #readKey(): JsonObject {
    const defaults = {
      ...objectOf(this.#module.upperbound_key_generate_params),
      ...objectOf(this.#module.default_key_generate_params),
    };
    const key: Record<string, Json> = { name: 'first' };
    const budget = this.#budget(defaults.max_budget, defaults.budget_duration, 'the budget of keys');
    if (budget !== null) key.budget = budget;
    for (const [from, to] of [
      ['rpm_limit', 'rpm'],
      ['tpm_limit', 'tpm'],
      ['max_parallel_requests', 'max_concurrent'],
    ] as const) {
      const limit = numberOf(defaults[from]);
      if (limit !== undefined) key[to] = limit;
    }
    const user = this.#budget(
      this.#module.max_internal_user_budget ?? this.#module.max_end_user_budget,
      this.#module.internal_user_budget_duration,
      'the budget of users',
    );
    if (user !== null) key.per_user = { budget: user };
    if (Object.keys(key).length > 1)
      this.#note(
        "The limits of the first key are the defaults of LiteLLM's keys. Give each further key the same: docs/budgets.md",
      );
    if (Array.isArray(defaults.models))
      this.#note('models of key_generate_params: give a key globs over addresses, such as "openai/*"');
    if (this.#module.max_budget !== undefined)
      this.#note('max_budget of the proxy has no counterpart: a budget belongs to a key');
    return key;
  }

  #budget(amount: unknown, duration: unknown, what: string): JsonObject | null {
    const usd = numberOf(amount);
    if (usd === undefined) return null;
    const text = textOf(duration);
    if (text === '') return { USD: usd, per: 'total' };
    if (['1d', '24h', 'daily'].includes(text)) return { USD: usd, per: 'day' };
    if (['7d', '1w', 'weekly'].includes(text)) return { USD: usd, per: 'week' };
    if (!['30d', '1mo', '31d', 'monthly'].includes(text))
      this.#note(`${what}: there are days, weeks and calendar months, so ${text} became a month`);
    return { USD: usd, per: 'month' };
  }

  #noteRest(): void {
    const master = textOf(this.#general.master_key);
    if (master !== '')
      this.#note(
        'master_key is the secret ADMIN_TOKEN here: ADMIN_TOKEN=… in the environment of the set-up, or a new one is made',
      );
    const read: Readonly<Record<string, readonly string[]>> = {
      general_settings: ['master_key', 'alerting'],
      router_settings: [
        'fallbacks',
        'context_window_fallbacks',
        'content_policy_fallbacks',
        'default_fallbacks',
        'model_group_alias',
        'num_retries',
        'timeout',
      ],
      litellm_settings: [
        ...[
          'fallbacks',
          'context_window_fallbacks',
          'content_policy_fallbacks',
          'default_fallbacks',
          'num_retries',
          'request_timeout',
        ],
        ...[
          'max_budget',
          'budget_duration',
          'max_internal_user_budget',
          'internal_user_budget_duration',
          'max_end_user_budget',
        ],
        ...['default_key_generate_params', 'upperbound_key_generate_params'],
      ],
    };
    for (const [section, value] of Object.entries(this.#config)) {
      if (section === 'model_list' || section === 'credential_list') continue;
      const known = read[section];
      if (known === undefined) this.#note(`${section} has no counterpart`);
      else
        for (const name of Object.keys(objectOf(value)))
          if (!known.includes(name))
            this.#note(`${section}.${name} ${REASONS[name] ?? 'has no counterpart'}`);
    }
  }
}

/** Settings that are not needed, or are elsewhere. */
const REASONS: Readonly<Record<string, string>> = {
  routing_strategy:
    'has no counterpart: an alias picks its first step by weight, and keeps a conversation at it',
  enable_pre_call_checks: 'has no counterpart: context_window_fallbacks move on when the provider refuses',
  allowed_fails: 'is not needed: circuit breakers open after 5 failures in a row',
  cooldown_time:
    'is not needed: a circuit breaker skips a target for 10 s, for 60 s if the key, balance or model is refused',
  redis_host: 'is not needed: limits and budgets are in Durable Objects',
  redis_port: 'is not needed',
  redis_password: 'is not needed',
  database_url: 'is not needed: keys are in KV. LiteLLM stores a key as a hash, so make new keys',
  store_model_in_db: 'is not needed',
  drop_params: 'is not needed: fields that a provider refuses are handled by UNSUPPORTED',
  set_verbose: 'is not needed: Workers Logs have one event for each request',
  json_logs: 'is not needed: the log is JSON',
  success_callback: 'has no counterpart: usage records, npm run export, or onRecord in a Worker of your own',
  failure_callback: 'has no counterpart: failed requests are records with fault and message',
  callbacks: 'has no counterpart',
  cache: 'has no counterpart: Weir caches no responses',
  cache_params: 'has no counterpart: Weir caches no responses',
};

/** Deployments of one group. Those of the lowest `order` share the requests; the others follow. */
function stepsOf(deployments: readonly Deployment[]): readonly Step[] {
  const sorted = deployments.toSorted((a, b) => a.order - b.order);
  const lowest = sorted[0]?.order;
  const isShared = sorted.filter(({ order }) => order === lowest).length > 1;
  return sorted.map(({ address, order, weight, timeout, set }) => ({
    model: address,
    ...(isShared && order === lowest ? { weight: weight ?? 1 } : {}),
    ...(timeout === null ? {} : { timeout_seconds: timeout }),
    ...(Object.keys(set).length === 0 ? {} : { set }),
  }));
}

function isReference(text: string): boolean {
  return text.startsWith(REFERENCE);
}

/** The address without user, password, query and fragment; as it was given if it has none. */
function plainUrl({ username, password, search, hash, origin, pathname }: URL, given: string): string {
  return username + password + search + hash === '' && !given.includes('@') ? given : origin + pathname;
}

function isPlain(step: Step): boolean {
  return Object.keys(step).length === 1;
}

function writeSteps(steps: readonly Step[]): Json {
  const written = steps.map((step): Json => (isPlain(step) ? step.model : { ...step }));
  return written.length === 1 ? (written[0] ?? null) : written;
}

/** LiteLLM's provider for a name without one; null: no maker is known. */
function makerOf(model: string): string | null {
  const maker = PROVIDERS.find(({ ownModels = [] }) => matchesAnyGlob(ownModels, model));
  return maker?.id ?? null;
}

/**
 * Azure's API with OpenAI's paths and bearer keys:
 * https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle (from memory, 2026-11-23).
 */
function azureBase(given: string): string {
  return URL.canParse(given) ? `${new URL(given).origin}/openai/v1` : given;
}

function idOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, 32);
}

/** An id for a server, from its host: `my-server` of `http://my-server.internal:8000/v1`. */
function hostId(baseUrl: string): string {
  const { hostname } = new URL(baseUrl);
  return idOf(/^[\d.]+$/.test(hostname) ? `server-${hostname}` : (hostname.split('.')[0] ?? 'server'));
}

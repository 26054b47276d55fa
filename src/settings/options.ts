/** Settings as options of `weir()`: `basePath` is `BASE_PATH`. An option takes precedence over the variable of the environment. */

import type { Price } from '../metering/pricing/price.ts';
import { PROVIDER_SETTINGS, type ProviderSetting } from '../providers/index.ts';
import { isObject, type JsonObject, objectOf } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import { featureOf, howToList } from './feature-settings.ts';
import type { SettingProblem } from './reader.ts';

/** One model of an alias, and when to use it. */
export interface AliasStep {
  /** `<provider>/<model>`, or a bare name. `<provider>/*` passes the requested name on; elsewhere `*` stands for what the alias's one `*` matched. */
  readonly model: string;
  /** Its share of the requests that try it first. Default: 0. */
  readonly weight?: number | undefined;
  /** Seconds until its first output. Default: no limit besides those of the request. */
  readonly timeout_seconds?: number | undefined;
  /** Fields that replace those of the request body; null removes a field. */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
  /** Refusals that move on to the next step, as failures do. */
  readonly on?: readonly ('context_length' | 'content_filter')[] | undefined;
  /** The API for chat requests. Default: as the provider's models need. */
  readonly api?: 'chat' | 'responses' | undefined;
}

/**
 * A credential that is made. AWS: requests are signed, with a session of the role if there is one; the host tells region and service, or
 * they are given. Google: tokens of the service account whose key the secret has. Entra ID: tokens of an application.
 */
type EntryAuth = EntryAwsAuth | { readonly google: string } | EntryEntraAuth;

interface EntryEntraAuth {
  readonly entra: {
    readonly tenant_id: string;
    readonly client_id: string;
    readonly client_secret?: string | undefined;
    readonly client_certificate?: string | undefined;
    readonly authority?: string | undefined;
  };
}

interface EntryAwsAuth {
  readonly aws: {
    readonly access_key_id: string;
    readonly secret_access_key: string;
    readonly session_token?: string | undefined;
    readonly role_arn?: string | undefined;
    readonly region?: string | undefined;
    readonly service?: string | undefined;
  };
}

/** A provider with an API that is compatible with OpenAI's. */
export interface ProviderEntry {
  /** The URL of its API, without `/chat/completions`: `https://api.groq.com/openai/v1`. */
  readonly base_url: string;
  /** The name of a service binding through which it is called: Workers VPC, or another Worker. Default: over the network. */
  readonly binding?: string | undefined;
  /** The name of the secret with its key, in the environment or in the option `secrets`. */
  readonly api_key?: string | undefined;
  /** Makes the credential in place of `api_key`. Values but for role, region and service are names of secrets. */
  readonly auth?: EntryAuth | undefined;
  /** The provider whose rules for requests apply. Default: the provider with its host, or `tolerant`. */
  readonly like?: string | undefined;
  /** `false` for a server that refuses `stream_options`. */
  readonly stream_usage?: boolean | undefined;
  /** The most output tokens a second of one request at a server that stops when its connection closes; `false`: it goes on. */
  readonly stops_on_close?: number | false | undefined;

  /** The server has the Responses API itself, so Responses requests pass through unchanged. */
  readonly responses?: boolean | undefined;
  /** The API for all chat requests; `bedrock-converse` where `like` names the cloud with it. Default: as the provider's models need. */
  readonly api?: 'chat' | 'responses' | 'bedrock-converse' | undefined;
  /** The guardrail of each request, with `api: 'bedrock-converse'`. */
  readonly guardrailConfig?: Readonly<Record<string, unknown>> | undefined;
  /** The server's names for fields of the chat body: `{ seed: 'random_seed' }`. */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Fields of the chat body that the server does not support: they are dropped, and reported in `x-weir-dropped`. */
  readonly drop?: readonly string[] | undefined;
  /** The server's names for message roles: `{ developer: 'system' }`. */
  readonly roles?: Readonly<Record<string, string>> | undefined;
  /** The server's values of `reasoning_effort`: `{ minimal: 'low' }`. */
  readonly effort?: Readonly<Record<string, string>> | undefined;
  /** The field in which reasoning of earlier turns is sent back. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'both' | 'thinking_parts' | 'none' | undefined;
  /** `<maker>/<model>` by names of the server's, such as those of deployments: families, facts and prices are the maker's. */
  readonly models?: Readonly<Record<string, string>> | undefined;
  /** Headers of each request. The value `$NAME` stands for the secret NAME. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of each URL. The value `$NAME` stands for the secret NAME. */
  readonly query?: Readonly<Record<string, string>> | undefined;
}

/** `DEEPSEEK_API_KEY` is `deepseekApiKey`. */
type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>;

/** The key and base URL of each built-in provider, such as `deepseekApiKey` and `mistralBaseUrl`. */
export type ProviderOptions = { readonly [Option in CamelCase<ProviderSetting>]?: string | undefined };

/** Every setting as an option. An absent option is read from the environment. */
export interface SettingOptions extends ProviderOptions {
  /** Who may call: `keys` (the default) requires a gateway key, `passthrough` forwards the caller's own provider key, `open` allows anyone, `access` also takes users of Cloudflare Access without a key. */
  readonly auth?: 'keys' | 'passthrough' | 'open' | 'access' | undefined;
  /** A long random secret that gives access to `/admin/keys`, all of `/v1/usage`, and `/v1/models`. */
  readonly adminToken?: string | undefined;
  /** The path below which Weir is mounted, such as `/ai`. Default: `/`. */
  readonly basePath?: string | undefined;
  /** Where requests for other paths go: `404` (the default) for an error, an origin such as `https://www.example.com`, or `pass` for the zone's own origin. */
  readonly origin?: string | undefined;
  /** The hosts that `origin: 'pass'` forwards to their own origin, such as `*.example.com`. */
  readonly originHosts?: string | readonly string[] | undefined;
  /** Origins whose web pages may call Weir; `*` allows any. Default: none. */
  readonly corsOrigins?: string | readonly string[] | undefined;
  /** More providers, by name. A model's address is `<name>/<model>`. */
  readonly providers?: Readonly<Record<string, ProviderEntry>> | undefined;
  /** The secrets that `providers` refers to, by name: `{ GROQ_API_KEY: '…' }`. */
  readonly secrets?: Readonly<Record<string, string | undefined>> | undefined;
  /** The provider of model names without `<provider>/`. Default: none. */
  readonly defaultProvider?: string | undefined;
  /** Whether other names without `<provider>/` go to the model's maker. Default: `on`, and always `off` with `auth: 'passthrough'`. */
  readonly bareModels?: 'on' | 'off' | undefined;
  /** Names for models, or for lists of models to try in order: `{ fast: 'mistral/mistral-small-latest' }`. */
  readonly aliases?:
    | Readonly<Record<string, string | AliasStep | readonly (string | AliasStep)[]>>
    | undefined;
  /** Further rounds over the targets that may recover, 0 to 5. Default: 1. */
  readonly retries?: number | undefined;
  /** Where usage records are stored: in KV (`kv`, the default), or in Durable Objects (`object`), one for each key. */
  readonly ledger?: 'kv' | 'object' | undefined;
  /** Users in records: `plain` (the default) names, `hash` for an HMAC under `userHashKey`, or `off` for neither users nor sessions. */
  readonly users?: 'plain' | 'hash' | 'off' | undefined;
  /** The secret of `users: 'hash'`. */
  readonly userHashKey?: string | undefined;
  /** Names of the entries of a request's `metadata` that become tags, at most 8. */
  readonly tags?: string | readonly string[] | undefined;
  /** `CACHE_REPORT`: whether requests are compared with the earlier ones of their session, to explain breaks of the prompt cache. Default: `on`. */
  readonly cacheReport?: 'on' | 'off' | undefined;
  /** The domain of the team of Cloudflare Access whose tokens name users: `team.cloudflareaccess.com`. */
  readonly accessTeamDomain?: string | undefined;
  /** The audience tag of the application in Cloudflare Access. */
  readonly accessAud?: string | undefined;
  /** Users of Cloudflare Access who are admins without the admin token: e-mail addresses with `*`, and names of service tokens. */
  readonly accessAdmins?: string | readonly string[] | undefined;
  /** The jurisdiction of all Durable Objects: other objects, so that it is chosen before the first key. Default: none. */
  readonly jurisdiction?: 'eu' | 'fedramp' | 'fedramp-high' | 'us' | undefined;
  /** About where new Durable Objects are created, such as `weur`. Default: near their first caller. */
  readonly locationHint?: string | undefined;
  /** How many days a ledger object keeps individual records, 15 to 3650. Default: 35. */
  readonly recordDays?: number | undefined;
  /** Bytes that a ledger object keeps. Above it, its oldest records leave for `WEIR_ARCHIVE`, or are deleted. */
  readonly recordBytes?: number | undefined;
  /** Whether Responses are kept for resumption and state: `stateless` (the default) keeps nothing, `durable` keeps each in a Durable Object. */
  readonly responses?: 'stateless' | 'durable' | undefined;
  /** How many days a stored response is kept, 1 to 365. Default: 30. */
  readonly responsesDays?: number | undefined;
  /** The largest response that is kept: the bytes of its events. Default: 32 MiB. */
  readonly responseBytes?: number | undefined;
  /** The most responses that are kept of one owner at a time, 1 to 10,000,000. Default: 100,000. */
  readonly keptResponses?: number | undefined;
  /** The most bytes of kept responses of one owner. Default: 10 GiB. */
  readonly keptBytes?: number | undefined;
  /** Requests of a key with limits while its ledger object is unavailable: `closed` (the default) refuses them, `open` allows them. */
  readonly budgetFail?: 'closed' | 'open' | undefined;
  /** The percentages of a budget at which an alert is logged and sent, such as `[50, 80, 100]` (the default), or `off`. */
  readonly budgetAlerts?: string | readonly number[] | undefined;
  /** The URL to which alerts are sent. Default: they are only logged. */
  readonly alertUrl?: string | undefined;
  /** The secret that signs alerts, required with `alertUrl`. */
  readonly alertSecret?: string | undefined;
  /** Your own prices, at most 5 KB. They take precedence over the built-in prices. */
  readonly prices?: readonly Price[] | undefined;
  /** Vendor events (`x_*`) in streams: `strip` (the default) removes them, `pass` keeps them, globs keep those that match. */
  readonly vendorEvents?: string | readonly string[] | undefined;
  /** Whether clients receive reasoning: `pass` (the default) or `strip`. It is metered in both cases. */
  readonly reasoning?: 'pass' | 'strip' | undefined;
  /** Usage in streams whose client did not request it: on the `finish` chunk (the default), omitted (`on_request`), or `always` in a separate chunk. */
  readonly usageChunk?: 'finish' | 'on_request' | 'always' | undefined;
  /** Fields that a provider does not support: `auto` (the default) drops those that do not change the output, `drop` drops all, `refuse` refuses the request. */
  readonly unsupported?: 'auto' | 'drop' | 'refuse' | undefined;
  /** `LEARN`: whether a provider's refusal may change the request, which is then sent once more. Default: `on`. */
  readonly learn?: 'on' | 'off' | undefined;
  /** `ERROR_TEXTS`: whether records and logs keep what providers say about failures, without the prompt. Default: `on`. */
  readonly errorTexts?: 'on' | 'off' | undefined;
  /** `auto` (the default) marks a conversation for the prompt cache of providers that need a mark, if the client set none. `off` never does. */
  readonly promptCache?: 'auto' | 'off' | undefined;
  /** `event` adds the line `event: error` to error frames. Default: `data`. */
  readonly errorFrames?: 'data' | 'event' | undefined;
  /** Seconds without output after which a stream sends a heartbeat; 0: never. Default: 15. */
  readonly heartbeatSeconds?: number | undefined;
  /** Seconds after which a stream fails if its provider sends nothing; 0: never. Default: 120. */
  readonly idleTimeoutSeconds?: number | undefined;
  /** Seconds after which a request fails; 0: never. Default: 600. */
  readonly deadlineSeconds?: number | undefined;
  /** The largest event of a provider's stream, in bytes. Default: 1 MiB. */
  readonly maxEventBytes?: number | undefined;
  /** The largest request body, in bytes. Default: 10 MiB. */
  readonly maxRequestBytes?: number | undefined;
}

type DeploymentOption = Exclude<keyof SettingOptions, keyof ProviderOptions>;

/** The names at run time. The type requires every name, so that none is forgotten. */
const NAMES: { readonly [Name in DeploymentOption]-?: true } = {
  auth: true,
  adminToken: true,
  basePath: true,
  origin: true,
  originHosts: true,
  corsOrigins: true,
  providers: true,
  secrets: true,
  defaultProvider: true,
  bareModels: true,
  aliases: true,
  retries: true,
  ledger: true,
  users: true,
  userHashKey: true,
  tags: true,
  cacheReport: true,
  accessTeamDomain: true,
  accessAud: true,
  accessAdmins: true,
  jurisdiction: true,
  locationHint: true,
  recordDays: true,
  recordBytes: true,
  responses: true,
  responsesDays: true,
  responseBytes: true,
  keptResponses: true,
  keptBytes: true,
  budgetFail: true,
  budgetAlerts: true,
  alertUrl: true,
  alertSecret: true,
  prices: true,
  vendorEvents: true,
  reasoning: true,
  usageChunk: true,
  unsupported: true,
  learn: true,
  errorTexts: true,
  promptCache: true,
  errorFrames: true,
  heartbeatSeconds: true,
  idleTimeoutSeconds: true,
  deadlineSeconds: true,
  maxEventBytes: true,
  maxRequestBytes: true,
};

const KNOWN_OPTIONS: ReadonlySet<string> = new Set([
  ...Object.keys(NAMES),
  ...PROVIDER_SETTINGS.map(optionName),
]);

/** The environment with the options in it. An undefined option does not replace a variable. */
export function withOptions(env: JsonObject, options: JsonObject): JsonObject {
  const { secrets, ...settings } = options;
  const optionSettings = Object.entries(settings).map(([option, value]) => [
    settingName(option),
    settingValue(value),
  ]);
  const overrides = [...Object.entries(objectOf(secrets)), ...optionSettings].filter(
    ([, value]) => value !== undefined,
  );
  return { ...env, ...Object.fromEntries(overrides) };
}

/** What an environment was read with. */
interface ReadSettings {
  /** The names of all settings that were read; null if some were not read because of an error. */
  readonly names: ReadonlySet<string> | null;
  /** The names of the deployment's features. */
  readonly listed: ReadonlySet<string>;
}

/** Reports unknown options, with the most similar known name, options of features that are not listed, and unused secrets. */
export function optionProblems(
  { secrets = {}, ...options }: JsonObject,
  { names, listed }: ReadSettings,
): SettingProblem[] {
  const setOptions = Object.keys(options).filter((option) => options[option] !== undefined);
  const problems = setOptions.flatMap((option) => {
    if (KNOWN_OPTIONS.has(option)) {
      const feature = featureOf(settingName(option));
      if (feature === undefined || listed.has(feature)) return [];
      return [{ setting: `the option ${option}`, message: `needs ${feature}(): ${howToList(feature)}` }];
    }
    const nearest = didYouMean(option, KNOWN_OPTIONS);
    const hint = /ApiKey$/.test(option) ? ': put the keys of your own providers into secrets' : '';
    return [{ setting: `the option ${option}`, message: `does not exist${nearest || hint}` }];
  });
  if (!isObject(secrets)) {
    return [...problems, { setting: 'the option secrets', message: 'must be an object of strings' }];
  }
  const unused = names === null ? [] : Object.keys(secrets).filter((name) => !names.has(name));
  return [
    ...problems,
    ...unused.map((name) => ({
      setting: `the option secrets.${name}`,
      message: `is not used by providers${didYouMean(name, names ?? [])}`,
    })),
  ];
}

/** `basePath` is `BASE_PATH`. */
function settingName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

function optionName(setting: string): string {
  return setting.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The value as the environment has it: numbers and lists of strings as text, objects unchanged. */
function settingValue(value: unknown): unknown {
  if (typeof value === 'number') return String(value);
  const isWord = (item: unknown) => typeof item === 'string' || typeof item === 'number';
  return Array.isArray(value) && value.every(isWord) ? value.join(',') : value;
}

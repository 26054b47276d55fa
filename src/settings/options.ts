/** Settings as options of `weir()`: `basePath` is `BASE_PATH`. An option takes precedence over the variable of the environment. */

import type { Price } from '../metering/pricing/price.ts';
import { PROVIDER_SETTINGS, type ProviderSetting } from '../providers/index.ts';
import { isObject, type JsonObject, objectOf } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import { featureOf, howToList } from './feature-settings.ts';
import type { SettingProblem } from './reader.ts';

/** One model of an alias, and when to use it. */
export interface AliasStep {
  /** `<provider>/<model>`, or a bare name (docs/routing.md#bare-names); not another alias. `<provider>/*` passes the requested name on; elsewhere `*` stands for what the alias's one `*` matched. Required. */
  readonly model: string;
  /** Its share of the requests that try it first, from 0 up. Default: 0. */
  readonly weight?: number | undefined;
  /** Seconds until its first output, or until a non-streaming response is complete, above 0 and at most 86,400. Default: no limit besides those of the request. */
  readonly timeout_seconds?: number | undefined;
  /** Fields of Chat Completions that replace those of the request body; null removes a field. Not `model`, `models`, `route`, `agent_id` or `stream`. Turns passthrough off (docs/messages-and-responses.md#passthrough). */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
  /** Refusals that also move on to the next step. */
  readonly on?: readonly ('context_length' | 'content_filter')[] | undefined;
  /** The API for chat requests, at a provider that has both. Default: as the provider's models need (docs/request-translation.md#chat-through-responses). */
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
  /** The API's address, up to where `/chat/completions` follows; it may end in a version (`/v1`, `/v1beta`): `https://api.groq.com/openai/v1`. Required. */
  readonly base_url: string;
  /** The name of a service binding through which it is called: a VPC service (docs/providers.md#a-server-in-a-network-of-your-own), or another Worker. Default: over the network. */
  readonly binding?: string | undefined;
  /** The name of the secret with its key, in the environment or in the option `secrets`. No provider gets a secret of Weir's own: `ADMIN_TOKEN`, `USER_HASH_KEY`, `ALERT_URL` and `ALERT_SECRET` are refused, also in `headers` and `query`. */
  readonly api_key?: string | undefined;
  /** Makes the credential in place of `api_key`, such as `{"aws": {"access_key_id": "NAME", "secret_access_key": "NAME"}}` (docs/clouds.md#credentials-that-are-made). Values but for role, region and service are names of secrets. */
  readonly auth?: EntryAuth | undefined;
  /** The profile whose rules for requests apply (docs/models.md#profiles). Default: the one of its host, or `tolerant`. */
  readonly like?: string | undefined;
  /** `false` for a server that refuses `stream_options`. */
  readonly stream_usage?: boolean | undefined;
  /** The most output tokens a second of one request at a server that stops when its connection closes; `false`: it goes on (docs/providers.md#when-a-connection-closes). */
  readonly stops_on_close?: number | false | undefined;
  /** The server has the Responses API itself, so Responses requests pass through (docs/messages-and-responses.md#passthrough). Default: only at the profile's own hosts. */
  readonly responses?: boolean | undefined;
  /** The API for all chat requests (docs/request-translation.md#chat-through-responses); `bedrock-converse` where `like` names the cloud with it (docs/providers.md#aws-bedrock). Default: as the provider's models need. */
  readonly api?: 'chat' | 'responses' | 'bedrock-converse' | undefined;
  /** The guardrail of each request (docs/providers.md#aws-bedrock), with `"api": "bedrock-converse"`: `{"guardrailIdentifier": "…", "guardrailVersion": "1"}`. */
  readonly guardrailConfig?: Readonly<Record<string, unknown>> | undefined;
  /** The server's names for fields of the chat body: `{"seed": "random_seed"}`. A value that already has that name wins (docs/providers.md#quirks-as-data). */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Fields of the chat body that the server does not support: they are dropped and reported, even if they would change the output. */
  readonly drop?: readonly string[] | undefined;
  /** The server's names for message roles: `{"developer": "system"}`. */
  readonly roles?: Readonly<Record<string, string>> | undefined;
  /** The server's words for `reasoning_effort`, which replace the profile's: `{"minimal": "low"}`. */
  readonly effort?: Readonly<Record<string, string>> | undefined;
  /** The form in which reasoning of earlier outputs goes back. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'both' | 'thinking_parts' | 'none' | undefined;
  /** `<maker>/<model>` by names of the server's, such as those of deployments: families, facts and prices are the maker's (docs/providers.md#names-of-models). */
  readonly models?: Readonly<Record<string, string>> | undefined;
  /** Headers of each request. The value `$NAME` stands for the secret NAME. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of each URL, such as Azure's `api-version`. The value `$NAME` stands for the secret NAME. */
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
  /** Who may call: `keys` (the default) requires a gateway key, `passthrough` forwards the caller's own provider key, `open` allows anyone, `access` also takes users of Cloudflare Access without a key (docs/keys.md#who-may-call). */
  readonly auth?: 'keys' | 'passthrough' | 'open' | 'access' | undefined;
  /** A secret: a long random text that opens `/admin/keys`, all of `/v1/usage`, `/v1/models` and the dashboard. */
  readonly adminToken?: string | undefined;
  /** The path below which all routes are, such as `/ai`. Default: `/`. */
  readonly basePath?: string | undefined;
  /** What requests for other paths get: `404` (the default), the response of an origin such as `https://www.example.com`, or with `pass` of the zone's own origin (docs/deployment.md#on-an-existing-domain-below-a-path-such-as-ai). */
  readonly origin?: string | undefined;
  /** The hosts that `origin: 'pass'`, which requires it, forwards to their own origin, such as `example.com, *.example.com`; other hosts get 500. */
  readonly originHosts?: string | readonly string[] | undefined;
  /** Origins whose web pages may call Weir, such as `https://app.example.com`; `*` allows any. Default: none. */
  readonly corsOrigins?: string | readonly string[] | undefined;
  /** More providers, by name, or others in the place of built-in ones (docs/providers.md#add-a-provider-of-your-own). A model's address is `<name>/<model>`. A secret that an entry names is also a setting. */
  readonly providers?: Readonly<Record<string, ProviderEntry>> | undefined;
  /** The secrets that `providers` refers to, by name: `{ GROQ_API_KEY: '…' }`. */
  readonly secrets?: Readonly<Record<string, string | undefined>> | undefined;
  /** The provider of model names without `<provider>/`; under `auth: 'passthrough'` also of the list at `GET /v1/models`. Default: none. */
  readonly defaultProvider?: string | undefined;
  /** Whether other names without `<provider>/` go to the model's maker (docs/routing.md#bare-names). Default: `on`, and always `off` with `auth: 'passthrough'`. */
  readonly bareModels?: 'on' | 'off' | undefined;
  /** Names for models, or for lists of 1 to 8 models to try in order: `{"fast": "mistral/mistral-small-latest"}` (docs/routing.md#aliases). */
  readonly aliases?:
    | Readonly<Record<string, string | AliasStep | readonly (string | AliasStep)[]>>
    | undefined;
  /** Further rounds over the targets that may recover, 0 to 5 (docs/routing.md#retries). Default: 1. */
  readonly retries?: number | undefined;
  /** Where usage records are stored: in KV (`kv`, the default), or in Durable Objects (`object`), one for each key (docs/ledgers.md). */
  readonly ledger?: 'kv' | 'object' | undefined;
  /** Users in records: `plain` (the default) names, `hash` for an HMAC under `userHashKey`, or `off` for neither users nor sessions (docs/attribution.md#privacy). */
  readonly users?: 'plain' | 'hash' | 'off' | undefined;
  /** A secret of at least 16 characters, the key of the HMAC: required with `users: 'hash'`, and with `auth: 'access'` under `users: 'off'`. */
  readonly userHashKey?: string | undefined;
  /** Names of the entries of a request's `metadata` that become tags, at most 8 (docs/attribution.md). */
  readonly tags?: string | readonly string[] | undefined;
  /** Whether requests are compared with the earlier ones of their session, to explain breaks of the prompt cache (docs/prompt-caches.md). Default: `on`. */
  readonly cacheReport?: 'on' | 'off' | undefined;
  /** The domain of the team of Cloudflare Access whose tokens name users: `team.cloudflareaccess.com` (docs/attribution.md#cloudflare-access). */
  readonly accessTeamDomain?: string | undefined;
  /** The audience tag of the application in Cloudflare Access. */
  readonly accessAud?: string | undefined;
  /** Users of Cloudflare Access who are admins without the admin token: `ada@example.com, *@ops.example.com`, and names of service tokens. */
  readonly accessAdmins?: string | readonly string[] | undefined;
  /** The jurisdiction of all Durable Objects: other objects, so that it is chosen before the first key (docs/privacy.md#where-data-is). Default: none. */
  readonly jurisdiction?: 'eu' | 'fedramp' | 'fedramp-high' | 'us' | undefined;
  /** About where new Durable Objects are created: `wnam`, `enam`, `sam`, `weur`, `eeur`, `apac`, `apac-ne`, `apac-se`, `oc`, `afr`, `me` (docs/privacy.md#where-data-is). Default: near their first caller. */
  readonly locationHint?: string | undefined;
  /** How many days `ledger: 'object'` keeps single records, 15 to 3650. Default: 35. */
  readonly recordDays?: number | undefined;
  /** Bytes that a ledger object keeps, 100,000 to 9,000,000,000. Above it, its oldest records leave for `WEIR_ARCHIVE`, or are deleted (docs/ledgers.md#records-leave-an-object). Default: 8,000,000,000. */
  readonly recordBytes?: number | undefined;
  /** Whether Responses are kept for resumption and state: `stateless` (the default) keeps nothing, `durable` keeps each in a Durable Object (docs/durable-responses.md). */
  readonly responses?: 'stateless' | 'durable' | undefined;
  /** How many days a response is kept after its end, 1 to 365. Default: 30. */
  readonly responsesDays?: number | undefined;
  /** The largest background response: the bytes of its events. Default: 33,554,432 (32 MiB). */
  readonly responseBytes?: number | undefined;
  /** The most responses that are kept of one owner at a time, 1 to 10,000,000 (docs/durable-responses.md#how-much-is-kept). Default: 100,000. */
  readonly keptResponses?: number | undefined;
  /** The most bytes of kept responses of one owner. Default: 10,737,418,240 (10 GiB). */
  readonly keptBytes?: number | undefined;
  /** Requests of a key with limits while its ledger object is unavailable: `closed` (the default) refuses them, `open` allows them (docs/budgets.md#when-the-ledger-object-cannot-be-reached). */
  readonly budgetFail?: 'closed' | 'open' | undefined;
  /** The percentages of a budget at which an alert is logged and sent, at most 10 whole numbers from 1 to 100, such as `50,80,100` (the default), or `off` (docs/alerts.md#budgets). */
  readonly budgetAlerts?: string | readonly number[] | undefined;
  /** A secret: the https URL (or http of `localhost`) to which alerts of budgets and of providers, and the weekly summary, are sent (docs/alerts.md). Default: they are only logged. */
  readonly alertUrl?: string | undefined;
  /** A secret of at least 16 characters that signs alerts, required with `alertUrl`. */
  readonly alertSecret?: string | undefined;
  /** Your own prices, at most 5 KB, before the built-in ones (docs/prices.md#your-own-prices). Longer lists go into KV under `config/prices`. */
  readonly prices?: readonly Price[] | undefined;
  /** Vendor events (`x_*`) in streams: `strip` (the default) removes them, `pass` keeps them, at most 32 globs keep those that match (docs/streams.md#vendor-events). */
  readonly vendorEvents?: string | readonly string[] | undefined;
  /** Whether clients receive the text of reasoning, on every route: `pass` (the default) or `strip`. It is metered in both cases; signatures and encrypted reasoning stay. */
  readonly reasoning?: 'pass' | 'strip' | undefined;
  /** Usage in streams whose client did not request it: on the `finish` chunk (the default), omitted (`on_request`), or `always` in a separate chunk (docs/streams.md#usage). */
  readonly usageChunk?: 'finish' | 'on_request' | 'always' | undefined;
  /** Fields that a provider does not support: `auto` (the default) drops those that do not change the output, `drop` drops all, `refuse` refuses the request (docs/request-translation.md#unsupported-fields). */
  readonly unsupported?: 'auto' | 'drop' | 'refuse' | undefined;
  /** Whether a provider's refusal of a field may change the request, which is then sent once more (docs/refusals.md). Default: `on`. */
  readonly learn?: 'on' | 'off' | undefined;
  /** Whether records and logs keep what providers say about failures, without the prompt (docs/errors.md#what-the-record-keeps). Default: `on`. */
  readonly errorTexts?: 'on' | 'off' | undefined;
  /** `auto` (the default): where the client set none, cache marks for Claude, and a `prompt_cache_key` of the session for OpenAI and xAI (docs/request-translation.md#prompt-caches-keep-their-prefix). `off`: neither. */
  readonly promptCache?: 'auto' | 'off' | undefined;
  /** `event` adds the line `event: error` to error frames in streams of chat and completions. Default: `data`. */
  readonly errorFrames?: 'data' | 'event' | undefined;
  /** Seconds without output after which a stream sends a heartbeat, 0 to 86,400; 0: never (docs/streams.md#time). Default: 15. */
  readonly heartbeatSeconds?: number | undefined;
  /** Seconds after which a stream fails if its provider sends nothing, 0 to 86,400; 0: never. Default: 120, and 240 for Bedrock's Converse. */
  readonly idleTimeoutSeconds?: number | undefined;
  /** Seconds after which a request fails, 0 to 86,400; 0: never. Default: 600. */
  readonly deadlineSeconds?: number | undefined;
  /** The largest event of a provider's stream, in bytes. Default: 1,048,576 (1 MiB). */
  readonly maxEventBytes?: number | undefined;
  /** The largest request body, in bytes. Default: 10,485,760 (10 MiB). */
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

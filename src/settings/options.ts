/** Settings as the options of `weir()`: each under its name in the environment, in camel case, and over the environment's. */

import { PROVIDERS, type ProviderSetting } from '../providers/index.ts';
import { isObject, type JsonObject, objectOf } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import type { SettingProblem } from './reader.ts';

/** A step of an alias (R2). */
export interface AliasStep {
  /** `<provider>/<model>`, or a model of `defaultProvider`. */
  readonly model: string;
  /** Its share of being the first that is asked. */
  readonly weight?: number | undefined;
  /** What it has until its first output. */
  readonly timeout_seconds?: number | undefined;
  /** Fields of the body that lie over the caller's; null takes one away. */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
  /** What moves on to the next step, besides failures. */
  readonly on?: readonly ('context_length' | 'content_filter')[] | undefined;
}

/** A provider that is compatible with OpenAI. */
export interface ProviderEntry {
  /** Its API's address, up to where `/chat/completions` follows: `https://api.groq.com/openai/v1`. */
  readonly base_url: string;
  /** The name of a secret, in the environment or in the option `secrets`. */
  readonly api_key?: string | undefined;
  /** Whose table of fields it takes; absent: the one of its host. */
  readonly like?: string | undefined;
  /** False for a server that refuses `stream_options`. */
  readonly stream_usage?: boolean | undefined;
  /** It speaks Responses itself (N1). */
  readonly responses?: boolean | undefined;
  /** Fields of a chat's body that its server names otherwise: `{ seed: 'random_seed' }`. */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Fields of a chat's body that its server does not take: they are left out, and named in `x-weir-dropped`. */
  readonly drop?: readonly string[] | undefined;
  /** Roles that its server names otherwise: `{ developer: 'system' }`. */
  readonly roles?: Readonly<Record<string, string>> | undefined;
  /** Words of `reasoning_effort` that its server names otherwise: `{ minimal: 'low' }`. */
  readonly effort?: Readonly<Record<string, string>> | undefined;
  /** Under which name the reasoning of earlier answers goes back. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'both' | 'thinking_parts' | 'none' | undefined;
  /** Headers of each request; a text `$NAME` stands for that secret. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of each URL, as `headers`. */
  readonly query?: Readonly<Record<string, string>> | undefined;
}

/** `DEEPSEEK_API_KEY` is `deepseekApiKey`. */
type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>;

/** Each known provider's credential and base URL, such as `deepseekApiKey` and `mistralBaseUrl`. */
export type ProviderOptions = { readonly [Option in CamelCase<ProviderSetting>]?: string | undefined };

/** Every setting as an option. One that is left out is read from the environment. */
export interface SettingOptions extends ProviderOptions {
  /** Who may call: `keys` (the default) takes gateway keys, `passthrough` sends the caller's own provider key on, `open` takes anyone. */
  readonly auth?: 'keys' | 'passthrough' | 'open' | undefined;
  /** Opens `/admin/keys`, all of `/v1/usage`, and `/v1/models`: a long random text. */
  readonly adminToken?: string | undefined;
  /** The path below which it is mounted, such as `/ai`. Default: `/`. */
  readonly basePath?: string | undefined;
  /** What a path that is not Weir's gets: `404` (the default), an origin such as `https://www.example.com`, or `pass` to the zone's own origin. */
  readonly origin?: string | undefined;
  /** The hosts whose origin `origin: 'pass'` may ask, such as `*.example.com`. */
  readonly originHosts?: string | readonly string[] | undefined;
  /** Origins whose pages may call it; `*` is any. Default: none. */
  readonly corsOrigins?: string | readonly string[] | undefined;
  /** More providers, by the name that stands before the slash in their models' addresses. */
  readonly providers?: Readonly<Record<string, ProviderEntry>> | undefined;
  /** The secrets that entries of `providers` name, by these names: `{ GROQ_API_KEY: '…' }`. */
  readonly secrets?: Readonly<Record<string, string | undefined>> | undefined;
  /** The provider that bare names of models go to. Default: none. */
  readonly defaultProvider?: string | undefined;
  /** Names for models, or for lists of models that are tried in order: `{ fast: 'mistral/mistral-small-latest' }`. */
  readonly aliases?:
    | Readonly<Record<string, string | AliasStep | readonly (string | AliasStep)[]>>
    | undefined;
  /** Further passes over the targets that may recover, 0 to 5. Default: 1. */
  readonly retries?: number | undefined;
  /** Where usage records are: in KV (`kv`, the default), or in Durable Objects, one for each key. */
  readonly ledger?: 'kv' | 'object' | undefined;
  /** For how many days a ledger object keeps single records, 15 to 3650. Default: 35. */
  readonly recordDays?: number | undefined;
  /** A limited key's request while its ledger object can't be reached: `closed` (the default) refuses it, `open` lets it pass. */
  readonly budgetFail?: 'closed' | 'open' | undefined;
  /** Your own prices, at most 5 KB, which come before the shipped ones. */
  readonly prices?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Vendor events (`x_*`) in streams: `strip` (the default), `pass`, or globs that pass. */
  readonly vendorEvents?: string | readonly string[] | undefined;
  /** Whether clients get the reasoning: `pass` (the default) or `strip`. It is metered either way. */
  readonly reasoning?: 'pass' | 'strip' | undefined;
  /** Where usage comes in a stream whose client did not ask for it: on the last `finish` chunk (the default), nowhere, or `always` on a chunk of its own. */
  readonly usageChunk?: 'finish' | 'on_request' | 'always' | undefined;
  /** Fields that a provider does not take: `auto` (the default), `drop` all of them, or `refuse` the request. */
  readonly unsupported?: 'auto' | 'drop' | 'refuse' | undefined;
  /** Whether a conversation without cache marks gets one, where its provider caches nothing else. Default: `auto`. */
  readonly promptCache?: 'auto' | 'off' | undefined;
  /** `event` puts `event: error` before an error frame's data. Default: `data`. */
  readonly errorFrames?: 'data' | 'event' | undefined;
  /** A stream without output sends a heartbeat after so many seconds; 0: never. Default: 15. */
  readonly heartbeatSeconds?: number | undefined;
  /** A stream fails whose upstream is silent for so many seconds; 0: never. Default: 120. */
  readonly idleTimeoutSeconds?: number | undefined;
  /** A request fails that takes so many seconds; 0: never. Default: 600. */
  readonly deadlineSeconds?: number | undefined;
  /** The largest event of an upstream's stream. Default: 1 MiB. */
  readonly maxEventBytes?: number | undefined;
  /** The largest body of a request. Default: 10 MiB. */
  readonly maxRequestBytes?: number | undefined;
}

type OwnName = Exclude<keyof SettingOptions, keyof ProviderOptions>;

/** The same for callers that are not typed; true for each, so that none is forgotten. */
const NAMES: { readonly [Name in OwnName]-?: true } = {
  auth: true,
  adminToken: true,
  basePath: true,
  origin: true,
  originHosts: true,
  corsOrigins: true,
  providers: true,
  secrets: true,
  defaultProvider: true,
  aliases: true,
  retries: true,
  ledger: true,
  recordDays: true,
  budgetFail: true,
  prices: true,
  vendorEvents: true,
  reasoning: true,
  usageChunk: true,
  unsupported: true,
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
  ...PROVIDERS.flatMap(({ apiKeySettings, baseUrlSettings }) =>
    [...apiKeySettings, ...baseUrlSettings].map(optionName),
  ),
]);

/** The environment that settings are read from, where these options lie over it; an option that is undefined is left out. */
export function withOptions(env: JsonObject, options: JsonObject): JsonObject {
  const { secrets, ...settings } = options;
  const named = Object.entries(settings).map(([option, value]) => [settingName(option), settingValue(value)]);
  const over = [...Object.entries(objectOf(secrets)), ...named].filter(([, value]) => value !== undefined);
  return { ...env, ...Object.fromEntries(over) };
}

/**
 * The options that there are not, each with the one that it resembles.
 * @param names of all settings, as they were read; null where some were not read because others are invalid
 */
export function optionProblems(
  { secrets = {}, ...options }: JsonObject,
  names: ReadonlySet<string> | null,
): SettingProblem[] {
  const unknown = Object.keys(options).filter((option) => !KNOWN_OPTIONS.has(option));
  const problems = unknown.map((option) => {
    const nearest = didYouMean(option, KNOWN_OPTIONS);
    const place = /ApiKey$/.test(option) ? '; what providers names as api_key belongs in secrets' : '';
    return { setting: `the option ${option}`, message: `is none that Weir knows${nearest || place}` };
  });
  if (!isObject(secrets)) {
    return [...problems, { setting: 'the option secrets', message: 'must be an object of texts' }];
  }
  const unused = names === null ? [] : Object.keys(secrets).filter((name) => !names.has(name));
  return [
    ...problems,
    ...unused.map((name) => ({
      setting: `the option secrets.${name}`,
      message: `is named by no entry of providers${didYouMean(name, names ?? [])}`,
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

/** In the form in which the environment has it: texts, and objects as they are. */
function settingValue(value: unknown): unknown {
  if (typeof value === 'number') return String(value);
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
  return isTexts ? value.join(',') : value;
}

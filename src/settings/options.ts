/** Settings as the options of `weir()`: each under its name in the environment, in camel case, and over the environment's. */
import type { JsonObject } from '../canonical/json.ts';
import type { SettingProblem } from './reader.ts';

/** A step of an alias (R2). */
export interface AliasStep {
  readonly model: string;
  readonly weight?: number | undefined;
  readonly timeout_seconds?: number | undefined;
  /** Fields of the body that lie over the caller's; null takes one away. */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
  readonly on?: readonly ('context_length' | 'content_filter')[] | undefined;
}

/** A provider that is compatible with OpenAI. */
export interface ProviderEntry {
  readonly base_url: string;
  /** The name of a secret, in the environment or among the options (`GROQ_API_KEY` is `groqApiKey` there). */
  readonly api_key?: string | undefined;
  /** Whose table of fields it takes; absent: the one of its host. */
  readonly like?: string | undefined;
  readonly stream_usage?: boolean | undefined;
  /** It speaks Responses itself (N1). */
  readonly responses?: boolean | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
}

/** The README's table of settings says what each is, and its default. One that is left out is the environment's. */
export interface SettingOptions {
  readonly auth?: 'keys' | 'passthrough' | 'open' | undefined;
  readonly adminToken?: string | undefined;
  /** The path below which it is mounted, such as `/ai`. */
  readonly basePath?: string | undefined;
  readonly origin?: string | undefined;
  readonly originHosts?: string | readonly string[] | undefined;
  readonly corsOrigins?: string | readonly string[] | undefined;
  readonly providers?: Readonly<Record<string, ProviderEntry>> | undefined;
  readonly defaultProvider?: string | undefined;
  readonly aliases?:
    | Readonly<Record<string, string | AliasStep | readonly (string | AliasStep)[]>>
    | undefined;
  readonly retries?: number | undefined;
  readonly ledger?: 'kv' | 'object' | undefined;
  readonly budgetFail?: 'closed' | 'open' | undefined;
  readonly prices?: readonly Readonly<Record<string, unknown>>[] | undefined;
  readonly vendorEvents?: string | readonly string[] | undefined;
  readonly reasoning?: 'pass' | 'strip' | undefined;
  readonly usageChunk?: 'finish' | 'on_request' | 'always' | undefined;
  readonly unsupported?: 'auto' | 'drop' | 'refuse' | undefined;
  readonly promptCache?: 'auto' | 'off' | undefined;
  readonly errorFrames?: 'data' | 'event' | undefined;
  readonly heartbeatSeconds?: number | undefined;
  readonly idleTimeoutSeconds?: number | undefined;
  readonly deadlineSeconds?: number | undefined;
  readonly maxEventBytes?: number | undefined;
  readonly maxRequestBytes?: number | undefined;
  /** A provider's credential, such as `deepseekApiKey`, or a secret that `providers` names. */
  readonly [secret: `${string}ApiKey`]: string | undefined;
  /** A provider's base URL, such as `mistralBaseUrl`. */
  readonly [url: `${string}BaseUrl`]: string | undefined;
}

type OwnName = Exclude<keyof SettingOptions, `${string}ApiKey` | `${string}BaseUrl`>;

/** The same for callers that are not typed; true for each, so that none is forgotten. */
const NAMES: { readonly [Name in OwnName]-?: true } = {
  auth: true,
  adminToken: true,
  basePath: true,
  origin: true,
  originHosts: true,
  corsOrigins: true,
  providers: true,
  defaultProvider: true,
  aliases: true,
  retries: true,
  ledger: true,
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
const PROVIDERS_NAME = /(ApiKey|BaseUrl)$/;

/** The environment that settings are read from, where these options lie over it; an option that is undefined is left out. */
export function withOptions(env: JsonObject, options: JsonObject): JsonObject {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const over = given.map(([option, value]) => [settingName(option), settingValue(value)]);
  return { ...env, ...Object.fromEntries(over) };
}

/** The options that there are not: misspelt ones, and RECORD_DAYS, which the ledger objects read in their own environment. */
export function optionProblems(options: JsonObject): SettingProblem[] {
  const unknown = Object.keys(options).filter(
    (option) => !Object.hasOwn(NAMES, option) && !PROVIDERS_NAME.test(option),
  );
  return unknown.map((option) => ({
    setting: `the option ${option}`,
    message: option === 'recordDays' ? 'must be the variable RECORD_DAYS instead' : 'is none that Weir knows',
  }));
}

/** `basePath` is `BASE_PATH`. */
function settingName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** In the form in which the environment has it: texts, and objects as they are. */
function settingValue(value: unknown): unknown {
  if (typeof value === 'number') return String(value);
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
  return isTexts ? value.join(',') : value;
}

/** The one place that reads the Worker's variables and secrets: typed settings out, or the invalid ones by name. */
import type { AuthMode } from './auth/caller.ts';
import { isObject, type JsonObject, parseJson, readText } from './canonical/json.ts';
import { type Policies, parseVendorEvents } from './canonical/policies.ts';
import { PROVIDERS } from './providers/index.ts';
import { openaiCompatible } from './providers/openai.ts';
import type { Provider } from './providers/provider.ts';
import type { PacingLimits } from './stream/pacing.ts';

/** A provider that this deployment can reach. */
export interface ConfiguredProvider {
  readonly provider: Provider;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** `""` where there is none: a provider of one's own, or a deployment that sends the caller's. */
  readonly apiKey: string;
}

export interface Settings {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly defaultProvider: string | null;
  /** Alias to model address. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly auth: AuthMode;
  readonly adminToken: string | null;
  readonly policies: Policies;
  /** Heartbeats and timeouts (T1-T3). */
  readonly pacing: PacingLimits;
  readonly maxEventBytes: number;
  readonly maxRequestBytes: number;
  /** `""`, or a path that begins with a slash and has none at its end. */
  readonly basePath: string;
  readonly origin: '404' | 'pass';
  readonly corsOrigins: readonly string[];
}

/** An invalid setting, and what it should be. Never contains its value, which may be a secret. */
export interface SettingProblem {
  readonly setting: string;
  readonly message: string;
}

export type SettingsResult =
  | { readonly kind: 'valid'; readonly settings: Settings }
  | { readonly kind: 'invalid'; readonly problems: readonly SettingProblem[] };

const DEFAULT_MAX_EVENT_BYTES = 1024 * 1024;
const DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024;
/** A day: a timer takes no more than 24, and no answer takes that long. */
const MAX_SECONDS = 86_400;
const SECRET_NAME = /^[A-Z][A-Z0-9_]*$/;
const PROVIDER_ID = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/** Reads every setting, so that all invalid ones are reported at once. */
export function readSettings(env: JsonObject): SettingsResult {
  const reader = new Reader(env);
  const auth = reader.choice('AUTH', ['keys', 'passthrough', 'open']);
  const providers = readProviders(reader, auth);
  const settings: Settings = {
    auth,
    providers,
    defaultProvider: readDefaultProvider(reader, providers),
    aliases: readAliases(reader),
    adminToken: reader.text('ADMIN_TOKEN') ?? null,
    policies: readPolicies(reader),
    pacing: {
      heartbeatMs: reader.seconds('HEARTBEAT_SECONDS', 15),
      idleTimeoutMs: reader.seconds('IDLE_TIMEOUT_SECONDS', 120),
      deadlineMs: reader.seconds('DEADLINE_SECONDS', 600),
    },
    maxEventBytes: reader.bytes('MAX_EVENT_BYTES', DEFAULT_MAX_EVENT_BYTES),
    maxRequestBytes: reader.bytes('MAX_REQUEST_BYTES', DEFAULT_MAX_REQUEST_BYTES),
    basePath: readBasePath(reader),
    origin: reader.choice('ORIGIN', ['404', 'pass']),
    corsOrigins: readCorsOrigins(reader),
  };
  return reader.problems.length > 0
    ? { kind: 'invalid', problems: reader.problems }
    : { kind: 'valid', settings };
}

/** Reads one variable at a time and collects the problems. */
class Reader {
  readonly problems: SettingProblem[] = [];
  readonly #env: JsonObject;

  constructor(env: JsonObject) {
    this.#env = env;
  }

  /** A variable's text; undefined where it is not set or empty. */
  text(name: string): string | undefined {
    const value = this.#env[name];
    if (value === undefined || typeof value === 'string') return readText(value?.trim());
    this.invalid(name, 'must be text');
    return undefined;
  }

  /** One of a few words, the first of which is the default. */
  choice<Word extends string>(name: string, words: readonly [Word, ...Word[]]): Word {
    const text = this.text(name);
    if (text === undefined) return words[0];
    const word = words.find((known) => known === text);
    if (word === undefined) this.invalid(name, `must be one of: ${words.join(', ')}`);
    return word ?? words[0];
  }

  bytes(name: string, byDefault: number): number {
    const text = this.text(name);
    if (text === undefined) return byDefault;
    const bytes = Number(text);
    if (Number.isSafeInteger(bytes) && bytes > 0) return bytes;
    this.invalid(name, 'must be a whole number of bytes, greater than 0');
    return byDefault;
  }

  /** Seconds, with fractions, as ms; 0 turns the clock off. */
  seconds(name: string, byDefault: number): number {
    const seconds = Number(this.text(name) ?? byDefault);
    if (seconds >= 0 && seconds <= MAX_SECONDS) return seconds * 1000;
    this.invalid(name, `must be seconds from 0 (off) to ${MAX_SECONDS}`);
    return byDefault * 1000;
  }

  /** A JSON object: as text, or as wrangler hands on a table of its own file. */
  object(name: string): JsonObject {
    const value = this.#env[name];
    if (value === undefined || value === '') return {};
    const object = typeof value === 'string' ? parseJson(value) : value;
    if (isObject(object)) return object;
    this.invalid(name, 'must be a JSON object');
    return {};
  }

  url(name: string, value: string | undefined): string | undefined {
    if (value !== undefined && URL.canParse(value) && /^https?:\/\//.test(value))
      return value.replace(/\/+$/, '');
    this.invalid(name, 'must be an http(s) URL');
    return undefined;
  }

  invalid(setting: string, message: string): void {
    this.problems.push({ setting, message });
  }
}

/** A provider is enabled by its key; where callers bring their own keys, by its base URL. */
function readProviders(reader: Reader, auth: AuthMode): ReadonlyMap<string, ConfiguredProvider> {
  const configured = new Map<string, ConfiguredProvider>();
  for (const provider of PROVIDERS) {
    const apiKey = reader.text(provider.apiKeySetting);
    const configuredUrl = reader.text(provider.baseUrlSetting);
    if (
      apiKey === undefined &&
      (auth !== 'passthrough' || (configuredUrl ?? provider.defaultBaseUrl) === null)
    )
      continue;
    if (configuredUrl === undefined && provider.defaultBaseUrl === null) {
      reader.invalid(provider.baseUrlSetting, `must be set, because ${provider.apiKeySetting} is`);
      continue;
    }
    const baseUrl = reader.url(
      provider.baseUrlSetting,
      configuredUrl ?? provider.defaultBaseUrl ?? undefined,
    );
    if (baseUrl !== undefined) configured.set(provider.id, { provider, baseUrl, apiKey: apiKey ?? '' });
  }
  for (const [id, entry] of Object.entries(reader.object('PROVIDERS'))) {
    const provider = readCompatible(reader, id, entry);
    if (provider !== undefined) configured.set(id, provider);
  }
  return configured;
}

function readCompatible(reader: Reader, id: string, entry: unknown): ConfiguredProvider | undefined {
  if (!PROVIDER_ID.test(id) || PROVIDERS.some((known) => known.id === id)) {
    reader.invalid(
      'PROVIDERS',
      `${JSON.stringify(id)} can't be a provider's name: small letters, digits, - and _, and none that Weir knows`,
    );
    return undefined;
  }
  if (!isObject(entry)) {
    reader.invalid('PROVIDERS', `${id} must be {"base_url": "https://…/v1", "api_key": "NAME_OF_A_SECRET"}`);
    return undefined;
  }
  const baseUrl = reader.url('PROVIDERS', readText(entry.base_url));
  const secret = readText(entry.api_key);
  if (secret !== undefined && !SECRET_NAME.test(secret)) {
    // It may be the secret itself, put in the wrong place: the message must not contain it.
    reader.invalid('PROVIDERS', `${id}: api_key must be the name of a secret, as GROQ_API_KEY`);
    return undefined;
  }
  const apiKey = secret === undefined ? '' : reader.text(secret);
  if (apiKey === undefined) reader.invalid('PROVIDERS', `${id} names the secret ${secret}, which is not set`);
  if (baseUrl === undefined || apiKey === undefined) return undefined;
  return { provider: openaiCompatible(id, secret ?? 'PROVIDERS'), baseUrl, apiKey };
}

function readDefaultProvider(
  reader: Reader,
  providers: ReadonlyMap<string, ConfiguredProvider>,
): string | null {
  const id = reader.text('DEFAULT_PROVIDER');
  if (id === undefined) return null;
  if (!providers.has(id)) reader.invalid('DEFAULT_PROVIDER', 'must name a provider whose key is set');
  return id;
}

function readAliases(reader: Reader): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  for (const [alias, value] of Object.entries(reader.object('ALIASES'))) {
    const address = readText(value);
    if (address === undefined)
      reader.invalid('ALIASES', `${alias} must name a model, as "mistral/mistral-small-latest"`);
    else aliases.set(alias, address);
  }
  return aliases;
}

function readPolicies(reader: Reader): Policies {
  const vendorEvents = parseVendorEvents(reader.text('VENDOR_EVENTS') ?? 'strip');
  if (vendorEvents === null)
    reader.invalid('VENDOR_EVENTS', 'must be strip, pass, or globs such as x_research.*, x_ask_user.*');
  return {
    vendorEvents: vendorEvents ?? [],
    reasoning: reader.choice('REASONING', ['pass', 'strip']),
    usageChunk: reader.choice('USAGE_CHUNK', ['on_request', 'always']),
    errorFrames: reader.choice('ERROR_FRAMES', ['data', 'event']),
  };
}

function readBasePath(reader: Reader): string {
  const path = reader.text('BASE_PATH') ?? '/';
  if (!/^\/[\w./~-]*$/.test(path)) reader.invalid('BASE_PATH', 'must be a path that begins with /');
  return path.replace(/\/+$/, '');
}

function readCorsOrigins(reader: Reader): readonly string[] {
  const entries = (reader.text('CORS_ORIGINS') ?? '').split(',').map((origin) => origin.trim());
  const origins = entries.filter((origin) => origin !== '');
  const isOrigin = (text: string) => text === '*' || (URL.canParse(text) && new URL(text).origin === text);
  if (!origins.every(isOrigin))
    reader.invalid(
      'CORS_ORIGINS',
      'must be * or origins such as https://app.example.com, with commas between',
    );
  return origins;
}

/** Reads the Worker's variables and secrets into typed settings, or reports every invalid one by name. */
import type { AuthMode } from '../auth/caller.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import { type Price, parsePrices } from '../metering/pricing/price.ts';
import {
  PROMPT_CACHE,
  type PromptCache,
  UNSUPPORTED,
  type Unsupported,
} from '../request-translation/rules.ts';
import type { JsonObject } from '../shared/json.ts';
import { didYouMean, nearestName } from '../shared/nearest.ts';
import { trimEnd } from '../shared/trim.ts';
import type { TimerLimits } from '../stream/timers.ts';
import { type Alias, readAliases } from './aliases.ts';
import { type MountConfig, readMountConfig } from './mount-config.ts';
import { type ConfiguredProvider, readProviders } from './providers.ts';
import { type SettingProblem, SettingsReader } from './reader.ts';

/** The setting `PRICES`. A Worker's variable holds no more. */
const MAX_PRICES_SETTING_BYTES = 5 * 1024;

/** The highest value of `RETRIES`. */
const MAX_RETRIES = 5;

export type { ConfiguredProvider } from './providers.ts';
export type { SettingProblem } from './reader.ts';

export interface Settings extends MountConfig {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly defaultProvider: string | null;
  /** In the order of the setting. */
  readonly aliases: readonly Alias[];
  /** Further rounds over the targets that may recover. */
  readonly retries: number;
  readonly auth: AuthMode;
  /** Where usage records are stored: in KV, or in Durable Objects, one for each key. */
  readonly ledger: 'kv' | 'object';
  /** Whether records name users, have a hash of their names, or neither users nor sessions. */
  readonly users: 'plain' | 'hash' | 'off';
  /** The secret under which names of users are hashed; null: it is not set. */
  readonly userHashKey: string | null;
  /** Names of the entries of a request's `metadata` that become tags. */
  readonly tags: readonly string[];
  /** The team and the application of Cloudflare Access whose tokens name users; null: tokens are not read. */
  readonly access: AccessSettings | null;
  /** How many days a ledger object keeps individual records. */
  readonly recordDays: number;
  /** Whether a key with limits is refused (`closed`) or allowed (`open`) while its ledger object is unavailable. */
  readonly budgetFail: 'closed' | 'open';
  /** The deployment's own prices, which take precedence over the built-in prices. */
  readonly prices: readonly Price[];
  readonly policies: Policies;
  /** What happens to fields that a provider does not support. */
  readonly unsupported: Unsupported;
  /** Whether a provider that caches only marked prompts gets a mark when the client set none. */
  readonly promptCache: PromptCache;
  /** Whether Responses are kept, each in its Durable Object. */
  readonly responses: 'stateless' | 'durable';
  /** How many days a stored response is kept. */
  readonly responsesDays: number;
  /** The bound on the events of a kept response. */
  readonly responseBytes: number;
  /** Heartbeats and timeouts. */
  readonly timers: TimerLimits;
  readonly maxEventBytes: number;
  readonly maxRequestBytes: number;
  readonly corsOrigins: readonly string[];
}

interface AccessSettings {
  /** `https://<team>.cloudflareaccess.com`, without a path. */
  readonly issuer: string;
  readonly audience: string;
  /** E-mail addresses with `*` on either side of the `@`, and names of service tokens, which have no `@`. In lower case. */
  readonly admins: readonly string[];
}

export type SettingsResult = {
  /** The names of all settings, including the secrets that `PROVIDERS` refers to. */
  readonly names: ReadonlySet<string>;
} & (
  | { readonly kind: 'valid'; readonly settings: Settings }
  | { readonly kind: 'invalid'; readonly problems: readonly SettingProblem[] }
);

const DEFAULT_MAX_EVENT_BYTES = 1024 * 1024;
const DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024;

const DEFAULT_RESPONSE_BYTES = 32 * 1024 * 1024;

/** Reads every setting, also after an invalid one, so that all of them are reported at once. */
export function readSettings(env: JsonObject): SettingsResult {
  const reader = new SettingsReader(env);
  const auth = reader.choice('AUTH', ['keys', 'passthrough', 'open', 'access']);
  const providers = readProviders(reader, auth);
  const defaultProvider = readDefaultProvider(reader, providers);
  const settings: Settings = {
    ...readMountConfig(reader),
    auth,
    providers,
    defaultProvider,
    aliases: readAliases(reader, providers, defaultProvider),
    retries: readRetries(reader),
    ledger: reader.choice('LEDGER', ['kv', 'object']),
    ...readAttribution(reader, auth),
    access: readAccess(reader, auth),
    recordDays: readDays(reader),
    budgetFail: reader.choice('BUDGET_FAIL', ['closed', 'open']),
    prices: readPrices(reader),
    policies: readPolicies(reader),
    unsupported: reader.choice('UNSUPPORTED', UNSUPPORTED),
    promptCache: reader.choice('PROMPT_CACHE', PROMPT_CACHE),
    responses: reader.choice('RESPONSES', ['stateless', 'durable']),
    responsesDays: readResponseDays(reader),
    responseBytes: reader.bytes('RESPONSE_BYTES', DEFAULT_RESPONSE_BYTES),
    timers: {
      heartbeatMs: reader.seconds('HEARTBEAT_SECONDS', 15),
      idleTimeoutMs: reader.seconds('IDLE_TIMEOUT_SECONDS', 120),
      deadlineMs: reader.seconds('DEADLINE_SECONDS', 600),
    },
    maxEventBytes: reader.bytes('MAX_EVENT_BYTES', DEFAULT_MAX_EVENT_BYTES),
    maxRequestBytes: reader.bytes('MAX_REQUEST_BYTES', DEFAULT_MAX_REQUEST_BYTES),
    corsOrigins: readCorsOrigins(reader),
  };
  const { names, problems } = reader;
  return problems.length > 0 ? { kind: 'invalid', names, problems } : { kind: 'valid', names, settings };
}

/** A Queue redelivers for at most 14 days. A record must be stored for longer, so that a redelivery is recognized. */
const MIN_RECORD_DAYS = 15;
const MAX_RECORD_DAYS = 3650;
const DEFAULT_RECORD_DAYS = 35;

function readDays(reader: SettingsReader): number {
  const days = Number(reader.text('RECORD_DAYS') ?? DEFAULT_RECORD_DAYS);
  if (Number.isSafeInteger(days) && days >= MIN_RECORD_DAYS && days <= MAX_RECORD_DAYS) return days;
  reader.invalid(
    'RECORD_DAYS',
    `must be a whole number of days from ${MIN_RECORD_DAYS} to ${MAX_RECORD_DAYS}`,
  );
  return DEFAULT_RECORD_DAYS;
}

/** Reads `RECORD_DAYS` for ledger objects, which need no other setting. Invalid: the default, because the gateway reports the error. */
export function readRecordDays(env: JsonObject): number {
  return readDays(new SettingsReader(env));
}

/** A tag's name, in `TAGS`, in a key's `tags` and in `x-weir-tags`. */
export const TAG_NAME = /^[a-z0-9_.-]{1,32}$/;

/** Tags of one request. */
export const MAX_TAGS = 8;

const MIN_HASH_KEY_CHARS = 16;

function readAttribution(
  reader: SettingsReader,
  auth: AuthMode,
): Pick<Settings, 'users' | 'userHashKey' | 'tags'> {
  const users = reader.choice('USERS', ['plain', 'hash', 'off']);
  const userHashKey = reader.text('USER_HASH_KEY') ?? null;
  // With AUTH=access, the ids of callers are hashes of their names.
  const isKeyNeeded = users === 'hash' || (users === 'off' && auth === 'access');
  if (isKeyNeeded && (userHashKey ?? '').length < MIN_HASH_KEY_CHARS) {
    const by = users === 'hash' ? 'USERS=hash' : 'AUTH=access with USERS=off';
    reader.invalid(
      'USER_HASH_KEY',
      `must be a secret of at least ${MIN_HASH_KEY_CHARS} characters for ${by}`,
    );
  }
  const entries = (reader.text('TAGS') ?? '').split(',').map((name) => name.trim());
  const tags = entries.filter((name) => name !== '');
  if (tags.length > MAX_TAGS || !tags.every((name) => TAG_NAME.test(name)))
    reader.invalid(
      'TAGS',
      `must be at most ${MAX_TAGS} names of a-z, 0-9, _ . -, separated by commas: team, env`,
    );
  return { users, userHashKey, tags };
}

/** Tests use a local team. */
const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?$/;
const TEAM_HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/;

/**
 * An e-mail address or a text without `@`. Before the `@`, `*` may be anywhere; after it, only in place of the domain or of subdomains:
 * `*.example.com`. A text without `@` has no `*`.
 */
const ADMIN_PATTERN = /^(?:[^\s@]+@(?:\*|(?:\*\.)?[^\s@*]+)|[^\s@*]+)$/;

function readAccess(reader: SettingsReader, auth: AuthMode): AccessSettings | null {
  const domain = reader.text('ACCESS_TEAM_DOMAIN');
  const audience = reader.text('ACCESS_AUD');
  const admins = readAccessAdmins(reader);
  if (domain === undefined && audience === undefined) {
    const message = 'needs ACCESS_TEAM_DOMAIN and ACCESS_AUD';
    if (admins.length > 0) reader.invalid('ACCESS_ADMINS', message);
    if (auth === 'access') reader.invalid('AUTH', `access ${message}`);
    return null;
  }
  const host = trimEnd((domain ?? '').toLowerCase().replace(/^https:\/\//, ''), '/');
  const isLoopback = LOOPBACK.test(host);
  if (!isLoopback && !TEAM_HOST.test(host))
    reader.invalid('ACCESS_TEAM_DOMAIN', 'must be the domain of the team, as team.cloudflareaccess.com');
  if (audience === undefined)
    reader.invalid(
      'ACCESS_AUD',
      'must be the audience tag of the application that ACCESS_TEAM_DOMAIN protects',
    );
  return { issuer: isLoopback ? host : `https://${host}`, audience: audience ?? '', admins };
}

function readAccessAdmins(reader: SettingsReader): readonly string[] {
  const entries = (reader.text('ACCESS_ADMINS') ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  const admins = entries.filter((entry) => entry !== '');
  const wrongAt = admins.findIndex((entry) => !ADMIN_PATTERN.test(entry));
  if (wrongAt >= 0)
    reader.invalid(
      'ACCESS_ADMINS',
      `must be e-mail addresses and names of service tokens, as ada@example.com, *@ops.example.com, separated by commas; entry ${wrongAt + 1} is neither`,
    );
  return admins;
}

const DEFAULT_RESPONSE_DAYS = 30;
const MAX_RESPONSE_DAYS = 365;

function readResponseDays(reader: SettingsReader): number {
  const days = Number(reader.text('RESPONSES_DAYS') ?? DEFAULT_RESPONSE_DAYS);
  if (Number.isSafeInteger(days) && days >= 1 && days <= MAX_RESPONSE_DAYS) return days;
  reader.invalid('RESPONSES_DAYS', `must be a whole number of days from 1 to ${MAX_RESPONSE_DAYS}`);
  return DEFAULT_RESPONSE_DAYS;
}

function readDefaultProvider(
  reader: SettingsReader,
  providers: ReadonlyMap<string, ConfiguredProvider>,
): string | null {
  const id = reader.text('DEFAULT_PROVIDER');
  if (id === undefined) return null;
  if (!providers.has(id))
    reader.invalid(
      'DEFAULT_PROVIDER',
      `must name a provider whose key is set${didYouMean(id, providers.keys())}`,
    );
  return id;
}

const DEFAULT_RETRIES = 1;

function readRetries(reader: SettingsReader): number {
  const retries = Number(reader.text('RETRIES') ?? DEFAULT_RETRIES);
  if (Number.isInteger(retries) && retries >= 0 && retries <= MAX_RETRIES) return retries;
  reader.invalid('RETRIES', `must be a whole number from 0 to ${MAX_RETRIES}`);
  return DEFAULT_RETRIES;
}

function readPrices(reader: SettingsReader): readonly Price[] {
  const list = reader.list('PRICES');
  if (new TextEncoder().encode(JSON.stringify(list)).length > MAX_PRICES_SETTING_BYTES)
    reader.invalid('PRICES', 'holds at most 5 KB: store longer lists under the key config/prices in WEIR_KV');
  const parsed = parsePrices(list);
  if (parsed.kind === 'ok') return parsed.value;
  reader.invalid('PRICES', parsed.error);
  return [];
}

function readPolicies(reader: SettingsReader): Policies {
  const vendorEvents = parseVendorEvents(reader.text('VENDOR_EVENTS') ?? 'strip');
  if (vendorEvents === null)
    reader.invalid('VENDOR_EVENTS', 'must be strip, pass, or globs such as x_research.*, x_ask_user.*');
  return {
    vendorEvents: vendorEvents ?? [],
    reasoning: reader.choice('REASONING', ['pass', 'strip']),
    usageChunk: reader.choice('USAGE_CHUNK', ['finish', 'on_request', 'always']),
    errorFrames: reader.choice('ERROR_FRAMES', ['data', 'event']),
  };
}

function readCorsOrigins(reader: SettingsReader): readonly string[] {
  const entries = (reader.text('CORS_ORIGINS') ?? '').split(',').map((origin) => origin.trim());
  const origins = entries.filter((origin) => origin !== '');
  const isOrigin = (text: string) => text === '*' || (URL.canParse(text) && new URL(text).origin === text);
  if (!origins.every(isOrigin))
    reader.invalid('CORS_ORIGINS', 'must be * or origins, separated by commas: https://app.example.com');
  return origins;
}

/** Variables of the platform whose names resemble a setting's. */
const PLATFORM_NAMES: ReadonlySet<string> = new Set(['USER']);

/**
 * Unknown variables with a name similar to a setting that is not set: probably misspelt.
 * @param settings the environment with the options in it
 * @param names the names of all settings
 */
export function misspeltSettings(
  env: JsonObject,
  settings: JsonObject,
  names: ReadonlySet<string>,
): readonly SettingProblem[] {
  const absent = [...names].filter((name) => settings[name] === undefined);
  return Object.entries(env).flatMap(([setting, value]) => {
    if (typeof value !== 'string' || names.has(setting) || PLATFORM_NAMES.has(setting)) return [];
    const nearest = nearestName(setting, absent);
    return nearest === undefined ? [] : { setting, message: `is no setting: did you mean ${nearest}?` };
  });
}

/** Settings without which a valid deployment serves no request. */
export function missingSettings({
  providers,
  auth,
  adminToken,
  access,
}: Settings): readonly SettingProblem[] {
  const missing: SettingProblem[] = [];
  if (providers.size === 0) {
    const message = 'is not set, and no key of another provider is: no model is available';
    missing.push({ setting: 'DEEPSEEK_API_KEY', message });
  }
  if (auth === 'keys' && adminToken === null && (access?.admins ?? []).length === 0) {
    const message = 'is not set: no gateway key can be made, and AUTH=keys accepts only gateway keys';
    missing.push({ setting: 'ADMIN_TOKEN', message });
  }
  return missing;
}

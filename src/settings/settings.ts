/** Reads the Worker's variables and secrets into typed settings, or reports every invalid one by name. */
import type { AuthMode } from '../auth/caller.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import type { Secret } from '../canonical/secret.ts';
import { type Price, parsePrices } from '../metering/pricing/price.ts';
import { PROVIDERS } from '../providers/index.ts';
import type { JsonObject } from '../shared/json.ts';
import { didYouMean, nearestName } from '../shared/nearest.ts';
import { trimEnd } from '../shared/trim.ts';
import type { TimerLimits } from '../stream/timers.ts';
import { type Alias, readAliases } from './aliases.ts';
import type { ConfiguredProvider } from './configured-provider.ts';
import { type ObjectPlace, readPlace } from './placement.ts';
import { readProviders } from './providers.ts';
import { isSecretBinding, type SettingProblem, type SettingsReader } from './reader.ts';
import type { PlainSettings } from './table.ts';

/** The setting `PRICES`. A Worker's variable holds no more. */
const MAX_PRICES_SETTING_BYTES = 5 * 1024;

export type { ConfiguredProvider } from './configured-provider.ts';
export type { SettingProblem } from './reader.ts';

/** The settings of the core. Those of the table that need no code of their own are there under the names of options. */
export interface Settings extends PlainSettings<null> {
  /** `""`, or a path with a leading and no trailing slash. */
  readonly basePath: string;
  /** The secret that opens the admin routes. */
  readonly adminToken: Secret;
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly defaultProvider: string | null;
  /** Whether a model name without `<provider>/` goes to the model's maker. */
  readonly bareModels: boolean;
  /** In the order of the setting. */
  readonly aliases: readonly Alias[];
  /** The deployment's own prices, which take precedence over the built-in prices. */
  readonly prices: readonly Price[];
  readonly policies: Policies;
  /** Heartbeats and timeouts. */
  readonly timers: TimerLimits;
  /** The idle timeout is the operator's. Otherwise that of a provider with longer silences is longer. */
  readonly isIdleTimeoutSet: boolean;
  readonly corsOrigins: readonly string[];
  /** Where Durable Objects are. */
  readonly place: ObjectPlace;
}

/** Reads every setting of the core, also after an invalid one, so that all of them are reported at once. Problems are the reader's. */
export function readSettings(reader: SettingsReader): Settings {
  const plain = reader.plainOf(null);
  const { auth } = plain;
  const providers = readProviders(reader, auth);
  const defaultProvider = readDefaultProvider(reader, providers);
  const bareModels = readBareModels(reader, auth);
  return {
    ...plain,
    basePath: readBasePath(reader),
    adminToken: reader.secret('ADMIN_TOKEN'),
    providers,
    defaultProvider,
    bareModels,
    aliases: readAliases(reader, { providers, defaultProvider, bareModels }),
    prices: readPrices(reader),
    policies: readPolicies(reader, plain),
    timers: {
      heartbeatMs: reader.seconds('heartbeatSeconds'),
      idleTimeoutMs: reader.seconds('idleTimeoutSeconds'),
      deadlineMs: reader.seconds('deadlineSeconds'),
    },
    isIdleTimeoutSet: reader.text('IDLE_TIMEOUT_SECONDS') !== undefined,
    corsOrigins: readCorsOrigins(reader),
    place: readPlace(reader),
  };
}

function readBasePath(reader: SettingsReader): string {
  const path = reader.text('BASE_PATH') ?? '/';
  if (!/^\/[\w./~-]*$/.test(path)) reader.invalid('BASE_PATH', 'must be a path that begins with /');
  return trimEnd(path, '/');
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

/** Under `AUTH=passthrough` the key is the caller's, and a bare name could send it to another company than the caller's. */
function readBareModels(reader: SettingsReader, auth: AuthMode): boolean {
  const isPassthrough = auth === 'passthrough';
  const choice = reader.choice('BARE_MODELS', isPassthrough ? ['off', 'on'] : ['on', 'off']);
  if (isPassthrough && choice === 'on')
    reader.invalid(
      'BARE_MODELS',
      'must be off with AUTH=passthrough, because a bare name could send a caller’s key to another company: callers write <provider>/<model>, or set DEFAULT_PROVIDER',
    );
  return choice === 'on' && !isPassthrough;
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

function readPolicies(
  reader: SettingsReader,
  { reasoning, usageChunk, errorFrames }: Omit<Policies, 'vendorEvents'>,
): Policies {
  const vendorEvents = parseVendorEvents(reader.text('VENDOR_EVENTS') ?? 'strip');
  if (vendorEvents === null)
    reader.invalid('VENDOR_EVENTS', 'must be strip, pass, or globs such as x_research.*, x_ask_user.*');
  return {
    vendorEvents: vendorEvents ?? [],
    ...{ reasoning, usageChunk, errorFrames },
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

/** Variables of the platform whose names resemble a setting's. Those of Cloudflare are wrangler's. */
const PLATFORM_NAMES: ReadonlySet<string> = new Set([
  'USER',
  'CLOUDFLARE_API_TOKEN',
  'CLOUDFLARE_API_BASE_URL',
]);

/**
 * Unknown variables that are probably misspelt: their name is similar to a setting that is not set, or they look like the secret of a
 * provider.
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
    const isSet = value !== '' && (typeof value === 'string' || isSecretBinding(value));
    if (!isSet || names.has(setting) || PLATFORM_NAMES.has(setting)) return [];
    const known = secretOfSameProvider(setting) ?? similarSetting(setting, value, absent);
    if (known === undefined) return [];
    return { setting, message: unknownMessage(setting, known, settings) };
  });
}

/** @param known the setting that a variable resembles */
function unknownMessage(setting: string, known: string, settings: JsonObject): string {
  if (known === setting) return 'is used by no provider: an entry of PROVIDERS has the name of its provider';
  return settings[known] === undefined || settings[known] === ''
    ? `is no setting: did you mean ${known}?`
    : `is no setting, and no provider uses it: ${known} is set`;
}

/** The names of a provider's settings, but for these endings, are too similar to be compared if they are shorter than this. */
const MIN_STEM_CHARS = 4;
const PROVIDER_ENDING = /_(?:API_KEY|BASE_URL)$/;

function similarSetting(name: string, value: unknown, absent: readonly string[]): string | undefined {
  if (typeof value !== 'string') return undefined;
  const isLong = (known: string) => known.replace(PROVIDER_ENDING, '').length >= MIN_STEM_CHARS;
  return nearestName(name, absent.filter(isLong));
}

const SECRET_ENDING = /_?(?:API_?)?(?:KEY|TOKEN|SECRET)$/;

/** The setting with the key of the provider whose secret has this name elsewhere, such as `TOGETHERAI_API_KEY`. */
function secretOfSameProvider(name: string): string | undefined {
  const stem = name.replace(SECRET_ENDING, '');
  if (stem === name || stem === '') return undefined;
  const words = [stem, stem.replace(/_?AI$/, '')].map(plainName);
  const provider = PROVIDERS.find(({ id, name: shown, otherNames = [] }) =>
    [id, shown, ...otherNames].some((known) => words.includes(plainName(known))),
  );
  return provider?.apiKeySettings[0];
}

/** Only letters and digits, in one case. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** A shorter admin token could be guessed. */
const MIN_ADMIN_TOKEN_CHARS = 16;

/** Secrets that protect less than they should. */
export function weakSettings({ adminToken }: Settings): readonly SettingProblem[] {
  if (typeof adminToken !== 'string' || adminToken.length >= MIN_ADMIN_TOKEN_CHARS) return [];
  const message = `has fewer than ${MIN_ADMIN_TOKEN_CHARS} characters and could be guessed: take a long random text, such as the output of openssl rand -hex 32`;
  return [{ setting: 'ADMIN_TOKEN', message }];
}

/**
 * Settings without which a valid deployment serves no request.
 * @param hasAdmins a feature names admins, who need no admin token
 */
export function missingSettings(
  { providers, auth, adminToken }: Settings,
  hasAdmins: boolean,
): readonly SettingProblem[] {
  const missing: SettingProblem[] = [];
  if (providers.size === 0) {
    const message = 'is not set, and no key of another provider is: no model is available';
    missing.push({ setting: 'DEEPSEEK_API_KEY', message });
  }
  if (auth === 'keys' && adminToken === null && !hasAdmins) {
    const message = 'is not set: no gateway key can be made, and AUTH=keys accepts only gateway keys';
    missing.push({ setting: 'ADMIN_TOKEN', message });
  }
  return missing;
}

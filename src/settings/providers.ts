/** Reads the providers of a deployment: built-in providers whose key is set, and the entries of `PROVIDERS`. */
import type { AuthMode } from '../auth/caller.ts';
import { isUnreadable, type Secret, type UnreadableSecret } from '../canonical/secret.ts';
import { isAiBinding } from '../providers/ai-binding.ts';
import {
  type ChatChanges,
  configuredProvider,
  RESPONSES_API,
  RESPONSES_PASSTHROUGH,
  tolerant,
  withChatChanges,
  withoutStreamUsage,
} from '../providers/compatible.ts';
import { isReserved, PROFILES, PROVIDERS, profileOfHost, profileOfUrl } from '../providers/index.ts';
import type { Profile, Provider } from '../providers/provider.ts';
import { type FieldRule, REASONING_FORMS, renamed } from '../request-translation/rules.ts';
import { isObject, type JsonObject, objectOf, ownValue, readText } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { type ReadAuth, readAuth, readEntryAuth, secretsOfAuth } from './auth.ts';
import { MODEL_NAMES, readBoundCloud, readCloud, readModelNames } from './clouds.ts';
import type { ConfiguredProvider } from './configured-provider.ts';
import type { ProviderEntry } from './entries.ts';
import { isHttpUrl, type SettingsReader, shownName } from './reader.ts';

const SECRET_NAME = /^[A-Z][A-Z0-9_]*$/;
/** A name of words and short numbers, such as `GROQ_API_KEY` and `ACME2_TOKEN`. A secret does not have this form. */
const WORDS_NAME = /^[A-Z]{1,16}\d{0,2}(?:_(?:[A-Z]{1,16}\d{0,2}|\d{1,3})){1,8}$/;
/** Secrets of Weir itself. No provider gets one. */
const OWN_SECRETS: ReadonlySet<string> = new Set([
  'ADMIN_TOKEN',
  'USER_HASH_KEY',
  'ALERT_SECRET',
  'ALERT_URL',
]);
const PROVIDER_ID = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/** The fields of an entry that change how its chat requests are translated. */
const RULE_FIELDS = ['rename', 'drop', 'roles', 'effort', 'reasoning'] as const;
/** All fields of an entry: the public type has each, and no other. */
const ENTRY_FIELDS: readonly string[] = Object.keys({
  base_url: true,
  api_key: true,
  like: true,
  stream_usage: true,
  responses: true,
  api: true,
  guardrailConfig: true,
  headers: true,
  query: true,
  binding: true,
  stops_on_close: true,
  models: true,
  auth: true,
  rename: true,
  drop: true,
  roles: true,
  effort: true,
  reasoning: true,
} satisfies Record<keyof ProviderEntry, true>);
/** What other software calls a field of an entry, in lower case and without signs. */
const FIELDS_ELSEWHERE: Readonly<Record<string, string>> = {
  ...{ url: 'base_url', baseurl: 'base_url', apibase: 'base_url', apiurl: 'base_url', endpoint: 'base_url' },
  ...{ host: 'base_url', address: 'base_url', key: 'api_key', apikey: 'api_key', apikeyenv: 'api_key' },
  ...{ token: 'api_key', secret: 'api_key', extraheaders: 'headers', extraquery: 'query', params: 'query' },
  ...{ service: 'binding', type: 'like', kind: 'like', provider: 'like' },
};

/**
 * A built-in provider is enabled by its key. Under `AUTH=passthrough` callers send the key, so a base URL is enough. An entry of
 * `PROVIDERS` with its name replaces it, unless the name is reserved.
 */
export function readProviders(
  reader: SettingsReader,
  auth: AuthMode,
): ReadonlyMap<string, ConfiguredProvider> {
  const entries = Object.entries(reader.object('PROVIDERS'));
  const entrySecrets = new Set(entries.flatMap(([, entry]) => secretsOf(entry)));
  const configured = new Map<string, ConfiguredProvider>();
  for (const provider of PROVIDERS) {
    if (!isReserved(provider.id) && entries.some(([id]) => id === provider.id)) continue;
    const builtIn = readBuiltIn(reader, provider, auth, entrySecrets);
    if (builtIn !== undefined) configured.set(provider.id, builtIn);
  }
  reportOverridden(reader, configured, entrySecrets);
  for (const [id, entry] of entries) {
    const provider = readEntry(new EntryReader(reader, id), id, entry);
    if (provider !== undefined) configured.set(id, provider);
  }
  return configured;
}

function readBuiltIn(
  reader: SettingsReader,
  provider: Provider,
  auth: AuthMode,
  entrySecrets: ReadonlySet<string>,
): ConfiguredProvider | undefined {
  const apiKey = firstSet(provider.apiKeySettings, (setting) => reader.secret(setting));
  const made = readMade(reader, provider, apiKey?.setting ?? null);
  const keySetting = apiKey?.setting ?? made?.setting ?? provider.apiKeySettings[0];
  const shared = {
    apiKey: typeof apiKey?.value === 'string' ? apiKey.value : '',
    auth: null,
    keySetting,
    query: {},
    unreadableKey: isUnreadable(apiKey?.value) ? apiKey.value : (made?.unreadable ?? null),
    unreadableField: null,
    fetch: null,
    priceIds: [provider.id],
    isKnownHost: true,
    yields: !isReserved(provider.id) || keySetting !== provider.apiKeySettings[0],
  };
  if (provider.cloud !== undefined) {
    const { binding } = provider.cloud;
    // Under `passthrough` callers pay with a key of theirs, and a binding takes none.
    const ai = binding === undefined || auth === 'passthrough' ? undefined : reader.binding(binding.name);
    if (binding !== undefined && isAiBinding(ai))
      return readBoundCloud(reader, provider, { binding, bound: provider.cloud, ai }, shared);
    // Callers send the key, or an entry has it and may have all that it needs.
    const hasCredential = apiKey !== undefined || made !== null;
    const isOptional = !hasCredential || entrySecrets.has(keySetting);
    const isOn = hasCredential || (auth === 'passthrough' && isAddressed(reader, provider));
    return readCloud(reader, provider, provider.cloud, { shared, made, isOn, isOptional });
  }
  const url = firstSet(provider.baseUrlSettings, (setting) => reader.text(setting));
  const hasUrl = url !== undefined || provider.defaultBaseUrl !== null;
  if (apiKey === undefined && (auth !== 'passthrough' || !hasUrl)) return undefined;
  const setting = url?.setting ?? provider.baseUrlSettings[0];
  if (!hasUrl) {
    reader.invalid(setting, `must be set, because ${apiKey?.setting} is`);
    return undefined;
  }
  const baseUrl = reader.url(setting, url?.value ?? provider.defaultBaseUrl ?? undefined);
  if (baseUrl === undefined) return undefined;
  return {
    ...shared,
    provider,
    baseUrl,
    urlSetting: url?.setting ?? null,
    headers: {},
    doors: [],
    models: {},
    otherBaseUrl: null,
  };
}

/** @param key the setting of its key, which takes precedence; null: none is set */
function readMade(reader: SettingsReader, provider: Provider, key: string | null): ReadAuth | null {
  const { auth } = provider;
  if (auth === undefined) return null;
  const hasRole = auth.kind === 'aws' && reader.text(auth.role) !== undefined;
  return readAuth(reader, auth, { key, isWanted: isAddressed(reader, provider) || hasRole });
}

/** Whether a setting of its addresses is set. */
function isAddressed(reader: SettingsReader, { baseUrlSettings, cloud }: Provider): boolean {
  const parameters = cloud?.parameters.map(({ setting }) => setting) ?? [];
  return [...baseUrlSettings, ...parameters].some((setting) => reader.text(setting) !== undefined);
}

/** The names of the secrets that an entry of `PROVIDERS` uses, whether it is valid or not. */
function secretsOf(entry: unknown): readonly string[] {
  const { api_key, auth, headers, query } = objectOf(entry);
  const values = [...Object.values(objectOf(headers)), ...Object.values(objectOf(query))];
  const named = values.flatMap((value) =>
    typeof value === 'string' && value.startsWith('$') ? value.slice(1) : [],
  );
  return [readText(api_key) ?? [], ...secretsOfAuth(auth), ...named].flat();
}

/** Reports the keys that no provider uses, because another setting of their provider is set, too. */
function reportOverridden(
  reader: SettingsReader,
  configured: ReadonlyMap<string, ConfiguredProvider>,
  entrySecrets: ReadonlySet<string>,
): void {
  const used = new Set([...entrySecrets, ...[...configured.values()].map(({ keySetting }) => keySetting)]);
  for (const { provider, keySetting } of configured.values()) {
    const others = provider.apiKeySettings.filter((name) => !used.has(name) && reader.secret(name) !== null);
    for (const setting of others)
      reader.overridden.push({ setting, message: `is not used, because ${keySetting} is set` });
  }
}

/** The first setting that is set, readable or not. All are read, so that the reader knows all of their names. */
function firstSet<Value extends string | UnreadableSecret>(
  settings: readonly string[],
  read: (setting: string) => Value | null | undefined,
): { readonly setting: string; readonly value: Value } | undefined {
  const values = settings.map((setting) => ({ setting, value: read(setting) ?? null }));
  for (const { setting, value } of values) if (value !== null) return { setting, value };
  return undefined;
}

/** Reads the fields of one entry of `PROVIDERS`. Messages name the entry and never contain a value, which may be a secret. */
class EntryReader {
  readonly #reader: SettingsReader;
  readonly #id: string;

  constructor(reader: SettingsReader, id: string) {
    this.#reader = reader;
    this.#id = id;
  }

  invalid(message: string): undefined {
    const entry = PROVIDER_ID.test(this.#id) ? this.#id : 'an entry';
    this.#reader.invalid('PROVIDERS', `${entry}: ${message}`);
    return undefined;
  }

  url(value: unknown): string | undefined {
    const text = readText(value);
    if (isHttpUrl(text)) return this.#reader.url('PROVIDERS', text);
    return this.invalid('base_url must be an http(s) URL');
  }

  /** The value of a secret; `""` if the entry names none. */
  secret(field: string, name: string | undefined): NonNullable<Secret> | undefined {
    if (name === undefined) return '';
    if (isOwnSecret(name))
      return this.invalid(`${field} names ${name}, a secret of Weir's own: no provider may get it`);
    const secret = this.#reader.secret(name);
    if (secret !== null) return secret;
    // An operator may have put the secret itself in place of its name. Only a name of words is safe to print.
    const printed = WORDS_NAME.test(name) ? `: ${name}` : '';
    return this.invalid(`${field} names a secret that is not set${printed}`);
  }

  /** Calls through the service binding with this name; null if the entry names none. */
  binding(name: unknown): ConfiguredProvider['fetch'] | undefined {
    if (name === undefined) return null;
    const text = readText(name);
    if (text === undefined || !SECRET_NAME.test(text))
      return this.invalid('binding must be the name of a service binding, such as VPC_LLM');
    const binding = this.#reader.binding(text);
    if (isFetcher(binding)) return (input, init) => binding.fetch(input, init);
    return this.invalid(`binding names no service binding of this Worker: ${text}`);
  }

  /** An object of strings. The value `$NAME` stands for the secret NAME. One that cannot be read is left out. */
  texts(field: string, value: unknown): EntryTexts | undefined {
    if (value === undefined) return { texts: {}, unreadable: null };
    if (!isObject(value)) return this.invalid(`${field} must be an object of strings`);
    const texts: Record<string, string> = {};
    let unreadable: UnreadableSecret | null = null;
    for (const [name, given] of Object.entries(value)) {
      const secretName = typeof given === 'string' && given.startsWith('$') ? given.slice(1) : undefined;
      if (typeof given !== 'string' || (secretName !== undefined && !SECRET_NAME.test(secretName))) {
        return this.invalid(`${field} must be an object of strings, where "$NAME" stands for a secret`);
      }
      const text = secretName === undefined ? given : this.secret(field, secretName);
      if (text === undefined) return undefined;
      if (isUnreadable(text)) unreadable ??= text;
      else texts[name] = text;
    }
    return { texts, unreadable };
  }
}

interface EntryTexts {
  readonly texts: Readonly<Record<string, string>>;
  /** A secret of them that could not be read; null: all were. */
  readonly unreadable: UnreadableSecret | null;
}

/** Whether the secret with this name is Weir's own, so that no provider may get it. */
export function isOwnSecret(name: string): boolean {
  return OWN_SECRETS.has(name);
}

function isFetcher(binding: object | undefined): binding is Pick<Fetcher, 'fetch'> {
  return binding !== undefined && 'fetch' in binding && typeof binding.fetch === 'function';
}

function readEntry(reader: EntryReader, id: string, entry: unknown): ConfiguredProvider | undefined {
  if (!PROVIDER_ID.test(id) || isReserved(id)) {
    return reader.invalid(
      "can't be a provider's name: use lowercase letters, digits, - and _, and no reserved name of a built-in provider",
    );
  }
  if (!isObject(entry))
    return reader.invalid('must be {"base_url": "https://…/v1", "api_key": "NAME_OF_A_SECRET"}');
  const unknown = Object.keys(entry).find((field) => !ENTRY_FIELDS.includes(field));
  if (unknown !== undefined) {
    const other = FIELDS_ELSEWHERE[unknown.toLowerCase().replace(/[^a-z]/g, '')];
    const hint = other === undefined ? didYouMean(unknown, ENTRY_FIELDS) : `: did you mean ${other}?`;
    return reader.invalid(`accepts only ${ENTRY_FIELDS.join(', ')}, not ${shownName(unknown)}${hint}`);
  }
  const baseUrl = reader.url(entry.base_url);
  const secretName = readText(entry.api_key);
  if (secretName !== undefined && !SECRET_NAME.test(secretName)) {
    return reader.invalid('api_key must be the name of a secret, such as GROQ_API_KEY');
  }
  if (secretName !== undefined && entry.auth !== undefined)
    return reader.invalid('api_key and auth are two credentials: leave one out');
  const apiKey = reader.secret('api_key', secretName);
  const made = baseUrl === undefined ? null : readEntryAuth(reader, id, entry.auth, baseUrl);
  const profile = readProfile(reader, entry, baseUrl);
  const headers = reader.texts('headers', entry.headers);
  const query = reader.texts('query', entry.query);
  const fetch = reader.binding(entry.binding);
  const closing = readClosing(entry.stops_on_close);
  if (closing === undefined) {
    return reader.invalid(
      `stops_on_close must be the most output tokens a second of one request, up to ${MAX_TOKENS_PER_SECOND}, or false`,
    );
  }
  const models = entry.models === undefined ? {} : readModelNames(entry.models);
  if (models === null) return reader.invalid(`models must be ${MODEL_NAMES}`);
  if (headers !== undefined && !Object.entries(headers.texts).every(isHeader)) {
    return reader.invalid('headers must have names and values that HTTP allows');
  }
  if (baseUrl === undefined || apiKey === undefined || profile === undefined) return undefined;
  if (headers === undefined || query === undefined || fetch === undefined || made === undefined)
    return undefined;
  return {
    provider: configuredProvider(
      id,
      closing === null ? profile : { ...withoutClosing(profile), ...closing },
      secretName ?? made?.setting ?? 'PROVIDERS',
    ),
    baseUrl,
    apiKey: isUnreadable(apiKey) ? '' : apiKey,
    auth: made?.auth ?? null,
    keySetting: secretName ?? made?.setting ?? `api_key of ${id} in PROVIDERS`,
    urlSetting: `base_url of ${id} in PROVIDERS`,
    headers: headers.texts,
    query: query.texts,
    unreadableKey: isUnreadable(apiKey) ? apiKey : (made?.unreadable ?? null),
    unreadableField: headers.unreadable ?? query.unreadable,
    fetch,
    priceIds: [id, ...hostIds(baseUrl)],
    doors: [],
    models,
    otherBaseUrl: null,
    isKnownHost: hostIds(baseUrl).length > 0,
    yields: false,
  };
}

/** More than any server writes. */
const MAX_TOKENS_PER_SECOND = 100_000;

type Closing = Pick<Profile, 'stopsOnClose' | 'goesOnAfterClose'>;

/** What a server does when a connection closes. Null: the entry does not say it; undefined: the value is invalid. */
function readClosing(value: unknown): Closing | null | undefined {
  if (value === undefined) return null;
  if (value === false) return { goesOnAfterClose: { source: 'stops_on_close in PROVIDERS' } };
  const isSpeed = typeof value === 'number' && value > 0 && value <= MAX_TOKENS_PER_SECOND;
  return isSpeed ? { stopsOnClose: value } : undefined;
}

function withoutClosing({ stopsOnClose: _, goesOnAfterClose: __, ...profile }: Profile): Profile {
  return profile;
}

/** The provider with this host, whose prices apply. An entry that is only `like` a provider has its own prices. */
function hostIds(baseUrl: string): string[] {
  const { id, hosts } = profileOfHost(new URL(baseUrl).hostname);
  return hosts.length === 0 ? [] : [id];
}

function isHeader([name, value]: [string, string]): boolean {
  return HEADER_NAME.test(name) && HEADER_VALUE.test(value);
}

/** The profile of an entry: the one it names in `like`, or the one of its host, with the entry's changes. */
function readProfile(
  reader: EntryReader,
  entry: JsonObject,
  baseUrl: string | undefined,
): Profile | undefined {
  if (entry.stream_usage !== undefined && typeof entry.stream_usage !== 'boolean') {
    return reader.invalid('stream_usage must be true or false');
  }
  const like = entry.like === undefined ? undefined : PROFILES.find(({ id }) => id === entry.like);
  if (entry.like !== undefined && like === undefined) {
    const ids = PROFILES.map(({ id }) => id);
    const hint = didYouMean(readText(entry.like) ?? '', ids);
    return reader.invalid(`like must be one of: ${ids.join(', ')}${hint}`);
  }
  const ofHost = baseUrl === undefined ? (like ?? tolerant) : profileOfUrl(new URL(baseUrl), like);
  const profile = (entry.models === undefined ? undefined : ofHost.ofNamedModels) ?? ofHost;
  const host = baseUrl === undefined ? '' : new URL(baseUrl).hostname;
  const changes = readChatChanges(entry);
  if (changes.kind === 'error') return reader.invalid(changes.error);
  const changedProfile = changes.value === null ? profile : withChatChanges(profile, changes.value);
  if (changedProfile === null) {
    return reader.invalid(
      `${RULE_FIELDS.join(', ')} apply to chat completions, and ${profile.id} has another API`,
    );
  }
  return withOtherApis(
    reader,
    entry,
    entry.stream_usage === false ? withoutStreamUsage(changedProfile) : changedProfile,
    host,
  );
}

/** APIs that only entries like one provider have. */
const OTHER_APIS = PROFILES.flatMap(({ id, otherApis = {} }) =>
  Object.keys(otherApis).map((name) => {
    const like = `"like": "${id}"`;
    return { name, like, how: `${like} and "api": "${name}"` };
  }),
);

/**
 * A server that is like a provider may lack its other APIs. It gets them if it is the provider's own host, or as `responses` says. `api`
 * sends all chat requests through one API.
 */
function withOtherApis(
  reader: EntryReader,
  { responses: hasResponses, api, guardrailConfig }: JsonObject,
  { passthrough, responses, ...profile }: Profile,
  host: string,
): Profile | undefined {
  if (hasResponses !== undefined && typeof hasResponses !== 'boolean') {
    return reader.invalid('responses must be true or false');
  }
  if (guardrailConfig !== undefined && !isObject(guardrailConfig)) {
    return reader.invalid('guardrailConfig must be an object with guardrailIdentifier and guardrailVersion');
  }
  const other = typeof api === 'string' ? ownValue(profile.otherApis ?? {}, api) : undefined;
  if (other !== undefined) {
    return hasResponses === true
      ? reader.invalid(`api can be ${api} only if responses is not true`)
      : other(guardrailConfig);
  }
  if (guardrailConfig !== undefined) {
    return reader.invalid(`guardrailConfig needs ${OTHER_APIS.map(({ how }) => how).join(', or ')}`);
  }
  if (api !== undefined && api !== 'chat' && api !== 'responses') {
    const known = OTHER_APIS.find(({ name }) => name === api);
    return reader.invalid(
      known === undefined
        ? `api must be chat or responses, or ${OTHER_APIS.map(({ name, like }) => `${name} with ${like}`).join(', ')}`
        : `api can be ${known.name} only with ${known.like}`,
    );
  }
  if (api === 'responses' && hasResponses === false) {
    return reader.invalid('api can be responses only if responses is not false');
  }
  const isOwn = hasResponses === undefined && profile.hosts.includes(host);
  const table =
    api === 'responses'
      ? { ...(responses ?? RESPONSES_API), families: [{ models: ['*'], api: 'responses_only' } as const] }
      : api !== 'chat' && (isOwn || hasResponses === true)
        ? responses
        : undefined;
  const passed =
    hasResponses === true ? { ...RESPONSES_PASSTHROUGH, ...passthrough } : isOwn ? passthrough : undefined;
  return {
    ...profile,
    ...(table !== undefined && { responses: table }),
    ...(passed !== undefined && { passthrough: passed }),
  };
}

/** A larger number is a mistake. */
const MAX_RULES = 64;
const NAME = /^[A-Za-z_][\w-]{0,63}$/;
/** Fields that Weir itself reads or writes. */
const FIXED = ['model', 'models', 'messages', 'prompt', 'stream', 'stream_options', 'tools'];
/** The output limit may have either name, and must not be dropped: a key's budget depends on it. */
const LIMITS = ['max_tokens', 'max_completion_tokens'];

/** The changes that an entry makes to its profile's rules for chat; null without any. Messages contain no value. */
function readChatChanges(entry: JsonObject): Result<ChatChanges | null, string> {
  if (RULE_FIELDS.every((field) => entry[field] === undefined)) return ok(null);
  const rename = readNameMap(entry.rename);
  if (rename === null) return failure('rename must be an object of field names: {"seed": "random_seed"}');
  const drop = readNames(entry.drop);
  if (drop === null) return failure('drop must be a list of field names: ["logit_bias"]');
  const roles = readNameMap(entry.roles);
  if (roles === null) return failure('roles must be an object of role names: {"developer": "system"}');
  const effort = readNameMap(entry.effort);
  if (effort === null)
    return failure('effort must be an object of values of reasoning_effort: {"minimal": "low"}');
  const reasoning = REASONING_FORMS.find((form) => form === entry.reasoning);
  if (entry.reasoning !== undefined && reasoning === undefined) {
    return failure(`reasoning must be one of: ${REASONING_FORMS.join(', ')}`);
  }
  const problem = renameProblem(rename, drop) ?? dropProblem(drop);
  if (problem !== null) return failure(problem);
  const fields: [string, FieldRule][] = [
    ...Object.entries(rename).map(([from, to]): [string, FieldRule] => [from, renamed(to)]),
    ...drop.map((name): [string, FieldRule] => [name, { kind: 'dropped' }]),
  ];
  return ok({ fields: Object.fromEntries(fields), roles, effort, reasoning });
}

function renameProblem(rename: Readonly<Record<string, string>>, drop: readonly string[]): string | null {
  for (const [from, to] of Object.entries(rename)) {
    if ([from, to].some((name) => FIXED.includes(name))) return `rename can't name ${FIXED.join(', ')}`;
    if (drop.includes(from)) return "rename and drop can't name the same field";
    if (drop.includes(to) || Object.hasOwn(rename, to)) {
      return 'rename must not map to a name that is renamed or dropped itself';
    }
    if (LIMITS.includes(to) && !LIMITS.includes(from)) {
      return `rename can map to ${LIMITS.join(' or ')} only from the other one`;
    }
  }
  return null;
}

function dropProblem(drop: readonly string[]): string | null {
  const kept = [...FIXED, ...LIMITS];
  return drop.some((name) => kept.includes(name)) ? `drop can't name ${kept.join(', ')}` : null;
}

/** @returns null if the value is no object of names */
function readNameMap(value: unknown): Readonly<Record<string, string>> | null {
  if (value === undefined) return {};
  if (!isObject(value)) return null;
  const names: Record<string, string> = {};
  for (const [from, to] of Object.entries(value)) {
    const name = readText(to);
    if (!NAME.test(from) || name === undefined || !NAME.test(name)) return null;
    names[from] = name;
  }
  return Object.keys(names).length > MAX_RULES ? null : names;
}

function readNames(value: unknown): readonly string[] | null {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > MAX_RULES) return null;
  const names = value.filter((name) => typeof name === 'string' && NAME.test(name));
  return names.length === value.length ? names : null;
}

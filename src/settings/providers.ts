/** Reads which providers a deployment can reach: those whose key is set, and the entries of `PROVIDERS`. */
import type { AuthMode } from '../auth/caller.ts';
import {
  type ChatChanges,
  configuredProvider,
  RESPONSES_PASSTHROUGH,
  tolerant,
  withChatChanges,
  withoutStreamUsage,
} from '../providers/compatible.ts';
import { PROFILES, PROVIDERS, profileOfHost, profileOfUrl } from '../providers/index.ts';
import type { Profile, Provider } from '../providers/provider.ts';
import { type FieldRule, REASONING_FORMS, renamed } from '../request-translation/rules.ts';
import { isObject, type JsonObject, readText } from '../shared/json.ts';
import { didYouMean } from '../shared/nearest.ts';
import type { SettingsReader } from './reader.ts';

/** A provider that this deployment can reach. */
export interface ConfiguredProvider {
  readonly provider: Provider;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** `""` where there is none: a provider of one's own, or a deployment that sends the caller's. */
  readonly apiKey: string;
  /** Where an operator sets the key and the base URL, for messages; null where the base URL is the provider's default. */
  readonly keySetting: string;
  readonly urlSetting: string | null;
  /** Static headers of every request to it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Static query parameters of its URLs, such as Azure's `api-version`. */
  readonly query: Readonly<Record<string, string>>;
  /** The ids under which its prices may stand: its own, then that of the provider whose host it is (P2). */
  readonly priceIds: readonly string[];
}

const SECRET_NAME = /^[A-Z][A-Z0-9_]*$/;
/** A name of words and short numbers, as `GROQ_API_KEY` and `ACME2_TOKEN`. */
const WORDS_NAME = /^[A-Z]{1,16}\d{0,2}(?:_(?:[A-Z]{1,16}\d{0,2}|\d{1,3})){1,8}$/;
const PROVIDER_ID = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/** The fields of an entry that this file reads. */
const RULE_FIELDS = ['rename', 'drop', 'roles', 'effort', 'reasoning'] as const;
const ENTRY_FIELDS: readonly string[] = [
  ...['base_url', 'api_key', 'like', 'stream_usage', 'responses', 'headers', 'query'],
  ...RULE_FIELDS,
];

/** A provider is enabled by its key; where callers bring their own keys, by its base URL. */
export function readProviders(
  reader: SettingsReader,
  auth: AuthMode,
): ReadonlyMap<string, ConfiguredProvider> {
  const configured = new Map<string, ConfiguredProvider>();
  for (const provider of PROVIDERS) {
    const apiKey = firstText(reader, provider.apiKeySettings);
    const url = firstText(reader, provider.baseUrlSettings);
    const hasUrl = url !== undefined || provider.defaultBaseUrl !== null;
    if (apiKey === undefined && (auth !== 'passthrough' || !hasUrl)) continue;
    const setting = url?.setting ?? provider.baseUrlSettings[0];
    if (!hasUrl) {
      reader.invalid(setting, `must be set, because ${apiKey?.setting} is`);
      continue;
    }
    const baseUrl = reader.url(setting, url?.text ?? provider.defaultBaseUrl ?? undefined);
    if (baseUrl === undefined) continue;
    configured.set(provider.id, {
      provider,
      baseUrl,
      apiKey: apiKey?.text ?? '',
      keySetting: apiKey?.setting ?? provider.apiKeySettings[0],
      urlSetting: url?.setting ?? null,
      headers: {},
      query: {},
      priceIds: [provider.id],
    });
  }
  for (const [id, entry] of Object.entries(reader.object('PROVIDERS'))) {
    const provider = readEntry(new EntryReader(reader, id), id, entry);
    if (provider !== undefined) configured.set(id, provider);
  }
  return configured;
}

function firstText(
  reader: SettingsReader,
  settings: readonly string[],
): { readonly setting: string; readonly text: string } | undefined {
  const given = settings.map((setting) => ({ setting, text: reader.text(setting) }));
  for (const { setting, text } of given) if (text !== undefined) return { setting, text };
  return undefined;
}

/** Reads the fields of one entry of `PROVIDERS`; messages name the entry and never contain a value, which may be a secret. */
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
    return this.#reader.url('PROVIDERS', readText(value));
  }

  /** The secret's value, `""` where no secret is named. */
  secret(field: string, name: string | undefined): string | undefined {
    if (name === undefined) return '';
    const text = this.#reader.text(name);
    if (text !== undefined) return text;
    // The name may be a secret, put in the wrong place, which a message must not contain: one in words is none.
    const which = WORDS_NAME.test(name) ? `: ${name}` : '';
    return this.invalid(`${field} names a secret that is not set${which}`);
  }

  /** An object of texts; a text `$NAME` stands for that secret. */
  texts(field: string, value: unknown): Readonly<Record<string, string>> | undefined {
    if (value === undefined) return {};
    if (!isObject(value)) return this.invalid(`${field} must be an object of texts`);
    const texts: Record<string, string> = {};
    for (const [name, given] of Object.entries(value)) {
      const secretName = typeof given === 'string' && given.startsWith('$') ? given.slice(1) : undefined;
      if (typeof given !== 'string' || (secretName !== undefined && !SECRET_NAME.test(secretName))) {
        return this.invalid(`${field} must be an object of texts, where "$NAME" stands for a secret`);
      }
      const text = secretName === undefined ? given : this.secret(field, secretName);
      if (text === undefined) return undefined;
      texts[name] = text;
    }
    return texts;
  }
}

function readEntry(reader: EntryReader, id: string, entry: unknown): ConfiguredProvider | undefined {
  if (!PROVIDER_ID.test(id) || PROVIDERS.some((known) => known.id === id)) {
    return reader.invalid(
      "can't be a provider's name: small letters, digits, - and _, and none that Weir knows",
    );
  }
  if (!isObject(entry))
    return reader.invalid('must be {"base_url": "https://…/v1", "api_key": "NAME_OF_A_SECRET"}');
  const unknown = Object.keys(entry).find((field) => !ENTRY_FIELDS.includes(field));
  if (unknown !== undefined) {
    const hint = didYouMean(unknown, ENTRY_FIELDS);
    return reader.invalid(`takes nothing but ${ENTRY_FIELDS.join(', ')}${hint}`);
  }
  const baseUrl = reader.url(entry.base_url);
  const secretName = readText(entry.api_key);
  if (secretName !== undefined && !SECRET_NAME.test(secretName)) {
    return reader.invalid('api_key must be the name of a secret, as GROQ_API_KEY');
  }
  const apiKey = reader.secret('api_key', secretName);
  const profile = readProfile(reader, entry, baseUrl);
  const headers = reader.texts('headers', entry.headers);
  const query = reader.texts('query', entry.query);
  if (headers !== undefined && !Object.entries(headers).every(isHeader)) {
    return reader.invalid('headers must have names and values that HTTP takes');
  }
  if (baseUrl === undefined || apiKey === undefined || profile === undefined) return undefined;
  if (headers === undefined || query === undefined) return undefined;
  return {
    provider: configuredProvider(id, profile, secretName ?? 'PROVIDERS'),
    baseUrl,
    apiKey,
    keySetting: secretName ?? `api_key of ${id} in PROVIDERS`,
    urlSetting: `base_url of ${id} in PROVIDERS`,
    headers,
    query,
    priceIds: [id, ...hostIds(baseUrl)],
  };
}

/** Whoever is like a provider at another host has prices of its own. */
function hostIds(baseUrl: string): string[] {
  const { id, hosts } = profileOfHost(new URL(baseUrl).hostname);
  return hosts.length === 0 ? [] : [id];
}

function isHeader([name, value]: [string, string]): boolean {
  return HEADER_NAME.test(name) && HEADER_VALUE.test(value);
}

/** What the entry's API is like: as it names, or as its host is known to be. */
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
  const profile = like ?? (baseUrl === undefined ? tolerant : profileOfUrl(new URL(baseUrl)));
  const host = baseUrl === undefined ? '' : new URL(baseUrl).hostname;
  const changes = readChatChanges(entry);
  if (typeof changes === 'string') return reader.invalid(changes);
  const own = changes === null ? profile : withChatChanges(profile, changes);
  if (own === null) {
    return reader.invalid(
      `${RULE_FIELDS.join(', ')} are for chat completions, and ${profile.id} has another API`,
    );
  }
  return readLanes(reader, entry, entry.stream_usage === false ? withoutStreamUsage(own) : own, host);
}

/** A server that is like a provider need not have all of its APIs: it speaks Responses where the entry says so, or is the provider's own. */
function readLanes(
  reader: EntryReader,
  { responses }: JsonObject,
  { passthrough, ...profile }: Profile,
  host: string,
): Profile | undefined {
  if (responses !== undefined && typeof responses !== 'boolean') {
    return reader.invalid('responses must be true or false');
  }
  if (responses === true) return { ...profile, passthrough: { ...passthrough, ...RESPONSES_PASSTHROUGH } };
  const isOwn = responses === undefined && profile.hosts.includes(host);
  return isOwn && passthrough !== undefined ? { ...profile, passthrough } : profile;
}

/** More are a mistake. */
const MAX_RULES = 64;
const NAME = /^[A-Za-z_][\w-]{0,63}$/;
/** What Weir itself writes or reads. */
const FIXED = ['model', 'models', 'messages', 'prompt', 'stream', 'stream_options', 'tools'];
/** An answer's limit may have either name, and must not be lost: a key's budget rests on it. */
const LIMITS = ['max_tokens', 'max_completion_tokens'];

/** @returns null where the entry says nothing; a text: what is wrong, which contains no value */
function readChatChanges(entry: JsonObject): ChatChanges | null | string {
  if (RULE_FIELDS.every((field) => entry[field] === undefined)) return null;
  const rename = readWords(entry.rename, NAME);
  if (rename === null) return 'rename must be an object of names of fields: {"seed": "random_seed"}';
  const drop = readNames(entry.drop);
  if (drop === null) return 'drop must be a list of names of fields: ["logit_bias"]';
  const roles = readWords(entry.roles, NAME);
  if (roles === null) return 'roles must be an object of names of roles: {"developer": "system"}';
  const effort = readWords(entry.effort, NAME);
  if (effort === null) return 'effort must be an object of words of reasoning_effort: {"minimal": "low"}';
  const reasoning = REASONING_FORMS.find((form) => form === entry.reasoning);
  if (entry.reasoning !== undefined && reasoning === undefined) {
    return `reasoning must be one of: ${REASONING_FORMS.join(', ')}`;
  }
  const problem = renameProblem(rename, drop) ?? dropProblem(drop);
  if (problem !== null) return problem;
  const fields: [string, FieldRule][] = [
    ...Object.entries(rename).map(([from, to]): [string, FieldRule] => [from, renamed(to)]),
    ...drop.map((name): [string, FieldRule] => [name, { kind: 'dropped' }]),
  ];
  return { fields: Object.fromEntries(fields), roles, effort, reasoning };
}

function renameProblem(rename: Readonly<Record<string, string>>, drop: readonly string[]): string | null {
  for (const [from, to] of Object.entries(rename)) {
    if ([from, to].some((name) => FIXED.includes(name))) return `rename can't name ${FIXED.join(', ')}`;
    if (drop.includes(from)) return "rename and drop can't name the same field";
    if (drop.includes(to) || Object.hasOwn(rename, to)) {
      return 'rename must lead to names that are neither renamed nor dropped themselves';
    }
    if (LIMITS.includes(to) && !LIMITS.includes(from)) {
      return `rename can make ${LIMITS.join(' or ')} only of the other one`;
    }
  }
  return null;
}

function dropProblem(drop: readonly string[]): string | null {
  const kept = [...FIXED, ...LIMITS];
  return drop.some((name) => kept.includes(name)) ? `drop can't name ${kept.join(', ')}` : null;
}

/** @returns null where it is anything but an object of words */
function readWords(value: unknown, form: RegExp): Readonly<Record<string, string>> | null {
  if (value === undefined) return {};
  if (!isObject(value)) return null;
  const words: Record<string, string> = {};
  for (const [from, to] of Object.entries(value)) {
    const word = readText(to);
    if (!form.test(from) || word === undefined || !form.test(word)) return null;
    words[from] = word;
  }
  return Object.keys(words).length > MAX_RULES ? null : words;
}

function readNames(value: unknown): readonly string[] | null {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > MAX_RULES) return null;
  const names = value.filter((name) => typeof name === 'string' && NAME.test(name));
  return names.length === value.length ? names : null;
}

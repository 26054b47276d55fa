/**
 * The settings: a row each, from which options of hosts and their types, the reader, the settings of each feature and the rows of
 * `docs/settings.md` follow (npm run tables).
 */
import type { Price } from '../metering/pricing/price.ts';
import { PROMPT_CACHE, UNSUPPORTED } from '../request-translation/rules.ts';
import type { AliasStep, ProviderEntry } from './entries.ts';

/** The names of the functions that create features. */
export type FeatureName = 'ledger' | 'attribution' | 'durableResponses' | 'privacy' | 'dashboard' | 'origin';

/** @typeParam Option what a host passes as the option of this name */
interface SettingOf<Option, Feature extends FeatureName | null = FeatureName | null> {
  /** The feature that has it; null: the core. */
  readonly feature: Feature;
  /** A further feature that reads it. */
  readonly alsoOf?: FeatureName | undefined;
  /** Of types alone. */
  readonly option?: Option;
}

/** One of some words, of which the first is the default. */
interface WordRow<Word extends string, Feature extends FeatureName | null> extends SettingOf<Word, Feature> {
  readonly kind: 'word';
  readonly words: readonly [Word, ...Word[]];
}

export interface WholeRange {
  readonly from: number;
  readonly to: number;
  readonly byDefault: number;
  readonly unit?: 'days' | 'bytes';
}

interface WholeRow<Feature extends FeatureName | null> extends SettingOf<number, Feature>, WholeRange {
  readonly kind: 'whole';
}

interface BytesRow<Feature extends FeatureName | null> extends SettingOf<number, Feature> {
  readonly kind: 'bytes';
  readonly byDefault: number;
}

/** Seconds, with fractions, which are read in ms. */
interface SecondsRow extends SettingOf<number, null> {
  readonly kind: 'seconds';
  readonly byDefault: number;
}

interface SecretRow extends SettingOf<string> {
  readonly kind: 'secret';
}

/** Its own code reads it. */
interface OwnRow<Option> extends SettingOf<Option> {
  readonly kind: 'own';
}

export type AnyRow =
  | WordRow<string, FeatureName | null>
  | WholeRow<FeatureName | null>
  | BytesRow<FeatureName | null>
  | SecondsRow
  | SecretRow
  | OwnRow<unknown>;

function word<const Word extends string, const Feature extends FeatureName | null = null>(
  words: readonly [Word, ...Word[]],
  feature?: Feature,
): WordRow<Word, Feature> {
  return { kind: 'word', words, feature: owner(feature) };
}

function whole<const Feature extends FeatureName | null = null>(
  range: WholeRange,
  feature?: Feature,
): WholeRow<Feature> {
  return { kind: 'whole', ...range, feature: owner(feature) };
}

function bytes<const Feature extends FeatureName | null = null>(
  byDefault: number,
  feature?: Feature,
): BytesRow<Feature> {
  return { kind: 'bytes', byDefault, feature: owner(feature) };
}

function seconds(byDefault: number): SecondsRow {
  return { kind: 'seconds', byDefault, feature: null };
}

function secret(feature: FeatureName | null = null, alsoOf?: FeatureName): SecretRow {
  return { kind: 'secret', feature, alsoOf };
}

function own<Option = string>(feature: FeatureName | null = null): OwnRow<Option> {
  return { kind: 'own', feature };
}

/** Without an argument the type parameter is null. */
function owner<Feature extends FeatureName | null>(feature: Feature | undefined): Feature {
  return (feature ?? null) as Feature; // decode
}

type TextList = string | readonly string[];

/** A Queue redelivers for at most 14 days. A record must be stored for longer, so that a redelivery is recognized. */
const MIN_RECORD_DAYS = 15;
/**
 * An object with SQLite holds 10 GB (https://developers.cloudflare.com/durable-objects/platform/limits/, 2026-11-28):
 * the rest is for sums, and for a time without R2.
 */
const MAX_RECORD_BYTES = 9_000_000_000;
/** Rows of one index, of some 200 bytes each. An object has at most 10 GB. */
const MAX_KEPT_RESPONSES = 10_000_000;
/** 10 GiB, which Cloudflare stores for $2 a month (2026-11-22). */
const KEPT_BYTES = 10 * 1024 * 1024 * 1024;

/** By the names of options. A comment is the effect on the page, in the section whose name stands above it. */
export const SETTINGS = {
  // Providers
  /**
   * More providers, by name, or others in the place of built-in ones (docs/providers.md#add-a-provider-of-your-own). A
   * model's address is `<name>/<model>`. A secret that an entry names is also a setting.
   */
  providers: own<Readonly<Record<string, ProviderEntry>>>(),
  /** The provider of model names without `<provider>/`; under `auth: 'passthrough'` also of the list at `GET /v1/models`. Default: none. */
  defaultProvider: own(),

  // Routing
  /**
   * Whether other names without `<provider>/` go to the model's maker (docs/routing.md#bare-names). Default: `on`, and
   * always `off` with `auth: 'passthrough'`.
   */
  bareModels: own<'on' | 'off'>(),
  /**
   * Names for models, or for lists of 1 to 8 models to try in order: `{"fast": "mistral/mistral-small-latest"}`
   * (docs/routing.md#aliases).
   */
  aliases: own<Readonly<Record<string, string | AliasStep | readonly (string | AliasStep)[]>>>(),
  /** Further rounds over the targets that may recover, 0 to 5 (docs/routing.md#retries). Default: 1. */
  retries: whole({ from: 0, to: 5, byDefault: 1 }),

  // Access
  /**
   * Who may call: `keys` (the default) requires a gateway key, `passthrough` forwards the caller's own provider key,
   * `open` allows anyone, `access` also takes users of Cloudflare Access without a key (docs/keys.md#who-may-call).
   */
  auth: word(['keys', 'passthrough', 'open', 'access']),
  /** A secret: a long random text that opens `/admin/keys`, all of `/v1/usage`, `/v1/models` and the dashboard. */
  adminToken: secret(),
  /**
   * The domain of the team of Cloudflare Access whose tokens name users: `team.cloudflareaccess.com`
   * (docs/attribution.md#cloudflare-access).
   */
  accessTeamDomain: own('attribution'),
  /** The audience tag of the application in Cloudflare Access. */
  accessAud: own('attribution'),
  /**
   * Users of Cloudflare Access who are admins without the admin token: `ada@example.com, *@ops.example.com`, and names
   * of service tokens.
   */
  accessAdmins: own<TextList>('attribution'),
  /**
   * The claim of Access' tokens that has a person's groups, such as `groups`, by which teams list people
   * (docs/sign-in.md#limits-for-people). Default: groups are not read.
   */
  accessGroupsClaim: own('attribution'),
  /** Origins whose web pages may call Weir, such as `https://app.example.com`; `*` allows any. Default: none. */
  corsOrigins: own<TextList>(),

  // Request translation
  /** Whether a provider's refusal of a field may change the request, which is then sent once more (docs/refusals.md). Default: `on`. */
  learn: word(['on', 'off']),
  /**
   * Whether records and logs keep what providers say about failures, without the prompt
   * (docs/errors.md#what-the-record-keeps). Default: `on`.
   */
  errorTexts: word(['on', 'off']),
  /**
   * Fields that a provider does not support: `auto` (the default) drops those that do not change the output, `drop`
   * drops all, `refuse` refuses the request (docs/request-translation.md#unsupported-fields).
   */
  unsupported: word(UNSUPPORTED),
  /**
   * `auto` (the default): where the client set none, cache marks for Claude, and a `prompt_cache_key` of the session
   * for OpenAI and xAI (docs/request-translation.md#prompt-caches-keep-their-prefix). `off`: neither.
   */
  promptCache: word(PROMPT_CACHE),

  // Streams
  /**
   * Usage in streams whose client did not request it: on the `finish` chunk (the default), omitted (`on_request`), or
   * `always` in a separate chunk (docs/streams.md#usage).
   */
  usageChunk: word(['finish', 'on_request', 'always']),
  /**
   * Vendor events (`x_*`) in streams: `strip` (the default) removes them, `pass` keeps them, at most 32 globs keep
   * those that match (docs/streams.md#vendor-events).
   */
  vendorEvents: own<TextList>(),
  /**
   * Whether clients receive the text of reasoning, on every route: `pass` (the default) or `strip`. It is metered in
   * both cases; signatures and encrypted reasoning stay.
   */
  reasoning: word(['pass', 'strip']),
  /** `event` adds the line `event: error` to error frames in streams of chat and completions. Default: `data`. */
  errorFrames: word(['data', 'event']),

  // Limits and time
  /** Seconds without output after which a stream sends a heartbeat, 0 to 86,400; 0: never (docs/streams.md#time). Default: 15. */
  heartbeatSeconds: seconds(15),
  /**
   * Seconds after which a stream fails if its provider sends nothing, 0 to 86,400; 0: never. Default: 120, and 240 for
   * Bedrock's Converse.
   */
  idleTimeoutSeconds: seconds(120),
  /** Seconds after which a request fails, 0 to 86,400; 0: never. Default: 600. */
  deadlineSeconds: seconds(600),
  /** The largest event of a provider's stream, in bytes. Default: 1,048,576 (1 MiB). */
  maxEventBytes: bytes(1024 * 1024),
  /** The largest request body, in bytes. Default: 10,485,760 (10 MiB). */
  maxRequestBytes: bytes(10 * 1024 * 1024),

  // Metering and budgets
  /** Where usage records are stored: in KV (`kv`, the default), or in Durable Objects (`object`), one for each key (docs/ledgers.md). */
  ledger: word(['kv', 'object'], 'ledger'),
  /** How many days `ledger: 'object'` keeps single records, 15 to 3650. Default: 35. */
  recordDays: whole({ from: MIN_RECORD_DAYS, to: 3650, byDefault: 35, unit: 'days' }, 'ledger'),
  /**
   * Bytes that a ledger object keeps, 100,000 to 9,000,000,000. Above it, its oldest records leave for `WEIR_ARCHIVE`,
   * or are deleted (docs/ledgers.md#records-leave-an-object). Default: 8,000,000,000.
   */
  recordBytes: whole(
    { from: 100_000, to: MAX_RECORD_BYTES, byDefault: 8_000_000_000, unit: 'bytes' },
    'ledger',
  ),
  /**
   * Users in records: `plain` (the default) names, `hash` for an HMAC under `userHashKey`, or `off` for neither users
   * nor sessions (docs/attribution.md#privacy).
   */
  users: word(['plain', 'hash', 'off'], 'attribution'),
  /**
   * A secret of at least 16 characters, the key of the HMAC: required with `users: 'hash'`, and with `auth: 'access'`
   * under `users: 'off'`.
   */
  userHashKey: secret('ledger', 'attribution'),
  /**
   * Whether requests are compared with the earlier ones of their session, to explain breaks of the prompt cache
   * (docs/prompt-caches.md). Default: `on`.
   */
  cacheReport: word(['on', 'off'], 'attribution'),
  /** Names of the entries of a request's `metadata` that become tags, at most 8 (docs/attribution.md). */
  tags: own<TextList>('attribution'),
  /**
   * Requests of a key with limits while its ledger object is unavailable: `closed` (the default) refuses them, `open`
   * allows them (docs/budgets.md#when-the-ledger-object-cannot-be-reached).
   */
  budgetFail: word(['closed', 'open'], 'ledger'),
  /**
   * Whether a busy key is spread over several ledger objects, near its callers: `on` (the default) or `off`
   * (docs/ledgers.md#shards-of-a-busy-key).
   */
  shards: word(['on', 'off'], 'ledger'),
  /**
   * The percentages of a budget at which an alert is logged and sent, at most 10 whole numbers from 1 to 100, such as
   * `50,80,100` (the default), or `off` (docs/alerts.md#budgets).
   */
  budgetAlerts: own<string | readonly number[]>('ledger'),
  /**
   * A secret: the https URL (or http of `localhost`) to which alerts of budgets and of providers, and the weekly
   * summary, are sent (docs/alerts.md). Default: they are only logged.
   */
  alertUrl: secret('ledger'),
  /** A secret of at least 16 characters that signs alerts, required with `alertUrl`. */
  alertSecret: secret('ledger'),
  /**
   * Your own prices, at most 5 KB, before the built-in ones (docs/prices.md#your-own-prices). Longer lists go into KV
   * under `config/prices`.
   */
  prices: own<readonly Price[]>(),

  // Responses
  /**
   * Whether Responses are kept for resumption and state: `stateless` (the default) keeps nothing, `durable` keeps each
   * in a Durable Object (docs/durable-responses.md).
   */
  responses: word(['stateless', 'durable'], 'durableResponses'),
  /** How many days a response is kept after its end, 1 to 365. Default: 30. */
  responsesDays: whole({ from: 1, to: 365, byDefault: 30, unit: 'days' }, 'durableResponses'),
  /** The largest background response: the bytes of its events. Default: 33,554,432 (32 MiB). */
  responseBytes: bytes(32 * 1024 * 1024, 'durableResponses'),
  /**
   * The most responses that are kept of one owner at a time, 1 to 10,000,000
   * (docs/durable-responses.md#how-much-is-kept). Default: 100,000.
   */
  keptResponses: whole({ from: 1, to: MAX_KEPT_RESPONSES, byDefault: 100_000 }, 'durableResponses'),
  /** The most bytes of kept responses of one owner. Default: 10,737,418,240 (10 GiB). */
  keptBytes: bytes(KEPT_BYTES, 'durableResponses'),

  // Location
  /** The path below which all routes are, such as `/ai`. Default: `/`. */
  basePath: own(),
  /**
   * What requests for other paths get: `404` (the default), the response of an origin such as
   * `https://www.example.com`, or with `pass` of the zone's own origin
   * (docs/deployment.md#on-an-existing-domain-below-a-path-such-as-ai).
   */
  origin: own('origin'),
  /**
   * The hosts that `origin: 'pass'`, which requires it, forwards to their own origin, such as `example.com,
   * *.example.com`; other hosts get 500.
   */
  originHosts: own<TextList>('origin'),
  /**
   * The jurisdiction of all Durable Objects: other objects, so that it is chosen before the first key
   * (docs/privacy.md#where-data-is). Default: none.
   */
  jurisdiction: own<'eu' | 'fedramp' | 'fedramp-high' | 'us'>(),
  /**
   * About where new Durable Objects are created: `wnam`, `enam`, `sam`, `weur`, `eeur`, `apac`, `apac-ne`, `apac-se`,
   * `oc`, `afr`, `me` (docs/privacy.md#where-data-is). Default: near their first caller.
   */
  locationHint: own(),
};

type Table = typeof SETTINGS;

/** The settings as options of hosts. */
export type SettingRows = {
  readonly [Name in keyof Table]?: NonNullable<Table[Name]['option']> | undefined;
};

/** The rows of the table, by the names of the environment. */
export const ROWS: ReadonlyMap<string, AnyRow> = new Map(
  Object.entries(SETTINGS).map(([name, row]) => [settingName(name), row]),
);

/** `basePath` is `BASE_PATH`. */
export function settingName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

type PlainName<Feature extends FeatureName | null> = {
  [Name in keyof Table]: Table[Name] extends WordRow<string, Feature> | WholeRow<Feature> | BytesRow<Feature>
    ? Name
    : never;
}[keyof Table];

/** The settings of a feature that need no code of their own to be read, by the names of options; null: those of the core. */
export type PlainSettings<Feature extends FeatureName | null> = {
  readonly [Name in PlainName<Feature>]: NonNullable<Table[Name]['option']>;
};

/** Those of the core and of all features. */
export type AllPlain = PlainSettings<FeatureName | null>;

/** The timers. */
export type TimerName = {
  [Name in keyof Table]: Table[Name] extends SecondsRow ? Name : never;
}[keyof Table];

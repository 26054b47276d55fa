/** Gateway keys: creates, finds, lists and revokes them in KV, which stores only the SHA-256 of their tokens (K1, K2). */
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { AUDIT_KEPT_DAYS, MAX_BULK_GET } from '../shared/limits.ts';
import { areFactsReadable, decodeFacts, factsOf, factTexts, type KeyFacts } from './key-facts.ts';
import { showLimits, teamOf, windowBytes } from './key-limits.ts';
import {
  decodeState,
  encodeState,
  endOfSecret,
  type KeyState,
  type Rotation,
  rotate,
  type Secrets,
  showState,
} from './key-state.ts';
import type { KeyView, RevokedKey } from './key-views.ts';

/** How long an isolate caches a gateway key. KV's own cache has the same minimum. */
export const KEY_TTL_MS = 30_000;

/** Gateway keys that an isolate caches. */
const MAX_KNOWN_KEYS = 1000;

export interface GatewayKey extends KeyState, KeyFacts {
  readonly id: string;
  readonly name: string;
  /** Globs over model addresses; null allows every model. */
  readonly models: readonly string[] | null;
  readonly created_at: string;
  /** A copy of the limits in the key's ledger object, for listings. Null: no limits, so requests do not call the object. */
  readonly limits: JsonObject | null;
}

export type NewKey = Omit<GatewayKey, 'id' | 'created_at' | 'secrets'>;

/** A change of an existing key. */
export interface KeyChange {
  /** The key as read from KV. */
  readonly key: GatewayKey;
  readonly fields: Partial<Omit<NewKey, 'limits'>>;
  /** Limits to set; null removes a limit, an absent field keeps it. */
  readonly limits: JsonObject;
  /** The limits are all that the key has from now on, and repair what cannot be read. */
  readonly replacesLimits?: boolean;
  readonly rotation?: Rotation;
}

export type KeyChangeResult =
  /** `before` is absent from an object of an earlier version. */
  | { readonly kind: 'changed'; readonly key: GatewayKey; readonly before?: GatewayKey }
  | { readonly kind: 'revoked' }
  | { readonly kind: 'invalid'; readonly message: string; readonly param: string };

/** The part of a KV namespace that keys use. */
export type KeyStore = Pick<KVNamespace, 'get' | 'put' | 'list' | 'delete'>;

/**
 * The key as it was created. This entry is written once: after it is deleted, no concurrent change can restore the key, in whichever
 * order KV applies the writes.
 */
const PREFIX = 'key/';
/** The key after its last change. Ignored if the key has no entry under {@link PREFIX}. */
const CHANGE_PREFIX = 'key-change/';
/** A secret that a rotation made: its key and its digest. It is void without its key. */
const SECRET_PREFIX = 'secret/';
/** A revoked key, for listings. */
const REVOKED_PREFIX = 'revoked-key/';
const REVOKED_KEPT_SECONDS = AUDIT_KEPT_DAYS * 86_400;
export const TOKEN_PREFIX = 'weir_';
const TOKEN_RANDOM_BYTES = 32;
/** KV pages, of 1,000 keys each, that one listing reads. */
const MAX_LISTINGS = 10;
/** KV metadata, from which keys are listed. */
const MAX_METADATA_BYTES = 1024;
/** A key's other fields take 150 of them, its limits up to 200. */
const MAX_KEY_BYTES = 850;
const MAX_LIMITED_KEY_BYTES = 650;
/** The limits of users take up to 220 more. */
const MAX_USER_LIMITED_KEY_BYTES = 430;

/** `"team":"0123456789abcdef",` */
const TEAM_BYTES = 26;
/** `"limits":{}` of a key that has a team and no limits. */
const NO_LIMIT_BYTES = 12;

/** `"user":` `"tags":` `"require_user":true`, with commas. */
const FACT_NAMES_BYTES = 40;

/** A message if the key is too large for KV metadata, or null. */
export function sizeProblem({ name, models, limits, ...key }: NewKey): string | null {
  const maxBytes = maxBytesOf(limits);
  const hasFacts = Object.values(factsOf(key)).some((fact) => fact !== undefined);
  const texts = hasFacts ? [name, models, ...factTexts(key)] : [name, models];
  const bytes = new TextEncoder().encode(JSON.stringify(texts)).length + (hasFacts ? FACT_NAMES_BYTES : 0);
  if (bytes <= maxBytes) return null;
  const kinds = [
    ...(limits?.per_user === undefined ? (hasLimits(limits) ? ['limits'] : []) : ['per_user']),
    ...(teamOf(limits) === null ? [] : ['a team']),
  ];
  const which = kinds.length === 0 ? '' : ` of a key with ${kinds.join(' and ')}`;
  return `name, models, user and tags${which} must not take more than ${maxBytes} bytes`;
}

function maxBytesOf(limits: JsonObject | null): number {
  if (limits === null) return MAX_KEY_BYTES;
  const ofTeam = teamOf(limits) === null ? 0 : TEAM_BYTES;
  if (!hasLimits(limits)) return MAX_KEY_BYTES - NO_LIMIT_BYTES - ofTeam;
  const maxBytes = limits.per_user === undefined ? MAX_LIMITED_KEY_BYTES : MAX_USER_LIMITED_KEY_BYTES;
  return maxBytes - windowBytes(limits) - ofTeam;
}

/** Whether stored limits have more than a team. */
function hasLimits(limits: JsonObject | null): boolean {
  return Object.keys(limits ?? {}).some((field) => field !== 'team');
}

/** The id of a key with this digest: its first 16 hexadecimal digits. It identifies the key in KV and in records. */
export function keyId(digest: string): string {
  return digest.slice(0, 16);
}

/** Whether a text has the form of a gateway key, of this or another deployment. */
export function isToken(text: string): boolean {
  return text.startsWith(TOKEN_PREFIX);
}

/** A new key that is not stored yet. */
export interface NewGatewayKey {
  readonly key: GatewayKey;
  readonly token: string;
  readonly digest: string;
}

/** Creates a key. The token is returned only here. */
export async function makeKey(fields: NewKey, now: Date): Promise<NewGatewayKey> {
  const { token, digest } = await makeToken();
  return { key: { id: keyId(digest), ...fields, created_at: now.toISOString() }, token, digest };
}

/** 64 random hexadecimal digits. */
export function randomSecret(): string {
  return crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES)).toHex();
}

/** A random token and its SHA-256. */
export async function makeToken(): Promise<{ readonly token: string; readonly digest: string }> {
  const token = TOKEN_PREFIX + randomSecret();
  return { token, digest: await sha256(token) };
}

/** Stores a new key. */
export async function putKey(store: KeyStore, key: GatewayKey, digest: string): Promise<void> {
  const stored = encodeKey(key);
  await store.put(PREFIX + key.id, JSON.stringify({ ...stored, digest }), metadataOf(stored));
}

/** Stores a changed key. */
export async function putChange(store: KeyStore, key: GatewayKey): Promise<void> {
  const stored = encodeKey(key);
  await store.put(CHANGE_PREFIX + key.id, JSON.stringify(stored), metadataOf(stored));
}

/** The stored form of a key, which {@link decodeKey} reads. */
export function encodeKey({ expires_at, disabled, secrets, ...key }: GatewayKey): JsonObject {
  return { ...key, ...encodeState(key.id, { expires_at, disabled, secrets }) };
}

/** The metadata of an entry, where KV takes it. Listings read an entry without metadata itself. */
export function metadataOf(stored: JsonObject): { readonly metadata?: JsonObject } {
  const bytes = encoder.encode(JSON.stringify(stored)).length;
  return bytes <= MAX_METADATA_BYTES ? { metadata: stored } : {};
}

/** The key after a change of it. Its limits are not changed here. */
export function applyChange(key: GatewayKey, { fields, rotation }: KeyChange): GatewayKey {
  const secrets = rotation === undefined ? key.secrets : rotate(key.id, key.secrets, rotation);
  return { ...key, ...fields, ...(secrets && { secrets }) };
}

/** A key as responses show it. */
export function writeKey({ limits, disabled, secrets, ...key }: GatewayKey, nowMs: number): KeyView {
  const team = teamOf(limits);
  return {
    ...key,
    ...(team !== null && { team }),
    ...showLimits(limits),
    ...showState({ expires_at: key.expires_at, disabled, secrets }, nowMs),
  };
}

/** A secret that a rotation made. */
interface RotatedSecret {
  /** The id of its key. */
  readonly id: string;
  readonly digest: string;
  readonly rotated_at: string;
}

/** Stores the secret of a rotation. It is valid once its key names it, or before KV returns the key as it is since the rotation. */
export async function putSecret(store: KeyStore, secret: RotatedSecret): Promise<void> {
  const { id, digest, rotated_at } = secret;
  await store.put(SECRET_PREFIX + keyId(digest), JSON.stringify({ id, digest, rotated_at }));
}

/** Deletes secrets, except the one that the key was created with: it is in the key's own entry. */
export async function deleteSecrets(store: KeyStore, id: string, secrets: readonly string[]): Promise<void> {
  const rotated = secrets.filter((secret) => secret !== id);
  await Promise.all(rotated.map((secret) => store.delete(SECRET_PREFIX + secret)));
}

/** The ids of the secrets of a key. */
export function secretsOf({ id, secrets }: { readonly id: string; readonly secrets?: Secrets | undefined }) {
  const { current = id, previous } = secrets ?? {};
  return previous === undefined ? [current] : [current, previous.id];
}

async function readSecret(
  store: Pick<KeyStore, 'get'>,
  digest: string,
  cacheTtl: number,
): Promise<RotatedSecret | null> {
  const stored = await store.get(SECRET_PREFIX + keyId(digest), { type: 'json', cacheTtl });
  if (!isObject(stored)) return null;
  const { id, digest: own, rotated_at } = stored;
  if (typeof id !== 'string' || typeof own !== 'string' || typeof rotated_at !== 'string') return null;
  // The name of the entry is only the start of the digest.
  return sameDigest(own, digest) ? { id, digest, rotated_at } : null;
}

/** Deletes the change of a key, so that the key is again what it was when it was created. */
export async function deleteChange(store: KeyStore, id: string): Promise<void> {
  await store.delete(CHANGE_PREFIX + id);
}

/**
 * The key with this id and the digest of its token, or null without one.
 * @param cacheTtl for how many seconds KV may return a cached value
 */
export async function readKey(
  store: Pick<KeyStore, 'get'>,
  id: string,
  cacheTtl?: number,
): Promise<FoundKey | 'unreadable' | null> {
  const options = { type: 'json', ...(cacheTtl && { cacheTtl }) } as const;
  const readEntry = async (name: string): Promise<unknown> => {
    try {
      return await store.get(name, options);
    } catch (error) {
      // KV fails so for a value that is no JSON.
      if (error instanceof SyntaxError) return NO_JSON;
      throw error;
    }
  };
  const [created, changed] = await Promise.all([readEntry(PREFIX + id), readEntry(CHANGE_PREFIX + id)]);
  if (created === null) return null;
  // The key before its last change may have had more rights, so it does not stand in for a change that cannot be read.
  const key = decodeKey(changed ?? created);
  const digest = isObject(created) ? readText(created.digest) : undefined;
  return key === null || digest === undefined ? 'unreadable' : { key, digest };
}

const NO_JSON = {};

export interface FoundKey {
  readonly key: GatewayKey;
  readonly digest: string;
}

/** Keeps a revoked key for listings. */
export async function putRevokedKey(store: KeyStore, key: RevokedKey): Promise<void> {
  const { id, name, created_at, revoked_at } = key;
  const metadata = { id, name, created_at, revoked_at };
  const options = { metadata, expirationTtl: REVOKED_KEPT_SECONDS };
  await store.put(REVOKED_PREFIX + id, JSON.stringify(metadata), options);
}

/** Gives a revoked key another name in listings, if it is still listed. */
export async function renameRevokedKey(store: KeyStore, id: string, name: string): Promise<void> {
  const [key] = decodeRevoked(await store.get(REVOKED_PREFIX + id, 'json'));
  if (key !== undefined) await putRevokedKey(store, { ...key, name });
}

interface KeyList {
  readonly keys: readonly GatewayKey[];
  /** The latest first. */
  readonly revoked: readonly RevokedKey[];
  /** The ids of keys whose entries cannot be read. They are refused. */
  readonly unreadable: readonly string[];
}

/** All keys with their changes and ends. Entries that cannot be read are named and not listed. */
export async function listKeys(store: KeyStore): Promise<KeyList> {
  const [created, changed, ended] = await Promise.all([
    listEntries(store, PREFIX),
    listEntries(store, CHANGE_PREFIX),
    listEntries(store, REVOKED_PREFIX),
  ]);
  const unreadable: string[] = [];
  const keys = [...created].flatMap(([id, stored]) => {
    const key = decodeKey(changed.get(id) ?? stored);
    if (key === null) unreadable.push(id);
    return key === null ? [] : [key];
  });
  // A key whose deletion KV does not list yet is still listed as valid.
  const revoked = [...ended].flatMap(([id, stored]) => (created.has(id) ? [] : decodeRevoked(stored)));
  return { keys, unreadable, revoked: revoked.sort((a, b) => (a.revoked_at > b.revoked_at ? -1 : 1)) };
}

function decodeRevoked(stored: unknown): RevokedKey[] {
  if (!isObject(stored)) return [];
  const { id, name = '', created_at = '', revoked_at } = stored;
  return [id, name, created_at, revoked_at].every(isText)
    ? [{ id: String(id), name: String(name), created_at: String(created_at), revoked_at: String(revoked_at) }]
    : [];
}

/** What is stored under a prefix, by id. Metadata has all of a key; an entry that was copied without it is read itself. */
export async function listEntries(store: KeyStore, prefix: string): Promise<ReadonlyMap<string, unknown>> {
  const found = new Map<string, unknown>();
  let cursor: string | null = null;
  for (let listing = 0; listing < MAX_LISTINGS; listing++) {
    const page: KVNamespaceListResult<unknown> = await store.list({ prefix, cursor });
    const bare: string[] = [];
    for (const { name, metadata } of page.keys) {
      // Also sets the entry's place in the list.
      found.set(name.slice(prefix.length), metadata);
      if (!isObject(metadata)) bare.push(name);
    }
    for (let from = 0; from < bare.length; from += MAX_BULK_GET) {
      const values: ReadonlyMap<string, unknown> = await store.get(
        bare.slice(from, from + MAX_BULK_GET),
        'json',
      );
      // An entry that was deleted meanwhile.
      for (const [name, value] of values) {
        if (value === null) found.delete(name.slice(prefix.length));
        else found.set(name.slice(prefix.length), value);
      }
    }
    if (page.list_complete) break;
    cursor = page.cursor;
  }
  return found;
}

/**
 * Revokes a key for good. The caller deletes the entry of its last change with {@link deleteChange}.
 * @param secrets of the key, as far as they are known: without the key they are void
 */
export async function revokeKey(store: KeyStore, id: string, secrets: readonly string[]): Promise<void> {
  await store.delete(PREFIX + id);
  await deleteSecrets(store, id, secrets);
}

const isText = (value: unknown) => typeof value === 'string';

/** What restricts a key. Each may be absent or null, which restricts nothing; in any other form it would be left out. */
const RESTRICTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  models: (value) => Array.isArray(value) && value.every(isText),
  limits: isObject,
};

/** Reads a stored key; null if the value is no key, or one whose restrictions are not readable. */
export function decodeKey(stored: unknown): GatewayKey | null {
  if (!isObject(stored)) return null;
  const id = readText(stored.id);
  const areReadable = Object.entries(RESTRICTIONS).every(
    ([field, isReadable]) => (stored[field] ?? null) === null || isReadable(stored[field]),
  );
  const state = decodeState(stored);
  if (id === undefined || !areReadable || !areFactsReadable(stored) || state === undefined) return null;
  return {
    id,
    name: readText(stored.name) ?? '',
    models: Array.isArray(stored.models) ? readArray(stored.models).map(String) : null,
    ...state,
    created_at: readText(stored.created_at) ?? '',
    limits: isObject(stored.limits) ? stored.limits : null,
    ...decodeFacts(stored),
  };
}

interface KnownKey {
  readonly key: GatewayKey;
  /** When the secret ends, in ms since the epoch. */
  readonly secretEnd: number;
  /** When it is read again. */
  readonly until: number;
}

/** Caches the gateway keys that this isolate has read, so that most requests do not wait for KV. */
export class KnownKeys {
  readonly #store: Pick<KeyStore, 'get'>;
  /** By the digest of the token, in the order in which they were read. A digest cannot be chosen by a caller, unlike an id. */
  readonly #known = new Map<string, KnownKey>();

  constructor(store: Pick<KeyStore, 'get'>) {
    this.#store = store;
  }

  /**
   * The key of a token; null if the token is unknown, revoked, disabled or expired; `unreadable` if what is stored of
   * it is no key. A change in another isolate may take {@link KEY_TTL_MS} to arrive here, and the same time again in
   * KV's own cache. Unknown tokens are not cached.
   * @param now in ms since the epoch
   */
  async find(token: string, now: number): Promise<GatewayKey | 'unreadable' | null> {
    if (!isToken(token)) return null;
    const digest = await sha256(token);
    const cachedKey = this.#known.get(digest);
    const found =
      cachedKey !== undefined && now < cachedKey.until ? cachedKey : await this.#read(digest, now);
    if (found === null || found === 'unreadable') return found;
    const { key, secretEnd } = found;
    const isExpired = key.expires_at !== null && Date.parse(key.expires_at) <= now;
    return isExpired || key.disabled === true || secretEnd <= now ? null : key;
  }

  /** The id of the key with this token, expired or not, if this isolate has read it. It does not read KV. */
  async idOf(token: string): Promise<string | null> {
    return isToken(token) ? (this.#known.get(await sha256(token))?.key.id ?? null) : null;
  }

  /** Removes a key from the cache after this isolate revoked or changed it. */
  forget(id: string): void {
    for (const [digest, { key }] of this.#known) if (key.id === id) this.#known.delete(digest);
  }

  async #read(digest: string, now: number): Promise<KnownKey | 'unreadable' | null> {
    this.#known.delete(digest);
    const secret = keyId(digest);
    const cacheTtl = KEY_TTL_MS / 1000;
    let found = await readKey(this.#store, secret, cacheTtl);
    // A key with this id has this secret, or had it before it was rotated.
    const rotated = found === null ? await readSecret(this.#store, digest, cacheTtl) : null;
    if (rotated !== null) found = await readKey(this.#store, rotated.id, cacheTtl);
    if (found === null || found === 'unreadable') return found;
    // The id is only the start of the digest.
    if (rotated === null && !sameDigest(found.digest, digest)) return null;
    const { key } = found;
    const secretEnd = endOfSecret(key, secret, rotated?.rotated_at ?? null);
    if (secretEnd === null) return null;
    const [oldest] = this.#known.size >= MAX_KNOWN_KEYS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    const cachedKey = { key, secretEnd, until: now + KEY_TTL_MS };
    this.#known.set(digest, cachedKey);
    return cachedKey;
  }
}

const encoder = new TextEncoder();

/** The SHA-256 of a text in lowercase hexadecimal digits. */
export async function sha256(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))).toHex();
}

/** Compares two digests in constant time. */
export function sameDigest(a: string, b: string): boolean {
  return a.length === b.length && crypto.subtle.timingSafeEqual(encoder.encode(a), encoder.encode(b));
}

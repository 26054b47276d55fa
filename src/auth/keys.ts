/** Gateway keys: made, looked up, listed and revoked in KV, which holds nothing but their SHA-256 (K1, K2). */
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { KEY_TTL_MS, MAX_KNOWN_KEYS } from '../shared/limits.ts';

export interface GatewayKey {
  readonly id: string;
  readonly name: string;
  /** Globs over model addresses; null allows every model. */
  readonly models: readonly string[] | null;
  /** ISO 8601, or null: never. */
  readonly expires_at: string | null;
  readonly created_at: string;
  /** A copy of what its ledger object holds, for listings; null: it has none, and no object is asked before its requests (G1). */
  readonly limits: JsonObject | null;
}

export type NewKey = Pick<GatewayKey, 'name' | 'models' | 'expires_at' | 'limits'>;

/** The part of a KV namespace that keys use. */
export type KeyStore = Pick<KVNamespace, 'get' | 'put' | 'list' | 'delete'>;

/**
 * A key as it was made. Nothing writes this entry again: once it is deleted, no change that is under way, and no order of writes,
 * brings the key back.
 */
const PREFIX = 'key/';
/** What a key is since its last change; without the key's own entry it has no meaning. */
const CHANGE_PREFIX = 'key-change/';
const TOKEN_PREFIX = 'weir_';
const TOKEN_RANDOM_BYTES = 32;
/** Listings (of 1,000 keys each) in one answer. */
const MAX_LISTINGS = 10;
/** KV metadata, in which keys are listed, holds 1,024 bytes; the rest of a key takes 150 of them, and its limits up to 200. */
const MAX_KEY_BYTES = 850;
const MAX_LIMITED_KEY_BYTES = 650;

/** What is wrong with a key's size, or null. */
export function sizeProblem({ name, models, limits }: NewKey): string | null {
  const maxBytes = limits === null ? MAX_KEY_BYTES : MAX_LIMITED_KEY_BYTES;
  const bytes = new TextEncoder().encode(JSON.stringify([name, models])).length;
  if (bytes <= maxBytes) return null;
  const which = limits === null ? '' : ' of a key with limits';
  return `name and models${which} must not take more than ${maxBytes} bytes`;
}

/** A caller's id: the head of its token's SHA-256. It names the key in KV, and in records, without revealing the token. */
export function callerId(digest: string): string {
  return digest.slice(0, 16);
}

/** Whether a word is a key of this or another deployment, or was meant as one. */
function isToken(word: string): boolean {
  return word.startsWith(TOKEN_PREFIX);
}

/** A key that is not in the store yet. */
export interface MadeKey {
  readonly key: GatewayKey;
  readonly token: string;
  readonly digest: string;
}

/** Makes a key. The token is in this answer and nowhere else. */
export async function makeKey(asked: NewKey, now: Date): Promise<MadeKey> {
  const random = crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES));
  const token = TOKEN_PREFIX + random.toHex();
  const digest = await sha256(token);
  return { key: { id: callerId(digest), ...asked, created_at: now.toISOString() }, token, digest };
}

/** Puts a new key into the store. */
export async function putKey(store: KeyStore, key: GatewayKey, digest: string): Promise<void> {
  await store.put(PREFIX + key.id, JSON.stringify({ ...key, digest }), { metadata: key });
}

/** Puts a key's changed form into the store. */
export async function putChange(store: KeyStore, key: GatewayKey): Promise<void> {
  await store.put(CHANGE_PREFIX + key.id, JSON.stringify(key), { metadata: key });
}

export async function deleteChange(store: KeyStore, id: string): Promise<void> {
  await store.delete(CHANGE_PREFIX + id);
}

/** The key of this id, with its token's digest, or null where there is none. */
export async function readKey(
  store: Pick<KeyStore, 'get'>,
  id: string,
  cacheTtl?: number,
): Promise<{ readonly key: GatewayKey; readonly digest: string } | null> {
  const options = { type: 'json', ...(cacheTtl && { cacheTtl }) } as const;
  const read = (name: string): Promise<unknown> => store.get(name, options);
  const [made, changed] = await Promise.all([read(PREFIX + id), read(CHANGE_PREFIX + id)]);
  const key = decodeKey(made);
  const digest = isObject(made) ? readText(made.digest) : undefined;
  return key === null || digest === undefined ? null : { key: decodeKey(changed) ?? key, digest };
}

/**
 * The key whose token has this digest, or null where there is none (K3).
 * @param cacheSeconds for so long KV may answer what it answered before
 */
async function readKeyOf(
  store: Pick<KeyStore, 'get'>,
  digest: string,
  cacheSeconds: number,
): Promise<GatewayKey | null> {
  const found = await readKey(store, callerId(digest), cacheSeconds);
  return found !== null && sameDigest(found.digest, digest) ? found.key : null;
}

export async function listKeys(store: KeyStore): Promise<GatewayKey[]> {
  const [made, changed] = await Promise.all([list(store, PREFIX), list(store, CHANGE_PREFIX)]);
  const changes = new Map(changed.map((key) => [key.id, key]));
  return made.map((key) => changes.get(key.id) ?? key);
}

async function list(store: KeyStore, prefix: string): Promise<GatewayKey[]> {
  const keys: GatewayKey[] = [];
  let cursor: string | null = null;
  for (let listing = 0; listing < MAX_LISTINGS; listing++) {
    const page: KVNamespaceListResult<unknown> = await store.list({ prefix, cursor });
    for (const { metadata } of page.keys) {
      const key = decodeKey(metadata);
      if (key !== null) keys.push(key);
    }
    if (page.list_complete) break;
    cursor = page.cursor;
  }
  return keys;
}

/**
 * Revokes a key for good, whatever is written of it later. What is left of it is {@link deleteChange}'s.
 * @returns false where there is no such key
 */
export async function revokeKey(store: KeyStore, id: string): Promise<boolean> {
  if ((await store.get(PREFIX + id)) === null) return false;
  await store.delete(PREFIX + id);
  return true;
}

/** A key as it is stored; null where it is none. */
export function decodeKey(stored: unknown): GatewayKey | null {
  if (!isObject(stored)) return null;
  const id = readText(stored.id);
  if (id === undefined) return null;
  return {
    id,
    name: readText(stored.name) ?? '',
    models: Array.isArray(stored.models)
      ? readArray(stored.models).filter((glob) => typeof glob === 'string')
      : null,
    expires_at: readText(stored.expires_at) ?? null,
    created_at: readText(stored.created_at) ?? '',
    limits: isObject(stored.limits) ? stored.limits : null,
  };
}

export class KnownKeys {
  readonly #store: Pick<KeyStore, 'get'>;
  /** By their tokens' digests, which a caller can't choose; those that were read longest ago come first. */
  readonly #known = new Map<string, { readonly key: GatewayKey; readonly until: number }>();

  constructor(store: Pick<KeyStore, 'get'>) {
    this.#store = store;
  }

  /**
   * The key of a token, or null where there is none, it was revoked or it has expired. What another isolate revoked or changed
   * may be unknown here for {@link KEY_TTL_MS}, and for as long again in KV's own cache. A token without a key is never remembered.
   * @param now in ms since the epoch
   */
  async find(token: string, now: number): Promise<GatewayKey | null> {
    if (!isToken(token)) return null;
    const digest = await sha256(token);
    const known = this.#known.get(digest);
    const key = known !== undefined && now < known.until ? known.key : await this.#read(digest, now);
    if (key === null) return null;
    return key.expires_at !== null && Date.parse(key.expires_at) <= now ? null : key;
  }

  /** The id of the key that has this token, expired or not, where this isolate has read it: no KV is asked. */
  async idOf(token: string): Promise<string | null> {
    return isToken(token) ? (this.#known.get(await sha256(token))?.key.id ?? null) : null;
  }

  /** It was revoked or changed here. */
  forget(id: string): void {
    for (const digest of this.#known.keys()) if (callerId(digest) === id) this.#known.delete(digest);
  }

  async #read(digest: string, now: number): Promise<GatewayKey | null> {
    this.#known.delete(digest);
    const key = await readKeyOf(this.#store, digest, KEY_TTL_MS / 1000);
    if (key === null) return null;
    const [oldest] = this.#known.size >= MAX_KNOWN_KEYS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(digest, { key, until: now + KEY_TTL_MS });
    return key;
  }
}

const encoder = new TextEncoder();

/** The digest in small hexadecimal digits. */
export async function sha256(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))).toHex();
}

/** Whether two digests are the same; the time it takes does not reveal where they differ. */
export function sameDigest(a: string, b: string): boolean {
  return a.length === b.length && crypto.subtle.timingSafeEqual(encoder.encode(a), encoder.encode(b));
}

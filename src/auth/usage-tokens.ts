/**
 * Tokens that read usage and call no models: for BI, shared links, and leads of teams, who also manage the keys of their team. KV has their
 * SHA-256 only, apart from the gateway keys.
 */
import { isObject, type JsonObject, readText } from '../shared/json.ts';
import { TOKEN_FILTERS, type TokenFilter, type UsageToken } from './key-views.ts';
import { type KeyStore, keyId, listEntries, metadataOf, randomSecret, sameDigest, sha256 } from './keys.ts';

/** Not that of gateway keys, so that no route takes a token where it takes a key. */
const TOKEN_PREFIX = 'weir-usage_';
const PREFIX = 'usage-token/';
/** For how long KV may return a token that was revoked meanwhile. */
const CACHE_SECONDS = 30;

/** Whether a text has the form of such a token, of this or another deployment. */
export function isUsageToken(text: string): boolean {
  return text.startsWith(TOKEN_PREFIX);
}

interface NewUsageToken {
  readonly usageToken: UsageToken;
  /** The token itself, which is stored nowhere. */
  readonly token: string;
}

/** Creates and stores a token. */
export async function createUsageToken(
  store: KeyStore,
  fields: Pick<UsageToken, 'name' | 'scope' | 'team' | 'filter' | 'expires_at'>,
  created_at: string,
): Promise<NewUsageToken> {
  const token = TOKEN_PREFIX + randomSecret();
  const digest = await sha256(token);
  const usageToken: UsageToken = { id: keyId(digest), ...fields, created_at };
  const value = JSON.stringify({ ...usageToken, digest });
  await store.put(PREFIX + usageToken.id, value, metadataOf({ ...usageToken }));
  return { usageToken, token };
}

/**
 * Null if the token is unknown, revoked, expired or unreadable.
 * @param now in ms since the epoch
 */
export async function findUsageToken(
  store: Pick<KeyStore, 'get'>,
  token: string,
  now: number,
): Promise<UsageToken | null> {
  const digest = await sha256(token);
  const stored = await store.get(PREFIX + keyId(digest), { type: 'json', cacheTtl: CACHE_SECONDS });
  const found = decode(stored);
  if (found === null || !isObject(stored) || !sameDigest(readText(stored.digest) ?? '', digest)) return null;
  return found.expires_at !== null && Date.parse(found.expires_at) <= now ? null : found;
}

/** The token with this id, without the check of a secret. */
export async function readUsageToken(store: KeyStore, id: string): Promise<UsageToken | null> {
  return decode(await store.get(PREFIX + id, 'json'));
}

/** All usage tokens, without the tokens themselves. Entries that cannot be read are left out. */
export async function listUsageTokens(store: KeyStore): Promise<readonly UsageToken[]> {
  const entries = await listEntries(store, PREFIX);
  return [...entries.values()].flatMap((stored) => decode(stored) ?? []);
}

/** Deletes a usage token. */
export async function deleteUsageToken(store: KeyStore, id: string): Promise<void> {
  await store.delete(PREFIX + id);
}

/** Null for what is no token, or one whose restrictions cannot be read. */
function decode(stored: unknown): UsageToken | null {
  if (!isObject(stored)) return null;
  const { id, name, scope, team, created_at, filter = null, expires_at = null } = stored;
  const isExpiry =
    expires_at === null || (typeof expires_at === 'string' && !Number.isNaN(Date.parse(expires_at)));
  if (typeof id !== 'string' || !isExpiry) return null;
  const texts = { id, name: readText(name) ?? '' };
  const times = { expires_at: readText(expires_at) ?? null, created_at: readText(created_at) ?? '' };
  if (scope === 'team' && typeof team === 'string')
    return { ...texts, scope, team, filter: { team }, ...times };
  if (scope !== 'usage') return null;
  if (filter !== null && !isFilter(filter)) return null;
  return { ...texts, scope, filter, ...times };
}

function isFilter(value: unknown): value is TokenFilter & JsonObject {
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([name, text]) => TOKEN_FILTERS.some((known) => known === name) && typeof text === 'string',
    )
  );
}

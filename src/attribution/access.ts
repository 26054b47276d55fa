/** Verifies the tokens of Cloudflare Access, and finds the admins among their users. */
import { accessToken } from '../auth/caller.ts';
import { accessName, callerId, lowerCase } from '../auth/caller-ids.ts';
import { NO_GROUPS, readGroups } from '../auth/people.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable } from '../canonical/secret.ts';
import type { VerifyAccess } from '../feature.ts';
import { decodeBase64Url } from '../shared/encoding.ts';
import { matchesGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, parseJson, readArray, readText } from '../shared/json.ts';
import type { Log } from '../shared/log-event.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { userHasher } from './attribution.ts';
import type { AccessSettings, AttributionSettings } from './settings.ts';

// Header, key URL and rotation (every 6 weeks; the previous key stays valid for 7 days):
// developers.cloudflare.com/cloudflare-one/access-controls/applications/http-apps/authorization-cookie/validating-json,
// of 2026-05-06, read 2026-11-22. Claims: …/authorization-cookie/application-token, read on the same day: RS256, `aud`
// is a list, `type` is `app` (`org` is the token of the whole team), a user has `email`, a service token has
// `common_name` (its Client ID), no `email` and no `nbf`. Claims that an identity provider adds, as `groups`:
// …/integrations/identity-providers/generic-oidc, read 2026-11-29, says that the token has them, not where: it is in
// the member `custom` (from memory).
const ACCESS_HEADER = 'cf-access-jwt-assertion';
const KEYS_PATH = '/cdn-cgi/access/certs';

/** After this time the keys are read again. If that fails, known keys stay in use. */
const KEYS_TTL_MS = 60 * 60 * 1000;
/** Between two reads for unknown key ids, which callers can make up, and after a failed read where the key is known. */
const MIN_REREAD_MS = 60 * 1000;
/** After a failed read where the key is not known. */
const MIN_RETRY_MS = 5000;
/** How long one request reads the keys, or waits for the read of another request. */
const MAX_READ_MS = 5000;
/** How often a waiting request checks whether the keys have arrived. */
const POLL_MS = 50;
const MAX_KEYS = 16;
const MAX_KEYS_BYTES = 64 * 1024;
const MAX_TOKEN_CHARS = 16 * 1024;
/** Clocks may differ by this much. */
const LEEWAY_SECONDS = 30;

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

export interface AccessPorts {
  readonly fetch: (
    url: string,
    init: { readonly signal: AbortSignal; readonly redirect: 'manual' },
  ) => Promise<Response>;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly log: Log;
}

/** Null: the deployment reads no tokens. */
export function createVerifyAccess(
  { access, users, userHashKey }: Omit<AttributionSettings, 'tags'>,
  ports: AccessPorts,
): VerifyAccess | null {
  if (access === null) return null;
  const tokens = new AccessTokens(access, ports);
  const hashKey = users === 'plain' ? null : userHashKey;
  const hash = isUnreadable(hashKey) ? hashKey : userHasher(hashKey);
  return async (headers, from) => {
    const token = from === 'header' ? headers.get(ACCESS_HEADER) : accessToken(headers);
    if (token === null) return ok(null);
    const verified = await tokens.verify(token);
    if (verified.kind === 'error') return verified;
    const { name, isService, claims } = verified.value;
    const kind = isService ? 'access_service' : 'access_user';
    const keyId = isUnreadable(hash) ? hash : await callerId(kind, name, hash);
    return ok({
      name: accessName(kind, name),
      isService,
      groups: isService ? NO_GROUPS : readGroups(claims, access.groupsClaim),
      keyId,
      isAdmin: isAdmin(verified.value, access.admins),
      isCredential: from === 'credential',
    });
  };
}

/** The user or the service that a token names. */
interface AccessIdentity {
  /** An e-mail address, or the name of a service token. In lower case, so that a person has one name. */
  readonly name: string;
  readonly isService: boolean;
}

/**
 * An `*` of a pattern matches characters on its side of the `@` only. A service token must match a pattern exactly, and its name must
 * not contain an `@`: the name comes from a certificate, which may have any text.
 */
function isAdmin({ name, isService }: AccessIdentity, patterns: readonly string[]): boolean {
  const [local = '', domain = '', ...more] = name.split('@');
  if (isService) return !name.includes('@') && patterns.includes(name);
  if (local === '' || domain === '' || more.length > 0) return false;
  return patterns.some((pattern) => {
    const [localPattern = '', domainPattern = ''] = pattern.split('@');
    return domainPattern !== '' && matchesGlob(localPattern, local) && matchesGlob(domainPattern, domain);
  });
}

class AccessTokens {
  readonly #settings: AccessSettings;
  readonly #ports: AccessPorts;
  #keys: ReadonlyMap<string, CryptoKey> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** One request reads at a time. The claim expires, in case that request ends before its read. */
  #claimedUntil = Number.NEGATIVE_INFINITY;

  constructor(settings: AccessSettings, ports: AccessPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  async verify(token: string): Promise<Result<AccessIdentity & { readonly claims: JsonObject }, ApiError>> {
    const [header = '', payload = '', signature = '', ...more] = token.split('.');
    const { alg, kid } = readPart(header);
    const bytes = decodeBytes(signature);
    const isForm = token.length <= MAX_TOKEN_CHARS && more.length === 0 && alg === 'RS256';
    if (!isForm || typeof kid !== 'string' || bytes === null) return failure(INVALID);
    const key = await this.#findKey(kid);
    if (key.kind === 'error') return key;
    const signed = new TextEncoder().encode(`${header}.${payload}`);
    const isSigned = await crypto.subtle.verify(ALGORITHM, key.value, bytes, signed);
    const claims = readPart(payload);
    const identity = readIdentity(claims);
    return isSigned && this.#isValid(claims) && identity !== null
      ? ok({ ...identity, claims })
      : failure(INVALID);
  }

  #isValid({ iss, aud, exp, nbf, type }: JsonObject): boolean {
    const { issuer, audience } = this.#settings;
    const now = this.#ports.now() / 1000;
    const audiences = typeof aud === 'string' ? [aud] : readArray(aud);
    const isCurrent = typeof exp === 'number' && exp + LEEWAY_SECONDS > now;
    const hasBegun = nbf === undefined || (typeof nbf === 'number' && nbf - LEEWAY_SECONDS <= now);
    const isForApp = type === undefined || type === 'app';
    return iss === issuer && audiences.includes(audience) && isCurrent && hasBegun && isForApp;
  }

  async #findKey(kid: string): Promise<Result<CryptoKey, ApiError>> {
    const { now, startTimer } = this.#ports;
    const until = now() + MAX_READ_MS;
    for (;;) {
      const key = this.#keys.get(kid);
      const age = now() - this.#readAt;
      if (key !== undefined && age < KEYS_TTL_MS) return ok(key);
      if (key === undefined && age < MIN_REREAD_MS) return failure(INVALID);
      const hasFailed = now() - this.#failedAt < (key === undefined ? MIN_RETRY_MS : MIN_REREAD_MS);
      const isClaimed = now() < this.#claimedUntil;
      const leftMs = until - now();
      if (!hasFailed && !isClaimed && leftMs > 0) {
        await this.#readKeys(leftMs);
        continue;
      }
      if (key !== undefined) return ok(key);
      if (hasFailed || leftMs <= 0) return failure(UNREACHABLE);
      // In Workers, a request must not wait for a promise of another request.
      await new Promise<void>((resolve) => void startTimer(POLL_MS, resolve));
    }
  }

  /** Afterwards `#readAt` or `#failedAt` is now. */
  async #readKeys(maxMs: number): Promise<void> {
    const { now, startTimer, log } = this.#ports;
    const controller = new AbortController();
    const cancelTimer = startTimer(maxMs, () => controller.abort());
    this.#claimedUntil = now() + maxMs;
    try {
      this.#keys = await this.#fetchKeys(controller.signal);
      this.#readAt = now();
    } catch (error) {
      this.#failedAt = now();
      log({ event: 'access_unreachable', reason: String(error) });
    } finally {
      this.#claimedUntil = Number.NEGATIVE_INFINITY;
      cancelTimer();
    }
  }

  /** Rejects if there is no key. */
  async #fetchKeys(signal: AbortSignal): Promise<ReadonlyMap<string, CryptoKey>> {
    const url = this.#settings.issuer + KEYS_PATH;
    const response = await this.#ports.fetch(url, { signal, redirect: 'manual' });
    const body = response.ok ? parseJson(await readBounded(response)) : undefined;
    const keys = new Map<string, CryptoKey>();
    for (const jwk of readArray(isObject(body) ? body.keys : null).slice(0, MAX_KEYS)) {
      if (!isObject(jwk) || typeof jwk.kid !== 'string') continue;
      const key = await importKey(jwk);
      if (key !== null) keys.set(jwk.kid, key);
    }
    if (keys.size === 0) throw new Error(`${url} has no keys: status ${response.status}`);
    return keys;
  }
}

// The messages contain nothing of the token, because it names a person.
const INVALID = apiError(
  'invalid_api_key',
  'The token of Cloudflare Access is invalid or expired, or is of another application: sign in again',
);
const UNREACHABLE = apiError(
  'access_unreachable',
  'The keys of Cloudflare Access cannot be read now, so the token cannot be verified: try again',
);

function readIdentity({ email, common_name }: JsonObject): AccessIdentity | null {
  const name = readText(email) ?? readText(common_name) ?? '';
  return name.trim() === '' ? null : { name: lowerCase(name), isService: readText(email) === undefined };
}

/** Null for a key of another kind. */
async function importKey({ kty, ...members }: JsonObject): Promise<CryptoKey | null> {
  const n = readText(members.n);
  const e = readText(members.e);
  if (kty !== 'RSA' || n === undefined || e === undefined) return null;
  try {
    return await crypto.subtle.importKey('jwk', { kty, n, e }, ALGORITHM, false, ['verify']);
  } catch {
    return null;
  }
}

async function readBounded({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_KEYS_BYTES) throw new Error(`The keys have more than ${MAX_KEYS_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function readPart(part: string): JsonObject {
  const value = part.length > MAX_TOKEN_CHARS ? undefined : parseJson(decodeBase64Url(part));
  return isObject(value) ? value : {};
}

function decodeBytes(base64Url: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]+$/.test(base64Url) || base64Url.length > MAX_TOKEN_CHARS) return null;
  const padding = '='.repeat((4 - (base64Url.length % 4)) % 4);
  try {
    const binary = atob(base64Url.replaceAll('-', '+').replaceAll('_', '/') + padding);
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

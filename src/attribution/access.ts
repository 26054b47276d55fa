/** Verifies the tokens of Cloudflare Access: signature against the team's keys, issuer, audience and times. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { decodeBase64Url } from '../shared/encoding.ts';
import { isObject, type JsonObject, parseJson, readArray, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';

// Header, key URL and rotation (every 6 weeks; the previous key stays valid for 7 days):
// developers.cloudflare.com/cloudflare-one/access-controls/applications/http-apps/authorization-cookie/validating-json, of 2026-05-06,
// read 2026-11-22. Claims: …/authorization-cookie/application-token; a service token has `common_name` and no `email`.
export const ACCESS_HEADER = 'cf-access-jwt-assertion';
const KEYS_PATH = '/cdn-cgi/access/certs';

/** After this time the keys are read again. If that fails, known keys stay in use. */
const KEYS_TTL_MS = 60 * 60 * 1000;
/** Between two reads for unknown key ids, which callers can make up. */
const MIN_REREAD_MS = 60 * 1000;
const MAX_READ_MS = 5000;
const MAX_KEYS = 16;
const MAX_TOKEN_CHARS = 16 * 1024;
/** Clocks may differ by this much. */
const LEEWAY_SECONDS = 30;

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

export interface AccessSettings {
  /** `https://<team>.cloudflareaccess.com`, without a path. */
  readonly issuer: string;
  readonly audience: string;
}

export interface AccessPorts {
  readonly fetch: (url: string, init: { readonly signal: AbortSignal }) => Promise<Response>;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
}

export class AccessTokens {
  readonly #settings: AccessSettings;
  readonly #ports: AccessPorts;
  #keys: ReadonlyMap<string, CryptoKey> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(settings: AccessSettings, ports: AccessPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /** The e-mail address of the token's user, or the name of a service token; 401 for an invalid token, 503 without keys. */
  async verify(token: string): Promise<Result<string, ApiError>> {
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
    const user = readText(claims.email) ?? readText(claims.common_name);
    return isSigned && this.#isValid(claims) && user !== undefined ? ok(user) : failure(INVALID);
  }

  #isValid({ iss, aud, exp, nbf }: JsonObject): boolean {
    const { issuer, audience } = this.#settings;
    const now = this.#ports.now() / 1000;
    const audiences = typeof aud === 'string' ? [aud] : readArray(aud);
    const isCurrent = typeof exp === 'number' && exp + LEEWAY_SECONDS > now;
    const hasBegun = nbf === undefined || (typeof nbf === 'number' && nbf - LEEWAY_SECONDS <= now);
    return iss === issuer && audiences.includes(audience) && isCurrent && hasBegun;
  }

  async #findKey(kid: string): Promise<Result<CryptoKey, ApiError>> {
    const age = this.#ports.now() - this.#readAt;
    const isKnown = this.#keys.has(kid);
    const isFresh = age < (isKnown ? KEYS_TTL_MS : MIN_REREAD_MS);
    const isRead = isFresh || (await this.#readKeys());
    const key = this.#keys.get(kid);
    if (key !== undefined) return ok(key);
    return failure(isRead ? INVALID : UNREACHABLE);
  }

  /** Each request reads for itself, because a Worker's request cannot wait for another one's fetch. */
  async #readKeys(): Promise<boolean> {
    const controller = new AbortController();
    const cancelTimer = this.#ports.startTimer(MAX_READ_MS, () => controller.abort());
    try {
      const response = await this.#ports.fetch(this.#settings.issuer + KEYS_PATH, {
        signal: controller.signal,
      });
      const body: unknown = response.ok ? await response.json() : null;
      if (!isObject(body)) return false;
      const keys = new Map<string, CryptoKey>();
      for (const jwk of readArray(body.keys).slice(0, MAX_KEYS)) {
        if (!isObject(jwk) || typeof jwk.kid !== 'string' || jwk.kty !== 'RSA') continue;
        const { kty, n, e } = jwk;
        const members = { kty, n: readText(n) ?? '', e: readText(e) ?? '' };
        keys.set(jwk.kid, await crypto.subtle.importKey('jwk', members, ALGORITHM, false, ['verify']));
      }
      if (keys.size === 0) return false;
      this.#keys = keys;
      this.#readAt = this.#ports.now();
      return true;
    } catch {
      return false;
    } finally {
      cancelTimer();
    }
  }
}

// Neither has anything of the token, which names a person.
const INVALID = apiError(
  'invalid_api_key',
  'The token of Cloudflare Access is invalid or expired, or is of another application: sign in again',
);
const UNREACHABLE = apiError(
  'access_unreachable',
  'The keys of Cloudflare Access cannot be read now, so the token cannot be verified: try again',
);

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

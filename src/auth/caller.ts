/** Who calls: what a request's Authorization header means under each AUTH mode (K1, K3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { matchesAnyGlob } from '../canonical/glob.ts';
import { sameDigest, sha256 } from './digest.ts';
import { callerId, findKey, type KeyStore } from './keys.ts';

/** `keys`: a key of this deployment; `passthrough`: the caller's own provider key, sent on; `open`: none, for local runs. */
export type AuthMode = 'keys' | 'passthrough' | 'open';

export interface Caller {
  /** Under which usage is recorded: a key's id, the head of the hash of a caller's own credential, or `open`. */
  readonly keyId: string;
  /** Globs over the model addresses it may use; null allows every one. */
  readonly models: readonly string[] | null;
  /** The caller's own provider key, to be sent on (AUTH=passthrough), or null. */
  readonly credential: string | null;
}

export type CallerResult =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'error'; readonly error: ApiError };

/** The caller of a request, or a 401. No body is read and no upstream is asked before this. */
export async function identify(
  mode: AuthMode,
  headers: Headers,
  store: KeyStore,
  now: Date,
): Promise<CallerResult> {
  if (mode === 'open') return { kind: 'caller', caller: { keyId: 'open', models: null, credential: null } };
  const token = bearerToken(headers);
  if (token === null) return refused('Send your key as "Authorization: Bearer <key>"');
  if (mode === 'passthrough') {
    return {
      kind: 'caller',
      caller: { keyId: callerId(await sha256(token)), models: null, credential: token },
    };
  }
  const key = await findKey(store, token, now);
  if (key === null) return refused('This key is unknown, revoked or expired');
  return { kind: 'caller', caller: { keyId: key.id, models: key.models, credential: null } };
}

/** Whether the request bears the deployment's admin token; never, where none is set. */
export async function isAdmin(adminToken: string | null, headers: Headers): Promise<boolean> {
  const token = bearerToken(headers);
  if (adminToken === null || token === null) return false;
  return sameDigest(await sha256(adminToken), await sha256(token));
}

/** Whether the caller may use the model at this address. */
export function mayUse(caller: Caller, address: string): boolean {
  return caller.models === null || matchesAnyGlob(caller.models, address);
}

function bearerToken(headers: Headers): string | null {
  return /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1] ?? null;
}

function refused(message: string): CallerResult {
  return { kind: 'error', error: apiError('invalid_api_key', message) };
}

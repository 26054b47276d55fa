/** Who calls: what a request's Authorization header means under each AUTH mode (K1, K3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { callerId, type GatewayKey, type KnownKeys, sameDigest, sha256 } from './keys.ts';

/** `keys`: a key of this deployment; `passthrough`: the caller's own provider key, sent on; `open`: none, for local runs. */
export type AuthMode = 'keys' | 'passthrough' | 'open';

export interface Caller {
  /** Under which usage is recorded: a key's id, the head of the hash of a caller's own credential, or `open`. */
  readonly keyId: string;
  /** Globs over the model addresses it may use; null allows every one. */
  readonly models: readonly string[] | null;
  /** Its gateway key; null under any other AUTH mode. */
  readonly key: GatewayKey | null;
  /** The caller's own provider key, to be sent on (AUTH=passthrough), or null. */
  readonly credential: string | null;
}

const OPEN: Caller = { keyId: 'open', models: null, key: null, credential: null };

export type CallerResult =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'error'; readonly error: ApiError };

/**
 * The caller of a request, or a 401. No body is read and no upstream is asked before this.
 * @param now in ms since the epoch
 */
export async function identify(
  mode: AuthMode,
  adminToken: string | null,
  headers: Headers,
  keys: Pick<KnownKeys, 'find'>,
  now: number,
): Promise<CallerResult> {
  if (mode === 'open') return { kind: 'caller', caller: OPEN };
  const token = callerToken(headers);
  if (token === null) return refused('Send your key as "Authorization: Bearer <key>"');
  if (mode === 'passthrough') {
    // It would be sent to the provider.
    if (await isAdmin(adminToken, headers)) return refused("The admin token is not a provider's key");
    return {
      kind: 'caller',
      caller: { keyId: callerId(await sha256(token)), models: null, key: null, credential: token },
    };
  }
  const key = await keys.find(token, now);
  if (key === null) return refused('This key is unknown, revoked or expired');
  return { kind: 'caller', caller: { keyId: key.id, models: key.models, key, credential: null } };
}

/** Whether the request bears the deployment's admin token; never, where none is set. */
export async function isAdmin(adminToken: string | null, headers: Headers): Promise<boolean> {
  const token = callerToken(headers);
  return adminToken !== null && token !== null && isSameToken(adminToken, token);
}

async function isSameToken(a: string, b: string): Promise<boolean> {
  return sameDigest(await sha256(a), await sha256(b));
}

/** Whether its key has limits, which its ledger object holds (G1). */
export function isLimited({ key }: Caller): boolean {
  return key !== null && key.limits !== null;
}

/** Whether the caller may use the model at this address. */
export function mayUse(caller: Caller, address: string): boolean {
  return caller.models === null || matchesAnyGlob(caller.models, address);
}

/** As a bearer token, or in the headers that Azure's and Anthropic's clients send (Q12). */
export function callerToken(headers: Headers): string | null {
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1];
  return bearer ?? headers.get('api-key') ?? headers.get('x-api-key');
}

function refused(message: string): CallerResult {
  return { kind: 'error', error: apiError('invalid_api_key', message) };
}

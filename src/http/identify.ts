/** Who calls, on every route that a caller has: shielded by `LIMITER`, where that is bound, before KV is read (G7). */
import { type CallerResult, callerToken, identify } from '../auth/caller.ts';
import { callerId, sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { NO_KEY } from '../metering/refusals.ts';
import type { RequestContext } from './context.ts';
import type { Ports } from './ports.ts';

/** The bearer of the admin token, in place of a key's id. */
export const ADMIN = 'admin';

export type Identified = CallerResult & { readonly headers?: Readonly<Record<string, string>> };

/** The binding's period is 10 or 60 seconds; which of them, it does not tell. */
const RETRY_AFTER_SECONDS = '10';

/** The caller of a request, or the error for it: a 401, or a 429 of the shield. */
export async function identifyCaller(request: Request, context: RequestContext): Promise<Identified> {
  const identified = await findCaller(request, context);
  context.known.keyId = (await keyIdOf(identified, request, context)) ?? NO_KEY;
  return identified;
}

/** Under which id a refusal is counted. What callers make up has none: their wrong keys must not become rows. */
async function keyIdOf(
  identified: Identified,
  { headers }: Request,
  { hostCaller, knownKeys, knownCallers }: RequestContext,
): Promise<string | null> {
  if (hostCaller !== null) return hostCaller.keyId;
  if (identified.kind === 'caller') {
    const { keyId, credential } = identified.caller;
    return credential === null || knownCallers.isRemembered(keyId) ? keyId : null;
  }
  const token = callerToken(headers);
  return token === null ? null : await knownKeys.idOf(token);
}

async function findCaller(request: Request, context: RequestContext): Promise<Identified> {
  const { settings, knownKeys, arrivedAt } = context;
  const { limiter } = context.ports;
  if (limiter !== null && (await isShieldedFrom(request, limiter, context))) {
    const error = apiError('rate_limited', 'Requests come too fast: wait, then send fewer');
    return { kind: 'error', error, headers: { 'retry-after': RETRY_AFTER_SECONDS } };
  }
  if (context.hostCaller !== null) return { kind: 'caller', caller: context.hostCaller };
  const { auth, adminToken } = settings;
  const identified = identify(auth, adminToken, request.headers, knownKeys, arrivedAt);
  return await context.deadline.bound<Identified>(identified, () => ({
    kind: 'error',
    error: storeTooSlow(context),
  }));
}

/** Nothing else is waited for while a caller is identified. */
function storeTooSlow({ settings }: RequestContext): ApiError {
  const seconds = settings.timers.deadlineMs / 1000;
  return apiError('timeout', `The key store (WEIR_KV) did not answer within ${seconds} seconds: try again`);
}

/** Callers are told apart by whom the host says they are, or by what they send as a key, valid or not; others by their address. */
async function isShieldedFrom(
  request: Request,
  limiter: NonNullable<Ports['limiter']>,
  { ports, hostCaller }: RequestContext,
): Promise<boolean> {
  const key = hostCaller === null ? await shieldKey(request) : `caller/${hostCaller.keyId}`;
  try {
    return !(await limiter.limit({ key })).success;
  } catch (error) {
    // It only shields: without it the gateway works as well.
    ports.log({ event: 'limiter_failed', reason: String(error) });
    return false;
  }
}

async function shieldKey({ headers }: Request): Promise<string> {
  const token = callerToken(headers);
  const address = headers.get('cf-connecting-ip') ?? '';
  return token === null ? `address/${address}` : `key/${callerId(await sha256(token))}`;
}

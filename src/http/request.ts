/** What every route reads from a request: its caller, behind the rate limiter where one is bound, and its JSON body. */
import {
  accessCaller,
  accessToken,
  type Caller,
  callerToken,
  gatewayToken,
  hasUserLimits,
  identify,
  isAdmin,
  isLimited,
  OPEN,
  UNKNOWN_KEY,
  UNREADABLE_KEY,
  UNREADABLE_PEOPLE,
} from '../auth/caller.ts';
import { callerId } from '../auth/caller-ids.ts';
import type { UsageToken } from '../auth/key-views.ts';
import { TOKEN_PREFIX } from '../auth/keys.ts';
import { findUsageToken, isUsageToken } from '../auth/usage-tokens.ts';
import { type ApiError, apiError, type ErrorCode } from '../canonical/error.ts';
import { isUnreadable, type Secret } from '../canonical/secret.ts';
import { NO_KEY } from '../metering/refusals.ts';
import { howToList } from '../settings/feature-settings.ts';
import { ownerOfKey } from '../settings/key-owners.ts';
import {
  areWithinJsonBounds,
  isObject,
  isWithinJsonBounds,
  JSON_BOUNDS,
  type JsonObject,
  parseJsonExactly,
} from '../shared/json.ts';
import { jsonFault } from '../shared/json-fault.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { type MemoryGrant, SMALL_BYTES } from '../stream/memory.ts';
import { readBodyText, type TextRead } from '../stream/read-body.ts';
import type { Ports, RequestContext } from './context.ts';
import { isAdminPath } from './respond.ts';

/** Stands for the bearer of the admin token where a key's id is expected. */
export const ADMIN = 'admin';

/** The period of a `LIMITER` binding is 10 or 60 seconds, and the binding does not report which. */
const RETRY_AFTER_SECONDS = 10;

/** False for `/health`, and for preflights, which carry no credentials. */
export function hasCaller({ method, url }: Request, { settings }: RequestContext): boolean {
  return method !== 'OPTIONS' && new URL(url).pathname !== `${settings.basePath}/health`;
}

/**
 * Whether a token of Cloudflare Access is a credential of this request: on all routes but those of admins, where the header of Access alone
 * counts, and unless the token is the admin token.
 */
export async function takesAccessToken(
  { headers, url }: Request,
  { settings }: RequestContext,
): Promise<boolean> {
  const { auth, adminToken, basePath } = settings;
  if (accessToken(headers) === null || (auth !== 'keys' && auth !== 'access')) return false;
  if (isAdminPath(url, basePath)) return false;
  const admin = await isAdmin(adminToken, headers);
  return admin.kind === 'ok' && !admin.value;
}

/** The caller of a request, or the error to respond with: 401, or 429 from `LIMITER`. Sets the key id for the log and the counts. */
export async function identifyCaller(
  request: Request,
  context: RequestContext,
): Promise<Result<Caller, ApiError>> {
  const identified = await findCaller(request, context);
  context.known.keyId = (await countedKeyId(identified, request, context)) ?? NO_KEY;
  if (identified.kind === 'error') return identified;
  const unenforced = unenforcedError(identified.value, context);
  return unenforced === null ? ok(withAccessUser(identified.value, context)) : failure(unenforced);
}

/** The error for a key with a restriction that this deployment cannot enforce, because the feature is not listed. */
function unenforcedError(
  caller: Caller,
  { deployment: { enforces }, ports, requestId }: RequestContext,
): ApiError | null {
  const error =
    isLimited(caller) && !enforces.limits
      ? apiError('misconfigured', `This key has limits, and they need ledger(): ${howToList('ledger')}`)
      : (caller.facts.requiresUser || hasUserLimits(caller)) && !enforces.users
        ? userRequired()
        : null;
  if (error !== null) {
    const problems = [{ setting: 'the option features', message: error.message }];
    ports.log({ event: 'misconfigured', request_id: requestId, key_id: caller.keyId, problems });
  }
  return error;
}

/** The error for a key that requires a user, or limits each user, where users are not read. */
export function userRequired(): ApiError {
  const needs = `needs attribution(): ${howToList('attribution')}`;
  return apiError('misconfigured', `This key requires a user or has limits for each user, which ${needs}`);
}

/** Cloudflare Access names the user of a request if neither the key nor the host does. */
function withAccessUser(caller: Caller, { accessUser }: RequestContext): Caller {
  const { facts } = caller;
  return accessUser === null || facts.user !== null
    ? caller
    : { ...caller, facts: { ...facts, user: accessUser.name } };
}

/** Stands for the bearer of the admin token in the audit. Names in `ACCESS_ADMINS` have no space. */
const TOKEN_ADMIN = 'admin token';

/**
 * The admin who sent the request, or null: it has the admin token, or no credential and a token of Cloudflare Access of one of
 * `ACCESS_ADMINS`. Fails if another site may have sent it, or if the admin token could not be read.
 * @returns `admin token`, or the name at Cloudflare Access
 */
export async function identifyAdmin(
  request: Request,
  { settings, accessUser }: RequestContext,
): Promise<Result<string | null, ApiError>> {
  const { headers } = request;
  const byToken = await isAdmin(settings.adminToken, headers);
  if (byToken.kind === 'error') return byToken;
  if (byToken.value) return ok(TOKEN_ADMIN);
  if (accessUser?.isAdmin !== true || callerToken(headers) !== null) return ok(null);
  const problem = crossSiteProblem(request);
  return problem === null ? ok(accessUser.name) : failure(problem);
}

/**
 * The error for a request that another site may have caused the user's browser to send. The token of Cloudflare Access is a cookie,
 * which a browser adds to all requests.
 */
function crossSiteProblem(request: Request): ApiError | null {
  const { url, headers } = request;
  const site = headers.get('sec-fetch-site') ?? 'none';
  const origin = headers.get('origin');
  const isOwnOrigin = origin === null || origin === new URL(url).origin;
  // A form cannot send this type, and a script of another origin only after a preflight.
  const isJson = !hasBody(request) || JSON_BODY.test(headers.get('content-type') ?? '');
  return OWN_SITES.includes(site) && isOwnOrigin && isJson ? null : CROSS_SITE;
}

/** workerd has an empty stream as the body of some requests without one. Routes ignore the body of a `DELETE`, which no form sends. */
function hasBody({ method, headers, body }: Request): boolean {
  return method !== 'DELETE' && body !== null && headers.get('content-length') !== '0';
}

/** `none`: the user typed the address. Clients other than browsers do not send the header. */
const OWN_SITES = ['same-origin', 'none'];
const JSON_BODY = /^application\/json *(;|$)/i;
const CROSS_SITE = apiError(
  'cross_site',
  'With Cloudflare Access instead of a key, a request has a body of the type application/json or none, and comes from a page of this deployment or from no web page',
);

const READS_USAGE = apiError(
  'invalid_api_key',
  'This token reads usage, records, refusals and the list of models, and nothing else: send a key (weir_…)',
);

/**
 * The token for usage that the request has; null: it has none. Fails if the token is unknown, revoked or expired, or if requests come
 * too fast. Sets the key id for the log and the counts.
 */
export async function identifyUsageToken(
  request: Request,
  context: RequestContext,
): Promise<Result<UsageToken | null, ApiError>> {
  const token = callerToken(request.headers);
  if (token === null || !isUsageToken(token)) return ok(null);
  const { limiter, store } = context.ports;
  if (limiter !== null && (await isOverLimit(request, limiter, context))) return failure(TOO_FAST);
  const reading = findUsageToken(store, token, context.arrivedAt);
  const found = await context.deadline.bound<UsageToken | null | 'late'>(reading, () => 'late');
  if (found === 'late') return failure(storeTooSlow(context));
  if (found === null)
    return failure(apiError('invalid_api_key', 'This token is unknown, revoked or expired'));
  context.known.keyId = found.id;
  return ok(found);
}

const TOO_FAST: ApiError = {
  ...apiError('rate_limited', 'Requests come too fast: wait, then send fewer'),
  retryAfterSeconds: RETRY_AFTER_SECONDS,
};

/** The error for a token that is no valid gateway key. It says what the token looks like. */
async function unknownKey(headers: Headers, adminToken: Secret): Promise<ApiError> {
  const token = callerToken(headers) ?? '';
  if (token.startsWith(TOKEN_PREFIX)) return UNKNOWN_KEY;
  const admin = await isAdmin(adminToken, headers);
  const owner = ownerOfKey(token);
  const looks =
    owner === null
      ? 'and this is none'
      : `and this looks like a key of ${owner}, which the deployment has itself`;
  const message =
    admin.kind === 'ok' && admin.value
      ? 'The admin token is no gateway key: it creates keys (POST /admin/keys) and reads usage, and calls no model'
      : `Weir's keys begin with ${TOKEN_PREFIX}, ${looks}: send a gateway key`;
  return apiError('invalid_api_key', message);
}

async function findCaller(request: Request, context: RequestContext): Promise<Result<Caller, ApiError>> {
  const { settings, callers, accessUser, arrivedAt } = context;
  const { limiter } = context.ports;
  // Before KV is read, so that a flood of requests costs no KV reads.
  if (limiter !== null && (await isOverLimit(request, limiter, context))) return failure(TOO_FAST);
  if (context.hostCaller !== null) return ok(context.hostCaller);
  if (isUsageToken(callerToken(request.headers) ?? '')) return failure(READS_USAGE);
  const { auth, adminToken } = settings;
  const isByAccess = accessUser !== null && (auth === 'access' || accessUser.isCredential);
  if (isByAccess && gatewayToken(request.headers) === null) {
    const problem = accessUser.isCredential ? null : crossSiteProblem(request);
    if (problem !== null) return failure(problem);
    const person = await inTime(accessCaller(accessUser, callers.people, callers.teams, arrivedAt), context);
    if (person.kind === 'error' && person.error === UNREADABLE_PEOPLE) {
      const entry = { request_id: context.requestId, key_id: String(accessUser.keyId) };
      context.ports.log({
        event: 'ledger_unreadable',
        ...entry,
        reason: 'the teams of people are not readable',
      });
    }
    return person;
  }
  if (auth === 'open') return ok(OPEN);
  const found = await inTime(
    identify(auth, adminToken, request.headers, callers.keys, callers.teams, arrivedAt),
    context,
  );
  if (found.kind === 'error' && found.error === UNKNOWN_KEY)
    return failure(await unknownKey(request.headers, adminToken));
  if (found.kind === 'error' && found.error === UNREADABLE_KEY) {
    const token = callerToken(request.headers) ?? '';
    const entry = { request_id: context.requestId, key_id: await callerId('key', token) };
    context.ports.log({ event: 'ledger_unreadable', ...entry, reason: 'its entry in KV is not readable' });
  }
  return found;
}

/** A caller whose key or team is read from KV, before the request's deadline. */
function inTime(reading: Promise<Result<Caller, ApiError>>, context: RequestContext) {
  return context.deadline.bound<Result<Caller, ApiError>>(reading, () => failure(storeTooSlow(context)));
}

function storeTooSlow({ settings }: RequestContext): ApiError {
  const seconds = settings.timers.deadlineMs / 1000;
  return apiError('timeout', `The key store (WEIR_KV) did not answer within ${seconds} seconds: try again`);
}

/** Who reads usage, or the list of models. */
export type Reader =
  | { readonly kind: 'admin' }
  | { readonly kind: 'token'; readonly token: UsageToken }
  | { readonly kind: 'caller'; readonly caller: Caller };

/**
 * The admin, a token that reads usage, or a caller. Sets the key id for the log and the counts.
 * @param admin the result of {@link identifyAdmin}; `ok(null)` where the admin is a caller like others
 */
export async function identifyReader(
  request: Request,
  context: RequestContext,
  admin: Result<string | null, ApiError>,
): Promise<Result<Reader, ApiError>> {
  const isUnknown = admin.kind === 'error' && admin.error.code === 'secret_unreadable';
  if (admin.kind === 'error' && !isUnknown) return admin;
  if (admin.kind === 'ok' && admin.value !== null) {
    context.known.keyId = ADMIN;
    return ok({ kind: 'admin' });
  }
  const token = await identifyUsageToken(request, context);
  if (token.kind === 'error') return token;
  if (token.value !== null) return ok({ kind: 'token', token: token.value });
  const identified = await identifyCaller(request, context);
  // What is neither a gateway key nor known to the host may be the admin's token.
  const isKnown = identified.kind === 'ok' && (identified.value.key !== null || context.hostCaller !== null);
  if (isUnknown && !isKnown) return admin;
  return identified.kind === 'error' ? identified : ok({ kind: 'caller', caller: identified.value });
}

/**
 * Limits by the host's caller, else by the key that was sent, valid or not, else by the user of Cloudflare Access, else
 * by the IP address.
 */
async function isOverLimit(
  request: Request,
  limiter: NonNullable<Ports['limiter']>,
  context: RequestContext,
): Promise<boolean> {
  const { ports, hostCaller } = context;
  const key = hostCaller === null ? await limiterKey(request, context) : `caller/${hostCaller.keyId}`;
  try {
    return !(await limiter.limit({ key })).success;
  } catch (error) {
    // The gateway works without the limiter.
    ports.log({ event: 'limiter_failed', reason: String(error) });
    return false;
  }
}

async function limiterKey(request: Request, { settings, accessUser }: RequestContext): Promise<string> {
  const { headers } = request;
  const isByAccess = settings.auth === 'access' || accessUser?.isCredential === true;
  // Users of Access may send any other credential: SDKs do not work without one.
  const token = gatewayToken(headers) ?? (isByAccess ? null : callerToken(headers));
  if (token !== null) return `key/${await callerId('key', token)}`;
  return accessUser === null || isUnreadable(accessUser.keyId)
    ? `address/${headers.get('cf-connecting-ip') ?? ''}`
    : `caller/${accessUser.keyId}`;
}

/**
 * The key id under which a refusal of this request is counted, or null. Unknown keys and unknown provider credentials have none,
 * so that made-up credentials create no rows.
 */
async function countedKeyId(
  identified: Result<Caller, ApiError>,
  { headers }: Request,
  { hostCaller, callers }: RequestContext,
): Promise<string | null> {
  if (hostCaller !== null) return hostCaller.keyId;
  if (identified.kind === 'ok') {
    const { keyId, credential } = identified.value;
    return credential === null || callers.accepted.isRemembered(keyId) ? keyId : null;
  }
  const token = callerToken(headers);
  return token === null ? null : await callers.keys.idOf(token);
}

/** Fields of a request's body. Providers have some dozens, and each field is copied several times. */
export const MAX_BODY_FIELDS = 1000;

export interface RequestBody {
  readonly body: JsonObject;
  /** The size of the body as it was sent. */
  readonly bytes: number;
  /** The memory that the body takes. The caller must release it. */
  readonly grant: MemoryGrant;
}

/** The JSON object in the request's body. Integers beyond 2^53 keep all digits. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  context: RequestContext,
): Promise<Result<RequestBody, ApiError>> {
  const bodyText = await readInTime(request, maxBytes, context);
  if (bodyText.kind !== 'text') {
    const encoding = bodyText.kind === 'unreadable' ? encodingOf(request, '') : null;
    return failure(encoding ?? apiError(...REFUSALS[bodyText.kind](maxBytes, context)));
  }
  const { text, bytes, grant } = bodyText;
  const isBounded = bytes > SMALL_BYTES || isWithinJsonBounds(text);
  await grant.pause();
  const body = isBounded ? parseJsonExactly(text) : undefined;
  if (isObject(body) && Object.keys(body).length <= MAX_BODY_FIELDS) {
    return ok({ body, bytes, grant });
  }
  const message = isBounded ? bodyFault(text, body) : TOO_NESTED;
  const encoding = body === undefined ? encodingOf(request, text) : null;
  grant.release();
  return failure(encoding ?? apiError('invalid_json', message));
}

/** Compressions of HTTP: https://www.iana.org/assignments/http-parameters (from memory, 2026-11-28). */
const CODINGS = ['gzip', 'x-gzip', 'deflate', 'br', 'zstd', 'compress'];
const WIDE_CHARSET = /\bcharset="?(utf-(?:16|32)(?:le|be)?)\b/i;
/** A control character and a byte that is not UTF-8, as gzip has them. */
const GZIP_START = /^[^ -\uffff\s]\ufffd/;
/** Two bytes that are not UTF-8 where a UTF-16 body begins, or the null bytes of UTF-16 and UTF-32 without such a mark. */
const WIDE_START = /^(?:\ufffd\ufffd|(?:[^\0]\0){2}|(?:\0[^\0]){2}|[^\0]\0{3}|\0{3}[^\0])/;

/** The error for a body that is not JSON because it is compressed, or in another encoding than UTF-8; null: it is neither. */
function encodingOf({ headers }: Request, text: string): ApiError | null {
  const codings = (headers.get('content-encoding') ?? '').toLowerCase().split(',');
  const coding = codings.map((name) => name.trim()).find((name) => CODINGS.includes(name));
  const charset = WIDE_CHARSET.exec(headers.get('content-type') ?? '')?.[1]?.toUpperCase();
  const name =
    coding ?? charset ?? (GZIP_START.test(text) ? 'gzip' : WIDE_START.test(text) ? 'UTF-16' : null);
  if (name === null) return null;
  const message = `The body is encoded as ${name}, which is not read here: send JSON as UTF-8, without a content-encoding`;
  return apiError('unsupported_encoding', message);
}

const TOO_NESTED = `The body has more than ${JSON_BOUNDS}: send less at once`;

function bodyFault(text: string, body: unknown): string {
  return isObject(body)
    ? `The body has more than ${MAX_BODY_FIELDS} fields: send fewer`
    : `The body must be a JSON object, and ${jsonFault(text, body)}`;
}

function readInTime(
  request: Request,
  maxBytes: number,
  { deadline, takeMemory }: RequestContext,
): Promise<TextRead> {
  const watch = (onLate: () => void) => deadline.watch(onLate);
  return readBodyText({ message: request, maxBytes, watch, isReadable: areWithinJsonBounds }, takeMemory);
}

type BodyRefusal = (maxBytes: number, context: RequestContext) => readonly [code: ErrorCode, message: string];

const REFUSALS: Readonly<Record<Exclude<TextRead['kind'], 'text'>, BodyRefusal>> = {
  unreadable: () => ['invalid_json', TOO_NESTED],
  too_large: (maxBytes) => ['request_too_large', `The request's body is larger than ${maxBytes} bytes`],
  late: (_maxBytes, { settings }) => [
    'request_timeout',
    `The request's body did not arrive within ${settings.timers.deadlineMs / 1000} seconds`,
  ],
  // The client closed the connection, so the response is not read.
  broken: () => ['invalid_request', "The request's body ended before it was complete"],
  memory_exhausted: () => ['overloaded', 'Too many large requests are being read at once: try again'],
};

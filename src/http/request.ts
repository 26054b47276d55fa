/** What every route reads from a request: its caller, behind the rate limiter where one is bound, and its JSON body. */
import { type Caller, callerToken, identify } from '../auth/caller.ts';
import { callerId, sha256 } from '../auth/keys.ts';
import { type ApiError, apiError, type ErrorCode } from '../canonical/error.ts';
import { NO_KEY } from '../metering/refusals.ts';
import {
  isObject,
  isWithinJsonBounds,
  type JsonObject,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  parseJsonExactly,
} from '../shared/json.ts';
import { jsonFault } from '../shared/json-fault.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { Lease } from '../stream/memory.ts';
import { readBodyText, type TextRead } from '../stream/read-body.ts';
import type { Ports, RequestContext } from './context.ts';

/** Stands for the bearer of the admin token where a key's id is expected. */
export const ADMIN = 'admin';

/** The period of a `LIMITER` binding is 10 or 60 seconds, and the binding does not report which. */
const RETRY_AFTER_SECONDS = 10;

/** The caller of a request, or the error to respond with: 401, or 429 from `LIMITER`. Sets the key id for the log and the counts. */
export async function identifyCaller(
  request: Request,
  context: RequestContext,
): Promise<Result<Caller, ApiError>> {
  const identified = await findCaller(request, context);
  context.known.keyId = (await countedKeyId(identified, request, context)) ?? NO_KEY;
  return identified;
}

async function findCaller(request: Request, context: RequestContext): Promise<Result<Caller, ApiError>> {
  const { settings, knownKeys, arrivedAt } = context;
  const { limiter } = context.ports;
  // Before KV is read, so that a flood of requests costs no KV reads.
  if (limiter !== null && (await isOverLimit(request, limiter, context))) {
    const error = apiError('rate_limited', 'Requests come too fast: wait, then send fewer');
    return failure({ ...error, retryAfterSeconds: RETRY_AFTER_SECONDS });
  }
  if (context.hostCaller !== null) return ok(context.hostCaller);
  const { auth, adminToken } = settings;
  const identified = identify(auth, adminToken, request.headers, knownKeys, arrivedAt);
  return await context.deadline.bound<Result<Caller, ApiError>>(identified, () =>
    failure(storeTooSlow(context)),
  );
}

function storeTooSlow({ settings }: RequestContext): ApiError {
  const seconds = settings.timers.deadlineMs / 1000;
  return apiError('timeout', `The key store (WEIR_KV) did not answer within ${seconds} seconds: try again`);
}

/** Limits by the host's caller, else by the key that was sent, valid or not, else by the IP address. */
async function isOverLimit(
  request: Request,
  limiter: NonNullable<Ports['limiter']>,
  { ports, hostCaller }: RequestContext,
): Promise<boolean> {
  const key = hostCaller === null ? await limiterKey(request) : `caller/${hostCaller.keyId}`;
  try {
    return !(await limiter.limit({ key })).success;
  } catch (error) {
    // The gateway works without the limiter.
    ports.log({ event: 'limiter_failed', reason: String(error) });
    return false;
  }
}

async function limiterKey({ headers }: Request): Promise<string> {
  const token = callerToken(headers);
  const address = headers.get('cf-connecting-ip') ?? '';
  return token === null ? `address/${address}` : `key/${callerId(await sha256(token))}`;
}

/**
 * The key id under which a refusal of this request is counted, or null. Unknown keys and unknown provider credentials have none,
 * so that made-up credentials create no rows.
 */
async function countedKeyId(
  identified: Result<Caller, ApiError>,
  { headers }: Request,
  { hostCaller, knownKeys, knownCallers }: RequestContext,
): Promise<string | null> {
  if (hostCaller !== null) return hostCaller.keyId;
  if (identified.kind === 'ok') {
    const { keyId, credential } = identified.value;
    return credential === null || knownCallers.isRemembered(keyId) ? keyId : null;
  }
  const token = callerToken(headers);
  return token === null ? null : await knownKeys.idOf(token);
}

/** Fields of a request's body. Providers have some dozens, and each field is copied several times. */
export const MAX_BODY_FIELDS = 1000;

export interface RequestBody {
  readonly body: JsonObject;
  /** The size of the body as it was sent. */
  readonly bytes: number;
  /** The memory that the body takes. The caller must release it. */
  readonly lease: Lease;
}

/** The JSON object in the request's body. Integers beyond 2^53 keep all digits. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  context: RequestContext,
): Promise<Result<RequestBody, ApiError>> {
  const read = await readInTime(request, maxBytes, context);
  if (read.kind !== 'text') return failure(apiError(...REFUSALS[read.kind](maxBytes, context)));
  const { text, bytes, lease } = read;
  const isBounded = isWithinJsonBounds(text);
  await lease.pause();
  const body = isBounded ? parseJsonExactly(text) : undefined;
  if (isObject(body) && Object.keys(body).length <= MAX_BODY_FIELDS) {
    return ok({ body, bytes, lease });
  }
  const message = isBounded ? bodyFault(text, body) : TOO_NESTED;
  lease.release();
  return failure(apiError('invalid_json', message));
}

const TOO_NESTED = `The body has more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values: send less at once`;

function bodyFault(text: string, body: unknown): string {
  return isObject(body)
    ? `The body has more than ${MAX_BODY_FIELDS} fields: send fewer`
    : `The body must be a JSON object, and ${jsonFault(text, body)}`;
}

function readInTime(
  request: Request,
  maxBytes: number,
  { deadline, leaseMemory }: RequestContext,
): Promise<TextRead> {
  const watch = (onLate: () => void) => deadline.watch(onLate);
  return readBodyText({ message: request, maxBytes, watch }, leaseMemory);
}

type Refusal = (maxBytes: number, context: RequestContext) => readonly [code: ErrorCode, message: string];

const REFUSALS: Readonly<Record<Exclude<TextRead['kind'], 'text'>, Refusal>> = {
  too_large: (maxBytes) => ['request_too_large', `The request's body is larger than ${maxBytes} bytes`],
  late: (_maxBytes, { settings }) => [
    'request_timeout',
    `The request's body did not arrive within ${settings.timers.deadlineMs / 1000} seconds`,
  ],
  // The client closed the connection, so the response is not read.
  broken: () => ['invalid_request', "The request's body ended before it was complete"],
  memory_exhausted: () => ['overloaded', 'Too many large requests are being read at once: try again'],
};

/**
 * Calls an upstream: sends the allowed headers of the client, turns refusals and failed connections into errors, and
 * opens the response.
 */
import { sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import {
  brokenConnection,
  removeSecrets,
  type Upstream,
  unwrapErrorList,
} from '../canonical/upstream-error.ts';
import type { CredentialMaker, CredentialPorts } from '../credentials/credential.ts';
import type { CredentialFailure } from '../credentials/exchange.ts';
import { bearer } from '../providers/credential.ts';
import type { Profile } from '../providers/provider.ts';
import {
  isObject,
  isWithinJsonBounds,
  JSON_BOUNDS,
  type JsonObject,
  parseJsonExactly,
} from '../shared/json.ts';
import { jsonFault } from '../shared/json-fault.ts';
import { MAX_RESPONSE_BYTES } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { MemoryGrant, TakeMemory } from '../stream/memory.ts';
import { readBodyText, readTextStart } from '../stream/read-body.ts';
import type { Clock } from '../stream/timers.ts';
import { checkHint, classifyRefusal, readRetryDelay, type UpstreamErrorContext } from './errors.ts';
import { MAX_REFUSED_CONNECTION_MS, showsNoWork } from './evidence.ts';

/**
 * At most this much of an upstream's error body is read, and its rest is awaited for so long: the status alone decides
 * whether to retry.
 */
const MAX_ERROR_BODY = { maxBytes: 64 * 1024, maxMs: 5000 } as const;

/** The cause of a failed connection, in the log and the record. */
const MAX_CAUSE_CHARS = 300;

export type Fetch = (input: Request | string, init?: RequestInit) => Promise<Response>;

export interface UpstreamRequest {
  readonly upstream: UpstreamErrorContext;
  readonly url: string;
  /** JSON text. */
  readonly body: string;
  readonly isStreamed: boolean;
  /** What a streamed request accepts. Absent: server-sent events. */
  readonly streamType?: string | undefined;
  /** The client's headers. Only the allowed ones are sent. */
  readonly clientHeaders: Headers;
  /** Names of further client headers to send with passthrough, such as `anthropic-beta`. They take precedence over `apiHeaders`. */
  readonly passedHeaders: readonly string[];
  /** Entries of `anthropic-beta` that the provider has refused: they are not sent. Absent: none. */
  readonly refusedBetas?: readonly string[];
  /** Part of the idempotency key, because all callers of a deployment share one credential. */
  readonly callerId: string;
  /** The headers of every request to this provider, with the credential unless that is made. */
  readonly apiHeaders: Readonly<Record<string, string>>;
  /** Makes the credential of each request; null: `apiHeaders` have it. */
  readonly credential: BoundCredential | null;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Makes credentials, with what it needs of the request that they are for. */
export interface BoundCredential {
  readonly maker: CredentialMaker;
  readonly ports: CredentialPorts;
}

/** The response has a success status. */
export type UpstreamResult = Result<Response, UpstreamFailure>;

export interface UpstreamFailure {
  readonly error: ApiError;
  readonly reason: 'no_response' | 'unsent' | 'over_budget';
  readonly headers: Headers;
  /** The status of the upstream's refusal; null if there was no response. */
  readonly status: number | null;
  /** The URL and the reason, for operators. It goes to the log and the record, never to a client (E4). */
  readonly cause: string | null;
  /** The upstream did no work that it may bill, as far as its response shows. */
  readonly showsNoWork: boolean;
}

/** The client's headers that are sent upstream unchanged: tracing, nothing that identifies the client. */
const REQUEST_HEADERS = ['traceparent', 'tracestate', 'x-client-request-id'];

/** The upstream's headers that are sent to the client. */
const RESPONSE_HEADERS = [
  'retry-after',
  'retry-after-ms',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
];

/** Never rejects. */
export async function callUpstream(fetch: Fetch, request: UpstreamRequest): Promise<UpstreamResult> {
  const { upstream, signal, clock, clientHeaders, callerId } = request;
  let sentAt = clock.now();
  try {
    const headers = requestHeaders(request);
    const key = readHeader(clientHeaders, 'idempotency-key');
    // A JSON list, so that different pairs of caller and key never become the same text.
    if (key !== null) headers['idempotency-key'] = await sha256(JSON.stringify([callerId, key]));
    sentAt = clock.now();
    const { credential, url, body: json } = request;
    // A redirect could carry the credential to another host.
    const init = { method: 'POST', headers, body: json, redirect: 'manual', signal } as const;
    const sent =
      credential === null
        ? { response: await fetch(url, init), text: null, hint: null }
        : await sendWithCredential(fetch, url, init, credential);
    if ('error' in sent) return failure(withoutCredential(sent));
    const { response, hint } = sent;
    if (response.ok) return ok(response);
    const body = sent.text ?? (await readTextStart(response.body, MAX_ERROR_BODY, clock));
    const { status } = response;
    const stated = readRetryDelay(body, upstream);
    const refusalHeaders = withRetryAfter(response.headers, stated);
    const classified = withHint(classifyRefusal({ status, body }, upstream), status, hint, upstream);
    const error = withRetryDelay(classified, stated ?? readSeconds(response.headers.get('retry-after')));
    const what = `answered ${status}${hint === null ? checkHint(suspectSetting(status, upstream)) : `: ${hint}`}`;
    const isOfSetting = hint !== null || SETTING_STATUSES.has(status);
    const cause = isOfSetting ? causeOf(request.url, upstream, what) : null;
    return failure({
      error,
      reason: 'no_response',
      headers: refusalHeaders,
      status,
      cause,
      showsNoWork: showsNoWork(status, body),
    });
  } catch (reason) {
    const message = `${upstream.name} could not be reached${checkHint(upstream.urlSetting)}`;
    const what = reasonOf(reason) + checkHint(upstream.urlSetting);
    const cause = signal.aborted ? null : causeOf(request.url, upstream, what);
    const error = apiError('upstream_unreachable', message);
    const isRefused = !signal.aborted && clock.now() - sentAt <= MAX_REFUSED_CONNECTION_MS;
    const headers = new Headers();
    return failure({ error, reason: 'no_response', headers, status: null, cause, showsNoWork: isRefused });
  }
}

interface AnsweredRequest {
  readonly response: Response;
  /** The beginning of a refusal, if it was read. */
  readonly text: string | null;
  /** What is wrong with the credential, where the refusal is about it. */
  readonly hint: string | null;
}

interface UnsignedInit {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** Sends a request with a credential that is made for it, and once more if the refusal shows that another one may be accepted. */
export async function sendWithCredential(
  fetch: Fetch,
  url: string,
  init: UnsignedInit,
  { maker, ports }: BoundCredential,
): Promise<AnsweredRequest | CredentialFailure> {
  const { method, headers, body } = init;
  for (let isLast = false; ; isLast = true) {
    const made = await maker.make({ method, url, headers, body }, ports);
    if (made.kind === 'error') return made.error;
    const response = await fetch(url, { ...init, headers: made.value.headers, body: made.value.body });
    if (response.ok) return { response, text: null, hint: null };
    const text = await readTextStart(response.body, MAX_ERROR_BODY, ports.clock);
    const refused = { status: response.status, headers: response.headers, text };
    const verdict = made.value.judge(refused, isLast || init.signal.aborted);
    if (verdict?.kind !== 'again') return { response, text, hint: verdict?.hint ?? null };
  }
}

function withoutCredential({ error, cause }: CredentialFailure): UpstreamFailure {
  return {
    error,
    reason: 'no_response',
    headers: new Headers(),
    status: null,
    cause: cause.slice(0, MAX_CAUSE_CHARS),
    showsNoWork: true,
  };
}

/** The error of a refused credential, with what is wrong with it. */
function withHint(error: ApiError, status: number, hint: string | null, { name }: Upstream): ApiError {
  if (hint === null) return error;
  const refused = apiError(
    'upstream_credential',
    `${name} refused this deployment's credential (${status}): ${hint}`,
  );
  return { ...refused, ...(error.refusal !== undefined && { refusal: error.refusal }) };
}

/** Refusals that a wrong setting can cause. */
const SETTING_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

function suspectSetting(
  status: number,
  { keySetting, urlSetting }: UpstreamErrorContext,
): string | null | undefined {
  return status === 404 ? urlSetting : keySetting;
}

/** The URL and the failure, for the log and the record. */
export function causeOf(
  url: string,
  upstream: Pick<Upstream, 'secret' | 'madeSecrets'>,
  what: string,
): string {
  // The query may contain a secret.
  const [address = ''] = url.split('?');
  return removeSecrets(`${address}: ${what}`, upstream).slice(0, MAX_CAUSE_CHARS);
}

/** The message of a failed fetch without its final period. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

/** Adds the delay that the body states, if the headers have none. Routing and clients read it from the header. */
function withRetryAfter(headers: Headers, seconds: number | undefined): Headers {
  if (seconds === undefined || headers.has('retry-after')) return headers;
  const extended = new Headers(headers);
  extended.set('retry-after', String(Math.ceil(seconds)));
  return extended;
}

/** A number of seconds in a header; undefined: it is none, or a date. */
export function readSeconds(text: string | null): number | undefined {
  return text !== null && /^ *\d{1,9}(?:\.\d{1,9})? *$/.test(text) ? Number(text) : undefined;
}

function withRetryDelay(error: ApiError, seconds: number | undefined): ApiError {
  const { refusal } = error;
  if (refusal === undefined || seconds === undefined) return error;
  return { ...error, refusal: { ...refusal, retryAfterSeconds: seconds } };
}

/** A plain object, because the runtime converts it in one step. */
function requestHeaders(request: UpstreamRequest): Record<string, string> {
  const { clientHeaders, passedHeaders, apiHeaders, isStreamed, refusedBetas = [] } = request;
  const { streamType = 'text/event-stream' } = request;
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: isStreamed ? streamType : 'application/json',
    'user-agent': 'weir',
  };
  for (const name of REQUEST_HEADERS) {
    const value = readHeader(clientHeaders, name);
    if (value !== null) headers[name] = value;
  }
  // Configured header names may be in any case.
  for (const [name, value] of Object.entries(apiHeaders)) headers[name.toLowerCase()] = value;
  for (const name of passedHeaders) {
    const value = readHeader(clientHeaders, name, LONG_VALUE);
    if (value !== null) headers[name.toLowerCase()] = value;
  }
  withoutBetas(headers, refusedBetas);
  return headers;
}

function withoutBetas(headers: Record<string, string>, refused: readonly string[]): void {
  const betas = headers['anthropic-beta'];
  if (refused.length === 0 || betas === undefined) return;
  const kept = betas.split(',').filter((entry) => !refused.includes(entry.trim()));
  if (kept.length === 0) delete headers['anthropic-beta'];
  else headers['anthropic-beta'] = kept.join(',');
}

/** @param passed names of further headers to send to the client with passthrough */
export function pickResponseHeaders(headers: Headers, passed: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of passed.length === 0 ? RESPONSE_HEADERS : [...RESPONSE_HEADERS, ...passed]) {
    const value = headers.get(name);
    if (value !== null && isQuantity(value)) picked[name] = value;
  }
  return picked;
}

const MAX_QUANTITY_CHARS = 64;
const NAMES_OF_TIMES =
  /\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|GMT|UTC)\b/g;

/** Whether a value is a number, a duration such as `1m30.5s`, or a time. Other texts may quote the request. */
function isQuantity(value: string): boolean {
  if (value.length > MAX_QUANTITY_CHARS) return false;
  return /^(?=.*\d)[\d.:,;=+ dhmsuwTZ-]+$/.test(value.replace(NAMES_OF_TIMES, ''));
}

/** None of these headers needs more, and some clients fail on longer ones. */
const HEADER_VALUE = /^[\x20-\x7e]{0,512}$/;

/** For lists of betas: Claude Code sends a dozen. */
const LONG_VALUE = /^[\x20-\x7e]{0,4096}$/;

/** Only printable ASCII: some runtimes send anything else unchanged. */
function readHeader(headers: Headers, name: string, form = HEADER_VALUE): string | null {
  const value = headers.get(name);
  return value !== null && form.test(value) ? value : null;
}

/**
 * The headers of a request to a provider: those of its API, its credential, and those of the deployment, which take precedence.
 * @param secret `""` for no credential
 */
export function apiHeaders(
  { headers = {}, credential = bearer }: Pick<Profile, 'headers' | 'credential'>,
  secret: string,
  configured: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return { ...headers, ...(secret === '' ? {} : credential(secret)), ...configured };
}

export type ResponseBody =
  | { readonly kind: 'events'; readonly events: ReadableStream<Uint8Array> }
  /** The object may be an error. Its work has begun: release the grant. The text is null where it is a list with the object. */
  | {
      readonly kind: 'object';
      readonly object: JsonObject;
      readonly text: string | null;
      readonly grant: MemoryGrant;
    };

/**
 * Opens a response with a success status. An upstream may send an event stream where an object was requested, and the reverse.
 * @param isStreamRequested decides for a content type that is neither of the two
 */
export async function openResponse(
  response: Response,
  upstream: Upstream,
  isStreamRequested: boolean,
  takeMemory: TakeMemory,
): Promise<Result<ResponseBody, ApiError>> {
  const { body } = response;
  if (body !== null && isEventStream(response, isStreamRequested))
    return ok({ kind: 'events', events: body });
  const bodyText = await readBodyText({ message: response, maxBytes: MAX_RESPONSE_BYTES }, takeMemory);
  if (bodyText.kind === 'too_large') return failure(responseTooLarge(upstream));
  if (bodyText.kind === 'memory_exhausted') return failure(memoryExhausted(upstream));
  if (bodyText.kind !== 'text') return failure(brokenConnection(upstream));
  const { text, grant } = bodyText;
  const isBounded = isWithinJsonBounds(text);
  await grant.pause();
  // A tool call's input may be a JSON object, in which an id must not be rounded.
  const value = isBounded ? parseJsonExactly(text) : undefined;
  const object = unwrapErrorList(value);
  if (isObject(object)) return ok({ kind: 'object', object, text: object === value ? text : null, grant });
  grant.release();
  return failure(isBounded ? notAnObject(upstream, text, value) : tooNested(upstream));
}

function isEventStream(response: Response, isStreamRequested: boolean): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (/event-?stream/i.test(type)) return true;
  return isStreamRequested && !/json|html/i.test(type);
}

/** The response of an upstream exceeds {@link MAX_RESPONSE_BYTES}. */
export function responseTooLarge(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent a response larger than ${MAX_RESPONSE_BYTES} bytes`;
  return apiError('upstream_event_too_large', message);
}

/** There was no memory for a large response in time. */
export function memoryExhausted(upstream: Upstream): ApiError {
  const message = `Too many large responses are being read at once, including one of ${upstream.name}: try again`;
  return apiError('overloaded', message);
}

function tooNested(upstream: Upstream): ApiError {
  const message = `${upstream.name} sent a response of more than ${JSON_BOUNDS}`;
  return apiError('upstream_invalid', message);
}

/** The message says whether the text ends too early, and has nothing of it. */
function notAnObject(upstream: Upstream, text: string, value: unknown): ApiError {
  const message = `${upstream.name} sent a response of ${text.length} characters that ${jsonFault(text, value)}`;
  return apiError('upstream_invalid', message);
}

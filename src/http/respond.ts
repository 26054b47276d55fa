/** Makes the responses that are not streams, sets the headers of every response, and logs refusals. */
import { type ApiError, apiError, errorRow } from '../canonical/error.ts';
import { NO_KEY, type RefusalCounts } from '../metering/refusals.ts';
import { chat } from '../protocols/openai-chat/client.ts';
import { placeError } from '../settings/placement.ts';
import { readSeconds } from '../upstream/fetch.ts';
import type { ErrorClient, RequestContext } from './context.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** A response with this value as JSON. */
export function jsonResponse(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': JSON_TYPE } });
}

/** What a handler returns: its response, or the error that is written in its place. An error alone has OpenAI's form. */
export type Answer = Response | ApiError | Refused;

/** An error in the form of a client protocol. */
export interface Refused {
  readonly error: ApiError;
  readonly client: ErrorClient;
  /** Further headers, such as those of the upstream that are passed on. */
  readonly headers: HeadersInit;
}

/** The error of a request in the form of its client. */
export function refused(client: ErrorClient, error: ApiError, headers: HeadersInit = {}): Refused {
  return { error, client, headers };
}

/** The response of an answer: the only place that writes an error before the head of a response. */
export function written(answer: Answer, { requestId }: Pick<RequestContext, 'requestId'>): Response {
  if (answer instanceof Response) return answer;
  const { error, client, headers: others } = 'error' in answer ? answer : refused(chat, answer);
  const headers = new Headers(others);
  const { status, body } = client.errorResponse(error, requestId, readSeconds(headers.get('retry-after')));
  headers.set('content-type', JSON_TYPE);
  if (error.retryAfterSeconds !== undefined) headers.set('retry-after', String(error.retryAfterSeconds));
  if (errorRow(error)?.isFinal === true) headers.set('x-should-retry', 'false');
  return new Response(body, { status, headers });
}

/** The code of an answer that is an error; null: it is a response. */
function codeOf(answer: Answer): string | null {
  if (answer instanceof Response) return null;
  return 'error' in answer ? answer.error.code : answer.code;
}

export const INTERNAL_ERROR = apiError(
  'internal_error',
  'Weir failed on this request; its log has the reason',
);

/** Logs an unexpected exception. The client gets an error without its details, except that of a wrong `JURISDICTION`. */
export function internalError({ ports, requestId }: RequestContext, reason: unknown): ApiError {
  const misplaced = placeError(reason);
  if (misplaced !== null) return misplaced;
  ports.log({ event: 'internal_error', request_id: requestId, reason: String(reason) });
  return INTERNAL_ERROR;
}

/** Internal errors and invalid settings have separate log events. */
const INTERNAL_STATUS = 500;

/**
 * Logs and counts a request that was refused before it was sent to an upstream. Also writes the counts when that is due.
 * @param status of the response that was written
 */
export function logRefusal(
  request: Request,
  { answer, status }: { readonly answer: Answer; readonly status: number },
  { known, ports, requestId, waitUntil }: RequestContext,
  { route, counts }: { readonly route: () => string; readonly counts: RefusalCounts },
): void {
  const code = codeOf(answer);
  // A client that has disconnected was not refused.
  const isRefused = code !== null && !known.isSentOn && !request.signal.aborted;
  if (isRefused && status !== INTERNAL_STATUS) {
    const { keyId } = known;
    const refused = { request_id: requestId, key_id: keyId, route: route(), status, code };
    ports.log({ event: 'request_refused', ...refused });
    counts.add(keyId, code);
  }
  counts.writeWhenDue({ startTimer: ports.clock.startTimer, waitUntil });
}

/** Sets the headers in which clients look for the request's id. */
export function addRequestId(
  { headers }: Response,
  { client, requestId }: Pick<RequestContext, 'client' | 'requestId'>,
): void {
  headers.set('x-request-id', requestId);
  headers.set('x-weir-request-id', requestId);
  // Anthropic's SDKs read this name.
  if (client.id === 'messages') headers.set('request-id', requestId);
}

const ADMIN_PATH = /^(?:\/v1)?\/admin(?:\/|$)/;

/**
 * No cache keeps what admins get, nor what other callers read of theirs: with Cloudflare Access the credential is a cookie, which a cache
 * does not compare.
 */
export function addNoStore(
  { method, url }: Request,
  { headers }: Response,
  { known, settings: { basePath } }: Pick<RequestContext, 'known' | 'settings'>,
): void {
  const isForAdmin = isAdminPath(url, basePath);
  const isRead = (method === 'GET' || method === 'HEAD') && known.keyId !== NO_KEY;
  if (isForAdmin || (isRead && !headers.has('cache-control'))) headers.set('cache-control', 'no-store');
}

/** Whether only admins may call this path. */
export function isAdminPath(url: string, basePath: string): boolean {
  return ADMIN_PATH.test(pathOf(url).slice(basePath.length));
}

/** The path in a URL that the runtime has normalized. Faster than `new URL`. */
export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return url.slice(pathStart(url), query < 0 ? url.length : query);
}

/** Where the path of such a URL begins. */
export function pathStart(url: string): number {
  return url.indexOf('/', 'https://'.length);
}

// CORS is written here because itty-router's own CORS clones the response, which tees every stream.

/**
 * Response headers that a page may read without being allowed to
 * (https://fetch.spec.whatwg.org/#cors-safelisted-response-header-name), or never.
 */
const NOT_EXPOSED =
  /^(?:access-control-.*|vary|set-cookie|cache-control|content-language|content-length|content-type|expires|last-modified|pragma)$/;
const PREFLIGHT_SECONDS = '86400';

/**
 * The response to a CORS preflight.
 * @param methods the methods of the route
 * @param origins the setting `CORS_ORIGINS`
 */
export function preflight(request: Request, methods: string, origins: readonly string[]): Response {
  const response = new Response(null, { status: 204 });
  if (allowedOrigin(request, origins) === null) return response;
  response.headers.set('access-control-allow-methods', methods);
  const requested = request.headers.get('access-control-request-headers');
  if (requested !== null) response.headers.set('access-control-allow-headers', requested);
  response.headers.set('access-control-max-age', PREFLIGHT_SECONDS);
  return response;
}

/** Lets pages of an allowed origin read the response with all of its headers. For any other origin it adds only `vary`. */
export function addCors(request: Request, response: Response, origins: readonly string[]): void {
  if (origins.length === 0) return;
  response.headers.append('vary', 'Origin');
  const origin = allowedOrigin(request, origins);
  if (origin === null) return;
  response.headers.set('access-control-allow-origin', origin);
  const exposed = [...response.headers.keys()].filter((name) => !NOT_EXPOSED.test(name));
  response.headers.set('access-control-expose-headers', exposed.join(', '));
}

function allowedOrigin(request: Request, origins: readonly string[]): string | null {
  const origin = request.headers.get('origin');
  return origin !== null && (origins.includes('*') || origins.includes(origin)) ? origin : null;
}

const PRINTABLE = /^[\x21-\x7e]*$/;

/** Text as a header value: everything but printable ASCII is percent-encoded, so that nothing can be injected. */
export function headerValue(text: string): string {
  return PRINTABLE.test(text) ? text : text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

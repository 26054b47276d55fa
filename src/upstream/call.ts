/** Calls an upstream: the request as its provider takes it, allowlisted headers both ways, refusals as errors of the table. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { MAX_ERROR_BODY_BYTES } from '../canonical/limits.ts';
import type { Upstream } from '../canonical/upstream-error.ts';
import { classifyRefusal } from './classify.ts';

export type Fetch = (input: Request | string, init?: RequestInit) => Promise<Response>;

export interface UpstreamRequest {
  readonly upstream: Upstream;
  readonly url: string;
  /** JSON text. */
  readonly body: string;
  readonly isStreamed: boolean;
  /** The client's own headers, of which few go on (H2). */
  readonly clientHeaders: Headers;
  /** Names of those that go on besides, because the upstream speaks the client's dialect (N1): they win over the API's own. */
  readonly passedHeaders: readonly string[];
  /** Whose idempotency keys these are: all callers of a deployment share one credential, and must not share its keys. */
  readonly callerId: string;
  /** Those that every request to it has, with its credential: they win over all others. */
  readonly apiHeaders: Readonly<Record<string, string>>;
  readonly callerPays: boolean;
  readonly signal: AbortSignal;
}

export type UpstreamResult =
  | { readonly kind: 'answer'; readonly response: Response }
  | {
      readonly kind: 'error';
      readonly error: ApiError;
      readonly headers: Headers;
      /** Of the upstream's refusal; null where there was no answer. */
      readonly status: number | null;
    };

/** What of a client's headers an upstream gets (H2): tracing and idempotency, nothing that identifies the client. */
const REQUEST_HEADERS = ['idempotency-key', 'traceparent', 'tracestate', 'x-client-request-id'];

/** What of an upstream's headers a client gets (H2). */
export const RESPONSE_HEADERS = [
  'retry-after',
  'retry-after-ms',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
];

/** Never throws: an upstream that can't be reached is an error of the table. */
export async function callUpstream(fetch: Fetch, request: UpstreamRequest): Promise<UpstreamResult> {
  const { upstream, signal } = request;
  try {
    const response = await fetch(request.url, {
      method: 'POST',
      headers: requestHeaders(request),
      body: request.body,
      // A redirect could carry the credential to another host.
      redirect: 'manual',
      signal,
    });
    if (response.ok) return { kind: 'answer', response };
    const body = await readStart(response.body, MAX_ERROR_BODY_BYTES);
    const error = classifyRefusal({ status: response.status, body }, upstream, request.callerPays);
    return { kind: 'error', error, headers: response.headers, status: response.status };
  } catch {
    const error = apiError('upstream_unreachable', `${upstream.name} could not be reached`);
    return { kind: 'error', error, headers: new Headers(), status: null };
  }
}

/** The start of a text body, up to a bound: the rest is not read. */
async function readStart(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    text += decoder.decode(chunk, { stream: true });
    if (bytes >= maxBytes) break;
  }
  return text;
}

function requestHeaders(request: UpstreamRequest): Headers {
  const { clientHeaders, passedHeaders, callerId, apiHeaders, isStreamed } = request;
  const headers = pick(clientHeaders, REQUEST_HEADERS);
  const idempotencyKey = headers.get('idempotency-key');
  if (idempotencyKey !== null) headers.set('idempotency-key', `${callerId}-${idempotencyKey}`);
  headers.set('content-type', 'application/json');
  headers.set('accept', isStreamed ? 'text/event-stream' : 'application/json');
  headers.set('user-agent', 'weir');
  for (const [name, value] of Object.entries(apiHeaders)) headers.set(name, value);
  for (const [name, value] of pick(clientHeaders, passedHeaders, LONG_VALUE)) headers.set(name, value);
  return headers;
}

/** @param passed names of those that go on besides (N1) */
export function pickResponseHeaders(headers: Headers, passed: readonly string[]): Headers {
  return pick(headers, [...RESPONSE_HEADERS, ...passed]);
}

/** None of the picked headers has a use for more; some clients fail on longer ones. */
const HEADER_VALUE = /^[\x20-\x7e]{0,512}$/;

/** A list of betas, of which Claude Code sends a dozen. */
const LONG_VALUE = /^[\x20-\x7e]{0,4096}$/;

function pick(headers: Headers, names: readonly string[], form = HEADER_VALUE): Headers {
  const picked = new Headers();
  for (const name of names) {
    const value = headers.get(name);
    // Nothing but printable ASCII goes on: some runtimes would send anything else as it is.
    if (value !== null && form.test(value)) picked.set(name, value);
  }
  return picked;
}

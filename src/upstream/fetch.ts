/** Calls an upstream: the request as its provider takes it, allowlisted headers both ways, refusals as errors of the table. */
import { sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { removeSecret } from '../canonical/upstream-error.ts';
import type { Clock } from '../stream/timers.ts';
import { checkHint, classifyRefusal, readRetryDelay, type UpstreamErrorContext } from './errors.ts';

/** At most this much of an upstream's error body is read. */
const MAX_ERROR_BODY_BYTES = 64 * 1024;

/** The rest of an error body is awaited for this long: the status alone decides whether to retry. */
const MAX_ERROR_BODY_MS = 5000;

/** The cause of a failed connection, in the log and the record. */
const MAX_CAUSE_CHARS = 300;

export type Fetch = (input: Request | string, init?: RequestInit) => Promise<Response>;

export interface UpstreamRequest {
  readonly upstream: UpstreamErrorContext;
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
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

export type UpstreamResult =
  | { readonly kind: 'answer'; readonly response: Response }
  | {
      readonly kind: 'error';
      readonly error: ApiError;
      readonly headers: Headers;
      /** Of the upstream's refusal; null where there was no answer. */
      readonly status: number | null;
      /** What an operator needs to find the fault: where it was asked, and why that failed. For the log and the record alone (E4). */
      readonly cause: string | null;
    };

/** What of a client's headers an upstream gets as it is (H2): tracing, nothing that identifies the client. */
const REQUEST_HEADERS = ['traceparent', 'tracestate', 'x-client-request-id'];

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
  const { upstream, signal, clock, clientHeaders, callerId } = request;
  try {
    const sent = requestHeaders(request);
    const key = readHeader(clientHeaders, 'idempotency-key');
    // As a list, so that no two pairs of caller and key are the same text.
    if (key !== null) sent['idempotency-key'] = await sha256(JSON.stringify([callerId, key]));
    const response = await fetch(request.url, {
      method: 'POST',
      headers: sent,
      body: request.body,
      // A redirect could carry the credential to another host.
      redirect: 'manual',
      signal,
    });
    if (response.ok) return { kind: 'answer', response };
    const body = await readStart(response.body, clock);
    const { status } = response;
    const headers = withRetryAfter(response.headers, readRetryDelay(body, upstream));
    const error = classifyRefusal({ status, body }, upstream);
    const what = `answered ${status}${checkHint(suspectOf(status, upstream))}`;
    const cause = SET_UP_STATUSES.has(status) ? causeOf(request.url, upstream.secret, what) : null;
    return { kind: 'error', error, headers, status, cause };
  } catch (reason) {
    const message = `${upstream.name} could not be reached${checkHint(upstream.urlSetting)}`;
    const what = reasonOf(reason) + checkHint(upstream.urlSetting);
    const cause = signal.aborted ? null : causeOf(request.url, upstream.secret, what);
    const error = apiError('upstream_unreachable', message);
    return { kind: 'error', error, headers: new Headers(), status: null, cause };
  }
}

/** Refusals that a wrong setting can be the cause of. */
const SET_UP_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

function suspectOf(
  status: number,
  { keySetting, urlSetting }: UpstreamErrorContext,
): string | null | undefined {
  return status === 404 ? urlSetting : keySetting;
}

/** Where an upstream was asked, and what came of it: for the log and the record alone. */
export function causeOf(url: string, secret: string, what: string): string {
  // A query may hold a secret, too.
  const [address = ''] = url.split('?');
  return removeSecret(`${address}: ${what}`, secret).slice(0, MAX_CAUSE_CHARS);
}

/** What a failed fetch says, without the full stop at its end. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

/** The refusal's headers, which tell what its body says where they don't: routing and clients read it there. */
function withRetryAfter(headers: Headers, seconds: number | undefined): Headers {
  if (seconds === undefined || headers.has('retry-after')) return headers;
  const told = new Headers(headers);
  told.set('retry-after', String(seconds));
  return told;
}

/** The start of a refusal's text, up to bounds of size and time, or to where it is cut: its status tells the rest. Never rejects. */
async function readStart(body: ReadableStream<Uint8Array> | null, clock: Clock): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  const cancelTimer = clock.startTimer(MAX_ERROR_BODY_MS, cancel);
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let bytes = 0; bytes < MAX_ERROR_BODY_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return text;
      bytes += value.length;
      text += decoder.decode(value, { stream: true });
    }
    cancel();
    return text;
  } catch {
    return text;
  } finally {
    cancelTimer();
  }
}

/** As a plain object, which the runtime takes in one step. */
function requestHeaders(request: UpstreamRequest): Record<string, string> {
  const { clientHeaders, passedHeaders, apiHeaders, isStreamed } = request;
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: isStreamed ? 'text/event-stream' : 'application/json',
    'user-agent': 'weir',
  };
  for (const name of REQUEST_HEADERS) {
    const value = readHeader(clientHeaders, name);
    if (value !== null) headers[name] = value;
  }
  // Those of the deployment may be written in any case.
  for (const [name, value] of Object.entries(apiHeaders)) headers[name.toLowerCase()] = value;
  for (const name of passedHeaders) {
    const value = readHeader(clientHeaders, name, LONG_VALUE);
    if (value !== null) headers[name.toLowerCase()] = value;
  }
  return headers;
}

/**
 * Of an upstream's headers those that go on, as a plain object.
 * @param passed names of those that go on besides (N1)
 */
export function pickResponseHeaders(headers: Headers, passed: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of passed.length === 0 ? RESPONSE_HEADERS : [...RESPONSE_HEADERS, ...passed]) {
    const value = readHeader(headers, name);
    if (value !== null) picked[name] = value;
  }
  return picked;
}

/** None of the picked headers has a use for more; some clients fail on longer ones. */
const HEADER_VALUE = /^[\x20-\x7e]{0,512}$/;

/** A list of betas, of which Claude Code sends a dozen. */
const LONG_VALUE = /^[\x20-\x7e]{0,4096}$/;

/** Nothing but printable ASCII goes on: some runtimes would send anything else as it is. */
function readHeader(headers: Headers, name: string, form = HEADER_VALUE): string | null {
  const value = headers.get(name);
  return value !== null && form.test(value) ? value : null;
}

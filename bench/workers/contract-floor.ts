/**
 * Row `contract-floor`: the row `floor`, and the calls of the runtime that Weir's contract adds to it. A disconnect and the deadline cancel
 * the provider's request, every header that a rule names is read, and the response has Weir's headers. Without checks, routing or
 * translation. Bodies of this bench announce a small length, which bounds them, so they are read in one step.
 */
import { type Answer, type MeteredEnv, pump, writeRecord } from './metering.ts';
import { UPSTREAM_PREFIX } from './upstream.ts';

const DEADLINE_MS = 600_000;

/** What a key with limits adds: a call to its object before the provider's, and one after the response. */
export interface LimitCalls<Env> {
  reserve(env: Env, requestId: string): Promise<unknown>;
  settle(env: Env, requestId: string, tokens: number): Promise<unknown>;
}

/** @param limits absent: the key has none */
export const contractFloor = <Env extends MeteredEnv>(limits?: LimitCalls<Env>): ExportedHandler<Env> => ({
  async fetch(request, env, context) {
    const startedAt = Date.now();
    const requestId = crypto.randomUUID();
    const cancelling = new AbortController();
    const cancel = () => cancelling.abort();
    request.signal.addEventListener('abort', cancel);
    const deadline = setTimeout(cancel, DEADLINE_MS);
    // The rules name them. Their values change nothing here.
    readHeaders(request.headers, REQUEST_HEADERS);
    const body: { model: string; stream?: boolean } = JSON.parse(await request.text());
    body.model = body.model.slice(UPSTREAM_PREFIX.length);
    await limits?.reserve(env, requestId);
    const upstream = await fetch(env.UPSTREAM, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: body.stream === true ? 'text/event-stream' : 'application/json',
        'user-agent': 'weir',
        authorization: 'Bearer bench',
      },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: cancelling.signal,
    });
    const headers = {
      ...readHeaders(upstream.headers, UPSTREAM_HEADERS),
      'x-request-id': requestId,
      'x-weir-request-id': requestId,
      'x-weir-provider': 'bench',
      'x-weir-model': body.model,
      'access-control-allow-origin': '*',
    };
    const settle = async (answer: Answer) => {
      clearTimeout(deadline);
      request.signal.removeEventListener('abort', cancel);
      await limits?.settle(env, requestId, answer.usage?.completion_tokens ?? 0);
      await writeRecord(env.WEIR_KV, body.model, answer, startedAt);
    };
    if (body.stream !== true || upstream.body === null) {
      const answer: Answer = JSON.parse(await upstream.text());
      context.waitUntil(settle(answer));
      const bytes = new TextEncoder().encode(JSON.stringify(answer));
      return new Response(bytes, { headers: { ...headers, 'content-type': 'application/json' } });
    }
    const { readable, writable } = new IdentityTransformStream();
    context.waitUntil(pump(upstream.body, writable).then(settle));
    return new Response(readable, {
      headers: {
        ...headers,
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
      },
    });
  },
});

export default contractFloor();

function readHeaders(headers: Headers, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = headers.get(name);
    if (value !== null) found[name] = value;
  }
  return found;
}

/** The headers of a chat request that Weir reads. */
const REQUEST_HEADERS = [
  ...['authorization', 'api-key', 'x-api-key', 'user-agent', 'content-length', 'content-encoding'],
  ...['x-weir-vendor-events', 'x-weir-unsupported', 'x-weir-user', 'x-weir-app', 'x-weir-tags'],
  ...['x-weir-session', 'x-claude-code-session-id', 'session-id', 'session_id', 'thread-id'],
  ...['x-session-id', 'x-session-affinity', 'x-opencode-session', 'x-title', 'http-referer', 'originator'],
  ...['traceparent', 'tracestate', 'x-client-request-id', 'idempotency-key'],
];

/** The headers of a provider that the client gets. */
const UPSTREAM_HEADERS = [
  ...['retry-after', 'retry-after-ms', 'x-ratelimit-limit-requests', 'x-ratelimit-limit-tokens'],
  ...['x-ratelimit-remaining-requests', 'x-ratelimit-remaining-tokens'],
  ...['x-ratelimit-reset-requests', 'x-ratelimit-reset-tokens'],
];

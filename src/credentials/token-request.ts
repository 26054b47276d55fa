/** Sends a request for a token or a session: bounded in time and size, following no redirect. */
import type { Log } from '../shared/log-event.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { readTextStart } from '../stream/read-body.ts';
import type { Clock } from '../stream/timers.ts';

/** What a request for a token needs. */
export interface TokenPorts {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  readonly log: Log;
}

interface TokenRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** In ms since the epoch. */
  readonly until: number;
}

interface TokenResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A token has some KB. */
const MAX_TOKEN_RESPONSE_BYTES = 64 * 1024;

/** The response, or why there is none. Never rejects. */
export async function requestToken(
  { method, url, headers, body, until }: TokenRequest,
  { fetch, clock }: TokenPorts,
): Promise<Result<TokenResponse, string>> {
  const abort = new AbortController();
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => {});
  const leftMs = Math.max(0, until - clock.now());
  const cancelTimer = clock.startTimer(leftMs, () => {
    late.reject(new Error('No answer in time'));
    abort.abort('aborted');
  });
  try {
    const init = { method, headers, body, redirect: 'manual', signal: abort.signal } as const;
    const response = await Promise.race([fetch(url, init), late.promise]);
    const bounds = { maxBytes: MAX_TOKEN_RESPONSE_BYTES, maxMs: Math.max(0, until - clock.now()) };
    const text = await readTextStart(response.body, bounds, clock);
    return ok({ status: response.status, headers: response.headers, text });
  } catch (error) {
    return failure((error instanceof Error ? error.message : String(error)).replace(/\.$/, ''));
  } finally {
    cancelTimer();
  }
}

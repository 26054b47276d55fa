/** Sends one request to a provider and classifies the response. */
import { setTimeout } from 'node:timers/promises';
import { findUpstreamError } from '../../src/canonical/upstream-error.ts';
import type { Route } from '../../src/providers/provider.ts';
import { isObject, type JsonObject, parseJson } from '../../src/shared/json.ts';
import { classifyRefusal } from '../../src/upstream/errors.ts';
import { eventsOf } from './events.ts';
import type { Target } from './plan.ts';

export type Answer =
  | { readonly kind: 'object'; readonly object: JsonObject }
  | { readonly kind: 'stream'; readonly text: string }
  | { readonly kind: 'refused'; readonly message: string }
  /** Neither accepted nor rejected: a timeout, a rate limit or a server error. */
  | { readonly kind: 'unclear'; readonly message: string }
  /** An error about the key or the balance, which every other request would get too. */
  | { readonly kind: 'stop'; readonly message: string };

/** A 429, with the wait that the provider requests. */
interface Limited {
  readonly kind: 'limited';
  readonly message: string;
  readonly waitMs: number;
}

const MAX_WAIT_MS = 20_000;
const USUAL_WAIT_MS = 2000;
const MAX_MESSAGE_CHARS = 120;
/** The codes of Weir's error table for an invalid key and an exhausted balance, with any status (Q10). */
const STOPPING = ['upstream_credential', 'upstream_balance'];

/** Repeats the request at most once, after a 429. Never throws. */
export async function sendWithRetry(target: Target, route: Route, body: JsonObject): Promise<Answer> {
  const first = await send(target, route, body);
  if (first.kind !== 'limited') return first;
  if (first.waitMs > MAX_WAIT_MS) {
    return { kind: 'unclear', message: `${first.message} (retry after ${first.waitMs / 1000} s)` };
  }
  await setTimeout(first.waitMs);
  const second = await send(target, route, body);
  return second.kind === 'limited' ? { kind: 'unclear', message: second.message } : second;
}

async function send(target: Target, route: Route, body: JsonObject): Promise<Answer | Limited> {
  const path = target.provider.endpoints[route]?.path(body) ?? '';
  try {
    const response = await fetch(target.baseUrl + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(target.key === '' ? {} : { authorization: `Bearer ${target.key}` }),
      },
      body: JSON.stringify(body),
      // A redirect could carry the key to another host.
      redirect: 'manual',
      signal: AbortSignal.timeout(target.timeoutMs),
    });
    const text = await response.text();
    return response.ok
      ? readAnswer(target, text)
      : readRefusal(target, response.status, text, waitOf(response));
  } catch (error) {
    return { kind: 'unclear', message: reasonOf(error, target.timeoutMs) };
  }
}

function waitOf(response: Response): number {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : USUAL_WAIT_MS;
}

/** Some providers respond 200 with an error in the body or in the stream's first event. */
function readAnswer(target: Target, text: string): Answer | Limited {
  const object = parseJson(text);
  const first = isObject(object) ? object : eventsOf(text).next().value;
  if (!isObject(first)) return { kind: 'unclear', message: 'a 200 without output' };
  if (findUpstreamError(first) !== null) {
    return readRefusal(target, 200, JSON.stringify(first), USUAL_WAIT_MS);
  }
  return isObject(object) ? { kind: 'object', object } : { kind: 'stream', text };
}

function readRefusal(target: Target, status: number, body: string, waitMs: number): Answer | Limited {
  const { name: providerName, refusals } = target.provider;
  const upstream = { name: providerName, secret: target.key, refusals };
  const { code } = classifyRefusal({ status, body }, { ...upstream, callerPays: false });
  // In passthrough mode Weir keeps the provider's message and redacts the key in it.
  const own = classifyRefusal({ status, body }, { ...upstream, callerPays: true }).message;
  const name = `${upstream.name}: `;
  const text = own.startsWith(name) ? own.slice(name.length) : own;
  const message = `${status} ${text.replace(/\s+/g, ' ').slice(0, MAX_MESSAGE_CHARS)}`;
  if (STOPPING.includes(code)) return { kind: 'stop', message };
  if (status === 429) return { kind: 'limited', message, waitMs };
  const isRefusal = status === 200 || (status >= 400 && status < 500 && status !== 408);
  return { kind: isRefusal ? 'refused' : 'unclear', message };
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no complete response within ${timeoutMs / 1000} s`;
  const { cause } = error;
  // The message of a `fetch` error is only that it failed; its cause has the reason.
  return cause instanceof Error ? cause.message || cause.name : error.message;
}

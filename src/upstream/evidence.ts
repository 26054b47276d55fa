/** Decides by evidence whether an upstream that sent no output did any work, which it may bill (G3). */
import { isOwnError, unwrapErrorList } from '../canonical/upstream-error.ts';
import { isObject, parseJson } from '../shared/json.ts';

/** Refusals before any work, in whichever words. */
const REFUSED_BEFORE_WORK: ReadonlySet<number> = new Set([
  ...[400, 401, 402, 403, 404, 405, 413, 415, 422, 429, 501],
  // Cloudflare in front of the provider could not connect to it: the server is down, unreachable, or its certificate or name is wrong.
  // https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/, read 2026-11-23.
  ...[521, 523, 525, 526, 530],
]);

/** A connection that ends within this time of sending, before a byte of the response's head, was not accepted. */
export const MAX_REFUSED_CONNECTION_MS = 1000;

/**
 * Whether a response with an error status shows that there is nothing to bill: by its status, or because the provider's own error is in it.
 * Every other response may come from something in front of a provider that still works on the request.
 * @param body its text, or the beginning
 */
export function showsNoWork(status: number, body: string): boolean {
  return REFUSED_BEFORE_WORK.has(status) || hasOwnError(body);
}

function hasOwnError(body: string): boolean {
  const value = unwrapErrorList(parseJson(body));
  return isObject(value) && isOwnError(value);
}

/** Makes the responses that are not streams: JSON, errors, and the headers that every answer has (H1, E1). */
import type { ApiError } from '../canonical/error.ts';
import { chat } from '../protocols/openai-chat/client-writer.ts';
import type { ClientProtocol, ErrorResponse } from '../protocols/shared/client-protocol.ts';
import type { RequestContext } from './context.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': JSON_TYPE } });
}

/**
 * An error on a route of no client's dialect: in OpenAI's form.
 * @param others the answer's other headers, such as those of the upstream's that go on
 */
export function errorResponse(error: ApiError, others: HeadersInit = {}): Response {
  return answered(chat.errorResponse(error, ''), error, others);
}

/** An error in the form of the client's dialect. */
export function clientError(
  client: Pick<ClientProtocol<unknown>, 'errorResponse'>,
  { requestId }: Pick<RequestContext, 'requestId'>,
  error: ApiError,
  others: HeadersInit = {},
): Response {
  return answered(client.errorResponse(error, requestId), error, others);
}

/** Nobody's second try changes them; without the header SDKs ask twice more, and Claude Code again and again (2.1.197, 2026-11-22). */
const LASTING: readonly string[] = [
  'misconfigured',
  'upstream_credential',
  'upstream_balance',
  'upstream_refused',
];

function answered(
  { status, body }: ErrorResponse,
  { code, retryAfterSeconds }: ApiError,
  others: HeadersInit,
): Response {
  const headers = new Headers(others);
  headers.set('content-type', JSON_TYPE);
  if (retryAfterSeconds !== undefined) headers.set('retry-after', String(retryAfterSeconds));
  if (LASTING.includes(code)) headers.set('x-should-retry', 'false');
  const answer = new Response(body, { status, headers });
  codes.set(answer, code);
  return answer;
}

const codes = new WeakMap<Response, string>();

/** The code of an error that was answered here; null for any other answer. */
export function codeOf(answer: Response): string | null {
  return codes.get(answer) ?? null;
}

const PRINTABLE = /^[\x21-\x7e]*$/;

/** A header's value may hold printable ASCII alone; whatever else a name holds is percent-encoded, so nothing is injected. */
export function headerValue(text: string): string {
  return PRINTABLE.test(text) ? text : text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

/** Reads a request's body: within its bound, within the request's deadline, and whatever its client does (B2, T3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { parseJsonExactly } from '../canonical/exact-json.ts';
import { isObject, type JsonObject } from '../canonical/json.ts';
import { isWithinJsonBounds } from '../canonical/json-bounds.ts';
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../canonical/limits.ts';
import type { RequestContext } from './context.ts';
import { Deadline } from './deadline.ts';

export type BodyResult =
  | { readonly kind: 'body'; readonly body: JsonObject }
  | { readonly kind: 'error'; readonly error: ApiError };

/** The JSON object that a request's body holds; integers beyond 2^53 keep their digits (Q11). */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  context: RequestContext,
): Promise<BodyResult> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return tooLarge(maxBytes);
  const read = await readText(request.body, maxBytes, context);
  if (read.kind === 'error') return read;
  if (!isWithinJsonBounds(read.text)) {
    const message = `The body has more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values: send less at once`;
    return { kind: 'error', error: apiError('invalid_json', message) };
  }
  const body = parseJsonExactly(read.text);
  if (isObject(body)) return { kind: 'body', body };
  return { kind: 'error', error: apiError('invalid_json', 'The body must be a JSON object') };
}

type TextResult =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'error'; readonly error: ApiError };

async function readText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  { ports, settings, arrivedAt }: RequestContext,
): Promise<TextResult> {
  if (body === null) return { kind: 'text', text: '' };
  const reader = body.getReader();
  const late = Promise.withResolvers<'late'>();
  const deadline = new Deadline(ports.clock, arrivedAt, settings.pacing.deadlineMs, () =>
    late.resolve('late'),
  );
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const read = await Promise.race([reader.read(), late.promise]);
      if (read === 'late') return isLate(settings.pacing.deadlineMs);
      if (read.done) break;
      bytes += read.value.length;
      if (bytes > maxBytes) return tooLarge(maxBytes);
      pieces.push(decoder.decode(read.value, { stream: true }));
    }
  } catch {
    // The client broke its body off: nobody reads the answer.
    return {
      kind: 'error',
      error: apiError('invalid_request', "The request's body ended before it was complete"),
    };
  } finally {
    deadline.stop();
    // Nothing more of it is read, whichever way this ended.
    reader.cancel().catch(() => {});
  }
  pieces.push(decoder.decode());
  return { kind: 'text', text: pieces.join('') };
}

function tooLarge(maxBytes: number): { readonly kind: 'error'; readonly error: ApiError } {
  const message = `The request's body is larger than ${maxBytes} bytes`;
  return { kind: 'error', error: apiError('request_too_large', message) };
}

function isLate(ms: number): { readonly kind: 'error'; readonly error: ApiError } {
  const message = `The request's body did not arrive within ${ms / 1000} seconds`;
  return { kind: 'error', error: apiError('request_timeout', message) };
}

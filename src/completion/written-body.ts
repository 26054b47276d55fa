/** Writes the JSON text of a target's body within its bound. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { conversationField } from '../metering/prompt-hashes.ts';
import {
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  withoutHalfPairs,
  writeJson,
} from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { SMALL_BYTES } from '../stream/memory.ts';

/** The body of a target has at most this many times the bytes of the client's body, plus {@link SMALL_BYTES} that Weir adds. */
const MAX_WRITTEN_FACTOR = 4;

/**
 * The bound on the body of a target. Translation may enlarge a request, but not without a bound.
 * @param maxRequestBytes the bound on the client's body
 */
export function maxWrittenBytes(clientBodyBytes: number, maxRequestBytes: number): number {
  return Math.min(clientBodyBytes * MAX_WRITTEN_FACTOR, maxRequestBytes) + SMALL_BYTES;
}

interface BodyOptions {
  readonly maxBytes: number;
  /** Its name, for the error's message. */
  readonly provider: string;
  readonly keepsItems: boolean;
  /** Half a surrogate pair becomes U+FFFD. */
  readonly isWellFormed: boolean;
}

interface WrittenParts {
  readonly itemTexts: readonly string[] | null;
  /** Undefined: the engine cannot write it. */
  readonly json: string | undefined;
}

export interface WrittenBody {
  /** As it is sent. */
  readonly body: JsonObject;
  readonly json: string;
  /** The texts of the conversation's items, if the prompt of a session may be hashed; null: they are not kept. */
  readonly itemTexts: readonly string[] | null;
  /** The fields with half a surrogate pair, which strict providers refuse: elizaOS/eliza#18079, 2026-08-08. */
  readonly repaired: readonly string[];
}

/** Fails if the text exceeds its bound, or is nested too deep for the engine. */
export function writeBody(
  body: JsonObject,
  { maxBytes, provider, keepsItems, isWellFormed }: BodyOptions,
): Result<WrittenBody, ApiError> {
  const list = keepsItems ? conversationField(body) : null;
  const { json: written, itemTexts }: WrittenParts =
    list === null ? { json: writeJson(body), itemTexts: null } : writeInParts(body, list);
  const json = isWellFormed && written !== undefined ? withoutHalfPairs(written) : written;
  if (json !== undefined && isWithin(json, maxBytes)) {
    if (json === written) return ok({ body, json, itemTexts, repaired: [] });
    return ok({
      body: objectOf(parseJsonExactly(json)),
      json,
      itemTexts: itemTexts?.map(withoutHalfPairs) ?? null,
      repaired: fieldsWithHalfPairs(body),
    });
  }
  const field = largestField(body);
  const message = `Translated for ${provider}, the request is larger than its bound of ${maxBytes} bytes. Its largest field is ${field}: send less at once`;
  return failure(apiError('request_too_large', message, field));
}

/** The list of turns is named as in Chat Completions. */
function fieldsWithHalfPairs(body: JsonObject): readonly string[] {
  const conversation = conversationField(body);
  return Object.entries(body).flatMap(([field, value]) => {
    const json = writeJson(value) ?? '';
    return withoutHalfPairs(json) === json ? [] : [field === conversation ? 'messages' : field];
  });
}

/** The text of the whole body, and those of the items of one of its lists. */
function writeInParts(body: JsonObject, list: string): WrittenParts {
  try {
    const itemTexts = readArray(body[list]).map((item) => JSON.stringify(item) ?? 'null');
    const items = itemTexts.flatMap((text, i) => (i === 0 ? [text] : [',', text]));
    const [first = '', ...others] = Object.entries(body).flatMap(([field, value]) => {
      const name = `,${JSON.stringify(field)}:`;
      if (field === list) return [name, '[', ...items, ']'];
      const text = JSON.stringify(value);
      return text === undefined ? [] : [name, text];
    });
    // Joined once: a long text is copied each time that it becomes part of another.
    const json = ['{', first.slice(1), ...others, '}'].join('');
    return { json, itemTexts };
  } catch {
    // Nested too deep for the engine.
    return { json: undefined, itemTexts: null };
  }
}

const MAX_BYTES_PER_UTF16_UNIT = 3;

function isWithin(json: string, maxBytes: number): boolean {
  if (json.length > maxBytes) return false;
  return (
    json.length * MAX_BYTES_PER_UTF16_UNIT <= maxBytes || new TextEncoder().encode(json).length <= maxBytes
  );
}

const MAX_FIELD_CHARS = 64;

function largestField(body: JsonObject): string {
  const sizes = Object.entries(body).map(([field, value]) => [writeJson(value)?.length, field] as const);
  const [, largest = ''] = sizes.reduce((a, b) => ((b[0] ?? Infinity) > (a[0] ?? Infinity) ? b : a), [0, '']);
  return largest.slice(0, MAX_FIELD_CHARS);
}

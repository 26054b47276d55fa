/** Parses JSON without rounding its integers: a request's `seed` or a schema's bound must arrive as it was written (Q11). */
import { parseJson } from './json.ts';

/** What only a text with an integer beyond 2^53 has: 16 digits in a row. A text may have them in a string, too. */
const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

/**
 * The text as JSON, or undefined where it is none. An integer beyond 2^53 becomes an object that JSON.stringify writes as the
 * same digits; every other value is as JSON.parse gives it.
 */
export function parseJsonExactly(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return parseJson(text);
  try {
    return JSON.parse(text, keepLongInteger);
  } catch {
    return undefined;
  }
}

function keepLongInteger(
  _key: string,
  value: unknown,
  ...[context]: readonly { readonly source?: string }[]
): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? '';
  return INTEGER.test(source) ? JSON.rawJSON(source) : value;
}

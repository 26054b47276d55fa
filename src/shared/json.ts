/** Reads untrusted JSON: every function takes `unknown` and returns a typed value or none. */

// TypeScript's library does not have these yet: https://github.com/tc39/proposal-json-parse-with-source
declare global {
  interface JSON {
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

export interface JsonObject {
  readonly [key: string]: unknown;
}

/** An integer beyond 2^53, which `parseJsonExactly` keeps as it was written, is none: its digits would become a member. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** The text as JSON, or undefined where it is none (`undefined` itself has no JSON form). */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value as JSON text, or undefined where the engine gives up on it: it is nested without end. */
export function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** A string that is not empty: `""` and everything that is not a string are undefined. */
export function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A whole number from 0 up (an index, a count of tokens), or undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The first that is an object, or an empty one. */
export function objectOf(...candidates: readonly unknown[]): JsonObject {
  return candidates.find(isObject) ?? {};
}

export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** JSON helpers of the contract tests: parse without exceptions, narrow without casts. */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

/** The value of a JSON text, or undefined if it is invalid. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object, else an empty object. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

export function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

/** Types and helpers for the JSON of simulated requests and events. */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined if the text is not a JSON object. An invalid request body causes an error response, not an exception. */
export function decodeObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

export function objectsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function compact(value: Json): string {
  return JSON.stringify(value);
}

/** Writes JSON as Python's json.dumps does, with a space after each comma and colon: DeepSeek's format. */
export function spaced(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}: ${spaced(member)}`);
  }
  return `{${members.join(', ')}}`;
}

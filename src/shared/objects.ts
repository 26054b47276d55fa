/** Objects by their own keys: copies that lack some, and tables that are asked with whatever a client sends. */
import type { JsonObject } from './json.ts';

/** The object without these keys: itself where it has none of them. */
export function omit(object: JsonObject, ...keys: readonly string[]): JsonObject {
  if (!keys.some((key) => Object.hasOwn(object, key))) return object;
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** The object with the entries that are kept: itself where that is all of them. What is lost is handed on. */
export function keepEntries(
  object: JsonObject,
  isKept: (key: string, value: unknown) => boolean,
  onLost: (key: string, value: unknown) => void,
): JsonObject {
  const entries = Object.entries(object);
  const kept = entries.filter(([key, value]) => isKept(key, value));
  if (kept.length === entries.length) return object;
  for (const [key, value] of entries) if (!isKept(key, value)) onLost(key, value);
  return Object.fromEntries(kept);
}

/** A table's row for a key from outside: `constructor` and its like, which every object inherits, are in no table. */
export function ownValue<Value>(
  table: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined {
  return table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}

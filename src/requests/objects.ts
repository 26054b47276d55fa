/** Objects by their own keys: copies that lack some, and tables that are asked with whatever a client sends. */
import type { JsonObject } from '../canonical/json.ts';

export function omit(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** A table's row for a key from outside: `constructor` and its like, which every object inherits, are in no table. */
export function ownValue<Value>(
  table: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined {
  return table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}

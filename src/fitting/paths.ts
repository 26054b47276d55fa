/** Reads and changes the values of a body by their paths. */
import { isObject, type JsonObject, objectOf, omit } from '../shared/json.ts';

/** The names of the members, from the top level on. */
export type Path = readonly string[];

/** The value at a path; undefined: there is none. */
export function valueAt(body: JsonObject, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    body,
  );
}

/** The body with another value at a path. */
export function withValue(body: JsonObject, [first = '', ...rest]: Path, value: unknown): JsonObject {
  return { ...body, [first]: rest.length === 0 ? value : withValue(objectOf(body[first]), rest, value) };
}

/** The body without the value at a path, and without objects that are empty then. */
export function without(body: JsonObject, [first = '', ...rest]: Path): JsonObject {
  const value = body[first];
  const inner = rest.length > 0 && isObject(value) ? without(value, rest) : {};
  return Object.keys(inner).length === 0 ? omit(body, first) : { ...body, [first]: inner };
}

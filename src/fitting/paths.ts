/** Reads and changes the values of a body by their paths. */
import { isObject, type JsonObject, objectOf, omit } from '../shared/json.ts';

/** The names of the members, from the top level on. */
export type Path = readonly string[];

/**
 * The path in each spelling of its names: Google's APIs read every name in camel case and in snake case. That in camel
 * case comes first.
 */
export function spellingsOf(path: Path): readonly Path[] {
  return path.reduce<readonly Path[]>(
    (begun, name) => {
      const spellings = new Set([name, snake(name)]);
      return begun.flatMap((names) => Array.from(spellings, (spelling) => [...names, spelling]));
    },
    [[]],
  );
}

/** The path as the body spells its names. Names that the body lacks follow the spelling of those before them. */
export function spelledIn(body: JsonObject, path: Path): Path {
  let value: unknown = body;
  let isSnake = false;
  return path.map((name) => {
    const other = snake(name);
    const has = (spelling: string) => isObject(value) && Object.hasOwn(value, spelling);
    if (has(name) !== has(other)) isSnake = has(other);
    const spelling = isSnake ? other : name;
    value = objectOf(value)[spelling];
    return spelling;
  });
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

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

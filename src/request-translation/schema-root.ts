/** Makes the root of a tool's schema one plain object, where a provider takes no combinators there. */
import { isObject, type JsonObject, objectOf, omit, ownValue, readArray } from '../shared/json.ts';
import { decodeStep, withTold } from './schemas.ts';

const ALTERNATIVES = ['anyOf', 'oneOf'] as const;
const COMBINATORS = ['allOf', ...ALTERNATIVES, '$ref'] as const;

/** Schemas and properties that are joined for one root. With more, its combinators are told in the description alone. */
const MAX_JOINED = 2000;
/** Levels of combinators and references at one root. */
const MAX_LEVELS = 16;

/**
 * The root as an object without combinators: it has the properties of all parts, and requires what all alternatives require. Which of them
 * go together is told in the description. The same schema, if it is such an object, or no object.
 */
export function withPlainRoot(schema: JsonObject): JsonObject {
  const combinators = COMBINATORS.filter((keyword) => schema[keyword] !== undefined);
  if (!isObjectSchema(schema) || (schema.type === 'object' && combinators.length === 0)) return schema;
  if (combinators.length === 0) return { ...schema, type: 'object' };
  const joiner = new RootJoiner(schema);
  const joined = joiner.join(schema, 0);
  if (joined === null) {
    const told = combinators.map((keyword) => ({ [keyword]: schema[keyword] }));
    return withTold({ ...omit(schema, ...combinators), type: 'object' }, told);
  }
  const { properties, required, rest } = joined;
  const object = {
    ...rest,
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.size === 0 ? {} : { required: [...required] }),
  };
  return withTold(object, joiner.told);
}

/** Whether a value of this schema may be an object, as the arguments of a tool are. */
function isObjectSchema({ type }: JsonObject): boolean {
  return type === undefined || type === 'object' || readArray(type).includes('object');
}

interface Joined {
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: ReadonlySet<unknown>;
  /** The other keywords. */
  readonly rest: JsonObject;
}

class RootJoiner {
  /** Alternatives that the joined root does not tell apart. */
  readonly told: JsonObject[] = [];
  readonly #root: JsonObject;
  #left = MAX_JOINED;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** @returns null: too much to join */
  join(schema: JsonObject, level: number): Joined | null {
    const own = objectOf(schema.properties);
    this.#left -= 1 + Object.keys(own).length;
    if (level > MAX_LEVELS || this.#left < 0) return null;
    const target = this.#resolve(schema.$ref);
    const all = this.#joinEach([...(target === null ? [] : [target]), ...readArray(schema.allOf)], level);
    if (all === null) return null;
    const parts: Joined[] = [
      {
        properties: new Map(Object.entries(own)),
        required: new Set(readArray(schema.required)),
        rest: omit(schema, ...COMBINATORS, 'properties', 'required'),
      },
      ...all,
    ];
    for (const keyword of ALTERNATIVES) {
      const alternatives = this.#joinEach(readArray(schema[keyword]), level);
      if (alternatives === null) return null;
      const [first, ...others] = alternatives;
      if (first === undefined) continue;
      parts.push(others.length === 0 ? first : eitherOf([first, ...others]));
      if (others.length > 0) this.told.push({ [keyword]: schema[keyword] });
    }
    return allOf(parts);
  }

  #joinEach(schemas: readonly unknown[], level: number): readonly Joined[] | null {
    const list: Joined[] = [];
    for (const schema of schemas) {
      if (!isObject(schema) || !isObjectSchema(schema)) continue;
      const joined = this.join(schema, level + 1);
      if (joined === null) return null;
      list.push(joined);
    }
    return list;
  }

  /** A schema within the root, by its JSON Pointer. */
  #resolve(reference: unknown): JsonObject | null {
    if (typeof reference !== 'string' || !reference.startsWith('#/')) return null;
    let found: unknown = this.#root;
    for (const step of reference.slice(2).split('/', MAX_LEVELS)) {
      found = isObject(found) ? ownValue(found, decodeStep(step)) : undefined;
    }
    return isObject(found) ? found : null;
  }
}

/** Of a keyword that several parts have, the first counts. */
function allOf(parts: readonly Joined[]): Joined {
  return {
    properties: joinProperties(parts, 'allOf'),
    required: new Set(parts.flatMap(({ required }) => [...required])),
    rest: Object.assign({}, ...parts.map(({ rest }) => rest).toReversed()),
  };
}

function eitherOf(alternatives: readonly [Joined, ...Joined[]]): Joined {
  const [{ required }, ...others] = alternatives;
  const isClosed = alternatives.every(({ rest }) => rest.additionalProperties === false);
  return {
    properties: joinProperties(alternatives, 'anyOf'),
    required: new Set([...required].filter((name) => others.every((other) => other.required.has(name)))),
    rest: isClosed ? { additionalProperties: false } : {},
  };
}

/** A property that differs between the parts has all of its schemas. */
function joinProperties(parts: readonly Joined[], keyword: 'allOf' | 'anyOf'): ReadonlyMap<string, unknown> {
  /** By name: the schemas, by their JSON text. */
  const byName = new Map<string, Map<string | undefined, unknown>>();
  for (const { properties } of parts) {
    for (const [name, schema] of properties) {
      const schemas = byName.get(name) ?? new Map();
      byName.set(name, schemas.set(JSON.stringify(schema), schema));
    }
  }
  return new Map(
    Array.from(byName, ([name, schemas]) => {
      const list = [...schemas.values()];
      return [name, list.length === 1 ? list[0] : { [keyword]: list }];
    }),
  );
}

/** Renames the keys of a tool's parameters that a provider refuses, in its schema and in the arguments of its calls. */
import { toolCallId } from '../canonical/tool-call-id.ts';
import { isObject, type JsonObject, mapList, mapValues } from '../shared/json.ts';
import { decodeStep, mapSubschemas, subschemasOf } from './schemas.ts';

/** The shortest limit of any provider. */
const MAX_KEY_CHARS = 64;

const ANY_KEY = /^/;

/**
 * The schema with keys that the provider accepts, in each depth, and these by the client's. A key contains a hash of the client's, so it is
 * the same in every request of a conversation. The same schema, if all are accepted.
 */
export function withAcceptedKeys(
  schema: JsonObject,
  accepted: RegExp = ANY_KEY,
): { readonly schema: JsonObject; readonly keys: ReadonlyMap<string, string> } {
  const given = new Set<string>();
  collectKeys(schema, given);
  const keys = new Map<string, string>();
  const taken = new Set(given);
  for (const key of given) {
    if (accepted.test(key)) continue;
    let short = shortKey(key, key);
    for (let i = 1; taken.has(short); i++) short = shortKey(key, `${key} ${i}`);
    taken.add(short);
    keys.set(key, short);
  }
  return { schema: keys.size === 0 ? schema : renamedSchema(schema, keys), keys };
}

/** The beginning of the key, in characters that every provider accepts, and a hash. */
function shortKey(key: string, hashed: string): string {
  const hash = toolCallId(hashed);
  const head = key.slice(0, MAX_KEY_CHARS - 1 - hash.length).replace(/[^a-zA-Z0-9_.-]/g, '_');
  return `${head}_${hash}`;
}

function collectKeys(schema: JsonObject, found: Set<string>): void {
  if (isObject(schema.properties)) for (const key of Object.keys(schema.properties)) found.add(key);
  for (const inner of subschemasOf(schema)) collectKeys(inner, found);
}

function renamedSchema(schema: JsonObject, keys: ReadonlyMap<string, string>): JsonObject {
  const inner = mapSubschemas(schema, (one) => renamedSchema(one, keys));
  const nameOf = (key: unknown) => (typeof key === 'string' ? (keys.get(key) ?? key) : key);
  return mapValues(inner, (value, keyword) => {
    switch (keyword) {
      case 'properties':
      case 'dependentSchemas':
        return isObject(value) ? withKeys(value, keys) : value;
      case 'required':
        return Array.isArray(value) ? mapList(value, nameOf) : value;
      case 'dependentRequired':
      case 'dependencies':
        return isObject(value)
          ? mapValues(withKeys(value, keys), (names) =>
              Array.isArray(names) ? mapList(names, nameOf) : names,
            )
          : value;
      case '$ref':
        return typeof value === 'string' ? renamedReference(value, keys) : value;
      default:
        return value;
    }
  });
}

function withKeys(object: JsonObject, keys: ReadonlyMap<string, string>): JsonObject {
  if (!Object.keys(object).some((key) => keys.has(key))) return object;
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [keys.get(key) ?? key, value]));
}

/** A JSON Pointer to a property: `#/properties/filter[id]/items`. */
function renamedReference(reference: string, keys: ReadonlyMap<string, string>): string {
  const steps = reference.split('/');
  const renamed = steps.map((step, at) => {
    const key = steps[at - 1] === 'properties' ? keys.get(decodeStep(step)) : undefined;
    return key ?? step;
  });
  return renamed.join('/');
}

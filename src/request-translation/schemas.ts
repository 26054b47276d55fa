/** The keywords of JSON Schema that hold schemas, and the walk over them. Below any other keyword are values of the caller. */
import { isObject, type JsonObject, mapList, mapValues, readArray, readText } from '../shared/json.ts';
import { wordSet } from '../shared/words.ts';

const SCHEMAS: ReadonlySet<string> = wordSet(`
  items additionalProperties not if then else contains propertyNames unevaluatedItems
  unevaluatedProperties
`);
const SCHEMA_LISTS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items']);
const SCHEMA_MAPS: ReadonlySet<string> = wordSet(
  'properties patternProperties $defs definitions dependentSchemas dependencies',
);

/** The schema with its direct subschemas mapped, or the same one if nothing changes. */
export function mapSubschemas(schema: JsonObject, map: (inner: JsonObject) => JsonObject): JsonObject {
  const mapOne = (value: unknown) => (isObject(value) ? map(value) : value);
  return mapValues(schema, (value, keyword) => {
    if (SCHEMA_LISTS.has(keyword) && Array.isArray(value)) return mapList(value, mapOne);
    if (SCHEMA_MAPS.has(keyword) && isObject(value)) return mapValues(value, mapOne);
    return SCHEMAS.has(keyword) ? mapOne(value) : value;
  });
}

/** The direct subschemas of a schema. */
export function subschemasOf(schema: JsonObject): readonly JsonObject[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (SCHEMA_LISTS.has(keyword) && Array.isArray(value)) return readArray(value).filter(isObject);
    if (SCHEMA_MAPS.has(keyword) && isObject(value)) return Object.values(value).filter(isObject);
    return SCHEMAS.has(keyword) && isObject(value) ? [value] : [];
  });
}

/** A step of a JSON Pointer (RFC 6901) in a URI fragment. What is no percent-encoding stands for itself. */
export function decodeStep(step: string): string {
  const text = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The bound on the told value of a keyword. */
const MAX_TOLD_CHARS = 4096;

/** The schema with keywords that the provider does not take in its description. */
export function withTold(schema: JsonObject, told: readonly JsonObject[]): JsonObject {
  if (told.length === 0) return schema;
  const keywords = told.flatMap((one) =>
    Object.entries(one).map(([key, value]) => `${key}: ${shortJson(value)}`),
  );
  const description = [readText(schema.description), `{${keywords.join(', ')}}`].filter(Boolean).join('\n\n');
  return { ...schema, description };
}

function shortJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_TOLD_CHARS ? text : `${text.slice(0, MAX_TOLD_CHARS)}…`;
}

/**
 * Writes a JSON schema as Anthropic takes it for strict tools and response formats: objects are closed, and unsupported keywords move
 * into the description. https://platform.claude.com/docs/en/build-with-claude/structured-outputs (2026-11-22)
 */
import { withTold } from '../../request-translation/schemas.ts';
import { isObject, type JsonObject, mapValues, omit, readArray } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';

/** @param onChange called if the schema no longer enforces a keyword, but only describes it */
export function writeSchema(schema: JsonObject, onChange: () => void): JsonObject {
  // Described keywords are removed before the inner schemas are written: nested descriptions would double their escapes at each level.
  const described = describedKeys(schema);
  const inner = mapValues(omit(schema, ...described), (value, key) => innerSchema(key, value, onChange));
  const closedSchema = closed(withAnyOf(inner, onChange));
  if (described.length === 0) return closedSchema;
  onChange();
  return withTold(
    closedSchema,
    described.map((key) => ({ [key]: schema[key] })),
  );
}

/** Keywords that map names to schemas, and keywords that hold a schema or a list of schemas. */
const SCHEMA_MAPS = ['properties', '$defs', 'definitions'];
const SCHEMA_LISTS = ['items', 'anyOf', 'allOf', 'oneOf', 'prefixItems'];

/** The direct subschemas of a schema. */
export function subschemas(schema: JsonObject): readonly JsonObject[] {
  const mapped = SCHEMA_MAPS.flatMap((key) => (isObject(schema[key]) ? Object.values(schema[key]) : []));
  const listed = SCHEMA_LISTS.flatMap((key) =>
    isObject(schema[key]) ? [schema[key]] : readArray(schema[key]),
  );
  return [...mapped, ...listed].filter(isObject);
}

function innerSchema(key: string, value: unknown, onChange: () => void): unknown {
  const write = (inner: unknown) => (isObject(inner) ? writeSchema(inner, onChange) : inner);
  if (SCHEMA_MAPS.includes(key) && isObject(value)) return mapValues(value, write);
  if (!SCHEMA_LISTS.includes(key)) return value;
  return Array.isArray(value) ? value.map(write) : write(value);
}

/** 400 "Schema type 'oneOf' is not supported", which Zod writes for a union with a discriminator: @ai-sdk/anthropic's changelog, 2026. */
function withAnyOf(schema: JsonObject, onChange: () => void): JsonObject {
  if (!canBeAnyOf(schema)) return schema;
  onChange();
  return { ...omit(schema, 'oneOf'), anyOf: schema.oneOf };
}

function canBeAnyOf({ oneOf, anyOf }: JsonObject): boolean {
  return Array.isArray(oneOf) && anyOf === undefined;
}

/** 400 "For 'object' type, 'additionalProperties' must be explicitly set to false": ax-llm/ax#458, 2025-11-28. */
function closed(schema: JsonObject): JsonObject {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const isAnObject = types.includes('object') || (schema.type === undefined && isObject(schema.properties));
  const isOpen = isAnObject && schema.additionalProperties === undefined;
  return isOpen ? { ...schema, additionalProperties: false } : schema;
}

/** 400 "For 'integer' type, properties maximum, minimum are not supported": BerriAI/litellm#21045, 2026-02-12. */
const UNSUPPORTED_KEYWORDS = [
  ...words(`
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems
    minProperties maxProperties
  `),
  // Anthropic's own SDK describes these as well (anthropic-sdk-typescript@2a2978f, src/lib/transform-json-schema.ts, read 2026-11-22).
  ...words(`
    contains minContains maxContains patternProperties propertyNames not if then else dependentRequired
    dependentSchemas
  `),
];

/** The supported formats of strings, from the same file. */
const FORMATS = words('date-time time date duration email hostname uri ipv4 ipv6 uuid');

/**
 * Groups that begin with `?`, backreferences, word boundaries and Unicode classes: 400 "Invalid regex in pattern field: Quantifier '?'
 * without preceding element". Zod's e-mail addresses and times have them (Dokploy/mcp#45, 2026-05-25).
 */
const UNSUPPORTED_REGEX = /\(\?|\\[bBpPk1-9]/;

/** The keywords of a schema that Anthropic refuses. */
function describedKeys(schema: JsonObject): string[] {
  const { minItems, format, pattern, oneOf } = schema;
  const keys = UNSUPPORTED_KEYWORDS.filter((key) => schema[key] !== undefined);
  // `minItems` may be 0 or 1.
  if (typeof minItems === 'number' && minItems > 1) keys.push('minItems');
  if (typeof format === 'string' && !FORMATS.includes(format)) keys.push('format');
  if (typeof pattern === 'string' && UNSUPPORTED_REGEX.test(pattern)) keys.push('pattern');
  if (oneOf !== undefined && !canBeAnyOf(schema)) keys.push('oneOf');
  return keys;
}

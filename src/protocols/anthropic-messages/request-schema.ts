/**
 * Writes a JSON schema as Anthropic takes it where an answer must keep to it: objects are closed, and what it refuses stands in the
 * description. https://platform.claude.com/docs/en/build-with-claude/structured-outputs (2026-11-22)
 */
import { isObject, type JsonObject, omit, readArray } from '../../shared/json.ts';

/** 400 "For 'integer' type, properties maximum, minimum are not supported": BerriAI/litellm#21045, 2026-02-12. */
const BOUNDS = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
  // Anthropic's own SDK describes these as well (anthropic-sdk-typescript@2a2978f, src/lib/transform-json-schema.ts, read 2026-11-22).
  ...['contains', 'minContains', 'maxContains', 'patternProperties', 'propertyNames'],
  ...['not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'],
];

/** Of strings: all that it knows, by the same file. */
const FORMATS = [
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
];

/**
 * Groups that begin with `?`, references back, boundaries of words and classes of Unicode: 400 "Invalid regex in pattern field:
 * Quantifier '?' without preceding element". Zod's e-mail addresses and times have them (Dokploy/mcp#45, 2026-05-25).
 */
const UNKNOWN_REGEX = /\(\?|\\[bBpPk1-9]/;

/** Of a keyword's value: what it says beyond that is not described. */
const MAX_DESCRIBED_CHARS = 4096;

/** @param onBound called where something is no longer enforced, but only described */
export function claudeSchema(schema: JsonObject, onBound: () => void): JsonObject {
  // What is described is not written as a schema, too: a description within another one would double its escapes at every level.
  const described = describedKeys(schema);
  const inner = Object.fromEntries(
    Object.entries(omit(schema, ...described)).map(([key, value]) => [key, innerSchema(key, value, onBound)]),
  );
  const written = closed(withAnyOf(inner, onBound));
  if (described.length === 0) return written;
  onBound();
  const said = described.map((key) => `${key}: ${textOf(schema[key])}`).join(', ');
  const description = [schema.description, `{${said}}`]
    .filter((text) => typeof text === 'string')
    .join('\n\n');
  return { ...written, description };
}

function textOf(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_DESCRIBED_CHARS ? text : `${text.slice(0, MAX_DESCRIBED_CHARS)}…`;
}

/** Keywords whose members are schemas by a name of their own, and keywords that hold a schema or a list of them. */
const NAMED = ['properties', '$defs', 'definitions'];
const HELD = ['items', 'anyOf', 'allOf', 'oneOf', 'prefixItems'];

/** The schemas that stand within one. */
export function schemasWithin(schema: JsonObject): readonly JsonObject[] {
  const named = NAMED.flatMap((key) => (isObject(schema[key]) ? Object.values(schema[key]) : []));
  const held = HELD.flatMap((key) => (isObject(schema[key]) ? [schema[key]] : readArray(schema[key])));
  return [...named, ...held].filter(isObject);
}

function innerSchema(key: string, value: unknown, onBound: () => void): unknown {
  const write = (inner: unknown) => (isObject(inner) ? claudeSchema(inner, onBound) : inner);
  if (NAMED.includes(key) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, write(inner)]));
  }
  if (!HELD.includes(key)) return value;
  return Array.isArray(value) ? value.map(write) : write(value);
}

/** 400 "Schema type 'oneOf' is not supported", which Zod writes for a union with a discriminator: @ai-sdk/anthropic's changelog, 2026. */
function withAnyOf(schema: JsonObject, onBound: () => void): JsonObject {
  if (!isUnion(schema)) return schema;
  onBound();
  return { ...omit(schema, 'oneOf'), anyOf: schema.oneOf };
}

/** It can be said with `anyOf`. */
function isUnion({ oneOf, anyOf }: JsonObject): boolean {
  return Array.isArray(oneOf) && anyOf === undefined;
}

/** 400 "For 'object' type, 'additionalProperties' must be explicitly set to false": ax-llm/ax#458, 2025-11-28. */
function closed(schema: JsonObject): JsonObject {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const isAnObject = types.includes('object') || (schema.type === undefined && isObject(schema.properties));
  const isOpen = isAnObject && schema.additionalProperties === undefined;
  return isOpen ? { ...schema, additionalProperties: false } : schema;
}

/** The keywords of a schema that Anthropic refuses, as the caller sent it. */
function describedKeys(schema: JsonObject): string[] {
  const { minItems, format, pattern, oneOf } = schema;
  const keys = BOUNDS.filter((key) => schema[key] !== undefined);
  // Lists may be told to be empty or not.
  if (typeof minItems === 'number' && minItems > 1) keys.push('minItems');
  if (typeof format === 'string' && !FORMATS.includes(format)) keys.push('format');
  if (typeof pattern === 'string' && UNKNOWN_REGEX.test(pattern)) keys.push('pattern');
  if (oneOf !== undefined && !isUnion(schema)) keys.push('oneOf');
  return keys;
}

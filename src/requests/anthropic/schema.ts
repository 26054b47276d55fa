/**
 * Writes a JSON schema as Anthropic takes it where an answer must keep to it: objects are closed, and bounds of values, which it
 * refuses, stand in the description. https://platform.claude.com/docs/en/build-with-claude/structured-outputs (2026-11-22)
 */
import { isObject, type JsonObject } from '../../canonical/json.ts';
import { omit } from '../objects.ts';

/** 400 "For 'integer' type, properties maximum, minimum are not supported": BerriAI/litellm#21045, 2026-02-12. */
const BOUNDS = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
];

/** @param onBound called where a bound is no longer enforced, but only described */
export function claudeSchema(schema: JsonObject, onBound: () => void): JsonObject {
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, innerSchema(key, value, onBound)]),
  );
  return withDescribedBounds(closed(inner), onBound);
}

/** Keywords whose members are schemas by a name of their own, and keywords that hold a schema or a list of them. */
const NAMED = ['properties', '$defs', 'definitions'];
const HELD = ['items', 'anyOf', 'allOf', 'oneOf', 'prefixItems'];

function innerSchema(key: string, value: unknown, onBound: () => void): unknown {
  const write = (inner: unknown) => (isObject(inner) ? claudeSchema(inner, onBound) : inner);
  if (NAMED.includes(key) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, write(inner)]));
  }
  if (!HELD.includes(key)) return value;
  return Array.isArray(value) ? value.map(write) : write(value);
}

/** 400 "For 'object' type, 'additionalProperties' must be explicitly set to false": ax-llm/ax#458, 2025-11-28. */
function closed(schema: JsonObject): JsonObject {
  const isOpen = schema.type === 'object' && schema.additionalProperties === undefined;
  return isOpen ? { ...schema, additionalProperties: false } : schema;
}

function withDescribedBounds(schema: JsonObject, onBound: () => void): JsonObject {
  const bounds = BOUNDS.filter((key) => schema[key] !== undefined);
  // Lists may be told to be empty or not.
  if (typeof schema.minItems === 'number' && schema.minItems > 1) bounds.push('minItems');
  if (bounds.length === 0) return schema;
  onBound();
  const said = bounds.map((key) => `${key}: ${JSON.stringify(schema[key])}`).join(', ');
  const description = [schema.description, `{${said}}`]
    .filter((text) => typeof text === 'string')
    .join('\n\n');
  return { ...omit(schema, ...bounds), description };
}

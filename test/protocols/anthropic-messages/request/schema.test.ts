/** Tests JSON schemas for Anthropic, which supports fewer keywords than OpenAI and limits the schemas of a request (A2). */
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject, objectOf, readArray } from '../../../../src/shared/json.ts';
import { rewrite } from '../../../request-translation/send.ts';

const MODEL = 'claude-sonnet-5';
const MESSAGES = [{ role: 'user', content: 'Hello' }];

function runner(more: JsonObject) {
  const rewritten = rewrite('anthropic', { model: MODEL, messages: MESSAGES, ...more });
  if (rewritten.kind === 'error') throw new Error(rewritten.error.message);
  return rewritten;
}

/** The translation of a property's schema in a response format. */
function written(schema: JsonObject) {
  const properties = { it: schema };
  const outer = { type: 'object', properties, required: ['it'], additionalProperties: false };
  const { body, changed } = runner({
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: outer } },
  });
  const format = objectOf(objectOf(body.output_config).format);
  return { schema: objectOf(objectOf(format.schema).properties).it, changed };
}

describe('A2 unsupported keywords', () => {
  const text = { type: 'string' };
  test('describes nested keywords as the client sent them, so that escapes do not double at each level', () => {
    const union = (inner: object) => ({ anyOf: [{ type: 'string' }], oneOf: [inner] });
    const inner = union({ type: 'number', minimum: 1 });
    expect(written(union(inner)).schema).toEqual({
      anyOf: [{ type: 'string' }],
      description: `{oneOf: ${JSON.stringify([inner])}}`,
    });
    const not = { enum: ['x'.repeat(10_000)] };
    const { description } = objectOf(written({ type: 'string', not }).schema);
    expect(String(description)).toHaveLength('{not: …}'.length + 4096);
  });

  test('oneOf, which Zod writes for a union with a discriminator, becomes anyOf with closed objects, and is reported', () => {
    const cat = { type: 'object', properties: { kind: { const: 'cat' } } };
    expect(written({ oneOf: [cat, text], description: 'D' })).toEqual({
      schema: { description: 'D', anyOf: [{ ...cat, additionalProperties: false }, text] },
      changed: ['response_format'],
    });
    expect(written({ anyOf: [text], oneOf: [text] }).schema).toEqual({
      anyOf: [text],
      description: '{oneOf: [{"type":"string"}]}',
    });
  });

  test.each<JsonObject>([
    { type: ['object', 'null'], properties: {} },
    { properties: { a: text } },
    { type: 'array', items: { type: ['null', 'object'] } },
  ])('closes every form of an open object: %j', (schema) => {
    expect(JSON.stringify(written(schema).schema)).toContain('"additionalProperties":false');
  });

  test('an explicitly open object is sent unchanged, for Anthropic to refuse (Q6)', () => {
    const open = { type: 'object', additionalProperties: { type: 'number' } };
    expect(written(open)).toEqual({ schema: open, changed: [] });
  });

  test.each([
    ['format', 'base64'],
    // Zod's e-mail address.
    ['pattern', '^(?!\\.)(?!.*\\.\\.)([A-Za-z]+)@x$'],
    ['pattern', '\\bword\\b'],
    ['pattern', '(a)\\1'],
    ['not', { const: 1 }],
    ['contains', { const: 1 }],
    ['propertyNames', { pattern: '^a' }],
  ])('%s %j moves into the description and is reported', (key, value) => {
    expect(written({ ...text, [key]: value })).toEqual({
      schema: { ...text, description: `{${key}: ${JSON.stringify(value)}}` },
      changed: ['response_format'],
    });
  });

  test.each<JsonObject>([
    { ...text, format: 'date-time' },
    { ...text, pattern: '^[a-z]{2,3}-\\d+$' },
    { type: 'array', items: text, minItems: 1 },
    { anyOf: [text, { type: 'null' }] },
    { $ref: '#/$defs/a' },
    { type: ['string', 'null'], enum: ['a', null], default: 'a', title: 'T' },
  ])('does not change supported keywords: %j', (schema) => {
    expect(written(schema)).toEqual({ schema, changed: [] });
  });
});

describe('A2 the limits on strict tools', () => {
  const tool = (name: string, properties: JsonObject, required = Object.keys(properties)) => ({
    type: 'function',
    function: {
      name,
      strict: true,
      parameters: { type: 'object', properties, required, additionalProperties: false },
    },
  });
  const strictOf = (tools: readonly JsonObject[], more: JsonObject = {}) => {
    const { body, dropped } = runner({ tools, ...more });
    return { strict: readArray(body.tools).map((one) => isObject(one) && one.strict === true), dropped };
  };
  const many = (count: number, make: (at: number) => JsonObject) =>
    Array.from({ length: count }, (_, at) => make(at));
  const nullable = { anyOf: [{ type: 'string' }, { type: 'null' }] };

  test('20 tools: the others are sent without strict, and reported', () => {
    const tools = many(22, (at) => tool(`t${at}`, { a: { type: 'string' } }));
    const { strict, dropped } = strictOf(tools);
    expect(strict).toEqual([...many(20, () => ({})).map(() => true), false, false]);
    expect(dropped).toEqual(['tools.function.strict']);
    expect(strictOf(tools.slice(0, 20))).toEqual({ strict: strict.slice(0, 20), dropped: [] });
  });

  test('16 parameters with several types, including those of the response format', () => {
    const ten = Object.fromEntries(many(10, (at) => ({ at })).map(({ at }) => [`p${at}`, nullable]));
    const tools = [tool('a', ten), tool('b', ten), tool('c', { q: { type: ['string', 'null'] } })];
    expect(strictOf(tools).strict).toEqual([true, false, true]);
    const schema = { type: 'object', properties: ten, required: Object.keys(ten) };
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema } };
    expect(strictOf(tools, { response_format }).strict).toEqual([false, false, true]);
  });

  test('24 optional parameters, including those of nested objects', () => {
    const letters = Object.fromEntries(
      many(13, (at) => ({ at })).map(({ at }) => [`p${at}`, { type: 'string' }]),
    );
    const inner = { o: { type: 'object', properties: letters } };
    expect(strictOf([tool('a', letters, []), tool('b', inner), tool('c', inner, [])]).strict).toEqual([
      true,
      false,
      false,
    ]);
  });
});

/** Tests tools that other providers take, at Claude, which checks the whole list: roots with combinators, keys, names (Q1, Q3, Q16). */
import { describe, expect, test } from 'vitest';
import { withPlainRoot } from '../../src/request-translation/schema-root.ts';
import { isObject, type JsonObject, objectOf, readArray } from '../../src/shared/json.ts';
import { send } from './send.ts';
import { CLIENTS, type Client, sentTo } from './strict-providers.ts';

const TEXT = { type: 'string' };

/** A request with these tools, each with a name and a schema. */
function bodyWith(
  client: Client,
  tools: readonly (readonly [name: string, schema: JsonObject])[],
  turns: JsonObject = {},
): JsonObject {
  const list = tools.map(([name, schema], at) => {
    const description = `tool ${at}`;
    if (client === 'messages') return { name, description, input_schema: schema };
    const definition = { name, description, parameters: schema };
    return client === 'chat'
      ? { type: 'function', function: definition }
      : { type: 'function', ...definition };
  });
  const prompt =
    client === 'responses'
      ? { input: [{ role: 'user', content: 'Go' }] }
      : { max_tokens: 2000, messages: [{ role: 'user', content: 'Go' }] };
  return { ...prompt, tools: list, ...turns };
}

function schemaAtClaude(client: Client, schema: JsonObject) {
  const sent = sentTo('Anthropic', client, bodyWith(client, [['f', schema]]));
  const [tool] = readArray(sent.body.tools);
  return { ...sent, schema: objectOf(objectOf(tool).input_schema) };
}

describe('Q1 combinators at the root of a schema, at Claude', () => {
  const NOTION = {
    type: 'object',
    properties: { route: TEXT, file: TEXT },
    anyOf: [{ required: ['route'] }, { required: ['file'] }],
  };

  test.each(CLIENTS)(
    'a client of %s: the root has the properties of all, and names the alternatives',
    (client) => {
      const { schema, changed, refusal } = schemaAtClaude(client, NOTION);
      expect(refusal).toBeNull();
      expect(changed).toEqual(['tools.function.parameters']);
      expect(schema).toEqual({
        type: 'object',
        properties: { route: TEXT, file: TEXT },
        description: '{anyOf: [{"required":["route"]},{"required":["file"]}]}',
      });
    },
  );

  test.each<[what: string, schema: JsonObject, root: JsonObject]>([
    [
      'alternatives with properties: what all require is required',
      {
        type: 'object',
        description: 'A shape',
        required: ['id'],
        properties: { id: TEXT },
        oneOf: [
          { properties: { kind: { const: 'a' }, size: { type: 'number' } }, required: ['kind', 'size'] },
          { properties: { kind: { const: 'b' }, size: { type: 'number' } }, required: ['kind'] },
        ],
      },
      {
        required: ['id', 'kind'],
        properties: {
          id: TEXT,
          kind: { anyOf: [{ const: 'a' }, { const: 'b' }] },
          size: { type: 'number' },
        },
        description: expect.stringMatching(/^A shape\n\n\{oneOf: \[/),
      },
    ],
    [
      'allOf: everything holds, and there is nothing to tell',
      {
        allOf: [
          { properties: { a: TEXT }, required: ['a'] },
          { properties: { b: TEXT }, required: ['b'] },
        ],
      },
      { properties: { a: TEXT, b: TEXT }, required: ['a', 'b'] },
    ],
    [
      'allOf with a property of two schemas',
      { allOf: [{ properties: { a: TEXT } }, { properties: { a: { minLength: 2 } } }] },
      { properties: { a: { allOf: [TEXT, { minLength: 2 }] } } },
    ],
    [
      'an optional object',
      { anyOf: [{ type: 'object', properties: { a: TEXT }, required: ['a'], title: 'T' }, { type: 'null' }] },
      { properties: { a: TEXT }, required: ['a'], title: 'T' },
    ],
    [
      'references, also within alternatives',
      {
        $defs: {
          A: { type: 'object', properties: { a: TEXT } },
          B: { allOf: [{ $ref: '#/$defs/A' }], properties: { b: TEXT } },
        },
        anyOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }],
      },
      {
        properties: { a: TEXT, b: TEXT },
        $defs: expect.anything(),
        description: expect.stringContaining('anyOf'),
      },
    ],
    [
      'a reference as the root',
      { $ref: '#/$defs/A', $defs: { A: { properties: { a: TEXT } } } },
      { properties: { a: TEXT }, $defs: expect.anything() },
    ],
    ['a list of types', { type: ['object', 'null'], properties: { a: TEXT } }, { properties: { a: TEXT } }],
    [
      'closed alternatives',
      { anyOf: [{ properties: { a: TEXT }, additionalProperties: false }, { additionalProperties: false }] },
      { properties: { a: TEXT }, additionalProperties: false, description: expect.anything() },
    ],
  ])('%s', (_, schema, root) => {
    const sent = schemaAtClaude('chat', schema);
    expect(sent.refusal).toBeNull();
    expect(sent.changed).toEqual(['tools.function.parameters']);
    expect(sent.schema).toEqual({ type: 'object', ...root });
  });

  test('combinators below the root, and plain roots, are sent as they came', () => {
    const schema = {
      type: 'object',
      properties: { a: { anyOf: [TEXT, { type: 'null' }] } },
      required: ['a'],
    };
    expect(schemaAtClaude('chat', schema)).toMatchObject({ schema, changed: [], refusal: null });
    expect(schemaAtClaude('chat', { properties: { a: TEXT } })).toMatchObject({ changed: [], refusal: null });
  });

  test('a strict tool: its root is plain, too', () => {
    const tool = { type: 'function', function: { name: 'f', parameters: NOTION, strict: true } };
    const { body, refusal } = sentTo('Anthropic', 'chat', {
      messages: [{ role: 'user', content: 'Go' }],
      tools: [tool],
    });
    expect(refusal).toBeNull();
    expect(body.tools).toMatchObject([{ strict: true, input_schema: { additionalProperties: false } }]);
  });

  test.each(['openai', 'deepseek', 'gemini', 'tolerant'])('%s, which takes them: sent as they came', (id) => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'Go' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: NOTION } }],
    };
    expect(JSON.stringify(send(id, body))).toContain(JSON.stringify(NOTION.anyOf));
  });

  test('B4 combinators that multiply: told in the description alone, in time', () => {
    const defs = Object.fromEntries(
      Array.from({ length: 12 }, (_, at) => [
        `d${at}`,
        {
          anyOf: Array.from({ length: 12 }, () => ({ $ref: `#/$defs/d${at + 1}` })),
          properties: { [`p${at}`]: TEXT },
        },
      ]),
    );
    const schema = withPlainRoot({ $defs: defs, properties: { own: TEXT }, $ref: '#/$defs/d0' });
    expect(schema).toMatchObject({ type: 'object', properties: { own: TEXT } });
    expect(schema).not.toHaveProperty('$ref');
    const circular = withPlainRoot({ $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' });
    expect(circular).toMatchObject({ type: 'object', description: expect.stringContaining('$ref') });
  });
});

/** Each key of `properties`, in every depth. */
function keysIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(keysIn);
  if (!isObject(value)) return [];
  const own = isObject(value.properties) ? Object.keys(value.properties) : [];
  return [...own, ...Object.values(value).flatMap(keysIn)];
}

describe('Q3 keys of parameters that Claude refuses', () => {
  const ODD = {
    type: 'object',
    properties: {
      'filter[id]': TEXT,
      größe: { type: 'object', properties: { $a: TEXT, ok: TEXT }, required: ['$a'] },
      list: {
        type: 'array',
        items: { properties: { 'filter[id]': { $ref: '#/properties/gr%C3%B6%C3%9Fe' } } },
      },
      ['long'.repeat(20)]: { anyOf: [{ properties: { 'a b': TEXT } }, TEXT] },
    },
    required: ['filter[id]', 'list'],
    dependentRequired: { 'filter[id]': ['größe'] },
    $defs: { d: { properties: { '': TEXT }, required: [''] } },
  };

  test.each(CLIENTS)('a client of %s: keys that fit, in each depth and in required', (client) => {
    const { schema, changed, refusal } = schemaAtClaude(client, ODD);
    expect(refusal).toBeNull();
    expect(changed).toEqual(['tools.function.parameters']);
    const keys = keysIn(schema);
    expect(keys).toHaveLength(keysIn(ODD).length);
    for (const key of keys) expect(key).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/);
    const [filter, size] = Object.keys(objectOf(schema.properties));
    expect(schema.required).toEqual([filter, 'list']);
    expect(schema.dependentRequired).toEqual({ [String(filter)]: [size] });
    expect(JSON.stringify(schema)).toContain(`"$ref":"#/properties/${size}"`);
    const inner = objectOf(objectOf(schema.properties)[String(size)]);
    expect(inner.required).toEqual([Object.keys(objectOf(inner.properties))[0]]);
  });

  test('two keys that would become one stay two', () => {
    const { schema, refusal } = schemaAtClaude('chat', {
      type: 'object',
      properties: { 'a[b]': TEXT, 'a(b)': TEXT, a_b_: TEXT },
    });
    expect(refusal).toBeNull();
    const keys = Object.keys(objectOf(schema.properties));
    expect(new Set(keys).size).toBe(3);
    expect(keys).toContain('a_b_');
  });

  test.each(CLIENTS)('a client of %s: calls in the history have the same keys as the schema', (client) => {
    const input = { 'filter[id]': '7', größe: { $a: 'x', ok: 'größe' } };
    const text = JSON.stringify(input);
    const history = {
      chat: {
        messages: [
          { role: 'user', content: 'Go' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: text } }],
          },
          { role: 'tool', tool_call_id: 'a', content: 'done' },
        ],
      },
      messages: {
        messages: [
          { role: 'user', content: 'Go' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'done' }] },
        ],
      },
      responses: {
        input: [
          { role: 'user', content: 'Go' },
          { type: 'function_call', call_id: 'a', name: 'f', arguments: text },
          { type: 'function_call_output', call_id: 'a', output: 'done' },
        ],
      },
    }[client];
    const { body, refusal } = sentTo(
      'Anthropic',
      client,
      bodyWith(
        client,
        [
          ['f', ODD],
          ['other', { type: 'object' }],
        ],
        history,
      ),
    );
    expect(refusal).toBeNull();
    const [tool] = readArray(body.tools);
    const { properties } = objectOf(objectOf(tool).input_schema);
    const [filter, size] = Object.keys(objectOf(properties)).map(String);
    const [inner] = Object.keys(objectOf(objectOf(objectOf(properties)[size ?? '']).properties));
    expect(readArray(body.messages)[1]).toMatchObject({
      content: [
        {
          type: 'tool_use',
          input: { [filter ?? '']: '7', [size ?? '']: { [inner ?? '']: 'x', ok: 'größe' } },
        },
      ],
    });
  });

  test.each(['openai', 'gemini', 'deepseek'])('%s, which takes them: sent as they came', (id) => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'Go' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: ODD } }],
    };
    expect(JSON.stringify(send(id, body))).toContain('filter[id]');
  });
});

describe('Q1 several tools with one name', () => {
  const FIRST = { type: 'object', properties: { a: TEXT } };
  const LAST = { type: 'object', properties: { b: TEXT } };

  test.each(
    CLIENTS.flatMap((client) => (['Anthropic', 'Gemini'] as const).map((name) => [client, name] as const)),
  )('a client of %s, at %s: the last counts, and it is reported', (client, name) => {
    const tools = [
      ['f', FIRST],
      ['g', FIRST],
      ['f', LAST],
    ] as const;
    const { body, dropped, refusal } = sentTo(name, client, bodyWith(client, tools));
    expect(refusal).toBeNull();
    expect(dropped).toEqual(['tools.function']);
    const sent = JSON.stringify(body.tools);
    expect(sent.match(/"name":"f"/g)).toHaveLength(1);
    expect(sent).toContain('"b"');
    expect(sent).toContain('tool 2');
    expect(sent).not.toContain('tool 0');
  });

  test('equal ones are one tool, and nothing is reported', () => {
    const tool = { type: 'function', function: { name: 'f', parameters: LAST } };
    const { body, dropped, refusal } = sentTo('Anthropic', 'chat', {
      messages: [{ role: 'user', content: 'Go' }],
      tools: [tool, tool],
    });
    expect({ refusal, dropped, tools: readArray(body.tools).length }).toEqual({
      refusal: null,
      dropped: [],
      tools: 1,
    });
  });
});

/** Tests that each call has an id of its own, with its result, where the provider pairs them by id (Q3). */
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject, readArray } from '../../src/shared/json.ts';
import { CLIENTS, type Client, STRICT_NAMES, type StrictName, sentTo } from './strict-providers.ts';

/** The calls of each step: an id and a name for each. Their results follow each step, in the order of the calls. */
type Steps = readonly (readonly (readonly [id: string, name: string])[])[];

function conversation(client: Client, steps: Steps): JsonObject {
  const user = { role: 'user', content: 'Go' };
  const body = { max_tokens: 2000 };
  switch (client) {
    case 'chat':
      return { ...body, messages: [user, ...steps.flatMap(chatStep)] };
    case 'messages':
      return { ...body, messages: [user, ...steps.flatMap(messagesStep)] };
    case 'responses':
      return { input: [user, ...steps.flatMap(responsesStep)] };
  }
}

const outputOf = (id: string, name: string) => `${name} of ${id}`;

function chatStep(calls: Steps[number]): readonly JsonObject[] {
  const tool_calls = calls.map(([id, name]) => ({
    id,
    type: 'function',
    function: { name, arguments: '{}' },
  }));
  return [
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls },
    ...calls.map(([id, name]) => ({ role: 'tool', tool_call_id: id, content: outputOf(id, name) })),
  ];
}

function messagesStep(calls: Steps[number]): readonly JsonObject[] {
  const results = calls.map(([id, name]) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: outputOf(id, name),
  }));
  return [
    { role: 'assistant', content: calls.map(([id, name]) => ({ type: 'tool_use', id, name, input: {} })) },
    { role: 'user', content: results },
  ];
}

function responsesStep(calls: Steps[number]): readonly JsonObject[] {
  return [
    ...calls.map(([call_id, name]) => ({ type: 'function_call', call_id, name, arguments: '{}' })),
    ...calls.map(([call_id, name]) => ({
      type: 'function_call_output',
      call_id,
      output: outputOf(call_id, name),
    })),
  ];
}

interface Pair {
  readonly id: unknown;
  readonly name: unknown;
  readonly output: unknown;
}

/** The calls of a written body, each with the result that has its id, and comes after it. */
function pairsOf(body: JsonObject): readonly Pair[] {
  const calls: Pair[] = [];
  const results: { readonly id: unknown; readonly output: unknown; readonly after: number }[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!isObject(value)) return;
    const { type, id, call_id, name, function: called, functionCall, functionResponse } = value;
    const after = calls.length;
    if (isObject(called) && id !== undefined) calls.push({ id, name: called.name, output: undefined });
    else if (type === 'tool_use') calls.push({ id, name, output: undefined });
    else if (type === 'function_call' || type === 'custom_tool_call')
      calls.push({ id: call_id, name, output: undefined });
    else if (isObject(functionCall))
      calls.push({ id: functionCall.id, name: functionCall.name, output: undefined });
    else if (value.role === 'tool') results.push({ id: value.tool_call_id, output: value.content, after });
    else if (type === 'tool_result') results.push({ id: value.tool_use_id, output: value.content, after });
    else if (typeof type === 'string' && type.endsWith('_call_output'))
      results.push({ id: call_id, output: value.output, after });
    else if (isObject(functionResponse)) {
      const { response } = functionResponse;
      results.push({ id: functionResponse.id, output: isObject(response) ? response.output : null, after });
    } else Object.values(value).forEach(visit);
  };
  visit(body.messages ?? body.input ?? body.contents);
  return calls.map((call, at) => {
    const found = results.filter(({ id, after }) => id === call.id && after > at);
    return { ...call, output: found.length === 1 ? found[0]?.output : found.length };
  });
}

const IN_ONE_STEP: Steps = [
  [
    ['call_0', 'f'],
    ['call_0', 'g'],
  ],
];
const IN_SEVERAL: Steps = [[['terminal:0', 'f']], [['terminal:0', 'g']], [['terminal:0', 'f']]];
const IN_BOTH: Steps = [...IN_ONE_STEP, ...IN_ONE_STEP, [['call_0', 'h']]];

const expected = (steps: Steps) => steps.flat().map(([id, name]) => ({ name, output: outputOf(id, name) }));

/** The providers whose native API pairs by id. */
const PAIRING: readonly StrictName[] = ['OpenAI Responses', 'Anthropic', 'Gemini'];

describe.each(CLIENTS)('a client of %s', (client) => {
  test.each(
    PAIRING.flatMap((name) => [IN_ONE_STEP, IN_SEVERAL, IN_BOTH].map((steps) => [name, steps] as const)),
  )('Q3 one id for several calls, at %s %j: each has its own with its result', (name, steps) => {
    const { body, refusal } = sentTo(name, client, conversation(client, steps));
    expect(refusal).toBeNull();
    const pairs = pairsOf(body);
    expect(pairs.map(({ name: called, output }) => ({ name: called, output }))).toEqual(expected(steps));
    expect(new Set(pairs.map(({ id }) => id)).size).toBe(pairs.length);
  });

  test.each(STRICT_NAMES)('Q3 one id for two calls of one step, at %s: each has its own', (name) => {
    const { body, refusal } = sentTo(name, client, conversation(client, IN_ONE_STEP));
    expect(refusal).toBeNull();
    const pairs = pairsOf(body);
    expect(pairs.map(({ name: called, output }) => ({ name: called, output }))).toEqual(
      expected(IN_ONE_STEP),
    );
    expect(pairs[0]?.id).not.toBe(pairs[1]?.id);
  });

  test('Q3 the first call keeps its id, and ids that differ are sent as they came', () => {
    const { body } = sentTo('OpenAI Responses', client, conversation(client, [...IN_SEVERAL, [['b', 'f']]]));
    const [first, second, third, other] = pairsOf(body).map(({ id }) => id);
    expect([first, other]).toEqual(['terminal:0', 'b']);
    expect(second).not.toBe(third);
  });

  test('Q16 a conversation with repeated ids keeps its bytes when it grows', () => {
    for (const name of PAIRING) {
      const turns = [1, 2, 3].map((count) => {
        const { body } = sentTo(
          name,
          client,
          conversation(client, [...IN_BOTH, ...IN_SEVERAL].slice(0, count)),
        );
        return readArray(body.messages ?? body.input ?? body.contents).map((turn) => JSON.stringify(turn));
      });
      expect(turns[1]?.slice(0, turns[0]?.length)).toEqual(turns[0]);
      expect(turns[2]?.slice(0, turns[1]?.length)).toEqual(turns[1]);
    }
  });
});

test('Q3 chat providers: ids of different steps stay as they are', () => {
  const given = conversation('chat', IN_SEVERAL);
  const { body } = sentTo('OpenAI chat', 'chat', given);
  expect(pairsOf(body).map(({ id }) => id)).toEqual(['terminal:0', 'terminal:0', 'terminal:0']);
});

test('Q3 calls of custom tools with one id, at Responses: each has its own with its result', () => {
  const custom = (id: string) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'custom', custom: { name: 'patch', input: '*** Begin' } }],
    },
    { role: 'tool', tool_call_id: id, content: `patched ${id}` },
  ];
  const { body, refusal } = sentTo('OpenAI Responses', 'chat', {
    messages: [{ role: 'user', content: 'Go' }, ...custom('c'), ...custom('c')],
  });
  expect(refusal).toBeNull();
  const items = readArray(body.input).filter(isObject);
  expect(items.map(({ type }) => type)).toEqual([
    'message',
    ...['custom_tool_call', 'custom_tool_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ]);
  const ids = items.slice(1).map(({ call_id }) => call_id);
  expect(ids).toEqual(['c', 'c', ids[2], ids[2]]);
  expect(ids[2]).not.toBe('c');
});

test('Q3 a call without an id, at Responses: call and result get one', () => {
  const { body, refusal } = sentTo('OpenAI Responses', 'chat', conversation('chat', [[['', 'f']]]));
  expect(refusal).toBeNull();
  expect(pairsOf(body)).toEqual([{ id: expect.stringMatching(/^\w+$/), name: 'f', output: 'f of ' }]);
});

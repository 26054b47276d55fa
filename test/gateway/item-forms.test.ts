/** Tests Responses providers that send items whole, or name them in different ways: every client gets each update once (C3, O7). */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { CLIENTS, frame, gatewayFetch, see } from './sdk-clients.ts';
import { type Behavior, json, sse } from './upstreams.ts';

const reasoning = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [
    { type: 'summary_text', text: 'First thought. ' },
    { type: 'summary_text', text: 'Second.' },
  ],
};
const message = (id: string, text: string) => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const call = (id: string, name: string, args: string) => ({
  type: 'function_call',
  id,
  call_id: `call_${id}`,
  name,
  arguments: args,
  status: 'completed',
});
const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
const OUTPUT = [
  reasoning,
  message('msg_1', 'The answer is 3.'),
  call('fc_1', 'f', '{"a":1}'),
  call('fc_2', 'g', '{"b":2}'),
];
const EXPECTED = {
  reasoning: 'First thought. Second.',
  text: 'The answer is 3.',
  calls: [
    ['f', '{"a":1}'],
    ['g', '{"b":2}'],
  ],
};

function response(output: readonly object[]): JsonObject {
  return {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [...output] as JsonObject[],
    usage,
  };
}
const completed = (output: readonly object[]) => frame('response.completed', { response: response(output) });
const done = (item: object, output_index?: number) =>
  frame('response.output_item.done', { item, output_index });
const textDelta = (members: object) => frame('response.output_text.delta', members);

/** OpenAI's SDK wants it first, also on the passthrough. */
const CREATED = frame('response.created', { response: { ...response([]), status: 'in_progress' } });

const WAYS: Readonly<Record<string, Behavior>> = {
  'JSON in place of a stream': json(response(OUTPUT)),
  'nothing but response.completed': sse(CREATED, completed(OUTPUT)),
  'nothing but output_item.done': sse(CREATED, ...OUTPUT.map((item, at) => done(item, at)), completed([])),
  'output_item.done without indexes, then all again': sse(
    CREATED,
    ...OUTPUT.map((item) => done(item)),
    completed(OUTPUT),
  ),
};

describe.each(Object.entries(WAYS))('O7 C3 %s', (name, behavior) => {
  test.each(Object.keys(CLIENTS))('%s: everything, once', async (client) => {
    // The passthrough passes the last event as it came, and OpenAI's SDK reads the items from it or by their indexes.
    if (client === 'Responses, streamed' && name.includes('output_item.done')) return;
    expect(await see(client, 'responses', behavior)).toMatchObject(EXPECTED);
  });

  test('a reader of choices[0] of each chunk: everything, once, and the finish', async () => {
    const answer = await gatewayFetch(behavior)('https://weir/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'items/m',
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    });
    const chunks = (await answer.text())
      .split('\n\n')
      .map((one) => decodeObject(one.replace('data: ', '')) ?? {});
    const choices = chunks.flatMap(({ choices }) => objectsOf(choices).slice(0, 1));
    const deltas = choices.map(({ delta }) => objectOf(delta));
    const calls = deltas
      .flatMap(({ tool_calls }) => objectsOf(tool_calls))
      .map((one) => objectOf(one.function));
    expect(deltas.map(({ content }) => textOf(content)).join('')).toBe(EXPECTED.text);
    expect(deltas.map(({ reasoning_content }) => textOf(reasoning_content)).join('')).toBe(
      EXPECTED.reasoning,
    );
    expect(calls.map(({ name }) => textOf(name)).join('')).toBe('fg');
    expect(calls.map((one) => textOf(one.arguments)).join('')).toBe('{"a":1}{"b":2}');
    expect(choices.map(({ finish_reason }) => textOf(finish_reason)).filter(Boolean)).toEqual(['tool_calls']);
    for (const { choices } of chunks) expect(objectsOf(choices).length).toBeLessThanOrEqual(1);
  });
});

const SAID = message('msg_1', 'Hello there');
const MIXED: Readonly<Record<string, readonly string[]>> = {
  'deltas with an id, ends with an index': [
    frame('response.output_item.added', { item: { ...SAID, content: [] }, output_index: 0 }),
    ...['Hello', ' there'].map((delta) => textDelta({ item_id: 'msg_1', content_index: 0, delta })),
    frame('response.output_text.done', { item_id: 'msg_1', content_index: 0, text: 'Hello there' }),
    done(SAID, 0),
    completed([SAID]),
  ],
  'deltas with an id first, and the only index at the end of the item': [
    ...['Hello', ' there'].map((delta) => textDelta({ item_id: 'msg_1', content_index: 0, delta })),
    done(SAID, 0),
    completed([SAID]),
  ],
  'deltas with an index, ends with an id': [
    frame('response.output_item.added', { item: { ...SAID, content: [] }, output_index: 0 }),
    ...['Hello', ' there'].map((delta) =>
      textDelta({ item_id: 'msg_1', output_index: 0, content_index: 0, delta }),
    ),
    frame('response.output_text.done', { item_id: 'msg_1', content_index: 0, text: 'Hello there' }),
    done(SAID),
    completed([SAID]),
  ],
  'no index at all': [
    ...['Hello', ' there'].map((delta) => textDelta({ item_id: 'msg_1', content_index: 0, delta })),
    done(SAID),
    completed([SAID]),
  ],
};

describe.each(Object.entries(MIXED))('O7 an item with %s', (_, events) => {
  test.each(Object.keys(CLIENTS).filter((name) => !name.startsWith('Responses, ')))(
    '%s: its text once',
    async (client) => {
      expect(await see(client, 'responses', sse(...events))).toMatchObject({ text: 'Hello there' });
    },
  );
});

test.each(Object.keys(CLIENTS))(
  'O7 %s: a call whose events have an id and an index in turn: once',
  async (client) => {
    const item = call('fc_1', 'f', '{"a":1}');
    const events = [
      frame('response.output_item.added', { item: { ...item, arguments: '' }, output_index: 0 }),
      ...['{"a"', ':1}'].map((delta) =>
        frame('response.function_call_arguments.delta', { item_id: 'fc_1', output_index: 0, delta }),
      ),
      frame('response.function_call_arguments.done', { item_id: 'fc_1', arguments: '{"a":1}' }),
      done(item, 0),
      completed([item]),
    ];
    if (client === 'Responses, streamed') return;
    expect(await see(client, 'responses', sse(...events))).toMatchObject({ calls: [['f', '{"a":1}']] });
  },
);

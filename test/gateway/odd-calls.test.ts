/** Tool calls with indexes that do not count from 0, or whose name comes late or never, as the official SDKs see them (C7, A3). */
import { describe, expect, test } from 'vitest';
import { CLIENTS, frame, see, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, RoutedGateway, refuse, type Script, sse } from './upstreams.ts';

interface Piece {
  readonly index?: number;
  readonly id?: string;
  readonly name?: string | null;
  readonly args?: string;
}

function fragment({ index, id, name, args }: Piece): object {
  return { index, id, ...(id && { type: 'function' }), function: { name, arguments: args } };
}

const pieces = (...list: Piece[]) => event({ role: 'assistant', tool_calls: list.map(fragment) });
const TEXT = event({ role: 'assistant', content: 'So' });
const END = event({}, 'tool_calls');
const f = (index: number): Piece => ({ index, id: 'c1', name: 'f', args: '{"a":1}' });
const g = (index: number): Piece => ({ index, id: 'c2', name: 'g', args: '{"b":2}' });
const F = ['f', '{"a":1}'] as const;
const G = ['g', '{"b":2}'] as const;

/** A complete answer with these calls, of a chat server. */
function whole(...list: Piece[]): Behavior {
  const message = { role: 'assistant', content: null, tool_calls: list.map(fragment) };
  return json({ id: 'up', model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
}

const ITEM = { type: 'function_call', id: 'fc_1', call_id: 'c1', status: 'completed' };
const RESPONSE = { id: 'resp_1', object: 'response', model: 'm', status: 'completed', output: [] };

/** A call of a Responses server whose tool is named where the item ends. */
const LATE_ITEM = sse(
  frame('response.created', { response: { ...RESPONSE, status: 'in_progress' } }),
  frame('response.output_item.added', { output_index: 0, item: { ...ITEM, arguments: '' } }),
  ...['{"a"', ':1}'].map((delta) =>
    frame('response.function_call_arguments.delta', { output_index: 0, item_id: 'fc_1', delta }),
  ),
  frame('response.output_item.done', { output_index: 0, item: { ...ITEM, name: 'f', arguments: '{"a":1}' } }),
  frame('response.completed', {
    response: { ...RESPONSE, output: [{ ...ITEM, name: 'f', arguments: '{"a":1}' }] },
  }),
);

type Case = readonly [name: string, upstream: UpstreamName, behavior: Behavior, calls: readonly unknown[]];

const COMPLETE: readonly Case[] = [
  ['an only call with the index 1', 'chat', sse(pieces(f(1)), END, DONE), [F]],
  ['the same, after text', 'chat', sse(TEXT, pieces(f(1)), END, DONE), [F]],
  [
    'the same, beside the finish',
    'chat',
    sse(TEXT, event({ tool_calls: [fragment(f(1))] }, 'stop'), DONE),
    [F],
  ],
  [
    'the same, in pieces',
    'chat',
    sse(
      pieces({ ...f(1), args: '' }),
      pieces({ index: 1, args: '{"a"' }),
      pieces({ index: 1, args: ':1}' }),
      END,
      DONE,
    ),
    [F],
  ],
  ['a gap between indexes', 'chat', sse(pieces(f(0)), pieces(g(2)), END, DONE), [F, G]],
  ['a gap within one chunk', 'chat', sse(pieces(f(3), g(9)), END, DONE), [F, G]],
  ['indexes that go down', 'chat', sse(pieces(f(1)), pieces(g(0)), END, DONE), [F, G]],
  [
    'an index beyond all bounds',
    'chat',
    sse(pieces(f(9007199254740991)), pieces(g(1e300)), END, DONE),
    [F, G],
  ],
  ['an index that begins at 1, not streamed', 'chat', whole(f(1), g(3)), [F, G]],
  ['calls behind a text block of Claude', 'messages', claude(['f', '{"a":1}'], ['g', '{"b":2}']), [F, G]],
  [
    'arguments before the name',
    'chat',
    sse(
      pieces({ ...f(0), name: null, args: '{"a"' }),
      pieces({ index: 0, name: 'f', args: '' }),
      pieces({ index: 0, args: ':1}' }),
      END,
      DONE,
    ),
    [F],
  ],
  [
    'all arguments before the name, after text, beside the finish',
    'chat',
    sse(
      TEXT,
      pieces({ ...f(0), name: null }),
      event({ tool_calls: [fragment({ index: 0, name: 'f' })] }, 'stop'),
      DONE,
    ),
    [F],
  ],
  [
    'arguments before the names of two calls that mix',
    'chat',
    sse(
      pieces({ ...f(1), name: null }, { ...g(2), name: null, args: '{"b"' }),
      pieces({ index: 2, name: 'g', args: ':2}' }),
      pieces({ index: 1, name: 'f' }),
      END,
      DONE,
    ),
    [F, G],
  ],
  [
    'the legacy form',
    'chat',
    sse(
      event({ role: 'assistant', function_call: { arguments: '{"a":1}' } }),
      event({ function_call: { name: 'f' } }),
      event({}, 'function_call'),
      DONE,
    ),
    [F],
  ],
  ['a name at the end of the item', 'responses', LATE_ITEM, [F]],
];

/** A message of Claude with a text and these calls, whose blocks count from 1. */
function claude(...calls: (readonly [name: string, args: string])[]): Behavior {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} };
  const blocks = calls.flatMap(([name, partial_json], at) => [
    frame('content_block_start', {
      index: at + 1,
      content_block: { type: 'tool_use', id: `toolu_${at}`, name, input: {} },
    }),
    frame('content_block_delta', { index: at + 1, delta: { type: 'input_json_delta', partial_json } }),
    frame('content_block_stop', { index: at + 1 }),
  ]);
  return sse(
    frame('message_start', { message }),
    frame('content_block_start', { index: 0, content_block: { type: 'text', text: 'So' } }),
    frame('content_block_stop', { index: 0 }),
    ...blocks,
    frame('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
    frame('message_stop', {}),
  );
}

function casesOf(list: readonly Case[]) {
  return list.flatMap(([name, upstream, behavior, calls]) =>
    Object.keys(CLIENTS)
      // In passthrough events are as they came.
      .filter((client) => upstream === 'chat' || client.toLowerCase().split(',')[0] !== upstream)
      .map((client) => ({ name, upstream, behavior, calls, client })),
  );
}

describe('C7 A3 every call arrives, with its name and its arguments', () => {
  test.each(casesOf(COMPLETE))('$name, to $client', async ({ client, upstream, behavior, calls }) => {
    expect(await see(client, upstream, behavior)).toMatchObject({ calls });
  });
});

const NO_NAME = 'without the name of its tool';
const NAMELESS: readonly Case[] = [
  ['arguments', 'chat', sse(pieces({ ...f(0), name: null }), END, DONE), []],
  [
    'arguments, after text, and the finish says stop',
    'chat',
    sse(TEXT, pieces({ index: 0, args: '{}' }), event({}, 'stop'), DONE),
    [],
  ],
  ['an id', 'chat', sse(TEXT, pieces({ index: 0, id: 'c1' }), END, DONE), []],
  ['an empty name', 'chat', sse(pieces({ ...f(0), name: '' }), END, DONE), []],
  ['cut arguments', 'chat', sse(pieces({ ...f(0), name: null, args: '{"a"' }), END, DONE), []],
  ['the first of two calls', 'chat', sse(pieces({ ...f(0), name: null }), pieces(g(1)), END, DONE), []],
  ['the last of two calls', 'chat', sse(pieces(f(0)), pieces({ ...g(1), name: null }), END, DONE), []],
  ['arguments before [DONE]', 'chat', sse(TEXT, pieces({ ...f(0), name: null }), DONE), []],
  ['an answer that is not streamed', 'chat', whole({ ...f(0), name: null }), []],
  [
    'an item',
    'responses',
    sse(frame('response.completed', { response: { ...RESPONSE, output: [{ ...ITEM, arguments: '{}' }] } })),
    [],
  ],
  [
    'a part of Gemini',
    'gemini',
    sse(
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ functionCall: { args: { a: 1 } } }] }, finishReason: 'STOP' }] })}\n\n`,
    ),
    [],
  ],
];

describe('C7 a call that never gets a name: upstream_invalid, and no finish', () => {
  test.each(casesOf(NAMELESS))('$name, to $client', async ({ client, upstream, behavior }) => {
    expect(await see(client, upstream, behavior)).toEqual({ error: expect.stringContaining(NO_NAME) });
  });

  test('the error has its code and its status, and another target is tried before any output', async () => {
    const fails: Script = sse(pieces({ ...f(0), name: null }), END, DONE);
    const env = { ALIASES: JSON.stringify({ a: ['deepseek/x', 'mistral/y'] }) };
    const gateway = new RoutedGateway({ x: [fails], y: [sse(TEXT, event({}, 'stop'), DONE)] }, env);
    const text = await (await gateway.ask({ model: 'a', stream: true })).text();
    expect(gateway.models).toEqual(['x', 'y']);
    expect(text).not.toContain('tool_calls');
    const last = new RoutedGateway({ x: [fails], y: [refuse(500)] });
    const response = await last.ask({ model: 'deepseek/x', stream: true });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_invalid' } });
  });

  test('at the limit such a call was cut: the output is that of its limit, with the calls that are complete', async () => {
    const cut = sse(pieces({ index: 0, args: '{"a"' }), pieces(g(1)), event({}, 'length'), DONE);
    for (const client of ['chat, streamed', 'chat'])
      expect(await see(client, 'chat', cut)).toMatchObject({ calls: [G], finish: 'length' });
  });

  test('an empty fragment that no name follows is no call', async () => {
    const empty = sse(TEXT, event({ tool_calls: [{ index: 0 }, {}] }), event({}, 'stop'), DONE);
    expect(await see('chat, streamed', 'chat', empty)).toMatchObject({
      text: 'So',
      calls: [],
      finish: 'stop',
    });
  });
});

test('C7 the chunks of a stream whose first call has the index 1 and a late name', async () => {
  const behavior = sse(
    pieces({ index: 1, id: 'c1', args: '{"a"' }),
    pieces({ index: 1, name: 'f', args: ':1}' }),
    END,
    DONE,
  );
  const gateway = new RoutedGateway(
    { m: [behavior] },
    { PROVIDERS: JSON.stringify({ tolerant: { base_url: 'https://t' } }) },
  );
  const text = await (await gateway.ask({ model: UPSTREAMS.chat, stream: true })).text();
  expect(text.match(/"tool_calls":\[.*?\](?=\})/g)).toEqual([
    '"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}]',
  ]);
});

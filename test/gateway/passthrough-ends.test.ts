/** Ends of calls on the passthrough, as the official SDKs' helpers see them event by event (N2, C7, C8). */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { frame, gatewayFetch } from './sdk-clients.ts';
import { sse } from './upstreams.ts';

const CUT = ['{"content":"abc"', ',"more":"x'];
const WHOLE = ['{"content":', '"abc"}'];

interface Block {
  readonly index: number;
  readonly type?: string;
  readonly pieces: readonly string[];
}

function messageFrames(blocks: readonly Block[], ...end: readonly string[]): string[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} };
  return [
    frame('message_start', { message }),
    ...blocks.flatMap(({ index, type = 'tool_use', pieces }) => [
      frame('content_block_start', {
        index,
        content_block: { type, id: `toolu_${index}`, name: 'write', input: {} },
      }),
      ...pieces.map((partial_json) =>
        frame('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } }),
      ),
      frame('content_block_stop', { index }),
    ]),
    ...end,
  ];
}

const messageEnd = (stop_reason: string | null) => [
  frame('message_delta', { delta: { stop_reason }, usage: { output_tokens: 9 } }),
  frame('message_stop', {}),
];

/** The blocks that the helper of Anthropic's SDK calls finished, and the end. */
async function messagesHelper(frames: readonly string[]) {
  const client = new Anthropic({
    apiKey: 'x',
    baseURL: 'https://weir.example',
    maxRetries: 0,
    fetch: gatewayFetch(sse(...frames)),
  });
  const finished: unknown[] = [];
  const stream = client.messages.stream({
    model: 'anthropic/m',
    max_tokens: 99,
    messages: [{ role: 'user', content: 'Hello' }],
  });
  stream.on('contentBlock', (block) => finished.push('input' in block ? block.input : block.type));
  const end = await stream.finalMessage().then(
    ({ stop_reason }) => stop_reason,
    (error: Error) => error.message,
  );
  return { finished, end };
}

describe('C8 N2 Messages: the helper of Anthropic’s SDK', () => {
  test.each(['tool_use', 'end_turn', null])(
    'a cut call, stop_reason %s: no finished block',
    async (reason) => {
      const { finished, end } = await messagesHelper(
        messageFrames([{ index: 0, pieces: CUT }], ...messageEnd(reason)),
      );
      expect(finished).toEqual([]);
      expect(end).toContain('ended a tool call before its arguments were complete');
    },
  );

  test('a cut call and the body’s end: no finished block', async () => {
    const { finished, end } = await messagesHelper(messageFrames([{ index: 0, pieces: CUT }]));
    expect(finished).toEqual([]);
    expect(end).toContain('ended the stream before');
  });

  test.each(['max_tokens', 'refusal', 'pause_turn'])(
    'a cut call, stop_reason %s: its block ends',
    async (reason) => {
      const { finished, end } = await messagesHelper(
        messageFrames([{ index: 0, pieces: CUT }], ...messageEnd(reason)),
      );
      expect(finished).toEqual([{ content: 'abc' }]);
      expect(end).toBe(reason);
    },
  );

  test('a message_delta without a reason before that with one: the block ends before the second', async () => {
    const [first = '', ...rest] = [...messageEnd(null).slice(0, 1), ...messageEnd('max_tokens')];
    const { finished } = await messagesHelper(messageFrames([{ index: 0, pieces: CUT }], first, ...rest));
    expect(finished).toEqual([{ content: 'abc' }]);
  });

  test('a whole call, and a cut one: only the first is finished', async () => {
    const blocks = [WHOLE, CUT].map((pieces, index) => ({ index, pieces }));
    const { finished } = await messagesHelper(messageFrames(blocks, ...messageEnd('tool_use')));
    expect(finished).toEqual([{ content: 'abc' }]);
  });

  test('cut input of a tool of the provider: its block ends at once, as the client does not run it', async () => {
    const server = { index: 0, type: 'server_tool_use', pieces: CUT };
    const { finished } = await messagesHelper(messageFrames([server], ...messageEnd('end_turn')));
    expect(finished).toEqual([{ content: 'abc' }]);
  });
});

const ITEM = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'write' };
const AT = { output_index: 0, item_id: 'fc_1' };

function callFrames(pieces: readonly string[], args: string, ...between: readonly string[]): string[] {
  const item = { ...ITEM, arguments: args, status: 'completed' };
  const response = { id: 'resp_1', object: 'response', model: 'm', status: 'completed', output: [item] };
  return [
    frame('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
    frame('response.output_item.added', {
      output_index: 0,
      item: { ...ITEM, arguments: '', status: 'in_progress' },
    }),
    ...pieces.map((delta) => frame('response.function_call_arguments.delta', { ...AT, delta })),
    ...between,
    frame('response.function_call_arguments.done', { ...AT, arguments: args }),
    frame('response.output_item.done', { output_index: 0, item }),
    frame('response.completed', { response }),
  ].map((text, number) => text.replace(/\}\n\n$/, `,"sequence_number":${number}}\n\n`));
}

async function responsesHelper(frames: readonly string[]) {
  const client = new OpenAI({
    apiKey: 'x',
    baseURL: 'https://weir.example/v1',
    maxRetries: 0,
    fetch: gatewayFetch(sse(...frames)),
  });
  const types: string[] = [];
  const numbers: number[] = [];
  let deltas = '';
  const stream = client.responses.stream({ model: 'items/m', input: 'Hello' });
  stream.on('event', (event) => {
    types.push(event.type.replace('response.', ''));
    if ('sequence_number' in event) numbers.push(event.sequence_number);
    if (event.type === 'response.function_call_arguments.delta') deltas += event.delta;
  });
  const { output } = await stream.finalResponse();
  const [item] = output;
  return { types, numbers, deltas, final: item?.type === 'function_call' ? item.arguments : '' };
}

describe('C7 N2 Responses: the deltas of a call form the arguments of its item', () => {
  test.each<[name: string, frames: string[], json: string]>([
    ['a placeholder, then the arguments', callFrames(['{}', '{"a"', ':1}'], '{"a":1}'), '{"a":1}'],
    ['the placeholder null', callFrames(['null', '{"a":1}'], '{"a":1}'), '{"a":1}'],
    ['two placeholders', callFrames(['{}', '{}', '{"a":1}'], '{"a":1}'), '{"a":1}'],
    ['a placeholder, and half of the arguments', callFrames(['{}', '{"a":'], '{"a":1}'), '{"a":1}'],
    ['{} alone', callFrames(['{}'], '{}'), '{}'],
    ['{} in two pieces', callFrames(['{', '}'], '{}'), '{}'],
    ['an empty delta before it', callFrames(['', '{}', '{"a":1}'], '{"a":1}'), '{"a":1}'],
    ['an empty object within', callFrames(['{"a":', '{}', '}'], '{"a":{}}'), '{"a":{}}'],
    ['{ } and white space', callFrames(['{ }', ' '], '{ } '), '{ } '],
  ])('%s', async (_, frames, json) => {
    const { deltas, final, numbers } = await responsesHelper(frames);
    expect(deltas).toBe(json);
    expect(final).toBe(json);
    expect(numbers).toEqual(numbers.map((__, at) => at));
  });

  test('an event of another kind after {}: it is sent before that event', async () => {
    const other = frame('response.in_progress', {
      response: { id: 'resp_1', object: 'response', model: 'm', output: [] },
    });
    const { types } = await responsesHelper(callFrames(['{}'], '{}', other));
    expect(types.slice(2, 4)).toEqual(['function_call_arguments.delta', 'in_progress']);
  });
});

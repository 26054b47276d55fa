/** Tests answers whose only choice has another index than 0, as the official SDKs see them (C3). */
import { describe, expect, test } from 'vitest';
import { CLIENTS, gatewayFetch, see, UPSTREAMS, type UpstreamName } from './sdk-clients.ts';
import { type Behavior, DONE, json, sse, USAGE } from './upstreams.ts';

const frameOf = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const at = (index: number, delta: object, finish_reason: string | null = null, more: object = {}) =>
  frameOf({ id: 'up', object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason }], ...more });
const WORDS = ['One', ' two', ' three', ' four', ' five', ' six', ' seven', ' eight'];
const TEXT = WORDS.join('');
const CALL = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
const CALLS = [['f', '{"a":1}']];

interface Case {
  readonly name: string;
  readonly upstream?: UpstreamName;
  readonly behavior: Behavior;
  readonly text?: string;
  readonly calls?: readonly (readonly string[])[];
}

const CASES: readonly Case[] = [1, 7, 127].flatMap((index) => [
  {
    name: `a text of choice ${index}`,
    behavior: sse(
      at(index, { role: 'assistant', content: '' }),
      ...WORDS.map((content) => at(index, { content })),
      at(index, {}, 'stop'),
      DONE,
    ),
    text: TEXT,
  },
  {
    name: `a call of choice ${index} behind a text`,
    behavior: sse(
      ...WORDS.map((content) => at(index, { content })),
      at(index, { tool_calls: [{ ...CALL, function: { name: 'f', arguments: '' } }] }),
      ...['{"a"', ':1}'].map((piece) =>
        at(index, { tool_calls: [{ index: 0, function: { arguments: piece } }] }),
      ),
      at(index, {}, 'tool_calls'),
      DONE,
    ),
    text: TEXT,
    calls: CALLS,
  },
  {
    name: `choice ${index} behind a chunk without choices, all in one chunk`,
    behavior: sse(
      frameOf({ id: 'up', choices: [] }),
      at(index, { role: 'assistant', content: TEXT, tool_calls: [CALL] }, 'tool_calls', { usage: USAGE }),
      DONE,
    ),
    text: TEXT,
    calls: CALLS,
  },
  {
    name: `choice ${index} with its message beside the last delta`,
    behavior: sse(
      at(index, { role: 'assistant' }),
      frameOf({
        id: 'up',
        choices: [{ index, delta: {}, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
      }),
      DONE,
    ),
    text: TEXT,
  },
  {
    name: `choice ${index} of an answer that is not streamed`,
    behavior: json({
      id: 'up',
      choices: [
        {
          index,
          message: { role: 'assistant', content: TEXT, tool_calls: [CALL] },
          finish_reason: 'tool_calls',
        },
      ],
      usage: USAGE,
    }),
    text: TEXT,
    calls: CALLS,
  },
  {
    name: `candidate ${index} of Gemini`,
    upstream: 'gemini' as const,
    behavior: sse(
      ...WORDS.map((text) => frameOf({ candidates: [{ index, content: { parts: [{ text }] } }] })),
      frameOf({ candidates: [{ index, finishReason: 'STOP' }] }),
    ),
    text: TEXT,
  },
]);

describe('C3 the only choice that was requested has index 0', () => {
  test.each(CASES.flatMap((one) => Object.keys(CLIENTS).map((client) => ({ ...one, client }))))(
    '$name: to $client',
    async ({ client, upstream = 'chat', behavior, text = '', calls = [] }) => {
      expect(await see(client, upstream, behavior)).toMatchObject({ text, calls });
    },
  );

  const indexesOf = async (behavior: Behavior, fields: object = {}) => {
    const response = await gatewayFetch(behavior)('https://weir.example/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({
        model: UPSTREAMS.chat,
        messages: [{ role: 'user', content: 'Hi' }],
        stream: true,
        ...fields,
      }),
    });
    const frames = (await response.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'));
    return new Set(
      frames.flatMap((frame) => {
        const { choices } = JSON.parse(frame.slice('data: '.length));
        return choices.map(({ index, delta }: { index: number; delta: object }) =>
          'content' in delta ? `${index} ${delta.content}` : `${index}`,
        );
      }),
    );
  };

  test('in the chunks of a chat client', async () => {
    const events = [at(1, { content: 'a' }), at(1, { content: 'b' }), at(1, {}, 'stop'), DONE];
    expect(await indexesOf(sse(...events))).toEqual(new Set(['0 a', '0 b', '0']));
  });

  test('of two choices at a server that was asked for one, each keeps an index of its own', async () => {
    const events = [
      at(1, { content: 'a' }),
      at(0, { content: 'b' }),
      at(1, {}, 'stop'),
      at(0, {}, 'stop'),
      DONE,
    ];
    expect(await indexesOf(sse(...events))).toEqual(new Set(['0 a', '1 b', '0', '1']));
  });

  test.each([
    [[1, 0], { n: 2 }],
    [[0, 1], {}],
  ])('choices %j of a request with %j keep theirs', async (indexes, fields) => {
    const events = indexes.flatMap((index) => [at(index, { content: `c${index}` }, 'stop')]);
    const expected = new Set(indexes.map((index) => `${index} c${index}`));
    expect(await indexesOf(sse(...events, DONE), fields)).toEqual(expected);
  });
});

/** Reasoning that a chat server sends as typed parts of its content, as the official SDKs see it, and its tokens (C6). */
import { describe, expect, test } from 'vitest';
import { CLIENTS, see } from './sdk-clients.ts';
import { type Behavior, DONE, event, json, RoutedGateway, type Script, sse } from './upstreams.ts';

const THOUGHT = 'Hmm, so';
const TEXT = { type: 'text', text: 'Hello' };

const PARTS: readonly (readonly [name: string, parts: readonly object[]])[] = [
  [
    'a summary, as Databricks sends it',
    [
      {
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'Hmm,' },
          { type: 'summary_text', text: ' so' },
        ],
      },
    ],
  ],
  [
    'two parts',
    [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hmm,' }] },
      { type: 'reasoning', summary: ' so' },
    ],
  ],
  ['a text of its own name', [{ type: 'reasoning', reasoning: THOUGHT }]],
  ['a text', [{ type: 'reasoning', text: THOUGHT, signature: 'abc' }]],
  [
    'content, as an item of Responses has it',
    [{ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: THOUGHT }] }],
  ],
  [
    'content and its summary',
    [
      {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: THOUGHT }],
        content: [{ type: 'reasoning_text', text: THOUGHT }],
      },
    ],
  ],
  ['reasoning_text', [{ type: 'reasoning_text', text: THOUGHT }]],
  [
    'reasoning_content',
    [{ type: 'reasoning_content', reasoning_content: { text: THOUGHT, signature: 'abc' } }],
  ],
  ['thought', [{ type: 'thought', thought: THOUGHT }]],
  [
    'thinking',
    [
      {
        type: 'thinking',
        thinking: [
          { type: 'text', text: 'Hmm,' },
          { type: 'text', text: ' so' },
        ],
      },
    ],
  ],
];

function whole(content: readonly object[], more: object = {}): Behavior {
  const message = { role: 'assistant', content, ...more };
  return json({ id: 'up', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] });
}

const streamed = (parts: readonly object[]) =>
  sse(event({ role: 'assistant', content: parts }), event({ content: [TEXT] }), event({}, 'stop'), DONE);

const STREAMS: readonly (readonly [name: string, of: (parts: readonly object[]) => Behavior])[] = [
  [
    'first',
    (parts) =>
      sse(event({ role: 'assistant', content: parts }), event({ content: [TEXT] }), event({}, 'stop'), DONE),
  ],
  [
    'beside the text and the finish',
    (parts) =>
      sse(event({ role: 'assistant', content: '' }), event({ content: [...parts, TEXT] }, 'stop'), DONE),
  ],
  ['not streamed', (parts) => whole([...parts, TEXT])],
];

describe('C6 reasoning in typed parts', () => {
  const cases = PARTS.flatMap(([name, parts]) =>
    STREAMS.flatMap(([place, of]) =>
      Object.keys(CLIENTS).map((client) => ({ name, place, client, behavior: of(parts) })),
    ),
  );
  test.each(cases)('$name, $place, to $client', async ({ client, behavior }) => {
    expect(await see(client, 'chat', behavior)).toMatchObject({
      reasoning: THOUGHT,
      text: 'Hello',
      calls: [],
    });
  });

  test('after text: to a chat client, which has one text of each kind', async () => {
    const late = [{ type: 'reasoning', summary: [{ type: 'summary_text', text: THOUGHT }] }];
    const behavior = sse(
      event({ role: 'assistant', content: 'Hello' }),
      event({ content: late }),
      event({}, 'stop'),
      DONE,
    );
    expect(await see('chat, streamed', 'chat', behavior)).toMatchObject({
      reasoning: THOUGHT,
      text: 'Hello',
    });
  });

  test.each([true, false])(
    'its tokens count, and REASONING=strip removes it, streamed: %j',
    async (stream) => {
      const long = 'so many thoughts '.repeat(40);
      const parts = [{ type: 'reasoning', summary: [{ type: 'summary_text', text: long }] }];
      const script: Script = stream ? streamed(parts) : whole([...parts, TEXT]);
      const tokens = async (REASONING: string) => {
        const gateway = new RoutedGateway({ x: [script] }, { REASONING });
        const text = await (await gateway.ask({ model: 'mistral/x', stream })).text();
        expect(text.includes('thoughts')).toBe(REASONING === 'pass');
        return gateway.records[0]?.completion_tokens ?? 0;
      };
      expect(await tokens('pass')).toBeGreaterThan(80);
      expect(await tokens('strip')).toBe(await tokens('pass'));
    },
  );

  test('typed text of another name and a refusal are no reasoning', async () => {
    const parts = [
      { type: 'output_text', text: 'Hello' },
      { type: 'refusal', refusal: 'No' },
      { type: 'image_url' },
    ];
    for (const behavior of [
      whole(parts),
      sse(event({ role: 'assistant', content: parts }), event({}, 'stop'), DONE),
    ])
      expect(await see('chat', 'chat', behavior)).toMatchObject({
        reasoning: '',
        text: 'Hello',
        refusal: 'No',
      });
  });
});

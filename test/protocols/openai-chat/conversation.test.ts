/** Tests turns as messages of a chat request, and that a chat request with these messages is parsed into the same turns. */
import { describe, expect, test } from 'vitest';
import type { Block, Turn } from '../../../src/canonical/conversation.ts';
import { readToolChoice, readTools, readTurns } from '../../../src/protocols/openai-chat/conversation.ts';
import { chatBody } from '../../../src/protocols/openai-chat/conversation-writer.ts';
import type { JsonObject } from '../../../src/shared/json.ts';

const text = (value: string, extra?: JsonObject): Block => ({
  kind: 'text',
  text: value,
  ...(extra === undefined ? {} : { extra }),
});
const turn = (role: Turn['role'], ...blocks: readonly Block[]): Turn => ({ role, blocks, extra: {} });
const messagesOf = (...turns: readonly Turn[]) => chatBody({ fields: { messages: [] }, turns }).messages;

const MARK = { cache_control: { type: 'ephemeral' } };
const EXTRA_CONTENT = { google: { thought_signature: 's' }, weir: { provider: 'gemini' } };
const DETAIL = {
  type: 'reasoning.encrypted',
  data: 'd',
  id: 'weir1:openai:rs_1',
  format: 'openai-responses-v1',
  index: 1,
};

const CALL: Block = {
  kind: 'tool_call',
  id: 'c1',
  name: 'tide',
  input: '{"a":1}',
  signature: { value: 's', provider: 'gemini' },
  extra: { extra_content: EXTRA_CONTENT },
};
const REASONING: readonly Block[] = [
  { kind: 'reasoning', text: 'I think' },
  {
    kind: 'reasoning',
    text: '',
    signature: { value: 'd', isEncrypted: true, format: DETAIL.format, provider: 'openai', id: 'rs_1' },
    detail: DETAIL,
  },
];

/** Turns, and the messages that they are. */
const ROWS: readonly (readonly [what: string, turns: readonly Turn[], messages: readonly JsonObject[]])[] = [
  ['a single text is a text', [turn('user', text('Hi'))], [{ role: 'user', content: 'Hi' }]],
  [
    'a mark needs a part',
    [turn('system', text('Hi', MARK))],
    [{ role: 'system', content: [{ type: 'text', text: 'Hi', ...MARK }] }],
  ],
  [
    'media',
    [
      turn(
        'user',
        { kind: 'media', media: { type: 'image', url: 'https://e.com/a', detail: 'low' }, extra: MARK },
        { kind: 'media', media: { type: 'file', url: 'data:,a', name: 'a.pdf', fileId: 'f' } },
        { kind: 'media', media: { type: 'audio', data: 'aGk=', format: 'mp3' } },
        { kind: 'unknown', raw: { type: 'x' } },
      ),
    ],
    [
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'https://e.com/a', detail: 'low' }, ...MARK },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:,a', file_id: 'f' } },
          { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
          { type: 'x' },
        ],
      },
    ],
  ],
  [
    'reasoning, text, calls and their signatures',
    [turn('assistant', ...REASONING, text('Now'), CALL)],
    [
      {
        role: 'assistant',
        content: 'Now',
        reasoning_content: 'I think',
        reasoning_details: [DETAIL],
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'tide', arguments: '{"a":1}' },
            extra_content: EXTRA_CONTENT,
          },
        ],
      },
    ],
  ],
  [
    'a step without a text has null beside calls',
    [turn('assistant', { kind: 'tool_call', id: 'c', name: 'f', input: '' })],
    [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '' } }],
      },
    ],
  ],
  [
    'a result of parts keeps them',
    [turn('user', { kind: 'tool_result', id: 'c', content: [text('a', MARK)] })],
    [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'a', ...MARK }] }],
  ],
];

describe('I2 B2 chatBody', () => {
  test.each(ROWS)('%s', (_, turns, messages) => {
    expect(messagesOf(...turns)).toEqual(messages);
  });

  test('results are messages of their own, before the other blocks of their turn', () => {
    const result = (id: string): Block => ({ kind: 'tool_result', id, content: id });
    expect(messagesOf(turn('user', text('Hi'), result('a'), result('b')))).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'a' },
      { role: 'tool', tool_call_id: 'b', content: 'b' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  test('the messages have the place of the empty list, and a chat client’s body is the body itself', () => {
    const written = chatBody({
      fields: { model: 'm', messages: [], n: 1 },
      turns: [turn('user', text('Hi'))],
    });
    expect(Object.keys(written)).toEqual(['model', 'messages', 'n']);
    const fields = { messages: [{ role: 'user', content: 'Hi', x: 1 }] };
    expect(chatBody({ fields, turns: null })).toBe(fields);
  });

  test.each(ROWS)('read again: %s', (_, turns, messages) => {
    const withoutExtra = (value: readonly Turn[]) =>
      JSON.parse(JSON.stringify(value), (key, inner) =>
        key === 'extra' && (Object.keys(inner).length === 0 || inner.extra_content !== undefined)
          ? undefined
          : inner,
      );
    expect(withoutExtra(readTurns(messages))).toEqual(withoutExtra(turns));
  });
});

describe('readTools', () => {
  const F = { name: 'f', parameters: {}, x: 1 };

  test('a function keeps its definition, and what is beside it', () => {
    const read = { kind: 'function', definition: F, extra: { cache_control: {} } };
    expect(readTools([{ type: 'function', function: F, cache_control: {} }])).toEqual([read]);
    expect(readTools([{ function: F, cache_control: {} }])).toEqual([read]);
  });

  test.each([
    { type: 'web_search' },
    { type: 'function', function: 'f' },
    { type: 'other', function: F },
    'f',
    null,
  ])('%j is kept as it came', (raw) => {
    expect(readTools([raw])).toEqual([{ kind: 'unknown', raw }]);
  });

  test('no list is no tools', () => {
    expect(readTools({})).toBeUndefined();
  });
});

describe('readToolChoice', () => {
  const f = { type: 'function', name: 'f' };
  const g = { type: 'custom', name: 'g' };
  test.each([
    ['none', { kind: 'none' }],
    ['any', { kind: 'required' }],
    [
      { type: 'function', function: { name: 'f' } },
      { kind: 'tool', ...f },
    ],
    [f, { kind: 'tool', ...f }],
    [
      { type: 'custom', custom: { name: 'g' } },
      { kind: 'tool', ...g },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [f, { type: 'function', function: {} }] },
      },
      { kind: 'allowed', mode: 'required', tools: [f] },
    ],
    [
      { type: 'allowed_tools', tools: [g] },
      { kind: 'allowed', mode: 'auto', tools: [g] },
    ],
    [
      { type: 'tool', name: 'f' },
      { kind: 'unknown', raw: { type: 'tool', name: 'f' } },
    ],
    ['other', { kind: 'unknown', raw: 'other' }],
    [undefined, undefined],
  ])('%j', (given, choice) => {
    expect(readToolChoice(given)).toEqual(choice);
  });
});

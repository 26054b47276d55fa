/** Tests reasoning states: the provider that a state is from receives it unchanged, and no other provider does. */
import { describe, expect, test } from 'vitest';
import { messages as protocol } from '../../../src/protocols/anthropic-messages/client.ts';
import { chatBody } from '../../../src/protocols/openai-chat/conversation-writer.ts';
import { decodeReasoningState, encodeReasoningState } from '../../../src/protocols/shared/reasoning-state.ts';
import { EmbeddedJson, isObject, readArray } from '../../../src/shared/json.ts';
import { rewrite } from '../../request-translation/send.ts';

/** The reasoning details that a provider receives when a Messages client sends a state back. */
function sentBack(provider: string, origin: string, detail: object): unknown {
  const block = { type: 'redacted_thinking', data: encodeReasoningState(origin, { detail: { ...detail } }) };
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [block, { type: 'text', text: 'b' }] },
    { role: 'user', content: 'c' },
  ];
  const read = protocol.readRequest({ model: 'm', max_tokens: 9, messages });
  if (read.kind === 'error') throw new Error(read.error.message);
  const sent = rewrite(provider, chatBody(read.value));
  if (sent.kind === 'error') throw new Error(sent.error.message);
  return readArray(sent.body.messages).flatMap((message) =>
    isObject(message) ? readArray(message.reasoning_details) : [],
  );
}

describe('I7 encodeReasoningState, decodeReasoningState', () => {
  test.each([
    [
      { detail: { type: 'reasoning.encrypted', data: 'é🌊'.repeat(9000), id: null } },
      { detail: { type: 'reasoning.encrypted', data: 'é🌊'.repeat(9000), id: 'weir1:a-b:' } },
    ],
    [
      { call: 'c', extra_content: { google: { thought_signature: 't' } } },
      { call: 'c', extra_content: { google: { thought_signature: 't' }, weir: { provider: 'a-b' } } },
    ],
  ])('a state is decoded as it was encoded, tagged with its provider', (state, tagged) => {
    const encoded = encodeReasoningState('a-b', state);
    expect(encoded).toMatch(/^weir1:a-b:[\w-]+$/);
    expect(decodeReasoningState(encoded, new EmbeddedJson())).toEqual(tagged);
  });

  test.each(['EqQB', 'weir1:a', 'weir1:a:', 'weir1:a:!!', 'weir1:a:bm9wZQ', 7, null])(
    '%j is not a state',
    (text) => {
      expect(decodeReasoningState(text, new EmbeddedJson())).toBeNull();
    },
  );
});

describe('I7 details', () => {
  test.each([{ id: 'rs_1' }, {}])('with %j go back to their provider unchanged', (own) => {
    const detail = { type: 'reasoning.encrypted', data: 'd', format: 'f', index: 0, ...own };
    expect(sentBack('openrouter', 'openrouter', detail)).toEqual([detail]);
  });

  test('go to no other provider', () => {
    expect(sentBack('openrouter', 'other', { type: 'reasoning.encrypted', data: 'd' })).toEqual([]);
  });
});

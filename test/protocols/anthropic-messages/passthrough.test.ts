/** Tests what of a Messages request stays behind where its provider speaks Messages: Weir's own tokens, and nothing else (N1, I7). */
import { describe, expect, test } from 'vitest';
import { messagesPassthrough } from '../../../src/protocols/anthropic-messages/passthrough.ts';
import { encodeReasoningState } from '../../../src/protocols/shared/reasoning-state.ts';

const TAGGED = encodeReasoningState('deepseek', { detail: {} });
const OWN = { type: 'thinking', thinking: 'b', signature: 'EqQB' };
const CALL = { type: 'tool_use', id: 'toolu_weir_1', name: 'f', input: {} };

describe('N1 withoutReasoningStates', () => {
  test('a body without any: itself', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'assistant', content: [OWN, CALL] }, 'x', { content: 'text' }],
    };
    expect(messagesPassthrough.withoutReasoningStates(body)).toBe(body);
  });

  test('blocks that Weir has tagged are left out, Anthropic’s own stay where they are', () => {
    const content = [
      { type: 'thinking', thinking: 'a', signature: TAGGED },
      OWN,
      { type: 'redacted_thinking', data: TAGGED },
      { type: 'redacted_thinking', data: 'EmwK' },
      CALL,
    ];
    const next = { role: 'user', content: 'b' };
    expect(
      messagesPassthrough.withoutReasoningStates({ x: 1, messages: [{ role: 'assistant', content }, next] }),
    ).toEqual({
      x: 1,
      messages: [
        { role: 'assistant', content: [OWN, { type: 'redacted_thinking', data: 'EmwK' }, CALL] },
        next,
      ],
    });
  });

  test('a message of nothing but such blocks is left out with them', () => {
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: TAGGED }] },
      { role: 'user', content: 'b' },
    ];
    expect(messagesPassthrough.withoutReasoningStates({ messages })).toEqual({
      messages: [messages[0], messages[2]],
    });
  });

  test('a tool loop that another provider began: it is translated, as it can’t go on without its thoughts', () => {
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: CALL.id, content: 'x' }] };
    const messages = [
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: TAGGED }, CALL] },
      result,
      { role: 'assistant', content: [CALL] },
      result,
    ];
    expect(messagesPassthrough.withoutReasoningStates({ messages })).toBeNull();
    expect(
      messagesPassthrough.withoutReasoningStates({ messages: [...messages, { role: 'user', content: 'b' }] }),
    ).not.toBeNull();
  });
});

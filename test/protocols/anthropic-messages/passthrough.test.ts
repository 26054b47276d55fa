/** Tests that passthrough of a Messages request removes other providers' reasoning states, and nothing else (N1, I7). */
import { describe, expect, test } from 'vitest';
import { messagesPassthrough } from '../../../src/protocols/anthropic-messages/passthrough.ts';
import { encodeReasoningState } from '../../../src/protocols/shared/reasoning-state.ts';
import type { JsonObject } from '../../../src/shared/json.ts';

const upstreamBody = (body: JsonObject) =>
  messagesPassthrough.upstreamBody(body, {
    provider: 'anthropic',
    encryptsReasoning: false,
    needsSignatures: false,
  });

const TAGGED = encodeReasoningState('deepseek', { detail: {} });
const OWN = { type: 'thinking', thinking: 'b', signature: 'EqQB' };
const CALL = { type: 'tool_use', id: 'toolu_weir_1', name: 'f', input: {} };

describe('N1 upstreamBody', () => {
  test('returns a body without reasoning states unchanged', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'assistant', content: [OWN, CALL] }, 'x', { content: 'text' }],
    };
    expect(upstreamBody(body)).toBe(body);
  });

  test('removes tagged blocks and keeps Anthropic’s own', () => {
    const content = [
      { type: 'thinking', thinking: 'a', signature: TAGGED },
      OWN,
      { type: 'redacted_thinking', data: TAGGED },
      { type: 'redacted_thinking', data: 'EmwK' },
      CALL,
    ];
    const next = { role: 'user', content: 'b' };
    expect(upstreamBody({ x: 1, messages: [{ role: 'assistant', content }, next] })).toEqual({
      x: 1,
      messages: [
        { role: 'assistant', content: [OWN, { type: 'redacted_thinking', data: 'EmwK' }, CALL] },
        next,
      ],
    });
  });

  test('removes a message that has only such blocks', () => {
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: TAGGED }] },
      { role: 'user', content: 'b' },
    ];
    expect(upstreamBody({ messages })).toEqual({
      messages: [messages[0], messages[2]],
    });
  });

  test('returns null in a tool loop that another provider began, because it is invalid without its thinking', () => {
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: CALL.id, content: 'x' }] };
    const messages = [
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: TAGGED }, CALL] },
      result,
      { role: 'assistant', content: [CALL] },
      result,
    ];
    expect(upstreamBody({ messages })).toBeNull();
    expect(upstreamBody({ messages: [...messages, { role: 'user', content: 'b' }] })).not.toBeNull();
  });
});

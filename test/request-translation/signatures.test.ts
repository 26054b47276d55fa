/** Tests to which provider signatures are sent back, and the placeholder for a missing one (A7). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { call, rewrite, sendMessages } from './send.ts';

const CALLING = { role: 'assistant', content: 'c', tool_calls: [call('aaaaaaaaa')] };

describe('A7 signatures', () => {
  const DETAILS = [{ type: 'reasoning.text', text: 'why', signature: 's' }];
  const EXTRA = { google: { thought_signature: 's' } };

  test.each(['deepseek', 'mistral', 'openai', 'groq', 'cerebras', 'xai', 'fireworks', 'moonshot', 'zai'])(
    'A7 %s: has no use for signatures, and gets none',
    (provider) => {
      const message = {
        ...CALLING,
        reasoning_details: DETAILS,
        tool_calls: [call('aaaaaaaaa', { extra_content: EXTRA })],
      };
      const sent = JSON.stringify(sendMessages(provider, [message]));
      expect(sent).not.toContain('reasoning_details');
      expect(sent).not.toContain('extra_content');
    },
  );

  test('A7 the text of details: sent as reasoning to a provider without details', () => {
    const message = { role: 'assistant', content: 'c', reasoning_details: DETAILS };
    expect(sendMessages('deepseek', [message])).toEqual([
      { role: 'assistant', content: 'c', reasoning_content: 'why' },
    ]);
  });

  test('A7 OpenRouter: details and extra content are sent back unchanged', () => {
    const message = {
      ...CALLING,
      reasoning_content: 'why',
      reasoning_details: DETAILS,
      tool_calls: [call('a', { extra_content: EXTRA })],
    };
    const { reasoning_content, ...rest } = message;
    expect(sendMessages('openrouter', [message])).toEqual([{ ...rest, reasoning: reasoning_content }]);
  });

  test('A7 OpenRouter: details of another provider are dropped, also fragments, and their text stays', () => {
    const pieces = [
      { type: 'reasoning.text', text: 'wh', index: 0 },
      { type: 'reasoning.text', text: 'y', index: 0 },
      { type: 'reasoning.text', signature: 's', id: 'weir1:anthropic:0', index: 0 },
      { type: 'reasoning.encrypted', data: 'd', id: 'weir1:anthropic:1', index: 1 },
    ];
    const thought = { ...CALLING, reasoning: 'why' };
    const own = { type: 'reasoning.encrypted', data: 'own', id: 'rs_1', index: 2 };
    expect(sendMessages('openrouter', [{ ...CALLING, reasoning_details: pieces }])).toEqual([thought]);
    expect(sendMessages('openrouter', [{ ...CALLING, reasoning_details: [...pieces, own] }])).toEqual([
      { ...thought, reasoning_details: [own] },
    ]);
  });

  test('A7 OpenRouter: details that lost their text are dropped; a signature of hidden thinking is sent back', () => {
    const detail = { type: 'reasoning.text', signature: 's', format: 'anthropic-claude-v1', index: 0 };
    const sent = (message: JsonObject) => sendMessages('openrouter', [{ ...CALLING, ...message }]);
    expect(sent({ reasoning_details: [detail], reasoning_content: 'y' })).toEqual([
      { ...CALLING, reasoning: 'y' },
    ]);
    expect(sent({ reasoning_details: [detail] })).toEqual([{ ...CALLING, reasoning_details: [detail] }]);
  });

  test('A7 Claude at OpenRouter, after a step without its signed reasoning: reasoning is turned off, and reported', () => {
    const model = 'anthropic/claude-haiku-4.5';
    const result = { role: 'tool', tool_call_id: 'aaaaaaaaa', content: '1' };
    const requested = (message: JsonObject, more: JsonObject = {}) =>
      rewrite('openrouter', {
        model,
        reasoning_effort: 'high',
        messages: [{ ...CALLING, ...message }, result],
        ...more,
      });
    expect(requested({ reasoning_content: 'y' })).toMatchObject({ changed: ['reasoning'] });
    expect(requested({ reasoning_content: 'y' })).not.toHaveProperty('body.reasoning_effort');
    expect(requested({}, { reasoning: { effort: 'high' } })).not.toHaveProperty('body.reasoning');
    expect(requested({ reasoning_details: DETAILS })).toMatchObject({
      changed: [],
      body: { reasoning_effort: 'high' },
    });
    expect(requested({}, { model: 'anthropic/claude-sonnet-5' })).toMatchObject({ changed: [] });
    expect(requested({}, { messages: [CALLING, result, CALLING] })).toMatchObject({ changed: [] });
  });

  test('A7 Gemini: a signature is sent back; the first call of a message without one gets the documented placeholder', () => {
    const model = 'gemini-3-flash';
    const stand = { google: { thought_signature: 'skip_thought_signature_validator' } };
    const calls = (...ids: string[]) => ({
      role: 'assistant',
      content: 'c',
      tool_calls: ids.map((id) => call(id)),
    });
    expect(sendMessages('like gemini', [calls('a', 'b')], { model })).toEqual([
      { ...calls('a', 'b'), tool_calls: [call('a', { extra_content: stand }), call('b')] },
    ]);
    const signed = { ...calls(), tool_calls: [call('a', { extra_content: EXTRA }), call('b')] };
    expect(sendMessages('like gemini', [signed], { model })).toEqual([signed]);
    expect(sendMessages('like gemini', [calls('a')], { model: 'gemini-2.5-flash' })).toEqual([calls('a')]);
  });

  test('A7 Gemini 3 at OpenRouter: the placeholder is a detail with the id of the first call; a signed message is unchanged', () => {
    const model = 'google/gemini-3-flash-preview';
    const message = { role: 'assistant', content: 'c', tool_calls: [call('a'), call('b')] };
    const detail = {
      type: 'reasoning.encrypted',
      data: 'skip_thought_signature_validator',
      format: 'google-gemini-v1',
      index: 0,
      id: 'a',
    };
    expect(sendMessages('openrouter', [message], { model })).toEqual([
      { ...message, reasoning_details: [detail] },
    ]);
    const signed = { ...message, reasoning_details: [{ type: 'reasoning.encrypted', data: 's' }] };
    expect(sendMessages('openrouter', [signed], { model })).toEqual([signed]);
    const claude = {
      type: 'reasoning.text',
      text: 't',
      signature: 's',
      format: 'anthropic-claude-v1',
      index: 0,
    };
    expect(sendMessages('openrouter', [{ ...message, reasoning_details: [claude] }], { model })).toEqual([
      { ...message, reasoning: 't', reasoning_details: [claude, detail] },
    ]);
    expect(sendMessages('openrouter', [message], { model: 'anthropic/claude-haiku-4.5' })).toEqual([message]);
  });
});

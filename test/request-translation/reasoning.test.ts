/** Tests how reasoning of earlier turns is sent to each provider (Q2). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { call, sendMessages, TOOL } from './send.ts';

const HI = { role: 'user', content: 'Hi' };
const CALLING = { role: 'assistant', content: 'c', tool_calls: [call('aaaaaaaaa')] };
const THINKING_PART = { type: 'thinking', thinking: [{ type: 'text', text: 'why' }], closed: true };

describe('Q2 reasoning is sent in the provider’s own form', () => {
  const FORMS: readonly (readonly [provider: string, model: string, sent: JsonObject])[] = [
    ['deepseek', 'deepseek-flash', { reasoning_content: 'why' }],
    ['cerebras', 'm', { reasoning: 'why' }],
    ['openrouter', 'm', { reasoning: 'why' }],
    ['xai', 'm', { reasoning_content: 'why' }],
    ['fireworks', 'm', { reasoning_content: 'why' }],
    ['moonshot', 'kimi-k3', { reasoning_content: 'why' }],
    ['zai', 'm', { reasoning_content: 'why' }],
    ['sglang', 'm', { reasoning_content: 'why' }],
    ['llamacpp', 'm', { reasoning_content: 'why' }],
    ['groq', 'm', {}],
    ['openai', 'm', {}],
    ['like gemini', 'm', {}],
    ['mistral', 'mistral-large-latest', {}],
  ];
  const SOURCES: readonly (readonly [name: string, fields: JsonObject])[] = [
    ['reasoning_content', { reasoning_content: 'why' }],
    ['reasoning', { reasoning: 'why' }],
    ['thinking_blocks', { thinking_blocks: [{ type: 'thinking', thinking: 'why', signature: 's' }] }],
  ];

  test.each(FORMS)('Q2 %s, %s: sent as %j, from every name that clients use', (provider, model, sent) => {
    for (const [, fields] of SOURCES) {
      const messages = [{ role: 'assistant', content: 'c', ...fields }, HI];
      expect(sendMessages(provider, messages, { model })).toEqual([
        { role: 'assistant', content: 'c', ...sent },
        HI,
      ]);
    }
  });

  test.each(['tolerant', 'vllm', 'ollama', 'together'])('Q2 %s: sent under both names', (provider) => {
    expect(sendMessages(provider, [{ role: 'assistant', content: 'c', reasoning_content: 'why' }])).toEqual([
      { role: 'assistant', content: 'c', reasoning: 'why', reasoning_content: 'why' },
    ]);
  });

  test('Q2 Mistral, a reasoning model: a thinking part before the text; existing thinking parts are kept', () => {
    const model = 'mistral-small-latest';
    expect(
      sendMessages('mistral', [{ role: 'assistant', content: 'c', reasoning_content: 'why' }, HI], { model }),
    ).toEqual([{ role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] }, HI]);
    const typed = { role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] };
    expect(sendMessages('mistral', [typed, HI], { model })).toEqual([typed, HI]);
    const beside = { role: 'assistant', content: '', reasoning: 'why', tool_calls: CALLING.tool_calls };
    expect(sendMessages('mistral', [beside], { model })).toEqual([
      { role: 'assistant', content: [THINKING_PART], tool_calls: CALLING.tool_calls },
    ]);
  });

  test('Q2 thinking parts at other providers: become their reasoning, and the other content stays', () => {
    const typed = { role: 'assistant', content: [THINKING_PART, { type: 'text', text: 'c' }] };
    expect(sendMessages('deepseek', [typed])).toEqual([
      { role: 'assistant', content: 'c', reasoning_content: 'why' },
    ]);
    expect(sendMessages('mistral', [typed, HI], { model: 'mistral-large-latest' })).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'c' }] },
      HI,
    ]);
    expect(sendMessages('groq', [{ role: 'assistant', content: [THINKING_PART] }])).toEqual([
      { role: 'assistant', content: '' },
    ]);
  });

  test.each<[name: string, model: string, more: JsonObject, isFilled: boolean]>([
    ['tools, thinking by default', 'deepseek-flash', { tools: [TOOL] }, true],
    ['tools, thinking asked for', 'deepseek-flash', { tools: [TOOL], thinking: { type: 'enabled' } }, true],
    ['tools, thinking off', 'deepseek-flash', { tools: [TOOL], thinking: { type: 'disabled' } }, false],
    ['tools, effort none', 'deepseek-flash', { tools: [TOOL], reasoning_effort: 'none' }, false],
    ['tools, a forced one', 'deepseek-flash', { tools: [TOOL], tool_choice: 'required' }, false],
    ['no tools', 'deepseek-flash', {}, false],
    ['an empty list of tools', 'deepseek-flash', { tools: [] }, false],
    ['the retired chat model', 'deepseek-chat', { tools: [TOOL] }, false],
  ])('Q2 DeepSeek, %s: every assistant message without reasoning gets ""', (_, model, more, isFilled) => {
    const messages = [{ role: 'user', content: 'u' }, { role: 'assistant', content: 'a' }, CALLING];
    const filled = isFilled ? { reasoning_content: '' } : {};
    expect(sendMessages('deepseek', messages, { model, ...more })).toEqual([
      { role: 'user', content: 'u' },
      { role: 'assistant', content: 'a', ...filled },
      { ...CALLING, ...filled },
    ]);
  });

  test('Q2 DeepSeek, the retired reasoner without tools: reasoning is dropped, as its documents required', () => {
    const message = { role: 'assistant', content: 'a', reasoning_content: 'why' };
    const model = 'deepseek-reasoner';
    expect(sendMessages('deepseek', [message], { model })).toEqual([{ role: 'assistant', content: 'a' }]);
    expect(sendMessages('deepseek', [message], { model, tools: [TOOL] })).toEqual([message]);
  });

  test('Q2 Moonshot: absent and empty reasoning become a space, which it accepts', () => {
    const model = 'kimi-k2.6';
    for (const fields of [{}, { reasoning_content: '' }]) {
      expect(sendMessages('moonshot', [{ ...CALLING, ...fields }], { model })).toEqual([
        { ...CALLING, reasoning_content: ' ' },
      ]);
    }
    const off = { model, thinking: { type: 'disabled' } };
    expect(sendMessages('moonshot', [CALLING], off)).toEqual([CALLING]);
  });
});

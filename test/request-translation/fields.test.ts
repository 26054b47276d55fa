/** Tests top-level fields that each provider has under another name or with other values, and the usage option (Q1, U4). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { rewrite, send, TOOL } from './send.ts';

const FORCED = { type: 'function', function: { name: 'f' } };

describe('Q1 the same meaning under another name or value', () => {
  test.each<[provider: string, body: JsonObject, sent: JsonObject]>([
    ['deepseek', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['deepseek', { max_completion_tokens: 5, max_tokens: 3 }, { max_tokens: 3 }],
    ['mistral', { max_completion_tokens: 5, seed: 7 }, { max_tokens: 5, random_seed: 7 }],
    ['openai', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['openai', { max_tokens: 5, max_completion_tokens: 3 }, { max_completion_tokens: 3 }],
    ['cerebras', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['fireworks', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['ollama', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['together', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['groq', { max_tokens: 5 }, { max_tokens: 5 }],
    ['openrouter', { max_tokens: 5 }, { max_tokens: 5 }],
    ['mistral', { tool_choice: 'required', tools: [TOOL] }, { tool_choice: 'required', tools: [TOOL] }],
    ['mistral', { tool_choice: FORCED, tools: [TOOL] }, { tool_choice: FORCED, tools: [TOOL] }],
  ])('Q1 %s, %j: sent as %j', (provider, body, sent) => {
    expect(send(provider, body)).toEqual(sent);
  });

  test('Q1 OpenAI, legacy completions: the limit has its older name', () => {
    expect(send('openai', { max_completion_tokens: 5 }, 'completions')).toEqual({ max_tokens: 5 });
  });

  test.each<[provider: string, model: string, body: JsonObject, sent: JsonObject]>([
    ['deepseek', 'm', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['deepseek', 'm', { reasoning_effort: 'medium' }, { reasoning_effort: 'high' }],
    ['deepseek', 'm', { thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    ['deepseek', 'm', { reasoning: { effort: 'minimal' } }, { reasoning_effort: 'low' }],
    ['deepseek', 'm', { reasoning: { enabled: false } }, { thinking: { type: 'disabled' } }],
    ['mistral', 'mistral-small-latest', { reasoning_effort: 'low' }, { reasoning_effort: 'high' }],
    ['mistral', 'mistral-small-latest', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
    ['mistral', 'mistral-large-latest', { thinking: { type: 'disabled' } }, {}],
    ['mistral', 'mistral-large-latest', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5.5', { thinking: { type: 'enabled' } }, { reasoning_effort: 'medium' }],
    ['openai', 'gpt-5.6-mini', { reasoning_effort: 'minimal' }, { reasoning_effort: 'low' }],
    ['openai', 'gpt-4o', { reasoning_effort: 'none' }, {}],
    ['openai', 'gpt-6-astra', { reasoning_effort: 'none' }, { reasoning_effort: 'low' }],
    ['openai', 'gpt-6.1-sol', { thinking: { type: 'disabled' } }, { reasoning_effort: 'low' }],
    ['openai', 'gpt-6.2-sol', { reasoning_effort: 'minimal' }, { reasoning_effort: 'low' }],
    ['openai', 'gpt-6.2-astra', { reasoning_effort: 'max' }, { reasoning_effort: 'max' }],
    ['openai', 'gpt-6.1-terra', { reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
    ['openai', 'gpt-6-luna', { reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
    ['openai', 'gpt-5.5', { reasoning_effort: 'max' }, { reasoning_effort: 'xhigh' }],
    ['openai', 'gpt-5.1', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5-mini', { reasoning_effort: 'none' }, { reasoning_effort: 'minimal' }],
    ['openai', 'o4-mini', { reasoning_effort: 'max' }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5', { reasoning: { max_tokens: 16_384 } }, { reasoning_effort: 'high' }],
    ['openai', 'gpt-5', { reasoning: { max_tokens: 16_383 } }, { reasoning_effort: 'medium' }],
    ['groq', 'qwen/qwen3-32b', { reasoning_effort: 'medium' }, { reasoning_effort: 'default' }],
    ['groq', 'openai/gpt-oss-20b', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'high' }],
    ['cerebras', 'm', { thinking: { type: 'enabled', budget_tokens: 2048 } }, { reasoning_effort: 'low' }],
    ['openrouter', 'm', { reasoning: { effort: 'high' } }, { reasoning: { effort: 'high' } }],
    ['moonshot', 'kimi-k3', { reasoning_effort: 'medium' }, { reasoning_effort: 'low' }],
    ['vllm', 'm', { thinking: { type: 'enabled' } }, { thinking: { type: 'enabled' } }],
    ['openai', 'gpt-5', { thinking: 'yes' }, { thinking: 'yes' }],
  ])('Q1 %s, %s, effort %j: sent as %j', (provider, model, body, sent) => {
    expect(send(provider, { model, ...body })).toEqual({ model, ...sent });
  });

  test('Q1 legacy functions at a provider without them: they and their messages become tools', () => {
    const body = {
      functions: [{ name: 'f' }],
      function_call: { name: 'f' },
      messages: [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: '1' },
      ],
    };
    const sent = send('groq', body);
    expect(sent).toMatchObject({
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      messages: [
        { role: 'assistant', tool_calls: [{ type: 'function' }] },
        { role: 'tool', content: '1' },
      ],
    });
    const [assistant, tool] = JSON.parse(JSON.stringify(sent.messages));
    expect(tool.tool_call_id).toBe(assistant.tool_calls[0].id);
    expect(JSON.stringify(sent)).not.toContain('function_call"');
    expect(send('openai', body)).toMatchObject({ functions: [{ name: 'f' }], function_call: { name: 'f' } });
  });
});

describe('U4 requesting usage in streams', () => {
  const USAGE = { stream_options: { include_usage: true } };

  test.each(['openai', 'deepseek', 'xerotier', 'groq', 'cerebras', 'xai', 'openrouter', 'tolerant'])(
    'U4 %s: asked for in streams, whatever the client sent, and its other options stay',
    (provider) => {
      expect(send(provider, { stream: true })).toEqual({ stream: true, ...USAGE });
      const options = { include_usage: false, include_obfuscation: false };
      expect(send(provider, { stream: true, stream_options: options }).stream_options).toEqual({
        include_usage: true,
        include_obfuscation: false,
      });
      expect(send(provider, { stream: false, ...USAGE })).toEqual({ stream: false });
      expect(send(provider, USAGE)).toEqual({});
    },
  );

  test.each([
    ['mistral', 'chat'],
    ['mistral', 'fim'],
    ['mistral', 'agents'],
    ['codestral', 'fim'],
    ['opentoken', 'chat'],
  ] as const)(
    'U4 Q4 %s, %s: usage comes unasked, and the option is dropped in silence',
    (provider, route) => {
      const rewritten = rewrite(provider, { stream: true, ...USAGE }, 'refuse', route);
      expect(rewritten).toEqual({ kind: 'body', body: { stream: true }, dropped: [], changed: [] });
    },
  );
});

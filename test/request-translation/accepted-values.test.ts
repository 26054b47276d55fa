/**
 * Tests values that say nothing or have another word at a provider, and keys of tools (Q1, Q4, Q5): each reaches the
 * provider as it takes it.
 */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { rewrite, TOOL } from './send.ts';
import { STRICT_NAMES, sentTo } from './strict-providers.ts';

const MESSAGES = [{ role: 'user', content: 'Hello' }];

describe('Q4 settings that say nothing', () => {
  const EMPTY: readonly JsonObject[] = [
    { stop: [] },
    { stop: '' },
    { stop: [''] },
    { logit_bias: {} },
    { top_logprobs: 0 },
    { tools: [] },
    { tools: [], tool_choice: 'auto', parallel_tool_calls: true },
    { tools: [], tool_choice: 'none', parallel_tool_calls: false },
  ];

  const expectLeftOut = (name: (typeof STRICT_NAMES)[number], fields: JsonObject) => {
    const { body, dropped, changed, refusal } = sentTo(name, 'chat', { messages: MESSAGES, ...fields });
    expect(refusal).toBeNull();
    expect({ dropped, changed }).toEqual({ dropped: [], changed: [] });
    for (const field of Object.keys(fields)) expect(body).not.toHaveProperty(field);
  };

  test.each(STRICT_NAMES)('Q4 %s: left out, and reported nowhere', (name) => {
    for (const fields of EMPTY) expectLeftOut(name, fields);
  });

  test.each(['o4-mini', 'gpt-5', 'gpt-6-luna'])('Q4 OpenAI’s %s: left out', (model) => {
    for (const fields of EMPTY) {
      expect(rewrite('openai', { model, messages: MESSAGES, ...fields })).toMatchObject({
        body: { model, messages: MESSAGES },
        dropped: [],
        changed: [],
      });
    }
  });

  test.each(['tolerant', 'vllm', 'ollama'])('Q9 %s, an unknown server: sent as they came', (id) => {
    for (const fields of EMPTY) {
      expect(rewrite(id, { messages: MESSAGES, ...fields })).toMatchObject({ body: fields, dropped: [] });
    }
  });

  test('Q6 what says something is sent: a stop word, a bias, alternatives, a forced choice', () => {
    const fields = {
      stop: ['a'],
      logit_bias: { 5: 1 },
      logprobs: true,
      top_logprobs: 2,
      tools: [TOOL],
      tool_choice: 'auto',
      parallel_tool_calls: true,
    };
    expect(rewrite('openai', { model: 'gpt-4o-mini', messages: MESSAGES, ...fields })).toMatchObject({
      body: fields,
    });
    const forced = rewrite('openai', { model: 'gpt-4o-mini', tools: [], tool_choice: 'required' });
    expect(forced).toMatchObject({ body: { tool_choice: 'required' } });
  });
});

describe('Q1 words that a provider has for OpenAI’s values', () => {
  test.each(STRICT_NAMES)('Q1 tool_choice any, Mistral’s word, at %s: required', (name) => {
    const fields = { messages: MESSAGES, tools: [TOOL], tool_choice: 'any' };
    const { body, refusal } = sentTo(name, 'chat', { ...fields, thinking: { type: 'disabled' } });
    expect(refusal).toBeNull();
    expect([body.tool_choice, body.toolConfig]).not.toContain('any');
  });

  test.each([
    'openai',
    'mistral',
    'groq',
    'xai',
    'openrouter',
    'moonshot',
    'deepseek',
    'cerebras',
    'tolerant',
  ])('Q1 tool_choice any, at %s: required, and not reported', (id) => {
    const thinking = { type: 'disabled' };
    const given = { model: 'm', messages: MESSAGES, tools: [TOOL], tool_choice: 'any', thinking };
    const sent = rewrite(id, given);
    expect(sent).toMatchObject({ body: { tool_choice: 'required' } });
    expect(sent.kind === 'body' && [...sent.dropped, ...sent.changed]).not.toContain('tool_choice');
  });

  test('Q1 service_tier default at Groq: its standard tier; other tiers are sent as they came', () => {
    const tierOf = (service_tier: unknown) => {
      const { body, dropped, refusal } = sentTo('Groq', 'chat', { messages: MESSAGES, service_tier });
      expect({ dropped, refusal }).toEqual({ dropped: [], refusal: null });
      return body.service_tier;
    };
    expect(tierOf('default')).toBe('on_demand');
    expect(tierOf('flex')).toBe('flex');
    expect(tierOf('auto')).toBe('auto');
  });

  test.each(['OpenAI chat', 'OpenAI Responses', 'Anthropic', 'Gemini', 'Cerebras'] as const)(
    'Q1 service_tier default at %s: its own word for it',
    (name) => {
      const { body, dropped, refusal } = sentTo(name, 'chat', {
        messages: MESSAGES,
        service_tier: 'default',
      });
      expect({ dropped, refusal }).toEqual({ dropped: [], refusal: null });
      const word = { Anthropic: 'standard_only', Gemini: 'standard' }[String(name)] ?? 'default';
      expect(body.service_tier ?? body.serviceTier).toBe(word);
    },
  );
});

describe('Q1 what SDKs of other providers leave out or write', () => {
  test.each(STRICT_NAMES)('Q1 %s: a tool without its type, as Mistral’s SDK sends it', (name) => {
    const { body, dropped, changed, refusal } = sentTo(name, 'chat', {
      messages: MESSAGES,
      tools: [{ function: TOOL.function }],
    });
    expect({ dropped, changed, refusal }).toEqual({ dropped: [], changed: [], refusal: null });
    expect(JSON.stringify(body.tools)).toContain('"name":"f"');
  });

  test.each(['OpenAI chat', 'Mistral', 'Groq', 'Cerebras'] as const)(
    'Q1 %s: a part with nulls, as Hugging Face’s client sends it',
    (name) => {
      const content = [{ type: 'text', text: 'Hello', image_url: null }];
      const { body, dropped, refusal } = sentTo(name, 'chat', { messages: [{ role: 'user', content }] });
      expect({ dropped, refusal }).toEqual({ dropped: [], refusal: null });
      expect(JSON.stringify(body.messages)).not.toContain('image_url');
    },
  );

  test('Q3 OpenAI’s chat: an id of more than 40 characters becomes a hash of itself', () => {
    const id = `toolu_${'x'.repeat(60)}`;
    const call = { id, type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [
      ...MESSAGES,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: 'done' },
    ];
    const { body, refusal } = sentTo('OpenAI chat', 'chat', { messages });
    expect(refusal).toBeNull();
    const sent = JSON.stringify(body.messages);
    expect(sent).not.toContain(id);
    const [, short] = /"tool_call_id":"(\w+)"/.exec(sent) ?? [];
    expect(sent).toContain(`"id":"${short}"`);
  });
});

describe('Q5 keys of tools that the provider does not know', () => {
  const definition = { ...TOOL.function, requires_confirmation: true, external_execution: false, x: null };
  const tools = [{ type: 'function', function: definition, owner: 'me' }];

  test.each(['OpenAI chat', 'OpenAI Responses'] as const)('Q5 at %s: dropped and reported', (name) => {
    const { body, dropped, refusal } = sentTo(name, 'chat', { messages: MESSAGES, tools });
    expect(refusal).toBeNull();
    expect(dropped).toEqual([
      'tools.owner',
      'tools.function.requires_confirmation',
      'tools.function.external_execution',
    ]);
    expect(JSON.stringify(body)).not.toContain('requires_confirmation');
  });

  test.each(['Anthropic', 'Gemini'] as const)('Q5 at %s: reported', (name) => {
    const { dropped, refusal } = sentTo(name, 'chat', { messages: MESSAGES, tools });
    expect(refusal).toBeNull();
    expect(dropped).toEqual(['tools.owner', 'tools.function.requires_confirmation']);
  });

  test.each(STRICT_NAMES)('Q5 keys of a Messages client’s tools, at %s: reported', (name) => {
    const tool = {
      name: 'f',
      input_schema: { type: 'object' },
      eager_input_streaming: true,
      defer_loading: true,
      input_examples: [{}],
      allowed_callers: null,
    };
    const body = {
      max_tokens: 2000,
      messages: MESSAGES,
      tools: [tool, { ...tool, name: 'g', defer_loading: false }],
    };
    const { dropped, refusal } = sentTo(name, 'messages', body);
    expect(refusal).toBeNull();
    expect(dropped).toEqual(['tools.eager_input_streaming', 'tools.defer_loading', 'tools.input_examples']);
  });

  test.each(STRICT_NAMES)('Q5 keys of a Responses client’s tools, at %s: reported', (name) => {
    const tool = { type: 'function', name: 'f', parameters: { type: 'object' }, defer_loading: true };
    const { dropped, refusal } = sentTo(name, 'responses', { input: 'Hello', tools: [tool] });
    expect(refusal).toBeNull();
    expect(dropped).toEqual(['tools.defer_loading']);
  });
});

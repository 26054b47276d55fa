/**
 * Tests, against a simulator that refuses what the providers refuse, that each reasoning model takes each wish in each
 * client protocol (Q14).
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { sampleOf } from '../random-run.ts';
import { type Gateway, sharedGateway } from './gateway.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await sharedGateway();
});

const ALL_MODELS = [
  'anthropic/claude-haiku-4-5',
  'anthropic/claude-sonnet-5',
  'anthropic/claude-opus-5-5',
  'anthropic/glm-5.3',
  'anthropic/kimi-k2.7-code',
  'cerebras/gpt-oss-120b',
  'cerebras/zai-glm-4.7',
  'deepseek/deepseek-flash',
  'gemini/gemini-3-flash-preview',
  'gemini/gemini-3.8-flash',
  'gemini-compatible/gemini-3-flash',
  'groq/openai/gpt-oss-120b',
  'groq/qwen/qwen3-32b',
  'mistral/mistral-small-latest',
  'mistral/mistral-medium-latest',
  'mistral/magistral-medium-latest',
  'moonshot/kimi-k3',
  'moonshot/kimi-k2.7-code',
  'moonshot/kimi-k2.6',
  'openai/o4-mini',
  'openai/gpt-5.6',
  'openai/gpt-6.1-terra',
  'openai/gpt-6.2-astra',
  'openai/gpt-7-sol',
  'openai/o5',
  'openrouter/anthropic/claude-haiku-4.5',
  'openrouter/google/gemini-3-flash-preview',
  'openrouter/moonshotai/kimi-k2.5',
  'xai/grok-4.3',
  'xai/grok-4.5',
  'xai/grok-4.6',
  'xai/grok-4.7',
  'zai/glm-5.3',
  'zai/glm-5.2',
];
/** One model of each provider. */
const ONE_EACH = [...new Map(ALL_MODELS.map((model) => [model.split('/')[0], model])).values()];
const MODELS = sampleOf(ONE_EACH, ALL_MODELS);

/** Models that cannot be forced to call a tool: the client gets the provider's refusal, which names the field (Q6). */
const REFUSES_FORCE = ['anthropic/claude-opus-5-5', 'moonshot/kimi-k2.7-code', 'zai/glm-5.3', 'zai/glm-5.2'];

type Protocol = 'chat' | 'messages' | 'responses';
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } };

const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' } as const;

const BODIES: Readonly<Record<Protocol, JsonObject>> = {
  chat: { messages: [{ role: 'user', content: 'Hello' }] },
  messages: { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20_000 },
  responses: { input: 'Hello' },
};

/** Each wish in the words of each protocol. */
const WISHES: Readonly<Record<string, Readonly<Record<Protocol, JsonObject>>>> = {
  off: {
    chat: { reasoning_effort: 'none' },
    messages: { thinking: { type: 'disabled' } },
    responses: { reasoning: { effort: 'none' } },
  },
  lowest: {
    chat: { reasoning_effort: 'minimal' },
    messages: { thinking: { type: 'enabled', budget_tokens: 1024 } },
    responses: { reasoning: { effort: 'minimal' } },
  },
  highest: {
    chat: { reasoning_effort: 'max' },
    messages: { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
    responses: { reasoning: { effort: 'max' } },
  },
  'a sampling field': {
    chat: { temperature: 0.3 },
    messages: { temperature: 0.3 },
    responses: { temperature: 0.3 },
  },
  'a forced tool': {
    chat: {
      tools: [{ type: 'function', function: { name: 'weather', parameters: SCHEMA } }],
      tool_choice: 'required',
    },
    messages: { tools: [{ name: 'weather', input_schema: SCHEMA }], tool_choice: { type: 'any' } },
    responses: {
      tools: [{ type: 'function', name: 'weather', parameters: SCHEMA }],
      tool_choice: 'required',
    },
  },
};

describe.each(Object.entries(WISHES))('Q14 %s', (wish, fields) => {
  test.each(MODELS)('%s: is taken in each protocol', async (model) => {
    const failures: string[] = [];
    for (const protocol of ['chat', 'messages', 'responses'] as const) {
      const body = { model, ...BODIES[protocol], ...fields[protocol] };
      const response = await gateway.post(PATHS[protocol], body);
      const text = await response.text();
      const isRefusal = wish === 'a forced tool' && REFUSES_FORCE.includes(model);
      const isExpected = isRefusal ? response.status === 400 && /tool.?choice/i.test(text) : response.ok;
      if (!isExpected) failures.push(`${protocol}: ${response.status} ${text.slice(0, 200)}`);
    }
    expect(failures).toEqual([]);
  });
});

/** What clients send beside their loop: a title, a summary, a check of a command. */
const BESIDE: readonly (readonly [client: string, protocol: Protocol, fields: JsonObject])[] = [
  // Claude Code from 2.1.166 on turns thinking off in each of them: NousResearch/hermes-agent#85890, farion1231/cc-switch#6737 (2026-08).
  [
    'Claude Code, a title',
    'messages',
    {
      max_tokens: 32_000,
      temperature: 1,
      thinking: { type: 'disabled' },
      system: [{ type: 'text', text: 'Write a title.', cache_control: { type: 'ephemeral' } }],
      metadata: { user_id: 'user_1_account__session_2' },
      stream: true,
    },
  ],
  [
    'Claude Code, a sub-agent',
    'messages',
    {
      max_tokens: 32_000,
      thinking: { type: 'disabled' },
      tools: [{ name: 'Read', input_schema: { type: 'object', properties: { path: { type: 'string' } } } }],
      stream: true,
    },
  ],
  [
    'Codex, a review',
    'responses',
    {
      instructions: 'Review.',
      reasoning: { effort: 'xhigh', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      store: false,
      parallel_tool_calls: false,
      stream: true,
    },
  ],
  [
    'opencode, a title',
    'chat',
    { reasoning_effort: 'minimal', temperature: 0.5, max_tokens: 32_000, stream: true },
  ],
];

describe.each(BESIDE)('Q14 %s', (_, protocol, fields) => {
  test.each(MODELS)('%s: is taken, and its stream ends well', async (model) => {
    const response = await gateway.post(PATHS[protocol], { model, ...BODIES[protocol], ...fields });
    const text = await response.text();
    expect([response.status, response.ok ? '' : text]).toEqual([200, '']);
    expect(text).toMatch(/message_stop|response\.completed|\[DONE\]/);
  });
});

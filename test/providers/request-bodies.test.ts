/** Tests the body that each provider is sent (U4, its own field names): a pure function of the client's. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/canonical/json.ts';
import { PROVIDERS } from '../../src/providers/index.ts';
import { openaiCompatible } from '../../src/providers/openai.ts';
import type { Endpoint, Route } from '../../src/providers/provider.ts';
import { xerotier } from '../../src/providers/xerotier.ts';
import { providerOf } from '../contract/convert.ts';

function endpointOf(provider: string, route: Route): Endpoint {
  const endpoint = providerOf(provider).endpoints[route];
  if (endpoint === undefined) throw new Error(`${provider} has no ${route}`);
  return endpoint;
}

const bodyOf = (provider: string, route: Route, body: JsonObject) => endpointOf(provider, route).body(body);
const USAGE = { stream_options: { include_usage: true } };

const all = [...PROVIDERS, openaiCompatible('own', 'OWN_KEY')].flatMap((provider) =>
  Object.entries(provider.endpoints).map(([route, endpoint]) => [provider.id, route, endpoint] as const),
);

describe.each(all)('%s, %s', (_, route, endpoint) => {
  const body = {
    model: 'm',
    messages: [{ role: 'assistant', content: 'a', reasoning_content: 'b', refusal: null }],
    stream: true,
    stream_options: { include_usage: false },
    max_completion_tokens: 5,
    seed: 1,
    temperature: 0,
    unknown: { kept: true },
  };

  test('the body of the client: is not modified, and what the provider may receive is forwarded', () => {
    const before = structuredClone(body);
    const sent = endpoint.body(body);
    expect(body).toEqual(before);
    expect(sent).toMatchObject({ temperature: 0, stream: true, unknown: { kept: true } });
    if (route !== 'agents') expect(sent.model).toBe('m');
  });

  test('U4 a request that is not streamed: has no stream_options, which only a stream may have', () => {
    expect(endpoint.body({ ...body, stream: false })).not.toHaveProperty('stream_options');
    const { stream: _stream, ...plain } = body;
    expect(endpoint.body(plain)).not.toHaveProperty('stream_options');
  });
});

describe('U4 asking for usage', () => {
  test.each<[provider: string, route: Route]>([
    ['openai', 'chat'],
    ['openai', 'completions'],
    ['openai', 'fim'],
    ['deepseek', 'chat'],
    ['deepseek', 'fim'],
    ['mistral', 'chat'],
    ['xerotier', 'chat'],
    ['compatible', 'chat'],
  ])('U4 %s, %s: asked for, whatever the client sent, and its other options stay', (provider, route) => {
    expect(bodyOf(provider, route, { stream: true })).toEqual({ stream: true, ...USAGE });
    const body = { stream: true, stream_options: { include_usage: false, include_obfuscation: false } };
    expect(bodyOf(provider, route, body).stream_options).toEqual({
      include_usage: true,
      include_obfuscation: false,
    });
    expect(bodyOf(provider, route, { stream: true, stream_options: 'no' })).toEqual({
      stream: true,
      ...USAGE,
    });
  });

  test.each<[provider: string, route: Route]>([
    ['mistral', 'fim'],
    ['mistral', 'completions'],
    ['mistral', 'agents'],
    ['codestral', 'fim'],
    ['opentoken', 'chat'],
  ])('U4 %s, %s: does not take the option, and reports its usage without it', (provider, route) => {
    expect(bodyOf(provider, route, { stream: true, ...USAGE })).toEqual({ stream: true });
  });
});

describe('DeepSeek', () => {
  test('max_completion_tokens: becomes max_tokens, and one already there stays', () => {
    expect(bodyOf('deepseek', 'chat', { max_completion_tokens: 5 })).toEqual({ max_tokens: 5 });
    expect(bodyOf('deepseek', 'fim', { max_completion_tokens: 5, max_tokens: 3 })).toEqual({ max_tokens: 3 });
  });

  test('reasoning of earlier answers: is left out of the messages, and only that', () => {
    const messages = [{ role: 'assistant', content: 'a', reasoning_content: 'b' }, 'no message'];
    expect(bodyOf('deepseek', 'chat', { messages })).toEqual({
      messages: [{ role: 'assistant', content: 'a' }, 'no message'],
    });
  });

  test('the path: beta for a message to continue and for fill-in-the-middle', () => {
    const chat = endpointOf('deepseek', 'chat');
    expect(chat.path({ messages: [{ role: 'user' }] })).toBe('/chat/completions');
    expect(chat.path({ messages: [{ role: 'assistant', prefix: true }] })).toBe('/beta/chat/completions');
    expect(chat.path({ messages: [{ role: 'assistant', prefix: 'yes' }] })).toBe('/chat/completions');
    expect(chat.path({})).toBe('/chat/completions');
    expect(endpointOf('deepseek', 'fim').path({})).toBe('/beta/completions');
    expect(endpointOf('deepseek', 'completions').path({})).toBe('/beta/completions');
  });
});

describe('Mistral', () => {
  test('its own names: limit, seed and tool choice', () => {
    const body = { max_completion_tokens: 5, seed: 1, tool_choice: 'required' };
    expect(bodyOf('mistral', 'chat', body)).toEqual({ max_tokens: 5, random_seed: 1, tool_choice: 'any' });
    expect(bodyOf('mistral', 'chat', { tool_choice: 'auto' })).toEqual({ tool_choice: 'auto' });
  });

  test('messages of earlier answers: without reasoning and refusal, to which it answers 422', () => {
    const messages = [
      { role: 'assistant', content: 'a', reasoning_content: 'b', refusal: null, tool_calls: [] },
    ];
    expect(bodyOf('mistral', 'chat', { messages })).toEqual({
      messages: [{ role: 'assistant', content: 'a', tool_calls: [] }],
    });
  });

  test('agents: the model is left out, because the agent has its own', () => {
    expect(bodyOf('mistral', 'agents', { model: 'm', agent_id: 'a' })).toEqual({ agent_id: 'a' });
    expect(endpointOf('mistral', 'agents').path({})).toBe('/agents/completions');
  });

  test('the paths: legacy completions go to fill-in-the-middle, and Codestral has no agents', () => {
    expect(endpointOf('mistral', 'completions').path({})).toBe('/fim/completions');
    expect(endpointOf('codestral', 'fim').path({})).toBe('/fim/completions');
    expect(() => endpointOf('codestral', 'agents')).toThrow();
  });
});

describe('Xerotier', () => {
  test.each<[type: string, event: JsonObject, tokens: unknown]>([
    ['x_deep_think.subtask_completed', { input_tokens: 3, output_tokens: 4 }, { kind: 'add', tokens: 7 }],
    ['x_deep_think.subtask_completed', { input_tokens: 3 }, { kind: 'add', tokens: 3 }],
    ['x_deep_think.subtask_completed', { input_tokens: '3', output_tokens: -1 }, { kind: 'add', tokens: 0 }],
    ['x_chat.metadata', { usage: { total_tokens: 9, prompt_tokens: 1 } }, { kind: 'total', tokens: 9 }],
    ['x_chat.metadata', { usage: { input_tokens: 1, output_tokens: 2 } }, { kind: 'total', tokens: 3 }],
    ['x_chat.metadata', { usage: null }, null],
    ['x_chat.other', { usage: { total_tokens: 9 } }, null],
  ])('V3 %s %j: reports %j', (type, event, tokens) => {
    expect(xerotier.vendorTokens(type, event)).toEqual(tokens);
  });
});

/** Tests the rules and paths of fill-in-the-middle, legacy completions and agents (Q1, Q6). */
import { describe, expect, test } from 'vitest';
import { providerNamed, rewrite, send } from './send.ts';

describe('fill-in-the-middle and agents at Mistral', () => {
  test('a list of one prompt: becomes the prompt; several are refused with a hint', () => {
    expect(send('mistral', { prompt: ['a'] }, 'fim')).toEqual({ prompt: 'a' });
    expect(rewrite('mistral', { prompt: ['a', 'b'] }, 'auto', 'completions')).toMatchObject({
      kind: 'error',
      error: { code: 'unsupported_parameter', param: 'prompt' },
    });
  });

  test('defaults of legacy completions: dropped; fields that change the output are sent', () => {
    const body = { prompt: 'a', suffix: 'b', echo: false, best_of: 1, n: 1, presence_penalty: 0, user: 'u' };
    expect(rewrite('mistral', body, 'auto', 'completions')).toEqual({
      kind: 'body',
      body: { prompt: 'a', suffix: 'b' },
      dropped: ['user'],
      changed: [],
    });
    expect(send('mistral', { prompt: 'a', n: 2 }, 'fim')).toEqual({ prompt: 'a', n: 2 });
  });

  test('agents: the model is not sent, because the agent has its own', () => {
    expect(send('mistral', { model: 'm', agent_id: 'a' }, 'agents')).toEqual({ agent_id: 'a' });
  });
});

describe('paths', () => {
  test('DeepSeek: the beta path for a message to continue and for fill-in-the-middle', () => {
    const { chat, fim, completions } = providerNamed('deepseek').endpoints;
    expect(chat?.path({ messages: [{ role: 'user' }] })).toBe('/chat/completions');
    expect(chat?.path({ messages: [{ role: 'assistant', prefix: true }] })).toBe('/beta/chat/completions');
    expect(chat?.path({ messages: [{ role: 'assistant', prefix: 'yes' }] })).toBe('/chat/completions');
    expect(chat?.path({})).toBe('/chat/completions');
    expect(fim?.path({})).toBe('/beta/completions');
    expect(completions?.path({})).toBe('/beta/completions');
  });

  test('Mistral: legacy completions go to fill-in-the-middle, and Codestral has no agents', () => {
    expect(providerNamed('mistral').endpoints.completions?.path({})).toBe('/fim/completions');
    expect(providerNamed('mistral').endpoints.agents?.path({})).toBe('/agents/completions');
    expect(providerNamed('codestral').endpoints.fim?.path({})).toBe('/fim/completions');
    expect(providerNamed('codestral').endpoints.agents).toBeUndefined();
  });
});

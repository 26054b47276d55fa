/** Tests top-level fields that change the output: none is lost silently (Q6, Q8). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { rewrite, send, TOOL } from './send.ts';

const FORCED = { type: 'function', function: { name: 'f' } };

describe('Q6 fields that change the output', () => {
  const CHANGING = {
    n: 2,
    logprobs: true,
    top_logprobs: 2,
    logit_bias: { '50256': -100 },
    stop: ['x'],
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } },
    modalities: ['text', 'audio'],
    audio: { voice: 'alloy', format: 'wav' },
  };

  test.each(['deepseek', 'mistral', 'openai', 'groq', 'like gemini', 'openrouter', 'tolerant'])(
    'Q6 %s: sent on, for the provider itself to judge',
    (provider) => {
      expect(rewrite(provider, CHANGING)).toEqual({ kind: 'body', body: CHANGING, dropped: [], changed: [] });
    },
  );

  test('Q8 drop: refused fields are dropped and reported, accepted fields are sent', () => {
    const rewritten = rewrite('mistral', CHANGING, 'drop');
    const { n, stop, response_format, audio } = CHANGING;
    expect(rewritten).toEqual({
      kind: 'body',
      body: { n, stop, response_format, audio },
      dropped: ['logprobs', 'top_logprobs', 'logit_bias', 'modalities'],
      changed: [],
    });
  });

  test.each<[provider: string, body: JsonObject, param: string]>([
    ['deepseek', { presence_penalty: 0.5 }, 'presence_penalty'],
    ['deepseek', { frequency_penalty: -1, thinking: { type: 'enabled' } }, 'frequency_penalty'],
    ['cerebras', { logit_bias: { '1': 1 } }, 'logit_bias'],
    ['xai', { logprobs: true }, 'logprobs'],
  ])(
    'Q6 %s would ignore %j: 400 unsupported_parameter, with drop it is dropped and reported',
    (provider, body, param) => {
      const refused = rewrite(provider, body);
      expect(refused).toMatchObject({
        kind: 'error',
        error: { status: 400, code: 'unsupported_parameter', param },
      });
      expect(JSON.stringify(refused)).toContain('x-weir-unsupported: drop');
      expect(rewrite(provider, body, 'drop')).toMatchObject({ kind: 'body', dropped: [param] });
    },
  );

  test('Q6 DeepSeek, penalties with thinking turned off: sent, because they have an effect then', () => {
    const body = { presence_penalty: 0.5, thinking: { type: 'disabled' } };
    expect(send('deepseek', body)).toEqual(body);
    expect(send('deepseek', { model: 'deepseek-chat', presence_penalty: 0.5 })).toHaveProperty(
      'presence_penalty',
    );
  });

  test.each<[body: JsonObject, changed: readonly string[]]>([
    [{ tool_choice: 'required' }, ['thinking']],
    [{ tool_choice: FORCED }, ['thinking']],
    [{ tool_choice: 'auto' }, []],
    [{ tool_choice: 'none' }, []],
    [{ tool_choice: 'required', thinking: { type: 'enabled' } }, []],
    [{ tool_choice: 'required', reasoning_effort: 'high' }, []],
    [{ tool_choice: 'required', thinking: { type: 'disabled' } }, []],
    [{ tool_choice: 'required', reasoning_effort: 'none' }, []],
  ])('Q6 DeepSeek, %j: changed is %j', (body, changed) => {
    const rewritten = rewrite('deepseek', { tools: [TOOL], ...body });
    expect(rewritten).toMatchObject({ kind: 'body', changed });
    if (changed.length > 0) expect(rewritten).toMatchObject({ body: { thinking: { type: 'disabled' } } });
  });
});

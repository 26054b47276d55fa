/** Tests what each family of models gets for an effort that it knows, and for one that it does not know (Q14). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/shared/json.ts';
import { call, rewrite, TOOL } from './send.ts';

const OFF = { reasoning_effort: 'none' };
const DISABLED = { thinking: { type: 'disabled' } };
const ENABLED = { thinking: { type: 'enabled' } };
const BUDGET = { thinking: { type: 'enabled', budget_tokens: 20_000 } };
const low = { reasoning_effort: 'low' };

type Row = readonly [
  model: string,
  asked: JsonObject,
  sent: JsonObject,
  changed?: string[],
  dropped?: string[],
];

function check(provider: string, rows: readonly Row[]): void {
  const cases = rows.map(([model, asked, sent, changed = [], dropped = []]) => ({
    model,
    asked,
    rewritten: { kind: 'body', body: { model, ...sent }, changed, dropped },
  }));
  test.each(cases)(`Q14 ${provider}, $model, $asked`, ({ model, asked, rewritten }) => {
    expect(rewrite(provider, { model, ...asked })).toEqual(rewritten);
  });
}

describe('reasoning that cannot be off', () => {
  const on = { thinking: { type: 'enabled' }, reasoning_effort: 'low' };
  check('zai', [
    ['glm-5.3', OFF, on, ['reasoning_effort']],
    ['glm-5.3', DISABLED, on, ['thinking']],
    ['glm-5.3-flash', { reasoning: { enabled: false } }, on, ['reasoning']],
    ['GLM-5.3', OFF, on, ['reasoning_effort']],
    ['glm-6', OFF, on, ['reasoning_effort']],
    ['glm-5.2', OFF, DISABLED],
    ['glm-4.6', DISABLED, DISABLED],
  ]);
  check('moonshot', [
    ['kimi-k3', OFF, low, ['reasoning_effort']],
    ['kimi-k3', DISABLED, low, ['thinking']],
    ['kimi-k4', DISABLED, low, ['thinking']],
    ['kimi-k2.7-code', DISABLED, {}, ['thinking']],
    ['kimi-k2.7-code-highspeed', OFF, {}, ['reasoning_effort']],
    ['kimi-k2-thinking', OFF, {}, ['reasoning_effort']],
    ['kimi-k2.6', OFF, DISABLED],
    ['kimi-k2-0905-preview', DISABLED, {}],
  ]);
  check('xai', [
    ['grok-4.5', OFF, low, ['reasoning_effort']],
    ['grok-4.6-latest', DISABLED, low, ['thinking']],
    ['grok-4.7', OFF, low, ['reasoning_effort']],
    ['grok-5', OFF, low, ['reasoning_effort']],
    ['grok-4.3', OFF, OFF],
    ['grok-4.20-0309-non-reasoning', OFF, {}],
  ]);
  check('groq', [['openai/gpt-oss-120b', OFF, low, ['reasoning_effort']]]);
  check('cerebras', [
    ['gpt-oss-120b', OFF, low, ['reasoning_effort']],
    ['zai-glm-4.7', OFF, OFF],
  ]);
  check('fireworks', [
    ['accounts/fireworks/models/glm-5p3', OFF, low, ['reasoning_effort']],
    ['accounts/fireworks/models/kimi-k3', OFF, OFF],
  ]);
  check('like gemini', [
    ['gemini-2.5-pro', OFF, low, ['reasoning_effort']],
    ['models/gemini-4-argon', DISABLED, low, ['thinking']],
    ['gemini-2.5-flash', OFF, OFF],
  ]);
  check('openrouter', [
    ['z-ai/glm-5.3', OFF, low, ['reasoning_effort']],
    ['x-ai/grok-5', { reasoning: { enabled: false } }, { reasoning: { effort: 'low' } }, ['reasoning']],
    ['openai/gpt-5', OFF, { reasoning_effort: 'minimal' }, ['reasoning_effort']],
    ['openai/gpt-7-sol', DISABLED, low, ['thinking']],
    [
      'google/gemini-5-pro',
      { reasoning: { effort: 'none' } },
      { reasoning: { effort: 'low' } },
      ['reasoning'],
    ],
    ['qwen/qwen3.8-27b', { reasoning: { enabled: false } }, { reasoning: { enabled: false } }],
  ]);
  check('openai', [
    ['gpt-6.2-sol', OFF, low, ['reasoning_effort']],
    ['gpt-6.3-sol', OFF, low, ['reasoning_effort']],
    ['gpt-7-sol', OFF, low, ['reasoning_effort']],
    ['o5', OFF, low, ['reasoning_effort']],
    ['gpt-5-pro', OFF, { reasoning_effort: 'high' }, ['reasoning_effort']],
    ['gpt-6-sol', OFF, OFF],
  ]);
});

describe('levels that a family does not know', () => {
  const level = (reasoning_effort: string) => ({ reasoning_effort });
  const changed = ['reasoning_effort'];
  check('zai', [
    ['glm-5.3', level('minimal'), low, changed],
    ['glm-5.3', level('medium'), low, changed],
    ['glm-5.3', level('xhigh'), level('high'), changed],
    ['glm-5.3', level('high'), level('high')],
    ['glm-5.3', BUDGET, BUDGET],
    ['glm-5.2', level('low'), level('high'), changed],
    // On and off only.
    ['glm-4.7', level('high'), ENABLED, changed],
    ['glm-4.7', BUDGET, BUDGET],
  ]);
  check('moonshot', [
    ['kimi-k3', level('medium'), low, changed],
    ['kimi-k3', level('xhigh'), level('high'), changed],
    ['kimi-k3', BUDGET, level('high')],
    // Without an amount, the model's own default holds.
    ['kimi-k3', ENABLED, {}],
    ['kimi-k2.6', level('high'), ENABLED, changed],
    ['kimi-k2.6', { ...ENABLED, ...level('high') }, ENABLED, changed],
    ['kimi-k2.7-code', { ...ENABLED, ...level('high') }, {}, [], changed],
    ['kimi-k2.7-code', ENABLED, {}],
  ]);
  check('xai', [
    ['grok-4.5', level('xhigh'), level('high'), changed],
    ['grok-4.7', level('xhigh'), level('xhigh')],
    ['grok-4.7', level('max'), level('xhigh'), changed],
    ['grok-4-1-fast-reasoning', level('high'), {}, [], changed],
  ]);
  check('mistral', [
    ['mistral-medium-latest', level('high'), level('high')],
    ['mistral-medium', level('low'), level('high'), changed],
    ['mistral-medium-latest', OFF, OFF],
    ['mistral-medium-2508', { thinking: { type: 'enabled', budget_tokens: 5000 } }, {}, [], ['thinking']],
    ['mistral-large-4', level('medium'), level('medium')],
    ['mistral-large-4', OFF, low, changed],
    ['mistral-large-5', level('max'), level('high'), changed],
    ['magistral-medium-latest', level('high'), {}, [], changed],
    ['magistral-medium-2509', OFF, {}, changed],
    ['magistral-small-latest', level('high'), level('high')],
    ['codestral-latest', BUDGET, {}, [], ['thinking']],
  ]);
  check('openai', [
    ['gpt-5-codex', level('minimal'), low, changed],
    ['gpt-5.4-pro', level('low'), level('medium'), changed],
    ['gpt-7-sol', level('max'), level('max')],
    ['o5-mini', level('max'), level('high'), changed],
    ['gpt-4o', BUDGET, {}, [], ['thinking']],
  ]);
  check('deepseek', [['deepseek-flash', level('ultra'), level('max'), changed]]);

  test('Q14 UNSUPPORTED=refuse: an effort that would be dropped is an error, a nearest level is not', () => {
    expect(
      rewrite('mistral', { model: 'magistral-medium-latest', ...level('high') }, 'refuse'),
    ).toMatchObject({
      kind: 'error',
      error: { param: 'reasoning_effort' },
    });
    expect(rewrite('zai', { model: 'glm-5.3', ...level('medium') }, 'refuse')).toMatchObject({
      kind: 'body',
    });
  });
});

describe('Moonshot while the model thinks', () => {
  const forced = { tools: [TOOL], tool_choice: 'required' };
  const other = { type: 'function', function: { name: 'other' } };
  const named = { type: 'function', function: { name: 'f' } };

  test.each<[model: string, asked: JsonObject]>([
    ['kimi-k2.5', forced],
    ['kimi-k2.6', { ...forced, reasoning_effort: 'high' }],
    ['kimi-k2.6', { ...forced, tool_choice: named, ...ENABLED }],
  ])('Q6 %s, %j: a forced tool turns thinking off, and is reported', (model, asked) => {
    const rewritten = rewrite('moonshot', { model, ...asked });
    expect(rewritten).toMatchObject({ body: { tool_choice: asked.tool_choice, ...DISABLED } });
    expect(rewritten.kind === 'body' && rewritten.changed).toContain('thinking');
  });

  test('Q6 kimi-k3 and newer: any tool can be required; a named one is offered alone', () => {
    for (const model of ['kimi-k3', 'kimi-k4-code']) {
      expect(rewrite('moonshot', { model, ...forced })).toMatchObject({ body: forced, changed: [] });
      const rewritten = rewrite('moonshot', { model, tools: [other, TOOL], tool_choice: named });
      expect(rewritten).toMatchObject({ body: forced, changed: ['tool_choice'] });
    }
  });

  test('Q6 kimi-k2.7-code, whose thinking cannot be off: sent for the provider to refuse, or dropped if allowed', () => {
    const body = { model: 'kimi-k2.7-code', ...forced };
    expect(rewrite('moonshot', body)).toMatchObject({ body: forced, changed: [], dropped: [] });
    expect(rewrite('moonshot', body, 'drop')).toMatchObject({ dropped: ['tool_choice'] });
  });

  test('Q5 fixed sampling is dropped and reported, also a default; older models keep theirs', () => {
    const sampling = { temperature: 0.3, top_p: 0.9 };
    for (const model of ['kimi-k3', 'kimi-k2.6', 'kimi-k2.7-code', 'kimi-k5'])
      expect(rewrite('moonshot', { model, ...sampling })).toEqual({
        kind: 'body',
        body: { model },
        changed: [],
        dropped: ['temperature', 'top_p'],
      });
    expect(rewrite('moonshot', { model: 'kimi-k2-0905-preview', ...sampling })).toMatchObject({
      body: sampling,
    });
  });

  test('Q2 kimi-k2.6, in a tool loop: `keep` is set, so that the reasoning of earlier steps is used', () => {
    const messages = [{ role: 'assistant', content: '', reasoning_content: 'why', tool_calls: [call('a')] }];
    const requested = (more: JsonObject) => rewrite('moonshot', { model: 'kimi-k2.6', messages, ...more });
    const kept = { thinking: { type: 'enabled', keep: 'all' } };
    expect(requested({})).toMatchObject({ body: kept, changed: [] });
    expect(requested({ reasoning_effort: 'high' })).toMatchObject({ body: kept });
    expect(requested(DISABLED)).toMatchObject({ body: DISABLED });
    expect(requested({ thinking: { type: 'enabled', keep: 'none' } })).toMatchObject({
      body: { thinking: { keep: 'none' } },
    });
    expect(requested({ messages: [{ role: 'user', content: 'Hi' }] })).not.toHaveProperty('body.thinking');
    expect(rewrite('moonshot', { model: 'kimi-k3', messages })).not.toHaveProperty('body.thinking');
  });
});

describe('Z.ai', () => {
  test('Q6 a forced tool, which no model takes: sent for the provider to refuse, or dropped if allowed', () => {
    const body = { model: 'glm-5.3', tools: [TOOL], tool_choice: 'required' };
    expect(rewrite('zai', body)).toMatchObject({ body, dropped: [] });
    expect(rewrite('zai', body, 'drop')).toMatchObject({ dropped: ['tool_choice'] });
    expect(rewrite('zai', { ...body, tool_choice: 'auto' }, 'drop')).toMatchObject({ dropped: [] });
  });
});

describe('sampling that OpenAI’s reasoning models refuse in chat', () => {
  test.each(['gpt-5-mini', 'gpt-5', 'o3', 'o5', 'gpt-6-sol', 'gpt-7-sol'])(
    'Q5 %s: dropped and reported',
    (model) => {
      expect(rewrite('openai', { model, temperature: 0.2, top_p: 0.5 })).toMatchObject({
        body: { model },
        dropped: ['temperature', 'top_p'],
      });
    },
  );

  test.each([
    ['gpt-4o', {}],
    ['gpt-5.4', {}],
    ['gpt-5.6', OFF],
  ])('Q5 %s, %j, which does not reason then: sent', (model, more) => {
    expect(rewrite('openai', { model, temperature: 0.2, ...more })).toMatchObject({
      body: { temperature: 0.2 },
      dropped: [],
    });
  });
});

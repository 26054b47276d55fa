/** Tests thinking, effort, sampling and limit for each family of Claude models (A2). Sources: src/providers/claude-families.ts. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/shared/json.ts';
import { rewrite, send, TOOL } from '../../../request-translation/send.ts';

const HELLO = [{ role: 'user', content: 'Hello' }];
const runner = (model: string, more: JsonObject = {}) =>
  send('anthropic', { model, messages: HELLO, ...more });
const reported = (model: string, more: JsonObject, unsupported: 'auto' | 'drop' | 'refuse' = 'auto') =>
  rewrite('anthropic', { model, messages: HELLO, ...more }, unsupported);

describe('max_tokens, which is required', () => {
  test.each([
    ['claude-fable-5-1', 128_000],
    ['claude-opus-5-5', 128_000],
    ['claude-sonnet-5-5', 128_000],
    ['claude-haiku-5-5', 128_000],
    ['claude-opus-4-6', 128_000],
    ['claude-sonnet-4-6', 64_000],
    ['claude-haiku-4-5-20251001', 64_000],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-opus-4-20250514', 32_000],
    ['claude-sonnet-4-20250514', 64_000],
    ['claude-3-7-sonnet-20250219', 64_000],
    ['claude-3-5-sonnet-20241022', 8192],
    ['claude-3-haiku-20240307', 4096],
    ['claude-opus-4-9', 128_000],
    ['claude-next-7', 128_000],
    ['kimi-k2.5', 32_000],
    ['anthropic/claude-sonnet-4-6', 64_000],
    ['vertex/anthropic/claude-haiku-4.5', 64_000],
  ])('A2 %s without a limit gets its family’s maximum of %d (GoModel#45)', (model, limit) => {
    expect(runner(model).max_tokens).toBe(limit);
  });

  test('A2 sends the client’s limit under either name; one above the model’s maximum is lowered and reported', () => {
    expect(runner('claude-opus-5-5', { max_tokens: 7 }).max_tokens).toBe(7);
    expect(runner('claude-opus-5-5', { max_completion_tokens: 8 })).toMatchObject({ max_tokens: 8 });
    expect(reported('claude-haiku-4-5', { max_tokens: 100_000 })).toMatchObject({
      body: { max_tokens: 64_000 },
      changed: ['max_tokens'],
    });
    expect(runner('claude-opus-5-5', { max_tokens: 'many' }).max_tokens).toBe('many');
  });
});

const adaptive = { type: 'adaptive', display: 'summarized' };

describe('effort and thinking', () => {
  test.each<[model: string, effort: string, thinking: unknown, sent: unknown]>([
    ['claude-opus-5-5', 'minimal', adaptive, 'low'],
    ['claude-opus-5-5', 'xhigh', adaptive, 'xhigh'],
    ['claude-opus-5-5', 'max', adaptive, 'max'],
    ['claude-opus-5-5', 'none', undefined, 'low'],
    ['claude-fable-5', 'none', undefined, 'low'],
    ['claude-sonnet-5-5', 'none', { type: 'between_tools' }, undefined],
    ['claude-sonnet-5', 'none', { type: 'disabled' }, undefined],
    ['claude-haiku-5-5', 'high', adaptive, 'high'],
    ['claude-haiku-5-5', 'none', { type: 'disabled' }, undefined],
    ['claude-opus-4-8', 'medium', adaptive, 'medium'],
    ['claude-opus-4-7', 'low', adaptive, 'low'],
    ['claude-opus-4-6', 'xhigh', { type: 'adaptive' }, 'high'],
    ['claude-sonnet-4-6', 'max', { type: 'adaptive' }, 'max'],
    ['claude-sonnet-4-5', 'minimal', { type: 'enabled', budget_tokens: 1024 }, undefined],
    ['claude-sonnet-4-5', 'low', { type: 'enabled', budget_tokens: 2048 }, undefined],
    ['claude-sonnet-4-5', 'medium', { type: 'enabled', budget_tokens: 8192 }, undefined],
    ['claude-opus-4-5', 'high', { type: 'enabled', budget_tokens: 16_384 }, undefined],
    ['claude-haiku-4-5', 'xhigh', { type: 'enabled', budget_tokens: 32_000 }, undefined],
    ['claude-haiku-4-5', 'max', { type: 'enabled', budget_tokens: 62_976 }, undefined],
    ['claude-haiku-4-5', 'none', { type: 'disabled' }, undefined],
    ['claude-3-5-haiku-20241022', 'high', undefined, undefined],
    ['kimi-k2.5', 'none', { type: 'disabled' }, undefined],
    ['kimi-k3', 'none', undefined, 'low'],
    ['kimi-k2.7-code', 'none', undefined, undefined],
    ['glm-5.3', 'none', undefined, 'low'],
    ['glm-6', 'max', { type: 'adaptive' }, 'max'],
    ['minimax-m3', 'none', undefined, undefined],
    ['claude-opus-6', 'none', undefined, 'low'],
    ['claude-sonnet-5-6', 'max', { type: 'adaptive', display: 'summarized' }, 'max'],
  ])('A2 %s, %s', (model, reasoning_effort, thinking, effort) => {
    const body = runner(model, { reasoning_effort });
    expect(body.thinking).toEqual(thinking);
    expect(body.output_config).toEqual(effort === undefined ? undefined : { effort });
    expect(body).not.toHaveProperty('reasoning_effort');
  });

  test('A2 reports the change for a model that always thinks, and the drop for one that never does', () => {
    expect(reported('claude-opus-5-5', { reasoning_effort: 'none' })).toMatchObject({
      changed: ['thinking'],
    });
    expect(reported('claude-3-haiku-20240307', { reasoning_effort: 'high' })).toMatchObject({
      dropped: ['reasoning_effort'],
    });
  });

  test.each<[JsonObject, unknown]>([
    [
      { max_tokens: 4096, reasoning_effort: 'high' },
      { type: 'enabled', budget_tokens: 3072 },
    ],
    [{ max_tokens: 2047, reasoning_effort: 'high' }, undefined],
    [
      { max_tokens: 60_000, reasoning: { max_tokens: 5000 } },
      { type: 'enabled', budget_tokens: 5000 },
    ],
    [
      { max_tokens: 60_000, reasoning: { max_tokens: 10 } },
      { type: 'enabled', budget_tokens: 1024 },
    ],
    [{ reasoning: { enabled: true } }, { type: 'enabled', budget_tokens: 8192 }],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      { type: 'enabled', budget_tokens: 8192 },
    ],
  ])('A2 a budget, %j: at least 1,024, and 1,024 below the limit (hebo-gateway#47)', (more, thinking) => {
    const rewritten = reported('claude-sonnet-4-5', more);
    expect(rewritten.kind === 'body' && rewritten.body.thinking).toEqual(thinking);
    expect(rewritten).toMatchObject({ changed: thinking === undefined ? ['thinking'] : [] });
  });

  test('A2 thinking that the family supports is unchanged; other forms are translated', () => {
    const enabled = { type: 'enabled', budget_tokens: 20_000 };
    expect(runner('claude-opus-4-6', { thinking: enabled }).thinking).toEqual(enabled);
    expect(runner('claude-opus-5', { thinking: enabled })).toMatchObject({
      thinking: adaptive,
      output_config: { effort: 'high' },
    });
    const given = { type: 'adaptive', display: 'omitted' };
    const body = runner('claude-opus-5', { thinking: given, output_config: { effort: 'max' } });
    expect(body).toMatchObject({ thinking: given, output_config: { effort: 'max' } });
    expect(runner('claude-opus-5-5', { thinking: { type: 'disabled' } })).not.toHaveProperty('thinking');
    expect(runner('claude-sonnet-5-5', { thinking: { type: 'disabled' } }).thinking).toEqual({
      type: 'between_tools',
    });
  });

  test('A2 enabled thinking without a budget, as at DeepSeek, gets the medium budget, or is adaptive', () => {
    const thinking = { type: 'enabled' };
    expect(runner('claude-sonnet-4-5', { thinking })).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 8192 },
    });
    const body = runner('claude-opus-4-6', { thinking });
    expect(body.thinking).toEqual({ type: 'adaptive' });
    expect(body).not.toHaveProperty('output_config');
  });

  test.each([
    [9000, { type: 'enabled', budget_tokens: 7976, display: 'omitted' }],
    [8000, { type: 'enabled', budget_tokens: 6976, display: 'omitted' }],
    [2000, undefined],
  ])('A2 lowers and reports a budget above the limit %j', (limit, lowered) => {
    const thinking = { type: 'enabled', budget_tokens: 9000, display: 'omitted' };
    const rewritten = reported('claude-sonnet-4-5', { thinking, max_tokens: limit });
    expect(rewritten).toMatchObject({ kind: 'body', changed: ['thinking'] });
    expect(rewritten.kind === 'body' && rewritten.body.thinking).toEqual(lowered);
    expect(reported('claude-sonnet-4-5', { thinking, max_tokens: 9001 })).toMatchObject({
      body: { thinking },
      changed: [],
    });
  });

  test('A2 a forced call turns thinking with a budget off and reports it; adaptive thinking stays', () => {
    const forced = { tools: [TOOL], tool_choice: 'required', reasoning_effort: 'low' };
    const budget = reported('claude-sonnet-4-5', forced);
    expect(budget).toMatchObject({ body: { tool_choice: { type: 'any' } }, changed: ['thinking'] });
    expect(budget.kind === 'body' && budget.body).not.toHaveProperty('thinking');
    expect(runner('claude-sonnet-5', forced)).toMatchObject({
      thinking: adaptive,
      tool_choice: { type: 'any' },
    });
  });
});

describe('sampling', () => {
  test.each<[model: string, more: JsonObject, sent: JsonObject, dropped: string[]]>([
    ['claude-opus-5-5', { temperature: 0.2, top_p: 0.9, top_k: 5 }, {}, ['temperature', 'top_p', 'top_k']],
    ['claude-haiku-5-5', { temperature: 0 }, {}, ['temperature']],
    ['claude-opus-4-7', { temperature: 1, top_p: 1 }, {}, []],
    ['claude-sonnet-4-6', { temperature: 0.2, top_p: 0.9 }, { temperature: 0.2 }, ['top_p']],
    ['claude-opus-4-1', { top_p: 0.9, top_k: 5 }, { top_p: 0.9, top_k: 5 }, []],
    ['claude-3-7-sonnet-20250219', { temperature: 0.2, top_p: 0.9 }, { temperature: 0.2, top_p: 0.9 }, []],
    ['claude-sonnet-4-5', { temperature: 0.2, reasoning_effort: 'low' }, {}, ['temperature']],
    ['claude-sonnet-4-6', { top_p: 0.97, top_k: 5, reasoning_effort: 'low' }, { top_p: 0.97 }, ['top_k']],
    ['claude-sonnet-4-5', { temperature: 0.2, reasoning_effort: 'none' }, { temperature: 0.2 }, []],
  ])('A2 %s, %j: refused sampling is dropped and reported', (model, more, sent, dropped) => {
    const rewritten = reported(model, more);
    expect(rewritten).toMatchObject({ kind: 'body', dropped });
    const { temperature, top_p, top_k } = rewritten.kind === 'body' ? rewritten.body : {};
    expect(JSON.parse(JSON.stringify({ temperature, top_p, top_k }))).toEqual(sent);
  });

  test('A2 lowers a temperature above 1 and reports it', () => {
    expect(reported('claude-sonnet-4-5', { temperature: 1.6 })).toMatchObject({
      body: { temperature: 1 },
      changed: ['temperature'],
    });
  });
});

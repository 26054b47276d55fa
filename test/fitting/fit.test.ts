/** Tests the engine that fits bodies: rows of tables, of refusals and of a key's limit, in bodies of each protocol. */
import { describe, expect, test } from 'vitest';
import { fitBody } from '../../src/fitting/fit.ts';
import { type FitRow, rowsOf } from '../../src/fitting/rows.ts';
import { TranslationReport } from '../../src/request-translation/dropped-fields.ts';
import {
  REFUSED,
  type RequestRules,
  renamed,
  type Unsupported,
} from '../../src/request-translation/rules.ts';
import type { RequestForm } from '../../src/request-translation/translate.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { providerNamed } from '../request-translation/send.ts';
import { PLAIN_FORM, PLAIN_RULES } from './plain-form.ts';

/** What the engine makes of a body, with the names that it reports. */
function made(
  body: JsonObject,
  rows: readonly FitRow[],
  { form = PLAIN_FORM, unsupported = 'auto' }: { form?: RequestForm; unsupported?: Unsupported } = {},
) {
  const report = new TranslationReport('P', unsupported);
  const fitted = fitBody(body, rows, { form, report, model: 'm' });
  return { ...fitted, dropped: report.dropped, changed: report.changed };
}

function chatFormOf(provider: string): RequestForm {
  const form = providerNamed(provider).endpoints.chat?.request;
  if (form === undefined) throw new Error(`${provider} has no chat`);
  return form;
}

describe("G2 a key's limit is a row", () => {
  const limit = { kind: 'key_limit', tokens: 100 } as const;

  test.each<[provider: string, body: JsonObject, fitted: JsonObject, dropped: string[]]>([
    ['openai', { max_tokens: 500 }, { max_completion_tokens: 100 }, []],
    ['openai', { max_completion_tokens: 50 }, { max_completion_tokens: 50 }, []],
    ['openrouter', { max_tokens: 500, n_predict: 9 }, { max_tokens: 100 }, ['n_predict']],
    ['anthropic', { max_tokens: 500, options: { num_predict: 9 } }, { max_tokens: 100 }, ['options']],
    ['anthropic', { max_tokens: 0 }, { max_tokens: 100 }, []],
    [
      'gemini',
      { generationConfig: { topK: 3, maxOutputTokens: 500 } },
      { generationConfig: { topK: 3, maxOutputTokens: 100 } },
      [],
    ],
    ['gemini', {}, { generationConfig: { maxOutputTokens: 100 } }, []],
  ])('%s: %j becomes %j', (provider, body, fitted, dropped) => {
    const limited = made(body, [limit], { form: chatFormOf(provider), unsupported: 'refuse' });
    expect(limited).toMatchObject({ body: fitted, dropped });
    expect(Object.keys(limited.body)).toEqual(Object.keys(fitted));
  });

  test('a row of a refusal after it does not raise the limit', () => {
    const raised = { kind: 'renamed', field: 'max_output_tokens', to: 'max_tokens' } as const;
    const body = { max_tokens: 500 };
    expect(made(body, [limit, raised]).body).toEqual({ max_tokens: 100 });
    const without = { kind: 'unsupported', field: 'max_tokens', isUnknown: true } as const;
    expect(made(body, [limit, without]).body).toEqual({ max_completion_tokens: 100 });
  });
});

test('Z3 rows apply in their order, and the ones that changed nothing are not named', () => {
  const given: FitRow[] = [
    { kind: 'unsupported', field: 'top_k', isUnknown: false },
    { kind: 'range', field: 'temperature', min: 0, max: 1 },
    { kind: 'developer_role' },
  ];
  const { body, dropped, changed, applied } = made({ temperature: 2, top_k: 3 }, given);
  expect({ body, dropped, changed }).toEqual({
    body: { temperature: 1 },
    dropped: ['top_k'],
    changed: ['temperature'],
  });
  expect(applied).toEqual(given.slice(0, 2));
});

test('Q8 with refuse, only rows that lose nothing apply', () => {
  const given: FitRow[] = [
    { kind: 'unsupported', field: 'top_k', isUnknown: false },
    { kind: 'renamed', field: 'max_tokens', to: 'max_completion_tokens' },
  ];
  const { body, changed } = made({ max_tokens: 7, top_k: 3 }, given, { unsupported: 'refuse' });
  expect({ body, changed }).toEqual({
    body: { top_k: 3, max_completion_tokens: 7 },
    changed: ['max_tokens'],
  });
});

describe("Q9 a provider's table is rows, which apply in the order of its parts", () => {
  const rules: RequestRules = {
    ...PLAIN_RULES,
    effort: { takes: ['reasoning_effort'], families: [{ efforts: ['low', 'high'] }] },
    adjustments: [
      { when: (body) => body.reasoning_effort === 'low', set: () => ({ user: 'u' }), reports: 'user' },
    ],
    fields: { user: renamed('end_user'), seed: REFUSED, logit_bias: REFUSED, temperature: REFUSED },
    words: { service_tier: { default: 'on_demand' } },
  };
  const form = { kind: 'chat', rules } as const;

  test('in a chat body each reads what the ones before it wrote', () => {
    const body = { reasoning_effort: 'medium', seed: 1, temperature: 0.5, service_tier: 'default' };
    const { applied, ...rest } = made(body, rowsOf(rules), { form });
    expect(rest).toEqual({
      body: { reasoning_effort: 'low', end_user: 'u', seed: 1, service_tier: 'on_demand' },
      dropped: ['temperature'],
      changed: ['reasoning_effort', 'user'],
    });
    expect(applied.map(({ kind }) => kind)).toEqual(['effort', 'adjustment', 'fields', 'words']);
  });

  test('in a body that passes to its provider they change the effort, and what its client may miss', () => {
    const native = { kind: 'native', limit: null, fromSettings: [], write: () => ({}) } as const;
    const body = { reasoning: { effort: 'medium' }, user: 'u', logit_bias: { 1: 2 }, temperature: 0.5 };
    expect(made(body, rowsOf(rules), { form: native })).toMatchObject({
      body: { reasoning: { effort: 'low' }, user: 'u', logit_bias: { 1: 2 } },
      dropped: ['temperature'],
      changed: ['reasoning'],
    });
  });

  test('Q8 with refuse, a field that would be dropped is an error, and with drop a setting is dropped', () => {
    const report = new TranslationReport('P', 'refuse');
    fitBody({ temperature: 0.5 }, rowsOf(rules), { form, report, model: 'm' });
    expect(report.error).toMatchObject({ code: 'unsupported_parameter', param: 'temperature' });
    const body = { logit_bias: { 1: 2 } };
    expect(made(body, rowsOf(rules), { form }).body).toEqual(body);
    expect(made(body, rowsOf(rules), { form, unsupported: 'drop' })).toMatchObject({
      body: {},
      dropped: ['logit_bias'],
    });
  });
});

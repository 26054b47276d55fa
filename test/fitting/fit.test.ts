/** Tests the engine that fits written bodies: rows of refusals and a key's limit, in bodies of each protocol. */
import { describe, expect, test } from 'vitest';
import { fitBody } from '../../src/fitting/fit.ts';
import type { FitRow } from '../../src/fitting/rows.ts';
import type { RequestForm } from '../../src/request-translation/translate.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { providerNamed } from '../request-translation/send.ts';
import { PLAIN_FORM } from './plain-form.ts';

function rows(...findings: readonly FitRow[]) {
  return findings.map((finding) => ({ finding }));
}

function chatFormOf(provider: string): RequestForm {
  const form = providerNamed(provider).endpoints.chat?.request;
  if (form === undefined) throw new Error(`${provider} has no chat`);
  return form;
}

describe("G2 a key's limit is a row", () => {
  const limit = rows({ kind: 'key_limit', tokens: 100 });

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
    const made = fitBody(body, limit, { form: chatFormOf(provider), unsupported: 'refuse' });
    expect(made).toMatchObject({ body: fitted, dropped });
    expect(Object.keys(made.body)).toEqual(Object.keys(fitted));
  });

  test('a row of a refusal after it does not raise the limit', () => {
    const raised = { kind: 'renamed', field: 'max_output_tokens', to: 'max_tokens' } as const;
    const body = { max_tokens: 500 };
    const both = rows({ kind: 'key_limit', tokens: 100 }, raised);
    expect(fitBody(body, both, { form: PLAIN_FORM, unsupported: 'auto' }).body).toEqual({ max_tokens: 100 });
    const without = { kind: 'unsupported', field: 'max_tokens', isUnknown: true } as const;
    const renamed = fitBody(body, rows({ kind: 'key_limit', tokens: 100 }, without), {
      form: PLAIN_FORM,
      unsupported: 'auto',
    });
    expect(renamed.body).toEqual({ max_completion_tokens: 100 });
  });
});

test('Z3 rows apply in their order, and the ones that changed nothing are not named', () => {
  const given = rows(
    { kind: 'unsupported', field: 'top_k', isUnknown: false },
    { kind: 'range', field: 'temperature', min: 0, max: 1 },
    { kind: 'developer_role' },
  );
  const { body, dropped, changed, applied } = fitBody({ temperature: 2, top_k: 3 }, given, {
    form: PLAIN_FORM,
    unsupported: 'auto',
  });
  expect({ body, dropped, changed }).toEqual({
    body: { temperature: 1 },
    dropped: ['top_k'],
    changed: ['temperature'],
  });
  expect(applied).toEqual(given.slice(0, 2));
});

test('Q8 with refuse, only rows that lose nothing apply', () => {
  const given = rows(
    { kind: 'unsupported', field: 'top_k', isUnknown: false },
    { kind: 'renamed', field: 'max_tokens', to: 'max_completion_tokens' },
  );
  const { body, changed } = fitBody({ max_tokens: 7, top_k: 3 }, given, {
    form: PLAIN_FORM,
    unsupported: 'refuse',
  });
  expect({ body, changed }).toEqual({
    body: { top_k: 3, max_completion_tokens: 7 },
    changed: ['max_tokens'],
  });
});

/** Tests the settings that native writers read of a chat request, and that each writer reads odd ones in the same way. */
import { describe, expect, test } from 'vitest';
import { readRequestSettings } from '../../../src/protocols/openai-chat/request-settings.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { rewrite } from '../../request-translation/send.ts';

const SCHEMA = { type: 'object', additionalProperties: false };

test('a request without settings has only its fields as they came', () => {
  expect(readRequestSettings({ unknown: 1 })).toEqual({
    stop: [],
    excludesReasoning: false,
    outputConfig: {},
    metadata: {},
    plain: { unknown: 1 },
  });
});

test.each<[string, JsonObject, unknown]>([
  ['one', { max_tokens: 9 }, 9],
  ['the higher of two', { max_tokens: 9, max_completion_tokens: 20 }, 20],
  ['an invalid one is kept as it came', { max_tokens: 'many' }, { raw: 'many' }],
  ['beside an invalid one the new name is kept', { max_tokens: 0, max_completion_tokens: 5 }, { raw: 5 }],
])('the output limit: %s', (_, fields, outputLimit) => {
  expect(readRequestSettings(fields)).toMatchObject({ outputLimit });
});

test.each<[string, JsonObject, unknown]>([
  ['a word', { reasoning_effort: 'low' }, { level: 'low', word: 'low' }],
  ['a budget', { thinking: { type: 'enabled', budget_tokens: 9000 } }, { level: 'medium', budget: 9000 }],
  [
    'a word and a budget',
    { reasoning_effort: 'low', reasoning: { max_tokens: 9000 } },
    { word: 'low', budget: 9000 },
  ],
  ['on, without an amount', { reasoning: { enabled: true } }, { level: 'medium' }],
])('the effort: %s', (_, fields, effort) => {
  expect(readRequestSettings(fields)).toMatchObject({ effort });
});

test('a number is no effort, so thinking without a budget has the default of the model', () => {
  const body = { model: 'claude-opus-5', messages: [], thinking: { type: 'enabled' }, reasoning_effort: 5 };
  expect(rewrite('anthropic', body)).toMatchObject({
    kind: 'body',
    body: { thinking: { type: 'adaptive' } },
  });
  expect(rewrite('anthropic', body)).not.toHaveProperty('body.output_config');
});

describe('the response format', () => {
  test.each<[string, JsonObject]>([
    ['as Chat Completions has it', { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } }],
    ['beside the type, as Responses has it', { type: 'json_schema', name: 'x', schema: SCHEMA }],
    ['without a type', { json_schema: { schema: SCHEMA } }],
  ])('a schema %s is sent by each native writer', (_, response_format) => {
    const body = { model: 'm', messages: [], response_format };
    expect(rewrite('gemini', body)).toMatchObject({
      body: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA } },
    });
    expect(rewrite('anthropic', body)).toMatchObject({
      body: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
    });
  });

  test.each<[unknown, string | undefined]>([
    [{ type: 'text', json_schema: { schema: SCHEMA } }, undefined],
    ['json', undefined],
    [{ type: 'json_object' }, 'json_object'],
    [{ type: 'json_schema' }, 'json_schema'],
    [{ type: 'grammar' }, 'unknown'],
  ])('%j is of the kind %s', (response_format, kind) => {
    const { format } = readRequestSettings({ response_format });
    expect(format?.kind).toBe(kind);
    expect(format?.schema).toBe(undefined);
  });
});

test.each([
  ['x', ['x']],
  [['x', ''], ['x']],
  [5, [5]],
])('stop %j goes up as a list, and what is no text is for the provider to refuse', (stop, list) => {
  const body = { model: 'm', messages: [], stop };
  expect(rewrite('gemini', body)).toMatchObject({ body: { generationConfig: { stopSequences: list } } });
  expect(rewrite('anthropic', body)).toMatchObject({ body: { stop_sequences: list } });
});

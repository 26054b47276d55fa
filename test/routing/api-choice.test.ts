/** Tests which API serves a chat request, and what a provider's refusal says about it. */
import { describe, expect, test } from 'vitest';
import { readApiStatement } from '../../src/fitting/api-statements.ts';
import { ApiMemory } from '../../src/fitting/learned.ts';
import { openai } from '../../src/providers/openai.ts';
import { xai } from '../../src/providers/xai.ts';
import { type ApiRequest, chooseApi } from '../../src/routing/api-choice.ts';
import type { JsonObject } from '../../src/shared/json.ts';

const TOOLS = [{ type: 'function', function: { name: 'look' } }];
const HOUR_MS = 3_600_000;

function choose(
  model: string,
  body: JsonObject = {},
  {
    forced = null,
    provider = openai,
    memory = new ApiMemory(),
    now = 0,
  }: Partial<ApiRequest> & { memory?: ApiMemory; now?: number } = {},
) {
  return chooseApi(
    { provider, model, makerModel: model, request: { fields: body, turns: null }, forced, keyId: 'k' },
    memory,
    now,
  );
}

describe('O1 the table of families', () => {
  test.each<[model: string, body: JsonObject, api: 'chat' | 'responses']>([
    ['gpt-4o', { tools: TOOLS }, 'chat'],
    ['gpt-4.1-mini', { tools: TOOLS }, 'chat'],
    ['gpt-4o-search-preview', {}, 'chat'],
    ['gpt-5-chat-latest', { tools: TOOLS }, 'chat'],
    ['gpt-5-codex', {}, 'responses'],
    ['gpt-5.4-pro', { n: 2 }, 'responses'],
    ['o3-pro', {}, 'responses'],
    ['o3-deep-research', {}, 'responses'],
    ['gpt-5', {}, 'chat'],
    ['gpt-5', { tools: TOOLS }, 'responses'],
    ['gpt-5', { tools: TOOLS, stop: ['x'] }, 'chat'],
    ['gpt-5', { tools: TOOLS, n: 1 }, 'responses'],
    ['gpt-5', { reasoning_effort: 'low' }, 'responses'],
    ['gpt-5.1', { reasoning_effort: 'none' }, 'chat'],
    ['gpt-5', { reasoning_effort: 'low', seed: 1 }, 'chat'],
    ['gpt-5.4', { tools: TOOLS, seed: 1 }, 'chat'],
    ['gpt-5.4', { tools: TOOLS, reasoning_effort: 'low', seed: 1 }, 'responses'],
    ['gpt-5.6', { tools: TOOLS, reasoning_effort: 'none', seed: 1 }, 'chat'],
    ['gpt-5.6', { tools: TOOLS, seed: 1 }, 'responses'],
    ['gpt-5.6', { reasoning_effort: 'max', seed: 1 }, 'responses'],
    ['gpt-5.6', { prompt_cache_options: { ttl: '12h' } }, 'responses'],
    ['gpt-6-luna', { functions: [{ name: 'look' }] }, 'responses'],
    ['gpt-6.1-terra', {}, 'chat'],
    ['gpt-6.1-terra', { tools: TOOLS, reasoning_effort: 'none', stop: ['x'] }, 'responses'],
    ['gpt-6.2-astra', { tools: TOOLS, logit_bias: { 1: 1 } }, 'responses'],
    ['gpt-9-test', { tools: TOOLS }, 'responses'],
    ['gpt-9-test', {}, 'chat'],
    ['whisper-1', { tools: TOOLS }, 'chat'],
  ])('%s with %j: %s', (model, body, api) => {
    expect(choose(model, body)).toBe(api);
  });

  test('reasoning of this provider in the conversation: Responses; of another one: chat', () => {
    const step = (id: string) => ({
      messages: [{ role: 'assistant', reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', id }] }],
    });
    expect(choose('gpt-5', step('weir1:openai:rs_1'))).toBe('responses');
    expect(choose('gpt-5', step('weir1:anthropic:0'))).toBe('chat');
  });

  test('xAI: multi-agent models through Responses, others as they prefer; a provider without Responses: chat', () => {
    expect(choose('grok-4.20-multi-agent', {}, { provider: xai })).toBe('responses');
    expect(choose('grok-4.7', { tools: TOOLS, seed: 1 }, { provider: xai })).toBe('responses');
    expect(choose('grok-4.7', {}, { provider: xai })).toBe('chat');
    expect(choose('gpt-5-codex', {}, { provider: { id: 'other' } })).toBe('chat');
  });

  test('an alias target or an entry of PROVIDERS that names the API decides', () => {
    expect(choose('gpt-5-codex', {}, { forced: 'chat' })).toBe('chat');
    expect(choose('gpt-4o', {}, { forced: 'responses' })).toBe('responses');
  });
});

describe('O2 the provider’s own word', () => {
  test.each<
    [on: 'chat' | 'responses', status: number, code: string, message: string | undefined, expected: unknown]
  >([
    [
      'chat',
      400,
      'invalid_request',
      "Function tools with reasoning_effort are not supported for gpt-6.1-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
      { kind: 'api', api: 'responses', scope: 'tools' },
    ],
    [
      'chat',
      400,
      '7003',
      'Model execution failed (User Input Error): Function tools with reasoning_effort are not supported for gpt-6.1-sol in /v1/chat/completions. Please use /v1/responses instead.',
      { kind: 'api', api: 'responses', scope: 'tools' },
    ],
    [
      'chat',
      404,
      'not_found',
      'This model is only supported in v1/responses and not in v1/chat/completions.',
      { kind: 'api', api: 'responses', scope: 'model' },
    ],
    [
      'chat',
      404,
      'not_found',
      'This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?',
      { kind: 'api', api: 'responses', scope: 'model' },
    ],
    [
      'chat',
      400,
      'OperationNotSupported',
      'The chatCompletion operation does not work with the specified model, gpt-5.1-codex. Please choose different model and try again.',
      { kind: 'api', api: 'responses', scope: 'model' },
    ],
    [
      'chat',
      400,
      'invalid_request',
      'Multi Agent requests are not allowed on chat completions',
      { kind: 'api', api: 'responses', scope: 'model' },
    ],
    ['chat', 400, 'unsupported_api_for_model', 'x', { kind: 'api', api: 'responses', scope: 'model' }],
    ['responses', 400, 'unsupported_api_for_model', 'x', { kind: 'api', api: 'chat', scope: 'model' }],
    [
      'responses',
      400,
      'model_not_found',
      "The requested model 'gpt-4o-search-preview' is not supported with the Responses API.",
      { kind: 'api', api: 'chat', scope: 'model' },
    ],
    [
      'responses',
      404,
      'not_found',
      'Unknown URL /v1/responses',
      { kind: 'api', api: 'chat', scope: 'model' },
    ],
    ['responses', 404, '', undefined, { kind: 'api', api: 'chat', scope: 'model' }],
    ['responses', 400, '', undefined, null],
    ['chat', 404, '', undefined, null],
    ['responses', 404, 'not_found', 'File Not Found', { kind: 'api', api: 'chat', scope: 'model' }],
    [
      'responses',
      400,
      'invalid_encrypted_content',
      'The encrypted content gAAA...c90= could not be verified.',
      { kind: 'without_reasoning' },
    ],
    [
      'responses',
      400,
      'invalid-argument',
      'Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response.',
      { kind: 'without_reasoning' },
    ],
    [
      'responses',
      400,
      'unsupported_value',
      'Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings',
      { kind: 'without_summary' },
    ],
    [
      'responses',
      400,
      'unsupported_parameter',
      "Unsupported parameter: 'reasoning.summary' is not supported with the 'gpt-5.3-codex-spark' model.",
      { kind: 'without_summary' },
    ],
    ['chat', 401, 'unsupported_api_for_model', 'x', null],
    ['chat', 429, 'rate_limited', 'use /v1/responses', null],
    [
      'responses',
      400,
      'unsupported_parameter',
      'The model does not support temperature in the Responses API',
      null,
    ],
    ['responses', 404, 'not_found', "Item with id 'rs_1' not found.", null],
    ['chat', 400, 'invalid_request', 'Invalid schema for function', null],
  ])('%s: %d %s %s', (on, status, code, message, expected) => {
    const refusal = { status, code, message, kind: null, field: undefined };
    expect(readApiStatement(refusal, on)?.change ?? null).toEqual(expected);
  });

  test('what a refusal taught holds for an hour, for that model and that scope', () => {
    const memory = new ApiMemory();
    memory.note(
      { providerId: 'openai', model: 'gpt-9', keyId: 'k' },
      { kind: 'api', api: 'responses', scope: 'tools' },
      0,
    );
    expect(choose('gpt-9', {}, { memory })).toBe('chat');
    expect(choose('gpt-9', { tools: TOOLS, n: 2 }, { memory, now: HOUR_MS - 1 })).toBe('responses');
    memory.note(
      { providerId: 'openai', model: 'gpt-5-codex', keyId: 'k' },
      { kind: 'api', api: 'chat', scope: 'model' },
      0,
    );
    expect(choose('gpt-5-codex', {}, { memory, now: HOUR_MS - 1 })).toBe('chat');
    expect(choose('gpt-5-codex', {}, { memory, now: HOUR_MS })).toBe('responses');
    expect(choose('gpt-5-codex-mini', {}, { memory })).toBe('responses');
  });

  test('Z4 what one key was told holds for all once a second key was told it', () => {
    const memory = new ApiMemory();
    const change = { kind: 'api', api: 'responses', scope: 'model' } as const;
    const known = (keyId: string) => memory.recall({ providerId: 'openai', model: 'gpt-9', keyId }, false, 0);
    memory.note({ providerId: 'openai', model: 'gpt-9', keyId: 'a' }, change, 0);
    expect([known('a'), known('b'), known('c')]).toEqual(['responses', undefined, undefined]);
    memory.note({ providerId: 'openai', model: 'gpt-9', keyId: 'b' }, change, 0);
    expect([known('a'), known('b'), known('c')]).toEqual(['responses', 'responses', 'responses']);
  });

  test('a caller who invents models: the memory keeps its newest thousand', () => {
    const memory = new ApiMemory();
    for (let at = 0; at <= 1000; at++) {
      memory.note(
        { providerId: 'openai', model: `gpt-${at}x`, keyId: 'k' },
        { kind: 'api', api: 'responses', scope: 'model' },
        0,
      );
    }
    expect(memory.recall({ providerId: 'openai', model: 'gpt-0x', keyId: 'k' }, false, 0)).toBeUndefined();
    expect(memory.recall({ providerId: 'openai', model: 'gpt-1x', keyId: 'k' }, false, 0)).toBe('responses');
  });
});

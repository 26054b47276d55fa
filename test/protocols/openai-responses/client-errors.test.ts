/** Tests the error codes of HTTP responses, by which Codex decides whether to retry. */
import { describe, expect, test } from 'vitest';
import { type ApiError, apiError } from '../../../src/canonical/error.ts';
import { responsesError, streamErrorOf } from '../../../src/protocols/openai-responses/client-errors.ts';

const codeOf = (error: ApiError) => JSON.parse(responsesError(error).body).error.code;

describe('responsesError', () => {
  test.each([
    ["Weir's own", 'upstream_overloaded'],
    ["DeepSeek's", 'invalid_request_error'],
    ["Mistral's", '5030'],
  ])('a 503 with %s code becomes server_is_overloaded', (_, code) => {
    expect(codeOf({ ...apiError('upstream_overloaded', 'Overloaded'), code })).toBe('server_is_overloaded');
  });

  test('a 502, a 500 and a 429 keep their meaning', () => {
    expect(codeOf(apiError('upstream_error', 'x'))).toBe('upstream_error');
    expect(codeOf(apiError('internal_error', 'x'))).toBe('internal_error');
    expect(codeOf(apiError('rate_limited', 'x'))).toBe('rate_limit_exceeded');
  });
});

describe('streamErrorOf', () => {
  const failed = (fields: Partial<ApiError>) =>
    streamErrorOf({ error: { ...apiError('upstream_error', 'x'), ...fields }, upstreamError: null });

  test.each([
    ['messages', 'messages'],
    ['input.3.content', 'input.3.content'],
    ['my password is hunter2', null],
    ['input[3]', null],
    ['x'.repeat(65), null],
    [null, null],
  ])('E5 the param %j, which may be kept: %j', (param, kept) => {
    expect(failed({ param }).param).toBe(kept);
  });

  test.each([
    ['invalid_image_url', 'invalid_image_url'],
    ['the image of my password', 'server_error'],
    [`image${'x'.repeat(64)}`, 'server_error'],
  ])('E5 the code %j, which may be kept: %j', (code, kept) => {
    expect(failed({ code })).toMatchObject({ type: kept, code: kept });
  });
});

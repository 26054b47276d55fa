/** Tests the errors before the head by which Codex decides whether it asks again (I1). */
import { describe, expect, test } from 'vitest';
import { type ApiError, apiError } from '../../../src/canonical/error.ts';
import { responsesError } from '../../../src/protocols/openai-responses/client-errors.ts';

const codeOf = (error: ApiError) => JSON.parse(responsesError(error).body).error.code;

describe('responsesError', () => {
  test.each([
    ["Weir's own", 'upstream_overloaded'],
    ["DeepSeek's", 'invalid_request_error'],
    ["Mistral's", '5030'],
  ])('a 503 whose code is %s: server_is_overloaded', (_, code) => {
    expect(codeOf({ ...apiError('upstream_overloaded', 'Overloaded'), code })).toBe('server_is_overloaded');
  });

  test('a 502, a 500 and a 429: their own codes', () => {
    expect(codeOf(apiError('upstream_error', 'x'))).toBe('upstream_error');
    expect(codeOf(apiError('internal_error', 'x'))).toBe('internal_error');
    expect(codeOf(apiError('rate_limited', 'x'))).toBe('rate_limit_exceeded');
  });
});

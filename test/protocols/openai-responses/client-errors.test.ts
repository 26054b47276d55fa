/** Tests the error codes of HTTP responses, by which Codex decides whether to retry. */
import { describe, expect, test } from 'vitest';
import { type ApiError, apiError } from '../../../src/canonical/error.ts';
import { responsesError } from '../../../src/protocols/openai-responses/client-errors.ts';

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

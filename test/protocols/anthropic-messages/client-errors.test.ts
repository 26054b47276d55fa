/** Tests errors in the form of the Messages API, by which clients decide what to do. */
import { describe, expect, test } from 'vitest';
import { apiError, type ErrorCode } from '../../../src/canonical/error.ts';
import { errorResponse } from '../../../src/protocols/anthropic-messages/client-errors.ts';

describe('errorResponse', () => {
  test.each<[ErrorCode, number, string]>([
    ['invalid_request', 400, 'invalid_request_error'],
    ['invalid_api_key', 401, 'authentication_error'],
    ['model_not_allowed', 403, 'permission_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['request_too_large', 413, 'request_too_large'],
    ['rate_limited', 429, 'rate_limit_error'],
    ['budget_exceeded', 429, 'rate_limit_error'],
    ['upstream_credential', 502, 'api_error'],
    ['upstream_balance', 502, 'api_error'],
    ['upstream_truncated', 502, 'api_error'],
    ['internal_error', 500, 'api_error'],
    ['upstream_overloaded', 529, 'overloaded_error'],
    ['overloaded', 529, 'overloaded_error'],
    ['timeout', 504, 'timeout_error'],
    ['stream_idle_timeout', 504, 'timeout_error'],
  ])('I1 %s: %i %s', (code, status, type) => {
    const response = errorResponse(apiError(code, 'It failed', 'x'), 'r-1');
    expect(response.status).toBe(status);
    expect(JSON.parse(response.body)).toEqual({
      type: 'error',
      error: { type, message: 'It failed', details: { error_code: code, param: 'x' } },
      request_id: 'r-1',
    });
  });

  test("I1 a 503 with the provider's own code becomes 529 overloaded_error", () => {
    const error = { ...apiError('upstream_overloaded', 'Busy'), code: 'invalid_request_error' };
    const { status, body } = errorResponse(error, 'r');
    expect([status, JSON.parse(body).error.type]).toEqual([529, 'overloaded_error']);
  });

  test.each([
    ["This model's maximum context length is 128000 tokens, however you requested 130000"],
    ['Input is too long for requested model'],
    ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)'],
    [
      'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    ],
  ])('I1 a too long context, reported as %s, gets the words that Claude Code looks for', (message) => {
    const { body } = errorResponse({ ...apiError('invalid_request', message), code: 'whatever' }, 'r');
    expect(JSON.parse(body).error).toMatchObject({
      type: 'invalid_request_error',
      message: `prompt is too long: ${message}`,
    });
  });

  test('I1 a message with these words, or about another limit, is unchanged', () => {
    const messageOf = (message: string) =>
      JSON.parse(errorResponse(apiError('invalid_request', message), 'r').body).error.message;
    expect(messageOf('prompt is too long: 9 tokens > 8 maximum')).toBe(
      'prompt is too long: 9 tokens > 8 maximum',
    );
    expect(messageOf('max_tokens is too large: 128000')).toBe('max_tokens is too large: 128000');
  });
});

/** Tests the summary of attempts in `x-weir-attempts` and in the message of the last error (R8). */
import { expect, test } from 'vitest';
import { apiError } from '../../src/canonical/error.ts';
import {
  attemptsHeader,
  MAX_ATTEMPTS_CHARS,
  skippedAttempt,
  withAttempts,
} from '../../src/completion/attempt-texts.ts';
import { targetsOf } from '../routing/targets.ts';

const DOWN = {
  provider: 'deepseek',
  model: 'deepseek-flash',
  status: 503,
  error_code: 'upstream_overloaded',
  ms: 412,
};
const SERVED = { provider: 'mistral', model: 'mistral-small-latest', status: 200, error_code: null, ms: 80 };
const CUT = { provider: 'mistral', model: 'm', status: 200, error_code: 'upstream_truncated', ms: 7 };
const [FORBIDDEN] = targetsOf(['openai/gpt-5']);
const SKIPPED = skippedAttempt({ target: FORBIDDEN, reason: 'model_not_allowed' });

test('R8 the header names each target with its result and its time', () => {
  expect(attemptsHeader([DOWN, SERVED])).toBe(
    'deepseek/deepseek-flash 503 412ms, mistral/mistral-small-latest 200 80ms',
  );
});

test('R8 R3 an error within a 200 is shown with its code, and a skipped target with its reason', () => {
  expect(attemptsHeader([SKIPPED, CUT])).toBe(
    'openai/gpt-5 model_not_allowed, mistral/m upstream_truncated 7ms',
  );
});

test('R8 a name is printable ASCII without commas, and the list of attempts is truncated at a bound', () => {
  const odd = { ...SERVED, model: 'a, b\r\nx: y é' };
  expect(attemptsHeader([odd])).toBe('mistral/a%2C%20b%0D%0Ax:%20y%20%C3%A9 200 80ms');
  const long = attemptsHeader(Array.from({ length: 48 }, () => ({ ...DOWN, model: 'm'.repeat(250) })));
  expect(long.length).toBeLessThanOrEqual(MAX_ATTEMPTS_CHARS + 5);
  expect(long.endsWith(', ...')).toBe(true);
});

test('R8 the last error says how many attempts there were and how each ended', () => {
  const error = apiError('upstream_truncated', 'Mistral broke the connection');
  expect(withAttempts(error, [DOWN, SKIPPED, CUT])).toEqual({
    ...error,
    message:
      'Mistral broke the connection (tried 2 times: deepseek/deepseek-flash 503, openai/gpt-5 model_not_allowed, ' +
      'mistral/m upstream_truncated)',
  });
  expect(withAttempts(error, [SKIPPED, CUT]).message).toContain('(tried once: ');
  expect(withAttempts(error, [CUT])).toBe(error);
});

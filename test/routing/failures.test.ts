/** Tests the verdict on each failure of an attempt, with the deployment's credential and with the caller's own (R4). */
import { describe, expect, test } from 'vitest';
import { type ApiError, apiError, type FailureReason } from '../../src/canonical/error.ts';
import { streamError } from '../../src/canonical/upstream-error.ts';
import { type Failure, judge, readRetryAfter } from '../../src/routing/failures.ts';
import { classifyRefusal, type UpstreamErrorContext } from '../../src/upstream/errors.ts';
import { settingsWith, targetsOf } from './targets.ts';

const UPSTREAM = { name: 'Provider', secret: 'secret', refusals: undefined };
type Named = Pick<UpstreamErrorContext, 'name'> & Partial<Pick<UpstreamErrorContext, 'refusals'>>;
const IN_TIME = { reason: 'no_response', isMade: false, isBilled: false, retryAfterMs: null } as const;

/** The failure of a refusal with this status and body. */
function refused(
  status: number,
  body: unknown = '',
  callerPays = false,
  upstream: Named = UPSTREAM,
): Failure {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const { name, refusals = undefined } = upstream;
  const refuser = { ...UPSTREAM, name, refusals, callerPays };
  return { ...IN_TIME, error: classifyRefusal({ status, body: text }, refuser) };
}

function failed(error: ApiError, reason: FailureReason = 'no_response'): Failure {
  return { ...IN_TIME, error, reason };
}

/** An error that an upstream reports in its stream. */
function eventError(code: string): ApiError {
  return streamError(UPSTREAM, { message: 'x', type: undefined, code, param: undefined, status: undefined });
}

const [PLAIN] = targetsOf(['openai/gpt-5']);

const MORE = settingsWith({
  GEMINI_API_KEY: 'k',
  PROVIDERS: Object.fromEntries(
    ['router', 'moonshot', 'fireworks'].map((id) => [
      id,
      { base_url: `https://${id}`, like: id === 'router' ? 'openrouter' : id },
    ]),
  ),
});

/** The verdict in words. */
function verdict(failure: Failure, callerPays = false, target = PLAIN): string {
  const { triesNext, isRecoverable, circuitEffect } = judge(failure, target, callerPays);
  return [triesNext ? 'moves on' : 'ends', isRecoverable ? 'may recover' : '', circuitEffect]
    .filter(Boolean)
    .join(', ');
}

const FAILED = 'moves on, may recover, failure';
const REFUSED = 'moves on, refusal';
const LATE = 'moves on, failure';
const MISTAKE = 'ends, nothing';

describe('R4 judge', () => {
  test.each<[name: string, failure: Failure, verdict: string]>([
    ['no connection', failed(apiError('upstream_unreachable', 'x')), FAILED],
    ['no output within the step’s time', failed(apiError('timeout', 'x'), 'slow'), LATE],
    ['silence before any output', failed(apiError('stream_idle_timeout', 'x'), 'idle'), LATE],
    ...[408, 409, 425, 500, 501, 502, 503, 504, 520, 522, 524, 529, 599].map(
      (status) => [`a ${status}`, refused(status), FAILED] as [string, Failure, string],
    ),
    ['an error as the first event', failed(apiError('upstream_error', 'x')), FAILED],
    ['HTML, no JSON, no choice', failed(apiError('upstream_invalid', 'x')), FAILED],
    ['an end before any output', failed(apiError('upstream_truncated', 'x')), FAILED],
    ['an event that is too large', failed(apiError('upstream_event_too_large', 'x')), LATE],
    ['an overloaded upstream', failed(apiError('upstream_overloaded', 'x')), FAILED],
    ...[400, 413, 422].map(
      (status) => [`a ${status}`, refused(status), MISTAKE] as [string, Failure, string],
    ),
    ['an error event that is a 400', failed(apiError('invalid_request', 'x')), MISTAKE],
    ['a lack of Weir’s own memory', failed(apiError('overloaded', 'x')), MISTAKE],
    ['a fault of Weir’s own', failed(apiError('internal_error', 'x')), MISTAKE],
    ...['overloaded', 'internal_error', 'upstream_balance', 'upstream_event_too_large'].flatMap((code) => [
      [`a 500 whose code is ${code}`, refused(500, { error: { message: 'x', code } }), FAILED] as [
        string,
        Failure,
        string,
      ],
      [`an error event whose code is ${code}`, failed(eventError(code)), FAILED] as [string, Failure, string],
    ]),
    ['a 3xx', refused(302), FAILED],
    ['a request that was not sent', { ...refused(400), reason: 'unsent' }, 'moves on, nothing'],
    ['a 400 that names a parameter', refused(400, { error: { code: 'unsupported_parameter' } }), MISTAKE],
  ])('%s: %s', (_name, failure, expected) => {
    expect(verdict(failure)).toBe(expected);
    expect(verdict(failure, true)).toBe(expected);
  });

  test.each<[name: string, status: number, body: unknown]>([
    ['a 401', 401, ''],
    ['a 402', 402, ''],
    ['a 403 about the key', 403, { error: { message: 'Your API key does not have permission.' } }],
    ['a 403 about the model', 403, { error: { message: 'no', code: 'model_not_found' } }],
    ['a 404 about the model', 404, { error: { message: 'no', code: 'model_not_found' } }],
    ['a 400 about the key', 400, { error: 'Incorrect API key provided.' }],
    ['a 429 for the balance', 429, { error: { message: 'no', code: 'insufficient_quota' } }],
  ])('%s is a refusal of the deployment', (_name, status, body) => {
    expect(verdict(refused(status, body))).toBe(REFUSED);
  });

  test.each<[provider: string, status: number, error: object]>([
    ['anthropic', 404, { type: 'not_found_error', message: 'model: claude-x' }],
    ['anthropic', 404, { message: 'Claude Fable 5 is not available. Please use Opus 4.8.' }],
    ['anthropic', 403, { message: 'OAuth token does not meet scope requirement any_of(user:inference)' }],
    ['gemini', 404, { code: 404, message: 'models/x is not found for API version v1beta, or …' }],
    ['gemini', 403, { code: 403, message: "Permission denied: Consumer 'api_key:x' has been suspended." }],
    ['gemini', 403, { code: 403, message: 'Your API key was reported as leaked. Please use another.' }],
    ['openai', 404, { code: 'model_not_found', message: 'no' }],
    ['openai', 404, { code: 404, message: 'The model `x` does not exist.' }],
    ['moonshot', 404, { message: 'Not found the model kimi-x or Permission denied' }],
    [
      'moonshot',
      403,
      { message: 'organization x exceeded current quota, please check your plan and billing details' },
    ],
    ['router', 404, { code: 404, message: 'No endpoints found for a/b:free.' }],
    ['fireworks', 404, { code: 'NOT_FOUND', message: 'Model not found, inaccessible, and/or not deployed' }],
  ])('R7 %s, a %i of %j is a refusal of the deployment', (provider, status, error) => {
    const [target] = targetsOf([`${provider}/m`], { settings: MORE });
    expect(verdict(refused(status, { error }, false, target.provider), false, target)).toBe(REFUSED);
  });

  test.each<[provider: string, status: number, error: unknown]>([
    ['openai', 403, undefined],
    ['openai', 404, undefined],
    ['openai', 404, { message: 'No such File object: file-1' }],
    ['openai', 404, { message: 'No such File object: the model `x` does not exist', code: 'not_found' }],
    ['anthropic', 404, { type: 'not_found_error', message: 'File not found: file_1' }],
    ['gemini', 403, { message: 'You do not have permission to access the File x or it may not exist.' }],
    ['gemini', 403, { message: "The file 'your API key' can't be read" }],
    ['router', 404, { code: 404, message: 'No endpoints found that support tool use.' }],
    ['router', 402, { code: 402, message: 'This request requires more credits, or fewer max_tokens. You …' }],
  ])(
    'R7 %s, a %i of %j may be what one request names: it counts for nobody else',
    (provider, status, error) => {
      const [target] = targetsOf([`${provider}/m`], { settings: MORE });
      expect(verdict(refused(status, { error }, false, target.provider), false, target)).toBe(
        'moves on, nothing',
      );
    },
  );

  test.each<[name: string, model: string, error: object]>([
    [
      'a thread that Anthropic has no more',
      'anthropic/claude-sonnet-5',
      { message: 'No usable Thread state', details: { error_code: 'thread_not_found' } },
    ],
    [
      'an item that OpenAI does not keep',
      'openai/gpt-5',
      { message: "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false." },
    ],
  ])('R4 N2 %s is the caller’s mistake: the circuit stays closed', (_name, model, error) => {
    const [target] = targetsOf([model]);
    expect(verdict(refused(404, { error }, false, target.provider), false, target)).toBe(MISTAKE);
  });

  test.each<[name: string, failure: Failure]>([
    ['a 429', refused(429)],
    ['an error event that is a 429', failed({ ...apiError('rate_limited', 'x'), code: 'own' })],
  ])("%s: a limit of the caller's own key counts for nobody else", (_name, failure) => {
    expect(verdict(failure)).toBe(FAILED);
    expect(verdict(failure, true)).toBe('moves on, may recover, nothing');
  });

  test.each([401, 402, 403, 404])("a %i is the caller's own mistake under passthrough", (status) => {
    expect(verdict(refused(status, '', true), true)).toBe(MISTAKE);
  });

  test.each([
    ['deepseek', 'The supported API model names are a or b, but you passed c.', 'invalid_request_error'],
    ['mistral', 'Invalid model: c', '1500'],
    ['router', 'c is not a valid model ID', 'x'],
    ['openai', 'No such model', 'model_not_found'],
  ])('a 400 of %s for an unknown model counts like a 404', (provider, message, code) => {
    const [target] = targetsOf([`${provider}/c`]);
    expect(verdict(refused(400, { error: { message, code } }, false, target.provider), false, target)).toBe(
      REFUSED,
    );
    expect(verdict(refused(400, { error: { message, code } }, true, target.provider), true, target)).toBe(
      MISTAKE,
    );
  });
});

describe('R2 judge, the alias’s `on`', () => {
  const TOO_LONG = { message: "This model's maximum context length is 8192 tokens.", code: 'x' };
  const FILTERED = { message: 'The response was filtered', code: 'content_filter' };
  const RISK = { message: 'Content Exists Risk', code: 'invalid_request_error' };

  test.each<[provider: string, on: string[], status: number, error: object, verdict: string]>([
    ['openai', [], 400, TOO_LONG, MISTAKE],
    ['openai', ['content_filter'], 400, TOO_LONG, MISTAKE],
    ['openai', ['context_length'], 400, TOO_LONG, 'moves on, nothing'],
    [
      'openai',
      ['context_length'],
      413,
      { ...TOO_LONG, code: 'context_length_exceeded' },
      'moves on, nothing',
    ],
    ['openai', ['context_length'], 400, FILTERED, MISTAKE],
    ['openai', ['context_length', 'content_filter'], 400, FILTERED, 'moves on, nothing'],
    ['deepseek', ['content_filter'], 400, RISK, 'moves on, nothing'],
    ['openai', ['content_filter'], 400, RISK, MISTAKE],
  ])('%s with on %j: a %i with %j %s', (provider, on, status, error, expected) => {
    const settings = settingsWith({ ALIASES: { a: { model: `${provider}/m`, on } } });
    const [target] = targetsOf(['a'], { settings });
    expect(verdict(refused(status, { error }, false, target.provider), false, target)).toBe(expected);
  });
});

const NOW = Date.parse('2026-11-22T10:00:00Z');

test.each<[headers: Record<string, string>, ms: number | null]>([
  [{}, null],
  [{ 'retry-after': '3' }, 3000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after': '3', 'retry-after-ms': '120' }, 120],
  [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:04 GMT' }, 4000],
  [{ 'retry-after': 'Sun, 22 Nov 2026 09:00:00 GMT' }, 0],
  [{ 'retry-after': 'soon' }, null],
  [{ 'retry-after': 'Sunday, 22-Nov-26 10:00:04 GMT' }, 4000],
  [{ 'retry-after': '2026-11-22T10:00:04Z' }, 4000],
  // `Date.parse` reads these as days in 2001, which would be a wait of 0 ms.
  [{ 'retry-after': '-1', 'retry-after-ms': 'x' }, null],
  [{ 'retry-after': 'soon 5' }, null],
  [{ 'retry-after': '5, 5' }, null],
])('R6 readRetryAfter: %j is %s ms', (headers, ms) => {
  expect(readRetryAfter(new Headers(headers), NOW)).toBe(ms);
});

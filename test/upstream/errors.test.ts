/** Tests the classification of refusals (E1): whose mistake each one is, in any form of body, and what the client sees of it. */
import { describe, expect, test } from 'vitest';
import type { UpstreamError } from '../../src/canonical/error.ts';
import { anthropic } from '../../src/providers/anthropic.ts';
import { geminiCompatible, geminiNative } from '../../src/providers/gemini.ts';
import { openrouter } from '../../src/providers/openrouter.ts';
import type { RefusalRules } from '../../src/providers/refusals.ts';
import { xai } from '../../src/providers/xai.ts';
import { classifyError, classifyRefusal, readRetryDelay } from '../../src/upstream/errors.ts';

const UPSTREAM = { name: 'Provider', secret: 'deployment-secret', refusals: undefined, callerPays: false };
const NO_FIELDS: UpstreamError = {
  message: undefined,
  type: undefined,
  code: undefined,
  param: undefined,
  status: undefined,
};

function refuse(status: number, body: unknown = '', callerPays = false, refusals?: RefusalRules) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return classifyRefusal({ status, body: text }, { ...UPSTREAM, refusals, callerPays });
}

describe('classifyRefusal, errors of the caller', () => {
  test.each([
    [400, 'invalid_request_error', 'invalid_request'],
    [404, 'not_found_error', 'not_found'],
    [413, 'invalid_request_error', 'request_too_large'],
    [422, 'invalid_request_error', 'invalid_request'],
    [429, 'rate_limit_error', 'rate_limited'],
  ])('E1 %i: keeps its status, with type %s, and code %s where none was sent', (status, type, code) => {
    const error = { status, type, code, message: `Provider answered ${status}`, param: null };
    const { refusal: _, weirCode: __, ...shown } = refuse(status);
    expect(shown).toEqual(error);
  });

  test("E1 the upstream's error: message, code and param are kept", () => {
    const body = {
      error: { message: 'no', type: 'own', code: 'context_length_exceeded', param: 'messages' },
    };
    const { refusal: _, weirCode: __, ...shown } = refuse(400, body);
    expect(shown).toEqual({
      status: 400,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      message: 'Provider: no',
      param: 'messages',
    });
  });

  test('E1 an HTTP status for a code: no code, and the status of the response stays', () => {
    expect(refuse(400, { error: { message: 'no', code: 429 } })).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
    expect(refuse(429, { error: { message: 'no', code: '429' } })).toMatchObject({
      status: 429,
      code: 'rate_limited',
    });
    expect(refuse(400, { object: 'error', message: 'no', code: '3051' })).toMatchObject({ code: '3051' });
  });

  test.each([
    [
      openrouter,
      {
        error: {
          code: 403,
          message: 'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "x".',
        },
      },
    ],
    [
      xai,
      {
        code: 'permission-denied',
        error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
      },
    ],
  ])(
    'R4 $id’s 403 for what the prompt says: the error of a filter, and none of the credential',
    ({ refusals }, body) => {
      for (const callerPays of [false, true]) {
        const stopped = { status: 400, type: 'invalid_request_error', code: 'content_filter' };
        expect(refuse(403, body, callerPays, refusals)).toMatchObject(stopped);
      }
      const denied = { code: 'permission-denied', error: 'Access to the chat endpoint is denied' };
      expect(refuse(403, denied, false, refusals)).toMatchObject({ code: 'upstream_refused' });
      // The words are its own.
      expect(refuse(403, body)).toMatchObject({ code: 'upstream_refused' });
    },
  );

  test("E4 the upstream's error is sanitized, including code and param", () => {
    const text = JSON.stringify(
      refuse(400, {
        error: { message: 'deployment-secret', code: 'deployment-secret', param: 'deployment-secret' },
      }),
    );
    expect(text).not.toContain('deployment-secret');
  });
});

describe('classifyRefusal, the credential and the balance', () => {
  test.each([
    [401, 'upstream_credential'],
    [403, 'upstream_credential'],
    [402, 'upstream_balance'],
  ])("E1 %i on the deployment's own credential: 502, without the upstream's message", (status, code) => {
    const error = refuse(status, { error: { message: 'Your key sk-ab**yz', code: 'own' } });
    expect(error).toMatchObject({ status: 502, type: 'server_error', code });
    expect(error.message).toContain('Provider');
    expect(error.message).not.toContain('key');
  });

  test('E1 a 403 that names neither credential nor model: 502 with the upstream’s message', () => {
    expect(refuse(403, { error: { message: 'No access to the File x', code: 'own' } })).toMatchObject({
      status: 502,
      code: 'upstream_refused',
      message: 'Provider: No access to the File x',
    });
  });

  test('E1 insufficient_quota under a 429: the deployment’s balance, not a rate limit', () => {
    const body = { error: { message: 'no', code: 'insufficient_quota' } };
    expect(refuse(429, body)).toMatchObject({ status: 502, code: 'upstream_balance' });
    expect(refuse(429, body, true)).toMatchObject({ status: 429, code: 'insufficient_quota' });
  });

  test('E1 Anthropic’s 400 for an empty balance: the deployment’s balance; the caller’s own is passed on unchanged', () => {
    const body = { error: { message: 'Your credit balance is too low to access the Anthropic API.' } };
    expect(refuse(400, body, false, anthropic.refusals)).toMatchObject({
      status: 502,
      code: 'upstream_balance',
    });
    expect(refuse(400, body, true, anthropic.refusals)).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
  });

  test.each([
    [429, 'Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects.'],
    [
      400,
      'Gemini API free tier is not available in your country. Please enable billing on your project in Google AI Studio.',
    ],
  ])(
    'E1 Google’s %i for an empty balance: the deployment’s; the caller’s own is passed on',
    (status, message) => {
      const body = { error: { code: status, message, status: 'FAILED_PRECONDITION' } };
      expect(refuse(status, body, false, geminiNative.refusals)).toMatchObject({
        status: 502,
        code: 'upstream_balance',
      });
      expect(refuse(status, body, true, geminiNative.refusals)).toMatchObject({ status });
    },
  );

  test.each([false, true])(
    'E1 Google’s 400 for the place where the Worker runs: no mistake of the caller’s, whose key it may be (%s)',
    (callerPays) => {
      const message = 'User location is not supported for the API use.';
      const body = { error: { code: 400, message, status: 'FAILED_PRECONDITION' } };
      expect(refuse(400, body, callerPays, geminiNative.refusals)).toMatchObject({
        status: 502,
        code: 'upstream_error',
        message: `Provider: ${message}`,
      });
      expect(refuse(400, body, callerPays)).toMatchObject({ status: 400 });
    },
  );

  test.each([
    'Incorrect API key provided: xa***og. You can obtain an API key from https://console.x.ai.',
    'API key not valid. Please pass a valid API key.',
    'API key expired. Please renew the API key.',
    'invalid api_key',
    'Your api-key is missing',
  ])("E1 Q10 a 400 that is about the deployment's key, %j: 502, without that message", (message) => {
    const error = refuse(400, { error: { message } });
    expect(error).toMatchObject({ status: 502, code: 'upstream_credential' });
    expect(error.message).not.toContain(message);
    expect(refuse(400, { error: { message } }, true)).toMatchObject({
      status: 400,
      message: `Provider: ${message}`,
    });
  });

  test.each([
    [400, 'max_tokens is invalid'],
    [400, "The key 'api_key_name' of the schema is missing a type"],
    [422, 'API key not valid. Please pass a valid API key.'],
    [400, `${'a'.repeat(2_000)} invalid api key`],
  ])('E1 Q10 a %i that only seems to be about the key is not changed', (status, message) => {
    expect(refuse(status, { error: { message } })).toMatchObject({ status });
  });

  test.each([
    [401, 'authentication_error', 'invalid_api_key'],
    [403, 'permission_error', 'model_not_allowed'],
  ])(
    "E1 K1 %i on the caller's own credential: stays %i, with the upstream's message",
    (status, type, code) => {
      const error = refuse(status, { error: { message: 'no' } }, true);
      expect(error).toMatchObject({ status, type, code, message: 'Provider: no' });
    },
  );
});

describe('classifyRefusal, errors of the upstream', () => {
  test.each([
    [500, 502, 'server_error', 'upstream_error'],
    [501, 502, 'server_error', 'upstream_error'],
    [502, 502, 'server_error', 'upstream_error'],
    [503, 503, 'server_error', 'upstream_overloaded'],
    [529, 503, 'server_error', 'upstream_overloaded'],
    [504, 504, 'timeout_error', 'timeout'],
    [408, 504, 'timeout_error', 'timeout'],
    [524, 504, 'timeout_error', 'timeout'],
    [418, 502, 'server_error', 'upstream_error'],
  ])('E1 %i: answered with %i, %s, %s', (status, answered, type, code) => {
    expect(refuse(status, 'no')).toMatchObject({ status: answered, type, code, message: 'Provider: no' });
  });

  test.each([301, 302, 307, 308])('E1 a redirect (%i): 502, and its body is not shown', (status) => {
    const error = refuse(status, 'Moved to http://other/');
    expect(error).toMatchObject({ status: 502, code: 'upstream_error' });
    expect(error.message).not.toContain('other');
  });
});

describe('a 3xx status that is no redirect', () => {
  test.each([300, 304])('E1 %i: 502 that names the status and mentions no redirect', (status) => {
    const error = refuse(status, '');
    expect(error).toMatchObject({
      status: 502,
      code: 'upstream_error',
      message: `Provider answered ${status}`,
    });
  });
});

describe('classifyRefusal, forms of the body', () => {
  test.each<[name: string, body: unknown, message: string]>([
    ['an error object', { error: { message: 'no' } }, 'Provider: no'],
    ['an error text', { error: 'no' }, 'Provider: no'],
    ['Mistral', { object: 'error', message: 'no' }, 'Provider: no'],
    ['FastAPI', { detail: [{ loc: ['body', 'n'], msg: 'too big' }] }, 'Provider: body.n: too big'],
    ['a detail text', { detail: 'no' }, 'Provider: no'],
    ['plain text', ' no \n', 'Provider: no'],
    [
      'a page with a title',
      '<html><head><title>Bad\nGateway</title></head><body>x</body>',
      'Provider: Bad\nGateway',
    ],
    ['a page without a title', '<html><body>nginx</body></html>', 'Provider answered 400'],
    ['nothing', '', 'Provider answered 400'],
    ['an empty object', {}, 'Provider answered 400'],
    ['half a JSON', '{"error":{"mess', 'Provider: {"error":{"mess'],
    [
      "Mistral's nested refusal",
      { message: { detail: [{ loc: ['body', 'n'], msg: 'no' }] } },
      'Provider: body.n: no',
    ],
    ['a list for a message', { message: [{ loc: ['n'], msg: 'no' }] }, 'Provider: n: no'],
    [
      'the provider behind it',
      { error: { message: 'no', metadata: { raw: '{"detail":"why"}', provider_name: 'Quay' } } },
      'Provider: Quay: no (why)',
    ],
    [
      "Gemini's list of one error",
      [{ error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } }],
      'Provider: no',
    ],
    ['a list without an error', '["no"]', 'Provider: ["no"]'],
    ['a list of two', '[{"error":{}},1]', 'Provider: [{"error":{}},1]'],
    ['a list of nothing', '[]', 'Provider: []'],
  ])('E1 %s: its message', (_, body, message) => {
    expect(refuse(400, body).message).toBe(message);
  });
});

describe('readRetryDelay', () => {
  const reported = (retryDelay: unknown, type = 'type.googleapis.com/google.rpc.RetryInfo') => ({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.Help', retryDelay: '1s' },
        { '@type': type, retryDelay },
      ],
    },
  });

  test.each<[name: string, body: unknown, expected: number | undefined]>([
    ['whole seconds', reported('17s'), 17],
    ['a part of a second stays', reported('45.837906927s'), 45.837906927],
    ['no wait', reported('0s'), 0],
    ['in the list of one of the compatible endpoint', [reported('17s')], 17],
    ['another unit', reported('17m'), undefined],
    ['a number', reported(17), undefined],
    ['more than any wait', reported('9999999s'), undefined],
    ['another detail', reported('17s', 'type.googleapis.com/google.rpc.ErrorInfo'), undefined],
    ['no detail', { error: { code: 429 } }, undefined],
    ['no JSON', 'busy', undefined],
  ])('R6 Google: %s', (_, body, expected) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    for (const { refusals } of [geminiNative, geminiCompatible]) {
      expect(readRetryDelay(text, { ...UPSTREAM, refusals })).toBe(expected);
    }
    expect(readRetryDelay(text, UPSTREAM)).toBeUndefined();
  });
});

describe('errors in a 200', () => {
  test.each<[fields: Partial<UpstreamError>, status: number, code: string]>([
    [{ status: 429 }, 429, 'rate_limited'],
    [{ type: 'rate_limit_error' }, 429, 'rate_limited'],
    [{ code: 'context_length_exceeded' }, 400, 'context_length_exceeded'],
    [{ type: 'invalid_request_error', param: 'n' }, 400, 'invalid_request'],
    [{ code: 'insufficient_quota' }, 502, 'upstream_balance'],
    [{ type: 'authentication_error' }, 502, 'upstream_credential'],
    [{ type: 'overloaded_error' }, 503, 'upstream_overloaded'],
    [{ code: 'server_is_overloaded' }, 503, 'server_is_overloaded'],
    [{ code: 'slow_down' }, 503, 'slow_down'],
    [{ code: 'invalid_prompt' }, 400, 'invalid_prompt'],
    [{ code: 'invalid_image_url' }, 400, 'invalid_image_url'],
    [{ type: 'timeout_error' }, 504, 'timeout'],
    [{ status: 500, type: 'rate_limit_error' }, 502, 'upstream_error'],
    [{ type: 'an unknown type' }, 502, 'upstream_error'],
    [{}, 502, 'upstream_error'],
  ])('E1 classifyError %j: %i and %s', (fields, status, code) => {
    expect(classifyError({ ...NO_FIELDS, ...fields }, UPSTREAM)).toMatchObject({ status, code });
  });
});

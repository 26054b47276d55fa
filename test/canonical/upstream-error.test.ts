/** Tests reading upstream errors in every form, and sanitizing their messages (E1, E2, E4). */
import { describe, expect, test } from 'vitest';
import type { UpstreamError } from '../../src/canonical/error.ts';
import {
  failedFinish,
  findUpstreamError,
  readUpstreamError,
  sanitize,
  sanitizeCode,
  streamError,
  upstreamMessage,
} from '../../src/canonical/upstream-error.ts';
import { shortestMs } from '../machine-speed.ts';

const UPSTREAM = { name: 'Provider', secret: 'the+secret/of.the=deployment' };
const NO_FIELDS: UpstreamError = {
  message: undefined,
  type: undefined,
  code: undefined,
  param: undefined,
  status: undefined,
};

describe('readUpstreamError', () => {
  test.each<[name: string, body: Record<string, unknown>, fields: Partial<UpstreamError>]>([
    [
      'OpenAI',
      { error: { message: 'no', type: 't', param: 'model', code: 'c' } },
      { message: 'no', type: 't', param: 'model', code: 'c' },
    ],
    ['nulls', { error: { message: 'no', type: null, param: null, code: null } }, { message: 'no' }],
    ['an error text', { error: 'no', error_type: 'overloaded' }, { message: 'no', type: 'overloaded' }],
    [
      'Mistral',
      { object: 'error', message: 'no', type: 't', code: 1234 },
      { message: 'no', type: 't', code: '1234' },
    ],
    ['a message alone', { message: 'no' }, { message: 'no' }],
    [
      'MiniMax',
      { base_resp: { status_code: 1002, status_msg: 'no' } },
      { message: 'no', code: '1002', status: 429 },
    ],
    ['MiniMax, all well', { base_resp: { status_code: 0, status_msg: '' } }, {}],
    [
      'Cloudflare',
      { success: false, errors: [{ code: 3040, message: 'no' }] },
      { message: 'no', code: '3040', status: 429 },
    ],
    ['errors by field', { errors: { n: ['a', 'b'], stop: 'c' } }, { message: 'n: a; b; stop: c' }],
    [
      'Groq, in a stream',
      { x_groq: { error: 'over_capacity' } },
      { message: 'over_capacity', code: 'over_capacity' },
    ],
    [
      'an error of a choice',
      { choices: [{ error: { message: 'no', code: 502 } }] },
      { message: 'no', status: 502 },
    ],
    ['a detail text', { detail: 'no' }, { message: 'no' }],
    [
      'a detail list',
      {
        detail: [
          { loc: ['body', 'n', 0], msg: 'too big' },
          { loc: [], msg: 'bad' },
          { loc: ['x'] },
          'skipped',
        ],
      },
      { message: 'body.n.0: too big; bad; x: invalid' },
    ],
    ['a status in the error', { error: { message: 'no', status: 429 } }, { message: 'no', status: 429 }],
    [
      'a status_code beside it',
      { error: { message: 'no' }, status_code: 503 },
      { message: 'no', status: 503 },
    ],
    ['a code that is a status', { error: { message: 'no', code: 502 } }, { message: 'no', status: 502 }],
    ['a code that is a status in text', { error: { code: '401' } }, { status: 401 }],
    ['a code that is a status beside another', { error: { code: 502, status: 429 } }, { status: 429 }],
    ['a code that is not a status', { error: { code: 1000, status: 200 } }, { code: '1000' }],
    ['a code that is nearly one', { error: { code: 399 } }, { code: '399' }],
    [
      "Mistral's refusal of a field",
      {
        object: 'error',
        message: {
          detail: [{ type: 'extra_forbidden', loc: ['body', 'user'], msg: 'Extra inputs', input: 'u' }],
        },
        type: 'invalid_request_error',
        code: '3051',
        raw_status_code: 422,
      },
      { message: 'body.user: Extra inputs', type: 'invalid_request_error', code: '3051' },
    ],
    [
      'a list in the place of its message',
      { object: 'error', message: [{ loc: ['body', 'n'], msg: 'too big' }, { msg: 'bad' }] },
      { message: 'body.n: too big; bad' },
    ],
    ['a detail text in its message', { error: { message: { detail: 'no' } } }, { message: 'no' }],
    ['a message in its message', { error: { message: { message: 'no', more: 1 } } }, { message: 'no' }],
    ['an object of no known form for a message', { message: { why: ['no'] } }, { message: '{"why":["no"]}' }],
    ['an empty list for a message', { error: { message: [] } }, {}],
    [
      'OpenRouter, with JSON of the provider behind it',
      {
        error: {
          message: 'Provider returned error',
          code: 429,
          metadata: { raw: '{"error":{"message":"slow down","code":"rate"}}', provider_name: 'Quay' },
        },
      },
      { message: 'Quay: Provider returned error (slow down)', status: 429 },
    ],
    [
      'OpenRouter, with text of the provider behind it',
      { error: { message: 'Provider returned error', code: 400, metadata: { raw: 'the upstream refused' } } },
      { message: 'Provider returned error (the upstream refused)', status: 400 },
    ],
    [
      'OpenRouter, with JSON that has no message',
      { error: { message: 'Provider returned error', metadata: { raw: '{"a":1}', provider_name: 'Quay' } } },
      { message: 'Quay: Provider returned error' },
    ],
    [
      'metadata without what the provider answered',
      { error: { message: 'no', metadata: { reasons: ['a'], provider_name: 'Quay' } } },
      { message: 'no' },
    ],
    ['empty texts', { error: { message: '', type: '', code: '', param: '' } }, {}],
    ['nothing', {}, {}],
  ])('E1 %s: every field that is present', (_, body, fields) => {
    expect(readUpstreamError(body)).toEqual({ ...NO_FIELDS, ...fields });
  });
});

describe('findUpstreamError', () => {
  test.each([
    [{ error: { message: 'no' } }, true],
    [{ error: 'no' }, true],
    [{ object: 'error', message: 'no' }, true],
    [{ type: 'error', message: 'no' }, true],
    [{ error: ['no'] }, true],
    [{ error: 500 }, true],
    [{ error: true }, true],
    [{ errors: [{ message: 'no' }] }, true],
    [{ errors: [] }, false],
    [{ code: 'no', message: 'no' }, true],
    [{ code: 1301, msg: 'no' }, true],
    [{ code: 0, msg: 'done' }, false],
    [{ code: 200, message: 'success', data: [] }, false],
    [{ code: 'no', message: 'no', choices: [{}] }, false],
    [{ base_resp: { status_code: 1002 } }, true],
    [{ base_resp: { status_code: 1027 }, choices: [{}] }, true],
    [{ base_resp: { status_code: 0 }, choices: [{}] }, false],
    [{ success: false }, true],
    [{ success: true }, false],
    [{ status: 'error' }, true],
    [{ status: 'completed', output: [] }, false],
    [{ message: 'no' }, true],
    [{ message: 'no', choices: null, request_id: 'r' }, true],
    [{ message: 'in the queue', status: 'queued' }, false],
    [{ message: 'no', type: 'notice' }, false],
    [{ message: { content: 'a' }, done: false }, false],
    [{ x_groq: { error: 'over_capacity' }, choices: [{}] }, true],
    [{ x_groq: { id: 'r' }, choices: [{}] }, false],
    [{ choices: [{ error: { message: 'no' } }] }, true],
    [{ choices: [{ error: null }] }, false],
    [{ detail: 'no' }, true],
    [{ error: { message: 'no' }, choices: [] }, true],
    [{ error: null, choices: [] }, false],
    [{ error: '' }, false],
    [{ detail: null }, false],
    [{ detail: 'part of the answer', choices: [] }, false],
    [{ object: 'chat.completion.chunk', choices: [] }, false],
    [{}, false],
  ])('E2 %j: is an error: %j', (event, expected) => {
    expect(findUpstreamError(event) !== null).toBe(expected);
  });
});

describe('streamError', () => {
  test.each<[name: string, fields: Partial<UpstreamError>, type: string, code: string]>([
    ['a code', { code: 'c', type: 't' }, 'server_error', 'c'],
    ['a type alone', { type: 'rate_limit_error' }, 'server_error', 'rate_limit_error'],
    ['neither', {}, 'server_error', 'upstream_error'],
    ['server_error without a code', { type: 'server_error' }, 'server_error', 'upstream_error'],
    ['timeout_error without a code', { type: 'timeout_error' }, 'timeout_error', 'timeout'],
    ['timeout_error with a code', { type: 'timeout_error', code: 'slow' }, 'timeout_error', 'slow'],
    ['stream_idle_timeout', { type: 'stream_idle_timeout' }, 'stream_idle_timeout', 'stream_idle_timeout'],
  ])('E2 %s: the type and code of its frame', (_, fields, type, code) => {
    expect(streamError(UPSTREAM, { ...NO_FIELDS, message: 'no', ...fields })).toMatchObject({
      type,
      code,
      message: 'Provider: no',
      param: null,
    });
  });

  test('E4 a param with the credential: sanitized like the message', () => {
    const error = { ...NO_FIELDS, param: `at ${UPSTREAM.secret}` };
    expect(streamError(UPSTREAM, error)).toMatchObject({ param: 'at [redacted]' });
  });

  test.each([
    ['the credential itself', UPSTREAM.secret],
    ['a text with a key', 'nvapi-hunter2hunter2 is refused'],
    ['a text with an address', 'no answer of backend-7:8443'],
    ['a connection string', 'postgres://db.prod:5432/x'],
    ['a place in a source', 'panicked at src/main.rs:10:5'],
    ['markup', '<b>no</b>'],
    ['a text of two lines', 'no\nno'],
    ['a text that is too long', 'a'.repeat(129)],
  ])('E1 E4 a code that is %s: undefined', (_, code) => {
    expect(streamError(UPSTREAM, { ...NO_FIELDS, code })).toMatchObject({ code: 'upstream_error' });
    expect(sanitizeCode(code, UPSTREAM)).toBeUndefined();
  });

  test.each(['context_length_exceeded', '3051', 'a/b.c:d-e', 'Too Many Requests', 'a'.repeat(128)])(
    'E1 the code %s: as it is, and nothing is cut out of it',
    (code) => {
      expect(sanitizeCode(code, { name: 'Provider', secret: 'length' })).toBe(code);
      expect(streamError(UPSTREAM, { ...NO_FIELDS, code })).toMatchObject({ code });
    },
  );

  test('E4 no message: the provider is still named', () => {
    expect(upstreamMessage(UPSTREAM, undefined)).toBe('Provider reported an error without a message');
    expect(upstreamMessage(UPSTREAM, ' \n ')).toBe('Provider reported an error without a message');
  });

  test('C8 failedFinish: `error` has the common code, any other word is the code', () => {
    expect(failedFinish(UPSTREAM, 'error')).toMatchObject({
      code: 'upstream_error',
      message: 'Provider stopped: error',
    });
    expect(failedFinish(UPSTREAM, 'insufficient_system_resource')).toMatchObject({
      status: 502,
      type: 'server_error',
      code: 'insufficient_system_resource',
    });
  });
});

describe('sanitize', () => {
  test.each([
    ['the credential of the deployment', `Key ${UPSTREAM.secret} is invalid`, 'secret/of'],
    ['it, percent-encoded', `GET /v1?key=${encodeURIComponent(UPSTREAM.secret)} failed`, 'secret%2Fof'],
    ['it, twice', `${UPSTREAM.secret} ${UPSTREAM.secret}`, 'secret/of'],
    ['a bearer token', 'Authorization: Bearer abc.DEF-123 was refused', 'abc.DEF'],
    ['a key of OpenAI', 'Incorrect API key provided: sk-proj-abcd1234EFGH', 'abcd1234'],
    ['a masked key', 'Incorrect API key provided: sk-ab***********wxyz', 'wxyz'],
    ['a key of Groq', 'key gsk_abcdef123456 is invalid', 'abcdef123456'],
    ['a key of Weir', 'key weir_abcdef123456 is invalid', 'abcdef123456'],
    ['a key under its name', 'api_key-12345678abc refused', '12345678abc'],
    ['a key beside its name', 'x-api-key: 0f1e2d3c4b5a6978', '0f1e2d3c'],
    ['a web token', 'jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0 expired', 'eyJhbGci'],
    ['credentials in a URL', 'proxy https://user:hunter@proxy.example.com failed', 'hunter'],
    ['an IPv4 address', 'dial tcp 10.1.2.3:8080: refused', '10.1.2.3'],
    ['the port of an address', 'dial tcp 10.1.2.3:8080: refused', '8080'],
    ['an IPv6 address', 'dial tcp [fd00::1]:443: refused', 'fd00'],
    ['a bare IPv6 address', 'could not reach ::1', '::1'],
    ['localhost', 'connect to localhost:11434 failed', 'localhost'],
    ['an internal URL', 'GET http://vllm-0.vllm:8000/v1/models failed', 'vllm-0'],
    ['a cluster host', 'no route to gateway.prod.svc.cluster.local', 'gateway.prod'],
    ['an internal host', 'lookup db-1.corp.internal: no such host', 'db-1'],
    ['a connection string', 'pool postgres://admin:hunter2@db.prod:5432/x failed', 'hunter2'],
    ['a connection string without a user', 'redis://:hunter2@cache-1:6379 is down', 'cache-1'],
    ['Basic credentials', 'sent Authorization: Basic dXNlcjpodW50ZXIy to it', 'dXNl'],
    ['a header of its own scheme', 'authorization: Token abc-hunter2', 'hunter2'],
    ['an AWS key', 'AKIAIOSFODNN7EXAMPLE is not allowed', 'AKIA'],
    ['a Google key', `AIza${'a1'.repeat(18)} is not allowed`, 'AIza'],
    ['a GitHub token', `ghp_${'a1'.repeat(18)} is not allowed`, 'ghp_'],
    ['a Hugging Face token', `hf_${'a1'.repeat(17)} is not allowed`, 'hf_'],
    ['an NVIDIA key', 'nvapi-hunter2hunter2 is not allowed', 'nvapi'],
    ['an xAI key', 'xai-hunter2hunter2 is not allowed', 'xai-'],
    ['a host with a port', 'no answer of backend-7:8443', 'backend'],
    ['a host of several names with a port', 'no answer of api-int.prod.example.com:9090', 'prod'],
    ['another scheme', 'dial grpc://inner-host:50051', 'inner'],
    ['a socket', 'connect unix:/var/run/x.sock', 'run'],
    ['a stack of Python in one line', 'boom; File "/srv/main.py", line 12, in f', 'srv'],
    ['a stack of Go', 'boom goroutine 7 [running]: main.f(...) /srv/x.go:12', 'running'],
    ['a stack of Rust', "boom thread 'main' panicked at src/main.rs:10:5", 'main.rs'],
    ['a stack of Java in one line', 'boom at com.acme.Foo.bar(Foo.java:12)', 'acme'],
    ['a stack of JavaScript', 'boom\n    at run (/app/src/index.js:10:5)', 'index.js'],
    ['a stack in one line', 'TypeError: boom at run (/app/src/index.js:10:5)', 'index.js'],
    ['a stack of Python', 'Traceback (most recent call last):\n  File "/srv/app.py", line 3', 'app.py'],
    ['a stack of Python after a text', 'boom\n  File "/srv/app.py", line 3, in f', 'app.py'],
  ])('E4 %s: does not reach the client', (_, message, secret) => {
    expect(sanitize(message, UPSTREAM)).not.toContain(secret);
  });

  test.each([
    'The model `gpt-5` does not exist',
    'max_tokens must be at least 1, not -1.5 (see section 3.2.1)',
    'Rate limit reached for requests per min (RPM): Limit 3, Used 3',
    'See https://platform.openai.com/docs/guides/error-codes',
    'Invalid value for token_limit and api_version',
    "The key 'messages' is missing at position 3",
  ])('E1 %j: reaches the client unchanged', (message) => {
    expect(sanitize(message, UPSTREAM)).toBe(message);
  });

  test('E4 the text around a secret: stays readable', () => {
    expect(sanitize(`a ${UPSTREAM.secret} b 10.0.0.1 c\n  at d`, UPSTREAM)).toBe(
      'a [redacted] b [address] c',
    );
  });

  test.each([
    ['alone', 'no', 'the key no', 'the key [redacted]'],
    ['at the start and at the end', 'no', 'no, no', '[redacted], [redacted]'],
    ['in quotes and brackets', 'no', '"no" (no) [no]', '"[redacted]" ([redacted]) [[redacted]]'],
    ['behind a sign of a header', 'no', 'key=no:no', 'key=[redacted]:[redacted]'],
    ['within words', 'no', 'none knows nothing_no no-one', 'none knows nothing_no no-one'],
    ['one letter', 'e', 'The model e does not exist', 'The model [redacted] does not exist'],
    ['signs of a regular expression', 'a.c*', 'abc a.c* abcc', 'abc [redacted] abcc'],
  ])(
    'E1 E4 a credential that is a short word, %s: cut out as a whole word',
    (_, secret, message, cleaned) => {
      expect(sanitize(message, { name: 'Provider', secret })).toBe(cleaned);
    },
  );

  test('E4 B1 a megabyte of a one-letter credential: only a bounded part is searched', () => {
    const clean = (text: string) => sanitize(text, { name: 'Provider', secret: 'a' });
    const [long, short] = ['a '.repeat(500_000), 'a '.repeat(25_000)] as const;
    expect(clean(long).length).toBeLessThanOrEqual(1_000);
    // A search of the whole takes 20 times as long.
    expect(shortestMs(20, () => clean(long))).toBeLessThan(8 * shortestMs(20, () => clean(short)));
  });

  test('E4 a very long text: truncated after the deployment’s credential is removed', () => {
    const long = `${'a'.repeat(985)} ${UPSTREAM.secret} ${'b'.repeat(1_000_000)}`;
    const cleaned = sanitize(long, UPSTREAM);
    expect(cleaned).toHaveLength(1_000);
    expect(cleaned).not.toContain('the+');
  });

  test('E4 no credential (a self-hosted provider): nothing is replaced', () => {
    expect(sanitize('no', { name: 'Provider', secret: '' })).toBe('no');
  });
});

/** Bodies that are compressed or not UTF-8, and half a surrogate pair in them (E1, Q11). */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { answerWith, json, RoutedGateway } from './upstreams.ts';

const BODY = { model: 'mistral/m', messages: [{ role: 'user', content: 'Grüße' }] };
const TEXT = JSON.stringify(BODY);
const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const bigEndian = (bytes: Buffer) => Buffer.from(bytes).swap16();

async function post(path: string, body: Uint8Array | string, headers: Record<string, string> = {}) {
  const routed = new RoutedGateway({ m: [answerWith('Hi')] });
  const response = await routed.gateway.fetch(path, '', {
    method: 'POST',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: { 'content-type': 'application/json', ...headers },
  });
  return {
    status: response.status,
    answer: decodeObject(await response.text()) ?? {},
    requests: routed.requests,
  };
}

describe('E1 a body in an encoding that is not read is a 415 that names it', () => {
  test.each<[what: string, body: Uint8Array, headers: Record<string, string>, name: string]>([
    ['gzip', gzipSync(TEXT), { 'content-encoding': 'gzip' }, 'gzip'],
    ['gzip without a header', gzipSync(TEXT), {}, 'gzip'],
    [
      'another compression',
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1, 2]),
      { 'content-encoding': 'zstd' },
      'zstd',
    ],
    ['several codings', gzipSync(TEXT), { 'content-encoding': 'br, x-gzip' }, 'br'],
    ['UTF-16 with a mark', utf16(`\ufeff${TEXT}`), {}, 'UTF-16'],
    ['UTF-16 of the other order', bigEndian(utf16(`\ufeff${TEXT}`)), {}, 'UTF-16'],
    ['UTF-16 without a mark', utf16(TEXT), {}, 'UTF-16'],
    ['UTF-16 without a mark, of the other order', bigEndian(utf16(TEXT)), {}, 'UTF-16'],
    [
      'UTF-16 that the type names',
      utf16(TEXT),
      { 'content-type': 'application/json; charset=utf-16le' },
      'UTF-16LE',
    ],
  ])('%s', async (_, body, headers, name) => {
    const { status, answer, requests } = await post('/v1/chat/completions', body, headers);
    expect(status).toBe(415);
    expect(objectOf(answer.error)).toMatchObject({
      code: 'unsupported_encoding',
      type: 'invalid_request_error',
      message: expect.stringContaining(`encoded as ${name},`),
    });
    expect(requests).toEqual([]);
  });

  test.each(['/v1/messages', '/v1/responses', '/v1/embeddings', '/v1/messages/count_tokens'])(
    '%s, too',
    async (path) => {
      const { status, answer } = await post(path, gzipSync(TEXT), { 'content-encoding': 'gzip' });
      expect(status).toBe(415);
      expect(JSON.stringify(answer)).toContain('encoded as gzip');
    },
  );

  test('JSON is read, whatever a header says, and other faults are named as before', async () => {
    const kept = await post('/v1/chat/completions', TEXT, { 'content-encoding': 'identity' });
    expect(kept.status).toBe(200);
    expect((await post('/v1/chat/completions', `\ufeff${TEXT}`)).status).toBe(200);
    expect((await post('/v1/chat/completions', TEXT, { 'content-encoding': 'gzip' })).status).toBe(200);
    const { status, answer } = await post('/v1/chat/completions', '{"model":');
    expect([status, objectOf(answer.error).code]).toEqual([400, 'invalid_json']);
  });
});

describe('Q11 half a surrogate pair', () => {
  const HALF = '\ud83d and \\ud83d, \udc00\ud83d\ude00';
  const WHOLE = '\ufffd and \\ud83d, \ufffd\ud83d\ude00';

  test('in a request that is written anew: U+FFFD, and named', async () => {
    const routed = new RoutedGateway({ m: [answerWith('Hi')] });
    const response = await routed.ask({ model: 'mistral/m', messages: [{ role: 'user', content: HALF }] });
    expect(response.headers.get('x-weir-changed')).toBe('messages');
    expect(routed.requests[0]?.body.messages).toEqual([{ role: 'user', content: WHOLE }]);
  });

  test.each(['/v1/messages', '/v1/responses'])('of a client of %s, in each field', async (path) => {
    const routed = new RoutedGateway({ m: [answerWith('Hi')] });
    const prompt: JsonObject =
      path === '/v1/messages'
        ? { max_tokens: 9, messages: [{ role: 'user', content: HALF }], system: HALF }
        : { input: HALF, instructions: HALF };
    const headers = { 'x-weir-session': 's' };
    const response = await routed.gateway.post(path, 'x', { model: 'mistral/m', ...prompt }, { headers });
    expect(response.headers.get('x-weir-changed')).toBe('messages');
    expect(routed.requests[0]?.body.messages).toEqual([
      { role: 'system', content: WHOLE },
      { role: 'user', content: WHOLE },
    ]);
  });

  test('in passthrough: as it came', async () => {
    const env = { ANTHROPIC_API_KEY: 'key-of-anthropic', ANTHROPIC_BASE_URL: 'https://anthropic' };
    const message = { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn', usage: {} };
    const routed = new RoutedGateway({ 'claude-sonnet-5': [json(message)] }, env);
    const body = {
      model: 'anthropic/claude-sonnet-5',
      max_tokens: 9,
      messages: [{ role: 'user', content: HALF }],
    };
    const response = await routed.gateway.post('/v1/messages', 'x', body);
    expect(response.headers.get('x-weir-changed')).toBeNull();
    expect(routed.requests[0]?.body.messages).toEqual(body.messages);
  });

  test('a request without one is not changed', async () => {
    const routed = new RoutedGateway({ m: [answerWith('Hi')] });
    const content = 'an escape \\ud83d, a pair \ud83d\ude00';
    const response = await routed.ask({ model: 'mistral/m', messages: [{ role: 'user', content }] });
    expect(response.headers.get('x-weir-changed')).toBeNull();
    expect(routed.requests[0]?.body.messages).toEqual([{ role: 'user', content }]);
  });
});

describe('errors in the words of a Messages client', () => {
  const VERSION = { 'anthropic-version': '2023-06-01' };
  const get = async (path: string, headers: Record<string, string> = VERSION) => {
    const routed = new RoutedGateway({});
    const response = await routed.gateway.fetch(path, '', { headers });
    return { status: response.status, answer: decodeObject(await response.text()) ?? {} };
  };

  test.each(['/v1/models/claude-unknown', '/v1/models/x%2Fy', '/models/nothing'])(
    'I1 an unknown model at %s: Anthropic’s form',
    async (path) => {
      const { status, answer } = await get(path);
      expect(status).toBe(404);
      expect(answer).toMatchObject({
        type: 'error',
        error: {
          type: 'not_found_error',
          message: expect.stringContaining('There is no model'),
          details: { error_code: 'model_not_found' },
        },
        request_id: expect.any(String),
      });
    },
  );

  test('I1 an unknown path: Anthropic’s form; without its header, and on a path of another protocol: OpenAI’s', async () => {
    expect((await get('/v1/nothing')).answer).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error' },
    });
    expect((await get('/v1/models/x', {})).answer).toMatchObject({
      error: { code: 'model_not_found', param: 'model' },
    });
    const { answer } = await post('/v1/chat/completions', '{}', VERSION);
    expect(answer).not.toHaveProperty('type');
  });

  test.each(['/v1/messages', '/v1/messages/count_tokens'])('I1 an unknown model at %s', async (path) => {
    const body = JSON.stringify({
      model: 'nobody/m',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    const { status, answer } = await post(path, body, VERSION);
    if (status !== 200) expect(answer).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
  });

  test('Q6 an error about stop_sequences names it', async () => {
    const env = { PROVIDERS: JSON.stringify({ r: { base_url: 'https://r', api: 'responses' } }) };
    const routed = new RoutedGateway({ m: [answerWith('Hi')] }, env);
    const body = {
      model: 'r/m',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
      stop_sequences: ['END'],
    };
    const response = await routed.gateway.post('/v1/messages', 'x', body);
    const answer = decodeObject(await response.text()) ?? {};
    expect(response.status).toBe(400);
    expect(objectOf(answer.error)).toMatchObject({
      message: expect.stringMatching(/does not support stop_sequences: remove it/),
      details: { error_code: 'unsupported_parameter', param: 'stop_sequences' },
    });
  });
});

test.each(['o5', 'o6-mini', 'o9-pro-2027-01-01', 'o4-mini', 'o1'])(
  'R1 %s, an o model of OpenAI, works under its bare name',
  async (model) => {
    const routed = new RoutedGateway({ [model]: [answerWith('Hi')] });
    await routed.ask({ model, messages: [{ role: 'user', content: 'Hi' }] });
    expect(routed.requests.map(({ provider }) => provider)).toEqual(['openai']);
  },
);

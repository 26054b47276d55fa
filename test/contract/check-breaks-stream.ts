/** Streams that each break one of the rules F, U, V and E and no other. */
import * as sample from './check-samples.ts';
import type { JsonObject } from './json.ts';

const { DONE, ERROR, HEARTBEAT, HELLO, OPEN, STOP, USAGE, USAGE_CHUNK, VENDOR } = sample;
const { around, choice, chunk, dataFrame, errorFrame, textChunk } = sample;

function withUsage(usage: JsonObject): string[] {
  return [OPEN, STOP, chunk([], { usage }), DONE];
}

const secret = (message: string): string[] => [errorFrame(`DeepSeek: ${message}`), DONE];

export const streamBreaks: Record<string, sample.Case[]> = {
  F1: [
    ['one LF at the end', [OPEN, STOP, DONE.trimEnd(), '\n']],
    ['three LFs after a frame', around('\n')],
    ['CRLF line ends', around(HELLO.replace('\n\n', '\r\n\n'))],
    ['no space after the colon', around(HELLO.replace('data: ', 'data:'))],
    ['two spaces after the colon', around(HELLO.replace('data: ', 'data:  '))],
    ['a byte order mark', ['\uFEFF', HEARTBEAT, OPEN, STOP, DONE]],
    ['an id field', around(`id: 1\n${HELLO}`)],
    ['an event field on a chunk', around(`event: message\n${HELLO}`)],
    ['an error event field on a chunk', around(`event: error\n${HELLO}`)],
    ['a named vendor event', around(`event: x_a.b\n${VENDOR}`), { vendorEvents: 'pass' }],
    ['white space outside strings', around(HELLO.replace('"choices":[', '"choices": ['))],
    ['a key given twice', around(HELLO.replace('"id"', '"id":"x","id"'))],
    ['a number in another spelling', around(HELLO.replace('1800000000', '1800000000.0'))],
    ['an error that is not compact', [OPEN, ERROR.replace('{"error":', '{"error": '), DONE]],
    ['an id field on an error', [OPEN, `id: 1\n${ERROR}`, STOP, DONE]],
    ['a line that is not JSON', around('data: {"id":\n\n')],
    ['JSON that is not an object', around('data: []\n\n')],
    ['JSON in two data lines', around('data: {\ndata: }\n\n')],
  ],
  F2: [
    ['no [DONE]', [OPEN, STOP]],
    ['no bytes at all', []],
    ['[DONE] twice', [OPEN, STOP, DONE, DONE]],
    ['a heartbeat after [DONE]', [OPEN, STOP, DONE, HEARTBEAT]],
    ['a failed stream without [DONE]', [OPEN, ERROR]],
  ],
  F3: [
    ['an upstream comment', [': OPENROUTER PROCESSING\n\n', OPEN, STOP, DONE]],
    ['a heartbeat without its space', [':heartbeat\n\n', OPEN, STOP, DONE]],
    ['a comment on a data frame', around(`: heartbeat\n${HELLO}`)],
  ],
  U1: [
    [
      'usage beside choices',
      [OPEN, chunk([choice({}, { finish_reason: 'stop' })], { usage: USAGE }), DONE],
      { usageChunk: true },
    ],
    ['a chunk after usage', around(USAGE_CHUNK), { usageChunk: true }],
    [
      'a vendor event after usage',
      [OPEN, STOP, USAGE_CHUNK, VENDOR, DONE],
      { usageChunk: true, vendorEvents: 'pass' },
    ],
  ],
  U2: [
    ['no usage chunk', [OPEN, STOP, DONE], { usageChunk: true }],
    ['usage that was not asked for', [OPEN, STOP, USAGE_CHUNK, DONE]],
    ['usage twice', [OPEN, STOP, USAGE_CHUNK, USAGE_CHUNK, DONE], { usageChunk: true }],
    [
      'no usage chunk in the text shape',
      [textChunk('a', { finish_reason: 'stop' }), DONE],
      { shape: 'text', usageChunk: true },
    ],
  ],
  U3: [
    [
      'usage without details',
      withUsage({ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }),
      { usageChunk: true },
    ],
    ['a null sum', withUsage({ ...USAGE, total_tokens: null }), { usageChunk: true }],
    ['a negative sum', withUsage({ ...USAGE, total_tokens: -1 }), { usageChunk: true }],
    ['a vendor count', withUsage({ ...USAGE, prompt_cache_hit_tokens: 0 }), { usageChunk: true }],
    [
      'details without a key',
      withUsage({ ...USAGE, prompt_tokens_details: { cached_tokens: 0 } }),
      { usageChunk: true },
    ],
    ['null details', withUsage({ ...USAGE, completion_tokens_details: null }), { usageChunk: true }],
    [
      'a fraction of a token',
      withUsage({ ...USAGE, prompt_tokens_details: { cached_tokens: 0.5, audio_tokens: null } }),
      { usageChunk: true },
    ],
  ],
  V2: [
    ['a vendor event that is to be stripped', around(VENDOR)],
    ['a vendor event without a type', around(dataFrame({ name: 'a' }))],
  ],
  E2: [
    ['a chunk after the error', [OPEN, ERROR, HELLO, DONE]],
    ['a heartbeat after the error', [OPEN, ERROR, HEARTBEAT, DONE]],
    ['two errors', [OPEN, ERROR, ERROR, DONE]],
    [
      'an error without param',
      [dataFrame({ error: { message: 'DeepSeek: no', type: 'server_error', code: 'a' } }), DONE],
    ],
    ['an error with a status', [errorFrame('DeepSeek: no', { status_code: 400 }), DONE]],
    ['an error with a key beside it', [ERROR.replace('}}', '},"id":"a"}'), DONE]],
    ['an error of another type', [errorFrame('DeepSeek: no', { type: 'invalid_request_error' }), DONE]],
    ['a code that is a number', [errorFrame('DeepSeek: no', { code: 400 }), DONE]],
    ['a null code', [errorFrame('DeepSeek: no', { code: null }), DONE]],
  ],
  E3: [
    ['an event field where data was asked for', [OPEN, `event: error\n${ERROR}`, DONE]],
    ['no event field where it was asked for', [OPEN, ERROR, DONE], { errorFrames: 'event' }],
  ],
  E4: [
    ['a nameless message', [errorFrame('the stream was cut'), DONE]],
    ['a bearer token', secret('Authorization: Bearer 12ab34cd56ef')],
    ['a secret key', secret('Incorrect API key provided: sk-proj-abcd')],
    ["Weir's own key", secret('the key weir_9f8e7d6c5b4a3210 was refused')],
    ['a masked key', secret('Your api key: ****1234 is invalid')],
    ['a key without a prefix', secret('unknown key aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG')],
    ['a key beside the message', [errorFrame('DeepSeek: no', { param: 'sk-proj-abcd' }), DONE]],
    ['a private address', secret('connect to 10.0.3.17:8080 refused')],
    ['a local address', secret('fetch http://localhost:8787 failed')],
    ['an internal host', secret('getaddrinfo router-2.prod.svc failed')],
    ['credentials in a URL', secret('GET https://user:word@api.deepseek.com failed')],
    ['a web token', secret('rejected eyJhbGciOiJIUzI1NiJ9.eyJzdWIi')],
    ['a source line', secret('thrown in upstream/call.ts:12')],
    ['a stack', secret('TypeError: fetch failed\n    at call (src/upstream/call.ts:12:5)')],
    ['a Python stack', secret('Traceback (most recent call last): KeyError')],
  ],
};

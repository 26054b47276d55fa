/** Streams that each break exactly one of the rules F, U, V and E. */

import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import * as sample from './check-samples.ts';

const { DONE, ERROR, HEARTBEAT, HELLO, OPEN, STOP, STOP_WITH_USAGE, USAGE, USAGE_CHUNK, VENDOR } = sample;
const { around, chunk, dataFrame, deltaChunk, errorFrame, textChunk } = sample;

const atEnd = { usage: 'end' } as const;
const passed = { vendorEvents: 'pass' } as const;

function withUsage(usage: JsonObject): string[] {
  return [OPEN, STOP, chunk([], { usage }), DONE];
}

const SUMS = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

function withDetails(prompt_tokens_details: JsonObject): string[] {
  return withUsage({ ...SUMS, prompt_tokens_details });
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
    ["a vendor event under a name that is not the vendor's", around(`event: message\n${VENDOR}`), passed],
    ['an empty event field on a vendor event', around(`event: \n${VENDOR}`), passed],
    ["a chunk under a vendor event's name", around(`event: x_a.b\n${HELLO}`), passed],
    ["an error under a vendor event's name", [OPEN, `event: x_a.b\n${ERROR}`, DONE], passed],
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
    ['usage beside choices', [OPEN, STOP_WITH_USAGE, DONE], atEnd],
    ['a chunk after usage', around(USAGE_CHUNK), atEnd],
    ['a vendor event after usage', [OPEN, STOP, USAGE_CHUNK, VENDOR, DONE], { ...atEnd, ...passed }],
  ],
  U2: [
    ['no usage chunk', [OPEN, STOP, DONE], atEnd],
    [
      'no usage chunk in the text shape',
      [textChunk('a', { finish_reason: 'stop' }), DONE],
      { shape: 'text', ...atEnd },
    ],
    ['usage twice', [OPEN, STOP, USAGE_CHUNK, USAGE_CHUNK, DONE], atEnd],
    ['usage on the finish, where there is to be none', [OPEN, STOP_WITH_USAGE, DONE], { usage: 'nowhere' }],
    ['a usage chunk, where there is to be none', [OPEN, STOP, USAGE_CHUNK, DONE], { usage: 'nowhere' }],
    ['a usage chunk that was not requested', [OPEN, STOP, USAGE_CHUNK, DONE]],
    [
      'usage before the finish',
      [OPEN, HELLO.replace(']}', `],"usage":${JSON.stringify(USAGE)}}`), STOP, DONE],
    ],
    ['usage on the finish and on a chunk of its own', [OPEN, STOP_WITH_USAGE, USAGE_CHUNK, DONE]],
    [
      'usage on the first of two finishes',
      [
        OPEN,
        deltaChunk({ role: 'assistant' }, { index: 1 }),
        STOP_WITH_USAGE,
        deltaChunk({}, { index: 1, finish_reason: 'stop' }),
        DONE,
      ],
    ],
    ['usage on the finish of a stream that failed', [OPEN, STOP_WITH_USAGE, ERROR, DONE]],
  ],
  U3: [
    [
      'more cached tokens than the prompt has',
      withUsage({
        prompt_tokens: 7,
        completion_tokens: 1,
        total_tokens: 8,
        prompt_tokens_details: { cached_tokens: 161 },
      }),
      atEnd,
    ],
    ['a missing sum', withUsage({ prompt_tokens: 1, completion_tokens: 1 }), atEnd],
    ['a null sum', withUsage({ ...USAGE, total_tokens: null }), atEnd],
    ['a negative sum', withUsage({ ...USAGE, total_tokens: -1 }), atEnd],
    ['a vendor count', withUsage({ ...USAGE, prompt_cache_hit_tokens: 0 }), atEnd],
    ['a vendor count in the details', withDetails({ cached_tokens: 0, image_tokens: 0 }), atEnd],
    ['a null count', withDetails({ cached_tokens: 0, audio_tokens: null }), atEnd],
    ['a fraction of a token', withDetails({ cached_tokens: 0.5 }), atEnd],
    ['null details', withUsage({ ...USAGE, completion_tokens_details: null }), atEnd],
    ['empty details', withDetails({}), atEnd],
    ['sums in another order', withUsage({ completion_tokens: 1, prompt_tokens: 1, total_tokens: 2 }), atEnd],
    ['counts in another order', withDetails({ audio_tokens: 0, cached_tokens: 0 }), atEnd],
    ['details before the sums', withUsage({ prompt_tokens_details: { cached_tokens: 0 }, ...SUMS }), atEnd],
    [
      'a null count on the finish',
      [OPEN, STOP_WITH_USAGE.replace('"audio_tokens":1', '"audio_tokens":null'), DONE],
    ],
  ],
  V2: [
    ['a vendor event that is to be stripped', around(VENDOR)],
    ['a named vendor event that is to be stripped', around(`event: x_a.b\n${dataFrame({ name: 'a' })}`)],
    ['a vendor event that has lost its name', around(dataFrame({ name: 'a' })), passed],
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
    ['an event field where data was requested', [OPEN, `event: error\n${ERROR}`, DONE]],
    ['no event field where it was requested', [OPEN, ERROR, DONE], { errorFrames: 'event' }],
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
    ['a stack', secret('TypeError: fetch failed\n    at call (src/upstream/fetch.ts:12:5)')],
    ['a Python stack', secret('Traceback (most recent call last): KeyError')],
  ],
};

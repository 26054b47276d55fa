/** Streams that each break exactly one of the rules C1, C2, C3, C9 and C10. */

import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import * as sample from './check-samples.ts';

const { DONE, HELLO, OPEN, STOP, STOP_WITH_USAGE } = sample;
const { around, choice, chunk, deltaChunk, textChunk } = sample;

const text = { shape: 'text' } as const;

function withLogprobs(logprobs: JsonObject): string[] {
  return around(deltaChunk({ content: 'a' }, { logprobs }));
}

function withTextLogprobs(logprobs: JsonObject): string[] {
  return [textChunk('a', { logprobs, finish_reason: 'stop' }), DONE];
}

export const chunkBreaks: Record<string, sample.Case[]> = {
  C1: [
    ['an error beside choices', around(chunk([choice({ content: 'a' })], { error: null }))],
    ['a service_tier that is absent again', around(HELLO.replace('"service_tier":"default",', ''))],
    ['a fingerprint that is absent again', around(HELLO.replace('"system_fingerprint":"fp_1",', ''))],
    ['a null service_tier before the first', [OPEN.replace('"default"', 'null'), STOP, DONE]],
    ['a null fingerprint before the first', [OPEN.replace('"fp_1"', 'null'), STOP, DONE]],
    ['a foreign key on a chunk', around(chunk([choice({ content: 'a' })], { x_groq: {} }))],
    [
      'another key order',
      around(
        HELLO.replace(
          '"service_tier":"default","system_fingerprint":"fp_1"',
          '"system_fingerprint":"fp_1","service_tier":"default"',
        ),
      ),
    ],
    ['another object', around(HELLO.replace('chat.completion.chunk', 'chat.completion'))],
    ['a null usage', around(chunk([choice({ content: 'a' })], { usage: null }))],
    ['an empty service_tier', [OPEN, STOP.replace('"default"', '""'), DONE]],
    ['a fingerprint that is null again', around(HELLO.replace('"fp_1"', 'null'))],
    [
      'usage before choices',
      [OPEN, STOP_WITH_USAGE.replace(/("choices":.*),("usage":.*)(}\n\n)/, '$2,$1$3'), DONE],
    ],
  ],
  C2: [
    ['an id that changes', around(HELLO.replace('chatcmpl-0001', 'chatcmpl-0002'))],
    ['a second that changes', around(HELLO.replace('1800000000', '1800000001'))],
    ['a model that changes', around(HELLO.replace('deepseek-chat', 'other'))],
    ['an empty id', [OPEN, STOP, DONE].map((frame) => frame.replace('chatcmpl-0001', ''))],
    [
      'created in milliseconds',
      [OPEN, STOP, DONE].map((frame) => frame.replace('1800000000', '1800000000000')),
    ],
    ['created zero', [OPEN, STOP, DONE].map((frame) => frame.replace('1800000000', '0'))],
    ['a model without its provider', [OPEN, STOP, DONE].map((frame) => frame.replace('deepseek/', ''))],
    ['a provider without a model', [OPEN, STOP, DONE].map((frame) => frame.replace('/deepseek-chat', '/'))],
  ],
  C3: [
    ['a choice without logprobs', around(HELLO.replace('"logprobs":null,', ''))],
    [
      'a choice in another order',
      around(HELLO.replace('"logprobs":null,"finish_reason":null', '"finish_reason":null,"logprobs":null')),
    ],
    ['a foreign key on a choice', around(deltaChunk({ content: 'a' }, { stop_reason: null }))],
    ['two updates of one choice', around(chunk([choice({ content: 'a' }), choice({ content: 'b' })]))],
    ['a choice that is not an object', around(chunk([choice({ content: 'a' }), 1]))],
    [
      'an index that is text',
      [chunk([choice({ role: 'assistant' }, { index: '0', finish_reason: 'stop' })]), DONE],
    ],
    [
      'more choices than requested',
      [OPEN, STOP, DONE].map((frame) => frame.replace('"index":0', '"index":1')),
      { requestedChoices: 1 },
    ],
  ],
  C9: [
    ['logprobs without refusal', withLogprobs({ content: sample.LOGPROBS.content })],
    ['logprobs without an entry', withLogprobs({ content: [], refusal: null })],
    ['a list that is not an array', withLogprobs({ ...sample.LOGPROBS, refusal: 'a' })],
    [
      'an entry without bytes',
      withLogprobs({ content: [{ token: 'a', logprob: -1, top_logprobs: [] }], refusal: null }),
    ],
    [
      'null top_logprobs',
      withLogprobs({
        content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: null }],
        refusal: null,
      }),
    ],
    [
      'bytes that are not bytes',
      withLogprobs({ content: [{ token: 'a', logprob: -1, bytes: [256], top_logprobs: [] }], refusal: null }),
    ],
    [
      'a null logprob',
      withLogprobs({
        content: [{ token: 'a', logprob: null, bytes: null, top_logprobs: [] }],
        refusal: null,
      }),
    ],
    [
      'a top entry with more keys',
      withLogprobs({
        content: [
          {
            token: 'a',
            logprob: -1,
            bytes: null,
            top_logprobs: [{ token: 'a', logprob: -1, bytes: null, rank: 1 }],
          },
        ],
        refusal: null,
      }),
    ],
  ],
  C10: [
    [
      'logprobs without offsets',
      withTextLogprobs({ tokens: ['a'], token_logprobs: [-1], top_logprobs: null }),
      text,
    ],
    ['a logprob that is text', withTextLogprobs({ ...sample.TEXT_LOGPROBS, token_logprobs: ['-1'] }), text],
    ['logprobs with more keys', withTextLogprobs({ ...sample.TEXT_LOGPROBS, token_ids: [] }), text],
    ['a list of top entries', withTextLogprobs({ ...sample.TEXT_LOGPROBS, top_logprobs: [[]] }), text],
    [
      'a top logprob that is text',
      withTextLogprobs({ ...sample.TEXT_LOGPROBS, top_logprobs: [{ a: '-1' }] }),
      text,
    ],
    [
      'a text chunk with service_tier',
      [
        textChunk('a'),
        textChunk('', { finish_reason: 'stop' }).replace(
          '"system_fingerprint"',
          '"service_tier":"default","system_fingerprint"',
        ),
        DONE,
      ],
      text,
    ],
    ['a text choice with a delta', [textChunk('a', { delta: {}, finish_reason: 'stop' }), DONE], text],
    [
      'another object',
      [textChunk('a', { finish_reason: 'stop' }).replace('text_completion', 'text_completion.chunk'), DONE],
      text,
    ],
    ['null text', [textChunk('a', { text: null, finish_reason: 'stop' }), DONE], text],
    [
      'chat logprobs in the text shape',
      [textChunk('a', { logprobs: sample.LOGPROBS, finish_reason: 'stop' }), DONE],
      text,
    ],
    [
      'offsets that are not integers',
      [
        textChunk('a', { logprobs: { ...sample.TEXT_LOGPROBS, text_offset: [0.5] }, finish_reason: 'stop' }),
        DONE,
      ],
      text,
    ],
    [
      'null tokens',
      [textChunk('a', { logprobs: { ...sample.TEXT_LOGPROBS, tokens: null }, finish_reason: 'stop' }), DONE],
      text,
    ],
  ],
};

/** Streams that each break one of the rules C1 to C10 and no other. */
import * as sample from './check-samples.ts';
import type { Json, JsonObject } from './json.ts';

const { CALLS, DONE, HELLO, OPEN, STOP } = sample;
const { around, callFragment, choice, chunk, laterFragment, deltaChunk, textChunk } = sample;

const text = { shape: 'text' } as const;
const finish = (reason: Json) => deltaChunk({}, { finish_reason: reason });

function withCall(...fragments: JsonObject[]): string[] {
  const deltas = fragments.map((fragment) => deltaChunk({ tool_calls: [fragment] }));
  return [OPEN, ...deltas, finish('tool_calls'), DONE];
}

function withLogprobs(logprobs: JsonObject): string[] {
  return around(deltaChunk({ content: 'a' }, { logprobs }));
}

function withTextLogprobs(logprobs: JsonObject): string[] {
  return [textChunk('a', { logprobs, finish_reason: 'stop' }), DONE];
}

export const chunkBreaks: Record<string, sample.Case[]> = {
  C1: [
    ['an error beside choices', around(chunk([choice({ content: 'a' })], { error: null }))],
    ['a chunk without service_tier', around(HELLO.replace('"service_tier":null,', ''))],
    ['a foreign key on a chunk', around(chunk([choice({ content: 'a' })], { x_groq: {} }))],
    [
      'another key order',
      around(
        HELLO.replace(
          '"service_tier":null,"system_fingerprint":"fp_1"',
          '"system_fingerprint":"fp_1","service_tier":null',
        ),
      ),
    ],
    ['another object', around(HELLO.replace('chat.completion.chunk', 'chat.completion'))],
    ['a null usage', around(chunk([choice({ content: 'a' })], { usage: null }))],
    ['an empty service_tier', [OPEN, STOP.replace('"service_tier":null', '"service_tier":""'), DONE]],
    ['a fingerprint that is taken back', around(HELLO.replace('"fp_1"', 'null'))],
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
    ['a choice that is not an object', around(chunk([choice({ content: 'a' }), 1]))],
    [
      'an index that is text',
      [chunk([choice({ role: 'assistant' }, { index: '0', finish_reason: 'stop' })]), DONE],
    ],
    [
      'more choices than asked for',
      [OPEN, STOP, DONE].map((frame) => frame.replace('"index":0', '"index":1')),
      { requestedChoices: 1 },
    ],
  ],
  C4: [
    ['a null delta', [OPEN, STOP.replace('"delta":{}', '"delta":null'), DONE]],
    ['role on a later delta', around(deltaChunk({ role: 'assistant', content: 'a' }))],
    ['no role on a first delta', [HELLO, STOP, DONE]],
    ['another role', [deltaChunk({ role: 'user', content: 'a' }), STOP, DONE]],
    [
      'no role on the second choice',
      [OPEN, STOP, deltaChunk({ content: 'a' }, { index: 1, finish_reason: 'stop' }), DONE],
    ],
    ['null content', around(deltaChunk({ content: null, refusal: 'No' }))],
    ['empty content without role', around(deltaChunk({ content: '' }))],
    ['empty reasoning beside role', [deltaChunk({ role: 'assistant', reasoning_content: '' }), STOP, DONE]],
    [
      'empty tool_calls',
      [OPEN, deltaChunk({ tool_calls: [] }), STOP.replace('"stop"', '"tool_calls"'), DONE],
    ],
    ['another key order', [deltaChunk({ content: 'a', role: 'assistant' }), STOP, DONE]],
    ['a foreign key', around(deltaChunk({ content: 'a', annotations: [] }))],
  ],
  C5: [
    ['an empty delta', around(deltaChunk({}))],
    ['no choices and no usage', around(chunk([]))],
    ['empty text', [textChunk('a'), textChunk(''), textChunk('', { finish_reason: 'stop' }), DONE], text],
  ],
  C6: [
    ['the name reasoning', around(deltaChunk({ reasoning: 'Hm' }))],
    ['reasoning_details', around(deltaChunk({ content: 'a', reasoning_details: [] }))],
    ['content in typed parts', around(deltaChunk({ content: [{ type: 'text', text: 'a' }] }))],
  ],
  C7: [
    [
      'a foreign key on a function',
      withCall({ ...callFragment(0, 'call_1', ''), function: { name: 'a', arguments: '', p: 1 } }),
    ],
    [
      'a type on a later fragment',
      withCall(callFragment(0, 'call_1', ''), { ...laterFragment(0, '{}'), type: 'function' }),
    ],
    [
      'a fragment without index',
      withCall({ id: 'call_1', type: 'function', function: { name: 'a', arguments: '' } }),
    ],
    [
      'a first fragment without id',
      withCall({ index: 0, type: 'function', function: { name: 'a', arguments: '' } }),
    ],
    [
      'an id that is the word null, from Mistral',
      withCall(callFragment(0, 'null', '')).map((frame) => frame.replace('deepseek/', 'mistral/')),
      { provider: 'mistral' },
    ],
    ['an empty id', withCall(callFragment(0, '', ''))],
    ['another type', withCall({ ...callFragment(0, 'call_1', ''), type: 'custom' })],
    ['a call without a name', withCall({ ...callFragment(0, 'call_1', ''), function: { arguments: '' } })],
    [
      'arguments as an object',
      withCall({ ...callFragment(0, 'call_1', ''), function: { name: 'a', arguments: {} } }),
    ],
    [
      'a fragment in another order',
      withCall({ id: 'call_1', index: 0, type: 'function', function: { name: 'a', arguments: '' } }),
    ],
    ['an id on a later fragment', withCall(callFragment(0, 'call_1', ''), callFragment(0, 'call_1', '{}'))],
    [
      'a name on a later fragment',
      withCall(callFragment(0, 'call_1', ''), { index: 0, function: { name: 'a', arguments: '{}' } }),
    ],
    [
      'null arguments on a later fragment',
      withCall(callFragment(0, 'call_1', ''), { index: 0, function: { arguments: null } }),
    ],
    ['an empty later fragment', withCall(callFragment(0, 'call_1', '{}'), laterFragment(0, ''))],
    ['a call that starts like a later fragment', withCall(laterFragment(0, '{}'))],
  ],
  C8: [
    ['an unknown word', [OPEN, finish('eos'), DONE]],
    ['a finish that is not a string', [OPEN, finish(1), DONE]],
    ['two finishes', around(STOP)],
    ['content after a finish', [OPEN, STOP, HELLO, DONE]],
    ['no finish', [OPEN, HELLO, DONE]],
    ['one of two choices unfinished', around(deltaChunk({ role: 'assistant' }, { index: 1 }))],
    ['stop after tool calls', [...CALLS.slice(0, -2), STOP, DONE]],
    ['text without a finish', [textChunk('a'), DONE], text],
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
        textChunk('a').replace('"system_fingerprint"', '"service_tier":null,"system_fingerprint"'),
        textChunk('', { finish_reason: 'stop' }),
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

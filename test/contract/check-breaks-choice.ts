/** Streams that each break exactly one of the rules C4 to C8, C11 and A7. */

import type { Json, JsonObject } from '../../tools/conformance/contract/json.ts';
import * as sample from './check-samples.ts';

const { CALLS, DETAIL, DONE, HELLO, OPEN, SIGNATURE, STOP } = sample;
const { around, callFragment, chunk, laterFragment, deltaChunk, textChunk } = sample;

const text = { shape: 'text' } as const;
const stripped = { reasoning: 'strip' } as const;
const finish = (reason: Json) => deltaChunk({}, { finish_reason: reason });

function withCall(...fragments: JsonObject[]): string[] {
  const deltas = fragments.map((fragment) => deltaChunk({ tool_calls: [fragment] }));
  return [OPEN, ...deltas, finish('tool_calls'), DONE];
}

const CUSTOM = { index: 0, id: 'call_1', type: 'custom', custom: { name: 'a', input: '' } };

export const choiceBreaks: Record<string, sample.Case[]> = {
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
    ['no reasoning details', around(deltaChunk({ content: 'a', reasoning_details: [] }))],
    [
      'reasoning details that are not last',
      around(deltaChunk({ reasoning_details: [DETAIL], refusal: 'a' })),
    ],
  ],
  C11: [
    ['annotations before the finish', around(deltaChunk({ content: 'a', annotations: [{ type: 'a' }] }))],
  ],
  C5: [
    ['an empty delta', around(deltaChunk({}))],
    ['no choices and no usage', around(chunk([]))],
    ['empty text', [textChunk('a'), textChunk(''), textChunk('', { finish_reason: 'stop' }), DONE], text],
  ],
  C6: [
    ['the name reasoning', around(deltaChunk({ reasoning: 'Hm' }))],
    ['the name thinking', around(deltaChunk({ thinking: 'Hm' }))],
    ['reasoning that is to be stripped', around(deltaChunk({ reasoning_content: 'Hm' })), stripped],
    [
      'a detail with its text',
      around(deltaChunk({ reasoning_details: [{ ...SIGNATURE, text: 'Hm' }] })),
      stripped,
    ],
    [
      'a detail with its summary',
      around(deltaChunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'a', summary: 'Hm' }] })),
      stripped,
    ],
    [
      'a detail with nothing to send back',
      around(deltaChunk({ reasoning_details: [{ index: 0 }] })),
      stripped,
    ],
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
    ['a custom tool’s call with its name alone', withCall({ ...CUSTOM, custom: { name: 'a' } })],
    ['a custom tool’s call without a name', withCall({ ...CUSTOM, custom: { name: '', input: 'x' } })],
    ['a custom tool’s call as a function', withCall({ ...CUSTOM, function: { name: 'a', arguments: '' } })],
    ['an empty later input', withCall(CUSTOM, { index: 0, custom: { input: '' } })],
    ['a later input with a name', withCall(CUSTOM, { index: 0, custom: { name: 'a', input: 'x' } })],
    ['later arguments of a custom tool’s call', withCall(CUSTOM, laterFragment(0, '{}'))],
    ['a first call whose index is 1', withCall(callFragment(1, 'call_1', ''))],
    ['a gap between indexes', withCall(callFragment(0, 'call_1', '{}'), callFragment(2, 'call_2', '{}'))],
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
    ['a made id of another form', withCall(callFragment(0, 'call_0001', '')), { upstreamIds: ['call_1'] }],
    ['a made id that is too long', withCall(callFragment(0, 'aB3dE5gH7j', '')), { upstreamIds: [] }],
    [
      'extra_content that is not last on a first fragment',
      withCall({
        index: 0,
        extra_content: {},
        id: 'call_1',
        type: 'function',
        function: { name: 'a', arguments: '' },
      }),
    ],
    [
      'extra_content that is not last on a later fragment',
      withCall(callFragment(0, 'call_1', ''), { index: 0, extra_content: {}, function: { arguments: '{}' } }),
    ],
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
  A7: [
    ['reasoning details that are not objects', around(deltaChunk({ reasoning_details: ['Hm'] }))],
    ['extra_content that is text', withCall({ ...callFragment(0, 'call_1', ''), extra_content: 'a' })],
    ['null extra_content', withCall({ ...callFragment(0, 'call_1', ''), extra_content: null })],
    [
      'extra_content that is a list, on a later fragment',
      withCall(callFragment(0, 'call_1', ''), { ...laterFragment(0, '{}'), extra_content: [] }),
    ],
  ],
};

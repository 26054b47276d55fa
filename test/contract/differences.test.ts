/** Tests the comparison of two readings: differences are reported, allowed ones are not. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import {
  CALLS,
  choice,
  chunk,
  DETAIL,
  DONE,
  deltaChunk,
  HELLO,
  OPEN,
  SIGNATURE,
  STOP,
  textChunk,
  USAGE_CHUNK,
} from './check-samples.ts';
import type { Comparison } from './differences.ts';
import { type Content, differences, readClient } from './reference-reader.ts';
import { calling, deltaEvent, done, upstream } from './reference-samples.ts';

const SUMS = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const STOP_WITH_SUMS = chunk([choice({}, { finish_reason: 'stop' })], { usage: SUMS });

describe('differences', () => {
  const call = {
    index: 0,
    id: 'call_1',
    type: 'function',
    function: { name: 'get_weather', arguments: '{"city":"Gda\\u0144sk"}' },
  };
  const other = { ...call, index: 1, id: 'call_2', function: { name: 'get_weather', arguments: '{}' } };
  const calls = readClient(CALLS.join(''));
  const hello = readClient([OPEN, HELLO, STOP, USAGE_CHUNK, DONE].join(''));
  const detailed = readClient(
    [OPEN, HELLO, deltaChunk({ reasoning_details: [DETAIL] }), STOP, DONE].join(''),
  );

  test('the same content in another form: none', () => {
    expect(
      differences(upstream(calling(call, other), deltaEvent({}, { finish_reason: 'stop' })), calls),
    ).toEqual([]);
    const made = readClient(CALLS.join('').replace('"call_2"', '"aB3dE5gH7"'));
    expect(differences(upstream(calling(call, { ...other, id: 'null' }), done), made)).toEqual([]);
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 3,
      prompt_cache_hit_tokens: 0,
      prompt_token_details: { cache_write_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(differences(upstream({ ...deltaEvent({ content: 'Hello' }), usage }, done), hello)).toEqual([]);
  });

  const half = deltaEvent({ content: 'Hel' }, { finish_reason: 'stop' });
  const whole = deltaEvent({ content: 'Hello' }, { finish_reason: 'stop' });
  const count = (usage: JsonObject) => ({
    choices: [],
    usage: {
      completion_tokens_details: { reasoning_tokens: 2 },
      prompt_cache_hit_tokens: 0,
      cache_creation_input_tokens: 4,
      ...usage,
    },
  });
  test.each<[name: string, values: (JsonObject | string)[], client: Content, found: RegExp]>([
    ['text', [half, count({})], hello, /^choice 0 text: /],
    ['reasoning', [deltaEvent({ reasoning: 'Hm' }), whole, count({})], hello, /^choice 0 reasoning: /],
    ['refusal', [deltaEvent({ refusal: 'No' }), whole, count({})], hello, /^choice 0 refusal: /],
    [
      'logprobs',
      [deltaEvent({}, { logprobs: { content: [{}] } }), whole, count({})],
      hello,
      /^choice 0 logprob tokens: /,
    ],
    [
      'finish',
      [deltaEvent({ content: 'Hello' }, { finish_reason: 'max_tokens' }), count({})],
      hello,
      /^choice 0 finish: /,
    ],
    [
      'a choice more',
      [whole, { choices: [{ index: 1, delta: { content: 'a' } }] }, count({}), done],
      hello,
      /^choice 1: the client/,
    ],
    ['a choice less', [count({}), done], hello, /^choice 0: the upstream/],
    [
      'an error',
      [deltaEvent({ content: 'Hello' }), count({}), { error: 'm' }],
      readClient([OPEN, HELLO, DONE].join('')),
      /^error: /,
    ],
    ['prompt tokens', [whole, count({ prompt_tokens: 11 })], hello, /^usage prompt: /],
    ['total tokens', [whole, count({ total_tokens: 16 })], hello, /^usage total: /],
    [
      'cached tokens',
      [whole, count({ prompt_cache_hit_tokens: null })],
      hello,
      /^usage cached: upstream null, client 0/,
    ],
    [
      'tokens written to a cache',
      [whole, count({ cache_creation_input_tokens: 3 })],
      hello,
      /^usage cache write: upstream 3, client 4/,
    ],
    [
      'a reasoning detail',
      [deltaEvent({ reasoning_details: [DETAIL, SIGNATURE] }), whole],
      detailed,
      /^choice 0 reasoning details: /,
    ],
    [
      "the key of a reasoning detail's text",
      [deltaEvent({ reasoning_details: [{ ...DETAIL, text: 'hm' }] }), whole],
      detailed,
      /^choice 0 reasoning details: /,
    ],
    ['one tool call', [calling(call), done], calls, /^choice 0 tool calls: /],
    [
      'extra_content',
      [calling(call, { ...other, extra_content: { google: {} } }), done],
      calls,
      /^choice 0 tool call 1: /,
    ],
    [
      'a made id of another form',
      [calling(call, { ...other, id: '' }), done],
      calls,
      /^choice 0 tool call 1: /,
    ],
    [
      'arguments',
      [calling(call, { ...other, function: { name: 'get_weather', arguments: '{ }' } }), done],
      calls,
      /^choice 0 tool call 1: /,
    ],
    ['an id', [calling(call, { ...other, id: 'call_3' }), done], calls, /^choice 0 tool call 1: /],
  ])('%s that differ: only that difference', (_name, values, client, found) => {
    expect(differences(upstream(...values), client)).toEqual([expect.stringMatching(found)]);
  });

  const nothing = readClient(DONE);
  test.each<[name: string, choice: JsonObject, comparison: Comparison, lost: boolean]>([
    ['an empty delta', deltaEvent({ role: 'assistant', content: '' }), {}, false],
    ['text', deltaEvent({ content: 'a' }), {}, true],
    ['a finish', deltaEvent({}, { finish_reason: 'stop' }), {}, true],
    ['logprobs', deltaEvent({}, { logprobs: { content: [{}] } }), {}, true],
    ['refusal', deltaEvent({ refusal: 'a' }), {}, true],
    ['refusal in the text shape', deltaEvent({ refusal: 'a' }), { shape: 'text' }, false],
    ['a tool call', calling(call), {}, true],
    ['reasoning', deltaEvent({ reasoning: 'a' }), {}, true],
    ['a reasoning detail', deltaEvent({ reasoning_details: [DETAIL] }), {}, true],
    [
      'a text detail that is stripped',
      deltaEvent({ reasoning_details: [DETAIL] }),
      { reasoning: 'strip' },
      false,
    ],
    ['a signature under strip', deltaEvent({ reasoning_details: [SIGNATURE] }), { reasoning: 'strip' }, true],
    ['reasoning that is stripped', deltaEvent({ reasoning: 'a' }), { reasoning: 'strip' }, false],
  ])(
    'a choice with %s alone, missing at the client: a difference where expected',
    (_name, choice, comparison, lost) => {
      const found = differences(upstream(choice, done), nothing, comparison);
      expect(found).toEqual(lost ? ['choice 0: the client has none'] : []);
    },
  );

  test('reasoning details stripped: signatures without a text are expected, and no others', () => {
    const signed = { ...SIGNATURE, text: 'Hm', index: 7 };
    const sent = upstream(deltaEvent({ reasoning_details: [DETAIL, SIGNATURE, signed] }), whole);
    const kept = readClient(
      [OPEN, HELLO, deltaChunk({ reasoning_details: [SIGNATURE] }), STOP, DONE].join(''),
    );
    expect(differences(sent, kept, { reasoning: 'strip' })).toEqual([]);
    expect(differences(sent, detailed, { reasoning: 'strip' })).toHaveLength(1);
    expect(differences(sent, kept)).toHaveLength(1);
  });

  test.each<[name: string, values: (JsonObject | string)[], client: string[], isDifferent: boolean]>([
    ['by the finish, and sent', [{ ...whole, usage: SUMS }, done], [STOP_WITH_SUMS], false],
    ['by the finish, and not sent', [{ ...whole, usage: SUMS }, done], [STOP], true],
    ['before the finish', [{ choices: [], usage: SUMS }, whole], [STOP_WITH_SUMS], false],
    ['after the finish, and not sent', [whole, { choices: [], usage: SUMS }, done], [STOP], false],
    ['after the finish, and sent', [whole, { choices: [], usage: SUMS }, done], [STOP_WITH_SUMS], true],
    [
      'by [DONE] without a finish',
      [deltaEvent({ content: 'Hello' }), { usage: SUMS }, done],
      [STOP_WITH_SUMS],
      false,
    ],
    ['in part, and not sent', [{ ...whole, usage: { prompt_tokens: 1 } }, done], [STOP], false],
    [
      'as a sum and a part',
      [{ ...whole, usage: { total_tokens: 3, prompt_tokens: 1 } }, done],
      [STOP_WITH_SUMS],
      false,
    ],
    ['with another count', [{ ...whole, usage: { ...SUMS, total_tokens: 4 } }, done], [STOP_WITH_SUMS], true],
  ])('U2 usage reported %s: a difference where expected', (_name, values, client, isDifferent) => {
    const content = readClient([OPEN, HELLO, ...client, DONE].join(''));
    expect(differences(upstream(...values), content, { usage: 'finish' })).toHaveLength(isDifferent ? 1 : 0);
  });

  test('a missing total: the sum is expected, and estimates are not compared', () => {
    expect(
      differences(upstream(whole, count({ prompt_tokens: 12, completion_tokens: 4 })), hello),
    ).toHaveLength(2);
    expect(differences(upstream(whole, count({ prompt_tokens: 12 })), hello)).toEqual([]);
  });

  test('reasoning stripped, tool calls in the text shape: no difference, if the comparison allows it', () => {
    const thought = upstream(deltaEvent({ reasoning: 'Hm' }), whole);
    const silent = readClient([OPEN, HELLO, STOP, DONE].join(''));
    expect(differences(thought, silent, { reasoning: 'strip' })).toEqual([]);
    const text = readClient([textChunk('Hello', { finish_reason: 'stop' }), DONE].join(''));
    expect(differences(upstream(calling(call), whole), text, { shape: 'text' })).toEqual([]);
    expect(differences(upstream(calling(call), whole), text)).toHaveLength(2);
  });
});

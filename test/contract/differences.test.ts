/** Tests the comparison of two readings: differences are reported, allowed ones are not. */
import { describe, expect, test } from 'vitest';
import { CALLS, DONE, HELLO, OPEN, STOP, textChunk, USAGE_CHUNK } from './check-samples.ts';
import type { Comparison } from './differences.ts';
import type { JsonObject } from './json.ts';
import { differences, type Reading, readClient } from './plain-reading.ts';
import { calling, deltaEvent, done, upstream } from './reading-samples.ts';

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

  test('the same content in another form: none', () => {
    expect(
      differences(upstream(calling(call, other), deltaEvent({}, { finish_reason: 'stop' })), calls),
    ).toEqual([]);
    expect(differences(upstream(calling(call, { ...other, id: 'null' }), done), calls)).toEqual([]);
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 3,
      prompt_cache_hit_tokens: 0,
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(differences(upstream({ ...deltaEvent({ content: 'Hello' }), usage }, done), hello)).toEqual([]);
  });

  const half = deltaEvent({ content: 'Hel' }, { finish_reason: 'stop' });
  const whole = deltaEvent({ content: 'Hello' }, { finish_reason: 'stop' });
  const count = (usage: JsonObject) => ({
    choices: [],
    usage: { completion_tokens_details: { reasoning_tokens: 2 }, prompt_cache_hit_tokens: 0, ...usage },
  });
  test.each<[name: string, values: (JsonObject | string)[], client: Reading, found: RegExp]>([
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
    ['one tool call', [calling(call), done], calls, /^choice 0 tool calls: /],
    [
      'arguments',
      [calling(call, { ...other, function: { name: 'get_weather', arguments: '{ }' } }), done],
      calls,
      /^choice 0 tool call 1: /,
    ],
    ['an id', [calling(call, { ...other, id: 'call_3' }), done], calls, /^choice 0 tool call 1: /],
  ])('%s that differ: that difference alone', (_name, values, client, found) => {
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
    ['reasoning that is stripped', deltaEvent({ reasoning: 'a' }), { reasoning: 'strip' }, false],
  ])(
    'a choice with %s alone, missing at the client: a difference where expected',
    (_name, choice, comparison, lost) => {
      const found = differences(upstream(choice, done), nothing, comparison);
      expect(found).toEqual(lost ? ['choice 0: the client has none'] : []);
    },
  );

  test('a missing total: the sum is expected, and no estimate is compared', () => {
    expect(
      differences(upstream(whole, count({ prompt_tokens: 12, completion_tokens: 4 })), hello),
    ).toHaveLength(2);
    expect(differences(upstream(whole, count({ prompt_tokens: 12 })), hello)).toEqual([]);
  });

  test('reasoning stripped, tool calls in the text shape: none, where the comparison allows it', () => {
    const thought = upstream(deltaEvent({ reasoning: 'Hm' }), whole);
    const silent = readClient([OPEN, HELLO, STOP, DONE].join(''));
    expect(differences(thought, silent, { reasoning: 'strip' })).toEqual([]);
    const text = readClient([textChunk('Hello', { finish_reason: 'stop' }), DONE].join(''));
    expect(differences(upstream(calling(call), whole), text, { shape: 'text' })).toEqual([]);
    expect(differences(upstream(calling(call), whole), text)).toHaveLength(2);
  });
});

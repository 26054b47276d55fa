/** The comparison of two readings is judged here: what differs is told, and what may differ is not. */
import { describe, expect, test } from 'vitest';
import { CALLS, DONE, HELLO, OPEN, STOP, textChunk, USAGE_CHUNK } from './check-samples.ts';
import type { Comparison } from './differences.ts';
import type { JsonObject } from './json.ts';
import { differences, type Reading, readClient } from './plain-reading.ts';
import { calling, done, said, upstream } from './reading-samples.ts';

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

  test('the same content in other words: none', () => {
    expect(differences(upstream(calling(call, other), said({}, { finish_reason: 'stop' })), calls)).toEqual(
      [],
    );
    expect(differences(upstream(calling(call, { ...other, id: 'null' }), done), calls)).toEqual([]);
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 3,
      prompt_cache_hit_tokens: 0,
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(differences(upstream({ ...said({ content: 'Hello' }), usage }, done), hello)).toEqual([]);
  });

  const half = said({ content: 'Hel' }, { finish_reason: 'stop' });
  const whole = said({ content: 'Hello' }, { finish_reason: 'stop' });
  const count = (usage: JsonObject) => ({
    choices: [],
    usage: { completion_tokens_details: { reasoning_tokens: 2 }, prompt_cache_hit_tokens: 0, ...usage },
  });
  test.each<[name: string, values: (JsonObject | string)[], client: Reading, found: RegExp]>([
    ['text', [half, count({})], hello, /^choice 0 text: /],
    ['reasoning', [said({ reasoning: 'Hm' }), whole, count({})], hello, /^choice 0 reasoning: /],
    ['refusal', [said({ refusal: 'No' }), whole, count({})], hello, /^choice 0 refusal: /],
    [
      'logprobs',
      [said({}, { logprobs: { content: [{}] } }), whole, count({})],
      hello,
      /^choice 0 logprob tokens: /,
    ],
    [
      'finish',
      [said({ content: 'Hello' }, { finish_reason: 'max_tokens' }), count({})],
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
      [said({ content: 'Hello' }), count({}), { error: 'm' }],
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
    ['an empty delta', said({ role: 'assistant', content: '' }), {}, false],
    ['text', said({ content: 'a' }), {}, true],
    ['a finish', said({}, { finish_reason: 'stop' }), {}, true],
    ['logprobs', said({}, { logprobs: { content: [{}] } }), {}, true],
    ['refusal', said({ refusal: 'a' }), {}, true],
    ['refusal in the text shape', said({ refusal: 'a' }), { shape: 'text' }, false],
    ['a tool call', calling(call), {}, true],
    ['reasoning', said({ reasoning: 'a' }), {}, true],
    ['reasoning that is stripped', said({ reasoning: 'a' }), { reasoning: 'strip' }, false],
  ])(
    'a choice with %s alone, not at the client: a difference where it should be',
    (_name, choice, comparison, lost) => {
      const found = differences(upstream(choice, done), nothing, comparison);
      expect(found).toEqual(lost ? ['choice 0: the client has none'] : []);
    },
  );

  test('a total that was not told: the sum is expected, and nothing of an estimate', () => {
    expect(
      differences(upstream(whole, count({ prompt_tokens: 12, completion_tokens: 4 })), hello),
    ).toHaveLength(2);
    expect(differences(upstream(whole, count({ prompt_tokens: 12 })), hello)).toEqual([]);
  });

  test('reasoning stripped, tool calls in the text shape: none, where the comparison says so', () => {
    const thought = upstream(said({ reasoning: 'Hm' }), whole);
    const silent = readClient([OPEN, HELLO, STOP, DONE].join(''));
    expect(differences(thought, silent, { reasoning: 'strip' })).toEqual([]);
    const text = readClient([textChunk('Hello', { finish_reason: 'stop' }), DONE].join(''));
    expect(differences(upstream(calling(call), whole), text, { shape: 'text' })).toEqual([]);
    expect(differences(upstream(calling(call), whole), text)).toHaveLength(2);
  });
});

/** Tests the simple reader of a client's stream, and of usage in all places. */
import { describe, expect, test } from 'vitest';
import { emptyChoice } from '../../tools/conformance/contract/content.ts';
import type { JsonObject } from '../../tools/conformance/contract/json.ts';
import {
  CALLS,
  callFragment,
  DETAIL,
  DONE,
  deltaChunk,
  ERROR,
  HEARTBEAT,
  HELLO,
  OPEN,
  SIGNATURE,
  TEXT_USAGE_CHUNK,
  textChunk,
  USAGE_CHUNK,
  VENDOR,
} from './check-samples.ts';
import { readClient } from './reference-reader.ts';
import { deltaEvent, done, upstream } from './reference-samples.ts';

const STOPPING = deltaEvent({}, { finish_reason: 'stop' });
const SECOND = { choices: [{ index: 1, delta: {}, finish_reason: 'stop' }] };

describe('readUpstream, usage', () => {
  test('usage in several places: the highest value of each count', () => {
    const content = upstream(
      {
        choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 7 } }],
        usage: { completion_tokens: 5, total_tokens: 9 },
      },
      {
        choices: [],
        x_groq: { usage: { completion_tokens: 6, completion_tokens_details: { reasoning_tokens: 2 } } },
      },
      {
        usage: {
          completion_tokens: 0,
          prompt_tokens: null,
          prompt_cache_hit_tokens: 3,
          num_cached_tokens: 4,
          prompt_tokens_details: null,
          prompt_token_details: { cache_write_tokens: 5 },
        },
      },
      done,
    );
    expect(content.usage).toEqual({
      prompt: 7,
      completion: 6,
      total: 9,
      cached: 4,
      cacheWrite: 5,
      reasoning: 2,
    });
  });

  test.each<[name: string, events: (JsonObject | string)[], total: number | null]>([
    ['on the finish', [{ ...STOPPING, usage: { total_tokens: 1 } }], 1],
    ['before it', [{ usage: { total_tokens: 1 } }, STOPPING], 1],
    ['after it', [STOPPING, { usage: { total_tokens: 1 } }], null],
    [
      'on the last of two',
      [
        { ...STOPPING, usage: { total_tokens: 1 } },
        { ...SECOND, usage: { total_tokens: 2 } },
      ],
      2,
    ],
    ['after the first of two', [STOPPING, { usage: { total_tokens: 1 } }, SECOND], 1],
    ['before a [DONE] without a finish', [deltaEvent({ content: 'a' }), { usage: { total_tokens: 1 } }], 1],
  ])('usage %s: what was reported by the last finish is noted', (_name, events, total) => {
    expect(upstream(...events, done).usageByFinish?.total ?? null).toBe(total);
  });

  test('no count reported: usage is null', () => {
    expect(upstream({ choices: [], usage: {} }, { choices: [], usage: null }, done).usage).toBeNull();
  });
});

describe('readClient', () => {
  test('a canonical chat stream: its content, calls and usage', () => {
    const content = readClient([HEARTBEAT, VENDOR, ...CALLS.slice(0, -1), USAGE_CHUNK, DONE].join(''));
    expect(content).toMatchObject({ error: null, done: true });
    expect(content.usage).toEqual({
      prompt: 12,
      completion: 3,
      total: 15,
      cached: 0,
      cacheWrite: 4,
      reasoning: 2,
    });
    expect(content.choices.get(0)).toEqual({
      ...emptyChoice(),
      finish: 'tool_calls',
      toolCalls: [
        { id: 'call_1', name: 'get_weather', arguments: '{"city":"Gda\\u0144sk"}', extra: null },
        { id: 'call_2', name: 'get_weather', arguments: '{}', extra: null },
      ],
    });
  });

  test('a text stream and a failed one: text, and the error', () => {
    const text = readClient(
      [textChunk('a'), textChunk('b', { finish_reason: 'stop' }), TEXT_USAGE_CHUNK, DONE].join(''),
    );
    expect(text.choices.get(0)).toMatchObject({ text: 'ab', finish: 'stop' });
    expect(readClient([OPEN, HELLO, ERROR, DONE].join('')).error).toMatch(/^DeepSeek/);
    expect(readClient(OPEN).done).toBe(false);
  });

  test('A7 reasoning details and extra_content: as they were sent', () => {
    const extra_content = { google: { thought_signature: 'a' } };
    const { details, toolCalls } =
      readClient(
        [
          OPEN,
          deltaChunk({ reasoning_details: [DETAIL] }),
          deltaChunk({ tool_calls: [{ ...callFragment(0, 'call_1', '{}'), extra_content }] }),
          deltaChunk({ reasoning_details: [SIGNATURE] }),
          DONE,
        ].join(''),
      ).choices.get(0) ?? emptyChoice();
    expect(details).toEqual([DETAIL, SIGNATURE]);
    expect(toolCalls.map(({ extra }) => extra)).toEqual([extra_content]);
  });

  test('a passed vendor event that reports an error: the stream has none', () => {
    expect(readClient('data: {"type":"x_mockup.error","error":"m"}\n\n').error).toBeNull();
  });

  test('what was not repaired: it is missing', () => {
    const content = readClient('data: {"choices":[{"index":0,"delta":{"reasoning":"a","content":[]}}]}\n\n');
    expect(content.choices.get(0)).toEqual(emptyChoice());
  });
});

/** Tests the reader of an upstream's Responses events: texts, calls, usage, costs and ends. */
import { describe, expect, test } from 'vitest';
import { finishMeaning } from '../../../src/canonical/finish-reason.ts';
import { readUsage } from '../../../src/protocols/openai-chat/upstream-reader.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { deepseek } from '../../../src/providers/deepseek.ts';
import { xai } from '../../../src/providers/xai.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import type { ProtocolQuirks } from '../../../src/stream/types.ts';
import { eventsIn } from '../../../tools/conformance/contract/check-responses.ts';
import { objectOf } from '../../../tools/conformance/contract/json.ts';
import { readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { readResponse } from './reading.ts';

const recordings = readRecordings().filter(
  ({ protocol, kind }) => protocol === 'responses' && kind === 'sse',
);
const named = recordings.map(({ name, text }) => [name, text.replaceAll('\r\n', '\n')] as const);

describe.skipIf(recordingsNote !== '')(`openaiResponses, providers' own streams${recordingsNote}`, () => {
  test.each(named)('N2 %s: the same texts, calls, usage and end, streamed and not', (_, text) => {
    const reader = openaiResponses.open({}, 'openai');
    const events = eventsIn(text);
    const parts = events.flatMap((event) => reader.event(event, '') ?? []);
    const response = objectOf(events.at(-1)?.response);
    const read = readResponse(response).choices.get(0);
    const json = reader.response(response);
    for (const choices of [parts.flatMap((part) => part.choices), json.choices]) {
      const calls = choices.flatMap(({ toolCalls }) => toolCalls);
      expect(choices.map(({ content }) => content).join('')).toBe(read?.text);
      expect(choices.map(({ refusal }) => refusal).join('')).toBe(read?.refusal);
      expect(calls.flatMap(({ name }) => name ?? [])).toEqual(read?.toolCalls.map(({ name }) => name));
      expect(calls.map((call) => call.arguments).join('')).toBe(
        read?.toolCalls.map((call) => call.arguments).join(''),
      );
      expect(choices.filter(({ finishWord }) => finishWord !== null)).toHaveLength(1);
    }
    const usage = objectOf(response.usage);
    const last = parts.at(-1);
    expect(last).toMatchObject({ ends: true, error: null });
    for (const part of [last, json]) {
      expect(part?.usage).toMatchObject({ prompt: usage.input_tokens, completion: usage.output_tokens });
    }
    expect(parts.slice(0, -1).filter((part) => part.ends === true || part.usage !== null)).toEqual([]);
  });
});

test.each([
  ['Responses', 'input_tokens', 'input_tokens_details'],
  ['chat', 'prompt_tokens', 'prompt_tokens_details'],
])('P4 usage of %s: cache writes for 12 hours are also part of all cache writes', (_, count, details) => {
  const written = {
    cache_write_tokens: 70,
    cache_write_tokens_details: { ttl_30m_tokens: 20, ttl_12h_tokens: 50 },
  };
  const report = readUsage({ [count]: 100, [details]: { cached_tokens: 10, ...written } });
  expect(report).toMatchObject({ prompt: 100, cached: 10, cacheWrite: 70, cacheWriteLong: 50 });
});

describe('P1 searches of the provider', () => {
  const call = (action: JsonObject, status = 'completed') => ({ type: 'web_search_call', status, action });
  const output = [
    call({ type: 'search', queries: ['a', 'b'] }),
    call({ type: 'open_page', url: 'https://a.example' }),
    call({ type: 'find_in_page', url: 'https://a.example' }),
    call({ type: 'search', query: 'c' }, 'failed'),
    call({ type: 'search', query: 'd' }),
  ];
  const usage = { input_tokens: 1, output_tokens: 1 };
  const reported = { tool_usage: { web_search: { num_requests: 7 } } };

  function searchesOf(quirks: ProtocolQuirks, more: JsonObject): (number | undefined)[] {
    const response: JsonObject = { object: 'response', status: 'completed', usage, output, ...more };
    const reader = openaiResponses.open(quirks, 'p');
    const events = output.map((item, output_index) => ({
      type: 'response.output_item.done',
      item,
      output_index,
    }));
    for (const event of events) reader.event(event, event.type);
    const last = reader.event({ type: 'response.completed', response }, 'response.completed');
    return [last?.usage?.searches, openaiResponses.open(quirks, 'p').response(response).usage?.searches];
  }

  test('have the number that tool_usage reports', () => {
    expect(searchesOf({}, reported)).toEqual([7, 7]);
    expect(searchesOf({}, { tool_usage: { web_search: { num_requests: 0 } } })).toEqual([0, 0]);
  });

  test('without a reported number are the calls that searched and did not fail', () => {
    expect(searchesOf({}, {})).toEqual([2, 2]);
  });

  test('at DeepSeek are each query and each opened page', () => {
    expect(searchesOf(deepseek.quirks ?? {}, {})).toEqual([4, 4]);
  });
});

test('P3 the cost that xAI reports is read from the last event', () => {
  const response = {
    object: 'response',
    status: 'completed',
    usage: { input_tokens: 1, cost_in_usd_ticks: 5_143_500 },
  };
  const reader = openaiResponses.open(xai.quirks ?? {}, 'openai');
  const part = reader.event({ type: 'response.completed', response }, 'response.completed');
  expect(part?.usage?.cost).toBe(514_350);
});

test.each([
  [{ type: 'error', error: { code: 'insufficient_quota', message: 'm' } }, 'insufficient_quota'],
  [{ error: { code: 'overloaded', message: 'm' } }, 'overloaded'],
  [
    {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'm' } },
    },
    'rate_limit_exceeded',
  ],
])('E2 %j is an error', (event, code) => {
  expect(openaiResponses.open({}, 'openai').event(event, '')?.error).toMatchObject({ code, message: 'm' });
});

test('N2 an unknown event is skipped', () => {
  const reader = openaiResponses.open({}, 'openai');
  expect(reader.event({ type: 'response.audio.delta', delta: 'AA' }, '')).toBeNull();
});

/** The calls in a stream's events, with joined arguments. */
function callsIn(events: readonly JsonObject[]): { id: string; name: string; arguments: string }[] {
  const reader = openaiResponses.open({}, 'openai');
  const calls: { id: string; name: string; arguments: string }[] = [];
  const parts = events.flatMap((event) => reader.event(event, '') ?? []);
  for (const { index = -1, id, name, arguments: json } of parts.flatMap(({ choices }) =>
    choices.flatMap(({ toolCalls }) => toolCalls),
  )) {
    const call = calls[index] ?? { id: id ?? '', name: name ?? '', arguments: '' };
    calls[index] = { ...call, arguments: call.arguments + json };
  }
  return calls;
}

describe('A3 calls of the client’s tools', () => {
  const item = (type: string, more: object = {}) => ({ type, call_id: 'c1', name: 'patch', ...more });
  const added = (at: number, of: object) => ({
    type: 'response.output_item.added',
    output_index: at,
    item: of,
  });
  const done = (at: number, of: object) => ({
    type: 'response.output_item.done',
    output_index: at,
    item: of,
  });
  const piece = (kind: string, at: number, delta: string) => ({
    type: `response.${kind}.delta`,
    output_index: at,
    delta,
  });

  test('a custom tool’s input is its text', () => {
    const input = 'a "b"\n\ud83c\udf0a';
    const custom = item('custom_tool_call', { input: '' });
    const pieces = ['a "b', '"\n\ud83c', '\udf0a'].map((text) => piece('custom_tool_call_input', 3, text));
    const events = [added(3, custom), ...pieces, done(3, { ...custom, input })];
    const [call] = callsIn(events);
    expect(call).toEqual({ id: 'c1', name: 'patch', arguments: input });
    expect(callsIn([added(3, custom), done(3, { ...custom, input })])).toEqual([call]);
  });

  test('arguments that only the last event has, or no event, are complete at the end', () => {
    const [first, second] = [item('function_call'), item('function_call', { call_id: 'c2' })];
    expect(
      callsIn([
        added(0, first),
        added(1, second),
        piece('function_call_arguments', 1, ''),
        done(0, { ...first, arguments: '{"a":1}' }),
        done(1, second),
      ]).map((call) => [call.id, call.arguments]),
    ).toEqual([
      ['c1', '{"a":1}'],
      ['c2', '{}'],
    ]);
  });

  test('calls of the provider’s own tools are skipped', () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed' };
    const mcp = { type: 'mcp_call', id: 'm', name: 'search', arguments: '{}', output: 'x' };
    const events = [
      added(0, search),
      done(0, search),
      added(1, mcp),
      piece('mcp_call_arguments', 1, '{}'),
      done(1, mcp),
    ];
    expect(callsIn(events)).toEqual([]);
    const { choices } = openaiResponses
      .open({}, 'openai')
      .response({ object: 'response', output: [search, mcp] });
    expect(choices.flatMap(({ toolCalls }) => toolCalls)).toEqual([]);
  });
});

test('N2 a non-streaming response that failed without an error: an error that says so', () => {
  const part = openaiResponses.open({}, 'p').response({ object: 'response', status: 'failed', error: null });
  expect(part.error?.message).toBe('the response failed, and names no error');
});

describe('O7 the end of a response', () => {
  test.each([
    ['completed', undefined, 'stop'],
    ['incomplete', 'max_output_tokens', 'length'],
    ['incomplete', 'max_messages', 'length'],
    ['incomplete', 'content_filter', 'content_filter'],
    ['incomplete', 'a_new_reason', 'length'],
    ['incomplete', undefined, 'length'],
  ])('%s, %s: %s', (status, reason, meaning) => {
    const response = { status, output: [], ...(reason && { incomplete_details: { reason } }) };
    const [choice] =
      openaiResponses.open({}, 'openai').event({ type: `response.${status}`, response }, '')?.choices ?? [];
    expect(choice?.finishMeaning ?? finishMeaning(choice?.finishWord ?? '')).toBe(meaning);
  });

  test('C2 the time at which the provider created it, streamed and not', () => {
    const response = { id: 'resp_1', created_at: 1_790_000_000, status: 'completed', output: [] };
    const reader = openaiResponses.open({}, 'openai');
    expect(reader.event({ type: 'response.created', response }, '')?.created).toBe(1_790_000_000);
    expect(reader.response(response).created).toBe(1_790_000_000);
  });

  test('unknown items and their events are skipped, streamed and not', () => {
    const reader = openaiResponses.open({}, 'openai');
    const item = { type: 'a_new_item', call_id: 'c', name: 'n', arguments: '{}' };
    for (const event of [
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.a_new_item.delta', output_index: 0, delta: 'text' },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{}' },
    ]) {
      expect(reader.event(event, '')).toBeNull();
    }
    const { choices, error } = reader.response({ status: 'completed', output: [item] });
    expect(choices.flatMap(({ toolCalls }) => toolCalls)).toEqual([]);
    expect(error).toBeNull();
  });
});

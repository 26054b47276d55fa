/** Tests parts of Anthropic's streams that other gateways handle wrongly or that no recording shows (A3-A6). */
import { describe, expect, test } from 'vitest';
import { type JsonObject, listOf, objectOf } from '../../../tools/conformance/contract/json.ts';
import { type Conversion, type Converted, convertObject, convertStream } from '../../contract/convert.ts';
import { readClient } from '../../contract/reference-reader.ts';

const CHAT: Conversion = { provider: 'anthropic', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

const event = (type: string, more: JsonObject = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const START = event('message_start', {
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [],
    stop_reason: null,
    usage: {
      input_tokens: 5,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 100,
      output_tokens: 1,
    },
  },
});
const open = (index: number, content_block: JsonObject) =>
  event('content_block_start', { index, content_block });
const delta = (index: number, fields: JsonObject) => event('content_block_delta', { index, delta: fields });
const close = (index: number) => event('content_block_stop', { index });
const text = (index: number, content: string) =>
  open(index, { type: 'text', text: '' }) +
  delta(index, { type: 'text_delta', text: content }) +
  close(index);
const tool = (index: number, id: string, ...pieces: string[]) =>
  open(index, { type: 'tool_use', id, name: 'f', input: {} }) +
  ['', ...pieces].map((partial_json) => delta(index, { type: 'input_json_delta', partial_json })).join('') +
  close(index);
const stop = (stop_reason: string, usage: JsonObject = { output_tokens: 7 }) =>
  event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage }) + event('message_stop');
const PING = event('ping');

function convert(stream: string, conversion = CHAT): Converted {
  return convertStream([encoder.encode(stream)], conversion);
}

const read = (stream: string) => readClient(convert(stream).text).choices.get(0);

describe('Anthropic, tools', () => {
  test('A3 the indexes of calls count calls, not blocks (LiteLLM#5231)', () => {
    const stream = START + text(0, 'a') + tool(1, 't1', '{"a"', ':1}') + tool(2, 't2') + stop('tool_use');
    const indexes = [...convert(stream).text.matchAll(/"tool_calls":\[\{"index":(\d)/g)].map(([, i]) => i);
    expect(new Set(indexes)).toEqual(new Set(['0', '1']));
    expect(read(stream)?.toolCalls.map(({ id, arguments: args }) => [id, args])).toEqual([
      ['t1', '{"a":1}'],
      // Only one empty fragment: the arguments are an empty object (vercel/ai#10747).
      ['t2', '{}'],
    ]);
  });

  test('A3 a call with its input in the block’s start and a call without a block end are complete', () => {
    const given = open(0, { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } }) + close(0);
    const unclosed = open(1, { type: 'tool_use', id: 't2', name: 'f', input: {} });
    const calls = read(START + given + unclosed + stop('tool_use'))?.toolCalls;
    expect(calls?.map((call) => call.arguments)).toEqual(['{"a":1}', '{}']);
  });

  test('C7 blocks of calls that are open at the same time keep their own arguments', () => {
    const begin = (index: number, id: string) => open(index, { type: 'tool_use', id, name: 'f', input: {} });
    const piece = (index: number, partial_json: string) =>
      delta(index, { type: 'input_json_delta', partial_json });
    const stream =
      START +
      begin(0, 't1') +
      begin(1, 't2') +
      begin(2, 't3') +
      piece(0, '{"a":') +
      piece(1, '{"b":2}') +
      piece(0, '1}') +
      close(1) +
      close(2) +
      close(0) +
      stop('tool_use');
    expect(read(stream)?.toolCalls.map((call) => call.arguments)).toEqual(['{"a":1}', '{"b":2}', '{}']);
  });

  test('C7 fragments after an input in the block’s start are skipped (gajae-code#1895)', () => {
    const stream =
      START +
      open(0, { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } }) +
      delta(0, { type: 'input_json_delta', partial_json: '{"a":1}' }) +
      close(0) +
      stop('tool_use');
    expect(read(stream)?.toolCalls.map((call) => call.arguments)).toEqual(['{"a":1}']);
  });

  test('A3 a call without a block end and message_delta has an empty object', () => {
    const stream =
      START + open(0, { type: 'tool_use', id: 't1', name: 'f', input: {} }) + event('message_stop');
    expect(read(stream)).toMatchObject({ finish: 'tool_calls', toolCalls: [{ arguments: '{}' }] });
  });

  test('A3 server tools, their results and fragments are no tool calls (envoy)', () => {
    const stream =
      START +
      open(0, { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }) +
      delta(0, { type: 'input_json_delta', partial_json: '{"query":"x"}' }) +
      close(0) +
      open(1, {
        type: 'web_search_tool_result',
        tool_use_id: 's1',
        content: [{ type: 'text', text: 'no' }],
      }) +
      close(1) +
      open(2, { type: 'mcp_tool_use', id: 'm1', name: 'x', input: { a: 1 } }) +
      close(2) +
      open(3, { type: 'some_new_block', text: 'no' }) +
      delta(3, { type: 'some_new_delta', text: 'no' }) +
      close(3) +
      text(4, 'yes') +
      stop('pause_turn');
    expect(read(stream)).toMatchObject({ text: 'yes', reasoning: '', toolCalls: [], finish: 'length' });
    expect(convert(stream).accumulator.finishWord).toBe('pause_turn');
  });
});

describe('Anthropic, thinking', () => {
  test('A7 keeps thinking blocks apart: two with text between them, one without text, one redacted (LiteLLM#13834, #41361)', () => {
    const thinking = (index: number, content: string, signature: string) =>
      open(index, { type: 'thinking', thinking: '', signature: '' }) +
      (content === '' ? '' : delta(index, { type: 'thinking_delta', thinking: content })) +
      delta(index, { type: 'signature_delta', signature }) +
      close(index);
    const stream =
      START +
      thinking(0, 'one', 's0') +
      text(1, 'between') +
      thinking(2, '', 's2') +
      open(3, { type: 'redacted_thinking', data: 'd3' }) +
      close(3) +
      stop('end_turn');
    const choice = read(stream);
    expect(choice).toMatchObject({ text: 'between', reasoning: 'one' });
    const tag = (index: number) => ({
      id: `weir1:anthropic:${index}`,
      format: 'anthropic-claude-v1',
      index,
    });
    expect(choice?.details).toEqual([
      { type: 'reasoning.text', text: 'one', index: 0 },
      // The id says that the signature has a text, so that a lost text is detected.
      { type: 'reasoning.text', signature: 's0', ...tag(0), id: 'weir1:anthropic:0-text' },
      { type: 'reasoning.text', signature: 's2', ...tag(2) },
      { type: 'reasoning.encrypted', data: 'd3', ...tag(3) },
    ]);
  });
});

describe('Anthropic, ends', () => {
  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'length'],
    ['compaction', 'length'],
    ['a_new_word', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
  ])('A4 the finish of %s is %s, and the record keeps the word', (word, finish) => {
    const stream = START + text(0, 'a') + stop(word);
    expect(read(stream)?.finish).toBe(finish);
    expect(convert(stream).accumulator.finishWord).toBe(word);
  });

  test('A4 end_turn after a call becomes tool_calls', () => {
    expect(read(START + tool(0, 't1') + stop('end_turn'))?.finish).toBe('tool_calls');
  });

  test.each([
    [
      'the body ends before message_stop',
      stop('end_turn').split(event('message_stop'))[0] ?? '',
      'upstream_truncated',
    ],
    [
      'an error in the middle (LiteLLM#24005)',
      event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
      'overloaded_error',
    ],
    [
      'an error without an event line',
      'data: {"type":"error","error":{"type":"api_error","message":"Oops"}}\n\n',
      'api_error',
    ],
  ])('A3 E2 %s: an error without a finish', (_, end, code) => {
    const converted = convert(START + text(0, 'a') + end);
    expect(converted.error?.code).toBe(code);
    expect(readClient(converted.text).choices.get(0)).toMatchObject({ text: 'a', finish: null });
  });

  test('R5 a second message after the first one’s text is an error (vercel/ai#18402)', () => {
    const again = START.replace('msg_1', 'msg_2') + text(0, 'b') + stop('end_turn');
    const converted = convert(START + text(0, 'a') + again);
    expect(converted.error?.code).toBe('upstream_invalid');
    expect(readClient(converted.text).choices.get(0)).toMatchObject({ text: 'a', finish: null });
  });

  test.each([
    ['the same start twice', START + text(0, 'a') + START + text(1, 'b')],
    ['another one before any block', START.replace('msg_1', 'msg_0') + START + text(0, 'ab')],
  ])('A3 %s: still one message', (_, stream) => {
    const converted = convert(stream + stop('end_turn'));
    expect(readClient(converted.text).choices.get(0)).toMatchObject({ text: 'ab', finish: 'stop' });
    expect(converted.text.match(/"role"/g)).toHaveLength(1);
    expect(new Set([...converted.text.matchAll(/"id":"([^"]*)"/g)].map(([, id]) => id)).size).toBe(1);
    expect(converted.accumulator.countUsage().usage.prompt_tokens).toBe(125);
  });

  test('A3 ignores events after message_stop', () => {
    expect(read(START + text(0, 'a') + stop('end_turn') + text(1, 'b'))).toMatchObject({
      text: 'a',
      finish: 'stop',
    });
  });

  test('S1 CRLF, a delta without text, pings and unknown events do not change the response (aiproxy#604)', () => {
    const odd =
      PING +
      START +
      PING +
      event('content_block_resume', { detail: 'x' }) +
      delta(0, { type: 'text_delta' }) +
      PING;
    const stream = odd + text(0, 'a') + PING + stop('end_turn');
    expect(read(stream.replaceAll('\n', '\r\n'))).toMatchObject({ text: 'a', finish: 'stop' });
  });

  test('A6 T2 pings count as events, so they delay the idle timeout', () => {
    expect(convert(START + PING + PING).events).toBe(3);
  });
});

describe('Anthropic, usage', () => {
  const usageOf = (stream: string) => convert(stream).accumulator.countUsage();

  test('A5 the prompt includes cache reads and writes once (LiteLLM#11789)', () => {
    expect(usageOf(START + stop('end_turn')).usage).toEqual({
      prompt_tokens: 125,
      completion_tokens: 7,
      total_tokens: 132,
      prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 100 },
    });
  });

  test('A5 message_delta replaces message_start field by field, also with lower values (vercel/ai#11611)', () => {
    const usage = {
      input_tokens: 9,
      cache_read_input_tokens: 0,
      output_tokens: 3,
      cache_creation_input_tokens: null,
    };
    expect(usageOf(START + stop('end_turn', usage)).usage).toMatchObject({
      prompt_tokens: 109,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 100 },
    });
  });

  test('A5 P1 one-hour cache writes count for the cost, and are not sent to the client', () => {
    const split = (hour: number) => ({ ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: hour });
    const start = START.replace(
      '"output_tokens":1',
      `"cache_creation":${JSON.stringify(split(60))},"output_tokens":1`,
    );
    const counted = (end: JsonObject) =>
      convert(start + stop('end_turn', end)).accumulator.countBilled().usage;
    expect(counted({ output_tokens: 7 })).toMatchObject({ cache_write_long_tokens: 60 });
    expect(counted({ output_tokens: 7, cache_creation: split(50) })).toMatchObject({
      cache_write_long_tokens: 50,
    });
    expect(counted({ output_tokens: 7, cache_creation: split(0) })).not.toHaveProperty(
      'cache_write_long_tokens',
    );
    expect(convert(start + stop('end_turn')).text).not.toContain('hour');
  });

  test.each<
    [what: string, start: [short: number, hour: number] | null, long: number | undefined, isOpen: boolean]
  >([
    ['five minutes', [100, 0], undefined, false],
    ['an hour', [0, 100], 140, false],
    ['both', [60, 40], 80, true],
    ['none of them', [0, 0], 40, true],
    ['no parts at all', null, undefined, false],
  ])(
    'P1 cache writes that grow after message_start named %s: their kind (litellm#42663)',
    (_, start, long, isOpen) => {
      const written = start === null ? 100 : start[0] + start[1];
      const parts = {
        ephemeral_5m_input_tokens: start?.[0] ?? 0,
        ephemeral_1h_input_tokens: start?.[1] ?? 0,
      };
      const named = start === null ? '' : `"cache_creation":${JSON.stringify(parts)},`;
      const begin = START.replace(
        '"cache_creation_input_tokens":100',
        `${named}"cache_creation_input_tokens":${written}`,
      );
      const grown = { output_tokens: 7, cache_creation_input_tokens: written + 40 };
      for (const end of [grown, ...(start === null ? [] : [{ ...grown, cache_creation: parts }])]) {
        const { usage, isUpperBound = false } = convert(
          begin + stop('end_turn', end),
        ).accumulator.countBilled();
        expect([usage.cache_write_long_tokens, isUpperBound]).toEqual([long, isOpen]);
      }
    },
  );

  test('P1 cache writes that grow, with the parts of all of them: as reported', () => {
    const split = (short: number, hour: number) => ({
      cache_creation_input_tokens: short + hour,
      cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: hour },
    });
    const begin = START.replace(
      '"cache_creation_input_tokens":100',
      JSON.stringify(split(60, 40)).slice(1, -1),
    );
    const { accumulator } = convert(begin + stop('end_turn', { output_tokens: 7, ...split(90, 50) }));
    const { usage, isUpperBound } = accumulator.countBilled();
    expect([usage.cache_write_long_tokens, isUpperBound]).toEqual([50, undefined]);
  });

  const results = (index: number, content: JsonObject[] | JsonObject) => {
    const content_block = { type: 'web_search_tool_result', tool_use_id: 's', content };
    return event('content_block_start', { index, content_block }) + event('content_block_stop', { index });
  };
  const FOUND = [{ type: 'web_search_result', url: 'https://a.example', title: 'A' }];

  test('P1 the search count of the usage counts for the cost, not the number of results', () => {
    const server_tool_use = { web_search_requests: 3, web_fetch_requests: 1 };
    const stream = START + results(0, FOUND) + stop('end_turn', { output_tokens: 7, server_tool_use });
    expect(convert(stream).accumulator.countBilled().usage).toMatchObject({ searches: 3 });
    expect(convert(stream).text).not.toContain('searches');
  });

  test('P1 without a search count, as at DeepSeek, searches with results are counted', () => {
    const failed = { type: 'web_search_tool_result_error', error_code: 'unavailable' };
    const blocks = results(0, FOUND) + results(1, []) + results(2, failed) + results(3, FOUND);
    expect(convert(START + blocks + stop('end_turn')).accumulator.countBilled().usage).toMatchObject({
      searches: 2,
    });
    expect(convert(START + stop('end_turn')).accumulator.countBilled().usage).not.toHaveProperty('searches');
  });

  test('A5 M3 a truncated stream has the reported prompt and an estimated completion, not the 1 of message_start', () => {
    const counted = usageOf(START + text(0, 'some words that were said'));
    expect(counted.estimated).toBe(true);
    expect(counted.usage.prompt_tokens).toBe(125);
    expect(counted.usage.completion_tokens).toBeGreaterThan(2);
  });

  test('A5 iterations of compaction and advisors are added only in the record', () => {
    const iteration = (type: string, input_tokens: number, output_tokens: number) => ({
      type,
      input_tokens,
      output_tokens,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 10,
      cache_creation: { ephemeral_5m_input_tokens: 6, ephemeral_1h_input_tokens: 4 },
    });
    const iterations = [
      iteration('compaction', 1, 2),
      iteration('message', 5, 7),
      iteration('advisor_message', 3, 4),
    ];
    const { accumulator } = convert(START + stop('end_turn', { output_tokens: 7, iterations }));
    expect(accumulator.countUsage().usage).toMatchObject({ prompt_tokens: 125, completion_tokens: 7 });
    expect(accumulator.countBilled().usage).toMatchObject({
      prompt_tokens: 125 + 1011 + 1013,
      completion_tokens: 7 + 2 + 4,
      prompt_tokens_details: { cached_tokens: 2020, cache_write_tokens: 120 },
      cache_write_long_tokens: 8,
    });
  });
});

describe('Anthropic, a fallback model after a refusal', () => {
  const iteration = (type: string, model: string, input_tokens: number, output_tokens: number) => ({
    type,
    model,
    input_tokens,
    output_tokens,
  });
  const counted = (...iterations: JsonObject[]) => {
    const stream = START + text(0, 'a') + stop('end_turn', { output_tokens: 7, iterations });
    const { accumulator } = convert(stream);
    const { prompt_tokens, completion_tokens } = accumulator.countBilled().usage;
    expect(accumulator.countUsage().usage).toMatchObject({ prompt_tokens: 125, completion_tokens: 7 });
    return [prompt_tokens, completion_tokens];
  };
  const served = iteration('fallback_message', 'claude-b', 125, 7);

  test('A5 the fallback’s tokens are the message’s count, and are not billed twice', () => {
    expect(counted(served)).toEqual([125, 7]);
    // The message's count includes its steps with server tools.
    expect(counted(iteration('message', 'claude-b', 60, 3), served)).toEqual([125, 7]);
  });

  test('A5 the model that declined is billed only if it had produced output', () => {
    expect(counted(iteration('message', 'claude-a', 130, 0), served)).toEqual([125, 7]);
    expect(counted(iteration('message', 'claude-a', 130, 4), served)).toEqual([255, 11]);
  });
});

describe('Anthropic, a non-streaming response', () => {
  const responseOf = (content: JsonObject[], more: JsonObject = {}) =>
    encoder.encode(
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude-x',
        content,
        stop_reason: 'tool_use',
        usage: { input_tokens: 3, output_tokens: 4 },
        ...more,
      }),
    );

  test('A3 A7 reads blocks of all types into one message, with signatures and the provider’s finish word', () => {
    const content = [
      { type: 'thinking', thinking: 'why', signature: 's' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'text', text: 'one ' },
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
      { type: 'text', text: 'two' },
      { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } },
      { type: 'tool_use', id: 't2', name: 'g', input: {} },
    ];
    const { text: json, accumulator } = convertObject(responseOf(content), CHAT, false);
    const body = JSON.parse(json);
    expect(body).toMatchObject({
      id: 'msg_1',
      model: 'anthropic/claude-x',
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
    const [choice] = listOf(body.choices).map(objectOf);
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: 'one two',
        reasoning_content: 'why',
        tool_calls: [
          { id: 't1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          { id: 't2', type: 'function', function: { name: 'g', arguments: '{}' } },
        ],
        reasoning_details: [
          { type: 'reasoning.text', text: 'why', signature: 's', id: 'weir1:anthropic:0-text' },
          { type: 'reasoning.encrypted', data: 'd', id: 'weir1:anthropic:1' },
        ],
      },
    });
    expect(accumulator.finishWord).toBe('tool_use');
  });

  test('A3 a message without blocks is empty; another object is an error', () => {
    const empty = convertObject(responseOf([], { stop_reason: 'stop_sequence' }), CHAT, false);
    expect(JSON.parse(empty.text)).toMatchObject({
      choices: [{ message: { content: '' }, finish_reason: 'stop' }],
    });
    expect(convertObject(encoder.encode('{"type":"pong"}'), CHAT, true).error?.code).toBe('upstream_invalid');
  });
});

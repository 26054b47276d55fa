/** What a client of chat gets of a stream or an answer of Converse that is out of the ordinary. */
import { describe, expect, test } from 'vitest';
import { bedrockConverse } from '../../../src/protocols/bedrock-converse/upstream-reader.ts';
import { type Conversion, convertObject, convertStream } from '../../contract/convert.ts';
import { readClient } from '../../contract/reference-reader.ts';
import { event, joined, message } from '../../stream/eventstream-messages.ts';

const CONVERSION: Conversion = {
  ...{ provider: 'bedrock', route: 'chat', model: 'm', usageChunk: true },
  protocol: bedrockConverse,
};

const START = event('messageStart', { role: 'assistant' });
const STOP = event('messageStop', { stopReason: 'end_turn' });
const USAGE = { inputTokens: 5, outputTokens: 3, totalTokens: 8 };
const METADATA = event('metadata', { usage: USAGE, metrics: { latencyMs: 1 } });

function begin(contentBlockIndex: number, start: object) {
  return event('contentBlockStart', { contentBlockIndex, start });
}

function delta(contentBlockIndex: number, of: object) {
  return event('contentBlockDelta', { contentBlockIndex, delta: of, p: 'abcdef' });
}

function end(contentBlockIndex: number) {
  return event('contentBlockStop', { contentBlockIndex });
}

function read(...messages: readonly Uint8Array[]) {
  const { text, error, accumulator, copiedEvents } = convertStream([joined(messages)], CONVERSION);
  const { choices, usage } = readClient(text);
  return { choice: choices.get(0), usage, error, text, counted: accumulator.countUsage(), copiedEvents };
}

const TOOL = { toolUse: { toolUseId: 'tooluse_a-b_c', name: 'f' } };

describe('A10 Converse, blocks', () => {
  test('texts of one block: are copied by the fast path', () => {
    const words = Array.from({ length: 50 }, (_, at) => delta(0, { text: ` word${at}` }));
    const { choice, copiedEvents } = read(START, ...words, end(0), STOP, METADATA);
    expect(choice?.text).toBe(words.map((_, at) => ` word${at}`).join(''));
    expect(copiedEvents).toBeGreaterThan(40);
  });

  test('a copied text is not taken for one of another block or event', () => {
    const words = [0, 1, 2, 3].map((at) => delta(0, { text: ` ${at}` }));
    const other = event('odd', { contentBlockIndex: 0, delta: { text: 'no' }, p: 'abcdef' });
    const { choice } = read(
      START,
      ...words,
      other,
      begin(1, TOOL),
      delta(1, { toolUse: { input: '{}' } }),
      STOP,
    );
    expect([choice?.text, choice?.toolCalls.length]).toEqual([' 0 1 2 3', 1]);
  });

  test.each<[name: string, messages: Uint8Array[], args: string]>([
    [
      'whose input comes in pieces',
      [delta(0, { toolUse: { input: '{"a"' } }), delta(0, { toolUse: { input: ':1}' } }), end(0)],
      '{"a":1}',
    ],
    [
      'with an empty piece first',
      [delta(0, { toolUse: { input: '' } }), delta(0, { toolUse: { input: '{}' } }), end(0)],
      '{}',
    ],
    ['without a delta', [end(0)], '{}'],
    ['without a stop of its block', [delta(0, { toolUse: { input: '{"a":1}' } })], '{"a":1}'],
    ['without a delta and a stop of its block', [], '{}'],
  ])('a call %s: its arguments are whole', (_, messages, args) => {
    const { choice, error } = read(
      START,
      begin(0, TOOL),
      ...messages,
      event('messageStop', { stopReason: 'tool_use' }),
      METADATA,
    );
    expect(error).toBeNull();
    expect(choice?.toolCalls).toEqual([{ id: 'tooluse_a-b_c', name: 'f', arguments: args, extra: null }]);
    expect(choice?.finish).toBe('tool_calls');
  });

  test('a call after one whose stop is missing: both are whole', () => {
    const { choice } = read(
      START,
      begin(0, TOOL),
      begin(1, TOOL),
      end(1),
      event('messageStop', { stopReason: 'tool_use' }),
    );
    expect(choice?.toolCalls.map((call) => call.arguments)).toEqual(['{}', '{}']);
  });

  test('a start with nothing in it: the block is that of its deltas', () => {
    expect(read(START, begin(0, {}), delta(0, { text: 'Hi' }), end(0), STOP).choice?.text).toBe('Hi');
  });

  test('arguments of a block that did not begin: an error, because their call is lost', () => {
    const { error } = read(START, delta(0, { toolUse: { input: '{}' } }), STOP, METADATA);
    expect(error?.code).toBe('upstream_invalid');
  });

  test('tools that the provider runs, and their results: no call and no text of the client’s', () => {
    const server = { toolUse: { toolUseId: 't', name: 'nova_grounding', type: 'server_tool_use' } };
    const { choice, error } = read(
      ...[START, begin(0, server), delta(0, { toolUse: { input: '{"q":1}' } }), end(0)],
      ...[
        begin(1, { toolResult: { toolUseId: 't', status: 'success' } }),
        delta(1, { toolResult: [{ text: 'x' }] }),
      ],
      ...[delta(1, { text: 'x' }), end(1), delta(2, { text: 'Found.' }), end(2), STOP, METADATA],
    );
    expect([error, choice?.text, choice?.toolCalls, choice?.finish]).toEqual([null, 'Found.', [], 'stop']);
  });

  test('redacted content that is no text in base64: is kept as it came, under a form of its own', () => {
    const redactedContent = Buffer.from([0xff, 0xfe, 1]).toString('base64');
    const { choice } = read(
      START,
      delta(0, { reasoningContent: { redactedContent } }),
      end(0),
      delta(1, { text: 'Hi' }),
      STOP,
    );
    expect(choice?.details).toEqual([
      {
        type: 'reasoning.encrypted',
        data: redactedContent,
        ...{ id: 'weir1:bedrock:0', format: 'bedrock-converse-v1', index: 0 },
      },
    ]);
  });
});

describe('A10 Converse, the end', () => {
  test.each<[reason: unknown, finish: string | null, code: string | undefined]>([
    ['end_turn', 'stop', undefined],
    ['stop_sequence', 'stop', undefined],
    ['max_tokens', 'length', undefined],
    ['model_context_window_exceeded', 'length', undefined],
    ['guardrail_intervened', 'content_filter', undefined],
    ['content_filtered', 'content_filter', undefined],
    ['malformed_model_output', null, 'malformed_model_output'],
    ['malformed_tool_use', null, 'malformed_tool_use'],
    ['a_new_reason', null, 'a_new_reason'],
    [null, null, 'upstream_truncated'],
    [undefined, null, 'upstream_truncated'],
    [7, null, 'upstream_truncated'],
  ])('stopReason %s: finish %s, error %s, streamed and whole', (stopReason, finish, code) => {
    const stream = read(
      START,
      delta(0, { text: 'Hi' }),
      end(0),
      event('messageStop', { stopReason }),
      METADATA,
    );
    expect([stream.choice?.finish ?? null, stream.error?.code]).toEqual([finish, code]);
    const output = { message: { role: 'assistant', content: [{ text: 'Hi' }] } };
    const bytes = new TextEncoder().encode(JSON.stringify({ output, stopReason, usage: USAGE }));
    const whole = convertObject(bytes, CONVERSION, true);
    expect([readClient(whole.text).choices.get(0)?.finish ?? null, whole.error?.code]).toEqual([
      finish,
      code,
    ]);
  });

  test('an end between messageStop and metadata: complete, with estimated usage', () => {
    const { choice, error, counted } = read(START, delta(0, { text: 'Hello there' }), end(0), STOP);
    expect([choice?.finish, error, counted.estimated]).toEqual(['stop', null, true]);
    expect(counted.usage.completion_tokens).toBeGreaterThan(0);
  });

  test('an end before messageStop: truncated', () => {
    expect(read(START, delta(0, { text: 'Hi' }), end(0), METADATA).error?.code).toBe('upstream_truncated');
  });

  test('usage with a cache: the prompt is the sum, each count once, with the part of an hour', () => {
    const usage = {
      ...{ inputTokens: 2, outputTokens: 5, totalTokens: 1729 },
      ...{ cacheReadInputTokens: 400, cacheReadInputTokenCount: 400 },
      ...{ cacheWriteInputTokens: 1322, cacheWriteInputTokenCount: 1322 },
      cacheDetails: [
        { inputTokens: 1000, ttl: '1h' },
        { inputTokens: 322, ttl: '5m' },
      ],
    };
    const bytes = joined([
      START,
      delta(0, { text: '21' }),
      STOP,
      event('metadata', { usage, serviceTier: { type: 'flex' } }),
    ]);
    const { accumulator, text } = convertStream([bytes], CONVERSION);
    expect(accumulator.countUsage().usage).toEqual({
      ...{ prompt_tokens: 1724, completion_tokens: 5, total_tokens: 1729 },
      prompt_tokens_details: { cached_tokens: 400, cache_write_tokens: 1322 },
    });
    expect(accumulator.countBilled().usage.cache_write_long_tokens).toBe(1000);
    expect(text).toContain('"service_tier":"flex"');
  });
});

describe('S5 Converse, exceptions', () => {
  const says = '{"message":"It broke"}';
  const exception = (type: string, payload = says) =>
    message(
      { ':message-type': 'exception', ':exception-type': type, ':content-type': 'application/json' },
      payload,
    );

  test.each<[name: string, failure: Uint8Array, code: string, text: string]>([
    ['an exception', exception('throttlingException'), 'throttlingException', 'AWS Bedrock: It broke'],
    ['an unknown exception', exception('oddThing'), 'oddThing', 'AWS Bedrock: It broke'],
    [
      'an exception as the type of an event',
      event('internalServerException', { message: 'It broke' }),
      'internalServerException',
      'AWS Bedrock: It broke',
    ],
    [
      'an error',
      message({ ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'It broke' }, ''),
      'InternalError',
      'AWS Bedrock: It broke',
    ],
    [
      'a message in capitals',
      exception('validationException', '{"Message":"It broke"}'),
      'validationException',
      'AWS Bedrock: It broke',
    ],
    [
      'the model’s own failure',
      exception('modelStreamErrorException', '{"originalStatusCode":500,"originalMessage":"It broke"}'),
      'modelStreamErrorException',
      'AWS Bedrock: It broke',
    ],
    [
      'an exception without a payload',
      exception('throttlingException', ''),
      'throttlingException',
      'AWS Bedrock reported an error without a message',
    ],
  ])('%s: ends the stream with its code and its words', (_, failure, code, text) => {
    for (const before of [[START, delta(0, { text: 'Hi' })], [START], []]) {
      const { error, choice } = read(...before, failure, STOP, METADATA);
      expect([error?.code, error?.message, choice?.finish ?? null]).toEqual([code, text, null]);
    }
  });

  test('a payload that is no JSON object behind right checksums: an error', () => {
    const odd = message({ ':event-type': 'contentBlockDelta', ':message-type': 'event' }, '[1]');
    expect(read(START, odd, STOP).error?.code).toBe('upstream_invalid');
  });
});

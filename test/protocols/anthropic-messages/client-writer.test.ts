/** Tests the writers of Messages with streams that no recording has: interleaved calls, signatures, restarts and failures. */
import { describe, expect, test } from 'vitest';
import type { ChatChunk, Delta } from '../../../src/canonical/chunk.ts';
import { apiError } from '../../../src/canonical/error.ts';
import type { FinishReason } from '../../../src/canonical/finish-reason.ts';
import { MessagesWriter } from '../../../src/protocols/anthropic-messages/client-writer.ts';
import { MessagesJsonWriter } from '../../../src/protocols/anthropic-messages/json-writer.ts';
import type { WriterOptions } from '../../../src/protocols/shared/client-protocol.ts';
import { checkMessages, missingKeys } from '../../../tools/conformance/contract/check-messages.ts';
import { type JsonObject, objectOf, textOf } from '../../../tools/conformance/contract/json.ts';
import { convertStream } from '../../contract/convert.ts';
import { readMessage } from '../../contract/reference-message.ts';

const decoder = new TextDecoder();
const BASE = { id: 'i', object: 'chat.completion.chunk', created: 1, model: 'anthropic/claude' } as const;
const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
const MAX_EVENT_BYTES = 4096;

function chunk(delta: Delta, finish_reason: FinishReason | null = null): ChatChunk {
  return { ...BASE, choices: [{ index: 0, delta, logprobs: null, finish_reason }] };
}

const STOP = chunk({}, 'stop');
const LAST: ChatChunk = { ...BASE, choices: [], usage: USAGE };

function begin(index: number, json = ''): Delta {
  const call = {
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name: `f${index}`, arguments: json },
  };
  return { tool_calls: [{ ...call, type: 'function' }] };
}

function more(index: number, json: string): Delta {
  return { tool_calls: [{ index, function: { arguments: json } }] };
}

const OPTIONS = { requestId: 'r-1', model: 'claude-requested' };

function writer(): MessagesWriter {
  return new MessagesWriter({ ...OPTIONS, maxEventBytes: MAX_EVENT_BYTES, promptTokens: 17 });
}

function taken({ output }: MessagesWriter): string {
  return decoder.decode(output.take());
}

/** The complete stream, which must be valid. */
function write(...deltas: readonly (Delta | ChatChunk)[]): string {
  const stream = writer();
  for (const one of [...deltas, LAST]) stream.chunk('object' in one ? one : chunk(one));
  stream.end(null);
  const text = taken(stream);
  expect(checkMessages(text)).toEqual([]);
  return text;
}

/** The blocks as `type:content`. */
function blocksOf(stream: string): string[] {
  const blocks: string[] = [];
  for (const [, json = ''] of stream.matchAll(/^data: (.+)$/gm)) {
    const { type, content_block, delta = {} } = JSON.parse(json);
    if (type === 'content_block_start') blocks.push(`${content_block.name ?? content_block.type}:`);
    const text = delta.text ?? delta.thinking ?? delta.partial_json ?? '';
    if (blocks.length > 0) blocks[blocks.length - 1] += text;
  }
  return blocks;
}

function build(...deltas: readonly (Delta | ChatChunk)[]): JsonObject {
  const json = new MessagesJsonWriter(OPTIONS);
  for (const one of [...deltas, LAST]) json.chunk('object' in one ? one : chunk(one));
  return JSON.parse(json.take());
}

describe('MessagesJsonWriter, the keys of Anthropic’s schema', () => {
  test('a message with thinking, text and a call has all keys, with null for unknown values', () => {
    const message = build({ reasoning_content: 'r' }, { content: 'x' }, begin(0, '{}'), STOP);
    expect(missingKeys('message', message)).toEqual([]);
    expect(missingKeys('usage', message.usage)).toEqual([]);
    const blocks = Array.isArray(message.content) ? message.content : [];
    expect(blocks.map((block) => objectOf(block).type)).toEqual(['thinking', 'text', 'tool_use']);
    for (const block of blocks) expect(missingKeys(textOf(objectOf(block).type), block)).toEqual([]);
    expect(blocks).toMatchObject([{}, { citations: [] }, { caller: { type: 'direct' } }]);
  });
});

describe('MessagesWriter, calls', () => {
  test('I3 interleaved fragments of two calls become two complete blocks in sequence', () => {
    const deltas = [begin(0, '{"a"'), begin(1, '{"b"'), more(0, ':1}'), more(1, ':2}'), STOP] as const;
    expect(blocksOf(write(...deltas))).toEqual(['f0:{"a":1}', 'f1:{"b":2}']);
    expect(build(...deltas).content).toMatchObject([{ input: { a: 1 } }, { input: { b: 2 } }]);
  });

  test('I3 a second call waits until the open one is complete', () => {
    const stream = writer();
    for (const delta of [begin(0, '{"a":'), begin(1, '{}')]) stream.chunk(chunk(delta));
    expect(taken(stream)).not.toContain('"f1"');
    stream.chunk(chunk(more(0, '"}"}')));
    expect(taken(stream)).toContain('"f1"');
  });

  test.each<[what: string, deltas: Delta[], blocks: string[]]>([
    ['in one fragment', [begin(0, '{"a":1}{"b":2}')], ['f0:{"a":1}']],
    ['in a fragment of its own', [begin(0), more(0, '{"a":1}'), more(0, '{"b":2}')], ['f0:{"a":1}']],
    ['of a waiting call', [begin(1, '{'), begin(0, '{"a":1} x'), more(1, '}')], ['f1:{}', 'f0:{"a":1}']],
  ])(
    'I3 JSON after the end of a call’s arguments, %s, is dropped, because Anthropic’s SDK would reject the message',
    (_, deltas, blocks) => {
      expect(blocksOf(write(...deltas, STOP))).toEqual(blocks);
      expect(build(...deltas, STOP).content).toContainEqual(
        expect.objectContaining({ name: 'f0', input: { a: 1 } }),
      );
    },
  );

  test('Q11 an integer above 2^53 in a call of a non-streaming message keeps its digits', () => {
    const json = new MessagesJsonWriter(OPTIONS);
    for (const one of [chunk(begin(0, '{"id":1234567890123456789}')), STOP, LAST]) json.chunk(one);
    expect(json.take()).toContain('"input":{"id":1234567890123456789}');
  });

  test('I3 text while a call is open waits until the arguments are complete', () => {
    const deltas = [begin(0, '{"a":'), { content: 'x' }, { reasoning_content: 'y' }, more(0, '1}'), STOP];
    expect(blocksOf(write(...deltas))).toEqual(['f0:{"a":1}', 'text:x', 'thinking:y']);
  });

  test('I3 incomplete calls are sent when the response has finished', () => {
    const deltas = [begin(0, '{"a":'), begin(1), begin(2, '{"c":'), more(1, '{}'), chunk({}, 'length')];
    const text = write(...deltas);
    expect(blocksOf(text)).toEqual(['f0:{"a":', 'f1:{}', 'f2:{"c":']);
    expect(readMessage(text).stop).toBe('max_tokens');
    expect(build(...deltas)).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ input: {} }, { input: {} }, { input: {} }],
    });
  });

  test('B1 I3 the response fails if more waits than the bound of an event', () => {
    const stream = writer();
    expect(stream.chunk(chunk(begin(0, '{"a":')))).toBe(true);
    expect(stream.chunk(chunk(begin(1, `"${'b'.repeat(MAX_EVENT_BYTES)}`)))).toBe(false);
  });

  test('B3 a non-streaming message of many blocks with one character each fails at the bound', () => {
    const json = new MessagesJsonWriter(OPTIONS);
    const chunks = [chunk({ content: 'a' }), chunk({ reasoning_content: 'b' })];
    let taken = 0;
    while (taken < 100_000 && chunks.every((one) => json.chunk(one))) taken++;
    expect(taken).toBeLessThan(50_000);
  });

  test('B1 I3 waiting pieces without text count too', () => {
    const stream = writer();
    stream.chunk(chunk(begin(0, '{"a":')));
    let index = 1;
    while (index < 1000 && stream.chunk(chunk(begin(index)))) index++;
    expect(index).toBeLessThan(1000);
  });

  test('I3 the finish stop after a call becomes tool_use', () => {
    expect(readMessage(write(begin(0, '{}'), STOP)).stop).toBe('tool_use');
  });

  test('I3 the finish tool_calls without a call becomes end_turn', () => {
    expect(readMessage(write({ content: 'x' }, chunk({}, 'tool_calls'))).stop).toBe('end_turn');
  });

  test.each([
    ['toolu_01A-b_', 'toolu_01A-b_'],
    ['call_1', 'toolu_weir_call_1'],
    ['functions.Bash:0', 'toolu_weirb_ZnVuY3Rpb25zLkJhc2g6MA'],
  ])('Q3 the id %s is sent as %s', (id, expected) => {
    const call = { index: 0, id, type: 'function', function: { name: 'f', arguments: '{}' } } as const;
    expect(build({ tool_calls: [call] }, STOP).content).toMatchObject([{ id: expected }]);
  });
});

describe('MessagesWriter, reasoning', () => {
  const signed = (signature: string, text?: string) => ({
    type: 'reasoning.text',
    ...(text === undefined ? {} : { text }),
    signature,
    id: 'weir1:anthropic:0',
  });

  test('I3 I7 two signed thoughts become two blocks', () => {
    const text = write(
      { reasoning_content: 'a' },
      { reasoning_details: [signed('s1')] },
      { reasoning_content: 'b' },
      { reasoning_details: [signed('s2')] },
      STOP,
    );
    expect(blocksOf(text)).toEqual(['thinking:a', 'thinking:b']);
    expect(readMessage(text).tokens).toMatchObject([
      { detail: { signature: 's1' } },
      { detail: { signature: 's2' } },
    ]);
  });

  test('I7 a signature without a thought gets its own block', () => {
    expect(blocksOf(write({ reasoning_details: [signed('s')] }, { content: 'x' }, STOP))).toEqual([
      'thinking:',
      'text:x',
    ]);
  });

  test('I7 two signed thoughts in one chunk, as of non-streaming responses, keep their own texts', () => {
    const delta = { reasoning_content: 'ab', reasoning_details: [signed('s1', 'a'), signed('s2', 'b')] };
    expect(blocksOf(write(delta, STOP))).toEqual(['thinking:a', 'thinking:b']);
    expect(build(delta, STOP).content).toMatchObject([
      { type: 'thinking', thinking: 'a' },
      { type: 'thinking', thinking: 'b' },
    ]);
  });

  test('I7 encrypted reasoning and the signature of a call become redacted blocks before the next block', () => {
    const call = { ...begin(0, '{}').tool_calls?.[0], extra_content: { google: { thought_signature: 't' } } };
    const text = write(
      { reasoning_content: 'a' },
      { reasoning_details: [{ type: 'reasoning.encrypted', data: 'd' }] },
      { tool_calls: [call as NonNullable<Delta['tool_calls']>[number]] },
      STOP,
    );
    expect(blocksOf(text)).toEqual(['thinking:a', 'redacted_thinking:', 'redacted_thinking:', 'f0:{}']);
    expect(readMessage(text).tokens).toEqual([
      { provider: 'anthropic', detail: { type: 'reasoning.encrypted', data: 'd' } },
      { provider: 'anthropic', call: 'call_0', extra_content: { google: { thought_signature: 't' } } },
    ]);
  });

  test('encrypted reasoning after the last text is dropped, because clients take the last block for the result', () => {
    const encrypted = { reasoning_details: [{ type: 'reasoning.encrypted', data: 'd' }] };
    expect(blocksOf(write({ content: 'x' }, encrypted, STOP))).toEqual(['text:x']);
    expect(blocksOf(write({ content: 'x' }, encrypted, { content: 'y' }, STOP))).toEqual([
      'text:x',
      'redacted_thinking:',
      'text:y',
    ]);
    const called = write({ content: 'x' }, encrypted, begin(0, '{}'), STOP);
    expect(blocksOf(called)).toEqual(['text:x', 'redacted_thinking:', 'f0:{}']);
  });
});

describe('MessagesWriter, message events', () => {
  test('I3 message_start has an estimate of the prompt, message_delta the reported usage', () => {
    const details = { prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 } };
    const stream = writer();
    for (const one of [chunk({ content: 'x' }), STOP, { ...LAST, usage: { ...USAGE, ...details } }])
      stream.chunk(one);
    stream.end(null);
    const text = taken(stream);
    expect(text).toContain('"usage":{"input_tokens":17,');
    expect(readMessage(text).usage).toEqual({
      input_tokens: 4,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 3,
      output_tokens: 4,
      output_tokens_details: null,
      server_tool_use: null,
    });
  });

  test('I3 T1 a heartbeat is a comment until message_start has been sent, then a ping', () => {
    const stream = writer();
    stream.heartbeat(false);
    expect(taken(stream)).toBe(': heartbeat\n\n');
    stream.chunk(chunk({ role: 'assistant' }));
    taken(stream);
    stream.heartbeat(true);
    expect(taken(stream)).toBe(': heartbeat\n\n');
    stream.heartbeat(false);
    expect(taken(stream)).toBe('event: ping\ndata: {"type":"ping"}\n\n');
  });

  test('R5 I3 after a restart the next attempt begins with its own message_start', () => {
    const stream = writer();
    stream.chunk(chunk({ reasoning_content: '', role: 'assistant' }));
    taken(stream);
    stream.restart();
    stream.chunk({ ...chunk({ reasoning_content: 'x' }), model: 'b/other' });
    for (const one of [STOP, LAST]) stream.chunk(one);
    stream.end(null);
    const text = taken(stream);
    expect(checkMessages(text)).toEqual([]);
    expect(text.match(/message_start"/g)).toHaveLength(1);
    expect(text).toContain('"signature":"weir1:b:');
  });

  test('I7 the message has the requested model, so that Claude Code keeps thinking; signatures are tagged with the upstream’s provider', () => {
    const deltas = [{ reasoning_content: 'Hm' }, { content: 'x' }, STOP] as const;
    const text = write(...deltas);
    expect(text).toContain('"model":"claude-requested"');
    expect(text).toContain('"signature":"weir1:anthropic:');
    const message = build(...deltas);
    expect(message.model).toBe('claude-requested');
    expect(JSON.stringify(message.content)).toContain('"signature":"weir1:anthropic:');
  });

  test('I3 E2 a failure is an error event without content_block_stop and message_stop', () => {
    const stream = writer();
    stream.chunk(chunk({ content: 'x' }));
    stream.end({ error: apiError('upstream_truncated', 'Cut'), upstreamError: null });
    const text = taken(stream);
    expect(checkMessages(text)).toEqual([]);
    expect(text).not.toMatch(/message_stop|content_block_stop|message_delta|\[DONE\]/);
    expect(readMessage(text).error).toMatchObject({ type: 'api_error', message: 'Cut' });
  });

  test('I3 writes no vendor events', () => {
    const stream = writer();
    stream.vendor();
    expect(taken(stream)).toBe('');
  });

  test('I3 a response without output has no block, and message_stop', () => {
    expect(blocksOf(write({ role: 'assistant', content: '' }, STOP))).toEqual([]);
  });

  test('I3 the finish content_filter becomes refusal', () => {
    expect(readMessage(write({ content: 'x' }, chunk({}, 'content_filter'))).stop).toBe('refusal');
  });
});

describe('MessagesWriter, the fast path', () => {
  const BEFORE = 'data: {"id":"a","model":"m","choices":[{"index":0,"delta":';

  /** Writes the same deltas on both paths, which must give the same bytes. */
  function convert(...deltas: readonly object[]) {
    const frames = deltas.map((delta) => `${BEFORE}${JSON.stringify(delta)},"finish_reason":null}]}\n\n`);
    const bytes = new TextEncoder().encode(`${frames.join('')}data: [DONE]\n\n`);
    const base = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: true } as const;
    const conversion = { ...base, openWriter: (options: WriterOptions) => new MessagesWriter(options) };
    const fast = convertStream([bytes], conversion);
    const slow = convertStream([bytes], { ...conversion, fastPath: false });
    expect(fast.text).toBe(slow.text);
    expect(checkMessages(fast.text)).toEqual([]);
    return fast;
  }

  test('I7 a chunk with a reasoning state has no text frame', () => {
    const stream = writer();
    stream.chunk(chunk({ role: 'assistant', reasoning_content: 'a' }));
    expect(stream.textFrame(chunk({ reasoning_content: 'b' }))).toContain('"thinking":"b"');
    const details = [{ type: 'reasoning.text', text: 'b', signature: 's' }];
    expect(stream.textFrame(chunk({ reasoning_content: 'b', reasoning_details: details }))).toBeNull();
    expect(stream.textFrame(chunk({ content: 'b' }))).toBeNull();
  });

  test('I3 texts and thoughts have a text frame in the open block of their kind', () => {
    const { copiedEvents } = convert(
      ...['a', 'b', 'c'].map((reasoning_content) => ({ reasoning_content })),
      ...['d', 'e', 'f'].map((content) => ({ content })),
      ...['g', 'h'].map((reasoning_content) => ({ reasoning_content })),
    );
    expect(copiedEvents).toBe(4);
  });

  test('I7 repeated signatures are all written', () => {
    const signed = (text: string) => ({
      reasoning_content: text,
      reasoning_details: [{ type: 'reasoning.text', text, signature: 's' }],
    });
    const { text } = convert(signed('a'), signed('b'), signed('c'));
    expect(readMessage(text).tokens).toHaveLength(3);
  });

  test('I3 text while a call is open waits on the fast path too', () => {
    const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{"a":' } };
    const more = { index: 0, function: { arguments: '1}' } };
    convert(
      { content: 'a' },
      { content: 'b' },
      { tool_calls: [call] },
      { content: 'c' },
      { content: 'd' },
      { tool_calls: [more] },
    );
  });
});

/** Tests the object of a non-streaming response: fragments are joined, and optional keys are absent instead of null. */
import { describe, expect, test } from 'vitest';
import type { ChatChunk, Delta, TextChunk } from '../../../src/canonical/chunk.ts';
import type { Usage } from '../../../src/canonical/usage.ts';
import { ChatJsonWriter } from '../../../src/protocols/openai-chat/json-writer.ts';

const BASE = { id: 'i', object: 'chat.completion.chunk', created: 1, model: 'p/m' } as const;
const USAGE: Usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };

function chunk(delta: Delta, more: Partial<ChatChunk> = {}, index = 0): ChatChunk {
  return { ...BASE, choices: [{ index, delta, logprobs: null, finish_reason: null }], ...more };
}

const STOP: ChatChunk = {
  ...BASE,
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
};

function build(...chunks: (ChatChunk | TextChunk)[]): string {
  const writer = new ChatJsonWriter();
  for (const one of chunks) writer.chunk(one);
  return writer.take();
}

/** The message of the first choice. */
const messageOf = (...deltas: Delta[]) =>
  JSON.parse(build(...deltas.map((delta) => chunk(delta)), STOP)).choices[0].message;

describe('ChatJsonWriter', () => {
  test('C1 U3 a chat completion has its keys in order, and nulls only in choices and messages', () => {
    const usage = { ...BASE, choices: [], usage: USAGE };
    expect(build(chunk({ role: 'assistant', content: 'a' }), chunk({ content: 'b' }), STOP, usage)).toBe(
      '{"id":"i","object":"chat.completion","created":1,"model":"p/m","choices":[{"index":0,' +
        '"message":{"role":"assistant","content":"ab","refusal":null},"logprobs":null,"finish_reason":"stop"}],' +
        '"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}',
    );
  });

  test('C1 takes service_tier and system_fingerprint from the last chunk, between model and choices', () => {
    const labelled = { ...STOP, service_tier: 't', system_fingerprint: 'f' };
    expect(build(chunk({ content: 'a' }), labelled)).toContain(
      '"model":"p/m","service_tier":"t","system_fingerprint":"f","choices"',
    );
  });

  test('C10 a text completion has its keys in order', () => {
    const text: TextChunk = {
      ...BASE,
      object: 'text_completion',
      system_fingerprint: 'f',
      choices: [{ index: 0, text: 'a', logprobs: null, finish_reason: 'stop' }],
      usage: USAGE,
    };
    expect(build(text)).toBe(
      '{"id":"i","object":"text_completion","created":1,"model":"p/m","system_fingerprint":"f",' +
        '"choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":"stop"}],' +
        '"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}',
    );
  });

  test('A7 joins streamed reasoning details of one type and index, last in the message', () => {
    const detail = (fields: object) => ({
      reasoning_details: [{ type: 'reasoning.text', index: 0, ...fields }],
    });
    const message = messageOf(
      { role: 'assistant', reasoning_content: 'a', ...detail({ text: 'a' }) },
      { reasoning_content: 'b', ...detail({ text: 'b' }) },
      detail({ signature: 's' }),
      { content: 'c' },
      { reasoning_details: [{ type: 'reasoning.encrypted', data: 'd', index: 1 }] },
    );
    expect(Object.keys(message)).toEqual([
      'role',
      'content',
      'reasoning_content',
      'refusal',
      'reasoning_details',
    ]);
    expect(message.reasoning_details).toEqual([
      { type: 'reasoning.text', index: 0, text: 'ab', signature: 's' },
      { type: 'reasoning.encrypted', data: 'd', index: 1 },
    ]);
  });

  test('A7 keeps the reasoning details of two choices apart', () => {
    const of = (text: string) => ({ reasoning_details: [{ type: 'reasoning.text', index: 0, text }] });
    const { choices } = JSON.parse(build(chunk(of('a')), chunk(of('b'), {}, 1), chunk(of('c'))));
    expect(choices.map(({ message }: { message: Delta }) => message.reasoning_details?.[0]?.text)).toEqual([
      'ac',
      'b',
    ]);
  });

  test('A7 extra_content is the last key of its call, whether it came with the first fragment or later', () => {
    const first = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } } as const;
    const { tool_calls } = messageOf(
      { tool_calls: [{ ...first, extra_content: { google: 1 } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
      { tool_calls: [{ ...first, index: 1, id: 'b' }] },
      { tool_calls: [{ index: 1, function: { arguments: '' }, extra_content: { google: 2 } }] },
      { tool_calls: [{ ...first, index: 2, id: 'c' }] },
    );
    const call = (id: string, args: string) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: args },
    });
    expect(tool_calls).toEqual([
      { ...call('a', '{}'), extra_content: { google: 1 } },
      { ...call('b', ''), extra_content: { google: 2 } },
      call('c', ''),
    ]);
    expect(Object.keys(tool_calls[0]).at(-1)).toBe('extra_content');
  });
});

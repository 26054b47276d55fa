/** Tests that the bench's check of outputs reports lost, duplicated and swapped frames, and accepts a correct output. */
import { describe, expect, test } from 'vitest';
import { bedrockConverse } from '../src/protocols/bedrock-converse/upstream-reader.ts';
import { type Conversion, convertStream } from '../test/contract/convert.ts';
import { problemOf } from './load/check.ts';
import { pacedBytes, pacedText } from './load/pacer.ts';
import { converseWire, streamText } from './streams.ts';

const UPSTREAM = streamText('deepseek', 50);
const EVENTS = UPSTREAM.split(/(?<=\n\n)/);

function without(at: number): string {
  return EVENTS.filter((_, i) => i !== at).join('');
}

describe('problemOf, a row that writes its own frames', () => {
  test('all chunks present: null', () => {
    expect(problemOf('frames', UPSTREAM, UPSTREAM)).toBeNull();
  });

  test.each<[name: string, client: string]>([
    ['a frame is lost', without(20)],
    ['a frame is repeated instead of another', EVENTS.with(20, EVENTS[19] ?? '').join('')],
    ['a text differs', UPSTREAM.replace('"content":" ', '"content":"_')],
    ['the finish is lost', UPSTREAM.replace('"finish_reason":"stop"', '"finish_reason":null')],
    ['the usage differs', UPSTREAM.replace('"total_tokens":5011', '"total_tokens":5012')],
    ['[DONE] is missing', without(EVENTS.length - 1)],
    ['the output is empty', ''],
  ])('%s: reported', (_, client) => {
    expect(client).not.toBe(UPSTREAM);
    expect(problemOf('frames', UPSTREAM, client)).not.toBeNull();
  });
});

test('problemOf, a row that passes bytes through: a changed byte is reported', () => {
  expect(problemOf('bytes', UPSTREAM, UPSTREAM)).toBeNull();
  expect(problemOf('bytes', UPSTREAM, UPSTREAM.replace('created', 'craeted'))).not.toBeNull();
});

describe.each([
  ['messages', 'anthropic'],
  ['responses', 'responses'],
] as const)('problemOf, the passthrough of %s', (treatment, stream) => {
  const upstream = streamText(stream, 50);
  const events = upstream.split(/(?<=\n\n)/);

  test('all events unchanged: null', () => {
    expect(problemOf(treatment, upstream, upstream)).toBeNull();
  });

  test.each<[name: string, client: string]>([
    ['an event is lost', events.toSpliced(20, 1).join('')],
    ['an event is repeated', events.toSpliced(20, 0, events[20] ?? '').join('')],
    ['a byte differs', upstream.replace('"delta":', '"dleta":')],
    ['the output is empty', ''],
  ])('%s: reported', (_, client) => {
    expect(client).not.toBe(upstream);
    expect(problemOf(treatment, upstream, client)).not.toBeNull();
  });
});

test.each([
  ['anthropic', 'messages', '"id":"msg'],
  ['responses', 'responses', '"id":"resp'],
] as const)('problemOf, the passthrough of %s: only the model’s name may differ', (kind, treatment, id) => {
  const upstream = streamText(kind, 50);
  const client = upstream.replaceAll(/"model":"[^"]*"/g, '"model":"provider/model"');
  expect(problemOf(treatment, upstream, client)).toBeNull();
  expect(problemOf(treatment, upstream, client.replace(id, '"id":"_'))).not.toBeNull();
});

describe('the streams of Converse', () => {
  const conversion: Conversion = {
    ...{ provider: 'converse', route: 'chat', model: 'm', usageChunk: false },
    protocol: bedrockConverse,
  };

  test('in bulk: what Weir writes of it passes the check', () => {
    const { text } = convertStream([Buffer.concat(converseWire(50))], conversion);
    expect(problemOf('frames', streamText('converse', 50), text)).toBeNull();
  });

  test('at a pace: the same, with the marks in its frames', () => {
    const marks = ['<#0000000:0000000000001#>', '<#0000001:0000000000002#>'];
    const bytes = Buffer.from(pacedBytes('converse', marks), 'latin1');
    const { text } = convertStream([bytes], conversion);
    expect(problemOf('frames', pacedText('converse', marks), text)).toBeNull();
  });
});

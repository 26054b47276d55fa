/** Hostile streams: the work that they cause grows linearly with the input, not quadratically (B1). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Conversion, convertStream } from '../contract/convert.ts';
import { BlockCounter } from './executed-blocks.ts';

const CHAT: Conversion = { provider: 'openai', route: 'chat', model: 'm', usageChunk: true };
/**
 * The allowed growth for twice the input: linear work is twice, quadratic work four times. Below 3, because each event
 * has linear work, too.
 */
const MAX_GROWTH = 2.4;

const MAX_RUNS = 12;

const encoder = new TextEncoder();

function event(choice: string, more = ''): string {
  return `data: {${more}"choices":[{"index":0,${choice}}]}\n\n`;
}

function repeat(count: number, text: (at: number) => string, separator = ''): string {
  return Array.from({ length: count }, (_, at) => text(at)).join(separator);
}

function call(at: number, more = ''): string {
  return `{"id":"call_${at}","function":{"name":"f","arguments":"{}"}${more}}`;
}

/** Streams whose size grows with a number, below the bounds at which a stream is refused. */
const STREAMS: Readonly<Record<string, readonly [small: number, stream: (size: number) => string]>> = {
  'comments without end': [2000, (size) => ': a\n'.repeat(size)],
  'empty events': [2000, (size) => 'data:\n\n'.repeat(size)],
  'one event in many lines': [2000, (size) => `data: {"choices":[]\n${'data: \n'.repeat(size)}data: }\n\n`],
  'many events of one word': [500, (size) => event('"delta":{"content":"a"}').repeat(size)],
  'many content parts': [
    1000,
    (size) => event(`"delta":{"content":[${repeat(size, () => '{"type":"text","text":"a"}', ',')}]}`),
  ],
  'many log probabilities': [
    1000,
    (size) =>
      event(`"delta":{"content":"a"},"logprobs":{"content":[${repeat(size, () => '{"token":"a"}', ',')}]}`),
  ],
  'many choices in one chunk': [
    2000,
    (size) =>
      `data: {"choices":[${repeat(size, (at) => `{"index":${at},"delta":{"content":"a"}}`, ',')}]}\n\n`,
  ],
  'many tool calls by their ids, in one chunk': [
    500,
    (size) => event(`"delta":{"tool_calls":[${repeat(size, (at) => call(at), ',')}]}`),
  ],
  'many tool calls by their ids, in a chunk each': [
    500,
    (size) => repeat(size, (at) => event(`"delta":{"tool_calls":[${call(at)}]}`)),
  ],
  'many tool calls by their indexes': [
    500,
    (size) => repeat(size, (at) => event(`"delta":{"tool_calls":[${call(at, `,"index":${at}`)}]}`)),
  ],
  'many fragments of one tool call': [
    500,
    (size) => repeat(size, () => event('"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}')),
  ],
};

describe('convertStream, its work', () => {
  let counter: BlockCounter;
  beforeAll(async () => {
    counter = await BlockCounter.start();
  });
  afterAll(() => counter[Symbol.dispose]());

  test.each(Object.entries(STREAMS))(
    'B1 %s: twice the input is not four times the work',
    async (_, [small, stream]) => {
      const work = (size: number) => {
        convertStream([encoder.encode(stream(size))], CHAT);
        return counter.take();
      };
      await counter.take();
      let growth = Number.POSITIVE_INFINITY;
      // Timers of other tests and the engine's own changes of a function move the counts of a run. Quadratic work grows in each run.
      for (let run = 0; run < MAX_RUNS && growth >= MAX_GROWTH; run++) {
        const once = await work(small);
        const twice = await work(small * 2);
        // The engine drops the counts of a function that it compiles again: such a run says nothing.
        if (once > small) growth = Math.min(growth, twice / once);
      }
      expect(growth).toBeLessThan(MAX_GROWTH);
    },
  );

  test.each(['id', 'model', 'service_tier', 'system_fingerprint'])(
    'B1 a long %s and many small chunks: twice the input is not four times the output',
    (field) => {
      function output(size: number): number {
        const first = event('"delta":{"content":"a"}', `"${field}":"${'x'.repeat(size * 50)}",`);
        const bytes = encoder.encode(first + event('"delta":{"content":"a"}').repeat(size));
        return convertStream([bytes], CHAT).text.length;
      }
      expect(output(1000)).toBeLessThan(output(500) * MAX_GROWTH);
    },
  );
});

/** Tests that frames with growing usage take the fast path, and that the usage is the reported one (A5, A8). */
import { describe, expect, test } from 'vitest';
import { geminiStart, geminiText } from '../../../bench/gemini-stream.ts';
import type { Conversion } from '../../contract/convert.ts';
import { cut } from '../../contract/convert.ts';
import { compareWays } from '../both-ways.ts';

const CONVERSION: Conversion = { provider: 'gemini', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

function streamOf(events: readonly string[], size: number) {
  return [...cut(encoder.encode(geminiStart() + events.join('')), size)];
}

describe('TemplateFastPath, frames with counts', () => {
  const texts = Array.from({ length: 200 }, (_, at) => geminiText(' a weir', at + 2));

  test.each([13, 400, 4096])('A8 in reads of %d bytes: all but the first two take the fast path', (size) => {
    const { copiedEvents } = compareWays(streamOf(texts, size), CONVERSION);
    expect(copiedEvents).toBeGreaterThan(texts.length - 3);
  });

  test('A5 truncated after a frame on the fast path: its counts are the last reported, even lower ones', () => {
    const events = [...texts, geminiText(' less', 3)];
    const { accumulator, error } = compareWays(streamOf(events, 4096), CONVERSION);
    expect(error?.code).toBe('upstream_truncated');
    expect(accumulator.countUsage()).toMatchObject({
      estimated: false,
      usage: {
        prompt_tokens: 11,
        completion_tokens: 606,
        completion_tokens_details: { reasoning_tokens: 603 },
      },
    });
  });

  test.each(['007', '1.5', '-1', '1e3', 'null'])(
    'A8 %s is not a count: the normal path reads it',
    (value) => {
      const odd = geminiText(' odd', 424_242).replace('424242', value);
      compareWays(streamOf([...texts.slice(0, 9), odd, ...texts.slice(9, 20)], 4096), CONVERSION);
    },
  );
});

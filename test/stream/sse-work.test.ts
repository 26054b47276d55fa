/** Counts the bytes that the SSE parser touches: they grow linearly with the stream's length, for every kind of stream (B1). */
import { describe, expect, test, vi } from 'vitest';
import { cut } from '../contract/convert.ts';
import { bytesOf, type Received, readAll } from './sse-events.ts';

const LENGTH = 64 * 1024;
/** Each byte may be searched for LF and CR, kept, joined and decoded. Quadratic work would be thousands of times this. */
const MAX_TOUCHES_A_BYTE = 8;

type Bytes = Uint8Array<ArrayBuffer>;

/** Runs the step and returns the number of bytes that typed arrays and decoders scanned, copied or decoded. */
function countTouches(step: () => void): number {
  let touched = 0;
  const typedArray: Bytes = Object.getPrototypeOf(Uint8Array.prototype);
  const { indexOf, slice, set, subarray } = typedArray;
  const { decode } = TextDecoder.prototype;
  const spies = [
    vi.spyOn(typedArray, 'indexOf').mockImplementation(function (this: Bytes, byte, from = 0) {
      const found = indexOf.call(this, byte, from);
      touched += (found < 0 ? this.length : found + 1) - from;
      return found;
    }),
    vi.spyOn(typedArray, 'slice').mockImplementation(function (this: Bytes, ...range) {
      const copy = slice.apply(this, range);
      touched += copy.length;
      return copy;
    }),
    vi.spyOn(typedArray, 'set').mockImplementation(function (this: Bytes, values, ...rest) {
      touched += values.length;
      return set.call(this, values, ...rest);
    }),
    vi.spyOn(typedArray, 'subarray').mockImplementation(function (this: Bytes, ...range) {
      touched += 1;
      return subarray.apply(this, range);
    }),
    vi.spyOn(TextDecoder.prototype, 'decode').mockImplementation(function (
      this: TextDecoder,
      ...[input, options]
    ) {
      touched += input?.byteLength ?? 0;
      return decode.call(this, input, options);
    }),
  ];
  try {
    step();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return touched;
}

describe('SseParser, its work', () => {
  test.each<[name: string, text: string, size: number, events: number]>([
    ['one long line in reads of one byte', `data: ${'a'.repeat(LENGTH)}\n\n`, 1, 1],
    ['one long line in reads of 100 bytes', `data: ${'a'.repeat(LENGTH)}\n\n`, 100, 1],
    ['one read full of LF', `data: a${'\n'.repeat(LENGTH)}`, LENGTH * 2, 1],
    ['one read full of CR', `data: a${'\r'.repeat(LENGTH)}`, LENGTH * 2, 1],
    ['one read of short events that end in lone CR', 'data: a\r\r'.repeat(LENGTH / 9), LENGTH, 7281],
    ['one read of short events that end in LF', 'data: a\n\n'.repeat(LENGTH / 9), LENGTH, 7281],
    ['one read of short events that end in CRLF', 'data: a\r\n\r\n'.repeat(LENGTH / 11), LENGTH, 5957],
    ['lone CR and then one LF at the end', `${'data: a\r\r'.repeat(LENGTH / 9)}\n`, LENGTH, 7281],
    ['one event in a line for each byte', `${'data:a\n'.repeat(LENGTH / 7)}\n`, 64, 1],
    ['comments alone', ': a\n'.repeat(LENGTH / 4), 3, 0],
  ])('B1 %s: each byte is touched at most a few times', (_, text, size, events) => {
    const bytes = bytesOf(text);
    const reads = [...cut(bytes, size)];
    let received: Received[] = [];
    const touched = countTouches(() => {
      received = readAll(reads);
    });
    expect(received).toHaveLength(events);
    // Blank lines between events are skipped without a call that could be counted.
    expect(touched).toBeGreaterThan(0);
    expect(touched).toBeLessThan(bytes.length * MAX_TOUCHES_A_BYTE);
  });
});

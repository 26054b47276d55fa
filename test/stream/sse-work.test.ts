/** Measures the SSE parser's CPU time: it grows linearly with the stream's length, for every kind of stream (B1). */
import { describe, expect, test } from 'vitest';
import { cut } from '../contract/convert.ts';
import { bytesOf, readAll } from './sse-events.ts';

const LENGTH = 32 * 1024;
const FACTOR = 8;
/** Linear work takes 8 times the time for 8 times the length, quadratic work 64 times. */
const MAX_GROWTH = 3 * FACTOR;
/** Quadratic work over a quarter of a megabyte takes seconds. Below this, other work of the process is in the measurement. */
const NEGLIGIBLE_MS = 30;
const ROUNDS = 3;

/** The parser's CPU time over a stream, in ms: the least of a few rounds, because other threads of the process count, too. */
function cpuMs(reads: readonly Uint8Array[], events: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    const received = readAll(reads);
    const { user, system } = process.cpuUsage(before);
    expect(received).toHaveLength(events);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

describe('SseParser, its work', () => {
  test.each<[name: string, text: (length: number) => string, size: number, bytesOfAnEvent: number | null]>([
    ['one long line in reads of one byte', (length) => `data: ${'a'.repeat(length)}\n\n`, 1, null],
    ['one long line in reads of 100 bytes', (length) => `data: ${'a'.repeat(length)}\n\n`, 100, null],
    ['one read full of LF', (length) => `data: a${'\n'.repeat(length)}`, 1e9, null],
    ['one read full of CR', (length) => `data: a${'\r'.repeat(length)}`, 1e9, null],
    ['one read of short events that end in lone CR', (length) => 'data: a\r\r'.repeat(length / 9), 1e9, 9],
    ['one read of short events that end in LF', (length) => 'data: a\n\n'.repeat(length / 9), 1e9, 9],
    ['one read of short events that end in CRLF', (length) => 'data: a\r\n\r\n'.repeat(length / 11), 1e9, 11],
    ['lone CR and then one LF at the end', (length) => `${'data: a\r\r'.repeat(length / 9)}\n`, 1e9, 9],
    ['one event in a line for each byte', (length) => `${'data:a\n'.repeat(length / 7)}\n`, 64, null],
    ['comments and one event', (length) => `${': a\n'.repeat(length / 4)}data: a\n\n`, 3, null],
  ])('B1 %s: eight times the length takes about eight times as long', (_, text, size, bytesOfAnEvent) => {
    const time = (length: number) => {
      const events = bytesOfAnEvent === null ? 1 : Math.floor(length / bytesOfAnEvent);
      return cpuMs([...cut(bytesOf(text(length)), size)], events);
    };
    const short = time(LENGTH);
    expect(time(LENGTH * FACTOR)).toBeLessThan(Math.max(NEGLIGIBLE_MS, short * MAX_GROWTH));
  });
});

/** Tests large events in an isolate without free memory: the stream waits, or ends with an error (B3). */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { MAX_MEMORY_BYTES, MAX_MEMORY_WAIT_MS, Memory, SMALL_BYTES } from '../../src/stream/memory.ts';
import { FakeClock } from './fake-clock.ts';
import { bodyOf, DONE, HELLO, readAll, run, STOP, settle } from './stream-bench.ts';

const LARGE_TEXT = 'x'.repeat(SMALL_BYTES * 2);
const LARGE = `data: {"choices":[{"index":0,"delta":{"content":"${LARGE_TEXT}"}}]}\n\n`;

/** Its buffer is larger than all else that a run leaves for the next collection. */
const LARGER_TEXT = 'x'.repeat(1000 * 1000);
const LARGER = `data: {"choices":[{"index":0,"delta":{"content":"${LARGER_TEXT}"}}]}\n\n`;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** A clock, and a memory that another grant holds completely. */
async function fullMemory() {
  const clock = new FakeClock();
  const memory = new Memory(clock);
  const other = await memory.grant(MAX_MEMORY_BYTES, () => {});
  other?.markReceived();
  return { clock, memory, other };
}

describe('ClientStream, a large event', () => {
  test('B3 while others hold the memory: waits, and continues completely when there is room', async () => {
    const { clock, memory, other } = await fullMemory();
    const { readable, ends } = run(bodyOf(HELLO + LARGE + STOP + DONE), {}, clock, memory);
    const got = readAll(readable);
    await settle();
    expect(ends).toEqual([]);
    other?.release();
    expect(await got).toContain(`"content":"${LARGE_TEXT}"`);
    expect(ends).toMatchObject([{ outcome: { kind: 'done' } }]);
  });

  test('B3 E2 without room in time: earlier output, an error frame, and the end', async () => {
    const { clock, memory } = await fullMemory();
    const { readable, ends } = run(bodyOf(HELLO + LARGE + STOP + DONE), {}, clock, memory);
    const got = readAll(readable);
    await settle();
    clock.advance(MAX_MEMORY_WAIT_MS);
    const text = await got;
    expect(text).toContain('Hello');
    expect(text.endsWith(`"code":"overloaded"}}\n\n${DONE}`)).toBe(true);
    expect(ends).toMatchObject([{ outcome: { kind: 'failed', reason: 'body' }, isOpen: true }]);
  });

  test.each([
    ['until then', {}, 'body'],
    ['beyond the deadline', { deadlineMs: 1000 }, 'deadline'],
  ])(
    'B3 a client that does not take it, %s: keeps the memory until others need it, and loses the rest',
    async (_, limits, reason) => {
      const clock = new FakeClock();
      const memory = new Memory(clock);
      const { readable, ends } = run(bodyOf(LARGE, LARGE, LARGE), limits, clock, memory);
      await settle();
      clock.advance(1000);
      await settle();
      const other = memory.grant(MAX_MEMORY_BYTES, () => {});
      clock.advance(MAX_MEMORY_WAIT_MS);
      await settle();
      expect(await other).not.toBe(null);
      await expect(readAll(readable)).rejects.toThrow('Too many large events');
      expect(ends).toMatchObject([{ outcome: { kind: 'failed', reason } }]);
    },
  );

  test('B3 small events: do not wait', async () => {
    const { clock, memory } = await fullMemory();
    const { readable, ends } = run(bodyOf(HELLO + STOP + DONE), {}, clock, memory);
    expect(await readAll(readable)).toContain('Hello');
    expect(ends).toMatchObject([{ outcome: { kind: 'done' } }]);
  });

  test.each([
    ['finished', STOP + DONE],
    ['cut within the next large event', LARGE.slice(0, -10)],
    ['failed', 'data: {"error":{"message":"no"}}\n\n'],
  ])('B3 a stream that %s: releases its memory', async (_, end) => {
    const clock = new FakeClock();
    const memory = new Memory(clock);
    const { readable } = run(bodyOf(LARGE + LARGE + end), {}, clock, memory);
    await readAll(readable);
    expect(await memory.grant(MAX_MEMORY_BYTES, () => {})).not.toBe(null);
  });

  test.each([
    ['is cut within a large event', LARGER.slice(0, -10)],
    ['fails with a large event', `data: {"error":{"message":"no","data":"${LARGER_TEXT}"}}\n\n`],
  ])(
    'B3 a stream that %s: its buffer is freed with the grant, not by a later collection',
    async (_, body) => {
      const clock = new FakeClock();
      const input = bodyOf(body);
      collectGarbage();
      const before = process.memoryUsage().arrayBuffers;
      const { readable, ends } = run(input, {}, clock, new Memory(clock));
      await readAll(readable);
      expect(ends).toMatchObject([{ outcome: { kind: 'failed' } }]);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(LARGER.length / 2);
    },
  );
});

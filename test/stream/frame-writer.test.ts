/** Tests the shared output memory: taken bytes do not change until they are released. */
import { describe, expect, test } from 'vitest';
import { FrameWriter } from '../../src/stream/frame-writer.ts';
import { decoder } from './stream-bench.ts';

/** More than the memory that streams share holds. */
const LARGER_THAN_SHARED = 100_000;

function frameOf(json: string): string {
  return `data: ${json}\n\n`;
}

/** What a writer takes after one frame of that JSON. */
function takeOne(writer: FrameWriter, json: string): Uint8Array {
  writer.vendor(json);
  return writer.take();
}

describe('FrameWriter', () => {
  test('taken and not released: the same bytes, however much other streams write', () => {
    const [slow, other] = [new FrameWriter('data'), new FrameWriter('data')];
    const kept = takeOne(slow, '{"type":"x_kept"}');
    for (let at = 0; at < 10_000; at++) {
      const bytes = takeOne(other, `{"type":"x_other","at":${at}}`);
      expect(decoder.decode(bytes)).toBe(frameOf(`{"type":"x_other","at":${at}}`));
      other.release(bytes);
    }
    expect(decoder.decode(kept)).toBe(frameOf('{"type":"x_kept"}'));
  });

  test('all released: the same memory from its start, so that nothing is left to collect', () => {
    const writer = new FrameWriter('data');
    // Uses up what other tests left of it: a new memory follows.
    writer.release(takeOne(writer, JSON.stringify('a'.repeat(20_000))));
    const first = takeOne(writer, '{"type":"x_first"}');
    writer.release(first);
    const second = takeOne(writer, '{"type":"x_second"}');
    expect(second.buffer).toBe(first.buffer);
    expect(second.byteOffset).toBe(first.byteOffset);
  });

  test('one of two released: the other one is not overwritten', () => {
    const writer = new FrameWriter('data');
    const [first, second] = [takeOne(writer, '{"type":"x_first"}'), takeOne(writer, '{"type":"x_second"}')];
    writer.release(second);
    takeOne(writer, '{"type":"x_third"}');
    expect(decoder.decode(first)).toBe(frameOf('{"type":"x_first"}'));
  });

  test('released after the memory was replaced: the new content is not overwritten', () => {
    const writer = new FrameWriter('data');
    const old = takeOne(writer, '{"type":"x_old"}');
    const taken: Uint8Array[] = [];
    while (taken.at(-1)?.buffer === old.buffer || taken.length === 0) {
      taken.push(takeOne(writer, JSON.stringify('b'.repeat(1_000))));
    }
    const [newest] = taken.slice(-1);
    for (const bytes of [old, ...taken.slice(0, -1)]) writer.release(bytes);
    takeOne(writer, '{"type":"x_next"}');
    expect(decoder.decode(newest)).toBe(frameOf(JSON.stringify('b'.repeat(1_000))));
  });

  test('frames larger than the shared memory: whole, after the ones before, and whole again after', () => {
    const writer = new FrameWriter('data');
    const large = JSON.stringify('c'.repeat(LARGER_THAN_SHARED));
    writer.vendor('{"type":"x_before"}');
    writer.vendor(large);
    writer.vendor('{"type":"x_behind"}');
    const bytes = writer.take();
    const text = frameOf('{"type":"x_before"}') + frameOf(large) + frameOf('{"type":"x_behind"}');
    expect(decoder.decode(bytes)).toBe(text);
    writer.release(bytes);
    const next = takeOne(writer, '{"type":"x_next"}');
    expect(decoder.decode(next)).toBe(frameOf('{"type":"x_next"}'));
    expect(decoder.decode(bytes)).toBe(text);
  });
});

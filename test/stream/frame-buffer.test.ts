/** Tests the shared output memory: taken bytes do not change until they are released. */
import { describe, expect, test } from 'vitest';
import { FrameBuffer } from '../../src/stream/buffers.ts';
import { decoder, encoder } from './stream-bench.ts';

const MAX_EVENT_BYTES = 1024 * 1024;
/** More than the shared slab holds. */
const LARGER_THAN_SHARED = 100_000;

function frameOf(json: string): string {
  return `data: ${json}\n\n`;
}

/** The bytes of an output after one frame of this JSON. */
function takeOne(output: FrameBuffer, json: string): Uint8Array {
  output.frame('data: ', json);
  return output.take();
}

describe('FrameBuffer', () => {
  test('taken and not released: the bytes do not change, however much other streams write', () => {
    const [slow, other] = [new FrameBuffer(MAX_EVENT_BYTES), new FrameBuffer(MAX_EVENT_BYTES)];
    const kept = takeOne(slow, '{"type":"x_kept"}');
    for (let at = 0; at < 10_000; at++) {
      const bytes = takeOne(other, `{"type":"x_other","at":${at}}`);
      expect(decoder.decode(bytes)).toBe(frameOf(`{"type":"x_other","at":${at}}`));
      other.release(bytes);
    }
    expect(decoder.decode(kept)).toBe(frameOf('{"type":"x_kept"}'));
  });

  test('all released: the slab is reused from its start', () => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    // Uses up the rest of the slab, so that a new one follows.
    output.release(takeOne(output, JSON.stringify('a'.repeat(20_000))));
    const first = takeOne(output, '{"type":"x_first"}');
    output.release(first);
    const second = takeOne(output, '{"type":"x_second"}');
    expect(second.buffer).toBe(first.buffer);
    expect(second.byteOffset).toBe(first.byteOffset);
  });

  test('one of two released: the other one is not overwritten', () => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    const [first, second] = [takeOne(output, '{"type":"x_first"}'), takeOne(output, '{"type":"x_second"}')];
    output.release(second);
    takeOne(output, '{"type":"x_third"}');
    expect(decoder.decode(first)).toBe(frameOf('{"type":"x_first"}'));
  });

  test('an empty output taken while another stream has just written: what follows is not written over it', () => {
    const [writing, empty, next] = [0, 0, 0].map(() => new FrameBuffer(MAX_EVENT_BYTES));
    takeOne(new FrameBuffer(MAX_EVENT_BYTES), '{"type":"x_before"}');
    const kept = writing && takeOne(writing, '{"type":"x_kept"}');
    expect(empty?.take()).toHaveLength(0);
    next?.text('data: {"type":"x_next_and_longer_than_the_one_before"}\n\n');
    next?.take();
    expect(decoder.decode(kept)).toBe(frameOf('{"type":"x_kept"}'));
  });

  test('released after the memory was replaced: the new content is not overwritten', () => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    const old = takeOne(output, '{"type":"x_old"}');
    const taken: Uint8Array[] = [];
    while (taken.at(-1)?.buffer === old.buffer || taken.length === 0) {
      taken.push(takeOne(output, JSON.stringify('b'.repeat(1_000))));
    }
    const [newest] = taken.slice(-1);
    for (const bytes of [old, ...taken.slice(0, -1)]) output.release(bytes);
    takeOne(output, '{"type":"x_next"}');
    expect(decoder.decode(newest)).toBe(frameOf(JSON.stringify('b'.repeat(1_000))));
  });

  test('frames larger than the slab: complete, in order, and freed after they are sent', () => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    const large = JSON.stringify('c'.repeat(LARGER_THAN_SHARED));
    output.frame('data: ', '{"type":"x_before"}');
    output.frame('data: ', large);
    output.frame('data: ', '{"type":"x_behind"}');
    const bytes = output.take();
    const text = frameOf('{"type":"x_before"}') + frameOf(large) + frameOf('{"type":"x_behind"}');
    expect(decoder.decode(bytes)).toBe(text);
    output.release(bytes);
    const next = takeOne(output, '{"type":"x_next"}');
    expect(decoder.decode(next)).toBe(frameOf('{"type":"x_next"}'));
    // Its memory was freed.
    expect(bytes.length).toBe(0);
  });
});

describe('FrameBuffer.splice', () => {
  const literal = (text: string) => encoder.encode(text);

  test.each([
    ['one literal: no text', ['abc'], 'abc'],
    ['two literals: the text between them', ['<', '>'], '<é🌊>'],
    ['three literals: the text twice', ['<', '|', '>'], '<é🌊|é🌊>'],
    ['literals that are empty: the text alone, twice', ['', '', ''], 'é🌊é🌊'],
  ])('%s', (_, literals, written) => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    const source = encoder.encode('..é🌊..');
    output.splice(literals.map(literal), source, 2, source.length - 2);
    expect(decoder.decode(output.take())).toBe(written);
  });

  test('a text that is too long for the loop, three times: complete, after the earlier frames', () => {
    const output = new FrameBuffer(MAX_EVENT_BYTES);
    const text = 'ab'.repeat(LARGER_THAN_SHARED);
    output.frame('data: ', '{}');
    output.splice(['1', '2', '3', '4'].map(literal), encoder.encode(text), 0, text.length);
    expect(decoder.decode(output.take())).toBe(`${frameOf('{}')}1${text}2${text}3${text}4`);
  });
});

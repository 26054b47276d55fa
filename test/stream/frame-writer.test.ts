/** Tests the shared output memory: taken bytes do not change until they are released. */
import { describe, expect, test } from 'vitest';
import { FrameWriter } from '../../src/stream/frame-writer.ts';
import { decoder, encoder } from './stream-bench.ts';

const MAX_EVENT_BYTES = 1024 * 1024;
/** More than the memory that streams share holds. */
const LARGER_THAN_SHARED = 100_000;

function frameOf(json: string): string {
  return `data: ${json}\n\n`;
}

/** What a writer takes after one frame of that JSON. */
function takeOne(writer: FrameWriter, json: string): Uint8Array {
  writer.vendor(json, '');
  return writer.take();
}

describe('FrameWriter', () => {
  test('taken and not released: the same bytes, however much other streams write', () => {
    const [slow, other] = [
      new FrameWriter('data', MAX_EVENT_BYTES),
      new FrameWriter('data', MAX_EVENT_BYTES),
    ];
    const kept = takeOne(slow, '{"type":"x_kept"}');
    for (let at = 0; at < 10_000; at++) {
      const bytes = takeOne(other, `{"type":"x_other","at":${at}}`);
      expect(decoder.decode(bytes)).toBe(frameOf(`{"type":"x_other","at":${at}}`));
      other.release(bytes);
    }
    expect(decoder.decode(kept)).toBe(frameOf('{"type":"x_kept"}'));
  });

  test('all released: the same memory from its start, so that nothing is left to collect', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    // Uses up what other tests left of it: a new memory follows.
    writer.release(takeOne(writer, JSON.stringify('a'.repeat(20_000))));
    const first = takeOne(writer, '{"type":"x_first"}');
    writer.release(first);
    const second = takeOne(writer, '{"type":"x_second"}');
    expect(second.buffer).toBe(first.buffer);
    expect(second.byteOffset).toBe(first.byteOffset);
  });

  test('one of two released: the other one is not overwritten', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    const [first, second] = [takeOne(writer, '{"type":"x_first"}'), takeOne(writer, '{"type":"x_second"}')];
    writer.release(second);
    takeOne(writer, '{"type":"x_third"}');
    expect(decoder.decode(first)).toBe(frameOf('{"type":"x_first"}'));
  });

  test('released after the memory was replaced: the new content is not overwritten', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
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

  test('frames larger than the shared memory: whole, after the ones before, and given back when they are sent', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    const large = JSON.stringify('c'.repeat(LARGER_THAN_SHARED));
    writer.vendor('{"type":"x_before"}', '');
    writer.vendor(large, '');
    writer.vendor('{"type":"x_behind"}', '');
    const bytes = writer.take();
    const text = frameOf('{"type":"x_before"}') + frameOf(large) + frameOf('{"type":"x_behind"}');
    expect(decoder.decode(bytes)).toBe(text);
    writer.release(bytes);
    const next = takeOne(writer, '{"type":"x_next"}');
    expect(decoder.decode(next)).toBe(frameOf('{"type":"x_next"}'));
    // Its memory was given back.
    expect(bytes.length).toBe(0);
  });

  test('V2 a vendor event with a name: its event line stands before its data, on one line', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    writer.vendor('{"a":\n1}', 'x_a.b');
    writer.vendor('{"type":"x_c"}', '');
    expect(decoder.decode(writer.take())).toBe('event: x_a.b\ndata: {"a":1}\n\ndata: {"type":"x_c"}\n\n');
  });
});

describe('FrameWriter.splice', () => {
  const literal = (text: string) => encoder.encode(text);

  test.each([
    ['one literal: no text', ['abc'], 'abc'],
    ['two literals: the text between them', ['<', '>'], '<é🌊>'],
    ['three literals: the text twice', ['<', '|', '>'], '<é🌊|é🌊>'],
    ['literals that are empty: the text alone, twice', ['', '', ''], 'é🌊é🌊'],
  ])('%s', (_, literals, written) => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    const source = encoder.encode('..é🌊..');
    writer.splice(literals.map(literal), source, 2, source.length - 2);
    expect(decoder.decode(writer.take())).toBe(written);
  });

  test('a text longer than what is copied byte by byte, three times: whole, behind the frames before it', () => {
    const writer = new FrameWriter('data', MAX_EVENT_BYTES);
    const text = 'ab'.repeat(LARGER_THAN_SHARED);
    writer.vendor('{}', '');
    writer.splice(['1', '2', '3', '4'].map(literal), encoder.encode(text), 0, text.length);
    expect(decoder.decode(writer.take())).toBe(`${frameOf('{}')}1${text}2${text}3${text}4`);
  });
});

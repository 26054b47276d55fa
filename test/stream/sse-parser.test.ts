/** Tests the SSE parser against the WHATWG specification, with one leniency and one bound. */
import { describe, expect, test } from 'vitest';
import { cut } from '../contract/convert.ts';
import { bytesOf, type Received, read, readAll, readText } from './sse-events.ts';

describe('SseParser, lines', () => {
  test.each<[name: string, text: string]>([
    ['LF', 'data: a\n\ndata: b\n\n'],
    ['CR', 'data: a\r\rdata: b\r\r'],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n'],
    ['LF then CR', 'data: a\n\rdata: b\n\r'],
    ['CR then CRLF', 'data: a\r\r\ndata: b\r\r\n'],
    ['CRLF then LF', 'data: a\r\n\ndata: b\r\n\n'],
    ['all three in one stream', 'data: a\r\n\rdata: b\n\r\n'],
  ])('S1 line ends %s: two events at any split of the bytes', (_, text) => {
    const expected: Received[] = [
      ['', 'a'],
      ['', 'b'],
    ];
    const bytes = bytesOf(text);
    for (let size = 1; size <= bytes.length; size++) {
      expect(read(cut(bytes, size)), `reads of ${size} bytes`).toEqual({
        received: expected,
        receivedAtEnd: [],
      });
    }
  });

  test('S1 CRLF split between reads: one line end', () => {
    const reads = ['data: a\r', '\ndata: b\r', '\n\r', '\n'].map(bytesOf);
    expect(read(reads).received).toEqual([['', 'a\nb']]);
  });

  test('S1 an empty read between CR and LF: one line end', () => {
    const reads = ['data: a\r', '', '\ndata: b\n\n'].map(bytesOf);
    expect(read(reads).received).toEqual([['', 'a\nb']]);
  });

  test('S1 a BOM at the head: is not part of the first field, whole or split', () => {
    const bytes = bytesOf('\uFEFFdata: a\n\n');
    for (const size of [1, 2, 3, bytes.length]) expect(readAll(cut(bytes, size))).toEqual([['', 'a']]);
  });

  test('S1 a BOM anywhere else: is kept', () => {
    expect(readText('data: \uFEFFa\n\n\uFEFFdata: b\n\ndata: c\n\n')).toEqual([
      ['', '\uFEFFa'],
      ['', 'c'],
    ]);
    expect(readText('\uFEFF\uFEFFdata: a\n\n')).toEqual([]);
  });

  test('S1 characters of two, three and four bytes, split anywhere: are complete', () => {
    const bytes = bytesOf('data: é€𝄞\n\nevent: x_ß\ndata: 日本\n\n');
    for (let size = 1; size < bytes.length; size++) {
      expect(readAll(cut(bytes, size))).toEqual([
        ['', 'é€𝄞'],
        ['x_ß', '日本'],
      ]);
    }
  });

  test('S1 bytes that are not UTF-8: become U+FFFD and affect no other line', () => {
    const bytes = Uint8Array.from([...bytesOf('data: a'), 0xff, ...bytesOf('b\n\ndata: c\n\n')]);
    expect(readAll([bytes])).toEqual([
      ['', 'a\uFFFDb'],
      ['', 'c'],
    ]);
  });
});

describe('SseParser, fields', () => {
  test.each<[name: string, text: string, received: Received[]]>([
    ['data with one space: the space is dropped', 'data: a\n\n', [['', 'a']]],
    ['data with two spaces: one stays', 'data:  a\n\n', [['', ' a']]],
    ['data with a tab: it stays', 'data:\ta\n\n', [['', '\ta']]],
    ['data without a space: all is value', 'data:a\n\n', [['', 'a']]],
    ['data in several lines: joined by LF', 'data: a\ndata:b\ndata:  c\n\n', [['', 'a\nb\n c']]],
    ['data without a colon: an empty line of data', 'data\ndata\n\n', [['', '\n']]],
    ['colons in data: stay', 'data: {"a":":"}\n\n', [['', '{"a":":"}']]],
    ['a comment: no event', ': data: a\n:\n\n', []],
    ['a comment between data lines: does not separate them', 'data: a\n: x\ndata: b\n\n', [['', 'a\nb']]],
    ['id, retry and unknown fields: ignored', 'id: 1\nretry: 2\nfoo: 3\nbar\ndata: a\n\n', [['', 'a']]],
    ['`database:` and `dat`: are not data', 'database: a\ndat: b\ndata: c\n\n', [['', 'c']]],
    ['`data` after a space: is not data', ' data: a\n\n', []],
    ['`Data`: names are case-sensitive', 'Data: a\n\n', []],
    ['an event name: comes with the data', 'event: error\ndata: a\n\n', [['error', 'a']]],
    ['an event name after the data: comes too', 'data: a\nevent:x_b\n\n', [['x_b', 'a']]],
    ['two event names: the last counts', 'event: a\nevent: b\ndata: c\n\n', [['b', 'c']]],
    ['`event` without a colon: resets the name', 'event: a\nevent\ndata: c\n\n', [['', 'c']]],
    ['`events:`: is not a name', 'events: a\ndata: c\n\n', [['', 'c']]],
    ['a name without data: no event, and the next has none', 'event: a\n\ndata: b\n\n', [['', 'b']]],
    ['many blank lines: no event', '\n\n\ndata: a\n\n\n\n', [['', 'a']]],
  ])('S1 %s', (_, text, received) => {
    expect(readText(text)).toEqual(received);
  });

  test('S1 the example of the specification with empty data: each block with a data line is an event', () => {
    expect(readText('data\n\ndata\ndata\n\ndata:\n\n')).toEqual([
      ['', ''],
      ['', '\n'],
      ['', ''],
    ]);
  });
});

describe('SseParser, the end', () => {
  test.each([
    ['its blank line', 'data: a\ndata: b\n'],
    ['its line end', 'data: a\ndata: b'],
    ['the LF of its CRLF', 'data: a\r\ndata: b\r'],
  ])('S2 a last event without %s: still counts, once', (_, text) => {
    expect(read([bytesOf(text)])).toEqual({ received: [], receivedAtEnd: [['', 'a\nb']] });
  });

  test('S2 a stream that ended with a blank line: its end adds no event', () => {
    expect(read([bytesOf('event: a\ndata: b\n\n')])).toEqual({ received: [['a', 'b']], receivedAtEnd: [] });
  });

  test('S2 a last line with only a name: no event', () => {
    expect(readText('data: a\n\nevent: error')).toEqual([['', 'a']]);
  });
});

describe('SseParser, the bound', () => {
  const MAX = 100;
  const line = (bytes: number) => `data: ${'a'.repeat(bytes - 'data: '.length)}`;
  const SIZES = [1, 7, MAX, MAX + 1, 1_000];

  test('B1 a line of exactly the bound: passes, and one byte more is too large, in any reads', () => {
    for (const size of SIZES) {
      expect(readAll(cut(bytesOf(`${line(MAX)}\n\n`), size), MAX)).toEqual([['', 'a'.repeat(MAX - 6)]]);
      expect(readAll(cut(bytesOf(`${line(MAX + 1)}\n\n`), size), MAX)).toEqual(['too large']);
    }
  });

  test('B1 an event of exactly the bound in several lines: passes, and one byte more is too large', () => {
    for (const size of SIZES) {
      const whole = `${line(60)}\n${line(40)}\n\n`;
      expect(readAll(cut(bytesOf(whole + whole), size), MAX)).toHaveLength(2);
      expect(readAll(cut(bytesOf(`${line(60)}\n${line(41)}\n\n`), size), MAX)).toEqual(['too large']);
    }
  });

  test('B1 the bound counts bytes, not characters', () => {
    expect(readText(`data: ${'€'.repeat(31)}\n\n`, MAX)).toHaveLength(1);
    expect(readText(`data: ${'€'.repeat(32)}\n\n`, MAX)).toEqual(['too large']);
  });

  test.each<[name: string, piece: string]>([
    ['one endless line of data', 'data: aaaa'],
    ['endless data lines', 'data: a\n'],
    ['endless empty data lines', 'data\n'],
    ['an endless comment', ': aaaa'],
    ['an endless line of an unknown field', 'foo: aaaa'],
    ['an endless event name', 'event: aaaa'],
  ])('B1 %s, in pieces: too large, reported once, and nothing is read after it', (_, piece) => {
    const reads = [...Array.from({ length: MAX }, () => bytesOf(piece)), bytesOf('\n\ndata: b\n\n')];
    expect(readAll(reads, MAX)).toEqual(['too large']);
  });

  test('B1 a long line after the data lines of one event: counts with them', () => {
    const reads = [line(60), `\n: ${'a'.repeat(39)}`, '\n\n'].map(bytesOf);
    expect(readAll(reads, MAX)).toEqual(['too large']);
  });

  test('B1 a comment longer than the bound: the same in one read as in many', () => {
    const bytes = bytesOf(`: ${'a'.repeat(MAX)}\n\ndata: b\n\n`);
    expect(readAll([bytes], MAX)).toEqual(readAll(cut(bytes, 1), MAX));
  });

  test('B1 many events, each within the bound: all pass, because reported events are not kept', () => {
    const text = `event: x_a\n: comment\n${line(MAX)}\n\n`.repeat(20);
    for (const size of SIZES) expect(readAll(cut(bytesOf(text), size), MAX)).toHaveLength(20);
  });
});

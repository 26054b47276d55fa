/** Tests the parser of AWS's event streams against AWS's own codec: recordings, every cut, every damaged byte, and hostile lengths. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { crc32 as zlibCrc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { crc32, KnownBytes } from '../../src/stream/crc32.ts';
import { EventStreamParser } from '../../src/stream/eventstream-parser.ts';
import { cut } from '../contract/convert.ts';
import { codec, decode, event, joined, message, parse } from './eventstream-messages.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/streams/bedrock/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';
const recordings = existsSync(FOLDER)
  ? readdirSync(FOLDER)
      .filter((name) => name.endsWith('.bin') && !name.includes('broken'))
      .map((name) => ({ name, bytes: new Uint8Array(readFileSync(FOLDER + name)) }))
  : [];

const TEXT = event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'é€𝄞' }, p: 'abc' });
const STOP = event('messageStop', { stopReason: 'end_turn' });

describe('crc32', () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, at) => (at * 89) ^ (at >> 3));
  const view = new DataView(bytes.buffer);

  test('S4 any length, whole or in two parts: is the checksum of zlib', () => {
    for (let to = 0; to <= bytes.length; to++) {
      const expected = zlibCrc32(bytes.subarray(3, Math.max(3, to)));
      expect(crc32(view, 3, Math.max(3, to))).toBe(expected);
      const middle = Math.min(Math.max(3, to), 3 + (to % 11));
      expect(crc32(view, middle, Math.max(3, to), crc32(view, 3, middle))).toBe(expected);
    }
  });

  test('S4 bytes whose checksum is known, of any length behind any others: the checksum of both is that of zlib', () => {
    for (let from = 0; from <= 256; from += 1) {
      const to = Math.min(bytes.length, from + 1 + ((from * 7) % 90));
      const known = new KnownBytes(to - from, crc32(view, from, to));
      expect(known.after(crc32(view, 0, from))).toBe(zlibCrc32(bytes.subarray(0, to)));
      expect(known.after(0xffff_ffff)).toBe(zlibCrc32(bytes.subarray(from, to), 0xffff_ffff));
    }
  });
});

describe('EventStreamParser, messages with the same headers', () => {
  const before = joined(Array.from({ length: 40 }, (_, at) => event('contentBlockDelta', { at })));
  const own = event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'é' } });
  const after = joined([event('messageStop', {}), own, own]);

  test('S4 many of them, then others: each is as AWS’s codec reads it, in reads of any size', () => {
    const bytes = joined([before, own, after, before, own]);
    for (const size of [bytes.length, 1, 7, 1000]) expect(parse(cut(bytes, size))).toEqual(decode(bytes));
  });

  test('S4 behind many of them one bit flipped anywhere gives the messages before it and an error', () => {
    const expected = [...decode(before), 'corrupt'];
    for (let bit = 0; bit < own.length * 8; bit++) {
      const damaged = own.slice();
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const received = parse([joined([before, damaged, after])]);
      if (!isDeepStrictEqual(received, expected)) expect(received, `bit ${bit}`).toEqual(expected);
    }
  });
});

describe(`EventStreamParser, recordings${note}`, () => {
  test.each(recordings)(
    'S4 $name: each message is as AWS’s codec reads it, whole and in reads of one byte',
    ({ bytes }) => {
      const expected = decode(bytes);
      expect(expected.length).toBeGreaterThan(1);
      expect(parse([bytes])).toEqual(expected);
      expect(parse(cut(bytes, 1))).toEqual(expected);
    },
  );

  test.each(recordings)('S4 $name: each message cut in two at every byte is the same', ({ bytes }) => {
    for (const { before, own, after } of neighbors(bytes)) {
      const expected = decode(joined([before, own, after]));
      for (let at = 0; at <= own.length; at++) {
        const reads = [joined([before, own.subarray(0, at)]), joined([own.subarray(at), after])];
        if (!isDeepStrictEqual(parse(reads), expected)) expect(parse(reads), `at ${at}`).toEqual(expected);
      }
    }
  });

  test.each(recordings)(
    'S4 $name: one bit flipped anywhere gives the messages before it and an error',
    ({ bytes }) => {
      for (const { before, own, after } of neighbors(bytes)) {
        const expected = [...decode(before), 'corrupt'];
        for (let at = 0; at < own.length; at++) {
          const damaged = own.slice();
          damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
          const received = parse([joined([before, damaged, after])]);
          if (!isDeepStrictEqual(received, expected)) expect(received, `byte ${at}`).toEqual(expected);
        }
      }
    },
  );

  test.skipIf(note !== '')(
    'S4 a recording with a wrong checksum in its prelude: no message, but an error',
    () => {
      expect(parse([new Uint8Array(readFileSync(`${FOLDER}bedrock--agw-broken.bin`))])).toEqual(['corrupt']);
    },
  );
});

describe('EventStreamParser, headers', () => {
  test('S4 a message with its event type alone, and one with headers of every type: the same event', () => {
    const typed = codec.encode({
      headers: {
        a: { type: 'boolean', value: true },
        b: { type: 'boolean', value: false },
        c: { type: 'byte', value: 7 },
        d: { type: 'short', value: 7 },
        e: { type: 'integer', value: 7 },
        f: { type: 'binary', value: new Uint8Array([58, 1]) },
        ':event-type': { type: 'string', value: 'x' },
        g: { type: 'timestamp', value: new Date(0) },
        h: { type: 'uuid', value: '12345678-1234-1234-1234-123456789012' },
      },
      body: new TextEncoder().encode('{}'),
    });
    expect(parse([joined([message({ ':event-type': 'x' }, '{}'), typed])])).toEqual([
      ['x', '{}'],
      ['x', '{}'],
    ]);
  });

  test.each<[name: string, headers: Record<string, string>, payload: string, received: [string, object]]>([
    [
      'an exception: its type',
      { ':message-type': 'exception', ':exception-type': 'throttlingException' },
      '{"message":"Slow down"}',
      ['exception:throttlingException', { message: 'Slow down' }],
    ],
    [
      'an exception without a message type: its type',
      { ':exception-type': 'throttlingException' },
      '{"message":"Slow down"}',
      ['exception:throttlingException', { message: 'Slow down' }],
    ],
    [
      'an error: its code, and its message in a header',
      { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'It broke' },
      '',
      ['exception:InternalError', { message: 'It broke' }],
    ],
    [
      'an exception whose payload is a text: the text',
      { ':message-type': 'exception', ':exception-type': 'x' },
      'It broke',
      ['exception:x', { message: 'It broke' }],
    ],
    [
      'an exception without a payload: it is one',
      { ':message-type': 'exception', ':exception-type': 'x' },
      '',
      ['exception:x', { message: '' }],
    ],
    ['an exception without a type: it is one', { ':message-type': 'exception' }, '{}', ['exception:', {}]],
  ])('S5 %s', (_, headers, payload, [name, data]) => {
    const [received] = parse([message(headers, payload)]);
    expect(received?.[0]).toBe(name);
    expect(JSON.parse(received?.[1] ?? '')).toEqual(data);
  });

  test('S4 malformed headers behind right checksums: an error', () => {
    for (const headers of [
      [1, 58],
      [200, 58, 7],
      [1, 58, 7, 0, 9],
      [1, 58, 10],
      [1, 58, 7, 255, 255, 1],
    ]) {
      expect(parse([raw(headers, '{}')])).toEqual(['corrupt']);
    }
  });
});

describe('EventStreamParser, limits', () => {
  test('B1 a length of 4 GB: an error after 12 bytes, and nothing is held', () => {
    const parser = new EventStreamParser(1_000_000);
    expect(parser.next(prelude(0xffff_ffff, 0), 0)).toBe(12);
    expect(parser.isTooLarge).toBe(true);
    expect(parse([prelude(0xffff_ffff, 0xffff_fff0 - 16)])).toEqual(['too large']);
  });

  test('B1 lengths that contradict each other: an error', () => {
    for (const [length, headers] of [
      [15, 0],
      [0, 0],
      [16, 1],
      [100, 85],
      [100, 0xffff_ffff],
    ] as const) {
      expect(parse([prelude(length, headers)])).toEqual(['corrupt']);
    }
  });

  test('B1 headers larger than AWS sends: an error before they are read', () => {
    expect(parse([prelude(500_000, 200_000)])).toEqual(['too large']);
  });

  test('B1 a message one byte above the limit: an error; at the limit it is read, also in reads of one byte', () => {
    for (const size of [1, TEXT.length]) {
      expect(parse(cut(TEXT, size), TEXT.length)).toHaveLength(1);
      expect(parse(cut(TEXT, size), TEXT.length - 1)).toEqual(['too large']);
    }
  });

  test('B1 a million messages with nothing in them: no event, nothing is held, and the next message is read', () => {
    const empty = message({}, '');
    const read = joined(Array.from({ length: 1000 }, () => empty));
    const parser = new EventStreamParser(1_000_000);
    for (let i = 0; i < 1000; i++) expect(parser.next(read, 0)).toBe(read.length);
    expect([parser.takeData(), parser.heldBytes]).toEqual([null, 0]);
    parser.next(STOP, 0);
    expect(parser.takeData()).toBe('{"stopReason":"end_turn"}');
  });

  test('S4 an end within a message: the messages before it', () => {
    for (let at = 1; at < STOP.length; at++) {
      expect(parse([joined([TEXT, STOP.subarray(0, at)])])).toHaveLength(1);
    }
  });

  test('B1 a large message in reads of one byte: takes linear time', () => {
    const appends = (chars: number) => {
      const bytes = event('contentBlockDelta', { delta: { text: 'x'.repeat(chars) } });
      const parser = new EventStreamParser(10_000_000);
      let largest = 0;
      for (const one of cut(bytes, 1)) {
        parser.next(one, 0);
        largest = Math.max(largest, parser.heldBytes);
      }
      expect(parser.takeData()).toHaveLength(chars + 21);
      return largest / chars;
    };
    expect(appends(400_000)).toBeLessThan(1.01);
  });
});

/** Each message of a stream with its neighbors; at both ends there is none. */
function neighbors(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const all: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += view.getUint32(at))
    all.push(bytes.subarray(at, at + view.getUint32(at)));
  const none = new Uint8Array(0);
  return all.map((own, i) => ({ before: all[i - 1] ?? none, own, after: all[i + 1] ?? none }));
}

function prelude(length: number, headersLength: number): Uint8Array {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length);
  view.setUint32(4, headersLength);
  view.setUint32(8, zlibCrc32(bytes.subarray(0, 8)));
  return bytes;
}

/** A message with these bytes as headers. */
function raw(headers: readonly number[], payload: string): Uint8Array {
  const body = new TextEncoder().encode(payload);
  const length = 16 + headers.length + body.length;
  const bytes = joined([prelude(length, headers.length), Uint8Array.from(headers), body, new Uint8Array(4)]);
  new DataView(bytes.buffer).setUint32(length - 4, zlibCrc32(bytes.subarray(0, -4)));
  return bytes;
}

/** Tests the reading of bodies that have to be whole: their bounds, their ends, and the memory they are given (B2, B3, T3). */
import { describe, expect, test } from 'vitest';
import { MAX_MEMORY_BYTES, MAX_MEMORY_WAIT_MS, Memory, SMALL_BYTES } from '../../src/stream/memory.ts';
import {
  announcedLength,
  type BodyRead,
  readBody,
  readBodyText,
  type TextRead,
  takeText,
} from '../../src/stream/read-body.ts';
import { FakeClock } from './fake-clock.ts';

const MAX = 4 * SMALL_BYTES;

interface Sent {
  readonly body: ReadableStream<Uint8Array>;
  /** Whether the reader gave it up. */
  isCancelled: boolean;
}

/** @param type `bytes` as a runtime's own bodies have it, or a stream of chunks as another Worker may build one */
function send(
  pieces: readonly Uint8Array[],
  type: 'bytes' | undefined,
  end: 'end' | 'break' | 'stall',
): Sent {
  const left = pieces.map((piece) => piece.slice());
  const sent: Sent = { isCancelled: false, body: new ReadableStream() };
  const source = {
    async pull(controller: { enqueue(chunk: Uint8Array): void; close(): void; error(reason: Error): void }) {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(piece);
      else if (end === 'break') controller.error(new Error('reset'));
      else if (end === 'end') {
        controller.close();
        if ('byobRequest' in controller)
          (controller.byobRequest as ReadableStreamBYOBRequest | null)?.respond(0);
      } else await new Promise(() => {});
    },
    cancel: () => {
      sent.isCancelled = true;
    },
  };
  const body =
    type === undefined ? new ReadableStream<Uint8Array>(source) : new ReadableStream({ ...source, type });
  return Object.assign(sent, { body });
}

function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => 97 + (i % 26));
}

function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

const never = new Promise<'late'>(() => {});

class Reader {
  readonly clock = new FakeClock();
  readonly memory = new Memory(this.clock);
  readonly takeMemory = (bytes: number) => this.memory.grant(bytes, () => {});

  read(body: ReadableStream<Uint8Array> | null, length: number | null, late = never): Promise<BodyRead> {
    return readBody({ body, length, maxBytes: MAX, late }, this.takeMemory);
  }
}

const KINDS = [['bytes'], [undefined]] as const;

describe.each(KINDS)('readBody of a stream of %s', (type) => {
  const sizes = [0, 1, 16_384, 16_385, SMALL_BYTES, SMALL_BYTES + 1, MAX - 1, MAX];

  test.each(sizes)(
    'B2 %i bytes, announced or not, in pieces of any size: every byte, in order',
    async (size) => {
      const bytes = bytesOf(size);
      for (const length of [size, null]) {
        for (const pieceSize of [1000, 16_384, 100_000, Math.max(1, size)]) {
          const read = await new Reader().read(send(cut(bytes, pieceSize), type, 'end').body, length);
          expect(read.kind).toBe('body');
          if (read.kind === 'body') expect(Buffer.compare(read.bytes, bytes)).toBe(0);
        }
      }
    },
  );

  test('B2 one byte more than the bound: too large, the rest is not read, and its memory is free again', async () => {
    const reader = new Reader();
    const sent = send(cut(bytesOf(MAX + 1), 50_000), type, 'stall');
    expect((await reader.read(sent.body, null)).kind).toBe('too_large');
    expect(sent.isCancelled).toBe(true);
    expect(await reader.takeMemory(MAX_MEMORY_BYTES)).not.toBe(null);
  });

  test('a connection that breaks: broken, and its memory is free again', async () => {
    const reader = new Reader();
    const body = send([bytesOf(MAX / 2)], type, 'break').body;
    expect((await reader.read(body, MAX)).kind).toBe('broken');
    expect(await reader.takeMemory(MAX_MEMORY_BYTES)).not.toBe(null);
  });

  test('T3 time that is up before it arrived: late, and the rest is not read', async () => {
    const late = Promise.withResolvers<'late'>();
    const sent = send([bytesOf(10)], type, 'stall');
    const read = new Reader().read(sent.body, 20, late.promise);
    late.resolve('late');
    expect((await read).kind).toBe('late');
    expect(sent.isCancelled).toBe(true);
  });

  test('B3 no room within its time: memory_exhausted', async () => {
    const reader = new Reader();
    (await reader.takeMemory(MAX_MEMORY_BYTES))?.markReceived();
    const read = reader.read(send([bytesOf(MAX)], type, 'end').body, MAX);
    await Promise.resolve();
    reader.clock.advance(MAX_MEMORY_WAIT_MS);
    expect((await read).kind).toBe('memory_exhausted');
  });

  test('B3 one that does not arrive while others wait for room: memory_exhausted', async () => {
    const reader = new Reader();
    const held = await reader.takeMemory(MAX_MEMORY_BYTES - MAX);
    held?.markReceived();
    const read = reader.read(send([bytesOf(10)], type, 'stall').body, MAX);
    const other = reader.takeMemory(MAX);
    await Promise.resolve();
    reader.clock.advance(MAX_MEMORY_WAIT_MS);
    expect((await read).kind).toBe('memory_exhausted');
    expect(await other).not.toBe(null);
  });
});

describe('readBody', () => {
  test('no body: no bytes', async () => {
    const read = await new Reader().read(null, null);
    expect(read.kind === 'body' && read.bytes.length).toBe(0);
  });

  test('B2 more announced than the bound: too large, and nothing is read', async () => {
    const sent = send([bytesOf(10)], 'bytes', 'end');
    expect((await new Reader().read(sent.body, MAX + 1)).kind).toBe('too_large');
  });
});

describe('readBodyText', () => {
  const text = 'a水😀';
  const bytes = new TextEncoder().encode(text);

  function read(sent: Sent, length: number | null, isLate = false): Promise<TextRead> {
    const message = new Response(sent.body, {
      headers: length === null ? {} : { 'content-length': String(length) },
    });
    const watch = (onLate: () => void) => void (isLate && queueMicrotask(onLate));
    const source = { message, maxBytes: MAX, watch };
    return readBodyText(source, new Reader().takeMemory);
  }

  test.each([bytes.length, null, SMALL_BYTES + 1])('%s bytes announced: its text', async (length) => {
    const result = await read(send(cut(bytes, 2), 'bytes', 'end'), length);
    expect(result).toMatchObject({ kind: 'text', text });
  });

  test.each([20, null])('T3 %s bytes announced that do not arrive in time: late', async (length) => {
    const reading = read(send([bytes], 'bytes', 'stall'), length, true);
    expect((await reading).kind).toBe('late');
  });

  test.each([20, null])('%s bytes announced, and the connection breaks: broken', async (length) => {
    expect((await read(send([bytes], 'bytes', 'break'), length)).kind).toBe('broken');
  });

  test('B2 more announced than the bound: too large, and nothing is read', async () => {
    const sent = send([bytes], 'bytes', 'stall');
    expect((await read(sent, MAX + 1)).kind).toBe('too_large');
  });
});

test.each([
  [{ 'content-length': '12' }, 12],
  [{ 'content-length': '12', 'content-encoding': 'gzip' }, null],
  [{ 'content-length': '-1' }, null],
  [{ 'content-length': '1e3' }, null],
  [{}, null],
])('announcedLength of %j: %j', (headers, length) => {
  expect(announcedLength(new Headers(headers))).toBe(length);
});

test('takeText: the text, and the memory of the bytes is given back', () => {
  const bytes = new TextEncoder().encode('a水😀').slice();
  expect(takeText(bytes)).toBe('a水😀');
  expect(bytes.length).toBe(0);
});

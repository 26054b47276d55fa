/** The log of a response's events: blocks, replays from any number, several readers, and the end of an interrupted response. */
import { describe, expect, test } from 'vitest';
import {
  type Block,
  type BlockStore,
  EventLog,
  LogReaders,
  MAX_BLOCK_BYTES,
  MAX_READERS,
  STALLED_MS,
  type WaitFor,
} from '../../src/durable-responses/event-log.ts';
import {
  DONE,
  FrameSplitter,
  HEARTBEAT,
  isEvent,
  readFrame,
  writeFrame,
} from '../../src/durable-responses/frames.ts';

class MemoryBlocks implements BlockStore {
  readonly blocks: Block[] = [];
  append(block: Block): void {
    this.blocks.push(block);
  }
  after(number: number): Block | null {
    return this.blocks.find(({ last }) => last > number) ?? null;
  }
}

const decoder = new TextDecoder();
const text = (bytes: Uint8Array) => decoder.decode(bytes);
const MAX_BYTES = 32 * 1024 * 1024;

function delta(number: number, chars = 20) {
  return writeFrame('output_text.delta', { delta: 'ü'.repeat(chars) }, number);
}

/** Created, some deltas, an item's end, more deltas, and the end. */
function run(count = 20) {
  return Array.from({ length: count }, (_, number) => {
    if (number === 0) return writeFrame('created', { response: { status: 'in_progress' } }, number);
    if (number === 7) return writeFrame('output_item.done', { item: { id: 'msg_1' } }, number);
    if (number === count - 1) return writeFrame('completed', { response: { status: 'completed' } }, number);
    return delta(number);
  });
}

const wait = async (changed: Promise<void>) => {
  await changed;
  return true;
};

function readLog(log: EventLog, after: number, waitFor: WaitFor = wait): ReadableStream<Uint8Array> {
  const stream = new LogReaders(log, waitFor, () => 0).open(after, HEARTBEAT);
  if (stream === null) throw new Error('No place for a reader');
  return stream;
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<string> {
  let all = '';
  for await (const bytes of stream) all += text(bytes);
  return all;
}

describe('frames', () => {
  test('X4: a stream cut into chunks at any byte has the same events, besides comments and [DONE]', () => {
    const frames = run(5);
    const whole = Buffer.concat([HEARTBEAT, ...frames.flatMap(({ bytes }) => [bytes, HEARTBEAT]), DONE]);
    for (let cut = 0; cut <= whole.length; cut++) {
      const splitter = new FrameSplitter();
      const parts = [whole.subarray(0, cut), whole.subarray(cut)];
      const found = parts.flatMap((part) => [...splitter.add(part)].filter(isEvent));
      expect(found.map(({ bytes }) => text(bytes))).toEqual(frames.map(({ bytes }) => text(bytes)));
      expect(found.map(({ type }) => type)).toEqual(frames.map(({ type }) => type));
    }
  });

  test('X4: a stream in chunks of one byte has the same frames', () => {
    const frames = run(3);
    const splitter = new FrameSplitter();
    const found = frames.flatMap(({ bytes }) =>
      [...bytes].flatMap((byte) => [...splitter.add(new Uint8Array([byte]))]),
    );
    expect(found.map(({ bytes }) => text(bytes))).toEqual(frames.map(({ bytes }) => text(bytes)));
  });
});

describe('blocks', () => {
  test('X6: events are stored at the end of an item and at the end of the response', () => {
    const store = new MemoryBlocks();
    const log = new EventLog(store, MAX_BYTES);
    for (const frame of run()) log.append(frame);
    expect(store.blocks.map(({ first, last }) => [first, last])).toEqual([
      [0, 7],
      [8, 19],
    ]);
  });

  test('X6: no block of several events is larger than 256 KiB', () => {
    const store = new MemoryBlocks();
    const log = new EventLog(store, MAX_BYTES);
    for (let number = 0; number < 40; number++) log.append(delta(number, 20_000));
    log.append(delta(40, 400_000));
    log.flush();
    const sizes = store.blocks.map(({ bytes }) => bytes.length);
    expect(sizes.slice(0, -1).every((size) => size <= MAX_BLOCK_BYTES)).toBe(true);
    expect(store.blocks.at(-1)).toMatchObject({ first: 40, last: 40 });
    expect(store.blocks.length).toBeGreaterThan(6);
  });

  test('X6: a response has room for no event beyond its limit', () => {
    const log = new EventLog(new MemoryBlocks(), 1000);
    expect(log.hasRoomFor(delta(0, 10))).toBe(true);
    log.append(delta(0, 200));
    expect(log.hasRoomFor(delta(1, 300))).toBe(false);
  });
});

describe('replay', () => {
  test('X4: a replay after every number, stored or not, continues the uncut stream byte for byte', async () => {
    const frames = run();
    const uncut = frames.map(({ bytes }) => text(bytes)).join('') + text(DONE);
    for (let number = -1; number < frames.length; number++) {
      const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
      for (const frame of frames.slice(0, 11)) log.append(frame);
      const reading = readAll(readLog(log, number));
      for (const frame of frames.slice(11)) {
        await Promise.resolve();
        log.append(frame);
      }
      const before = frames
        .slice(0, number + 1)
        .map(({ bytes }) => text(bytes))
        .join('');
      // A reader ahead of the log gets what follows its number.
      expect(before + (await reading)).toBe(uncut);
    }
  });

  test('X4: a reader that stops delays neither the log nor another reader', async () => {
    const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
    const frames = run();
    const slow = readLog(log, -1).getReader();
    const first = slow.read();
    const fast = readAll(readLog(log, -1));
    for (const frame of frames) log.append(frame);
    const uncut = frames.map(({ bytes }) => text(bytes)).join('') + text(DONE);
    expect(await fast).toBe(uncut);
    let rest = text((await first).value ?? new Uint8Array());
    for (let part = await slow.read(); !part.done; part = await slow.read()) rest += text(part.value);
    expect(rest).toBe(uncut);
  });

  test('X4: a reader gets heartbeats while no event comes', async () => {
    const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
    const reader = readLog(log, -1, async () => false).getReader();
    expect(text((await reader.read()).value ?? new Uint8Array())).toBe(text(HEARTBEAT));
    await reader.cancel();
  });

  test('X7: the end of an interrupted response is sent to a reader that had events which were not stored', async () => {
    const store = new MemoryBlocks();
    const lost = new EventLog(store, MAX_BYTES);
    for (const frame of run().slice(0, 12)) lost.append(frame);
    // Events 8 to 11 were sent, but not stored.
    const last = store.blocks.at(-1)?.last ?? -1;
    expect(last).toBe(7);
    const log = new EventLog(store, MAX_BYTES, { last, isOver: false });
    log.append(writeFrame('failed', { response: { status: 'failed' } }, 10_007), 10_007);
    const rest = await readAll(readLog(log, 11));
    expect(readFrame(new TextEncoder().encode(rest.split('\n\n')[0])).sequence_number).toBe(10_007);
    expect(rest.endsWith(text(DONE))).toBe(true);
    const whole = await readAll(readLog(log, 3));
    expect([...whole.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))).toEqual([
      4, 5, 6, 7, 10_007,
    ]);
  });
});

describe('X4 readers', () => {
  /** The bytes that are copied or searched while `run` runs. */
  async function bytesTouched(run: () => Promise<void>): Promise<number> {
    let bytes = 0;
    const { set, indexOf } = Uint8Array.prototype;
    Uint8Array.prototype.set = function (source, offset) {
      bytes += source.length;
      return set.call(this, source, offset);
    };
    Uint8Array.prototype.indexOf = function (value, from = 0) {
      const at = indexOf.call(this, value, from);
      bytes += (at < 0 ? this.length : at + 1) - from;
      return at;
    };
    try {
      await run();
    } finally {
      Object.assign(Uint8Array.prototype, { set, indexOf });
    }
    return bytes;
  }

  test.each([500, 5000])(
    'the work for an event does not grow with the block that it is in: %s events',
    async (count) => {
      const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
      const readers = new LogReaders(log, wait, () => 0);
      const streams = Array.from({ length: MAX_READERS }, () => readers.open(-1, HEARTBEAT)?.getReader());
      const frame = delta(7);
      const touched = await bytesTouched(async () => {
        for (let number = 0; number < count; number++) {
          log.append(frame);
          // As the timer of a run does.
          if (number % 400 === 399) log.flush();
          for (const stream of streams) await stream?.read();
        }
      });
      expect(touched / (count * MAX_READERS)).toBeLessThan(3 * frame.bytes.length);
    },
  );

  test('a response has 16 at once; one that ends, fails or leaves makes room', async () => {
    const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
    const frames = run();
    for (const frame of frames.slice(0, -1)) log.append(frame);
    const readers = new LogReaders(log, wait, () => 0);
    const open = () => readers.open(-1, HEARTBEAT);
    const streams = Array.from({ length: MAX_READERS }, open);
    expect(open()).toBeNull();
    await streams[0]?.cancel();
    const ended = open();
    expect(open()).toBeNull();
    log.append(frames.at(-1) ?? delta(0));
    if (ended) await readAll(ended);
    expect(open()).not.toBeNull();
    expect(open()).toBeNull();
    log.close();
    await expect(readAll(streams[1] ?? new ReadableStream())).rejects.toThrow('deleted');
    expect(open()).not.toBeNull();
  });

  test('a reader that takes nothing for a minute loses its place to a new one; one that waits for events keeps it', async () => {
    let now = 0;
    const log = new EventLog(new MemoryBlocks(), MAX_BYTES);
    log.append(delta(0));
    const readers = new LogReaders(log, wait, () => now);
    const open = () => readers.open(-1, HEARTBEAT);
    const [gone, ...others] = Array.from({ length: MAX_READERS }, open).map((one) => one?.getReader());
    for (const other of others) await other?.read();
    for (const other of others) void other?.read().catch(() => {});
    now = STALLED_MS - 1;
    expect(open()).toBeNull();
    now = STALLED_MS;
    expect(open()).not.toBeNull();
    await expect(gone?.read()).rejects.toThrow('too slow');
    expect(open()).toBeNull();
  });
});

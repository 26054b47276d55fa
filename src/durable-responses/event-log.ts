/** The numbered events of one response: stored in blocks, with the newest block in memory, and read by any number of readers. */
import { disconnection } from '../shared/disconnection.ts';
import { DONE, type Frame, isTerminal, joinBytes, splitFrames } from './frames.ts';

/**
 * The bytes of a block. A row of SQLite in a Durable Object holds 2 MB
 * (developers.cloudflare.com/durable-objects/platform/limits, 2026-11).
 */
export const MAX_BLOCK_BYTES = 256 * 1024;

/** Consecutive frames. */
export interface Block {
  /** The `sequence_number` of the first and the last frame. Within a block the numbers have no gap. */
  readonly first: number;
  readonly last: number;
  readonly bytes: Uint8Array;
}

/** Where full blocks are stored. */
export interface BlockStore {
  append(block: Block): void;
  /** The block with the first event above this number; null: none is stored. */
  after(number: number): Block | null;
}

export class EventLog {
  readonly #store: BlockStore;
  readonly #maxBytes: number;
  /** The frames of the open block. */
  #open: Uint8Array[] = [];
  #openBytes = 0;
  /**
   * The frames of the block that was stored last, for readers that are about to read the rest of it. Empty if it is
   * larger than a block.
   */
  #recent: readonly Uint8Array[] = [];
  #last: number;
  /** Of the events that this instance has added. */
  #bytes = 0;
  #isOver: boolean;
  /** The last frame of a closed log; null: the log is open. */
  #closed: Block | null = null;
  #changed = Promise.withResolvers<void>();

  /** @param stored what the store holds already */
  constructor(
    store: BlockStore,
    maxBytes: number,
    stored: { readonly last: number; readonly isOver: boolean } | null = null,
  ) {
    this.#store = store;
    this.#maxBytes = maxBytes;
    this.#last = stored?.last ?? -1;
    this.#isOver = stored?.isOver ?? false;
  }

  /** The number of the last event; -1: there is none. */
  get last(): number {
    return this.#last;
  }

  /** Whether a terminal event is in the log. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the response's limit has room for the frame. */
  hasRoomFor({ bytes }: Frame): boolean {
    return this.#bytes + bytes.length <= this.#maxBytes;
  }

  /**
   * Adds the next event.
   * @param number above that of the last event; only the end of an interrupted response skips numbers
   */
  append(frame: Frame, number = this.#last + 1): void {
    if (number !== this.#last + 1 || this.#openBytes + frame.bytes.length > MAX_BLOCK_BYTES) this.flush();
    this.#open.push(frame.bytes);
    this.#openBytes += frame.bytes.length;
    this.#bytes += frame.bytes.length;
    this.#last = number;
    if (isTerminal(frame)) this.#isOver = true;
    if (this.#isOver || frame.type === 'output_item.done') this.flush();
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Stores the open block. */
  flush(): void {
    if (this.#open.length === 0) return;
    const first = this.#last - this.#open.length + 1;
    this.#store.append({ first, last: this.#last, bytes: joinBytes(this.#open) });
    this.#recent = this.#openBytes <= MAX_BLOCK_BYTES ? this.#open : [];
    this.#open = [];
    this.#openBytes = 0;
  }

  /** Ends the log before its store is deleted. Readers that lack only the last event still receive it; others fail. */
  close(): void {
    const block = this.after(this.#last - 1);
    this.#closed = block ?? { first: 0, last: -1, bytes: new Uint8Array() };
    this.#changed.resolve();
  }

  /** The next block after this number, from the store or memory; null: there is none yet. */
  after(number: number): Block | null {
    if (number >= this.#last) return null;
    if (this.#closed !== null) {
      if (number === this.#last - 1) return this.#closed;
      throw new Error('The response was deleted');
    }
    const lastStored = this.#last - this.#open.length;
    if (number >= lastStored) return restOf(this.#open, this.#last, number);
    // A reader that follows the log is mostly within one of the two newest blocks, whose frames need not be found again.
    if (number >= lastStored - this.#recent.length) return restOf(this.#recent, lastStored, number);
    const block = this.#store.after(number);
    if (block === null || block.first > number) return block;
    return restOf(splitFrames(block.bytes), block.last, number);
  }

  /** Resolves at the next event. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }
}

/** The frames after a number, of consecutive frames that end with the number `last`. */
function restOf(frames: readonly Uint8Array[], last: number, number: number): Block {
  const first = Math.max(number, last - frames.length) + 1;
  return { first, last, bytes: joinBytes(frames.slice(first - last - 1)) };
}

/** Waits, and resolves early with true if `changed` resolves first. */
export type WaitFor = (changed: Promise<void>) => Promise<boolean>;

/** Readers of one response at the same time. Every event wakes each of them. */
export const MAX_READERS = 16;
/** A reader that takes nothing for this long, in ms, loses its place to a new one. It may have gone without a word. */
export const STALLED_MS = 60_000;

interface Reader {
  /** When it last took something, in ms since the epoch; null: it waits for the next event. */
  readingSince: number | null;
  fail: (reason: Error) => void;
}

type Next = { readonly kind: 'block'; readonly block: Block } | { readonly kind: 'end' | 'heartbeat' };

/** The readers of one log. */
export class LogReaders {
  readonly #log: EventLog;
  readonly #wait: WaitFor;
  readonly #now: () => number;
  readonly #readers = new Set<Reader>();

  /** @param wait for the next event, until a heartbeat is due */
  constructor(log: EventLog, wait: WaitFor, now: () => number) {
    this.#log = log;
    this.#wait = wait;
    this.#now = now;
  }

  /**
   * A stream of the events after a number: the stored ones, then future ones, then `[DONE]`. It reads the next block when its reader
   * has read the last one, so a slow reader delays no other.
   * @param heartbeat written whenever the wait ends without a new event
   * @returns null if there are {@link MAX_READERS} already
   */
  open(startingAfter: number, heartbeat: Uint8Array): ReadableStream<Uint8Array> | null {
    if (this.#readers.size >= MAX_READERS && !this.#removeStalled()) return null;
    const reader: Reader = { readingSince: this.#now(), fail: () => {} };
    const leave = () => this.#readers.delete(reader);
    this.#readers.add(reader);
    let position = startingAfter;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          reader.fail = (reason) => {
            leave();
            controller.error(reason);
          };
        },
        pull: async (controller) => {
          try {
            const next = await this.#next(position, reader);
            if (!this.#readers.has(reader)) return;
            if (next.kind === 'block') position = next.block.last;
            controller.enqueue(bytesOf(next, heartbeat).slice());
            if (next.kind !== 'end') return;
            leave();
            controller.close();
          } catch (error) {
            leave();
            throw error;
          }
        },
        cancel: () => void leave(),
      },
      { highWaterMark: 0 },
    );
  }

  async #next(position: number, reader: Reader): Promise<Next> {
    for (;;) {
      const block = this.#log.after(position);
      if (block !== null) return { kind: 'block', block };
      if (this.#log.isOver) return { kind: 'end' };
      reader.readingSince = null;
      const hasChanged = await this.#wait(this.#log.changed);
      reader.readingSince = this.#now();
      if (!hasChanged) return { kind: 'heartbeat' };
    }
  }

  #removeStalled(): boolean {
    const before = this.#now() - STALLED_MS;
    const stalled = [...this.#readers].find(
      ({ readingSince }) => readingSince !== null && readingSince <= before,
    );
    stalled?.fail(disconnection('The reader was too slow, and others wait: resume with starting_after'));
    return stalled !== undefined;
  }
}

function bytesOf(next: Next, heartbeat: Uint8Array): Uint8Array {
  if (next.kind === 'block') return next.block.bytes;
  return next.kind === 'end' ? DONE : heartbeat;
}

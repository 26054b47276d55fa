/** The numbered events of one response: stored in blocks, with the newest block in memory, and read by any number of readers. */
import { DONE, type Frame, isTerminal, joinBytes, splitFrames } from './frames.ts';

/** The bytes of a block. A row of SQLite in a Durable Object holds 2 MB (developers.cloudflare.com/durable-objects/platform/limits, 2026-11). */
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
  #open: Uint8Array[] = [];
  #openBytes = 0;
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
    const isOpen = number >= this.#last - this.#open.length;
    const block = isOpen ? this.#openBlock : this.#store.after(number);
    if (block === null || block.first > number) return block;
    const frames = splitFrames(block.bytes).slice(number + 1 - block.first);
    return { first: number + 1, last: block.last, bytes: joinBytes(frames) };
  }

  /** Resolves at the next event. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  get #openBlock(): Block | null {
    if (this.#open.length === 0) return null;
    const first = this.#last - this.#open.length + 1;
    return { first, last: this.#last, bytes: joinBytes(this.#open) };
  }
}

/** Waits, and resolves early with true if `changed` resolves first. */
export type WaitFor = (changed: Promise<void>) => Promise<boolean>;

/**
 * A stream of the events after a number: the stored ones, then future ones, then `[DONE]`. It reads the next block when its reader has
 * read the last one, so a slow reader delays no other.
 * @param heartbeat written whenever `wait` resolves without a new event
 */
export function readLog(
  log: EventLog,
  startingAfter: number,
  wait: WaitFor,
  heartbeat: Uint8Array,
): ReadableStream<Uint8Array> {
  let position = startingAfter;
  let isCancelled = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const block = log.after(position);
          if (block !== null) {
            position = block.last;
            return controller.enqueue(block.bytes.slice());
          }
          if (log.isOver) {
            controller.enqueue(DONE.slice());
            return controller.close();
          }
          const hasChanged = await wait(log.changed);
          if (isCancelled) return;
          if (!hasChanged) return controller.enqueue(heartbeat.slice());
        }
      },
      cancel() {
        isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
}

/** One upstream's answer on its way into a stream: its reads go through the answer's chain, in turns and within the shared memory. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import { MAX_OUTPUT_FACTOR, SMALL_BYTES } from '../canonical/limits.ts';
import { brokenConnection } from '../canonical/upstream-error.ts';
import { type AnswerOptions, AnswerReader } from './answer-reader.ts';
import type { AnswerSink, StreamWriter } from './answer-sink.ts';
import type { Lease, LeaseMemory } from './memory.ts';
import type { Clock } from './pacing.ts';
import { Silence } from './silence.ts';
import { LF } from './sse.ts';

/** The stream that an answer goes into. */
export interface FeedHost {
  readonly clock: Clock;
  readonly leaseMemory: LeaseMemory;
  /**
   * Sends what a step of the answer yielded.
   * @returns when the client has taken it, or nothing where nothing is sent
   */
  readonly flush: () => Promise<void> | undefined;
  /** Bytes came, and with them an event or none. */
  readonly read: (hasEvent: boolean) => void;
}

/**
 * What is read at once. A stream that waits for its next token holds a buffer of the first size, which is more than a token
 * needs; an upstream that fills it has more to send, and gets the second.
 */
const READ_BUFFER_BYTES = 4 * 1024;
const LARGE_READ_BUFFER_BYTES = 16 * 1024;

/** A large event holds its buffer, which doubles as it grows, and its output. */
const EVENT_MEMORY_FACTOR = 2 + MAX_OUTPUT_FACTOR;

/** One of `pump`, `plain` and `fail` provides the answer; one that is over takes no further step. */
export class AnswerFeed {
  readonly #options: AnswerOptions;
  readonly #host: FeedHost;
  readonly #reader: AnswerReader;
  #lease: Lease | null = null;
  #source: ReadableStreamBYOBReader | undefined;
  #isCancelled = false;

  /** @param writer where the fast path writes its frames: the sink's own writer, or null for no fast path */
  constructor(options: AnswerOptions, sink: AnswerSink, writer: StreamWriter | null, host: FeedHost) {
    this.#options = options;
    this.#host = host;
    this.#reader = new AnswerReader(options, sink, writer);
  }

  /** There was text, or a vendor event that passes (R5). */
  get hasOutput(): boolean {
    return this.#reader.hasOutput;
  }

  /** Nothing more of it is read. */
  get isOver(): boolean {
    return this.#reader.isOver || this.#isCancelled;
  }

  /**
   * The upstream answers with an event stream. Each read waits until the client took what the last one yielded (T5).
   * Resolves when the body was read to its end or cancelled; never rejects.
   * @param body a byte stream, as the runtime's own fetch gives it
   */
  async pump(body: ReadableStream<Uint8Array>): Promise<void> {
    const source = body.getReader({ mode: 'byob' });
    this.#source = source;
    // The client may have disconnected, or time run out, before the upstream answered.
    if (this.isOver) return this.cancel();
    const silence = new Silence(this.#host.clock);
    let buffer = new Uint8Array(READ_BUFFER_BYTES);
    try {
      while (!this.isOver) {
        const reading = source.read(buffer);
        const revoked = this.#lease?.revoked;
        const read = revoked === undefined ? await reading : await Promise.race([reading, revoked]);
        if (read === 'revoked') return this.fail(this.#overloaded());
        if (read.done) return await this.#step(() => this.#reader.end());
        const endsLargeEvent = this.#lease !== null && read.value.includes(LF);
        if (endsLargeEvent) await this.#lease?.begin();
        const eventsBefore = this.#reader.events;
        const bytes = read.value.length;
        const written = this.#step(() => this.#reader.push(read.value));
        this.#lease?.end();
        buffer = nextBuffer(read.value);
        const events = this.#reader.events - eventsBefore;
        this.#host.read(events > 0);
        const pause = written === undefined ? silence.read(bytes, events) : written;
        if (pause !== undefined) await pause;
        if (written !== undefined) silence.end();
        if (this.#lease !== null || this.#reader.heldBytes > SMALL_BYTES) await this.#fitLease();
      }
    } catch {
      const error = brokenConnection(this.#options.context.upstream);
      void this.#step(() => this.#reader.broken(error));
    } finally {
      this.#lease?.release();
    }
  }

  /**
   * The upstream answers with a plain object.
   * @returns when the client has taken it, or nothing where there was nothing to send
   */
  plain(answer: JsonObject): Promise<void> | undefined {
    return this.#step(() => this.#reader.plain(answer));
  }

  /** The answer is an error. */
  fail(error: ApiError): void {
    void this.#step(() => this.#reader.fail(error));
  }

  /** Ends the read under way, and the upstream with it. */
  cancel(): void {
    this.#isCancelled = true;
    this.#source?.cancel().catch(() => {});
  }

  #step(step: () => void): Promise<void> | undefined {
    if (this.isOver) return undefined;
    try {
      step();
    } catch {
      // The last net: JSON that the engine itself gives up on (nesting without end) still ends in an error frame.
      this.#reader.fail(apiError('upstream_invalid', `${this.#name} sent an event that can't be read`));
    }
    return this.#host.flush();
  }

  /** While a large event is read, worked on and sent on, the stream has its share of the isolate's memory. */
  async #fitLease(): Promise<void> {
    if (this.#reader.heldBytes > SMALL_BYTES) {
      this.#lease ??= await this.#host.leaseMemory(this.#options.maxEventBytes * EVENT_MEMORY_FACTOR);
      if (this.#lease === null) this.fail(this.#overloaded());
    } else {
      this.#reader.freeMemory();
      this.#lease?.release();
      this.#lease = null;
    }
  }

  #overloaded(): ApiError {
    const message = `Too many large events are being read at once, ${this.#name}'s among them: try again`;
    return apiError('overloaded', message);
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }
}

/** The read detached the buffer and returns its memory. */
function nextBuffer(read: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isFull = read.length === READ_BUFFER_BYTES && read.buffer.byteLength === READ_BUFFER_BYTES;
  return isFull ? new Uint8Array(LARGE_READ_BUFFER_BYTES) : new Uint8Array(read.buffer);
}

/** The stream a client reads: an upstream's reads go through an answer's synchronous chain, and what they yield goes out. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import { MAX_OUTPUT_FACTOR, SMALL_BYTES } from '../canonical/limits.ts';
import { brokenConnection, deadlineExceeded } from '../canonical/upstream-error.ts';
import { type AnswerOptions, AnswerReader } from './answer-reader.ts';
import type { AnswerFailure, AnswerSink } from './answer-sink.ts';
import { HEARTBEAT_FRAME } from './frame.ts';
import { FrameWriter } from './frame-writer.ts';
import type { Lease, LeaseMemory } from './memory.ts';
import { type Clock, Pacing, type PacingLimits } from './pacing.ts';
import { Silence } from './silence.ts';
import { LF } from './sse.ts';

/** How a stream ended. `isOpen`: the client had received the head, and got the error as a frame. */
export type StreamEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out'; readonly failure: AnswerFailure; readonly isOpen: boolean };

export interface CanonicalStreamOptions extends AnswerOptions {
  readonly limits: PacingLimits;
  readonly clock: Clock;
  /** When the request arrived, in ms since the epoch. */
  readonly arrivedAt: number;
  /** Whether frames that differ by their text alone are copied instead of parsed (`splice.ts`): a test may turn it off. */
  readonly fastPath: boolean;
  /**
   * The pipe to the client: it takes no more than it hands on, and a write is over when its bytes were copied or sent. The
   * runtime's own costs a fraction of one whose reading side runs in JavaScript.
   */
  readonly pipe: ReadableWritablePair<Uint8Array, Uint8Array>;
  readonly leaseMemory: LeaseMemory;
  /** Called with the size of each write, in bytes. */
  readonly onWrite: (bytes: number) => void;
}

const HEARTBEAT_BYTES = new TextEncoder().encode(HEARTBEAT_FRAME);

/**
 * What is read at once. A stream that waits for its next token holds a buffer of the first size, which is more than a token
 * needs; an upstream that fills it has more to send, and gets the second.
 */
const READ_BUFFER_BYTES = 4 * 1024;
const LARGE_READ_BUFFER_BYTES = 16 * 1024;

/** A large event holds its buffer, which doubles as it grows, and its output. */
const EVENT_MEMORY_FACTOR = 2 + MAX_OUTPUT_FACTOR;

/**
 * It is created before the upstream answers, so that heartbeats and timeouts cover that wait too; then one of `pump`,
 * `plain` and `fail` provides the answer.
 */
export class CanonicalStream {
  readonly #options: CanonicalStreamOptions;
  readonly #reader: AnswerReader;
  readonly #frames: FrameWriter;
  readonly #pacing: Pacing;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #opened = Promise.withResolvers<AnswerFailure | null>();
  readonly #ended = Promise.withResolvers<StreamEnd>();
  /** Writes that the client has not taken. */
  #waitingWrites = 0;
  #isOpen = false;
  #isRefused = false;
  #isTimedOut = false;
  #isCancelled = false;
  #failure: AnswerFailure | null = null;
  #lease: Lease | null = null;
  #source: ReadableStreamBYOBReader | undefined;

  constructor(options: CanonicalStreamOptions) {
    this.#options = options;
    this.#client = options.pipe.writable.getWriter();
    this.#frames = new FrameWriter(options.policies.errorFrames, options.maxEventBytes);
    const sink: AnswerSink = {
      chunk: (chunk) => this.#frames.chunk(chunk),
      vendor: (json, name) => this.#frames.vendor(json, name),
      end: (failure) => {
        this.#failure = failure;
        this.#isRefused = failure !== null && !this.#isOpen && this.#frames.isEmpty;
        if (!this.#isRefused) this.#frames.end(failure);
      },
    };
    this.#reader = new AnswerReader(options, sink, options.fastPath ? this.#frames : null);
    this.#pacing = new Pacing(options.limits, options.clock, options.arrivedAt, {
      isBlocked: () => this.#waitingWrites > 0,
      heartbeat: () => void this.#write(HEARTBEAT_BYTES),
      timeout: (kind) => this.#timeOut(kind),
    });
    this.#client.closed.catch(() => this.#cancel());
  }

  /** What the client gets. */
  get readable(): ReadableStream<Uint8Array> {
    return this.#options.pipe.readable;
  }

  /** Resolves when the head is due: null with the first output or heartbeat, or the error that came before either (H3). */
  get opened(): Promise<AnswerFailure | null> {
    return this.#opened.promise;
  }

  /** Resolves once, when the stream has ended whichever way; never rejects. */
  get ended(): Promise<StreamEnd> {
    return this.#ended.promise;
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
    if (this.#isOver) return this.#cancelUpstream();
    const silence = new Silence(this.#options.clock);
    let buffer = new Uint8Array(READ_BUFFER_BYTES);
    try {
      while (!this.#isOver) {
        const reading = source.read(buffer);
        const read =
          this.#lease === null ? await reading : await Promise.race([reading, this.#lease.revoked]);
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
        this.#pacing.read(events > 0);
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

  /** While a large event is read, worked on and sent on, the stream has its share of the isolate's memory. */
  async #fitLease(): Promise<void> {
    if (this.#reader.heldBytes > SMALL_BYTES) {
      this.#lease ??= await this.#options.leaseMemory(this.#options.maxEventBytes * EVENT_MEMORY_FACTOR);
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

  get #name(): string {
    return this.#options.context.upstream.name;
  }

  /** Nothing more goes to the client. */
  get #isOver(): boolean {
    return this.#reader.isOver || this.#isCancelled;
  }

  /**
   * Runs a step of the answer and sends what it yields. An answer that is over takes no further step.
   * @returns when the client has taken it, or nothing where there was nothing to send
   */
  #step(step: () => void): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    try {
      step();
    } catch {
      // The last net: JSON that the engine itself gives up on (nesting without end) still ends in an error frame.
      this.#reader.fail(apiError('upstream_invalid', `${this.#name} sent an event that can't be read`));
    }
    const written = this.#frames.isEmpty ? undefined : this.#write(this.#frames.take());
    if (this.#reader.isOver) this.#end();
    return written;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#isOpen = true;
    this.#opened.resolve(null);
    this.#options.onWrite(bytes.length);
    this.#pacing.wrote();
    this.#waitingWrites++;
    try {
      await this.#client.write(bytes);
      this.#frames.release(bytes);
    } catch {
      this.#cancel();
    }
    this.#waitingWrites--;
  }

  #end(): void {
    this.#pacing.stop();
    this.#cancelUpstream();
    this.#client.close().catch(() => {});
    // An error before the head is no stream at all: it keeps its HTTP status.
    if (this.#isRefused) this.#opened.resolve(this.#failure);
    if (this.#failure === null) return this.#ended.resolve({ kind: 'finished' });
    const kind = this.#isTimedOut ? 'timed_out' : 'failed';
    this.#ended.resolve({ kind, failure: this.#failure, isOpen: this.#isOpen });
  }

  /** The client disconnected: its end of the pipe is closed, or no longer takes a write. */
  #cancel(): void {
    if (this.#isOver) return;
    this.#isCancelled = true;
    this.#pacing.stop();
    this.#cancelUpstream();
    this.#ended.resolve({ kind: 'cancelled' });
  }

  /** Ends the read under way, and the upstream with it. */
  #cancelUpstream(): void {
    this.#source?.cancel().catch(() => {});
  }

  #timeOut(kind: 'idle' | 'deadline'): void {
    this.#isTimedOut = true;
    const { idleTimeoutMs, deadlineMs } = this.#options.limits;
    this.fail(
      kind === 'idle'
        ? apiError('stream_idle_timeout', `${this.#name} sent nothing for ${idleTimeoutMs / 1000} seconds`)
        : deadlineExceeded(this.#options.context.upstream, deadlineMs),
    );
  }
}

/** The read detached the buffer and returns its memory. */
function nextBuffer(read: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isFull = read.length === READ_BUFFER_BYTES && read.buffer.byteLength === READ_BUFFER_BYTES;
  return isFull ? new Uint8Array(LARGE_READ_BUFFER_BYTES) : new Uint8Array(read.buffer);
}

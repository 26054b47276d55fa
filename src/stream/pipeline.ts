/**
 * The stream of one client: moves an upstream's bytes through an event reader to the client, with heartbeats and timeouts.
 *
 * `CanonicalStream` is the client's side and lives for the whole request. Each attempt gets an `UpstreamPump` from `begin`, which reads
 * the upstream's body. After each read the pump calls `flush`, which sends what was written, or holds it while another attempt may
 * still replace this one (R5). The first attempt with output is the last.
 */
import { type ApiError, apiError } from '../canonical/error.ts';
import { brokenConnection, deadlineExceeded, type Upstream } from '../canonical/upstream-error.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_OUTPUT_FACTOR } from '../shared/limits.ts';
import { ByteBuffer } from './buffers.ts';
import { EventReader, type EventReaderOptions } from './event-reader.ts';
import { type Lease, type LeaseMemory, SMALL_BYTES } from './memory.ts';
import { LF } from './sse-parser.ts';
import { type Clock, StreamTimers, type TimerLimits } from './timers.ts';
import type { ChunkSink, StreamFailure, StreamWriter } from './types.ts';

/** After this much input without output a stream yields. As short lines it takes some ms. */
const MAX_SILENT_BYTES = 64 * 1024;

/**
 * An event without output counts like this many bytes of blank lines. Time cannot be measured instead: the clock stands still in
 * synchronous code.
 */
const SILENT_EVENT_BYTES = 512;

/** What is written before the first output is held up to this size while another attempt may follow. */
export const MAX_HELD_OUTPUT_BYTES = 64 * 1024;

/** How a stream ended. `isOpen`: the headers were sent, and the error was a frame. */
export type StreamEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out'; readonly failure: StreamFailure; readonly isOpen: boolean };

export interface CanonicalStreamOptions {
  /** Writes the client's frames. */
  readonly writer: StreamWriter;
  readonly limits: TimerLimits;
  readonly clock: Clock;
  /** When the request arrived, in ms since the epoch. */
  readonly arrivedAt: number;
  /**
   * The pipe to the client. A write resolves when its bytes were copied or sent. The runtime's `IdentityTransformStream` costs a
   * fraction of a pipe whose readable side runs in JavaScript.
   */
  readonly pipe: ReadableWritablePair<Uint8Array, Uint8Array>;
  readonly leaseMemory: LeaseMemory;
  /** Called with the size of each write, in bytes. */
  readonly onWrite: (bytes: number) => void;
}

/** What follows an attempt that ended without output: another attempt, or the end of the stream. */
export type EmptyEnd =
  | { readonly kind: 'replaced' }
  | { readonly kind: 'over'; readonly failure: StreamFailure | null };

/** The attempt's side of the stream. */
export interface AttemptCallbacks {
  /** Whether another attempt may follow. Then what is written before the first output is held. */
  readonly isReplaceable: boolean;
  /** Called at most once, before the first output is sent. */
  readonly onOutput: () => void;
  /** Called when the attempt ended without output. */
  readonly onEmptyEnd: (failure: StreamFailure | null) => EmptyEnd;
}

interface CurrentAttempt {
  readonly pump: UpstreamPump;
  readonly callbacks: AttemptCallbacks;
}

/**
 * - `waiting`: no attempt runs. The idle timeout pauses after the first one.
 * - `undecided`: an attempt runs, and has no output yet.
 * - `committed`: the attempt's output is the stream's.
 * - `ending`: the last frames are written. `isRefused`: nothing was sent, so the error becomes an HTTP status.
 * - `over`: closed, or the client disconnected.
 */
type State =
  | { readonly kind: 'waiting'; readonly isFirst: boolean }
  | { readonly kind: 'undecided' | 'committed'; readonly attempt: CurrentAttempt }
  | {
      readonly kind: 'ending';
      readonly attempt: CurrentAttempt | null;
      readonly failure: StreamFailure | null;
      readonly isRefused: boolean;
    }
  | { readonly kind: 'over' };

/** Created before the upstream responds, so heartbeats and timeouts cover that wait too. Call `begin` once for each attempt. */
export class CanonicalStream {
  readonly #options: CanonicalStreamOptions;
  /** The current attempt's writer, or the last one's. */
  #writer: StreamWriter;
  readonly #timers: StreamTimers;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #opened = Promise.withResolvers<StreamFailure | null>();
  readonly #ended = Promise.withResolvers<StreamEnd>();
  #state: State = { kind: 'waiting', isFirst: true };
  #upstream: Upstream = { name: 'Upstream', secret: '' };
  /** What an undecided attempt has written. */
  readonly #held = new ByteBuffer();
  /** Writes that the client has not taken. */
  #pendingWrites = 0;
  /** Status and headers were sent. */
  #isOpen = false;
  /** A timeout is ending the stream. */
  #isTimingOut = false;

  constructor(options: CanonicalStreamOptions) {
    this.#options = options;
    this.#client = options.pipe.writable.getWriter();
    this.#writer = options.writer;
    this.#timers = new StreamTimers(options.limits, options.clock, options.arrivedAt, {
      isBlocked: () => this.#pendingWrites > 0,
      heartbeat: () => this.#sendHeartbeat(),
      timeout: (kind) => this.#timeOut(kind),
    });
    this.#client.closed.catch(() => this.#cancel());
  }

  /** The client's bytes. */
  get readable(): ReadableStream<Uint8Array> {
    return this.#options.pipe.readable;
  }

  /** Resolves when the headers are due: null with the first output or heartbeat, or the error that preceded both. */
  get opened(): Promise<StreamFailure | null> {
    return this.#opened.promise;
  }

  /** Resolves once, when the stream has ended. Never rejects. */
  get ended(): Promise<StreamEnd> {
    return this.#ended.promise;
  }

  /**
   * Begins an attempt, before its upstream is called. If the stream is over, the attempt is cancelled.
   * @param writer the attempt's own writer in passthrough, else the stream's
   */
  begin(
    options: EventReaderOptions,
    callbacks: AttemptCallbacks,
    writer = this.#options.writer,
  ): UpstreamPump {
    this.#writer = writer;
    const { event } = writer;
    const sink: ChunkSink = {
      chunk: (chunk) => writer.chunk(chunk),
      vendor: (json, name) => writer.vendor(json, name),
      ...(event === undefined ? {} : { event }),
      failedEvent: (data, failed) => writer.failedEvent?.(data, failed),
      end: (failure) => this.#attemptEnded(failure),
    };
    const { clock, leaseMemory } = this.#options;
    const pump = new UpstreamPump(options, sink, writer, {
      clock,
      leaseMemory,
      flush: () => this.#flush(),
      onRead: (hasEvent) => this.#timers.read(hasEvent),
    });
    this.#upstream = options.context.upstream;
    if (this.#state.kind === 'over') {
      pump.cancel();
      return pump;
    }
    if (this.#state.kind === 'waiting' && !this.#state.isFirst) this.#timers.resume();
    this.#state = { kind: 'undecided', attempt: { pump, callbacks } };
    return pump;
  }

  /** Ends the stream with an error, in any state. */
  fail(error: ApiError): void {
    const { kind } = this.#state;
    if (kind === 'over') return;
    if (kind === 'waiting' || kind === 'undecided') this.#discard();
    this.#finish({ error, upstreamError: null });
    void this.#flush();
  }

  get #attempt(): CurrentAttempt | null {
    return 'attempt' in this.#state ? this.#state.attempt : null;
  }

  #attemptEnded(failure: StreamFailure | null): void {
    if (this.#state.kind !== 'undecided') return this.#finish(failure);
    const { pump, callbacks } = this.#state.attempt;
    if (pump.hasOutput) {
      this.#commit(this.#state.attempt);
      return this.#finish(failure);
    }
    const end = callbacks.onEmptyEnd(failure);
    if (end.kind === 'over' && end.failure === null) return this.#finish(null);
    if (callbacks.isReplaceable) this.#discard();
    if (end.kind === 'over') return this.#finish(end.failure);
    this.#state = { kind: 'waiting', isFirst: false };
    this.#timers.wait();
    pump.cancel();
  }

  #finish(failure: StreamFailure | null): void {
    const isEmpty = !this.#isOpen && this.#writer.output.isEmpty && this.#held.length === 0;
    const isRefused = failure !== null && isEmpty;
    this.#state = { kind: 'ending', attempt: this.#attempt, failure, isRefused };
    if (!isRefused) this.#writer.end(failure);
  }

  #commit(attempt: CurrentAttempt): void {
    this.#state = { kind: 'committed', attempt };
    attempt.callbacks.onOutput();
  }

  /** Sends what a step of the pump wrote, or holds it. */
  #flush(): Promise<void> | undefined {
    const { kind } = this.#state;
    if (kind === 'over') return undefined;
    if (kind === 'undecided' && this.#holdOrCommit(this.#state.attempt)) return undefined;
    const hasFrames = !this.#writer.output.isEmpty || this.#held.length > 0;
    const written = hasFrames ? this.#write(this.#take()) : undefined;
    if (this.#state.kind === 'ending') this.#close(this.#state);
    return written;
  }

  /** Holds what an undecided attempt wrote and returns true, or commits the attempt if it is decided. */
  #holdOrCommit(attempt: CurrentAttempt): boolean {
    const { hasOutput } = attempt.pump;
    const { isReplaceable } = attempt.callbacks;
    if (!hasOutput && isReplaceable) {
      this.#hold();
      if (this.#held.length <= MAX_HELD_OUTPUT_BYTES) return true;
    }
    if (hasOutput || isReplaceable) this.#commit(attempt);
    return false;
  }

  #hold(): void {
    const { output } = this.#writer;
    if (output.isEmpty) return;
    const bytes = output.take();
    this.#held.append(bytes);
    output.release(bytes);
  }

  /** Takes everything to send: what was held, and what was written after it. */
  #take(): Uint8Array {
    if (this.#held.length === 0) return this.#writer.output.take();
    this.#hold();
    return this.#held.take();
  }

  #discard(): void {
    this.#hold();
    this.#held.take();
    this.#held.free();
    this.#writer.restart();
  }

  /** Runs between steps, when the writer's output is empty. */
  #sendHeartbeat(): void {
    const { output } = this.#writer;
    this.#writer.heartbeat(this.#held.length > 0);
    void this.#write(output.take());
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#isOpen = true;
    this.#opened.resolve(null);
    this.#options.onWrite(bytes.length);
    this.#timers.wrote();
    this.#pendingWrites++;
    try {
      await this.#client.write(bytes);
      this.#writer.output.release(bytes);
    } catch {
      this.#cancel();
    }
    this.#pendingWrites--;
  }

  #close({ attempt, failure, isRefused }: Extract<State, { kind: 'ending' }>): void {
    this.#state = { kind: 'over' };
    this.#timers.stop();
    attempt?.pump.cancel();
    this.#client.close().catch(() => {});
    if (isRefused) this.#opened.resolve(failure);
    if (failure === null) return this.#ended.resolve({ kind: 'finished' });
    const kind = this.#isTimingOut ? 'timed_out' : 'failed';
    this.#ended.resolve({ kind, failure, isOpen: this.#isOpen });
  }

  /** The client disconnected: its side of the pipe is closed, or a write failed. */
  #cancel(): void {
    if (this.#state.kind === 'over') return;
    const attempt = this.#attempt;
    this.#state = { kind: 'over' };
    this.#timers.stop();
    attempt?.pump.cancel();
    this.#ended.resolve({ kind: 'cancelled' });
  }

  #timeOut(kind: 'idle' | 'deadline'): void {
    const { idleTimeoutMs, deadlineMs } = this.#options.limits;
    this.#isTimingOut = true;
    if (kind === 'idle') {
      const message = `${this.#upstream.name} sent nothing for ${idleTimeoutMs / 1000} seconds`;
      this.#attempt?.pump.fail(apiError('stream_idle_timeout', message));
    } else {
      this.fail(deadlineExceeded(this.#upstream, deadlineMs));
    }
    // After an idle timeout another attempt may follow.
    if (this.#state.kind !== 'over') this.#isTimingOut = false;
  }
}

/** What a pump needs of its stream. */
interface PumpHost {
  readonly clock: Clock;
  readonly leaseMemory: LeaseMemory;
  /**
   * Sends what a step wrote.
   * @returns when the client has taken it, or undefined if nothing was sent
   */
  readonly flush: () => Promise<void> | undefined;
  /** Called after each read of the upstream's body. */
  readonly onRead: (hasEvent: boolean, bytes: number) => void;
}

/**
 * Sizes of a read. A stream that waits for its next token holds a buffer of the first size, which is more than a token needs. An
 * upstream that fills it has more to send and gets the second.
 */
const READ_BUFFER_BYTES = 4 * 1024;
const LARGE_READ_BUFFER_BYTES = 16 * 1024;

/** A large event takes a buffer, which doubles as it grows, and its output. */
const EVENT_MEMORY_FACTOR = 2 + MAX_OUTPUT_FACTOR;

/** Moves one upstream's response into the stream. Call one of `pump`, `sendResponse` and `fail`. */
export class UpstreamPump {
  readonly #options: EventReaderOptions;
  readonly #host: PumpHost;
  readonly #reader: EventReader;
  #lease: Lease | null = null;
  #source: ReadableStreamBYOBReader | undefined;
  #isCancelled = false;

  /** @param writer writes the fast path's frames; null: the sink is no stream */
  constructor(options: EventReaderOptions, sink: ChunkSink, writer: StreamWriter | null, host: PumpHost) {
    this.#options = options;
    this.#host = host;
    this.#reader = new EventReader(options, sink, writer);
  }

  /** Whether there was text, or a vendor event that passes. */
  get hasOutput(): boolean {
    return this.#reader.hasOutput;
  }

  /** Whether nothing more is read. */
  get isOver(): boolean {
    return this.#reader.isOver || this.#isCancelled;
  }

  /**
   * Reads an event stream. Each read waits until the client took the output of the last one, which is the backpressure (T5).
   * Resolves when the body is at its end or cancelled. Never rejects.
   * @param body a byte stream, such as the body of a fetch response
   */
  async pump(body: ReadableStream<Uint8Array>): Promise<void> {
    const source = body.getReader({ mode: 'byob' });
    this.#source = source;
    // The client may have disconnected, or a timeout fired, before the upstream responded.
    if (this.isOver) return this.cancel();
    const yields = new YieldBudget(this.#host.clock);
    let buffer = new Uint8Array(READ_BUFFER_BYTES);
    try {
      while (!this.isOver) {
        const reading = source.read(buffer);
        const revoked = this.#lease?.revoked;
        const read = revoked === undefined ? await reading : await Promise.race([reading, revoked]);
        if (read === 'revoked') return this.fail(this.#overloaded());
        if (read.done) return await this.#step(() => this.#reader.end());
        const endsLargeEvent = this.#lease !== null && read.value.includes(LF);
        if (endsLargeEvent) await this.#lease?.startWork();
        const eventsBefore = this.#reader.events;
        const bytes = read.value.length;
        const written = this.#step(() => this.#reader.push(read.value));
        this.#lease?.endWork();
        buffer = nextBuffer(read.value);
        const events = this.#reader.events - eventsBefore;
        this.#host.onRead(events > 0, bytes);
        const pause = written === undefined ? yields.read(bytes, events) : written;
        if (pause !== undefined) await pause;
        if (written !== undefined) yields.reset();
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
   * Takes a JSON object in place of an event stream.
   * @returns when the client has taken the output, or undefined if there was none
   */
  sendResponse(response: JsonObject): Promise<void> | undefined {
    return this.#step(() => this.#reader.readResponse(response));
  }

  /** Ends the attempt with an error. */
  fail(error: ApiError): void {
    void this.#step(() => this.#reader.fail(error));
  }

  /** Cancels the upstream's body. */
  cancel(): void {
    this.#isCancelled = true;
    this.#source?.cancel().catch(() => {});
  }

  /** Runs one synchronous step of the reader, and sends what it wrote. */
  #step(step: () => void): Promise<void> | undefined {
    if (this.isOver) return undefined;
    try {
      step();
    } catch {
      // An exception of the engine, such as a stack overflow, still ends in an error frame.
      this.#reader.fail(apiError('upstream_invalid', `${this.#name} sent an event that can't be read`));
    }
    return this.#host.flush();
  }

  /** Holds a share of the isolate's memory while a large event is read and sent. */
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
    const message = `Too many large events are being read at once, including one of ${this.#name}: try again`;
    return apiError('overloaded', message);
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }
}

/** The next read's buffer: a larger one after a full read, else the same memory, which the read returns detached. */
function nextBuffer(read: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isFull = read.length === READ_BUFFER_BYTES && read.buffer.byteLength === READ_BUFFER_BYTES;
  return isFull ? new Uint8Array(LARGE_READ_BUFFER_BYTES) : new Uint8Array(read.buffer);
}

/** Input without output is read without a pause. This counts it, and yields to other streams and timers after a limit (B4). */
class YieldBudget {
  readonly #clock: Clock;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts a read without output.
   * @returns a pause, if one is due
   */
  read(bytes: number, events: number): Promise<void> | undefined {
    this.#bytes += bytes + events * SILENT_EVENT_BYTES;
    if (this.#bytes < MAX_SILENT_BYTES) return undefined;
    this.#bytes = 0;
    return new Promise((resolve) => void this.#clock.startTimer(0, resolve));
  }

  /** Output was written, and the write was a pause. */
  reset(): void {
    this.#bytes = 0;
  }
}

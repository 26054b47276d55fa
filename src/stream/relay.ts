/**
 * The relay: the client's stream, and the only loop over an upstream's body. Only this file knows whether a stream is over.
 *
 * A `ClientStream` lives for the whole request. Each attempt has a `Relay`, which reads the upstream's body, pushes each read into the
 * `EventReader`, and returns how the output ended. The loop does not decide what follows: the runner of the attempts
 * (`completion/attempt-runner.ts`) reads the outcome, and calls `finish`, or `wait` if another attempt follows. The states and all
 * transitions are in `docs/relay.md`.
 */
import { type ApiError, apiError } from '../canonical/error.ts';
import { brokenConnection, deadlineExceeded, type Upstream } from '../canonical/upstream-error.ts';
import { disconnection } from '../shared/disconnection.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_OUTPUT_FACTOR } from '../shared/limits.ts';
import { ByteBuffer } from './buffers.ts';
import type { EventReader } from './event-reader.ts';
import { type MemoryGrant, SMALL_BYTES, type TakeMemory } from './memory.ts';
import { type Clock, type Due, StreamTimers, type TimerLimits } from './timers.ts';
import { CANCELLED, type Failed, failedWith, MORE, type Outcome, type StreamWriter } from './types.ts';

/** After this much input without output a stream yields. As short lines it takes some ms. */
const MAX_SILENT_BYTES = 64 * 1024;

/**
 * An event without output counts like this many bytes of blank lines. Time cannot be measured instead: the clock stands still in
 * synchronous code.
 */
const SILENT_EVENT_BYTES = 512;

/** So long a finish waits for the next event, which may have more output (C8). */
export const MAX_FINISH_WAIT_MS = 1000;

/** What an attempt writes before its first output is held up to this size, because another attempt or an HTTP error may follow. */
export const MAX_HELD_OUTPUT_BYTES = 64 * 1024;

/** How a stream ended. `isOpen`: the headers were sent, so that an error was a frame. */
export interface StreamEnd {
  readonly outcome: Outcome;
  readonly isOpen: boolean;
}

export interface ClientStreamOptions {
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
  readonly takeMemory: TakeMemory;
  /** Called with the size of each write, in bytes. */
  readonly onWrite: (bytes: number) => void;
}

/** An attempt as its stream sees it. */
export interface StreamedAttempt {
  readonly relay: Relay;
  /** Called once, before the first output is sent. */
  readonly onOutput: () => void;
  /** Its upstream may be silent for so long, whatever the idle timeout is; absent: no longer. */
  readonly silenceMs?: number | undefined;
}

/**
 * - `waiting`: no attempt runs. The idle timeout pauses after the first one.
 * - `undecided`: an attempt runs, and has no output yet.
 * - `committed`: the attempt's output is the stream's.
 * - `over`: closed, or the client disconnected.
 */
type State =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'undecided' | 'committed'; readonly attempt: StreamedAttempt }
  | { readonly kind: 'over' };

/** Where a relay's output goes: to a client's stream, or into one object. */
export interface RelayOutput {
  /** Takes memory for large events. */
  readonly takeMemory: TakeMemory;
  /**
   * Called after each read that did not end the output: sends what was written.
   * @returns when the client has taken it, or undefined if nothing was sent
   */
  flush(): Promise<void> | undefined;
  /** Called after `flush`. */
  onRead(hasEvent: boolean, bytes: number): void;
  /** Others need the memory of what was sent and the client does not take. Absent: `flush` never waits for a client. */
  drop?(error: ApiError): void;
}

/** Created before the upstream responds, so heartbeats and timeouts cover that wait too. Call `begin` once for each attempt. */
export class ClientStream implements RelayOutput {
  readonly takeMemory: TakeMemory;
  readonly #options: ClientStreamOptions;
  /** The current attempt's writer, or the last one's. */
  #writer: StreamWriter;
  readonly #timers: StreamTimers;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #opened = Promise.withResolvers<Failed | null>();
  readonly #ended = Promise.withResolvers<StreamEnd>();
  #state: State = { kind: 'waiting' };
  #upstream: Upstream = { name: 'Upstream', secret: '' };
  /** What an undecided attempt has written. */
  readonly #held = new ByteBuffer();
  /** Status and headers were sent. */
  #isOpen = false;

  constructor(options: ClientStreamOptions) {
    this.#options = options;
    this.takeMemory = options.takeMemory;
    this.#client = options.pipe.writable.getWriter();
    this.#writer = options.writer;
    this.#timers = new StreamTimers(options.limits, options.clock, options.arrivedAt, (due) =>
      this.#onDue(due),
    );
    this.#client.closed.catch(() => this.#cancel());
  }

  /** The client's bytes. */
  get readable(): ReadableStream<Uint8Array> {
    return this.#options.pipe.readable;
  }

  /** Resolves when the headers are due: null with the first output or heartbeat, or the failure that preceded both. */
  get opened(): Promise<Failed | null> {
    return this.#opened.promise;
  }

  /** Resolves once, when the stream has ended. Never rejects. */
  get ended(): Promise<StreamEnd> {
    return this.#ended.promise;
  }

  /** Whether the current attempt's output is the stream's, so that no other attempt may follow. */
  get isCommitted(): boolean {
    return this.#state.kind === 'committed';
  }

  /**
   * Begins an attempt, whose upstream was called just now. If the stream is over, the attempt is cancelled.
   * @param writer the attempt's own writer in passthrough, else the stream's
   */
  begin(attempt: StreamedAttempt, writer = this.#options.writer): void {
    this.#writer = writer;
    this.#upstream = attempt.relay.upstream;
    if (this.#state.kind === 'over') return attempt.relay.end(CANCELLED);
    this.#timers.resume(attempt.silenceMs);
    this.#state = { kind: 'undecided', attempt };
  }

  /** Passthrough writes events as they come, and a JSON object has none: the stream's own writer writes it. */
  useOwnWriter(): StreamWriter {
    this.#writer = this.#options.writer;
    return this.#writer;
  }

  /** Another attempt follows the current one: what it wrote is forgotten, and the idle timeout pauses. */
  wait(): void {
    if (this.#state.kind !== 'undecided') return;
    this.#state = { kind: 'waiting' };
    this.#timers.wait();
    this.#discard();
  }

  /**
   * Ends the stream: writes the last frames, or nothing if the failure can still become an HTTP error. Does nothing if it is over.
   * @returns when the client has taken the last bytes
   */
  finish(outcome: Outcome): Promise<void> | undefined {
    if (this.#state.kind === 'over') return undefined;
    const failed = outcome.kind === 'failed' ? outcome : null;
    if (this.#state.kind === 'undecided') {
      if (this.#state.attempt.relay.hasOutput) this.#commit(this.#state.attempt);
      else if (failed !== null) this.#discard();
    }
    const isEmpty = !this.#isOpen && this.#writer.output.isEmpty && this.#held.length === 0;
    const refusal = isEmpty ? failed : null;
    if (refusal === null) this.#writer.end(failed?.failure ?? null);
    const sent = this.#send();
    this.#opened.resolve(refusal);
    this.#client.close().catch(() => {});
    this.#close(outcome);
    return sent;
  }

  /** Ends the stream with an error, in any state. What an undecided attempt wrote is forgotten. */
  fail(error: ApiError, reason: Failed['reason']): void {
    const { kind } = this.#state;
    if (kind === 'waiting' || kind === 'undecided') this.#discard();
    this.finish(failedWith(error, reason));
  }

  /**
   * Ends the output as one that has reached its limit.
   * @param error if nothing has come of the response yet
   * @returns false: no attempt runs, or its output is complete
   */
  limit(error: ApiError): boolean {
    return 'attempt' in this.#state && this.#state.attempt.relay.limit(error);
  }

  flush(): Promise<void> | undefined {
    if (this.#state.kind === 'undecided' && this.#holdsOutput(this.#state.attempt)) return undefined;
    return this.#send();
  }

  onRead(hasEvent: boolean): void {
    this.#timers.read(hasEvent);
  }

  /** Drops what the client has not taken. Its connection breaks, so that it sees that the body is incomplete. */
  drop(error: ApiError): void {
    this.#client.abort(disconnection(error.message)).catch(() => {});
    // After the deadline it is over, and the last frames wait behind the rest.
    if (this.#state.kind !== 'over') this.#close(failedWith(error));
  }

  /** Holds what an undecided attempt wrote and returns true, or commits the attempt. */
  #holdsOutput(attempt: StreamedAttempt): boolean {
    if (!attempt.relay.hasOutput) {
      this.#hold();
      if (this.#held.length <= MAX_HELD_OUTPUT_BYTES) return true;
    }
    this.#commit(attempt);
    return false;
  }

  #commit(attempt: StreamedAttempt): void {
    this.#state = { kind: 'committed', attempt };
    attempt.onOutput();
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

  /** Sends what was written. */
  #send(): Promise<void> | undefined {
    const hasFrames = !this.#writer.output.isEmpty || this.#held.length > 0;
    return hasFrames ? this.#write(this.#take()) : undefined;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#isOpen = true;
    this.#opened.resolve(null);
    this.#options.onWrite(bytes.length);
    this.#timers.wrote();
    try {
      await this.#client.write(bytes);
      this.#writer.output.release(bytes);
    } catch {
      this.#cancel();
    }
    this.#timers.taken();
  }

  /** The client disconnected: its side of the pipe is closed, or a write failed. */
  #cancel(): void {
    if (this.#state.kind !== 'over') this.#close(CANCELLED);
  }

  #close(outcome: Outcome): void {
    const attempt = 'attempt' in this.#state ? this.#state.attempt : null;
    this.#state = { kind: 'over' };
    this.#timers.stop();
    attempt?.relay.end(CANCELLED);
    this.#ended.resolve({ outcome, isOpen: this.#isOpen });
  }

  #onDue(due: Due): void {
    if (due === 'heartbeat') return this.#sendHeartbeat();
    const { deadlineMs } = this.#options.limits;
    if (due === 'deadline') return this.fail(deadlineExceeded(this.#upstream, deadlineMs), 'deadline');
    if (!('attempt' in this.#state)) return;
    const { attempt, kind } = this.#state;
    const message = `${this.#upstream.name} sent nothing for ${this.#timers.idleMs / 1000} seconds`;
    const outcome = failedWith(apiError('stream_idle_timeout', message), 'idle');
    if (kind === 'committed') {
      attempt.relay.sendWaiting();
      this.finish(outcome);
      return;
    }
    // Another attempt may follow. Heartbeats and the deadline go on.
    attempt.relay.end(outcome);
    this.#timers.wait();
  }

  /** Runs between steps, when the writer's output is empty, unless an attempt has just ended: what follows it comes first. */
  #sendHeartbeat(): void {
    if ('attempt' in this.#state && this.#state.attempt.relay.outcome !== MORE) return;
    const { output } = this.#writer;
    this.#writer.heartbeat(this.#held.length > 0);
    void this.#write(output.take());
  }
}

/**
 * Sizes of a read. A stream that waits for its next token holds a buffer of the first size, which is more than a token needs. An
 * upstream that fills it has more to send and gets the second.
 */
const READ_BUFFER_BYTES = 4 * 1024;
const LARGE_READ_BUFFER_BYTES = 16 * 1024;

/** A large event takes a buffer, which doubles as it grows, and its output. */
const EVENT_MEMORY_FACTOR = 2 + MAX_OUTPUT_FACTOR;

export interface RelayOptions {
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly maxEventBytes: number;
}

/** Reads the response of one attempt, and knows its outcome. */
export class Relay {
  readonly upstream: Upstream;
  readonly #options: RelayOptions;
  readonly #ended = Promise.withResolvers<null>();
  #reader: EventReader | null = null;
  #source: ReadableStreamBYOBReader | null = null;
  #grant: MemoryGrant | null = null;
  #outcome = MORE;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.upstream = options.upstream;
  }

  /** Whether there was text, or a vendor event that passes. */
  get hasOutput(): boolean {
    return this.#reader?.hasOutput ?? false;
  }

  /** `MORE` until the output has ended. */
  get outcome(): Outcome {
    return this.#outcome;
  }

  /** Writes what waits for the next event. */
  sendWaiting(): void {
    this.#reader?.sendWaiting();
  }

  /** Ends the output from outside: a timeout, a disconnect. Whatever waits for the upstream returns. Does nothing if it has ended. */
  end(outcome: Outcome): void {
    if (this.#outcome !== MORE) return;
    if (outcome.kind === 'failed') this.sendWaiting();
    this.#outcome = outcome;
    this.#source?.cancel().catch(() => {});
    this.#ended.resolve(null);
  }

  /**
   * Ends the output as one that has reached its limit, or fails where its response has not begun.
   * @returns false: it is complete
   */
  limit(error: ApiError): boolean {
    if (this.#outcome !== MORE) return false;
    const reader = this.#reader;
    if (reader === null) this.end(failedWith(error, 'over_budget'));
    else this.#step(() => reader.limit());
    if (this.#outcome === MORE) return false;
    this.#source?.cancel().catch(() => {});
    this.#ended.resolve(null);
    return true;
  }

  /**
   * Resolves with the value of `work`, or with null as soon as the output is ended from outside.
   * @param onLate gets a value that comes too late
   */
  async until<Value>(work: Promise<Value>, onLate: (value: Value) => void): Promise<Value | null> {
    const value = await Promise.race([work, this.#ended.promise]);
    if (this.#outcome === MORE) return value;
    void work.then(onLate, () => {});
    return null;
  }

  /**
   * Reads an event stream. Each read waits until the client took the output of the last one, which is the backpressure (T5). What the
   * last read wrote is not sent: it goes together with the end. Never rejects.
   * @param body a byte stream, such as the body of a fetch response
   */
  async readEvents(
    body: ReadableStream<Uint8Array>,
    reader: EventReader,
    output: RelayOutput,
  ): Promise<Outcome> {
    const source = body.getReader({ mode: 'byob' });
    this.#source = source;
    this.#reader = reader;
    try {
      await this.#readAll(source, reader, output);
    } catch {
      this.#step(() => reader.broken(brokenConnection(this.upstream)));
    }
    // Before the grant ends: the engine's next collection may be long after the next grant.
    reader.release();
    this.#grant?.release();
    source.cancel().catch(() => {});
    return this.#outcome;
  }

  /** Reads a JSON object in place of an event stream. */
  readObject(object: JsonObject, text: string | null, reader: EventReader): Outcome {
    this.#reader = reader;
    this.#step(() => reader.readObject(object, text));
    return this.#outcome;
  }

  async #readAll(source: ReadableStreamBYOBReader, reader: EventReader, output: RelayOutput): Promise<void> {
    const yields = new YieldBudget(this.#options.clock);
    let buffer = new Uint8Array(READ_BUFFER_BYTES);
    while (this.#outcome === MORE) {
      const reading = source.read(buffer);
      if (reader.holdsFinish && !(await this.#awaitNext(reading, reader, output))) return;
      const revoked = this.#grant?.revoked;
      const chunk = revoked === undefined ? await reading : await Promise.race([reading, revoked]);
      if (chunk === 'revoked') return this.end(failedWith(this.#overloaded()));
      if (chunk.done) return this.#step(() => reader.end());
      const endsLargeEvent = this.#grant !== null && reader.mayCompleteEvent(chunk.value);
      if (endsLargeEvent) await this.#startWork();
      const eventsBefore = reader.events;
      const bytes = chunk.value.length;
      this.#step(() => reader.push(chunk.value));
      const flushed = this.#outcome === MORE ? output.flush() : undefined;
      this.#grant?.endWork();
      if (this.#outcome !== MORE) return;
      buffer = nextBuffer(chunk.value);
      const events = reader.events - eventsBefore;
      output.onRead(events > 0, bytes);
      const pause = flushed === undefined ? yields.read(bytes, events) : flushed;
      if (pause !== undefined) {
        if (reader.hasOutput && this.#grant === null) await pause;
        else if ((await this.#pauseWithLimit(pause, reader)) === 'revoked')
          return output.drop?.(this.#overloaded());
      }
      if (flushed !== undefined) yields.reset();
      if (this.#grant !== null || reader.heldBytes > SMALL_BYTES) await this.#fitGrant(reader, output);
    }
  }

  /**
   * Waits for the next read while a finish waits, and sends the finish if it takes too long.
   * @returns false: the output has ended
   */
  async #awaitNext(reading: Promise<unknown>, reader: EventReader, output: RelayOutput): Promise<boolean> {
    const { promise: due, resolve } = Promise.withResolvers<'due'>();
    const cancelTimer = this.#options.clock.startTimer(MAX_FINISH_WAIT_MS, () => resolve('due'));
    const first = await Promise.race([reading, due]).finally(cancelTimer);
    if (first !== 'due') return true;
    this.#step(() => reader.sendFinish());
    if (this.#outcome === MORE) await Promise.race([output.flush(), this.#ended.promise]);
    if (this.#outcome === MORE) return true;
    // It is cancelled.
    reading.catch(() => {});
    return false;
  }

  /**
   * Waits for the client, or for other streams. A timeout ends an attempt without output also while the client does not
   * read. Later, it ends the stream itself, and what the client has not taken keeps its memory until others need it.
   * @returns `revoked` if they do
   */
  #pauseWithLimit(pause: Promise<void>, { hasOutput }: EventReader): Promise<unknown> {
    const ends = [hasOutput ? undefined : this.#ended.promise, this.#grant?.revoked];
    return Promise.race([pause, ...ends.filter((end) => end !== undefined)]);
  }

  /** Runs one synchronous step of the reader. */
  #step(step: () => Outcome): void {
    if (this.#outcome !== MORE) return;
    try {
      this.#outcome = step();
    } catch {
      // An exception of the engine, such as a stack overflow, still ends in an error frame.
      this.end(
        failedWith(apiError('upstream_invalid', `${this.upstream.name} sent an event that can't be read`)),
      );
    }
  }

  /** Waits for the turn to work on a large event. */
  async #startWork(): Promise<void> {
    const grant = this.#grant;
    if (grant !== null) await this.until(grant.startWork(), () => grant.endWork());
  }

  /** Holds a share of the isolate's memory while a large event is read and sent. */
  async #fitGrant(reader: EventReader, { takeMemory }: RelayOutput): Promise<void> {
    if (reader.heldBytes > SMALL_BYTES) {
      const bytes = this.#options.maxEventBytes * EVENT_MEMORY_FACTOR;
      this.#grant ??= await this.until(takeMemory(bytes), (late) => late?.release());
      if (this.#grant === null) this.end(failedWith(this.#overloaded()));
    } else {
      reader.freeMemory();
      this.#grant?.release();
      this.#grant = null;
    }
  }

  #overloaded(): ApiError {
    const message = `Too many large events are being read at once, including one of ${this.upstream.name}: try again`;
    return apiError('overloaded', message);
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

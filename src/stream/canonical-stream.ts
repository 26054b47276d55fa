/** The stream a client reads: what one upstream's answer yields goes out, or what the next one's does in its place, with heartbeats between. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { MAX_HELD_OUTPUT_BYTES } from '../canonical/limits.ts';
import { deadlineExceeded, type Upstream } from '../canonical/upstream-error.ts';
import { AnswerFeed } from './answer-feed.ts';
import type { AnswerOptions } from './answer-reader.ts';
import type { AnswerFailure, AnswerSink, StreamWriter } from './answer-sink.ts';
import { ByteBuffer } from './byte-buffer.ts';
import type { LeaseMemory } from './memory.ts';
import { type Clock, Pacing, type PacingLimits } from './pacing.ts';

/** How a stream ended. `isOpen`: the client had received the head, and got the error as a frame. */
export type StreamEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out'; readonly failure: AnswerFailure; readonly isOpen: boolean };

export interface CanonicalStreamOptions {
  /** Writes the client's frames. */
  readonly writer: StreamWriter;
  readonly limits: PacingLimits;
  readonly clock: Clock;
  /** When the request arrived, in ms since the epoch. */
  readonly arrivedAt: number;
  /** Whether frames that differ by their text alone are copied instead of parsed (`fast-path/fast-path.ts`): a test may turn it off. */
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

/** What becomes of an answer that ended without any output: another one takes its place, or the stream ends, whole or failed. */
export type EmptyEnd =
  | { readonly kind: 'replaced' }
  | { readonly kind: 'over'; readonly failure: AnswerFailure | null };

/** An answer's part in its stream. */
export interface AnswerTurn {
  /** Another one may take its place: what comes before its output is held until then (R5). */
  readonly isReplaceable: boolean;
  /** From now on nothing takes its place. Called at most once, and not where it ends without any output. */
  readonly onOutput: () => void;
  /** It ended without any output. */
  readonly onEmptyEnd: (failure: AnswerFailure | null) => EmptyEnd;
}

/**
 * It is created before an upstream answers, so that heartbeats and timeouts cover that wait too. `begin` begins an answer, and
 * again, after one that was to be replaced, the next.
 */
export class CanonicalStream {
  readonly #options: CanonicalStreamOptions;
  /** The current answer's, or the last one's. */
  #writer: StreamWriter;
  readonly #pacing: Pacing;
  readonly #client: WritableStreamDefaultWriter<Uint8Array>;
  readonly #opened = Promise.withResolvers<AnswerFailure | null>();
  readonly #ended = Promise.withResolvers<StreamEnd>();
  /** The answer under way, or none while the next one is waited for. */
  #answer: { readonly feed: AnswerFeed; readonly turn: AnswerTurn } | null = null;
  #upstream: Upstream = { name: 'Upstream', secret: '' };
  /** What its upstream sent before its output, while another answer may take its place. */
  readonly #held = new ByteBuffer();
  /** One was given up, and the next one has not begun. */
  #isWaiting = false;
  /** No other answer takes the place of this one. */
  #isCommitted = false;
  /** Writes that the client has not taken. */
  #waitingWrites = 0;
  #isOpen = false;
  #isTimedOut = false;
  /** The answer has ended, and with what is yet to be written the stream. */
  #isEnding = false;
  #isRefused = false;
  #isOver = false;
  #failure: AnswerFailure | null = null;

  constructor(options: CanonicalStreamOptions) {
    this.#options = options;
    this.#client = options.pipe.writable.getWriter();
    this.#writer = options.writer;
    this.#pacing = new Pacing(options.limits, options.clock, options.arrivedAt, {
      isBlocked: () => this.#waitingWrites > 0,
      heartbeat: () => this.#beat(),
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
   * Begins an answer, before its upstream is asked. Into a stream that is over nothing goes.
   * @param writer writes it, where that is not the stream's own (N1)
   */
  begin(options: AnswerOptions, turn: AnswerTurn, writer = this.#options.writer): AnswerFeed {
    this.#writer = writer;
    const { event } = writer;
    const sink: AnswerSink = {
      chunk: (chunk) => writer.chunk(chunk),
      vendor: (json, name) => writer.vendor(json, name),
      ...(event === undefined ? {} : { event }),
      end: (failure) => this.#answerEnded(failure),
    };
    const { clock, leaseMemory, fastPath } = this.#options;
    const feed = new AnswerFeed(options, sink, fastPath ? writer : null, {
      clock,
      leaseMemory,
      flush: () => this.#flush(),
      read: (hasEvent) => this.#pacing.read(hasEvent),
    });
    this.#upstream = options.context.upstream;
    if (this.#isOver) {
      feed.cancel();
      return feed;
    }
    if (this.#isWaiting) this.#pacing.resume();
    this.#isWaiting = false;
    this.#answer = { feed, turn };
    return feed;
  }

  /** Ends the stream with an error, whichever answer there is or might yet be. */
  fail(error: ApiError): void {
    if (this.#isOver) return;
    if (!this.#isCommitted) this.#discard();
    this.#finish({ error, upstreamError: null });
    void this.#flush();
  }

  #answerEnded(failure: AnswerFailure | null): void {
    const answer = this.#answer;
    if (answer === null || this.#isCommitted) return this.#finish(failure);
    const { feed, turn } = answer;
    if (feed.hasOutput) {
      this.#commit(turn);
      return this.#finish(failure);
    }
    const end = turn.onEmptyEnd(failure);
    if (end.kind === 'over' && end.failure === null) return this.#finish(null);
    if (turn.isReplaceable) this.#discard();
    if (end.kind === 'over') return this.#finish(end.failure);
    this.#answer = null;
    this.#isWaiting = true;
    this.#pacing.wait();
    feed.cancel();
  }

  #finish(failure: AnswerFailure | null): void {
    this.#failure = failure;
    this.#isCommitted = true;
    this.#isEnding = true;
    // An error before the head is no stream at all: it keeps its HTTP status.
    this.#isRefused =
      failure !== null && !this.#isOpen && this.#writer.output.isEmpty && this.#held.length === 0;
    if (!this.#isRefused) this.#writer.end(failure);
  }

  #commit(turn: AnswerTurn): void {
    this.#isCommitted = true;
    turn.onOutput();
  }

  /** Sends what a step of the answer yielded, or holds it. */
  #flush(): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    if (!this.#isCommitted && this.#answer !== null && this.#isHeld(this.#answer)) return undefined;
    const hasFrames = !this.#writer.output.isEmpty || this.#held.length > 0;
    const written = hasFrames ? this.#write(this.#take()) : undefined;
    if (this.#isEnding) this.#end();
    return written;
  }

  #isHeld({ feed, turn }: { readonly feed: AnswerFeed; readonly turn: AnswerTurn }): boolean {
    if (!feed.hasOutput && turn.isReplaceable) {
      this.#hold();
      if (this.#held.length <= MAX_HELD_OUTPUT_BYTES) return true;
    }
    if (feed.hasOutput || turn.isReplaceable) this.#commit(turn);
    return false;
  }

  #hold(): void {
    if (this.#writer.output.isEmpty) return;
    const { output } = this.#writer;
    const bytes = output.take();
    this.#held.append(bytes);
    output.release(bytes);
  }

  /** What is to be sent: what was held, and what came after it. */
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

  /** Between two steps nothing is written that was not taken. */
  #beat(): void {
    const { output } = this.#writer;
    this.#writer.heartbeat(this.#held.length > 0);
    void this.#write(output.take());
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#isOpen = true;
    this.#opened.resolve(null);
    this.#options.onWrite(bytes.length);
    this.#pacing.wrote();
    this.#waitingWrites++;
    try {
      await this.#client.write(bytes);
      this.#writer.output.release(bytes);
    } catch {
      this.#cancel();
    }
    this.#waitingWrites--;
  }

  #end(): void {
    this.#isOver = true;
    this.#pacing.stop();
    this.#answer?.feed.cancel();
    this.#client.close().catch(() => {});
    if (this.#isRefused) this.#opened.resolve(this.#failure);
    if (this.#failure === null) return this.#ended.resolve({ kind: 'finished' });
    const kind = this.#isTimedOut ? 'timed_out' : 'failed';
    this.#ended.resolve({ kind, failure: this.#failure, isOpen: this.#isOpen });
  }

  /** The client disconnected: its end of the pipe is closed, or no longer takes a write. */
  #cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pacing.stop();
    this.#answer?.feed.cancel();
    this.#ended.resolve({ kind: 'cancelled' });
  }

  #timeOut(kind: 'idle' | 'deadline'): void {
    const { idleTimeoutMs, deadlineMs } = this.#options.limits;
    const { name } = this.#upstream;
    this.#isTimedOut = true;
    if (kind === 'idle') {
      const message = `${name} sent nothing for ${idleTimeoutMs / 1000} seconds`;
      this.#answer?.feed.fail(apiError('stream_idle_timeout', message));
      // Another answer may have taken its place.
      if (!this.#isOver) this.#isTimedOut = false;
      return;
    }
    this.fail(deadlineExceeded(this.#upstream, deadlineMs));
  }
}

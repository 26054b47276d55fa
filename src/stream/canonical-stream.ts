/** The one TransformStream around an answer's synchronous chain (every further stream would cost as much as all the work). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';
import { type AnswerOptions, AnswerReader } from './answer-reader.ts';
import type { AnswerFailure, AnswerSink } from './answer-sink.ts';
import { HEARTBEAT_FRAME } from './frame.ts';
import { FrameWriter } from './frame-writer.ts';
import { type Clock, Pacing, type PacingLimits } from './pacing.ts';

/** How a stream ended. `isOpen`: its client had its head, and saw the error as a frame. */
export type StreamEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed' | 'timed_out'; readonly failure: AnswerFailure; readonly isOpen: boolean };

export interface CanonicalStreamOptions extends AnswerOptions {
  readonly limits: PacingLimits;
  readonly clock: Clock;
  /** When the request arrived, in ms since the epoch. */
  readonly arrivedAt: number;
  /** Whether frames that differ by their text alone are copied instead of parsed (`splice.ts`): a test may say no. */
  readonly fastPath: boolean;
  /** Called with the size of each write, in bytes. */
  readonly onWrite: (bytes: number) => void;
}

const HEARTBEAT_BYTES = new TextEncoder().encode(HEARTBEAT_FRAME);

/** One write may wait unread, so that the first can be made before the head is sent; the next waits for it to be taken (T5). */
const MAX_WAITING_WRITES = 1;

/**
 * The stream that a client reads. It is there before its upstream is, so that heartbeats and timeouts cover the time in
 * which the upstream has not even answered; then one of `pipe`, `plain` and `fail` gives it its answer.
 */
export class CanonicalStream {
  /** What the client gets. */
  readonly readable: ReadableStream<Uint8Array>;
  readonly #options: CanonicalStreamOptions;
  readonly #transform: TransformStream<Uint8Array, Uint8Array>;
  readonly #reader: AnswerReader;
  readonly #writer: FrameWriter;
  readonly #pacing: Pacing;
  readonly #opened = Promise.withResolvers<AnswerFailure | null>();
  readonly #ended = Promise.withResolvers<StreamEnd>();
  #controller: TransformStreamDefaultController<Uint8Array> | undefined;
  #isOpen = false;
  #isRefused = false;
  #isTimedOut = false;
  #isCancelled = false;
  #failure: AnswerFailure | null = null;

  constructor(options: CanonicalStreamOptions) {
    this.#options = options;
    this.#writer = new FrameWriter(options.policies.errorFrames);
    const sink: AnswerSink = {
      chunk: (chunk) => this.#writer.chunk(chunk),
      vendor: (json) => this.#writer.vendor(json),
      end: (failure) => {
        this.#failure = failure;
        this.#isRefused = failure !== null && !this.#isOpen && this.#writer.isEmpty;
        if (!this.#isRefused) this.#writer.end(failure);
      },
    };
    this.#reader = new AnswerReader(options, sink, options.fastPath ? this.#writer : null);
    this.#transform = new TransformStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        transform: (bytes) => this.#read(bytes),
        flush: () => this.#step(() => this.#reader.end()),
        // The client left. The pipe then finds its writable broken, and lets the upstream go.
        cancel: () => this.#cancel(),
      },
      undefined,
      { highWaterMark: MAX_WAITING_WRITES },
    );
    this.readable = this.#transform.readable;
    this.#pacing = new Pacing(options.limits, options.clock, options.arrivedAt, {
      isBlocked: () => (this.#controller?.desiredSize ?? 0) <= 0,
      heartbeat: () => this.#write(HEARTBEAT_BYTES),
      timeout: (kind) => this.#timeOut(kind),
    });
  }

  /** Resolves when the head is due: null with the first output or heartbeat, or the error that came before either (H3). */
  get opened(): Promise<AnswerFailure | null> {
    return this.#opened.promise;
  }

  /** Resolves once, when the stream has ended whichever way; never rejects. */
  get ended(): Promise<StreamEnd> {
    return this.#ended.promise;
  }

  /** The upstream answers with an event stream. */
  pipe(body: ReadableStream<Uint8Array>): void {
    // The readable must outlive an upstream that breaks: its error is not handed on but said in a frame (E2).
    body.pipeTo(this.#transform.writable, { preventAbort: true }).catch(() => {
      this.fail(apiError('upstream_truncated', `${this.#name} broke the connection`));
    });
  }

  /** The upstream answers with a plain object. */
  plain(answer: JsonObject): void {
    this.#step(() => this.#reader.plain(answer));
  }

  /** The answer is an error. */
  fail(error: ApiError): void {
    this.#step(() => this.#reader.fail(error));
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }

  #read(bytes: Uint8Array): void {
    const eventsBefore = this.#reader.events;
    this.#step(() => this.#reader.push(bytes));
    this.#pacing.read(this.#reader.events > eventsBefore);
  }

  /** Runs a step of the answer and sends what it yields. An answer that is over takes no further step. */
  #step(step: () => void): void {
    if (this.#reader.isOver || this.#isCancelled) return;
    try {
      step();
    } catch {
      // The last net: JSON that the engine itself gives up on (nesting without end) still ends in an error frame.
      this.#reader.fail(apiError('upstream_invalid', `${this.#name} sent an event that can't be read`));
    }
    if (!this.#writer.isEmpty) this.#write(this.#writer.take());
    if (this.#reader.isOver) this.#end();
  }

  #write(bytes: Uint8Array): void {
    this.#isOpen = true;
    this.#opened.resolve(null);
    this.#options.onWrite(bytes.length);
    this.#pacing.wrote();
    this.#controller?.enqueue(bytes);
  }

  #end(): void {
    this.#pacing.stop();
    this.#controller?.terminate();
    // An error before the head is no stream at all: it keeps its HTTP status.
    if (this.#isRefused) this.#opened.resolve(this.#failure);
    if (this.#failure === null) return this.#ended.resolve({ kind: 'finished' });
    const kind = this.#isTimedOut ? 'timed_out' : 'failed';
    this.#ended.resolve({ kind, failure: this.#failure, isOpen: this.#isOpen });
  }

  #cancel(): void {
    this.#isCancelled = true;
    this.#pacing.stop();
    this.#ended.resolve({ kind: 'cancelled' });
  }

  #timeOut(kind: 'idle' | 'deadline'): void {
    this.#isTimedOut = true;
    const { idleTimeoutMs, deadlineMs } = this.#options.limits;
    this.fail(
      kind === 'idle'
        ? apiError('stream_idle_timeout', `${this.#name} sent nothing for ${idleTimeoutMs / 1000} seconds`)
        : apiError('timeout', `${this.#name} did not finish within ${deadlineMs / 1000} seconds`),
    );
  }
}

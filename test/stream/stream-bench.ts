/** Test helpers: upstream bodies that a test controls, and a canonical stream with its results. */

import type { ApiError } from '../../src/canonical/error.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { ChatWriter } from '../../src/protocols/openai-chat/client-writer.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { EventReader, type EventReaderOptions } from '../../src/stream/event-reader.ts';
import { Memory } from '../../src/stream/memory.ts';
import { ClientStream, Relay, type StreamEnd } from '../../src/stream/relay.ts';
import type { TimerLimits } from '../../src/stream/timers.ts';
import { failedWith, type Outcome, type StreamWriter } from '../../src/stream/types.ts';
import { type Conversion, optionsOf } from '../contract/convert.ts';
import { FakeClock } from './fake-clock.ts';

export const CHAT: Conversion = { provider: 'openai', route: 'chat', model: 'm', usageChunk: false };
export const HELLO = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n';
export const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
export const DONE = 'data: [DONE]\n\n';

export const encoder = new TextEncoder();
export const decoder = new TextDecoder();

/** A body whose bytes a test writes. It counts its cancellations. */
export function fedBody() {
  let controller: ReadableByteStreamController | undefined;
  const counts = { cancels: 0 };
  const body = new ReadableStream({
    type: 'bytes',
    start(own) {
      controller = own;
    },
    cancel() {
      counts.cancels++;
    },
  });
  return {
    body,
    counts,
    feed: (text: string) => controller?.enqueue(encoder.encode(text)),
    close: () => close(controller),
    fail: () => controller?.error(new Error('connection reset by 10.0.0.1')),
  };
}

/** More reads than a bounded reader makes. The body ends then, so that the test fails instead of hanging. */
const ENDLESS_PULLS = 10_000;

/** An endless body that counts its pulls and cancellations. */
export function endlessBody() {
  const counts = { pulls: 0, cancels: 0 };
  const body = new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (++counts.pulls > ENDLESS_PULLS) close(controller);
      else controller.enqueue(encoder.encode(HELLO));
    },
    cancel() {
      counts.cancels++;
    },
  });
  return { counts, body };
}

export function bodyOf(...texts: string[]): ReadableStream<Uint8Array> {
  const reads = texts.map((text) => encoder.encode(text));
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      const next = reads.shift();
      if (next === undefined) close(controller);
      else controller.enqueue(next);
    },
  });
}

/** A body that returns an event for each read, some padded with a comment, and records the size of each read's buffer. */
export function notingBody(reads: readonly ('an event' | 'full')[]) {
  const requested: number[] = [];
  const body = new ReadableStream({
    type: 'bytes',
    pull(controller) {
      const into = controller.byobRequest?.view;
      const read = reads[requested.length];
      if (read === undefined || !(into instanceof Uint8Array)) return close(controller);
      requested.push(into.length);
      const text = read === 'full' ? HELLO.padStart(into.length - 2, ':').replace('data', '\n\ndata') : HELLO;
      controller.byobRequest?.respond(encoder.encodeInto(text, into).written);
    },
  });
  return { requested, body };
}

/** Closes a byte stream; a pending read with its own buffer only ends on a response of zero bytes. */
function close(controller: ReadableByteStreamController | undefined): void {
  controller?.close();
  controller?.byobRequest?.respond(0);
}

/** What follows an attempt that ended without output: another attempt, or the end of the stream. */
export type EmptyEnd = 'replaced' | Outcome;

/** What the runner of attempts does with one attempt. */
export interface Turn {
  readonly onOutput: () => void;
  readonly onEmptyEnd: (outcome: Outcome) => EmptyEnd;
}

/** An attempt that no other replaces. */
const ONLY: Turn = { onOutput: () => {}, onEmptyEnd: (outcome) => outcome };

/** One attempt of a stream, and what runs it. Its upstream responds when a test says so. */
export class TestAttempt {
  readonly relay: Relay;
  readonly #stream: ClientStream;
  readonly #options: EventReaderOptions;
  readonly #writer: StreamWriter;
  readonly #turn: Turn;
  #isSettled = false;

  constructor(stream: ClientStream, options: EventReaderOptions, turn: Turn, clock: FakeClock) {
    const { context, maxEventBytes } = options;
    this.#stream = stream;
    this.#options = options;
    this.#turn = turn;
    this.relay = new Relay({ upstream: context.upstream, clock, maxEventBytes });
    this.#writer = stream.useOwnWriter();
    stream.begin({ ...turn, relay: this.relay });
    // A timeout ends an attempt also before its upstream responds.
    const never = new Promise<never>(() => {});
    void this.relay.until(never, () => {}).then(() => this.#settle(this.relay.outcome));
  }

  async pump(body: ReadableStream<Uint8Array>): Promise<void> {
    await this.#settle(await this.relay.readEvents(body, this.#reader, this.#stream));
  }

  async sendResponse(response: JsonObject): Promise<void> {
    await this.#settle(this.relay.readObject(response, null, this.#reader));
  }

  fail(error: ApiError): void {
    this.relay.end(failedWith(error, 'no_response'));
  }

  get #reader(): EventReader {
    return new EventReader(this.#options, this.#writer, this.#writer);
  }

  async #settle(outcome: Outcome): Promise<void> {
    if (this.#isSettled || outcome.kind === 'cancelled') return;
    this.#isSettled = true;
    const isFinal = this.relay.hasOutput || this.#stream.isCommitted;
    const end = isFinal ? outcome : this.#turn.onEmptyEnd(outcome);
    if (end === 'replaced') this.#stream.wait();
    else await this.#stream.finish(end);
  }
}

export interface Run {
  readonly stream: ClientStream;
  /** Its first attempt. */
  readonly answer: TestAttempt;
  readonly readable: ReadableStream<Uint8Array>;
  readonly clock: FakeClock;
  readonly accumulator: UsageAccumulator;
  /** Sizes of the writes. */
  readonly written: number[];
  /** What `opened` and `ended` resolved with. */
  readonly heads: unknown[];
  readonly ends: StreamEnd[];
}

/** A stream whose upstream responds with the body, or has not responded yet (no body). */
export function run(
  body?: ReadableStream<Uint8Array>,
  limits: Partial<TimerLimits> = {},
  clock = new FakeClock(),
  memory = new Memory(clock),
  turn = ONLY,
): Run {
  const accumulator = new UsageAccumulator(clock.now, 0);
  const written: number[] = [];
  const options = optionsOf(CHAT, accumulator);
  const stream = new ClientStream({
    writer: new ChatWriter(options.policies.errorFrames, options.maxEventBytes),
    // Copies the bytes, as the runtime's pipe does: they may be overwritten after the write.
    pipe: new TransformStream({ transform: (bytes, controller) => controller.enqueue(bytes.slice()) }),
    limits: { heartbeatMs: 0, idleTimeoutMs: 0, deadlineMs: 0, ...limits },
    clock,
    arrivedAt: clock.now(),
    takeMemory: (bytes) => memory.grant(bytes, () => {}),
    onWrite: (bytes) => written.push(bytes),
  });
  const ends: StreamEnd[] = [];
  const heads: unknown[] = [];
  void stream.ended.then((end) => ends.push(end));
  void stream.opened.then((head) => heads.push(head));
  const answer = new TestAttempt(stream, options, turn, clock);
  if (body !== undefined) void answer.pump(body);
  return { stream, answer, readable: stream.readable, clock, accumulator, written, heads, ends };
}

/** Waits until nothing continues without more input. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

export async function readAll(readable: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of readable) text += decoder.decode(bytes, { stream: true });
  return text;
}

/**
 * Reads one upstream response, streamed or not, and sends its chunks and vendor events to a sink.
 *
 * The path of an event: `push` takes bytes. An event that fits a template of the fast path becomes a frame at once. Any other goes
 * through the `SseParser`, which calls `#readEvent` with its name and data. The provider protocol reads the parsed data into a part,
 * `#sendPart` normalizes the part into a chunk, and the sink writes the chunk. All of this is synchronous.
 */
import type { Chunk } from '../canonical/chunk.ts';
import { type ApiError, apiError, type UpstreamError } from '../canonical/error.ts';
import { type ChunkPart, EMPTY_PART, hasText, type VendorTokens } from '../canonical/part.ts';
import { type Policies, passesVendorEvent } from '../canonical/policies.ts';
import { readUpstreamError, streamError, unwrapErrorList } from '../canonical/upstream-error.ts';
import {
  isObject,
  isWithinJsonBounds,
  type JsonObject,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  parseJson,
  readText,
} from '../shared/json.ts';
import { ByteBuffer } from './buffers.ts';
import { TemplateFastPath } from './fast-path/fast-path.ts';
import type { TextEvent } from './fast-path/template.ts';
import { Normalizer } from './normalizer.ts';
import { CR, indexOrEnd, LF, SseParser } from './sse-parser.ts';
import type {
  ChunkContext,
  ChunkSink,
  ProtocolQuirks,
  ProtocolReader,
  StreamFailure,
  StreamWriter,
  UpstreamProtocol,
} from './types.ts';

export interface EventReaderOptions {
  readonly context: ChunkContext;
  readonly protocol: UpstreamProtocol;
  readonly quirks: ProtocolQuirks;
  readonly policies: Policies;
  readonly maxEventBytes: number;
  /** Reads the tokens that a vendor event reports, in its provider's form. */
  readonly vendorTokens: (type: string, event: JsonObject) => VendorTokens | null;
}

export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #sink: ChunkSink;
  readonly #normalizer: Normalizer;
  readonly #protocol: ProtocolReader;
  readonly #sse: SseParser;
  readonly #fastPath: TemplateFastPath | null;
  /** The start of an event that matched a template up to the end of the last read. */
  readonly #partial = new ByteBuffer();
  #isOver = false;
  #hasOutput = false;
  #hasVendorEvent = false;
  #bodyEnded = false;
  #events = 0;

  /** @param writer the sink's writer, to which the fast path writes frames, or null for no fast path */
  constructor(options: EventReaderOptions, sink: ChunkSink, writer: StreamWriter | null = null) {
    this.#options = options;
    this.#sink = sink;
    this.#normalizer = new Normalizer(options.context);
    this.#protocol = options.protocol.open(options.quirks, options.context.provider);
    this.#sse = new SseParser(
      { event: (name, data) => this.#readEvent(name, data), tooLarge: () => this.#failTooLarge() },
      options.maxEventBytes,
    );
    this.#fastPath =
      writer === null
        ? null
        : new TemplateFastPath(
            writer,
            options.context.meter,
            (json) => this.#readPart(json),
            options.maxEventBytes,
          );
  }

  /** The number of data events so far. */
  get events(): number {
    return this.#events + this.copiedEvents;
  }

  /** Bytes of an event that has not ended. */
  get heldBytes(): number {
    return this.#sse.heldBytes;
  }

  /** Frees the memory that a large event took, if none is being read. */
  freeMemory(): void {
    this.#sse.freeMemory();
  }

  /** The number of events that took the fast path. */
  get copiedEvents(): number {
    return this.#fastPath?.hits ?? 0;
  }

  /** Whether there was text of content, reasoning, a refusal or a tool call, or a vendor event that passes. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Whether the sink received the end. Nothing is read after it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Reads bytes of a stream. */
  push(bytes: Uint8Array): void {
    if (this.#fastPath === null) this.#sse.push(bytes);
    else this.#pushFast(bytes, this.#fastPath);
  }

  /** Ends the stream: complete if every choice has its finish, else truncated (F2). */
  end(): void {
    this.#bodyEnded = true;
    if (this.#partial.length > 0) this.#sse.push(this.#partial.take());
    this.#sse.end();
    this.#readEnd();
    if (this.#isOver) return;
    if (this.#normalizer.isFinished) this.#finish();
    else this.#failTruncated();
  }

  /** Ends the stream because the connection broke: complete if every choice has its finish, else failed. */
  broken(error: ApiError): void {
    this.#bodyEnded = true;
    if (this.#partial.length > 0) this.#sse.push(this.#partial.take());
    this.#readEnd();
    if (this.#isOver) return;
    if (this.#normalizer.isFinished) this.#finish();
    else this.fail(error);
  }

  /** Reads a non-streaming response. */
  readResponse(response: JsonObject): void {
    this.#sink.response?.(response);
    const part = this.#protocol.response(response);
    const { error, usage, id } = part;
    if (error === null && id !== undefined) this.#options.context.meter.generated();
    // Nothing of a failed response is sent, as another attempt may replace it. Its usage counts.
    this.#sendPart(error === null ? part : { ...EMPTY_PART, error, usage });
    if (this.#isOver) return;
    if (!this.#normalizer.isEmpty) return this.#finish();
    this.fail(apiError('upstream_invalid', `${this.#name} answered without a choice`));
  }

  /** Ends the output with an error. */
  fail(error: ApiError): void {
    this.#end({ error, upstreamError: null });
  }

  /** Copies only as much of the read as completes a partial event. The rest is read in place. */
  #pushFast(read: Uint8Array, fastPath: TemplateFastPath): void {
    let rest = read;
    while (this.#partial.length > 0 && rest.length > 0) {
      const lineEnd = findLineEnd(rest);
      // Includes the byte after the line end, because an event ends with a blank line.
      const length = Math.min(lineEnd + 2, rest.length);
      this.#partial.append(rest.subarray(0, length));
      if (lineEnd === rest.length && this.#partial.length <= MAX_PARTIAL_BYTES) return;
      rest = rest.subarray(length);
      this.#readFast(this.#partial.take(), fastPath);
    }
    this.#readFast(rest, fastPath);
  }

  /** Between events, copies all events that match a template. The next one is parsed, and so on. */
  #readFast(bytes: Uint8Array, fastPath: TemplateFastPath): void {
    for (let at = 0; at < bytes.length && !this.#isOver; ) {
      if (this.#sse.isBetweenEvents) {
        const run = fastPath.run(bytes, at);
        at = run.at;
        const isWorthHolding = run.isPartial && bytes.length - at <= MAX_PARTIAL_BYTES;
        if (isWorthHolding) return this.#partial.append(bytes.subarray(at));
      }
      if (at < bytes.length) at = this.#sse.pushEvent(bytes, at);
    }
  }

  #readPart(json: string): ChunkPart | null {
    const event = parseJson(json);
    if (!isObject(event)) return null;
    return this.#protocol.trial === undefined ? this.#protocol.event(event, '') : this.#protocol.trial(event);
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }

  /** Reads one parsed server-sent event. */
  #readEvent(name: string, data: string): void {
    const text = data.trim();
    // Some upstreams send empty events to keep a connection open.
    if (text === '') return;
    this.#events++;
    if (text === '[DONE]') return this.#readDone();
    if (!isWithinJsonBounds(data)) return this.#failTooNested();
    const value = parseJson(data);
    const event = name === '' ? unwrapErrorList(value) : value;
    if (!isObject(event)) return this.#readNonObject(name, data);
    const type = readText(event.type) ?? '';
    if (type.startsWith('x_') && event.choices === undefined)
      return this.#readVendorEvent(type, name, event, data);
    if (name.startsWith('x_')) return this.#readVendorEvent(name, name, event, data);
    if (name === 'error') return this.#failWithUpstreamError(readUpstreamError(event));
    const part = this.#protocol.event(event, name);
    if (part !== null) this.#release(part);
    const chunk = part === null ? null : this.#normalizer.read(part);
    const failure = part === null ? null : this.#failureOf(part);
    // The error frame replaces an event that fails: such an event claims a complete output, or may contain a credential (E4).
    if (failure !== null) this.#sink.failedEvent?.(data, event);
    else if (this.#sink.event?.(name, data, event) === false) return this.#failOutputTooLarge();
    if (part !== null) this.#send(part, chunk, failure, { name, data, lineEnd: this.#sse.lineEnd });
  }

  #readDone(): void {
    this.#readEnd();
    if (this.#isOver) return;
    const { isEmpty, isFinished } = this.#normalizer;
    const hasOutput = !isEmpty || this.#hasVendorEvent;
    // In passthrough the upstream's events must have the finish.
    const mayLackFinish = this.#options.protocol.isFinishedByDone === true && this.#sink.event === undefined;
    if (isFinished || (mayLackFinish && hasOutput)) this.#finish();
    else this.#failTruncated();
  }

  /** Reads what the protocol knows only at the end. */
  #readEnd(): void {
    const part = this.#isOver ? null : (this.#protocol.end?.() ?? null);
    if (part !== null) this.#sendPart(part);
  }

  /** Sends a part that no single event contains. */
  #sendPart(part: ChunkPart): void {
    this.#release(part);
    const chunk = this.#normalizer.read(part);
    this.#send(part, chunk, this.#failureOf(part), null);
  }

  /** Sends the chunk that waited for this part, or for the end. */
  #release(next: ChunkPart | null): void {
    const held = this.#normalizer.release(next);
    if (held !== null) this.#sink.chunk(held);
  }

  /** Why the part that was read last fails the output, or null. */
  #failureOf(part: ChunkPart): StreamFailure | null {
    if (part.error !== null) return this.#upstreamFailure(part.error);
    const { fault, isFinished } = this.#normalizer;
    if (fault !== null) return { error: fault, upstreamError: null };
    return part.ends === true && !isFinished ? { error: this.#truncated, upstreamError: null } : null;
  }

  /**
   * Sends a part's chunk, and ends the output if the part does.
   * @param event the event as received, if the fast path may learn from it
   */
  #send(part: ChunkPart, chunk: Chunk | null, failure: StreamFailure | null, event: TextEvent | null): void {
    this.#hasOutput ||= part.choices.some((choice) => hasText(choice) || hasText(choice.whole ?? choice));
    if (chunk !== null && !this.#sink.chunk(chunk)) return this.#failOutputTooLarge();
    this.#fastPath?.keepTo(this.#normalizer.revision);
    if (event !== null && chunk !== null) this.#fastPath?.learn(event, part, chunk);
    if (failure !== null) this.#end(failure);
    else if (part.ends === true) this.#finish();
  }

  #readVendorEvent(type: string, eventName: string, event: JsonObject, json: string): void {
    this.#hasVendorEvent = true;
    this.#release(null);
    this.#options.context.meter.vendor(this.#options.vendorTokens(type, event));
    // An event that only its SSE name marks as the vendor's could contain what a client takes for a chunk or an error.
    const isPlain = event.type === type || (event.choices === undefined && event.error === undefined);
    if (!isPlain || !passesVendorEvent(this.#options.policies, type)) return;
    this.#hasOutput = true;
    // A client would take an event with a name such as `error` or `message` for something else.
    this.#sink.vendor(json, eventName.startsWith('x_') ? eventName : '');
  }

  /** Data that is not a JSON object: an error's text, an error if the event should be a chunk, else skipped. */
  #readNonObject(name: string, data: string): void {
    if (name.startsWith('x_')) return this.#options.context.meter.vendor(null);
    if (name === 'error') return this.#failWithUpstreamError({ ...EMPTY_ERROR, message: data });
    if (name !== '' && name !== 'message') return;
    // At the end of the body it is a truncated event: the output before it may be complete.
    if (!this.#bodyEnded) {
      this.fail(apiError('upstream_invalid', `${this.#name} sent a line that is not a JSON chunk`));
    }
  }

  #failWithUpstreamError(upstreamError: UpstreamError): void {
    this.#end(this.#upstreamFailure(upstreamError));
  }

  #upstreamFailure(upstreamError: UpstreamError): StreamFailure {
    return { error: streamError(this.#options.context.upstream, upstreamError), upstreamError };
  }

  #failTruncated(): void {
    this.fail(this.#truncated);
  }

  get #truncated(): ApiError {
    return apiError('upstream_truncated', `${this.#name} ended the stream before the answer was complete`);
  }

  #failTooLarge(): void {
    const bytes = this.#options.maxEventBytes;
    this.fail(apiError('upstream_event_too_large', `${this.#name} sent an event larger than ${bytes} bytes`));
  }

  #failTooNested(): void {
    const message = `${this.#name} sent an event of more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values`;
    this.fail(apiError('upstream_invalid', message));
  }

  #failOutputTooLarge(): void {
    this.fail(apiError('upstream_event_too_large', `${this.#name} sent an event whose output is too large`));
  }

  #finish(): void {
    this.#release(null);
    const last = this.#normalizer.finishOpenChoices();
    if (last !== null) this.#sink.chunk(last);
    // An open choice may end within a tool call.
    if (this.#normalizer.fault !== null) return this.fail(this.#normalizer.fault);
    const usage = this.#normalizer.usageChunk();
    if (usage !== null) this.#sink.chunk(usage);
    this.#end(null);
  }

  #end(failure: StreamFailure | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release(null);
    this.#sse.stop();
    this.#sink.end(failure);
  }
}

/** A larger partial event is parsed instead of held for the fast path. */
const MAX_PARTIAL_BYTES = 1024;

/** The end of the first line, or the bytes' length if the line continues. */
function findLineEnd(bytes: Uint8Array): number {
  return indexOrEnd(bytes.subarray(0, indexOrEnd(bytes, LF)), CR);
}

const EMPTY_ERROR = {
  message: undefined,
  type: undefined,
  code: undefined,
  param: undefined,
  status: undefined,
};

/** Reads one upstream answer, streamed or plain, to its one end: chunks and vendor events go to a sink as they come. */
import { type ApiError, apiError, type UpstreamError } from '../canonical/error.ts';
import { type ChoicePart, type ChunkPart, EMPTY_PART, type VendorTokens } from '../canonical/part.ts';
import { type Policies, passesVendorEvent } from '../canonical/policies.ts';
import { readUpstreamError, streamError, unlistError } from '../canonical/upstream-error.ts';
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
  /** The tokens that a vendor event reports, in its provider's form (V3). */
  readonly vendorTokens: (type: string, event: JsonObject) => VendorTokens | null;
}

export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #sink: ChunkSink;
  readonly #normaliser: Normalizer;
  readonly #protocol: ProtocolReader;
  readonly #sse: SseParser;
  readonly #fastPath: TemplateFastPath | null;
  /** The head of a frame that fitted a template until its read ended. */
  readonly #held = new ByteBuffer();
  #isOver = false;
  #hasOutput = false;
  #hasVendorEvent = false;
  #bodyEnded = false;
  #events = 0;

  /** @param writer where the fast path writes its frames: the sink's own writer, or null for no fast path */
  constructor(options: EventReaderOptions, sink: ChunkSink, writer: StreamWriter | null = null) {
    this.#options = options;
    this.#sink = sink;
    this.#normaliser = new Normalizer(options.context);
    this.#protocol = options.protocol.open(options.quirks, options.context.provider);
    this.#sse = new SseParser(
      { event: (name, data) => this.#event(name, data), tooLarge: () => this.#tooLarge() },
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

  /** Data events so far. */
  get events(): number {
    return this.#events + this.copiedEvents;
  }

  /** Bytes of an event that has not ended. */
  get heldBytes(): number {
    return this.#sse.heldBytes;
  }

  /** Gives back what reading a large event took, where none is being read. */
  freeMemory(): void {
    this.#sse.freeMemory();
  }

  /** Frames that went the fast way. */
  get copiedEvents(): number {
    return this.#fastPath?.hits ?? 0;
  }

  /** There was text of content, reasoning, a refusal or a tool call, or a vendor event that passes (R5). */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** The sink has received the end: nothing more is read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes of a streamed answer. */
  push(bytes: Uint8Array): void {
    if (this.#fastPath === null) this.#sse.push(bytes);
    else this.#pushFast(bytes, this.#fastPath);
  }

  /** The streamed answer's body is over: whole where every choice had its finish, cut where one had not (F2). */
  end(): void {
    this.#bodyEnded = true;
    if (this.#held.length > 0) this.#sse.push(this.#held.take());
    this.#sse.end();
    this.#readEnd();
    if (this.#isOver) return;
    if (this.#normaliser.isFinished) this.#finish();
    else this.#truncated();
  }

  /** The connection broke: an answer whose choices have all finished is whole all the same (F2). */
  broken(error: ApiError): void {
    this.#bodyEnded = true;
    if (this.#held.length > 0) this.#sse.push(this.#held.take());
    this.#readEnd();
    if (this.#isOver) return;
    if (this.#normaliser.isFinished) this.#finish();
    else this.fail(error);
  }

  /** A plain answer, which is whole as it stands. */
  plain(answer: JsonObject): void {
    this.#sink.answer?.(answer);
    const part = this.#protocol.plain(answer);
    const { error, usage, id } = part;
    if (error === null && id !== undefined) this.#options.context.meter.made();
    // Of one that failed nothing was sent yet: another answer may take its place, and what it used counts all the same.
    this.#part(error === null ? part : { ...EMPTY_PART, error, usage }, null);
    if (this.#isOver) return;
    if (!this.#normaliser.isEmpty) return this.#finish();
    this.fail(apiError('upstream_invalid', `${this.#name} answered without a choice`));
  }

  /** Ends the answer as failed, whoever found the failure. */
  fail(error: ApiError): void {
    this.#end({ error, upstreamError: null });
  }

  /** What was held is joined with no more of the read than ends its line: the rest is read where it lies. */
  #pushFast(read: Uint8Array, fastPath: TemplateFastPath): void {
    let rest = read;
    while (this.#held.length > 0 && rest.length > 0) {
      const lineEnd = findLineEnd(rest);
      // With the byte behind it, as a blank line is what ends an event.
      const length = Math.min(lineEnd + 2, rest.length);
      this.#held.append(rest.subarray(0, length));
      if (lineEnd === rest.length && this.#held.length <= MAX_HELD_BYTES) return;
      rest = rest.subarray(length);
      this.#readFast(this.#held.take(), fastPath);
    }
    this.#readFast(rest, fastPath);
  }

  /** Where an event begins, frames that fit a template are taken; the first that does not goes the slow way, then again. */
  #readFast(bytes: Uint8Array, fastPath: TemplateFastPath): void {
    for (let at = 0; at < bytes.length && !this.#isOver; ) {
      if (this.#sse.isBetweenEvents) {
        const run = fastPath.run(bytes, at);
        at = run.at;
        const isWorthHolding = run.isPartial && bytes.length - at <= MAX_HELD_BYTES;
        if (isWorthHolding) return this.#held.append(bytes.subarray(at));
      }
      if (at < bytes.length) at = this.#sse.pushEvent(bytes, at);
    }
  }

  #readPart(json: string): ChunkPart | null {
    const event = parseJson(json);
    return isObject(event) ? this.#protocol.event(event, '') : null;
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }

  #event(name: string, data: string): void {
    const text = data.trim();
    // Some keep a connection alive with empty events.
    if (text === '') return;
    this.#events++;
    if (text === '[DONE]') return this.#done();
    if (!isWithinJsonBounds(data)) return this.#tooNested();
    const value = parseJson(data);
    const event = name === '' ? unlistError(value) : value;
    if (!isObject(event)) return this.#notAnObject(name, data);
    const type = readText(event.type) ?? '';
    if (type.startsWith('x_') && event.choices === undefined) return this.#vendor(type, name, event, data);
    if (name.startsWith('x_')) return this.#vendor(name, name, event, data);
    if (name === 'error') return this.#failWithUpstreamError(readUpstreamError(event));
    const part = this.#protocol.event(event, name);
    // An error that ends the answer is told in Weir's own words, which hold no credential (E4).
    const isPassed = this.#sink.event !== undefined && (part?.error ?? null) === null;
    if (isPassed && !this.#sink.event?.(name, data, event)) return this.#outputTooLarge();
    if (part !== null) this.#part(part, { name, data, lineEnd: this.#sse.lineEnd });
  }

  #done(): void {
    this.#readEnd();
    if (this.#isOver) return;
    const { isEmpty, isFinished } = this.#normaliser;
    // Chunks are given an end, where a choice or a vendor event came before it (R4); events have it, or have none.
    if (isFinished || (this.#sink.event === undefined && (!isEmpty || this.#hasVendorEvent))) this.#finish();
    else this.#truncated();
  }

  /** What the dialect knows only now. */
  #readEnd(): void {
    const part = this.#isOver ? null : (this.#protocol.end?.() ?? null);
    if (part !== null) this.#part(part, null);
  }

  /** @param event as it came, where the fast path may learn from it */
  #part(part: ChunkPart, event: TextEvent | null): void {
    const chunk = this.#normaliser.read(part);
    this.#hasOutput ||= part.choices.some(hasText);
    if (chunk !== null && !this.#sink.chunk(chunk)) return this.#outputTooLarge();
    this.#fastPath?.keepTo(this.#normaliser.revision);
    if (event !== null && chunk !== null) this.#fastPath?.learn(event, part, chunk);
    if (part.error !== null) this.#failWithUpstreamError(part.error);
    else if (this.#normaliser.fault !== null) this.fail(this.#normaliser.fault);
    else if (part.ends === true) this.#finish();
  }

  #vendor(type: string, eventName: string, event: JsonObject, json: string): void {
    this.#hasVendorEvent = true;
    this.#options.context.meter.vendor(this.#options.vendorTokens(type, event));
    // An event that is the vendor's by its name alone could hold what a client takes for a chunk or an error.
    const isPlain = event.type === type || (event.choices === undefined && event.error === undefined);
    if (!isPlain || !passesVendorEvent(this.#options.policies, type)) return;
    this.#hasOutput = true;
    // Any other name (`error`, `message`) would make of it what it is not.
    this.#sink.vendor(json, eventName.startsWith('x_') ? eventName : '');
  }

  /** Named events may hold anything: only an error's text, and the data of an unnamed one, are for the client. */
  #notAnObject(name: string, data: string): void {
    if (name.startsWith('x_')) return this.#options.context.meter.vendor(null);
    if (name === 'error') return this.#failWithUpstreamError({ ...EMPTY_ERROR, message: data });
    if (name !== '' && name !== 'message') return;
    // Half a JSON that the body's end cut off: what came before it may still have been the whole answer.
    if (!this.#bodyEnded) {
      this.fail(apiError('upstream_invalid', `${this.#name} sent a line that is not a JSON chunk`));
    }
  }

  #failWithUpstreamError(upstreamError: UpstreamError): void {
    this.#end({ error: streamError(this.#options.context.upstream, upstreamError), upstreamError });
  }

  #truncated(): void {
    const message = `${this.#name} ended the stream before the answer was complete`;
    this.fail(apiError('upstream_truncated', message));
  }

  #tooLarge(): void {
    const bytes = this.#options.maxEventBytes;
    this.fail(apiError('upstream_event_too_large', `${this.#name} sent an event larger than ${bytes} bytes`));
  }

  #tooNested(): void {
    const message = `${this.#name} sent an event of more than ${MAX_JSON_DEPTH} levels or ${MAX_JSON_VALUES} values`;
    this.fail(apiError('upstream_invalid', message));
  }

  #outputTooLarge(): void {
    this.fail(
      apiError('upstream_event_too_large', `${this.#name} sent more at once than an answer may have`),
    );
  }

  #finish(): void {
    for (const chunk of [this.#normaliser.finishOpenChoices(), this.#normaliser.usageChunk()]) {
      if (chunk !== null) this.#sink.chunk(chunk);
    }
    this.#end(null);
  }

  #end(failure: StreamFailure | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sse.stop();
    this.#sink.end(failure);
  }
}

function hasText({ content, reasoning, refusal, toolCalls }: ChoicePart): boolean {
  if (content !== '' || reasoning !== '' || refusal !== '') return true;
  return toolCalls.some((call) => (call.name ?? '') !== '' || call.arguments !== '');
}

/** A frame larger than this is not worth waiting for in one piece. */
const MAX_HELD_BYTES = 1024;

/** Where the first line ends, or the bytes' length where it goes on. */
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

/**
 * Reads one upstream response, streamed or not, and writes its chunks and vendor events.
 *
 * The path of an event: `push` takes bytes. An event that fits a template of the fast path becomes a frame at once. Any other is
 * completed by the parser of the framing, and `#readEvent` gets its name and data. The provider protocol reads the parsed data into a part,
 * `#send` has the normalizer's chunk of the part and gives it to the writer. All of this is synchronous. Each step returns the outcome:
 * `MORE`, or how the output ended, after which no other step may follow.
 */
import type { Chunk } from '../canonical/chunk.ts';
import { type ApiError, apiError, type UpstreamError } from '../canonical/error.ts';
import {
  beginsOutput,
  type ChoicePart,
  type ChunkPart,
  EMPTY_PART,
  type VendorTokens,
} from '../canonical/part.ts';
import { type Policies, passesVendorEvent } from '../canonical/policies.ts';
import { readUpstreamError, streamError, unwrapErrorList } from '../canonical/upstream-error.ts';
import {
  isObject,
  isWithinJsonBounds,
  JSON_BOUNDS,
  type JsonObject,
  parseJsonExactly,
  readText,
} from '../shared/json.ts';
import { ByteBuffer } from './buffers.ts';
import type { MessageParser } from './event-parser.ts';
import { TemplateFastPath } from './fast-path/fast-path.ts';
import type { TextEvent } from './fast-path/template.ts';
import { Normalizer } from './normalizer.ts';
import { CR, indexOrEnd, LF, SseParser } from './sse-parser.ts';
import type { RawText } from './text-progress.ts';
import {
  type ChunkContext,
  type ChunkWriter,
  DONE,
  failed,
  MORE,
  type Outcome,
  type ProtocolQuirks,
  type ProtocolReader,
  type StreamFailure,
  type StreamWriter,
  type UpstreamProtocol,
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

/** The reader of one response, with all state of its output. Call `push` for each read and `end` once, or `readObject` once. */
export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #writer: ChunkWriter;
  readonly #normalizer: Normalizer;
  readonly #protocol: ProtocolReader;
  readonly #parser: SseParser | MessageParser;
  readonly #fastPath: TemplateFastPath | null;
  /** The start of an event that matched a template up to the end of the last read. */
  readonly #partial = new ByteBuffer();
  #hasOutput = false;
  #hasVendorEvent = false;
  /** There was an object that is neither a chunk nor anything else that is known. */
  #hasUnknown = false;
  #bodyEnded = false;
  /** The writer did not take a chunk. */
  #isOutputTooLarge = false;
  #events = 0;

  /** @param frames the same writer, if the fast path may write frames to it; null for no fast path */
  constructor(options: EventReaderOptions, writer: ChunkWriter, frames: StreamWriter | null = null) {
    this.#options = options;
    this.#writer = writer;
    this.#normalizer = new Normalizer(options.context);
    this.#protocol = options.protocol.open(options.quirks, options.context.provider);
    const { framing } = options.protocol;
    this.#parser = framing?.open(options.maxEventBytes) ?? new SseParser(options.maxEventBytes);
    this.#fastPath =
      frames === null
        ? null
        : new TemplateFastPath(
            frames,
            options.context.meter,
            (event) => this.#readPart(event),
            options.maxEventBytes,
          );
  }

  /** The number of data events so far. */
  get events(): number {
    return this.#events + this.copiedEvents;
  }

  /** Bytes of an event that has not ended. */
  get heldBytes(): number {
    return this.#parser.heldBytes;
  }

  /** Whether these bytes may complete the event that is being read. */
  mayCompleteEvent(bytes: Uint8Array): boolean {
    return this.#parser.mayComplete(bytes);
  }

  /** Frees the memory that a large event took, if none is being read. */
  freeMemory(): void {
    this.#parser.freeMemory();
  }

  /** Forgets an event that is being read, and frees its memory: the output has ended. */
  release(): void {
    this.#parser.release();
  }

  /** The number of events that took the fast path. */
  get copiedEvents(): number {
    return this.#fastPath?.hits ?? 0;
  }

  /** Whether there was text of content, reasoning, a refusal or a tool call, or a vendor event that passes. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Reads bytes of a stream. */
  push(bytes: Uint8Array): Outcome {
    const parser = this.#parser;
    if (parser.kind === 'messages') return this.#pushMessages(bytes, parser);
    return this.#fastPath === null ? this.#parse(bytes) : this.#pushFast(bytes, this.#fastPath, parser);
  }

  /** The body is at its end: the output is complete if every choice has its finish, else truncated (F2). */
  end(): Outcome {
    this.#bodyEnded = true;
    const partial = this.#readPartial();
    if (partial !== MORE) return partial;
    this.#parser.end();
    const last = this.#readCompleted();
    return last === MORE ? this.#finishOr(this.#truncated) : last;
  }

  /** The connection broke: the output is complete if every choice has its finish, else failed. */
  broken(error: ApiError): Outcome {
    this.#bodyEnded = true;
    const partial = this.#readPartial();
    return partial === MORE ? this.#finishOr(error) : partial;
  }

  /**
   * Reads a non-streaming response. Never returns `MORE`.
   * @param text the response as it came; null: it came in another form
   */
  readObject(response: JsonObject, text: string | null = null): Outcome {
    this.#writer.response?.(response, text);
    const part = this.#protocol.response(response);
    const { error, usage, id } = part;
    if (error === null && id !== undefined) this.#options.context.meter.generated();
    // Nothing of a failed response is sent, as another attempt may replace it. Its usage counts.
    const outcome = this.#sendParts(error === null ? part : { ...EMPTY_PART, error, usage }, false);
    if (outcome !== MORE) return outcome;
    if (!this.#normalizer.isEmpty) return this.#finish();
    return this.#fail(apiError('upstream_invalid', `${this.#name} answered without a choice`));
  }

  /** Ends the output as one that has reached its limit, between two steps. `MORE`: it is complete but for its end. */
  limit(): Outcome {
    // What follows ends it.
    if (this.#normalizer.isFinished) return MORE;
    this.#sendWaiting(null, 'complete');
    const last = this.#normalizer.limitOpenChoices();
    if (this.#writer.limit !== undefined) {
      this.#writer.limit(this.#options.context.meter.countUsage().usage);
      return DONE;
    }
    if (last !== null) this.#writer.chunk(last);
    const usage = this.#normalizer.usageChunk();
    if (usage !== null) this.#writer.chunk(usage);
    return DONE;
  }

  /** Writes what waits for the next part: the output ends for a reason that is not in it, such as a timeout. It gets no finish. */
  sendWaiting(): void {
    this.#sendWaiting(null, 'failed');
  }

  /** Whether a finish waits for the next event. */
  get holdsFinish(): boolean {
    return this.#normalizer.holdsFinish;
  }

  /** Writes a finish that has waited long enough. */
  sendFinish(): Outcome {
    this.#sendWaiting(null);
    if (this.#isOutputTooLarge) return this.#failOutputTooLarge();
    const { fault } = this.#normalizer;
    return fault === null ? MORE : this.#fail(fault);
  }

  /** Copies each message that matches a template. */
  #pushMessages(bytes: Uint8Array, parser: MessageParser): Outcome {
    for (let at = 0; at < bytes.length; ) {
      at = parser.next(bytes, at);
      const payload = this.#fastPath === null ? null : parser.payload();
      if (payload !== null && this.#fastPath?.copies(parser.name, payload) === true) parser.skip();
      const outcome = this.#readCompleted();
      if (outcome !== MORE) return outcome;
    }
    return MORE;
  }

  /** Copies only as much of the read as completes a partial event. The rest is read in place. */
  #pushFast(read: Uint8Array, fastPath: TemplateFastPath, parser: SseParser): Outcome {
    let rest = read;
    while (this.#partial.length > 0 && rest.length > 0) {
      const lineEnd = findLineEnd(rest);
      // Includes the byte after the line end, because an event ends with a blank line.
      const length = Math.min(lineEnd + 2, rest.length);
      this.#partial.append(rest, 0, length);
      if (lineEnd === rest.length && this.#partial.length <= MAX_PARTIAL_BYTES) return MORE;
      rest = rest.subarray(length);
      const outcome = this.#readFast(this.#partial.take(), fastPath, parser);
      if (outcome !== MORE) return outcome;
    }
    return this.#readFast(rest, fastPath, parser);
  }

  /** Between events, copies all events that match a template. The next one is parsed, and so on. */
  #readFast(bytes: Uint8Array, fastPath: TemplateFastPath, parser: SseParser): Outcome {
    for (let at = 0; at < bytes.length; ) {
      if (parser.isBetweenEvents) {
        const run = fastPath.run(bytes, at);
        at = run.at;
        const isWorthHolding = run.isPartial && bytes.length - at <= MAX_PARTIAL_BYTES;
        if (isWorthHolding) {
          this.#partial.append(bytes, at);
          return MORE;
        }
      }
      if (at === bytes.length) return MORE;
      at = parser.next(bytes, at);
      const outcome = this.#readCompleted();
      if (outcome !== MORE) return outcome;
    }
    return MORE;
  }

  /** Parses all events. */
  #parse(bytes: Uint8Array): Outcome {
    for (let at = 0; at < bytes.length; ) {
      at = this.#parser.next(bytes, at);
      const outcome = this.#readCompleted();
      if (outcome !== MORE) return outcome;
    }
    return MORE;
  }

  /** Parses the start of an event that was held for the fast path. */
  #readPartial(): Outcome {
    return this.#partial.length === 0 ? MORE : this.#parse(this.#partial.take());
  }

  /** Reads the event that the parser has completed, if it has. */
  #readCompleted(): Outcome {
    const parser = this.#parser;
    const data = parser.takeData();
    if (data !== null) return this.#readEvent(parser.name, data);
    if (parser.kind === 'messages' && parser.isCorrupt) return this.#failCorrupt();
    return parser.isTooLarge ? this.#failTooLarge() : MORE;
  }

  #readPart(event: JsonObject): ChunkPart | null {
    return this.#protocol.trial === undefined ? this.#protocol.event(event, '') : this.#protocol.trial(event);
  }

  get #name(): string {
    return this.#options.context.upstream.name;
  }

  /** Reads one parsed server-sent event. */
  #readEvent(name: string, data: string): Outcome {
    const text = data.trim();
    // Some upstreams send empty events to keep a connection open.
    if (text === '') return MORE;
    this.#events++;
    if (text === '[DONE]') return this.#readDone();
    if (!isWithinJsonBounds(data)) return this.#failTooNested();
    // A tool call's arguments may be a JSON object, in which an id must not be rounded.
    const value = parseJsonExactly(data);
    const event = name === '' ? unwrapErrorList(value) : value;
    if (!isObject(event)) return this.#readNonObject(name, data);
    const type = readText(event.type) ?? '';
    if (type.startsWith('x_') && event.choices === undefined)
      return this.#readVendorEvent(type, name, event, data);
    if (name.startsWith('x_')) return this.#readVendorEvent(name, name, event, data);
    if (name === 'error') return this.#failWithUpstreamError(readUpstreamError(event));
    const part = this.#protocol.event(event, name);
    this.#hasUnknown ||= !isChunk(event, part);
    // A client on the passthrough gets the event, and no chunks.
    if (part !== null && this.#writer.event === undefined && repeatsChoice(part))
      return this.#sendParts(part, true);
    if (part !== null) this.#sendWaiting(part);
    const chunk = part === null ? null : this.#normalizer.read(part, part.ends !== true);
    const failure = part === null ? null : this.#failureOf(part);
    // The error frame replaces an event that fails: such an event claims a complete output, or may contain a credential (E4).
    if (failure !== null) this.#writer.failedEvent?.(data, event);
    else if (this.#writer.event?.(name, data, event, part) === false) return this.#failOutputTooLarge();
    if (part === null) return MORE;
    const lineEnd = this.#parser.kind === 'lines' ? this.#parser.lineEnd : null;
    return this.#send(part, chunk, failure, { name, data, lineEnd });
  }

  #readDone(): Outcome {
    const outcome = this.#readEnd();
    if (outcome !== MORE) return outcome;
    // In passthrough the upstream's events must have the finish. What is not understood may be why there is none.
    const mayLackFinish =
      this.#options.protocol.isFinishedByDone === true &&
      this.#writer.event === undefined &&
      !this.#hasUnknown &&
      (this.#hasOutput || this.#hasVendorEvent);
    return this.#normalizer.isFinished || mayLackFinish ? this.#finish() : this.#fail(this.#truncated);
  }

  /** The body has ended: the output is complete if every choice has its finish, else it fails with the error. */
  #finishOr(error: ApiError): Outcome {
    const outcome = this.#readEnd();
    if (outcome !== MORE) return outcome;
    if (this.#normalizer.isFinished) return this.#finish();
    const sent = this.sendFinish();
    return sent === MORE ? this.#fail(error) : sent;
  }

  /** Reads what the protocol knows only at the end. */
  #readEnd(): Outcome {
    const part = this.#protocol.end?.() ?? null;
    return part === null ? MORE : this.#sendParts(part, false);
  }

  /**
   * Sends a part that is no single event's, or that needs several chunks.
   * @param mayGoOn other parts may follow
   */
  #sendParts(part: ChunkPart, mayGoOn: boolean): Outcome {
    for (const one of oneUpdateEach(part)) {
      this.#sendWaiting(one);
      const chunk = this.#normalizer.read(one, mayGoOn && one.ends !== true);
      const outcome = this.#send(one, chunk, this.#failureOf(one), null);
      if (outcome !== MORE) return outcome;
    }
    return MORE;
  }

  /** Sends the chunk that waited for this part, or for the end. */
  #sendWaiting(next: ChunkPart | null, end?: 'complete' | 'failed'): void {
    const waiting = this.#normalizer.takeWaiting(next, end);
    if (waiting !== null) this.#writeChunk(waiting);
  }

  #writeChunk(chunk: Chunk): void {
    this.#isOutputTooLarge = !this.#writer.chunk(chunk) || this.#isOutputTooLarge;
  }

  /** Why the part that was read last fails the output, or null. */
  #failureOf(part: ChunkPart): StreamFailure | null {
    if (part.error !== null) return this.#upstreamFailure(part.error);
    const { fault } = this.#normalizer;
    if (fault !== null) return { error: fault, upstreamError: null };
    const isCut = part.ends === true && !this.#normalizer.isFinished;
    return isCut ? { error: this.#truncated, upstreamError: null } : null;
  }

  /**
   * Sends a part's chunk, and ends the output if the part does.
   * @param event the event as received, if the fast path may learn from it
   */
  #send(
    part: ChunkPart,
    chunk: Chunk | null,
    failure: StreamFailure | null,
    event: TextEvent | null,
  ): Outcome {
    this.#hasOutput ||= part.choices.some(
      (choice) => beginsOutput(choice) || beginsOutput(choice.whole ?? choice),
    );
    if (chunk !== null) this.#writeChunk(chunk);
    if (this.#isOutputTooLarge) return this.#failOutputTooLarge();
    this.#fastPath?.keepTo(this.#normalizer.revision);
    if (event !== null && chunk !== null) this.#fastPath?.learn(event, part, chunk, this.#textOf(part));
    if (failure !== null) return this.#failWith(failure);
    return part.ends === true ? this.#finish() : MORE;
  }

  /** What events like this one do nothing but continue, if anything has to know of it. */
  #textOf(part: ChunkPart): RawText | null {
    return this.#protocol.copiesArguments === true ? this.#normalizer.textOf(part) : null;
  }

  #readVendorEvent(type: string, eventName: string, event: JsonObject, json: string): Outcome {
    this.#hasVendorEvent = true;
    this.#options.context.meter.vendor(this.#options.vendorTokens(type, event));
    // An event that only its SSE name marks as the vendor's could contain what a client takes for a chunk or an error.
    const isPlain = event.type === type || (event.choices === undefined && event.error === undefined);
    if (!isPlain || !passesVendorEvent(this.#options.policies, type)) return MORE;
    const sent = this.sendFinish();
    if (sent !== MORE) return sent;
    this.#hasOutput = true;
    // A client would take an event with a name such as `error` or `message` for something else.
    this.#writer.vendor(json, eventName.startsWith('x_') ? eventName : '');
    return MORE;
  }

  /** Data that is not a JSON object: an error's text, an error if the event should be a chunk, else skipped. */
  #readNonObject(name: string, data: string): Outcome {
    if (name.startsWith('x_')) {
      this.#options.context.meter.vendor(null);
      return MORE;
    }
    if (name === 'error') return this.#failWithUpstreamError({ ...EMPTY_ERROR, message: data });
    if (this.#parser.kind === 'messages')
      return this.#fail(
        apiError('upstream_invalid', `${this.#name} sent a message that is not a JSON object`),
      );
    // At the end of the body it is a truncated event: the output before it may be complete.
    if ((name !== '' && name !== 'message') || this.#bodyEnded) return MORE;
    return this.#fail(apiError('upstream_invalid', `${this.#name} sent a line that is not a JSON chunk`));
  }

  #failWithUpstreamError(upstreamError: UpstreamError): Outcome {
    return this.#failWith(this.#upstreamFailure(upstreamError));
  }

  #upstreamFailure(upstreamError: UpstreamError): StreamFailure {
    return { error: streamError(this.#options.context.upstream, upstreamError), upstreamError };
  }

  get #truncated(): ApiError {
    return apiError('upstream_truncated', `${this.#name} ended the stream before the answer was complete`);
  }

  #failTooLarge(): Outcome {
    const bytes = this.#options.maxEventBytes;
    const message = `${this.#name} sent an event larger than ${bytes} bytes`;
    return this.#fail(apiError('upstream_event_too_large', message));
  }

  #failCorrupt(): Outcome {
    const message = `${this.#name} sent a message whose checksum or lengths are wrong`;
    return this.#fail(apiError('upstream_invalid', message));
  }

  #failTooNested(): Outcome {
    const message = `${this.#name} sent an event of more than ${JSON_BOUNDS}`;
    return this.#fail(apiError('upstream_invalid', message));
  }

  #failOutputTooLarge(): Outcome {
    const message = `${this.#name} sent an event whose output is too large`;
    return this.#fail(apiError('upstream_event_too_large', message));
  }

  #finish(): Outcome {
    this.#sendWaiting(null, 'complete');
    const last = this.#normalizer.finishOpenChoices();
    if (last !== null) this.#writeChunk(last);
    if (this.#isOutputTooLarge) return this.#failOutputTooLarge();
    // An open choice may end within a tool call.
    if (this.#normalizer.fault !== null) return this.#fail(this.#normalizer.fault);
    const usage = this.#normalizer.usageChunk();
    if (usage !== null) this.#writer.chunk(usage);
    return DONE;
  }

  #fail(error: ApiError): Outcome {
    return this.#failWith({ error, upstreamError: null });
  }

  #failWith(failure: StreamFailure): Outcome {
    this.#sendWaiting(null, 'failed');
    return failed(failure);
  }
}

/** Whether the part has several updates of one choice. */
function repeatsChoice({ choices }: ChunkPart): boolean {
  return choices.length > 1 && new Set(choices.map(({ index }) => index)).size < choices.length;
}

/**
 * Splits the part so that each has at most one update of a choice (C3). The first part has the usage, because the finish that is sent with
 * usage may be in any of them (U2). The last part has everything else that belongs to no choice.
 */
function oneUpdateEach(part: ChunkPart): readonly ChunkPart[] {
  if (!repeatsChoice(part)) return [part];
  const groups: ChoicePart[][] = [];
  for (const choice of part.choices) {
    const last = groups.at(-1);
    if (last === undefined || last.some(({ index }) => index === choice.index)) groups.push([choice]);
    else last.push(choice);
  }
  const { id, created, model, serviceTier, systemFingerprint } = part;
  const head = { ...EMPTY_PART, id, created, model, serviceTier, systemFingerprint };
  return groups.map((choices, at) => ({
    ...(at < groups.length - 1 ? head : part),
    choices,
    usage: at === 0 ? part.usage : null,
  }));
}

/** Whether an event of a chat provider is a chunk, or has nothing in it. */
function isChunk(event: JsonObject, part: ChunkPart | null): boolean {
  if (Array.isArray(event.choices)) return true;
  // Workers AI's own form has no choices; its reader makes one.
  if (part !== null && (part.usage !== null || part.choices.length > 0)) return true;
  return CHUNKS.includes(event.object) || Object.keys(event).length === 0;
}

const CHUNKS: readonly unknown[] = ['chat.completion.chunk', 'text_completion', 'text_completion.chunk'];

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

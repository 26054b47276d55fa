/** Writes an upstream's events and JSON responses as they came, for clients that speak the same protocol. */
import type { Chunk } from '../../canonical/chunk.ts';
import type { ChunkPart } from '../../canonical/part.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { JsonObject } from '../../shared/json.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import { frameData, frameHead } from '../../stream/sse-frame.ts';
import type { JsonWriter, StreamFailure, StreamWriter } from '../../stream/types.ts';

/** An event as its sender wrote it. */
export interface PassedEvent {
  /** `""` for none. */
  readonly name: string;
  readonly data: string;
}

/** What a protocol adds to a stream or changes in it. It may keep state for one stream. */
export interface PassthroughFormat {
  /**
   * The frame that keeps the connection open.
   * @param hasBegun whether the client has received an event
   */
  heartbeat(hasBegun: boolean): string;
  /** The frames that end a failed stream. */
  failure(failure: StreamFailure): string;
  /**
   * The frames that end the stream as one that has reached its limit.
   * @param hasBegun whether the client has received an event
   */
  limit(usage: Usage, hasBegun: boolean): string;
  /** The events that the client receives when this one has come: none, this one, or several. Absent: this one, unchanged. */
  events?(passed: PassedEvent, event: JsonObject, part: ChunkPart | null): readonly PassedEvent[];
  /** Called for an event that fails the output, which the failure replaces. */
  failedEvent?(data: string, event: JsonObject): void;
  /** Called for each event that the fast path copied. */
  eventCopied?(): void;
  /** Whether the fast path may copy events of text. Absent: it may. */
  readonly canCopyEvents?: boolean;
}

/** Writes the events of one stream as the upstream sent them, changed as its format says. */
export class PassthroughWriter implements StreamWriter {
  readonly output: FrameBuffer;
  readonly #createFormat: () => PassthroughFormat;
  #format: PassthroughFormat;
  #hasBegun = false;

  constructor(createFormat: () => PassthroughFormat, maxEventBytes: number) {
    this.#createFormat = createFormat;
    this.#format = createFormat();
    this.output = new FrameBuffer(maxEventBytes);
  }

  get revision(): number {
    return this.#canCopyEvents ? 0 : 1;
  }

  readonly event = (name: string, data: string, event: JsonObject, part: ChunkPart | null): boolean => {
    this.#hasBegun = true;
    if (this.#format.events === undefined) return this.#write({ name, data });
    return this.#format.events({ name, data }, event, part).every((passed) => this.#write(passed));
  };

  #write({ name, data }: PassedEvent): boolean {
    return this.output.frame(frameHead(name), frameData(data));
  }

  readonly limit = (usage: Usage): void => {
    this.output.text(this.#format.limit(usage, this.#hasBegun));
  };

  failedEvent(data: string, event: JsonObject): void {
    this.#format.failedEvent?.(data, event);
  }

  /** Chunks only count usage here: the client receives the events. */
  chunk(): boolean {
    return true;
  }

  /** Already written as an event. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    if (failure !== null) this.output.text(this.#format.failure(failure));
  }

  heartbeat(isHeld: boolean): void {
    this.output.text(this.#format.heartbeat(this.#hasBegun && !isHeld));
  }

  restart(): void {
    this.#hasBegun = false;
    this.#format = this.#createFormat();
  }

  /** Any text that depends only on the chunk: the fast path compares it to learn which events have nothing but a text. */
  textFrame(chunk: Chunk): string | null {
    return this.#canCopyEvents ? JSON.stringify(chunk) : null;
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.#format.eventCopied?.();
    this.output.splice(literals, source, from, to);
  }

  get #canCopyEvents(): boolean {
    return this.#format.canCopyEvents ?? true;
  }
}

/**
 * Passes a non-streaming response on, byte for byte where nothing of it changes. If the upstream streams nevertheless,
 * the protocol's own writer collects the chunks.
 */
export class PassthroughJsonWriter implements JsonWriter {
  readonly #collector: JsonWriter;
  readonly #convert: (response: JsonObject) => JsonObject;
  #response: string | null = null;

  /** @param convert the response as the client receives it */
  constructor(collector: JsonWriter, convert: (response: JsonObject) => JsonObject) {
    this.#collector = collector;
    this.#convert = convert;
  }

  get heldChars(): number {
    return this.#collector.heldChars;
  }

  readonly response = (response: JsonObject, text: string | null): void => {
    const converted = this.#convert(response);
    this.#response = converted === response && text !== null ? text : JSON.stringify(converted);
  };

  chunk(chunk: Chunk): boolean {
    return this.#collector.chunk(chunk);
  }

  vendor(json: string, name: string): void {
    this.#collector.vendor(json, name);
  }

  take(): string {
    return this.#response ?? this.#collector.take();
  }
}

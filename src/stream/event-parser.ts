/**
 * What the reader of a response needs of a framing: server-sent events (`sse-parser.ts`) or AWS's event stream
 * (`eventstream-parser.ts`).
 */

/**
 * Splits the bytes of one stream into events. Call `next` until a read is used up, and `end` once after the last read. After each call,
 * `takeData` returns the event that it completed.
 */
export interface EventParser {
  readonly kind: 'lines' | 'messages';
  /** The name of the completed event, or `""`. */
  readonly name: string;
  /** An event exceeds the bound. Nothing is read after it. */
  readonly isTooLarge: boolean;
  /** Bytes of an event that has not ended. */
  readonly heldBytes: number;
  /** The data of the event that the last `next` or `end` completed; null if it completed none. */
  takeData(): string | null;
  /**
   * Reads from `at` to the end of the first event.
   * @returns the start of the next event, or the bytes' length
   */
  next(bytes: Uint8Array, at: number): number;
  /** Ends the stream. */
  end(): void;
  /** Whether these bytes may complete the event that is being read. */
  mayComplete(bytes: Uint8Array): boolean;
  /** Frees the memory that a large event took, if none is being read. */
  freeMemory(): void;
  /** Forgets an event that is being read, and frees its memory: nothing is read after it. */
  release(): void;
}

/** The parser of a framing whose messages have a checksum, and JSON objects as payload. */
export interface MessageParser extends EventParser {
  readonly kind: 'messages';
  /** What was read is not what was sent. Nothing is read after it. */
  readonly isCorrupt: boolean;
  /** The bytes and the place of the completed message's payload, until the next call; null if none is complete, or it reports a failure. */
  payload(): Payload | null;
  /** Forgets the completed message. */
  skip(): void;
}

/** A part of some bytes. */
export interface Payload {
  readonly bytes: Uint8Array;
  /** Over the same bytes. */
  readonly view: DataView;
  readonly from: number;
  readonly to: number;
}

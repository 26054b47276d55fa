/**
 * Reads messages of `application/vnd.amazon.eventstream` from bytes, and has each message as soon as its last byte is read:
 * https://smithy.io/2.0/aws/amazon-eventstream.html. A message is 4 bytes with its length, 4 with that of its headers, the checksum of
 * these 8, the headers, the payload, and the checksum of all before it.
 */
import { isObject, parseJson } from '../shared/json.ts';
import { ByteBuffer } from './buffers.ts';
import { crc32, KnownBytes } from './crc32.ts';
import type { MessageParser, Payload } from './event-parser.ts';
import { Literal, viewOf } from './fast-path/matcher.ts';
import type { Framing } from './types.ts';

const PRELUDE_BYTES = 12;
/** Where the checksum of the prelude begins. */
const CHECKED_PRELUDE_BYTES = 8;
const CHECKSUM_BYTES = 4;
const MIN_MESSAGE_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES;

/** AWS's own limit. Recorded messages have about 90 bytes of headers. */
const MAX_HEADERS_BYTES = 128 * 1024;

/** Types of header values: the first eight have a fixed size, bytes and strings have their own length before them. */
const VALUE_BYTES: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];
const STRING = 7;

/** Keeps a BOM, which JSON refuses. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
const NOTHING: Uint8Array = new Uint8Array(0);
const NO_VIEW = viewOf(NOTHING);

/** The headers of a message that say what it is. `""`: it has none of this name. */
interface MessageHeaders {
  readonly name: string;
  /** The message is of the type `exception` or `error`: the stream has failed. */
  readonly isFailure: boolean;
  /** What an `error` says beside its code; its payload is empty. */
  readonly message: string;
}

/** The name of messages of the types `exception` and `error` begins so. */
export const FAILURE_PREFIX = 'exception:';

/** AWS's framing. */
export const EVENT_STREAM: Framing = {
  mediaType: 'application/vnd.amazon.eventstream',
  open: (maxEventBytes) => new EventStreamParser(maxEventBytes),
};

/** A parser for one stream. */
export class EventStreamParser implements MessageParser {
  readonly kind = 'messages';
  /** The type of the completed message's event; of an exception or an error {@link FAILURE_PREFIX} and its type or code. */
  name = '';
  isTooLarge = false;
  /** A checksum is wrong, or lengths contradict each other. Nothing is read after it. */
  isCorrupt = false;
  readonly #maxEventBytes: number;
  /** The start of a message whose end was not read yet. */
  readonly #unfinished = new ByteBuffer();
  /** The length of the unfinished message, as its prelude says; 0: that was not read yet. */
  #messageBytes = 0;
  /** That of the prelude that was read last. */
  #preludeChecksum = 0;
  #isComplete = false;
  /** Of the completed message. One object for all, because a stream has thousands. */
  readonly #payload = { bytes: NOTHING, view: NO_VIEW, from: 0, to: 0 };
  #headers: MessageHeaders = { name: '', isFailure: false, message: '' };
  /** The headers that were parsed last: almost all messages of a stream have the same. Null: there are none, or they are too large. */
  #known: KnownHeaders | null = null;

  /** @param maxEventBytes bounds a message, and so what is held (B1) */
  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  get heldBytes(): number {
    return this.#unfinished.length;
  }

  takeData(): string | null {
    if (!this.#isComplete) return null;
    this.#isComplete = false;
    const { bytes, from, to } = this.#payload;
    const text = textOf(bytes, from, to);
    return this.#headers.isFailure ? failureData(text, this.#headers.message) : text;
  }

  skip(): void {
    this.#isComplete = false;
  }

  payload(): Payload | null {
    return this.#isComplete && !this.#headers.isFailure ? this.#payload : null;
  }

  freeMemory(): void {
    this.#unfinished.free();
  }

  release(): void {
    this.#payload.bytes = NOTHING;
    this.#payload.view = NO_VIEW;
    this.#unfinished.release();
  }

  mayComplete(bytes: Uint8Array): boolean {
    return this.#unfinished.length + bytes.length >= this.#messageBytes;
  }

  /** A message that the body does not complete is lost. */
  end(): void {
    this.#unfinished.take();
  }

  next(bytes: Uint8Array, at: number): number {
    let start = at;
    while (start < bytes.length && !this.isTooLarge && !this.isCorrupt) {
      const end = this.#unfinished.length > 0 ? this.#continue(bytes, start) : this.#begin(bytes, start);
      if (this.#isComplete) return end;
      start = end;
    }
    return bytes.length;
  }

  /** Reads a message in place if it ends within the read, or holds its start. @returns where the message ends, or the bytes' length */
  #begin(bytes: Uint8Array, at: number): number {
    const available = bytes.length - at;
    if (available >= PRELUDE_BYTES && !this.#readPrelude(this.#viewOf(bytes), at)) return bytes.length;
    const length = this.#messageBytes;
    if (length > 0 && length <= available) {
      this.#readMessage(bytes, at);
      return at + length;
    }
    this.#unfinished.append(bytes, at);
    return bytes.length;
  }

  /** Appends to the held message no more than what completes its prelude, and then what completes it. */
  #continue(bytes: Uint8Array, at: number): number {
    const needed = (this.#messageBytes || PRELUDE_BYTES) - this.#unfinished.length;
    const end = Math.min(bytes.length, at + needed);
    this.#unfinished.append(bytes, at, end);
    if (end - at < needed) return end;
    if (this.#messageBytes > 0) this.#readMessage(this.#unfinished.take(), 0);
    else this.#readPrelude(viewOf(this.#unfinished.bytes), 0);
    return end;
  }

  /** One view for each read. */
  #viewOf(bytes: Uint8Array): DataView {
    const payload = this.#payload;
    if (payload.bytes !== bytes) {
      payload.bytes = bytes;
      payload.view = viewOf(bytes);
    }
    return payload.view;
  }

  /** Reads the lengths, once their checksum says that they are what was sent. @returns false: nothing can be read after it */
  #readPrelude(view: DataView, at: number): boolean {
    const length = view.getUint32(at);
    const headersLength = view.getUint32(at + 4);
    const end = at + CHECKED_PRELUDE_BYTES;
    this.#preludeChecksum = crc32(view, at, end);
    const isRight = this.#preludeChecksum === view.getUint32(end);
    if (!isRight || length < MIN_MESSAGE_BYTES || headersLength > length - MIN_MESSAGE_BYTES)
      this.isCorrupt = true;
    else if (length > this.#maxEventBytes || headersLength > MAX_HEADERS_BYTES) this.isTooLarge = true;
    else this.#messageBytes = length;
    return this.#messageBytes > 0;
  }

  #readMessage(bytes: Uint8Array, at: number): void {
    const view = this.#viewOf(bytes);
    const end = at + this.#messageBytes - CHECKSUM_BYTES;
    this.#messageBytes = 0;
    const from = at + PRELUDE_BYTES;
    const to = from + view.getUint32(at + 4);
    const known = this.#known?.fits(bytes, view, from, to) === true ? this.#known : null;
    const before = crc32(view, at + CHECKED_PRELUDE_BYTES, from, this.#preludeChecksum);
    const behind =
      known === null ? crc32(view, from, to, before) : known.checksumAfter(before, view, from, to);
    if (
      crc32(view, to, end, behind) !== view.getUint32(end) ||
      (known === null && !this.#readHeaders(bytes, from, to))
    ) {
      this.isCorrupt = true;
      return;
    }
    // A message with neither keeps the connection open.
    if (to === end && to === from) return;
    this.#payload.from = to;
    this.#payload.to = end;
    this.name = this.#headers.name;
    this.#isComplete = true;
  }

  /** @returns false if they are malformed */
  #readHeaders(bytes: Uint8Array, from: number, to: number): boolean {
    const headers = parseHeaders(bytes, from, to);
    if (headers === null) return false;
    this.#headers = headers;
    this.#known = to === from || to - from > MAX_KNOWN_BYTES ? null : new KnownHeaders(bytes.slice(from, to));
    return true;
  }
}

/** Headers of this size are kept, to be compared with the next ones. */
const MAX_KNOWN_BYTES = 256;
/** Messages with the same headers, before their part of the checksum is worth to be known: that costs as much as some messages. */
const MIN_REPEATS = 16;

/** Headers that were read: a message that has the same is read without them. */
class KnownHeaders {
  readonly #literal: Literal;
  #repeats = 0;
  #checksum: KnownBytes | null = null;

  constructor(bytes: Uint8Array) {
    this.#literal = new Literal(bytes);
  }

  fits(bytes: Uint8Array, view: DataView, from: number, to: number): boolean {
    return this.#literal.length === to - from && this.#literal.fits(bytes, view, from, to);
  }

  /** The checksum of all up to the end of these headers, which fit. @param before that of what precedes them */
  checksumAfter(before: number, view: DataView, from: number, to: number): number {
    if (this.#checksum !== null) return this.#checksum.after(before);
    if (++this.#repeats === MIN_REPEATS) this.#checksum = new KnownBytes(to - from, crc32(view, from, to));
    return crc32(view, from, to, before);
  }
}

function short(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

/** The strings among the headers that say what a message is. Null: the headers are malformed. */
function parseHeaders(bytes: Uint8Array, from: number, to: number): MessageHeaders | null {
  const texts = new Map<string, string>();
  for (let at = from; at < to; ) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd] ?? -1;
    const size = VALUE_BYTES[type];
    if (nameEnd >= to || size === undefined) return null;
    const hasLength = size < 0;
    const start = nameEnd + (hasLength ? 3 : 1);
    const end = start + (hasLength ? short(bytes, nameEnd + 1) : size);
    if (start > to || end > to) return null;
    const isRead = type === STRING && bytes[at + 1] === COLON && texts.size < MAX_READ_HEADERS;
    if (isRead) texts.set(textOf(bytes, at + 1, nameEnd), textOf(bytes, start, end));
    at = end;
  }
  return meaningOf(texts);
}

/** The names of all headers that are read begin so. */
const COLON = 58;
/** There are six such names. */
const MAX_READ_HEADERS = 16;

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return decoder.decode(bytes.subarray(from, to));
}

function meaningOf(texts: ReadonlyMap<string, string>): MessageHeaders {
  const exception = texts.get(':exception-type');
  const code = texts.get(':error-code');
  const type = texts.get(':message-type');
  const isFailure = type === undefined ? (exception ?? code) !== undefined : FAILURE_TYPES.includes(type);
  if (!isFailure) return { name: texts.get(':event-type') ?? '', isFailure, message: '' };
  const name = `${FAILURE_PREFIX}${exception ?? code ?? texts.get(':event-type') ?? ''}`;
  return { name, isFailure, message: texts.get(':error-message') ?? '' };
}

const FAILURE_TYPES: readonly string[] = ['exception', 'error'];

/** The data of a failed message: its payload if that is an object, else one with what it says. */
function failureData(payload: string, message: string): string {
  const value = parseJson(payload);
  if (isObject(value) && message === '') return payload;
  return JSON.stringify({ message: message || payload, ...(isObject(value) ? value : {}) });
}

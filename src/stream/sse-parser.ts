/**
 * Parses server-sent events from bytes by the WHATWG specification, and has each event as soon as its last byte is read:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
import { ByteBuffer } from './buffers.ts';
import type { EventParser } from './event-parser.ts';

export const LF = 10;
export const CR = 13;
const COLON = 58;
const SPACE = 32;
const BRACE = 0x7b;
const BRACKET = 0x5b;
const BOM = [0xef, 0xbb, 0xbf];
const DATA = [100, 97, 116, 97];
const EVENT = [101, 118, 101, 110, 116];
/** The field in which servers of llama.cpp reported an error: `error: {"code":500,"message":"…"}`. */
const ERROR = [101, 114, 114, 111, 114];

/** Keeps a BOM: only one at the start of the stream is removed, and this decoder would remove one from every line. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** A parser for one stream. */
export class SseParser implements EventParser {
  readonly kind = 'lines';
  name = '';
  /** An event or a line exceeds the bound. */
  isTooLarge = false;
  readonly #maxEventBytes: number;
  #data: string | null = null;
  /** The start of a line whose end was not read yet. */
  readonly #unfinished = new ByteBuffer();
  /** Bytes of the unfinished event's data lines. */
  #dataBytes = 0;
  #dataLines: string | undefined;
  #eventName = '';
  #isFirstLine = true;
  #isCrlf = false;
  /** The event is a JSON body without `data:`. */
  #isBare = false;
  /** The last read ended with CR: an LF at the start of the next read belongs to it. */
  #skipLf = false;
  /** The read that is scanned, and the index of its next LF. */
  #scanned: Uint8Array | undefined;
  #nextLf = -1;

  /** @param maxEventBytes bounds what is held: the data of one event and the current line (B1) */
  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** Whether nothing of an event is held, so that the next byte begins one. */
  get isBetweenEvents(): boolean {
    return (
      this.#unfinished.length === 0 &&
      this.#dataLines === undefined &&
      this.#eventName === '' &&
      !this.#skipLf
    );
  }

  /** The end of the last line. */
  get lineEnd(): '\n' | '\r\n' {
    return this.#isCrlf ? '\r\n' : '\n';
  }

  get heldBytes(): number {
    return this.#dataBytes + this.#unfinished.length;
  }

  /** The data lines, joined by LF. */
  takeData(): string | null {
    const data = this.#data;
    this.#data = null;
    return data;
  }

  freeMemory(): void {
    this.#unfinished.free();
  }

  release(): void {
    this.#unfinished.release();
  }

  /** An event ends with a line. */
  mayComplete(bytes: Uint8Array): boolean {
    return bytes.includes(LF);
  }

  next(bytes: Uint8Array, at: number): number {
    let start = at;
    if (this.#skipLf) {
      this.#skipLf = false;
      if (bytes[start] === LF) start++;
    }
    while (start < bytes.length && !this.isTooLarge) {
      start = this.#skipBlank(bytes, start);
      if (start === bytes.length) break;
      const end = this.#findLineEnd(bytes, start);
      if (end === bytes.length) {
        this.#unfinished.append(bytes, start);
        this.#checkSize(0);
        break;
      }
      this.#isCrlf = bytes[end] === CR && bytes[end + 1] === LF;
      const isBlank = this.#line(this.#finishLine(bytes.subarray(start, end)));
      start = end + 1;
      if (bytes[end] === CR) {
        if (start === bytes.length) this.#skipLf = true;
        else if (bytes[start] === LF) start++;
      }
      if (isBlank) return start;
    }
    return bytes.length;
  }

  /** Between events: returns the start of the first line that is neither blank nor a complete comment. A fast way over heartbeats. */
  #skipBlank(bytes: Uint8Array, from: number): number {
    if (!this.isBetweenEvents || this.#isFirstLine) return from;
    let at = from;
    for (;;) {
      while (bytes[at] === LF || bytes[at] === CR) at++;
      if (bytes[at] !== COLON) return at;
      const end = this.#findLineEnd(bytes, at);
      if (end === bytes.length || end - at > this.#maxEventBytes) return at;
      at = end + 1;
    }
  }

  /** A last line and a last event without their ends still count (S2). */
  end(): void {
    if (this.#unfinished.length > 0) this.#line(this.#unfinished.take());
    if (!this.isTooLarge) this.#complete();
  }

  /** The complete line, from its last piece. */
  #finishLine(last: Uint8Array): Uint8Array {
    if (this.#unfinished.length === 0) return last;
    this.#unfinished.append(last);
    return this.#unfinished.take();
  }

  /** The end of the line that begins at `start`, or the bytes' length if the line continues. */
  #findLineEnd(bytes: Uint8Array, start: number): number {
    if (bytes !== this.#scanned) {
      this.#scanned = bytes;
      this.#nextLf = -1;
    }
    // Searched again only after it was passed: in a read full of CRs a search at every line would take quadratic time.
    if (this.#nextLf < start) this.#nextLf = indexOrEnd(bytes, LF, start);
    return start + indexOrEnd(bytes.subarray(start, this.#nextLf), CR);
  }

  /** @returns whether the line ends an event */
  #line(line: Uint8Array): boolean {
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (startsWith(line, BOM)) return this.#line(line.subarray(BOM.length));
    }
    if (line.length === 0) {
      this.#complete();
      return true;
    }
    if (!this.#checkSize(line.length)) return false;
    if (this.#isBare || this.#beginsBare(line)) this.#bareLine(line);
    else if (startsWith(line, DATA)) this.#dataField(line);
    else if (startsWith(line, EVENT)) this.#eventName = fieldValue(line, EVENT.length) ?? this.#eventName;
    else if (startsWith(line, ERROR)) this.#errorField(line);
    // Everything else is skipped: a comment, `id`, `retry` or an unknown field.
    return false;
  }

  /** The event is an error, and the field has its data. */
  #errorField(line: Uint8Array): void {
    if (fieldValue(line, ERROR.length) === undefined) return;
    this.#eventName = 'error';
    this.#dataField(line, ERROR.length);
  }

  #dataField(line: Uint8Array, nameLength = DATA.length): void {
    const value = fieldValue(line, nameLength);
    if (value === undefined) return;
    this.#dataBytes += line.length;
    this.#dataLines = this.#dataLines === undefined ? value : `${this.#dataLines}\n${value}`;
  }

  /**
   * Whether the line begins a JSON body without `data:`. Google ends a stream with such an error (fixture
   * gemini--vertex-error-mid-stream). No field name begins with a bracket, so the body is read up to the next blank line.
   */
  #beginsBare(line: Uint8Array): boolean {
    this.#isBare =
      this.#dataLines === undefined && this.#eventName === '' && (line[0] === BRACE || line[0] === BRACKET);
    return this.#isBare;
  }

  #bareLine(line: Uint8Array): void {
    const text = decoder.decode(line);
    this.#dataBytes += line.length;
    this.#dataLines = this.#dataLines === undefined ? text : `${this.#dataLines}\n${text}`;
  }

  #checkSize(more: number): boolean {
    if (this.#dataBytes + this.#unfinished.length + more <= this.#maxEventBytes) return true;
    this.isTooLarge = true;
    this.#unfinished.take();
    return false;
  }

  #complete(): void {
    this.#data = this.#dataLines ?? null;
    this.name = this.#eventName;
    this.#dataLines = undefined;
    this.#dataBytes = 0;
    this.#isBare = false;
    this.#eventName = '';
  }
}

/** The first index of the byte from `from` on, or the bytes' length. */
export function indexOrEnd(bytes: Uint8Array, byte: number, from = 0): number {
  const index = bytes.indexOf(byte, from);
  return index < 0 ? bytes.length : index;
}

function startsWith(line: Uint8Array, prefix: readonly number[]): boolean {
  for (let i = 0; i < prefix.length; i++) if (line[i] !== prefix[i]) return false;
  return true;
}

/** The value of a field whose name has this length, or undefined if the name is longer (`database:`). */
function fieldValue(line: Uint8Array, nameLength: number): string | undefined {
  if (line.length === nameLength) return '';
  if (line[nameLength] !== COLON) return undefined;
  return decoder.decode(line.subarray(nameLength + (line[nameLength + 1] === SPACE ? 2 : 1)));
}

/**
 * Reads server-sent events out of bytes, as the WHATWG specification has it (S1), and pushes each one on in the turn in
 * which its last byte arrives (F4). https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */

import { ByteBuffer } from './buffers.ts';

export interface SseSink {
  /** An event with data: its name (`""` where it has none) and its data lines, joined by LF. */
  event(name: string, data: string): void;
  /** An event, or a line of one, exceeds the bound. Nothing is read after it. */
  tooLarge(): void;
}

export const LF = 10;
export const CR = 13;
const COLON = 58;
const SPACE = 32;
const BRACE = 0x7b;
const BRACKET = 0x5b;
const BOM = [0xef, 0xbb, 0xbf];
const DATA = [100, 97, 116, 97];
const EVENT = [101, 118, 101, 110, 116];

/** Keeps a BOM: only the stream's first one is dropped (S1), and `decode` would drop one at the head of every line. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** A push parser for one stream: `push` for every read, `end` once after the last. */
export class SseParser {
  readonly #sink: SseSink;
  readonly #maxEventBytes: number;
  /** A line that has not ended, out of earlier reads. */
  readonly #unfinished = new ByteBuffer();
  /** Bytes of the unfinished event's data lines. */
  #dataBytes = 0;
  #data: string | undefined;
  #name = '';
  #isFirstLine = true;
  #isCrlf = false;
  /** The event is a JSON body without `data:`. */
  #isBare = false;
  /** The last read ended in CR: an LF that comes next belongs to it. */
  #skipLf = false;
  #stopped = false;
  /** The read that is being scanned, and where in it the next LF was found. */
  #scanned: Uint8Array | undefined;
  #nextLf = -1;

  /** @param maxEventBytes bounds what is held: the data of one event and the line being read (B1) */
  constructor(sink: SseSink, maxEventBytes: number) {
    this.#sink = sink;
    this.#maxEventBytes = maxEventBytes;
  }

  /** Nothing of an event is held: the next byte begins one. */
  get isBetweenEvents(): boolean {
    return this.#unfinished.length === 0 && this.#data === undefined && this.#name === '' && !this.#skipLf;
  }

  /** How the last line ended. */
  get lineEnd(): '\n' | '\r\n' {
    return this.#isCrlf ? '\r\n' : '\n';
  }

  /** Bytes of an event that has not ended. */
  get heldBytes(): number {
    return this.#dataBytes + this.#unfinished.length;
  }

  /** Gives back what reading a large event took, where none is being read. */
  freeMemory(): void {
    this.#unfinished.free();
  }

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at = this.pushEvent(bytes, at);
  }

  /**
   * Reads from `at` through the end of the first event that ends.
   * @returns where the next one begins, or the bytes' length where none is left
   */
  pushEvent(bytes: Uint8Array, at: number): number {
    let start = at;
    if (this.#skipLf) {
      this.#skipLf = false;
      if (bytes[start] === LF) start++;
    }
    while (start < bytes.length && !this.#stopped) {
      start = this.#skipSilence(bytes, start);
      if (start === bytes.length) break;
      const end = this.#findLineEnd(bytes, start);
      if (end === bytes.length) {
        this.#unfinished.append(bytes.subarray(start));
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

  /** Where the first line begins that is neither blank nor a whole comment: between events those cost nearly nothing. */
  #skipSilence(bytes: Uint8Array, from: number): number {
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

  /** The stream is over: a last line and a last event without their ends still count (S2). */
  end(): void {
    if (this.#unfinished.length > 0 && !this.#stopped) this.#line(this.#unfinished.take());
    if (!this.#stopped) this.#dispatch();
    this.stop();
  }

  /** Nothing more is read, and nothing more is held: what follows `[DONE]` does not count (S3). */
  stop(): void {
    this.#stopped = true;
    this.#unfinished.take();
    this.#data = undefined;
    this.#scanned = undefined;
  }

  /** The whole line, whose last piece this is. */
  #finishLine(last: Uint8Array): Uint8Array {
    if (this.#unfinished.length === 0) return last;
    this.#unfinished.append(last);
    return this.#unfinished.take();
  }

  /** Where the line that begins at `start` ends, or the bytes' length where it goes on. */
  #findLineEnd(bytes: Uint8Array, start: number): number {
    if (bytes !== this.#scanned) {
      this.#scanned = bytes;
      this.#nextLf = -1;
    }
    // It is looked for again only when it was passed, or a read full of CRs would be scanned for it at every line.
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
      this.#dispatch();
      return true;
    }
    // Anything but these two is a comment, `id`, `retry` or unknown: a stream that is relayed has no use for it.
    if (!this.#checkSize(line.length)) return false;
    if (this.#isBare || this.#beginsBare(line)) this.#bareLine(line);
    else if (startsWith(line, DATA)) this.#dataField(line);
    else if (startsWith(line, EVENT)) this.#name = fieldValue(line, EVENT.length) ?? this.#name;
    return false;
  }

  #dataField(line: Uint8Array): void {
    const value = fieldValue(line, DATA.length);
    if (value === undefined) return;
    this.#dataBytes += line.length;
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  /**
   * A body in the place of an event: Google breaks a stream off with its error's JSON in lines of its own, without `data:`
   * (shared/streams gemini--vertex-error-mid-stream). As no field's name begins so, it is read up to the next blank line.
   */
  #beginsBare(line: Uint8Array): boolean {
    this.#isBare =
      this.#data === undefined && this.#name === '' && (line[0] === BRACE || line[0] === BRACKET);
    return this.#isBare;
  }

  #bareLine(line: Uint8Array): void {
    const text = decoder.decode(line);
    this.#dataBytes += line.length;
    this.#data = this.#data === undefined ? text : `${this.#data}\n${text}`;
  }

  #checkSize(more: number): boolean {
    if (this.#dataBytes + this.#unfinished.length + more <= this.#maxEventBytes) return true;
    this.stop();
    this.#sink.tooLarge();
    return false;
  }

  #dispatch(): void {
    const data = this.#data;
    const name = this.#name;
    this.#data = undefined;
    this.#dataBytes = 0;
    this.#isBare = false;
    this.#name = '';
    if (data !== undefined) this.#sink.event(name, data);
  }
}

/** Where the byte first stands at `from` or behind it, or the bytes' length where it does not. */
export function indexOrEnd(bytes: Uint8Array, byte: number, from = 0): number {
  const index = bytes.indexOf(byte, from);
  return index < 0 ? bytes.length : index;
}

function startsWith(line: Uint8Array, prefix: readonly number[]): boolean {
  for (let i = 0; i < prefix.length; i++) if (line[i] !== prefix[i]) return false;
  return true;
}

/** The value behind a field's name of that length, or undefined where the name goes on (`database:`). */
function fieldValue(line: Uint8Array, nameLength: number): string | undefined {
  if (line.length === nameLength) return '';
  if (line[nameLength] !== COLON) return undefined;
  return decoder.decode(line.subarray(nameLength + (line[nameLength + 1] === SPACE ? 2 : 1)));
}

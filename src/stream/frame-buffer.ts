/** Collects the frames of what arrived together, so that they leave together, as one write (F4). */
import { MAX_OUTPUT_FACTOR } from '../shared/limits.ts';

/**
 * Output is written into one slab that all streams of an isolate share, front to back: a buffer of its own for each write
 * would cost more than the writing. When all that was taken of it is released, it is written from the front again; one that is
 * full before that is left to the streams that still send it.
 */
const SLAB_BYTES = 64 * 1024;
/** A UTF-16 unit is at most three bytes of UTF-8. */
const MAX_BYTES_A_UNIT = 3;
/** A longer text could need more than half of a slab. */
const MAX_INLINE_CHARS = SLAB_BYTES / 2 / MAX_BYTES_A_UNIT;
/** Up to here a loop is faster than a call into the engine. */
const MAX_LOOPED_BYTES = 48;

const encoder = new TextEncoder();
const NOTHING = new Uint8Array(0);
const FRAME_END = '\n\n';
const FRAME_END_BYTES = encoder.encode(FRAME_END);

let slab: Uint8Array = new Uint8Array(SLAB_BYTES);
let slabUsed = 0;
/** Pieces of the slab that were taken and not released. */
let slabTaken = 0;

/** Writes of one stream. A step writes and takes without a pause, so that two streams never write at once. */
export class FrameBuffer {
  readonly #maxFrameBytes: number;
  #buffer: Uint8Array = slab;
  #start = 0;
  #end = 0;

  /** @param maxEventBytes bounds an upstream's event, and so the frames that one may become (B3) */
  constructor(maxEventBytes: number) {
    this.#maxFrameBytes = maxEventBytes * MAX_OUTPUT_FACTOR;
  }

  /** Nothing was written since the last `take`. */
  get isEmpty(): boolean {
    return this.#end === this.#start;
  }

  /** Frames as they are: what the writer itself bounds. */
  text(frames: string): void {
    this.#writeText(frames, Number.POSITIVE_INFINITY);
  }

  /**
   * The frame of a JSON text.
   * @param head all before the JSON: `data: `, and an event line where the frame has one
   * @returns false where it is larger than a frame may be: nothing is then written (B3)
   */
  frame(head: string, json: string): boolean {
    if (json.length <= MAX_INLINE_CHARS) return this.#writeText(head + json + FRAME_END, this.#maxFrameBytes);
    return json.length <= this.#maxFrameBytes && this.#writeLargeFrame(head, json);
  }

  /** A frame that is put together: its literals, with a text's bytes out of `source` between each two of them. */
  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    let length = (literals.length - 1) * (to - from);
    for (const literal of literals) length += literal.length;
    this.#reserve(length);
    const buffer = this.#buffer;
    let at = this.#end;
    for (let i = 0; i < literals.length; i++) {
      if (i > 0) at = copy(source, from, to, buffer, at);
      const literal = literals[i] ?? NOTHING;
      buffer.set(literal, at);
      at += literal.length;
    }
    this.#end = at;
  }

  /** Bytes that belong to a frame, as they are. */
  bytes(source: Uint8Array, from: number, to: number): void {
    this.#reserve(to - from);
    this.#end = copy(source, from, to, this.#buffer, this.#end);
  }

  /** The frames since the last call, as bytes that stay as they are until they are released. */
  take(): Uint8Array {
    // The slab's end is where another stream wrote last: nothing is taken of it, and nothing to release.
    if (this.isEmpty) return NOTHING;
    const bytes = this.#buffer.subarray(this.#start, this.#end);
    if (this.#buffer === slab) {
      slabUsed = this.#end;
      slabTaken++;
    }
    this.#start = this.#end;
    return bytes;
  }

  /** Releases what was taken, once it was sent. Bytes that may still be in flight are never released. */
  release(bytes: Uint8Array): void {
    const { buffer } = bytes;
    if (buffer === slab.buffer && --slabTaken === 0) slabUsed = 0;
    // What was made for one large write is freed at once: the engine would do so at its next collection.
    if (buffer.byteLength > SLAB_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0);
  }

  /** @returns false where the text has more bytes than that: nothing is then written */
  #writeText(text: string, maxBytes: number): boolean {
    if (text.length > maxBytes) return false;
    if (text.length > MAX_INLINE_CHARS) return this.#writeLarge(encoder.encode(text), maxBytes);
    this.#reserve(text.length * MAX_BYTES_A_UNIT);
    this.#end += encoder.encodeInto(text, this.#buffer.subarray(this.#end)).written;
    return true;
  }

  /** The frame of a large JSON text is put together in bytes: as a text it would take as much again until it is collected. */
  #writeLargeFrame(head: string, json: string): boolean {
    const start = encoder.encode(head);
    const body = encoder.encode(json);
    const length = start.length + body.length + FRAME_END_BYTES.length;
    const isWithin = length <= this.#maxFrameBytes;
    if (isWithin) {
      this.#reserve(length);
      for (const piece of [start, body, FRAME_END_BYTES]) {
        this.#buffer.set(piece, this.#end);
        this.#end += piece.length;
      }
    }
    if (body.buffer instanceof ArrayBuffer) body.buffer.transfer(0);
    return isWithin;
  }

  /** A large text is encoded first, so that it takes no more room than it has bytes. */
  #writeLarge(bytes: Uint8Array, maxBytes: number): boolean {
    if (bytes.length > maxBytes) return false;
    if (this.isEmpty) {
      this.#buffer = bytes;
      this.#start = 0;
      this.#end = bytes.length;
      return true;
    }
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
    return true;
  }

  /** Makes room behind what is not yet taken. */
  #reserve(bytes: number): void {
    if (this.isEmpty) {
      this.#buffer = slab;
      this.#start = slabUsed;
      this.#end = slabUsed;
    }
    if (this.#end + bytes <= this.#buffer.length) return;
    const written = this.#buffer.subarray(this.#start, this.#end);
    const needed = written.length + bytes;
    // Many small frames double the room, so that the cost stays linear; a large one takes no more than it needs.
    const room = bytes > SLAB_BYTES / 2 ? needed : needed * 2;
    this.#buffer = new Uint8Array(Math.max(room, SLAB_BYTES));
    this.#buffer.set(written);
    this.#start = 0;
    this.#end = written.length;
    if (this.#buffer.length > SLAB_BYTES) return;
    slab = this.#buffer;
    slabTaken = 0;
  }
}

/** @returns where in the buffer the copy ends */
function copy(source: Uint8Array, from: number, to: number, buffer: Uint8Array, start: number): number {
  let at = start;
  if (to - from > MAX_LOOPED_BYTES) {
    buffer.set(source.subarray(from, to), at);
    return at + (to - from);
  }
  for (let i = from; i < to; i++) buffer[at++] = source[i] ?? 0;
  return at;
}

/** Byte buffers of a stream: `FrameBuffer` collects its output into one write, `ByteBuffer` joins pieces of its input. */
import { MAX_OUTPUT_FACTOR } from '../shared/limits.ts';
import { FRAME_END } from './sse-frame.ts';

/**
 * All streams of an isolate write into one shared slab, from front to back, because a new buffer for each write would cost more than
 * the write. When every piece that was taken is released, writing starts at the front again. A slab that is full before that is
 * replaced, and stays in memory until its streams have sent it.
 */
const SLAB_BYTES = 64 * 1024;
/** A UTF-16 unit is at most three bytes of UTF-8. */
const MAX_BYTES_A_UNIT = 3;
/** A longer text could need more than half of the slab. */
const MAX_INLINE_CHARS = SLAB_BYTES / 2 / MAX_BYTES_A_UNIT;
/** Up to this length a loop is faster than `TypedArray.set`. */
const MAX_LOOPED_BYTES = 48;

const encoder = new TextEncoder();
const NOTHING = new Uint8Array(0);

let slab: Uint8Array = new Uint8Array(SLAB_BYTES);
let slabUsed = 0;
/** Pieces of the slab that were taken and are not released. */
let slabTaken = 0;

/**
 * Collects the frames that one read produces, to send them as one write. A stream writes and takes within one synchronous step, so two
 * streams never write into the slab at the same time.
 */
export class FrameBuffer {
  readonly #maxFrameBytes: number;
  readonly #frameEnd: string;
  #buffer: Uint8Array = slab;
  #start = 0;
  #end = 0;

  /**
   * @param maxEventBytes the bound of an upstream's event: the frames of one event have a multiple of it
   * @param frameEnd what ends a frame
   */
  constructor(maxEventBytes: number, frameEnd = FRAME_END) {
    this.#maxFrameBytes = maxEventBytes * MAX_OUTPUT_FACTOR;
    this.#frameEnd = frameEnd;
  }

  /** Whether nothing was written since the last `take`. */
  get isEmpty(): boolean {
    return this.#end === this.#start;
  }

  /** Writes complete frames, which their writer bounds itself. */
  text(frames: string): void {
    this.#writeText(frames, Number.POSITIVE_INFINITY);
  }

  /**
   * Writes the frame of a JSON text.
   * @param head everything before the JSON: `data: `, and the event line if there is one
   * @returns false if it is larger than a frame may be: nothing was written
   */
  frame(head: string, json: string): boolean {
    if (json.length <= MAX_INLINE_CHARS)
      return this.#writeText(head + json + this.#frameEnd, this.#maxFrameBytes);
    return json.length <= this.#maxFrameBytes && this.#writeLargeFrame(head, json);
  }

  /** Writes a frame from its literals, with the bytes of a text from `source` between each two of them. */
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

  /** Writes bytes of a frame unchanged. */
  bytes(source: Uint8Array, from: number, to: number): void {
    this.#reserve(to - from);
    this.#end = copy(source, from, to, this.#buffer, this.#end);
  }

  /** Returns the frames since the last call. The bytes stay unchanged until they are released. */
  take(): Uint8Array {
    // An empty view of the slab would count as taken, and is never released.
    if (this.isEmpty) return NOTHING;
    const bytes = this.#buffer.subarray(this.#start, this.#end);
    if (this.#buffer === slab) {
      slabUsed = this.#end;
      slabTaken++;
    }
    this.#start = this.#end;
    return bytes;
  }

  /** Releases taken bytes after they were sent. Bytes that may still be in flight must not be released. */
  release(bytes: Uint8Array): void {
    const { buffer } = bytes;
    if (buffer === slab.buffer && --slabTaken === 0) slabUsed = 0;
    // A transfer frees the buffer of a large write at once, not at the engine's next collection.
    if (buffer.byteLength > SLAB_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0);
  }

  /** @returns false if the text has more than `maxBytes`: nothing was written */
  #writeText(text: string, maxBytes: number): boolean {
    if (text.length > maxBytes) return false;
    if (text.length > MAX_INLINE_CHARS) return this.#writeLarge(encoder.encode(text), maxBytes);
    this.#reserve(text.length * MAX_BYTES_A_UNIT);
    this.#end += encoder.encodeInto(text, this.#buffer.subarray(this.#end)).written;
    return true;
  }

  /** Joins a large frame as bytes: as a text it would take the same memory again until the engine's next collection. */
  #writeLargeFrame(head: string, json: string): boolean {
    const start = encoder.encode(head);
    const body = encoder.encode(json);
    const end = encoder.encode(this.#frameEnd);
    const length = start.length + body.length + end.length;
    const fits = length <= this.#maxFrameBytes;
    if (fits) {
      this.#reserve(length);
      for (const piece of [start, body, end]) {
        this.#buffer.set(piece, this.#end);
        this.#end += piece.length;
      }
    }
    if (body.buffer instanceof ArrayBuffer) body.buffer.transfer(0);
    return fits;
  }

  /** Writes a text that was encoded first, so that the buffer grows only by its bytes. */
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

  /** Makes room behind what is not taken yet. */
  #reserve(bytes: number): void {
    if (this.isEmpty) {
      this.#buffer = slab;
      this.#start = slabUsed;
      this.#end = slabUsed;
    }
    if (this.#end + bytes <= this.#buffer.length) return;
    const unsent = this.#buffer.subarray(this.#start, this.#end);
    const needed = unsent.length + bytes;
    // Small frames double the room, so that the cost stays linear. A large frame gets exactly what it needs.
    const room = bytes > SLAB_BYTES / 2 ? needed : needed * 2;
    this.#buffer = new Uint8Array(Math.max(room, SLAB_BYTES));
    this.#buffer.set(unsent);
    this.#start = 0;
    this.#end = unsent.length;
    if (this.#buffer.length > SLAB_BYTES) return;
    slab = this.#buffer;
    slabTaken = 0;
  }
}

/** @returns the end of the copy in `buffer` */
function copy(source: Uint8Array, from: number, to: number, buffer: Uint8Array, start: number): number {
  let at = start;
  if (to - from > MAX_LOOPED_BYTES) {
    buffer.set(source.subarray(from, to), at);
    return at + (to - from);
  }
  for (let i = from; i < to; i++) buffer[at++] = source[i] ?? 0;
  return at;
}

const FIRST_BYTES = 1024;
/** A buffer of this size is kept for the next pieces. A larger one is kept only while the pieces fill a good part of it. */
const MAX_KEPT_BYTES = 4096;
const MIN_FILLED_SHARE = 1 / 4;

/** Joins pieces of input. Each piece is copied once, and the room doubles, so the cost stays linear. */
export class ByteBuffer {
  #bytes: Uint8Array<ArrayBuffer> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What was appended. The bytes stay valid until the next `append`. */
  get bytes(): Uint8Array {
    return this.#bytes?.subarray(0, this.#length) ?? NOTHING;
  }

  /** Appends the bytes of `source` between `from` and `to`. */
  append(source: Uint8Array, from = 0, to = source.length): void {
    const length = this.#length + to - from;
    if (this.#bytes === undefined || this.#bytes.length < length) {
      const room = Math.max(FIRST_BYTES, length * 2);
      // A transfer frees the old buffer at once, not at the engine's next collection.
      this.#bytes = new Uint8Array(this.#bytes?.buffer.transfer(room) ?? new ArrayBuffer(room));
    }
    this.#length = copy(source, from, to, this.#bytes, this.#length);
  }

  /** Frees the memory at once if the buffer is empty. */
  free(): void {
    if (this.#length > 0) return;
    this.#bytes?.buffer.transfer(0);
    this.#bytes = undefined;
  }

  /** Forgets what was appended, and frees the memory at once. */
  release(): void {
    this.#length = 0;
    this.free();
  }

  /** Returns what was appended and empties the buffer. The bytes stay valid until the next `append`. */
  take(): Uint8Array {
    const { bytes } = this;
    const { byteLength } = bytes.buffer;
    if (byteLength > MAX_KEPT_BYTES && bytes.length < byteLength * MIN_FILLED_SHARE) this.#bytes = undefined;
    this.#length = 0;
    return bytes;
  }
}

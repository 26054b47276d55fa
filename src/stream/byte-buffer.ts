/** Bytes that come in pieces and are wanted in one: each is copied once, and the room doubles, so that the cost stays linear. */

const FIRST_BYTES = 1024;
/** A buffer of this size is kept for the next pieces; a larger one only while what comes fills a good part of it. */
const MAX_KEPT_BYTES = 4096;
const MIN_FILLED_SHARE = 1 / 4;

const NOTHING = new Uint8Array(0);

export class ByteBuffer {
  #bytes: Uint8Array<ArrayBuffer> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (this.#bytes === undefined || this.#bytes.length < length) {
      const room = Math.max(FIRST_BYTES, length * 2);
      // A transfer frees what it leaves at once: the engine would do so only at its next collection.
      this.#bytes = new Uint8Array(this.#bytes?.buffer.transfer(room) ?? new ArrayBuffer(room));
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }

  /** Gives the room back at once, where nothing is in it: the engine would free it at its next collection. */
  free(): void {
    if (this.#length > 0) return;
    this.#bytes?.buffer.transfer(0);
    this.#bytes = undefined;
  }

  /** What was appended, as bytes that stay until the next piece comes: the buffer is empty then. */
  take(): Uint8Array {
    const bytes = this.#bytes?.subarray(0, this.#length) ?? NOTHING;
    const { byteLength } = bytes.buffer;
    if (byteLength > MAX_KEPT_BYTES && bytes.length < byteLength * MIN_FILLED_SHARE) this.#bytes = undefined;
    this.#length = 0;
    return bytes;
  }
}

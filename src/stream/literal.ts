/** Bytes to be recognised in a read, compared eight at a time: at two hundred bytes an envelope that is what a frame costs. */

const WORD_BYTES = 8;

export class Literal {
  readonly length: number;
  readonly #bytes: Uint8Array;
  /** The bytes as whole words; the last one overlaps the one before it where the length is no multiple. */
  readonly #words: BigInt64Array;
  /** Where in them the last one stands, or -1 where the bytes are fewer than a word. */
  readonly #last: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.length = bytes.length;
    const view = viewOf(bytes);
    const count = bytes.length < WORD_BYTES ? 0 : Math.ceil(bytes.length / WORD_BYTES);
    this.#words = BigInt64Array.from({ length: count }, (_, i) => view.getBigInt64(this.#wordAt(i), true));
    this.#last = count - 1;
  }

  /**
   * Whether the bytes from `at` are the literal's, as far as there are bytes.
   * @param end the bytes' length: what an array says of its own costs more than a comparison
   */
  fits(bytes: Uint8Array, view: DataView, at: number, end: number): boolean {
    const last = this.#last;
    if (last < 0 || at + this.length > end) return this.#fitsBytes(bytes, at, end);
    const words = this.#words;
    // The last word first: two templates of one stream mostly differ at their ends.
    if (view.getBigInt64(at + this.length - WORD_BYTES, true) !== words[last]) return false;
    for (let i = 0; i < last; i++) if (view.getBigInt64(at + i * WORD_BYTES, true) !== words[i]) return false;
    return true;
  }

  #fitsBytes(bytes: Uint8Array, at: number, end: number): boolean {
    const own = this.#bytes;
    const length = at + this.length > end ? end - at : this.length;
    for (let i = 0; i < length; i++) if (bytes[at + i] !== own[i]) return false;
    return true;
  }

  #wordAt(i: number): number {
    return Math.min(i * WORD_BYTES, this.length - WORD_BYTES);
  }
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

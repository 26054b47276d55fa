/** A text that is held once, as the protocol repeats it: pieces come as strings, or as the bytes of JSON strings that nobody decoded (I4). */
import { parseJson } from '../../shared/json.ts';
import { ByteBuffer } from '../../stream/buffers.ts';

const decoder = new TextDecoder();

export class TextAccumulator {
  #text = '';
  /** What came as bytes since the last string. */
  readonly #raw = new ByteBuffer();

  add(piece: string): void {
    this.#text = this.read() + piece;
  }

  /** The inside of a JSON string, between `from` and `to`. */
  addRaw(bytes: Uint8Array, from: number, to: number): void {
    this.#raw.append(bytes.subarray(from, to));
  }

  read(): string {
    if (this.#raw.length > 0) {
      const piece = parseJson(`"${decoder.decode(this.#raw.take())}"`);
      if (typeof piece === 'string') this.#text += piece;
    }
    return this.#text;
  }
}

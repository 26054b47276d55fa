/** What was sent of one text, in pieces: its length and a hash, so that a repetition of it is known without keeping it. */
import { escapedUnit } from '../shared/json-progress.ts';

/** UTF-16 units of the beginning of a text that the hash covers. Of a longer one the length has to be the same, too. */
const MAX_HASHED_UNITS = 1024;

const BACKSLASH = 0x5c;
const LOWER_U = 0x75;

/** A text that the fast path continues: the bytes of a JSON string, not decoded. */
export interface RawText {
  /** @param units the length of the string in UTF-16 units */
  pushRaw(bytes: Uint8Array, from: number, to: number, units: number): void;
}

/** A text as far as it was sent. */
export class TextProgress implements RawText {
  /** Pieces that were not empty. */
  pieces = 0;
  #units = 0;
  #hash = 0;

  push(piece: string): void {
    if (piece === '') return;
    this.pieces++;
    this.#hash = hashOf(piece, MAX_HASHED_UNITS - this.#units, this.#hash);
    this.#units += piece.length;
  }

  pushRaw(bytes: Uint8Array, from: number, to: number, units: number): void {
    this.pieces++;
    if (this.#units < MAX_HASHED_UNITS) this.#hashRaw(bytes, from, to);
    this.#units += units;
  }

  /** Whether it is the same text, as far as its length and the hash of its beginning show. */
  equals(text: string): boolean {
    return text.length === this.#units && hashOf(text, MAX_HASHED_UNITS, 0) === this.#hash;
  }

  #hashRaw(bytes: Uint8Array, from: number, to: number): void {
    let hash = this.#hash;
    let room = MAX_HASHED_UNITS - this.#units;
    for (let at = from; at < to && room > 0; room--) {
      const byte = bytes[at] ?? 0;
      if (byte < 0x80 && byte !== BACKSLASH) {
        hash = (Math.imul(hash, FACTOR) + byte) | 0;
        at++;
        continue;
      }
      if (byte === BACKSLASH) {
        hash = (Math.imul(hash, FACTOR) + escapedUnit(bytes, at + 1)) | 0;
        at += bytes[at + 1] === LOWER_U ? 6 : 2;
        continue;
      }
      const { point, length } = readSequence(bytes, at);
      at += length;
      if (point < 0x10000) {
        hash = (Math.imul(hash, FACTOR) + point) | 0;
        continue;
      }
      hash = (Math.imul(hash, FACTOR) + 0xd7c0 + (point >> 10)) | 0;
      if (--room > 0) hash = (Math.imul(hash, FACTOR) + 0xdc00 + (point & 0x3ff)) | 0;
    }
    this.#hash = hash;
  }
}

const FACTOR = 31;

function hashOf(text: string, maxUnits: number, before: number): number {
  let hash = before;
  const end = Math.min(text.length, maxUnits);
  for (let i = 0; i < end; i++) hash = (Math.imul(hash, FACTOR) + text.charCodeAt(i)) | 0;
  return hash;
}

/** The character of a valid UTF-8 sequence of two bytes or more. */
function readSequence(bytes: Uint8Array, at: number): { readonly point: number; readonly length: number } {
  const lead = bytes[at] ?? 0;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  let point = lead & (0x7f >> length);
  for (let i = 1; i < length; i++) point = (point << 6) | ((bytes[at + i] ?? 0) & 0x3f);
  return { point, length };
}

/** Matches an event's bytes against a template: literals word by word, JSON strings without decoding them. */

const WORD_BYTES = 8;

/** Bytes of a template. They are compared eight at a time, because an envelope of 200 bytes is most of a frame. */
export class Literal {
  readonly length: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Where the last word begins. It overlaps the one before it if the length is no multiple of 8. Below 0: there is no word. */
  readonly #last: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.length = bytes.length;
    this.#last = bytes.length - WORD_BYTES;
  }

  /**
   * Whether the bytes from `at` equal the literal, up to the end of the bytes.
   * @param end the bytes' length: reading it from the array costs more than a comparison
   */
  fits(bytes: Uint8Array, view: DataView, at: number, end: number): boolean {
    const last = this.#last;
    if (last < 0 || at + this.length > end) return this.#fitsBytes(bytes, at, end);
    const own = this.#view;
    // The last word first: templates of one stream mostly differ at their ends.
    if (view.getBigInt64(at + last, true) !== own.getBigInt64(last, true)) return false;
    for (let i = 0; i < last; i += WORD_BYTES)
      if (view.getBigInt64(at + i, true) !== own.getBigInt64(i, true)) return false;
    return true;
  }

  #fitsBytes(bytes: Uint8Array, at: number, end: number): boolean {
    const ownBytes = this.#bytes;
    const length = at + this.length > end ? end - at : this.length;
    for (let i = 0; i < length; i++) if (bytes[at + i] !== ownBytes[i]) return false;
    return true;
  }
}

/** A view over the same bytes, for comparisons of several bytes at once. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The bytes end within the string. */
export const OPEN_ENDED = -2;
const INVALID = -1;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;

/** ASCII that needs no escape. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);
/** Characters that may follow a backslash, except `u`. */
const IS_ESCAPE = flags('"\\/bfnrt');
const IS_HEX_DIGIT = flags('0123456789abcdefABCDEF');

function flags(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

/** By how much the bytes of the last string that `findStringEnd` found exceed its length in UTF-16 units. */
let surplus = 0;

/** By how much the bytes of the string that was found last exceed its UTF-16 units. */
export function lastSurplus(): number {
  return surplus;
}

/**
 * Finds the closing quote of a JSON string.
 * @param at the index after its opening quote
 * @param end the bytes' length
 * @returns its index, -1 if JSON.parse or UTF-8 would refuse the string, or OPEN_ENDED if the bytes end within it
 */
export function findStringEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  surplus = 0;
  while (i < end) {
    const byte = bytes[i] ?? 0;
    if (IS_PLAIN[byte] === 1) {
      i++;
      continue;
    }
    if (byte === QUOTE) return i;
    if (byte < 0x20) return INVALID;
    const length = byte === BACKSLASH ? escapeLength(bytes, i) : sequenceLength(bytes, i);
    if (length < 0) return length;
    // Four bytes of UTF-8 are a surrogate pair. Escapes have two bytes or six.
    surplus += length - (length === 4 ? 2 : 1);
    i += length;
  }
  return OPEN_ENDED;
}

function escapeLength(bytes: Uint8Array, at: number): number {
  const next = bytes[at + 1];
  if (next === undefined) return OPEN_ENDED;
  if (next !== LOWER_U) return IS_ESCAPE[next] === 1 ? 2 : INVALID;
  for (let i = at + 2; i < at + 6; i++) {
    const digit = bytes[i];
    if (digit === undefined) return OPEN_ENDED;
    if (IS_HEX_DIGIT[digit] !== 1) return INVALID;
  }
  return 6;
}

/** The length of a UTF-8 sequence: shortest forms only, no surrogates, nothing above U+10FFFF (RFC 3629). */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0xc2 || lead > 0xf4) return INVALID;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const second = bytes[at + 1];
  if (second === undefined) return OPEN_ENDED;
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < lowest || second > highest) return INVALID;
  for (let i = at + 2; i < at + length; i++) {
    const byte = bytes[i];
    if (byte === undefined) return OPEN_ENDED;
    if (byte < 0x80 || byte > 0xbf) return INVALID;
  }
  return length;
}

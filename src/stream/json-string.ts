/** Walks over a JSON string's bytes without decoding them. */

/** The bytes ended within the string. */
export const OPEN_ENDED = -2;
const INVALID = -1;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;

/** ASCII that stands for itself. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);
/** What may stand behind a backslash, but for `u`. */
const IS_ESCAPE = flags('"\\/bfnrt');
const IS_HEX_DIGIT = flags('0123456789abcdefABCDEF');

function flags(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

/**
 * Where the string that begins at `at` (behind its opening quote) has its closing quote; -1 where it is no string that
 * JSON.parse takes and UTF-8 allows, OPEN_ENDED where the bytes end before it does.
 * @param end the bytes' length
 */
export function findStringEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
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

/** The length of a UTF-8 sequence: shortest forms only, no surrogates, nothing beyond U+10FFFF (RFC 3629). */
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

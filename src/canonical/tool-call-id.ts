/** Tool call ids in the form that every provider accepts: nine letters and digits (Q3). */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_CHARS = 9;

/**
 * The id for a text. The same text gives the same id, so a call and its result agree without state. 53 bits make a collision within one
 * conversation improbable.
 */
export function toolCallId(text: string): string {
  let rest = hash53(text);
  let id = '';
  for (let i = 0; i < ID_CHARS; i++) {
    id += DIGITS[rest % DIGITS.length];
    rest = Math.floor(rest / DIGITS.length);
  }
  return id;
}

/** cyrb53 (public domain): two mixed multiplicative hashes of 32 bits. A cryptographic hash would be asynchronous. */
function hash53(text: string): number {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return (b & 0x1fffff) * 0x100000000 + (a >>> 0);
}

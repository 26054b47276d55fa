/** A short text that stands for a longer one where both are only compared. */

/**
 * cyrb53 (public domain): two mixed multiplicative hashes of 32 bits, as 53 bits. A cryptographic hash would be
 * asynchronous. Whoever knows it can find a text with the same one.
 */
export function hash53(text: string): number {
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

/** The hash of a text, with its length. */
export function fingerprint(text: string): string {
  return `${hash53(text).toString(36)}-${text.length}`;
}

/** Texts of a URL, whose bytes of UTF-8 may be written as `%41`. */

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

const PERCENT = 0x25;
const UNKNOWN = '\ufffd';

/** Null where an escape is none, or the bytes are no UTF-8: `decodeURIComponent` throws, which takes longer than a short text is worth. */
export function decodePercent(text: string): string | null {
  if (!text.includes('%')) return text;
  const bytes = encoder.encode(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] ?? 0;
    if (byte === PERCENT) {
      const high = hexDigit(bytes[at + 1]);
      const low = hexDigit(bytes[at + 2]);
      if (high < 0 || low < 0) return null;
      byte = high * 16 + low;
      at += 2;
    }
    bytes[length++] = byte;
  }
  const decoded = decoder.decode(bytes.subarray(0, length));
  return decoded.includes(UNKNOWN) ? null : decoded;
}

function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const small = byte | 0x20;
  return small >= 0x61 && small <= 0x66 ? small - 0x57 : -1;
}

/** Encodes text as UTF-8, base64 and base64url, and decodes both and percent-encoded text, all with UTF-8. */

const encoder = new TextEncoder();
const base64Decoder = new TextDecoder();

/** An engine's stack holds no more arguments than some ten thousand. */
const MAX_CODES_AT_ONCE = 8192;

/** A text's UTF-8 bytes, in memory of their own, as signatures and requests need it. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text) as Uint8Array<ArrayBuffer>; // decode
}

/** A text as base64 of its UTF-8 bytes. */
export function encodeBase64(text: string): string {
  return encodeBase64Bytes(encoder.encode(text));
}

/** Bytes as base64. */
export function encodeBase64Bytes(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += MAX_CODES_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + MAX_CODES_AT_ONCE));
  }
  return btoa(binary);
}

/** Everything that `atob` refuses, except a length that is impossible. */
const NOT_BASE64 = /[^A-Za-z0-9+/\s=]|=[^=\s]/;

/** Null if the text is not base64. */
export function decodeBase64(base64: string): string | null {
  const bytes = decodeBase64Bytes(base64);
  return bytes && base64Decoder.decode(bytes);
}

/** Null if the text is not base64. */
export function decodeBase64Bytes(base64: string): Uint8Array<ArrayBuffer> | null {
  if (NOT_BASE64.test(base64)) return null;
  try {
    const binary = atob(base64);
    // A loop takes a tenth of the time that `Uint8Array.from` takes.
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    return null;
  }
}

/** Without padding: the characters may stand in an id or a URL. */
export function encodeBase64Url(text: string): string {
  return encodeBase64UrlBytes(encoder.encode(text));
}

/** Bytes as base64url, without padding. */
export function encodeBase64UrlBytes(bytes: Uint8Array): string {
  return encodeBase64Bytes(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** `""` if the text is not base64url. */
export function decodeBase64Url(text: string): string {
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/')) ?? '';
}

const percentDecoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

const PERCENT = 0x25;
/** What the decoder writes for bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd';

/** Null if an escape such as `%41` is invalid, or the bytes are not UTF-8: the exception of `decodeURIComponent` is slower. */
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
  const decoded = percentDecoder.decode(bytes.subarray(0, length));
  return decoded.includes(REPLACEMENT) ? null : decoded;
}

function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

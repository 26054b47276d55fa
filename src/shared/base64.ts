/** Texts as the base64 of their UTF-8, and back. */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** More arguments at once than an engine's stack takes. */
const MAX_CODES_AT_ONCE = 8192;

export function encodeBase64(text: string): string {
  const bytes = encoder.encode(text);
  let binary = '';
  for (let at = 0; at < bytes.length; at += MAX_CODES_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + MAX_CODES_AT_ONCE));
  }
  return btoa(binary);
}

/** What `atob` refuses, but for a length that can't be: its exception takes longer than the decoding of a short text. */
const NO_BASE64 = /[^A-Za-z0-9+/\s=]|=[^=\s]/;

/** Null where it is no base64. */
export function decodeBase64(base64: string): string | null {
  if (NO_BASE64.test(base64)) return null;
  try {
    const binary = atob(base64);
    // A loop takes a tenth of the time that `Uint8Array.from` takes.
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

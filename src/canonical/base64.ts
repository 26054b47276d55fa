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

/** Null where it is no base64. */
export function decodeBase64(base64: string): string | null {
  try {
    return decoder.decode(Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0)));
  } catch {
    return null;
  }
}

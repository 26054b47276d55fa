/** SHA-256 of tokens, and their comparison in constant time (K3). */

const encoder = new TextEncoder();

/** The digest in small hexadecimal digits. */
export async function sha256(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))).toHex();
}

/** Whether two digests are the same; the time it takes does not reveal where they differ. */
export function sameDigest(a: string, b: string): boolean {
  return a.length === b.length && crypto.subtle.timingSafeEqual(encoder.encode(a), encoder.encode(b));
}

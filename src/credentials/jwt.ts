/** Signs JSON web tokens with RS256, and imports the private keys of PEM texts. */
import { decodeBase64Bytes, encodeBase64UrlBytes, encodeUtf8 } from '../shared/encoding.ts';

/** The bytes of the first PEM block with this label, such as `PRIVATE KEY`; null: there is none. Line ends may be escaped or missing. */
export function readPem(text: string, label: string): Uint8Array<ArrayBuffer> | null {
  const plain = text.replaceAll('\\n', '\n');
  const begin = `-----BEGIN ${label}-----`;
  const at = plain.indexOf(begin);
  const end = plain.indexOf(`-----END ${label}-----`, at);
  return at < 0 || end < 0
    ? null
    : decodeBase64Bytes(plain.slice(at + begin.length, end).replace(/\s+/g, ''));
}

/** An assertion that the key signs. Rejects if the key cannot be imported. @param key PKCS #8 */
export async function signJwt(
  header: Readonly<Record<string, string>>,
  claims: Readonly<Record<string, string | number>>,
  key: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const encode = (part: object) => encodeBase64UrlBytes(encodeUtf8(JSON.stringify(part)));
  const signed = `${encode({ alg: 'RS256', typ: 'JWT', ...header })}.${encode(claims)}`;
  const imported = await crypto.subtle.importKey('pkcs8', key, RS256, false, ['sign']);
  const signature = await crypto.subtle.sign(RS256.name, imported, encodeUtf8(signed));
  return `${signed}.${encodeBase64UrlBytes(new Uint8Array(signature))}`;
}

const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const;

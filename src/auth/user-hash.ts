/** The keyed hash under which the name of an erased user is remembered for a while. */

/** Hashes a name, as it is stored, to 32 hexadecimal digits. */
export type HashUser = (name: string) => Promise<string>;

/** Apart from other hashes under the same secret. */
const PURPOSE = 'erased user ';
const HASH_CHARS = 32;

/** Makes the hash of a deployment. @param secret the key of the HMAC */
export function createHashUser(secret: string): HashUser {
  const encoder = new TextEncoder();
  let key: Promise<CryptoKey> | null = null;
  return async (name) => {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    key ??= crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
    const digest = await crypto.subtle.sign('HMAC', await key, encoder.encode(PURPOSE + name));
    return new Uint8Array(digest).toHex().slice(0, HASH_CHARS);
  };
}

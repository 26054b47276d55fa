/**
 * Makes the ids of all callers. Records, ledger objects and kept responses belong to an id, so no text may have the same id under two
 * kinds: the form of an id says its kind.
 */
import { isToken, keyId, sha256 } from './keys.ts';

/**
 * `key`: a gateway key. `credential`: the caller's own provider key. `host`: an id that `onRequest` returned. `access_user`: the e-mail
 * address in a token of Cloudflare Access. `access_service`: the name of a service token or a certificate there, which may be any text.
 */
export type CallerKind = 'key' | 'credential' | 'host' | 'access_user' | 'access_service';

/** The one caller under `AUTH=open`. */
export const OPEN_ID = 'open';

/** The ids of callers of Cloudflare Access. No key has one. */
export const ACCESS_PREFIX = 'access_';

/** Ids of hosts that are used as they are in records, ledgers and KV keys. Any other is hashed, also one that looks like a hash. */
const PLAIN_ID = /^(?![0-9a-f]{16}$)[\w-]{1,36}$/;

/**
 * @param text what identifies the caller: its token, its id at the host, or its name
 * @param hash of a name, as a hexadecimal text
 */
export async function callerId(
  kind: CallerKind,
  text: string,
  hash: (text: string) => Promise<string> = sha256,
): Promise<string> {
  switch (kind) {
    case 'key':
      return keyId(await hash(text));
    case 'credential':
      // Ids of credentials have the form of those of keys, so a text that may be a gateway key is hashed with its kind.
      return keyId(await hash(isToken(text) ? `credential ${text}` : text));
    case 'host':
      return `host_${PLAIN_ID.test(text) ? text : keyId(await hash(text))}`;
    case 'access_user':
    case 'access_service':
      return ACCESS_PREFIX + (await hash(accessName(kind, text)));
  }
}

/**
 * The name of a user of Access in records and limits, in lower case, so that a person has one name. Addresses have an `@` and names of
 * services have none; any other name has its kind before it, in capitals, which no name has.
 */
export function accessName(kind: 'access_user' | 'access_service', text: string): string {
  const name = lowerCase(text);
  if (name.includes('@') === (kind === 'access_user')) return name;
  return kind === 'access_user' ? `User:${name}` : `Service:${name}`;
}

/** Changes ASCII letters only: beyond ASCII, different letters share a lower case (`K` and the Kelvin sign). */
export function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Finds Weir's own credentials in a request, so that a proxied request does not carry them to another server (E4, W1). */
import { decodeBase64 } from '../shared/encoding.ts';

/** A gateway key, or enough of one to rule out another word. */
const KEY = /weir_[0-9a-f]{16}/i;
/** In a place for credentials the prefix is enough. */
const KEY_START = /(?<!\w)weir_/i;

const CREDENTIAL_HEADERS = ['authorization', 'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key'];
const CREDENTIAL_PARAMS = ['key', 'api_key', 'api-key', 'apikey', 'access_token', 'token'];

/** A credential that is percent-encoded more often is useless to any server. */
const MAX_DECODINGS = 4;

/** Whether a gateway key or the admin token is in the request's URL or headers, plain, percent-encoded or in base64. */
export function containsOwnCredential({ url, headers }: Request, adminToken: string | null): boolean {
  if (
    credentialsOf({ url, headers })
      .flatMap(decodings)
      .some((text) => KEY_START.test(text))
  )
    return true;
  return [url, ...headers.values()]
    .flatMap(decodings)
    .some((text) => KEY.test(text) || (adminToken !== null && containsWord(text, adminToken)));
}

/** Whether anything is in a place for credentials. */
export function containsCredential(request: Pick<Request, 'url' | 'headers'>): boolean {
  return credentialsOf(request).length > 0;
}

function credentialsOf({ url, headers }: Pick<Request, 'url' | 'headers'>): readonly string[] {
  const { searchParams } = new URL(url);
  return [
    ...CREDENTIAL_HEADERS.flatMap((name) => headers.get(name) ?? []),
    ...CREDENTIAL_PARAMS.flatMap((name) => searchParams.getAll(name)),
  ];
}

/** The text, its percent-decoded forms, and the base64 words in them, as `Basic` credentials have. */
function decodings(text: string): string[] {
  const texts = [text];
  for (
    let decoded = decodeAsciiPercent(text);
    decoded !== texts.at(-1);
    decoded = decodeAsciiPercent(decoded)
  ) {
    texts.push(decoded);
    if (texts.length > MAX_DECODINGS) break;
  }
  return [...texts, ...texts.flatMap(base64Words)];
}

/** Decodes percent-encoded ASCII and keeps malformed escapes, so that an escape cannot hide a credential after it. */
export function decodeAsciiPercent(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([0-7][0-9a-f])/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function base64Words(text: string): string[] {
  const words = text.match(/[\w+/-]{8,}/g) ?? [];
  return words.flatMap((word) => decodeBase64(word.replaceAll('-', '+').replaceAll('_', '/')) ?? []);
}

/**
 * Whether the text contains the word between other characters than letters and digits. The time depends only on the
 * text and the word's length.
 */
function containsWord(text: string, word: string): boolean {
  let found = false;
  for (let start = 0; start + word.length <= text.length; start++) {
    if (isLetterOrDigit(text, start - 1) || isLetterOrDigit(text, start + word.length)) continue;
    let difference = 0;
    for (let at = 0; at < word.length; at++) difference |= text.charCodeAt(start + at) ^ word.charCodeAt(at);
    found = difference === 0 || found;
  }
  return found;
}

function isLetterOrDigit(text: string, at: number): boolean {
  return /[a-z0-9]/i.test(text.charAt(at));
}

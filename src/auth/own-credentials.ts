/** Finds Weir's own credentials in a request that may go elsewhere, in any form in which clients write them (E4, W1). */
import { decodeBase64 } from '../shared/encoding.ts';

/** A gateway key, or so much of one that it is no other word. */
const KEY = /weir_[0-9a-f]{16}/i;
/** Where credentials stand, its beginning is enough. */
const KEY_START = /(?<!\w)weir_/i;

const CREDENTIAL_HEADERS = ['authorization', 'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key'];
const CREDENTIAL_PARAMS = ['key', 'api_key', 'api-key', 'apikey', 'access_token', 'token'];

/** What was percent-encoded more often than this is no credential for anyone. */
const MAX_DECODINGS = 4;

/** Whether a gateway key or the admin token stands in the request's URL or in any of its headers. */
export function containsOwnCredential({ url, headers }: Request, adminToken: string | null): boolean {
  const { searchParams } = new URL(url);
  const credentials = [
    ...CREDENTIAL_HEADERS.flatMap((name) => headers.get(name) ?? []),
    ...CREDENTIAL_PARAMS.flatMap((name) => searchParams.getAll(name)),
  ];
  if (credentials.flatMap(readings).some((text) => KEY_START.test(text))) return true;
  return [url, ...headers.values()]
    .flatMap(readings)
    .some((text) => KEY.test(text) || (adminToken !== null && holdsWord(text, adminToken)));
}

/** A text as it is written, and as it reads without percent signs, and without base64 (`Basic`). */
function readings(text: string): string[] {
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

/** Decodes percent-encoded ASCII and keeps everything else, so that a malformed escape hides no credential behind it. */
export function decodeAsciiPercent(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([0-7][0-9a-f])/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function base64Words(text: string): string[] {
  const words = text.match(/[\w+/-]{8,}/g) ?? [];
  return words.flatMap((word) => decodeBase64(word.replaceAll('-', '+').replaceAll('_', '/')) ?? []);
}

/** Whether the word stands in the text between others. The time that it takes shows the text and the word's length, not what matches (K3). */
function holdsWord(text: string, word: string): boolean {
  let found = false;
  for (let start = 0; start + word.length <= text.length; start++) {
    if (isLetter(text, start - 1) || isLetter(text, start + word.length)) continue;
    let difference = 0;
    for (let at = 0; at < word.length; at++) difference |= text.charCodeAt(start + at) ^ word.charCodeAt(at);
    found = difference === 0 || found;
  }
  return found;
}

function isLetter(text: string, at: number): boolean {
  return /[a-z0-9]/i.test(text.charAt(at));
}

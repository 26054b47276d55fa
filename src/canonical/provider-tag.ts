/** Marks which provider made an opaque token of reasoning: no other one can read it, and it goes back to that one alone (A7, I7). */

/** The provider's id in Weir, and what the mark stands on. */
export interface Tagged {
  readonly provider: string;
  readonly payload: string;
}

const VERSION = 'weir1';

/** `weir1:<provider>:<payload>`: as a detail's `id` the payload is its number, where a client holds one text alone it is the token. */
export function tagProvider({ provider, payload }: Tagged): string {
  return `${VERSION}:${provider}:${payload}`;
}

/** Ends the number of a detail whose signature is of a text: without that text, it is not what its maker gave. */
const OF_TEXT = '-text';

/** The number of a detail that is signed. */
export function numberOf(index: unknown, isOfText: boolean): string {
  return `${String(index)}${isOfText ? OF_TEXT : ''}`;
}

export function isOfText({ payload }: Tagged): boolean {
  return payload.endsWith(OF_TEXT);
}

/** Null where Weir marked nothing. */
export function readProviderTag(text: unknown): Tagged | null {
  if (typeof text !== 'string' || !text.startsWith(`${VERSION}:`)) return null;
  const end = text.indexOf(':', VERSION.length + 1);
  if (end < 0) return null;
  return { provider: text.slice(VERSION.length + 1, end), payload: text.slice(end + 1) };
}

/** Carries what an upstream wants back through clients that have one opaque text for it, tagged with its maker (I7). */

import { markMaker, readMaker } from '../../canonical/provider-tag.ts';
import { decodeBase64, encodeBase64 } from '../../shared/base64.ts';
import type { EmbeddedJson } from '../../shared/embedded-json.ts';
import { isObject, type JsonObject, readText } from '../../shared/json.ts';

/** A detail of the reasoning, signed or encrypted, or what a call bears beside its arguments. */
export type Token =
  | { readonly detail: JsonObject }
  | { readonly call: string; readonly extra_content: JsonObject };

/** Whether a detail has anything that its upstream wants back: a text alone it has not. */
export function isSealed({ signature, data }: JsonObject): boolean {
  return readText(signature) !== undefined || readText(data) !== undefined;
}

/** `weir1:<provider>:<the token>`. */
export function sealToken(provider: string, token: Token): string {
  return markMaker({ provider, payload: toBase64(JSON.stringify(token)) });
}

/** The token, or null where the text is none of Weir's, or no longer whole. */
export function openToken(
  text: unknown,
  embedded: EmbeddedJson,
): { readonly provider: string; readonly token: Token } | null {
  const marked = readMaker(text);
  const read = marked === null ? undefined : embedded.object(fromBase64(marked.payload));
  if (marked === null || read === undefined) return null;
  const { provider } = marked;
  const { detail, extra_content } = read;
  const call = readText(read.call);
  if (isObject(detail)) return { provider, token: { detail } };
  return call !== undefined && isObject(extra_content) ? { provider, token: { call, extra_content } } : null;
}

/** The detail with its maker's mark, which stands before an id of its own: it goes to no other provider (I7). */
export function withMaker(detail: JsonObject, provider: string): JsonObject {
  if (readMaker(detail.id) !== null) return detail;
  return { ...detail, id: markMaker({ provider, payload: readText(detail.id) ?? '' }) };
}

/** In the letters that an id or a URL may have. */
export function toBase64(text: string): string {
  return encodeBase64(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** `""` where it is no base64. */
export function fromBase64(text: string): string {
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/')) ?? '';
}

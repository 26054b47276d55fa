/** Carries what an upstream wants back through clients that have one opaque text for it, tagged with its maker (I7). */

import { readProviderTag, tagProvider } from '../../canonical/reasoning-details.ts';
import { decodeBase64, encodeBase64 } from '../../shared/encoding.ts';
import { type EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';

/** A detail of the reasoning, signed or encrypted, or what a call bears beside its arguments. */
export type ReasoningState =
  | { readonly detail: JsonObject }
  | { readonly call: string; readonly extra_content: JsonObject };

/** Whether a detail has anything that its upstream wants back: a text alone it has not. */
export function hasReasoningState({ signature, data }: JsonObject): boolean {
  return readText(signature) !== undefined || readText(data) !== undefined;
}

/** `weir1:<provider>:<the token>`. */
export function encodeReasoningState(provider: string, token: ReasoningState): string {
  return tagProvider({ provider, payload: toBase64(JSON.stringify(token)) });
}

/** The token, or null where the text is none of Weir's, or no longer whole. */
export function decodeReasoningState(
  text: unknown,
  embedded: EmbeddedJson,
): { readonly provider: string; readonly token: ReasoningState } | null {
  const marked = readProviderTag(text);
  const read = marked === null ? undefined : embedded.object(fromBase64(marked.payload));
  if (marked === null || read === undefined) return null;
  const { provider } = marked;
  const { detail, extra_content } = read;
  const call = readText(read.call);
  if (isObject(detail)) return { provider, token: { detail } };
  return call !== undefined && isObject(extra_content) ? { provider, token: { call, extra_content } } : null;
}

/** The detail with its maker's mark, which stands before an id of its own: it goes to no other provider (I7). */
export function withProviderTag(detail: JsonObject, provider: string): JsonObject {
  if (readProviderTag(detail.id) !== null) return detail;
  return { ...detail, id: tagProvider({ provider, payload: readText(detail.id) ?? '' }) };
}

/** In the letters that an id or a URL may have. */
export function toBase64(text: string): string {
  return encodeBase64(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** `""` where it is no base64. */
export function fromBase64(text: string): string {
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/')) ?? '';
}

/** Encodes what a provider wants back with its reasoning as one opaque text, for client protocols that have a field for such a text. */

import { readProviderTag, tagProvider } from '../../canonical/reasoning-details.ts';
import { decodeBase64Url, encodeBase64, encodeBase64Url } from '../../shared/encoding.ts';
import { type EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';

/** What a provider wants back: a signed or encrypted entry of `reasoning_details`, or the `extra_content` of a tool call. */
export type ReasoningState =
  | { readonly detail: JsonObject }
  | { readonly call: string; readonly extra_content: JsonObject };

/** Whether an entry of `reasoning_details` has state, and not only text. */
export function hasReasoningState({ signature, data }: JsonObject): boolean {
  return readText(signature) !== undefined || readText(data) !== undefined;
}

/** `weir1:<provider>:<base64url of the state's JSON>`. */
export function encodeReasoningState(provider: string, state: ReasoningState): string {
  return tagProvider({ provider, payload: encodeBase64Url(JSON.stringify(state)) });
}

/** The canonical form, tagged with its provider. Null if the text has another origin or was damaged. */
export function decodeReasoningState(text: unknown, embedded: EmbeddedJson): ReasoningState | null {
  const tagged = readProviderTag(text);
  const state = tagged === null ? undefined : embedded.object(decodeBase64Url(tagged.payload));
  return tagged === null || state === undefined ? null : readState(state, tagged.provider);
}

/** All states of one reasoning item in one text. */
export function encodeReasoningStates(provider: string, states: readonly ReasoningState[]): string {
  return tagProvider({ provider, payload: encodeBase64Url(JSON.stringify(states)) });
}

/** The canonical forms, tagged with their provider. Empty if the text has another origin or was damaged. */
export function decodeReasoningStates(text: unknown, embedded: EmbeddedJson): readonly ReasoningState[] {
  const tagged = readProviderTag(text);
  if (tagged === null) return [];
  return embedded
    .list(decodeBase64Url(tagged.payload))
    .filter(isObject)
    .flatMap((state) => readState(state, tagged.provider) ?? []);
}

/** The states in a field of bytes: base64 of the tag and the states' JSON. */
export function encodeStateBytes(provider: string, states: readonly ReasoningState[]): string {
  return encodeBase64(tagProvider({ provider, payload: JSON.stringify(states) }));
}

/** How the base64 of each tag begins. */
const TAG_BYTES = encodeBase64(tagProvider({ provider: '', payload: '' }).slice(0, 6));

/** The canonical forms, tagged with their provider. A client may have written base64url. Null: the bytes have another origin. */
export function decodeStateBytes(bytes: string, embedded: EmbeddedJson): readonly ReasoningState[] | null {
  if (!bytes.startsWith(TAG_BYTES)) return null;
  const tagged = readProviderTag(decodeBase64Url(bytes));
  const states = tagged === null ? [] : embedded.list(tagged.payload).filter(isObject);
  return states.flatMap((state) => readState(state, tagged?.provider ?? '') ?? []);
}

function readState({ detail, call, extra_content }: JsonObject, provider: string): ReasoningState | null {
  if (isObject(detail)) return { detail: withProviderTag(detail, provider) };
  const id = readText(call);
  if (id === undefined || !isObject(extra_content)) return null;
  return { call: id, extra_content: { ...extra_content, weir: { provider } } };
}

/** The tag stands before the detail's id. Request translation drops a detail that another provider's tag marks. */
function withProviderTag(detail: JsonObject, provider: string): JsonObject {
  if (readProviderTag(detail.id) !== null) return detail;
  return { ...detail, id: tagProvider({ provider, payload: readText(detail.id) ?? '' }) };
}

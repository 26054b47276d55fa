/** Which details of a message's reasoning go back to a provider: an opaque token is of use to nobody but its maker (A7). */

import { isOfText, readProviderTag } from '../canonical/provider-tag.ts';
import { ReasoningDetails } from '../canonical/reasoning-details.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { omit } from '../shared/objects.ts';

/**
 * Its own by their mark, and those without one; a client may have kept the pieces of one detail apart. None where a signature lost its
 * text: they go back whole, or not at all.
 */
export function ownDetails(message: JsonObject, providerId: string): readonly JsonObject[] {
  const details = new ReasoningDetails();
  details.add(readArray(message.reasoning_details).filter(isObject));
  const own = details.list.filter(({ id }) => (readProviderTag(id)?.provider ?? providerId) === providerId);
  return hasLostText(own, message) ? [] : own;
}

/**
 * The stream helper of OpenAI's SDK keeps the last fragment of a field alone: of a signed text, the signature. Thinking that was never
 * shown has no more than that, but then its message has no other text of it.
 */
function hasLostText(details: readonly JsonObject[], message: JsonObject): boolean {
  const texts = details.filter(({ type }) => type === 'reasoning.text');
  const without = texts.filter(({ text, signature }) => readText(signature) !== undefined && !readText(text));
  if (without.some(({ id }) => isOfTextById(id))) return true;
  const hasText = readText(message.reasoning_content) ?? readText(message.reasoning);
  return without.length > 0 && without.length === texts.length && hasText !== undefined;
}

function isOfTextById(id: unknown): boolean {
  const marked = readProviderTag(id);
  return marked !== null && isOfText(marked);
}

/** The message without the details of other makers, and without those that lost their text. One that has none leaves as it came. */
export function withOwnDetails(message: JsonObject, providerId: string): JsonObject {
  const details = readArray(message.reasoning_details).filter(isObject);
  const isMarked = details.some(({ id }) => readProviderTag(id) !== null);
  if (!isMarked && !hasLostText(details, message)) return message;
  const own = ownDetails(message, providerId).map(withoutMark);
  return own.length === 0 ? omit(message, 'reasoning_details') : { ...message, reasoning_details: own };
}

/** As its provider gave it: a mark stands before an id of its own, or in the place of one. */
function withoutMark(detail: JsonObject): JsonObject {
  const marked = readProviderTag(detail.id);
  if (marked === null) return detail;
  return marked.payload === '' ? omit(detail, 'id') : { ...detail, id: marked.payload };
}

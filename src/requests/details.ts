/** Which details of a message's reasoning go back to a provider: an opaque token is of use to nobody but its maker (A7). */
import { isObject, type JsonObject, readArray } from '../canonical/json.ts';
import { readMaker } from '../canonical/maker.ts';
import { ReasoningDetails } from '../canonical/reasoning-details.ts';
import { omit } from './objects.ts';

/** Its own by their mark, and those without one; a client may have kept the pieces of one detail apart. */
export function ownDetails(message: JsonObject, providerId: string): readonly JsonObject[] {
  const details = new ReasoningDetails();
  details.add(readArray(message.reasoning_details).filter(isObject));
  return details.list.filter(({ id }) => (readMaker(id)?.provider ?? providerId) === providerId);
}

/** The message without the details of other makers. One that has none leaves as it came. */
export function withOwnDetails(message: JsonObject, providerId: string): JsonObject {
  const details = readArray(message.reasoning_details);
  if (!details.some((detail) => isObject(detail) && readMaker(detail.id) !== null)) return message;
  const own = ownDetails(message, providerId).map(withoutMark);
  return own.length === 0 ? omit(message, 'reasoning_details') : { ...message, reasoning_details: own };
}

/** As its provider gave it: a mark stands before an id of its own, or in the place of one. */
function withoutMark(detail: JsonObject): JsonObject {
  const marked = readMaker(detail.id);
  if (marked === null) return detail;
  return marked.payload === '' ? omit(detail, 'id') : { ...detail, id: marked.payload };
}

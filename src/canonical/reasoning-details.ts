/** `reasoning_details` in OpenRouter's form: which provider can read them, how a policy strips their texts, how their pieces join (A7). */
import { hasItems, isObject, type JsonObject, readArray, readCount, readText } from '../shared/json.ts';
import type { ReasoningBlock } from './conversation.ts';

/**
 * Signatures and encrypted reasoning are readable only by the provider that made them, and are sent back to it alone. The tag names that
 * provider.
 */
export interface ProviderTag {
  /** The provider's id in Weir. */
  readonly provider: string;
  readonly payload: string;
}

const TAG_VERSION = 'weir1';

/** `weir1:<provider>:<payload>`. In a detail's `id` the payload is its index. Where a client keeps only one text it is the token. */
export function tagProvider({ provider, payload }: ProviderTag): string {
  return `${TAG_VERSION}:${provider}:${payload}`;
}

/** Null if the text is not a tag. */
export function readProviderTag(text: unknown): ProviderTag | null {
  if (typeof text !== 'string' || !text.startsWith(`${TAG_VERSION}:`)) return null;
  const end = text.indexOf(':', TAG_VERSION.length + 1);
  if (end < 0) return null;
  return { provider: text.slice(TAG_VERSION.length + 1, end), payload: text.slice(end + 1) };
}

/** Ends the payload of a detail that signs a text: without the text the signature is not valid. */
const TEXT_SUFFIX = '-text';

/** The tag's payload of a signed detail. */
export function signaturePayload(index: unknown, isOfText: boolean): string {
  // An exact integer is an object that has no other text than its JSON.
  const payload = typeof index === 'string' ? index : JSON.stringify(index);
  return `${payload}${isOfText ? TEXT_SUFFIX : ''}`;
}

function isTextSignature({ payload }: ProviderTag): boolean {
  return payload.endsWith(TEXT_SUFFIX);
}

/** The keys that hold a detail's text, depending on its type. */
const TEXT_KEYS = ['text', 'summary'];

/**
 * Removes the texts from one choice's details. What the upstream wants back stays: signatures and encrypted data. A signature goes with
 * its text, because Claude refuses a signature without its text, but accepts a step that has neither.
 */
export class ReasoningStripper {
  /** The last detail whose text was removed. */
  #stripped: { readonly index: number | undefined } | null = null;

  strip(details: readonly JsonObject[]): readonly JsonObject[] {
    return details.flatMap((detail) => {
      const index = readCount(detail.index);
      if (TEXT_KEYS.some((key) => isText(detail[key]))) this.#stripped = { index };
      const isStripped = this.#stripped !== null && this.#stripped.index === index;
      const isKept = isText(detail.data) || (isText(detail.signature) && !isStripped);
      return isKept ? [withoutText(detail)] : [];
    });
  }
}

function withoutText(detail: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(detail).filter(([key]) => !TEXT_KEYS.includes(key)));
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Collects the details of one output or message. Pieces with the same type and index join to one detail. */
export class ReasoningDetails {
  readonly #details: JsonObject[] = [];
  /** The position of the last detail of each type and index. A search at every piece would take quadratic time. */
  readonly #places = new Map<unknown, Map<unknown, number>>();
  /** Details that were created here and may be changed. A copy at every piece would take quadratic time. */
  readonly #joined = new Set<JsonObject>();
  #hasOpaqueData = false;

  get list(): readonly JsonObject[] {
    return this.#details;
  }

  /** Whether a detail has a signature or encrypted data, which the upstream wants back. */
  get hasOpaqueData(): boolean {
    return this.#hasOpaqueData;
  }

  /** Adds the details of one chunk. */
  add(more: readonly JsonObject[]): void {
    const places: number[] = [];
    for (const detail of more) {
      this.#hasOpaqueData ||= isText(detail.signature) || isText(detail.data);
      const at = this.#places.get(detail.type)?.get(detail.index);
      const earlierDetail = at === undefined ? undefined : this.#details[at];
      if (at !== undefined && earlierDetail !== undefined && isPiece(earlierDetail, detail)) {
        this.#details[at] = this.#join(earlierDetail, detail);
        continue;
      }
      const place = this.#details.push(detail) - 1;
      // Details without an index within one chunk stay separate: a non-streaming response has them complete.
      if (detail.index === undefined) places.push(place);
      else this.#setPlace(place);
    }
    for (const place of places) this.#setPlace(place);
  }

  #setPlace(place: number): void {
    const { type, index } = this.#details[place] ?? {};
    const places = this.#places.get(type) ?? new Map<unknown, number>();
    this.#places.set(type, places.set(index, place));
  }

  #join(known: JsonObject, detail: JsonObject): JsonObject {
    const joinedDetail: Record<string, unknown> = this.#joined.has(known) ? known : { ...known };
    for (const [key, value] of Object.entries(detail)) {
      const before = joinedDetail[key];
      const isMore = TEXT_KEYS.includes(key) && typeof before === 'string' && typeof value === 'string';
      if (isMore) joinedDetail[key] = before + value;
      // An assignment to `__proto__` would set the object's prototype.
      else if (key !== '__proto__' && value !== null && value !== undefined) joinedDetail[key] = value;
    }
    this.#joined.add(joinedDetail);
    return joinedDetail;
  }
}

/** Whether the detail continues the known one. Encrypted details are always complete. */
function isPiece(known: JsonObject, detail: JsonObject): boolean {
  return known.data === undefined && detail.data === undefined && !isText(known.signature);
}

/** The reasoning of a message: `reasoning_details`, whose pieces are joined. */
export function readReasoningDetails(details: unknown): readonly ReasoningBlock[] {
  if (!hasItems(details)) return [];
  const joined = new ReasoningDetails();
  joined.add(readArray(details).filter(isObject));
  return joined.list.map((detail) => {
    const isEncrypted = detail.type === 'reasoning.encrypted';
    const isText = detail.type === 'reasoning.text';
    const value = readText(isEncrypted ? detail.data : isText ? detail.signature : undefined);
    const tag = readProviderTag(detail.id);
    const origin = {
      format: readText(detail.format) ?? null,
      provider: tag?.provider ?? null,
      id: tag?.payload ?? readText(detail.id) ?? '',
    };
    return {
      kind: 'reasoning',
      text: readText(detail.text) ?? '',
      ...(value === undefined ? {} : { signature: { value, isEncrypted, ...origin } }),
      detail,
    };
  });
}

/**
 * The reasoning of a turn that goes back to a provider: the details with its tag, and those without a tag. Empty if a signature has lost
 * its text: then no detail is sent.
 * @param reasoning of the whole turn, from all fields that a client has for it
 */
export function reasoningOfProvider(
  reasoning: readonly ReasoningBlock[],
  providerId: string,
): readonly ReasoningBlock[] {
  const ownDetails = reasoning.filter(
    ({ detail }) =>
      detail !== undefined && (readProviderTag(detail.id)?.provider ?? providerId) === providerId,
  );
  const hasText = reasoning.some(({ detail, signature }) => detail === undefined && signature === undefined);
  return hasLostText(ownDetails, hasText) ? [] : ownDetails;
}

/**
 * Whether a client lost the text of a signed detail. The stream helper of OpenAI's SDK keeps only the last fragment of a field, which
 * is the signature. A signature without a text is complete if the provider hid the text, but then the message has no reasoning text.
 */
function hasLostText(details: readonly ReasoningBlock[], hasText: boolean): boolean {
  const texts = details.filter(({ detail }) => detail?.type === 'reasoning.text');
  const withoutText = texts.filter(({ text, signature }) => signature !== undefined && text === '');
  if (withoutText.some(({ detail }) => isTaggedAsText(detail?.id))) return true;
  return withoutText.length > 0 && withoutText.length === texts.length && hasText;
}

function isTaggedAsText(id: unknown): boolean {
  const tag = readProviderTag(id);
  return tag !== null && isTextSignature(tag);
}

/** OpenRouter's `reasoning_details`: opaque but for their texts, which a policy strips and a plain answer joins (A7). */
import { type JsonObject, readCount } from '../shared/json.ts';

/** Under these keys a detail holds text, by its type. */
const TEXT_KEYS = ['text', 'summary'];

/**
 * Takes the texts out of one choice's details: what is left is what their upstream wants back, signatures and encrypted data. A
 * signature whose text was taken goes with it: Claude refuses it without the text, and takes a step that has neither.
 */
export class ReasoningStripper {
  /** The index of the last detail that had a text, where it had one. */
  #taken: { readonly index: number | undefined } | null = null;

  strip(details: readonly JsonObject[]): readonly JsonObject[] {
    return details.flatMap((detail) => {
      const index = readCount(detail.index);
      if (TEXT_KEYS.some((key) => isText(detail[key]))) this.#taken = { index };
      const isTaken = this.#taken !== null && this.#taken.index === index;
      const isKept = isText(detail.data) || (isText(detail.signature) && !isTaken);
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

/** The details of one answer or one message, whose pieces may come apart: by its type and index, the pieces of one become one. */
export class ReasoningDetails {
  readonly #details: JsonObject[] = [];
  /** Where the last one of each type and index stands: a search for it at every piece would cost the square of the pieces. */
  readonly #places = new Map<unknown, Map<unknown, number>>();
  /** Those that were put together here: a copy at every piece would cost the square of their keys. */
  readonly #joined = new Set<JsonObject>();
  #hasSealed = false;

  get list(): readonly JsonObject[] {
    return this.#details;
  }

  /** One of them has what its upstream wants back. */
  get hasSealed(): boolean {
    return this.#hasSealed;
  }

  /** Adds what one chunk brought. */
  add(more: readonly JsonObject[]): void {
    const places: number[] = [];
    for (const detail of more) {
      this.#hasSealed ||= isText(detail.signature) || isText(detail.data);
      const at = this.#places.get(detail.type)?.get(detail.index);
      const known = at === undefined ? undefined : this.#details[at];
      if (at !== undefined && known !== undefined && isPiece(known, detail)) {
        this.#details[at] = this.#join(known, detail);
        continue;
      }
      const place = this.#details.push(detail) - 1;
      // Without an index, those of one chunk are details of their own: a plain answer has them whole.
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
    const own: Record<string, unknown> = this.#joined.has(known) ? known : { ...known };
    for (const [key, value] of Object.entries(detail)) {
      const before = own[key];
      const isMore = TEXT_KEYS.includes(key) && typeof before === 'string' && typeof value === 'string';
      if (isMore) own[key] = before + value;
      // Assigned, this key would be the object's prototype.
      else if (key !== '__proto__' && value !== null && value !== undefined) own[key] = value;
    }
    this.#joined.add(own);
    return own;
  }
}

/** An encrypted detail comes whole: two of them are two. */
function isPiece(known: JsonObject, detail: JsonObject): boolean {
  return known.data === undefined && detail.data === undefined && !isText(known.signature);
}

/** OpenRouter's `reasoning_details`: opaque but for their texts, which a policy strips and a plain answer joins (A7). */
import { type JsonObject, readCount } from './json.ts';

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

/** Adds what a chunk brought to what came before: pieces of one detail, by its type and index, become one. */
export function addReasoningDetails(details: JsonObject[], more: readonly JsonObject[]): void {
  const before = details.length;
  for (const detail of more) {
    // Without an index, those of one chunk are details of their own: a plain answer has them whole.
    const searched = detail.index === undefined ? details.slice(0, before) : details;
    const at = searched.findLastIndex((known) => isSame(known, detail));
    const known = details[at];
    if (known !== undefined && isPiece(known, detail)) details[at] = joined(known, detail);
    else details.push(detail);
  }
}

function isSame(known: JsonObject, detail: JsonObject): boolean {
  return known.type === detail.type && known.index === detail.index;
}

/** An encrypted detail comes whole: two of them are two. */
function isPiece(known: JsonObject, detail: JsonObject): boolean {
  return known.data === undefined && detail.data === undefined && !isText(known.signature);
}

function joined(last: JsonObject, detail: JsonObject): JsonObject {
  const texts: Record<string, unknown> = {};
  for (const key of TEXT_KEYS) {
    const [before, after] = [last[key], detail[key]];
    if (typeof before === 'string' && typeof after === 'string') texts[key] = before + after;
  }
  const reported = Object.entries(detail).filter(([, value]) => value !== null && value !== undefined);
  return { ...last, ...Object.fromEntries(reported), ...texts };
}

/** OpenRouter's `reasoning_details`: opaque but for their texts, which a policy strips and a plain answer joins (A7). */
import type { JsonObject } from '../canonical/json.ts';

/** Under these keys a detail holds text, by its type. */
const TEXT_KEYS = ['text', 'summary'];

/** The details without their texts: what is left of them is what their upstream wants back, signatures and encrypted data. */
export function withoutReasoningText(details: readonly JsonObject[]): readonly JsonObject[] {
  return details.map(withoutText).filter(isOpaque);
}

function withoutText(detail: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(detail).filter(([key]) => !TEXT_KEYS.includes(key)));
}

function isOpaque({ signature, data }: JsonObject): boolean {
  return typeof signature === 'string' || typeof data === 'string';
}

/** Adds what a chunk brought to what came before: pieces of one detail, which follow each other, become one. */
export function addReasoningDetails(details: JsonObject[], more: readonly JsonObject[]): void {
  for (const detail of more) {
    const last = details.at(-1);
    if (
      last !== undefined &&
      last.type === detail.type &&
      last.index === detail.index &&
      isPiece(last, detail)
    ) {
      details[details.length - 1] = joined(last, detail);
    } else {
      details.push(detail);
    }
  }
}

/** An encrypted detail comes whole: two of them are two. */
function isPiece(last: JsonObject, detail: JsonObject): boolean {
  return last.data === undefined && detail.data === undefined && typeof last.signature !== 'string';
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

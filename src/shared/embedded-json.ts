/** Parses JSON that stands in strings, such as a call's arguments: the bounds on the text around it do not count what is in it (B2). */
import { parseJsonExactly } from './exact-json.ts';
import { isObject, type JsonObject } from './json.ts';
import { countJsonValues } from './json-bounds.ts';
import { MAX_JSON_VALUES } from './limits.ts';

const OBJECT = /^\s*\{/;

/** The engine takes some 20 µs for the error of a text that is no JSON, however short it is. */
const MAX_FAULTS = 1000;

/** Of one request or one answer: all that is parsed here has the values together that a body may have; what is beyond that is a text. */
export class EmbeddedJson {
  #valuesLeft = MAX_JSON_VALUES;
  #faultsLeft = MAX_FAULTS;

  /** The object that the text is; undefined where it is none, and where it is beyond the bounds. */
  object(text: string): JsonObject | undefined {
    const value = OBJECT.test(text) ? this.#parse(text) : undefined;
    return isObject(value) ? value : undefined;
  }

  /** The entries of the list that the text is; none where it is no list, and where it is beyond the bounds. */
  list(text: string): readonly unknown[] {
    const value = text.startsWith('[') ? this.#parse(text) : undefined;
    return Array.isArray(value) ? value : [];
  }

  #parse(text: string): unknown {
    const values = this.#faultsLeft === 0 ? null : countJsonValues(text, this.#valuesLeft);
    if (values === null) return undefined;
    this.#valuesLeft -= values;
    const value = parseJsonExactly(text);
    if (value === undefined) this.#faultsLeft--;
    return value;
  }
}

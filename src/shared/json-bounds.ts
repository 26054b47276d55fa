/** Counts a JSON text's depth and values before it is parsed, so that what it costs follows from its bytes alone (B2). */
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from './limits.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A shorter text can't exceed either bound. */
const MIN_CHARS = 2 * MAX_JSON_DEPTH;
/** In a text of up to this length, as most events are, counting every bracket is faster than telling strings apart. */
const MAX_COUNTED_CHARS = 4096;

const LOOPED_CHARS = 64;

/**
 * Whether the text stays within both bounds. One pass, linear in its length; a text that is not JSON gets an answer, too, and
 * is left to the parser.
 */
export function isWithinJsonBounds(text: string): boolean {
  if (text.length < MIN_CHARS) return true;
  if (text.length <= MAX_COUNTED_CHARS && countBrackets(text) <= MAX_JSON_DEPTH) return true;
  return countJsonValues(text) !== null;
}

/** How many values the text has, or null where it is nested too deep or has more values than `maxValues`. */
export function countJsonValues(text: string, maxValues = MAX_JSON_VALUES): number | null {
  const strings = new StringEnds(text);
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = strings.find(i + 1);
    } else if (code === COMMA) {
      values++;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values++;
      if (++depth > MAX_JSON_DEPTH) return null;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth--;
    }
    if (values > maxValues) return null;
  }
  return values;
}

/** Opening brackets, those within strings included; the count ends a little above the bound. */
function countBrackets(text: string): number {
  let count = 0;
  for (const bracket of ['[', '{']) {
    let at = text.indexOf(bracket);
    while (at >= 0 && count <= MAX_JSON_DEPTH) {
      count++;
      at = text.indexOf(bracket, at + 1);
    }
  }
  return count;
}

/** Finds the ends of a text's strings, one after the other. */
class StringEnds {
  readonly #text: string;
  /** Where the next backslash stands, as far as it was looked for: it is not looked for again before it is passed. */
  #escape = -1;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the string that begins at `from` has its closing quote, or the text's end. */
  find(from: number): number {
    const text = this.#text;
    let at = from;
    while (at < text.length) {
      // A loop where escapes may be dense, a search over what has had none for a while: either alone is slow on some text.
      const end = Math.min(at + LOOPED_CHARS, text.length);
      let hasEscape = false;
      for (; at < end; at++) {
        const code = text.charCodeAt(at);
        if (code === QUOTE) return at;
        if (code !== BACKSLASH) continue;
        hasEscape = true;
        at++;
      }
      if (!hasEscape) at = Math.min(this.#find('"', at), this.#nextEscape(at));
    }
    return text.length;
  }

  #nextEscape(from: number): number {
    if (this.#escape < from) this.#escape = this.#find('\\', from);
    return this.#escape;
  }

  #find(char: string, from: number): number {
    const index = this.#text.indexOf(char, from);
    return index < 0 ? this.#text.length : index;
  }
}

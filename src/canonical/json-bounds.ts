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

/**
 * Whether the text stays within both bounds. One pass, linear in its length; a text that is not JSON gets an answer, too, and
 * is left to the parser.
 */
export function isWithinJsonBounds(text: string): boolean {
  if (text.length < MIN_CHARS) return true;
  if (text.length <= MAX_COUNTED_CHARS && countBrackets(text) <= MAX_JSON_DEPTH) return true;
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = findStringEnd(text, i + 1);
    } else if (code === COMMA) {
      values++;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values++;
      if (++depth > MAX_JSON_DEPTH) return false;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth--;
    }
    if (values > MAX_JSON_VALUES) return false;
  }
  return true;
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

/** Where the string has its closing quote, or the text's end. */
function findStringEnd(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (end >= 0 && isEscaped(text, from, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

/** An odd number of backslashes stands before the quote. */
function isEscaped(text: string, from: number, quote: number): boolean {
  let at = quote - 1;
  while (at >= from && text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - 1 - at) % 2 === 1;
}

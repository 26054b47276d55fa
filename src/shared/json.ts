/** Parses, bounds and reads JSON from clients and upstreams: the readers take `unknown` and return a typed value or none. */

// TypeScript's library does not have these yet: https://github.com/tc39/proposal-json-parse-with-source
declare global {
  interface JSON {
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

export interface JsonObject {
  readonly [key: string]: unknown;
}

/** The text as JSON, or undefined if it is not JSON (`undefined` itself has no JSON form). */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value as JSON text, or undefined if the engine cannot write it because it is nested too deep. */
export function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Half a surrogate pair, which `JSON.stringify` writes as an escape, and a backslash before which none begins. */
const HALF_PAIR = /\\\\|\\ud[89a-f][\da-f]{2}/g;

/** JSON text of `JSON.stringify` with U+FFFD in the place of each half of a surrogate pair. */
export function withoutHalfPairs(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replace(HALF_PAIR, (found) => (found === '\\\\' ? found : '\ufffd'));
}

/** False for an integer that `parseJsonExactly` keeps: it is an object whose member would be its digits. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** A string that is not empty, or undefined. */
export function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A boolean, or undefined. */
export function readFlag(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** A whole number from 0 up (an index, a count of tokens), or undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A number, also an integer that `parseJsonExactly` keeps, or undefined. */
export function readNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return JSON.isRawJSON(value) ? Number(JSON.stringify(value)) : undefined;
}

/**
 * One text of these, for values of JSON. V8 leaves its fast way to write JSON at the first string in parts, which is what `+` and templates
 * make of 13 characters and more.
 */
export function flatText(...parts: readonly string[]): string {
  return parts.join('');
}

/** The first candidate that is an object, or an empty object. */
export function objectOf(...candidates: readonly unknown[]): JsonObject {
  for (const candidate of candidates) if (isObject(candidate)) return candidate;
  return {};
}

/** The value if it is a list, or an empty list. */
export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether a value is an array with items. */
export function hasItems(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

/** The object without these keys. Returns the same object if it has none of them. */
export function omit(object: JsonObject, ...keys: readonly string[]): JsonObject {
  if (!keys.some((key) => Object.hasOwn(object, key))) return object;
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** The object with the entries for which `isKept` is true. Returns the same object if those are all. */
export function keepEntries(
  object: JsonObject,
  isKept: (key: string, value: unknown) => boolean,
  onDropped?: (key: string, value: unknown) => void,
): JsonObject {
  const keys = Object.keys(object).filter((key) => !isKept(key, object[key]));
  if (keys.length === 0) return object;
  const dropped = new Set(keys);
  for (const key of dropped) onDropped?.(key, object[key]);
  return Object.fromEntries(Object.entries(object).filter(([key]) => !dropped.has(key)));
}

/** The list of mapped items, or the same list if nothing changes. */
export function mapList(list: readonly unknown[], map: (value: unknown) => unknown): readonly unknown[] {
  const next = list.map(map);
  return next.some((value, index) => value !== list[index]) ? next : list;
}

/** The list with mapped objects. Other items stay as they are. */
export function mapObjects(
  list: readonly unknown[],
  map: (item: JsonObject) => JsonObject,
): readonly unknown[] {
  return list.map((item) => (isObject(item) ? map(item) : item));
}

/** The object with mapped values, or the same object if nothing changes. */
export function mapValues(object: JsonObject, map: (value: unknown, key: string) => unknown): JsonObject {
  const entries = Object.entries(object).map(([key, value]) => [key, map(value, key)] as const);
  return entries.some(([key, value]) => value !== object[key]) ? Object.fromEntries(entries) : object;
}

/** A table's value for a key from outside. Inherited keys such as `constructor` are not found. */
export function ownValue<Value>(
  table: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined {
  return table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}

// Exact integers: a request's `seed`, a bound in a schema or an id in a call's arguments must arrive as it was written.

/** The digits of the shortest integer beyond 2^53. */
const LONG_DIGITS = 16;
/** What may stand before a number in JSON. Digits after anything else are those of a string or a fraction. */
const BEFORE_NUMBER = /^[-[:,\s]?$/;
const INTEGER = /^-?\d+$/;

/**
 * Parses JSON without rounding its integers: one beyond 2^53 becomes an object that JSON.stringify writes as the same digits. All
 * other values are those of JSON.parse.
 * @returns undefined if the text is not JSON
 */
export function parseJsonExactly(text: string): unknown {
  if (!mayHaveLongInteger(text)) return parseJson(text);
  try {
    return JSON.parse(text, keepLongInteger);
  } catch {
    return undefined;
  }
}

/** Whether a number of the text may have {@link LONG_DIGITS} digits in a row. Looks at one of so many characters only. */
function mayHaveLongInteger(text: string): boolean {
  for (let at = LONG_DIGITS - 1; at < text.length; at += LONG_DIGITS) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let start = at;
    while (isDigit(text.charCodeAt(start - 1))) start--;
    while (isDigit(text.charCodeAt(at + 1))) at++;
    if (at - start >= LONG_DIGITS - 1 && BEFORE_NUMBER.test(text.charAt(start - 1))) return true;
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_9;
}

function keepLongInteger(
  _key: string,
  value: unknown,
  ...[context]: readonly { readonly source?: string }[]
): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? '';
  return INTEGER.test(source) ? JSON.rawJSON(source) : value;
}

// Bounds: depth and values are counted before a text is parsed, so that the cost of parsing follows from the text's length.

/** Levels of lists and objects in a request's body, an upstream's event or a non-streaming response. */
export const MAX_JSON_DEPTH = 100;

/** Values in such a text. A prompt of a million tokens has far fewer, and each value costs memory beyond its bytes. */
export const MAX_JSON_VALUES = 250_000;

const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Members in objects of more than {@link LARGE_OBJECT_MEMBERS}. The engine keeps those as hash tables, and copying one costs fifty times
 * as much for each member: 50,000 hold an isolate for 300 ms on their way to a provider.
 */
export const MAX_LARGE_OBJECT_MEMBERS = 20_000;
export const LARGE_OBJECT_MEMBERS = 100;

/** What a text has more of than it may. */
export const JSON_BOUNDS = `${MAX_JSON_DEPTH} levels, ${MAX_JSON_VALUES} values, or ${MAX_LARGE_OBJECT_MEMBERS} members of objects with more than ${LARGE_OBJECT_MEMBERS}`;

/** A shorter text cannot exceed any bound. */
const MIN_COUNTED_CHARS = 2 * MAX_JSON_DEPTH;
/** In a text of up to this length, as most events are, counting all brackets is faster than skipping those within strings. */
const MAX_BRACKET_COUNT_CHARS = 4096;

/**
 * Whether the text stays within the bounds. One pass, linear in its length. A text that is not JSON gets an arbitrary result, and
 * the parser refuses it later.
 */
export function isWithinJsonBounds(text: string): boolean {
  if (text.length < MIN_COUNTED_CHARS) return true;
  if (text.length <= MAX_BRACKET_COUNT_CHARS && countBrackets(text) <= MAX_JSON_DEPTH) return true;
  return countJsonValues(new Text(text)) !== null;
}

/** As {@link isWithinJsonBounds}, for the bytes of a large body: one that is beyond the bounds need not become a text. */
export function areWithinJsonBounds(bytes: Uint8Array): boolean {
  return countJsonValues(new Bytes(bytes)) !== null;
}

/** The number of values in the JSON, or null if it is beyond the bounds or has more than `maxValues`. */
function countJsonValues(json: Units, maxValues = MAX_JSON_VALUES): number | null {
  const strings = new StringEnds(json);
  const count = new JsonCount(maxValues);
  for (let i = 0; i < json.length; i++) {
    const code = json.at(i);
    if (code === QUOTE) i = strings.find(i + 1);
    else if (isCounted(code) && !count.add(code)) return null;
  }
  return count.values;
}

/** A text's UTF-16 units, or its bytes in UTF-8: where they are ASCII, they are the same. */
interface Units {
  readonly length: number;
  at(i: number): number;
  /** The index of the next such unit, or the length. */
  indexOf(unit: number, from: number): number;
}

class Text implements Units {
  readonly length: number;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    this.length = text.length;
  }

  at(i: number): number {
    return this.#text.charCodeAt(i);
  }

  indexOf(unit: number, from: number): number {
    const index = this.#text.indexOf(String.fromCharCode(unit), from);
    return index < 0 ? this.length : index;
  }
}

class Bytes implements Units {
  readonly length: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.length = bytes.length;
  }

  at(i: number): number {
    return this.#bytes[i] ?? 0;
  }

  indexOf(unit: number, from: number): number {
    const index = this.#bytes.indexOf(unit, from);
    return index < 0 ? this.length : index;
  }
}

function isCounted(code: number): boolean {
  return code === COMMA || code >= OPEN_LIST;
}

/** Counts what the bounds of JSON are for, from the characters outside of its strings. */
class JsonCount {
  values = 1;
  readonly #maxValues: number;
  #depth = 0;
  #largeMembers = 0;
  /** The members of the open object of each level; far below 0 for a list. */
  readonly #members = new Int32Array(MAX_JSON_DEPTH + 1);

  constructor(maxValues = MAX_JSON_VALUES) {
    this.#maxValues = maxValues;
  }

  /** @returns false as soon as a bound is exceeded */
  add(code: number): boolean {
    if (code === COMMA) {
      const members = (this.#members[this.#depth] ?? 0) + 1;
      this.#members[this.#depth] = members;
      if (members > LARGE_OBJECT_MEMBERS) {
        this.#largeMembers += members === LARGE_OBJECT_MEMBERS + 1 ? members : 1;
        if (this.#largeMembers > MAX_LARGE_OBJECT_MEMBERS) return false;
      }
      return ++this.values <= this.#maxValues;
    }
    if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++this.#depth > MAX_JSON_DEPTH) return false;
      this.#members[this.#depth] = code === OPEN_OBJECT ? 1 : -MAX_JSON_VALUES;
      return ++this.values <= this.#maxValues;
    }
    if (code === CLOSE_LIST || code === CLOSE_OBJECT) this.#depth--;
    return true;
  }
}

/** Counts opening brackets, also those within strings, and stops soon after the bound. */
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

/** Characters that are checked one by one before a search for the next quote or backslash. */
const LOOPED_CHARS = 64;

/** Finds the ends of the strings in JSON, one after the other. */
class StringEnds {
  readonly #json: Units;
  /** The next backslash that was found. It is searched again only once it was passed. */
  #escape = -1;

  constructor(json: Units) {
    this.#json = json;
  }

  /** The index of the closing quote of the string that begins at `from`, or the length. */
  find(from: number): number {
    const json = this.#json;
    let at = from;
    while (at < json.length) {
      // A loop while escapes may be dense, a search after a stretch without one. Either alone is slow on some texts.
      const end = Math.min(at + LOOPED_CHARS, json.length);
      let hasEscape = false;
      for (; at < end; at++) {
        const code = json.at(at);
        if (code === QUOTE) return at;
        if (code !== BACKSLASH) continue;
        hasEscape = true;
        at++;
      }
      if (!hasEscape) at = Math.min(json.indexOf(QUOTE, at), this.#nextEscape(at));
    }
    return json.length;
  }

  #nextEscape(from: number): number {
    if (this.#escape < from) this.#escape = this.#json.indexOf(BACKSLASH, from);
    return this.#escape;
  }
}

const OBJECT = /^\s*\{/;

/** The engine takes some 20 µs to report that a text is not JSON, however short the text is. */
const MAX_PARSE_ERRORS = 1000;

/**
 * Parses JSON within strings, such as a tool call's arguments. The bounds on the surrounding JSON do not count values within its
 * strings, so one instance bounds them for a whole request or output: a text beyond the bounds stays a text.
 */
export class EmbeddedJson {
  #valuesLeft = MAX_JSON_VALUES;
  #errorsLeft = MAX_PARSE_ERRORS;

  /** The object in the text, or undefined if there is none or it is beyond the bounds. */
  object(text: string): JsonObject | undefined {
    const value = OBJECT.test(text) ? this.#parse(text) : undefined;
    return isObject(value) ? value : undefined;
  }

  /** The entries of the list in the text. Empty if there is none or it is beyond the bounds. */
  list(text: string): readonly unknown[] {
    const value = text.startsWith('[') ? this.#parse(text) : undefined;
    return Array.isArray(value) ? value : [];
  }

  #parse(text: string): unknown {
    const values = this.#errorsLeft === 0 ? null : countJsonValues(new Text(text), this.#valuesLeft);
    if (values === null) return undefined;
    this.#valuesLeft -= values;
    const value = parseJsonExactly(text);
    if (value === undefined) this.#errorsLeft--;
    return value;
  }
}

/** Reads JSON that comes in pieces, such as a tool call's arguments: where its first value ends, and whether the text ends within it. */
import { parseJson, readText } from './json.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const LOWER_U = 0x75;
/** What follows the backslash of an escape, and the character that it stands for. Others stand for themselves. */
const ESCAPES = new Map(
  [...'bfnrt'].map((letter, i) => [letter.charCodeAt(0), '\b\f\n\r\t'.charCodeAt(i)] as const),
);
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** A text with more levels counts as malformed. */
const MAX_LEVELS = 1024;

/** What may come next outside of strings. `rest`: of a number, `true`, `false` or `null`. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end' | 'rest';

/** Follows JSON that comes in pieces, in linear time: whether it is valid so far, complete, and how it would have to go on. */
export class JsonProgress {
  #hasBegun = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isComplete = false;
  /** The closing brackets of the open levels. */
  readonly #closers: number[] = [];
  #expected: Expected = 'value';
  /** The word of which `rest` is expected, and how much of it has come. Empty: a number. */
  #word = '';
  #wordLength = 0;
  #isMalformed = false;
  #lastUnit = 0;
  /** The value that follows the first one, and then the last of those that follow. */
  #next: JsonProgress | null = null;
  /** Something that is no JSON follows the first value. */
  #isFollowed = false;

  /** Whether there was a piece that is not empty. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether the first object or array has ended. Other values never end. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether the text so far is one object or array of JSON, and nothing else. */
  get isAlone(): boolean {
    return this.#isComplete && !this.#isMalformed && this.#next === null;
  }

  /**
   * Whether the text so far is the beginning of JSON, and not all of it. False for a text that no continuation would make JSON. Within a
   * string every character is accepted, also a line end.
   */
  get isCut(): boolean {
    if (this.#isMalformed) return false;
    return this.#depth > 0 || this.#isInString || this.#isInWord;
  }

  /** Whether the text ends within JSON: of its first value, or of a further object or array after complete ones. */
  get endsCut(): boolean {
    return this.isCut || (!this.#isFollowed && this.#next?.isCut === true);
  }

  /** Of a number only its last character is known: it does not end with a sign or a point. */
  get #isInWord(): boolean {
    if (this.#expected !== 'rest') return false;
    return this.#word === '' ? NUMBER_SIGNS.includes(this.#lastUnit) : this.#wordLength < this.#word.length;
  }

  /** @returns the length of the part of the piece that belongs to the first value */
  push(piece: string): number {
    const length = this.#read(piece);
    if (length < piece.length) this.#readRest(piece.slice(length));
    return length;
  }

  /**
   * Like {@link push}, for a piece that is not decoded: the bytes of a valid JSON string between `from` and `to`.
   * @returns where the part that belongs to the first value ends
   */
  pushRaw(bytes: Uint8Array, from: number, to: number): number {
    this.#hasBegun ||= from < to;
    let at = from;
    while (at < to && !this.#isComplete) {
      const byte = bytes[at] ?? 0;
      // A byte beyond ASCII means as little as the character that it is a part of.
      if (byte !== BACKSLASH) this.#readUnit(byte);
      else this.#readUnit(escapedUnit(bytes, at + 1));
      at += byte === BACKSLASH ? (bytes[at + 1] === LOWER_U ? 6 : 2) : 1;
    }
    if (at < to) this.#readRest(readText(parseJson(`"${decoder.decode(bytes.subarray(at, to))}"`)) ?? '');
    return at;
  }

  /** What follows the first value. */
  #readRest(text: string): void {
    let rest = text;
    while (rest !== '' && !this.#isFollowed) {
      if (this.#next === null || this.#next.isComplete) {
        rest = rest.trimStart();
        if (rest === '') return;
        this.#isFollowed = !(rest.startsWith('{') || rest.startsWith('['));
        this.#next = new JsonProgress();
      }
      rest = rest.slice(this.#next.#read(rest));
    }
  }

  #read(piece: string): number {
    this.#hasBegun ||= piece !== '';
    let i = 0;
    for (; i < piece.length && !this.#isComplete; i++) this.#readUnit(piece.charCodeAt(i));
    return i;
  }

  #readUnit(unit: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#isInString) {
      if (unit === BACKSLASH) this.#isEscaped = true;
      else if (unit === QUOTE) this.#isInString = false;
    } else {
      this.#lastUnit = unit;
      if (!this.#isMalformed) this.#check(unit);
      if (unit === QUOTE) this.#isInString = true;
      else if (unit === OPEN_OBJECT || unit === OPEN_LIST) this.#depth++;
      else if (unit === CLOSE_OBJECT || unit === CLOSE_LIST) this.#isComplete = --this.#depth <= 0;
    }
  }

  /** Checks a character outside of strings against the grammar. */
  #check(unit: number): void {
    if (this.#expected === 'rest' && this.#continuesWord(unit)) return;
    // Space, tab, LF and CR.
    if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) return;
    this.#isMalformed = !this.#accept(unit);
  }

  /** Whether the character belongs to the word. The end of a word is the end of its value. */
  #continuesWord(unit: number): boolean {
    if (this.#word === '') {
      if (isNumberUnit(unit)) return true;
    } else if (this.#wordLength < this.#word.length) {
      this.#isMalformed = this.#word.charCodeAt(this.#wordLength++) !== unit;
      return true;
    }
    this.#expected = ', or end';
    return false;
  }

  #accept(unit: number): boolean {
    const expected = this.#expected;
    if (unit === CLOSE_OBJECT || unit === CLOSE_LIST) {
      const mayClose =
        expected === ', or end' || expected === (unit === CLOSE_LIST ? 'value or ]' : 'key or }');
      this.#expected = ', or end';
      return mayClose && this.#closers.pop() === unit;
    }
    if (expected === ', or end') {
      this.#expected = this.#closers.at(-1) === CLOSE_OBJECT ? 'key' : 'value';
      return unit === COMMA && this.#depth > 0;
    }
    if (expected === ':') {
      this.#expected = 'value';
      return unit === COLON;
    }
    const isKey = expected === 'key' || expected === 'key or }';
    if (unit === QUOTE) {
      this.#expected = isKey ? ':' : ', or end';
      return true;
    }
    return !isKey && this.#openValue(unit);
  }

  /** Begins a value that is not a string. */
  #openValue(unit: number): boolean {
    if (unit === OPEN_OBJECT || unit === OPEN_LIST) {
      const isList = unit === OPEN_LIST;
      this.#expected = isList ? 'value or ]' : 'key or }';
      return this.#closers.push(isList ? CLOSE_LIST : CLOSE_OBJECT) <= MAX_LEVELS;
    }
    this.#word = WORDS.find((word) => word.charCodeAt(0) === unit) ?? '';
    this.#wordLength = 1;
    this.#expected = 'rest';
    return this.#word !== '' || isNumberUnit(unit);
  }
}

const WORDS = ['true', 'false', 'null'];

/** The UTF-16 unit of an escape, of which `at` is the byte after the backslash. */
export function escapedUnit(bytes: Uint8Array, at: number): number {
  const byte = bytes[at] ?? 0;
  if (byte !== LOWER_U) return ESCAPES.get(byte) ?? byte;
  return Number.parseInt(String.fromCharCode(...bytes.subarray(at + 1, at + 5)), 16);
}

/** Digits, signs, the point and the exponent. Their order is not checked: a number in another order is not taken for a cut. */
function isNumberUnit(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || NUMBER_SIGNS.includes(unit);
}

const NUMBER_SIGNS = [...'+-.eE'].map((sign) => sign.charCodeAt(0));

/** Finds many short texts in long ones, in one pass over each, whatever their case and accents: quotations and words of a refusal. */

import { lazyPattern } from '../shared/lazy-pattern.ts';
import { foldedUnit, isWordAt } from './common-runs.ts';

/** Characters that are distinguished, as a power of two. */
const CHARACTER_BITS = 8;

/** Steps of all short texts, one for each character that no other text begins with. */
const MAX_STATES = 8192;

/** Characters of a short text. */
const MAX_UNITS = 128;

/** Characters of long texts times short texts that the engine's own search may read. Beyond, its slowest texts would count. */
const MAX_QUICK_CHARS = 512 * 1024;

const SPACE_CODE = 32;
const BACKSLASH = 92;

// The characters of long texts, by unit; 0: not known yet. From the fourth on they are those of the short texts.

const SKIPPED = 1;
const OTHER = 2;
const SPACE = 3;
const FIRST = 4;

/** Different characters of all short texts. A text with further ones is not searched. */
const MAX_CHARACTERS = (1 << CHARACTER_BITS) - FIRST;

// Which kinds of texts end at a state.

const HAS_PART = 1;
const HAS_WORD = 2;

/** Called with the place in a long text where a word begins, or once for a part. `done`: it need not be found again. */
type OnFound = (from: number) => 'more' | 'done';

interface Needed {
  /** It must have all of these. */
  readonly pieces: readonly string[];
  /** As it is compared. */
  readonly whole: string;
  /** Where it ends, if it is a part; null: more must be known than that it is there. */
  readonly state: number | null;
}

interface ShortText {
  readonly length: number;
  readonly onFound: OnFound;
}

/** A unit as it is compared; 0: it does not count. */
export type Fold = (text: string, at: number) => number;

/** The texts of one kind that end at a state, by state. */
type Ends = (ShortText[] | undefined)[];

/** An automaton: its states are the beginnings of the short texts, and each character of a long text takes one step (Aho and Corasick). */
export class ShortTexts {
  readonly #fold: Fold;
  /** By folded unit of the short texts. */
  readonly #known = new Map<number, number>([[SPACE_CODE, SPACE]]);
  /** By state: the next states by character. The first state is 0. */
  readonly #next: Map<number, number>[] = [new Map()];
  readonly #parts: Ends = [];
  readonly #words: Ends = [];
  #automaton: Automaton | null = null;
  /** What a long text must have to be of interest. */
  #needed: readonly Needed[] = [];
  #pieceCount = 0;
  /** All pieces are of ASCII. */
  #isAscii = true;
  #quickChars: number;
  /** Characters of long texts that were read one by one. */
  readChars = 0;

  constructor(fold: Fold = foldedUnit) {
    this.#fold = fold;
    this.#quickChars = fold === foldedUnit ? MAX_QUICK_CHARS : 0;
  }

  /**
   * @param kind `part`: it may be a part of a word, and is found once
   * @param onFound called for each place in texts that are searched later
   * @param isAlone false: it matters only together with others, see {@link addGroup}
   * @returns false: there are too many texts, so that this one is not searched
   */
  add(text: string, kind: 'part' | 'word', onFound: OnFound, isAlone = true): boolean {
    const units = unitsOf(text, this.#fold);
    if (units.length === 0) return true;
    if (units.length > MAX_UNITS || this.#next.length + units.length > MAX_STATES) return false;
    let state = 0;
    for (const unit of units) {
      const character = this.#characterOf(unit);
      if (character === null) return false;
      const steps = this.#next[state];
      let to = steps?.get(character);
      if (to === undefined) {
        to = this.#next.push(new Map()) - 1;
        steps?.set(character, to);
      }
      state = to;
    }
    const ends = kind === 'word' ? this.#words : this.#parts;
    const texts = ends[state] ?? [];
    texts.push({ length: units.length, onFound });
    ends[state] = texts;
    if (isAlone) {
      const whole = String.fromCharCode(...units);
      this.#need({ pieces: [longestPiece(whole)], whole, state: kind === 'part' ? state : null });
    }
    return true;
  }

  /** Words that matter only where one long text has all of them. */
  addGroup(words: readonly string[]): void {
    const pieces = words.map((word) => longestPiece(String.fromCharCode(...unitsOf(word, this.#fold))));
    this.#need({ pieces, whole: '', state: null });
  }

  #need(needed: Needed): void {
    this.#needed = [...this.#needed, needed];
    this.#pieceCount += needed.pieces.length;
    this.#isAscii &&=
      !BEYOND_ASCII.test(needed.whole) && !needed.pieces.some((piece) => BEYOND_ASCII.test(piece));
  }

  /** Whether there is nothing but numbers of six digits or more. */
  get isOfNumbers(): boolean {
    return this.#needed.every(({ whole }) => NUMBER.test(whole));
  }

  /** Reports where the short texts are in a long one. The time is linear in its length, whatever is found. */
  find(text: string): void {
    if (this.#next.length === 1 || this.#isWithout(text)) return;
    const automaton = this.#automaton ?? buildAutomaton(this.#next, this.#parts, this.#words);
    this.#automaton = automaton;
    this.readChars += text.length;
    const { characters, steps, kinds } = automaton;
    let state = 0;
    // Little is done for a character: most texts are long, and most of their characters end nothing.
    for (let at = 0; at < text.length; at++) {
      const character = characters[text.charCodeAt(at)] || this.#learn(characters, text, at);
      state = steps[(state << CHARACTER_BITS) | character] ?? 0;
      const kind = kinds[state] ?? 0;
      if (kind === 0 || character === SKIPPED) continue;
      // Of all words that end within a word none is whole.
      const isWordEnd = (kind & HAS_WORD) !== 0 && !isWordAt(text, at + 1);
      if (isWordEnd || (kind & HAS_PART) !== 0) this.#report(automaton, text, state, at + 1, isWordEnd);
    }
  }

  /** A quick look, by the engine's own search: most texts of a request have nothing of its refusal. */
  #isWithout(text: string): boolean {
    const chars = text.length * this.#pieceCount;
    if (chars > this.#quickChars) return false;
    this.#quickChars -= chars;
    const folded = foldRare(text, this.#isAscii);
    if (folded === null) return false;
    // What is left of such a text is what it is compared by, besides white space.
    const lower = folded.toLowerCase();
    const there = this.#needed.filter(({ pieces }) => pieces.every((piece) => lower.includes(piece)));
    if (there.length === 0) return true;
    const spaced = lower.replace(SPACES(), ' ');
    const found = there.filter(({ whole, state }) => state !== null && spaced.includes(whole));
    this.#needed = this.#needed.filter((one) => !found.includes(one));
    for (const { state } of found) this.#reportPart(state ?? 0);
    return there.every(({ state }) => state !== null);
  }

  #reportPart(state: number): void {
    const texts = this.#parts[state] ?? NONE;
    this.#parts[state] = undefined;
    for (const { onFound } of texts) onFound(0);
  }

  #report(
    { kinds, parts, words }: Automaton,
    text: string,
    state: number,
    to: number,
    isWordEnd: boolean,
  ): void {
    const kind = kinds[state] ?? 0;
    if ((kind & HAS_PART) !== 0) {
      kinds[state] = kind & HAS_WORD;
      for (let end = parts.longest[state] ?? 0; end !== 0; end = parts.shorter[end] ?? 0)
        this.#reportPart(end);
    }
    if (isWordEnd && !this.#hasWords(words, state)) kinds[state] = (kinds[state] ?? 0) & ~HAS_WORD;
    else if (isWordEnd) this.#reportWords(words, text, state, to);
  }

  /** Whether a word that ends at a state is still to be found. */
  #hasWords({ longest, shorter }: Suffixes, state: number): boolean {
    let end = longest[state] ?? 0;
    while (end !== 0 && (this.#words[end]?.length ?? 0) === 0) end = shorter[end] ?? 0;
    return end !== 0;
  }

  #reportWords({ longest, shorter }: Suffixes, text: string, state: number, to: number): void {
    let least = -1;
    for (let end = longest[state] ?? 0; end !== 0; end = shorter[end] ?? 0) {
      const ends = this.#words[end];
      const length = ends?.[0]?.length;
      if (ends === undefined || length === undefined) continue;
      // The longest comes first.
      if (least < 0) least = findStarts(text, to, length);
      if (length < least) return;
      const from = starts[length] ?? -1;
      if (from < 0) continue;
      for (let i = ends.length - 1; i >= 0; i--) if (ends[i]?.onFound(from) === 'done') ends.splice(i, 1);
    }
  }

  #characterOf(folded: number): number | null {
    const known = this.#known.get(folded);
    if (known !== undefined || this.#known.size >= MAX_CHARACTERS) return known ?? null;
    const character = FIRST + this.#known.size;
    this.#known.set(folded, character);
    return character;
  }

  #learn(characters: Uint8Array, text: string, at: number): number {
    const unit = text.charCodeAt(at);
    const folded = this.#fold(text, at);
    const character = folded === 0 ? SKIPPED : (this.#known.get(folded) ?? OTHER);
    // Half of a pair is skipped only where the other half is missing.
    const isHalf = unit >= 0xd800 && unit <= 0xdfff;
    if (!isHalf) characters[unit] = character;
    return character;
  }
}

const NONE: ShortText[] = [];

const NUMBER = /^\d{6,}$/;
const BEYOND_ASCII = /[^\0-\x7f]/;

/** A quick look pays for a text with this many characters beyond ASCII, and for a longer one with one in so many. */
const MIN_RARE_CHARS = 64;
const CHARS_A_RARE_ONE = 16;

/** Stands for characters that are none of ASCII also where they are compared: a text of one byte for each is searched faster. */
const ANY_OTHER = '\xa1';

/**
 * A text without backslashes, and with its characters beyond ASCII as they are compared; null: it has too many.
 * @param isAscii what is searched is of ASCII
 */
function foldRare(text: string, isAscii: boolean): string | null {
  let left = Math.max(MIN_RARE_CHARS, text.length / CHARS_A_RARE_ONE);
  let folded = '';
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80 && unit !== BACKSLASH) continue;
    if (unit !== BACKSLASH && --left < 0) return null;
    const compared = foldedUnit(text, at);
    folded += text.slice(from, at);
    if (compared > 0x7f && isAscii) folded += ANY_OTHER;
    else if (compared !== 0) folded += String.fromCharCode(compared);
    from = at + 1;
  }
  return from === 0 ? text : folded + text.slice(from);
}

/** The longest piece without white space. */
function longestPiece(text: string): string {
  return text.split(' ').reduce((longest, piece) => (piece.length > longest.length ? piece : longest), '');
}

function unitsOf(text: string, fold: Fold): number[] {
  const units: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const unit = fold(text, at);
    if (unit !== 0 && (unit !== SPACE_CODE || (units.at(-1) ?? SPACE_CODE) !== SPACE_CODE)) units.push(unit);
  }
  if (units.at(-1) === SPACE_CODE) units.pop();
  return units;
}

/** By the count of units before a place, where they begin, if a word begins there; else -1. One call at a time uses it. */
const starts = new Int32Array(MAX_UNITS + 1);

/** @returns the least count of units with which a word begins; more than `count`: none does */
function findStarts(text: string, to: number, count: number): number {
  let units = 0;
  let least = count + 1;
  let isSpace = false;
  for (let at = to - 1; at >= 0 && units < count; at--) {
    const unit = foldedUnit(text, at);
    // White space counts as one space.
    if (unit === 0 || (isSpace && unit === SPACE_CODE)) continue;
    isSpace = unit === SPACE_CODE;
    units++;
    // A letter behind a backslash is an escape.
    const isStart = !isWordAt(text, at - 1) || text.charCodeAt(at - 2) === BACKSLASH;
    starts[units] = isStart ? at : -1;
    if (isStart && least > count) least = units;
  }
  return least;
}

interface Suffixes {
  /** By state: the longest text of the kind that ends there, as the state of its end; 0: none. */
  readonly longest: Uint16Array;
  /** By state of an end: the next shorter text that ends there. */
  readonly shorter: Uint16Array;
}

interface Automaton {
  /** By unit of a long text, filled when it is first seen. */
  readonly characters: Uint8Array;
  /** The next state, by state and character. */
  readonly steps: Uint16Array;
  /** By state: {@link HAS_PART}, {@link HAS_WORD}. */
  readonly kinds: Uint8Array;
  readonly parts: Suffixes;
  readonly words: Suffixes;
}

function buildAutomaton(next: readonly Map<number, number>[], partEnds: Ends, wordEnds: Ends): Automaton {
  const steps = new Uint16Array(next.length << CHARACTER_BITS);
  const kinds = new Uint8Array(next.length);
  const parts = suffixesOf(next.length);
  const words = suffixesOf(next.length);
  /** By state: the longest other beginning of a text with which it ends. */
  const fallbacks = new Uint16Array(next.length);
  const isBehindSpace = new Uint8Array(next.length);
  const queue = [0];
  for (const state of queue) {
    const fallback = fallbacks[state] ?? 0;
    const row = state << CHARACTER_BITS;
    if (state !== 0) {
      steps.copyWithin(row, fallback << CHARACTER_BITS, (fallback + 1) << CHARACTER_BITS);
      addEnd(parts, partEnds, state, fallback);
      addEnd(words, wordEnds, state, fallback);
    }
    kinds[state] = (parts.longest[state] === 0 ? 0 : HAS_PART) | (words.longest[state] === 0 ? 0 : HAS_WORD);
    steps[row + SKIPPED] = state;
    // White space counts as one space.
    if (isBehindSpace[state] === 1) steps[row + SPACE] = state;
    for (const [character, to] of next[state] ?? []) {
      if (state !== 0) fallbacks[to] = steps[row + character] ?? 0;
      steps[row + character] = to;
      queue.push(to);
      if (character === SPACE) isBehindSpace[to] = 1;
    }
  }
  return { characters: new Uint8Array(1 << 16), steps, kinds, parts, words };
}

function suffixesOf(states: number): Suffixes {
  return { longest: new Uint16Array(states), shorter: new Uint16Array(states) };
}

function addEnd({ longest, shorter }: Suffixes, ends: Ends, state: number, fallback: number): void {
  const inherited = longest[fallback] ?? 0;
  longest[state] = ends[state] === undefined ? inherited : state;
  shorter[state] = inherited;
}

const SPACES = lazyPattern('[\\s\\p{Cc}]+', 'gu');

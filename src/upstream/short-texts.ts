/** Finds many short texts in long ones, in one pass over each, whatever their case and accents: quotations and words of a refusal. */
import { foldedUnit, isWordAt } from './common-runs.ts';

/** Different characters of all short texts. A text with further ones is not searched. */
const MAX_CHARACTERS = 250;

/** Steps of all short texts, one for each character that no other text begins with. */
const MAX_STATES = 8192;

/** The last places of a long text, where a short text may begin. A power of two is a fast ring. */
const RING = 128;

const SPACE_CODE = 32;

// The characters of long texts, by unit; 0: not known yet. From the fourth on they are those of the short texts.

const SKIPPED = 1;
const OTHER = 2;
const SPACE = 3;
const FIRST = 4;

/** Called with the place in a long text of what was found. `done`: it need not be found again. */
type OnFound = (from: number, to: number) => 'more' | 'done';

interface ShortText {
  readonly length: number;
  readonly isWord: boolean;
  readonly onFound: OnFound;
}

/** An automaton: its states are the beginnings of the short texts, and each character of a long text takes one step (Aho and Corasick). */
export class ShortTexts {
  /** By unit of a long text, filled when it is first seen. */
  readonly #characters = new Uint8Array(1 << 16);
  /** By folded unit of the short texts. */
  readonly #known = new Map<number, number>([[SPACE_CODE, SPACE]]);
  /** By state: the next states by character. The first state is 0. */
  readonly #next: Map<number, number>[] = [new Map()];
  /** By state: the texts that end there. */
  readonly #ends: (ShortText[] | undefined)[] = [undefined];
  #table: Automaton | null = null;

  /**
   * @param isWord whether only whole words count
   * @param onFound called for each place in texts that are searched later
   * @returns false: there are too many texts, so that this one is not searched
   */
  add(text: string, isWord: boolean, onFound: OnFound): boolean {
    const units = unitsOf(text);
    if (units.length === 0) return true;
    if (units.length > RING || this.#next.length + units.length > MAX_STATES) return false;
    let state = 0;
    for (const unit of units) {
      const character = this.#characterOf(unit);
      if (character === null) return false;
      const steps = this.#next[state];
      let to = steps?.get(character);
      if (to === undefined) {
        to = this.#next.push(new Map()) - 1;
        this.#ends.push(undefined);
        steps?.set(character, to);
      }
      state = to;
    }
    const ends = this.#ends[state] ?? [];
    ends.push({ length: units.length, isWord, onFound });
    this.#ends[state] = ends;
    return true;
  }

  /** Reports where the short texts are in a long one. The time is linear in its length and in what is found. */
  find(text: string): void {
    if (this.#next.length === 1) return;
    this.#table ??= buildAutomaton(this.#next, this.#ends, FIRST + this.#known.size);
    const { steps, outputs, shorter, width } = this.#table;
    const characters = this.#characters;
    let state = 0;
    let count = 0;
    let last = SPACE;
    for (let at = 0; at < text.length; at++) {
      const character = characters[text.charCodeAt(at)] || this.#learn(text, at);
      // White space counts as one space.
      if (character === SKIPPED || (character === SPACE && last === SPACE)) continue;
      last = character;
      places[count & (RING - 1)] = at;
      count++;
      state = steps[state * width + character] ?? 0;
      for (let ended = outputs[state] ?? 0; ended !== 0; ended = shorter[ended] ?? 0) {
        this.#report(text, ended, count, at + 1);
      }
    }
  }

  #report(text: string, state: number, count: number, to: number): void {
    const ends = this.#ends[state] ?? NONE;
    for (let i = ends.length - 1; i >= 0; i--) {
      const found = ends[i];
      if (found === undefined) continue;
      const from = places[(count - found.length) & (RING - 1)] ?? 0;
      if (found.isWord && !isWordBetween(text, from, to)) continue;
      if (found.onFound(from, to) === 'done') ends.splice(i, 1);
    }
  }

  #characterOf(folded: number): number | null {
    const known = this.#known.get(folded);
    if (known !== undefined || this.#known.size >= MAX_CHARACTERS) return known ?? null;
    const character = FIRST + this.#known.size;
    this.#known.set(folded, character);
    return character;
  }

  #learn(text: string, at: number): number {
    const folded = foldedUnit(text, at);
    const character = folded === 0 ? SKIPPED : (this.#known.get(folded) ?? OTHER);
    // Half of a pair is skipped only where the other half is missing.
    if (!/[\ud800-\udfff]/.test(text.charAt(at))) this.#characters[text.charCodeAt(at)] = character;
    return character;
  }
}

const places = new Int32Array(RING);
const NONE: ShortText[] = [];

function unitsOf(text: string): number[] {
  const units: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const unit = foldedUnit(text, at);
    if (unit !== 0 && (unit !== SPACE_CODE || (units.at(-1) ?? SPACE_CODE) !== SPACE_CODE)) units.push(unit);
  }
  if (units.at(-1) === SPACE_CODE) units.pop();
  return units;
}

/** A letter behind a backslash is an escape. */
function isWordBetween(text: string, from: number, to: number): boolean {
  return !isWordAt(text, to) && (!isWordAt(text, from - 1) || text[from - 2] === '\\');
}

interface Automaton {
  /** The next state, by state and character. */
  readonly steps: Uint16Array;
  readonly width: number;
  /** By state: the longest text that ends there, as the state of its end; 0: none. */
  readonly outputs: Uint16Array;
  /** By state of an end: the next shorter text that ends there. */
  readonly shorter: Uint16Array;
}

function buildAutomaton(
  next: readonly Map<number, number>[],
  ends: readonly (readonly ShortText[] | undefined)[],
  width: number,
): Automaton {
  const steps = new Uint16Array(next.length * width);
  const outputs = new Uint16Array(next.length);
  const shorter = new Uint16Array(next.length);
  /** By state: the longest other beginning of a text with which it ends. */
  const fallbacks = new Uint16Array(next.length);
  const queue = [0];
  for (const state of queue) {
    const fallback = fallbacks[state] ?? 0;
    if (state !== 0) {
      for (let character = 1; character < width; character++)
        steps[state * width + character] = steps[fallback * width + character] ?? 0;
      const inherited = outputs[fallback] ?? 0;
      outputs[state] = ends[state] === undefined ? inherited : state;
      shorter[state] = inherited;
    }
    for (const [character, to] of next[state] ?? []) {
      if (state !== 0) fallbacks[to] = steps[state * width + character] ?? 0;
      steps[state * width + character] = to;
      queue.push(to);
    }
  }
  return { steps, width, outputs, shorter };
}

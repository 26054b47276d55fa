/**
 * Finds what a short text has in common with long ones: runs of three words, or of 11 characters, whatever their case,
 * accents and spaces.
 */

// The numbers come before all other statements: esbuild writes only such into the code, where the loops are twice as fast.

/** What two texts have in common counts from three words, or from this many characters on, without white space and `_`. */
export const RUN_CHARS = 11;

/**
 * Runs of characters are looked for only around some places of a long text: each run has a gram of this many characters that ends at one
 * of them, and most grams are not in the short text.
 */
const GRAM_CHARS = 6;
const GRAM_STRIDE = RUN_CHARS - GRAM_CHARS + 1;

/** What is known of a hash: a bit for its gram, and above it the count of runs. */
const IS_GRAM = 1;
const ONE_RUN = 2;
const HASH_BITS = 14;
const HASH_MASK = (1 << HASH_BITS) - 1;
/** The engine has integers of this many bits without an object. */
const INTEGER_MASK = (1 << 30) - 1;

const BASE = 0x01000193;
const WORDS_SEED = 0x9e3779b9;
/** A character has bits in the grams of the next {@link GRAM_CHARS}: then it is shifted out. */
const GRAM_SHIFT = 6;
const GRAM_FACTOR = 0x9e3779b1;

// What is known of each UTF-16 unit: one bit for each of its kinds, and in the lower bits the unit in lower case
// without its accent. 0: not known yet.

const FOLDED = 0xffff;
const SPACE_CODE = 32;
const WORD = 1 << 16;
const SPACE = 1 << 17;
const OTHER = 1 << 18;
/** Half of a pair, which is a {@link WORD}, too. */
const SURROGATE = 1 << 19;
/** Of scripts without spaces. */
const WHOLE_WORD = 1 << 20;
/** Marks, invisible characters, the backslash of escapes, and what stands for an unreadable character. */
const SKIPPED = 1 << 21;
/** White space and `_`, which may stand between any two characters. */
const GAP = 1 << 22;
/** These may have to be skipped. */
const RARE = SURROGATE | SKIPPED;

const UNITS = new Int32Array(1 << 16);
const EVERY = new Uint16Array(1 << HASH_BITS).fill(ONE_RUN | IS_GRAM);
/** {@link BASE} to the power of {@link RUN_CHARS}. */
const OUT = Array.from({ length: RUN_CHARS }).reduce<number>((power) => Math.imul(power, BASE), 1);

/** Called with the hash of a run, and where it begins and ends. */
type VisitRun = (hash: number, from: number, to: number) => void;

/**
 * The runs of a short text, which are searched in long ones. About 100 bytes are held for each of its characters, so
 * its user bounds it.
 */
export class CommonRuns {
  /** The last of the runs with each hash. */
  readonly #runs = new Map<number, SearchedRun>();
  /** By hash: how many runs have it, and whether a gram does. Most hashes of a long text are not among these, so the map is rarely read. */
  readonly #known = new Uint16Array(1 << HASH_BITS);
  /** Characters of long texts that were read, each as often as it was. */
  readChars = 0;

  /** @param onFound called with the place of each run that is found later */
  add(text: string, onFound: (from: number, to: number) => void): void {
    const knownHashes = this.#known;
    const note: VisitRun = (hash, from, to) => {
      const other = this.#runs.get(hash);
      if (other === undefined) knownHashes[hash & HASH_MASK] = (knownHashes[hash & HASH_MASK] ?? 0) + ONE_RUN;
      this.#runs.set(hash, { from, to, onFound, other });
    };
    new CharRuns().visit(text, 0, text.length, note);
    scan(text, 1, EVERY, note, (gram) => {
      knownHashes[gram] = (knownHashes[gram] ?? 0) | IS_GRAM;
    });
  }

  /** Reports the runs that are in a long text, each once. The time is linear in the text's length. */
  find(text: string): void {
    if (this.#runs.size === 0) return;
    const knownHashes = this.#known;
    const find: VisitRun = (hash) => {
      if ((knownHashes[hash & HASH_MASK] ?? 0) >= ONE_RUN) this.#report(hash);
    };
    const chars = new CharRuns();
    scan(text, GRAM_STRIDE, knownHashes, find, (_gram, at) => chars.visitAround(text, at, find));
    this.readChars += text.length + chars.readChars;
  }

  #report(hash: number): void {
    const found = this.#runs.get(hash);
    if (found === undefined) return;
    for (let run: SearchedRun | undefined = found; run !== undefined; run = run.other)
      run.onFound(run.from, run.to);
    this.#runs.delete(hash);
    // A text may have it at every place.
    this.#known[hash & HASH_MASK] = (this.#known[hash & HASH_MASK] ?? 0) - ONE_RUN;
  }
}

interface SearchedRun {
  readonly from: number;
  readonly to: number;
  readonly onFound: (from: number, to: number) => void;
  readonly other: SearchedRun | undefined;
}

/**
 * Visits each run of words, and each `stride`th gram, in one pass. Most time is spent here, so that nothing is called or stored for a
 * character, and little for a word.
 * @param wanted which hashes are visited: from {@link ONE_RUN} on those of runs, with {@link IS_GRAM} those of grams
 * @param visitGram called with a hash of {@link HASH_BITS} bits, and the place of the gram's last character
 */
function scan(
  text: string,
  stride: number,
  wanted: Uint16Array,
  visitWords: VisitRun,
  visitGram: (gram: number, at: number) => void,
): void {
  const units = UNITS;
  let last = SPACE;
  // The hashes and places of the current word and of the two before it. Without one, its place is -1.
  let word = 0;
  let wordAt = -1;
  let second = 0;
  let secondAt = -1;
  let first = 0;
  let firstAt = -1;
  let gram = 0;
  let left = GRAM_CHARS;
  for (let at = 0; at <= text.length; at++) {
    const unit = at < text.length ? text.charCodeAt(at) : SPACE_CODE;
    const traits = units[unit] || learn(unit);
    if ((traits & RARE) !== 0 && isSkipped(text, at, unit, traits)) continue;
    if (wordAt >= 0 && (traits & last & WORD) === 0) {
      const run = (Math.imul(Math.imul(first, BASE) + second, BASE) + word + WORDS_SEED) & INTEGER_MASK;
      if (firstAt >= 0 && (wanted[run & HASH_MASK] ?? 0) >= ONE_RUN) visitWords(run, firstAt, at);
      first = second;
      firstAt = secondAt;
      second = word;
      secondAt = wordAt;
      word = 0;
      wordAt = -1;
    }
    if ((traits & (WORD | WHOLE_WORD)) !== 0) {
      if (wordAt < 0) wordAt = at;
      word = (Math.imul(word, BASE) + traits) | 0;
    }
    last = traits;
    if ((traits & GAP) !== 0) continue;
    gram = (gram << GRAM_SHIFT) ^ (traits & FOLDED);
    if (--left > 0) continue;
    left = stride;
    const hash = Math.imul(gram, GRAM_FACTOR) >>> (32 - HASH_BITS);
    if (((wanted[hash] ?? 0) & IS_GRAM) !== 0) visitGram(hash, at);
  }
}

/** The last characters: one function at a time uses them, and a power of two is a fast ring. */
const RING = 16;
const codes = new Uint16Array(RING);
const places = new Int32Array(RING);

/** Visits runs of characters of one text, from its beginning to its end, each once. */
class CharRuns {
  /** The next place, and the hash and the count of the characters before it. */
  #next = 0;
  #hash = 0;
  #chars = 0;
  readChars = 0;

  /** Visits the runs that have the character at a place, and perhaps further ones. */
  visitAround(text: string, at: number, visit: VisitRun): void {
    if (at >= this.#next) this.#startAt(Math.max(this.#next, beginOfRuns(text, at)));
    this.#visit(text, text.length, Math.max(at + 1, this.#next), visit);
  }

  /** Visits each run between two places. */
  visit(text: string, from: number, to: number, visit: VisitRun): void {
    this.#startAt(from);
    this.#visit(text, to, to, visit);
  }

  #startAt(place: number): void {
    if (place === this.#next) return;
    this.#next = place;
    this.#hash = 0;
    this.#chars = 0;
  }

  /** @param core behind it, characters that no run with one before it has are not visited */
  #visit(text: string, to: number, core: number, visit: VisitRun): void {
    let hash = this.#hash;
    let chars = this.#chars;
    let left = RUN_CHARS - 1;
    let at = this.#next;
    for (; at < to && left > 0; at++) {
      const unit = text.charCodeAt(at);
      const traits = UNITS[unit] || learn(unit);
      if ((traits & GAP) !== 0 || ((traits & RARE) !== 0 && isSkipped(text, at, unit, traits))) continue;
      const folded = traits & FOLDED;
      const out = chars < RUN_CHARS ? 0 : Math.imul(codes[(chars - RUN_CHARS) % RING] ?? 0, OUT);
      hash = (Math.imul(hash, BASE) + folded - out) | 0;
      codes[chars % RING] = folded;
      places[chars % RING] = at;
      chars++;
      if (chars >= RUN_CHARS) visit(hash & INTEGER_MASK, places[(chars - RUN_CHARS) % RING] ?? 0, at + 1);
      if (at >= core) left--;
    }
    this.readChars += at - this.#next;
    this.#hash = hash;
    this.#chars = chars;
    this.#next = at;
  }
}

/** Where the first run that has the character at a place begins: gaps and invisible characters do not count. */
function beginOfRuns(text: string, at: number): number {
  let left = RUN_CHARS;
  let place = at;
  for (let next = at; next >= 0 && left > 0; next--) {
    const unit = text.charCodeAt(next);
    const traits = UNITS[unit] || learn(unit);
    if ((traits & GAP) === 0 && !isSkipped(text, next, unit, traits)) left--;
    place = next;
  }
  return place;
}

/** A UTF-16 unit in lower case without its accent, as texts are compared; 0: it does not count. */
export function foldedUnit(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const traits = UNITS[unit] || learn(unit);
  return (traits & RARE) !== 0 && isSkipped(text, at, unit, traits) ? 0 : traits & FOLDED;
}

/** Whether a unit is a part of a word. */
export function isWordAt(text: string, at: number): boolean {
  if (at < 0 || at >= text.length) return false;
  const unit = text.charCodeAt(at);
  return ((UNITS[unit] || learn(unit)) & WORD) !== 0;
}

/** Whether a word begins at a place. */
export function startsWordAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  if (((UNITS[unit] || learn(unit)) & WHOLE_WORD) !== 0) return true;
  return isWordAt(text, at) && !isWordAt(text, at - 1);
}

/** Fills the table for one unit. */
function learn(unit: number): number {
  const character = String.fromCharCode(unit);
  const folded = character.normalize('NFKD').toLowerCase();
  const kind = kindOf(character, folded);
  const gap = kind === SPACE || character === '_' ? GAP : 0;
  const traits = kind | gap | (kind === SPACE ? SPACE_CODE : folded.charCodeAt(0));
  UNITS[unit] = traits;
  return traits;
}

/** A copy of that in `src/shared/lazy-pattern.ts`: esbuild inlines the numbers above only in a file without imports. */
function lazyPattern(source: string, flags: string): () => RegExp {
  let pattern: RegExp | undefined;
  return () => {
    pattern ??= new RegExp(`${source}`, flags);
    return pattern;
  };
}

const MARK = lazyPattern('[\\p{M}\\p{Cf}\\\\\\ufffd]', 'u');
const SPACE_OR_CONTROL = lazyPattern('[\\s\\p{Cc}]', 'u');
/** Scripts that have no spaces between words. */
const WITHOUT_SPACES = lazyPattern(
  '[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}]',
  'u',
);
const WORD_START = lazyPattern('^[\\p{L}\\p{N}_$]', 'u');

function kindOf(character: string, folded: string): number {
  if (/[\ud800-\udfff]/.test(character)) return SURROGATE | WORD;
  if (MARK().test(character)) return SKIPPED;
  if (SPACE_OR_CONTROL().test(character)) return SPACE;
  if (WITHOUT_SPACES().test(character)) return WHOLE_WORD;
  return WORD_START().test(folded) ? WORD : OTHER;
}

/** Half of a pair alone is as invisible as a mark. */
function isSkipped(text: string, at: number, unit: number, known: number): boolean {
  return (known & SKIPPED) !== 0 || ((known & SURROGATE) !== 0 && !isPaired(text, at, unit));
}

function isPaired(text: string, at: number, unit: number): boolean {
  const isHigh = unit < 0xdc00;
  const other = text.charCodeAt(isHigh ? at + 1 : at - 1);
  return isHigh ? other >= 0xdc00 && other <= 0xdfff : other >= 0xd800 && other < 0xdc00;
}

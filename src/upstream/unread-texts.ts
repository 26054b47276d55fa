/** Leaves out what a long text repeats, so that a search in it reads each stretch once. */
import { foldedUnit, isWordAt, startsWordAt } from './common-runs.ts';

/** The texts of a smaller request are read as they are. */
const MIN_TOTAL_CHARS = 128 * 1024;

/** Texts are compared by blocks. Nothing that is searched has parts in three, if the middle one is dense, but for words that fill one. */
const BLOCK_CHARS = 512;
/** Blocks of a part at most, so that its user can stop. */
const MAX_PART_BLOCKS = 64;

/** Units of a block that count, white space as one, without what may stand between digits: from so many on it is dense. */
const MIN_DENSE_UNITS = 160;
/** And so many words, unless it is within one. */
const MIN_DENSE_WORDS = 3;

const SPACE_CODE = 32;

interface ComparedBlock {
  readonly id: number;
  /** Null: not known yet. */
  isDense: boolean | null;
}

/** The texts of one request. */
export class UnreadTexts {
  readonly #isLarge: boolean;
  readonly #separators: ReadonlySet<number>;
  readonly #texts = new Set<string>();
  readonly #blocks = new Map<string, ComparedBlock>();
  /** Blocks that were read one behind the other. */
  readonly #pairs = new Set<number>();

  /**
   * @param totalChars of all texts
   * @param separators folded units of which any number may stand within what is searched
   */
  constructor(totalChars: number, separators: ReadonlySet<number>) {
    this.#isLarge = totalChars >= MIN_TOTAL_CHARS;
    this.#separators = separators;
  }

  /** The parts of a text that have what no text before had, with what stands before them. */
  partsOf(text: string): readonly string[] | Iterable<string> {
    if (!this.#isLarge) return [text];
    if (this.#texts.has(text)) return [];
    this.#texts.add(text);
    return text.length <= 2 * BLOCK_CHARS ? [text] : this.#unread(text);
  }

  *#unread(text: string): Generator<string> {
    let from = -1;
    let previous: ComparedBlock | null = null;
    for (let at = 0; at < text.length; at += BLOCK_CHARS) {
      const block = this.#block(text.slice(at, at + BLOCK_CHARS));
      const isRead = previous !== null && this.#isRead(text, at, previous, block);
      if (!isRead && from < 0) from = beginOf(text, at);
      const isLong = at - from >= MAX_PART_BLOCKS * BLOCK_CHARS;
      if (from >= 0 && (isRead || isLong)) {
        yield text.slice(from, endOf(text, at));
        from = isRead ? -1 : beginOf(text, at);
      }
      previous = block;
    }
    if (from >= 0) yield text.slice(from);
  }

  #block(text: string): ComparedBlock {
    const known = this.#blocks.get(text);
    if (known !== undefined) return known;
    const block = { id: this.#blocks.size, isDense: null };
    this.#blocks.set(text, block);
    return block;
  }

  /** Whether the block was read behind the previous one, and nothing begins before that and ends behind this. */
  #isRead(text: string, at: number, previous: ComparedBlock, block: ComparedBlock): boolean {
    const pair = previous.id * MAX_BLOCKS + block.id;
    if (!this.#pairs.has(pair)) {
      this.#pairs.add(pair);
      return false;
    }
    previous.isDense ??= this.#isDense(text, at - BLOCK_CHARS);
    block.isDense ??= this.#isDense(text, at);
    return previous.isDense && block.isDense;
  }

  #isDense(text: string, from: number): boolean {
    let units = 0;
    let words = 0;
    let isWord = true;
    let last = SPACE_CODE;
    for (let at = from; at < Math.min(from + BLOCK_CHARS, text.length); at++) {
      if (startsWordAt(text, at)) words++;
      isWord &&= isWordAt(text, at);
      const unit = foldedUnit(text, at);
      if (unit === 0 || this.#separators.has(unit) || (unit === SPACE_CODE && last === SPACE_CODE)) continue;
      last = unit;
      units++;
    }
    return units >= MIN_DENSE_UNITS && (isWord || words >= MIN_DENSE_WORDS);
  }
}

/** More than any body has. */
const MAX_BLOCKS = 1 << 20;

/** Where a part with the block at a place begins: one block before, but not within a word. */
function beginOf(text: string, at: number): number {
  const start = Math.max(0, at - BLOCK_CHARS);
  let from = start;
  while (from > 0 && from < at && isWordAt(text, from - 1) && isWordAt(text, from)) from++;
  return from - start > BLOCK_CHARS / 2 ? start : from;
}

/** Where a part ends of which the blocks end at a place: not within a word. */
function endOf(text: string, at: number): number {
  let to = at;
  while (to < at + BLOCK_CHARS && isWordAt(text, to - 1) && isWordAt(text, to)) to++;
  return to;
}

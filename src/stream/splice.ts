/**
 * The fast path: a text frame that differs from an earlier one by its text alone is copied, not parsed.
 *
 * Frames of one stream share their envelope. When a frame that went the slow way held nothing but one text, it is learned as
 * a template: the bytes before that string and behind it, and the bytes of the canonical frame on either side. A later frame
 * with the same bytes around another JSON string becomes the canonical frame around that string.
 *
 * Why that is the same frame as the slow way's, key for key and value for value:
 * 1. JSON is context-free: putting one string literal in the place of another changes that one value and nothing else. That
 *    the hole is the literal which the dialect reads as the text, and no other of its name, is tried when it is learned:
 *    the frame is read again with a mark in the hole, and what is read must differ by the mark alone.
 * 2. The string is checked byte by byte to its closing quote: escapes whole, no control character, strict UTF-8, and not
 *    empty (an empty text is not sent, C5). So it is a literal that JSON.parse takes, and it is copied as it is (F1).
 *    Some upstreams send a text twice, under two names: both get the mark, and later both must be the same bytes.
 * 3. Right behind it must come the learned bytes to the blank line. Line ends within a string are control characters, so
 *    nothing of the next event can be taken in.
 * 4. The slow way's answer depends on earlier frames: a choice that is finished, a fingerprint that is now another.
 *    All of that changes the normaliser's revision, and with it every template goes.
 * Anything else, in any doubt, goes the slow way, untouched.
 */
import type { Chunk } from '../canonical/chunk.ts';
import { isObject, parseJson } from '../canonical/json.ts';
import type { ChoicePart, ChunkPart, StreamMeter } from '../canonical/part.ts';
import { chunkFrame } from './frame.ts';
import type { FrameWriter } from './frame-writer.ts';
import { findStringEnd, OPEN_ENDED } from './json-string.ts';
import { Literal, viewOf } from './literal.ts';

/** Reads an event's JSON as the slow way does. */
export type ReadPart = (json: string) => ChunkPart | null;

/** What stands in a hole: the text, the same text once more, or padding, which is left out. */
type Hole = 'text' | 'twin' | 'padding';

interface Template {
  /** The upstream's bytes before the first hole, between two, and behind the last. */
  readonly literals: readonly Literal[];
  readonly holes: readonly Hole[];
  readonly outPrefix: Uint8Array;
  readonly outSuffix: Uint8Array;
}

/** A stream that alternates between more kinds of frames than this is not worth it. */
const MAX_TEMPLATES = 4;
/** So many templates learned without one hit: what varies is not the text alone, and learning rests for a while. */
const MAX_IDLE_LEARNING = 8;
const REST_FRAMES = 64;
/** Learning from a larger frame would cost more than its envelope is likely to be worth. */
const MAX_LEARNED_CHARS = 4096;

/** They stand in the holes while a template is tried; no model writes them, and a frame that contains one is not learned. */
const MARKS = 'weir\u2042';
const MARK = `${MARKS}text`;
const PADDING_MARK = `${MARKS}padding`;

/** The names under which a text is found in an event. */
const TEXT_KEYS = ['content', 'reasoning_content', 'reasoning', 'text'];

/** Top-level members that an answer is read from: no padding, even where a frame's value seems not to matter. */
const READ_KEYS: ReadonlySet<string> = new Set(
  'id object created model service_tier system_fingerprint choices usage error type detail'.split(' '),
);

const MISS = -1;
/** All bytes so far fit: the rest of the frame may come with the next read. */
const PARTIAL = -2;

const encoder = new TextEncoder();
const NOTHING = new Uint8Array(0);

export class Splice {
  readonly #writer: FrameWriter;
  readonly #meter: StreamMeter;
  readonly #readPart: ReadPart;
  #templates: Template[] = [];
  #revision = -1;
  #learnedInVain = 0;
  #restFrames = 0;
  #read: Uint8Array = NOTHING;
  #view = viewOf(NOTHING);
  #textStart = 0;
  #textEnd = 0;
  /** Frames that went this way. */
  hits = 0;

  constructor(writer: FrameWriter, meter: StreamMeter, readPart: ReadPart) {
    this.#writer = writer;
    this.#meter = meter;
    this.#readPart = readPart;
  }

  /**
   * Sends on as many frames as fit a template, one behind the other.
   * @param at where an event begins
   * @returns where the first event begins that does not fit, and whether the bytes ended within one that still may
   */
  run(bytes: Uint8Array, at: number): { readonly at: number; readonly isPartial: boolean } {
    let next = at;
    let isPartial = false;
    if (this.#templates.length === 0) return { at, isPartial };
    // Once a read: making one is a call into the engine, and costs as much as a frame.
    if (bytes !== this.#read) {
      this.#read = bytes;
      this.#view = viewOf(bytes);
    }
    for (let i = 0; i < this.#templates.length && next < bytes.length; ) {
      const template = this.#templates[i];
      if (template === undefined) break;
      const end = this.#match(template, bytes, this.#view, next);
      if (end < 0) {
        isPartial ||= end === PARTIAL;
        i++;
        continue;
      }
      this.#writer.splice(template.outPrefix, bytes, this.#textStart, this.#textEnd, template.outSuffix);
      this.#meter.rawText(bytes, this.#textStart, this.#textEnd);
      this.hits++;
      this.#learnedInVain = 0;
      next = end;
      isPartial = false;
      if (i > 0) this.#moveToFront(i);
      i = 0;
    }
    return { at: next, isPartial };
  }

  /** Earlier frames decide what the same bytes become: templates of another revision are dropped. */
  keepTo(revision: number): void {
    if (revision === this.#revision) return;
    this.#revision = revision;
    this.#templates = [];
  }

  /**
   * Learns from an event that went the slow way.
   * @param json its data, from one `data: ` line
   */
  learn(json: string, part: ChunkPart, chunk: Chunk): void {
    if (this.#restFrames > 0) {
      this.#restFrames--;
      return;
    }
    if (!hasOneText(part) || json.length > MAX_LEARNED_CHARS || json.includes('\n') || json.includes(MARKS))
      return;
    const template = this.#makeTemplate(json, part, chunk);
    if (template === null) return;
    this.#templates.unshift(template);
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop();
    if (++this.#learnedInVain < MAX_IDLE_LEARNING) return;
    this.#learnedInVain = 0;
    this.#restFrames = REST_FRAMES;
    this.#templates = [];
  }

  #moveToFront(i: number): void {
    this.#templates.unshift(...this.#templates.splice(i, 1));
  }

  /** The end of the frame at `at` where it fits the template (its text is then noted), or MISS, or PARTIAL. */
  #match({ literals, holes }: Template, bytes: Uint8Array, view: DataView, at: number): number {
    let next = at;
    for (let i = 0; i < literals.length; i++) {
      const literal = literals[i];
      if (literal === undefined || !literal.fits(bytes, view, next)) return MISS;
      next += literal.length;
      if (next > bytes.length) return PARTIAL;
      const hole = holes[i];
      if (hole === undefined) return next;
      const end = findStringEnd(bytes, next);
      if (end === OPEN_ENDED) return PARTIAL;
      if (end < 0 || (hole === 'text' && end === next)) return MISS;
      if (hole === 'twin' && !this.#isText(bytes, next, end)) return MISS;
      if (hole === 'text') {
        this.#textStart = next;
        this.#textEnd = end;
      }
      next = end;
    }
    return MISS;
  }

  #isText(bytes: Uint8Array, from: number, to: number): boolean {
    const offset = this.#textStart - from;
    if (this.#textEnd - to !== offset) return false;
    for (let i = from; i < to; i++) if (bytes[i] !== bytes[i + offset]) return false;
    return true;
  }

  #makeTemplate(json: string, part: ChunkPart, chunk: Chunk): Template | null {
    const frame = markFrame(chunk);
    if (frame === null) return null;
    const [outPrefix, outSuffix, ...rest] = frame.split(MARK);
    if (outPrefix === undefined || outSuffix === undefined || rest.length > 0) return null;
    const marked = this.#markText(json, part);
    if (marked === null) return null;
    const holed = this.#markPadding(marked) ?? marked;
    const pieces = `data: ${holed}\n\n`.split(new RegExp(`(${MARK}|${PADDING_MARK})`));
    const marks = pieces.filter((_, i) => i % 2 === 1);
    const kindOf = (mark: string, i: number) => (marks.indexOf(mark) === i ? 'text' : 'twin');
    return {
      literals: pieces.filter((_, i) => i % 2 === 0).map((piece) => new Literal(encoder.encode(piece))),
      holes: marks.map((mark, i) => (mark === PADDING_MARK ? 'padding' : kindOf(mark, i))),
      outPrefix: encoder.encode(outPrefix),
      outSuffix: encoder.encode(outSuffix),
    };
  }

  /** The event with the mark in the place of its text, where that is all that is then read otherwise. */
  #markText(json: string, part: ChunkPart): string | null {
    const expected = JSON.stringify(markPart(part));
    const isRight = (marked: string) => JSON.stringify(this.#readPart(marked)) === expected;
    for (const key of TEXT_KEYS) {
      for (const { literal, marked } of withMark(json, key, MARK)) {
        const twinned = marked.replaceAll(`"${literal}"`, `"${MARK}"`);
        if (isRight(twinned)) return twinned;
        if (isRight(marked)) return marked;
      }
    }
    return null;
  }

  /** The event with a mark in the place of a padding, too: one unknown string at the top, of another length each time. */
  #markPadding(marked: string): string | null {
    const event = parseJson(marked);
    if (!isObject(event)) return null;
    const unknown = Object.keys(event).filter((key) => !READ_KEYS.has(key));
    const key = unknown.find((name) => typeof event[name] === 'string' && /^\w+$/.test(name));
    if (key === undefined) return null;
    const expected = JSON.stringify(this.#readPart(marked));
    for (const { marked: padded } of withMark(marked, key, PADDING_MARK)) {
      const read = parseJson(padded);
      const isAtTop = isObject(read) && read[key] === PADDING_MARK;
      if (isAtTop && JSON.stringify(this.#readPart(padded)) === expected) return padded;
    }
    return null;
  }
}

/** One choice with one text, and nothing else that a chunk could contain. */
function hasOneText(part: ChunkPart): boolean {
  const [choice, ...others] = part.choices;
  if (choice === undefined || others.length > 0 || part.usage !== null || part.error !== null) return false;
  const { content, reasoning, refusal, toolCalls, logprobs, finishWord } = choice;
  const isOneText = (content === '') !== (reasoning === '');
  return isOneText && refusal === '' && toolCalls.length === 0 && logprobs === null && finishWord === null;
}

function markPart(part: ChunkPart): ChunkPart {
  const mark = (choice: ChoicePart): ChoicePart =>
    choice.content === '' ? { ...choice, reasoning: MARK } : { ...choice, content: MARK };
  return { ...part, choices: part.choices.map(mark) };
}

/** The canonical frame with the mark as its text, or null where it contains more than a text (a role). */
function markFrame(chunk: Chunk): string | null {
  if (chunk.object === 'text_completion') {
    return chunkFrame({ ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, text: MARK })) });
  }
  const [choice] = chunk.choices;
  const [key, ...others] = Object.keys(choice?.delta ?? {});
  if (choice === undefined || others.length > 0 || (key !== 'content' && key !== 'reasoning_content'))
    return null;
  return chunkFrame({ ...chunk, choices: [{ ...choice, delta: { [key]: MARK } }] });
}

/** The JSON with the mark in the place of each string that stands behind that key, one at a time, and what stood there. */
function* withMark(json: string, key: string, mark: string): Generator<{ literal: string; marked: string }> {
  for (const match of json.matchAll(new RegExp(`("${key}"[ \\t]*:[ \\t]*")((?:[^"\\\\]+|\\\\.)*)"`, 'g'))) {
    const [whole, opening = '', literal = ''] = match;
    const end = match.index + whole.length - 1;
    yield { literal, marked: `${json.slice(0, match.index)}${opening}${mark}${json.slice(end)}` };
  }
}

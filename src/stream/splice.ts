/**
 * The fast path: a text frame that differs from an earlier one by its text alone is copied, not parsed.
 *
 * Frames of one stream share their envelope. When a frame that went the slow way held nothing but one text, and was not the
 * answer's first, it is learned as a template: the bytes before that string and behind it, and the bytes of the canonical
 * frame on either side. A later frame with the same bytes around another JSON string becomes the canonical frame around that
 * string.
 *
 * Why that is the same frame as the slow way's, key for key and value for value:
 * 1. JSON is context-free: putting one string literal in the place of another changes that one value and nothing else. That
 *    the hole is the literal which the dialect reads as the text, and no other of its name, is tried when it is learned:
 *    the frame is read again with either of two marks in the hole, and what is read must differ by the mark alone.
 * 2. The string is checked byte by byte to its closing quote: escapes whole, no control character, strict UTF-8, and not
 *    empty (an empty text is not sent, C5). So it is a literal that JSON.parse takes, and it is copied as it is (F1).
 *    Some upstreams send a text more than once, under several names: all get the mark, and later all must be the same
 *    bytes. Only values under the names of texts are marked, so that no key and no discriminator is taken for a text.
 * 3. Right behind it must come the learned bytes to the blank line. Line ends within a string are control characters, so
 *    nothing of the next event can be taken in. Before the last brace, where JSON takes white space, there may be as many
 *    blanks as there are: some upstreams pad each event with them.
 * 4. Numbers may vary at the top where nothing is read from them, as an event's number in its stream, or where they make nothing
 *    but a usage that takes the place of earlier ones: what they add to it is known (`splice-counts.ts`), and it is reported
 *    before anything that follows is read.
 * 5. The slow way's answer depends on earlier frames: a choice that is finished, a fingerprint that is now another.
 *    All of that changes the normaliser's revision, and with it every template goes. What of a client's frames depends on
 *    earlier ones, such as the block that is open, changes the writer's.
 * Anything else, in any doubt, goes the slow way, untouched.
 */
import type { Chunk } from '../canonical/chunk.ts';
import type { ChunkPart, StreamMeter } from '../canonical/part.ts';
import type { StreamWriter } from './answer-sink.ts';
import { findStringEnd, OPEN_ENDED } from './json-string.ts';
import { viewOf } from './literal.ts';
import { usageOf } from './splice-counts.ts';
import {
  makeTemplate,
  type ReadPart,
  type Template,
  type TextEvent,
  type TextFrame,
  textToLearn,
} from './splice-template.ts';

/** A stream that alternates between more kinds of frames than this is not worth it. */
const MAX_TEMPLATES = 4;
/** So many templates learned without one hit: what varies is not the text alone, and learning rests for a while. */
const MAX_IDLE_LEARNING = 8;
const REST_FRAMES = 64;

const MISS = -1;
/** All bytes so far fit: the rest of the frame may come with the next read. */
const PARTIAL = -2;

/** The line end of the data line and the blank line behind it. */
const BLANK_LINE_BYTES = 2;

const SPACE = 0x20;
const DIGIT_0 = 0x30;
/** More of them could be more than a number holds exactly. */
const MAX_DIGITS = 15;

const NOTHING = new Uint8Array(0);
/** Nothing before a frame and nothing behind it. */
const AS_IT_IS = [NOTHING, NOTHING];

export class Splice {
  readonly #writer: StreamWriter;
  readonly #meter: StreamMeter;
  readonly #readPart: ReadPart;
  readonly #textFrame: TextFrame;
  readonly #maxEventBytes: number;
  /** The client gets the frame as it came: only its text is read, to be counted. */
  readonly #passesEvents: boolean;
  #templates: Template[] = [];
  #revision = -1;
  #writerRevision = -1;
  #learnedInVain = 0;
  #restFrames = 0;
  #hasText = false;
  #read: Uint8Array = NOTHING;
  #view = viewOf(NOTHING);
  #readLength = 0;
  #textStart = 0;
  #textEnd = 0;
  /** The numbers of the frame being matched, and of the last one that fitted. */
  #numbers: number[] = [];
  #counted: number[] = [];
  /** Frames that went this way. */
  hits = 0;

  /** @param maxEventBytes a larger frame goes the slow way, which refuses it (B1) */
  constructor(writer: StreamWriter, meter: StreamMeter, readPart: ReadPart, maxEventBytes: number) {
    this.#writer = writer;
    this.#meter = meter;
    this.#readPart = readPart;
    this.#textFrame = (chunk) => writer.textFrame(chunk);
    this.#maxEventBytes = maxEventBytes;
    this.#passesEvents = writer.event !== undefined;
  }

  /**
   * Sends on as many frames as fit a template, one behind the other.
   * @param at where an event begins
   * @returns where the first event begins that does not fit, and whether the bytes ended within one that still may
   */
  run(bytes: Uint8Array, at: number): { readonly at: number; readonly isPartial: boolean } {
    let next = at;
    let isPartial = false;
    let counting: Template | null = null;
    if (this.#templates.length === 0) return { at, isPartial };
    // Once a read: making one is a call into the engine, and costs as much as a frame.
    if (bytes !== this.#read) {
      this.#read = bytes;
      this.#view = viewOf(bytes);
      this.#readLength = bytes.length;
    }
    for (let i = 0; i < this.#templates.length && next < bytes.length; ) {
      const template = this.#templates[i];
      if (template === undefined) break;
      const end = this.#match(template, next);
      if (end < 0) {
        isPartial ||= end === PARTIAL;
        i++;
        continue;
      }
      if (this.#passesEvents) this.#writer.splice(AS_IT_IS, bytes, next, end);
      else this.#writer.splice(template.outLiterals, bytes, this.#textStart, this.#textEnd);
      this.#meter.rawText(bytes, this.#textStart, this.#textEnd);
      if (template.counts !== null) {
        counting = template;
        [this.#numbers, this.#counted] = [this.#counted, this.#numbers];
      }
      this.hits++;
      this.#learnedInVain = 0;
      next = end;
      isPartial = false;
      // A writer that takes no more text says so.
      this.keepTo(this.#revision);
      if (i > 0) this.#moveToFront(i);
      i = 0;
    }
    // What is reported takes the place of what was: of a read only the last frame's counts.
    if (counting?.counts) {
      const { learned, numbers } = counting.counts;
      this.#meter.usage(usageOf(learned, numbers, this.#counted));
    }
    return { at: next, isPartial };
  }

  /** Earlier frames decide what the same bytes become: templates of another revision are dropped. */
  keepTo(revision: number): void {
    const writerRevision = this.#writer.revision;
    if (revision === this.#revision && writerRevision === this.#writerRevision) return;
    this.#revision = revision;
    this.#writerRevision = writerRevision;
    this.#templates = [];
  }

  /**
   * Learns from an event that went the slow way.
   * @param event its name, and its data from one `data: ` line
   */
  learn(event: TextEvent, part: ChunkPart, chunk: Chunk): void {
    const text = textToLearn(event, part);
    if (text === null) return;
    // Learning takes as long as a dozen frames: a client would wait that much longer for the first one, and many an answer
    // has no second.
    if (!this.#hasText) {
      this.#hasText = true;
      return;
    }
    if (this.#restFrames > 0) {
      this.#restFrames--;
      return;
    }
    const template = makeTemplate(event, text, part, chunk, this.#readPart, this.#textFrame);
    if (template !== null) {
      this.#templates.unshift(template);
      if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop();
    }
    if (++this.#learnedInVain < MAX_IDLE_LEARNING) return;
    this.#learnedInVain = 0;
    this.#restFrames = REST_FRAMES;
    this.#templates = [];
  }

  #moveToFront(i: number): void {
    this.#templates.unshift(...this.#templates.splice(i, 1));
  }

  /**
   * The end of the frame at `at` where it fits the template (its text is then noted), or MISS, or PARTIAL. No byte is read behind
   * the end, not even to find that there is none: the engine would from then on take every byte for something that may be none.
   */
  #match({ literals, holes }: Template, at: number): number {
    const bytes = this.#read;
    const view = this.#view;
    const length = this.#readLength;
    let next = at;
    let numbers = 0;
    for (let i = 0; i < literals.length; i++) {
      const literal = literals[i];
      if (literal === undefined || !literal.fits(bytes, view, next, length)) return MISS;
      next += literal.length;
      if (next > length) return PARTIAL;
      const hole = holes[i];
      if (hole === undefined) return next - at - BLANK_LINE_BYTES > this.#maxEventBytes ? MISS : next;
      if (hole === 'blanks') {
        while (next < length && bytes[next] === SPACE) next++;
        if (next === length) return PARTIAL;
        continue;
      }
      if (hole === 'number') {
        const start = next;
        let value = 0;
        for (; next < length; next++) {
          const digit = (bytes[next] ?? 0) - DIGIT_0;
          if (digit < 0 || digit > 9) break;
          value = value * 10 + digit;
        }
        if (next === length) return PARTIAL;
        const isZeroFirst = bytes[start] === DIGIT_0 && next - start > 1;
        if (next === start || isZeroFirst || next - start > MAX_DIGITS) return MISS;
        this.#numbers[numbers++] = value;
        continue;
      }
      const end = findStringEnd(bytes, next, length);
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
}

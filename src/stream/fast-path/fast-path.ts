/**
 * The fast path: copies an event that differs from an earlier one only in its text, instead of parsing it.
 *
 * Events of one stream share their envelope. When an event was read the normal way and had one text and nothing else, it is
 * learned as a template: its bytes before and after the text, and the bytes of the frame that it became. A later event with the
 * same bytes around another JSON string becomes the same frame around that string.
 *
 * Why the result equals the normal path's, value for value (an escape such as `\u00e9` stays as the upstream wrote it):
 * 1. JSON is context-free: replacing one string literal changes that one value. Learning proves that the position is the one
 *    that the protocol reader uses: the event is read again with either of two marks there, and the result must differ by
 *    the mark only.
 * 2. The string is checked byte by byte: whole escapes, no control character, strict UTF-8, not empty (an empty text is not
 *    sent). So it is a literal that JSON.parse accepts, and it is copied unchanged. Some upstreams repeat a text under
 *    several keys: all of them are marked, and later all must have the same bytes.
 * 3. The learned bytes must follow up to the blank line. A line end within a string is a control character, so nothing of the next
 *    event can be included. Any number of spaces may precede the last brace, because some upstreams pad events with them.
 * 4. Numbers may vary at the top level if nothing is read from them (an event's number), or if they only make a usage that replaces
 *    earlier ones. Their effect on the usage is known, and it is reported before anything later is read.
 * 5. The arguments of a tool call are a text, too. Whether they are complete is judged as they come, and whether a later text repeats
 *    all of it is known from its hash: a copied piece is pushed into the same `RawText` as a parsed one. A further call, an id or a
 *    placeholder changes the normalizer's revision.
 * 6. The result of the normal path also depends on earlier events: a finished choice, a changed fingerprint. All of that changes the
 *    normalizer's revision, which drops every template. What a client's frames depend on, such as the open block, changes the
 *    writer's revision.
 * In any doubt an event takes the normal path.
 */
import type { Chunk } from '../../canonical/chunk.ts';
import type { ChunkPart, StreamMeter } from '../../canonical/part.ts';
import type { Payload } from '../event-parser.ts';
import type { RawText } from '../text-progress.ts';
import type { StreamWriter } from '../types.ts';
import { findStringEnd, lastSurplus, OPEN_ENDED, viewOf } from './matcher.ts';
import {
  makeTemplate,
  type ReadPart,
  type Template,
  type TextEvent,
  type TextFrame,
  textToLearn,
  usageOf,
} from './template.ts';

/** Kinds of events that one stream alternates between. */
const MAX_TEMPLATES = 4;
/** After this many templates without a hit more than the text varies, so learning pauses for some text events. */
const MAX_UNUSED_TEMPLATES = 8;
const LEARNING_PAUSE_EVENTS = 64;

const MISS = -1;
/** All bytes so far match: the rest of the event may come with the next read. */
const PARTIAL = -2;

/** The line end of the data line, and the blank line. */
const BLANK_LINE_BYTES = 2;

const SPACE = 0x20;
const DIGIT_0 = 0x30;
/** Longer numbers may not be exact. */
const MAX_DIGITS = 15;

const NOTHING = new Uint8Array(0);
/** Literals that add nothing to a copied event. */
const UNCHANGED = [NOTHING, NOTHING];

interface LearnedTemplate extends Template {
  /** What its text continues and has to know of it; null: nothing. */
  readonly continued: RawText | null;
}

/** The fast path of one stream: at most {@link MAX_TEMPLATES} templates, dropped when anything changes that their frames depend on. */
export class TemplateFastPath {
  readonly #writer: StreamWriter;
  readonly #meter: StreamMeter;
  readonly #readPart: ReadPart;
  readonly #textFrame: TextFrame;
  readonly #maxEventBytes: number;
  /** Passthrough: the client gets the event as received, and only its text is metered. */
  readonly #passesEvents: boolean;
  #templates: LearnedTemplate[] = [];
  #revision = -1;
  #writerRevision = -1;
  #unusedTemplates = 0;
  #learningPause = 0;
  #hasText = false;
  #read: Uint8Array = NOTHING;
  #view = viewOf(NOTHING);
  #readLength = 0;
  #textStart = 0;
  #textEnd = 0;
  /** The text's length in UTF-16 units. */
  #textUnits = 0;
  /** The numbers of the event being matched, and of the last one that matched. */
  #numbers: number[] = [];
  #counted: number[] = [];
  /** Events that took this path. */
  hits = 0;

  /** @param maxEventBytes a larger event takes the normal path, which refuses it */
  constructor(writer: StreamWriter, meter: StreamMeter, readPart: ReadPart, maxEventBytes: number) {
    this.#writer = writer;
    this.#meter = meter;
    this.#readPart = readPart;
    this.#textFrame = (chunk) => writer.textFrame(chunk);
    this.#maxEventBytes = maxEventBytes;
    this.#passesEvents = writer.event !== undefined;
  }

  /**
   * Copies consecutive events that match a template.
   * @param at where an event begins
   * @returns the start of the first event that does not match, and whether the bytes end within an event that may match
   */
  run(bytes: Uint8Array, at: number): { readonly at: number; readonly isPartial: boolean } {
    let next = at;
    let isPartial = false;
    let counting: LearnedTemplate | null = null;
    if (this.#templates.length === 0) return { at, isPartial };
    this.#readLength = bytes.length;
    // One view for each read: making one costs as much as a frame.
    if (bytes !== this.#read) this.#view = viewOf(bytes);
    this.#read = bytes;
    for (let i = 0; i < this.#templates.length && next < bytes.length; ) {
      const template = this.#templates[i];
      if (template === undefined) break;
      const end = this.#match(template, next);
      if (end < 0) {
        isPartial ||= end === PARTIAL;
        i++;
        continue;
      }
      this.#copy(template, next, end);
      if (template.counts !== null) {
        counting = template;
        [this.#numbers, this.#counted] = [this.#counted, this.#numbers];
      }
      next = end;
      isPartial = false;
      if (i > 0) this.#moveToFront(i);
      i = 0;
    }
    // Each report replaces the one before, so only the last event of a read is reported.
    if (counting !== null) this.#report(counting, this.#counted);
    return { at: next, isPartial };
  }

  /**
   * Copies a message whose payload matches a template.
   * @param name the message's name
   * @returns false: it matches none
   */
  copies(name: string, { bytes, view, from, to }: Payload): boolean {
    if (this.#templates.length === 0) return false;
    this.#read = bytes;
    this.#view = view;
    this.#readLength = to;
    for (let i = 0; i < this.#templates.length; i++) {
      const template = this.#templates[i];
      if (template === undefined || template.name !== name || this.#match(template, from) !== to) continue;
      this.#copy(template, from, to);
      this.#report(template, this.#numbers);
      if (i > 0) this.#moveToFront(i);
      return true;
    }
    return false;
  }

  /** Copies the event that matched last, which is between `from` and `to`. */
  #copy(template: LearnedTemplate, from: number, to: number): void {
    const bytes = this.#read;
    if (this.#passesEvents) this.#writer.splice(UNCHANGED, bytes, from, to);
    else this.#writer.splice(template.outLiterals, bytes, this.#textStart, this.#textEnd);
    this.#meter.rawText(bytes, this.#textStart, this.#textEnd);
    if (template.sent !== null) template.sent.units += this.#textUnits;
    if (template.continued !== null)
      template.continued.pushRaw(bytes, this.#textStart, this.#textEnd, this.#textUnits);
    this.hits++;
    this.#unusedTemplates = 0;
    // The writer may have changed its revision, for example because it reached a bound.
    this.keepTo(this.#revision);
  }

  /** Reports the usage of an event with these numbers. */
  #report({ counts }: LearnedTemplate, values: readonly number[]): void {
    if (counts !== null) this.#meter.usage(usageOf(counts.learned, counts.numbers, values));
  }

  /** Drops all templates if the revision changed, because the same bytes may now become another frame. */
  keepTo(revision: number): void {
    const writerRevision = this.#writer.revision;
    if (revision === this.#revision && writerRevision === this.#writerRevision) return;
    this.#revision = revision;
    this.#writerRevision = writerRevision;
    this.#templates = [];
  }

  /**
   * Learns from an event that took the normal path.
   * @param event its name, and its data from one `data: ` line
   * @param continued what events like this one do nothing but continue; null for a text that nothing follows. From an event of a
   * tool call nothing is learned without it
   */
  learn(event: TextEvent, part: ChunkPart, chunk: Chunk, continued: RawText | null): void {
    const text = textToLearn(event, part);
    const hasCall = part.choices.some(({ toolCalls }) => toolCalls.length > 0);
    if (text === null || (hasCall && continued === null)) return;
    // Learning takes as long as a dozen events. It would delay the first text, and many outputs have no second one.
    if (!this.#hasText) {
      this.#hasText = true;
      return;
    }
    if (this.#learningPause > 0) {
      this.#learningPause--;
      return;
    }
    const template = makeTemplate(event, text, part, chunk, this.#readPart, this.#textFrame);
    if (template !== null) {
      this.#templates.unshift({ ...template, continued });
      if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop();
    }
    if (++this.#unusedTemplates < MAX_UNUSED_TEMPLATES) return;
    this.#unusedTemplates = 0;
    this.#learningPause = LEARNING_PAUSE_EVENTS;
    this.#templates = [];
  }

  #moveToFront(i: number): void {
    this.#templates.unshift(...this.#templates.splice(i, 1));
  }

  /**
   * Returns the end of the event at `at` if it matches the template (and stores its text's position), or MISS, or PARTIAL. It must not
   * read past the end: an out-of-bounds read deoptimizes every later read in V8.
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
      if (hole === 'spaces') {
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
      if (hole === 'repeatedText' && !this.#isText(bytes, next, end)) return MISS;
      if (hole === 'text') {
        this.#textStart = next;
        this.#textEnd = end;
        this.#textUnits = end - next - lastSurplus();
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

/** Learns a template from a frame that went the slow way: what of it is its text, and what of the canonical frame is (`splice.ts`). */
import type { Chunk, Delta } from '../canonical/chunk.ts';
import { isObject, parseJson } from '../canonical/json.ts';
import type { ChunkPart } from '../canonical/part.ts';
import type { UsageReport } from '../canonical/usage.ts';
import { Literal } from './literal.ts';
import { findNumbers, type NumberHole } from './splice-counts.ts';
import { numbersOf, type Place, putMark, putMarks, type TextValue, valuesOf } from './splice-places.ts';

/** Reads an event's JSON as the slow way does. */
export type ReadPart = (json: string) => ChunkPart | null;

/** The frame that a chunk with nothing but one text becomes, or null where it becomes more than that. */
export type TextFrame = (chunk: Chunk) => string | null;

/** An event of one data line, as it came. */
export interface TextEvent {
  /** `""` where it has none. */
  readonly name: string;
  readonly data: string;
  readonly lineEnd: '\n' | '\r\n';
}

/** What stands in a hole: the text, the same text once more, padding, a string or blanks, which is left out, or a number, of usage or unread. */
type Hole = 'text' | 'twin' | 'padding' | 'blanks' | 'number';

export interface Template {
  /** The upstream's bytes before the first hole, between two, and behind the last. */
  readonly literals: readonly Literal[];
  readonly holes: readonly Hole[];
  /** The canonical frame's bytes around its text, which may stand in it more than once. */
  readonly outLiterals: readonly Uint8Array[];
  /** What its numbers report; null where it has none. */
  readonly counts: { readonly learned: UsageReport; readonly numbers: readonly NumberHole[] } | null;
}

/** Learning from a larger frame would cost more than its envelope is likely to be worth. */
const MAX_LEARNED_CHARS = 4096;

/** Each candidate is read twice; a frame with more strings under the names of texts is not worth it. */
const MAX_CANDIDATES = 8;

/** Each is tried with another value; an event with more unread members at its top is learned with the rest as they are. */
const MAX_UNREAD = 8;

/** They stand in the holes while a template is tried; a frame whose text contains the first word is not learned. */
const MARKS = 'weir\u2042';
const MARK = `${MARKS}text`;
/** Unlike the other, so that what is read can't depend on the mark itself. */
const OTHER_MARK = `${MARKS}${MARKS} 7`;
const PADDING_MARK = `${MARKS}padding`;

/** Stands before the last brace of a frame that has blanks there. */
const BLANKS_MARK = `${MARKS}blanks`;
const NUMBER_MARK = `${MARKS}number`;

/** The names under which a text is found in an event. */
const TEXT_KEYS = ['content', 'reasoning_content', 'reasoning', 'text', 'summary', 'thinking', 'delta'];

/** The names of events that may be learned: any other could be more than a line. */
const EVENT_NAME = /^[\w.]*$/;

/** Top-level members that an answer is read from: no padding, even where a frame's value seems not to matter. */
const READ_KEYS: ReadonlySet<string> = new Set(
  'id object created model service_tier system_fingerprint choices usage error type detail'.split(' '),
);

const encoder = new TextEncoder();

/**
 * @param text what `textToLearn` found
 * @returns null where it can't be distinguished from the rest
 */
export function makeTemplate(
  { name, data: json, lineEnd }: TextEvent,
  text: string,
  part: ChunkPart,
  chunk: Chunk,
  readPart: ReadPart,
  textFrame: TextFrame,
): Template | null {
  const decoded = JSON.stringify(part);
  if (json.includes(MARKS) || decoded.includes(MARKS) || !EVENT_NAME.test(name)) return null;
  const head = name === '' ? '' : `event: ${name}${lineEnd}`;
  for (const values of candidates(json, text)) {
    const marked = putMark(json, values, MARK);
    const read = readPart(marked);
    const isRight =
      isMarked(read, MARK, text, decoded) &&
      isMarked(readPart(putMark(json, values, OTHER_MARK)), OTHER_MARK, text, decoded);
    const marking = { head, marked, text, lineEnd };
    if (read !== null && isRight) return build(marking, read, chunk, readPart, textFrame);
  }
  return null;
}

/** The text of an event from which a template may be learned, or null: it has anything but one text, or is not worth it. */
export function textToLearn({ data }: TextEvent, part: ChunkPart): string | null {
  return data.length > MAX_LEARNED_CHARS || data.includes('\n') ? null : onlyText(part);
}

/** The text of one choice that contains nothing else which a chunk could contain, or null. */
function onlyText(part: ChunkPart): string | null {
  const [choice, ...others] = part.choices;
  if (choice === undefined || others.length > 0 || part.error !== null || part.isRemembered) return null;
  if (part.usage !== null && part.usage.isLatest !== true) return null;
  const { content, reasoning, refusal, toolCalls, logprobs, finishWord } = choice;
  const isOneText = (content === '') !== (reasoning === '');
  const isAlone = refusal === '' && toolCalls.length === 0 && logprobs === null && finishWord === null;
  return isOneText && isAlone ? content + reasoning : null;
}

/** Sets of values that may be the text: all that are written alike under the names of texts, then each of them alone. */
function* candidates(json: string, text: string): Generator<readonly TextValue[]> {
  const values = TEXT_KEYS.flatMap((key) => [...valuesOf(json, key)]).slice(0, MAX_CANDIDATES);
  for (const value of values) {
    if (parseJson(`"${value.literal}"`) !== text) continue;
    const twins = values.filter(({ literal }) => literal === value.literal);
    if (twins.length > 1) yield twins;
    yield [value];
  }
}

/** Whether what was read has the mark as its text, and with the text in the mark's place is what was read before. */
function isMarked(read: ChunkPart | null, mark: string, text: string, before: string): boolean {
  if (read === null || onlyText(read) !== mark) return false;
  return JSON.stringify(read).replaceAll(JSON.stringify(mark), () => JSON.stringify(text)) === before;
}

/** An event with the mark in the place of its text. */
interface Marking {
  /** The lines before its data. */
  readonly head: string;
  /** Its data, and the text that stood in it. */
  readonly marked: string;
  readonly text: string;
  readonly lineEnd: string;
}

function build(
  { head, marked, text, lineEnd }: Marking,
  read: ChunkPart,
  chunk: Chunk,
  readPart: ReadPart,
  textFrame: TextFrame,
): Template | null {
  const written = textFrame(chunk);
  // The frame is split at the mark: an id or a model that contains it would be a text.
  if (written === null || written.includes(MARKS)) return null;
  const markedChunk = markChunk(chunk, read);
  const frame = markedChunk === null ? null : textFrame(markedChunk);
  // The frame with the text in the mark's place must be the one that the slow way writes.
  if (frame?.replaceAll(JSON.stringify(MARK), () => JSON.stringify(text)) !== written) return null;
  const unread = unreadIn(marked, readPart);
  // Where numbers make a usage, each of them is tried for it.
  const isHole = ({ mark }: Unread) => read.usage === null || mark === PADDING_MARK;
  const holed = putMarks(marked, unread.filter(isHole));
  const numbers = findNumbers(holed, read, readPart);
  const json = putMark(holed, numbers, NUMBER_MARK).replace(/ +\}$/, `${BLANKS_MARK}}`);
  const frameIn = `${head}data: ${json}${lineEnd}${lineEnd}`;
  const pieces = frameIn.split(new RegExp(`(${MARK}|${PADDING_MARK}|${BLANKS_MARK}|${NUMBER_MARK})`));
  const marks = pieces.filter((_, i) => i % 2 === 1);
  return {
    literals: pieces.filter((_, i) => i % 2 === 0).map((piece) => new Literal(encoder.encode(piece))),
    holes: marks.map((mark, i) => holeOf(mark, marks.indexOf(mark) === i)),
    outLiterals: frame.split(MARK).map((piece) => encoder.encode(piece)),
    counts: read.usage === null ? null : { learned: read.usage, numbers },
  };
}

function holeOf(mark: string, isFirst: boolean): Hole {
  if (mark === PADDING_MARK) return 'padding';
  if (mark === BLANKS_MARK) return 'blanks';
  if (mark === NUMBER_MARK) return 'number';
  return isFirst ? 'text' : 'twin';
}

/** The chunk with the mark as its text, or null where it contains more than a text (a role). */
function markChunk(chunk: Chunk, read: ChunkPart): Chunk | null {
  if (chunk.object === 'text_completion') {
    return { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, text: MARK })) };
  }
  const [choice] = chunk.choices;
  if (choice === undefined) return null;
  const delta: Delta = {};
  for (const key of Object.keys(choice.delta)) {
    if (key === 'content' || key === 'reasoning_content') delta[key] = MARK;
    else if (key === 'reasoning_details') delta[key] = read.choices[0]?.reasoningDetails ?? [];
    else return null;
  }
  return { ...chunk, choices: [{ ...choice, delta }] };
}

/** A top-level member that nothing is read from. */
interface Unread extends Place {
  readonly mark: string;
}

/** Strings and numbers at the top that nothing is read from: a padding of another length each time, the event's number in its stream. */
function unreadIn(marked: string, readPart: ReadPart): readonly Unread[] {
  const event = parseJson(marked);
  if (!isObject(event)) return [];
  const expected = JSON.stringify(readPart(marked));
  const isUnread = (key: string, place: Place, other: string | number) => {
    const changed = putMark(marked, [place], String(other));
    const read = parseJson(changed);
    return isObject(read) && read[key] === other && JSON.stringify(readPart(changed)) === expected;
  };
  const keys = Object.keys(event).filter((key) => !READ_KEYS.has(key) && /^\w+$/.test(key));
  return keys.slice(0, MAX_UNREAD).flatMap((key): Unread[] => {
    const value = event[key];
    const isNumber = typeof value === 'number';
    const places = isNumber ? numbersOf(marked, key) : valuesOf(marked, key);
    const place = [...places].find((one) => isUnread(key, one, isNumber ? value + 1 : PADDING_MARK));
    return place === undefined ? [] : [{ ...place, mark: isNumber ? NUMBER_MARK : PADDING_MARK }];
  });
}

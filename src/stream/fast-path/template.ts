/**
 * Learns a template from a parsed event: which of its bytes are the text, which numbers are its usage, and where both are in the
 * frame that the event became. `fast-path.ts` explains why a template is exact.
 */
import type { Chunk, Delta, ToolCallDelta } from '../../canonical/chunk.ts';
import type { ChunkPart, TextCount } from '../../canonical/part.ts';
import type { UsageReport } from '../../canonical/usage.ts';
import { isObject, type JsonObject, parseJson, parseJsonExactly } from '../../shared/json.ts';
import { trimEnd } from '../../shared/trim.ts';
import type { Writable } from '../../shared/writable.ts';
import { Literal } from './matcher.ts';

/** Reads an event as the normal path does. */
export type ReadPart = (event: JsonObject) => ChunkPart | null;

/** Writes the frame of a chunk that has one text only, `""` if it becomes none, or returns null if it becomes more than one. */
export type TextFrame = (chunk: Chunk) => string | null;

/** An event of one data line, or a message, as received. */
export interface TextEvent {
  /** `""` if it has none. */
  readonly name: string;
  readonly data: string;
  /** Null: it is a message, whose payload is the data. */
  readonly lineEnd: '\n' | '\r\n' | null;
}

/** What varies between literals: the text, a repetition of it, a string or spaces without meaning, or a number. */
type Hole = 'text' | 'repeatedText' | 'padding' | 'spaces' | 'number';

export interface Template {
  /** The event's name. */
  readonly name: string;
  /** The upstream's bytes before the first hole, between holes, and after the last one. */
  readonly literals: readonly Literal[];
  readonly holes: readonly Hole[];
  /** The frame's bytes around its text, which may occur in it more than once. */
  readonly outLiterals: readonly Uint8Array[];
  /** The usage that its numbers report, or null. */
  readonly counts: { readonly learned: UsageReport; readonly numbers: readonly NumberHole[] } | null;
  /** The count of the text, or null if its reader needs none. */
  readonly sent: TextCount | null;
}

/** Learning from a larger event costs more than it is likely to save. */
const MAX_LEARNED_CHARS = 4096;

/** Strings that may be the text. Each is tried with two reads of the event. */
const MAX_CANDIDATES = 8;

/** Top-level members that are tried as unread. Further ones are learned as constant. */
const MAX_UNREAD = 8;

/** Marks replace the varying values while a template is tried. An event that contains the prefix is not learned. */
const MARKS = 'weir\u00a4';
const MARK = `${MARKS}text`;
/** A second mark, so that a result that depends on the mark itself is noticed. */
const OTHER_MARK = `${MARKS}${MARKS} 7`;
const PADDING_MARK = `${MARKS}padding`;
/** Replaces spaces before the last brace. */
const SPACES_MARK = `${MARKS}spaces`;
const NUMBER_MARK = `${MARKS}number`;
const ANY_MARK = new RegExp(`(${MARK}|${PADDING_MARK}|${SPACES_MARK}|${NUMBER_MARK})`);

/** Names of members that hold a text. Other strings are not marked, so no key or discriminator is taken for a text. */
const TEXT_VALUE = stringsOf(
  ...['content', 'reasoning_content', 'reasoning', 'text', 'summary', 'thinking', 'delta', 'arguments'],
);

/** Event names that may be learned: another one could contain a line end. */
const EVENT_NAME = /^[\w.]*$/;

/** Top-level members that readers use. They are never padding, even if this event's value has no effect. */
const READ_KEYS: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint', 'choices', 'usage', 'error'],
  // They tell texts apart, which are counted one by one.
  ...['type', 'detail', 'output_index', 'content_index', 'summary_index', 'contentBlockIndex'],
]);

const encoder = new TextEncoder();

/**
 * Makes a template from an event and the part and chunk that it became.
 * @param text the result of `textToLearn`
 * @returns null if no position of the text is proven
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
  for (const values of candidates(json, text)) {
    const marked = putMark(json, values, MARK);
    const event = parseJsonExactly(marked);
    const otherEvent = withOtherMark(event, values.length);
    if (!isObject(event) || !isObject(otherEvent)) continue;
    const markedPart = readPart(event);
    const isRight =
      isMarked(markedPart, MARK, text, decoded) && isMarked(readPart(otherEvent), OTHER_MARK, text, decoded);
    const marking = { name, marked, event, text, lineEnd };
    if (markedPart !== null && isRight) return build(marking, markedPart, chunk, readPart, textFrame);
  }
  return null;
}

/** The event with the other mark at each of these places, or null: one more of its texts, with an escape, is the mark. */
function withOtherMark(event: unknown, places: number): unknown {
  let replaced = 0;
  const replace = (value: unknown): unknown => {
    if (value === MARK) {
      replaced++;
      return OTHER_MARK;
    }
    if (Array.isArray(value)) return value.map(replace);
    if (!isObject(value)) return value;
    const copy: Record<string, unknown> = { ...value };
    for (const key of Object.keys(copy)) copy[key] = replace(copy[key]);
    return copy;
  };
  const other = replace(event);
  return replaced === places ? other : null;
}

/** The text of an event that has one text only, or null: nothing is learned from the event. */
export function textToLearn({ data }: TextEvent, part: ChunkPart): string | null {
  return data.length > MAX_LEARNED_CHARS || data.includes('\n') ? null : onlyText(part);
}

/** The text of a part with one choice and nothing but one text, which may be a piece of a tool call's arguments; otherwise null. */
function onlyText(part: ChunkPart): string | null {
  const [choice, ...others] = part.choices;
  if (choice === undefined || others.length > 0 || part.error !== null || part.isRemembered) return null;
  if (part.usage !== null && part.usage.isLatest !== true) return null;
  const { content, reasoning, refusal, toolCalls, logprobs, finishWord } = choice;
  const [call, ...otherCalls] = toolCalls;
  const isAlone = refusal === '' && otherCalls.length === 0 && logprobs === null && finishWord === null;
  if (!isAlone) return null;
  if (call !== undefined) return content === '' && reasoning === '' ? call.arguments || null : null;
  return (content === '') !== (reasoning === '') ? content + reasoning : null;
}

/** Sets of values that may be the text: first all equal strings together, then each one alone. */
function* candidates(json: string, text: string): Generator<readonly TextValue[]> {
  const values = [...valuesOf(json, TEXT_VALUE)].slice(0, MAX_CANDIDATES);
  for (const value of values) {
    if (parseJson(`"${value.literal}"`) !== text) continue;
    const equal = values.filter(({ literal }) => literal === value.literal);
    if (equal.length > 1) yield equal;
    yield [value];
  }
}

/** Whether the read part has the mark as its text and is otherwise the part that was read before. */
function isMarked(read: ChunkPart | null, mark: string, text: string, before: string): boolean {
  if (read === null || onlyText(read) !== mark) return false;
  return JSON.stringify(read).replaceAll(JSON.stringify(mark), () => JSON.stringify(text)) === before;
}

/** An event with a mark in place of its text. */
interface Marking {
  readonly name: string;
  /** The data with the mark, as it is and parsed, and the original text. */
  readonly marked: string;
  readonly event: JsonObject;
  readonly text: string;
  readonly lineEnd: TextEvent['lineEnd'];
}

function build(
  { name, marked, event, text, lineEnd }: Marking,
  read: ChunkPart,
  chunk: Chunk,
  readPart: ReadPart,
  textFrame: TextFrame,
): Template | null {
  const textOnly = textFrame(chunk);
  // The frame is split at the mark, so nothing else in it may contain one.
  if (textOnly === null || textOnly.includes(MARKS)) return null;
  const markedChunk = markChunk(chunk, read);
  const frame = markedChunk === null ? null : textFrame(markedChunk);
  // The frame with the text in place of the mark must be the frame that the normal path writes.
  if (frame?.replaceAll(JSON.stringify(MARK), () => JSON.stringify(text)) !== textOnly) return null;
  const unread = unreadIn(marked, event, readPart);
  // If the event has a usage, each number is tried as a part of it instead.
  const isHole = ({ mark }: Unread) => read.usage === null || mark === PADDING_MARK;
  const holed = putMarks(marked, unread.filter(isHole));
  const numbers = findNumbers(holed, read, readPart);
  const json = markSpaces(putMark(holed, numbers, NUMBER_MARK));
  const head = name === '' ? '' : `event: ${name}${lineEnd}`;
  const frameIn = lineEnd === null ? json : `${head}data: ${json}${lineEnd}${lineEnd}`;
  const pieces = frameIn.split(ANY_MARK);
  const marks = pieces.filter((_, i) => i % 2 === 1);
  return {
    name,
    literals: pieces.filter((_, i) => i % 2 === 0).map((piece) => new Literal(encoder.encode(piece))),
    holes: marks.map((mark, i) => holeOf(mark, marks.indexOf(mark) === i)),
    outLiterals: frame.split(MARK).map((piece) => encoder.encode(piece)),
    counts: read.usage === null ? null : { learned: read.usage, numbers },
    sent: read.choices[0]?.sent ?? null,
  };
}

function holeOf(mark: string, isFirst: boolean): Hole {
  if (mark === PADDING_MARK) return 'padding';
  if (mark === SPACES_MARK) return 'spaces';
  if (mark === NUMBER_MARK) return 'number';
  return isFirst ? 'text' : 'repeatedText';
}

/** The chunk with the mark as its text, or null if it contains more than a text, such as a role. */
function markChunk(chunk: Chunk, read: ChunkPart): Chunk | null {
  if (chunk.object === 'text_completion') {
    return { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, text: MARK })) };
  }
  const [choice] = chunk.choices;
  if (choice === undefined) return null;
  const delta: Delta = {};
  for (const key of Object.keys(choice.delta)) {
    if (key === 'content' || key === 'reasoning_content') delta[key] = MARK;
    else if (key === 'tool_calls') delta.tool_calls = choice.delta.tool_calls?.map(markCall) ?? [];
    else if (key === 'reasoning_details') delta[key] = read.choices[0]?.reasoningDetails ?? [];
    else return null;
  }
  return { ...chunk, choices: [{ ...choice, delta }] };
}

/** A fragment with an id, of which a template's frames are none, becomes another one: the frames then differ. */
function markCall({ index }: ToolCallDelta): ToolCallDelta {
  return { index, function: { arguments: MARK } };
}

/** A top-level member that no reader uses. */
interface Unread extends Place {
  readonly mark: string;
}

/** Top-level strings and numbers that change nothing when they change: padding, the event's number in its stream. */
function unreadIn(marked: string, event: JsonObject, readPart: ReadPart): readonly Unread[] {
  const keys = Object.keys(event).filter((key) => !READ_KEYS.has(key) && /^\w+$/.test(key));
  if (keys.length === 0) return [];
  const expected = JSON.stringify(readPart(event));
  const isUnread = (key: string, place: Place, other: string | number) => {
    const changed = putMark(marked, [place], String(other));
    const changedEvent = parseJsonExactly(changed);
    if (!isObject(changedEvent) || changedEvent[key] !== other) return false;
    return JSON.stringify(readPart(changedEvent)) === expected;
  };
  return keys.slice(0, MAX_UNREAD).flatMap((key): Unread[] => {
    const value = event[key];
    const isNumber = typeof value === 'number';
    const places = isNumber ? numbersOf(marked, key) : valuesOf(marked, stringsOf(key));
    const place = [...places].find((one) => isUnread(key, one, isNumber ? value + 1 : PADDING_MARK));
    return place === undefined ? [] : [{ ...place, mark: isNumber ? NUMBER_MARK : PADDING_MARK }];
  });
}

// Numbers: some upstreams report usage that grows with every text event. Only reports that replace earlier ones are learned:
// their counts are sums of the event's numbers, so changing a number shows what it adds to each count.

type Count = Exclude<keyof UsageReport, 'isLatest' | 'extraBilled' | 'isUpperBound'>;
const COUNTS: readonly Count[] = [
  ...(['prompt', 'completion', 'total', 'cached', 'cacheWrite', 'reasoning', 'promptAudio'] as const),
  ...(['completionAudio', 'acceptedPrediction', 'rejectedPrediction', 'cost'] as const),
];

/** A number of the event: its position and how much an increment of 1 adds to each count. */
export interface NumberHole {
  readonly start: number;
  readonly end: number;
  readonly value: number;
  readonly adds: readonly (readonly [count: Count, factor: number])[];
}

/** Numbers that are tried. Each costs two reads of the event. */
const MAX_NUMBERS = 16;
/** Increments for the trial: primes, so that a multiple of one is not mistaken for the other. */
const STEPS = [1_000_003, 7_000_009] as const;

/** Strings match as one token, so digits within them are not taken for numbers. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const COUNT = /^(?:0|[1-9]\d{0,8})$/;

/** Numbers of the event that affect its usage only, or nothing. Empty if it has no usage that may be learned. */
function findNumbers(json: string, read: ChunkPart, readPart: ReadPart): readonly NumberHole[] {
  const { usage } = read;
  if (usage?.isLatest !== true || usage.extraBilled !== undefined || usage.isUpperBound === true) return [];
  const tokens = [...json.matchAll(TOKEN)].filter(([token]) => COUNT.test(token)).slice(0, MAX_NUMBERS);
  const rest = withoutUsage(read);
  const holes = tokens.flatMap((token): NumberHole[] => {
    const [text] = token;
    const start = token.index;
    const hole = { start, end: start + text.length, value: Number(text), adds: [] };
    const addsBy = (step: number) => {
      const changed = readJson(putNumbers(json, [hole], [hole.value + step]), readPart);
      return changed === null || withoutUsage(changed) !== rest ? null : differenceOf(read, changed, step);
    };
    const adds = addsBy(STEPS[0]);
    const isSum = adds !== null && JSON.stringify(adds) === JSON.stringify(addsBy(STEPS[1]));
    return isSum ? [{ ...hole, adds }] : [];
  });
  const values = holes.map(({ value }, at) => value + STEPS[0] * (at + 1));
  const all = readJson(putNumbers(json, holes, values), readPart);
  const isRight =
    all !== null && withoutUsage(all) === rest && isSame(all.usage, usageOf(usage, holes, values));
  return isRight ? holes : [];
}

function readJson(json: string, readPart: ReadPart): ChunkPart | null {
  const event = parseJsonExactly(json);
  return isObject(event) ? readPart(event) : null;
}

/** The usage of an event with these numbers. */
export function usageOf(
  learned: UsageReport,
  holes: readonly NumberHole[],
  values: readonly number[],
): UsageReport {
  const usage: Writable<UsageReport> = { ...learned };
  for (let i = 0; i < holes.length; i++) {
    const hole = holes[i];
    if (hole === undefined) continue;
    const more = (values[i] ?? hole.value) - hole.value;
    for (const [count, factor] of hole.adds) usage[count] = (usage[count] ?? 0) + factor * more;
  }
  return usage;
}

/** The event's JSON with other numbers. */
function putNumbers(json: string, holes: readonly NumberHole[], values: readonly number[]): string {
  let changed = '';
  let at = 0;
  for (const [i, { start, end }] of holes.entries()) {
    changed += json.slice(at, start) + String(values[i]);
    at = end;
  }
  return changed + json.slice(at);
}

/** How much each count grew for an increment of 1, or null if the growth is not a multiple of the step. */
function differenceOf(before: ChunkPart, after: ChunkPart, step: number): NumberHole['adds'] | null {
  const adds: [Count, number][] = [];
  for (const count of COUNTS) {
    const [one, other] = [before.usage?.[count], after.usage?.[count]];
    if (one === other) continue;
    if (one === undefined || other === undefined || (other - one) % step !== 0) return null;
    adds.push([count, (other - one) / step]);
  }
  return adds;
}

function isSame(one: UsageReport | null, other: UsageReport): boolean {
  return one !== null && COUNTS.every((count) => one[count] === other[count]);
}

/** The part without its usage, as text. */
function withoutUsage(part: ChunkPart): string {
  return JSON.stringify({ ...part, usage: null });
}

/** Marks the spaces before the last brace. */
function markSpaces(json: string): string {
  if (!json.endsWith(' }')) return json;
  return `${trimEnd(json.slice(0, -1), ' ')}${SPACES_MARK}}`;
}

// Places: where values are in the event's JSON, and the same JSON with marks in their place.

/** The position of a value in the event's JSON; of a string without its quotes. */
interface Place {
  readonly start: number;
  readonly end: number;
}

interface TextValue extends Place {
  readonly literal: string;
}

/** Matches members with one of these keys whose value is a string, and captures it. */
function stringsOf(...keys: readonly string[]): RegExp {
  return new RegExp(`"(?:${keys.join('|')})"[ \\t]*:[ \\t]*"((?:[^"\\\\]|\\\\.)*)"`, 'g');
}

/** @param strings of {@link stringsOf} */
function* valuesOf(json: string, strings: RegExp): Generator<TextValue> {
  for (const match of json.matchAll(strings)) {
    const [whole, literal = ''] = match;
    const end = match.index + whole.length - 1;
    yield { start: end - literal.length, end, literal };
  }
}

/** Whole numbers that are values of that key. */
function* numbersOf(json: string, key: string): Generator<Place> {
  for (const match of json.matchAll(new RegExp(`"${key}"[ \\t]*:[ \\t]*(\\d+)(?=[ \\t]*[,}])`, 'g'))) {
    const [whole, number = ''] = match;
    const end = match.index + whole.length;
    yield { start: end - number.length, end };
  }
}

function putMark(json: string, values: readonly Place[], mark: string): string {
  return putMarks(
    json,
    values.map(({ start, end }) => ({ start, end, mark })),
  );
}

function putMarks(json: string, places: readonly (Place & { readonly mark: string })[]): string {
  let marked = '';
  let at = 0;
  for (const { start, end, mark } of [...places].sort((a, b) => a.start - b.start)) {
    marked += json.slice(at, start) + mark;
    at = end;
  }
  return marked + json.slice(at);
}

/**
 * A shifted index or an integer of 17 digits at every place of every recorded stream, to each client: nothing incomplete looks complete,
 * nothing is lost, and no digit changes (A3, C7, Q11). Both suites run a sample of the places; STEP=1 runs all.
 */
import { describe, expect, test } from 'vitest';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { ResponsesWriter } from '../../src/protocols/openai-responses/client-writer.ts';
import { parseJson } from '../../src/shared/json.ts';
import type { StreamWriter } from '../../src/stream/types.ts';
import { SOURCES } from '../protocols/anthropic-messages/recorded-source.ts';
import { readResponses } from '../protocols/openai-responses/reading.ts';
import { sessionOf } from '../protocols/openai-responses/run.ts';
import { stepOf } from '../random-run.ts';
import { type Conversion, convertStream } from './convert.ts';
import { recordingsNote } from './recordings.ts';
import { readMessage } from './reference-message.ts';
import { readClient } from './reference-reader.ts';

const DIGITS = '12345678901234567';
/** What a rounding engine makes of it. */
const ROUNDED = String(Number(DIGITS));
const MARK = '"<digits>"';
/** Events of one form that are tried: the first, those that the fast path learns from and copies, and the last. */
const EVENTS_OF_A_FORM = 4;
/** One of so many places is tried. */
const SAMPLED = stepOf(41, 7);

/** What a client has of an output, in the same form for every protocol. */
interface Seen {
  readonly output: string;
  readonly calls: readonly string[];
  readonly isComplete: boolean;
}

const encoder = new TextEncoder();

interface Client {
  readonly openWriter?: Conversion['openWriter'];
  readonly read: (text: string) => Seen;
}

const fromContent = ({ choices, error }: ReturnType<typeof readClient>): Seen => {
  const all = [...choices.values()];
  const texts = all.map(({ text, reasoning, refusal, finish }) => [text, reasoning, refusal, finish]);
  const calls = all.flatMap(({ toolCalls }) =>
    toolCalls.map((call) => `${call.name} ${call.arguments || '{}'}`),
  );
  const isCut = all.some(({ finish }) => finish === 'length');
  return { output: JSON.stringify(texts), calls, isComplete: error === null && !isCut };
};

const CLIENTS: Readonly<Record<string, Client>> = {
  chat: { openWriter: undefined, read: (text) => fromContent(readClient(text)) },
  Messages: {
    openWriter: (options): StreamWriter => messages.streamWriter(null, options),
    read: (text) => {
      const { text: written, reasoning, calls, stop, error } = readMessage(text);
      return {
        output: JSON.stringify([written, reasoning, stop]),
        calls: calls.map((call) => `${call.name} ${call.arguments || '{}'}`),
        isComplete: error === null && stop !== null && stop !== 'max_tokens',
      };
    },
  },
  Responses: {
    openWriter: (options): StreamWriter => new ResponsesWriter(sessionOf(), options),
    read: (text) => fromContent(readResponses(text)),
  },
};

interface Edit {
  readonly what: string;
  readonly text: string;
  /** The integer is a part of a call's arguments, which have to have it. */
  readonly isInArguments: boolean;
  /** Nothing that is read changed, so neither may the output. */
  readonly isPadding: boolean;
}

/** Not tried: whose output a choice is. */
const UNTRIED = /^\.(?:choices|candidates)\.\d+\.index$/;
const INDEXES = ['index', 'output_index', 'content_index', 'summary_index'];
const ARGUMENTS = ['args', 'input', 'arguments'];

interface Place {
  readonly path: string;
  readonly put: (mark: unknown) => unknown;
  readonly value: unknown;
}

/** Every value of the JSON, and the JSON with another value in its place. */
function* placesOf(value: unknown, path = '', put: Place['put'] = (mark) => mark): Generator<Place> {
  yield { path, put, value };
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const putInner = (mark: unknown) =>
      put(Array.isArray(value) ? value.with(Number(key), mark) : { ...value, [key]: mark });
    yield* placesOf(inner, `${path}.${key}`, putInner);
  }
}

/** Whether the event's block, if it has one, is a call of the client's, not of a tool that the provider runs. */
function isClientCall(event: object): boolean {
  const block = 'content_block' in event ? event.content_block : undefined;
  return typeof block !== 'object' || block === null || !('type' in block) || block.type === 'tool_use';
}

function* editsOf(json: object): Generator<Edit> {
  for (const { path, put, value } of placesOf(json)) {
    const keys = path.split('.');
    const isInArguments = isClientCall(json) && keys.some((key) => ARGUMENTS.includes(key));
    const write = (mark: unknown) => JSON.stringify(put(mark)).replace(MARK, DIGITS);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const text = write({ ...value, weir_n: '<digits>' });
      yield { what: `a member of ${path}`, text, isInArguments, isPadding: !isInArguments };
    }
    if (typeof value !== 'number') continue;
    if (UNTRIED.test(path)) continue;
    yield { what: `the number ${path}`, text: write('<digits>'), isInArguments, isPadding: false };
    const isIndex = INDEXES.includes(keys.at(-1) ?? '');
    if (isIndex) yield { what: `the index ${path}`, text: write(value + 1), isInArguments, isPadding: false };
  }
}

/** The stream's events with data that is JSON, by the part of its text. */
function eventsIn(stream: string): { readonly start: number; readonly end: number; readonly json: object }[] {
  return [...stream.matchAll(/^data: ?(\{.*\})[ \t]*\r?$/gm)].flatMap((match) => {
    const [line, data = ''] = match;
    const json = parseJson(data);
    const start = match.index + line.indexOf(data);
    return typeof json === 'object' && json !== null ? [{ start, end: start + data.length, json }] : [];
  });
}

/** The form of an event: its keys, without its texts and numbers. */
function formOf(json: unknown): string {
  return JSON.stringify(json, (key, value) =>
    typeof value === 'string' && key !== 'type' ? '' : value,
  ).replace(/\d+/g, '0');
}

/** The stream with each edit of each of its events, several of one form. */
function* editedStreams(stream: string): Generator<Edit> {
  const events = eventsIn(stream);
  const byForm = Map.groupBy(events, ({ json }) => formOf(json));
  const tried = new Set(
    [...byForm.values()].flatMap((list) => [...list.slice(0, EVENTS_OF_A_FORM - 1), ...list.slice(-1)]),
  );
  for (const event of tried) {
    for (const edit of editsOf(event.json)) {
      const what = `event ${events.indexOf(event)}: ${edit.what}`;
      yield { ...edit, what, text: stream.slice(0, event.start) + edit.text + stream.slice(event.end) };
    }
  }
  const shifted = events.reduceRight((text, { start, end, json }) => {
    return text.slice(0, start) + JSON.stringify(json, shiftIndexes) + text.slice(end);
  }, stream);
  yield { what: 'every index', text: shifted, isInArguments: false, isPadding: false };
}

/** Writes indexes as if they began at 1 and had gaps, but for those of choices. */
function shiftIndexes(this: object, key: string, value: unknown): unknown {
  const isOfChoice =
    !('type' in this) &&
    ['delta', 'message', 'content', 'finish_reason', 'finishReason'].some((one) => one in this);
  return INDEXES.includes(key) && typeof value === 'number' && !isOfChoice ? 3 * value + 1 : value;
}

function faultOf(edit: Edit, before: Seen, after: Seen, text: string): string | null {
  if (text.includes(ROUNDED)) return `${edit.what}: the integer is rounded`;
  if (!after.isComplete) return edit.isPadding && before.isComplete ? `${edit.what}: the output fails` : null;
  if (!before.isComplete) return `${edit.what}: the output looks complete`;
  if (edit.isInArguments) {
    const hasDigits =
      after.calls.length === before.calls.length &&
      (after.calls.join().includes(DIGITS) || !text.includes('call'));
    return hasDigits ? null : `${edit.what}: the arguments are ${after.calls.join()}`;
  }
  const isSame = after.output === before.output && after.calls.join('\n') === before.calls.join('\n');
  return isSame
    ? null
    : `${edit.what}: ${after.output} ${after.calls.join()} instead of ${before.output} ${before.calls.join()}`;
}

let place = 0;

describe.skipIf(recordingsNote !== '')(`A3 C7 Q11 recorded streams${recordingsNote}`, () => {
  test.each(SOURCES)('%s, an index or a number changed at each place', (_, { text: stream, conversion }) => {
    const faults: string[] = [];
    for (const [name, { openWriter, read }] of Object.entries(CLIENTS)) {
      const convert = (text: string) =>
        convertStream([encoder.encode(text)], { ...conversion, openWriter }).text;
      const before = read(convert(stream));
      for (const edit of editedStreams(stream)) {
        if (place++ % SAMPLED !== 0) continue;
        const text = convert(edit.text);
        const fault = faultOf(edit, before, read(text), text);
        if (fault !== null) faults.push(`${name}, ${fault}`);
      }
    }
    expect(faults).toEqual([]);
  });
});

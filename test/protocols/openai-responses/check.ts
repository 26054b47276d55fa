/** Reads a Responses client's bytes and lists what of I4 they break: written from the specification and the study, not from the writer. */
import {
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../contract/json.ts';
import { eventFaults, itemsOf } from './schema.ts';

const ENDINGS = ['response.completed', 'response.incomplete', 'response.failed'];
const STATUS_OF: Readonly<Record<string, string>> = {
  'response.created': 'in_progress',
  'response.in_progress': 'in_progress',
  'response.completed': 'completed',
  'response.incomplete': 'incomplete',
  'response.failed': 'failed',
};

/** An item as its events have told it so far. */
interface Told {
  readonly index: number;
  readonly added: JsonObject;
  /** Texts by their part: what the deltas say, and what `done` said. */
  readonly parts: { readonly kind: string; text: string; done: string | null; isClosed: boolean }[];
  done: JsonObject | null;
}

interface Walk {
  readonly faults: string[];
  readonly items: Told[];
  readonly ids: Set<string>;
  /** A client that left may have been cut off anywhere. */
  readonly isWhole: boolean;
}

/** The events of a client's text; comments and `[DONE]` are left out. */
export function eventsIn(text: string): JsonObject[] {
  return framesOf(text).flatMap((frame) => {
    const data = parseJson(/(?:^|\n)data: ([^\n]*)$/.exec(frame)?.[1] ?? '');
    return isObject(data) ? [data] : [];
  });
}

/** @returns an empty list where the stream is as a Responses client needs it */
export function checkResponses(text: string, isWhole = true): string[] {
  const walk: Walk = { faults: [], items: [], ids: new Set(), isWhole };
  const frames = framesOf(text);
  if (isWhole && !text.endsWith('\n\n')) walk.faults.push('the stream does not end with a blank line');
  if (isWhole && frames.at(-1) !== 'data: [DONE]') walk.faults.push('[DONE] is not the last frame');
  if (frames.filter((frame) => frame === 'data: [DONE]').length > 1) walk.faults.push('[DONE] comes twice');
  const events: JsonObject[] = [];
  for (const frame of frames) {
    if (frame === ': heartbeat' || frame === 'data: [DONE]') continue;
    const [, name = '', json = ''] = /^event: ([a-z_.]+)\ndata: (\{[^\n]*\})$/.exec(frame) ?? [];
    const event = objectOf(parseJson(json));
    if (name === '' || event.type !== name) walk.faults.push(`no named event: ${frame.slice(0, 80)}`);
    else events.push(event);
  }
  events.forEach((event, position) => {
    for (const fault of checkEvent(walk, event, position, events)) {
      walk.faults.push(`${textOf(event.type)} (${position}): ${fault}`);
    }
  });
  checkEnding(walk, events);
  return walk.faults;
}

function framesOf(text: string): string[] {
  return text.split('\n\n').filter((frame) => frame !== '');
}

function* checkEvent(
  walk: Walk,
  event: JsonObject,
  position: number,
  events: readonly JsonObject[],
): Generator<string> {
  yield* eventFaults(event);
  const type = textOf(event.type);
  if (event.sequence_number !== position) yield `sequence_number is ${event.sequence_number}`;
  if ((position === 0) !== (type === 'response.created')) yield 'response.created is not the first';
  if ((position === 1) !== (type === 'response.in_progress')) yield 'response.in_progress is not the second';
  if (position === events.length - 1 ? walk.isWhole && !ENDINGS.includes(type) : ENDINGS.includes(type)) {
    yield 'the answer does not end with its ending';
  }
  const status = STATUS_OF[type];
  if (status !== undefined && objectOf(event.response).status !== status) yield 'the status is another';
  if (type === 'response.output_item.added') yield* checkAdded(walk, event);
  else if (type === 'response.output_item.done') yield* checkDone(walk, event);
  else if ('item_id' in event) yield* checkWithin(walk, event, type);
}

function* checkAdded(walk: Walk, event: JsonObject): Generator<string> {
  const item = objectOf(event.item);
  const open = walk.items.find(({ done }) => done === null);
  if (open !== undefined) yield `item ${open.index} is still open`;
  if (event.output_index !== walk.items.length) yield `output_index is ${event.output_index}`;
  for (const key of [
    `id ${textOf(item.id)}`,
    ...('call_id' in item ? [`call ${textOf(item.call_id)}`] : []),
  ]) {
    if (walk.ids.has(key)) yield `${key} was there before`;
    walk.ids.add(key);
  }
  const isEmpty =
    listOf(item.content).length + listOf(item.summary).length === 0 &&
    textOf(item.arguments) + textOf(item.input) === '';
  if (!isEmpty) yield 'it has something before its first delta';
  if ('status' in item && item.status !== 'in_progress') yield 'it is not in progress';
  const isCall = 'call_id' in item;
  const parts = isCall ? [{ kind: textOf(item.type), text: '', done: null, isClosed: false }] : [];
  walk.items.push({ index: walk.items.length, added: item, parts, done: null });
}

/** The kind of part that an event is about. */
const KINDS: readonly (readonly [prefix: string, kind: string])[] = [
  ['response.output_text.', 'output_text'],
  ['response.refusal.', 'refusal'],
  ['response.reasoning_summary_text.', 'summary_text'],
  ['response.function_call_arguments.', 'function_call'],
  ['response.custom_tool_call_input.', 'custom_tool_call'],
];

function* checkWithin(walk: Walk, event: JsonObject, type: string): Generator<string> {
  const told = walk.items.at(-1);
  if (told === undefined || told.done !== null) return yield 'no item is open';
  if (event.item_id !== told.added.id) yield `item_id is ${JSON.stringify(event.item_id)}`;
  if (event.output_index !== told.index) yield `output_index is ${event.output_index}`;
  const partIndex = event.content_index ?? event.summary_index ?? 0;
  if (type.endsWith('_part.added')) {
    if (partIndex !== told.parts.length) yield `the part's index is ${partIndex}`;
    if (told.parts.some(({ isClosed }) => !isClosed)) yield 'another part is open';
    const part = objectOf(event.part);
    if (textOf(part.text) + textOf(part.refusal) !== '') yield 'the part has text before its first delta';
    told.parts.push({ kind: textOf(part.type), text: '', done: null, isClosed: false });
    return;
  }
  const part = told.parts.at(-1);
  if (part === undefined || partIndex !== told.parts.length - 1 || part.isClosed)
    return yield 'no part is open';
  if (type.endsWith('_part.done')) {
    const { text, refusal } = objectOf(event.part);
    if (part.done === null) yield 'the text was not done';
    if ((text ?? refusal) !== part.text) yield 'the part is not what its deltas said';
    part.isClosed = true;
    return;
  }
  const kind = KINDS.find(([prefix]) => type.startsWith(prefix))?.[1];
  if (kind !== part.kind) yield `a part of the kind ${part.kind} is open`;
  if (part.done !== null) yield 'the text was done';
  if (type.endsWith('.delta')) part.text += textOf(event.delta);
  else {
    part.done = textOf(event.text ?? event.refusal ?? event.arguments ?? event.input);
    if (part.done !== part.text) yield 'it is not what the deltas said';
  }
}

function* checkDone(walk: Walk, event: JsonObject): Generator<string> {
  const told = walk.items.at(-1);
  if (told === undefined || told.done !== null) return yield 'no item is open';
  const item = objectOf(event.item);
  told.done = item;
  if (event.output_index !== told.index) yield `output_index is ${event.output_index}`;
  for (const key of ['id', 'type', 'call_id', 'name', 'namespace', 'role']) {
    if (item[key] !== told.added[key]) yield `its ${key} is another`;
  }
  if (item.status === 'in_progress') yield 'it is still in progress';
  const texts = [...listOf(item.content), ...listOf(item.summary)].map((part) => {
    const { text, refusal } = objectOf(part);
    return textOf(text ?? refusal);
  });
  const said = 'call_id' in item ? [textOf(item.arguments ?? item.input)] : texts;
  if (JSON.stringify(said) !== JSON.stringify(told.parts.map(({ text }) => text))) {
    yield 'its texts are not what its deltas said';
  }
  if (told.parts.some(({ done }) => done === null)) yield 'a part was not done';
  if (!('call_id' in item) && told.parts.some(({ isClosed }) => !isClosed)) yield 'a part is still open';
  if (
    item.type === 'function_call' &&
    item.status === 'completed' &&
    !isObject(parseJson(textOf(item.arguments)))
  ) {
    yield 'its arguments are no JSON object';
  }
}

function checkEnding(walk: Walk, events: readonly JsonObject[]): void {
  const last = events.at(-1);
  if (last === undefined || !walk.isWhole) return;
  const { faults, items } = walk;
  const ending = objectOf(last.response);
  const isFailed = last.type === 'response.failed';
  const errors = events.filter(({ type }) => type === 'error');
  if (errors.length !== (isFailed ? 1 : 0)) faults.push('a failure is not told once');
  if (isFailed && events.at(-2)?.type !== 'error')
    faults.push('the error does not stand before response.failed');
  if (isFailed !== (ending.error !== null)) faults.push('the error and the status disagree');
  if ((last.type === 'response.incomplete') !== (ending.incomplete_details !== null)) {
    faults.push('incomplete_details and the status disagree');
  }
  const open = items.filter(({ done }) => done === null);
  if (!isFailed && open.length > 0) faults.push('an item was not done');
  if (!isFailed && ending.usage === null) faults.push('there is no usage');
  const output = itemsOf(ending);
  const told = items.map(({ done }) => done);
  // What failed has its open item as it stands.
  const same = output.slice(0, told.length - open.length);
  if (JSON.stringify(same) !== JSON.stringify(told.filter((item) => item !== null))) {
    faults.push('the output is not what the items were');
  }
  if (output.length !== items.length) faults.push(`the output has ${output.length} items of ${items.length}`);
  const cut = output.findIndex(({ status }) => status === 'incomplete');
  if (cut >= 0 && last.type === 'response.completed') faults.push('a completed answer has a cut item');
  for (const key of ['id', 'created_at', 'model']) {
    const values = new Set(events.map(({ response }) => (isObject(response) ? response[key] : undefined)));
    values.delete(undefined);
    if (values.size > 1) faults.push(`the response's ${key} changes`);
  }
}

/** A stream with its JSON as values: the fast path may keep the upstream's own escapes (F1). */
export function valuesIn(text: string): Json[] {
  return framesOf(text).map((frame) => {
    const [head = '', json] = frame.split('data: ');
    return json === undefined || json === '[DONE]' ? frame : [head, parseJson(json) ?? null];
  });
}

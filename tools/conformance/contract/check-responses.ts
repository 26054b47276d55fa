/** Checks the bytes of a Responses stream against the protocol (I4). Written from the specification, not from the writer. */
import { isObject, type Json, type JsonObject, listOf, objectOf, parseJson, textOf } from './json.ts';
import { eventFaults, itemsOf } from './responses-schema.ts';

const ENDINGS = ['response.completed', 'response.incomplete', 'response.failed'];
const STATUS_OF: Readonly<Record<string, string>> = {
  'response.created': 'in_progress',
  'response.in_progress': 'in_progress',
  'response.completed': 'completed',
  'response.incomplete': 'incomplete',
  'response.failed': 'failed',
};

/** An item, from its events so far. */
interface Item {
  readonly index: number;
  readonly added: JsonObject;
  /** The text of each part: from its deltas, and from its `done` event. */
  readonly parts: { readonly kind: string; text: string; done: string | null; isClosed: boolean }[];
  done: JsonObject | null;
}

interface Walk {
  readonly faults: string[];
  readonly items: Item[];
  readonly ids: Set<string>;
  /** False if the client left: the stream may end anywhere. */
  readonly isComplete: boolean;
}

/** The events of a stream, without comments and `[DONE]`. */
export function eventsIn(text: string): JsonObject[] {
  return framesOf(text).flatMap((frame) => {
    const data = parseJson(/(?:^|\n)data: ([^\n]*)$/.exec(frame)?.[1] ?? '');
    return isObject(data) ? [data] : [];
  });
}

/** Lists the faults of a stream. */
export function checkResponses(text: string, isComplete = true): string[] {
  const walk: Walk = { faults: [], items: [], ids: new Set(), isComplete };
  const frames = framesOf(text);
  if (isComplete && !text.endsWith('\n\n')) walk.faults.push('the stream does not end with a blank line');
  if (isComplete && frames.at(-1) !== 'data: [DONE]') walk.faults.push('[DONE] is not the last frame');
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
  if (position === events.length - 1 ? walk.isComplete && !ENDINGS.includes(type) : ENDINGS.includes(type)) {
    yield 'the last event is not the end of the response';
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
  const isCall = comesAsText(item);
  const parts = isCall ? [{ kind: textOf(item.type), text: '', done: null, isClosed: false }] : [];
  walk.items.push({ index: walk.items.length, added: item, parts, done: null });
}

/** Whether it is a call with a text in deltas: the arguments of a search for tools come with its item. */
function comesAsText(item: JsonObject): boolean {
  return 'call_id' in item && item.type !== 'tool_search_call';
}

/** The type of the part that an event belongs to. */
const KINDS: readonly (readonly [prefix: string, kind: string])[] = [
  ['response.output_text.', 'output_text'],
  ['response.refusal.', 'refusal'],
  ['response.reasoning_text.', 'reasoning_text'],
  ['response.reasoning_summary_text.', 'summary_text'],
  ['response.function_call_arguments.', 'function_call'],
  ['response.custom_tool_call_input.', 'custom_tool_call'],
];

function* checkWithin(walk: Walk, event: JsonObject, type: string): Generator<string> {
  const item = walk.items.at(-1);
  if (item === undefined || item.done !== null) return yield 'no item is open';
  if (event.item_id !== item.added.id) yield `item_id is ${JSON.stringify(event.item_id)}`;
  if (event.output_index !== item.index) yield `output_index is ${event.output_index}`;
  const partIndex = event.content_index ?? event.summary_index ?? 0;
  if (type.endsWith('_part.added')) {
    if (partIndex !== item.parts.length) yield `the part's index is ${partIndex}`;
    if (item.parts.some(({ isClosed }) => !isClosed)) yield 'another part is open';
    const part = objectOf(event.part);
    if (textOf(part.text) + textOf(part.refusal) !== '') yield 'the part has text before its first delta';
    item.parts.push({ kind: textOf(part.type), text: '', done: null, isClosed: false });
    return;
  }
  const part = item.parts.at(-1);
  if (part === undefined || partIndex !== item.parts.length - 1 || part.isClosed)
    return yield 'no part is open';
  if (type.endsWith('_part.done')) {
    const { text, refusal } = objectOf(event.part);
    if (part.done === null) yield 'the text was not done';
    if ((text ?? refusal) !== part.text) yield 'the part differs from its deltas';
    part.isClosed = true;
    return;
  }
  const kind = KINDS.find(([prefix]) => type.startsWith(prefix))?.[1];
  if (kind !== part.kind) yield `a part of the kind ${part.kind} is open`;
  if (part.done !== null) yield 'the text was done';
  if (type.endsWith('.delta')) part.text += textOf(event.delta);
  else {
    part.done = textOf(event.text ?? event.refusal ?? event.arguments ?? event.input);
    if (part.done !== part.text) yield 'it differs from the deltas';
  }
}

function* checkDone(walk: Walk, event: JsonObject): Generator<string> {
  const open = walk.items.at(-1);
  if (open === undefined || open.done !== null) return yield 'no item is open';
  const item = objectOf(event.item);
  open.done = item;
  if (event.output_index !== open.index) yield `output_index is ${event.output_index}`;
  for (const key of ['id', 'type', 'call_id', 'name', 'namespace', 'role']) {
    if (item[key] !== open.added[key]) yield `its ${key} is another`;
  }
  if (item.status === 'in_progress') yield 'it is still in progress';
  const texts = [...listOf(item.content), ...listOf(item.summary)].map((part) => {
    const { text, refusal } = objectOf(part);
    return textOf(text ?? refusal);
  });
  const itemTexts = comesAsText(item) ? [textOf(item.arguments ?? item.input)] : texts;
  if (JSON.stringify(itemTexts) !== JSON.stringify(open.parts.map(({ text }) => text))) {
    yield 'its texts differ from its deltas';
  }
  if (open.parts.some(({ done }) => done === null)) yield 'a part was not done';
  if (!('call_id' in item) && open.parts.some(({ isClosed }) => !isClosed)) yield 'a part is still open';
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
  if (last === undefined || !walk.isComplete) return;
  const { faults, items } = walk;
  const ending = objectOf(last.response);
  const isFailed = last.type === 'response.failed';
  const errors = events.filter(({ type }) => type === 'error');
  if (errors.length !== (isFailed ? 1 : 0)) faults.push('a failure has not exactly one error event');
  if (isFailed && events.at(-2)?.type !== 'error')
    faults.push('the error is not directly before response.failed');
  if (isFailed !== (ending.error !== null)) faults.push('the error and the status disagree');
  if ((last.type === 'response.incomplete') !== (ending.incomplete_details !== null)) {
    faults.push('incomplete_details and the status disagree');
  }
  const open = items.filter(({ done }) => done === null);
  if (!isFailed && open.length > 0) faults.push('an item was not done');
  if (!isFailed && ending.usage === null) faults.push('there is no usage');
  const output = itemsOf(ending);
  const done = items.map((item) => item.done);
  // A failed response has its open item as it stands.
  const closed = output.slice(0, done.length - open.length);
  if (JSON.stringify(closed) !== JSON.stringify(done.filter((item) => item !== null))) {
    faults.push('the output differs from the items');
  }
  if (output.length !== items.length) faults.push(`the output has ${output.length} items of ${items.length}`);
  const incomplete = output.findIndex(({ status }) => status === 'incomplete');
  if (incomplete >= 0 && last.type === 'response.completed')
    faults.push('a completed response has an incomplete item');
  for (const key of ['id', 'created_at', 'model']) {
    const values = new Set(events.map(({ response }) => (isObject(response) ? response[key] : undefined)));
    values.delete(undefined);
    if (values.size > 1) faults.push(`the response's ${key} changes`);
  }
}

/** The frames of a stream with parsed JSON: the fast path may keep the upstream's escapes. */
export function valuesIn(text: string): Json[] {
  return framesOf(text).map((frame) => {
    const [head = '', json] = frame.split('data: ');
    return json === undefined || json === '[DONE]' ? frame : [head, parseJson(json) ?? null];
  });
}

/**
 * The events that a server left out of its stream: what begins an item or a part, and the deltas of content that came only at the end.
 * A client on the passthrough gets them before the event that has the content. OpenAI's SDK for JavaScript 7.55.0 (2026-11-10) throws in
 * `responses.stream()` where an item or a part was not announced.
 */
import { type JsonObject, readText } from '../../shared/json.ts';
import type { SentItem, SentText, TextKind } from './upstream-items.ts';

/** Where an item is. */
export interface SentPlace {
  readonly outputIndex: number;
  readonly itemId: string;
}

/** The part of an item that has a text. */
export interface PartPlace extends SentPlace {
  readonly kind: TextKind;
  /** Its index in the item's `content` or `summary`. */
  readonly index: number;
}

/** How the events of each kind of text are named, and its part. */
const FORMS = {
  text: {
    name: 'output_text',
    part: 'content_part',
    at: 'content_index',
    type: 'output_text',
    member: 'text',
  },
  refusal: { name: 'refusal', part: 'content_part', at: 'content_index', type: 'refusal', member: 'refusal' },
  thoughts: {
    name: 'reasoning_text',
    part: 'content_part',
    at: 'content_index',
    type: 'reasoning_text',
    member: 'text',
  },
  summary: {
    name: 'reasoning_summary_text',
    part: 'reasoning_summary_part',
    at: 'summary_index',
    type: 'summary_text',
    member: 'text',
  },
} as const satisfies { readonly [K in TextKind]: object };

/** The names of a call's arguments, or of a custom tool's input. */
const CALL_FORMS = {
  function: { name: 'function_call_arguments', member: 'arguments' },
  custom: { name: 'custom_tool_call_input', member: 'input' },
} as const;

/** Events that are added before one event. */
const MAX_EVENTS = 1000;

/**
 * UTF-16 units of what the last events of texts and arguments repeat, before one event. More is not repeated: clients do not need it, and
 * what one event makes has a bound.
 */
const MAX_REPEATED_CHARS = 256 * 1024;

/** Events that a server left out and that are added to its stream, within a bound on repeated text. */
export class OmittedEvents {
  #events: JsonObject[] = [];
  #repeatedChars = 0;

  /** How many there are since the last `take`. */
  get count(): number {
    return this.#events.length;
  }

  get isFull(): boolean {
    return this.#events.length >= MAX_EVENTS;
  }

  /** The events since the last call, in order, without numbers. */
  take(): readonly JsonObject[] {
    this.#repeatedChars = 0;
    return this.#events.splice(0);
  }

  /** Before anything of an item. @param item the item, as far as it is known */
  item(sent: SentItem, outputIndex: number, item: JsonObject): void {
    if (sent.isAdded || sent.isPassedAsIs) return;
    sent.isAdded = true;
    sent.addedId = readText(item.id);
    this.#add('output_item.added', { output_index: outputIndex, item: begun(item) });
  }

  itemDone({ outputIndex }: SentPlace, item: JsonObject): void {
    this.#add('output_item.done', { output_index: outputIndex, item });
  }

  /** Before anything of a text. */
  part(sent: SentItem, text: SentText, place: PartPlace): void {
    const { kind } = place;
    const isReasoning = kind === 'summary' || kind === 'thoughts';
    const item = isReasoning
      ? { type: 'reasoning', summary: [] }
      : { type: 'message', role: 'assistant', content: [] };
    this.item(sent, place.outputIndex, { id: place.itemId, ...item, status: 'in_progress' });
    if (text.isAdded) return;
    text.isAdded = true;
    this.#add(`${FORMS[kind].part}.added`, { ...placeOf(place), part: partOf(kind, '') });
  }

  delta(place: PartPlace, delta: string): void {
    const logprobs = place.kind === 'text' ? { logprobs: [] } : {};
    this.#add(`${FORMS[place.kind].name}.delta`, { ...placeOf(place), delta, ...logprobs });
  }

  /** The events that end a text, but for those that came. */
  textDone(sent: SentText, place: PartPlace, whole: string): void {
    if (!this.#mayRepeat(2 * whole.length)) return;
    const { name, part, member } = FORMS[place.kind];
    const logprobs = place.kind === 'text' ? { logprobs: [] } : {};
    if (!sent.isTextDone) this.#add(`${name}.done`, { ...placeOf(place), [member]: whole, ...logprobs });
    if (!sent.isPartDone) this.#add(`${part}.done`, { ...placeOf(place), part: partOf(place.kind, whole) });
    sent.isTextDone = true;
    sent.isPartDone = true;
  }

  input({ outputIndex, itemId }: SentPlace, isCustom: boolean, delta: string): void {
    const { name } = CALL_FORMS[isCustom ? 'custom' : 'function'];
    this.#add(`${name}.delta`, { item_id: itemId, output_index: outputIndex, delta });
  }

  inputDone({ outputIndex, itemId }: SentPlace, isCustom: boolean, whole: string): void {
    if (!this.#mayRepeat(whole.length)) return;
    const { name, member } = CALL_FORMS[isCustom ? 'custom' : 'function'];
    this.#add(`${name}.done`, { item_id: itemId, output_index: outputIndex, [member]: whole });
  }

  #mayRepeat(chars: number): boolean {
    this.#repeatedChars += chars;
    return this.#repeatedChars <= MAX_REPEATED_CHARS;
  }

  #add(name: string, members: JsonObject): void {
    this.#events.push({ type: `response.${name}`, ...members });
  }
}

function placeOf({ kind, itemId, outputIndex, index }: PartPlace): JsonObject {
  return { item_id: itemId, output_index: outputIndex, [FORMS[kind].at]: index };
}

function partOf(kind: TextKind, text: string): JsonObject {
  const { type, member } = FORMS[kind];
  return kind === 'text' ? { type, [member]: text, annotations: [], logprobs: [] } : { type, [member]: text };
}

/** An item without what its events add. */
function begun(item: JsonObject): JsonObject {
  const empty: Record<string, unknown> = {};
  if (item.status !== undefined) empty.status = 'in_progress';
  for (const list of ['content', 'summary']) if (Array.isArray(item[list])) empty[list] = [];
  for (const text of ['arguments', 'input']) if (typeof item[text] === 'string') empty[text] = '';
  return { ...item, ...empty };
}

/** The output items of a passed stream as far as they were sent, for a response that Weir ends before its provider lists them. */
import { isObject, type JsonObject, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_REPEATED_TEXT_CHARS } from './client-writer.ts';
import { itemKey } from './upstream-items.ts';

/** The member of an item, or the type of a part, to which the deltas of an event belong. */
const DELTAS: Readonly<Record<string, string>> = {
  'response.output_text.delta': 'output_text',
  'response.refusal.delta': 'refusal',
  'response.reasoning_text.delta': 'reasoning_text',
  'response.reasoning_summary_text.delta': 'summary_text',
  'response.function_call_arguments.delta': 'arguments',
  'response.custom_tool_call_input.delta': 'input',
};

interface PassedItem {
  /** As its last event has it. */
  item: JsonObject;
  isDone: boolean;
  /** The texts since the item was added, by the type and the index of their part. */
  readonly texts: Map<string, string>;
}

/** An item that has not ended. */
export interface OpenPassedItem {
  readonly output_index: number;
  readonly item: JsonObject;
}

/** Holds at most {@link MAX_REPEATED_TEXT_CHARS} of texts. What exceeds them was sent, and is not repeated. */
export class PassedItems {
  /** By the keys of their events, in the order in which they were added. */
  readonly #items = new Map<unknown, PassedItem>();
  #chars = 0;

  /** Reads an event that is sent. */
  read(event: JsonObject): void {
    const { item } = event;
    const isAdded = event.type === 'response.output_item.added';
    if (isObject(item) && (isAdded || event.type === 'response.output_item.done')) {
      this.#set(itemKey(event), item, !isAdded);
      return;
    }
    const member = DELTAS[readText(event.type) ?? ''];
    const text = readText(event.delta);
    const sent = this.#items.get(itemKey(event));
    if (member === undefined || text === undefined || sent === undefined) return;
    this.#chars += text.length;
    if (this.#chars > MAX_REPEATED_TEXT_CHARS) return;
    const key = `${member} ${readCount(event.content_index) ?? readCount(event.summary_index) ?? 0}`;
    sent.texts.set(key, (sent.texts.get(key) ?? '') + text);
  }

  #set(key: unknown, item: JsonObject, isDone: boolean): void {
    this.#chars += isDone ? JSON.stringify(item).length : 0;
    // The texts of its deltas are in it.
    const isHeld = this.#chars <= MAX_REPEATED_TEXT_CHARS;
    this.#items.set(key, { item: isHeld ? item : withoutTexts(item), isDone, texts: new Map() });
  }

  /** The items that have not ended, as far as they were sent. */
  get open(): readonly OpenPassedItem[] {
    return [...this.#items].flatMap(([key, sent]) =>
      sent.isDone ? [] : [{ output_index: readCount(key) ?? 0, item: incomplete(sent) }],
    );
  }

  /** All items, as far as they were sent. */
  get all(): readonly JsonObject[] {
    return [...this.#items.values()].map((sent) => (sent.isDone ? sent.item : incomplete(sent)));
  }
}

function withoutTexts({ id, type, status, role }: JsonObject): JsonObject {
  return { id, type, status, ...(role !== undefined && { role, content: [] }) };
}

/** The item with the texts of its deltas. */
function incomplete({ item, texts }: PassedItem): JsonObject {
  const parts = [...texts].map(([key, text]) => ({ type: key.split(' ')[0] ?? '', text }));
  const of = (...types: readonly string[]) => parts.filter(({ type }) => types.includes(type));
  const content = of('output_text', 'refusal', 'reasoning_text').map(partOf);
  const summary = of('summary_text');
  const [call] = of('arguments', 'input');
  return {
    ...item,
    status: 'incomplete',
    ...(content.length > 0 && { content: [...readArray(item.content), ...content] }),
    ...(summary.length > 0 && { summary: [...readArray(item.summary), ...summary] }),
    ...(call !== undefined && { [call.type]: (readText(item[call.type]) ?? '') + call.text }),
  };
}

function partOf({ type, text }: { readonly type: string; readonly text: string }): JsonObject {
  if (type === 'refusal') return { type, refusal: text };
  return type === 'output_text' ? { type, text, annotations: [], logprobs: [] } : { type, text };
}

/** A message of a Responses answer: its parts are texts and refusals, one open at a time. */
import type { ChatLogprobs } from '../../canonical/logprobs.ts';
import { BEFORE_NUMBER, type EventSink, eventHead, writeLogprobs } from './client-events.ts';
import type { ItemPlace, ItemStatus, OpenItem, OpenText } from './item.ts';
import { TextAccumulator } from './text-accumulator.ts';

interface Part {
  readonly type: 'output_text' | 'refusal';
  /** `item_id`, `output_index` and `content_index`, with a comma behind them. */
  readonly place: string;
  readonly text: TextAccumulator;
  /** Each piece's entries as JSON, without brackets. */
  readonly logprobs: string[];
}

export class MessageItem implements OpenItem {
  readonly #events: EventSink | null;
  readonly #id: string;
  readonly #place: string;
  /** Those that are closed, as JSON. */
  readonly #parts: string[] = [];
  #part: Part | null = null;
  openText: OpenText | null = null;

  constructor({ idBase, index }: ItemPlace, events: EventSink | null) {
    this.#events = events;
    this.#id = `msg_${idBase}${index}`;
    this.#place = `"item_id":${JSON.stringify(this.#id)},"output_index":${index},`;
    events?.event('output_item.added', `"output_index":${index},"item":${this.#json('in_progress')}`);
  }

  addText(text: string, logprobs: ChatLogprobs | null): void {
    const part = this.#open('output_text');
    const entries = writeLogprobs(logprobs?.content ?? null);
    if (entries !== '[]') part.logprobs.push(entries.slice(1, -1));
    if (text === '') return;
    part.text.add(text);
    this.#events?.event(
      'output_text.delta',
      `${part.place}"delta":${JSON.stringify(text)},"logprobs":${entries}`,
    );
  }

  addRefusal(text: string): void {
    const part = this.#open('refusal');
    part.text.add(text);
    this.#events?.event('refusal.delta', `${part.place}"delta":${JSON.stringify(text)}`);
  }

  close(isCut: boolean): string {
    this.#closePart();
    return this.#json(isCut ? 'incomplete' : 'completed');
  }

  /** As it stands, for an answer that failed. */
  snapshot(): string {
    const open = this.#part === null ? [] : [partJson(this.#part, JSON.stringify(this.#part.text.read()))];
    return this.#json('incomplete', [...this.#parts, ...open]);
  }

  #open(type: Part['type']): Part {
    if (this.#part?.type === type) return this.#part;
    this.#closePart();
    const content = this.#parts.length;
    const place = `${this.#place}"content_index":${content},`;
    const part = { type, place, text: new TextAccumulator(), logprobs: [] };
    this.#part = part;
    this.#events?.event('content_part.added', `${place}"part":${partJson(part, '""')}`);
    if (type === 'output_text') {
      const head = `${eventHead('output_text.delta')}${place}"delta":"`;
      const tail = `","logprobs":[]${BEFORE_NUMBER}`;
      this.openText = { of: 'message', head, tail, held: part.text };
    }
    return part;
  }

  #closePart(): void {
    const part = this.#part;
    if (part === null) return;
    const { type, place, logprobs } = part;
    const text = JSON.stringify(part.text.read());
    const json = partJson(part, text);
    if (type === 'refusal') this.#events?.event('refusal.done', `${place}"refusal":${text}`);
    else {
      this.#events?.event('output_text.done', `${place}"text":${text},"logprobs":[${logprobs.join(',')}]`);
    }
    this.#events?.event('content_part.done', `${place}"part":${json}`);
    this.#parts.push(json);
    this.#part = null;
    this.openText = null;
  }

  #json(status: ItemStatus, parts: readonly string[] = this.#parts): string {
    const id = JSON.stringify(this.#id);
    return `{"id":${id},"type":"message","status":"${status}","role":"assistant","content":[${parts.join(',')}]}`;
  }
}

/** @param text as JSON */
function partJson({ type, logprobs }: Part, text: string): string {
  if (type === 'refusal') return `{"type":"refusal","refusal":${text}}`;
  return `{"type":"output_text","text":${text},"annotations":[],"logprobs":[${logprobs.join(',')}]}`;
}

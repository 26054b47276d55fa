/** Reasoning in a Responses answer: its text as a summary, which every client shows, and what its upstream wants back of it (I4, I7). */
import { ReasoningDetails } from '../../canonical/reasoning-details.ts';
import type { ReasoningState } from '../shared/reasoning-state.ts';
import { BEFORE_NUMBER, type EventSink, eventHead } from './client-events.ts';
import { writeTokens } from './encrypted-content.ts';
import type { ItemPlace, ItemStatus, OpenItem, OpenText } from './item.ts';
import { TextAccumulator } from './text-accumulator.ts';

export interface Encryption {
  /** The provider whose tokens these are. */
  readonly provider: string;
  /** Reasoning without tokens has an `encrypted_content`, too. */
  readonly isAlwaysEncrypted: boolean;
}

export class ReasoningItem implements OpenItem {
  readonly #events: EventSink | null;
  readonly #id: string;
  readonly #place: string;
  readonly #encryption: Encryption;
  readonly #text = new TextAccumulator();
  readonly #details = new ReasoningDetails();
  readonly #callStates: ReasoningState[] = [];
  #hasText = false;
  openText: OpenText | null = null;

  constructor({ idBase, index }: ItemPlace, encryption: Encryption, events: EventSink | null) {
    this.#events = events;
    this.#id = `rs_${idBase}${index}`;
    this.#encryption = encryption;
    this.#place = `"item_id":${JSON.stringify(this.#id)},"output_index":${index},"summary_index":0,`;
    events?.event('output_item.added', `"output_index":${index},"item":${this.#json('in_progress', '')}`);
  }

  /** It has what its upstream wants back: whatever comes now belongs to another one. */
  get isSealed(): boolean {
    return this.#callStates.length > 0 || this.#details.hasOpaqueData;
  }

  addText(text: string): void {
    if (!this.#hasText) {
      this.#hasText = true;
      this.#events?.event('reasoning_summary_part.added', `${this.#place}"part":${partJson('""')}`);
      const head = `${eventHead('reasoning_summary_text.delta')}${this.#place}"delta":"`;
      this.openText = { of: 'reasoning', head, tail: `"${BEFORE_NUMBER}`, held: this.#text };
    }
    this.#text.add(text);
    this.#events?.event('reasoning_summary_text.delta', `${this.#place}"delta":${JSON.stringify(text)}`);
  }

  addState(state: ReasoningState): void {
    if ('detail' in state) this.#details.add([state.detail]);
    else this.#callStates.push(state);
    if (this.isSealed) this.openText = null;
  }

  close(isCut: boolean): string {
    const status = isCut && !this.isSealed ? 'incomplete' : 'completed';
    if (!this.#hasText) return this.#json(status, '');
    const text = JSON.stringify(this.#text.read());
    this.#events?.event('reasoning_summary_text.done', `${this.#place}"text":${text}`);
    this.#events?.event('reasoning_summary_part.done', `${this.#place}"part":${partJson(text)}`);
    return this.#json(status, partJson(text));
  }

  snapshot(): string {
    return this.#json('incomplete', this.#hasText ? partJson(JSON.stringify(this.#text.read())) : '');
  }

  /** OpenAI leaves the status out of its own; DeepSeek and xAI have it, and @ai-sdk/xai 5.0.12 demands it (2026-11-22). */
  #json(status: ItemStatus, summary: string): string {
    const id = JSON.stringify(this.#id);
    const head = `{"id":${id},"type":"reasoning","status":"${status}","summary":[${summary}]`;
    const { provider, isAlwaysEncrypted } = this.#encryption;
    if (!this.isSealed && !isAlwaysEncrypted) return `${head}}`;
    // A text that is not sealed stands in the summary, and comes back there.
    const details = this.isSealed ? this.#details.list.map((detail) => ({ detail })) : [];
    const tokens = writeTokens(provider, [...details, ...this.#callStates]);
    return `${head},"encrypted_content":${JSON.stringify(tokens)}}`;
  }
}

/** @param text as JSON */
function partJson(text: string): string {
  return `{"type":"summary_text","text":${text}}`;
}

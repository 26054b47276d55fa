/** A tool call in a Responses answer: of a function with its arguments, or of a custom tool with its input, which is one text (I4). */
import { JsonProgress } from '../shared/block-sequencer.ts';
import type { EventSink } from './client-events.ts';
import { CustomToolInput } from './custom-tool-input.ts';
import type { ItemPlace, ItemStatus, OpenItem } from './item.ts';
import type { ToolOrigin } from './request-session.ts';

/** In the item's own words. */
const KINDS = {
  function: { type: 'function_call', prefix: 'fc', member: 'arguments', event: 'function_call_arguments' },
  custom: { type: 'custom_tool_call', prefix: 'ctc', member: 'input', event: 'custom_tool_call_input' },
} as const;

/** What a call without arguments has: clients parse them. */
const NO_ARGUMENTS = '{}';

export class CallItem implements OpenItem {
  readonly openText = null;
  readonly #events: EventSink | null;
  readonly #kind: (typeof KINDS)[keyof typeof KINDS];
  readonly #id: string;
  readonly #place: string;
  /** The members that say which call it is, as JSON. */
  readonly #called: string;
  readonly #progress = new JsonProgress();
  readonly #input: CustomToolInput | null;
  /** The arguments, or the input. */
  #text = '';

  constructor(
    { idBase, index }: ItemPlace,
    callId: string,
    { kind, name, namespace }: ToolOrigin,
    events: EventSink | null,
  ) {
    this.#events = events;
    this.#kind = KINDS[kind];
    this.#input = kind === 'custom' ? new CustomToolInput() : null;
    this.#id = `${this.#kind.prefix}_${idBase}${index}`;
    this.#place = `"item_id":${JSON.stringify(this.#id)},"output_index":${index},`;
    const within = namespace === undefined ? '' : `,"namespace":${JSON.stringify(namespace)}`;
    this.#called = `"call_id":${JSON.stringify(callId)},"name":${JSON.stringify(name)}${within}`;
    events?.event('output_item.added', `"output_index":${index},"item":${this.#json('in_progress')}`);
  }

  /** Its arguments have ended: another call may begin without cutting it. */
  get isComplete(): boolean {
    return this.#input?.isComplete ?? this.#progress.isComplete;
  }

  addArguments(piece: string): void {
    this.#progress.push(piece);
    this.#add(this.#input === null ? piece : this.#input.push(piece));
  }

  close(isCut: boolean): string {
    const isCutHere = isCut && !this.isComplete;
    if (this.#input !== null) this.#add(this.#input.end());
    else if (this.#text === '' && !isCutHere) this.#add(NO_ARGUMENTS);
    const { event, member } = this.#kind;
    this.#events?.event(`${event}.done`, `${this.#place}"${member}":${JSON.stringify(this.#text)}`);
    return this.#json(isCutHere ? 'incomplete' : 'completed');
  }

  snapshot(): string {
    return this.#json('incomplete');
  }

  #add(text: string): void {
    if (text === '') return;
    this.#text += text;
    this.#events?.event(`${this.#kind.event}.delta`, `${this.#place}"delta":${JSON.stringify(text)}`);
  }

  #json(status: ItemStatus): string {
    const { type, member } = this.#kind;
    const id = JSON.stringify(this.#id);
    const text = JSON.stringify(this.#text);
    return `{"id":${id},"type":"${type}","status":"${status}",${this.#called},"${member}":${text}}`;
  }
}

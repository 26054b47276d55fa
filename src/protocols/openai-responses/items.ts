/** The output items of a response: messages, reasoning and tool calls. Each writes its own events, and its JSON when it is closed. */
import type { ChatLogprobs } from '../../canonical/logprobs.ts';
import { ReasoningDetails } from '../../canonical/reasoning-details.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { EmbeddedJson, parseJson } from '../../shared/json.ts';
import { JsonProgress } from '../../shared/json-progress.ts';
import { ByteBuffer } from '../../stream/buffers.ts';
import { frameHead } from '../../stream/sse-frame.ts';
import { encodeReasoningStates, type ReasoningState } from '../shared/reasoning-state.ts';
import { CustomToolInput } from './custom-tool-input.ts';
import type { ToolOrigin } from './session.ts';

/** Receives the events of the items. Null in its place: the response is not streamed. */
export interface EventSink {
  /**
   * @param type without `response.`
   * @param members the JSON members between the type and the number, without braces
   */
  event(type: string, members: string): void;
}

interface OpenItem {
  /** The item's open text, if a further piece of it is a single event. */
  readonly openText: OpenText | null;
  /**
   * Writes the item's last events, except `output_item.done`.
   * @param isTruncated whether the output ends within the item
   * @returns the item's JSON
   */
  close(isTruncated: boolean): string;
  /** The item's JSON as it stands, for a response that failed. */
  snapshot(): string;
}

/** An open text, for the fast path: a further piece stands between `head` and `tail` in its event. */
export interface OpenText {
  readonly of: 'message' | 'reasoning' | 'call';
  /** The frame up to the quote before the piece. */
  readonly head: string;
  /** What stands between the piece and the event's number. */
  readonly tail: string;
  readonly text: Pick<TextAccumulator, 'addRaw'>;
}

/** Collects a text, because the protocol repeats it. Pieces are strings, or the bytes of JSON strings that are decoded only when read. */
class TextAccumulator {
  #text = '';
  /** The bytes since the last string. */
  readonly #raw = new ByteBuffer();

  add(piece: string): void {
    this.#text = this.read() + piece;
  }

  /** Adds the content of a JSON string, which stands between `from` and `to`. */
  addRaw(bytes: Uint8Array, from: number, to: number): void {
    this.#raw.append(bytes, from, to);
  }

  read(): string {
    if (this.#raw.length > 0) {
      const piece = parseJson(`"${decoder.decode(this.#raw.take())}"`);
      if (typeof piece === 'string') this.#text += piece;
    }
    return this.#text;
  }
}

// A byte order mark at the start of a piece is a character of the text.
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** What stands between an event's members and its number, the last member. */
export const BEFORE_NUMBER = ',"sequence_number":';

/** An event's frame up to its members. */
function eventHead(type: string): string {
  return `${frameHead(`response.${type}`)}{"type":"response.${type}",`;
}

export interface ItemPlace {
  /** The common part of the ids of all items of a response. */
  readonly idBase: string;
  /** The index in `output`. */
  readonly index: number;
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** A message. Its parts are texts and refusals, one open at a time. */
export class MessageItem implements OpenItem {
  readonly #events: EventSink | null;
  readonly #id: string;
  readonly #place: string;
  /** The closed parts, as JSON. */
  readonly #parts: string[] = [];
  #part: MessagePart | null = null;
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

  close(isTruncated: boolean): string {
    this.#closePart();
    return this.#json(isTruncated ? 'incomplete' : 'completed');
  }

  snapshot(): string {
    const open =
      this.#part === null ? [] : [messagePartJson(this.#part, JSON.stringify(this.#part.text.read()))];
    return this.#json('incomplete', [...this.#parts, ...open]);
  }

  #open(type: MessagePart['type']): MessagePart {
    if (this.#part?.type === type) return this.#part;
    this.#closePart();
    const place = `${this.#place}"content_index":${this.#parts.length},`;
    const part = { type, place, text: new TextAccumulator(), logprobs: [] };
    this.#part = part;
    this.#events?.event('content_part.added', `${place}"part":${messagePartJson(part, '""')}`);
    if (type === 'output_text') {
      const head = `${eventHead('output_text.delta')}${place}"delta":"`;
      const tail = `","logprobs":[]${BEFORE_NUMBER}`;
      this.openText = { of: 'message', head, tail, text: part.text };
    }
    return part;
  }

  #closePart(): void {
    const part = this.#part;
    if (part === null) return;
    const { type, place, logprobs } = part;
    const text = JSON.stringify(part.text.read());
    const json = messagePartJson(part, text);
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

interface MessagePart {
  readonly type: 'output_text' | 'refusal';
  /** `item_id`, `output_index` and `content_index`, with a comma at the end. */
  readonly place: string;
  readonly text: TextAccumulator;
  /** The entries of each piece as JSON, without brackets. */
  readonly logprobs: string[];
}

/** @param text as JSON */
function messagePartJson({ type, logprobs }: MessagePart, text: string): string {
  if (type === 'refusal') return `{"type":"refusal","refusal":${text}}`;
  return `{"type":"output_text","text":${text},"annotations":[],"logprobs":[${logprobs.join(',')}]}`;
}

/** Responses requires `bytes` and numbers, which are optional in chat. */
function writeLogprobs(logprobs: ChatLogprobs['content']): string {
  if (logprobs === null) return '[]';
  const entries = logprobs.map(({ token, logprob, bytes, top_logprobs }) => ({
    token,
    logprob: logprob ?? UNLIKELY,
    bytes: bytes ?? [],
    top_logprobs: top_logprobs.map((top) => ({
      token: top.token,
      logprob: top.logprob ?? UNLIKELY,
      bytes: top.bytes ?? [],
    })),
  }));
  return JSON.stringify(entries);
}

/** OpenAI's value for a token that is not among the most likely ones. */
const UNLIKELY = -9999;

export interface Encryption {
  /** The id of the provider that can read the states. */
  readonly provider: string;
  /** Whether reasoning without states has `encrypted_content` too. */
  readonly isAlwaysEncrypted: boolean;
}

/** Reasoning. Its text is a summary, which every client shows. What the provider wants back is in `encrypted_content`. */
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

  /** Whether the item has what its provider wants back. Further reasoning then belongs to another item. */
  get isSealed(): boolean {
    return this.#callStates.length > 0 || this.#details.hasOpaqueData;
  }

  addText(text: string): void {
    if (!this.#hasText) {
      this.#hasText = true;
      this.#events?.event('reasoning_summary_part.added', `${this.#place}"part":${summaryPartJson('""')}`);
      const head = `${eventHead('reasoning_summary_text.delta')}${this.#place}"delta":"`;
      this.openText = { of: 'reasoning', head, tail: `"${BEFORE_NUMBER}`, text: this.#text };
    }
    this.#text.add(text);
    this.#events?.event('reasoning_summary_text.delta', `${this.#place}"delta":${JSON.stringify(text)}`);
  }

  addState(state: ReasoningState): void {
    if ('detail' in state) this.#details.add([state.detail]);
    else this.#callStates.push(state);
    if (this.isSealed) this.openText = null;
  }

  close(isTruncated: boolean): string {
    const status = isTruncated && !this.isSealed ? 'incomplete' : 'completed';
    if (!this.#hasText) return this.#json(status, '');
    const text = JSON.stringify(this.#text.read());
    this.#events?.event('reasoning_summary_text.done', `${this.#place}"text":${text}`);
    this.#events?.event('reasoning_summary_part.done', `${this.#place}"part":${summaryPartJson(text)}`);
    return this.#json(status, summaryPartJson(text));
  }

  snapshot(): string {
    const summary = this.#hasText ? summaryPartJson(JSON.stringify(this.#text.read())) : '';
    return this.#json('incomplete', summary);
  }

  /** OpenAI sends no status. DeepSeek and xAI do, and @ai-sdk/xai 5.0.12 requires it (2026-11-22). */
  #json(status: ItemStatus, summary: string): string {
    const id = JSON.stringify(this.#id);
    const head = `{"id":${id},"type":"reasoning","status":"${status}","summary":[${summary}]`;
    const { provider, isAlwaysEncrypted } = this.#encryption;
    if (!this.isSealed && !isAlwaysEncrypted) return `${head}}`;
    // Details without a signature only repeat the summary.
    const details = this.isSealed ? this.#details.list.map((detail) => ({ detail })) : [];
    const states = encodeReasoningStates(provider, [...details, ...this.#callStates]);
    return `${head},"encrypted_content":${JSON.stringify(states)}}`;
  }
}

/** The ids of `ReasoningItem`. Providers do not keep such an item, and reject requests that refer to it. */
const OWN_REASONING_ID = /^rs_[0-9a-f]{32}_\d+$/;

/** Whether Weir itself made this id of a reasoning item, so that no provider knows it. */
export function isOwnReasoningId(id: unknown): boolean {
  return typeof id === 'string' && OWN_REASONING_ID.test(id);
}

/** @param text as JSON */
function summaryPartJson(text: string): string {
  return `{"type":"summary_text","text":${text}}`;
}

/** A call of a function, with JSON arguments, of a custom tool, with one text as its input, or of a search for tools, with an object. */
export class CallItem implements OpenItem {
  /** Null where the arguments are not sent as they come, and before the first piece. */
  openText: OpenText | null = null;
  readonly #events: EventSink | null;
  readonly #names: (typeof CALL_NAMES)[keyof typeof CALL_NAMES];
  readonly #id: string;
  readonly #place: string;
  /** The call's id and its tool, as JSON members. */
  readonly #callMembers: string;
  readonly #progress = new JsonProgress();
  readonly #customInput: CustomToolInput | null;
  /** The arguments, or the input. */
  readonly #text = new TextAccumulator();

  constructor(
    { idBase, index }: ItemPlace,
    callId: string,
    { kind, name, namespace }: ToolOrigin,
    events: EventSink | null,
  ) {
    this.#events = events;
    this.#names = CALL_NAMES[kind];
    this.#customInput = kind === 'custom' ? new CustomToolInput() : null;
    this.#id = `${this.#names.prefix}_${idBase}${index}`;
    this.#place = `"item_id":${JSON.stringify(this.#id)},"output_index":${index},`;
    const namespaceMember = namespace === undefined ? '' : `,"namespace":${JSON.stringify(namespace)}`;
    const toolMembers =
      kind === 'tool_search' ? '"execution":"client"' : `"name":${JSON.stringify(name)}${namespaceMember}`;
    this.#callMembers = `"call_id":${JSON.stringify(callId)},${toolMembers}`;
    events?.event('output_item.added', `"output_index":${index},"item":${this.#json('in_progress')}`);
  }

  /** Whether the arguments have ended. */
  get isComplete(): boolean {
    return this.#customInput?.isComplete ?? this.#progress.isComplete;
  }

  addArguments(piece: string): void {
    this.#progress.push(piece);
    const { event } = this.#names;
    if (this.#customInput === null && event !== null && piece !== '') this.openText ??= this.#open(event);
    this.#add(this.#customInput === null ? piece : this.#customInput.push(piece));
  }

  /** Adds a piece of the arguments whose event is written: the content of a JSON string, which stands between `from` and `to`. */
  addRaw(bytes: Uint8Array, from: number, to: number): void {
    this.#progress.pushRaw(bytes, from, to);
    this.#text.addRaw(bytes, from, to);
  }

  close(isTruncated: boolean): string {
    const isIncomplete = isTruncated && !this.isComplete;
    if (this.#customInput !== null) this.#add(this.#customInput.end());
    else if (this.#text.read() === '' && !isIncomplete) this.#add(NO_ARGUMENTS);
    const { member } = this.#names;
    this.#event('done', `"${member}":${JSON.stringify(this.#text.read())}`);
    return this.#json(isIncomplete ? 'incomplete' : 'completed');
  }

  snapshot(): string {
    return this.#json('incomplete');
  }

  #open(event: string): OpenText {
    const head = `${eventHead(`${event}.delta`)}${this.#place}"delta":"`;
    return { of: 'call', head, tail: `"${BEFORE_NUMBER}`, text: this };
  }

  #add(text: string): void {
    if (text === '') return;
    this.#text.add(text);
    this.#event('delta', `"delta":${JSON.stringify(text)}`);
  }

  #event(moment: 'delta' | 'done', members: string): void {
    const { event } = this.#names;
    if (event !== null) this.#events?.event(`${event}.${moment}`, `${this.#place}${members}`);
  }

  #json(status: ItemStatus): string {
    const { type, member, event } = this.#names;
    const id = JSON.stringify(this.#id);
    const given = this.#text.read();
    const text = JSON.stringify(event === null ? argumentsObject(given, new EmbeddedJson()) : given);
    return `{"id":${id},"type":"${type}","status":"${status}",${this.#callMembers},"${member}":${text}}`;
  }
}

/** The protocol's names for each kind of call. Without an event the arguments are an object in the item alone. */
const CALL_NAMES = {
  function: { type: 'function_call', prefix: 'fc', member: 'arguments', event: 'function_call_arguments' },
  custom: { type: 'custom_tool_call', prefix: 'ctc', member: 'input', event: 'custom_tool_call_input' },
  tool_search: { type: 'tool_search_call', prefix: 'tsc', member: 'arguments', event: null },
} as const;

/** Clients parse the arguments, so they can't be empty. */
const NO_ARGUMENTS = '{}';

/** A response while it is written: its output items, one open at a time, and the response object. */
import type { ChatChoice, ChatChunk, ToolCallDelta } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import { type ChatLogprobs, sizeOfLogprobs } from '../../canonical/logprobs.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import type { Usage } from '../../canonical/usage.ts';
import { type BlockPiece, BlockSequencer, type BlockWriter } from '../shared/block-sequencer.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import type { ReasoningState } from '../shared/reasoning-state.ts';
import type { StreamError } from './client-errors.ts';
import {
  CallItem,
  type EventSink,
  type ItemPlace,
  MessageItem,
  type OpenText,
  ReasoningItem,
} from './items.ts';
import type { ResponsesSession } from './session.ts';

interface ResponseObjectOptions {
  readonly session: ResponsesSession;
  readonly writer: Pick<WriterOptions, 'requestId' | 'model' | 'now'>;
  readonly events: EventSink | null;
}

/** The response object of one output: its items as they grow, and its JSON at the start, at the end and after a failure. */
export class ResponseObject {
  readonly #options: ResponseObjectOptions;
  readonly #id: string;
  readonly #created: number;
  readonly output: OutputItems;
  #model: string;
  #serviceTier: string;
  #usage: Usage | null = null;
  #finish: FinishReason | null = null;

  /** @param first the first chunk, or null if the response failed before it */
  constructor(options: ResponseObjectOptions, first: ChatChunk | null) {
    const { session, writer, events } = options;
    const { requestId, model, now } = writer;
    this.#options = options;
    const idBase = digitsOf(requestId);
    this.#id = responseIdOf(requestId);
    this.#created = session.createdAt ?? first?.created ?? now();
    this.#model = first?.model ?? model;
    this.#serviceTier = first?.service_tier ?? session.serviceTier;
    const provider = this.#model.split('/', 1)[0] ?? '';
    this.output = new OutputItems({ idBase: `${idBase}_`, session, provider, events });
  }

  add({ model, service_tier, choices, usage }: ChatChunk): void {
    this.#model = model;
    this.#serviceTier = service_tier ?? this.#serviceTier;
    this.#usage = usage ?? this.#usage;
    for (const choice of choices) {
      // The protocol has one choice. A chunk may update it several times.
      if (choice.index !== 0) continue;
      this.#finish ??= choice.finish_reason;
      this.output.add(choice);
    }
  }

  /** The object at the end of a response without a failure. */
  get ending(): { readonly status: 'completed' | 'incomplete'; readonly json: string } {
    const reason = this.#finish === null ? undefined : INCOMPLETE_REASONS[this.#finish];
    const status = reason === undefined ? 'completed' : 'incomplete';
    return { status, json: this.#json(status, { reason, hasOutput: true }) };
  }

  /** The object at the beginning of a stream. */
  get inProgress(): string {
    return this.#json('in_progress', { hasOutput: false });
  }

  /** The object of a failed response, with its output so far. */
  failed({ code, message }: StreamError): string {
    return this.#json('failed', { hasOutput: true, error: { code, message } });
  }

  #json(
    status: string,
    state: {
      readonly hasOutput: boolean;
      readonly reason?: string | undefined;
      readonly error?: { readonly code: string; readonly message: string };
    },
  ): string {
    const { session, writer } = this.#options;
    const completedAt = status === 'completed' ? Math.max(writer.now(), this.#created) : null;
    const head = {
      id: this.#id,
      object: 'response',
      created_at: this.#created,
      status,
      completed_at: completedAt,
      error: state.error ?? null,
      incomplete_details: state.reason === undefined ? null : { reason: state.reason },
      model: this.#model,
      service_tier: this.#serviceTier,
      usage: state.hasOutput && this.#usage !== null ? writeUsage(this.#usage) : null,
    };
    const output = state.hasOutput ? this.output.json : '';
    return `${JSON.stringify(head).slice(0, -1)},"output":[${output}],${session.echo}}`;
  }
}

/** The id of the response to a request. */
export function responseIdOf(requestId: string): string {
  return `resp_${digitsOf(requestId)}`;
}

function digitsOf(requestId: string): string {
  return requestId.replaceAll('-', '');
}

/** Why an incomplete response ended, in the protocol's words. */
const INCOMPLETE_REASONS: { readonly [R in FinishReason]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** Both details are always present, with 0 for none: clients with a schema require them. */
export function writeUsage({
  prompt_tokens,
  completion_tokens,
  total_tokens,
  prompt_tokens_details,
  completion_tokens_details,
  cost,
}: Usage) {
  const cache_write_tokens = prompt_tokens_details?.cache_write_tokens;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: {
      cached_tokens: prompt_tokens_details?.cached_tokens ?? 0,
      ...(cache_write_tokens === undefined ? {} : { cache_write_tokens }),
    },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: completion_tokens_details?.reasoning_tokens ?? 0 },
    total_tokens,
    ...(cost === undefined ? {} : { cost }),
  };
}

/** OpenAI's bound on a call's id: https://platform.openai.com/docs/api-reference/responses (2026-11-22). */
const MAX_CALL_ID_CHARS = 64;

/** The estimated size of an item or a part besides its text, in UTF-16 units. */
const ENTRY_CHARS = 256;

/** A part of a delta that belongs to one item. */
type ItemPiece = BlockPiece &
  (
    | { readonly kind: 'reasoning' | 'refusal'; readonly call: null }
    | { readonly kind: 'text'; readonly call: null; readonly logprobs: ChatLogprobs | null }
    | { readonly kind: 'call'; readonly call: ItemCall }
  );

/** A tool call, with the id that the client receives. */
interface ItemCall {
  /** That of its fragments. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
}

type Open =
  | { readonly kind: 'reasoning'; readonly item: ReasoningItem }
  | { readonly kind: 'message'; readonly item: MessageItem }
  | { readonly kind: 'call'; readonly call: ItemCall; readonly item: CallItem };

interface OutputOptions {
  /** The common part of the items' ids. */
  readonly idBase: string;
  readonly session: ResponsesSession;
  /** The id of the provider that produces the output. */
  readonly provider: string;
  readonly events: EventSink | null;
}

/** The output items, in the order in which they begin. */
class OutputItems implements BlockWriter<ItemPiece> {
  readonly #options: OutputOptions;
  readonly #sequencer = new BlockSequencer<ItemPiece>(this);
  /** The closed items, as JSON. */
  readonly #items: string[] = [];
  /** By the index of their fragments. */
  readonly #calls = new Map<number, ItemCall>();
  readonly #callIds = new Set<string>();
  #open: Open | null = null;
  /** Reasoning states that the open item can't hold. */
  #states: ReasoningState[] = [];
  /** The kind of the last piece. A piece of another kind begins an item or a part. */
  #lastKind: ItemPiece['kind'] | null = null;
  /** Whether the items that are open at the end are incomplete. */
  #isTruncated = false;
  /** The estimated size of the output so far, in UTF-16 units. */
  heldChars = 0;
  /** Changes whenever `openText` does. */
  revision = 0;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  /** The open text, if a further piece of it is a single event: nothing waits for the end of a call. */
  get openText(): OpenText | null {
    return this.#sequencer.waitingChars > 0 ? null : (this.#open?.item.openText ?? null);
  }

  /** The items as JSON, without brackets. An open item is included as it stands. */
  get json(): string {
    return [...this.#items, ...(this.#open === null ? [] : [this.#open.item.snapshot()])].join(',');
  }

  get openCall(): ItemCall | null {
    return this.#open?.kind === 'call' ? this.#open.call : null;
  }

  get isCallComplete(): boolean {
    return this.#open?.kind === 'call' && this.#open.item.isComplete;
  }

  /** Adds a chunk's update of the choice. */
  add({ delta, logprobs, finish_reason }: ChatChoice): void {
    const before = this.openText;
    this.heldChars += sizeOfLogprobs(logprobs);
    const { reasoning_content = '', reasoning_details = [], content = '', refusal = '' } = delta;
    if (reasoning_content !== '') this.#add({ kind: 'reasoning', call: null, text: reasoning_content });
    for (const detail of reasoning_details) this.#addState({ detail });
    // Only a message has a place for logprobs: those of a call's tokens are dropped.
    const hasLogprobs = logprobs?.content != null && this.#open?.kind === 'message';
    if (content !== '' || hasLogprobs) this.#add({ kind: 'text', call: null, text: content, logprobs });
    if (refusal !== '') this.#add({ kind: 'refusal', call: null, text: refusal });
    for (const fragment of delta.tool_calls ?? []) this.#addFragment(fragment);
    if (finish_reason !== null) this.#finish(finish_reason);
    if (this.openText !== before) this.revision++;
  }

  write(piece: ItemPiece): void {
    if (!this.#isOpenFor(piece)) {
      this.#close();
      this.#flushStates();
      this.#open = this.#openItem(piece);
    }
    const open = this.#open;
    if (open?.kind === 'reasoning') open.item.addText(piece.text);
    else if (open?.kind === 'call') open.item.addArguments(piece.text);
    else if (piece.kind === 'refusal') open?.item.addRefusal(piece.text);
    else open?.item.addText(piece.text, piece.kind === 'text' ? piece.logprobs : null);
  }

  /** Many short pieces would take more memory than their text. */
  canJoin(last: ItemPiece, next: ItemPiece): boolean {
    return (
      last.kind === next.kind &&
      [last, next].every((piece) => piece.kind !== 'text' || piece.logprobs === null)
    );
  }

  #addFragment(fragment: ToolCallDelta): void {
    const { index, extra_content } = fragment;
    if ('id' in fragment) this.#calls.set(index, this.#newCall(index, fragment.id, fragment.function.name));
    const call = this.#calls.get(index);
    if (call === undefined) return;
    if (extra_content !== undefined) this.#addState({ call: call.id, extra_content });
    this.#add({ kind: 'call', call, text: fragment.function.arguments });
  }

  /** An id that is too long for clients or that another call has is replaced. */
  #newCall(index: number, upstreamId: string, name: string): ItemCall {
    const isValid = upstreamId.length <= MAX_CALL_ID_CHARS && !this.#callIds.has(upstreamId);
    const id = isValid ? upstreamId : toolCallId(`${upstreamId} ${this.#callIds.size}`);
    this.#callIds.add(id);
    return { index, id, name };
  }

  #addState(state: ReasoningState): void {
    this.heldChars += ENTRY_CHARS + JSON.stringify(state).length;
    const open = this.#open;
    if (open?.kind === 'reasoning' && !open.item.isSealed) open.item.addState(state);
    else this.#states.push(state);
  }

  #add(piece: ItemPiece): void {
    this.heldChars += piece.text.length + (piece.kind === this.#lastKind ? 0 : ENTRY_CHARS);
    this.#lastKind = piece.kind;
    this.#sequencer.add(piece);
  }

  #isOpenFor(piece: ItemPiece): boolean {
    const open = this.#open;
    if (open === null) return false;
    if (open.kind === 'call') return piece.call === open.call;
    if (open.kind === 'reasoning') return piece.kind === 'reasoning' && !open.item.isSealed;
    return piece.kind === 'text' || piece.kind === 'refusal';
  }

  #openItem({ kind, call }: ItemPiece): Open {
    const { session, events } = this.#options;
    if (kind === 'reasoning') return { kind, item: this.#openReasoning() };
    if (call === null) return { kind: 'message', item: new MessageItem(this.#place, events) };
    const tool = session.tools.get(call.name) ?? { kind: 'function', name: call.name, namespace: undefined };
    return { kind: 'call', call, item: new CallItem(this.#place, call.id, tool, events) };
  }

  #openReasoning(): ReasoningItem {
    const { session, provider, events } = this.#options;
    const encryption = { provider, isAlwaysEncrypted: session.wantsEncrypted };
    return new ReasoningItem(this.#place, encryption, events);
  }

  get #place(): ItemPlace {
    return { idBase: this.#options.idBase, index: this.#items.length };
  }

  #close(isTruncated = this.#isTruncated): void {
    const open = this.#open;
    if (open === null) return;
    const json = open.item.close(isTruncated);
    this.#options.events?.event('output_item.done', `"output_index":${this.#items.length},"item":${json}`);
    this.#items.push(json);
    this.#open = null;
  }

  /** A state that belongs to a call or to no text becomes a separate reasoning item. */
  #flushStates(): void {
    if (this.#states.length === 0) return;
    const item = this.#openReasoning();
    for (const state of this.#states) item.addState(state);
    this.#states = [];
    this.#open = { kind: 'reasoning', item };
    this.#close(false);
  }

  #finish(reason: FinishReason): void {
    this.#isTruncated = reason === 'length' || reason === 'content_filter';
    this.#sequencer.finish();
    this.#close();
    this.#flushStates();
    this.#isTruncated = false;
  }
}

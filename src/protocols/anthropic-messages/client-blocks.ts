/** Splits deltas into the content blocks of a message, for the streamed and the non-streaming writer. */
import type { Delta, ToolCallDelta } from '../../canonical/chunk.ts';
import type { JsonObject } from '../../shared/json.ts';
import { JsonProgress } from '../../shared/json-progress.ts';
import { type BlockPiece, BlockSequencer, type BlockWriter } from '../shared/block-sequencer.ts';
import { hasReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';

export type OpenBlock =
  | { readonly kind: 'text' }
  | { readonly kind: 'reasoning' }
  | { readonly kind: 'call'; readonly id: string; readonly name: string };

/** Receives the blocks in order. Each open block is closed before the next one. */
export interface BlockSink {
  open(block: OpenBlock): void;
  /** A piece of the open block's text, or of its call's arguments. */
  text(piece: string): void;
  /** The signature of the open reasoning block, which is closed next. */
  sign(detail: JsonObject): void;
  close(): void;
  /** A reasoning state without a text. No block is open. */
  reasoningState(state: ReasoningState): void;
}

interface Call {
  readonly id: string;
  readonly name: string;
}

type Piece = BlockPiece &
  (
    | { readonly kind: 'text' | 'reasoning'; readonly call: null }
    | { readonly kind: 'call'; readonly call: Call }
    | { readonly kind: 'sign'; readonly call: null; readonly detail: JsonObject }
    | { readonly kind: 'state'; readonly call: null; readonly state: ReasoningState }
  );

export class MessageBlocks implements BlockWriter<Piece> {
  readonly #sink: BlockSink;
  readonly #maxWaitingChars: number;
  readonly #sequencer = new BlockSequencer<Piece>(this);
  /** By the index of their fragments. */
  readonly #calls = new Map<number, Call>();
  #open: OpenBlock['kind'] | null = null;
  #openCall: Call | null = null;
  #progress = new JsonProgress();
  #hasArguments = false;

  /** @param maxWaitingChars the bound on what waits for an open call, in UTF-16 units */
  constructor(sink: BlockSink, maxWaitingChars: number) {
    this.#sink = sink;
    this.#maxWaitingChars = maxWaitingChars;
  }

  get openKind(): OpenBlock['kind'] | null {
    return this.#open;
  }

  get openCall(): Call | null {
    return this.#openCall;
  }

  get isCallComplete(): boolean {
    return this.#progress.isComplete;
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** @returns false if more waits than the bound allows: the message is then invalid */
  read(delta: Delta): boolean {
    const reasoning = delta.reasoning_content ?? '';
    const details = delta.reasoning_details ?? [];
    if (details.length === 0) this.#addText('reasoning', reasoning);
    else this.#addDetails(details, reasoning);
    this.#addText('text', delta.content ?? '');
    this.#addText('text', delta.refusal ?? '');
    for (const call of delta.tool_calls ?? []) this.#addFragment(call);
    return this.#sequencer.waitingChars <= this.#maxWaitingChars;
  }

  /** Writes what waits, and closes the open block. */
  finish(): void {
    this.#sequencer.finish();
    this.#close();
  }

  write(piece: Piece): void {
    switch (piece.kind) {
      case 'call':
        return this.#writeCall(piece.call, piece.text);
      case 'state':
        this.#close();
        return this.#sink.reasoningState(piece.state);
      case 'sign':
        if (this.#open !== 'reasoning') this.#openBlock({ kind: 'reasoning' });
        this.#sink.sign(piece.detail);
        return this.#close();
      default:
        if (this.#open !== piece.kind) this.#openBlock({ kind: piece.kind });
        this.#sink.text(piece.text);
    }
  }

  #addText(kind: 'text' | 'reasoning', text: string): void {
    if (text !== '') this.#sequencer.add({ kind, call: null, text });
  }

  #addState(state: ReasoningState): void {
    const extraChars = JSON.stringify(state).length;
    this.#sequencer.add({ kind: 'state', call: null, text: '', extraChars, state });
  }

  /** If the details contain all text of the reasoning, each signature closes the block of its text. */
  #addDetails(details: readonly JsonObject[], reasoning: string): void {
    const haveText = details.some(hasReasoningState) && details.map(textOf).join('') === reasoning;
    if (!haveText) this.#addText('reasoning', reasoning);
    for (const detail of details) {
      if (haveText) this.#addText('reasoning', textOf(detail));
      if (!hasReasoningState(detail)) continue;
      if (detail.data !== undefined) this.#addState({ detail });
      else {
        const extraChars = JSON.stringify(detail).length;
        this.#sequencer.add({ kind: 'sign', call: null, text: '', extraChars, detail });
      }
    }
  }

  #addFragment(fragment: ToolCallDelta): void {
    const { index, extra_content } = fragment;
    if ('id' in fragment) this.#calls.set(index, { id: fragment.id, name: fragment.function.name });
    const call = this.#calls.get(index);
    if (call === undefined) return;
    if (extra_content !== undefined) this.#addState({ call: call.id, extra_content });
    this.#sequencer.add({ kind: 'call', call, text: fragment.function.arguments });
  }

  /** Text after the end of the arguments is dropped: Anthropic's SDK rejects the whole message for it. */
  #writeCall(call: Call, text: string): void {
    if (this.#openCall !== call) {
      this.#openBlock({ kind: 'call', id: call.id, name: call.name });
      this.#openCall = call;
      this.#progress = new JsonProgress();
      this.#hasArguments = false;
    }
    const own = text.slice(0, this.#progress.push(text));
    // Arguments of white space alone are an empty object, as absent ones are.
    this.#hasArguments ||= own.trim() !== '';
    if (own !== '' && this.#hasArguments) this.#sink.text(own);
  }

  #openBlock(block: OpenBlock): void {
    this.#close();
    this.#open = block.kind;
    this.#sink.open(block);
  }

  #close(): void {
    if (this.#open === null) return;
    this.#open = null;
    this.#openCall = null;
    this.#sink.close();
  }
}

function textOf({ text, summary }: JsonObject): string {
  if (typeof text === 'string') return text;
  return typeof summary === 'string' ? summary : '';
}

/** Puts an answer's deltas into blocks, one open at a time: what comes for another block while a call is open waits for its turn (I3). */
import type { Delta, ToolCallDelta } from '../../canonical/chunk.ts';
import type { JsonObject } from '../../shared/json.ts';
import { JsonProgress } from './json-progress.ts';
import { hasReasoningState, type ReasoningState } from './reasoning-state.ts';

export type OpenBlock =
  | { readonly kind: 'text' }
  | { readonly kind: 'reasoning' }
  | { readonly kind: 'call'; readonly id: string; readonly name: string };

/** What becomes of the blocks, in order; each that is opened is closed before the next. */
export interface BlockSink {
  open(block: OpenBlock): void;
  /** A piece of the open block's text, or of its call's arguments. */
  text(piece: string): void;
  /** The signature of the reasoning block that is open; it is closed next. */
  sign(detail: JsonObject): void;
  close(): void;
  /** A token that belongs to no block's text, while none is open. */
  token(token: ReasoningState): void;
}

/** What waits: a call, by its index, or a run of what is none. */
type Waiting = WaitingCall | { readonly kind: 'run'; readonly pieces: Piece[] };

interface WaitingCall {
  readonly kind: 'call';
  readonly index: number;
  readonly id: string;
  readonly name: string;
  json: string;
}

type Piece =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'sign'; readonly detail: JsonObject }
  | { readonly kind: 'token'; readonly token: ReasoningState };

/** The open call's index, and how far its arguments are. */
interface Call {
  readonly index: number;
  readonly progress: JsonProgress;
}

/** What an entry costs beside its text, in UTF-16 units. */
const ENTRY_CHARS = 64;

export class BlockSequencer {
  readonly #sink: BlockSink;
  readonly #maxWaitingChars: number;
  #open: OpenBlock['kind'] | null = null;
  #call: Call | null = null;
  readonly #calls = new Map<number, string>();
  readonly #waiting: Waiting[] = [];
  /** By their index: a search at every fragment would cost the square of the calls. */
  readonly #waitingCalls = new Map<number, WaitingCall>();
  #waitingChars = 0;

  /** @param maxWaitingChars what may wait, in UTF-16 units (B1) */
  constructor(sink: BlockSink, maxWaitingChars: number) {
    this.#sink = sink;
    this.#maxWaitingChars = maxWaitingChars;
  }

  get openKind(): OpenBlock['kind'] | null {
    return this.#open;
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** @returns false where more waits than may: nothing of it is to be used then */
  read(delta: Delta): boolean {
    const reasoning = delta.reasoning_content ?? '';
    const details = delta.reasoning_details ?? [];
    if (details.length === 0) this.#piece({ kind: 'reasoning', text: reasoning });
    else this.#details(details, reasoning);
    if (delta.content !== undefined) this.#piece({ kind: 'text', text: delta.content });
    if (delta.refusal !== undefined) this.#piece({ kind: 'text', text: delta.refusal });
    for (const call of delta.tool_calls ?? []) this.#fragment(call);
    return this.#waitingChars <= this.#maxWaitingChars;
  }

  /** Nothing more comes: what waits has its turn, and what is open is closed. */
  finish(): void {
    this.#close();
    for (const next of this.#waiting.splice(0)) {
      this.#begin(next);
      this.#close();
    }
    this.#waitingChars = 0;
  }

  /** Signed reasoning says for each signature which of the text it is for: the details' own text is then taken, where it is all of it. */
  #details(details: readonly JsonObject[], reasoning: string): void {
    const isAll = details.some(hasReasoningState) && details.map(textOf).join('') === reasoning;
    if (!isAll) this.#piece({ kind: 'reasoning', text: reasoning });
    for (const detail of details) {
      if (isAll) this.#piece({ kind: 'reasoning', text: textOf(detail) });
      if (!hasReasoningState(detail)) continue;
      const isSigned = detail.data === undefined;
      this.#piece(isSigned ? { kind: 'sign', detail } : { kind: 'token', token: { detail } });
    }
  }

  #fragment(fragment: ToolCallDelta): void {
    const { index, extra_content } = fragment;
    if ('id' in fragment) this.#calls.set(index, fragment.id);
    const id = this.#calls.get(index);
    if (id === undefined) return;
    if (extra_content !== undefined) this.#piece({ kind: 'token', token: { call: id, extra_content } });
    const json = fragment.function.arguments;
    if (this.#call?.index === index) return this.#goOn(this.#call, json);
    const waiting = this.#waitingCalls.get(index);
    if (waiting !== undefined) {
      waiting.json += json;
      this.#waitingChars += json.length;
      return;
    }
    // What comes for a call whose arguments were whole is no part of them.
    if (!('id' in fragment)) return;
    this.#enter({ kind: 'call', index, id, name: fragment.function.name, json });
  }

  #piece(piece: Piece): void {
    if ('text' in piece && piece.text === '') return;
    if (this.#isFree()) return this.#write(piece);
    const last = this.#waiting.at(-1);
    if (last?.kind === 'run') last.pieces.push(piece);
    else this.#waiting.push({ kind: 'run', pieces: [piece] });
    this.#waitingChars += sizeOf(piece);
  }

  #enter(call: WaitingCall): void {
    if (this.#isFree()) return this.#begin(call);
    this.#waiting.push(call);
    this.#waitingCalls.set(call.index, call);
    this.#waitingChars += ENTRY_CHARS + call.json.length;
  }

  /** Whether another block may have its turn: not while a call's arguments are in the making. */
  #isFree(): boolean {
    return this.#waiting.length === 0 && (this.#call === null || this.#call.progress.isWhole);
  }

  #goOn(call: Call, json: string): void {
    this.#arguments(call, json);
    while (this.#call?.progress.isWhole === true || this.#call === null) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingChars -= next.kind === 'call' ? ENTRY_CHARS + next.json.length : 0;
      if (next.kind === 'run') for (const piece of next.pieces) this.#waitingChars -= sizeOf(piece);
      this.#begin(next);
    }
  }

  #begin(next: Waiting): void {
    if (next.kind === 'run') {
      for (const piece of next.pieces) this.#write(piece);
      return;
    }
    const { index, id, name, json } = next;
    this.#waitingCalls.delete(index);
    this.#openBlock({ kind: 'call', id, name });
    this.#call = { index, progress: new JsonProgress() };
    this.#arguments(this.#call, json);
  }

  /** Up to where they are whole: Anthropic's SDK throws the whole message away for one sign behind that. */
  #arguments({ progress }: Call, json: string): void {
    const own = json.slice(0, progress.push(json));
    if (own !== '') this.#sink.text(own);
  }

  #write(piece: Piece): void {
    if (piece.kind === 'token') {
      this.#close();
      this.#sink.token(piece.token);
    } else if (piece.kind === 'sign') {
      if (this.#open !== 'reasoning') this.#openBlock({ kind: 'reasoning' });
      this.#sink.sign(piece.detail);
      this.#close();
    } else {
      if (this.#open !== piece.kind) this.#openBlock({ kind: piece.kind });
      this.#sink.text(piece.text);
    }
  }

  #openBlock(block: OpenBlock): void {
    this.#close();
    this.#open = block.kind;
    this.#sink.open(block);
  }

  #close(): void {
    if (this.#open === null) return;
    this.#open = null;
    this.#call = null;
    this.#sink.close();
  }
}

function textOf({ text, summary }: JsonObject): string {
  if (typeof text === 'string') return text;
  return typeof summary === 'string' ? summary : '';
}

function sizeOf(piece: Piece): number {
  if ('text' in piece) return ENTRY_CHARS + piece.text.length;
  return ENTRY_CHARS + JSON.stringify(piece).length;
}

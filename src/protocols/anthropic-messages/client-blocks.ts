/** Splits deltas into the content blocks of a message, for the streamed and the non-streaming writer. */
import type { Delta, ToolCallDelta } from '../../canonical/chunk.ts';
import type { DocumentCitation } from '../../canonical/citations.ts';
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
  /** What the open text block cites. */
  cite(citation: DocumentCitation): void;
  /** A reasoning state without a text. No block is open. */
  reasoningState(state: ReasoningState): void;
}

interface MessageCall {
  /** That of its fragments. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
}

/** How the arguments of a call are written. `unknown`: too little has come to decide. */
type InputForm = 'unknown' | 'passed' | 'wrapped';

/**
 * The input of a call must be an object. Another value of JSON is the text of its only member, with the name that Anthropic proposes:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming (2026-11).
 */
export const INVALID_JSON = 'INVALID_JSON';
const INVALID_START = `{"${INVALID_JSON}":"`;
const INVALID_END = '"}';
/** White space before arguments that is kept, in UTF-16 units. */
const MAX_LEADING_SPACE = 64;
const NO_OBJECT = /^["[\d-]/;
const WORDS = ['null', 'true', 'false'];

type MessagePiece = BlockPiece &
  (
    | { readonly kind: 'text' | 'reasoning'; readonly call: null }
    | { readonly kind: 'call'; readonly call: MessageCall }
    | { readonly kind: 'sign'; readonly call: null; readonly detail: JsonObject }
    /** What follows of text is a block of its own. */
    | { readonly kind: 'divide'; readonly call: null }
    | { readonly kind: 'cite'; readonly call: null; readonly citation: DocumentCitation }
    | { readonly kind: 'state'; readonly call: null; readonly state: ReasoningState }
  );

/** Turns deltas into the content blocks of a message, one open block at a time. What belongs to a later block waits, up to a bound. */
export class MessageBlocks implements BlockWriter<MessagePiece> {
  readonly #sink: BlockSink;
  readonly #maxWaitingChars: number;
  readonly #sequencer = new BlockSequencer<MessagePiece>(this);
  /** By the index of their fragments. */
  readonly #calls = new Map<number, MessageCall>();
  #open: OpenBlock['kind'] | null = null;
  #openCall: MessageCall | null = null;
  /** The open text block gets no further text. */
  #isDivided = false;
  /** What the text block cites whose text has not begun. */
  readonly #cited: DocumentCitation[] = [];
  /** Their size as JSON, in UTF-16 units. */
  #citedChars = 0;
  #progress = new JsonProgress();
  #input: InputForm = 'unknown';
  /** The arguments, while their form is unknown. */
  #leading = '';

  /** @param maxWaitingChars the bound on what waits for an open call, in UTF-16 units */
  constructor(sink: BlockSink, maxWaitingChars: number) {
    this.#sink = sink;
    this.#maxWaitingChars = maxWaitingChars;
  }

  /** The kind of the block that further pieces continue; null: none. */
  get openKind(): OpenBlock['kind'] | null {
    return this.#isDivided ? null : this.#open;
  }

  get openCall(): MessageCall | null {
    return this.#openCall;
  }

  get isCallComplete(): boolean {
    return this.#progress.isComplete;
  }

  /** Whether a further piece of the open call's arguments is written as it is, up to their end, and nothing waits for them. */
  get passesArguments(): boolean {
    const isPassed = this.#openCall !== null && this.#input === 'passed';
    return isPassed && !this.isCallComplete && this.#sequencer.waitingChars === 0;
  }

  /**
   * Reads a piece of the open call's arguments that its sink writes itself: the bytes of a JSON string between `from` and `to`.
   * @returns where the arguments end, or `to`
   */
  passArguments(bytes: Uint8Array, from: number, to: number): number {
    return this.#progress.pushRaw(bytes, from, to);
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
    if (delta.begins_block === true) this.#sequencer.add({ kind: 'divide', call: null, text: '' });
    for (const citation of delta.citations ?? []) {
      const extraChars = JSON.stringify(citation).length;
      this.#sequencer.add({ kind: 'cite', call: null, text: '', extraChars, citation });
    }
    this.#addText('text', delta.content ?? '');
    this.#addText('text', delta.refusal ?? '');
    for (const call of delta.tool_calls ?? []) this.#addFragment(call);
    return this.#sequencer.waitingChars + this.#citedChars <= this.#maxWaitingChars;
  }

  /**
   * Writes what waits, and closes the open block.
   * @param isTruncated the output ends within the block
   */
  finish(isTruncated = false): void {
    this.#sequencer.finish();
    this.#endText();
    this.#close(isTruncated);
  }

  write(piece: MessagePiece): void {
    switch (piece.kind) {
      case 'call':
        return this.#writeCall(piece.call, piece.text);
      case 'divide':
        this.#endText();
        this.#isDivided = this.#open === 'text';
        return;
      case 'cite':
        return this.#cite(piece.citation);
      case 'state':
        this.#endText();
        this.#close();
        return this.#sink.reasoningState(piece.state);
      case 'sign':
        if (this.#open !== 'reasoning') this.#openBlock({ kind: 'reasoning' });
        this.#sink.sign(piece.detail);
        return this.#close();
      default:
        if (this.openKind !== piece.kind) this.#openBlock({ kind: piece.kind });
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
    if ('id' in fragment) this.#calls.set(index, { index, id: fragment.id, name: fragment.function.name });
    const call = this.#calls.get(index);
    if (call === undefined) return;
    if (extra_content !== undefined) this.#addState({ call: call.id, extra_content });
    this.#sequencer.add({ kind: 'call', call, text: fragment.function.arguments });
  }

  #writeCall(call: MessageCall, text: string): void {
    if (this.#openCall !== call) {
      this.#openBlock({ kind: 'call', id: call.id, name: call.name });
      this.#openCall = call;
      this.#progress = new JsonProgress();
      this.#input = 'unknown';
      this.#leading = '';
    }
    // Text after the end of the arguments is dropped: Anthropic's SDK rejects the whole message for it.
    const validPart = text.slice(0, this.#progress.push(text));
    if (this.#input === 'passed') this.#writeInput(validPart);
    else if (this.#input === 'wrapped') this.#writeInput(insideJson(text));
    else this.#begin(this.#leading + validPart);
  }

  /** Arguments of white space alone, and null, are an empty object, as absent ones are. */
  #begin(text: string): void {
    const begun = text.trim();
    // White space means nothing, and a text that grows would be read again and again.
    this.#leading = begun === '' && text.length > MAX_LEADING_SPACE ? '' : text;
    if (WORDS.some((word) => word.startsWith(begun))) return;
    this.#input = NO_OBJECT.test(begun) ? 'wrapped' : 'passed';
    this.#writeInput(this.#input === 'passed' ? text : INVALID_START + insideJson(text));
  }

  #writeInput(text: string): void {
    if (text !== '') this.#sink.text(text);
  }

  #openBlock(block: OpenBlock): void {
    if (block.kind !== 'text') this.#endText();
    this.#close();
    this.#open = block.kind;
    this.#sink.open(block);
    if (block.kind === 'text') this.#writeCited();
  }

  #cite(citation: DocumentCitation): void {
    if (this.openKind === 'text') return this.#sink.cite(citation);
    this.#cited.push(citation);
    this.#citedChars += JSON.stringify(citation).length;
  }

  /**
   * What a block without a text cites is for the text before it, as what pages are cited (recorded,
   * bedrock--nova2-grounding-citations).
   */
  #endText(): void {
    if (this.#open === 'text') this.#writeCited();
    this.#cited.length = 0;
    this.#citedChars = 0;
  }

  #writeCited(): void {
    for (const citation of this.#cited.splice(0)) this.#sink.cite(citation);
    this.#citedChars = 0;
  }

  #close(isTruncated = false): void {
    this.#isDivided = false;
    if (this.#open === null) return;
    if (this.#openCall !== null && !isTruncated) this.#endInput();
    this.#open = null;
    this.#openCall = null;
    this.#sink.close();
  }

  #endInput(): void {
    const word = this.#input === 'unknown' ? this.#leading.trim() : '';
    if (WORDS.includes(word) && word !== 'null') this.#writeInput(INVALID_START + word + INVALID_END);
    else if (word !== 'null') this.#writeInput(word);
    if (this.#input === 'wrapped') this.#writeInput(INVALID_END);
  }
}

function insideJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function textOf({ text, summary }: JsonObject): string {
  if (typeof text === 'string') return text;
  return typeof summary === 'string' ? summary : '';
}

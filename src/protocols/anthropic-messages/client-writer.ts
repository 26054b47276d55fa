/** Writes a streamed message: `message_start`, content blocks one at a time, `message_delta`, `message_stop`. */
import type { Chunk, Delta } from '../../canonical/chunk.ts';
import type { DocumentCitation } from '../../canonical/citations.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { JsonObject } from '../../shared/json.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import { frame, HEARTBEAT_FRAME } from '../../stream/sse-frame.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { hasReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';
import { type BlockSink, MessageBlocks, type OpenBlock } from './client-blocks.ts';
import { errorEvent } from './client-errors.ts';
import {
  BLOCK_DELTA,
  BLOCK_START,
  BLOCK_STOP,
  blockDelta,
  blockStart,
  blockStop,
  citationDelta,
  contentBlock,
  encodeSignature,
  isTruncated,
  MESSAGE_START,
  messageEnd,
  messageStart,
  messageStop,
  messageUsage,
  PING_FRAME,
  redactedThinkingBlock,
} from './client-format.ts';

type MessagesOptions = Pick<WriterOptions, 'maxEventBytes' | 'requestId' | 'promptTokens' | 'model'>;

/** Writes one stream of Messages events. A chunk that the blocks cannot take makes `chunk` return false. */
export class MessagesWriter implements StreamWriter, BlockSink {
  readonly output: FrameBuffer;
  readonly #options: MessagesOptions;
  /** The canonical model, whose provider made the reasoning states; null before `message_start`. */
  #model: string | null = null;
  #blocks: MessageBlocks;
  /** The index of the next block. The open block's index is one less. */
  #nextIndex = 0;
  #kind: OpenBlock['kind'] = 'text';
  /** Whether the open block has its signature. */
  #isSigned = false;
  /**
   * A reasoning state that followed a text, such as Gemini's signature of it. It is written before the next block, and so never after
   * the last text: Claude Code 2.1.330 with `-p` and the Agent SDK take the last block for the result. Gemini does not require the
   * signature of a text.
   */
  #pending: ReasoningState | null = null;
  #isAfterText = false;
  #finish: FinishReason | null = null;
  #stopSequence: string | null = null;
  #usage: Usage | null = null;
  #fits = true;
  #revision = 0;

  constructor(options: MessagesOptions) {
    this.#options = options;
    this.output = new FrameBuffer(options.maxEventBytes);
    this.#blocks = new MessageBlocks(this, options.maxEventBytes);
  }

  get revision(): number {
    return this.#revision;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    if (this.#model === null) this.#start(chunk.model);
    if (chunk.usage !== undefined) this.#usage = chunk.usage;
    const { passesArguments, openKind } = this.#blocks;
    for (const { index, delta, finish_reason, stop_sequence } of chunk.choices) {
      if (index !== 0) continue;
      this.#stopSequence = stop_sequence ?? this.#stopSequence;
      this.#fits &&= this.#blocks.read(delta);
      if (finish_reason === null) continue;
      this.#finish = finish_reason;
      this.#blocks.finish(isTruncated(finish_reason));
    }
    if (this.#blocks.passesArguments !== passesArguments || this.#blocks.openKind !== openKind)
      this.#revision++;
    return this.#fits;
  }

  /** Clients that validate events fail on vendor events. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    if (failure !== null) {
      this.output.text(frame('error', errorEvent(failure, this.#options.requestId)));
      return;
    }
    this.#blocks.finish(isTruncated(this.#finish));
    const stop = messageStop(this.#finish, this.#blocks.hasCalls, this.#stopSequence);
    this.output.text(messageEnd(stop, messageUsage(this.#usage)));
  }

  heartbeat(isHeld: boolean): void {
    // `message_start` must be the first event.
    this.output.text(this.#model === null || isHeld ? HEARTBEAT_FRAME : PING_FRAME);
  }

  restart(): void {
    this.#model = null;
    this.#pending = null;
    this.#isAfterText = false;
    this.#blocks = new MessageBlocks(this, this.#options.maxEventBytes);
    this.#nextIndex = 0;
    this.#finish = null;
    this.#stopSequence = null;
    this.#usage = null;
    this.#fits = true;
    this.#revision++;
  }

  textFrame(chunk: Chunk): string | null {
    if (chunk.object !== 'chat.completion.chunk' || this.#model === null) return null;
    const [choice, ...others] = chunk.choices;
    if (choice === undefined || others.length > 0 || choice.index !== 0 || choice.finish_reason !== null)
      return null;
    const text = this.#textFor(choice.delta);
    if (text === null) return null;
    return frame('content_block_delta', blockDelta(this.#nextIndex - 1, this.#kind, text));
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    if (this.#blocks.openKind !== 'call') return this.output.splice(literals, source, from, to);
    this.output.splice(literals, source, from, this.#blocks.passArguments(source, from, to));
    if (!this.#blocks.passesArguments) this.#revision++;
  }

  open(block: OpenBlock): void {
    this.#writePending();
    this.#kind = block.kind;
    this.#isAfterText = block.kind === 'text';
    this.#isSigned = false;
    const index = this.#nextIndex++;
    this.#write(BLOCK_START, blockStart(index, contentBlock(block)));
    // Anthropic's first fragment is empty too, and some clients start parsing at the first fragment.
    if (block.kind === 'call') this.#write(BLOCK_DELTA, blockDelta(index, 'call', ''));
  }

  text(piece: string): void {
    this.#write(BLOCK_DELTA, blockDelta(this.#nextIndex - 1, this.#kind, piece));
  }

  cite(citation: DocumentCitation): void {
    this.#write(BLOCK_DELTA, citationDelta(this.#nextIndex - 1, citation));
  }

  sign(detail?: JsonObject): void {
    this.#isSigned = true;
    const signature = encodeSignature(this.#model ?? '', detail);
    this.#write(BLOCK_DELTA, blockDelta(this.#nextIndex - 1, 'signature', signature));
  }

  close(): void {
    if (this.#kind === 'reasoning' && !this.#isSigned) this.sign();
    this.#revision++;
    this.#write(BLOCK_STOP, blockStop(this.#nextIndex - 1));
  }

  reasoningState(state: ReasoningState): void {
    this.#writePending();
    if (this.#isAfterText && 'detail' in state) this.#pending = state;
    else this.#writeState(state);
  }

  #writePending(): void {
    if (this.#pending !== null) this.#writeState(this.#pending);
    this.#pending = null;
  }

  #writeState(state: ReasoningState): void {
    this.#isAfterText = false;
    const index = this.#nextIndex++;
    this.#write(BLOCK_START, blockStart(index, redactedThinkingBlock(this.#model ?? '', state)));
    this.#write(BLOCK_STOP, blockStop(index));
  }

  #start(model: string): void {
    this.#model = model;
    this.#write(MESSAGE_START, messageStart(this.#options, this.#options.promptTokens));
  }

  #write(head: string, json: string): void {
    this.#fits = this.output.frame(head, json) && this.#fits;
  }

  /** The delta's text, if it has only one and that belongs to the open block; otherwise null. */
  #textFor(delta: Delta): string | null {
    const { content, reasoning_content, reasoning_details, ...rest } = delta;
    if (this.#blocks.openKind === 'call') return this.#argumentsFor(delta);
    if (Object.keys(rest).length > 0 || reasoning_details?.some(hasReasoningState)) return null;
    const { openKind } = this.#blocks;
    if (openKind === 'text' && reasoning_content === undefined) return content ?? null;
    if (openKind === 'reasoning' && content === undefined) return reasoning_content ?? null;
    return null;
  }

  /** The piece of the open call's arguments that the delta has; null if it has more, or something else. */
  #argumentsFor({ tool_calls: [call, ...others] = [], ...rest }: Delta): string | null {
    if (call === undefined || others.length > 0 || Object.keys(rest).length > 0) return null;
    const isPiece = !('id' in call) && call.extra_content === undefined;
    const isPassed = this.#blocks.passesArguments && this.#blocks.openCall?.index === call.index;
    return isPiece && isPassed ? call.function.arguments : null;
  }
}

/** Writes Anthropic's events: a message that begins once, its blocks one after the other and all closed, and an end that is true (I3). */
import type { Chunk, Delta } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import type { JsonObject } from '../../shared/json.ts';
import { FrameBuffer } from '../../stream/buffers.ts';
import type { StreamFailure, StreamWriter } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import { hasReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';
import {
  callBlock,
  encodeSignature,
  messageObject,
  messageUsage,
  reasoningEncoder,
  stopReason,
  textBlock,
} from './client-answer.ts';
import { type BlockSink, MessageBlocks, type OpenBlock } from './client-blocks.ts';
import { errorEvent } from './client-errors.ts';
import {
  BLOCK_DELTA,
  BLOCK_START,
  BLOCK_STOP,
  blockDelta,
  blockStart,
  blockStop,
  COMMENT_FRAME,
  ERROR,
  firstUsage,
  MESSAGE_START,
  messageEnd,
  messageStart,
  PING_FRAME,
} from './client-events.ts';

type Options = Pick<WriterOptions, 'maxEventBytes' | 'requestId' | 'promptTokens' | 'model'>;

export class MessagesWriter implements StreamWriter, BlockSink {
  readonly output: FrameBuffer;
  readonly #options: Options;
  /** The upstream's model, which says who made a token; null before the message has begun. */
  #model: string | null = null;
  #blocks: MessageBlocks;
  /** The index of the next block: of the open one, it is one less. */
  #nextIndex = 0;
  #kind: OpenBlock['kind'] = 'text';
  /** The open block has its signature. */
  #isSigned = false;
  /**
   * A token behind a text, such as Gemini's signature of it: written before the next block. None follows the answer's last text, as
   * Claude Code 2.1.330 with `-p` and the Agent SDK take the last block for the result; Gemini does not require a text's signature.
   */
  #held: ReasoningState | null = null;
  #isBehindText = false;
  #finish: FinishReason | null = null;
  #usage: Usage | null = null;
  #fits = true;
  #revision = 0;

  constructor(options: Options) {
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
    for (const { index, delta, finish_reason } of chunk.choices) {
      if (index !== 0) continue;
      this.#fits &&= this.#blocks.read(delta);
      if (finish_reason === null) continue;
      this.#finish = finish_reason;
      this.#blocks.finish();
    }
    return this.#fits;
  }

  /** Clients that check events with a schema fail on any that is not Anthropic's. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    if (failure !== null) {
      this.output.text(`${ERROR}${errorEvent(failure, this.#options.requestId)}\n\n`);
      return;
    }
    this.#blocks.finish();
    const usage = this.#usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    this.output.text(messageEnd(stopReason(this.#finish, this.#blocks.hasCalls), messageUsage(usage)));
  }

  heartbeat(isHeld: boolean): void {
    this.output.text(this.#model === null || isHeld ? COMMENT_FRAME : PING_FRAME);
  }

  restart(): void {
    this.#model = null;
    this.#held = null;
    this.#isBehindText = false;
    this.#blocks = new MessageBlocks(this, this.#options.maxEventBytes);
    this.#nextIndex = 0;
    this.#finish = null;
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
    return `${BLOCK_DELTA}${blockDelta(this.#nextIndex - 1, this.#kind, text)}\n\n`;
  }

  splice(literals: readonly Uint8Array[], source: Uint8Array, from: number, to: number): void {
    this.output.splice(literals, source, from, to);
  }

  open(block: OpenBlock): void {
    this.#release();
    this.#kind = block.kind;
    this.#isBehindText = block.kind === 'text';
    this.#isSigned = false;
    const index = this.#nextIndex++;
    this.#write(BLOCK_START, blockStart(index, contentOf(block)));
    // Anthropic's own first fragment: clients that wait for one before they parse get it.
    if (block.kind === 'call') this.#write(BLOCK_DELTA, blockDelta(index, 'call', ''));
  }

  text(piece: string): void {
    this.#write(BLOCK_DELTA, blockDelta(this.#nextIndex - 1, this.#kind, piece));
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

  token(token: ReasoningState): void {
    this.#release();
    if (this.#isBehindText && 'detail' in token) this.#held = token;
    else this.#writeToken(token);
  }

  #release(): void {
    if (this.#held !== null) this.#writeToken(this.#held);
    this.#held = null;
  }

  #writeToken(token: ReasoningState): void {
    this.#isBehindText = false;
    const index = this.#nextIndex++;
    const data = reasoningEncoder(this.#model ?? '', token);
    this.#write(BLOCK_START, blockStart(index, { type: 'redacted_thinking', data }));
    this.#write(BLOCK_STOP, blockStop(index));
  }

  #start(model: string): void {
    const message = messageObject(this.#options, [], null, firstUsage(this.#options.promptTokens));
    this.#model = model;
    this.#write(MESSAGE_START, messageStart(message));
  }

  #write(head: string, json: string): void {
    this.#fits = this.output.frame(head, json) && this.#fits;
  }

  /** The one text of a delta that goes into the open block, or null. */
  #textFor({ content, reasoning_content, reasoning_details, ...rest }: Delta): string | null {
    if (Object.keys(rest).length > 0 || reasoning_details?.some(hasReasoningState)) return null;
    const { openKind } = this.#blocks;
    if (openKind === 'text' && reasoning_content === undefined) return content ?? null;
    if (openKind === 'reasoning' && content === undefined) return reasoning_content ?? null;
    return null;
  }
}

/** A block as it begins. */
function contentOf(block: OpenBlock): unknown {
  if (block.kind === 'text') return textBlock('');
  if (block.kind !== 'call') return { type: 'thinking', thinking: '', signature: '' };
  return callBlock(block, {});
}

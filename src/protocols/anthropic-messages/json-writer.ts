/** Builds the message of a non-streaming response from canonical chunks. */
import type { Chunk } from '../../canonical/chunk.ts';
import type { DocumentCitation } from '../../canonical/citations.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import { EmbeddedJson, type JsonObject } from '../../shared/json.ts';
import { MAX_RESPONSE_BYTES } from '../../shared/limits.ts';
import type { JsonWriter } from '../../stream/types.ts';
import type { ReasoningState } from '../shared/reasoning-state.ts';
import { type BlockSink, INVALID_JSON, MessageBlocks, type OpenBlock } from './client-blocks.ts';
import {
  contentBlock,
  encodeSignature,
  isTruncated,
  type MessageBlock,
  type MessageOptions,
  messageJson,
  messageStop,
  messageUsage,
  redactedThinkingBlock,
} from './client-format.ts';

/** The estimated size of a block besides its text, in UTF-16 units. */
const BLOCK_CHARS = 256;

/** Collects the chunks of one output into a message. */
export class MessagesJsonWriter implements JsonWriter, BlockSink {
  readonly #options: MessageOptions;
  readonly #blocks = new MessageBlocks(this, MAX_RESPONSE_BYTES);
  readonly #content: MessageBlock[] = [];
  readonly #embedded = new EmbeddedJson();
  #open: OpenBlock = { kind: 'text' };
  #text = '';
  #signature = '';
  #citations: DocumentCitation[] = [];
  /** The canonical model, whose provider made the reasoning states. */
  #model = '';
  #finish: FinishReason | null = null;
  #stopSequence: string | null = null;
  #usage: Usage | null = null;
  #chars = 0;

  constructor(options: MessageOptions) {
    this.#options = options;
  }

  get heldChars(): number {
    return this.#chars;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    this.#model = chunk.model;
    if (chunk.usage !== undefined) this.#usage = chunk.usage;
    for (const { index, delta, finish_reason, stop_sequence } of chunk.choices) {
      if (index !== 0) continue;
      this.#stopSequence = stop_sequence ?? this.#stopSequence;
      this.#chars += JSON.stringify(delta).length;
      if (this.#chars > MAX_RESPONSE_BYTES || !this.#blocks.read(delta)) return false;
      this.#finish ??= finish_reason;
    }
    return true;
  }

  /** A message has no vendor events. */
  vendor(): void {}

  take(): string {
    this.#blocks.finish(isTruncated(this.#finish));
    const stop = messageStop(this.#finish, this.#blocks.hasCalls, this.#stopSequence);
    return messageJson(this.#options, this.#content, stop, messageUsage(this.#usage));
  }

  open(block: OpenBlock): void {
    this.#chars += BLOCK_CHARS;
    this.#open = block;
    this.#text = '';
    this.#signature = '';
    this.#citations = [];
  }

  text(piece: string): void {
    this.#text += piece;
  }

  cite(citation: DocumentCitation): void {
    this.#citations.push(citation);
  }

  sign(detail: JsonObject): void {
    this.#signature = encodeSignature(this.#model, detail);
  }

  close(): void {
    const block = this.#open;
    const signature = block.kind === 'reasoning' ? this.#signature || encodeSignature(this.#model) : '';
    const input = block.kind === 'call' ? (this.#embedded.object(this.#text) ?? this.#invalidInput()) : {};
    this.#content.push(contentBlock(block, this.#text, signature, input, this.#citations));
  }

  reasoningState(state: ReasoningState): void {
    this.#content.push(redactedThinkingBlock(this.#model, state));
  }

  /** Of arguments that are invalid or too large. Truncated ones are an empty object, which the stop reason explains. */
  #invalidInput(): JsonObject {
    return this.#text === '' || isTruncated(this.#finish) ? {} : { [INVALID_JSON]: this.#text };
  }
}

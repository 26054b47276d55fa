/** Puts an answer's chunks together into one message of Anthropic's (5.9). */
import type { Chunk } from '../../canonical/chunk.ts';
import type { FinishReason } from '../../canonical/finish-reason.ts';
import type { Usage } from '../../canonical/usage.ts';
import { EmbeddedJson, type JsonObject } from '../../shared/json.ts';
import { MAX_ANSWER_BYTES } from '../../shared/limits.ts';
import type { JsonWriter, StreamFailure } from '../../stream/types.ts';
import type { WriterOptions } from '../shared/client-protocol.ts';
import type { ReasoningState } from '../shared/reasoning-state.ts';
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

/** What a block costs beside its text, in UTF-16 units, about. */
const BLOCK_CHARS = 256;

type Options = Pick<WriterOptions, 'requestId' | 'model'>;

export class MessagesJsonWriter implements JsonWriter, BlockSink {
  failure: StreamFailure | null = null;
  readonly #options: Options;
  readonly #blocks = new MessageBlocks(this, MAX_ANSWER_BYTES);
  readonly #content: JsonObject[] = [];
  readonly #embedded = new EmbeddedJson();
  #open: OpenBlock = { kind: 'text' };
  #text = '';
  #signature = '';
  /** The upstream's, which says who made a token. */
  #model = '';
  #finish: FinishReason | null = null;
  #usage: Usage | null = null;
  #chars = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  get heldChars(): number {
    return this.#chars;
  }

  chunk(chunk: Chunk): boolean {
    if (chunk.object !== 'chat.completion.chunk') return true;
    this.#model = chunk.model;
    if (chunk.usage !== undefined) this.#usage = chunk.usage;
    for (const { index, delta, finish_reason } of chunk.choices) {
      if (index !== 0) continue;
      this.#chars += JSON.stringify(delta).length;
      if (this.#chars > MAX_ANSWER_BYTES || !this.#blocks.read(delta)) return false;
      this.#finish ??= finish_reason;
    }
    return true;
  }

  /** Vendor events have no place in a message. */
  vendor(): void {}

  end(failure: StreamFailure | null): void {
    this.failure = failure;
  }

  take(): string {
    this.#blocks.finish();
    const usage = messageUsage(this.#usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
    const stop = stopReason(this.#finish, this.#blocks.hasCalls);
    return JSON.stringify(messageObject(this.#options, this.#content, stop, usage));
  }

  open(block: OpenBlock): void {
    this.#chars += BLOCK_CHARS;
    this.#open = block;
    this.#text = '';
    this.#signature = '';
  }

  text(piece: string): void {
    this.#text += piece;
  }

  sign(detail: JsonObject): void {
    this.#signature = encodeSignature(this.#model, detail);
  }

  close(): void {
    this.#content.push(this.#block());
  }

  token(token: ReasoningState): void {
    this.#content.push({ type: 'redacted_thinking', data: reasoningEncoder(this.#model, token) });
  }

  #block(): JsonObject {
    const block = this.#open;
    if (block.kind === 'text') return textBlock(this.#text);
    if (block.kind !== 'call') {
      const signature = this.#signature || encodeSignature(this.#model);
      return { type: 'thinking', thinking: this.#text, signature };
    }
    // Arguments that were cut, or are beyond the bounds, are no object: a message can hold nothing else.
    return callBlock(block, this.#embedded.object(this.#text) ?? {});
  }
}

/** Anthropic Messages: events that open, fill and close one block after the other. https://platform.claude.com/docs/en/build-with-claude/streaming */
import type { UpstreamError } from '../../canonical/error.ts';
import {
  type ChoicePart,
  type ChunkPart,
  EMPTY_CHOICE,
  EMPTY_PART,
  readName,
  type ToolCallPart,
} from '../../canonical/part.ts';
import { findUpstreamError } from '../../canonical/upstream-error.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { MAX_TOOL_CALLS } from '../../shared/limits.ts';
import type { ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { type ClaudeBlock, readBlock } from './upstream-blocks.ts';
import { ClaudeUsage } from './upstream-usage.ts';

export const anthropicMessages: UpstreamProtocol = {
  open: (_, provider) => new MessageReader(provider),
};

/** Events and blocks that are not read here carry nothing for a chat: the document wants new ones ignored. */
class MessageReader implements ProtocolReader {
  readonly #provider: string;
  readonly #usage = new ClaudeUsage();
  /** Tool calls that began: a call's index counts them, not the blocks. */
  #calls = 0;
  /**
   * The calls whose blocks are open, by their block. Anthropic opens one at a time (362 of 362 recorded streams); others that speak
   * Messages may not.
   */
  readonly #openCalls = new Map<unknown, OpenCall>();
  /** Of the message whose blocks have begun, where it has one. */
  #id: string | undefined;
  #hasBlocks = false;
  /** The thinking block that is open has a text. */
  #hasThought = false;
  #searchResults = 0;
  /** Held until the message has ended: one that is cut before has none. */
  #finishWord: string | null = null;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /** By the event's `type`, which its name always equals (recorded: 362 of 362 streams, 2026-11). */
  event(event: JsonObject): ChunkPart | null {
    switch (event.type) {
      case 'message_start':
        return this.#start(objectOf(event.message));
      case 'content_block_start':
        return this.#openBlock(event);
      case 'content_block_delta':
        return this.#delta(objectOf(event.delta), event.index);
      case 'content_block_stop':
        return this.#closeCalls(event.index);
      case 'message_delta':
        return this.#messageDelta(event);
      case 'message_stop': {
        const toolCalls = this.#closeAll();
        const choice = { ...EMPTY_CHOICE, toolCalls, finishWord: this.#finishWord };
        return { ...EMPTY_PART, choices: [choice], ends: true };
      }
      case 'error':
      case undefined: {
        const error = findUpstreamError(event);
        return error === null ? null : { ...EMPTY_PART, error };
      }
      default:
        return null;
    }
  }

  plain(answer: JsonObject): ChunkPart {
    const choice: Writable<ChoicePart> = { ...EMPTY_CHOICE, hasRole: true, hasContent: true };
    const toolCalls: ToolCallPart[] = [];
    for (const [index, value] of readArray(answer.content).filter(isObject).entries()) {
      this.#countResult(value);
      const block = readBlock(value, index, this.#provider);
      choice.content += block.text;
      choice.reasoning += block.reasoning;
      choice.reasoningDetails = [...choice.reasoningDetails, ...block.details];
      if (block.call !== null)
        toolCalls.push(callPart(toolCalls.length, block.call, block.call.input || '{}'));
    }
    const isMessage = answer.type === 'message' || Array.isArray(answer.content);
    const usage = this.#usage.latest(answer.usage, this.#searchResults);
    const finished = { ...choice, toolCalls, finishWord: readText(answer.stop_reason) ?? 'end_turn' };
    return {
      ...EMPTY_PART,
      ...headOf(answer),
      choices: isMessage ? [finished] : [],
      usage,
      serviceTier: this.#usage.serviceTier,
      error: findUpstreamError(answer),
    };
  }

  /** A proxy that tries again within a stream would make one answer of two: vercel/ai#18402. */
  #start(message: JsonObject): ChunkPart {
    const id = readName(message.id);
    if (this.#hasBlocks && id !== this.#id) return { ...EMPTY_PART, error: SECOND_MESSAGE };
    this.#id = id;
    const usage = this.#usage.start(message.usage);
    const { serviceTier } = this.#usage;
    const choices = [{ ...EMPTY_CHOICE, hasRole: true }];
    return { ...EMPTY_PART, ...headOf(message), choices, usage, serviceTier };
  }

  #openBlock({ content_block, index }: JsonObject): ChunkPart | null {
    this.#hasBlocks = true;
    this.#countResult(objectOf(content_block));
    const block = readBlock(objectOf(content_block), index, this.#provider);
    this.#hasThought = block.reasoning !== '';
    return block.call === null ? choicePart(choiceOf(block)) : this.#openToolCall(block.call, index);
  }

  /** One without results is an empty list, one that failed an object: neither is billed where results are (DeepSeek). */
  #countResult({ type, content }: JsonObject): void {
    if (type === 'web_search_tool_result' && readArray(content).length > 0) this.#searchResults++;
  }

  #openToolCall(call: NonNullable<ClaudeBlock['call']>, block: unknown): ChunkPart | null {
    // Some compatible server may leave out the end of a block.
    const closed = this.#close(block);
    const index = Math.min(this.#calls++, MAX_TOOL_CALLS);
    this.#openCalls.set(block, { index, has: call.input === '' ? 'nothing' : 'all' });
    return choicePart({ toolCalls: [...closed, callPart(index, call, call.input)] });
  }

  /** Texts are read without a memory: the fast path reads them again. */
  #delta(delta: JsonObject, index: unknown): ChunkPart | null {
    switch (delta.type) {
      case 'text_delta':
        return choicePart({ content: readText(delta.text) ?? '', hasContent: true });
      case 'thinking_delta':
      case 'signature_delta': {
        const { thinking, signature } = delta;
        const block = { type: 'thinking', thinking, signature };
        const part = choicePart(choiceOf(readBlock(block, index, this.#provider, this.#hasThought)));
        if (this.#hasThought || readText(thinking) === undefined) return part;
        this.#hasThought = true;
        return part === null ? null : { ...part, isRemembered: true };
      }
      case 'input_json_delta':
        return this.#arguments(readText(delta.partial_json) ?? '', index);
      default:
        return null;
    }
  }

  /** Server tools have such fragments, too: they are no calls of the client's. */
  #arguments(text: string, block: unknown): ChunkPart | null {
    const call = this.#openCalls.get(block);
    // Fragments behind an input that was said at once would say it again.
    if (call === undefined || call.has === 'all' || text === '') return null;
    call.has = 'pieces';
    return choicePart({ toolCalls: [fragment(call.index, text)] });
  }

  #closeCalls(block: unknown): ChunkPart | null {
    const toolCalls = this.#close(block);
    return toolCalls.length === 0 ? null : choicePart({ toolCalls });
  }

  #closeAll(): ToolCallPart[] {
    return [...this.#openCalls.keys()].flatMap((block) => this.#close(block));
  }

  /** A call without arguments gets one empty fragment and no more: its arguments are an empty object. */
  #close(block: unknown): ToolCallPart[] {
    const call = this.#openCalls.get(block);
    this.#openCalls.delete(block);
    return call?.has === 'nothing' ? [fragment(call.index, '{}')] : [];
  }

  /** The document allows several: the last one counts. */
  #messageDelta(event: JsonObject): ChunkPart {
    this.#finishWord = readText(objectOf(event.delta).stop_reason) ?? this.#finishWord;
    const toolCalls = this.#closeAll();
    const choices = toolCalls.length === 0 ? [] : [{ ...EMPTY_CHOICE, toolCalls }];
    const usage = this.#usage.latest(event.usage, this.#searchResults);
    return { ...EMPTY_PART, choices, usage, serviceTier: this.#usage.serviceTier };
  }
}

const SECOND_MESSAGE: UpstreamError = {
  message: 'A second message began within the stream',
  type: undefined,
  code: 'upstream_invalid',
  param: undefined,
  status: undefined,
};

interface OpenCall {
  readonly index: number;
  /** What came of its arguments: all of them with the block's beginning, or pieces. */
  has: 'nothing' | 'pieces' | 'all';
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function headOf(message: JsonObject): Pick<ChunkPart, 'id' | 'model'> {
  return { id: readName(message.id), model: readName(message.model) };
}

function choiceOf({ text, reasoning, details }: ClaudeBlock): ChoicePart | null {
  if (text === '' && reasoning === '' && details.length === 0) return null;
  return { ...EMPTY_CHOICE, content: text, reasoning, reasoningDetails: details };
}

function choicePart(choice: Partial<ChoicePart> | null): ChunkPart | null {
  return choice === null ? null : { ...EMPTY_PART, choices: [{ ...EMPTY_CHOICE, ...choice }] };
}

function callPart(
  index: number,
  { id, name }: NonNullable<ClaudeBlock['call']>,
  input: string,
): ToolCallPart {
  return { index, id, name, arguments: input, extraContent: undefined };
}

function fragment(index: number, text: string): ToolCallPart {
  return { index, id: undefined, name: undefined, arguments: text, extraContent: undefined };
}

/** Reads Anthropic Messages responses into canonical parts. https://platform.claude.com/docs/en/build-with-claude/streaming */
import { type DocumentCitation, documentCitation, isPlaceType } from '../../canonical/citations.ts';
import type { UpstreamError } from '../../canonical/error.ts';
import {
  type ChoicePart,
  type ChunkPart,
  EMPTY_CHOICE,
  EMPTY_PART,
  readName,
  type ToolCallPart,
} from '../../canonical/part.ts';
import { signaturePayload, tagProvider } from '../../canonical/reasoning-details.ts';
import { findUpstreamError, unfinished } from '../../canonical/upstream-error.ts';
import { isObject, type JsonObject, objectOf, readArray, readText, writeJson } from '../../shared/json.ts';
import { MAX_TOOL_CALLS } from '../../shared/limits.ts';
import type { Writable } from '../../shared/writable.ts';
import type { ProtocolQuirks, ProtocolReader, UpstreamProtocol } from '../../stream/types.ts';
import { BlockCitations } from '../shared/block-citations.ts';
import { ClaudeUsage } from './upstream-usage.ts';

export const anthropicMessages: UpstreamProtocol = {
  id: 'messages',
  open: ({ documents }, provider) => new MessageReader(provider, documents),
};

/** Skips unknown events and blocks, as Anthropic's document requires. */
class MessageReader implements ProtocolReader {
  readonly #provider: string;
  readonly #documents: ProtocolQuirks['documents'];
  readonly #usage = new ClaudeUsage();
  /** The number of tool calls so far, which is the next call's index. Blocks of other types do not count. */
  #calls = 0;
  /**
   * The open tool calls by their block's index. Anthropic opens one block at a time (362 of 362 recorded streams); compatible servers
   * may open several.
   */
  readonly #openCalls = new Map<unknown, OpenCall>();
  /** The indexes of all blocks, up to {@link MAX_KNOWN_BLOCKS}. */
  readonly #blocks = new Set<unknown>();
  /** The message's id, if it has one. */
  #id: string | undefined;
  #hasBlocks = false;
  /** Whether the open thinking block has had text. */
  #hasThinkingText = false;
  #searchResults = 0;
  readonly #citations = new BlockCitations();
  /** Searches that have begun. */
  #searches = 0;
  /** Announced at `message_delta`, and reported at `message_stop`, because a truncated message must not have a finish. */
  #finishWord: string | null = null;
  #stopSequence: string | undefined;
  /** Content that came with the message's start, for a message without blocks. */
  #firstContent: readonly unknown[] = [];

  /** @param documents those of the request; undefined: no citation of them can reach the client */
  constructor(provider: string, documents: ProtocolQuirks['documents']) {
    this.#provider = provider;
    this.#documents = documents;
  }

  /** Uses the event's `type`, which always equals its SSE name (recorded: 362 of 362 streams, 2026-11). */
  event(event: JsonObject): ChunkPart | null {
    switch (event.type) {
      case 'message_start':
        return this.#start(objectOf(event.message));
      case 'content_block_start':
        return this.#openBlock(event);
      case 'content_block_delta':
        return this.#delta(objectOf(event.delta), event.index, true);
      case 'content_block_stop':
        return this.#closeBlock(event.index);
      case 'message_delta':
        return this.#messageDelta(event);
      case 'message_stop':
        return this.#stop();
      case 'error':
      case undefined: {
        const error = findUpstreamError(event);
        return error === null ? null : { ...EMPTY_PART, error };
      }
      default:
        return null;
    }
  }

  /** The fast path reads text events again while it learns. */
  trial(event: JsonObject): ChunkPart | null {
    return event.type === 'content_block_delta'
      ? this.#delta(objectOf(event.delta), event.index, false)
      : null;
  }

  response(response: JsonObject): ChunkPart {
    const [first = EMPTY_CHOICE, ...others] = this.#readContent(readArray(response.content));
    const choices = [{ ...first, hasRole: true }, ...others];
    const isMessage = response.type === 'message' || Array.isArray(response.content);
    const usage = this.#usage.latest(response.usage, this.#searchResults);
    const finished = {
      ...EMPTY_CHOICE,
      ...choices.pop(),
      ...this.#citations.uncited(),
      finishWord: readText(response.stop_reason) ?? 'end_turn',
      ...stopSequence(readText(response.stop_sequence)),
    };
    // Null means that the message goes on: "In non-streaming mode this value is always non-null", @anthropic-ai/sdk
    // 1.12.0, `Message` (2026-11-20).
    const isUnfinished = isMessage && response.stop_reason === null;
    return {
      ...EMPTY_PART,
      ...idAndModel(response),
      choices: isMessage ? [...choices, finished] : [],
      usage,
      serviceTier: this.#usage.serviceTier,
      error: findUpstreamError(response) ?? (isUnfinished ? unfinished('without a stop_reason') : null),
    };
  }

  /** Reads the complete blocks of a message: as one part, and before it one for each text where they are to cite documents. */
  #readContent(content: readonly unknown[]): readonly ChoicePart[] {
    const texts: ChoicePart[] = [];
    const choice: Writable<ChoicePart> = { ...EMPTY_CHOICE, hasContent: true };
    const toolCalls: ToolCallPart[] = [];
    const annotations: JsonObject[] = [];
    for (const [index, value] of content.filter(isObject).entries()) {
      this.#countSearchResult(value);
      const block = readBlock(value, index, this.#provider);
      this.#citations.begin(value);
      this.#citations.text.units += block.text.length;
      annotations.push(...this.#citations.end());
      if (this.#documents === undefined) choice.content += block.text;
      else if (block.text !== '')
        texts.push({
          ...EMPTY_CHOICE,
          content: block.text,
          beginsBlock: true,
          ...this.#placesIn(value.citations),
        });
      choice.reasoning += block.reasoning;
      choice.reasoningDetails = [...choice.reasoningDetails, ...block.details];
      if (block.call !== null)
        toolCalls.push(callPart(toolCalls.length, block.call, block.call.input || '{}'));
    }
    const calls = { toolCalls, ...(annotations.length === 0 ? {} : { annotations }) };
    return texts.length === 0 ? [{ ...choice, ...calls }] : [choice, ...texts, { ...EMPTY_CHOICE, ...calls }];
  }

  /** A compatible server may send the content in the message's start, and no blocks, or no stop reason. */
  #stop(): ChunkPart {
    const content = this.#hasBlocks ? [] : [...this.#readContent(this.#firstContent)];
    const rest = content.pop() ?? EMPTY_CHOICE;
    const toolCalls = [...this.#closeAllCalls(), ...rest.toolCalls];
    const annotations = [...(rest.annotations ?? []), ...this.#citations.end()];
    const finishWord = this.#finishWord ?? 'end_turn';
    const choice = {
      ...rest,
      toolCalls,
      ...(annotations.length === 0 ? {} : { annotations }),
      ...this.#citations.uncited(),
      finishWord,
      ...stopSequence(this.#stopSequence),
    };
    return { ...EMPTY_PART, choices: [...content, choice], ends: true };
  }

  /** A second message is an error: a proxy that retries within a stream would mix two messages (vercel/ai#18402). */
  #start(message: JsonObject): ChunkPart {
    const id = readName(message.id);
    if (this.#hasBlocks && id !== this.#id) return { ...EMPTY_PART, error: SECOND_MESSAGE };
    this.#id = id;
    this.#firstContent = readArray(message.content);
    const usage = this.#usage.start(message.usage);
    const { serviceTier } = this.#usage;
    const choices = [{ ...EMPTY_CHOICE, hasRole: true }];
    return { ...EMPTY_PART, ...idAndModel(message), choices, usage, serviceTier };
  }

  #openBlock({ content_block, index }: JsonObject): ChunkPart | null {
    this.#hasBlocks = true;
    this.#firstContent = [];
    if (this.#blocks.size < MAX_KNOWN_BLOCKS) this.#blocks.add(index);
    this.#countSearchResult(objectOf(content_block));
    const block = readBlock(objectOf(content_block), index, this.#provider);
    this.#hasThinkingText = block.reasoning !== '';
    // A compatible server may omit `content_block_stop`.
    const annotations = this.#citations.end();
    this.#citations.begin(objectOf(content_block));
    this.#citations.text.units += block.text.length;
    const opened =
      block.call === null
        ? choicePart(this.#beginText(objectOf(content_block), block) ?? choiceOf(block))
        : this.#openCall(block.call, index);
    const part = annotations.length === 0 ? opened : withAnnotations(opened, annotations);
    return isSearch(objectOf(content_block)) ? { ...(part ?? EMPTY_PART), searches: ++this.#searches } : part;
  }

  /** The start of a text block of an answer that is to cite documents; else null. */
  #beginText({ type, citations }: JsonObject, { text }: ClaudeBlock): Partial<ChoicePart> | null {
    if (this.#documents === undefined || type !== 'text') return null;
    return { content: text, beginsBlock: true, ...this.#placesIn(citations) };
  }

  /** The places in documents of the request that a text block cites; null: none. */
  #placesIn(citations: unknown): { readonly citations: readonly DocumentCitation[] } | null {
    if (this.#documents === undefined) return null;
    const places = readArray(citations).flatMap((one) => readPlace(objectOf(one), this.#documents) ?? []);
    return places.length === 0 ? null : { citations: places };
  }

  /** Searches without results (an empty list) and failed ones (an object) are not billed where results are counted (DeepSeek). */
  #countSearchResult({ type, content }: JsonObject): void {
    if (type === 'web_search_tool_result' && readArray(content).length > 0) this.#searchResults++;
  }

  #openCall(call: BlockCall, block: unknown): ChunkPart | null {
    // A compatible server may omit `content_block_stop`.
    const closed = this.#closeCall(block);
    const index = Math.min(this.#calls++, MAX_TOOL_CALLS);
    this.#openCalls.set(block, { index, arguments: call.input === '' ? 'none' : 'complete' });
    return choicePart({ toolCalls: [...closed, callPart(index, call, call.input)] });
  }

  /** Text deltas change nothing but the count of the text, because the fast path reads them again. @param counts not a trial */
  #delta(delta: JsonObject, index: unknown, counts: boolean): ChunkPart | null {
    switch (delta.type) {
      case 'text_delta': {
        const content = readText(delta.text) ?? '';
        const { text: sent } = this.#citations;
        if (counts) sent.units += content.length;
        return choicePart({ content, hasContent: true, sent });
      }
      case 'citations_delta':
        this.#citations.cite(objectOf(delta.citation));
        return choicePart(this.#placesIn([delta.citation]));
      case 'thinking_delta':
      case 'signature_delta': {
        const { thinking, signature } = delta;
        const block = { type: 'thinking', thinking, signature };
        const part = choicePart(choiceOf(readBlock(block, index, this.#provider, this.#hasThinkingText)));
        if (this.#hasThinkingText || readText(thinking) === undefined) return part;
        this.#hasThinkingText = true;
        return part === null ? null : { ...part, isRemembered: true };
      }
      case 'input_json_delta':
        return this.#arguments(readText(delta.partial_json) ?? '', index);
      default:
        return null;
    }
  }

  /** Fragments of server tools are skipped, because the client does not see those calls. */
  #arguments(text: string, block: unknown): ChunkPart | null {
    if (text === '') return null;
    const call = this.#openCalls.get(block);
    if (call === undefined) {
      const isKnown = this.#blocks.has(block) || this.#blocks.size >= MAX_KNOWN_BLOCKS;
      return isKnown ? null : { ...EMPTY_PART, error: UNKNOWN_BLOCK };
    }
    // Fragments after a complete input would repeat it.
    if (call.arguments === 'complete') return null;
    call.arguments = 'fragments';
    return choicePart({ toolCalls: [fragment(call.index, text)] });
  }

  #closeBlock(block: unknown): ChunkPart | null {
    const toolCalls = this.#closeCall(block);
    const part = toolCalls.length === 0 ? null : choicePart({ toolCalls });
    const annotations = this.#citations.end();
    return annotations.length === 0 ? part : withAnnotations(part, annotations);
  }

  #closeAllCalls(): ToolCallPart[] {
    return [...this.#openCalls.keys()].flatMap((block) => this.#closeCall(block));
  }

  /** A call without arguments has only one empty fragment. Its arguments are an empty object. */
  #closeCall(block: unknown): ToolCallPart[] {
    const call = this.#openCalls.get(block);
    this.#openCalls.delete(block);
    return call?.arguments === 'none' ? [{ ...fragment(call.index, '{}'), isWhole: true }] : [];
  }

  /** Anthropic's document allows several: the last one counts. */
  #messageDelta(event: JsonObject): ChunkPart {
    const delta = objectOf(event.delta);
    this.#finishWord = readText(delta.stop_reason) ?? this.#finishWord;
    this.#stopSequence = readText(delta.stop_sequence) ?? this.#stopSequence;
    const toolCalls = this.#closeAllCalls();
    const finishWord = this.#finishWord;
    const choices = [{ ...EMPTY_CHOICE, toolCalls, finishWord, isAnnounced: true as const }];
    const usage = this.#usage.latest(event.usage, this.#searchResults);
    return { ...EMPTY_PART, choices, usage, serviceTier: this.#usage.serviceTier };
  }
}

/** A citation of a document of the request; null: of something else. */
function readPlace(
  citation: JsonObject,
  documents: ProtocolQuirks['documents'] = [],
): DocumentCitation | null {
  const { type, cited_text, document_index: document, file_id } = citation;
  if (!isPlaceType(type)) return null;
  const start = citation.start_char_index ?? citation.start_page_number ?? citation.start_block_index;
  const end = citation.end_char_index ?? citation.end_page_number ?? citation.end_block_index;
  const text = readText(cited_text) ?? '';
  return documentCitation({ type, text, document, start, end, fileId: readText(file_id) }, documents);
}

const SECOND_MESSAGE: UpstreamError = {
  message: 'A second message began within the stream',
  type: undefined,
  code: 'upstream_invalid',
  param: undefined,
  status: undefined,
};

/** A call whose arguments are lost would look complete. */
const UNKNOWN_BLOCK: UpstreamError = {
  message: 'Arguments came for a block that did not begin',
  type: undefined,
  code: 'upstream_invalid',
  param: undefined,
  status: undefined,
};

/** Blocks of a message whose indexes are kept. */
const MAX_KNOWN_BLOCKS = 4096;

interface OpenCall {
  readonly index: number;
  /** What has been received of the arguments: all of them in the block's start, or fragments. */
  arguments: 'none' | 'fragments' | 'complete';
}

/** The call of Anthropic's own tool, which runs once its input is complete. */
function isSearch({ type, name }: JsonObject): boolean {
  return type === 'server_tool_use' && name === 'web_search';
}

function stopSequence(sequence: string | undefined): Pick<ChoicePart, 'stopSequence'> {
  return sequence === undefined ? {} : { stopSequence: sequence };
}

function idAndModel(message: JsonObject): Pick<ChunkPart, 'id' | 'model'> {
  return { id: readName(message.id), model: readName(message.model) };
}

function choicePart(choice: Partial<ChoicePart> | null): ChunkPart | null {
  return choice === null ? null : { ...EMPTY_PART, choices: [{ ...EMPTY_CHOICE, ...choice }] };
}

function withAnnotations(part: ChunkPart | null, annotations: readonly JsonObject[]): ChunkPart {
  const { choices: [choice = EMPTY_CHOICE] = [], ...rest } = part ?? EMPTY_PART;
  return { ...rest, choices: [{ ...choice, annotations }] };
}

function callPart(index: number, { id, name }: BlockCall, input: string): ToolCallPart {
  return { ...fragment(index, input), id, name, isWhole: true };
}

function fragment(index: number, text: string): ToolCallPart {
  return { index, id: undefined, name: undefined, arguments: text, extraContent: undefined };
}

/** A complete content block, or the start of one. */
interface ClaudeBlock {
  readonly text: string;
  readonly reasoning: string;
  /** The thinking with its signature, in OpenRouter's form. */
  readonly details: readonly JsonObject[];
  /** A call of one of the client's tools, not of a tool that the provider runs. */
  readonly call: BlockCall | null;
}

interface BlockCall {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** JSON text, or `""` if the block has no arguments. */
  readonly input: string;
}

const DETAIL_FORMAT = 'anthropic-claude-v1';

const EMPTY_BLOCK: ClaudeBlock = { text: '', reasoning: '', details: [], call: null };

function choiceOf({ text, reasoning, details }: ClaudeBlock): ChoicePart | null {
  if (text === '' && reasoning === '' && details.length === 0) return null;
  return { ...EMPTY_CHOICE, content: text, reasoning, reasoningDetails: details };
}

/**
 * @param index the block's index, which identifies its reasoning details
 * @param provider the id of the provider that made the block
 * @param hasThinkingText text of the same thinking block came before
 */
function readBlock(
  block: JsonObject,
  index: unknown,
  provider: string,
  hasThinkingText = false,
): ClaudeBlock {
  switch (block.type) {
    case 'text':
      return { ...EMPTY_BLOCK, text: readText(block.text) ?? '' };
    case 'thinking':
      return readThinking(block, index, provider, hasThinkingText);
    case 'redacted_thinking': {
      const data = readText(block.data);
      if (data === undefined) return EMPTY_BLOCK;
      const detail = { type: 'reasoning.encrypted', data, ...providerTag(index, provider, false) };
      return { ...EMPTY_BLOCK, details: [detail] };
    }
    case 'tool_use':
      return {
        ...EMPTY_BLOCK,
        call: { id: readName(block.id), name: readName(block.name), input: inputJson(block.input) },
      };
    default:
      return EMPTY_BLOCK;
  }
}

/**
 * Only the signed detail has the provider's tag: clients that join the fragments of a detail concatenate all their strings. A signature
 * without text is from hidden thinking.
 */
function readThinking(
  block: JsonObject,
  index: unknown,
  provider: string,
  hasThinkingText: boolean,
): ClaudeBlock {
  const text = readText(block.thinking) ?? '';
  const signature = readText(block.signature);
  if (text === '' && signature === undefined) return EMPTY_BLOCK;
  const detail = {
    type: 'reasoning.text',
    ...(text === '' ? {} : { text }),
    ...(signature === undefined
      ? { index }
      : { signature, ...providerTag(index, provider, hasThinkingText || text !== '') }),
  };
  return { ...EMPTY_BLOCK, reasoning: text, details: [detail] };
}

function providerTag(index: unknown, provider: string, isOfText: boolean): JsonObject {
  const id = tagProvider({ provider, payload: signaturePayload(index, isOfText) });
  return { id, format: DETAIL_FORMAT, index };
}

/** A compatible server may send the JSON as a text, or a value that is no object. */
function inputJson(input: unknown): string {
  if (typeof input === 'string') return input;
  const isEmpty =
    input === undefined || input === null || (typeof input === 'object' && Object.keys(input).length === 0);
  return isEmpty ? '' : (writeJson(input) ?? '');
}

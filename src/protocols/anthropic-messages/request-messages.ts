/** Writes a chat conversation as Anthropic's `system` and `messages`: alternating turns, tool results first, signed thinking. */

import { toolCallId } from '../../canonical/tool-call-id.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { detailsOfProvider } from '../../request-translation/messages.ts';
import {
  append,
  isSystemMessage,
  parseDataUrl,
  reportUnreadKeys,
  splitLeadingSystem,
} from '../../request-translation/native-messages.ts';
import { argumentsObject, StepCalls } from '../../request-translation/tools.ts';
import { decodeBase64, decodePercent } from '../../shared/encoding.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';

export interface Conversation {
  readonly system: readonly JsonObject[];
  readonly messages: readonly Turn[];
}

export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: readonly JsonObject[];
}

export interface ConversationOptions {
  readonly family: ClaudeFamily;
  /** The id of the provider that receives the request: only its own thinking is sent. */
  readonly providerId: string;
  readonly report: TranslationReport;
}

export function writeConversation(messages: readonly unknown[], options: ConversationOptions): Conversation {
  const { leading, rest } = splitLeadingSystem(messages);
  const writer = new TurnWriter(options);
  for (const message of rest) writer.add(message);
  const turns = writer.turns();
  const system = leading
    .map((message) => messageBlocks(message, options.report))
    .filter(({ length }) => length > 0);
  // 400 "messages: at least one message is required", where OpenAI answers a system message: langchain-ai/langchain#30764, 2025-04-14.
  const prompt = turns.length === 0 ? system.pop() : undefined;
  return { system: system.flat(), messages: prompt ? [{ role: 'user', content: prompt }] : turns };
}

/** The keys of a message that are read. */
const MESSAGE_KEYS = ['role', 'content', 'cache_control', 'tool_call_id', 'tool_calls'];

/** `^[a-zA-Z0-9_-]+$`: maximhq/bifrost#5097, 2026-07-10. */
const TOOL_ID = /^[a-zA-Z0-9_-]{1,128}$/;

interface WrittenTurn extends Turn {
  /** Tool results come first, wherever the client sent them: 400 "`tool_use` ids were found without `tool_result` blocks". */
  readonly results: JsonObject[];
  content: JsonObject[];
}

class TurnWriter {
  readonly #options: ConversationOptions;
  readonly #turns: WrittenTurn[] = [];
  /** The calls of the last turn, with the ids that are sent. Anthropic refuses ids that are not unique. */
  readonly #calls = new StepCalls();
  readonly #usedIds = new Set<string>();
  readonly #embedded = new EmbeddedJson();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  add(message: JsonObject): void {
    const { report } = this.#options;
    reportUnreadKeys(message, MESSAGE_KEYS, report);
    if (message.role === 'assistant') return this.#push('assistant', this.#assistant(message));
    if (message.role === 'tool') return this.#addResult(message);
    const blocks = messageBlocks(message, report);
    this.#push(isSystemMessage(message) ? this.#systemRole() : 'user', blocks);
  }

  turns(): readonly Turn[] {
    const last = this.#turns.at(-1);
    // 400 "final assistant content cannot end with trailing whitespace".
    if (last?.role === 'assistant') last.content = last.content.map(trimLastText);
    return this.#turns.map(({ role, results, content }) => ({ role, content: [...results, ...content] }));
  }

  /**
   * A system turn must follow a user turn, and precede an assistant turn or the end. Otherwise the message becomes the user's.
   * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations (2026-11-22)
   */
  #systemRole(): Turn['role'] {
    const last = this.#turns.at(-1)?.role;
    return this.#options.family.takesSystemTurns && (last === 'user' || last === 'system')
      ? 'system'
      : 'user';
  }

  /** A user message follows a system turn: the system turn's content becomes part of the user turn before it. */
  #joinSystemTurn(): void {
    if (this.#turns.at(-1)?.role !== 'system') return;
    const { content } = this.#turns.pop() ?? { content: [] };
    const last = this.#turns.at(-1);
    if (last !== undefined) append(last.content, content);
  }

  #push(role: Turn['role'], blocks: JsonObject[]): void {
    if (blocks.length === 0) return;
    if (role === 'user') this.#joinSystemTurn();
    const last = this.#turns.at(-1);
    if (last?.role === role) append(last.content, blocks);
    else this.#turns.push({ role, results: [], content: blocks });
  }

  #assistant(message: JsonObject): JsonObject[] {
    const { providerId, report } = this.#options;
    const blocks = contentBlocks(message.content, report).filter(({ type }) => !isThinking(type));
    const refusal = readText(message.refusal);
    const content = blocks.length === 0 && refusal !== undefined ? textBlocks(refusal) : blocks;
    const calls = readArray(message.tool_calls).filter(isObject);
    if (this.#turns.at(-1)?.role !== 'assistant') this.#calls.begin();
    const all = [
      ...thinkingBlocks(message, providerId),
      ...content,
      ...calls.map((call) => this.#call(call)),
    ];
    // A turn with only thinking would be refused.
    return content.length + calls.length === 0 ? [] : withCacheControl(all, message.cache_control);
  }

  #call(call: JsonObject): JsonObject {
    const fn = objectOf(call.function, call.custom);
    return {
      type: 'tool_use',
      id: this.#uniqueId(readText(call.id) ?? ''),
      name: fn.name,
      input: argumentsObject(fn.arguments ?? fn.input, this.#embedded),
    };
  }

  #uniqueId(given: string): string {
    const id = validId(given);
    const unique = this.#usedIds.has(id) ? toolCallId(`${id} ${this.#usedIds.size}`) : id;
    this.#usedIds.add(unique);
    this.#calls.add(given, unique);
    return unique;
  }

  #addResult(message: JsonObject): void {
    const callId = readText(message.tool_call_id) ?? '';
    const { content } = message;
    const blocks = typeof content === 'string' ? content : contentBlocks(content, this.#options.report);
    const result: JsonObject = {
      type: 'tool_result',
      tool_use_id: this.#calls.matchResult(callId) ?? validId(callId),
      ...(blocks.length === 0 ? {} : { content: blocks }),
      ...(isObject(message.cache_control) ? { cache_control: message.cache_control } : {}),
    };
    this.#joinSystemTurn();
    const last = this.#turns.at(-1);
    if (last?.role === 'user') last.results.push(result);
    else this.#turns.push({ role: 'user', results: [result], content: [] });
  }
}

function validId(id: string): string {
  return TOOL_ID.test(id) ? id : toolCallId(id);
}

function trimLastText(block: JsonObject, at: number, { length }: readonly JsonObject[]): JsonObject {
  const text = at === length - 1 && block.type === 'text' ? readText(block.text) : undefined;
  return text === undefined ? block : { ...block, text: text.trimEnd() };
}

function isThinking(type: unknown): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

/** OpenRouter's name for the form of Claude's reasoning details. Details with another format are from another provider. */
const DETAIL_FORMATS = ['anthropic-claude-v1', undefined, null];

/** The thinking of an assistant message: of `reasoning_details`, LiteLLM's `thinking_blocks`, or the content, the first that is signed. */
function thinkingBlocks(message: JsonObject, providerId: string): JsonObject[] {
  const details = detailsOfProvider(message, providerId).filter(({ format }) =>
    DETAIL_FORMATS.some((own) => own === format),
  );
  const sources = [
    details.flatMap(blockOfDetail),
    readArray(message.thinking_blocks).filter(isObject).flatMap(signedBlock),
    readArray(message.content).filter(isObject).flatMap(signedBlock),
  ];
  return sources.find((blocks) => blocks.length > 0) ?? [];
}

function blockOfDetail({ type, text, signature, data }: JsonObject): JsonObject[] {
  if (type === 'reasoning.encrypted' && readText(data) !== undefined) {
    return [{ type: 'redacted_thinking', data }];
  }
  return type === 'reasoning.text' ? thinkingBlock(text, signature) : [];
}

function signedBlock({ type, thinking, signature, data }: JsonObject): JsonObject[] {
  if (type === 'redacted_thinking' && readText(data) !== undefined) return [{ type, data }];
  return type === 'thinking' ? thinkingBlock(thinking, signature) : [];
}

/** Unsigned thinking is refused. Hidden thinking has a signature and an empty text: BerriAI/litellm#41361, #38809. */
function thinkingBlock(text: unknown, signature: unknown): JsonObject[] {
  if (readText(signature) === undefined) return [];
  return [{ type: 'thinking', thinking: readText(text) ?? '', signature }];
}

function messageBlocks(message: JsonObject, report: TranslationReport): JsonObject[] {
  return withCacheControl(contentBlocks(message.content, report), message.cache_control);
}

/** A cache mark of a part or message belongs to its last block. */
function withCacheControl(blocks: JsonObject[], cacheControl: unknown): JsonObject[] {
  const last = blocks.at(-1);
  if (!isObject(cacheControl) || last === undefined) return blocks;
  return [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }];
}

/** The blocks of a content, which is a string or a list of parts. */
function contentBlocks(content: unknown, report: TranslationReport): JsonObject[] {
  if (typeof content === 'string') return textBlocks(content);
  return readArray(content).flatMap((part) => (isObject(part) ? partBlocks(part, report) : []));
}

/**
 * Blank texts are dropped. 400 "text content blocks must be non-empty", "… must contain non-whitespace text", "cache_control cannot be
 * set for empty text blocks": anthropics/claude-code#59812, #23369, #62379, 2026-02 to 2026-05.
 */
function textBlocks(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function partBlocks(part: JsonObject, report: TranslationReport): JsonObject[] {
  // Not converted: of more than four marks OpenAI takes the last ones, where Anthropic refuses the request.
  if (isObject(part.prompt_cache_breakpoint)) report.drop('messages.content.prompt_cache_breakpoint');
  return withCacheControl(typedBlocks(part, report), part.cache_control);
}

/** Parts for which Anthropic has no block. https://platform.claude.com/docs/en/api/messages (2026-11-22) */
const UNSUPPORTED_PARTS = ['input_audio', 'audio', 'video_url'];

function typedBlocks(part: JsonObject, report: TranslationReport): JsonObject[] {
  switch (part.type) {
    case 'text':
    case undefined:
      return textBlocks(readText(part.text) ?? '');
    case 'refusal':
      return textBlocks(readText(part.refusal) ?? '');
    case 'image_url':
      return sourceBlocks('image', readText(isObject(part.image_url) ? part.image_url.url : part.image_url));
    case 'document_url':
      return sourceBlocks('document', readText(part.document_url), readText(part.document_name));
    case 'file':
      return fileBlocks(objectOf(part.file), report);
    default: {
      const type = readText(part.type) ?? '';
      // Other parts may be Anthropic's own blocks. They are sent unchanged, and Anthropic refuses unknown ones.
      return UNSUPPORTED_PARTS.includes(type) ? refusePart(type, report) : [part];
    }
  }
}

function refusePart(type: string, report: TranslationReport): JsonObject[] {
  report.refuse(`messages.content.${type}`);
  return [];
}

function fileBlocks(file: JsonObject, report: TranslationReport): JsonObject[] {
  const data = readText(file.file_data) ?? readText(file.file_url);
  // A `file_id` names a file stored at OpenAI.
  if (data === undefined) return refusePart('file.file_id', report);
  const isImage = /^data:image\//i.test(data);
  return sourceBlocks(isImage ? 'image' : 'document', data, isImage ? undefined : readText(file.filename));
}

function sourceBlocks(type: 'image' | 'document', url: string | undefined, title?: string): JsonObject[] {
  if (url === undefined) return [];
  return [{ type, source: sourceOf(type, url), ...(title === undefined ? {} : { title }) }];
}

function sourceOf(type: 'image' | 'document', url: string): JsonObject {
  const inline = parseDataUrl(url);
  if (inline === null) return { type: 'url', url };
  const { mediaType, isBase64, data } = inline;
  if (type === 'image') return { type: 'base64', media_type: imageType(mediaType), data };
  if (!mediaType.startsWith('text/')) {
    return { type: 'base64', media_type: mediaType || 'application/pdf', data };
  }
  return { type: 'text', media_type: 'text/plain', data: decodeText(data, isBase64) };
}

function imageType(mediaType: string): string {
  const lower = mediaType.toLowerCase();
  return lower === 'image/jpg' ? 'image/jpeg' : lower;
}

/** Text with an invalid encoding is sent as it is. */
function decodeText(data: string, isBase64: boolean): string {
  return (isBase64 ? decodeBase64(data) : decodePercent(data)) ?? data;
}

/** Writes a conversation as Anthropic's `system` and `messages`: alternating turns, tool results first, signed thinking. */

import {
  type Block,
  type CitedDocument,
  type NativeRequest,
  type ReasoningBlock,
  splitLeadingSystem,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
} from '../../canonical/conversation.ts';
import { dataAsText, MEDIA_PARTS, type Media, parseDataUrl } from '../../canonical/media.ts';
import { reasoningOfProvider } from '../../canonical/reasoning-details.ts';
import { toolCallId } from '../../canonical/tool-call-id.ts';
import { reportUnreadKeys, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { UniqueCallIds } from '../../request-translation/tool-results.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { append } from '../../shared/append.ts';
import { EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';
import { replaceKeys } from '../../shared/json-keys.ts';
import { DocumentList } from '../shared/document-list.ts';
import type { ClaudeFamily } from './family.ts';

export interface WrittenConversation {
  readonly system: readonly JsonObject[];
  readonly messages: readonly Message[];
  readonly documents: DocumentList;
}

export interface Message {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: readonly JsonObject[];
}

interface ConversationOptions {
  readonly family: ClaudeFamily;
  /** The id of the provider that receives the request: only its own thinking is sent. */
  readonly providerId: string;
  /** The keys of arguments that are sent, by the client's: those of the tools' schemas. */
  readonly toolKeys: NativeRequest['toolKeys'];
  readonly report: TranslationReport;
}

/** Writes turns as the `system` text and the alternating turns of a Messages request. */
export function writeConversation(turns: readonly Turn[], options: ConversationOptions): WrittenConversation {
  const [leading, rest] = splitLeadingSystem(turns);
  const writer = new MessageWriter(options);
  for (const turn of rest) writer.add(turn);
  const messages = writer.messages();
  const system = leading.map((turn) => writeContent(turn, options.report)).filter(({ length }) => length > 0);
  // 400 "messages: at least one message is required", where OpenAI answers a system message: langchain-ai/langchain#30764, 2025-04-14.
  const prompt = messages.length === 0 ? system.pop() : undefined;
  return {
    system: system.flat(),
    messages: prompt ? [{ role: 'user', content: prompt }] : messages,
    documents: writer.documents,
  };
}

/** The other keys of a turn that are read, or that have nothing to say. */
const TURN_KEYS = ['role', 'content', 'cache_control', 'tool_call_id'];

/** `^[a-zA-Z0-9_-]+$`: maximhq/bifrost#5097, 2026-07-10. */
const TOOL_ID = /^[a-zA-Z0-9_-]{1,128}$/;

interface WrittenMessage extends Message {
  /** Tool results come first, wherever the client sent them: 400 "`tool_use` ids were found without `tool_result` blocks". */
  readonly results: JsonObject[];
  content: JsonObject[];
}

class MessageWriter {
  readonly documents = new DocumentList();
  readonly #options: ConversationOptions;
  readonly #messages: WrittenMessage[] = [];
  /** Anthropic refuses ids that are not unique. */
  readonly #callIds = new UniqueCallIds(validId);
  readonly #embedded = new EmbeddedJson();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  add(turn: Turn): void {
    const { report, family } = this.#options;
    reportUnreadKeys(turn.extra, TURN_KEYS, report);
    if (turn.role === 'assistant') return this.#push('assistant', this.#assistant(turn));
    for (const block of turn.blocks) if (block.kind === 'tool_result') this.#addResult(block);
    const documents = turn.role === 'user' && family.takesCitations ? this.documents : null;
    this.#push(turn.role === 'user' ? 'user' : this.#systemRole(), writeContent(turn, report, documents));
  }

  messages(): readonly Message[] {
    const last = this.#messages.at(-1);
    // 400 "final assistant content cannot end with trailing whitespace".
    if (last?.role === 'assistant') last.content = last.content.map(trimLastText);
    return this.#messages.map(({ role, results, content }) => ({ role, content: [...results, ...content] }));
  }

  /**
   * A system turn must follow a user turn, and precede an assistant turn or the end. Otherwise the message becomes the user's.
   * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations (2026-11-22)
   */
  #systemRole(): Message['role'] {
    const last = this.#messages.at(-1)?.role;
    return this.#options.family.takesSystemTurns && (last === 'user' || last === 'system')
      ? 'system'
      : 'user';
  }

  /** A user message follows a system turn: the system turn's content becomes part of the user turn before it. */
  #joinSystemTurn(): void {
    if (this.#messages.at(-1)?.role !== 'system') return;
    const { content } = this.#messages.pop() ?? { content: [] };
    const last = this.#messages.at(-1);
    if (last !== undefined) append(last.content, content);
  }

  #push(role: Message['role'], content: JsonObject[], results: JsonObject[] = []): void {
    if (content.length + results.length === 0) return;
    if (role === 'user') this.#joinSystemTurn();
    const last = this.#messages.at(-1);
    if (last?.role !== role) {
      this.#messages.push({ role, results, content });
      return;
    }
    append(last.results, results);
    append(last.content, content);
  }

  #assistant({ blocks, refusal = '', extra }: Turn): JsonObject[] {
    const { providerId, report } = this.#options;
    const ownBlocks = writeBlocks(blocks, report);
    const content = ownBlocks.length === 0 ? textBlocks(refusal) : ownBlocks;
    if (this.#messages.at(-1)?.role !== 'assistant') this.#callIds.begin();
    const calls = blocks.filter((block) => block.kind === 'tool_call').map((call) => this.#call(call));
    const all = [...thinkingBlocks(blocks, providerId), ...content, ...calls];
    // A turn with only thinking would be refused.
    return content.length + calls.length === 0 ? [] : withCacheControl(all, extra.cache_control);
  }

  #call({ id, name, input }: ToolCallBlock): JsonObject {
    const keys = this.#options.toolKeys.get(name);
    const args = argumentsObject(keys === undefined ? input : replaceKeys(input, keys), this.#embedded);
    return { type: 'tool_use', id: this.#callIds.call(id), name, input: args };
  }

  #addResult({ id, content, extra = {} }: ToolResultBlock): void {
    const { report } = this.#options;
    reportUnreadKeys(extra, ['cache_control'], report);
    const blocks = typeof content === 'string' ? content : writeBlocks(content, report);
    const [first, ...others] = typeof blocks === 'string' ? [] : blocks;
    // A text with a mark is a text, as it was and will be without one: the mark belongs to the result.
    const text = first?.type === 'text' && others.length === 0 ? first : undefined;
    const mark = isObject(extra.cache_control) ? extra.cache_control : text?.cache_control;
    const result = {
      type: 'tool_result',
      tool_use_id: this.#callIds.result(id),
      ...(blocks.length === 0 ? {} : { content: text?.text ?? blocks }),
      ...(mark === undefined ? {} : { cache_control: mark }),
    };
    this.#push('user', [], [result]);
  }
}

function validId(id: string): string {
  return TOOL_ID.test(id) ? id : toolCallId(id);
}

function trimLastText(block: JsonObject, at: number, { length }: readonly JsonObject[]): JsonObject {
  const text = at === length - 1 && block.type === 'text' ? readText(block.text) : undefined;
  return text === undefined ? block : { ...block, text: text.trimEnd() };
}

/** OpenRouter's name for the form of Claude's reasoning details. Details with another format are from another provider. */
const DETAIL_FORMATS: readonly unknown[] = ['anthropic-claude-v1', null];

/** The thinking of an assistant's turn: of its details, or of the client's other fields, the first that is signed. */
function thinkingBlocks(blocks: readonly Block[], providerId: string): JsonObject[] {
  const reasoning = blocks.filter((block) => block.kind === 'reasoning');
  const details = reasoningOfProvider(reasoning, providerId).filter(({ signature }) =>
    DETAIL_FORMATS.includes(signature?.format),
  );
  const thinking = details.flatMap(thinkingBlock);
  const others = reasoning.filter(({ detail }) => detail === undefined);
  return thinking.length > 0 ? thinking : others.flatMap(thinkingBlock);
}

/** Unsigned thinking is refused. Hidden thinking has a signature and an empty text: BerriAI/litellm#41361, #38809. */
function thinkingBlock({ text, signature }: ReasoningBlock): JsonObject[] {
  if (signature === undefined) return [];
  const { value, isEncrypted } = signature;
  return [
    isEncrypted
      ? { type: 'redacted_thinking', data: value }
      : { type: 'thinking', thinking: text, signature: value },
  ];
}

function writeContent(
  { blocks, extra }: Turn,
  report: TranslationReport,
  documents: DocumentList | null = null,
): JsonObject[] {
  return withCacheControl(writeBlocks(blocks, report, documents), extra.cache_control);
}

/** A cache mark of a part or message belongs to its last block. */
function withCacheControl(blocks: JsonObject[], cacheControl: unknown): JsonObject[] {
  const last = blocks.at(-1);
  if (!isObject(cacheControl) || last === undefined) return blocks;
  return [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }];
}

/**
 * Texts, media and unknown blocks.
 * @param documents gets those that may be cited here; null: none may
 */
function writeBlocks(
  blocks: readonly Block[],
  report: TranslationReport,
  documents: DocumentList | null = null,
): JsonObject[] {
  return blocks.flatMap((block) => {
    const { cache_control, prompt_cache_breakpoint } =
      (block.kind === 'unknown' ? block.raw : block.extra) ?? {};
    // Not converted: of more than four marks OpenAI takes the last ones, where Anthropic refuses the request.
    if (isObject(prompt_cache_breakpoint)) report.drop('messages.content.prompt_cache_breakpoint');
    return withCacheControl(contentBlocks(block, report, documents), cache_control);
  });
}

function contentBlocks(
  block: Block,
  report: TranslationReport,
  documents: DocumentList | null,
): JsonObject[] {
  switch (block.kind) {
    case 'text':
      return (
        (documents === null ? null : citedText(block.cited, documents)) ??
        uncited(block, textBlocks(block.text), report)
      );
    case 'media': {
      const written = mediaBlocks(block.media, report);
      const [document] = written;
      if (document?.type !== 'document' || documents === null) return uncited(block, written, report);
      documents.add(block.cited);
      return block.cited === undefined ? written : [{ ...document, ...citing(block.cited) }];
    }
    case 'unknown':
      return unknownBlocks(block.raw, report);
    default:
      return [];
  }
}

/** A document to be cited that came as text; null: the block is no such document. */
function citedText(cited: CitedDocument | undefined, documents: DocumentList): JsonObject[] | null {
  const { name, text = '', chunks } = cited ?? {};
  if (cited === undefined || text.trim() === '') return null;
  documents.add(cited);
  const source =
    chunks === undefined
      ? { type: 'text', media_type: 'text/plain', data: text }
      : { type: 'content', content: chunks.map((chunk) => ({ type: 'text', text: chunk })) };
  return [{ type: 'document', source, ...(name === undefined ? {} : { title: name }), ...citing(cited) }];
}

function citing({ context }: CitedDocument): JsonObject {
  return { ...(context === undefined ? {} : { context }), citations: { enabled: true } };
}

function uncited(
  { cited }: { readonly cited?: CitedDocument },
  written: JsonObject[],
  report: TranslationReport,
): JsonObject[] {
  if (cited !== undefined) report.drop('messages.content.citations');
  return written;
}

/**
 * Blank texts are dropped. 400 "text content blocks must be non-empty", "… must contain non-whitespace text", "cache_control cannot be
 * set for empty text blocks": anthropics/claude-code#59812, #23369, #62379, 2026-02 to 2026-05.
 */
function textBlocks(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

/** Parts of chat without their content. */
const EMPTY_PARTS = ['text', 'refusal', 'image_url', 'document_url'];

/** Parts for which Anthropic has no block. https://platform.claude.com/docs/en/api/messages (2026-11-22) */
const UNSUPPORTED_PARTS = ['input_audio', 'audio', 'video_url'];

/** Parts of other types may be Anthropic's own blocks. They are sent unchanged, and Anthropic refuses unknown ones. */
function unknownBlocks(raw: JsonObject, report: TranslationReport): JsonObject[] {
  const type = readText(raw.type) ?? 'text';
  if (EMPTY_PARTS.includes(type)) return [];
  if (type === 'file') return refusePart('file.file_id', report);
  return UNSUPPORTED_PARTS.includes(type) ? refusePart(type, report) : [raw];
}

function refusePart(type: string, report: TranslationReport): JsonObject[] {
  report.refuse(`messages.content.${type}`);
  return [];
}

function mediaBlocks(media: Media, report: TranslationReport): JsonObject[] {
  if (media.type === 'audio' || media.type === 'video') return refusePart(MEDIA_PARTS[media.type], report);
  const { url, name } = media;
  // A `file_id` names a file stored at OpenAI.
  if (url === undefined) return refusePart('file.file_id', report);
  const isImage = media.type === 'image' || (media.type === 'file' && /^data:image\//i.test(url));
  const title = isImage || name === undefined ? {} : { title: name };
  return [{ type: isImage ? 'image' : 'document', source: sourceOf(isImage, url), ...title }];
}

function sourceOf(isImage: boolean, url: string): JsonObject {
  const inline = parseDataUrl(url);
  if (inline === null) return { type: 'url', url };
  const { mediaType, data } = inline;
  if (isImage) return { type: 'base64', media_type: mediaType.toLowerCase(), data };
  return mediaType.startsWith('text/')
    ? { type: 'text', media_type: 'text/plain', data: dataAsText(inline) }
    : { type: 'base64', media_type: mediaType || 'application/pdf', data };
}

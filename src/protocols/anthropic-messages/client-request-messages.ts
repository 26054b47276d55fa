/** Parses the system text and the messages of a Messages request into turns, with reasoning and its encoded states. */

import type {
  Block,
  CitedDocument,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts';
import type { Media } from '../../canonical/media.ts';
import type { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { joinAdjacentTexts } from '../../request-translation/tool-results.ts';
import { append } from '../../shared/append.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { ModelStep } from '../shared/model-step.ts';
import { decodeReasoningState, hasReasoningState } from '../shared/reasoning-state.ts';
import { fromToolUseId } from './client-format.ts';

/**
 * The start of the first system block of Claude Code. It is dropped: it changes with every version, and so would break the prompt cache
 * of any other provider.
 */
const BILLING_HEADER = 'x-anthropic-billing-header';

/** @param dropped gets the names of blocks that have no counterpart */
export function readTurns(
  system: unknown,
  messages: readonly JsonObject[],
  dropped: ReportedFields,
): readonly Turn[] {
  const embedded = new EmbeddedJson();
  const documents = new DocumentCount();
  return [
    ...readSystem(blocksOf(system), dropped, documents),
    ...joinResults(messages).flatMap(({ role, blocks }) => {
      if (role === 'assistant') return readAssistant(joinCiting(blocks), dropped, embedded);
      return role === 'system'
        ? readSystem(blocks, dropped, documents)
        : [readUser(blocks, dropped, documents)];
    }),
  ];
}

/**
 * Counts the documents as citations do: "all document blocks in the request (spanning across all messages)",
 * https://platform.claude.com/docs/en/build-with-claude/citations (2026-11-29). It does not say whether those of
 * results count, and has none elsewhere.
 */
class DocumentCount {
  #next: number | undefined = 0;

  /** The index of the user's next document; undefined: it is not known, because one was elsewhere. */
  take(): number | undefined {
    return this.#next === undefined ? undefined : this.#next++;
  }

  /** Blocks in which a document may not count. */
  leaveOut(blocks: readonly JsonObject[]): void {
    if (blocks.some(({ type }) => type === 'document')) this.#next = undefined;
  }
}

interface ClientMessage {
  readonly role: unknown;
  readonly blocks: JsonObject[];
}

/** Joins user messages in a row if the later one has tool results, which must follow their calls directly. */
function joinResults(messages: readonly JsonObject[]): readonly ClientMessage[] {
  const joined: ClientMessage[] = [];
  for (const { role, content } of messages) {
    const blocks = blocksOf(content);
    const before = joined.at(-1);
    const isJoined = role === 'user' && before?.role === 'user' && blocks.some(isToolResult);
    if (isJoined) append(before.blocks, blocks);
    else joined.push({ role, blocks });
  }
  return joined;
}

function readSystem(
  given: readonly JsonObject[],
  dropped: ReportedFields,
  documents: DocumentCount,
): readonly Turn[] {
  documents.leaveOut(given);
  const texts = given.filter(({ text }) => !readText(text)?.startsWith(BILLING_HEADER));
  const blocks = readBlocks(texts, dropped);
  return blocks.length === 0 ? [] : [{ role: 'system', blocks, extra: {} }];
}

function readUser(given: readonly JsonObject[], dropped: ReportedFields, documents: DocumentCount): Turn {
  const results = given.filter(isToolResult).map((block) => {
    documents.leaveOut(blocksOf(block.content));
    return readResult(block, dropped);
  });
  const others = readBlocks(
    given.filter((block) => !isToolResult(block)),
    dropped,
    documents,
  );
  const blocks = [...results, ...others];
  return { role: 'user', blocks: blocks.length === 0 ? [{ kind: 'text', text: '' }] : blocks, extra: {} };
}

function isToolResult({ type }: JsonObject): boolean {
  return type === 'tool_result';
}

/** A result of one text without a mark is that text. Otherwise it has its blocks in their order. */
function readResult(block: JsonObject, dropped: ReportedFields): ToolResultBlock {
  const read = readBlocks(blocksOf(block.content), dropped);
  // A text among them may become the whole result.
  if (read.some(({ cited }) => cited !== undefined)) dropped.add('messages.content.citations');
  const blocks = joinAdjacentTexts(read, '\n');
  if (blocks.length === 0) blocks.push({ kind: 'text', text: '' });
  const first = blocks.find((one) => one.kind === 'text');
  if (lacksError(block, first?.text ?? '')) {
    if (first === undefined) blocks.unshift({ kind: 'text', text: 'Error:' });
    else blocks[blocks.indexOf(first)] = { ...first, text: `Error: ${first.text}` };
  }
  const lastAt = blocks.length - 1;
  const marked = blocks.some(isMarked)
    ? blocks
    : blocks.map((one, at) => (at === lastAt ? { ...one, ...markOf(block) } : one));
  const [only, ...others] = marked;
  const isPlain = others.length === 0 && only?.kind === 'text' && !isMarked(only);
  return {
    kind: 'tool_result',
    id: fromToolUseId(readText(block.tool_use_id) ?? ''),
    content: isPlain ? only.text : marked,
    ...(block.is_error === true ? { isError: true as const } : {}),
  };
}

/** Chat has no flag for a failed result. */
function lacksError({ is_error }: JsonObject, text: string): boolean {
  return is_error === true && !/error/i.test(text.slice(0, 32));
}

/**
 * Claude divides a text where a citation begins or ends: the pieces become one text again. What they cite is left out, as other members of
 * responses are.
 */
function joinCiting(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const joined: JsonObject[] = [];
  for (const block of blocks) {
    const before = joined.at(-1);
    const isPiece =
      before !== undefined && (isCiting(before) || isCiting(block)) && !isMarked(markOf(before));
    if (isPiece && isText(before) && isText(block)) {
      joined[joined.length - 1] = { ...block, text: `${before.text}${block.text}` };
    } else joined.push(block);
  }
  return joined;
}

function isText({ type, text }: JsonObject): boolean {
  return type === 'text' && typeof text === 'string';
}

function isCiting({ citations }: JsonObject): boolean {
  return readArray(citations).length > 0;
}

function readAssistant(
  blocks: readonly JsonObject[],
  dropped: ReportedFields,
  embedded: EmbeddedJson,
): readonly Turn[] {
  const step = new ModelStep();
  /** Summaries of a compacted history, which become the user's. */
  const summaries: Turn[] = [];
  for (const block of blocks) {
    const summary = block.type === 'compaction' ? textOf(block.content) : undefined;
    if (summary !== undefined) {
      summaries.push({ role: 'user', blocks: [{ kind: 'text', text: summary }], extra: {} });
    } else if (!readAssistantBlock(block, step, embedded)) {
      dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    }
  }
  return [...summaries, step.turn('\n')];
}

/** @returns false if the block is dropped */
function readAssistantBlock(block: JsonObject, step: ModelStep, embedded: EmbeddedJson): boolean {
  switch (block.type) {
    case 'text':
      append(step.texts, textBlock(readText(block.text), block));
      return true;
    case 'thinking':
      readThinking(block, step, embedded);
      return true;
    case 'redacted_thinking': {
      const state = decodeReasoningState(block.data, embedded);
      if (state !== null) step.addState(state);
      return state !== null;
    }
    case 'tool_use':
      step.calls.push(readCall(block));
      return true;
    default: {
      // The results of tools that Anthropic ran are kept if they are text.
      const text = textOf(block.content);
      append(step.texts, textBlock(text, {}));
      return text !== undefined;
    }
  }
}

/** A signature is only valid with its block's text. Signatures that Weir did not encode are dropped. */
function readThinking({ thinking, signature }: JsonObject, step: ModelStep, embedded: EmbeddedJson): void {
  const text = readText(thinking);
  if (text !== undefined) step.thoughts.push(text);
  const state = decodeReasoningState(signature, embedded);
  if (state === null || !('detail' in state)) return;
  const { type = 'reasoning.text', ...rest } = state.detail;
  if (!hasReasoningState(rest)) return;
  step.addState({ detail: text === undefined ? { type, ...rest } : { type, text, ...rest } });
}

function readCall({ id, name, input }: JsonObject): ToolCallBlock {
  return {
    kind: 'tool_call',
    id: fromToolUseId(readText(id) ?? ''),
    name: readText(name) ?? '',
    // Some SDKs send arguments that are truncated or invalid JSON as a string.
    input: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
  };
}

/** The blocks of a content, which may also be a string. The list is the caller's own. */
function blocksOf(content: unknown): JsonObject[] {
  const text = readText(content);
  return text === undefined ? readArray(content).filter(isObject) : [{ type: 'text', text }];
}

type ContentBlock = Extract<Block, { readonly kind: 'text' | 'media' }>;

/** The blocks of a user, a system or a tool. */
function readBlocks(
  given: readonly JsonObject[],
  dropped: ReportedFields,
  documents?: DocumentCount,
): readonly ContentBlock[] {
  return given.flatMap((block) => {
    const blocks = readBlock(block, documents);
    if (blocks === null) dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    return blocks ?? [];
  });
}

/** @returns null for an unknown block */
function readBlock(block: JsonObject, documents?: DocumentCount): readonly ContentBlock[] | null {
  switch (block.type) {
    case 'text':
      return textBlock(readText(block.text), block);
    case 'image':
      return readImage(block);
    case 'document':
      return readDocument(block, documents?.take());
    case 'search_result':
      return textBlock(joinTexts([block.title, block.source, textOf(block.content)]), block);
    case 'tool_reference':
      return textBlock(toolReferenceText(block), block);
    default:
      return null;
  }
}

/** The result of a search for tools. All tools of the request are always sent, so only the name is needed. */
function toolReferenceText({ tool_name }: JsonObject): string | undefined {
  const name = readText(tool_name);
  return name === undefined ? undefined : `Found the tool ${name}: it can be called now.`;
}

/** Empty texts are dropped, because some providers refuse them. */
function textBlock(text: string | undefined, block: JsonObject): readonly TextBlock[] {
  return text === undefined ? [] : [{ kind: 'text', text, ...markOf(block) }];
}

function mediaBlock(media: Media, block: JsonObject): ContentBlock {
  return { kind: 'media', media, ...markOf(block) };
}

type Marked = Pick<TextBlock, 'extra'>;

/** The cache mark of a block. Request translation drops it for providers without cache marks. */
function markOf({ cache_control }: JsonObject): Marked {
  return isObject(cache_control) ? { extra: { cache_control } } : {};
}

function isMarked({ extra }: Marked): boolean {
  return extra !== undefined;
}

function readImage(block: JsonObject): readonly ContentBlock[] | null {
  const url = urlOf(block.source);
  return url === undefined ? null : [mediaBlock({ type: 'image', url }, block)];
}

/** @param index its place among the documents; undefined: it is not known */
function readDocument(block: JsonObject, index: number | undefined): readonly ContentBlock[] | null {
  const source = objectOf(block.source);
  const title = readText(block.title);
  if (source.type === 'text' || source.type === 'content') {
    const data = joinTexts([source.data, textOf(source.content)]);
    const text = joinTexts([title, block.context, data]);
    const images = blocksOf(source.content).filter(({ type }) => type === 'image');
    const chunks = chunksOf(source);
    // In a text that is joined from other parts no place is one of the client's.
    const at = source.type === 'text' || chunks.chunks !== undefined ? index : undefined;
    const cited = data === undefined ? {} : citedDocument(block, at, { text: data, ...chunks });
    const texts = textBlock(text, block).map((one) => ({ ...one, ...cited }));
    return [...texts, ...images.flatMap((image) => readImage(image) ?? [])];
  }
  const url = urlOf(source);
  if (url === undefined) return null;
  const media = mediaBlock({ type: 'file', url, name: title ?? 'document.pdf' }, block);
  return [{ ...media, ...citedDocument(block, index) }];
}

/** The parts of a document that the client divided into texts, none of which is blank. */
function chunksOf({ type, content }: JsonObject): Pick<CitedDocument, 'chunks'> {
  if (type !== 'content') return {};
  const parts = blocksOf(content);
  const chunks = parts.flatMap((part) => (isText(part) ? (readText(part.text) ?? []) : []));
  const areTexts = chunks.every((text) => text.trim() !== '') && chunks.length === parts.length;
  return areTexts && chunks.length > 0 ? { chunks } : {};
}

/** @param text the document's text; absent: the document is a file */
function citedDocument(
  block: JsonObject,
  index: number | undefined,
  text: Pick<CitedDocument, 'text' | 'chunks'> = {},
): Pick<TextBlock, 'cited'> {
  if (objectOf(block.citations).enabled !== true) return {};
  return { cited: { name: readText(block.title), context: readText(block.context), ...text, index } };
}

/** The URL or data URL of an image or a document. Files stored at Anthropic have neither. */
function urlOf(source: unknown): string | undefined {
  if (!isObject(source)) return undefined;
  const { type, data, media_type } = source;
  if (type === 'url') return readText(source.url);
  const isData = type === 'base64' && readText(data) !== undefined && readText(media_type) !== undefined;
  return isData ? `data:${media_type};base64,${data}` : undefined;
}

function textOf(content: unknown): string | undefined {
  return joinTexts(blocksOf(content).map(({ text }) => text));
}

function joinTexts(texts: readonly unknown[]): string | undefined {
  return readText(texts.map(readText).filter(Boolean).join('\n'));
}

/** Translates the system and the messages of a Messages request into chat messages, with reasoning and its encoded states. */

import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import { joinAdjacentTexts } from '../../request-translation/tool-results.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { decodeReasoningState, hasReasoningState, type ReasoningState } from '../shared/reasoning-state.ts';
import { fromToolUseId } from './client-format.ts';

/**
 * The start of the first system block of Claude Code. It is dropped: it changes with every version, and so would break the prompt cache
 * of any other provider.
 */
const BILLING_HEADER = 'x-anthropic-billing-header';

/**
 * Translates the system text and the turns of a Messages request into messages of Chat Completions.
 * @param dropped gets the names of fields that have no counterpart
 */
export function readMessages(
  system: unknown,
  messages: readonly JsonObject[],
  dropped: ReportedFields,
): readonly JsonObject[] {
  const embedded = new EmbeddedJson();
  return [
    ...readSystem(system, dropped),
    ...joinResults(messages).flatMap((message) => {
      if (message.role === 'assistant') return readAssistant(message, dropped, embedded);
      return message.role === 'system' ? readSystem(message.content, dropped) : readUser(message, dropped);
    }),
  ];
}

/** Joins user messages in a row if the later one has tool results, which must follow their calls directly. */
function joinResults(messages: readonly JsonObject[]): readonly JsonObject[] {
  const joined: JsonObject[] = [];
  /** The content of the last message, if it is a joined one. */
  let joinedContent: JsonObject[] | null = null;
  for (const message of messages) {
    const before = joined.at(-1);
    const content = blocksOf(message.content);
    if (before?.role !== 'user' || message.role !== 'user' || !content.some(isToolResult)) {
      joined.push(message);
      joinedContent = null;
      continue;
    }
    if (joinedContent === null) {
      joinedContent = [...blocksOf(before.content)];
      joined[joined.length - 1] = { ...before, content: joinedContent };
    }
    for (const block of content) joinedContent.push(block);
  }
  return joined;
}

function readSystem(content: unknown, dropped: ReportedFields): readonly JsonObject[] {
  const blocks = blocksOf(content).filter(({ text }) => !readText(text)?.startsWith(BILLING_HEADER));
  const parts = readParts(blocks, dropped);
  return parts.length === 0 ? [] : [{ role: 'system', content: contentOf(parts) }];
}

/** Results come first: providers accept nothing between a call and its result. */
function readUser({ content }: JsonObject, dropped: ReportedFields): readonly JsonObject[] {
  const blocks = blocksOf(content);
  const results = blocks.filter(isToolResult).map((block) => readResult(block, dropped));
  const parts = readParts(
    blocks.filter((block) => !isToolResult(block)),
    dropped,
  );
  return parts.length === 0 && results.length > 0
    ? results
    : [...results, { role: 'user', content: contentOf(parts) }];
}

function isToolResult({ type }: JsonObject): boolean {
  return type === 'tool_result';
}

function readResult(block: JsonObject, dropped: ReportedFields): JsonObject {
  const parts = readParts(blocksOf(block.content), dropped);
  const isText = parts.every(({ type }) => type === 'text');
  return {
    role: 'tool',
    tool_call_id: fromToolUseId(readText(block.tool_use_id) ?? ''),
    content: isText ? textResult(parts, block) : resultParts(parts, block),
  };
}

function textResult(texts: readonly JsonObject[], block: JsonObject): unknown {
  const joined = texts.map((part) => part.text).join('\n');
  const text = lacksError(block, joined) ? `Error: ${joined}` : joined;
  const { cache_control } = texts.find((part) => part.cache_control !== undefined) ?? block;
  return isObject(cache_control) ? [{ type: 'text', text, cache_control }] : text;
}

/** A result with images or files: its parts in their order. */
function resultParts(given: readonly JsonObject[], block: JsonObject): readonly JsonObject[] {
  const parts = joinAdjacentTexts(given, '\n');
  const at = parts.findIndex(({ type }) => type === 'text');
  const first = readText(parts[at]?.text) ?? '';
  if (lacksError(block, first)) {
    if (at < 0) parts.unshift({ type: 'text', text: 'Error:' });
    else parts[at] = { ...parts[at], text: `Error: ${first}` };
  }
  const last = parts.at(-1);
  if (last !== undefined && !parts.some(({ cache_control }) => cache_control !== undefined)) {
    parts[parts.length - 1] = withCacheControl(last, block);
  }
  return parts;
}

/** Chat has no flag for a failed result. */
function lacksError({ is_error }: JsonObject, text: string): boolean {
  return is_error === true && !/error/i.test(text.slice(0, 32));
}

/** The parts of an assistant message, collected from its blocks. */
interface AssistantParts {
  readonly texts: JsonObject[];
  readonly thoughts: string[];
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
  /** `extra_content` by the id of its call. */
  readonly extras: Map<string, JsonObject>;
  /** Summaries of a compacted history, which become user messages. */
  readonly summaries: string[];
}

function readAssistant(
  { content }: JsonObject,
  dropped: ReportedFields,
  embedded: EmbeddedJson,
): readonly JsonObject[] {
  const parts: AssistantParts = {
    texts: [],
    thoughts: [],
    details: [],
    calls: [],
    extras: new Map(),
    summaries: [],
  };
  for (const block of blocksOf(content)) {
    if (!readAssistantBlock(block, parts, embedded)) {
      dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    }
  }
  const { texts, thoughts, details, calls, extras, summaries } = parts;
  const tool_calls = calls.map((call) => {
    const extra_content = extras.get(String(call.id));
    return extra_content === undefined ? call : { ...call, extra_content };
  });
  const hasCacheMark = texts.some(({ cache_control }) => cache_control !== undefined);
  const text = texts.map((part) => part.text).join('\n');
  const message = {
    role: 'assistant',
    content: hasCacheMark ? texts : text === '' && calls.length > 0 ? null : text,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls }),
  };
  return [...summaries.map((summary) => ({ role: 'user', content: summary })), message];
}

/** @returns false if the block is dropped */
function readAssistantBlock(block: JsonObject, parts: AssistantParts, embedded: EmbeddedJson): boolean {
  switch (block.type) {
    case 'text':
      parts.texts.push(...readParts([block], new ReportedFields()));
      return true;
    case 'thinking':
      readThinking(block, parts, embedded);
      return true;
    case 'redacted_thinking': {
      const state = decodeReasoningState(block.data, embedded);
      if (state !== null) addReasoningState(state, parts);
      return state !== null;
    }
    case 'tool_use':
      parts.calls.push(readCall(block));
      return true;
    case 'compaction': {
      const summary = textOf(block.content);
      if (summary !== undefined) parts.summaries.push(summary);
      return summary !== undefined;
    }
    default: {
      // The results of tools that Anthropic ran are kept if they are text.
      const text = textOf(block.content);
      if (text !== undefined) parts.texts.push({ type: 'text', text });
      return text !== undefined;
    }
  }
}

/** A signature is only valid with its block's text. Signatures that Weir did not encode are dropped. */
function readThinking(
  { thinking, signature }: JsonObject,
  parts: AssistantParts,
  embedded: EmbeddedJson,
): void {
  const text = readText(thinking);
  if (text !== undefined) parts.thoughts.push(text);
  const state = decodeReasoningState(signature, embedded);
  if (state === null || !('detail' in state)) return;
  const { type = 'reasoning.text', ...rest } = state.detail;
  if (!hasReasoningState(rest)) return;
  const detail = text === undefined ? { type, ...rest } : { type, text, ...rest };
  addReasoningState({ detail }, parts);
}

function addReasoningState(state: ReasoningState, parts: AssistantParts): void {
  if ('detail' in state) parts.details.push(state.detail);
  else parts.extras.set(state.call, state.extra_content);
}

function readCall({ id, name, input }: JsonObject): JsonObject {
  // Some SDKs send arguments that are truncated or invalid JSON as a string.
  const args = typeof input === 'string' ? input : JSON.stringify(input ?? {});
  const call = { name: readText(name) ?? '', arguments: args };
  return { id: fromToolUseId(readText(id) ?? ''), type: 'function', function: call };
}

/** The blocks of a content, which may also be a string. */
function blocksOf(content: unknown): readonly JsonObject[] {
  const text = readText(content);
  return text === undefined ? readArray(content).filter(isObject) : [{ type: 'text', text }];
}

/** The chat parts of a user's, system's or tool's blocks. */
function readParts(blocks: readonly JsonObject[], dropped: ReportedFields): readonly JsonObject[] {
  return blocks.flatMap((block) => {
    const parts = readBlock(block);
    if (parts === null) dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    return parts ?? [];
  });
}

/** A single text becomes a string, because some providers accept only strings. */
function contentOf(parts: readonly JsonObject[]): unknown {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  const isString = others.length === 0 && first.type === 'text' && first.cache_control === undefined;
  return isString ? first.text : parts;
}

/** @returns null for an unknown block */
function readBlock(block: JsonObject): readonly JsonObject[] | null {
  switch (block.type) {
    case 'text':
      return textPart(readText(block.text), block);
    case 'image':
      return readImage(block);
    case 'document':
      return readDocument(block);
    case 'search_result':
      return textPart(joinTexts([block.title, block.source, textOf(block.content)]), block);
    case 'tool_reference':
      return textPart(toolReferenceText(block), block);
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
function textPart(text: string | undefined, block: JsonObject): readonly JsonObject[] {
  return text === undefined ? [] : [withCacheControl({ type: 'text', text }, block)];
}

/** Keeps the cache mark. Request translation drops it for providers without cache marks. */
function withCacheControl(part: JsonObject, { cache_control }: JsonObject): JsonObject {
  return isObject(cache_control) ? { ...part, cache_control } : part;
}

function readImage(block: JsonObject): readonly JsonObject[] | null {
  const url = urlOf(block.source);
  return url === undefined ? null : [withCacheControl({ type: 'image_url', image_url: { url } }, block)];
}

function readDocument(block: JsonObject): readonly JsonObject[] | null {
  const source = objectOf(block.source);
  const title = readText(block.title);
  if (source.type === 'text' || source.type === 'content') {
    const text = joinTexts([title, block.context, source.data, textOf(source.content)]);
    const images = blocksOf(source.content).filter(({ type }) => type === 'image');
    return [...textPart(text, block), ...images.flatMap((image) => readImage(image) ?? [])];
  }
  const file_data = urlOf(source);
  if (file_data === undefined) return null;
  return [withCacheControl({ type: 'file', file: { filename: title ?? 'document.pdf', file_data } }, block)];
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

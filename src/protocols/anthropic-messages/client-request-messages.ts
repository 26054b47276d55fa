/** Reads Anthropic's conversation into chat's: results right after their calls, thinking and its tokens beside the answer (5.3). */

import { ReportedFields } from '../../canonical/reported-fields.ts';
import { EmbeddedJson, isObject, type JsonObject, readText } from '../../shared/json.ts';
import {
  decodeReasoningState,
  hasReasoningState,
  type ReasoningState,
  withProviderTag,
} from '../shared/reasoning-state.ts';
import { blocksOf, contentOf, readParts, textOf } from './client-request-content.ts';
import { fromToolUseId } from './tool-id.ts';

/** Claude Code's, first in its system: it changes with every version, and would defeat the caches of any other provider. */
const BILLING_HEADER = 'x-anthropic-billing-header';

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

/** Users' messages in a row are one turn: results in the later ones would not stand right behind their calls. */
function joinResults(messages: readonly JsonObject[]): readonly JsonObject[] {
  const joined: JsonObject[] = [];
  /** The last one's content, where it is joined already. */
  let own: JsonObject[] | null = null;
  for (const message of messages) {
    const before = joined.at(-1);
    const content = blocksOf(message.content);
    if (before?.role !== 'user' || message.role !== 'user' || !content.some(isToolResult)) {
      joined.push(message);
      own = null;
      continue;
    }
    if (own === null) {
      own = [...blocksOf(before.content)];
      joined[joined.length - 1] = { ...before, content: own };
    }
    for (const block of content) own.push(block);
  }
  return joined;
}

function readSystem(content: unknown, dropped: ReportedFields): readonly JsonObject[] {
  const blocks = blocksOf(content).filter(({ text }) => !readText(text)?.startsWith(BILLING_HEADER));
  const parts = readParts(blocks, dropped);
  return parts.length === 0 ? [] : [{ role: 'system', content: contentOf(parts) }];
}

/** Results come first, whatever stands before them: between a call and its result no provider takes anything else. */
function readUser({ content }: JsonObject, dropped: ReportedFields): readonly JsonObject[] {
  const blocks = blocksOf(content);
  const results = blocks.filter(isToolResult).map((block) => readResult(block, dropped));
  const parts = [
    ...results.flatMap(({ others }) => others),
    ...readParts(
      blocks.filter((block) => !isToolResult(block)),
      dropped,
    ),
  ];
  const tools = results.map(({ message }) => message);
  return parts.length === 0 && tools.length > 0
    ? tools
    : [...tools, { role: 'user', content: contentOf(parts) }];
}

function isToolResult({ type }: JsonObject): boolean {
  return type === 'tool_result';
}

interface Result {
  readonly message: JsonObject;
  /** What a tool's message can't have, such as its images: they follow as the user's. */
  readonly others: readonly JsonObject[];
}

function readResult(block: JsonObject, dropped: ReportedFields): Result {
  const parts = readParts(blocksOf(block.content), dropped);
  const texts = parts.filter(({ type }) => type === 'text');
  const others = parts.filter(({ type }) => type !== 'text');
  const text = texts.map((part) => part.text).join('\n');
  const said = text === '' && others.length > 0 ? 'The result follows in the next message.' : text;
  const content = block.is_error === true && !/error/i.test(said.slice(0, 32)) ? `Error: ${said}` : said;
  const cached = texts.find(({ cache_control }) => cache_control !== undefined) ?? block;
  const { cache_control } = cached;
  const message = {
    role: 'tool',
    tool_call_id: fromToolUseId(readText(block.tool_use_id) ?? ''),
    content: isObject(cache_control) ? [{ type: 'text', text: content, cache_control }] : content,
  };
  return { message, others };
}

/** What an assistant's message is put together of. */
interface Answer {
  readonly texts: JsonObject[];
  readonly thoughts: string[];
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
  /** By the id of the call that it belongs to. */
  readonly extras: Map<string, JsonObject>;
  /** What was said before in other words, and is now the user's to say. */
  readonly summaries: string[];
}

function readAssistant(
  { content }: JsonObject,
  dropped: ReportedFields,
  embedded: EmbeddedJson,
): readonly JsonObject[] {
  const answer: Answer = {
    texts: [],
    thoughts: [],
    details: [],
    calls: [],
    extras: new Map(),
    summaries: [],
  };
  for (const block of blocksOf(content)) {
    if (!readAnswerBlock(block, answer, embedded)) {
      dropped.add(`messages.content.${readText(block.type) ?? 'unknown'}`);
    }
  }
  const { texts, thoughts, details, calls, extras, summaries } = answer;
  const tool_calls = calls.map((call) => {
    const extra_content = extras.get(String(call.id));
    return extra_content === undefined ? call : { ...call, extra_content };
  });
  const isMarked = texts.some(({ cache_control }) => cache_control !== undefined);
  const text = texts.map((part) => part.text).join('\n');
  const message = {
    role: 'assistant',
    content: isMarked ? texts : text === '' && calls.length > 0 ? null : text,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls }),
  };
  return [...summaries.map((summary) => ({ role: 'user', content: summary })), message];
}

/** @returns false for a block of which nothing is left */
function readAnswerBlock(block: JsonObject, answer: Answer, embedded: EmbeddedJson): boolean {
  switch (block.type) {
    case 'text':
      answer.texts.push(...readParts([block], new ReportedFields()));
      return true;
    case 'thinking':
      readThinking(block, answer, embedded);
      return true;
    case 'redacted_thinking': {
      const opened = decodeReasoningState(block.data, embedded);
      if (opened !== null) keepToken(opened.token, opened.provider, answer);
      return opened !== null;
    }
    case 'tool_use':
      answer.calls.push(readCall(block));
      return true;
    case 'compaction': {
      const summary = textOf(block.content);
      if (summary !== undefined) answer.summaries.push(summary);
      return summary !== undefined;
    }
    default: {
      // Tools that Anthropic ran: what they found is part of what was said, where it is a text.
      const text = textOf(block.content);
      if (text !== undefined) answer.texts.push({ type: 'text', text });
      return text !== undefined;
    }
  }
}

/** Its text is its block's own: a signature is for that text and no other. One that is not Weir's belongs to nobody here. */
function readThinking({ thinking, signature }: JsonObject, answer: Answer, embedded: EmbeddedJson): void {
  const text = readText(thinking);
  if (text !== undefined) answer.thoughts.push(text);
  const opened = decodeReasoningState(signature, embedded);
  if (opened === null || !('detail' in opened.token)) return;
  const { type = 'reasoning.text', ...rest } = opened.token.detail;
  if (!hasReasoningState(rest)) return;
  const detail = text === undefined ? { type, ...rest } : { type, text, ...rest };
  keepToken({ detail }, opened.provider, answer);
}

function keepToken(token: ReasoningState, provider: string, answer: Answer): void {
  if ('detail' in token) answer.details.push(withProviderTag(token.detail, provider));
  else answer.extras.set(token.call, { ...token.extra_content, weir: { provider } });
}

function readCall({ id, name, input }: JsonObject): JsonObject {
  // Arguments that were cut or are no JSON: some SDKs send the text itself back, as it is in a chat.
  const args = typeof input === 'string' ? input : JSON.stringify(input ?? {});
  const call = { name: readText(name) ?? '', arguments: args };
  return { id: fromToolUseId(readText(id) ?? ''), type: 'function', function: call };
}

/** Whether a body's messages are a conversation at all. */
export function isConversation(messages: unknown): boolean {
  return Array.isArray(messages) && messages.every(isObject);
}

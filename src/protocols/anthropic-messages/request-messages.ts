/** Writes a conversation as Anthropic has it: the system apart, turns that alternate, a call's results first in the turn behind it (A2). */

import { toolCallId } from '../../canonical/tool-call-id.ts';
import { isFromResponse, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { argumentsObject, StepCalls } from '../../request-translation/tools.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';
import { contentBlocks, textBlocks, withCacheControl } from './request-content.ts';
import { thinkingBlocks } from './request-reasoning.ts';

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
  /** The id of the provider that is asked: it reads its own tokens alone (A7). */
  readonly providerId: string;
  readonly report: TranslationReport;
}

export function claudeConversation(messages: readonly unknown[], options: ConversationOptions): Conversation {
  const asked = messages.filter(isObject);
  const first = asked.findIndex((message) => !isSystem(message));
  const leading = first < 0 ? asked : asked.slice(0, first);
  const writer = new TurnWriter(options);
  const rest = first < 0 ? [] : asked.slice(first);
  for (const message of rest) writer.add(message);
  const turns = writer.turns();
  const system = leading
    .map((message) => ownBlocks(message, options.report))
    .filter(({ length }) => length > 0);
  // 400 "messages: at least one message is required", where OpenAI answers a system message: langchain-ai/langchain#30764, 2025-04-14.
  const runner = turns.length === 0 ? system.pop() : undefined;
  return { system: system.flat(), messages: runner ? [{ role: 'user', content: runner }] : turns };
}

function isSystem({ role }: JsonObject): boolean {
  return role === 'system' || role === 'developer';
}

function ownBlocks(message: JsonObject, report: TranslationReport): JsonObject[] {
  return withCacheControl(contentBlocks(message.content, report), message.cache_control);
}

/** `^[a-zA-Z0-9_-]+$`: maximhq/bifrost#5097, 2026-07-10. */
const TOOL_ID = /^[a-zA-Z0-9_-]{1,128}$/;

/** What a message may have besides its content; the rest of it is nothing that Anthropic knows. */
const MESSAGE_KEYS = ['role', 'content', 'cache_control', 'tool_call_id', 'tool_calls'];

interface WrittenTurn extends Turn {
  /** They stand first, whatever the client sent between them: 400 "`tool_use` ids were found without `tool_result` blocks". */
  readonly results: JsonObject[];
  content: JsonObject[];
}

class TurnWriter {
  readonly #options: ConversationOptions;
  readonly #turns: WrittenTurn[] = [];
  /** The calls of the last turn, by the ids that they have here: one that is not unique is refused. */
  readonly #calls = new StepCalls();
  readonly #usedIds = new Set<string>();
  readonly #embedded = new EmbeddedJson();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  add(message: JsonObject): void {
    this.#reportRest(message);
    const { report } = this.#options;
    if (message.role === 'assistant') return this.#push('assistant', this.#assistant(message));
    if (message.role === 'tool') return this.#addResult(message);
    const blocks = ownBlocks(message, report);
    this.#push(isSystem(message) ? this.#systemRole() : 'user', blocks);
  }

  turns(): readonly Turn[] {
    const last = this.#turns.at(-1);
    // 400 "final assistant content cannot end with trailing whitespace".
    if (last?.role === 'assistant') last.content = last.content.map(trimmed);
    return this.#turns.map(({ role, results, content }) => ({ role, content: [...results, ...content] }));
  }

  /**
   * Behind a turn of the user's and before one of the assistant's, or at the end, and never two.
   * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations (2026-11-22)
   */
  #systemRole(): Turn['role'] {
    const last = this.#turns.at(-1)?.role;
    return this.#options.family.takesSystemTurns && (last === 'user' || last === 'system')
      ? 'system'
      : 'user';
  }

  /** More comes of the user's: what a system message said before it is the user's, too. */
  #endSystemTurn(): void {
    if (this.#turns.at(-1)?.role !== 'system') return;
    const { content } = this.#turns.pop() ?? { content: [] };
    const last = this.#turns.at(-1);
    if (last !== undefined) append(last.content, content);
  }

  #push(role: Turn['role'], blocks: JsonObject[]): void {
    if (blocks.length === 0) return;
    if (role === 'user') this.#endSystemTurn();
    const last = this.#turns.at(-1);
    if (last?.role === role) append(last.content, blocks);
    else this.#turns.push({ role, results: [], content: blocks });
  }

  #assistant(message: JsonObject): JsonObject[] {
    const { providerId, report } = this.#options;
    const content = contentBlocks(message.content, report).filter(({ type }) => !isThought(type));
    const refusal = readText(message.refusal);
    const said = content.length === 0 && refusal !== undefined ? textBlocks(refusal) : content;
    const calls = readArray(message.tool_calls).filter(isObject);
    if (this.#turns.at(-1)?.role !== 'assistant') this.#calls.begin();
    const blocks = [
      ...thinkingBlocks(message, providerId),
      ...said,
      ...calls.map((call) => this.#call(call)),
    ];
    // Nobody takes a turn of thoughts alone.
    return said.length + calls.length === 0 ? [] : withCacheControl(blocks, message.cache_control);
  }

  #call(call: JsonObject): JsonObject {
    const fn = objectOf(call.function, call.custom);
    return {
      type: 'tool_use',
      id: this.#idOf(readText(call.id) ?? ''),
      name: fn.name,
      input: argumentsObject(fn.arguments ?? fn.input, this.#embedded),
    };
  }

  #idOf(own: string): string {
    const id = ownId(own);
    const unique = this.#usedIds.has(id) ? toolCallId(`${id} ${this.#usedIds.size}`) : id;
    this.#usedIds.add(unique);
    this.#calls.add(own, unique);
    return unique;
  }

  #addResult(message: JsonObject): void {
    const own = readText(message.tool_call_id) ?? '';
    const { content } = message;
    const blocks = typeof content === 'string' ? content : contentBlocks(content, this.#options.report);
    const result: JsonObject = {
      type: 'tool_result',
      tool_use_id: this.#calls.matchResult(own) ?? ownId(own),
      ...(blocks.length === 0 ? {} : { content: blocks }),
      ...(isObject(message.cache_control) ? { cache_control: message.cache_control } : {}),
    };
    this.#endSystemTurn();
    const last = this.#turns.at(-1);
    if (last?.role === 'user') last.results.push(result);
    else this.#turns.push({ role: 'user', results: [result], content: [] });
  }

  #reportRest(message: JsonObject): void {
    for (const [key, value] of Object.entries(message)) {
      const isSilent = value === null || value === undefined || isFromResponse(key);
      if (!MESSAGE_KEYS.includes(key) && !isSilent) this.#options.report.drop(`messages.${key}`);
    }
  }
}

/** One by one: a call with as many arguments would exceed the engine's stack. */
function append(content: JsonObject[], blocks: readonly JsonObject[]): void {
  for (const block of blocks) content.push(block);
}

function isThought(type: unknown): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

function ownId(id: string): string {
  return TOOL_ID.test(id) ? id : toolCallId(id);
}

function trimmed(block: JsonObject, at: number, { length }: readonly JsonObject[]): JsonObject {
  const text = at === length - 1 && block.type === 'text' ? readText(block.text) : undefined;
  return text === undefined ? block : { ...block, text: text.trimEnd() };
}

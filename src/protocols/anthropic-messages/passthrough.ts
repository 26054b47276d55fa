/** Passthrough of Messages requests and events to providers that speak Messages. */

import { mayBePlaceholder } from '../../canonical/part.ts';
import { readProviderTag } from '../../canonical/reasoning-details.ts';
import type { Usage } from '../../canonical/usage.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { JsonProgress } from '../../shared/json-progress.ts';
import { MAX_TOOL_CALLS } from '../../shared/limits.ts';
import { frame, HEARTBEAT_FRAME } from '../../stream/sse-frame.ts';
import type { StreamFailure } from '../../stream/types.ts';
import type { Passthrough, PassthroughOptions } from '../shared/client-protocol.ts';
import { type PassedEvent, type PassthroughFormat, PassthroughWriter } from '../shared/passthrough-writer.ts';
import { errorEvent } from './client-errors.ts';
import { messageStart, messageUsage, PING_FRAME } from './client-format.ts';

export const messagesPassthrough: Passthrough = {
  protocol: 'messages',
  outputLimitField: 'max_tokens',
  // Unknown blocks and tools, and fields from which Anthropic's servers load tools.
  promptFields: /^(?:messages|tools)\.|^(?:mcp_servers|container)$/,
  // All edits except those that clear content run a model:
  // https://platform.claude.com/docs/en/build-with-claude/context-editing (2026-11-22).
  compactsContext: ({ context_management: management }) =>
    readArray(isObject(management) ? management.edits : undefined).some(
      (edit) => !(isObject(edit) && /^clear_/.test(readText(edit.type) ?? '')),
    ),
  requestHeaders: ['anthropic-version', 'anthropic-beta'],
  responseHeaders: ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((unit) =>
    ['limit', 'remaining', 'reset'].map((value) => `anthropic-ratelimit-${unit}-${value}`),
  ),
  upstreamBody: withoutReasoningStates,
  streamWriter: (options) => new PassthroughWriter(() => new MessagesFormat(options), options.maxEventBytes),
  writeJson: (response, options) =>
    response.type === 'message' ? writeMessage(response, options) : response,
};

/** The longest `content_block_stop` that is held as it came. Anthropic's has 40 characters. */
const MAX_HELD_STOP_CHARS = 512;

/** What has come of the input of an open block. */
interface OpenInput {
  /** A call that the client runs, not one of the provider's own tools. */
  readonly isCall: boolean;
  readonly progress: JsonProgress;
}

/**
 * Leaves out placeholders before the arguments of a call: without one and without arguments, the input is an empty object as well. Holds
 * the `content_block_stop` of a call whose arguments are cut until the message's stop reason: Anthropic's SDK takes the stop for the
 * call's end, and completes its JSON. A failure replaces the stop reason (N2), and what is held.
 */
class MessagesFormat implements PassthroughFormat {
  readonly #options: PassthroughOptions;
  /** By the index of their blocks. */
  readonly #inputs = new Map<unknown, OpenInput>();
  /** The block that is written; null: none. */
  #openBlock: number | null = null;
  #held: PassedEvent[] = [];

  constructor(options: PassthroughOptions) {
    this.#options = options;
  }

  heartbeat(hasBegun: boolean): string {
    return hasBegun ? PING_FRAME : HEARTBEAT_FRAME;
  }

  failure(failure: StreamFailure): string {
    return frame('error', errorEvent(failure, this.#options.requestId));
  }

  limit(usage: Usage, hasBegun: boolean): string {
    const stops = this.#held.map(({ name, data }) => frame(name, data));
    const open = this.#openBlock;
    if (open !== null) stops.push(frame('content_block_stop', JSON.stringify(blockStop(open))));
    const { output_tokens } = messageUsage(usage);
    const delta = { stop_reason: 'max_tokens', stop_sequence: null };
    const end = JSON.stringify({ type: 'message_delta', delta, usage: { output_tokens } });
    return (
      (hasBegun ? '' : frame('message_start', messageStart(this.#options, usage.prompt_tokens))) +
      stops.join('') +
      frame('message_delta', end) +
      frame('message_stop', JSON.stringify({ type: 'message_stop' }))
    );
  }

  events({ name, data }: PassedEvent, event: JsonObject): readonly PassedEvent[] {
    if (event.type === 'content_block_start') this.#open(event);
    if (event.type === 'content_block_stop') this.#openBlock = null;
    if (event.type === 'content_block_delta' && this.#isPlaceholder(event)) return [];
    const frame = writeData(name, data, this.#options);
    if (frame === null) return [];
    const passed = { name, data: frame };
    if (event.type === 'content_block_stop' && this.#isCut(event)) return this.#hold(passed, event);
    return hasStopReason(event) ? [...this.#held.splice(0), passed] : [passed];
  }

  #open({ index, content_block }: JsonObject): void {
    const { type } = objectOf(content_block);
    this.#openBlock = readCount(index) ?? null;
    const isFollowed = readText(type)?.endsWith('tool_use') === true && this.#inputs.size < MAX_TOOL_CALLS;
    if (isFollowed) this.#inputs.set(index, { isCall: type === 'tool_use', progress: new JsonProgress() });
    else this.#inputs.delete(index);
  }

  #isPlaceholder({ index, delta }: JsonObject): boolean {
    const input = this.#inputs.get(index);
    const piece = readText(objectOf(delta).partial_json);
    if (input === undefined || piece === undefined) return false;
    if (!input.progress.hasBegun && mayBePlaceholder(piece)) return true;
    input.progress.push(piece);
    return false;
  }

  /** Whether the block that ends is a call whose arguments are cut. */
  #isCut({ index }: JsonObject): boolean {
    const input = this.#inputs.get(index);
    this.#inputs.delete(index);
    return input?.isCall === true && input.progress.endsCut;
  }

  #hold({ name, data }: PassedEvent, { type, index }: JsonObject): readonly PassedEvent[] {
    const isShort = data.length <= MAX_HELD_STOP_CHARS;
    this.#held.push({ name, data: isShort ? data : JSON.stringify({ type, index }) });
    return [];
  }
}

function blockStop(index: number) {
  return { type: 'content_block_stop', index };
}

function hasStopReason({ type, delta }: JsonObject): boolean {
  return type === 'message_stop' || readText(objectOf(delta).stop_reason) !== undefined;
}

/** Changes the model's name in `message_start`, and the block events that may have reasoning. Returns null to drop the event. */
function writeData(name: string, data: string, options: PassthroughOptions): string | null {
  const isStripped = options.reasoning === 'strip';
  const isBlock = name === 'content_block_start' || name === 'content_block_delta';
  if (name !== 'message_start' && !(isStripped && isBlock)) return data;
  const event = parseJsonExactly(data);
  if (!isObject(event)) return data;
  if (name === 'content_block_delta') return objectOf(event.delta).type === 'thinking_delta' ? null : data;
  const key = name === 'message_start' ? 'message' : 'content_block';
  const received = objectOf(event[key]);
  const shownMember = key === 'message' ? writeMessage(received, options) : withoutThinking(received);
  return shownMember === received ? data : JSON.stringify({ ...event, [key]: shownMember });
}

/** Claude Code sends thinking back only if the message's model is the requested one (2.1.197, tried 2026-11-22). */
function writeMessage(message: JsonObject, { model, reasoning }: PassthroughOptions): JsonObject {
  const named = message.model === model ? message : { ...message, model };
  if (reasoning === 'pass' || !Array.isArray(message.content)) return named;
  const content = message.content.map((block: unknown) => (isObject(block) ? withoutThinking(block) : block));
  return { ...named, content };
}

/** Removes the text as Anthropic does for hidden thinking. The signature contains all of it. */
function withoutThinking(block: JsonObject): JsonObject {
  const hasText = block.type === 'thinking' && (readText(block.thinking) ?? '') !== '';
  return hasText ? { ...block, thinking: '' } : block;
}

/**
 * Removes blocks that other providers made, which this provider would refuse. Returns null if the current tool loop has such blocks,
 * because it is invalid without them: "Expected `thinking` or `redacted_thinking`, but found `tool_use`".
 */
function withoutReasoningStates(body: JsonObject): JsonObject | null {
  const messages = readArray(body.messages);
  if (!messages.some(hasTaggedBlock)) return body;
  const loopStart = messages.findLastIndex((message) => isObject(message) && isUserTurn(message));
  if (messages.slice(loopStart + 1).some(hasTaggedBlock)) return null;
  const kept = messages.map((message) => {
    if (!isObject(message) || !hasTaggedBlock(message)) return message;
    return { ...message, content: readArray(message.content).filter((block) => !isTagged(block)) };
  });
  // Empty messages would be refused.
  return { ...body, messages: kept.filter((message) => !isObject(message) || !isEmpty(message)) };
}

/** A user message without tool results. The messages after it are one turn of the model. */
function isUserTurn({ role, content }: JsonObject): boolean {
  const hasResult = readArray(content).some((block) => isObject(block) && block.type === 'tool_result');
  return role === 'user' && !hasResult;
}

function hasTaggedBlock(message: unknown): boolean {
  return isObject(message) && readArray(message.content).some(isTagged);
}

function isTagged(block: unknown): boolean {
  return isObject(block) && [block.signature, block.data].some((state) => readProviderTag(state) !== null);
}

function isEmpty({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.length === 0;
}

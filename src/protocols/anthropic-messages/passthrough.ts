/** Passthrough of Messages requests and events to providers that speak Messages. */

import { mayBePlaceholder } from '../../canonical/part.ts';
import { readProviderTag } from '../../canonical/reasoning-details.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  readText,
} from '../../shared/json.ts';
import { frame, HEARTBEAT_FRAME } from '../../stream/sse-frame.ts';
import type { Passthrough, PassthroughOptions } from '../shared/client-protocol.ts';
import { PassthroughWriter } from '../shared/passthrough-writer.ts';
import { errorEvent } from './client-errors.ts';
import { PING_FRAME } from './client-format.ts';

export const messagesPassthrough: Passthrough = {
  protocol: 'messages',
  outputLimitField: 'max_tokens',
  // Unknown blocks and tools, and fields from which Anthropic's servers load tools.
  promptFields: /^(?:messages|tools)\.|^(?:mcp_servers|container)$/,
  // All edits except those that clear content run a model: https://platform.claude.com/docs/en/build-with-claude/context-editing (2026-11-22).
  compactsContext: ({ context_management: management }) =>
    readArray(isObject(management) ? management.edits : undefined).some(
      (edit) => !(isObject(edit) && /^clear_/.test(String(edit.type))),
    ),
  requestHeaders: ['anthropic-version', 'anthropic-beta'],
  responseHeaders: ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((unit) =>
    ['limit', 'remaining', 'reset'].map((value) => `anthropic-ratelimit-${unit}-${value}`),
  ),
  upstreamBody: withoutReasoningStates,
  streamWriter: (options) =>
    new PassthroughWriter(() => {
      const placeholders = new Placeholders();
      return {
        heartbeat: (hasBegun) => (hasBegun ? PING_FRAME : HEARTBEAT_FRAME),
        failure: (failure) => frame('error', errorEvent(failure, options.requestId)),
        eventData: (name, data, event) =>
          placeholders.includes(event) ? null : writeData(name, data, options),
      };
    }, options.maxEventBytes),
  writeJson: (response, options) =>
    response.type === 'message' ? writeMessage(response, options) : response,
};

/** Finds placeholders before the arguments of a call. Without one and without arguments, the input is an empty object as well. */
class Placeholders {
  /** The block whose arguments have begun. */
  #begun: unknown = null;

  includes({ type, index, delta }: JsonObject): boolean {
    if (type === 'content_block_start') this.#begun = null;
    const piece = type === 'content_block_delta' ? readText(objectOf(delta).partial_json) : undefined;
    if (piece === undefined || this.#begun === index) return false;
    if (mayBePlaceholder(piece)) return true;
    this.#begun = index;
    return false;
  }
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
  const written = key === 'message' ? writeMessage(received, options) : withoutThinking(received);
  return written === received ? data : JSON.stringify({ ...event, [key]: written });
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

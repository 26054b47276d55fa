/** What of Messages passes as it is where its provider speaks Messages, too (N1, N2). */

import { readProviderTag } from '../../canonical/provider-tag.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  readText,
} from '../../shared/json.ts';
import type { Passthrough, PassthroughOptions } from '../shared/client-protocol.ts';
import { PassthroughWriter } from '../shared/passthrough-writer.ts';
import { errorEvent } from './client-errors.ts';
import { COMMENT_FRAME, ERROR, PING_FRAME } from './client-events.ts';

export const messagesPassthrough: Passthrough = {
  protocol: 'messages',
  outputLimitField: 'max_tokens',
  // Blocks and tools of kinds that are not known; what Anthropic's servers look for tools in.
  promptFields: /^(?:messages|tools)\.|^(?:mcp_servers|container)$/,
  // Edits that clear content run no model: https://platform.claude.com/docs/en/build-with-claude/context-editing (2026-11-22).
  compactsContext: ({ context_management: management }) =>
    readArray(isObject(management) ? management.edits : undefined).some(
      (edit) => !(isObject(edit) && /^clear_/.test(String(edit.type))),
    ),
  requestHeaders: ['anthropic-version', 'anthropic-beta'],
  responseHeaders: ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((of) =>
    ['limit', 'remaining', 'reset'].map((what) => `anthropic-ratelimit-${of}-${what}`),
  ),
  withoutReasoningStates,
  streamWriter: (options) =>
    new PassthroughWriter(
      {
        heartbeat: (hasBegun) => (hasBegun ? PING_FRAME : COMMENT_FRAME),
        failure: (failure) => `${ERROR}${errorEvent(failure, options.requestId)}\n\n`,
        data: (name, data) => writeData(name, data, options),
      },
      options.maxEventBytes,
    ),
  writeJson: (answer, options) => (answer.type === 'message' ? writeMessage(answer, options) : answer),
};

/** Of the events one begins the message, and two may hold what it thinks. */
function writeData(name: string, data: string, options: PassthroughOptions): string | null {
  const isStripped = options.reasoning === 'strip';
  const isBlock = name === 'content_block_start' || name === 'content_block_delta';
  if (name !== 'message_start' && !(isStripped && isBlock)) return data;
  const event = parseJsonExactly(data);
  if (!isObject(event)) return data;
  if (name === 'content_block_delta') return objectOf(event.delta).type === 'thinking_delta' ? null : data;
  const key = name === 'message_start' ? 'message' : 'content_block';
  const given = objectOf(event[key]);
  const own = key === 'message' ? writeMessage(given, options) : withoutThought(given);
  return own === given ? data : JSON.stringify({ ...event, [key]: own });
}

/** Claude Code sends thoughts back only where the answer's model is the one that it asked for (2.1.197, tried 2026-11-22). */
function writeMessage(message: JsonObject, { model, reasoning }: PassthroughOptions): JsonObject {
  const named = message.model === model ? message : { ...message, model };
  if (reasoning === 'pass' || !Array.isArray(message.content)) return named;
  const content = message.content.map((block: unknown) => (isObject(block) ? withoutThought(block) : block));
  return { ...named, content };
}

/** In the form of a thought that is not shown: its signature has all of it. */
function withoutThought(block: JsonObject): JsonObject {
  const isShown = block.type === 'thinking' && (readText(block.thinking) ?? '') !== '';
  return isShown ? { ...block, thinking: '' } : block;
}

/**
 * Blocks whose token Weir has tagged are other providers' thoughts: this one would refuse the request for them. A tool loop that
 * another one began can't go on without its thoughts: "Expected `thinking` or `redacted_thinking`, but found `tool_use`" (2.5).
 */
function withoutReasoningStates(body: JsonObject): JsonObject | null {
  const messages = readArray(body.messages);
  if (!messages.some(hasToken)) return body;
  const loopStart = messages.findLastIndex((message) => isObject(message) && isAsking(message));
  if (messages.slice(loopStart + 1).some(hasToken)) return null;
  const kept = messages.map((message) => {
    if (!isObject(message) || !hasToken(message)) return message;
    return { ...message, content: readArray(message.content).filter((block) => !isTagged(block)) };
  });
  // A message that was nothing else is none, and an empty one would be refused.
  return { ...body, messages: kept.filter((message) => !isObject(message) || !isEmpty(message)) };
}

/** A user's message that is no tool's result: what comes after it is one turn. */
function isAsking({ role, content }: JsonObject): boolean {
  const isResult = readArray(content).some((block) => isObject(block) && block.type === 'tool_result');
  return role === 'user' && !isResult;
}

function hasToken(message: unknown): boolean {
  return isObject(message) && readArray(message.content).some(isTagged);
}

function isTagged(block: unknown): boolean {
  return isObject(block) && [block.signature, block.data].some((token) => readProviderTag(token) !== null);
}

function isEmpty({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.length === 0;
}

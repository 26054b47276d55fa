/** What of Messages passes as it is where its provider speaks Messages, too (N1, N2). */
import { isObject, type JsonObject, parseJson, readArray } from '../../canonical/json.ts';
import { readMaker } from '../../canonical/maker.ts';
import type { Lane } from '../client.ts';
import { NativeWriter } from '../native-writer.ts';
import { errorEvent } from './errors.ts';
import { COMMENT_FRAME, ERROR, PING_FRAME } from './events.ts';

export const lane: Lane = {
  dialect: 'messages',
  outputLimit: 'max_tokens',
  // Blocks and tools of kinds that are not known; what Anthropic's servers look for tools in.
  promptParts: /^(?:messages|tools)\.|^(?:mcp_servers|container)$/,
  requestHeaders: ['anthropic-version', 'anthropic-beta'],
  responseHeaders: ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((of) =>
    ['limit', 'remaining', 'reset'].map((what) => `anthropic-ratelimit-${of}-${what}`),
  ),
  withoutTokens,
  openStream: ({ maxEventBytes, requestId, model }) =>
    new NativeWriter(
      {
        heartbeat: (hasBegun) => (hasBegun ? PING_FRAME : COMMENT_FRAME),
        failure: (failure) => `${ERROR}${errorEvent(failure, requestId)}\n\n`,
        data: (name, data) => (name === 'message_start' ? startWithModel(data, model) : data),
      },
      maxEventBytes,
    ),
  withModel,
};

/** Claude Code sends thoughts back only where the answer's model is the one that it asked for (2.1.197, tried 2026-11-22). */
function withModel(answer: JsonObject, model: string): JsonObject {
  return answer.type === 'message' && answer.model !== model ? { ...answer, model } : answer;
}

function startWithModel(data: string, model: string): string {
  const event = parseJson(data);
  if (!isObject(event) || !isObject(event.message)) return data;
  const message = withModel(event.message, model);
  return message === event.message ? data : JSON.stringify({ ...event, message });
}

/**
 * Blocks whose token Weir has tagged are other providers' thoughts: this one would refuse the request for them. A tool loop that
 * another one began can't go on without its thoughts: "Expected `thinking` or `redacted_thinking`, but found `tool_use`" (2.5).
 */
function withoutTokens(body: JsonObject): JsonObject | null {
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
  return isObject(block) && [block.signature, block.data].some((token) => readMaker(token) !== null);
}

function isEmpty({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.length === 0;
}

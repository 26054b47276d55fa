/** OpenAI chat completions, and what its many relatives make of it: `choices[].delta`, or `message` in a plain answer. */

import { readLogprobs } from '../../canonical/logprobs.ts';
import type { ChoicePart, ToolCallPart } from '../../canonical/part.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../../shared/json.ts';
import { type ProtocolQuirks, stateless } from '../../stream/upstream-protocol.ts';
import { readEnvelope, readName } from './upstream-envelope.ts';

export const openaiChat = stateless((event, quirks) =>
  readEnvelope(event, quirks, (choice, index) => readChoice(choice, index, quirks)),
);

function readChoice(choice: JsonObject, index: number, quirks: ProtocolQuirks): ChoicePart {
  const delta = deltaOf(choice);
  const typed = Array.isArray(delta.content) ? readTypedContent(delta.content) : undefined;
  const content = typed?.text ?? (typeof delta.content === 'string' ? delta.content : '');
  return {
    index,
    hasRole: readText(delta.role) !== undefined,
    hasContent: typed !== undefined || typeof delta.content === 'string',
    content,
    reasoning:
      (typed?.thinking ?? '') + (readText(delta.reasoning_content) ?? readText(delta.reasoning) ?? ''),
    refusal: readText(delta.refusal) ?? '',
    toolCalls: readToolCalls(delta, quirks),
    reasoningDetails: readArray(delta.reasoning_details).filter(isObject),
    logprobs: readLogprobs(choice.logprobs),
    finishWord: readText(choice.finish_reason) ?? null,
  };
}

/** Some send `message` with the whole answer so far beside every delta: it counts only where there is no delta. */
function deltaOf(choice: JsonObject): JsonObject {
  if (isObject(choice.delta)) return choice.delta;
  return objectOf(choice.message);
}

/** Typed content parts: `{"type":"text","text"}` and `{"type":"thinking","thinking":[…]}` (C6); others carry no text. */
function readTypedContent(parts: readonly unknown[]): { text: string; thinking: string } {
  let text = '';
  let thinking = '';
  for (const part of parts) {
    if (!isObject(part)) continue;
    if (part.type === 'thinking') thinking += readThinking(part.thinking);
    else if (part.type === 'text') text += readText(part.text) ?? '';
  }
  return { text, thinking };
}

function readThinking(thinking: unknown): string {
  if (typeof thinking === 'string') return thinking;
  return readArray(thinking)
    .map((part) => (isObject(part) ? (readText(part.text) ?? '') : ''))
    .join('');
}

function readToolCalls(delta: JsonObject, quirks: ProtocolQuirks): ToolCallPart[] {
  const calls = readArray(delta.tool_calls).filter(isObject);
  const fragments = calls.map((call) => readToolCall(call, call.function, quirks));
  // The form before tool calls: one call, without an index and an id.
  if (isObject(delta.function_call)) fragments.push(readToolCall({}, delta.function_call, quirks));
  return fragments;
}

function readToolCall(call: JsonObject, value: unknown, quirks: ProtocolQuirks): ToolCallPart {
  const id = readName(call.id);
  const fn = objectOf(value);
  return {
    index: readCount(call.index),
    id: id === quirks.absentToolCallId ? undefined : id,
    name: readName(fn.name),
    arguments: readArguments(fn.arguments),
    extraContent: isObject(call.extra_content) ? call.extra_content : undefined,
  };
}

/** Arguments are JSON text; some send the object itself, whole (C7). */
function readArguments(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

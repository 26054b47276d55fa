/** Sends the reasoning of earlier answers back under the name and in the form that the provider takes (Q2). */
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { omit } from '../shared/objects.ts';
import type { ReasoningForm } from './rules.ts';

/** Every name under which clients send reasoning text back. */
const NAMES = ['reasoning_content', 'reasoning', 'thinking_blocks'];

/**
 * An assistant message with its reasoning in that form.
 * @param required the text for a message without reasoning, where the provider demands the field
 */
export function rewriteReasoning(message: JsonObject, form: ReasoningForm, required?: string): JsonObject {
  if (form === 'both') return withBothNames(message);
  if (form === 'thinking_parts') return withThinkingParts(message);
  const text = readReasoning(message);
  const rest = withoutThinkingParts(omit(message, ...NAMES));
  if (form === 'none') return rest;
  const sent = text ?? required ?? (typeof message[form] === 'string' ? '' : undefined);
  return sent === undefined ? rest : { ...rest, [form]: sent };
}

/** The reasoning's text, whichever name and form it has; undefined where there is none. */
function readReasoning(message: JsonObject): string | undefined {
  return (
    readText(message.reasoning_content) ??
    readText(message.reasoning) ??
    joinTexts(readArray(message.reasoning_details), ['text', 'summary']) ??
    joinTexts(readArray(message.thinking_blocks), ['thinking']) ??
    joinTexts(readArray(message.content).filter(isThinkingPart).flatMap(thoughtsOf), ['text'])
  );
}

function joinTexts(items: readonly unknown[], keys: readonly string[]): string | undefined {
  const texts = items
    .filter(isObject)
    .map((item) => keys.map((key) => readText(item[key])).find(Boolean) ?? '');
  return readText(texts.join(''));
}

function isThinkingPart(part: unknown): part is JsonObject {
  return isObject(part) && part.type === 'thinking';
}

/** Mistral's thoughts are a list of text parts; Anthropic's are one text. */
function thoughtsOf(part: JsonObject): readonly unknown[] {
  return typeof part.thinking === 'string' ? [{ text: part.thinking }] : readArray(part.thinking);
}

function withBothNames(message: JsonObject): JsonObject {
  const text = readText(message.reasoning_content) ?? readText(message.reasoning);
  return text === undefined ? message : { ...message, reasoning: text, reasoning_content: text };
}

function withThinkingParts(message: JsonObject): JsonObject {
  const rest = omit(message, ...NAMES);
  const text = readReasoning(message);
  if (text === undefined || readArray(message.content).some(isThinkingPart)) return rest;
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text }], closed: true };
  const { content } = message;
  const answer = readText(content) === undefined ? readArray(content) : [{ type: 'text', text: content }];
  return { ...rest, content: [thinking, ...answer] };
}

function withoutThinkingParts(message: JsonObject): JsonObject {
  const parts = message.content;
  if (!Array.isArray(parts) || !parts.some(isThinkingPart)) return message;
  const rest = parts.filter((part) => !isThinkingPart(part));
  return { ...message, content: rest.length === 0 ? '' : rest };
}

/** A simple reader of OpenAI-shaped streams, independent of `src`: of an upstream's stream with its deviations, and of a client's stream. */

import {
  type ChoiceContent,
  type Content,
  emptyChoice,
  emptyContent,
  eventsOf,
  type ToolCall,
} from '../../tools/conformance/contract/content.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';
import { addFragment, type CallSlot, toolCallOf } from './reference-tool-calls.ts';
import { addUsage } from './reference-usage.ts';

export type { Content } from '../../tools/conformance/contract/content.ts';
export { differences } from './differences.ts';

/** Finish reasons that mean an error (C8). */
const ERROR_FINISHES: readonly Json[] = ['insufficient_system_resource', 'error'];

interface Walk {
  content: Content;
  /** The tool calls of each choice, with the indexes under which their fragments come. */
  slots: Map<number, CallSlot[]>;
}

/** Reads to the first `[DONE]` or error. A stream without either and with an unfinished choice has failed. */
export function readUpstream(text: string, kind: 'sse' | 'jsonl'): Content {
  const walk: Walk = { content: emptyContent(), slots: new Map() };
  const { content } = walk;
  for (const { name, data } of kind === 'sse' ? eventsOf(text) : linesOf(text)) {
    if (data.trim() === '[DONE]') content.done = true;
    else if (!name.startsWith('x_')) readEvent(walk, name, data);
    if (content.done || content.error !== null) break;
  }
  for (const [index, slots] of walk.slots) choiceAt(content, index).toolCalls = slots.map(toolCallOf);
  // A choice that is open at `[DONE]` is finished by it.
  if (content.done && !isFinished(content)) content.usageByFinish = content.usage;
  if (!content.done && !isFinished(content)) content.error ??= 'ended with an unfinished answer';
  return content;
}

function* linesOf(text: string) {
  for (const line of text.split('\n')) if (line.trim() !== '') yield { name: '', data: line };
}

function isFinished(content: Content): boolean {
  const choices = [...content.choices.values()];
  return choices.length > 0 && choices.every((choice) => choice.finish !== null);
}

function choiceAt(content: Content, index: number): ChoiceContent {
  const known = content.choices.get(index);
  if (known !== undefined) return known;
  const made = emptyChoice();
  content.choices.set(index, made);
  return made;
}

function readEvent(walk: Walk, name: string, data: string): void {
  const value = parseJson(data);
  const upstreamError = errorOf(name, value);
  if (!isObject(value)) {
    walk.content.error = upstreamError ?? 'a line that is not a JSON object';
    return;
  }
  if (textOf(value.type).startsWith('x_') && !('choices' in value)) return;
  const choices = listOf(value.choices).map(objectOf);
  for (const source of [value, objectOf(value.x_groq), ...choices]) addUsage(walk.content, source.usage);
  const error = upstreamError ?? errorFinishOf(walk, choices);
  const finishes = finishCount(walk.content);
  for (const [position, choice] of choices.entries()) {
    readChoice(walk, choice, indexOf(choice, position), error !== null);
  }
  walk.content.error = error;
  if (finishCount(walk.content) > finishes) walk.content.usageByFinish = walk.content.usage;
}

function finishCount(content: Content): number {
  return [...content.choices.values()].filter((choice) => choice.finish !== null).length;
}

function errorOf(name: string, value: Json | undefined): string | null {
  const event = objectOf(value);
  const error = event.error ?? (event.object === 'error' || name === 'error' ? (value ?? '') : null);
  if (error === null) return null;
  return textOf(error) || textOf(objectOf(error).message) || JSON.stringify(error);
}

function errorFinishOf(walk: Walk, choices: JsonObject[]): string | null {
  for (const [position, choice] of choices.entries()) {
    const finished = walk.content.choices.get(indexOf(choice, position))?.finish ?? null;
    const reason = choice.finish_reason ?? null;
    if (finished === null && ERROR_FINISHES.includes(reason)) return `finish_reason ${textOf(reason)}`;
  }
  return null;
}

function indexOf(choice: JsonObject, position: number): number {
  return typeof choice.index === 'number' ? choice.index : position;
}

/** A choice next to an error keeps its content, but has not finished. */
function readChoice(walk: Walk, choice: JsonObject, index: number, failing: boolean): void {
  const into = choiceAt(walk.content, index);
  if (into.finish !== null) return;
  const delta = objectOf(choice.delta);
  // A choice of Together has both, and `text` repeats the delta's content.
  addContent(into, delta.content ?? choice.text);
  into.reasoning += textOf(delta.reasoning_content) || textOf(delta.reasoning);
  into.refusal += textOf(delta.refusal);
  into.details.push(...listOf(delta.reasoning_details).filter(isObject));
  into.logprobTokens += logprobTokens(choice.logprobs);
  for (const fragment of [...listOf(delta.tool_calls), ...legacyCall(delta)]) {
    const slots = walk.slots.get(index) ?? [];
    walk.slots.set(index, slots);
    addFragment(slots, objectOf(fragment));
  }
  if (!failing && textOf(choice.finish_reason) !== '') into.finish = textOf(choice.finish_reason);
}

function legacyCall(delta: JsonObject): Json[] {
  return isObject(delta.function_call) ? [{ function: delta.function_call }] : [];
}

function addContent(into: ChoiceContent, content: Json | undefined): void {
  into.text += textOf(content);
  for (const part of listOf(content).map(objectOf)) {
    if (part.type === 'text') into.text += textOf(part.text);
    if (part.type === 'thinking') into.reasoning += thinkingOf(part.thinking);
  }
}

function thinkingOf(thinking: Json | undefined): string {
  const parts = listOf(thinking).map(objectOf);
  return textOf(thinking) + parts.map((part) => textOf(part.text)).join('');
}

function logprobTokens(logprobs: Json | undefined): number {
  const { content, refusal, tokens } = objectOf(logprobs);
  return listOf(content).length + listOf(refusal).length + listOf(tokens).length;
}

/** Accepts only the contract's names, so that anything that Weir did not repair is missing from the result. */
export function readClient(text: string): Content {
  const content = emptyContent();
  const slots = new Map<string, ToolCall>();
  for (const { data } of eventsOf(text)) {
    if (data === '[DONE]') content.done = true;
    const value = objectOf(parseJson(data));
    if (textOf(value.type).startsWith('x_') && !('choices' in value)) continue;
    if ('error' in value) content.error = textOf(objectOf(value.error).message);
    if (!Array.isArray(value.choices)) continue;
    addUsage(content, value.usage);
    for (const choice of value.choices.map(objectOf)) readClientChoice(content, choice, slots);
  }
  return content;
}

function readClientChoice(content: Content, choice: JsonObject, slots: Map<string, ToolCall>): void {
  if (typeof choice.index !== 'number') return;
  const into = choiceAt(content, choice.index);
  const delta = objectOf(choice.delta);
  into.text += textOf(delta.content) + textOf(choice.text);
  into.reasoning += textOf(delta.reasoning_content);
  into.refusal += textOf(delta.refusal);
  into.details.push(...listOf(delta.reasoning_details).map(objectOf));
  into.logprobTokens += logprobTokens(choice.logprobs);
  if (typeof choice.finish_reason === 'string') into.finish = choice.finish_reason;
  for (const fragment of listOf(delta.tool_calls).map(objectOf)) {
    const key = `${choice.index} ${JSON.stringify(fragment.index)}`;
    const { name, arguments: args } = objectOf(fragment.function);
    const call = slots.get(key) ?? {
      id: textOf(fragment.id),
      name: textOf(name),
      arguments: '',
      extra: null,
    };
    if (!slots.has(key)) into.toolCalls.push(call);
    slots.set(key, call);
    call.arguments += textOf(args);
    call.extra ??= isObject(fragment.extra_content) ? fragment.extra_content : null;
  }
}

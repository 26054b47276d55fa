/**
 * A simple reader of OpenAI-shaped streams, independent of `src`: of an upstream's stream with its deviations, and of a
 * client's stream.
 */

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
import { addFragment, type CallSlot, isRepeatedCall, toolCallOf } from './reference-tool-calls.ts';
import { addUsage } from './reference-usage.ts';

export type { Content } from '../../tools/conformance/contract/content.ts';
export { differences } from './differences.ts';

/** Finish reasons that mean an error (C8). */
const ERROR_FINISHES: readonly Json[] = ['insufficient_system_resource', 'error'];

interface Walk {
  content: Content;
  /** The tool calls of each choice, with the indexes under which their fragments come. */
  slots: Map<number, CallSlot[]>;
  /** The pieces of each choice's texts. */
  pieces: Map<number, Pieces>;
  /** The last finish word of each choice, also of a finish that more output followed. */
  lastFinishes: Map<number, string>;
  /** Choices whose finish was followed by something else than more output, so that nothing may follow it. */
  ended: Set<number>;
}

type Pieces = { [Member in 'text' | 'reasoning' | 'refusal']: string[] };

/** Reads to the first `[DONE]` or error. A stream without either and with an unfinished choice has failed. */
export function readUpstream(text: string, kind: 'sse' | 'jsonl'): Content {
  const walk: Walk = {
    content: emptyContent(),
    slots: new Map(),
    pieces: new Map(),
    lastFinishes: new Map(),
    ended: new Set(),
  };
  const { content } = walk;
  for (const { name, data } of kind === 'sse' ? eventsOf(text) : linesOf(text)) {
    if (data.trim() === '[DONE]') {
      content.done = true;
      for (const [index, choice] of content.choices) choice.finish ??= walk.lastFinishes.get(index) ?? null;
    } else if (!name.startsWith('x_')) readEvent(walk, name, data);
    if (content.error !== null) dropWaitingFinishes(walk);
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
  const before = finished(walk.content);
  let isFinish = false;
  let hasUpdate = false;
  for (const [position, choice] of choices.entries()) {
    const read = readChoice(walk, choice, indexOf(choice, position), error !== null);
    isFinish ||= read.isFinish;
    hasUpdate ||= read.isUpdate;
    walk.content.error ??= read.error;
  }
  walk.content.error ??= error;
  if (isFinish) walk.content.usageByFinish = walk.content.usage;
  const hasWord = choices.some((choice) => textOf(choice.finish_reason) !== '');
  const hasUsage = [value, objectOf(value.x_groq), ...choices].some(({ usage }) => isObject(usage));
  // A finish that nothing has followed yet waits for the next event.
  if (hasUpdate || isFinish || (hasUsage && !hasWord)) {
    for (const index of before) if (finished(walk.content).includes(index)) walk.ended.add(index);
  }
}

/** An error follows a finish that waits: it was none. */
function dropWaitingFinishes({ content, ended }: Walk): void {
  for (const [index, choice] of content.choices) if (!ended.has(index)) choice.finish = null;
}

function finished(content: Content): number[] {
  return [...content.choices].filter(([, { finish }]) => finish !== null).map(([index]) => index);
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

interface ReadChoice {
  isUpdate: boolean;
  /** It finished an open choice. */
  isFinish: boolean;
  error: string | null;
}

/** A choice next to an error keeps its content, but has not finished. */
function readChoice(walk: Walk, choice: JsonObject, index: number, failing: boolean): ReadChoice {
  const isNew = !walk.content.choices.has(index);
  const into = choiceAt(walk.content, index);
  const delta = objectOf(choice.delta);
  const slots = walk.slots.get(index) ?? [];
  walk.slots.set(index, slots);
  const pieces = walk.pieces.get(index) ?? { text: [], reasoning: [], refusal: [] };
  walk.pieces.set(index, pieces);
  const wasFinished = walk.lastFinishes.has(index);
  // A choice of Together has both, and `text` repeats the delta's content.
  const update = emptyChoice();
  addContent(update, delta.content ?? choice.text);
  update.reasoning += textOf(delta.reasoning_content) || textOf(delta.reasoning);
  update.refusal = textOf(delta.refusal);
  update.details.push(...listOf(delta.reasoning_details).filter(isObject));
  update.logprobTokens = logprobTokens(choice.logprobs);
  for (const member of ['text', 'reasoning', 'refusal'] as const) {
    const isWhole = pieces[member].length > 1 && pieces[member].join('') === update[member];
    if (wasFinished && isWhole) update[member] = '';
  }
  const fragments = [...listOf(delta.tool_calls), ...legacyCall(delta)]
    .map(objectOf)
    .filter((fragment) => !isRepeatedCall(slots, fragment));
  const hasOutput = update.text + update.reasoning + update.refusal !== '' || fragments.length > 0;
  const isUpdate = hasOutput || update.details.length > 0 || update.logprobTokens > 0 || isNew;
  const word = textOf(choice.finish_reason);
  if (word !== '' && !failing) walk.lastFinishes.set(index, word);
  if (walk.ended.has(index)) {
    return {
      isUpdate: hasOutput,
      isFinish: false,
      error: hasOutput ? 'output after the end of a choice' : null,
    };
  }
  if (into.finish !== null && isUpdate) into.finish = null;
  const isFinish = into.finish === null && word !== '' && !failing;
  for (const member of ['text', 'reasoning', 'refusal'] as const) {
    into[member] += update[member];
    if (update[member] !== '') pieces[member].push(update[member]);
  }
  into.details.push(...update.details);
  into.logprobTokens += update.logprobTokens;
  for (const fragment of fragments) addFragment(slots, fragment);
  if (word !== '' && !failing) into.finish = word;
  return { isUpdate, isFinish, error: null };
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

/** A simple reader of Gemini streams, written from Google's documentation and independent of `src`. */

import {
  type ChoiceContent,
  type Content,
  emptyChoice,
  emptyContent,
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

const PROVIDER = 'gemini';
const ERRORS = ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'NO_IMAGE'];
const FILTERS = /^(SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_\w+)$/;

/** Every JSON object of a stream, after `data:` or in separate lines. */
export function geminiEvents(text: string): JsonObject[] {
  const blocks = text.replaceAll('\r\n', '\n').split('\n\n');
  return blocks.flatMap((block) => {
    const value = parseJson(block.replace(/^data: ?/, ''));
    return isObject(value) ? [value] : [];
  });
}

export function readGemini(events: readonly JsonObject[]): Content {
  const content = emptyContent();
  let signatures = 0;
  const finishes = new Map<number, string>();
  let blocked = false;
  for (const event of events) {
    if (isObject(event.error)) {
      content.error = textOf(event.error.message);
      break;
    }
    if (isObject(event.usageMetadata))
      addUsage(content, event.usageMetadata, listOf(event.candidates).length > 0);
    blocked ||= textOf(objectOf(event.promptFeedback).blockReason) !== '';
    for (const candidate of listOf(event.candidates).map(objectOf)) {
      const index = typeof candidate.index === 'number' ? candidate.index : 0;
      const choice = content.choices.get(index) ?? emptyChoice();
      content.choices.set(index, choice);
      for (const part of listOf(objectOf(candidate.content).parts).map(objectOf)) {
        signatures += readPart(choice, part, signatures);
      }
      if (textOf(candidate.finishReason) !== '') finishes.set(index, textOf(candidate.finishReason));
    }
  }
  if (blocked && content.choices.size === 0) {
    content.choices.set(0, { ...emptyChoice(), finish: 'content_filter' });
  }
  for (const [index, choice] of content.choices) {
    const word = finishes.get(index);
    if (word === undefined || content.error !== null) continue;
    if (ERRORS.includes(word)) content.error = word;
    else choice.finish = FILTERS.test(word) ? 'content_filter' : word === 'MAX_TOKENS' ? 'length' : 'stop';
  }
  const isFinished = [...content.choices.values()].every(({ finish }) => finish !== null);
  if (!isFinished || content.choices.size === 0) content.error ??= 'ended with an unfinished answer';
  if (content.error !== null) for (const choice of content.choices.values()) choice.finish = null;
  content.usageByFinish = content.error === null ? content.usage : null;
  return content;
}

/** @returns the number of signatures that went to the details */
function readPart(choice: ChoiceContent, part: JsonObject, signatures: number): number {
  const data = textOf(part.thoughtSignature);
  if (isObject(part.functionCall)) {
    const { id, name, args } = part.functionCall;
    if (name === undefined) {
      readPieces(choice, part.functionCall);
      return 0;
    }
    const extra = data === '' ? null : { google: { thought_signature: data }, weir: { provider: PROVIDER } };
    choice.toolCalls.push({
      id: textOf(id),
      name: textOf(name),
      arguments: part.functionCall.willContinue === true ? '' : JSON.stringify(args ?? {}),
      extra,
    });
    return 0;
  }
  if (typeof part.text !== 'string') return 0;
  if (part.thought === true) choice.reasoning += part.text;
  else choice.text += part.text;
  if (data === '') return 0;
  const place = part.thought === true ? 'thought' : `text-${part.text.length}`;
  choice.details.push({
    type: 'reasoning.encrypted',
    data,
    id: `weir1:${PROVIDER}:${place}`,
    format: 'google-gemini-v1',
    index: signatures,
  });
  return 1;
}

/** Pieces of a call's arguments, as recorded: strings of the outermost object, each closed by a separate piece. */
function readPieces(choice: ChoiceContent, call: JsonObject): void {
  const last = choice.toolCalls.at(-1);
  if (last === undefined) return;
  if (Object.keys(call).length === 0) last.arguments += '}';
  for (const { jsonPath, stringValue, willContinue } of listOf(call.partialArgs).map(objectOf)) {
    const isEnd = willContinue !== true && stringValue === '';
    const key = JSON.stringify(textOf(jsonPath).replace('$.', ''));
    const value = JSON.stringify(stringValue).slice(0, -1);
    last.arguments += isEnd ? '"' : `${last.arguments === '' ? '{' : ','}${key}:${value}`;
  }
}

/** The last reported counts, field by field. */
function addUsage(content: Content, usage: JsonObject, hasAnswer: boolean): void {
  const before = content.usage;
  const prompt = plus(usage.promptTokenCount, usage.toolUsePromptTokenCount) ?? before?.prompt ?? null;
  const said = plus(usage.candidatesTokenCount, usage.thoughtsTokenCount);
  const rest = hasAnswer || prompt === null ? null : Number(usage.totalTokenCount) - prompt;
  content.usage = {
    prompt,
    completion: said ?? rest ?? before?.completion ?? null,
    total: null,
    cached: numberOf(usage.cachedContentTokenCount) ?? before?.cached ?? null,
    cacheWrite: null,
    reasoning: numberOf(usage.thoughtsTokenCount) ?? before?.reasoning ?? null,
  };
}

function plus(a: Json | undefined, b: Json | undefined): number | null {
  const [one, other] = [numberOf(a), numberOf(b)];
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

function numberOf(value: Json | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

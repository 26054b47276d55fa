/** Reads OpenAI chat and text completions, and the variants of compatible servers, into canonical parts. */

import { readAnnotations, readSources } from '../../canonical/citations.ts';
import { finishMeaning, isFinishWord } from '../../canonical/finish-reason.ts';
import { readLogprobs } from '../../canonical/logprobs.ts';
import {
  type ChoicePart,
  type ChunkPart,
  hasText,
  readName,
  type ToolCallPart,
} from '../../canonical/part.ts';
import { findUpstreamError, unfinished } from '../../canonical/upstream-error.ts';
import { mergeUsage, type UsageReport } from '../../canonical/usage.ts';
import {
  hasItems,
  isObject,
  type JsonObject,
  objectOf,
  readArray,
  readCount,
  readNumber,
  readText,
} from '../../shared/json.ts';
import { MAX_CHOICES } from '../../shared/limits.ts';
import { words } from '../../shared/words.ts';
import type { ProtocolQuirks, UpstreamProtocol } from '../../stream/types.ts';

/** Chat: `choices[].delta`, or `choices[].message` in a non-streaming response. */
export const openaiChat = stateless('chat', (event, quirks, isWhole) =>
  readEnvelope(event, quirks, (choice, index) =>
    isWhole ? readWholeChoice(choice, index, quirks) : readChatChoice(choice, index, quirks),
  ),
);

/** Legacy completions (`text_completion`): `choices[].text`. DeepSeek's fill-in-the-middle uses them. */
export const openaiCompletions = stateless('completions', (event, quirks) =>
  readEnvelope(event, quirks, readTextChoice),
);

/** A protocol whose reader keeps no state, and whose non-streaming responses have the form of its events. */
function stateless(
  id: UpstreamProtocol['id'],
  read: (event: JsonObject, quirks: ProtocolQuirks, isWhole: boolean) => ChunkPart,
): UpstreamProtocol {
  return {
    id,
    isFinishedByDone: true,
    open: (quirks) => {
      return {
        event: (event) => read(event, quirks, false),
        copiesArguments: true,
        response: (response) => {
          const part = read(response, quirks, true);
          if (part.error !== null || !isUnfinished(response, part)) return part;
          return { ...part, error: unfinished('without a finish_reason') };
        },
      };
    },
  };
}

/**
 * Whether a choice of a complete response says that it goes on, and no usage shows that it has ended: relays make such a response of the
 * pieces of a truncated stream. A response without the field is taken as complete if it has output, as a stream without a finish that
 * ends with `[DONE]`.
 */
function isUnfinished({ choices }: JsonObject, { usage, choices: read }: ChunkPart): boolean {
  const isEmpty = !read.some(hasText);
  const goesOn = readArray(choices).some((choice) => {
    if (!isObject(choice)) return false;
    return choice.finish_reason === null || (choice.finish_reason === undefined && isEmpty);
  });
  return goesOn && (usage?.completion ?? 0) === 0;
}

/** A timestamp above this (the year 5138 in seconds) is in milliseconds or finer. */
const MAX_CREATED_SECONDS = 1e11;

function readEnvelope(
  event: JsonObject,
  quirks: ProtocolQuirks,
  readChoice: (choice: JsonObject, index: number) => ChoicePart,
): ChunkPart {
  const choices = readArray(event.choices).slice(0, MAX_CHOICES).filter(isObject);
  // Perplexity: `StreamChunk` of perplexity-node (2026-11); in each event, the addresses alone or with titles. xAI: in the last chunk,
  // https://docs.x.ai/docs/guides/live-search (2026-11).
  const sources = readSources(event.citations, event.search_results);
  const part = {
    id: readName(event.id),
    created: readCreated(event.created),
    model: readName(event.model),
    serviceTier: readName(event.service_tier),
    systemFingerprint: readName(event.system_fingerprint),
    choices: choices.map((choice, position) => readChoice(choice, readIndex(choice.index, position))),
    usage: readAnyUsage(event, choices, quirks),
    error: findUpstreamError(event),
  };
  return sources === undefined ? part : { ...part, sources };
}

/** A choice without a valid index gets its position. */
function readIndex(index: unknown, position: number): number {
  const value = readCount(index);
  return value === undefined || value >= MAX_CHOICES ? position : value;
}

/** A time in seconds, also where the upstream sends milliseconds. */
export function readCreated(created: unknown): number | undefined {
  let seconds = readNumber(created) ?? 0;
  if (!Number.isFinite(seconds) || seconds < 1) return undefined;
  while (seconds > MAX_CREATED_SECONDS) seconds /= 1000;
  return Math.floor(seconds);
}

function readTextChoice(choice: JsonObject, index: number): ChoicePart {
  const part = {
    index,
    hasRole: false,
    hasContent: typeof choice.text === 'string',
    content: readText(choice.text) ?? '',
    reasoning: '',
    refusal: '',
    toolCalls: [],
    reasoningDetails: [],
    logprobs: readLogprobs(choice.logprobs),
    finishWord: readText(choice.finish_reason) ?? null,
  };
  return isLimited(choice) ? { ...part, isLimited: true } : part;
}

/**
 * A choice of a stream. Some servers send `message` with the output so far beside every delta, so it is read only if there is no delta,
 * or at the finish if nothing came before.
 */
function readChatChoice(choice: JsonObject, index: number, quirks: ProtocolQuirks): ChoicePart {
  const { delta, message } = choice;
  if (!isObject(delta)) return readMessage(choice, objectOf(message), index, quirks);
  const part = readMessage(choice, delta, index, quirks);
  if (part.finishWord === null || !isObject(message)) return part;
  return { ...part, whole: readMessage(choice, message, index, quirks) };
}

/** A choice of a complete response. Perplexity sends an empty `delta` beside `message`: what says something counts. */
function readWholeChoice(choice: JsonObject, index: number, quirks: ProtocolQuirks): ChoicePart {
  const message = readMessage(choice, objectOf(choice.message), index, quirks);
  if (choice.delta === undefined) return message;
  const delta = readMessage(choice, objectOf(choice.delta), index, quirks);
  const calls = message.toolCalls.length > 0 ? message : delta;
  const details = message.reasoningDetails.length > 0 ? message : delta;
  return {
    ...message,
    hasRole: message.hasRole || delta.hasRole,
    hasContent: message.hasContent || delta.hasContent,
    content: message.content || delta.content,
    reasoning: message.reasoning || delta.reasoning,
    refusal: message.refusal || delta.refusal,
    toolCalls: calls.toolCalls,
    reasoningDetails: details.reasoningDetails,
    ...(message.annotations === undefined && delta.annotations !== undefined
      ? { annotations: delta.annotations }
      : {}),
    ...(message.sources === undefined && delta.sources !== undefined ? { sources: delta.sources } : {}),
    ...(delta.hasImage === true ? { hasImage: true } : {}),
  };
}

/** @param delta the choice's `delta` or `message` */
function readMessage(
  choice: JsonObject,
  delta: JsonObject,
  index: number,
  quirks: ProtocolQuirks,
): ChoicePart {
  const typed = Array.isArray(delta.content) ? readTypedContent(delta.content) : undefined;
  const content = typed?.text ?? (typeof delta.content === 'string' ? delta.content : '');
  const reasoning = readText(delta.reasoning_content) ?? readText(delta.reasoning) ?? '';
  const part = {
    index,
    hasRole: readText(delta.role) !== undefined,
    hasContent: typed !== undefined || typeof delta.content === 'string',
    content,
    reasoning: (typed?.thinking ?? '') + reasoning,
    refusal: readText(delta.refusal) ?? typed?.refusal ?? '',
    toolCalls: readToolCalls(delta, quirks),
    reasoningDetails: readArray(delta.reasoning_details).filter(isObject),
    logprobs: readLogprobs(choice.logprobs),
    finishWord: readText(choice.finish_reason) ?? null,
  };
  return withHints(withExtras(part, choice, delta, typed?.hasImage === true), choice);
}

/** The part with what few updates have. A copy of the part costs as much as all of its members. */
function withExtras(
  part: ChoicePart,
  choice: JsonObject,
  delta: JsonObject,
  hasTypedImage: boolean,
): ChoicePart {
  const annotations = readAnnotations(delta.annotations);
  const sources = readSources(delta.citations, choice.citations);
  const hasImage = hasTypedImage || hasItems(delta.images);
  if (annotations === undefined && sources === undefined && !hasImage) return part;
  return {
    ...part,
    ...(annotations === undefined ? {} : { annotations }),
    ...(sources === undefined ? {} : { sources }),
    ...(hasImage ? { hasImage } : {}),
  };
}

/** The part with what a server says of its end beside the finish word. */
function withHints(part: ChoicePart, choice: JsonObject): ChoicePart {
  const stopSequence = readStopSequence(choice);
  if (stopSequence !== undefined) return { ...part, stopSequence };
  return isLimited(choice) ? { ...part, isLimited: true } : part;
}

/**
 * The stop sequence that matched: `stop_reason` of vLLM (`ChatCompletionResponseChoice`), `matched_stop` of SGLang,
 * 2026-11. Both are null or a token's number at another end. Translators of Claude have its stop reason under the first
 * name.
 */
function readStopSequence({ stop_reason, matched_stop }: JsonObject): string | undefined {
  const sequence = readText(stop_reason);
  return sequence === undefined || isFinishWord(sequence) ? readText(matched_stop) : sequence;
}

/** Whether the provider's own word behind a finish word that the server translated is that of its limit: OpenRouter sends both. */
function isLimited({ native_finish_reason: word }: JsonObject): boolean {
  return typeof word === 'string' && finishMeaning(word) === 'length';
}

/** The types of a text in typed content. The second is that of Responses. */
const TEXT_PARTS: readonly unknown[] = ['text', 'output_text'];

/**
 * The types of reasoning in typed content: `thinking` at Mistral, `reasoning` with a `summary` at Databricks (databricks/appkit#559,
 * 2026-09-01), and names like them.
 */
const REASONING_PART = /^(?:reasoning|think|thought|summary_text)/;

/** Where a part of reasoning has its text. The first with a text counts. */
const REASONING_MEMBERS = words('thinking reasoning reasoning_content think thought text summary content');

/** The types of an image in typed content. OpenRouter has images in a list of their own (`images`). */
const IMAGE_PARTS: readonly unknown[] = ['image_url', 'image', 'output_image'];

interface TypedContent {
  readonly text: string;
  readonly thinking: string;
  readonly refusal: string;
  readonly hasImage: boolean;
}

/** Typed content parts. Those of other types have no text. */
function readTypedContent(parts: readonly unknown[]): TypedContent {
  let text = '';
  let thinking = '';
  let refusal = '';
  let hasImage = false;
  for (const part of parts) {
    if (!isObject(part)) continue;
    const type = readText(part.type) ?? '';
    if (TEXT_PARTS.includes(type)) text += readText(part.text) ?? '';
    else if (type === 'refusal') refusal += readText(part.refusal) ?? '';
    else if (REASONING_PART.test(type)) thinking += readThinking(part);
    hasImage ||= IMAGE_PARTS.includes(type);
  }
  return { text, thinking, refusal, hasImage };
}

/** A text, a list of texts, or a part that has either. */
function readThinking(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!isObject(value)) return readArray(value).map(readThinking).join('');
  for (const member of REASONING_MEMBERS) {
    const thinking = readThinking(value[member]);
    if (thinking !== '') return thinking;
  }
  return '';
}

function readToolCalls(delta: JsonObject, quirks: ProtocolQuirks): ToolCallPart[] {
  const calls = readArray(delta.tool_calls).filter(isObject);
  const fragments = calls.map((call) => readToolCall(call, call.function, quirks));
  // The legacy form: one call without an index and an id.
  if (isObject(delta.function_call)) fragments.push(readToolCall({}, delta.function_call, quirks));
  return fragments;
}

function readToolCall(call: JsonObject, value: unknown, quirks: ProtocolQuirks): ToolCallPart {
  const id = readName(call.id);
  const isCustom = !isObject(value) && isObject(call.custom);
  const fn = objectOf(isCustom ? call.custom : value);
  const part = {
    index: readCount(call.index),
    id: ownCallId(id, quirks),
    name: readName(fn.name),
    arguments: isCustom ? (readText(fn.input) ?? '') : readArguments(fn.arguments),
    extraContent: isObject(call.extra_content) ? call.extra_content : undefined,
  };
  return isCustom ? { ...part, isCustom } : part;
}

/** The id of a tool call; undefined: it gets one. */
export function ownCallId(id: string | undefined, { absentToolCallId }: ProtocolQuirks): string | undefined {
  return id !== undefined && absentToolCallId?.test(id) === true ? undefined : id;
}

/** Arguments are JSON text; some servers send the object itself. */
export function readArguments(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Merges the usage at the top, in the provider's own field, and inside choices. */
function readAnyUsage(
  event: JsonObject,
  choices: readonly JsonObject[],
  { costOf, countsReasoningApart = false, usageField }: ProtocolQuirks,
): UsageReport | null {
  const ownUsage = usageField === undefined ? undefined : valueAt(event, usageField);
  let merged: UsageReport | null = null;
  for (const usage of [event.usage, ownUsage, ...choices.map((choice) => choice.usage)]) {
    if (!isObject(usage)) continue;
    const counts = countsReasoningApart ? withReasoning(readUsage(usage)) : readUsage(usage);
    const report = costOf === undefined ? counts : { ...counts, cost: costOf(usage) };
    merged = merged === null ? report : mergeUsage(merged, report);
  }
  return merged;
}

/** The value of a field inside fields. */
function valueAt(object: JsonObject, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), object);
}

/**
 * Adds the reasoning to the completion (U3). If prompt, completion and reasoning together exceed the total, the completion already
 * includes the reasoning.
 */
function withReasoning(report: UsageReport): UsageReport {
  const { prompt = 0, completion = 0, reasoning = 0, total = 0 } = report;
  const sum = prompt + completion + reasoning;
  if (sum > total || reasoning === 0) return report;
  return { ...report, completion: completion + reasoning, total: report.prompt === undefined ? total : sum };
}

/** Reads one usage object, with OpenAI's names and those of compatible servers. */
export function readUsage(usage: JsonObject): UsageReport {
  // Mistral's schema has the first name in the singular.
  const prompt = objectOf(
    usage.prompt_tokens_details,
    usage.input_tokens_details,
    usage.prompt_token_details,
  );
  const completion = objectOf(usage.completion_tokens_details, usage.output_tokens_details);
  return {
    prompt: readCount(usage.prompt_tokens) ?? readCount(usage.input_tokens),
    completion: readCount(usage.completion_tokens) ?? readCount(usage.output_tokens),
    total: readCount(usage.total_tokens),
    cached:
      readCount(prompt.cached_tokens) ??
      readCount(usage.prompt_cache_hit_tokens) ??
      readCount(usage.num_cached_tokens) ??
      readCount(usage.cache_read_input_tokens) ??
      readCount(usage.cached_tokens),
    cacheWrite:
      readCount(prompt.cache_write_tokens) ??
      // LiteLLM: `PromptTokensDetailsWrapper` in litellm/types/utils.py (2026-11).
      readCount(prompt.cache_creation_tokens) ??
      readCount(usage.cache_creation_input_tokens),
    // Tokens kept for 12 hours, of `{ttl_30m_tokens, ttl_12h_tokens}`: openai 7.57.0, `ResponseUsage` (2026-11-13).
    cacheWriteLong:
      readCount(objectOf(prompt.cache_write_tokens_details).ttl_12h_tokens) ??
      readCount(objectOf(prompt.cache_creation_token_details).ephemeral_1h_input_tokens),
    reasoning: readCount(completion.reasoning_tokens) ?? readCount(usage.reasoning_tokens),
    promptAudio: readCount(prompt.audio_tokens),
    completionAudio: readCount(completion.audio_tokens),
    acceptedPrediction: readCount(completion.accepted_prediction_tokens),
    rejectedPrediction: readCount(completion.rejected_prediction_tokens),
  };
}

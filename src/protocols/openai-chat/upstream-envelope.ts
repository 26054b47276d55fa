/** What the OpenAI-shaped dialects share: the fields around the choices, and usage wherever it comes. */

import type { ChoicePart, ChunkPart } from '../../canonical/part.ts';
import { findUpstreamError } from '../../canonical/upstream-error.ts';
import { mergeUsage, type UsageReport } from '../../canonical/usage.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount, readText } from '../../shared/json.ts';
import { MAX_CHOICES, MAX_NAME_CHARS } from '../../shared/limits.ts';
import type { ProtocolQuirks } from '../../stream/upstream-protocol.ts';

/** A time later than this in seconds (the year 5138) is in milliseconds or finer. */
const MAX_CREATED_SECONDS = 1e11;

export function readEnvelope(
  event: JsonObject,
  quirks: ProtocolQuirks,
  readChoice: (choice: JsonObject, index: number) => ChoicePart,
): ChunkPart {
  const choices = readArray(event.choices).slice(0, MAX_CHOICES).filter(isObject);
  return {
    id: readName(event.id),
    created: readCreated(event.created),
    model: readName(event.model),
    serviceTier: readName(event.service_tier),
    systemFingerprint: readName(event.system_fingerprint),
    choices: choices.map((choice, position) => readChoice(choice, readIndex(choice.index, position))),
    usage: readAnyUsage(event, choices, quirks),
    error: findUpstreamError(event),
  };
}

/** A name that every chunk repeats: one that is far too long counts as absent, or it would multiply the stream. */
export function readName(value: unknown): string | undefined {
  const name = readText(value);
  return name !== undefined && name.length <= MAX_NAME_CHARS && isPrintable(name) ? name : undefined;
}

/** JSON writes a control character or half a surrogate pair as six bytes: a name full of them would multiply every frame. */
function isPrintable(name: string): boolean {
  if (!name.isWellFormed()) return false;
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
  }
  return true;
}

/** A choice without a usable index is taken by its position. */
function readIndex(index: unknown, position: number): number {
  const value = readCount(index);
  return value === undefined || value >= MAX_CHOICES ? position : value;
}

function readCreated(created: unknown): number | undefined {
  if (typeof created !== 'number' || !Number.isFinite(created) || created < 1) return undefined;
  let seconds = created;
  while (seconds > MAX_CREATED_SECONDS) seconds /= 1000;
  return Math.floor(seconds);
}

/** Usage at the top, in Groq's vendor field, or inside a choice (U5). */
function readAnyUsage(
  event: JsonObject,
  choices: readonly JsonObject[],
  { costOf, countsReasoningApart = false }: ProtocolQuirks,
): UsageReport | null {
  const vendor = isObject(event.x_groq) ? event.x_groq.usage : undefined;
  let merged: UsageReport | null = null;
  for (const usage of [event.usage, vendor, ...choices.map((choice) => choice.usage)]) {
    if (!isObject(usage)) continue;
    const counts = countsReasoningApart ? withReasoning(readUsage(usage)) : readUsage(usage);
    const report = costOf === undefined ? counts : { ...counts, cost: costOf(usage) };
    merged = merged === null ? report : mergeUsage(merged, report);
  }
  return merged;
}

/** The completion with its reasoning, as every client reads it (U3); a total without room for both says that it has it already. */
function withReasoning(report: UsageReport): UsageReport {
  const { prompt = 0, completion = 0, reasoning = 0, total = 0 } = report;
  return prompt + completion + reasoning > total ? report : { ...report, completion: completion + reasoning };
}

/** The counts of one usage object, under OpenAI's names and those of its relatives. */
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
    cacheWrite: readCount(prompt.cache_write_tokens) ?? readCount(usage.cache_creation_input_tokens),
    // Those kept for 12 hours, of `{ttl_30m_tokens, ttl_12h_tokens}`: openai 7.57.0, `ResponseUsage` (2026-11-13).
    cacheWriteLong: readCount(objectOf(prompt.cache_write_tokens_details).ttl_12h_tokens),
    reasoning: readCount(completion.reasoning_tokens) ?? readCount(usage.reasoning_tokens),
    promptAudio: readCount(prompt.audio_tokens),
    completionAudio: readCount(completion.audio_tokens),
    acceptedPrediction: readCount(completion.accepted_prediction_tokens),
    rejectedPrediction: readCount(completion.rejected_prediction_tokens),
  };
}

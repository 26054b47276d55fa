/** Writes Gemini's `generationConfig`: the output limit, sampling, response format and thinking. */

import { isDefault, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { requestedEffort } from '../../request-translation/effort.ts';
import { readOutputLimit } from '../../request-translation/output-limit.ts';
import { isObject, type JsonObject, omit, ownValue, readArray, readText } from '../../shared/json.ts';
import type { GeminiFamily } from './family.ts';
import { withoutSchemaKey } from './request-tools.ts';

/** OpenAI fields and their names in `generationConfig`. */
const SAMPLING: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
};
const RENAMED: Readonly<Record<string, string>> = {
  seed: 'seed',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  n: 'candidateCount',
  logprobs: 'responseLogprobs',
  top_logprobs: 'logprobs',
};

/** All OpenAI fields that this file reads. */
export const CONFIG_FIELDS: readonly string[] = [
  ...Object.keys(SAMPLING),
  ...Object.keys(RENAMED),
  ...['max_tokens', 'max_completion_tokens', 'stop', 'response_format'],
  ...['reasoning_effort', 'reasoning', 'thinking', 'modalities'],
];

/**
 * @param native the caller's own `generationConfig` in Google's names, which takes precedence
 * @returns undefined if there is nothing to set
 */
export function writeConfig(
  body: JsonObject,
  family: GeminiFamily,
  native: JsonObject,
  report: TranslationReport,
): JsonObject | undefined {
  const requested = readOutputLimit(body);
  const limit = lowestLimit(requested, native.maxOutputTokens);
  const thinking = native.thinkingConfig ?? thinkingConfig(body, family, limit ?? null, report);
  if (family.thinking.kind === 'none' && requestsThinking(body)) report.drop('reasoning_effort');
  const config: JsonObject = {
    ...renamedFields(body, family, report),
    ...writeStop(body.stop),
    ...writeFormat(body.response_format),
    // The number of candidates decides the cost, so only OpenAI's `n` sets it, which limits read.
    ...omit(native, 'candidateCount'),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    // An invalid limit is sent for Google to refuse.
    ...(requested === undefined ? { maxOutputTokens: body.max_completion_tokens ?? body.max_tokens } : {}),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking }),
  };
  return nonEmpty(config);
}

/** The lower of OpenAI's limit, which a gateway key may have lowered, and Google's own, where 0 means no limit. */
function lowestLimit(limit: number | null | undefined, native: unknown): number | undefined {
  const limits = [limit, native].filter((value) => typeof value === 'number').filter((value) => value > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function renamedFields(body: JsonObject, family: GeminiFamily, report: TranslationReport): JsonObject {
  const config: Record<string, unknown> = {};
  for (const [field, name] of Object.entries(SAMPLING)) {
    if (body[field] === undefined) continue;
    if (family.sampling) config[name] = body[field];
    else report.drop(field);
  }
  for (const [field, name] of Object.entries(RENAMED)) {
    const value = body[field];
    if (value === undefined || isDefault(field, value, body)) continue;
    // A field that the model refuses is sent, so that the client gets Google's error, unless the caller allows dropping it.
    if (report.mode === 'drop' && family.refused.includes(field)) report.dropAllowed(field);
    else config[name] = value;
  }
  return config;
}

function writeStop(stop: unknown): JsonObject {
  const stopSequences = (typeof stop === 'string' ? [stop] : readArray(stop)).filter((text) => text !== '');
  return stopSequences.length === 0 ? {} : { stopSequences };
}

function writeFormat(format: unknown): JsonObject {
  const type = isObject(format) ? readText(format.type) : undefined;
  if (type === 'json_object') return { responseMimeType: 'application/json' };
  if (type !== 'json_schema' || !isObject(format)) return {};
  const { schema } = isObject(format.json_schema) ? format.json_schema : format;
  const json = isObject(schema) ? { responseJsonSchema: withoutSchemaKey(schema) } : {};
  return { responseMimeType: 'application/json', ...json };
}

/** Thinking tokens for OpenAI's effort words. Each family also has its own bounds. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_000,
  max: 64_000,
};
/** Thoughts count against the output limit. This much stays for the text, and thinking is off if less is left for it. */
const MIN_TOKENS = 1024;

/** The levels to try for each effort word, the nearest first. */
const NEAREST_LEVELS: Readonly<Record<string, readonly string[]>> = {
  minimal: ['minimal', 'low', 'medium', 'high'],
  low: ['low', 'minimal', 'medium', 'high'],
  medium: ['medium', 'high'],
  high: ['high'],
  xhigh: ['high'],
  max: ['high'],
};

/**
 * `thinkingConfig`, or undefined if the model's default applies.
 * @param limit the output limit in tokens, or null
 */
function thinkingConfig(
  body: JsonObject,
  { thinking }: GeminiFamily,
  limit: number | null,
  report: TranslationReport,
): JsonObject | undefined {
  if (thinking.kind === 'none') return undefined;
  const { effort, budget: given } = requestedEffort(body) ?? {};
  const shown = hidesThoughts(body) ? {} : { includeThoughts: true };
  if (thinking.kind === 'level') {
    if (effort === undefined) return nonEmpty(shown);
    const [lowest = effort] = thinking.levels;
    const near = ownValue(NEAREST_LEVELS, effort)?.find((level) => thinking.levels.includes(level));
    const level = effort === 'none' ? lowest : (near ?? effort);
    if (level !== effort) report.change('reasoning_effort');
    return effort === 'none' ? { thinkingLevel: level } : { ...shown, thinkingLevel: level };
  }
  const { min, max, canBeOff, byDefault } = thinking;
  // An effort in words takes precedence over a budget of Anthropic's `thinking` or OpenRouter's `reasoning`.
  const asked = readText(body.reasoning_effort) === undefined ? given : undefined;
  const budget = asked ?? ownValue(BUDGETS, effort ?? '');
  if (effort === undefined || (budget === undefined && effort !== 'none'))
    return byDefault ? nonEmpty(shown) : undefined;
  const available = Math.min(budget ?? 0, limit === null ? max : limit - MIN_TOKENS);
  const isOff = effort === 'none' || available < MIN_TOKENS;
  if (isOff && !(effort === 'none' && canBeOff)) report.change('reasoning_effort');
  // `includeThoughts` without thinking is refused: lobehub/lobehub#7985, 2025-05-27.
  if (isOff) return { thinkingBudget: canBeOff ? 0 : min };
  return { ...shown, thinkingBudget: Math.min(Math.max(available, min), max) };
}

function requestsThinking(body: JsonObject): boolean {
  const effort = requestedEffort(body)?.effort;
  return effort !== undefined && effort !== 'none';
}

/** OpenRouter's `reasoning.exclude`. */
function hidesThoughts({ reasoning }: JsonObject): boolean {
  return isObject(reasoning) && reasoning.exclude === true;
}

function nonEmpty(config: JsonObject): JsonObject | undefined {
  return Object.keys(config).length === 0 ? undefined : config;
}

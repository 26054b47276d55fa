/** Writes `generationConfig`: limits, sampling, formats and thinking, in the names that Gemini has for them (A2). */

import { isDefault, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { readOutputLimit } from '../../request-translation/output-limit.ts';
import { hasItems } from '../../request-translation/rules.ts';
import { isObject, type JsonObject, omit, readArray, readText } from '../../shared/json.ts';
import type { GeminiFamily } from './family.ts';
import { asksForThinking, thinkingConfig } from './request-thinking.ts';
import { withoutDialect } from './request-tools.ts';

const SAMPLING: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
};

const NAMES: Readonly<Record<string, string>> = {
  seed: 'seed',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  n: 'candidateCount',
  logprobs: 'responseLogprobs',
  top_logprobs: 'logprobs',
};

/** Every field of OpenAI's that is read here. */
export const CONFIG_FIELDS: readonly string[] = [
  ...Object.keys(SAMPLING),
  ...Object.keys(NAMES),
  ...['max_tokens', 'max_completion_tokens', 'stop', 'response_format'],
  ...['reasoning_effort', 'reasoning', 'thinking', 'modalities'],
];

/** Undefined where there is nothing to be said. The caller's own words, in Google's names, win. */
export function writeConfig(
  body: JsonObject,
  family: GeminiFamily,
  own: JsonObject,
  report: TranslationReport,
): JsonObject | undefined {
  const asked = readOutputLimit(body);
  const limit = lowest(asked, own.maxOutputTokens);
  const thinking = own.thinkingConfig ?? thinkingConfig(body, family, limit ?? null, true);
  if (family.thinking.kind === 'none' && asksForThinking(body)) report.drop('reasoning_effort');
  const config: JsonObject = {
    ...renamed(body, family, report),
    ...writeStop(body.stop),
    ...writeFormat(body.response_format),
    // How many answers there are is a matter of cost: it is said in one place.
    ...omit(own, 'candidateCount'),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    // What is no limit is Google's to refuse.
    ...(asked === undefined ? { maxOutputTokens: body.max_completion_tokens ?? body.max_tokens } : {}),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking }),
  };
  return Object.keys(config).length === 0 ? undefined : config;
}

/** The caller's limit in OpenAI's words, which a key's own may have lowered, or in Google's, where 0 is none: whichever is lower. */
function lowest(limit: number | null | undefined, own: unknown): number | undefined {
  const limits = [limit, own].filter((value) => typeof value === 'number').filter((value) => value > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function renamed(body: JsonObject, family: GeminiFamily, report: TranslationReport): JsonObject {
  const config: Record<string, unknown> = {};
  for (const [field, name] of Object.entries(SAMPLING)) {
    if (body[field] === undefined) continue;
    if (family.sampling) config[name] = body[field];
    else report.drop(field);
  }
  for (const [field, name] of Object.entries(NAMES)) {
    const value = body[field];
    if (value === undefined || isDefault(field, value, body)) continue;
    // Its own refusal is the answer, but for a caller who would rather have any (Q6, Q8).
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
  const named = isObject(schema) ? { responseJsonSchema: withoutDialect(schema) } : {};
  return { responseMimeType: 'application/json', ...named };
}

/** Text is the answer's default; what else is asked for, no chat answer could hold. */
export function wantsMoreThanText({ modalities }: JsonObject): boolean {
  return hasItems(modalities) && readArray(modalities).some((modality) => modality !== 'text');
}

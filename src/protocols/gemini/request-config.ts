/** Writes Gemini's `generationConfig`: the output limit, sampling, response format and thinking. */

import type { RequestSettings, ResponseFormat } from '../../canonical/conversation.ts';
import { nearestEffort, tokensOfEffort } from '../../facts/efforts.ts';
import { fieldOf, fieldsWhere } from '../../facts/fields.ts';
import { lowestLimit } from '../../fitting/output-limit.ts';
import { isDefault, type TranslationReport } from '../../request-translation/dropped-fields.ts';
import { type JsonObject, omit } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';
import type { GeminiFamily } from './family.ts';
import { withoutSchemaKey } from './request-tools.ts';

/** OpenAI's fields that have a name in `generationConfig`, but for those with another form: the limit and the stop sequences. */
const PLAIN = fieldsWhere(
  ({ configName, class: kind }, name) => configName !== undefined && kind !== 'limit' && name !== 'stop',
);

/** All OpenAI fields that this file writes. */
export const CONFIG_FIELDS: readonly string[] = [
  ...PLAIN,
  ...words('max_tokens max_completion_tokens stop response_format reasoning_effort reasoning thinking'),
];

/**
 * @param native the caller's own `generationConfig` in Google's names, which takes precedence
 * @returns undefined if there is nothing to set
 */
export function writeConfig(
  settings: RequestSettings,
  family: GeminiFamily,
  native: JsonObject,
  report: TranslationReport,
): JsonObject | undefined {
  const { outputLimit, stop, format, effort, plain } = settings;
  const limit = lowestLimit(outputLimit, native.maxOutputTokens);
  const thinking = native.thinkingConfig ?? thinkingConfig(settings, family, limit ?? null, report);
  const isThinkingLost = family.thinking.kind === 'none' && (effort?.level ?? 'none') !== 'none';
  if (isThinkingLost) report.drop('reasoning_effort');
  const config: JsonObject = {
    ...renamedFields(plain, family, report),
    ...(stop.length === 0 ? {} : { stopSequences: stop }),
    ...writeFormat(format),
    // The number of candidates decides the cost, so only OpenAI's `n` sets it, which limits read.
    ...omit(native, 'candidateCount'),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    // An invalid limit is sent for Google to refuse.
    ...(typeof outputLimit === 'object' ? { maxOutputTokens: outputLimit.raw } : {}),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking }),
  };
  return nonEmpty(config);
}

function renamedFields(plain: JsonObject, family: GeminiFamily, report: TranslationReport): JsonObject {
  const config: Record<string, unknown> = {};
  for (const field of PLAIN) {
    const { configName: name = field, optional } = fieldOf(field);
    const value = plain[field];
    if (value === undefined) continue;
    if (optional === 'sampling') {
      if (family.sampling) config[name] = value;
      else report.drop(field);
    } else if (!isDefault(field, value, plain)) {
      // A field that the model refuses is sent, so that the client gets Google's error, unless the caller allows dropping it.
      if (report.mode === 'drop' && family.refused.includes(field)) report.dropAllowed(field);
      else config[name] = value;
    }
  }
  return config;
}

function writeFormat(format: ResponseFormat | undefined): JsonObject {
  if (format === undefined || format.kind === 'unknown') return {};
  const { schema } = format;
  const json = schema === undefined ? {} : { responseJsonSchema: withoutSchemaKey(schema) };
  return { responseMimeType: 'application/json', ...json };
}

/** Thoughts count against the output limit. This much stays for the text, and thinking is off if less is left for it. */
const MIN_TOKENS = 1024;

/**
 * `thinkingConfig`, or undefined if the model's default applies.
 * @param limit the output limit in tokens, or null
 */
function thinkingConfig(
  { effort: requested, excludesReasoning }: RequestSettings,
  { thinking }: GeminiFamily,
  limit: number | null,
  report: TranslationReport,
): JsonObject | undefined {
  if (thinking.kind === 'none') return undefined;
  const { level: effort, word, budget: given } = requested ?? {};
  const shown = excludesReasoning ? {} : { includeThoughts: true };
  if (thinking.kind === 'level') {
    if (effort === undefined) return nonEmpty(shown);
    const [lowest = effort] = thinking.levels;
    const level = effort === 'none' ? lowest : (nearestEffort(effort, thinking.levels) ?? effort);
    if (level !== effort) report.change('reasoning_effort');
    return effort === 'none' ? { thinkingLevel: level } : { ...shown, thinkingLevel: level };
  }
  const { min, max, canBeOff, byDefault } = thinking;
  // An effort in words takes precedence over a budget of Anthropic's `thinking` or OpenRouter's `reasoning`.
  const own = word === undefined ? given : undefined;
  const budget = own ?? tokensOfEffort(effort ?? '');
  if (effort === undefined || (budget === undefined && effort !== 'none'))
    return byDefault ? nonEmpty(shown) : undefined;
  const available = Math.min(budget ?? 0, limit === null ? max : limit - MIN_TOKENS);
  const isOff = effort === 'none' || available < MIN_TOKENS;
  if (isOff && !(effort === 'none' && canBeOff)) report.change('reasoning_effort');
  // `includeThoughts` without thinking is refused: lobehub/lobehub#7985, 2025-05-27.
  if (isOff) return { thinkingBudget: canBeOff ? 0 : min };
  return { ...shown, thinkingBudget: Math.min(Math.max(available, min), max) };
}

function nonEmpty(config: JsonObject): JsonObject | undefined {
  return Object.keys(config).length === 0 ? undefined : config;
}

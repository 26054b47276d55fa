/** Writes how much a Gemini is to think: a level or a budget, by its family (A2). */

import { rewriteEffort } from '../../request-translation/effort.ts';
import { isObject, type JsonObject, ownValue, readCount, readText } from '../../shared/json.ts';
import type { GeminiFamily } from './family.ts';

/** Tokens of thinking for OpenAI's words (A2); each family has bounds of its own. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_000,
  max: 64_000,
};
/** What an answer needs beside its thoughts, which count against its limit; with less left, none are worth having (A2). */
const LEAST_TOKENS = 1024;

/** Words between two levels, or beyond them: the next ones that may do, in turn. */
const NEAREST: Readonly<Record<string, readonly string[]>> = {
  minimal: ['minimal', 'low', 'medium', 'high'],
  low: ['low', 'minimal', 'medium', 'high'],
  medium: ['medium', 'high'],
  high: ['high'],
  xhigh: ['high'],
  max: ['high'],
};

/**
 * `generationConfig.thinkingConfig`, or undefined where the model is left to itself.
 * @param limit the answer's own limit in tokens, or null
 * @param showsThoughts whether anybody is to see summaries of the thoughts
 */
export function thinkingConfig(
  body: JsonObject,
  { thinking }: GeminiFamily,
  limit: number | null,
  showsThoughts: boolean,
): JsonObject | undefined {
  if (thinking.kind === 'none') return undefined;
  const word = readText(rewriteEffort(body, '', { takes: ['reasoning_effort'] }).reasoning_effort);
  const shown = showsThoughts && !isExcluded(body) ? { includeThoughts: true } : {};
  if (thinking.kind === 'level') {
    if (word === undefined) return nonEmpty(shown);
    const [least = word] = thinking.levels;
    if (word === 'none') return { thinkingLevel: least };
    const level = ownValue(NEAREST, word)?.find((near) => thinking.levels.includes(near));
    return { ...shown, thinkingLevel: level ?? word };
  }
  const { min, max, canBeOff, byDefault } = thinking;
  const asked = readBudget(body) ?? (word === undefined ? undefined : ownValue(BUDGETS, word));
  if (word === undefined || (asked === undefined && word !== 'none'))
    return byDefault ? nonEmpty(shown) : undefined;
  const room = Math.min(asked ?? 0, limit === null ? max : limit - LEAST_TOKENS);
  // A summary of no thoughts is refused: lobehub/lobehub#7985, 2025-05-27.
  if (word === 'none' || room < LEAST_TOKENS) return { thinkingBudget: canBeOff ? 0 : min };
  return { ...shown, thinkingBudget: Math.min(Math.max(room, min), max) };
}

/** Whether the caller asks for any thinking, or for none: for models that take no such word. */
export function asksForThinking(body: JsonObject): boolean {
  const word = rewriteEffort(body, '', { takes: ['reasoning_effort'] }).reasoning_effort;
  return readText(word) !== undefined && word !== 'none';
}

/** Tokens, where the caller counts in them: Anthropic's `thinking`, OpenRouter's `reasoning`. */
function readBudget({ reasoning_effort, thinking, reasoning }: JsonObject): number | undefined {
  if (readText(reasoning_effort) !== undefined) return undefined;
  const anthropic = isObject(thinking) ? readCount(thinking.budget_tokens) : undefined;
  return anthropic ?? (isObject(reasoning) ? readCount(reasoning.max_tokens) : undefined);
}

/** OpenRouter's word for thoughts that are not to be shown. */
function isExcluded({ reasoning }: JsonObject): boolean {
  return isObject(reasoning) && reasoning.exclude === true;
}

function nonEmpty(config: JsonObject): JsonObject | undefined {
  return Object.keys(config).length === 0 ? undefined : config;
}

/** Writes how much the model is to think into the provider's own field (Q1). */
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, omit, ownValue, readCount, readText } from '../shared/json.ts';
import { EFFORT_FIELDS, type EffortField, type EffortRules } from './rules.ts';

/** The words, the highest first, and the budget of thinking tokens that each stands for (`dialects.md` A2). */
export const BUDGETS: readonly (readonly [tokens: number, effort: string])[] = [
  [64_000, 'max'],
  [32_000, 'xhigh'],
  [16_384, 'high'],
  [8192, 'medium'],
  [2048, 'low'],
  [1024, 'minimal'],
];

/** Where thinking is asked for and nothing names an effort. */
const USUAL_EFFORT = 'medium';

const READERS: Readonly<Record<EffortField, (value: unknown) => string | undefined>> = {
  reasoning_effort: readText,
  thinking: readThinking,
  reasoning: readReasoning,
};

/** @param isTranslated the caller asked in no words of a chat's at all */
export function rewriteEffort(
  body: JsonObject,
  model: string,
  effort: EffortRules,
  isTranslated = false,
): JsonObject {
  const foreign = EFFORT_FIELDS.filter(
    (field) => !effort.takes.includes(field) && isAsking(field, body[field]),
  );
  const rest = foreign.length === 0 ? body : omit(body, ...foreign);
  const own = readText(rest.reasoning_effort);
  const word = own ?? foreign.map((field) => READERS[field](body[field])).find(isWord);
  if (word === undefined) return rest;
  // Who asks in another API's words asks whichever model it may be, as Claude Code and Codex do: one that can't think answers without.
  const isWish = word === 'none' || own === undefined || isTranslated;
  if (isWish && effort.models !== undefined && !matchesAnyGlob(effort.models, model)) {
    return omit(rest, 'reasoning_effort');
  }
  if (word === 'none' && effort.none === 'thinking_disabled') {
    return { thinking: { type: 'disabled' }, ...omit(rest, 'reasoning_effort') };
  }
  return { ...rest, reasoning_effort: ownValue(valuesOf(effort, model), word) ?? word };
}

function valuesOf({ values = [] }: EffortRules, model: string): Readonly<Record<string, string>> | undefined {
  return values.find(({ models }) => models === undefined || matchesAnyGlob(models, model))?.values;
}

function isAsking(field: EffortField, value: unknown): boolean {
  return READERS[field](value) !== undefined;
}

function isWord(word: string | undefined): word is string {
  return word !== undefined;
}

/** What a body asks for, in whichever of the three ways: a word, and a budget of its own where it names one. Undefined: nothing. */
export function askedEffort(
  body: JsonObject,
): { readonly effort: string; readonly budget?: number } | undefined {
  const effort =
    readText(body.reasoning_effort) ?? EFFORT_FIELDS.map((field) => READERS[field](body[field])).find(isWord);
  if (effort === undefined) return undefined;
  const budget = isObject(body.reasoning) ? readCount(body.reasoning.max_tokens) : undefined;
  const own = (isObject(body.thinking) ? readCount(body.thinking.budget_tokens) : undefined) ?? budget;
  return own === undefined ? { effort } : { effort, budget: own };
}

/** Anthropic's and DeepSeek's `thinking`: `{"type":"enabled","budget_tokens"?}`, `adaptive`, `disabled`. */
function readThinking(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  if (value.type === 'disabled') return 'none';
  if (value.type !== 'enabled' && value.type !== 'adaptive') return undefined;
  return effortOfBudget(value.budget_tokens) ?? USUAL_EFFORT;
}

/** OpenRouter's and Responses' `reasoning`: `{"effort"}`, `{"max_tokens"}`, `{"enabled"}`. */
function readReasoning(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  if (value.enabled === false) return 'none';
  const effort = readText(value.effort) ?? effortOfBudget(value.max_tokens);
  return effort ?? (value.enabled === true ? USUAL_EFFORT : undefined);
}

/** The largest whose own budget is not above it. */
function effortOfBudget(tokens: unknown): string | undefined {
  const budget = readCount(tokens);
  return budget === undefined ? undefined : (BUDGETS.find(([least]) => budget >= least)?.[1] ?? 'minimal');
}

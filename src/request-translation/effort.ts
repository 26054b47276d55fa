/** Converts the fields that set how much a model reasons into the provider's own. */
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, omit, ownValue, readCount, readText } from '../shared/json.ts';
import { EFFORT_FIELDS, type EffortField, type EffortRules } from './rules.ts';

/** The efforts from the highest to the lowest, each with the thinking tokens that it stands for (A2). */
export const EFFORT_BUDGETS: readonly (readonly [tokens: number, effort: string])[] = [
  [64_000, 'max'],
  [32_000, 'xhigh'],
  [16_384, 'high'],
  [8192, 'medium'],
  [2048, 'low'],
  [1024, 'minimal'],
];

/** The effort of a request that turns reasoning on without an amount. */
const DEFAULT_EFFORT = 'medium';

const READERS: Readonly<Record<EffortField, (value: unknown) => string | undefined>> = {
  reasoning_effort: readText,
  thinking: readThinking,
  reasoning: readReasoning,
};

/** @param isFromOtherProtocol the client used another protocol than Chat Completions */
export function rewriteEffort(
  body: JsonObject,
  model: string,
  rules: EffortRules,
  isFromOtherProtocol = false,
): JsonObject {
  const converted = EFFORT_FIELDS.filter(
    (field) => !rules.takes.includes(field) && READERS[field](body[field]) !== undefined,
  );
  const rest = converted.length === 0 ? body : omit(body, ...converted);
  const explicit = readText(rest.reasoning_effort);
  const effort = explicit ?? firstEffort(body, converted);
  if (effort === undefined) return rest;
  // Clients of other APIs, such as Claude Code and Codex, send an effort to every model, also to one that cannot reason.
  const isOptional = effort === 'none' || explicit === undefined || isFromOtherProtocol;
  if (isOptional && rules.models !== undefined && !matchesAnyGlob(rules.models, model)) {
    return omit(rest, 'reasoning_effort');
  }
  if (effort === 'none' && rules.none === 'thinking_disabled') {
    return { thinking: { type: 'disabled' }, ...omit(rest, 'reasoning_effort') };
  }
  return { ...rest, reasoning_effort: ownValue(valuesFor(model, rules), effort) ?? effort };
}

function valuesFor(
  model: string,
  { values = [] }: EffortRules,
): Readonly<Record<string, string>> | undefined {
  return values.find(({ models }) => models === undefined || matchesAnyGlob(models, model))?.values;
}

function firstEffort(body: JsonObject, fields: readonly EffortField[]): string | undefined {
  return fields.map((field) => READERS[field](body[field])).find((effort) => effort !== undefined);
}

/** The effort in a body, in any of the three fields, and the budget of thinking tokens if one is set. Undefined: neither. */
export function requestedEffort(
  body: JsonObject,
): { readonly effort: string; readonly budget?: number } | undefined {
  const effort = readText(body.reasoning_effort) ?? firstEffort(body, EFFORT_FIELDS);
  if (effort === undefined) return undefined;
  const thinkingBudget = isObject(body.thinking) ? readCount(body.thinking.budget_tokens) : undefined;
  const budget =
    thinkingBudget ?? (isObject(body.reasoning) ? readCount(body.reasoning.max_tokens) : undefined);
  return budget === undefined ? { effort } : { effort, budget };
}

/** Anthropic's and DeepSeek's `thinking`: `{"type":"enabled","budget_tokens"?}`, `adaptive`, `disabled`. */
function readThinking(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  if (value.type === 'disabled') return 'none';
  if (value.type !== 'enabled' && value.type !== 'adaptive') return undefined;
  return effortOfBudget(value.budget_tokens) ?? DEFAULT_EFFORT;
}

/** OpenRouter's and Responses' `reasoning`: `{"effort"}`, `{"max_tokens"}`, `{"enabled"}`. */
function readReasoning(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  if (value.enabled === false) return 'none';
  const effort = readText(value.effort) ?? effortOfBudget(value.max_tokens);
  return effort ?? (value.enabled === true ? DEFAULT_EFFORT : undefined);
}

/** The highest effort whose own budget is at most this one. */
function effortOfBudget(tokens: unknown): string | undefined {
  const budget = readCount(tokens);
  if (budget === undefined) return undefined;
  return EFFORT_BUDGETS.find(([least]) => budget >= least)?.[1] ?? 'minimal';
}

/** Writes how much Claude is to think, in the words of its family; what the caller already says in those words stays (A2). */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { EFFORT_BUDGETS, requestedEffort } from '../../request-translation/effort.ts';
import { isObject, type JsonObject, objectOf, readCount, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';

/** 400 "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024": themaximalist/llm.js#30, 2026-08-19. */
const MIN_BUDGET_TOKENS = 1024;

/** What the answer needs besides its thinking. */
const ANSWER_TOKENS = 1024;

/** `thinking` and `output_config`, as far as the request has them. */
export function claudeThinking(
  body: JsonObject,
  family: ClaudeFamily,
  maxTokens: number,
  report: TranslationReport,
): JsonObject {
  const config = objectOf(body.output_config);
  const { thinking, effort } = ownThinking(body, family, maxTokens, report);
  const word = readText(config.effort) ?? effort;
  const output = word === undefined ? config : { ...config, effort: word };
  return {
    ...(thinking === undefined ? {} : { thinking }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
  };
}

interface OwnThinking {
  readonly thinking?: JsonObject;
  readonly effort?: string | undefined;
}

function ownThinking(
  body: JsonObject,
  family: ClaudeFamily,
  maxTokens: number,
  report: TranslationReport,
): OwnThinking {
  const asked = requestedEffort(body);
  const given = body.thinking;
  if (isObject(given) && isTaken(given, family)) {
    const thinking = withinLimit(given, maxTokens, report);
    return { ...thinking, effort: adaptiveEffort(readText(body.reasoning_effort), family) };
  }
  if (asked === undefined) return {};
  if (asked.effort === 'none') return noThinking(family, report);
  const [kind] = family.thinking;
  if (kind === undefined) {
    report.drop('reasoning_effort');
    return {};
  }
  if (kind === 'enabled') return withBudget(asked, maxTokens, report);
  // What is not shown unless it is asked for would leave a caller who wants to see it think with nothing.
  const display = family.hidesThinking ? { display: 'summarized' } : {};
  const config = isObject(given) && given.display !== undefined ? { display: given.display } : display;
  // `adaptive` and `enabled` without a budget name no effort: the model's own default holds.
  const isNamed = body.reasoning_effort !== undefined || asked.budget !== undefined || !isObject(given);
  return {
    thinking: { type: 'adaptive', ...config },
    effort: isNamed ? adaptiveEffort(asked.effort, family) : undefined,
  };
}

/** DeepSeek's `enabled` names no budget: 400 "thinking.enabled.budget_tokens: Field required". */
function isTaken({ type, budget_tokens }: JsonObject, { thinking, noThinking }: ClaudeFamily): boolean {
  if (type === 'enabled' && budget_tokens === undefined) return false;
  return thinking.some((kind) => kind === type) || type === noThinking;
}

/** A limit of the key's or of the model's may have cut the answer below the budget that the caller chose for a longer one. */
function withinLimit(given: JsonObject, maxTokens: number, report: TranslationReport): OwnThinking {
  const budget = readCount(given.budget_tokens);
  if (given.type !== 'enabled' || budget === undefined || budget < maxTokens) return { thinking: given };
  report.change('thinking');
  const tokens = maxTokens - ANSWER_TOKENS;
  return tokens < MIN_BUDGET_TOKENS ? {} : { thinking: { ...given, budget_tokens: tokens } };
}

function noThinking(family: ClaudeFamily, report: TranslationReport): OwnThinking {
  switch (family.noThinking) {
    case 'absent':
      return {};
    case 'never':
      report.change('thinking');
      return { effort: family.efforts[0] };
    default:
      return { thinking: { type: family.noThinking } };
  }
}

/** 400 "`max_tokens` must be greater than `thinking.budget_tokens`": router-for-me/CLIProxyAPI#413, 2025-12-03. */
function withBudget(
  { effort, budget }: { readonly effort: string; readonly budget?: number },
  maxTokens: number,
  report: TranslationReport,
): OwnThinking {
  const wanted = budget ?? budgetOf(effort);
  const tokens = Math.min(Math.max(wanted, MIN_BUDGET_TOKENS), maxTokens - ANSWER_TOKENS);
  if (tokens >= MIN_BUDGET_TOKENS) return { thinking: { type: 'enabled', budget_tokens: tokens } };
  report.change('thinking');
  return {};
}

/** A word that nobody knows asks for as much as the middle one. */
function budgetOf(effort: string): number {
  const known =
    EFFORT_BUDGETS.find(([, word]) => word === effort) ??
    EFFORT_BUDGETS.find(([, word]) => word === 'medium');
  return known?.[0] ?? MIN_BUDGET_TOKENS;
}

/** The family's own word, or the next lower one that it has: nobody pays for more thinking than was asked for. */
function adaptiveEffort(effort: string | undefined, { efforts }: ClaudeFamily): string | undefined {
  if (efforts.length === 0 || effort === 'none') return undefined;
  const at = EFFORT_BUDGETS.findIndex(([, word]) => word === effort);
  if (at < 0) return effort;
  return EFFORT_BUDGETS.slice(at).find(([, word]) => efforts.includes(word))?.[1] ?? efforts[0];
}

/**
 * The request with its thinking kept from the answer, whose signature has all of it and is good for the next step. A signature whose
 * text a gateway takes away is not: 400 "blocks in the latest assistant message cannot be modified", router-for-me/CLIProxyAPI#3663,
 * 2026-06-01. https://platform.claude.com/docs/en/build-with-claude/thinking (2026-11-22)
 */
export function withHiddenThinking(body: JsonObject, { takesDisplay }: ClaudeFamily): JsonObject {
  const { thinking } = body;
  const isOn = isObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive');
  return takesDisplay && isOn ? { ...body, thinking: { ...thinking, display: 'omitted' } } : body;
}

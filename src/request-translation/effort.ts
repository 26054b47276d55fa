/** Converts the fields that set how much a model reasons into the provider's own. */

import type { Effort } from '../canonical/conversation.ts';
import {
  DEFAULT_EFFORT,
  EFFORT_FIELDS,
  type EffortField,
  effortOfTokens,
  nearestEffort,
} from '../facts/efforts.ts';
import { isObject, type JsonObject, objectOf, omit, ownValue, readCount, readText } from '../shared/json.ts';
import { matchesModel } from '../shared/model-name.ts';
import type { TranslationReport } from './dropped-fields.ts';
import type { EffortRules, ReasoningFamily } from './rules.ts';

const READERS: Readonly<Record<EffortField, (value: unknown) => string | undefined>> = {
  reasoning_effort: readText,
  thinking: readThinking,
  reasoning: readReasoning,
};

type Asked = readonly [field: EffortField, effort: string];

/** The fields of a body that set an effort, and the effort that each sets. */
function effortsIn(body: JsonObject): readonly Asked[] {
  return EFFORT_FIELDS.flatMap((field) => {
    const effort = READERS[field](body[field]);
    return effort === undefined ? [] : [[field, effort]];
  });
}

/**
 * Writes the effort as the model's family knows it. What is lost or becomes another level is reported.
 * @param isFromOtherProtocol the client used another protocol than Chat Completions
 */
export function rewriteEffort(
  body: JsonObject,
  model: string,
  rules: EffortRules,
  report: TranslationReport,
  isFromOtherProtocol = false,
): JsonObject {
  const given = effortsIn(body);
  const [asked] = given;
  if (asked === undefined) return body;
  const [field, effort] = asked;
  const family = reasoningFamily(rules.families ?? [], model);
  // Clients of other APIs, such as Claude Code and Codex, send an effort to every model, also to one that cannot reason.
  const isPreference = field !== 'reasoning_effort' || isFromOtherProtocol;
  if (family === undefined || (family.reasons === 'never' && !isPreference)) {
    return withoutFamily(body, rules, isPreference && rules.families !== undefined, report);
  }
  const rest = omit(body, ...given.map(([name]) => name));
  if (effort === 'none') return { ...rest, ...withoutReasoning(body, field, family, rules, report) };
  return { ...rest, ...withReasoning(body, asked, family, rules, report) };
}

/** The family of a model. Undefined: no row is for it. */
export function reasoningFamily(
  families: readonly ReasoningFamily[],
  model: string,
): ReasoningFamily | undefined {
  const name = model.toLowerCase();
  return families.find(({ models }) => matchesModel(models, name));
}

/** Whether a model of this family reasons for a request with this effort; undefined: the request has none. */
export function reasonsAt({ reasons }: ReasoningFamily, effort: string | undefined): boolean {
  if (reasons === 'never') return false;
  return effort === undefined ? reasons !== 'on_request' : effort !== 'none';
}

/** @param isDropped an effort is only a preference, and the model may refuse it */
function withoutFamily(
  body: JsonObject,
  rules: EffortRules,
  isDropped: boolean,
  report: TranslationReport,
): JsonObject {
  const given = effortsIn(body);
  const rest = omit(body, ...given.map(([field]) => field).filter((field) => !rules.takes.includes(field)));
  const asked = given.find(([field]) => field === 'reasoning_effort' || !rules.takes.includes(field));
  if (asked === undefined) return rest;
  const [field, effort] = asked;
  if (isDropped || (effort === 'none' && rules.families !== undefined)) {
    // A model that cannot reason loses nothing when reasoning is turned off.
    if (effort !== 'none') report.drop(field);
    return omit(rest, 'reasoning_effort');
  }
  if (effort === 'none' && rules.none === 'thinking_disabled') {
    return { ...omit(rest, 'reasoning_effort'), thinking: { type: 'disabled' } };
  }
  return { ...rest, reasoning_effort: ownValue(rules.words ?? {}, effort) ?? effort };
}

/** Turns reasoning off, or down to the lowest effort where it cannot be off. */
function withoutReasoning(
  { reasoning }: JsonObject,
  asked: EffortField,
  { reasons, efforts, thinking }: ReasoningFamily,
  { takes, none }: EffortRules,
  report: TranslationReport,
): JsonObject {
  if (reasons === 'never') return {};
  const [lowest] = efforts;
  if (lowest === 'none') {
    if (none === 'thinking_disabled') return { thinking: { type: 'disabled' } };
    return asked === 'reasoning' && takes.includes(asked) ? { reasoning } : { reasoning_effort: lowest };
  }
  report.change(asked);
  if (lowest === undefined) return {};
  if (asked === 'reasoning' && takes.includes(asked)) {
    return { reasoning: { ...omit(objectOf(reasoning), 'enabled', 'max_tokens'), effort: lowest } };
  }
  // Z.ai documents the effort beside `enabled`.
  const isBeside = takes.includes('thinking') && thinking?.includes('enabled') === true;
  return { ...(isBeside && { thinking: { type: 'enabled' } }), reasoning_effort: lowest };
}

/** Sends the amount of reasoning, in a level that the family has. */
function withReasoning(
  body: JsonObject,
  [asked, effort]: Asked,
  family: ReasoningFamily,
  { takes }: EffortRules,
  report: TranslationReport,
): JsonObject {
  const { reasons, thinking: types } = family;
  const levels = family.efforts.filter((level) => level !== 'none');
  const thinking = objectOf(body.thinking);
  const isKept =
    takes.includes('thinking') &&
    isObject(body.thinking) &&
    thinking.type !== 'disabled' &&
    (types?.some((type) => type === thinking.type) ?? true);
  const kept = isKept ? { thinking } : {};
  const hasAmount = asked !== 'thinking' || thinking.budget_tokens !== undefined;
  if (reasons === 'never' || levels.length === 0) {
    // A model that always reasons, or does so on request, has no levels to choose from.
    if (reasons === 'never' || !(family.efforts.includes('none') && takes.includes('thinking'))) {
      if (hasAmount || reasons === 'never') report.drop(asked);
      return kept;
    }
    if (hasAmount && !(isKept && asked === 'thinking')) report.change(asked);
    return isKept ? kept : { thinking: { type: 'enabled' } };
  }
  if (asked === 'reasoning' && takes.includes('reasoning')) return { reasoning: body.reasoning, ...kept };
  if (asked === 'thinking' && isKept) return kept;
  // Without an amount, a model that always reasons does so at its own default.
  if (!hasAmount && !family.efforts.includes('none')) return {};
  const level = nearestEffort(effort, levels, family.nearest) ?? effort;
  if (level !== effort) report.change(asked);
  return { ...kept, reasoning_effort: level };
}

/** The effort in a body, in any of the three fields, and the budget of thinking tokens if one is set. Undefined: neither. */
export function requestedEffort(body: JsonObject): Effort | undefined {
  const [asked] = effortsIn(body);
  if (asked === undefined) return undefined;
  const { budget_tokens } = objectOf(body.thinking);
  const { max_tokens } = objectOf(body.reasoning);
  const budget = readCount(budget_tokens) ?? readCount(max_tokens);
  return { level: asked[1], word: readText(body.reasoning_effort), budget };
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

function effortOfBudget(tokens: unknown): string | undefined {
  const budget = readCount(tokens);
  return budget === undefined ? undefined : effortOfTokens(budget);
}

/** Writes thinking, effort and sampling as the model family takes them. */

import type { Effort, RequestSettings } from '../../canonical/conversation.ts';
import { DEFAULT_EFFORT, nearestEffort, tokensOfEffort } from '../../facts/efforts.ts';
import { fieldsWhere } from '../../facts/fields.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { requestedEffort } from '../../request-translation/effort.ts';
import { isObject, type JsonObject, objectOf, omit, readCount, readText } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';

/** 400 "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024": themaximalist/llm.js#30, 2026-08-19. */
const MIN_BUDGET_TOKENS = 1024;

/** The part of `max_tokens` that stays for the text. */
const TEXT_TOKENS = 1024;

/** The thinking of a request. `output_config` holds the response format, too. */
export interface SentThinking {
  readonly thinking?: JsonObject;
  readonly output_config?: JsonObject;
}

/** `thinking` and `output_config`. What the client set in Anthropic's own form is kept. */
export function writeThinking(
  settings: RequestSettings,
  family: ClaudeFamily,
  maxTokens: number,
  report: TranslationReport,
): SentThinking {
  const config = settings.outputConfig;
  const { thinking, effort } = thinkingAndEffort(settings, family, maxTokens, report);
  const word = readText(config.effort) ?? effort;
  const output = word === undefined ? config : { ...config, effort: word };
  return {
    ...(thinking === undefined ? {} : { thinking }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
  };
}

interface ThinkingAndEffort {
  readonly thinking?: JsonObject;
  readonly effort?: string | undefined;
}

function thinkingAndEffort(
  { thinking, effort: requested }: Pick<RequestSettings, 'thinking' | 'effort'>,
  family: ClaudeFamily,
  maxTokens: number,
  report: TranslationReport,
): ThinkingAndEffort {
  if (thinking !== undefined && isSupported(thinking, family)) {
    const fitting = withinLimit(thinking, maxTokens, report);
    return { ...fitting, effort: familyEffort(requested?.word, family, report) };
  }
  if (requested === undefined) return {};
  if (requested.level === 'none') return noThinking(family, report);
  const [kind] = family.thinking;
  if (kind === undefined) {
    report.drop('reasoning_effort');
    return {};
  }
  if (kind === 'enabled') return withBudget(requested, maxTokens, report);
  // Without `display` some families hide their thinking, and the client would receive no reasoning.
  const display = family.hidesThinking ? { display: 'summarized' } : {};
  const config = thinking?.display === undefined ? display : { display: thinking.display };
  // `adaptive`, and `enabled` without a budget, name no effort: the model's default applies.
  const isNamed = requested.word !== undefined || requested.budget !== undefined || thinking === undefined;
  return {
    thinking: { type: 'adaptive', ...config },
    effort: isNamed ? familyEffort(requested.level, family, report) : undefined,
  };
}

/** DeepSeek's `enabled` has no budget: 400 "thinking.enabled.budget_tokens: Field required". */
function isSupported({ type, budget_tokens }: JsonObject, { thinking, noThinking }: ClaudeFamily): boolean {
  if (type === 'enabled' && budget_tokens === undefined) return false;
  return thinking.some((kind) => kind === type) || type === noThinking;
}

/** The limit of a gateway key or of the model may be lower than the budget that the client chose. */
function withinLimit(given: JsonObject, maxTokens: number, report: TranslationReport): ThinkingAndEffort {
  const budget = readCount(given.budget_tokens);
  if (given.type !== 'enabled' || budget === undefined || budget < maxTokens) return { thinking: given };
  report.change('thinking');
  const tokens = maxTokens - TEXT_TOKENS;
  return tokens < MIN_BUDGET_TOKENS ? {} : { thinking: { ...given, budget_tokens: tokens } };
}

function noThinking(family: ClaudeFamily, report: TranslationReport): ThinkingAndEffort {
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

/** Of a word that is no effort. */
const DEFAULT_TOKENS = tokensOfEffort(DEFAULT_EFFORT) ?? MIN_BUDGET_TOKENS;

/** 400 "`max_tokens` must be greater than `thinking.budget_tokens`": router-for-me/CLIProxyAPI#413, 2025-12-03. */
function withBudget(
  { level, budget }: Effort,
  maxTokens: number,
  report: TranslationReport,
): ThinkingAndEffort {
  const wanted = budget ?? tokensOfEffort(level) ?? DEFAULT_TOKENS;
  const tokens = Math.min(Math.max(wanted, MIN_BUDGET_TOKENS), maxTokens - TEXT_TOKENS);
  if (tokens >= MIN_BUDGET_TOKENS) return { thinking: { type: 'enabled', budget_tokens: tokens } };
  report.change('thinking');
  return {};
}

/** The same effort if the family has it, or the one in its place. */
function familyEffort(
  effort: string | undefined,
  { efforts }: ClaudeFamily,
  report: TranslationReport,
): string | undefined {
  if (efforts.length === 0 || effort === undefined || effort === 'none') return undefined;
  const level = nearestEffort(effort, efforts) ?? effort;
  if (level !== effort) report.change('reasoning_effort');
  return level;
}

/**
 * A Messages request as the family accepts it: thinking that it does not have becomes what {@link writeThinking} makes of it, an effort
 * the nearest one, and refused sampling is dropped. What it accepts is unchanged.
 */
export function fitToFamily(body: JsonObject, family: ClaudeFamily, report: TranslationReport): JsonObject {
  const fitted: JsonObject = { ...body, ...fitThinking(body, family, report) };
  const refused = SAMPLING.filter((field) => refusesSampling(field, fitted, family));
  for (const field of refused) if (body[field] !== 1) report.drop(field);
  const kept = omit(fitted, ...refused, ...(fitted.thinking === undefined ? ['thinking'] : []));
  return family.refusesEffort ? withoutEffort(kept, report) : kept;
}

function withoutEffort(body: JsonObject, report: TranslationReport): JsonObject {
  const { effort, ...config } = objectOf(body.output_config);
  if (effort === undefined) return body;
  report.drop('output_config.effort');
  return Object.keys(config).length === 0 ? omit(body, 'output_config') : { ...body, output_config: config };
}

function fitThinking(body: JsonObject, family: ClaudeFamily, report: TranslationReport): JsonObject {
  const { thinking, output_config } = body;
  const config = objectOf(output_config);
  const named = readText(config.effort);
  const type = isObject(thinking) ? thinking.type : undefined;
  const isOff =
    type === 'disabled' && (family.noThinking === 'never' || family.noThinking === 'between_tools');
  const isOther = type === 'enabled' || type === 'adaptive';
  if (isObject(thinking) && (isOff || (isOther && family.thinking.every((kind) => kind !== type)))) {
    const maxTokens = readCount(body.max_tokens) || family.maxTokens;
    const requested = { thinking, effort: requestedEffort({ thinking, reasoning_effort: named }) };
    const writtenThinking = isOff
      ? noThinking(family, report)
      : thinkingAndEffort(requested, family, maxTokens, report);
    report.change('thinking');
    const { effort } = writtenThinking;
    const configured = effort === undefined ? output_config : { ...config, effort };
    return {
      thinking: writtenThinking.thinking,
      ...(configured === undefined ? {} : { output_config: configured }),
    };
  }
  if (named === undefined || family.efforts.length === 0) return {};
  const effort = familyEffort(named, family, report);
  return effort === undefined || effort === named ? {} : { output_config: { ...config, effort } };
}

/**
 * Sets `display: "omitted"`, so that thinking is hidden and its signature is still valid in the next step. A gateway can't remove the
 * text itself: 400 "blocks in the latest assistant message cannot be modified", router-for-me/CLIProxyAPI#3663, 2026-06-01.
 * https://platform.claude.com/docs/en/build-with-claude/thinking (2026-11-22)
 */
export function withHiddenThinking(body: JsonObject, { takesDisplay }: ClaudeFamily): JsonObject {
  const { thinking } = body;
  return takesDisplay && isThinkingOn(thinking)
    ? { ...body, thinking: { ...thinking, display: 'omitted' } }
    : body;
}

function isThinkingOn(thinking: unknown): thinking is JsonObject {
  return isObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive');
}

const SAMPLING = fieldsWhere(({ optional }) => optional === 'sampling');

/** OpenAI allows up to 2. */
const MAX_TEMPERATURE = 1;

/** The lowest `top_p` with thinking. https://platform.claude.com/docs/en/build-with-claude/extended-thinking (2026-11-22) */
const MIN_TOP_P_THINKING = 0.95;

/**
 * `temperature`, `top_p` and `top_k`. Unsupported ones are dropped and reported: clients send them by default, so an error would break
 * those clients. A temperature or `top_p` of 1 is the default and is not sent.
 */
export function writeSampling(
  plain: JsonObject,
  { thinking }: SentThinking,
  family: ClaudeFamily,
  report: TranslationReport,
): JsonObject {
  const sent: Record<string, unknown> = {};
  for (const field of SAMPLING) {
    const value = plain[field];
    if (value === undefined || (value === 1 && field !== 'top_k')) continue;
    if (refusesSampling(field, { ...sent, thinking, [field]: value }, family)) report.drop(field);
    else sent[field] = field === 'temperature' ? limitTemperature(value, report) : value;
  }
  return sent;
}

/** Whether the family refuses this field of a Messages request. */
function refusesSampling(field: string, body: JsonObject, { sampling }: ClaudeFamily): boolean {
  const value = body[field];
  if (value === undefined) return false;
  if (sampling === 'none') return true;
  // 400 "`temperature` and `top_p` cannot both be specified for this model": SalesforceAIResearch/MCP-Universe#49, 2026-01-26.
  if (sampling === 'one' && field === 'top_p' && body.temperature !== undefined) return true;
  // 400 "`temperature` may only be set to 1 when thinking is enabled".
  const isTaken = field === 'top_p' && typeof value === 'number' && value >= MIN_TOP_P_THINKING;
  return isThinkingOn(body.thinking) && value !== 1 && !isTaken;
}

function limitTemperature(temperature: unknown, report: TranslationReport): unknown {
  if (typeof temperature !== 'number' || temperature <= MAX_TEMPERATURE) return temperature;
  report.change('temperature');
  return MAX_TEMPERATURE;
}

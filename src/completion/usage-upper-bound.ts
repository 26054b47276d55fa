/** The most that a request may use, whichever of its targets answers: what its key's limits are asked for (G2, R8). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { PricedModel } from '../ledger/limits/highest-price.ts';
import {
  MAX_PROMPT_TOKENS,
  maxPromptTokens,
  maxSearches,
  mostTokensOf,
} from '../ledger/limits/prompt-bound.ts';
import { limitName, readOutputLimit, readWrittenLimit } from '../request-translation/output-limit.ts';
import { withoutNulls } from '../request-translation/translate.ts';
import { addressesOf, type Target } from '../routing/targets.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { type JsonObject, readCount } from '../shared/json.ts';
import type { ReplayableRequest, TargetRequest } from './replayable-request.ts';

interface Ceiling {
  readonly promptTokens: number;
  readonly choices: number;
  /** The most web searches of one choice; null: nothing limits them. */
  readonly searches: number | null;
  /** Of one choice; null where a target is told no limit. */
  readonly outputTokens: number | null;
  /** Tokens that are billed as output beside those of each choice. */
  readonly extraOutputTokens: number;
  /** Each model that may serve it. */
  readonly models: readonly PricedModel[];
}

export type UsageUpperBoundResult =
  | { readonly kind: 'ceiling'; readonly upperBound: Ceiling }
  | { readonly kind: 'invalid'; readonly error: ApiError };

/**
 * The highest of what each target may use: one of them is asked, or one after the other until one answers.
 * @param first what the first target would be sent; what the others would be is written for this alone
 */
export async function findUsageUpperBound(
  targets: readonly Target[],
  first: TargetRequest,
  held: ReplayableRequest,
): Promise<UsageUpperBoundResult> {
  let highest = ceilingOf(first);
  for (const target of targets) {
    if (highest.kind === 'invalid') return highest;
    if (target === first.facts.target) continue;
    const written = await held.writeFor(target);
    // What a provider does not take, it is not sent.
    if (written.kind === 'error') continue;
    const next = ceilingOf(written.value);
    highest =
      next.kind === 'invalid' ? next : { ...next, upperBound: higher(highest.upperBound, next.upperBound) };
  }
  return highest;
}

function higher(a: Ceiling, b: Ceiling): Ceiling {
  const isLimited = a.outputTokens !== null && b.outputTokens !== null;
  return {
    promptTokens: Math.max(a.promptTokens, b.promptTokens),
    choices: Math.max(a.choices, b.choices),
    searches: a.searches === null || b.searches === null ? null : Math.max(a.searches, b.searches),
    outputTokens: isLimited ? Math.max(a.outputTokens, b.outputTokens) : null,
    extraOutputTokens: Math.max(a.extraOutputTokens, b.extraOutputTokens),
    models: [...a.models, ...b.models],
  };
}

function ceilingOf(asked: TargetRequest): UsageUpperBoundResult {
  const { body, form: request, chat, prompts, facts, detachedField } = asked;
  const { provider, priceIds: providers } = facts.target;
  // A limit that its provider demands and the caller did not set is none of the caller's.
  const limit = request.kind === 'native' ? readOutputLimit(withoutNulls(chat)) : undefined;
  const outputTokens = limit === null ? null : readWrittenLimit(request, body);
  const answers = readAnswers(chat);
  if (detachedField !== null) return { kind: 'invalid', error: notCounted(detachedField) };
  if (outputTokens === undefined) return { kind: 'invalid', error: notWhole(limitName(request)) };
  if (answers === undefined) return { kind: 'invalid', error: notWhole('n') };
  const sent = facts.passthrough === null ? chat : body;
  const models = addressesOf(facts.target, sent).map((address) => address.slice(provider.id.length + 1));
  const searches = maxSearches(body);
  const shared = {
    providers,
    tier: dearTier(sent),
    hasDefaultCache: !CACHE_TIMES.test(asked.json),
    searches: searches !== 0,
  };
  const times = provider.billsFallbacks === true ? models.length : 1;
  const upperBound: Ceiling = {
    promptTokens: promptTokensOf(asked, models) * times,
    choices: prompts * answers * times,
    searches,
    outputTokens,
    // Predicted tokens that the answer lacks are billed as output: https://platform.openai.com/docs/guides/predicted-outputs.
    extraOutputTokens: sent.prediction === undefined ? 0 : mostTokensOf(sent.prediction),
    models: models.map((model) => ({ ...shared, model })),
  };
  return { kind: 'ceiling', upperBound };
}

function notWhole(param: string): ApiError {
  return apiError('invalid_request', `Under limits ${param} must be a whole number from 1 up`, param);
}

function notCounted(param: string): ApiError {
  const message = `This key has limits, and what a request with ${param} uses can't be counted: leave it out`;
  return apiError('invalid_request', message, param);
}

/** On a lane the body itself goes up; another API's is written from the chat, whose bytes are as many as its own, about. */
function promptTokensOf(
  { json, form, chat, facts, hasWholePrompt }: TargetRequest,
  models: readonly string[],
): number {
  const { imageTokens, searchingModels = [] } = facts.target.provider;
  const isReading = models.some((model) => matchesAnyGlob(searchingModels, model));
  if (!hasWholePrompt || isReading) return MAX_PROMPT_TOKENS;
  const isRewritten = form.kind === 'native' && facts.passthrough === null;
  return maxPromptTokens(chat, isRewritten ? JSON.stringify(chat) : json, imageTokens);
}

/** How many answers a prompt gets, all of which are paid for; undefined where that is no whole number from 1 up. */
function readAnswers({ n, best_of }: JsonObject): number | undefined {
  const counts = [readCount(n ?? 1) ?? 0, readCount(best_of ?? 1) ?? 0];
  return Math.min(...counts) < 1 ? undefined : Math.max(...counts);
}

/**
/**
 * A field that may name a longer time for a prompt's cache: `cache_control.ttl` at Anthropic, `prompt_cache_options.ttl` and
 * `prompt_cache_retention` at OpenAI. Quotes within a text are escaped, and do not match.
 */
const CACHE_TIMES = /"(?:ttl|prompt_cache_retention)"/;

/**
 * Fields that choose what a token costs, with the values that cost no more than the table says: OpenAI's, Groq's and Anthropic's
 * pages, and for the last two https://platform.claude.com/docs/en/build-with-claude/fast-mode and /docs/en/manage-claude/data-residency
 * (2026-11-22).
 */
const TIER_FIELDS: Readonly<Record<string, readonly string[]>> = {
  service_tier: ['auto', 'default', 'standard', 'standard_only', 'flex', 'on_demand'],
  speed: ['standard'],
  inference_geo: ['global'],
};

/**
 * The tier that may cost more than the table says (OpenAI's `priority` costs about double), under the name that prices and answers
 * have for it: two are joined by a plus.
 */
function dearTier(body: JsonObject): string | undefined {
  const tiers = Object.entries(TIER_FIELDS).flatMap(([field, listed]) => {
    const tier = body[field] ?? undefined;
    if (tier === undefined) return [];
    if (typeof tier !== 'string') return ['unknown'];
    return listed.includes(tier) ? [] : [tier];
  });
  return tiers.length === 0 ? undefined : tiers.join('+');
}

/** The most that a request may use, whichever of its targets answers: what its key's limits are asked for (G2, R8). */
import { type JsonObject, readCount, readText } from '../canonical/json.ts';
import type { PricedModel } from '../limits/highest-price.ts';
import { MAX_PROMPT_TOKENS, maxPromptTokens, maxSearches } from '../limits/prompt-bound.ts';
import { limitName, writtenLimit } from '../requests/form.ts';
import { readOutputLimit } from '../requests/output-limit.ts';
import { withoutNulls } from '../requests/rewrite.ts';
import { addressesOf, type Target } from '../routing/target.ts';
import type { HeldRequest, TargetRequest } from './held-request.ts';

interface Ceiling {
  readonly promptTokens: number;
  readonly choices: number;
  /** The most web searches of one choice; null: nothing limits them. */
  readonly searches: number | null;
  /** Of one choice; null where a target is told no limit. */
  readonly outputTokens: number | null;
  /** Each model that may serve it. */
  readonly models: readonly PricedModel[];
}

export type CeilingResult =
  | { readonly kind: 'ceiling'; readonly ceiling: Ceiling }
  /** This must be a whole number from 1 up. */
  | { readonly kind: 'invalid'; readonly param: string };

/**
 * The highest of what each target may use: one of them is asked, or one after the other until one answers.
 * @param first what the first target would be sent; what the others would be is written for this alone
 */
export async function findCeiling(
  targets: readonly Target[],
  first: TargetRequest,
  held: HeldRequest,
): Promise<CeilingResult> {
  let highest = ceilingOf(first);
  for (const target of targets) {
    if (highest.kind === 'invalid') return highest;
    if (target === first.facts.target) continue;
    const written = await held.write(target);
    // What a provider does not take, it is not sent.
    if (written.kind === 'error') continue;
    const next = ceilingOf(written.request);
    highest = next.kind === 'invalid' ? next : { ...next, ceiling: higher(highest.ceiling, next.ceiling) };
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
    models: [...a.models, ...b.models],
  };
}

function ceilingOf(asked: TargetRequest): CeilingResult {
  const { body, form: request, chat, prompts, facts } = asked;
  const { provider, priceIds: providers } = facts.target;
  // A limit that its provider demands and the caller did not set is none of the caller's.
  const limit = request.kind === 'native' ? readOutputLimit(withoutNulls(chat)) : undefined;
  const outputTokens = limit === null ? null : writtenLimit(request, body);
  const answers = readAnswers(chat);
  if (outputTokens === undefined) return { kind: 'invalid', param: limitName(request) };
  if (answers === undefined) return { kind: 'invalid', param: 'n' };
  const addresses = addressesOf(facts.target, facts.lane === null ? chat : body);
  const searches = maxSearches(body);
  const shared = {
    providers,
    tier: dearTier(chat),
    hasDefaultCache: !CACHE_TIMES.test(asked.json),
    searches: searches !== 0,
  };
  const ceiling: Ceiling = {
    promptTokens: promptTokensOf(asked),
    choices: prompts * answers,
    searches,
    outputTokens,
    models: addresses.map((address) => ({ ...shared, model: address.slice(provider.id.length + 1) })),
  };
  return { kind: 'ceiling', ceiling };
}

/** On a lane the body itself goes up; another API's is written from the chat, whose bytes are as many as its own, about. */
function promptTokensOf({ json, form, chat, facts, isPromptTold }: TargetRequest): number {
  if (!isPromptTold) return MAX_PROMPT_TOKENS;
  const isRewritten = form.kind === 'native' && facts.lane === null;
  return maxPromptTokens(chat, isRewritten ? JSON.stringify(chat) : json, facts.target.provider.imageTokens);
}

/** How many answers a prompt gets, all of which are paid for; undefined where that is no whole number from 1 up. */
function readAnswers({ n = 1, best_of = 1 }: JsonObject): number | undefined {
  const counts = [readCount(n) ?? 0, readCount(best_of) ?? 0];
  return Math.min(...counts) < 1 ? undefined : Math.max(...counts);
}

/**
 * A field that may name a longer time for a prompt's cache: `cache_control.ttl` at Anthropic, `prompt_cache_options.ttl` and
 * `prompt_cache_retention` at OpenAI. Quotes within a text are escaped, and do not match.
 */
const CACHE_TIMES = /"(?:ttl|prompt_cache_retention)"/;

/** Tiers that cost no more than the table says (OpenAI's, Groq's and Anthropic's pages, 2026-11-22). */
const LISTED_TIERS = ['auto', 'default', 'standard', 'standard_only', 'flex', 'on_demand'];

/** Any other tier may cost more (OpenAI's `priority` costs about double), and a budget in money must hold. */
function dearTier({ service_tier: tier }: JsonObject): string | undefined {
  const isListed = tier === undefined || tier === null || LISTED_TIERS.some((listed) => listed === tier);
  return isListed ? undefined : (readText(tier) ?? 'unknown');
}

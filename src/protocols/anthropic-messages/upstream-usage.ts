/** Accumulates the usage of a Messages response: the last reported count of each field, and tokens billed besides the message. */

import { readName } from '../../canonical/part.ts';
import type { ExtraBilledTokens, UsageReport } from '../../canonical/usage.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount } from '../../shared/json.ts';

const FIELDS = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
] as const;
type Counts = { readonly [F in (typeof FIELDS)[number]]?: number } & {
  /** The parts of the cache writes that are kept for five minutes and for an hour. */
  readonly short?: number;
  readonly hour?: number;
  readonly searches?: number;
};

/**
 * Speeds and regions without an extra price: https://platform.claude.com/docs/en/build-with-claude/fast-mode and
 * /docs/en/manage-claude/data-residency (2026-11-22). Models before Opus 4.6 report the region `not_available` (recorded in 2026).
 */
const STANDARD: readonly string[] = ['standard', 'global', 'not_available'];

/** Each report has totals of the whole message and may omit some. A reported total replaces the earlier one. */
export class ClaudeUsage {
  #counts: Counts = {};
  #writtenAtStart: number | undefined;
  #speed: string | undefined;
  #region: string | undefined;
  #hadPremium = false;
  #isRepriced = false;

  /**
   * The speed and the region with an extra price, as the price tables name them (`fast`, `us`, `fast+us`). Without one: `default` if an
   * earlier report had one, otherwise undefined.
   */
  get serviceTier(): string | undefined {
    const premium = [this.#speed, this.#region].filter(
      (name) => name !== undefined && !STANDARD.includes(name),
    );
    if (premium.length === 0) return this.#hadPremium ? 'default' : undefined;
    this.#hadPremium = true;
    return premium.join('+');
  }

  /**
   * A redeemed fallback credit bills the request "as if the conversation had been on the retry model all along": its prompt costs less
   * than its counts say, by an amount that the response does not have. `BetaFallbackCreditUsage` of @anthropic-ai/sdk 1.12.0 (2026-11-20).
   */
  #readBilling({ speed, inference_geo, fallback_credit }: JsonObject): void {
    this.#speed = readName(speed) ?? this.#speed;
    this.#region = readName(inference_geo) ?? this.#region;
    this.#isRepriced ||= objectOf(objectOf(fallback_credit).status).type === 'redeemed';
  }

  /** The usage of `message_start`. Its output count is only that of the first tokens, so it is skipped: a truncated stream has none. */
  start(usage: unknown): UsageReport | null {
    if (!isObject(usage)) return null;
    this.#readBilling(usage);
    const { output_tokens: _, ...counts } = countsIn(usage);
    this.#counts = counts;
    this.#writtenAtStart = counts.cache_creation_input_tokens;
    return { ...tokensOf(counts), isLatest: true };
  }

  /**
   * The usage of `message_delta` or of a non-streaming response.
   * @param searchResults the number of searches with results, for upstreams whose usage does not count searches
   */
  latest(usage: unknown, searchResults: number): UsageReport | null {
    if (!isObject(usage)) return null;
    this.#readBilling(usage);
    this.#counts = { ...this.#counts, ...countsIn(usage) };
    const details = objectOf(usage.output_tokens_details);
    const extraBilled = readExtraBilled(usage.iterations);
    return {
      ...tokensOf(this.#counts, this.#writtenAtStart),
      ...(this.#isRepriced && { isUpperBound: true }),
      searches: this.#counts.searches ?? (searchResults === 0 ? undefined : searchResults),
      reasoning: readCount(details.thinking_tokens),
      ...(extraBilled === null ? {} : { extraBilled }),
      isLatest: true,
    };
  }
}

/**
 * The prompt includes tokens read from and written to a cache, as in the canonical usage.
 * @param writtenAtStart the cache writes of `message_start`
 */
function tokensOf(counts: Counts, writtenAtStart = counts.cache_creation_input_tokens) {
  const { input_tokens, cache_read_input_tokens: cached, cache_creation_input_tokens: cacheWrite } = counts;
  const prompt = input_tokens === undefined ? undefined : input_tokens + (cached ?? 0) + (cacheWrite ?? 0);
  const long = longWrites(counts, writtenAtStart);
  return { prompt, completion: counts.output_tokens, cached, cacheWrite, ...long };
}

/**
 * Server tools write to the cache during the response. `message_delta` then has a higher total, without its parts
 * (BerriAI/litellm#42663, 2026-09-23). What was added is of the kind that `message_start` named. If it named both or none, the dearer one
 * is assumed.
 */
function longWrites({ cache_creation_input_tokens: total = 0, short, hour }: Counts, writtenAtStart = 0) {
  if (short === undefined || hour === undefined) return { cacheWriteLong: hour };
  const added = total - Math.max(short + hour, writtenAtStart);
  const isShort = short > 0 && hour === 0;
  if (added <= 0 || isShort) return { cacheWriteLong: hour };
  const isLong = hour > 0 && short === 0;
  return { cacheWriteLong: hour + added, isUpperBound: !isLong };
}

/**
 * The message's count is the sum of its `message` iterations. Compaction and advisors are billed besides. After a fallback it is the
 * count of the model that wrote the message, and the model that declined is billed besides if it had produced output.
 * https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback#billing-and-rate-limits (2026-11-22)
 */
function readExtraBilled(iterations: unknown): ExtraBilledTokens | null {
  const all = readArray(iterations).filter(isObject);
  const fallback = all.findLast(({ type }) => type === 'fallback_message');
  const others = all.filter((iteration) => isExtra(iteration, fallback));
  if (others.length === 0) return null;
  const counts = others.map((iteration) => tokensOf(countsIn(iteration)));
  const sum = (count: (tokens: ReturnType<typeof tokensOf>) => number | undefined) =>
    counts.reduce((total, tokens) => total + (count(tokens) ?? 0), 0);
  return {
    prompt: sum(({ prompt }) => prompt),
    completion: sum(({ completion }) => completion),
    cached: sum(({ cached }) => cached),
    cacheWrite: sum(({ cacheWrite }) => cacheWrite),
    cacheWriteLong: sum(({ cacheWriteLong }) => cacheWriteLong),
  };
}

function isExtra({ type, model, output_tokens }: JsonObject, fallback: JsonObject | undefined): boolean {
  if (type === 'fallback_message') return false;
  if (type !== 'message' && type !== undefined) return true;
  return fallback !== undefined && model !== fallback.model && (readCount(output_tokens) ?? 0) > 0;
}

function countsIn(usage: JsonObject): Counts {
  const counts: (readonly [string, number | undefined])[] = FIELDS.map((field) => [
    field,
    readCount(usage[field]),
  ]);
  const parts = objectOf(usage.cache_creation);
  counts.push(['short', readCount(parts.ephemeral_5m_input_tokens)]);
  counts.push(['hour', readCount(parts.ephemeral_1h_input_tokens)]);
  counts.push(['searches', readCount(objectOf(usage.server_tool_use).web_search_requests)]);
  return Object.fromEntries(counts.filter(([, count]) => count !== undefined));
}

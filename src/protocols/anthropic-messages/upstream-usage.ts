/** Counts an Anthropic message's tokens: the last said count of each field, and what is billed beside the message (A5). */

import { readName } from '../../canonical/part.ts';
import type { ExtraBilledTokens, UsageReport } from '../../canonical/usage.ts';
import { isObject, type JsonObject, objectOf, readArray, readCount } from '../../shared/json.ts';

const FIELDS = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
] as const;
type Said = { readonly [F in (typeof FIELDS)[number]]?: number } & {
  /** Of what was written to a cache, what it keeps for an hour. */
  readonly hour?: number;
  readonly searches?: number;
};

/**
 * Where they cost no more: https://platform.claude.com/docs/en/build-with-claude/fast-mode and /docs/en/manage-claude/data-residency
 * (2026-11-22); models before Opus 4.6 say `not_available` of their place (recorded in 2026).
 */
const STANDARD: readonly string[] = ['standard', 'global', 'not_available'];

/** Totals of the whole message that are left out where they don't apply: one that is there takes the place of the one before. */
export class ClaudeUsage {
  #said: Said = {};
  #speed: string | undefined;
  #place: string | undefined;
  #wasDearer = false;

  /**
   * The speed and the place that the message was made with, as prices name them (`fast`, `us`, `fast+us`): `default` where an
   * earlier report named dearer ones, undefined where none did.
   */
  get serviceTier(): string | undefined {
    const dearer = [this.#speed, this.#place].filter(
      (name) => name !== undefined && !STANDARD.includes(name),
    );
    if (dearer.length === 0) return this.#wasDearer ? 'default' : undefined;
    this.#wasDearer = true;
    return dearer.join('+');
  }

  #readTier({ speed, inference_geo }: JsonObject): void {
    this.#speed = readName(speed) ?? this.#speed;
    this.#place = readName(inference_geo) ?? this.#place;
  }

  /** Of `message_start`, whose output count is of no more than the beginning: a stream that is cut has none. */
  start(usage: unknown): UsageReport | null {
    if (!isObject(usage)) return null;
    this.#readTier(usage);
    const { output_tokens: _, ...said } = saidIn(usage);
    this.#said = said;
    return { ...tokensOf(said), isLatest: true };
  }

  /**
   * Of `message_delta`, and of a plain answer.
   * @param searchResults searches that had results: they count where an upstream's usage names no number
   */
  latest(usage: unknown, searchResults: number): UsageReport | null {
    if (!isObject(usage)) return null;
    this.#readTier(usage);
    this.#said = { ...this.#said, ...saidIn(usage) };
    const details = objectOf(usage.output_tokens_details);
    const extraBilled = readExtraBilled(usage.iterations);
    return {
      ...tokensOf(this.#said),
      searches: this.#said.searches ?? (searchResults === 0 ? undefined : searchResults),
      reasoning: readCount(details.thinking_tokens),
      ...(extraBilled === null ? {} : { extraBilled }),
      isLatest: true,
    };
  }
}

/** What was read from a cache and written to one is part of the prompt, as everywhere else. */
function tokensOf(said: Said) {
  const { input_tokens, cache_read_input_tokens: cached, cache_creation_input_tokens: cacheWrite } = said;
  const prompt = input_tokens === undefined ? undefined : input_tokens + (cached ?? 0) + (cacheWrite ?? 0);
  return { prompt, completion: said.output_tokens, cached, cacheWrite, cacheWriteLong: said.hour };
}

/**
 * The message's own count is the sum of its `message` iterations alone: compaction and advisors are billed besides. Where another
 * model took over, it is that of the model that wrote the message, and one that declined is billed besides if it had begun to answer.
 * https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback#billing-and-rate-limits (2026-11-22)
 */
function readExtraBilled(iterations: unknown): ExtraBilledTokens | null {
  const all = readArray(iterations).filter(isObject);
  const fallback = all.findLast(({ type }) => type === 'fallback_message');
  const others = all.filter((iteration) => isBeside(iteration, fallback));
  if (others.length === 0) return null;
  const counts = others.map((iteration) => tokensOf(saidIn(iteration)));
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

function isBeside({ type, model, output_tokens }: JsonObject, fallback: JsonObject | undefined): boolean {
  if (type === 'fallback_message') return false;
  if (type !== 'message' && type !== undefined) return true;
  return fallback !== undefined && model !== fallback.model && (readCount(output_tokens) ?? 0) > 0;
}

function saidIn(usage: JsonObject): Said {
  const counts: (readonly [string, number | undefined])[] = FIELDS.map((field) => [
    field,
    readCount(usage[field]),
  ]);
  counts.push(['hour', readCount(objectOf(usage.cache_creation).ephemeral_1h_input_tokens)]);
  counts.push(['searches', readCount(objectOf(usage.server_tool_use).web_search_requests)]);
  return Object.fromEntries(counts.filter(([, count]) => count !== undefined));
}

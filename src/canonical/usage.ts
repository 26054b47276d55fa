/** Token usage: merges an upstream's reports, and completes them into the `usage` object that a client gets and the one that is billed. */

import type { Writable } from '../shared/writable.ts';

/** Reported counts. An absent count was not reported, which differs from zero. */
export interface UsageReport {
  readonly prompt?: number | undefined;
  readonly completion?: number | undefined;
  readonly total?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  /** The part of `cacheWrite` that the cache keeps longer than by default: an hour at Anthropic, 12 hours at OpenAI. */
  readonly cacheWriteLong?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly promptAudio?: number | undefined;
  readonly completionAudio?: number | undefined;
  readonly acceptedPrediction?: number | undefined;
  readonly rejectedPrediction?: number | undefined;
  /** Billed web searches of the provider. */
  readonly searches?: number | undefined;
  /** The cost that the upstream reports: an integer of 10^-9 US dollars. */
  readonly cost?: number | undefined;
  /**
   * Each count replaces the one reported before, even a higher one (A5). Each must be a sum of the event's numbers, because the fast
   * path computes it from them.
   */
  readonly isLatest?: true;
  /** Tokens that are billed in addition to the counts. */
  readonly extraBilled?: ExtraBilledTokens | undefined;
  /** The report leaves open which of two rates is billed, and the counts name the higher one. */
  readonly isUpperBound?: boolean | undefined;
}

/** Billed tokens that are not in the output's counts: of a compaction, or of an advisor model (A5). */
export interface ExtraBilledTokens {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWriteLong: number;
}

/** The canonical `usage` object. It always has the three sums. A count that was not reported is absent (U3). */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number;
    readonly cache_write_tokens?: number;
    readonly audio_tokens?: number;
  };
  readonly completion_tokens_details?: {
    readonly reasoning_tokens?: number;
    readonly audio_tokens?: number;
    readonly accepted_prediction_tokens?: number;
    readonly rejected_prediction_tokens?: number;
  };
  /** US dollars. Only if the request has `usage.include`. */
  readonly cost?: number;
  /** `cached_tokens`, for clients of DeepSeek. */
  readonly prompt_cache_hit_tokens?: number;
}

/**
 * Merges a report into the earlier ones. Each count is its highest value, not a sum: providers that report on every chunk report the
 * running total, and some end with zeros or nulls (U5). With `isLatest` it is the last value.
 */
export function mergeUsage(before: UsageReport, report: UsageReport): UsageReport {
  const merge = report.isLatest === true ? latest : highest;
  return {
    prompt: merge(before.prompt, report.prompt),
    completion: merge(before.completion, report.completion),
    total: merge(before.total, report.total),
    cached: merge(before.cached, report.cached),
    cacheWrite: merge(before.cacheWrite, report.cacheWrite),
    cacheWriteLong: merge(before.cacheWriteLong, report.cacheWriteLong),
    reasoning: merge(before.reasoning, report.reasoning),
    promptAudio: merge(before.promptAudio, report.promptAudio),
    completionAudio: merge(before.completionAudio, report.completionAudio),
    acceptedPrediction: merge(before.acceptedPrediction, report.acceptedPrediction),
    rejectedPrediction: merge(before.rejectedPrediction, report.rejectedPrediction),
    searches: merge(before.searches, report.searches),
    cost: merge(before.cost, report.cost),
    extraBilled: report.extraBilled ?? before.extraBilled,
    isUpperBound: report.isLatest === true ? report.isUpperBound : before.isUpperBound,
  };
}

function highest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined || a > b ? a : b;
}

function latest(before: number | undefined, report: number | undefined): number | undefined {
  return report ?? before;
}

/** The usage of one output, with estimates for what the upstream did not report. */
export interface CountedUsage<Of extends Usage = Usage> {
  readonly usage: Of;
  /** Whether `prompt_tokens` or `completion_tokens` is an estimate. */
  readonly estimated: boolean;
  /** The reported counts contradict each other or leave a rate open, so a cost that is computed from them may be too high. */
  readonly isUpperBound?: boolean;
}

/**
 * Completes reported counts into the canonical object.
 * @param estimate the estimated tokens of the prompt and of the output's text, for a sum that was not reported, does not follow from the
 * others, or is zero although there is text
 */
export function countUsage(
  reported: UsageReport,
  estimate: { readonly prompt: () => number; readonly completion: () => number },
): CountedUsage {
  const { prompt, completion, total } = reportedSums(reported, estimate.completion() > 0);
  const promptTokens = prompt ?? estimate.prompt();
  const completionTokens = completion ?? estimate.completion();
  const { cached, cacheWrite } = withinPrompt(promptTokens, reported);
  const isOver = cached !== reported.cached || cacheWrite !== reported.cacheWrite;
  const promptDetails = present({
    cached_tokens: cached,
    cache_write_tokens: cacheWrite,
    audio_tokens: reported.promptAudio,
  });
  const completionDetails = present({
    reasoning_tokens: reported.reasoning,
    audio_tokens: reported.completionAudio,
    accepted_prediction_tokens: reported.acceptedPrediction,
    rejected_prediction_tokens: reported.rejectedPrediction,
  });
  const estimated = prompt === undefined || completion === undefined;
  const sum = promptTokens + completionTokens;
  const usage: Writable<Usage> = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    // A total counts tokens that neither part has, at some servers. One below the sum is of an earlier report, or contradicts it.
    total_tokens: estimated ? sum : Math.max(total ?? 0, sum),
  };
  if (promptDetails !== null) usage.prompt_tokens_details = promptDetails;
  if (completionDetails !== null) usage.completion_tokens_details = completionDetails;
  return isOver || reported.isUpperBound === true
    ? { estimated, isUpperBound: true, usage }
    : { estimated, usage };
}

/**
 * The parts of a prompt that a cache read and wrote. Some providers report more of them than the prompt has: Azure 161 of 7 for a Grok
 * (recorded 2026-08), relays of Claude, whose `input_tokens` exclude the cache, and OpenRouter's Gemini, which counts tokens as both.
 */
function withinPrompt(
  prompt: number,
  { cached, cacheWrite }: UsageReport,
): Pick<UsageReport, 'cached' | 'cacheWrite'> {
  const cacheReads = Math.min(cached ?? 0, prompt);
  return {
    cached: cached === undefined ? undefined : cacheReads,
    cacheWrite: cacheWrite === undefined ? undefined : Math.min(cacheWrite, prompt - cacheReads),
  };
}

type ReportedSums = Pick<UsageReport, 'prompt' | 'completion' | 'total'>;

/**
 * The sums that were reported or follow from reported ones.
 * @param hasText there was text, so a reported zero is ignored
 */
export function reportedSums(reported: UsageReport, hasText: boolean): ReportedSums {
  const { prompt, completion, total } = hasText ? withoutZeros(reported) : reported;
  return {
    prompt: prompt ?? difference(total, completion),
    completion: completion ?? difference(total, prompt),
    total,
  };
}

/** For an output with text: drops sums of zero, and a total that includes only one of the two. */
function withoutZeros({ prompt, completion, total }: UsageReport): ReportedSums {
  const isPartial = !prompt || !completion;
  const isPart = isPartial && total === (prompt || completion);
  return {
    prompt: prompt || undefined,
    completion: completion || undefined,
    total: isPart ? undefined : total || undefined,
  };
}

/** The usage that is billed, which has more than a client sees. */
export interface BilledUsage extends Usage {
  /** The part of the cache writes that are kept longer than by default, at a higher price. */
  readonly cache_write_long_tokens?: number;
  /** The prompt as it is priced, where its reported parts exceed it. */
  readonly priced_prompt?: PricedPrompt;
  /** Web searches of the provider, each with a price. */
  readonly searches?: number;
  /** If the upstream reported it. */
  readonly service_tier?: string;
}

/** The billed usage: the output's own and what is billed in addition. */
export function billedUsage(usage: Usage, reported: UsageReport): BilledUsage {
  const { extraBilled, cacheWriteLong, searches = 0 } = reported;
  const long = (cacheWriteLong ?? 0) + (extraBilled?.cacheWriteLong ?? 0);
  const all = extraBilled === undefined ? usage : addExtraBilled(usage, extraBilled);
  const priced = pricedPrompt(usage, reported);
  return {
    ...all,
    ...(long === 0 ? {} : { cache_write_long_tokens: long }),
    ...(priced === null ? {} : { priced_prompt: priced }),
    ...(searches === 0 ? {} : { searches }),
  };
}

/** The tokens of a prompt, with those that a cache read and wrote. */
interface PricedPrompt {
  readonly tokens: number;
  readonly cached: number;
  readonly cacheWrite: number;
}

/** Each reported part has its price. A part that exceeds the prompt shows that the prompt excludes it. Null: no part exceeds it. */
function pricedPrompt(
  { prompt_tokens }: Usage,
  { cached = 0, cacheWrite = 0, extraBilled }: UsageReport,
): PricedPrompt | null {
  const parts = cached + cacheWrite;
  if (parts <= prompt_tokens) return null;
  const tokens = Math.max(cached, cacheWrite) > prompt_tokens ? prompt_tokens + parts : parts;
  return {
    tokens: tokens + (extraBilled?.prompt ?? 0),
    cached: cached + (extraBilled?.cached ?? 0),
    cacheWrite: cacheWrite + (extraBilled?.cacheWrite ?? 0),
  };
}

function addExtraBilled(usage: Usage, extra: ExtraBilledTokens): Usage {
  const { cached_tokens = 0, cache_write_tokens = 0, ...prompt } = usage.prompt_tokens_details ?? {};
  return {
    ...usage,
    prompt_tokens: usage.prompt_tokens + extra.prompt,
    completion_tokens: usage.completion_tokens + extra.completion,
    total_tokens: usage.total_tokens + extra.prompt + extra.completion,
    prompt_tokens_details: {
      cached_tokens: cached_tokens + extra.cached,
      cache_write_tokens: cache_write_tokens + extra.cacheWrite,
      ...prompt,
    },
  };
}

/** The reported counts, or null if there are none. A null count would fail clients that validate a schema. */
function present<Name extends string>(
  counts: Readonly<Record<Name, number | undefined>>,
): { [N in Name]?: number } | null {
  const reported: { [N in Name]?: number } = {};
  let isEmpty = true;
  for (const name in counts) {
    const count = counts[name];
    if (count === undefined) continue;
    reported[name] = count;
    isEmpty = false;
  }
  return isEmpty ? null : reported;
}

function difference(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

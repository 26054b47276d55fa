/** Token usage: what an upstream has reported so far, and the one shape in which a client gets it (U3, U5). */

/** Counts that were reported. An absent one was never reported, which is not the same as zero. */
export interface UsageReport {
  readonly prompt?: number | undefined;
  readonly completion?: number | undefined;
  readonly total?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  /** Of those, what the cache keeps for longer than by default: an hour at Anthropic, 12 hours at OpenAI. */
  readonly cacheWriteLong?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly promptAudio?: number | undefined;
  readonly completionAudio?: number | undefined;
  readonly acceptedPrediction?: number | undefined;
  readonly rejectedPrediction?: number | undefined;
  /** Web searches that the provider ran for the answer and bills. */
  readonly searches?: number | undefined;
  /** What the upstream says the answer costs: an integer of 10^-9 US dollars (P3). */
  readonly cost?: number | undefined;
  /**
   * Each of its counts takes the place of what was reported before, be that higher (A5). It is a sum of the event's numbers, which
   * the fast path relies on.
   */
  readonly isLatest?: true;
  /** Billed with the answer. */
  readonly besides?: ExtraBilledTokens | undefined;
}

/** Tokens that are billed with an answer and are in none of its counts: of a compaction, of a model that was asked for advice (A5). */
export interface ExtraBilledTokens {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWriteLong: number;
}

/** The canonical `usage` object: the three sums are always there; a count that was not reported is absent (U3). */
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
  /** US dollars; only where the request asked for it (P5). */
  readonly cost?: number;
}

/**
 * Adds a report to those before it: each count's highest value counts, never a sum, because providers that report
 * on every chunk report the running total, and some end with zeros or nulls (U5). Of dialects that correct themselves the last
 * value counts (A5).
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
    besides: report.besides ?? before.besides,
  };
}

function highest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined || a > b ? a : b;
}

function latest(before: number | undefined, report: number | undefined): number | undefined {
  return report ?? before;
}

/** The tokens of one answer: reported by the upstream, or estimated where it reported none (M3). */
export interface CountedUsage<Of extends Usage = Usage> {
  readonly usage: Of;
  /** True where `prompt_tokens` or `completion_tokens` is an estimate. */
  readonly estimated: boolean;
}

/**
 * Completes what was reported into the canonical object.
 * @param reported what the upstream reported
 * @param estimate tokens of the prompt, and of the text that came: for a count that can't be had from the others, or is a zero beside
 * a text
 */
export function countUsage(
  reported: UsageReport,
  estimate: { readonly prompt: () => number; readonly completion: () => number },
): CountedUsage {
  const { prompt, completion, total } = reportedSums(reported, estimate.completion() > 0);
  const promptTokens = prompt ?? estimate.prompt();
  const completionTokens = completion ?? estimate.completion();
  const promptDetails = present({
    cached_tokens: reported.cached,
    cache_write_tokens: reported.cacheWrite,
    audio_tokens: reported.promptAudio,
  });
  const completionDetails = present({
    reasoning_tokens: reported.reasoning,
    audio_tokens: reported.completionAudio,
    accepted_prediction_tokens: reported.acceptedPrediction,
    rejected_prediction_tokens: reported.rejectedPrediction,
  });
  return {
    estimated: prompt === undefined || completion === undefined,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: total ?? promptTokens + completionTokens,
      ...(promptDetails === null ? {} : { prompt_tokens_details: promptDetails }),
      ...(completionDetails === null ? {} : { completion_tokens_details: completionDetails }),
    },
  };
}

type Sums = Pick<UsageReport, 'prompt' | 'completion' | 'total'>;

/**
 * The sums that were reported, or follow from those that were.
 * @param hasText a text came, beside which a zero is no report
 */
export function reportedSums(reported: UsageReport, hasText: boolean): Sums {
  const told = hasText ? withoutZeros(reported) : reported;
  const { prompt, completion, total } = told;
  return {
    prompt: prompt ?? difference(total, completion),
    completion: completion ?? difference(total, prompt),
    total,
  };
}

/** The sums of an answer that has a text: a zero was not counted, and a total that is no more than one part has left the other out. */
function withoutZeros({ prompt, completion, total }: UsageReport): Sums {
  const isPartial = !prompt || !completion;
  const isPart = isPartial && total === (prompt || completion);
  return {
    prompt: prompt || undefined,
    completion: completion || undefined,
    total: isPart ? undefined : total || undefined,
  };
}

/** What is paid for, which is more than a client is told. */
export interface BilledUsage extends Usage {
  /** Of the tokens written to a cache, those that it keeps for longer than by default: they are dearer. */
  readonly cache_write_long_tokens?: number;
  /** Web searches of the provider's: a price each. */
  readonly searches?: number;
  /** Where the upstream named it. */
  readonly service_tier?: string;
}

/** What is paid for: the answer's own usage and what was billed besides (A5). */
export function billedUsage(usage: Usage, reported: UsageReport): BilledUsage {
  const { besides, cacheWriteLong, searches = 0 } = reported;
  const long = (cacheWriteLong ?? 0) + (besides?.cacheWriteLong ?? 0);
  const all = besides === undefined ? usage : withBesides(usage, besides);
  return {
    ...all,
    ...(long === 0 ? {} : { cache_write_long_tokens: long }),
    ...(searches === 0 ? {} : { searches }),
  };
}

function withBesides(usage: Usage, besides: ExtraBilledTokens): Usage {
  const { cached_tokens = 0, cache_write_tokens = 0, ...prompt } = usage.prompt_tokens_details ?? {};
  return {
    ...usage,
    prompt_tokens: usage.prompt_tokens + besides.prompt,
    completion_tokens: usage.completion_tokens + besides.completion,
    total_tokens: usage.total_tokens + besides.prompt + besides.completion,
    prompt_tokens_details: {
      cached_tokens: cached_tokens + besides.cached,
      cache_write_tokens: cache_write_tokens + besides.cacheWrite,
      ...prompt,
    },
  };
}

/** The counts that were reported, or null where there is none: clients that check with a schema refuse a null count. */
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

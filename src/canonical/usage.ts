/** Token usage: what an upstream has reported so far, and the one shape in which a client gets it (U3, U5). */

/** Counts that were reported. An absent one was never reported, which is not the same as zero. */
export interface UsageReport {
  readonly prompt?: number | undefined;
  readonly completion?: number | undefined;
  readonly total?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly promptAudio?: number | undefined;
  readonly completionAudio?: number | undefined;
  readonly acceptedPrediction?: number | undefined;
  readonly rejectedPrediction?: number | undefined;
  /** What the upstream says the answer costs: an integer of 10^-9 US dollars (P3). */
  readonly cost?: number | undefined;
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
 * on every chunk report the running total, and some end with zeros or nulls (U5).
 */
export function mergeUsage(before: UsageReport, report: UsageReport): UsageReport {
  return {
    prompt: highest(before.prompt, report.prompt),
    completion: highest(before.completion, report.completion),
    total: highest(before.total, report.total),
    cached: highest(before.cached, report.cached),
    cacheWrite: highest(before.cacheWrite, report.cacheWrite),
    reasoning: highest(before.reasoning, report.reasoning),
    promptAudio: highest(before.promptAudio, report.promptAudio),
    completionAudio: highest(before.completionAudio, report.completionAudio),
    acceptedPrediction: highest(before.acceptedPrediction, report.acceptedPrediction),
    rejectedPrediction: highest(before.rejectedPrediction, report.rejectedPrediction),
    cost: highest(before.cost, report.cost),
  };
}

function highest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined || a > b ? a : b;
}

/** The tokens of one answer: reported by the upstream, or estimated where it reported none (M3). */
export interface CountedUsage {
  readonly usage: Usage;
  /** True where `prompt_tokens` or `completion_tokens` is an estimate. */
  readonly estimated: boolean;
}

/**
 * Completes what was reported into the canonical object.
 * @param reported what the upstream reported
 * @param estimate called only for a count that can't be had from the others: tokens of the prompt and of the completion
 */
export function countUsage(
  reported: UsageReport,
  estimate: { readonly prompt: () => number; readonly completion: () => number },
): CountedUsage {
  const prompt = reported.prompt ?? difference(reported.total, reported.completion);
  const completion = reported.completion ?? difference(reported.total, reported.prompt);
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
      total_tokens: reported.total ?? promptTokens + completionTokens,
      ...(promptDetails === null ? {} : { prompt_tokens_details: promptDetails }),
      ...(completionDetails === null ? {} : { completion_tokens_details: completionDetails }),
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

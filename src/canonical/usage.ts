/** Token usage: what an upstream has reported so far, and the one shape in which a client gets it (U3, U5). */

/** Counts that were reported. An absent one was never reported, which is not the same as zero. */
export interface UsageReport {
  readonly prompt?: number | undefined;
  readonly completion?: number | undefined;
  readonly total?: number | undefined;
  readonly cached?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly promptAudio?: number | undefined;
  readonly completionAudio?: number | undefined;
  readonly acceptedPrediction?: number | undefined;
  readonly rejectedPrediction?: number | undefined;
}

/** The canonical `usage` object: every key always there, the three sums always integers (U3). */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: {
    readonly cached_tokens: number | null;
    readonly audio_tokens: number | null;
  };
  readonly completion_tokens_details: {
    readonly reasoning_tokens: number | null;
    readonly audio_tokens: number | null;
    readonly accepted_prediction_tokens: number | null;
    readonly rejected_prediction_tokens: number | null;
  };
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
    reasoning: highest(before.reasoning, report.reasoning),
    promptAudio: highest(before.promptAudio, report.promptAudio),
    completionAudio: highest(before.completionAudio, report.completionAudio),
    acceptedPrediction: highest(before.acceptedPrediction, report.acceptedPrediction),
    rejectedPrediction: highest(before.rejectedPrediction, report.rejectedPrediction),
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
  return {
    estimated: prompt === undefined || completion === undefined,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: reported.total ?? promptTokens + completionTokens,
      prompt_tokens_details: {
        cached_tokens: reported.cached ?? null,
        audio_tokens: reported.promptAudio ?? null,
      },
      completion_tokens_details: {
        reasoning_tokens: reported.reasoning ?? null,
        audio_tokens: reported.completionAudio ?? null,
        accepted_prediction_tokens: reported.acceptedPrediction ?? null,
        rejected_prediction_tokens: reported.rejectedPrediction ?? null,
      },
    },
  };
}

function difference(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

/** Reads Gemini's `usageMetadata`: its last word counts, and thoughts are beside the answer's own tokens (A5). */

import type { UsageReport } from '../../canonical/usage.ts';
import { isObject, type JsonObject, readArray, readCount } from '../../shared/json.ts';

/**
 * `totalTokenCount` was the sum of the others in 623 of 623 recorded events (studies/dialects.md 3.4), so it is made of them: as a
 * field of its own it could be the sum of what was said earlier.
 * @param hasAnswer there is a candidate: where there is none, as of a blocked prompt, what the total has beside the prompt is all
 */
export function readGeminiUsage(usage: JsonObject, hasAnswer: boolean): UsageReport {
  const prompt = sum(usage.promptTokenCount, usage.toolUsePromptTokenCount);
  const completion = sum(usage.candidatesTokenCount, usage.thoughtsTokenCount);
  const total = readCount(usage.totalTokenCount);
  const rest =
    hasAnswer || total === undefined || prompt === undefined ? undefined : Math.max(0, total - prompt);
  return {
    isLatest: true,
    prompt,
    completion: completion ?? rest,
    cached: readCount(usage.cachedContentTokenCount),
    reasoning: readCount(usage.thoughtsTokenCount),
    promptAudio: audio(usage.promptTokensDetails),
    completionAudio: audio(usage.candidatesTokensDetails),
  };
}

function sum(a: unknown, b: unknown): number | undefined {
  const counts = [readCount(a), readCount(b)].filter((count) => count !== undefined);
  return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0);
}

function audio(details: unknown): number | undefined {
  const found = readArray(details).find((detail) => isObject(detail) && detail.modality === 'AUDIO');
  return isObject(found) ? readCount(found.tokenCount) : undefined;
}

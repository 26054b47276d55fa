/** Reads Gemini's `logprobsResult` into the chat form (C9). */

import { type Logprobs, readLogprobs } from '../../canonical/logprobs.ts';
import { isObject, type JsonObject, objectOf, readArray } from '../../shared/json.ts';

const encoder = new TextEncoder();

export function readGeminiLogprobs(result: unknown): Logprobs | null {
  if (!isObject(result)) return null;
  const tops = readArray(result.topCandidates);
  const content = readArray(result.chosenCandidates).map((chosen, at) => {
    const top = tops[at];
    const candidates = readArray(isObject(top) ? top.candidates : undefined);
    return { ...entry(chosen), top_logprobs: candidates.map(entry) };
  });
  return readLogprobs({ content });
}

function entry(candidate: unknown): JsonObject {
  const { token, logProbability } = objectOf(candidate);
  const bytes = typeof token === 'string' ? [...encoder.encode(token)] : null;
  return { token, logprob: logProbability, bytes };
}

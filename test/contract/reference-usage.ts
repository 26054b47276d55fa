/** Reads usage from all places of a stream: the highest value of each count, or null if it was not reported. */

import type { Content, UsageContent } from '../../tools/conformance/contract/content.ts';
import { isObject, type Json, objectOf } from '../../tools/conformance/contract/json.ts';

const NO_USAGE: UsageContent = {
  prompt: null,
  completion: null,
  total: null,
  cached: null,
  cacheWrite: null,
  reasoning: null,
};

export function addUsage(content: Content, usage: Json | undefined): void {
  if (!isObject(usage)) return;
  const old = content.usage ?? NO_USAGE;
  const prompt = objectOf(usage.prompt_tokens_details ?? usage.prompt_token_details);
  const completion = objectOf(usage.completion_tokens_details);
  const reported = {
    prompt: higher(old.prompt, usage.prompt_tokens),
    completion: higher(old.completion, usage.completion_tokens),
    total: higher(old.total, usage.total_tokens),
    // Some providers report these next to the sums instead of in the details.
    cached: [
      prompt.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.num_cached_tokens,
      usage.cached_tokens,
    ].reduce(higher, old.cached),
    cacheWrite: [
      prompt.cache_write_tokens,
      prompt.cache_creation_tokens,
      usage.cache_creation_input_tokens,
    ].reduce(higher, old.cacheWrite),
    reasoning: [completion.reasoning_tokens, usage.reasoning_tokens].reduce(higher, old.reasoning),
  };
  if (Object.values(reported).some((count) => count !== null)) content.usage = reported;
}

function higher(old: number | null, reported: Json | undefined): number | null {
  if (typeof reported !== 'number') return old;
  return old === null ? reported : Math.max(old, reported);
}

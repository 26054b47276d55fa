/** Reads usage wherever a stream tells it: each count's highest value counts, and what was never told is null. */
import { isObject, type Json, objectOf } from './json.ts';
import type { Reading, UsageReading } from './reading.ts';

const UNTOLD: UsageReading = { prompt: null, completion: null, total: null, cached: null, reasoning: null };

export function addUsage(reading: Reading, usage: Json | undefined): void {
  if (!isObject(usage)) return;
  const old = reading.usage ?? UNTOLD;
  const prompt = objectOf(usage.prompt_tokens_details);
  const completion = objectOf(usage.completion_tokens_details);
  const told = {
    prompt: higher(old.prompt, usage.prompt_tokens),
    completion: higher(old.completion, usage.completion_tokens),
    total: higher(old.total, usage.total_tokens),
    // Some relatives say these two beside the sums instead of in the details.
    cached: [prompt.cached_tokens, usage.prompt_cache_hit_tokens, usage.cached_tokens].reduce(
      higher,
      old.cached,
    ),
    reasoning: [completion.reasoning_tokens, usage.reasoning_tokens].reduce(higher, old.reasoning),
  };
  if (Object.values(told).some((count) => count !== null)) reading.usage = told;
}

function higher(old: number | null, told: Json | undefined): number | null {
  if (typeof told !== 'number') return old;
  return old === null ? told : Math.max(old, told);
}

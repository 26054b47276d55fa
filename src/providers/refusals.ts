/** What a refusal is about, by its words: for whoever may ask another model, and for whose mistake it is (E1, R2, R4). */
import type { JsonObject } from '../canonical/json.ts';

/**
 * A prompt that is too long for the model, one that its filter stops, something that the request refers to and its provider does not
 * keep, a model that there is not, an account without money, and a place from which the provider is not to be asked.
 */
const REFUSAL_KINDS = [
  'context_length',
  'content_filter',
  'missing_state',
  'missing_model',
  'empty_balance',
  'wrong_place',
] as const;
export type RefusalKind = (typeof REFUSAL_KINDS)[number];

/** A provider's own words: its code and its message, with `: ` between, are held against them. */
export type RefusalWords = { readonly [K in RefusalKind]?: RegExp };

/** How a provider refuses. */
export interface RefusalHabits extends RefusalWords {
  /** The seconds that it asks to wait for in a refusal's body, where no header says so; undefined: it does not say (R6). */
  readonly retryAfter?: (body: JsonObject) => number | undefined;
}

/** Words of the OpenAI-compatible world. */
const COMMON: RefusalWords = {
  // OpenAI's code; the words of OpenAI, DeepSeek (evalstate/fast-agent#621, 2026-01-19), vLLM (vllm-project/vllm#20409), OpenRouter
  // and Mistral (badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22).
  context_length: /\bcontext_length_exceeded\b|\bmaximum context length\b/i,
  // Azure's code and OpenAI's: https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter, read 2026-11-22.
  content_filter: /^content_filter:|^content_policy_violation:/,
  // A 404 of OpenAI's: can1357/oh-my-pi#41, 2026-02-12.
  missing_state: /\b(?:item|response) with id\b.{0,256}\bnot found\b/i,
  missing_model: /^model_not_found:/,
};

/** What the refusal is about, or null: the request itself, as far as its words tell. */
export function refusalKind(
  { code, message }: { readonly code: string; readonly message: string },
  words: RefusalWords = {},
): RefusalKind | null {
  const text = `${code}: ${message}`;
  return REFUSAL_KINDS.find((kind) => COMMON[kind]?.test(text) || words[kind]?.test(text)) ?? null;
}

/** Recognizes what a provider's refusal is about, by its code and message: that decides on fallbacks and on the error code (E1, R2, R4). */
import { REFUSAL_KINDS, type RefusalKind } from '../canonical/refusal.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_ERROR_MESSAGE_CHARS } from '../shared/limits.ts';

/** Patterns of a provider. They are matched against `<code>: <message>` of its error. */
export type RefusalPatterns = { readonly [K in RefusalKind]?: RegExp };

/** How to read a provider's refusals. */
export interface RefusalRules extends RefusalPatterns {
  /** Seconds to wait, from the body of a refusal without a `retry-after` header; undefined: not in the body. */
  readonly retryAfter?: (body: JsonObject) => number | undefined;
}

/** Patterns for all providers. */
const COMMON: RefusalPatterns = {
  // OpenAI's code, and the messages of OpenAI, DeepSeek (evalstate/fast-agent#621, 2026-01-19), vLLM (vllm-project/vllm#20409), OpenRouter
  // and Mistral (badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22).
  context_length: /\bcontext_length_exceeded\b|\bmaximum context length\b/i,
  // Azure's code and OpenAI's: https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter, read 2026-11-22.
  content_filter: /^content_filter:|^content_policy_violation:/,
  // A 404 of OpenAI's: can1357/oh-my-pi#41, 2026-02-12.
  missing_state: /\b(?:item|response) with id\b.{0,256}\bnot found\b/i,
  // OpenAI's code, which Together also sends (evo-design/evo#14, 2024-02-28). "The model `x` does not exist": vLLM
  // (QwenLM/Qwen-Agent#110, 2024-04-02), Groq (continuedev/continue#11567, 2026-03-17); "Model not found, inaccessible, and/or not
  // deployed": Fireworks (warpdotdev/warp#15107, 2026-08-13). Matched from the beginning of the message, because a
  // message may quote text of the request.
  missing_model: /^model_not_found:|^[^:]*: (?:the )?model\b.{0,256}?\b(?:does not exist|not found)\b/i,
  // "Your API key does not have permission …", Anthropic: https://aitoolsrank.io/fix/anthropic-api-permission-error/, read 2026-11-22;
  // "Your API key was reported as leaked", Gemini: continuedev/continue#10513, 2026-02-14; "… if you're using a restricted API key", OpenAI: microsoft/PowerToys#32989, 2024-05-22. Matched
  // before any quoted text, for the same reason.
  bad_credential:
    /^invalid_api_key:|^[^:]*: [^'"`]{0,256}?(?:\b(?:your|this|the|invalid|incorrect|expired)|using a restricted) (?:api[ -]?)?key\b/i,
};

/** No code that a pattern names is longer. */
const MAX_CODE_CHARS = 128;

/**
 * What a refusal is about; null if no pattern matches, so that the request itself is at fault. Only the beginning of the message counts,
 * which bounds the work of the patterns.
 */
export function refusalKind(
  { code, message }: { readonly code: string; readonly message: string },
  words: RefusalPatterns = {},
): RefusalKind | null {
  const text = `${code.slice(0, MAX_CODE_CHARS)}: ${message.slice(0, MAX_ERROR_MESSAGE_CHARS)}`;
  return REFUSAL_KINDS.find((kind) => COMMON[kind]?.test(text) || words[kind]?.test(text)) ?? null;
}

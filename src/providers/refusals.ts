/** What a refusal is about, by its words: for whoever may ask another model, and for whose mistake it is (E1, R2, R4). */
import type { JsonObject } from '../shared/json.ts';

/**
 * A prompt that is too long for the model, one that its filter stops, something that the request refers to and its provider does not
 * keep, a model that there is not, a credential that is refused, an account without money, one with too little for this request, and a
 * place from which the provider is not to be asked.
 */
const REFUSAL_KINDS = [
  'context_length',
  'content_filter',
  'missing_state',
  'missing_model',
  'bad_credential',
  'empty_balance',
  'exceeds_balance',
  'unsupported_region',
] as const;
export type RefusalKind = (typeof REFUSAL_KINDS)[number];

/** A provider's own words: its code and its message, with `: ` between, are held against them. */
export type RefusalPatterns = { readonly [K in RefusalKind]?: RegExp };

/** How a provider refuses. */
export interface RefusalRules extends RefusalPatterns {
  /** The seconds that it asks to wait for in a refusal's body, where no header says so; undefined: it does not say (R6). */
  readonly retryAfter?: (body: JsonObject) => number | undefined;
}

/** Words of the OpenAI-compatible world. */
const COMMON: RefusalPatterns = {
  // OpenAI's code; the words of OpenAI, DeepSeek (evalstate/fast-agent#621, 2026-01-19), vLLM (vllm-project/vllm#20409), OpenRouter
  // and Mistral (badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22).
  context_length: /\bcontext_length_exceeded\b|\bmaximum context length\b/i,
  // Azure's code and OpenAI's: https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter, read 2026-11-22.
  content_filter: /^content_filter:|^content_policy_violation:/,
  // A 404 of OpenAI's: can1357/oh-my-pi#41, 2026-02-12.
  missing_state: /\b(?:item|response) with id\b.{0,256}\bnot found\b/i,
  // OpenAI's code, which Together sends, too (evo-design/evo#14, 2024-02-28). "The model `x` does not exist": vLLM
  // (QwenLM/Qwen-Agent#110, 2024-04-02), Groq (continuedev/continue#11567, 2026-03-17); "Model not found, inaccessible, and/or not
  // deployed": Fireworks (warpdotdev/warp#15107, 2026-08-13). From the message's beginning, so that no text of the request, which a
  // message may repeat, passes for it.
  missing_model: /^model_not_found:|^[^:]*: (?:the )?model\b.{0,256}?\b(?:does not exist|not found)\b/i,
  // "Your API key does not have permission …", Anthropic: https://aitoolsrank.io/fix/anthropic-api-permission-error/, read 2026-11-22;
  // "Your API key was reported as leaked", Gemini: continuedev/continue#10513, 2026-02-14; "… if you're using a restricted API key", OpenAI: microsoft/PowerToys#32989, 2024-05-22. Before
  // anything quoted, for the same reason.
  bad_credential:
    /^invalid_api_key:|^[^:]*: [^'"`]{0,256}?(?:\b(?:your|this|the|invalid|incorrect|expired)|using a restricted) (?:api[ -]?)?key\b/i,
};

/** What the refusal is about, or null: the request itself, as far as its words tell. */
export function refusalKind(
  { code, message }: { readonly code: string; readonly message: string },
  words: RefusalPatterns = {},
): RefusalKind | null {
  const text = `${code}: ${message}`;
  return REFUSAL_KINDS.find((kind) => COMMON[kind]?.test(text) || words[kind]?.test(text)) ?? null;
}

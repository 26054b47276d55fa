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
  /** The status that the provider's code stands for, where the response may have another one; undefined: it does not say. */
  readonly statusOf?: (code: string | undefined) => number | undefined;
}

/** Patterns for all providers. */
const COMMON: RefusalPatterns = {
  // OpenAI's code, and the messages of OpenAI, DeepSeek (evalstate/fast-agent#621, 2026-01-19), vLLM (vllm-project/vllm#20409), OpenRouter
  // and Mistral (badlogic/pi-mono, packages/ai/src/utils/overflow.ts, read 2026-11-22).
  context_length: /\bcontext_length_exceeded\b|\bmaximum context length\b/i,
  // Azure's code and OpenAI's: https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter, read 2026-11-22.
  // Alibaba's code and MiniMax's message: https://help.aliyun.com/zh/model-studio/error-code (2026-11),
  // https://platform.minimax.io/docs/api-reference/errorcode.md (read 2026-11-28).
  content_filter:
    /^content_filter:|^content_policy_violation:|^data_?inspection_?failed:|^[^:]{0,64}: (?:input|output) new_sensitive\b/i,
  // A 404 of OpenAI's: can1357/oh-my-pi#41, 2026-02-12.
  missing_state: /\b(?:item|response) with id\b.{0,256}\bnot found\b/i,
  // OpenAI's code, which Together also sends (evo-design/evo#14, 2024-02-28). "The model `x` does not exist": vLLM
  // (QwenLM/Qwen-Agent#110, 2024-04-02), Groq (continuedev/continue#11567, 2026-03-17); "Model not found, inaccessible, and/or not
  // deployed": Fireworks (warpdotdev/warp#15107, 2026-08-13). Matched from the beginning of the message, because a
  // message may quote text of the request.
  missing_model: /^model_not_found:|^[^:]*: (?:the )?model\b.{0,256}?\b(?:does not exist|not found)\b/i,
  // "Your API key does not have permission …", Anthropic: https://aitoolsrank.io/fix/anthropic-api-permission-error/,
  // read 2026-11-22; "Your API key was reported as leaked", Gemini: continuedev/continue#10513, 2026-02-14; "… if
  // you're using a restricted API key", OpenAI: microsoft/PowerToys#32989, 2024-05-22. Matched before any quoted text,
  // for the same reason.
  bad_credential:
    /^invalid_api_key:|^[^:]*: [^'"`]{0,256}?(?:\b(?:your|this|the|invalid|incorrect|expired)|using a restricted) (?:api[ -]?)?key\b/i,
};

/**
 * The model wrote something invalid. Groq, as recorded in 2026-08: "did not match schema"; "Failed to generate JSON.
 * Please adjust your prompt. See 'failed_generation' for more details.", "Tool choice is required, but model did not
 * call a tool". Cerebras: "tool_call_validation_error".
 */
const OUTPUT_CODES =
  /^(?:tool_use_failed|failed_generation|json_validate_failed|json_validation_failed|output_parse_failed|tool_call_validation_error|invalid_model_output|invalid_output|malformed_(?:function|tool)_call|structured_output_\w{1,40}|model_output_\w{1,40})$/i;
const INVALID_OUTPUT: readonly RegExp[] = [
  /\bfailed[_ ]generation\b|\btool_use_failed\b|\bjson_validate_failed\b|\bmalformed_function_call\b/i,
  // Not Bedrock's "The model returned the following errors", after which it refuses the request.
  /\b(?:model|assistant|llm) (?:has |have )?(?:generated|produced|emitted|wrote|hallucinated|attempted to|tried to|did not (?:call|generate|produce|return)|failed to (?:call|generate|produce|return)|called (?:a |an |the )?(?:unknown |wrong )?(?:tool|function)|returned (?:an? )?(?:invalid|malformed|unexpected|empty|no|unknown)\b)/i,
  /\b(?:tool|function)[ _-](?:call|use)s? (?:validation|parsing|arguments?) (?:has |have )?(?:failed|error|is invalid|are invalid|were invalid)/i,
  /\b(?:failed|unable|could not|cannot|error) (?:to )?(?:generat|pars|validat|decod)(?:e|ing) (?:the |an? )?(?:valid |generated |model'?s? )?(?:output|response|completion|answer|result|json(?! body| payload| request| schema)|tool calls?|function calls?|arguments)\b/i,
  /\b(?:attempted to (?:call|use)|failed to call) (?:a |the )?(?:tool|function)\b/i,
];

/** Words for what a model writes, and that it is wrong: in one sentence with the model or a schema. */
const OUTPUT =
  /\b(?:output|response|completion|answer|reply|result|content|text|json(?! schema| body| payload| request)|tool calls?|function calls?|arguments|parameters for (?:tool|function)|generation)\b/i;
const OF_MODEL = /\b(?:model|models|assistant|llm|generated|generation)(?:'s|s')? /i;
const INVALID =
  /\b(?:(?:did|does|do|could|can)(?: not|n't) (?:match|conform|satisfy|comply|adhere|follow|validate|fit|be (?:parsed|decoded|validated))|(?:is|was|were|are) (?:not (?:valid|parsable|parseable)|invalid|malformed)|fail(?:ed|s)? (?:to )?(?:validat|match|pars|conform|decod|schema)|violat|mismatch)/i;

/** Whether a refusal is about what the model wrote, and not about the request. */
export function isAboutOutput(code: string, message: string): boolean {
  if (OUTPUT_CODES.test(code) || INVALID_OUTPUT.some((pattern) => pattern.test(message))) return true;
  return message.split(/\n|[.;] /).some((sentence) => {
    const output = OUTPUT.exec(sentence);
    const rest = output === null ? '' : sentence.slice(output.index + output[0].length);
    const invalid = INVALID.exec(rest);
    if (output === null || invalid === null) return false;
    return OF_MODEL.test(sentence.slice(0, output.index)) || /\bschema\b/i.test(rest.slice(invalid.index));
  });
}

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

/** The four finish reasons that a client may see, and how upstreams' finish words map to them (C8). */
import { words } from '../shared/words.ts';

export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

/** The meaning of an upstream's finish word. `failed`: the output failed, so the client gets an error instead of a finish. */
export type FinishMeaning = FinishReason | 'failed';

/** Finish words by their reason, in small letters. Every other word means `stop`. The usage record keeps the word itself. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['max_output_tokens', 'length'],
  ['max_completion_tokens', 'length'],
  // `incomplete_details.reason` of Responses: openai 7.57.0 (2026-11-13).
  ['max_messages', 'length'],
  ['model_context_window_exceeded', 'length'],
  // Claude's turn goes on in a further request, which only a client of Messages can send: @anthropic-ai/sdk 1.12.0,
  // `BetaStopReason` (2026-11-20).
  ['pause_turn', 'length'],
  ['compaction', 'length'],
  // A response of Responses that is incomplete and has no reason.
  ['incomplete', 'length'],
  ['content_filter', 'content_filter'],
  ['refusal', 'content_filter'],
  // `StopReason` of Bedrock's Converse:
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html (2026-11-28).
  ['guardrail_intervened', 'content_filter'],
  ['content_filtered', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  // Google: https://ai.google.dev/api/generate-content#FinishReason and #BlockReason, from googleapis/js-genai, 2026-11.
  ...words(`
    SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR JAILBREAK IMAGE_SAFETY
    IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER
  `).map((word): [string, FinishReason] => [word.toLowerCase(), 'content_filter']),
]);

/** Finish words that report a failure. */
const FAILURES: ReadonlySet<string> = new Set([
  ...['error', 'insufficient_system_resource'],
  // Google: the model wrote an invalid tool call, or the output is invalid.
  ...words(`
    MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE
    MALFORMED_RESPONSE NO_IMAGE
  `),
  // The same at Bedrock.
  ...['malformed_model_output', 'malformed_tool_use'],
]);

/** Words of the meaning `stop`, in the notation of the servers that send them. */
const STOPS: ReadonlySet<string> = new Set([
  'stop',
  'eos',
  'eos_token',
  'end_turn',
  'stop_sequence',
  'completed',
]);

/** Whether a server may write this as the reason of a finish. */
export function isFinishWord(word: string): boolean {
  return STOPS.has(word) || FAILURES.has(word) || REASONS.has(word);
}

/** The meaning of any finish word. The normalizer turns `stop` after tool calls into `tool_calls`. */
export function finishMeaning(word: string): FinishMeaning {
  return FAILURES.has(word) ? 'failed' : finishReason(word);
}

/** The reason of a finish word that is not a failure. */
export function finishReason(word: string): FinishReason {
  return REASONS.get(word.toLowerCase()) ?? 'stop';
}

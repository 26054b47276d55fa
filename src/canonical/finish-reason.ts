/** The four finish reasons a client may see, and what every upstream word becomes (C8). */

export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

/** What an upstream's word means; `failed`: the answer did, which is an error and no finish. */
export type FinishMeaning = FinishReason | 'failed';

/** Words that mean something else than `stop`; every word that is not here is `stop`, and the record keeps the word. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['max_output_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filter', 'content_filter'],
  ['refusal', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  // Google's: https://ai.google.dev/api/generate-content#FinishReason and #BlockReason, by googleapis/js-genai of 2026-11.
  ['MAX_TOKENS', 'length'],
  ...[
    ...[
      'SAFETY',
      'RECITATION',
      'LANGUAGE',
      'BLOCKLIST',
      'PROHIBITED_CONTENT',
      'SPII',
      'MODEL_ARMOR',
      'JAILBREAK',
    ],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
  ].map((word): [string, FinishReason] => [word, 'content_filter']),
]);

/** Words with which a provider reports that the answer failed: an error and no finish. */
const FAILURES: ReadonlySet<string> = new Set([
  ...['error', 'insufficient_system_resource'],
  // Google's, where what the model wrote is no call that could be made.
  ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MISSING_THOUGHT_SIGNATURE'],
  ...['MALFORMED_RESPONSE', 'NO_IMAGE'],
]);

/** Of a word that is not known it is `stop`. After tool calls a `stop` is `tool_calls`. */
export function finishMeaning(word: string): FinishMeaning {
  return FAILURES.has(word) ? 'failed' : finishReason(word);
}

/** Of a word with which an answer did finish. */
export function finishReason(word: string): FinishReason {
  return REASONS.get(word) ?? 'stop';
}

/** The four finish reasons a client may see, and what every upstream word becomes (C8). */

export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

/** Words that mean something else than `stop`; every word that is not here is `stop`, and the record keeps the word. */
const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filter', 'content_filter'],
  ['refusal', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
]);

/** Words with which a provider reports that the answer failed: an error and no finish. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource']);

export function isFailure(word: string): boolean {
  return FAILURES.has(word);
}

/** The canonical reason for an upstream's word; `stop` after tool calls is `tool_calls`. */
export function finishReason(word: string, hasToolCalls: boolean): FinishReason {
  const reason = REASONS.get(word) ?? 'stop';
  return reason === 'stop' && hasToolCalls ? 'tool_calls' : reason;
}

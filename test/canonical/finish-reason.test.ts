/** Tests the meanings of finish words: one of the four reasons, or a failure (C8). */
import { expect, test } from 'vitest';
import { finishMeaning } from '../../src/canonical/finish-reason.ts';

test.each([
  ...['stop', 'eos', 'eos_token', 'stop_sequence', 'end_turn', 'an unknown reason', 'STOP'].map((word) => [
    word,
    'stop',
  ]),
  ...['length', 'max_tokens', 'model_length', 'MAX_TOKENS'].map((word) => [word, 'length']),
  ...['pause_turn', 'compaction', 'incomplete'].map((word) => [word, 'length']),
  ...['content_filter', 'refusal', 'SAFETY'].map((word) => [word, 'content_filter']),
  ...['tool_calls', 'tool_use', 'function_call'].map((word) => [word, 'tool_calls']),
  ...['error', 'insufficient_system_resource', 'MALFORMED_FUNCTION_CALL'].map((word) => [word, 'failed']),
])('C8 finishMeaning(%j): %s', (word, meaning) => {
  expect(finishMeaning(word ?? '')).toBe(meaning);
});

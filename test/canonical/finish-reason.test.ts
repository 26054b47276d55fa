/** Tests the four finish reasons (C8): what every upstream reason becomes. */
import { describe, expect, test } from 'vitest';
import { finishReason, isFailure } from '../../src/canonical/finish-reason.ts';

describe('finishReason', () => {
  test.each([
    ['stop', 'stop', 'tool_calls'],
    ['eos', 'stop', 'tool_calls'],
    ['eos_token', 'stop', 'tool_calls'],
    ['stop_sequence', 'stop', 'tool_calls'],
    ['end_turn', 'stop', 'tool_calls'],
    ['an unknown reason', 'stop', 'tool_calls'],
    ['STOP', 'stop', 'tool_calls'],
    ['length', 'length', 'length'],
    ['max_tokens', 'length', 'length'],
    ['model_length', 'length', 'length'],
    ['content_filter', 'content_filter', 'content_filter'],
    ['tool_calls', 'tool_calls', 'tool_calls'],
    ['tool_use', 'tool_calls', 'tool_calls'],
    ['function_call', 'tool_calls', 'tool_calls'],
  ])('C8 %s: is %s, and %s after tool calls', (word, alone, afterCalls) => {
    expect([finishReason(word, false), finishReason(word, true)]).toEqual([alone, afterCalls]);
  });
});

test.each([
  ['error', true],
  ['insufficient_system_resource', true],
  ['stop', false],
  ['length', false],
  ['content_filter', false],
])('C8 isFailure(%j): is %j', (word, expected) => {
  expect(isFailure(word)).toBe(expected);
});

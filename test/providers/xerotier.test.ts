/** Tests the tokens that Xerotier's vendor events report (V3). */
import { describe, expect, test } from 'vitest';
import { xerotier } from '../../src/providers/xerotier.ts';
import type { JsonObject } from '../../src/shared/json.ts';

describe('Xerotier', () => {
  test.each<[type: string, event: JsonObject, tokens: unknown]>([
    ['x_deep_think.subtask_completed', { input_tokens: 3, output_tokens: 4 }, { kind: 'add', tokens: 7 }],
    ['x_deep_think.subtask_completed', { input_tokens: 3 }, { kind: 'add', tokens: 3 }],
    ['x_deep_think.subtask_completed', { input_tokens: '3', output_tokens: -1 }, { kind: 'add', tokens: 0 }],
    ['x_chat.metadata', { usage: { total_tokens: 9, prompt_tokens: 1 } }, { kind: 'total', tokens: 9 }],
    ['x_chat.metadata', { usage: { input_tokens: 1, output_tokens: 2 } }, { kind: 'total', tokens: 3 }],
    ['x_chat.metadata', { usage: null }, null],
    ['x_chat.other', { usage: { total_tokens: 9 } }, null],
  ])('V3 %s %j: reports %j', (type, event, tokens) => {
    expect(xerotier.vendorTokens?.(type, event)).toEqual(tokens);
  });
});

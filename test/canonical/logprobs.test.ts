/** Tests log probabilities (C9, C10): reading both forms, and converting each into the other. */
import { describe, expect, test } from 'vitest';
import { readLogprobs, toChatLogprobs, toTextLogprobs } from '../../src/canonical/logprobs.ts';

const TOP = { token: 'a', logprob: -0.1, bytes: [97] };
const ENTRY = { ...TOP, top_logprobs: [TOP] };
const CHAT = { content: [ENTRY], refusal: null };
const TEXT = { tokens: ['a'], token_logprobs: [-0.1], top_logprobs: [{ a: -0.1 }], text_offset: [3] };

describe('readLogprobs', () => {
  test.each<[name: string, value: unknown, expected: unknown]>([
    ['the chat form: as it is', CHAT, CHAT],
    ['the legacy form: as it is', TEXT, TEXT],
    ['refusal alone: content is null', { refusal: [ENTRY] }, { content: null, refusal: [ENTRY] }],
    [
      'an entry without bytes and top_logprobs: null and an empty list',
      { content: [{ token: 'a', logprob: -1 }] },
      { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null },
    ],
    ['foreign keys: dropped', { content: [{ ...ENTRY, rank: 1 }], refusal: null, extra: 1 }, CHAT],
    ['no entry in either list: null', { content: [], refusal: null }, null],
    ['null: null', null, null],
    ['a text: null', 'a', null],
    ['no tokens: null', { ...TEXT, tokens: [] }, null],
    ['a top list that is null: null', { ...TEXT, top_logprobs: null }, { ...TEXT, top_logprobs: null }],
    [
      'null for a first token: kept',
      { ...TEXT, token_logprobs: [null] },
      { ...TEXT, token_logprobs: [null] },
    ],
  ])('C9 C10 %s', (_, value, expected) => {
    expect(JSON.stringify(readLogprobs(value))).toBe(JSON.stringify(expected));
  });
});

describe('toChatLogprobs and toTextLogprobs', () => {
  test('C9 legacy form to chat form: bytes are null, because they are unknown', () => {
    expect(toChatLogprobs(TEXT)).toEqual({
      content: [
        {
          token: 'a',
          logprob: -0.1,
          bytes: null,
          top_logprobs: [{ token: 'a', logprob: -0.1, bytes: null }],
        },
      ],
      refusal: null,
    });
    expect(toChatLogprobs({ ...TEXT, top_logprobs: null }).content).toMatchObject([{ top_logprobs: [] }]);
  });

  test('C10 chat form to legacy form: offsets continue from the earlier text', () => {
    const content = [ENTRY, { ...ENTRY, token: 'bcd' }, { ...ENTRY, token: 'e', top_logprobs: [] }];
    expect(toTextLogprobs({ content, refusal: null }, 10)).toEqual({
      tokens: ['a', 'bcd', 'e'],
      token_logprobs: [-0.1, -0.1, -0.1],
      top_logprobs: [{ a: -0.1 }, { a: -0.1 }, {}],
      text_offset: [10, 11, 14],
    });
  });

  test('C9 C10 already in the requested form: unchanged', () => {
    expect(toChatLogprobs(CHAT)).toBe(CHAT);
    expect(toTextLogprobs(TEXT, 99)).toBe(TEXT);
  });

  test('C10 a refusal in the chat form: dropped in the legacy form', () => {
    expect(toTextLogprobs({ content: null, refusal: [ENTRY] }, 0)).toBeNull();
  });
});

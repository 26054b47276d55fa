/** Tests JSON whose long integers stay as they were written (Q11), and that nothing else of it changes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJsonExactly } from '../../src/shared/exact-json.ts';

/** The text, parsed and written again. */
const roundTrip = (text: string) => JSON.stringify(parseJsonExactly(text));

describe('parseJsonExactly', () => {
  test.each([
    '9007199254740993',
    '-9007199254740993',
    '18446744073709551615',
    '123456789012345678901234567890',
    '{"seed":9007199254740993}',
    '{"tools":[{"function":{"parameters":{"maximum":18446744073709551615,"minimum":-9223372036854775808}}}]}',
    '[9007199254740992,9007199254740993,[9007199254740994]]',
    `{"seed":1${'0'.repeat(400)}1}`,
  ])('Q11 an integer beyond 2^53, %s: its digits are as they were written', (text) => {
    expect(roundTrip(text)).toBe(text);
  });

  test('Q11 it differs from what JSON.parse makes of it', () => {
    expect(JSON.stringify(JSON.parse('{"seed":9007199254740993}'))).not.toBe('{"seed":9007199254740993}');
  });

  test.each([
    ['the largest that a number holds', '{"seed":9007199254740991}', { seed: 9_007_199_254_740_991 }],
    ['the smallest', '{"seed":-9007199254740991}', { seed: -9_007_199_254_740_991 }],
    [
      'a small one beside a long text',
      `{"seed":7,"id":"${'1'.repeat(20)}"}`,
      { seed: 7, id: '1'.repeat(20) },
    ],
    ['a long fraction', '{"p":0.1234567890123456}', { p: 0.123_456_789_012_345_6 }],
    ['a fraction beyond 2^53', '[9007199254740993.5]', [9_007_199_254_740_994]],
    ['powers of ten', '[1e300,1234567890123456e4]', [1e300, 1_234_567_890_123_456e4]],
  ])('Q11 %s: as JSON.parse gives it', (_, text, value) => {
    expect(parseJsonExactly(text)).toEqual(value);
    expect(parseJsonExactly(text)).toEqual(JSON.parse(text));
  });

  test.each(['', '{', '{"seed":9007199254740993', '9007199254740993 9007199254740993', 'undefined'])(
    'Q11 %j is no JSON: undefined, and no throw',
    (text) => {
      expect(parseJsonExactly(text)).toBeUndefined();
    },
  );

  test('Q11 digits in texts and in keys: are not touched', () => {
    const value = { '9007199254740993': 'seed 9007199254740993', n: '9007199254740993' };
    expect(parseJsonExactly(JSON.stringify(value))).toEqual(value);
  });

  test('Q11 any JSON with one long integer in it: everything is as before', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }), (value, seed) => {
        const text = `{"value":${JSON.stringify(value)},"seed":${seed}}`;
        // What JSON.stringify writes of what JSON.parse read: `-0` is written as `0`.
        const before = JSON.stringify(JSON.parse(JSON.stringify(value)));
        expect(roundTrip(text)).toBe(`{"value":${before},"seed":${seed}}`);
      }),
      { seed: 20261121 },
    );
  });
});

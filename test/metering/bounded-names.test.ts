/** Tests the bound on names in records (L1, B3): in bytes of JSON, and never within a character. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundName } from '../../src/metering/bounded-names.ts';

const bytesOf = (text: string) => new TextEncoder().encode(JSON.stringify(text)).length - 2;

test.each([
  ['gpt-4o', 'gpt-4o'],
  ['"quoted" \\ name', '"quoted" \\ name'],
  ['a\u0000b\u007fc\n', 'abc'],
  ['\ud800', '\ufffd'],
  ['x'.repeat(50), 'x'.repeat(20)],
  ['水'.repeat(50), '水'.repeat(6)],
  ['🌊'.repeat(50), '🌊'.repeat(5)],
  ['"'.repeat(50), '"'.repeat(10)],
])('L1 boundName of %j in 20 bytes: %j', (text, bound) => {
  expect(boundName(text, 20)).toBe(bound);
});

test('L1 boundName of any text: within its bytes, well-formed, and the beginning of it where nothing was left out', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.nat(40), (text, maxBytes) => {
      const bound = boundName(text, maxBytes);
      expect(bytesOf(bound)).toBeLessThanOrEqual(maxBytes);
      expect(bound.isWellFormed()).toBe(true);
      expect(
        text
          .toWellFormed()
          .replace(/[^\x20-\u{10ffff}]|\x7f/gu, '')
          .startsWith(bound),
      ).toBe(true);
    }),
  );
});

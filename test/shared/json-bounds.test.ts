/** Tests the bounds on a JSON text's depth and values (B2): exact, linear, and blind to what strings contain. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWithinJsonBounds } from '../../src/shared/json-bounds.ts';
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../../src/shared/limits.ts';

const PADDING = `"${'x'.repeat(5000)}"`;

/** So many levels around a text: in a short text, and in one that is too long for the short way. */
function nested(levels: number, open: string, close: string, inner = '1'): string[] {
  const text = open.repeat(levels) + inner + close.repeat(levels);
  return [text, open.repeat(levels) + PADDING + close.repeat(levels)];
}

describe('isWithinJsonBounds', () => {
  test.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
    ['both', '[{"a":', '}]'],
  ])('B2 %s in each other: the bound itself is taken, one level more is not', (_, open, close) => {
    const step = open.startsWith('[{') ? 2 : 1;
    const levels = MAX_JSON_DEPTH / step;
    for (const text of nested(levels, open, close)) expect(isWithinJsonBounds(text)).toBe(true);
    for (const text of nested(levels + 1, open, close)) expect(isWithinJsonBounds(text)).toBe(false);
  });

  test('B2 values: the bound itself is taken, one more is not', () => {
    const list = (count: number) => `[${'0,'.repeat(count - 1)}0]`;
    // The list is a value, too, and what is counted is its bracket, its first item and each comma.
    expect(isWithinJsonBounds(list(MAX_JSON_VALUES - 1))).toBe(true);
    expect(isWithinJsonBounds(list(MAX_JSON_VALUES))).toBe(false);
    expect(isWithinJsonBounds(`[${'{},'.repeat(MAX_JSON_VALUES / 2)}0]`)).toBe(false);
  });

  test.each([
    ['brackets', '[{'.repeat(20_000)],
    ['commas', ','.repeat(300_000)],
    ['escaped quotes', '\\"['.repeat(20_000)],
    ['backslashes before the closing quote', `${'[{'.repeat(20_000)}\\\\`],
  ])('B2 a string of %s: counts as one value', (_, content) => {
    expect(isWithinJsonBounds(`{"a":"${content}"}`)).toBe(true);
    expect(isWithinJsonBounds(`{"a":"${content}","b":${'['.repeat(200)}`)).toBe(false);
  });

  test('B2 any JSON: the same judgement as of its parsed value', () => {
    function depthOf(value: unknown): number {
      if (typeof value !== 'object' || value === null) return 0;
      return 1 + Math.max(0, ...Object.values(value).map(depthOf));
    }
    const wrapped = fc.tuple(fc.json({ maxDepth: 6 }), fc.integer({ min: 90, max: 104 }), fc.boolean());
    fc.assert(
      fc.property(wrapped, ([json, levels, isLong]) => {
        const inner = isLong ? `[${PADDING},${json}]` : json;
        const text = '['.repeat(levels) + inner + ']'.repeat(levels);
        return isWithinJsonBounds(text) === depthOf(JSON.parse(text)) <= MAX_JSON_DEPTH;
      }),
    );
  });

  test.each(['', 'x'.repeat(9999), ']'.repeat(9999), '"'.repeat(9999), `"${'\\'.repeat(9999)}`])(
    'B2 a text that is no JSON: gets an answer and is left to the parser',
    (text) => expect(isWithinJsonBounds(text)).toBe(true),
  );

  test('B2 ten megabytes of escaped quotes: linear', () => {
    expect(isWithinJsonBounds(`"${'\\"'.repeat(5_000_000)}"`)).toBe(true);
    expect(isWithinJsonBounds(`"${'\\\\'.repeat(5_000_000)}"`)).toBe(true);
    expect(isWithinJsonBounds(`[${`"${'x'.repeat(99)}",`.repeat(100_000)}"\\n"]`)).toBe(true);
  });
});

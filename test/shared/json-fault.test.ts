/** Tests what is said of a text that should hold JSON: empty, invalid at a place, or another kind. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/shared/json.ts';
import { jsonFault } from '../../src/shared/json-fault.ts';

const said = (text: string) => jsonFault(text, parseJson(text));

describe('jsonFault', () => {
  test.each([
    ['', 'is empty'],
    [' \n', 'is empty'],
    ['[]', 'is a list'],
    ['"hunter2"', 'is a text'],
    ['7', 'is a number'],
    ['true', 'is a boolean'],
    ['null', 'is null'],
    ['{"model":"x",}', 'is not valid JSON: the error is at line 1, column 14'],
    ['{\n  "model": hunter2\n}', 'is not valid JSON: the error is at line 2, column 12'],
    ["{'model':1}", 'is not valid JSON: the error is at line 1, column 2'],
    ['{"a":1}}', 'is not valid JSON: the error is at line 1, column 8'],
    ['[1 2]', 'is not valid JSON: the error is at line 1, column 4'],
    ['{"a" 1}', 'is not valid JSON: the error is at line 1, column 6'],
    ['{"a":"b\\x"}', 'is not valid JSON: the error is at line 1, column 9'],
    ['["a\nb"]', 'is not valid JSON: the error is at line 1, column 4'],
    ['{"model":', 'is not valid JSON: it ends too early, at line 1, column 10'],
    ['["a', 'is not valid JSON: it ends too early, at line 1, column 4'],
  ])('%j %s', (text, expected) => {
    expect(said(text)).toBe(expected);
  });

  test('a text of more than a MiB: is not searched', () => {
    expect(said(`[${'1,'.repeat(600_000)}]`)).toBe('is not valid JSON');
  });

  test('200,000 open brackets: have their end as the place', () => {
    expect(said('['.repeat(200_000))).toContain('column 200001');
  });

  test('where the engine names a position, it is that one, or the start of its word', () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', ']', 'x', '"', ':'), (json, n, put) => {
        const at = n % (json.length + 1);
        const text = `${json.slice(0, at)}${put}${json.slice(at + 1)}`;
        const position = enginePosition(text);
        if (position === null) return;
        compared++;
        const [, column] = /column (\d+)$/.exec(said(text)) ?? [];
        // Within a word or a number the engine's place is the first wrong character, and this one is the word's start.
        const between = text.slice(Number(column) - 1, position);
        expect([text, column, between]).toEqual([text, column, expect.stringMatching(/^[\w.+-]*$/)]);
        expect(Number(column)).toBeLessThanOrEqual(position + 1);
      }),
      { numRuns: 3000, seed: 22 },
    );
    expect(compared).toBeGreaterThan(200);
  });
});

/** Where JSON.parse says that a text without line ends is wrong, or null. */
function enginePosition(text: string): number | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
    return position === undefined ? null : Number(position);
  }
}

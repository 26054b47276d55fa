/** Tests the description of a text that is not the expected JSON: empty, invalid at a position, or of another kind. */
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

  test('200,000 open brackets: the error is at the end', () => {
    expect(said('['.repeat(200_000))).toContain('column 200001');
  });

  test('the position is the one that the engine reports, or the start of its word', () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', ']', 'x', '"', ':'), (json, n, put) => {
        const at = n % (json.length + 1);
        const text = `${json.slice(0, at)}${put}${json.slice(at + 1)}`;
        const position = enginePosition(text);
        if (position === null) return;
        compared++;
        const [, column] = /column (\d+)$/.exec(said(text)) ?? [];
        // Within a word or number the engine reports the first wrong character, and `jsonFault` the start of the word.
        const between = text.slice(Number(column) - 1, position);
        expect([text, column, between]).toEqual([text, column, expect.stringMatching(/^[\w.+-]*$/)]);
        expect(Number(column)).toBeLessThanOrEqual(position + 1);
      }),
      { numRuns: 3000, seed: 22 },
    );
    expect(compared).toBeGreaterThan(200);
  });
});

/** The position that JSON.parse reports for a text without line ends, or null. */
function enginePosition(text: string): number | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
    return position === undefined ? null : Number(position);
  }
}

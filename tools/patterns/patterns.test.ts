/** Tests the check of regular expressions that npm run lint includes. */
import { describe, expect, test } from 'vitest';
import { problemsOf } from './bounds.ts';
import { findPatterns, isBounded, longestMs } from './judge.ts';

const pattern = (source: string, flags = '') => ({ source, flags, line: 1 });

describe('B4 a pattern', () => {
  test.each([
    ['that backtracks over one class in two places', '^[\\w-]*[a-z_][\\w-]*$'],
    ['with nested repetitions', '"((?:[^"]+|\\\\.)*)"'],
    ['that is tried at each character of a run', '\\/+$'],
    ['with a lazy repetition before a word', '_session_([\\w-]*?)_end$'],
  ])('%s is not bounded', (_, source) => {
    expect(isBounded(pattern(source))).toBe(false);
  });

  test.each([
    ['^(?=[\\d-]*[a-z_])[\\w-]{1,256}$', 'i'],
    ['[\\w+/-]{8,}', 'g'],
    ['true|false|-?\\d+(?:\\.\\d+)?', 'y'],
  ])('%s is bounded', (source, flags) => {
    expect(isBounded(pattern(source, flags))).toBe(true);
  });

  test('that takes quadratic time is measured as slow for a long text, and as fast for a short one', () => {
    const quadratic = pattern('^[\\w-]*[a-z_][\\w-]*$', 'i');
    expect(longestMs(quadratic, 8000, 5)).toBeGreaterThan(5);
    // The least of three: on a loaded machine any measurement may be interrupted.
    const short = [1, 2, 3].map(() => longestMs(quadratic, 256));
    expect(Math.min(...short)).toBeLessThan(25);
  });
});

test('literals and calls of RegExp are found, with their lines; inserted names count as words', () => {
  const text =
    'const a = /x+$/gi;\nconst b = (k: string) => [new RegExp(`"$' + '{k}"+$`, "g"), RegExp(k)];\n';
  expect(findPatterns('a.ts', text)).toEqual([
    { source: 'x+$', flags: 'gi', line: 1 },
    { source: '"name"+$', flags: 'g', line: 2 },
    { source: null, flags: '', line: 2 },
  ]);
});

test('patterns that are made when they are first needed are found', () => {
  expect(findPatterns('a.ts', "const a = lazyPattern('[\\\\p{L}]+$', 'gu');")).toEqual([
    { source: '[\\p{L}]+$', flags: 'gu', line: 1 },
  ]);
});

describe('problemsOf names', () => {
  const source = (text: string) => [{ path: 'protocols/new.ts', text }];

  test('a pattern without a bound, and one that is built at run time', () => {
    expect(problemsOf(source('export const A = /a+$/;'), [])).toEqual([
      expect.stringMatching(/^src\/protocols\/new\.ts:1 a\+\$: /),
    ]);
    expect(problemsOf(source('export const a = (b: string) => new RegExp(b);'), [])).toHaveLength(1);
  });

  test('a pattern that is too slow for the length that its file allows', () => {
    const bound = { path: 'protocols/', chars: 12_000, by: 'a test' };
    expect(problemsOf(source('export const A = /a+$/;'), [bound])).toEqual([
      expect.stringContaining('12000 characters'),
    ]);
    expect(problemsOf(source('export const A = /a+$/;'), [{ ...bound, chars: 100 }])).toEqual([]);
  });

  test('a pattern whose lookahead reads the rest of the text at each character, which only the measurement finds', () => {
    expect(isBounded(pattern('(?=[\\w-]*\\d)[\\w-]{8,}'))).toBe(true);
    const sources = source('export const A = /(?=[\\w-]*\\d)[\\w-]{8,}/;');
    expect(problemsOf(sources, [], 10_000)).toEqual([expect.stringContaining('10000 characters')]);
  });

  test('a row that no pattern needs', () => {
    expect(
      problemsOf(source('export const A = /^a+$/;'), [{ path: 'protocols/', chars: 10, by: 'a test' }]),
    ).toHaveLength(1);
  });
});

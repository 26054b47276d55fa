/** Lines of CSV: a text that a spreadsheet may read as a formula is quoted, in whatever signs it is written. */
import { expect, test } from 'vitest';
import { csvLine } from '../../src/shared/csv.ts';

const cellOf = (text: string) =>
  csvLine([text])
    .slice(0, -2)
    .replace(/^"([\s\S]*)"$/, '$1');

/** Signs of which nothing is seen: without a width, of Arabic and Hebrew, spaces, variation selectors, fillers, halves of surrogates. */
const UNSEEN =
  '\u200b \u200c \u200d \u200e \u200f \u2060 \u2061 \u2063 \ufeff \u00ad \u061c \u0600 \u202a \u202e \u2066 \u2069 \u180e \u034f \ufe0f \u{e0020} \u115f \u1160 \u3164 \uffa0 \u2800 \u00a0 \u3000 \u2028 \u0085 \u007f \0 \ud800'.split(
    ' ',
  );

test.each([
  '=',
  '＝',
  '﹦',
  '⁼',
  '₌',
  '᐀',
  '⹀',
  '゠',
  '꓿',
  '═',
  '⩵',
  '+',
  '＋',
  '﹢',
  '-',
  '－',
  '﹣',
  '−',
  '@',
  '＠',
  '﹫',
])(
  'a text that begins with %s is quoted, also after each sign that is not seen, and after several',
  (sign) => {
    const formula = `${sign}HYPERLINK(1)`;
    for (const before of ['', ' ', '\t', ...UNSEEN, UNSEEN.join(''), '\u200b\u200b ']) {
      expect(cellOf(before + formula), JSON.stringify(before)).toBe(`'${before}${formula}`);
      expect(cellOf(`a${before}${formula}`)).toBe(`a${before}${formula}`);
    }
  },
);

test.each(['\t', '\r', '\n', '\u200b\n', ' \t'])('a text that begins with %j is quoted', (start) => {
  expect(cellOf(`${start}a`)).toBe(`'${start}a`);
});

test.each([
  '',
  'plain',
  'é',
  '日本',
  '😀',
  '-1',
  '-0.25',
  '12',
  'a=b',
  '≡',
  '\u200bplain',
  ' plain',
  '–',
  '《',
  'مرحبا',
])('%j stays as it is', (text) => {
  expect(cellOf(text)).toBe(text);
});

test('a long text of signs that are not seen takes linear time', () => {
  const begun = performance.now();
  csvLine(['\u200b'.repeat(1_000_000)]);
  expect(performance.now() - begun).toBeLessThan(2500);
});

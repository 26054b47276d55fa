/** Where short texts are in long ones, against a plain reading of the rule, and in which time. */
import { expect, test } from 'vitest';
import { ShortTexts } from '../../src/upstream/short-texts.ts';
import { shortestMs } from '../machine-speed.ts';
import { seeded } from '../random.ts';
import { SEED } from '../random-run.ts';
import { type PlainUnit, plainUnits } from './plain-units.ts';

/** White space counts as one space. */
function unitsOf(text: string): readonly PlainUnit[] {
  const units: PlainUnit[] = [];
  for (const unit of plainUnits(text)) if (!unit.isBlank || units.at(-1)?.folded !== ' ') units.push(unit);
  return units;
}

function isWordUnit(unit: string | undefined): boolean {
  if (unit === undefined) return false;
  if (/[\ud800-\udfff]/.test(unit)) return true;
  const isOther =
    /[\p{M}\p{Cf}\\\ufffd\s\p{Cc}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
  return !isOther.test(unit) && /^[\p{L}\p{N}_$]/u.test(unit.normalize('NFKD').toLowerCase());
}

/** Where a short text begins. */
function placesOf(short: string, long: string, kind: 'part' | 'word'): readonly number[] {
  const wanted = unitsOf(short)
    .map(({ folded }) => folded)
    .join('')
    .trim();
  const units = unitsOf(long);
  if (wanted === '') return [];
  return units.flatMap(({ at: from }, i) => {
    const found = units.slice(i, i + wanted.length);
    if (found.map(({ folded }) => folded).join('') !== wanted) return [];
    const to = (found.at(-1)?.at ?? 0) + 1;
    const isWhole = !isWordUnit(long[to]) && (!isWordUnit(long[from - 1]) || long[from - 2] === '\\');
    return kind === 'part' || isWhole ? [from] : [];
  });
}

const PIECES = [
  ...['the', 'a', 'is', 'lock', 'Locks', 'x', 'max_tokens', 'Straße', 'naïve', '$9', '0815', '4'],
  ...['患者', '王', 'の', '🔥', '\ud800', 'é', 'e\u0301', 'İ', '\u200b', '\\', '\\n', '\ufffd'],
  ...[' ', ' ', ' ', '  ', '\n\n\t', '\u00a0', '\0', ', ', '. ', '"', '-'],
];
/** A quick look is made of texts in which these are rare. */
const PLAIN = PIECES.filter((piece) => /^[\0-\x7f]*$/.test(piece));

test(`E5 random short texts are found where a plain reading finds them (seed ${SEED})`, () => {
  for (let run = 0; run < 1500; run++) {
    const random = seeded(SEED + run);
    const below = (count: number) => Math.floor(random() * count);
    const pool = below(2) === 0 ? PLAIN : PIECES;
    const pieces = (count: number) =>
      Array.from({ length: 1 + below(count) }, () => pool[below(pool.length)]).join('');
    const shorts = Array.from({ length: 1 + below(8) }, () => pieces(3));
    const texts = Array.from({ length: 1 + below(3) }, () => {
      const text = pieces(20);
      return below(2) === 0 ? text : text + (shorts[below(shorts.length)] ?? '') + pieces(4);
    });
    const searched = new ShortTexts();
    const words: number[][] = shorts.map(() => []);
    const parts: boolean[] = shorts.map(() => false);
    let textAt = 0;
    for (const [i, short] of shorts.entries()) {
      const isWord = searched.add(short, 'word', (from) => {
        words[i]?.push(1000 * textAt + from);
        return 'more';
      });
      const isPart = searched.add(short, 'part', () => {
        parts[i] = true;
        return 'done';
      });
      expect([isWord, isPart]).toEqual([true, true]);
    }
    for (textAt = 0; textAt < texts.length; textAt++) searched.find(texts[textAt] ?? '');
    const places = (short: string) =>
      texts.flatMap((text, i) => placesOf(short, text, 'word').map((at) => 1000 * i + at));
    expect({ run, words, parts }).toEqual({
      ...{ run, words: shorts.map(places) },
      parts: shorts.map((short) => texts.some((text) => placesOf(short, text, 'part').length > 0)),
    });
  }
});

test('E5 words that matter only together are reported in a text that has all of them', () => {
  const reported = (text: string) => {
    const searched = new ShortTexts();
    const found: string[] = [];
    searched.addGroup(['blue', 'falcon']);
    for (const word of ['blue', 'falcon']) {
      const note = () => {
        found.push(word);
        return 'more' as const;
      };
      searched.add(word, 'word', note, false);
    }
    searched.find(text);
    return found;
  };
  expect(reported('A falcon that is Blue')).toEqual(['falcon', 'blue']);
  expect(reported('A falcon that is bl\\ue')).toEqual(['falcon', 'blue']);
  expect(reported('A falcon that is grey')).toEqual([]);
});

test.each([
  ['words that end in each other, in a text of one letter', 'word', 'a'.repeat(400_000)],
  ['words that end in each other, each in its word', 'word', `${'a'.repeat(99)} `.repeat(4000)],
  ['parts that end in each other, in a text of one letter', 'part', 'a'.repeat(400_000)],
  ['a word before characters that do not count', 'word', `aaa${'\u200b'.repeat(400_000)}`],
  ['words before long white space', 'word', `aaa${' '.repeat(100_000)} `.repeat(4)],
] as const)('B4 %s: all are searched in little more time than one', (_, kind, text) => {
  const timeOf = (shortest: number) =>
    shortestMs(5, () => {
      const searched = new ShortTexts();
      for (let length = shortest; length < 67; length++) searched.add('a'.repeat(length), kind, () => 'more');
      searched.find(text);
    });
  // Each of the 64 looked at for each character takes far longer.
  expect(timeOf(3)).toBeLessThan(25 * timeOf(66));
});

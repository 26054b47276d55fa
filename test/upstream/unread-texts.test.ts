/** That a search of what a text does not repeat finds what a search of the whole text finds, and reads far less. */
import { expect, test } from 'vitest';
import { CommonRuns } from '../../src/upstream/common-runs.ts';
import { ShortTexts } from '../../src/upstream/short-texts.ts';
import { UnreadTexts } from '../../src/upstream/unread-texts.ts';
import { seeded } from '../random.ts';
import { SEED } from '../random-run.ts';

const NONE: ReadonlySet<number> = new Set();
const LARGE = 200_000;

function partsOf(texts: readonly string[]): readonly string[] {
  const unread = new UnreadTexts(LARGE, NONE);
  return texts.flatMap((text) => [...unread.partsOf(text)]);
}

const charsOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);

const PIECES = [
  ...[
    'the ',
    'lock ',
    'keeper',
    ', ',
    '0,',
    'x',
    '12-',
    'Straße ',
    '患者',
    '\n',
    ' ',
    '\\n',
    'e\u0301',
    '🔥',
    '. ',
  ],
  ...['a'.repeat(40), ' '.repeat(700), '0'.repeat(60)],
];

test(`E5 random texts that repeat themselves: the parts have all runs, words and parts of words (seed ${SEED})`, () => {
  for (let run = 0; run < 60; run++) {
    const random = seeded(SEED + run);
    const below = (count: number) => Math.floor(random() * count);
    const pieces = (count: number) =>
      Array.from({ length: 1 + below(count) }, () => PIECES[below(PIECES.length)]).join('');
    const some = Array.from({ length: 3 }, () => pieces(12));
    const texts = Array.from({ length: 1 + below(3) }, () => {
      let text = '';
      while (text.length < 20_000) {
        const piece = (below(3) === 0 ? pieces(8) : some[below(3)]) ?? '';
        text += piece.repeat(1 + below(4000 / (1 + piece.length)));
      }
      return text;
    });
    const message = (texts[0] ?? '').slice(5000, 5100) + pieces(20) + some.join(' ').slice(0, 200);
    const found = (searched: readonly string[]) => {
      const covered = new Uint8Array(message.length);
      const runs = new CommonRuns();
      runs.add(message, (from, to) => covered.fill(1, from, to));
      const short = new ShortTexts();
      const names = new Set<string>();
      for (const word of message.slice(0, 120).split(' ').slice(0, 30)) {
        for (const kind of ['part', 'word'] as const) {
          short.add(word, kind, () => {
            names.add(`${kind} ${word}`);
            return 'done';
          });
        }
      }
      for (const text of searched) {
        runs.find(text);
        short.find(text);
      }
      return { run, runs: covered.join(''), names: [...names].sort() };
    };
    expect(found(partsOf(texts))).toEqual(found(texts));
  }
});

test.each(['0,', '12345678901234567890,', 'the lock keeper of the weir ', 'a'.repeat(1000)])(
  'B4 a text of 1 MB that repeats %j: little of it is read',
  (piece) => {
    const text = piece.repeat(1_000_000 / piece.length);
    expect(charsOf(partsOf([text]))).toBeLessThan(300_000);
  },
);

test('B4 equal texts are read once, and those of a small request as they are', () => {
  expect(partsOf(['twice', 'twice', 'once'])).toEqual(['twice', 'once']);
  const text = '0,'.repeat(10_000);
  expect([...new UnreadTexts(text.length, NONE).partsOf(text)]).toEqual([text]);
});

/** What a short text has in common with long ones, against a plain reading of the rule. */
import { expect, test } from 'vitest';
import { CommonRuns } from '../../src/upstream/common-runs.ts';
import { seeded } from '../random.ts';
import { SEED } from '../random-run.ts';
import { plainUnits } from './plain-units.ts';

function found(message: string, texts: readonly string[]): string {
  const covered = new Uint8Array(message.length);
  const runs = new CommonRuns();
  runs.add(message, (from, to) => covered.fill(1, from, to));
  for (const text of texts) runs.find(text);
  return shown(message, covered);
}

function shown(message: string, covered: Uint8Array): string {
  return Array.from(covered, (bit, i) => (bit === 1 ? '·' : message[i])).join('');
}

interface Unit {
  readonly folded: string;
  readonly at: number;
}

interface Word {
  readonly folded: string;
  readonly from: number;
  readonly to: number;
}

/** The characters that count, and the words. */
function read(text: string): { readonly units: readonly Unit[]; readonly words: readonly Word[] } {
  const units: Unit[] = [];
  const words: Word[] = [];
  let open = { folded: '', from: 0, isWhole: false };
  const close = (to: number) => {
    const { folded, from } = open;
    if (folded !== '') words.push({ folded, from, to });
    open = { folded: '', from: 0, isWhole: false };
  };
  for (const { unit, folded, at, isHalf, isBlank } of plainUnits(text)) {
    const isWhole =
      !isHalf &&
      !isBlank &&
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(unit);
    const isWord = isHalf || (!isBlank && !isWhole && /[\p{L}\p{N}_$]/u.test(folded));
    if (!isWord || open.isWhole) close(at);
    if (isWord || isWhole) {
      const from = open.folded === '' ? at : open.from;
      open = { folded: open.folded + (isWhole ? unit : folded), from, isWhole };
    }
    if (!isBlank && unit !== '_') units.push({ folded, at });
  }
  close(text.length);
  return { units, words };
}

/** The places of all runs, by their text. */
function runsOf(text: string): readonly (readonly [string, from: number, to: number])[] {
  const { units, words } = read(text);
  const ofChars = units.flatMap((first, i) => {
    const run = units.slice(i, i + 11);
    const last = run.at(-1);
    if (run.length < 11 || last === undefined) return [];
    return [[`c ${run.map(({ folded }) => folded).join('')}`, first.at, last.at + 1] as const];
  });
  const ofWords = words.flatMap((first, i) => {
    const run = words.slice(i, i + 3);
    const last = run[2];
    if (last === undefined) return [];
    return [[`w ${run.map(({ folded }) => folded).join(' ')}`, first.from, last.to] as const];
  });
  return [...ofChars, ...ofWords];
}

function expected(message: string, texts: readonly string[]): string {
  const covered = new Uint8Array(message.length);
  const known = new Set(texts.flatMap((text) => runsOf(text).map(([run]) => run)));
  for (const [run, from, to] of runsOf(message)) if (known.has(run)) covered.fill(1, from, to);
  return shown(message, covered);
}

const PIECES = [
  ...[
    'the',
    'a',
    'is',
    'of',
    'lock',
    'keeper',
    'invalid_request',
    'max_tokens',
    'x',
    'Straße',
    'naïve',
    '$9',
  ],
  ...[
    '患者',
    '王',
    'の',
    'ค่า',
    '🔥',
    '👩‍👧',
    '\ud800',
    '\udc00',
    'é',
    'e\u0301',
    'ﬁ',
    'İ',
    '\u200b',
    '\\',
    '\\n',
  ],
  ...[' ', ' ', ' ', '  ', '\n\n\t', '\u00a0', '\0', ', ', '. ', '"', '{"', '":', '-', '...', '0'.repeat(9)],
];

test(`E5 random texts have in common what a plain reading finds (seed ${SEED})`, () => {
  for (let run = 0; run < 600; run++) {
    const random = seeded(SEED + run);
    const below = (count: number) => Math.floor(random() * count);
    const pieces = (count: number) =>
      Array.from({ length: below(count) }, () => PIECES[below(PIECES.length)]).join('');
    const message = pieces(60);
    const part = () => {
      const from = below(message.length);
      const text = message.slice(from, from + below(40));
      const change = below(5);
      if (change === 0) return text.toUpperCase();
      if (change === 1) return text.normalize('NFD');
      if (change === 2) return text.replace(/\s+/g, '   ');
      if (change === 3) return [...text].join('\u200d');
      return text;
    };
    const text = Array.from({ length: below(12) }, () => pieces(9) + part()).join('');
    const texts = [text, ...(below(2) === 0 ? [] : [part(), pieces(40)])];
    expect({ run, found: found(message, texts) }).toEqual({ run, found: expected(message, texts) });
  }
});

test('E5 a run is found wherever it begins in the text, and after any white space', () => {
  const message = 'The key "correct horse battery" is wrong';
  for (let before = 0; before < 40; before++) {
    const text = `${'z'.repeat(before)} Correct\nHorse${' '.repeat(before + 1)}battery`;
    expect(found(message, [text])).toBe('The key "·····················" is wrong');
    expect(found('abcdefghijkl', [`${'z'.repeat(before)}ABCDEFGHIJKL`])).toBe('·'.repeat(12));
    expect(found('abcdefghij', [`${'z'.repeat(before)}abcdefghij`])).toBe('abcdefghij');
  }
});

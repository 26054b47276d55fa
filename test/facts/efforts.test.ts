/** Tests the one rule by which an effort takes the place of another, and that tables, native families and refusals follow it (Q14). */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  effortOfTokens,
  isLevel,
  nearestEffort,
  placeOf,
  REASONING_LEVELS,
  tokensOfEffort,
} from '../../src/facts/efforts.ts';
import { changeOf } from '../../src/fitting/fit.ts';
import { familyOf } from '../../src/protocols/anthropic-messages/family.ts';
import { fitToFamily } from '../../src/protocols/anthropic-messages/request-thinking.ts';
import { CLAUDE_FAMILIES } from '../../src/providers/anthropic.ts';
import { TranslationReport } from '../../src/request-translation/dropped-fields.ts';
import { rewriteEffort } from '../../src/request-translation/effort.ts';
import { PLAIN_FORM } from '../fitting/plain-form.ts';

/** A level that is added has another one, so that the nearest of these stays the same. */
const PLACES = { none: 0, minimal: 1, low: 2, medium: 3, high: 4, xhigh: 5, max: 6, ultra: 7 };

describe('Q14 the nearest effort', () => {
  test.each([
    ['xhigh', ['high', 'max'], 'high'],
    ['medium', ['low', 'high', 'max'], 'low'],
    ['medium', ['high', 'low'], 'low'],
    ['minimal', ['medium', 'high'], 'medium'],
    ['ultra', ['low', 'max'], 'max'],
    ['ultra', ['low', 'ultra'], 'ultra'],
    ['max', ['low', 'ultra'], 'ultra'],
    ['none', ['high', 'low'], 'low'],
    ['low', ['none', 'default'], 'default'],
    ['low', ['none'], null],
    ['none', ['none', 'low'], 'none'],
    ['turbo', ['low', 'high'], null],
    ['turbo', ['turbo'], 'turbo'],
  ])('%s of %j is %j: of two the lower, and never none instead of reasoning', (level, levels, nearest) => {
    expect(nearestEffort(level, levels)).toBe(nearest);
  });

  test('the place of each level is the one that it had, also once levels are added between them', () => {
    const levels = ['none', ...REASONING_LEVELS];
    const places = levels.map((level) => [level, placeOf(level)]);
    expect(Object.fromEntries(places)).toMatchObject(PLACES);
    // In their order, or the lowest and the highest would be others.
    const numbers = levels.map(placeOf);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  });

  test("a provider's own choice comes before the rule", () => {
    expect(nearestEffort('medium', ['low', 'high'], { medium: 'high' })).toBe('high');
  });

  test.each([
    ['xhigh', ['low', 'medium', 'high', 'max']],
    ['medium', ['low', 'high', 'max']],
    ['minimal', ['low', 'high']],
    ['ultra', ['low', 'medium', 'high']],
  ])(
    '%s at a model with %j: a table, a Claude family and a refusal give the same level',
    (level, efforts) => {
      const nearest = nearestEffort(level, efforts);
      const report = new TranslationReport('P', 'auto');
      const rules = { takes: ['reasoning_effort'], families: [{ efforts }] } as const;
      expect(rewriteEffort({ reasoning_effort: level }, 'm', rules, report)).toEqual({
        reasoning_effort: nearest,
      });
      const options = { unsupported: 'auto', form: PLAIN_FORM } as const;
      const finding = { kind: 'levels', field: 'reasoning_effort', levels: efforts } as const;
      expect(changeOf(finding, { reasoning_effort: level }, options)?.body).toEqual({
        reasoning_effort: nearest,
      });
      const family = { ...familyOf(CLAUDE_FAMILIES, 'claude'), efforts };
      expect(fitToFamily({ output_config: { effort: level } }, family, report)).toEqual({
        output_config: { effort: nearest },
      });
    },
  );
});

describe('A2 thinking tokens', () => {
  test.each([
    ['minimal', 1024],
    ['medium', 8192],
    ['max', 64_000],
    ['ultra', 64_000],
    ['none', undefined],
    ['turbo', undefined],
  ])('%s stands for %j', (level, tokens) => {
    expect(tokensOfEffort(level)).toBe(tokens);
  });

  test.each([
    [0, 'minimal'],
    [8191, 'low'],
    [8192, 'medium'],
    [1_000_000, 'max'],
  ])('%i tokens are %s', (tokens, level) => {
    expect(effortOfTokens(tokens)).toBe(level);
  });

  test.each([
    ['ultra', true],
    ['default', true],
    ['none', true],
    ['turbo', false],
    ['constructor', false],
  ])('whether %s is a level: %j', (word, expected) => {
    expect(isLevel(word)).toBe(expected);
  });
});

const LEVELS = REASONING_LEVELS.join('|');
/** Levels of which one follows the other, as texts or as names of members. */
const LADDER = new RegExp(
  `'(?:${LEVELS})'[^'a-z]+'(?:${LEVELS})'|\\b(?:${LEVELS}): [\\w.]+,\\s+(?:${LEVELS}): `,
);

test.each([
  ["const MINE = ['low', 'medium', 'high'];", true],
  ['const TOKENS = { low: 1024, high: 8192 };', true],
  ["const TOKENS = new Map([['low', 1], ['high', 2]]);", true],
  ["if (effort === 'none') return 'low';", false],
])('a ladder of efforts is found: %s', (code, isLadder) => {
  expect(LADDER.test(code)).toBe(isLadder);
});

test("no ladder of efforts is elsewhere, but for the levels of models in providers' files", () => {
  const src = join(import.meta.dirname, '../../src');
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.ts$/.test(path) && !/^(?:facts|providers|dashboard)\//.test(path),
  );
  const withLadder = paths.filter((path) => {
    const code = readFileSync(join(src, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    return LADDER.test(code);
  });
  expect(withLadder).toEqual([]);
});

/** Tests globs, and lists of them in settings and headers (V2). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseVendorEvents, passesVendorEvent } from '../../src/canonical/policies.ts';
import { globsOverlap, matchesAnyGlob, matchesGlob } from '../../src/shared/glob.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';

describe('matchesGlob', () => {
  test.each([
    ['x_a', 'x_a', true],
    ['x_a', 'x_ab', false],
    ['x_a', 'ax_a', false],
    ['x_a', '', false],
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['*', 'anything', true],
    ['x_a.*', 'x_a.b', true],
    ['x_a.*', 'x_a.', true],
    ['x_a.*', 'x_a', false],
    ['x_a.*', 'x_axb', false],
    ['*.b', 'x_a.b', true],
    ['*.b', 'x_a.b.c', false],
    ['x*b*d', 'xabcbd', true],
    ['x*b*d', 'xacd', false],
    ['a**b', 'ab', true],
    ['*a*', 'bab', true],
    ['*aab', 'aaaab', true],
    ['x_.', 'x_a', false],
    ['x?', 'xa', false],
    ['[a]', 'a', false],
    ['X_A', 'x_a', false],
  ])('V2 %j over %j: %j', (pattern, name, expected) => {
    expect(matchesGlob(pattern, name)).toBe(expected);
  });

  test('V2 any pattern of letters and stars: the same result as the equivalent regular expression', () => {
    const pattern = fc
      .array(fc.constantFrom('a', 'b', '.', '*'), { maxLength: 8 })
      .map((chars) => chars.join(''));
    const name = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 10 }).map((chars) => chars.join(''));
    fc.assert(
      fc.property(pattern, name, (glob, text) => {
        const expression = new RegExp(`^${glob.replaceAll('.', '\\.').replace(/\*+/g, '.*')}$`);
        expect(matchesGlob(glob, text)).toBe(expression.test(text));
      }),
      { numRuns: 2_000, seed: 20261121 },
    );
  });

  test('V2 matchesAnyGlob: one match is enough, and an empty list matches nothing', () => {
    expect(matchesAnyGlob(['y_*', 'x_*'], 'x_a')).toBe(true);
    expect(matchesAnyGlob(['y_*'], 'x_a')).toBe(false);
    expect(matchesAnyGlob([], 'x_a')).toBe(false);
  });
});

describe('parseVendorEvents', () => {
  test.each<[text: string, expected: readonly string[] | null]>([
    ['strip', []],
    [' pass ', ['*']],
    ['*', ['*']],
    ['x_research.*', ['x_research.*']],
    [' x_research.* ,x_ask_user.* ', ['x_research.*', 'x_ask_user.*']],
    ['research.*', null],
    ['strip, x_a', null],
    ['pass,pass', null],
    ['x_a,', null],
    ['', null],
    ['x_a b', null],
    ['x_(a)', null],
    ['PASS', null],
    [Array(32).fill('x_a').join(), Array(32).fill('x_a')],
    [Array(33).fill('x_a').join(), null],
  ])('V2 %j: gives %j', (text, expected) => {
    expect(parseVendorEvents(text)).toEqual(expected);
  });

  test('V2 a list of more than 1,024 characters is refused, and a name of more than 512 does not pass', () => {
    expect(parseVendorEvents(`x_${'*a'.repeat(511)}`)).toHaveLength(1);
    expect(parseVendorEvents(`x_${'*a'.repeat(512)}`)).toBeNull();
    const policies = { ...DEFAULT_POLICIES, vendorEvents: ['*'] };
    expect(passesVendorEvent(policies, 'x'.repeat(512))).toBe(true);
    expect(passesVendorEvent(policies, 'x'.repeat(513))).toBe(false);
  });

  test('V2 the default policy: passes no vendor event', () => {
    expect(passesVendorEvent(DEFAULT_POLICIES, 'x_a')).toBe(false);
    expect(passesVendorEvent({ ...DEFAULT_POLICIES, vendorEvents: ['x_a*'] }, 'x_ab')).toBe(true);
  });
});

describe('globs that overlap', () => {
  test.each([
    ['deepseek/*', 'deepseek/*', true],
    ['*', 'openai/gpt', true],
    ['open*/gpt-4o*', 'openai/*-mini', true],
    ['a*c', '*b*', true],
    ['deepsek/*', 'deepseek/*', false],
    ['gpt-4o', 'openai/*', false],
    ['a*b', 'a*c', false],
    ['', '*', true],
    ['', 'a', false],
  ])('%s and %s: %s', (a, b, doOverlap) => {
    expect([globsOverlap(a, b), globsOverlap(b, a)]).toEqual([doOverlap, doOverlap]);
  });

  test('hostile globs are compared in the product of their lengths', () => {
    expect(globsOverlap(`${'*a'.repeat(400)}b`, `${'a*'.repeat(400)}c`)).toBe(false);
  });
});

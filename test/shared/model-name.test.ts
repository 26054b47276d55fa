/** Tests how models' names match the patterns of families, with and without the prefixes of other gateways (Q14). */
import { expect, test } from 'vitest';
import { matchesModel } from '../../src/shared/model-name.ts';

test.each<[pattern: string, model: string, isMatched: boolean]>([
  ['gpt-5*', 'gpt-5.6', true],
  ['gpt-5*', 'openai/gpt-5.6', true],
  ['gpt-5*', 'openrouter/openai/gpt-5.6', true],
  ['gpt-5*', 'a/b/c/gpt-5.6', true],
  ['gpt-5*', 'a/b/c/d/gpt-5.6', false],
  ['openai/gpt-5*', 'openrouter/openai/gpt-5.6', true],
  ['openai/gpt-5*', 'gpt-5.6', false],
  ['gpt-5', 'openai/gpt-5-mini', false],
  ['gpt-5*', 'my-gpt-5.6', false],
  ['gpt-5*', 'openai/my-gpt-5.6', false],
  ['gpt-5*', 'gpt-5/turbo', true],
  ['*', 'x/y', true],
])('%s of %s: %s', (pattern, model, isMatched) => {
  expect(matchesModel([pattern], model)).toBe(isMatched);
});

test('a name of many slashes is searched in linear time: only the first prefixes are left out', () => {
  expect(matchesModel(['gpt*'], '/'.repeat(1_000_000))).toBe(false);
});

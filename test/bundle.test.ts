/** Tests the text of the bundle that is uploaded. */
import { expect, test } from 'vitest';
import { deployedBundle } from './e2e/workers.ts';

/** What precedes a character in a message. */
const SHOWN_CHARS = 60;

/** The places in the bundle where a pattern matches, each with what precedes it. */
async function found(pattern: RegExp): Promise<readonly string[]> {
  const bundle = await deployedBundle();
  return [...bundle.matchAll(pattern)].map(({ index }) =>
    bundle.slice(Math.max(0, index - SHOWN_CHARS), index + 1),
  );
}

test('the bundle of the deployed Worker: ASCII alone, as one other character makes V8 keep two bytes for each', async () => {
  // esbuild escapes them in strings and templates, but not in regular expressions.
  expect(await found(/[^\0-\x7f]/g)).toEqual([]);
});

test('regular expressions of the bundle: no literal has a property of Unicode, whose characters V8 collects when it compiles the script', async () => {
  // Strings, of which patterns are made when they are first needed, have two backslashes.
  expect(await found(/(?<!\\)\\p\{/gi)).toEqual([]);
  expect((await found(/\\\\p\{/gi)).length).toBeGreaterThan(10);
});

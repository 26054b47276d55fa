/** Tests the text of the bundle that is uploaded. */
import { expect, test } from 'vitest';
import { deployedBundle } from './e2e/workers.ts';

/** What precedes a character in a message. */
const SHOWN_CHARS = 60;

test('the bundle of the deployed Worker: ASCII alone, as one other character makes V8 keep two bytes for each', async () => {
  const bundle = await deployedBundle();
  // esbuild escapes them in strings and templates, but not in regular expressions.
  const others = [...bundle.matchAll(/[^\0-\x7f]/g)].map(({ index }) =>
    bundle.slice(Math.max(0, index - SHOWN_CHARS), index + 1),
  );
  expect(others).toEqual([]);
});

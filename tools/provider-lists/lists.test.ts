/** Compares what documents and the deploy button's files say of the providers with the providers' files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LISTS } from './lists.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test.each(Object.entries(LISTS))(
  '%s says of the providers what npm run provider-lists writes',
  (path, write) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    expect(write(text)).toBe(text);
  },
);

test('a provider that a list lacks is written to it, and one that has gone is removed', () => {
  const text = readFileSync(join(ROOT, '.dev.vars.example'), 'utf8');
  const stale = text.replace('# GROQ_API_KEY=\n', '# GONE_API_KEY=\n');
  expect(stale).not.toBe(text);
  expect(LISTS['.dev.vars.example']?.(stale)).toBe(text);
});

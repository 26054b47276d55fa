/** `docs/models.md` is what `npm run models` writes from the tables of the providers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { modelsText } from '../../tools/models/document.ts';

test('docs/models.md has the tables of the code: otherwise run npm run models', () => {
  const text = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'models.md'), 'utf8');
  expect(text).toBe(modelsText());
});

/** Compares `docs/figures.md` with what is computed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { computeFigures, writtenFigures } from './figures.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'figures.md');

test('docs/figures.md has every figure, none of them more than 5 % off: otherwise run npm run figures', async () => {
  const written = writtenFigures(readFileSync(PAGE, 'utf8'));
  const figures = await computeFigures();
  expect([...written.keys()]).toEqual(figures.map(({ name }) => name));
  const off = figures.filter(({ name, value }) => Math.abs((written.get(name) ?? 0) / value - 1) > 0.05);
  expect(off).toEqual([]);
});

/** Compares `docs/figures.md` and `docs/sizes-and-costs.md` with what is computed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { costRows } from './costs.ts';
import { computeFigures, writtenFigures } from './figures.ts';
import { computeParts, computeSizes, DEVELOPERS, withTables, writtenParts, writtenSizes } from './sizes.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'figures.md');

test('docs/figures.md has every figure, none of them more than 5 % off: otherwise run npm run figures', async () => {
  const written = writtenFigures(readFileSync(PAGE, 'utf8'));
  const figures = await computeFigures();
  expect([...written.keys()]).toEqual(figures.map(({ name }) => name));
  const off = figures.filter(({ name, value }) => Math.abs((written.get(name) ?? 0) / value - 1) > 0.05);
  expect(off).toEqual([]);
});

const SIZES = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'sizes-and-costs.md'), 'utf8');

test('docs/sizes-and-costs.md has the bundle with and without each feature, none more than 5 % off: otherwise run npm run figures', async () => {
  const written = new Map(writtenSizes(SIZES).map((size) => [size.feature, size]));
  const sizes = await computeSizes();
  expect([...written.keys()]).toEqual(sizes.map(({ feature }) => feature));
  const off = sizes.filter(({ feature, alone, without }) => {
    const size = written.get(feature);
    return ![(size?.alone ?? 0) / alone, (size?.without ?? 0) / without].every(
      (ratio) => Math.abs(ratio - 1) <= 0.05,
    );
  });
  expect(off).toEqual([]);
});

test('docs/sizes-and-costs.md has what each large part of the deployed Worker weighs, none more than 10 % off: otherwise run npm run figures', async () => {
  const written = writtenParts(SIZES);
  const off = (await computeParts()).filter(
    ({ folder, minified }) =>
      folder !== 'others' && minified >= 10 && Math.abs((written.get(folder) ?? 0) / minified - 1) > 0.1,
  );
  expect(off).toEqual([]);
});

test('docs/sizes-and-costs.md has what 10, 500 and 5,000 developers cost a month, as it is computed', () => {
  expect(DEVELOPERS).toEqual([10, 500, 5000]);
  expect(withTables(SIZES, writtenSizes(SIZES))).toBe(SIZES);
  const [total] = costRows(DEVELOPERS).slice(-1);
  expect(total?.cells).toEqual(['**$5.00**', '**$7.55**', '**$394.25**']);
});

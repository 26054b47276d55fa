/** Writes `docs/figures.md` and the tables of `docs/sizes-and-costs.md`: npm run figures. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { computeFigures, figuresPage } from './figures/figures.ts';
import { computeParts, computeSizes, withParts, withTables } from './figures/sizes.ts';

const DOCS = join(import.meta.dirname, '..', 'docs');
writeFileSync(join(DOCS, 'figures.md'), figuresPage(await computeFigures()));

const SIZES = join(DOCS, 'sizes-and-costs.md');
const page = withTables(readFileSync(SIZES, 'utf8'), await computeSizes());
writeFileSync(SIZES, withParts(page, await computeParts()));

/** Writes `docs/figures.md`: npm run figures. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { computeFigures, figuresPage } from './figures/figures.ts';

writeFileSync(join(import.meta.dirname, '..', 'docs', 'figures.md'), figuresPage(await computeFigures()));

/** Writes the tables of documents that stand as doc comments in `src`: npm run tables. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pagesWithTables } from './tables/tables.ts';

for (const [path, text] of pagesWithTables()) writeFileSync(join(import.meta.dirname, '..', path), text);

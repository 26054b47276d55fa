/** Writes what documents, `.dev.vars.example` and package.json say of the providers: npm run provider-lists. */
import { readFileSync, writeFileSync } from 'node:fs';
import { LISTS } from './provider-lists/lists.ts';

for (const [path, write] of Object.entries(LISTS)) writeFileSync(path, write(readFileSync(path, 'utf8')));

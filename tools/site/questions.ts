/**
 * The site's search has to answer the questions of users by its first result: the built index is asked as the page asks
 * it. `npm run docs` runs this.
 */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { QUESTIONS } from './question-list.ts';
import { SEARCH } from './search.ts';

const SITE = join(import.meta.dirname, '..', '..', 'dist', 'site');
/** The answer has to be among so many results: the first. */
const SHOWN = 1;
/** So many are printed where it is not. */
const PRINTED = 5;

interface Index {
  search(question: string): readonly { readonly id: string }[];
}

/** The index of the built site, with the options of VitePress's search box. */
async function siteIndex(): Promise<Index> {
  const chunks = join(SITE, 'assets', 'chunks');
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot')) ?? '';
  const { default: json } = await import(join(chunks, file));
  const MiniSearch = createRequire(join(import.meta.dirname, 'package.json'))('minisearch');
  return MiniSearch.loadJSON(json, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    ...SEARCH.options,
    searchOptions: SEARCH.searchOptions,
  });
}

const index = await siteIndex();
for (const { question, answers } of QUESTIONS) {
  const ids = index.search(question).map(({ id }) => id);
  const place = ids.findIndex((id) => answers.some((answer) => id === answer || id.startsWith(`${answer}#`)));
  const isShown = place >= 0 && place < SHOWN;
  process.stdout.write(`${isShown ? place + 1 : '-'}  ${question}: ${ids[Math.max(place, 0)]}\n`);
  if (!isShown) {
    process.stderr.write(`The search does not answer "${question}": ${ids.slice(0, PRINTED).join(', ')}\n`);
    process.exitCode = 1;
  }
}

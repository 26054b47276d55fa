/**
 * The documents stay within their limits: pages on the first two shelves, words without clients, decisions and tables
 * that a command writes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const DOCS = join(import.meta.dirname, '..', '..', 'docs');
const MAX_PAGES = 30;
const MAX_WORDS = 48_000;

/** Pages that a command writes as a whole. */
const GENERATED: ReadonlySet<string> = new Set(['api.md', 'figures.md', 'models.md']);
/** Tables that a command writes or computes, between comments or below their heads. */
const TABLES = [
  /<!-- ([\w ]+): npm run .*?-->[\s\S]*?<!-- end of \1 -->/g,
  /^\| (?:provider and model|feature|folder|developers) \|.*\n(?:\|.*\n?)*/gm,
];

const read = (path: string) => readFileSync(join(DOCS, path), 'utf8');

test('the first two shelves have at most 30 pages', () => {
  const [, use = '', run = ''] = read('README.md').split(/^\*\*/m);
  const pages = [use, run].flatMap((shelf) => [...shelf.matchAll(/\]\(([^)#]+\.md)[^)]*\)/g)]);
  const different = new Set(pages.map(([, page]) => page));
  expect(different.size).toBeGreaterThan(20);
  expect(different.size).toBeLessThanOrEqual(MAX_PAGES);
});

test('the documents have at most 48,000 words', () => {
  const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.md') && !/^(?:clients|decisions)\//.test(path) && !GENERATED.has(path),
  );
  const words = pages.map((path) => {
    const text = TABLES.reduce((rest, table) => rest.replace(table, ''), read(path));
    return text.match(/\S+/g)?.length ?? 0;
  });
  expect(words.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MAX_WORDS);
});

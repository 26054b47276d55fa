/** Tables of documents are what `npm run tables` writes from doc comments in `src`, where each setting, error and log event has one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ERRORS } from '../../src/canonical/error.ts';
import { LOG_EVENTS } from '../../src/shared/log-event.ts';
import { commentedRows } from '../../tools/tables/commented.ts';
import { pagesWithTables } from '../../tools/tables/tables.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const pages = [...pagesWithTables()];

test.each(pages)('%s has the tables of the code: otherwise run npm run tables', (path, text) => {
  expect(readFileSync(join(ROOT, path), 'utf8')).toBe(text);
});

test('every error and every log event has a row with a text', () => {
  const rows = pages.flatMap(([, text]) => [...text.matchAll(/^\| (`\w+`.*?) \| (?:\d+ \| )?(.{3,}) \|$/gm)]);
  const named = new Set(rows.flatMap(([, names = '']) => names.match(/\w+/g) ?? []));
  expect([...Object.keys(ERRORS), ...LOG_EVENTS].filter((name) => !named.has(name))).toEqual([]);
});

test('a comment stands for the names up to the next one, without its stars, and with what follows the last', () => {
  const source = "/** one\n * two **act** */\n  a?: 'x' | 'y';\n  b: z;\n/** three */ c: 1";
  expect(commentedRows(source, /(\w+)\??:/g)).toEqual([
    { names: ['a', 'b'], text: 'one two **act**', rest: ' z;\n' },
    { names: ['c'], text: 'three', rest: ' 1' },
  ]);
});

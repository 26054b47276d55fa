/** README's figures are those of the documents that it names, which tests compare with what runs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const readme = read('README.md');

test('streams that do not lie: the scores of truncation in docs/conformance.md', () => {
  const row = /^\| Truncation \| (\d+ of \d+) \| (\d+ of \d+) \|/m.exec(read('docs/conformance.md'));
  expect(readme).toContain(`**Streams that do not lie**: ${row?.[1]}.`);
  expect(readme).toContain(`(Portkey: ${row?.[2]})`);
});

test('any client at any model: the cells of the matrix in docs/providers.md, which all have a tool loop', () => {
  const [, table = ''] =
    /^\| provider and model \|.*\n\|[- |]+\n((?:\|.*\n?)+)/m.exec(read('docs/providers.md')) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')));
  const cells = rows.flatMap(([, ...protocols]) => protocols.slice(0, 4));
  const ran = cells.filter((cell) => /tools|thinking/.test(cell));
  const providers = new Set(rows.map(([model = '']) => model.slice(1).split('/')[0]));
  expect(readme).toContain(`${ran.length} of ${cells.length}. `);
  expect(readme).toContain(`each of ${rows.length} models of ${providers.size} providers`);
});

test('budgets that hold: the number of random runs of npm test', () => {
  const [, runs = ''] =
    /^const RUNS = runsOf\((\d+), \d+\);/m.exec(read('test/gateway/budget-random.test.ts')) ?? [];
  expect(readme).toContain(`${runs} random runs of bursts`);
});

/** The figures of the documents that can be computed: sizes of bundles, files, words. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { deployedBundle, hostBundle } from '../../test/e2e/workers.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const CORE = "export { weir } from './weir.ts';";
const ALL_FEATURES = "export { default, LedgerObject, ResponseObject } from './worker.ts';";

interface Figure {
  readonly name: string;
  readonly value: number;
}

/** All figures, computed from the files as they are. */
export async function computeFigures(): Promise<readonly Figure[]> {
  const sources = filesBelow('src', /\.tsx?$/).filter((path) => !path.includes('dashboard/built/'));
  const tests = ['test', 'tools', 'bench'].flatMap((folder) => filesBelow(folder, /\.test\.ts$/));
  const documents = [...filesBelow('docs', /\.md$/), 'README.md', 'CONTRIBUTING.md'];
  return [
    { name: 'bundle of the deployed Worker, KiB gzip', value: kib(await deployedBundle()) },
    { name: 'bundle of a host without features, KiB gzip', value: kib(await hostBundle(CORE)) },
    {
      name: 'bundle of a host with every feature and the page, KiB gzip',
      value: kib(await hostBundle(ALL_FEATURES)),
    },
    {
      name: "the dashboard's page, an asset of the deployed Worker, KiB gzip",
      value: kib(read('src/dashboard/built/assets/dashboard.html')),
    },
    { name: 'source files', value: sources.length },
    { name: 'lines of them', value: sum(sources.map((path) => read(path).split('\n').length - 1)) },
    { name: 'files of tests', value: tests.length },
    {
      name: 'words of the documents',
      value: sum(documents.map((path) => read(path).match(/\S+/g)?.length ?? 0)),
    },
  ];
}

/** `docs/figures.md`. */
export function figuresPage(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value }) => `| ${name} | ${value.toLocaleString('en')} |`);
  return `# Figures

What \`npm run figures\` computes and writes here. A test compares: a figure that is more than 5 % off fails it.

| figure | value |
| --- | --- |
${rows.join('\n')}
`;
}

/** The figures that `docs/figures.md` has, by name. */
export function writtenFigures(page: string): ReadonlyMap<string, number> {
  const rows = [...page.matchAll(/^\| (.+) \| ([\d,.]+) \|$/gm)];
  return new Map(rows.map(([, name = '', value = '']) => [name, Number(value.replaceAll(',', ''))]));
}

function filesBelow(folder: string, pattern: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => pattern.test(path) && !path.includes('node_modules') && !path.startsWith('site/pages/'))
    .map((path) => join(folder, path));
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** KiB of a text with gzip, with one decimal. */
export function kib(text: string): number {
  return Math.round((gzipSync(text).length / 1024) * 10) / 10;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

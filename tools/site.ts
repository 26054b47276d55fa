/** `npm run docs`: makes a static site of the documents, with search, in dist/site, for the static assets of a Worker. Then asks the search. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pageOf, ROOT_DOCUMENTS, sidebarOf } from './site/pages.ts';

const ROOT = join(import.meta.dirname, '..');
const SITE = join(import.meta.dirname, 'site');
/** VitePress reads the pages from here. */
const PAGES = join(SITE, 'pages');

/** Documents for programs, served as they are. */
const FILES = ['openapi.json', 'llms.txt'];

const documents = [
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => `docs/${path.replaceAll('\\', '/')}`),
  ...ROOT_DOCUMENTS,
].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

rmSync(PAGES, { recursive: true, force: true });
for (const { path, text } of documents.map((document) => pageOf(document, isAsset))) {
  mkdirSync(dirname(join(PAGES, path)), { recursive: true });
  writeFileSync(join(PAGES, path), text);
}
cpSync(join(ROOT, 'docs', 'images'), join(PAGES, 'images'), { recursive: true });
for (const file of FILES) cpSync(join(ROOT, 'docs', file), join(PAGES, 'public', file));
writeFileSync(join(SITE, 'sidebar.json'), JSON.stringify(sidebarOf(documents)));

const npm = (...args: string[]) => execFileSync('npm', args, { cwd: SITE, stdio: 'inherit' });
npm('ci', '--no-audit', '--no-fund');
npm('run', 'build');
await import('./site/questions.ts');

function isAsset(path: string): boolean {
  return (
    existsSync(join(ROOT, path)) &&
    (path.startsWith('docs/images/') || FILES.includes(path.slice('docs/'.length)))
  );
}

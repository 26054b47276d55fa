/**
 * `npm run docs`: makes a static site of the documents, with search, in dist/site, for the static assets of a Worker.
 * Then asks the search.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { homeOf, pageOf, ROOT_DOCUMENTS, sidebarOf } from './site/pages.ts';

const ROOT = join(import.meta.dirname, '..');
const SITE = join(import.meta.dirname, 'site');
/** VitePress reads the pages from here. */
const PAGES = join(SITE, 'pages');

/** Documents for programs, served as they are. */
const FILES = ['openapi.json', 'llms.txt'];

const HELP = `npm run docs [-- --preview]

Builds the documents as a static site, with search, in dist/site, and asks the search the questions of tools/site/questions.ts.

  --preview   then serves the site on this machine, until Ctrl-C
  --help      this text
`;

const { values } = parseArgs({ options: { help: { type: 'boolean' }, preview: { type: 'boolean' } } });
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const documents = [
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => `docs/${path.replaceAll('\\', '/')}`),
  ...ROOT_DOCUMENTS,
].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

rmSync(PAGES, { recursive: true, force: true });
const pages = documents.map((document) => pageOf(document, isAsset));
for (const { path, text } of pages) {
  mkdirSync(dirname(join(PAGES, path)), { recursive: true });
  writeFileSync(join(PAGES, path), text);
}
writeFileSync(join(PAGES, 'index.md'), homeOf(documents, pages));
cpSync(join(ROOT, 'docs', 'images'), join(PAGES, 'images'), { recursive: true });
for (const file of FILES) cpSync(join(ROOT, 'docs', file), join(PAGES, 'public', file));
writeFileSync(join(SITE, 'sidebar.json'), JSON.stringify(sidebarOf(documents)));

const npm = (...args: string[]) => execFileSync('npm', args, { cwd: SITE, stdio: 'inherit' });
npm('ci', '--no-audit', '--no-fund');
npm('run', 'build');
await import('./site/questions.ts');
process.stdout.write(`
The site is in dist/site. To look at it: npm run docs -- --preview, or npx wrangler dev --assets dist/site
`);
if (values.preview) npm('run', 'preview');

function isAsset(path: string): boolean {
  return (
    existsSync(join(ROOT, path)) &&
    (path.startsWith('docs/images/') || FILES.includes(path.slice('docs/'.length)))
  );
}

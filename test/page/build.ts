/** Builds the page: its sources become one HTML document, which the Worker has as a text. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { minify } from 'terser';

const PAGE = join(import.meta.dirname, '..', '..', 'src', 'page');
/** The module that the build writes. It is under Git, so that a checkout and a package need no build. */
export const GENERATED = join(PAGE, 'document.ts');

/** The same sources give the same module, on any machine. */
export async function buildPage(): Promise<string> {
  const [html, script, style] = await Promise.all([
    readFile(join(PAGE, 'page.html'), 'utf8'),
    bundle('main.tsx').then(shorten),
    bundle('styles.css'),
  ]);
  const document = html
    .replace(/>\n+</g, '><')
    .replace('</style>', () => `${style}</style>`)
    .replace('</script>', () => `${script}</script>`);
  return [
    '/** The page, built by `npm run page` from the sources beside this file. Do not edit. */',
    `export const DOCUMENT =\n  ${JSON.stringify(document)};`,
    `export const SCRIPT_HASH = '${hashOf(script)}';`,
    `export const STYLE_HASH = '${hashOf(style)}';`,
    '',
  ].join('\n');
}

async function bundle(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(PAGE, file)],
    absWorkingDir: PAGE,
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    mangleProps: new RegExp(`^(${OWN_FIELDS}|${OF_CLASSES})$`),
    target: 'es2024',
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'transform',
    jsxFactory: 'h',
    jsxFragment: 'Fragment',
    inject: [join(PAGE, 'jsx.ts')],
    tsconfigRaw: {},
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return (outputFiles[0]?.text ?? '').trim();
}

/** Fields of the page's own objects, which neither the API nor the URL nor the browser has: their names are shortened. */
const OWN_FIELDS =
  'nameOf|isLoading|problem|onRetry|isAdmin|signOut|session|fromMs|toMs|params|groups|colour|series|steps|valueOf|onDone|onOpen|isTall|columns|idOf|lookOf|onMore|facts|standing|spanMs|firstAt|lastAt|endedAt|phase|requestId|frameCount|isRunning|loadedAt|isDivided|filters|hasMore|onSignedIn|kind|look|cell|items|api|runs|reload|more|words|frame|record|names|row|finish|expiresAt|label';
/** What Preact calls of components that are classes, of which the page has none. */
const OF_CLASSES =
  'getDerivedStateFrom\\w+|getSnapshotBeforeUpdate|getChildContext|shouldComponentUpdate|component(Will|Did)\\w+|debounceRendering|contextType|setState|forceUpdate|unmount';

/** A second pass takes a few percent more off, which the page's bound needs (D1). */
async function shorten(script: string): Promise<string> {
  const compress = {
    passes: 3,
    unsafe_arrows: true,
    unsafe_methods: true,
    pure_getters: true,
    keep_fargs: false,
    inline: 0,
    if_return: false,
  };
  const { code } = await minify(script, { ecma: 2020, toplevel: true, compress });
  return code ?? '';
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Builds the page: bundles its sources into one HTML document, which is a string in the Worker. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { minify } from 'terser';
import { PREACT_FIELDS, reducedPreact } from './preact.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGE = join(ROOT, 'src', 'dashboard', 'page');
const NODE_MODULES = join(ROOT, 'node_modules');
/** The module that the build writes. It is committed, so that a checkout and the package need no build. */
export const GENERATED = join(PAGE, 'document.ts');

/** The output is the same on every machine. */
export async function buildPage(): Promise<string> {
  const [html, script, style] = await Promise.all([
    readFile(join(PAGE, 'page.html'), 'utf8'),
    bundle('main.tsx'),
    bundle('styles.css'),
  ]);
  const [code, licences] = await Promise.all([shorten(script.text), licencesOf(script.packages)]);
  const document = html
    .replace(/>\n+</g, '><')
    .replace('</style>', () => `${style.text}</style>`)
    .replace('</script>', () => `${code}</script>`)
    .replace('</html>', () => `<!--\n${licences}\n--></html>`);
  return [
    '/** The page, built by `npm run page` from the sources beside this file. Do not edit. */',
    `export const DOCUMENT =\n  ${JSON.stringify(document)};`,
    `export const SCRIPT_HASH = '${hashOf(code)}';`,
    `export const STYLE_HASH = '${hashOf(style.text)}';`,
    '',
  ].join('\n');
}

interface Bundle {
  readonly text: string;
  /** The folders below `node_modules` of the packages that it contains. */
  readonly packages: readonly string[];
}

async function bundle(file: string): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(PAGE, file)],
    absWorkingDir: PAGE,
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'iife',
    mangleProps: new RegExp(`^(${OWN_FIELDS}|${OF_CLASSES}|${PREACT_FIELDS})$`),
    target: 'es2024',
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'transform',
    jsxFactory: 'h',
    jsxFragment: 'Fragment',
    inject: [join(PAGE, 'jsx.ts')],
    tsconfigRaw: {},
    plugins: [reducedPreact],
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  const packages = Object.keys(metafile.inputs).flatMap((input) => {
    return /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [];
  });
  return { text: (outputFiles[0]?.text ?? '').trim(), packages: [...new Set(packages)] };
}

/** The licence notices that copies of these packages must include. */
async function licencesOf(packages: readonly string[]): Promise<string> {
  const texts = packages.map(async (name) => {
    const text = await readFile(join(NODE_MODULES, name, 'LICENSE'), 'utf8');
    return `This page contains ${name}:\n\n${text.trim()}`;
  });
  return (await Promise.all(texts)).join('\n\n');
}

/** Fields of the page's own objects, whose names can be shortened: the API, the URL and the browser don't use them. */
const OWN_FIELDS =
  'nameOf|isLoading|problem|onRetry|isAdmin|signOut|fromMs|toMs|params|groups|colour|series|steps|valueOf|onDone|onOpen|isTall|columns|idOf|lookOf|onMore|facts|standing|spanMs|firstAt|lastAt|endedAt|phase|requestId|frameCount|isRunning|loadedAt|isDivided|filters|hasMore|onSignedIn|kind|look|cell|items|api|runs|reload|more|words|frame|record|names|row|finish|expiresAt|label|searched|labelOf|titleOf|valuesOf|sortedBy|onRefresh|isLines|refusals|totals|refreshes';
/** Methods that Preact calls on class components. The page has none. */
const OF_CLASSES =
  'getDerivedStateFrom\\w+|getSnapshotBeforeUpdate|getChildContext|shouldComponentUpdate|component(Will|Did)\\w+|debounceRendering|contextType|setState|forceUpdate|unmount';

/** A second pass saves a few percent more, which the page needs to stay below its size limit (D1). */
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

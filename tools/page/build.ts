/**
 * Builds the dashboard's page from its sources: one HTML document, as a static asset and as a module, and the hashes of
 * its script and style; and the page of documents, an asset. Every start of the Worker, of its tests and of the checks
 * builds it, also at the same time, so it writes only what has changed.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGE = join(ROOT, 'src', 'dashboard', 'page');
const NODE_MODULES = join(ROOT, 'node_modules');

/** The folder that the build writes. Git ignores it. */
export const BUILT = join(ROOT, 'src', 'dashboard', 'built');
/** Has only what is served: wrangler uploads the whole folder. */
const ASSETS = join(BUILT, 'assets');
const STAMP = join(BUILT, 'inputs.json');

const HTML = join(PAGE, 'page.html');
/** Read for every build, besides the files that are bundled and the documents. */
const FIXED_INPUTS = [
  HTML,
  import.meta.filename,
  join(import.meta.dirname, 'docs.ts'),
  join(NODE_MODULES, 'esbuild', 'package.json'),
];

/** What the files were built from: their paths below the root, and the SHA-256 of each. */
type Inputs = Readonly<Record<string, string>>;

/** @returns whether anything was built; false: the files were fresh */
export async function buildPage(): Promise<boolean> {
  if (await isFresh()) return false;
  const { docsInputs, docsPage } = await import('./docs.ts');
  const [html, script, style] = await Promise.all([
    readFile(HTML, 'utf8'),
    bundle('main.tsx'),
    bundle('styles.css'),
  ]);
  const docs = docsPage();
  const inputs = await hashInputs([...FIXED_INPUTS, ...script.inputs, ...style.inputs, ...docsInputs()]);
  const licences = await licencesOf(script.inputs);
  const document = html
    .replace(/>\n+</g, '><')
    .replace('</style>', () => `${style.text}</style>`)
    .replace('</script>', () => `${script.text}</script>`)
    .replace('</html>', () => `<!--\n${licences}\n--></html>`);
  const text = JSON.stringify(document);
  await mkdir(ASSETS, { recursive: true });
  await replaceFile(join(ASSETS, 'dashboard.html'), document);
  await replaceFile(join(ASSETS, 'docs.html'), docs.html);
  await replaceFile(
    join(BUILT, 'document.ts'),
    `/** The page as text, for Workers without its static asset. */\nexport const DOCUMENT = ${text};\n`,
  );
  await replaceFile(
    join(BUILT, 'hashes.ts'),
    `/** What the page's security policy allows. */\nexport const SCRIPT_HASH = '${hashOf(script.text)}';\nexport const STYLE_HASH = '${hashOf(style.text)}';\nexport const DOCS_STYLE_HASH = '${hashOf(docs.style)}';\n`,
  );
  // Last, so that an interrupted build is not taken for a finished one.
  await replaceFile(STAMP, JSON.stringify(inputs));
  return true;
}

async function isFresh(): Promise<boolean> {
  try {
    const inputs: Inputs = JSON.parse(await readFile(STAMP, 'utf8'));
    const now = await hashInputs(Object.keys(inputs).map((path) => join(ROOT, path)));
    return Object.entries(inputs).every(([path, hash]) => now[path] === hash);
  } catch {
    return false;
  }
}

async function hashInputs(paths: readonly string[]): Promise<Inputs> {
  const hashes = paths.map(async (path) => [
    relative(ROOT, path),
    digestOf(await readFile(path)).toString('hex'),
  ]);
  return Object.fromEntries(await Promise.all(hashes));
}

/** A reader sees the old file or the new one, never a part. */
async function replaceFile(path: string, text: string): Promise<void> {
  // Beside the assets, because wrangler uploads each file that it finds among them.
  const temporary = join(BUILT, `.${process.pid}-${relative(dirname(BUILT), path).replaceAll(/\W/g, '-')}`);
  await writeFile(temporary, text);
  await rename(temporary, path);
}

interface Bundle {
  readonly text: string;
  /** The absolute paths of the files that it contains. */
  readonly inputs: readonly string[];
}

async function bundle(file: string): Promise<Bundle> {
  // Loaded only where something is built, which makes a start with a fresh page faster.
  const { build } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    entryPoints: [join(PAGE, file)],
    absWorkingDir: ROOT,
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'iife',
    target: 'es2024',
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
  });
  const inputs = Object.keys(metafile.inputs).map((path) => join(ROOT, path));
  return { text: (outputFiles[0]?.text ?? '').trim(), inputs };
}

/** The licence notices that copies of the bundled packages must include. */
async function licencesOf(inputs: readonly string[]): Promise<string> {
  const packages = inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  const texts = [...new Set(packages)].map(async (name) => {
    const text = await readFile(join(NODE_MODULES, name, 'LICENSE'), 'utf8');
    return `This page contains ${name}:\n\n${text.trim()}`;
  });
  return (await Promise.all(texts)).join('\n\n');
}

function hashOf(text: string): string {
  return `sha256-${digestOf(text).toString('base64')}`;
}

function digestOf(content: string | Uint8Array): Buffer {
  return createHash('sha256').update(content).digest();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await buildPage();

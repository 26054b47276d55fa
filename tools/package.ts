/** Builds what the package has: modules, and one declaration file for each entry. npm runs it before it packs. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { buildPage } from './page/build.ts';
import { decodeObject, objectOf, textOf } from './simulator/json.ts';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');

await rm(DIST, { recursive: true, force: true });
await buildPage();
const declarations = await mkdtemp(join(tmpdir(), 'weir-declarations-'));
try {
  const project = join(ROOT, 'src', 'tsconfig.package.json');
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  execFileSync(process.execPath, [tsc, '-p', project, '--declarationDir', declarations], {
    stdio: 'inherit',
  });
  const { exports } = decodeObject(await readFile(join(ROOT, 'package.json'), 'utf8')) ?? {};
  for (const entry of Object.values(objectOf(exports))) {
    const { types, default: module } = objectOf(entry);
    if (types !== undefined) await rollUp(textOf(module), textOf(types));
  }
} finally {
  await rm(declarations, { recursive: true });
}

/** Writes the declarations of an entry, with all that they refer to, into one file. Paths are below the root. */
async function rollUp(module: string, types: string): Promise<void> {
  const input = module.replace(/^\.\/dist/, declarations).replace(/\.js$/, '.d.ts');
  const bundle = await rolldown({
    input: { [basename(types, '.d.ts')]: input },
    // How long plugins take is no concern of whoever packs.
    checks: { bundlerTimings: false },
    plugins: [
      dts({
        dtsInput: true,
        logger: { info: () => {}, warn: () => {}, error: (message) => process.stderr.write(`${message}\n`) },
      }),
    ],
    external: [/^cloudflare:/],
    logLevel: 'warn',
  });
  await bundle.write({ dir: join(ROOT, dirname(types)), entryFileNames: '[name].ts' });
  await bundle.close();
}

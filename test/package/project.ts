/** Packs the package as npm publishes it, and installs it into an empty project outside the repository. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

export interface Project extends AsyncDisposable {
  readonly directory: string;
  /** What the package holds. */
  readonly packed: readonly string[];
  /** Runs TypeScript over some of the files in `src`; resolves with its messages. */
  check(options: Readonly<Record<string, unknown>>, files: readonly string[]): Promise<string>;
}

export async function makeProject(): Promise<Project> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-host-'));
  const packedJson = await npm(ROOT, 'pack', '--json', '--pack-destination', directory);
  // Before it stands what the scripts print.
  const packs = decodeObject(`{"packs":${packedJson.slice(packedJson.indexOf('[\n'))}}`)?.packs;
  const [tarball] = objectsOf(packs);
  const { devDependencies, dependencies } = objectOf(
    decodeObject(await readFile(join(ROOT, 'package.json'), 'utf8')),
  );
  const manifest = {
    name: 'host',
    private: true,
    type: 'module',
    dependencies: {
      'weir-gateway': `file:${textOf(tarball?.filename)}`,
      hono: objectOf(devDependencies).hono,
      'itty-router': objectOf(dependencies)['itty-router'],
    },
  };
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest));
  await npm(directory, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock');
  await cp(join(import.meta.dirname, 'hosts'), join(directory, 'src'), { recursive: true });
  // Large, and installed here already.
  const types = join('node_modules', '@cloudflare', 'workers-types');
  await mkdir(join(directory, 'node_modules', '@cloudflare'));
  await symlink(join(ROOT, types), join(directory, types));
  let checks = 0;
  return {
    directory,
    packed: objectsOf(tarball?.files).map(({ path }) => textOf(path)),
    check: async (compilerOptions, files) => {
      const config = join(directory, `tsconfig-${++checks}.json`);
      await writeFile(config, JSON.stringify({ compilerOptions, files: files.map((file) => `src/${file}`) }));
      try {
        return (await run(process.execPath, [TSC, '-p', config], { cwd: directory })).stdout;
      } catch (error) {
        return error instanceof Error && 'stdout' in error ? String(error.stdout) : String(error);
      }
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

async function npm(cwd: string, ...args: string[]): Promise<string> {
  return (await run('npm', args, { cwd })).stdout;
}

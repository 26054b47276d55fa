/** Bundles each row's Worker as `wrangler deploy` would with Weir's settings, and installs the packages for comparison. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { unstable_readConfig } from 'wrangler';
import { buildPage } from '../tools/page/build.ts';
import type { Row } from './rows.ts';

export const ROOT = fileURLToPath(new URL('../', import.meta.url).href);
const BENCH = fileURLToPath(new URL('./', import.meta.url).href);
/** Below the repository, where Git ignores it. */
const OUTPUT = join(ROOT, '.wrangler', 'bench');
const WRANGLER = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
const QUIET = {
  WRANGLER_SEND_METRICS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_LOG_PATH: join(OUTPUT, 'logs'),
};
const run = promisify(execFile);

export interface Bundle {
  readonly directory: string;
  /** A path in the directory. */
  readonly file: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
}

/** @returns the error, or null */
export async function installPeers(): Promise<string | null> {
  if (existsSync(join(BENCH, 'node_modules/@portkey-ai/gateway'))) return null;
  try {
    // Their install scripts only patch development dependencies.
    const options = ['--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
    await run('npm', ['install', ...options], { cwd: BENCH });
    return null;
  } catch (error) {
    return `npm install in bench failed: ${String(error).slice(0, 300)}`;
  }
}

/** @returns null if the text that the row replaces is not in the bundle */
export async function bundle(row: Row): Promise<Bundle | null> {
  const directory = join(OUTPUT, row.name);
  await mkdir(directory, { recursive: true });
  const { compatibility_date, compatibility_flags, minify, keep_names } = unstable_readConfig({
    config: join(ROOT, 'wrangler.toml'),
  });
  if (row.isWeir) await buildPage();
  const compatibilityFlags = row.hasWeirFlags ? compatibility_flags : [];
  const main = fileURLToPath(row.main.href);
  const alias = Object.fromEntries(
    Object.entries(row.alias).map(([name, file]) => [name, join(BENCH, file)] as const),
  );
  const config = {
    name: row.name,
    main,
    compatibility_date,
    compatibility_flags: compatibilityFlags,
    minify,
    keep_names,
    alias,
  };
  const configFile = join(directory, 'wrangler.json');
  await writeFile(configFile, JSON.stringify(config));
  await wrangler('deploy', '--dry-run', '--outdir', directory, '--config', configFile);
  const file = basename(main).replace(/\.ts$/, '.js');
  const path = join(directory, file);
  let text = await readFile(path, 'utf8');
  if (row.replace !== null) {
    const [from, to] = row.replace;
    if (text.split(from).length !== 2) return null;
    text = text.replace(from, to);
    await writeFile(path, text);
  }
  return {
    directory,
    file,
    bytes: Buffer.byteLength(text),
    gzipBytes: gzipSync(text).length,
    compatibilityDate: compatibility_date ?? '',
    compatibilityFlags,
  };
}

/** The script's active start-up time in ms, from `wrangler check startup`; NaN if the output has none. */
export async function startupMs(bundled: Bundle): Promise<number> {
  const profile = join(bundled.directory, 'startup.cpuprofile');
  const config = join(bundled.directory, 'wrangler.json');
  const output = await wrangler('check', 'startup', '--outfile', profile, '--config', config);
  return Number(/Active: ([\d.]+) ms/.exec(output)?.[1] ?? Number.NaN);
}

async function wrangler(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [WRANGLER, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...QUIET },
  });
  return stdout;
}

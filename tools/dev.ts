/**
 * Runs the Worker on this machine: npm run dev [-- --ai] [options of wrangler dev]. Without `--ai` the binding of Cloudflare's models is
 * left out, because wrangler would ask for a login; with it the real models are called, which costs.
 */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { devConfig, PRODUCTION } from './setup/wrangler-config.ts';

const ROOT = join(import.meta.dirname, '..');
const WRANGLER = join(ROOT, 'node_modules', 'wrangler', 'bin', 'wrangler.js');
/** Before wrangler reads its environment: no metrics, and no request for the properties of `request.cf`. */
const BEFORE =
  '--import=data:text/javascript,process.env.WRANGLER_SEND_METRICS=process.env.CLOUDFLARE_CF_FETCH_ENABLED=false';
/** Beside wrangler.toml, because its paths are relative to it. It is deleted at the end. */
const TEMPORARY = 'wrangler.dev.toml';

const args = process.argv.slice(2);
const usesAi = args.includes('--ai');
const passed = args.filter((arg) => arg !== '--ai');
const { values } = parseArgs({
  args: passed,
  options: { env: { type: 'string', short: 'e' }, config: { type: 'string', short: 'c' } },
  strict: false,
  allowPositionals: true,
});

/** The options with which wrangler reads the file as it should be. */
function configOptions(): readonly string[] {
  if (values.config !== undefined) return [];
  const environment = typeof values.env === 'string' ? values.env : PRODUCTION;
  const changed = devConfig(readFileSync('wrangler.toml', 'utf8'), environment, usesAi);
  if (changed === null) return [];
  // Its form is not known here: no binding is remote.
  if (changed === '') return ['--local'];
  writeFileSync(TEMPORARY, changed);
  process.once('exit', () => rmSync(TEMPORARY, { force: true }));
  return ['--config', TEMPORARY];
}

if (usesAi)
  process.stdout.write(
    "The binding AI calls Cloudflare's models with your account. Beyond the free neurons of the day that costs: docs/prices.md\n",
  );
const child = spawn(process.execPath, [BEFORE, WRANGLER, 'dev', ...configOptions(), ...passed], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
child.once('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));

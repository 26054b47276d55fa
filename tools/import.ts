/**
 * Reads the configuration of LiteLLM and writes the answers of `npm run setup`: npm run import -- config.yaml [--out FILE]. What has no
 * counterpart is printed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { importLiteLlm } from './import/litellm.ts';
import { printable, printableName, shellWord } from './setup/terminal-text.ts';
import { isObject, type JsonObject } from './simulator/json.ts';

const USAGE = 'npm run import -- config.yaml [--out setup.json]';

function fail(message: string): never {
  process.stderr.write(`${printable(message)}\n`);
  process.exit(2);
}

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      options: { out: { type: 'string', default: 'setup.json' } },
      allowPositionals: true,
    });
    const [path] = positionals;
    return path === undefined || positionals.length > 1 ? fail(USAGE) : { path, out: values.out };
  } catch (error) {
    fail(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function readConfig(path: string): JsonObject {
  try {
    const config: unknown = parse(readFileSync(path, 'utf8'));
    const models = isObject(config) ? config.model_list : undefined;
    if (isObject(config) && Array.isArray(models) && models.length > 0) return config;
    if (isObject(config) && 'model_list' in config)
      fail(`${path}: its model_list has no models, so nothing is written`);
  } catch (error) {
    fail(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  fail(`${path} has no model_list: it is no configuration of LiteLLM`);
}

const { path, out } = readOptions();
const { answers, notes } = importLiteLlm(readConfig(path));
if (answers === null) {
  for (const note of notes) process.stdout.write(`- ${printableName(note)}\n`);
  fail(`${path}: nothing of its model_list has a counterpart, so nothing is written`);
}
try {
  writeFileSync(out, `${JSON.stringify(answers, null, 2)}\n`, { flag: 'wx' });
} catch {
  fail(`${out} exists, or cannot be written: choose another file with --out`);
}
process.stdout.write(
  `${printableName(out)} has ALIASES, PROVIDERS and the limits of a first key. See what it would set up:\n`,
);
process.stdout.write(`  npm run setup -- --answers ${printableName(shellWord(out))} --dry-run\n`);
if (notes.length > 0) process.stdout.write(`\nWhat differs or has no counterpart:\n`);
for (const note of notes) process.stdout.write(`- ${printableName(note)}\n`);

/**
 * Compares the bodies that two checkouts send to providers: npm run bodies -- --base <checkout>. A change of how requests are written must
 * print nothing, or what it is meant to change. Options: `--seed 7` for another sample, `--only <text>` for the cases whose name has it,
 * `--all` to print every difference.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeCases } from './bodies/cases.ts';

/** Differences that are printed without `--all`, and the characters of each. */
const SHOWN = 20;
const SHOWN_CHARS = 2000;

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    all: { type: 'boolean', default: false },
  },
});
if (values.base === undefined) throw new Error('Name the other checkout: --base <checkout>');

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const here = join(import.meta.dirname, '..');
const { cases: all, hasRecordings } = makeCases(Number(values.seed));
const cases = all.filter(({ name }) => name.includes(values.only));
if (!hasRecordings) say('Skipped: the recorded requests, which are not in ../shared');

const folder = mkdtempSync(join(tmpdir(), 'weir-bodies-'));
const casesPath = join(folder, 'cases.json');
writeFileSync(casesPath, JSON.stringify(cases));

/** What each case made the gateway of a checkout send, as one line of JSON. */
async function linesOf(checkout: string, name: string): Promise<readonly string[]> {
  const output = join(folder, name);
  const player = join(import.meta.dirname, 'bodies/player.ts');
  const child = spawn(process.execPath, ['--no-warnings', player, checkout, casesPath, output], {
    stdio: 'inherit',
  });
  const code = await new Promise((done) => child.on('close', done));
  if (code !== 0) throw new Error(`The player of ${checkout} ended with ${code}`);
  return readFileSync(output, 'utf8').trimEnd().split('\n');
}

try {
  const [before, after] = await Promise.all([linesOf(resolve(values.base), 'base'), linesOf(here, 'here')]);
  const different = cases.flatMap((one, i) =>
    before[i] === after[i] ? [] : [{ one, before: before[i] ?? '', after: after[i] ?? '' }],
  );
  for (const { one, before: old, after: now } of values.all ? different : different.slice(0, SHOWN)) {
    const at = Array.from(old, (_, i) => i).findIndex((i) => old[i] !== now[i]);
    const from = Math.max(0, at - SHOWN_CHARS / 10);
    say(
      `${one.name}\n  - ${old.slice(from, from + SHOWN_CHARS)}\n  + ${now.slice(from, from + SHOWN_CHARS)}`,
    );
  }
  say(`${cases.length} requests, ${different.length} differences`);
  if (different.length > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}

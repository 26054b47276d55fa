/** Runs Vitest on a file with failures, as a contributor does, and reads what its last lines say. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const FAILING = `
import { beforeAll, describe, expect, test } from 'vitest';
describe("a 'suite' (x)", () => {
  test('fails [y] > $z', () => expect(1).toBe(2));
  test('passes', () => {});
});
describe('a suite whose hook fails', () => {
  beforeAll(() => { throw new Error('no'); });
  test('is not run', () => {});
});
`;

async function run(args: readonly string[]): Promise<string> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const env = { ...process.env, SEED: '7', STEP: '5', NO_COLOR: '1' };
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, 'run', ...args], { env }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

test('a failed test and a failed hook end the run with the command, seed, time and limit that repeat them', async () => {
  const folder = mkdtempSync(join(ROOT, 'node_modules/.weir-repeat-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const reporter = join(ROOT, 'test/repeat-reporter.ts');
  writeFileSync(join(folder, 'failing.test.ts'), FAILING);
  const options = ['--root', folder, '--reporter', reporter, '--testTimeout', '4567'];
  const said = await run(options);
  expect(said).toContain('To repeat what failed:\n');
  expect(said).toMatch(
    /SEED=7 STEP=5 npx vitest run \S*failing\.test\.ts -t '\^a '\\''suite'\\'' \\\(x\\\) > fails/,
  );
  expect(said).toMatch(/it took \d+ ms, its limit is 4567 ms/);
  expect(said).toMatch(/-t '\^a suite whose hook fails'\n {4}it failed outside its tests/);
  expect(said).not.toContain('passes');
  const [, pattern = ''] = /-t '(.*)'\n {4}it took/.exec(said) ?? [];
  const repeated = await run([...options, '-t', pattern.replaceAll(String.raw`'\''`, "'")]);
  expect(repeated).toContain('fails [y] > $z'.replace(/[[\]$]/g, '\\$&'));
  expect(repeated).not.toContain('a suite whose hook fails');
});

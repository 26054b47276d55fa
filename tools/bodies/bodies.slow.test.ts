/** Runs `npm run bodies` with this checkout as the base, and with a copy of it in which one row of a table differs. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

function compareWith(base: string) {
  const only = 'for /v1/chat/completions at openai/unknown-1';
  const args = [join(ROOT, 'tools/bodies.ts'), '--base', base, '--only', only];
  const { status, stdout } = spawnSync(process.execPath, ['--no-warnings', ...args], { encoding: 'utf8' });
  return { status, stdout };
}

test('npm run bodies: the same checkout has no difference', () => {
  const { status, stdout } = compareWith(ROOT);
  expect(stdout).toContain('requests, 0 differences');
  expect(status).toBe(0);
});

test('npm run bodies: a row of a table that another checkout lacks is a difference', () => {
  const copy = mkdtempSync(join(tmpdir(), 'weir-checkout-'));
  try {
    for (const folder of ['src', 'test', 'tools']) {
      cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    writeFileSync(join(copy, 'package.json'), readFileSync(join(ROOT, 'package.json')));
    const table = join(copy, 'src/providers/openai.ts');
    const text = readFileSync(table, 'utf8');
    const changed = text.replace("max_tokens: renamed('max_completion_tokens')", "no_field: renamed('x')");
    expect(changed).not.toBe(text);
    writeFileSync(table, changed);
    const { status, stdout } = compareWith(copy);
    expect(stdout).toContain('"max_completion_tokens');
    expect(status).toBe(1);
  } finally {
    rmSync(copy, { recursive: true });
  }
});

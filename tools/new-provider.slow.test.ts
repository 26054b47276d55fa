/**
 * Runs `npm run new-provider acme` in a copy of the repository. The generated files pass every check except the one
 * that lists open TODO marks.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { objectsOf, textOf } from './simulator/json.ts';

const ROOT = join(import.meta.dirname, '..');
const LEFT_OUT = /^(node_modules|\.git|\.wrangler|dist|\.dev\.vars)($|\/)/;
const CHECKS = [
  'test/contract/contract.test.ts',
  'test/request-translation/table-rows.test.ts',
  'tools/simulator/providers.test.ts',
  'tools/provider-lists/lists.test.ts',
  'test/deploy.test.ts',
  'test/tidy.test.ts',
];

let clone: string;
beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'weir-new-provider-'));
  cpSync(ROOT, clone, { recursive: true, filter: (path) => !LEFT_OUT.test(relative(ROOT, path)) });
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
});
afterAll(() => rmSync(clone, { recursive: true }));

function run(...args: readonly string[]) {
  return spawnSync(process.execPath, args, { cwd: clone, encoding: 'utf8' });
}

/** The text of each file of the copy, by its path. */
function files(): Map<string, string> {
  const folders = ['src', 'test', 'tools', 'docs'].map((folder) => join(clone, folder));
  const found = [
    ...readdirSync(clone, { withFileTypes: true }),
    ...folders.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true })),
  ];
  const paths = found
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => relative(clone, join(parentPath, name)));
  return new Map(paths.map((path) => [path, readFileSync(join(clone, path), 'utf8')]));
}

/** The names of the failing checks, with their messages. */
function failures(): string[] {
  const report = join(clone, 'report.json');
  run('node_modules/vitest/vitest.mjs', 'run', '--reporter=json', `--outputFile=${report}`, ...CHECKS);
  const files = objectsOf(JSON.parse(readFileSync(report, 'utf8')).testResults);
  expect(files.length).toBe(CHECKS.length);
  return files
    .flatMap(({ assertionResults }) => objectsOf(assertionResults))
    .filter(({ status }) => status === 'failed')
    .map(({ title, failureMessages }) => `${textOf(title)}: ${String(failureMessages)}`);
}

function edit(path: string, change: (text: string) => string): void {
  writeFileSync(join(clone, path), change(readFileSync(join(clone, path), 'utf8')));
}

test('the script lists the remaining steps, and rejects a missing or existing id', () => {
  for (const id of ['openai', 'Acme']) {
    const { status, stderr } = run('tools/new-provider.ts', id);
    expect([id, status]).toEqual([id, 2]);
    expect(stderr).not.toContain('    at ');
  }
  const before = files();
  const { status, stdout, stderr } = run('tools/new-provider.ts', 'acme');
  expect([status, stderr]).toEqual([0, '']);
  const written = [...files()].filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
  expect(written.sort()).toEqual([
    'src/providers/acme.ts',
    'src/providers/index.ts',
    ...['case.json', 'expected.sse', 'upstream.sse'].map((name) => `test/fixtures/acme/short-answer/${name}`),
    'tools/simulator/scenes.ts',
  ]);
  expect(run('tools/provider-lists.ts').stderr).toBe('');
  expect(stdout).toContain('1. src/providers/acme.ts: its base URL, the table of the fields it accepts');
  expect(run('tools/new-provider.ts', 'acme').stderr).toContain('The provider acme already exists');
});

test('the generated files type-check, and the only failing check lists the TODO marks with file and line', () => {
  expect(run('node_modules/typescript/bin/tsc', '-p', 'test/tsconfig.json').stdout).toBe('');
  const found = failures();
  expect(found).toHaveLength(1);
  expect(found[0]).toContain('no TODO mark of npm run new-provider remains');
  for (const place of ['src/providers/acme.ts:', 'tools/simulator/scenes.ts:', 'test/fixtures/acme/'])
    expect(found[0]).toContain(place);
});

test('every check passes after the TODO marks are done and the table has two quirks', () => {
  for (const path of ['src/providers/acme.ts', 'tools/simulator/scenes.ts']) {
    edit(path, (text) => text.replaceAll('TODO(acme)', 'Done'));
  }
  edit('test/fixtures/acme/short-answer/case.json', (text) => text.replace('TODO(acme)', 'Done'));
  edit('src/providers/acme.ts', (text) =>
    text.replace(
      'fields: {},',
      "fields: { max_completion_tokens: { kind: 'renamed', to: 'max_tokens' }, store: { kind: 'refused' } },",
    ),
  );
  // The example of a quirk, as it is written, compiles and is read.
  edit('src/providers/acme.ts', (text) => text.replace('//   quirks:', 'quirks:'));
  edit('test/fixtures/acme/short-answer/upstream.sse', (text) =>
    text.replace(/"usage":(\{[^}]*\})/, '"acme_meter":{"usage":$1}'),
  );
  expect(failures()).toEqual([]);
});

test('each check for a quirk without effect or a missing entry names the file to change', () => {
  edit('src/providers/acme.ts', (text) =>
    text.replace("'max_tokens' }, store: {", "'max_tokens' }, max_tokens: {"),
  );
  rmSync(join(clone, 'test/fixtures/acme'), { recursive: true });
  edit('.dev.vars.example', (text) => text.replace('# ACME_API_KEY=\n', ''));
  edit('tools/simulator/scenes.ts', (text) => text.replace("  acme: '/acme/v1',\n", ''));
  const said = failures().join();
  expect(said).toContain('acme would refuse what the row max_completion_tokens makes');
  expect(said).toContain('acme has no fixture: add test/fixtures/acme/<case>/ with upstream.sse');
  expect(said).toContain('.dev.vars.example lacks a line: # ACME_API_KEY=');
  expect(said).toContain('acme has no path: add it to basePaths in tools/simulator/scenes.ts');
});

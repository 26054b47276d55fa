/** Tests the documents: links and anchors resolve, every rule has a test, and every code names a rule. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fixtures } from './contract/fixtures.ts';
import { anchorsOf, prose, RULE } from './docs/anchors.ts';

const ROOT = join(import.meta.dirname, '..');

const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path)),
].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const anchors = new Map(documents.map(({ path, text }) => [path, anchorsOf(text)]));

describe.each(documents.map((document) => [document.path, document] as const))('%s', (path, { text }) => {
  test('links only to existing files and anchors', () => {
    const links = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : relative(ROOT, join(ROOT, dirname(path), file));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && anchors.get(target)?.has(anchor) !== true;
    });
    expect(broken).toEqual([]);
  });
});

/** A program in TypeScript, not a part of one. */
const PROGRAM = /^```ts\nimport /m;

test.each(documents.filter(({ text }) => PROGRAM.test(text)))(
  '$path says which Node runs its TypeScript',
  ({ text }) => {
    expect(text).toMatch(/Node 22\.18 or later|Node of the clone/);
  },
);

test("the Node that README promises for TypeScript runs it: that of the clone where the system's is older", () => {
  const readme = documents.find(({ path }) => path === 'README.md')?.text ?? '';
  const [, command = ''] = /and run `npm exec -c '(node \S+\.ts)'`/.exec(readme) ?? [];
  expect(command).toBe('node first.ts');
  const folder = mkdtempSync(join(tmpdir(), 'weir-docs-'));
  try {
    writeFileSync(
      join(folder, 'first.ts'),
      "import { version } from 'node:process';\nconst text: string = await version;\nprocess.stdout.write(text);\n",
    );
    // Without the folder of the clone's commands, as in a user's shell.
    const PATH = (process.env.PATH ?? '')
      .split(delimiter)
      .filter((part) => !part.includes('node_modules'))
      .join(delimiter);
    const run = spawnSync('npm', ['exec', '-c', command.replace('first.ts', join(folder, 'first.ts'))], {
      cwd: ROOT,
      env: { ...process.env, PATH },
      encoding: 'utf8',
    });
    expect([run.stdout, run.stderr]).toEqual([expect.stringMatching(/^v\d+\.\d+\.\d+$/), '']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Folders of the repository whose files documents name. */
const FOLDERS = ['src', 'test', 'tools', 'bench', 'docs'];

test('documents name files that exist', () => {
  const named = documents.flatMap(({ path, text }) =>
    [...prose(text).matchAll(/`([\w.-]+(?:\/[\w.-]+)+)`/g)].map(([, file = '']) => ({ path, file })),
  );
  const files = named.filter(({ file }) => FOLDERS.includes(file.split('/')[0] ?? ''));
  // The guide to a new provider names files of a provider `acme`, which the guide creates.
  const missing = files.filter(({ file }) => !existsSync(join(ROOT, file)) && !file.includes('acme'));
  expect(missing).toEqual([]);
});

/** Whether a source file declares a function, class or method of this name. A call or a comment does not. */
function declares(source: string, name: string): boolean {
  const escaped = name.replace('#', '\\#');
  const declaration = new RegExp(
    `^(?:export )?(?:default )?(?:async )?(?:function\\*?|class|const|interface|type) ${escaped}\\b`,
    'm',
  );
  const method = new RegExp(
    `^ +(?:(?:private|static|async|override|readonly|get) )*\\*?${escaped}(?:<.*>)?(?:\\(|: |\\?:| = )`,
    'm',
  );
  return declaration.test(source) || method.test(source);
}

describe('docs/architecture.md', () => {
  const text = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');
  const walks = text.split(/^## /m).filter((section) => section.startsWith('Walk '));

  test.each(walks.map((walk) => [walk.split('\n')[0], walk] as const))(
    '%s has at most twelve files, with their start functions',
    (_, walk) => {
      const rows = [...walk.matchAll(/^\| \d+ \| \[`[^`]+`\]\(\.\.\/(src\/[^)]+)\) \| (.+?) \|/gm)];
      expect(rows.length).toBeGreaterThan(5);
      expect(rows.length).toBeLessThanOrEqual(12);
      const lost = rows.filter(([, file = '', start = '']) => {
        const source = readFileSync(join(ROOT, file), 'utf8');
        const names = (start.match(/[#\w]+/g) ?? []).filter((name) => name !== 'the');
        return !names.every((name) => declares(source, name));
      });
      expect(lost.map(([, file, start]) => `${file}: ${start}`)).toEqual([]);
    },
  );

  test('names source files that exist', () => {
    const files = [...text.matchAll(/`([\w-]+(?:\/[\w-]+)+\.ts)`/g)].map(([, file = '']) => file);
    expect(
      files.filter((file) => !existsSync(join(ROOT, 'src', file)) && !existsSync(join(ROOT, file))),
    ).toEqual([]);
  });
});

test('docs/adding-a-provider.md names what the files for a change declare', () => {
  const table = readFileSync(join(ROOT, 'docs', 'adding-a-provider.md'), 'utf8');
  const rows = [...table.matchAll(/`(\w+)` in \[`[^`]+`\]\(\.\.\/(src\/[^)]+)\)/g)];
  expect(rows.length).toBeGreaterThan(3);
  const lost = rows.filter(
    ([, name = '', file = '']) => !declares(readFileSync(join(ROOT, file), 'utf8'), name),
  );
  expect(lost.map(([row]) => row)).toEqual([]);
});

/** The codes of all rules, in the order of the documents. Some pages still have a code as its rule's heading. */
const definitions = documents.flatMap(({ path, text }) => [
  ...[...text.matchAll(RULE)].map(([, anchor = '', code = '']) => ({ path, anchor, code })),
  ...[...text.matchAll(/^### ([A-Z]\d{1,2})$/gm)].map(([, code = '']) => ({
    path,
    anchor: code.toLowerCase(),
    code,
  })),
]);
const rules = new Set(definitions.map(({ code }) => code));

test('each rule stands once, with its own anchor', () => {
  const codes = definitions.map(({ code }) => code);
  expect(codes.filter((code, i) => codes.indexOf(code) !== i)).toEqual([]);
  expect(definitions.filter(({ anchor, code }) => anchor !== code.toLowerCase())).toEqual([]);
});

function filesBelow(folder: string, pattern: RegExp): { readonly path: string; readonly text: string }[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => pattern.test(path) && !path.includes('node_modules'))
    .map((path) => ({ path: join(folder, path), text: readFileSync(join(ROOT, folder, path), 'utf8') }));
}

function testFiles(): { path: string; text: string }[] {
  return ['test', 'tools', 'bench'].flatMap((folder) => filesBelow(folder, /\.test\.ts$/));
}

/** The codes at the beginning of a title, which is the first argument of a call: `test('C4 T1: …`, `.each(rows)('C4 %s …`. */
const CODES = /\(\s*['"`]((?:[A-Z]\d{1,2}(?: |, |: |-))+)/g;

test('every code in a comment or a test title is a rule of the documents', () => {
  // In comments codes are in brackets, alone or in a list: (C4), (R1-R3), (A7, I7).
  const inComment = /\(([A-Z]\d{1,2}(?:(?:, |-| )[A-Z]\d{1,2})*)\)/g;
  const named = [
    ...filesBelow('src', /\.tsx?$/).flatMap(({ path, text }) =>
      [...text.matchAll(inComment)].map(([, codes = '']) => ({ path, codes })),
    ),
    ...testFiles().flatMap(({ path, text }) =>
      [...text.matchAll(/(?:test|it|describe)\(\s*['"`]((?:[A-Z]\d{1,2}[ ,:]+)+)/g)].map(
        ([, codes = '']) => ({ path, codes }),
      ),
    ),
  ];
  const unknown = named.flatMap(({ path, codes }) =>
    (codes.match(/[A-Z]\d{1,2}/g) ?? []).filter((code) => !rules.has(code)).map((code) => `${path}: ${code}`),
  );
  expect(unknown, 'add the rule to the page of its subject, or correct the code').toEqual([]);
});

test('every rule is named in a test title', () => {
  const titles = testFiles().flatMap(({ text }) => [...text.matchAll(CODES)].map(([, codes = '']) => codes));
  const named = new Set(titles.join(' ').match(/[A-Z]\d{1,2}/g));
  for (const fixture of fixtures) for (const rule of fixture.rules) named.add(rule);
  expect(rules.size).toBeGreaterThan(100);
  expect([...rules].filter((rule) => !named.has(rule))).toEqual([]);
});

test('no source and no document depends on the folder of recordings beside the repository', () => {
  const named = [...filesBelow('src', /\.tsx?$/), ...filesBelow('docs', /\.md$/)]
    .filter(({ text }) => /\bshared\/(?:streams|requests)\b/.test(text))
    .map(({ path }) => path);
  expect(named).toEqual([]);
});

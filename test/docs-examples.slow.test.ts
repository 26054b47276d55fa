/** Runs the shell and TypeScript examples of README and getting-started against the demo, unchanged and in order. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
/** Only a hang reaches these. */
const START_LIMIT_MS = 600_000;
const EXAMPLE_LIMIT_MS = 300_000;
const run = promisify(execFile);

interface Example {
  readonly language: 'sh' | 'ts';
  readonly line: number;
  readonly code: string;
}

async function examplesOf(path: string): Promise<Example[]> {
  const text = await readFile(join(ROOT, path), 'utf8');
  return [...text.matchAll(/^```(sh|ts)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] === 'ts' ? 'ts' : 'sh',
    line: text.slice(0, match.index).split('\n').length,
    code: match[2] ?? '',
  }));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

let demo: ReturnType<typeof spawn> | undefined;
let folder = '';
const env: Record<string, string | undefined> = { ...process.env };

beforeAll(async () => {
  // Below the repository, so that the examples find its packages.
  const parent = join(ROOT, '.wrangler');
  await mkdir(parent, { recursive: true });
  folder = await mkdtemp(join(parent, 'examples-'));
  const port = String(await freePort());
  const child = spawn(process.execPath, ['tools/simulator/demo.ts', '--port', port], { cwd: ROOT });
  demo = child;
  for await (const line of createInterface({ input: child.stdout })) {
    const shown = /export WEIR_URL=(\S+) WEIR_KEY=(\S+)/.exec(line);
    if (shown !== null) Object.assign(env, { WEIR_URL: shown[1], WEIR_KEY: shown[2] });
    if (line.includes('ANTHROPIC_BASE_URL=')) break;
  }
  child.stdout.resume();
  expect(env.WEIR_KEY).toMatch(/^weir_/);
}, START_LIMIT_MS);
afterAll(async () => {
  if (demo !== undefined && demo.exitCode === null) {
    demo.kill('SIGINT');
    await once(demo, 'exit');
  }
  await rm(folder, { recursive: true, force: true });
});

const documents = await Promise.all(
  ['README.md', 'docs/getting-started.md'].map(async (path) => [path, await examplesOf(path)] as const),
);

/** The pages whose SDK this repository has. */
const AGENTS = ['openai-sdk', 'anthropic-sdk', 'openai-agents', 'ai-sdk'];

describe('agents that edit a file', () => {
  test.each(AGENTS)('docs/clients/%s.md: the agent corrects river.txt at the demo', async (page) => {
    const examples = await examplesOf(`docs/clients/${page}.md`);
    const agent = examples.find(({ language, code }) => language === 'ts' && code.includes('river.txt'));
    const home = await mkdtemp(join(folder, 'agent-'));
    await writeFile(join(home, 'agent.mts'), agent?.code ?? '');
    await writeFile(join(home, 'river.txt'), 'The river is at 298 cm.\n');
    await run(process.execPath, ['agent.mts'], { cwd: home, env, timeout: EXAMPLE_LIMIT_MS });
    expect(await readFile(join(home, 'river.txt'), 'utf8')).toBe('the river is at 312 cm and rising.\n');
  });
});

describe.each(documents)('%s', (path, examples) => {
  test.each(examples.map((example) => [example.line, example] as const))(
    'the example in line %i exits with 0 and prints only errors that the document shows',
    async (line, { language, code }) => {
      const file = join(folder, `${path.replace(/\W/g, '-')}-${line}.${language === 'ts' ? 'mts' : 'sh'}`);
      await writeFile(file, code);
      const command = language === 'ts' ? process.execPath : 'bash';
      const { stdout } = await run(command, language === 'ts' ? [file] : ['-euo', 'pipefail', file], {
        cwd: folder,
        env,
        timeout: EXAMPLE_LIMIT_MS,
      });
      expect(stdout).not.toBe('');
      // An example may show an error. Then its document names the code.
      const codes = [...stdout.matchAll(/"error":\{[^}]*"code":"(\w+)"/g)].map(([, code]) => code);
      const text = await readFile(join(ROOT, path), 'utf8');
      expect(codes.filter((code) => !text.includes(code ?? ''))).toEqual([]);
    },
    EXAMPLE_LIMIT_MS,
  );
});

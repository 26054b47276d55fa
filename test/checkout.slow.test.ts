/** A fresh checkout: Git ignores files with secrets, no npm script sends telemetry, and `npm run build` uploads what the tests run. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deployedBundle } from './e2e/workers.ts';

const ROOT = join(import.meta.dirname, '..');

let repository: string;

beforeAll(async () => {
  repository = await mkdtemp(join(tmpdir(), 'weir-git-'));
  execFileSync('git', ['init', '--quiet'], { cwd: repository });
  await copyFile(join(ROOT, '.gitignore'), join(repository, '.gitignore'));
});
afterAll(() => rm(repository, { recursive: true }));

function isIgnored(path: string): boolean {
  return spawnSync('git', ['check-ignore', '--quiet', path], { cwd: repository }).status === 0;
}

/** Every file from which wrangler reads secrets. */
test.each(['.dev.vars', '.dev.vars.staging', '.env', '.env.local', '.env.staging', '.env.staging.local'])(
  'Git ignores %s',
  (path) => {
    expect(isIgnored(path)).toBe(true);
  },
);

test('.dev.vars.example is committed and has only names', () => {
  expect(isIgnored('.dev.vars.example')).toBe(false);
});

test.each([
  ['build', [], /exiting now/],
  ['dev', ['--', '--port', '0'], /Ready on/],
])('npm run %s sends no telemetry and no request to Cloudflare', async (script, args, line) => {
  const requested: string[] = [];
  // All its requests go through this proxy, which rejects them.
  const proxy = createServer((_, response) => response.writeHead(502).end());
  proxy.on('connect', ({ url = '' }, socket) => {
    requested.push(url);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const home = await mkdtemp(join(tmpdir(), 'weir-home-'));
  const { WRANGLER_SEND_METRICS: _, CLOUDFLARE_CF_FETCH_ENABLED: __, CI: ___, ...env } = process.env;
  const proxied = { HTTPS_PROXY: url, https_proxy: url, HTTP_PROXY: url, http_proxy: url, NO_PROXY: '' };
  const child = spawn('npm', ['run', script, ...args], {
    cwd: ROOT,
    // An empty home directory, in which telemetry is not turned off; a process group, to end all processes.
    env: { ...env, ...proxied, HOME: home, XDG_CONFIG_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const exited = once(child, 'exit');
  await untilSaid(child, line);
  if (script === 'dev' && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  await exited;
  proxy.close();
  await rm(home, { recursive: true, maxRetries: 5 });
  expect(requested.filter((host) => host.includes('cloudflare'))).toEqual([]);
});

test('npm run build uploads the bundle that the end-to-end tests run, in ASCII', async () => {
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'ignore' });
  const uploaded = await readFile(join(ROOT, '.wrangler', 'dry-run', 'index.js'), 'utf8');
  expect(withoutSourceMap(uploaded)).toBe(withoutSourceMap(await deployedBundle()));
  // One other character, and the runtime decodes and keeps the whole source with two bytes a character.
  expect(uploaded.match(/[^\t\n -~]/g)).toBeNull();
});

function withoutSourceMap(script: string): string {
  return script.replace(/\/\/# sourceMappingURL=.*\s*$/, '').trimEnd();
}

async function untilSaid({ stdout, stderr }: ChildProcess, wanted: RegExp): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const input of [stdout, stderr]) {
      if (input !== null) createInterface({ input }).on('line', (line) => wanted.test(line) && resolve());
    }
  });
}

test('npm ci prints no engine warning: the scripts run on the Node that it installs', () => {
  const { status, stderr } = spawnSync('npm', ['ci', '--dry-run', '--ignore-scripts', '--offline'], {
    cwd: ROOT,
    encoding: 'utf8',
    // In a new shell, the system's Node comes first in PATH, and it may be older.
    env: { ...process.env, PATH: `/usr/bin:${process.env.PATH}` },
  });
  expect([status, stderr.match(/EBADENGINE/g)]).toEqual([0, null]);
});

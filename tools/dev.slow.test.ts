/** npm run dev where wrangler.toml binds Cloudflare's models (W12): without credentials it starts, and leaves the binding out. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'weir-dev-'));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));

const CONFIG = `name = "t"
main = "index.js"
compatibility_date = "2026-10-30"
send_metrics = false

[ai]
binding = "AI"
`;
const WORKER = 'export default { fetch: (_, env) => Response.json({ hasAi: "AI" in env }) };\n';

test('W12 npm run dev without credentials: no login, no binding, and the file stays as it is', async () => {
  writeFileSync(join(folder, 'wrangler.toml'), CONFIG);
  writeFileSync(join(folder, 'index.js'), WORKER);
  const child = spawn(process.execPath, [join(import.meta.dirname, 'dev.ts'), '--port', '0'], {
    cwd: folder,
    // No token, no account, and no home with a login.
    env: { PATH: dirname(process.execPath), HOME: folder, CI: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    const lines: string[] = [];
    let address = '';
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      address = /Ready on (http:\S+)/.exec(line)?.[1] ?? '';
      if (address !== '') break;
    }
    expect(address, lines.join('\n')).not.toBe('');
    expect(await (await fetch(address)).json()).toEqual({ hasAi: false });
    expect(lines.join('\n')).not.toMatch(/log ?in|oauth/i);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  expect(existsSync(join(folder, 'wrangler.dev.toml'))).toBe(false);
});

test('W12 a dry run of a deployment without credentials: no login, and the binding is shown', () => {
  writeFileSync(join(folder, 'wrangler.toml'), CONFIG);
  writeFileSync(join(folder, 'index.js'), WORKER);
  const wrangler = join(import.meta.dirname, '..', 'node_modules', 'wrangler', 'bin', 'wrangler.js');
  const args = [wrangler, 'deploy', '--no-autoconfig', '--dry-run', '--outdir', join(folder, 'out')];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { PATH: dirname(process.execPath), HOME: folder, CI: '1' },
    encoding: 'utf8',
  });
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toContain('env.AI');
  expect(stdout + stderr).not.toMatch(/log ?in|oauth/i);
});

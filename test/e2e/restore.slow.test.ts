/**
 * The commands of docs/operations.md that back keys up and restore them, played with wrangler's local storage and a
 * gateway in workerd (K4).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MODEL = 'openai/gpt-4o-mini';

/** The commands of the section "Restore", which need jq. */
const COMMANDS =
  /^### Restore\n[\s\S]*?```sh\n([\s\S]*?)^```$/m.exec(
    readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8'),
  )?.[1] ?? '';

/** Keys, each with the limit that a second request meets, if any. */
const KEYS: readonly JsonObject[] = [
  { name: 'rates', rpm: 1 },
  { name: 'a "name" with \\ and é\n', models: ['openai/*'], user: 'ada', tags: { team: 'ünï' } },
  { name: 'spent', budget: { tokens: 5 } },
];

/** Holds for the one key of the team. */
const TEAM: JsonObject = { name: 'search', rpm: 1 };

let folder: string;
let gateway: Gateway;
const tokens: string[] = [];

const storage = (name: string) => join(folder, name);

async function admin(path: string, method = 'GET', body?: JsonObject): Promise<JsonObject> {
  const init = { method, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
  const response = await gateway.fetch(
    path,
    body === undefined ? init : { ...init, body: JSON.stringify(body) },
  );
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  return decodeObject(text) ?? {};
}

const start = (name: string) => startGateway({ vars: { AUTH: 'keys' }, persist: join(storage(name), 'v3') });

async function ask(token: string): Promise<readonly [status: number, code: unknown]> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await gateway.post('/v1/chat/completions', chat(MODEL), { headers });
  return [response.status, objectOf(decodeObject(await response.text())?.error).code];
}

/** Runs a shell with `npx wrangler … --remote` on wrangler's local storage in this folder. */
function shell(script: string, name: string): void {
  const wrangler = join(ROOT, 'node_modules', 'wrangler', 'bin', 'wrangler.js');
  const npx = `npx() { shift; ${JSON.stringify(process.execPath)} ${JSON.stringify(wrangler)} "$@" --persist-to ${JSON.stringify(storage(name))}; }`;
  execFileSync('bash', ['-euo', 'pipefail', '-c', `${npx}\n${script.replaceAll('--remote', '--local')}`], {
    cwd: folder,
    env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

function hasJq(): boolean {
  try {
    execFileSync('jq', ['--version']);
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasJq())(
  'K4 keys that are backed up and restored as the documents say (jq is needed)',
  () => {
    beforeAll(async () => {
      mkdirSync(join(ROOT, '.wrangler'), { recursive: true });
      folder = mkdtempSync(join(ROOT, '.wrangler', 'restore-'));
      const toml = `name = "weir"\nkv_namespaces = [{ binding = "WEIR_KV", id = "weir-WEIR_KV" }]\n`;
      writeFileSync(join(folder, 'wrangler.toml'), toml);
      gateway = await start('old');
      for (const limits of KEYS) {
        const made = await admin('/admin/keys', 'POST', limits);
        tokens.push(textOf(made.key));
        if (limits.rpm !== undefined)
          await admin(`/admin/keys/${textOf(made.id)}`, 'PATCH', { name: 'renamed', max_output_tokens: 50 });
      }
      const { id: team = '' } = await admin('/v1/admin/teams', 'POST', TEAM);
      tokens.push(textOf((await admin('/admin/keys', 'POST', { name: 'in a team', team })).key));
      await gateway[Symbol.asyncDispose]();
      const [backup = '', restore = ''] = COMMANDS.split(/^(?=.*kv bulk put)/m);
      shell(backup, 'old');
      shell(restore, 'new');
      gateway = await start('new');
    });
    afterAll(async () => {
      await gateway?.[Symbol.asyncDispose]();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    });

    test('the backup has each entry with its value and its metadata', () => {
      const entries = JSON.parse(readFileSync(join(folder, 'keys.json'), 'utf8')) as JsonObject[];
      expect(entries.map(({ key }) => textOf(key).split('/')[0]).sort()).toEqual([
        ...['key', 'key', 'key', 'key', 'key-change', 'team'],
      ]);
      for (const { value, metadata } of entries) {
        expect(decodeObject(textOf(value))).toBeDefined();
        expect(objectOf(metadata)).not.toEqual({});
      }
    });

    test('each key is listed with its name, its limits and the rest', async () => {
      const listed = objectsOf((await admin('/admin/keys')).data);
      const [renamed, named, spent] = [
        { ...KEYS[0], name: 'renamed', max_output_tokens: 50 },
        KEYS[1],
        KEYS[2],
      ];
      expect(listed).toHaveLength(KEYS.length + 1);
      for (const expected of [renamed, named, spent])
        expect(listed).toContainEqual(expect.objectContaining(expectedFields(expected)));
    });

    test('limits apply from the first request on', async () => {
      expect(await ask(tokens[0] ?? '')).toEqual([200, undefined]);
      expect(await ask(tokens[0] ?? '')).toEqual([429, 'rate_limited']);
      expect(await ask(tokens[1] ?? '')).toEqual([200, undefined]);
      expect(await ask(tokens[2] ?? '')).toEqual([429, 'budget_exceeded']);
      expect(await ask(tokens[3] ?? '')).toEqual([200, undefined]);
      expect(await ask(tokens[3] ?? '')).toEqual([429, 'rate_limited']);
    });
  },
);

/** Budgets are listed with their period and mode. */
function expectedFields(key: JsonObject | undefined): JsonObject {
  const { budget, ...fields } = key ?? {};
  return budget === undefined ? fields : { ...fields, budget: expect.objectContaining(objectOf(budget)) };
}

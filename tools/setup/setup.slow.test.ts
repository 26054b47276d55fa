/** The set-up as an operator runs it: the command, the real wrangler, a Cloudflare API in memory, and Weir in workerd. */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { ADMIN_TOKEN, startGateway } from '../../test/e2e/gateway.ts';
import { decodeObject, objectOf, objectsOf } from '../simulator/json.ts';
import { type FakeCloudflare, startFakeCloudflare } from './fake-cloudflare.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const STAGING_KEY = 'sk-of-staging-41a7';
const OPENAI_KEY = 'sk-of-openai-93c1';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A clone: the same files, and a `wrangler.toml` of its own. */
function makeClone(answers: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-setup-test-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  for (const name of ['src', 'tools', 'node_modules', 'package.json', 'tsconfig.json'])
    symlinkSync(join(ROOT, name), join(folder, name));
  copyFileSync(join(ROOT, 'wrangler.toml'), join(folder, 'wrangler.toml'));
  writeFileSync(join(folder, 'answers.json'), JSON.stringify(answers));
  return folder;
}

interface Run {
  readonly code: number | null;
  readonly text: string;
}

function setUp(folder: string, cloudflare: FakeCloudflare, args: readonly string[], env = {}): Promise<Run> {
  const child = spawn(
    process.execPath,
    [join(ROOT, 'tools', 'setup.ts'), '--answers', 'answers.json', ...args],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        HOME: folder,
        CLOUDFLARE_API_BASE_URL: cloudflare.url,
        CLOUDFLARE_API_TOKEN: 'token-of-the-test',
        CLOUDFLARE_ACCOUNT_ID: 'a'.repeat(32),
        OPENAI_API_KEY: OPENAI_KEY,
        ...env,
      },
    },
  );
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data));
  child.stderr.on('data', (data: Buffer) => (text += data));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, text })));
}

const configOf = (folder: string) => readFileSync(join(folder, 'wrangler.toml'), 'utf8');

test('the set-up of production and staging makes namespaces, bindings, secrets and one key; a second run changes nothing', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  await using weir = await startGateway();
  const folder = makeClone({
    environments: ['production', 'staging'],
    providers: ['openai'],
    vars: { RETRIES: '2' },
    key: { name: 'first', max_concurrent: 7 },
    addresses: { production: weir.url, staging: weir.url },
  });
  const before = configOf(folder);
  const env = { ADMIN_TOKEN, STAGING_ADMIN_TOKEN: ADMIN_TOKEN, STAGING_OPENAI_API_KEY: STAGING_KEY };

  const dry = await setUp(folder, cloudflare, ['--dry-run'], env);
  expect(dry).toMatchObject({ code: 0 });
  expect(cloudflare.requests).toEqual([]);
  expect(configOf(folder)).toBe(before);
  for (const shown of [
    'npx wrangler kv namespace create weir-weir-kv ',
    'npx wrangler kv namespace create weir-staging-weir-kv ',
    '+ id = "<the id of weir-weir-kv>"',
    '+ [[env.staging.kv_namespaces]]',
    'npx wrangler deploy --no-autoconfig',
    '--env=staging',
    'OPENAI_API_KEY: from the environment of this command',
    `POST ${weir.url}/admin/keys {"name":"first","max_concurrent":7}`,
  ])
    expect(dry.text).toContain(shown);
  expect(dry.text).not.toContain(OPENAI_KEY);
  expect(dry.text).not.toContain(ADMIN_TOKEN);

  const first = await setUp(folder, cloudflare, [], env);
  expect(first.code, first.text).toBe(0);
  expect([...cloudflare.namespaces.keys()]).toEqual(['weir-weir-kv', 'weir-staging-weir-kv']);
  expect([...cloudflare.uploads.keys()]).toEqual(['weir', 'weir-staging']);
  const bindings = (script: string) =>
    objectsOf(cloudflare.uploads.get(script))
      .map(({ type, name }) => `${String(type)} ${String(name)}`)
      .sort();
  expect(bindings('weir')).toContain('kv_namespace WEIR_KV');
  expect(bindings('weir')).toContain('plain_text RETRIES');
  expect(bindings('weir-staging')).toEqual(bindings('weir'));
  const namespaceOf = (script: string) =>
    objectsOf(cloudflare.uploads.get(script)).find(({ name }) => name === 'WEIR_KV')?.namespace_id;
  expect(namespaceOf('weir')).toBe(cloudflare.namespaces.get('weir-weir-kv'));
  expect(namespaceOf('weir-staging')).toBe(cloudflare.namespaces.get('weir-staging-weir-kv'));
  expect(Object.fromEntries(cloudflare.secrets.get('weir') ?? [])).toEqual({
    ADMIN_TOKEN,
    OPENAI_API_KEY: OPENAI_KEY,
  });
  expect(cloudflare.secrets.get('weir-staging')?.get('OPENAI_API_KEY')).toBe(STAGING_KEY);
  const key = /WEIR_KEY=(weir_\w+)/.exec(first.text)?.[1] ?? '';
  const models = await weir.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });
  expect(models.status).toBe(200);
  // The comments stay, and everything else that was there.
  const written = configOf(folder);
  for (const line of before.split('\n')) expect(written).toContain(line);

  cloudflare.requests.length = 0;
  const second = await setUp(folder, cloudflare, [], env);
  expect(second.code, second.text).toBe(0);
  expect(configOf(folder)).toBe(written);
  expect(cloudflare.requests.filter((line) => /^(POST|PATCH) .*(namespaces|secrets)/.test(line))).toEqual([]);
  expect(second.text).toContain('There is a key named first');
  const listed = await weir.fetch('/admin/keys', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const keys = objectsOf(objectOf(decodeObject(await listed.text())).data);
  expect(keys).toMatchObject([{ name: 'first', max_concurrent: 7 }]);
});

test("the set-up without a provider's key stops before it makes anything; with it, it makes an admin token and shows it once", async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  // The namespace of an earlier `npm run deploy`, which has keys and records.
  cloudflare.namespaces.set('weir-weir-kv', '7'.repeat(32));
  const folder = makeClone({
    environments: ['production', 'staging'],
    providers: ['openai', 'mistral'],
    vars: { PROVIDERS: { gate: { base_url: 'https://g.example/v1', api_key: 'GATE_KEY' } } },
  });
  const before = configOf(folder);
  // Staging is there, and has a key.
  cloudflare.uploads.set('weir-staging', []);
  cloudflare.secrets.set('weir-staging', new Map([['MISTRAL_API_KEY', 'set by hand']]));
  const stopped = await setUp(folder, cloudflare, []);
  expect(stopped.code).toBe(1);
  expect(stopped.text).toContain('MISTRAL_API_KEY is not set for production');
  expect(stopped.text).not.toContain('MISTRAL_API_KEY is not set for staging');
  for (const environment of ['production', 'staging'])
    expect(stopped.text).toContain(`GATE_KEY is not set for ${environment}`);
  expect(cloudflare.requests.filter((line) => !line.startsWith('GET '))).toEqual([]);
  expect(configOf(folder)).toBe(before);

  const keys = { MISTRAL_API_KEY: 'sk-of-mistral', GATE_KEY: 'sk-of-the-gate' };
  await using weir = await startGateway();
  writeFileSync(
    join(folder, 'answers.json'),
    JSON.stringify({
      ...{ providers: ['openai', 'mistral'], addresses: { production: weir.url } },
      vars: { PROVIDERS: { gate: { base_url: 'https://g.example/v1', api_key: 'GATE_KEY' } } },
    }),
  );
  const run = await setUp(folder, cloudflare, [], { ...keys, ADMIN_TOKEN });
  expect(run.code, run.text).toBe(0);
  expect([...(cloudflare.secrets.get('weir')?.keys() ?? [])].toSorted()).toEqual([
    'ADMIN_TOKEN',
    'GATE_KEY',
    'MISTRAL_API_KEY',
    'OPENAI_API_KEY',
  ]);
  expect(cloudflare.namespaces.size).toBe(1);
  expect(configOf(folder)).toContain(`id = "${'7'.repeat(32)}"`);
});

test('the set-up that cannot read the secrets of a Worker stops: unreadable is not absent', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  cloudflare.failing.add('GET /workers/scripts/weir/secrets');
  const folder = makeClone({ providers: ['openai'] });
  const run = await setUp(folder, cloudflare, []);
  expect(run.code).toBe(1);
  expect(run.text).toContain('wrangler secret list --name=weir --env= failed');
  expect(cloudflare.requests.filter((line) => !line.startsWith('GET '))).toEqual([]);
});

test('answers that Weir would refuse are refused before any call, in a dry run and in a real one', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  const folder = makeClone({ providers: ['openai'], vars: { LEDGER: 'sql' }, key: { name: 'a', bugdet: 1 } });
  const before = configOf(folder);
  for (const args of [['--dry-run'], []]) {
    const { code, text } = await setUp(folder, cloudflare, args);
    expect(code).toBe(2);
    expect(text).toContain('vars.LEDGER must be one of: kv, object\nkey: A key has no field "bugdet"');
  }
  expect(cloudflare.requests).toEqual([]);
  expect(configOf(folder)).toBe(before);
});

test('flags that npm takes for itself are those of the set-up', async () => {
  const folder = makeClone({ providers: ['openai'] });
  const before = configOf(folder);
  // No Cloudflare: a call would fail.
  for (const args of [
    '--dry-run --answers answers.json',
    '--dry-run --answers=answers.json',
    '--answers=answers.json -- --dry-run',
  ]) {
    const shown = execFileSync('npm', ['run', 'setup', ...args.split(' ')], {
      cwd: folder,
      env: { PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env.PATH}`, HOME: folder },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    expect(shown).toContain('These are the steps');
    expect(configOf(folder)).toBe(before);
  }
});

test('the set-up with LEDGER=object makes a bucket for records in JURISDICTION and binds it, in each environment, once', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  await using weir = await startGateway();
  // From a run that ended after it.
  cloudflare.buckets.add('eu/weir-weir-archive');
  const folder = makeClone({
    environments: ['production', 'staging'],
    providers: ['openai'],
    vars: { LEDGER: 'object', JURISDICTION: 'eu' },
    addresses: { production: weir.url, staging: weir.url },
  });
  const env = { ADMIN_TOKEN, STAGING_ADMIN_TOKEN: ADMIN_TOKEN };
  const dry = await setUp(folder, cloudflare, ['--dry-run'], env);
  expect(dry.text).toContain('npx wrangler r2 bucket create weir-staging-weir-archive --jurisdiction=eu');
  expect(dry.text).toContain('+ [[env.staging.r2_buckets]]');
  const first = await setUp(folder, cloudflare, [], env);
  expect(first.code, first.text).toBe(0);
  expect([...cloudflare.buckets]).toEqual(['eu/weir-weir-archive', 'eu/weir-staging-weir-archive']);
  for (const script of ['weir', 'weir-staging'])
    expect(
      objectsOf(cloudflare.uploads.get(script)).find(({ name }) => name === 'WEIR_ARCHIVE'),
    ).toMatchObject({
      type: 'r2_bucket',
      bucket_name: `${script}-weir-archive`,
      jurisdiction: 'eu',
    });
  const written = configOf(folder);
  cloudflare.requests.length = 0;
  const second = await setUp(folder, cloudflare, [], env);
  expect(second.code, second.text).toBe(0);
  expect(configOf(folder)).toBe(written);
  expect(cloudflare.requests).not.toContain('POST /r2/buckets');
});

test('the set-up makes no bucket with LEDGER=kv or "archive": false, and none outside of the jurisdiction', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  for (const rest of [{}, { vars: { LEDGER: 'object' }, archive: false }]) {
    const folder = makeClone({ providers: ['openai'], ...rest });
    const { code, text } = await setUp(folder, cloudflare, ['--dry-run']);
    expect(code).toBe(0);
    expect(text).not.toContain('r2');
  }
  const folder = makeClone({
    providers: ['openai'],
    vars: { LEDGER: 'object', JURISDICTION: 'fedramp-high' },
  });
  const refused = await setUp(folder, cloudflare, ['--dry-run']);
  expect(refused.code).toBe(2);
  expect(refused.text).toContain('archive must be false: R2 has no jurisdiction fedramp-high');
});

test('the set-up with a team makes it once, with the first key in it; a second run and one after a lost key make no other', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  await using weir = await startGateway();
  const answers = {
    ...{ providers: ['openai'], addresses: { production: weir.url } },
    team: { name: 'search', budget: { USD: 500, per: 'month' }, per_key: { rpm: 60 } },
  };
  const folder = makeClone({ ...answers, key: 'search-ci' });
  const dry = await setUp(folder, cloudflare, ['--dry-run'], { ADMIN_TOKEN });
  for (const shown of [
    `POST ${weir.url}/v1/admin/teams {"name":"search","budget":{"USD":500,"per":"month"},"per_key":{"rpm":60}}`,
    `POST ${weir.url}/admin/keys {"name":"search-ci","team":"<the id of search>"}`,
  ])
    expect(dry.text).toContain(shown);
  const read = async (path: string) => {
    const response = await weir.fetch(path, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    return objectsOf(objectOf(decodeObject(await response.text())).data);
  };
  const first = await setUp(folder, cloudflare, [], { ADMIN_TOKEN });
  expect(first.code, first.text).toBe(0);
  const [team] = await read('/v1/admin/teams');
  expect(team).toMatchObject({ name: 'search', budget: { USD: 500, per: 'month' }, per_key: { rpm: 60 } });
  expect(first.text).toContain(`The team search has the id ${String(team?.id)}`);
  const again = await setUp(folder, cloudflare, [], { ADMIN_TOKEN });
  expect(again.text).toContain('There is a key named search-ci');
  writeFileSync(join(folder, 'answers.json'), JSON.stringify({ ...answers, key: 'second' }));
  const second = await setUp(folder, cloudflare, [], { ADMIN_TOKEN });
  expect(second.text).toContain('There is a team named search');
  expect(await read('/v1/admin/teams')).toEqual([team]);
  const keys = (await read('/admin/keys')).map(({ name, team: of }) => [name, of]);
  expect(keys.toSorted()).toEqual([
    ['search-ci', team?.id],
    ['second', team?.id],
  ]);
});

test('W12 the set-up with Cloudflare’s models ends with the answer of one in the terminal; a dry run needs no login', async () => {
  const cloudflare = await startFakeCloudflare();
  cleanups.push(() => cloudflare.close());
  await using weir = await startGateway();
  const folder = makeClone({ providers: ['cloudflare'], addresses: { production: weir.url } });
  const before = configOf(folder);
  const withoutLogin = { CLOUDFLARE_API_TOKEN: '', CLOUDFLARE_ACCOUNT_ID: '', OPENAI_API_KEY: '' };
  const dry = await setUp(folder, cloudflare, ['--dry-run'], withoutLogin);
  expect(dry.code, dry.text).toBe(0);
  expect(dry.text).toContain('+ binding = "AI"');
  expect(cloudflare.requests).toEqual([]);
  expect(configOf(folder)).toBe(before);

  const run = await setUp(folder, cloudflare, [], { ADMIN_TOKEN });
  expect(run.code, run.text).toBe(0);
  expect(objectsOf(cloudflare.uploads.get('weir')).find(({ name }) => name === 'AI')).toMatchObject({
    type: 'ai',
  });
  const [, answer = ''] = run.text.split(
    /An answer of a model from production\n(?![\s\S]*An answer of a model)/,
  );
  expect(answer).toMatch(/\w{3,}.*\w{3,}/);
  expect(answer).not.toMatch(/^\s*\d{3} |did not answer/);
  const again = await setUp(folder, cloudflare, [], { ADMIN_TOKEN });
  expect(again.text).toContain('No request is made');
});

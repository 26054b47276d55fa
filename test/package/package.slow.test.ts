/** Tests the packed package in an empty project: its files, its types, and Weir mounted in other Workers (W2). */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../../src/auth/keys.ts';
import { type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { basePaths } from '../../tools/simulator/scenes.ts';
import { createSimulator, type Simulator } from '../../tools/simulator/server.ts';
import { errorOf, jsonOf, streamedChat } from '../e2e/client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from '../e2e/gateway.ts';
import { CLOCKS_OFF, event, many, replayOf } from '../e2e/scenarios.ts';
import { type Runtime, startWorkers } from '../e2e/workers.ts';
import { makeProject, type Project } from './project.ts';

// workerd has it; Node only in later versions.
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

let project: Project;
beforeAll(async () => {
  project = await makeProject();
});
afterAll(() => project[Symbol.asyncDispose]());

describe('W2 the packed files', () => {
  test('are the built modules with their declarations, without tests and sources', () => {
    const others = project.packed.filter((path) => !/^dist\/[\w./-]+\.(js|d\.ts)$/.test(path));
    expect(others.sort()).toEqual(['LICENSE', 'README.md', 'package.json']);
    expect(project.packed).toContain('dist/weir.js');
    expect(project.packed.filter((path) => path.includes('test'))).toEqual([]);
  });

  test('the dashboard’s page has the licence of Preact, whose code it contains', async () => {
    const page = await readFile(
      join(project.directory, 'node_modules/weir-gateway/dist/dashboard/built/document.js'),
      'utf8',
    );
    expect(page).toContain('Copyright (c) 2015-present Jason Miller');
    expect(page).toContain('Permission is hereby granted, free of charge');
  });

  test('import no Node module and only installed packages', async () => {
    const imported = new Set<string>();
    for (const path of project.packed.filter((name) => name.endsWith('.js'))) {
      const code = await readFile(join(project.directory, 'node_modules/weir-gateway', path), 'utf8');
      for (const [, from] of code.matchAll(/^(?:import|export) (?:[^';]* from )?'([^'.][^']*)'/gm))
        imported.add(from ?? '');
    }
    expect([...imported].sort()).toEqual(['cloudflare:workers', 'itty-router']);
  });

  test('have one declaration file for each entry, and no install script', async () => {
    const manifest = objectOf(
      JSON.parse(await readFile(join(project.directory, 'node_modules/weir-gateway/package.json'), 'utf8')),
    );
    const entries = Object.values(objectOf(manifest.exports)).map((entry) => objectOf(entry).types);
    const declared = project.packed.filter((path) => path.endsWith('.d.ts')).map((path) => `./${path}`);
    expect(declared.sort()).toEqual(entries.filter((types) => types !== undefined).sort());
    expect(declared).toHaveLength(8);
    const scripts = Object.keys(objectOf(manifest.scripts));
    expect(scripts.filter((name) => /^(pre|post)?(install|prepare|uninstall)$/.test(name))).toEqual([]);
  });

  test('need one dependency and no Node', async () => {
    const lock = await readFile(join(project.directory, 'node_modules/.package-lock.json'), 'utf8');
    const installed = Object.keys(objectOf(JSON.parse(lock).packages)).sort();
    expect(installed).toEqual(['node_modules/hono', 'node_modules/itty-router', 'node_modules/weir-gateway']);
  });
});

test('W2 esbuild bundles a host with --external:cloudflare:*, as the README says, and fails without it', async () => {
  const bundle = (external: string[]) =>
    build({
      entryPoints: [join(project.directory, 'src', 'whole.ts')],
      bundle: true,
      write: false,
      format: 'esm',
      logLevel: 'silent',
      external,
    });
  expect((await bundle(['cloudflare:*'])).errors).toEqual([]);
  await expect(bundle([])).rejects.toThrow(/cloudflare:workers/);
});

/** The bindings of the classes. */
const BINDINGS: Readonly<Record<string, string>> = {
  LedgerObject: 'WEIR_LEDGER',
  ResponseObject: 'WEIR_RESPONSES',
};

describe('W2 wrangler deploy --dry-run of a host', () => {
  const sizes = new Map<string, number>();

  test.each([
    ['hono.ts', ['LedgerObject', 'ResponseObject']],
    ['itty.ts', ['LedgerObject', 'ResponseObject']],
    ['whole.ts', ['LedgerObject', 'ResponseObject']],
    ['bare-hono.ts', []],
    ['bare.ts', []],
  ])('%s: is uploaded without a warning', async (host, classes) => {
    const directory = join(project.directory, 'dry-run', host);
    const config = {
      name: 'host',
      main: join(project.directory, 'src', host),
      compatibility_date: '2026-10-30',
      minify: true,
      keep_names: false,
      kv_namespaces: [{ binding: 'WEIR_KV', id: 'kv' }],
      durable_objects: {
        bindings: classes.map((class_name) => ({ name: BINDINGS[class_name] ?? '', class_name })),
      },
      migrations: classes.length === 0 ? [] : [{ tag: 'v1', new_sqlite_classes: classes }],
    };
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'wrangler.json'), JSON.stringify(config));
    const wrangler = join(import.meta.dirname, '..', '..', 'node_modules/wrangler/bin/wrangler.js');
    const options = ['deploy', '--dry-run', '--no-autoconfig', '--outdir', directory];
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [wrangler, ...options, '--config', join(directory, 'wrangler.json')],
      { env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' } },
    );
    expect(stdout).toContain('--dry-run: exiting now');
    expect(`${stdout}${stderr}`).not.toMatch(/warning|▲/i);
    const bundle = await readFile(join(directory, host.replace(/\.ts$/, '.js')));
    sizes.set(host, gzipSync(bundle).length / 1024);
  });

  test('without features: at least 65 KiB gzip less than with all, of which the page is half', () => {
    expect((sizes.get('whole.ts') ?? 0) - (sizes.get('bare.ts') ?? 0)).toBeGreaterThan(65);
  });
});

/** The options that `npm create cloudflare` writes. */
const CLOUDFLARE = {
  target: 'es2024',
  lib: ['es2024'],
  module: 'es2022',
  moduleResolution: 'bundler',
  types: ['@cloudflare/workers-types'],
  resolveJsonModule: true,
  allowJs: true,
  checkJs: false,
  noEmit: true,
  isolatedModules: true,
  allowSyntheticDefaultImports: true,
  forceConsistentCasingInFileNames: true,
  strict: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
};
const HOSTS = ['hono.ts', 'itty.ts', 'itty-auto.ts', 'whole.ts', 'worker.ts', 'bare.ts', 'bare-hono.ts'];

describe('W2 types', () => {
  test.each<[what: string, options: JsonObject, files: readonly string[]]>([
    ["Cloudflare's usual options", {}, HOSTS],
    ['checked libraries', { skipLibCheck: false }, HOSTS],
    ["Node's resolution", { module: 'nodenext', moduleResolution: 'nodenext' }, HOSTS],
    ['exact optional properties', { exactOptionalPropertyTypes: true }, HOSTS],
    ['no types of a runtime', { types: [], skipLibCheck: false }, ['untyped.ts', 'worker.ts']],
    ["the DOM's types", { types: [], lib: ['es2024', 'dom', 'dom.iterable'] }, ['hono.ts', 'itty.ts']],
  ])('a host compiles with %s', async (_, options, files) => {
    expect(await project.check({ ...CLOUDFLARE, ...options }, files)).toBe('');
  });
});

const CHAT = '/ai/v1/chat/completions';
const SCENARIOS = { 'words-for-ever': { chunks: many(event('word '), 4000), gapMs: 10 } };

describe.each(['hono.ts', 'itty.ts', 'itty-auto.ts'])('W2 mounted below /ai in %s', (host) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({
      entrypoint: join(project.directory, 'src', host),
      replay: replayOf(SCENARIOS),
      pace: 2,
      // The host's options override these two.
      vars: { AUTH: 'nonsense', BASE_PATH: 'nonsense' },
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const as = (user: string) => ({ headers: { 'x-user': user } });

  async function expectHostIsUp(): Promise<void> {
    const page = await gateway.fetch('/');
    expect([page.status, await page.text()]).toEqual([200, 'the host']);
  }

  async function hostRecord(response: Response): Promise<JsonObject> {
    const id = response.headers.get('x-request-id');
    let found: JsonObject | undefined;
    await gateway.logged((lines) => {
      found = lines.find((line) => line.event === 'host_record' && line.requestId === id);
      return found !== undefined;
    });
    return objectOf(found?.record);
  }

  test('the page is below /ai', async () => {
    const page = await gateway.fetch('/ai/dashboard', as('ada'));
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toContain('<title>Weir</title>');
  });

  test('the openai SDK streams through it, for a caller of the host', async () => {
    const client = new OpenAI({
      apiKey: 'none',
      baseURL: `${gateway.url}/ai/v1`,
      maxRetries: 0,
      defaultHeaders: { 'x-user': 'ada' },
    });
    const stream = await client.chat.completions.create({
      model: 'fast',
      messages: [{ role: 'user', content: 'Hello there' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
    expect(text).toMatch(/^Water over the crest/);
    expect(chunks.length).toBeGreaterThan(5);
    expect(chunks.at(-1)?.usage?.total_tokens).toBe(15);
  });

  test('onRecord receives the record of each request, and the record in KV is the same', async () => {
    const response = await gateway.post(CHAT, streamedChat('openai/gpt-4o-mini'), as('ada'));
    await response.text();
    const reported = await hostRecord(response);
    expect(reported).toMatchObject({
      key_id: 'host_ada',
      model: 'gpt-4o-mini',
      status: 'finished',
      total_tokens: 15,
    });
    expect(reported).toMatchObject({ ...(await gateway.record(response)) });
    const usage = await jsonOf(await gateway.fetch('/ai/v1/usage/records', as('ada')));
    expect(JSON.stringify(usage)).toContain(response.headers.get('x-request-id'));
  });

  test('a client that disconnects: the upstream is cancelled, and onRecord is called', async () => {
    const client = new AbortController();
    const requestCount = gateway.simulator.requests.length;
    const body = streamedChat('openai/words-for-ever');
    const response = await gateway.post(CHAT, body, { ...as('leaver'), signal: client.signal });
    const upstream = await gateway.simulator.request(requestCount);
    await response.body?.getReader().read();
    client.abort();
    expect(await upstream.closed).toBe('disconnected');
    expect(await hostRecord(response)).toMatchObject({ key_id: 'host_leaver', status: 'cancelled' });
  });

  test('a background response runs in the host’s object, with its hooks, for its caller only', async () => {
    const client = (user: string) =>
      new OpenAI({
        apiKey: 'none',
        baseURL: `${gateway.url}/ai/v1`,
        maxRetries: 0,
        defaultHeaders: { 'x-user': user },
      });
    const owner = client('keeper');
    const queued = await owner.responses.create({ model: 'fast', input: 'Hello there', background: true });
    expect(queued.status).toBe('queued');
    let response = queued;
    while (response.status === 'queued' || response.status === 'in_progress')
      response = await owner.responses.retrieve(queued.id);
    expect(response).toMatchObject({ status: 'completed', background: true });
    expect(response.output_text).toMatch(/^Water over the crest/);
    await expect(client('ada').responses.retrieve(queued.id)).rejects.toMatchObject({ status: 404 });
    const isRecord = (line: JsonObject) =>
      line.event === 'host_record' && `resp_${textOf(line.requestId).replaceAll('-', '')}` === queued.id;
    await gateway.logged((lines) => lines.some(isRecord));
  });

  test('an onRecord that throws is logged, and affects neither the response nor the record', async () => {
    const response = await gateway.post(CHAT, streamedChat('openai/gpt-4o-mini'), as('careless'));
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
    expect((await gateway.record(response)).key_id).toBe('host_careless');
    const id = response.headers.get('x-request-id');
    await gateway.logged((lines) =>
      lines.some(
        (line) => line.event === 'hook_failed' && line.hook === 'onRecord' && line.request_id === id,
      ),
    );
  });

  describe('onRequest', () => {
    test('an identity may use only its own models', async () => {
      const refused = await gateway.post(CHAT, streamedChat('mistral/mistral-small-latest'), as('ada'));
      expect(await errorOf(refused)).toMatchObject({ status: 403, error: { code: 'model_not_allowed' } });
    });

    test('an identity whose id is not a word is recorded under a hash', async () => {
      const response = await gateway.post(
        CHAT,
        streamedChat('openai/gpt-4o-mini'),
        as('ada/../*@example.com'),
      );
      await response.text();
      expect((await gateway.record(response)).key_id).toMatch(/^host_[0-9a-f]{16}$/);
    });

    test('returning nothing leaves the decision to AUTH; /health, preflights and the admin token don’t call it', async () => {
      const unknown = await gateway.post(CHAT, streamedChat('openai/gpt-4o-mini'));
      expect(await errorOf(unknown)).toMatchObject({ status: 401, error: { code: 'invalid_api_key' } });
      expect((await gateway.fetch('/ai/health', as('broken'))).status).toBe(200);
      const preflight = await gateway.fetch(CHAT, { method: 'OPTIONS', ...as('broken') });
      expect(preflight.status).toBe(204);
      const admin = { authorization: `Bearer ${ADMIN_TOKEN}`, 'x-user': 'broken' };
      const made = await gateway.post('/ai/admin/keys', { name: 'a' }, { headers: admin });
      expect(made.status).toBe(201);
      const headers = { authorization: `Bearer ${textOf((await jsonOf(made)).key)}` };
      expect((await gateway.post(CHAT, streamedChat('fast'), { headers })).status).toBe(200);
    });

    test('a returned Response is sent, even with immutable headers', async () => {
      const requestCount = gateway.simulator.requests.length;
      const headers = { 'x-user': 'blocked', origin: 'https://app.example.com' };
      const response = await gateway.post(CHAT, streamedChat('fast'), { headers });
      expect(response.status).toBe(302);
      expect(response.headers.get('location')).toBe('https://app.example.com/sign-in');
      expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(gateway.simulator.requests).toHaveLength(requestCount);
    });

    test('it may read a clone of the body and reject the request', async () => {
      const guarded = (content: string) =>
        gateway.post(CHAT, { ...streamedChat('fast'), messages: [{ role: 'user', content }] }, as('guarded'));
      expect((await guarded('a secret')).status).toBe(451);
      expect(await (await guarded('a weir')).text()).toMatch(/data: \[DONE\]\n\n$/);
    });

    test.each(['broken', 'reader'])(
      'if it fails (%s), the request is rejected with 500, and the log has the reason',
      async (user) => {
        const requestCount = gateway.simulator.requests.length;
        const response = await gateway.post(CHAT, streamedChat('fast'), as(user));
        const id = response.headers.get('x-request-id');
        expect(await errorOf(response)).toMatchObject({ status: 500, error: { code: 'internal_error' } });
        const reason = user === 'broken' ? /broken on purpose/ : /request\.clone\(\)/;
        await gateway.logged((lines) =>
          lines.some(
            (line) =>
              line.event === 'hook_failed' && line.request_id === id && reason.test(textOf(line.reason)),
          ),
        );
        expect(gateway.simulator.requests).toHaveLength(requestCount);
        await expectHostIsUp();
      },
    );
  });

  test('re-exporting the ledger object from ./worker causes no environment warning', () => {
    expect(gateway.logs().filter((line) => line.includes('misconfigured'))).toEqual([]);
  });

  test.runIf(host === 'hono.ts')(
    'an invalid setting is reported below /ai, and all other routes work',
    async () => {
      await gateway.set({ ...CLOCKS_OFF, DEADLINE_SECONDS: 'x', ADMIN_TOKEN: undefined });
      const { status, error } = await errorOf(await gateway.fetch('/ai/v1/models', as('ada')));
      expect([status, error.code, error.param]).toEqual([500, 'misconfigured', 'DEADLINE_SECONDS']);
      await expectHostIsUp();
    },
  );

  test.runIf(host === 'hono.ts')(
    'B5 an exception inside Weir is reported below /ai, and all other routes work',
    async () => {
      await gateway.set({ BREAK: '1' });
      // The hook of this request breaks the ids of the following ones.
      await (await gateway.post(CHAT, streamedChat('fast'), as('ada'))).text();
      const { status, error } = await errorOf(await gateway.fetch('/ai/v1/models', as('ada')));
      expect([status, error.code]).toEqual([500, 'internal_error']);
      await expectHostIsUp();
    },
  );
});

describe.each(['bare.ts', 'bare-hono.ts'])('W2 a host without features, %s', (host) => {
  let simulator: Simulator;
  let runtime: Runtime;
  const logged: string[] = [];

  beforeAll(async () => {
    simulator = await createSimulator({});
    const vars = {
      ADMIN_TOKEN,
      OPENAI_API_KEY: 'sim-openai',
      OPENAI_BASE_URL: simulator.url + basePaths.openai,
      // The host's own.
      ORIGIN: 'https://own.example',
    };
    const bindings = { WEIR_LEDGER: false, WEIR_RESPONSES: false } as const;
    const main = join(project.directory, 'src', host);
    runtime = await startWorkers({ workers: [{ main, vars, bindings }], onLog: (line) => logged.push(line) });
  });
  afterAll(async () => {
    await runtime[Symbol.asyncDispose]();
    await simulator.close();
  });

  const send = (path: string, token: string, body?: unknown) =>
    fetch(runtime.url + path, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });

  test('makes gateway keys, streams, and records in KV', async () => {
    const made = await jsonOf(await send('/ai/admin/keys', ADMIN_TOKEN, { name: 'a' }));
    const response = await send(CHAT, textOf(made.key), streamedChat('openai/gpt-4o-mini'));
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
    const store = await runtime.miniflare.getKVNamespace('WEIR_KV');
    await expect.poll(async () => (await store.list({ prefix: 'usage/' })).keys).toHaveLength(1);
    expect(logged.filter((line) => line.includes('misconfigured'))).toEqual([]);
    expect(logged.filter((line) => line.includes('setting_unused'))).toHaveLength(1);
  });

  test('refuses a key with limits, which another Worker made in the same store', async () => {
    const store = await runtime.miniflare.getKVNamespace('WEIR_KV');
    const { key, token, digest } = await makeKey(
      { name: 'limited', models: null, expires_at: null, limits: { rpm: 100 } },
      new Date(),
    );
    await store.put(`key/${key.id}`, JSON.stringify({ ...key, digest }), { metadata: key });
    const asked = simulator.requests.length;
    const { status, error } = await errorOf(await send(CHAT, token, streamedChat('openai/gpt-4o-mini')));
    expect([status, error.code]).toEqual([500, 'misconfigured']);
    expect(error.message).toContain("from 'weir-gateway/ledger'");
    expect(simulator.requests).toHaveLength(asked);
  });

  test('keeps no responses, and has no page', async () => {
    const made = await jsonOf(await send('/ai/admin/keys', ADMIN_TOKEN, { name: 'b' }));
    const token = textOf(made.key);
    const request = { model: 'openai/gpt-4o-mini', input: 'Hello', background: true };
    expect((await send('/ai/v1/responses', token, request)).status).toBe(400);
    expect((await send(`/ai/v1/responses/resp_${'0'.repeat(32)}`, token)).status).toBe(404);
    expect((await send('/ai/dashboard', token)).status).toBe(404);
    const own = await send('/dashboard', token);
    expect(own.status).toBe(host === 'bare-hono.ts' ? 200 : 404);
  });
});

describe('W2 export default weir()', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({
      entrypoint: join(project.directory, 'src', 'whole.ts'),
      vars: { AUTH: 'keys', ADMIN_TOKEN: undefined },
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test('reports missing settings at its first request', async () => {
    await gateway.fetch('/health');
    await gateway.logged((lines) =>
      lines.some(({ event: name, setting }) => name === 'setting_missing' && setting === 'ADMIN_TOKEN'),
    );
  });

  test('is a complete Worker: keys, a stream, and limits in the ledger object of ./worker', async () => {
    await gateway.set({ AUTH: 'keys' });
    const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const made = await gateway.post('/admin/keys', { name: 'a', rpm: 7 }, { headers: admin });
    const headers = { authorization: `Bearer ${textOf((await jsonOf(made)).key)}` };
    const body = streamedChat('openai/gpt-4o-mini');
    const response = await gateway.post('/v1/chat/completions', body, { headers });
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('7');
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
  });
});

/** Features that are not listed: none of their code is in the bundle, and what only they enforce is refused. */
import { join } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';
import type { FeatureModule } from '../src/feature.ts';
import { ERASURE_START, type Erasure, NOTHING_ERASED } from '../src/http/erasure.ts';
import { FEATURES } from '../src/settings/feature-settings.ts';
import type { FeatureName } from '../src/settings/table.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../tools/simulator/json.ts';
import { LimitedGateway } from './gateway/limited-gateway.ts';
import { MemoryStore } from './metering/records.ts';
import { ALL_FEATURES, deploymentOf } from './settings/read-settings.ts';

const SRC = join(import.meta.dirname, '..', 'src');

/** The folder of each feature. */
const FOLDERS: Readonly<Record<FeatureName, string>> = {
  ledger: 'ledger',
  attribution: 'attribution',
  durableResponses: 'durable-responses',
  privacy: 'privacy',
  dashboard: 'dashboard',
  origin: 'origin-proxy',
};
const NAMES = ALL_FEATURES.map(({ name }) => name);

/** The source of a host with these features. */
function hostWith(listed: readonly FeatureName[]): string {
  return [
    "import { weir } from './weir.ts';",
    ...listed.map((name) => `import { ${name} } from './${FOLDERS[name]}/feature.ts';`),
    `export default weir({ features: [${listed.map((name) => `${name}()`).join()}] });`,
  ].join('\n');
}

/** Bundles hosts in one build, which reads each file once. @returns the features of which each host has code, by the host's name */
async function bundledFeatures(hosts: Readonly<Record<string, readonly FeatureName[]>>) {
  const { metafile } = await build({
    entryPoints: Object.keys(hosts).map((name) => `host:${name}`),
    plugins: [
      {
        name: 'hosts',
        setup: ({ onResolve, onLoad }) => {
          onResolve({ filter: /^host:/ }, ({ path }) => ({
            path: path.slice('host:'.length),
            namespace: 'host',
          }));
          onLoad({ filter: /./, namespace: 'host' }, ({ path }) => {
            return { contents: hostWith(hosts[path] ?? []), resolveDir: SRC, loader: 'ts' };
          });
        },
      },
    ],
    outdir: 'hosts',
    absWorkingDir: SRC,
    bundle: true,
    minifySyntax: true,
    write: false,
    metafile: true,
    format: 'esm',
    external: ['cloudflare:workers'],
  });
  const bundled = Object.values(metafile.outputs).map(({ entryPoint = '', inputs }) => {
    const paths = Object.entries(inputs).flatMap(([path, { bytesInOutput }]) =>
      bytesInOutput > 0 ? path : [],
    );
    expect(paths.length).toBeGreaterThan(100);
    const features = NAMES.filter((name) => paths.some((path) => path.startsWith(`${FOLDERS[name]}/`)));
    return [entryPoint.slice('host:'.length), features] as const;
  });
  return Object.fromEntries(bundled);
}

test('W2 the bundle of a host without features, and with each of them alone: has no code of any other', async () => {
  const alone = Object.fromEntries(NAMES.map((name) => [name, [name]]));
  expect(await bundledFeatures({ none: [], ...alone })).toEqual({ none: [], ...alone });
});

test('W2 every setting of a feature is read by that feature alone', () => {
  const core = namesRead([]);
  for (const feature of ALL_FEATURES) {
    const names = FEATURES.find(({ name }) => name === feature.name);
    const { settings = [], bindings = [] } = names ?? {};
    const own = [...namesRead([feature])].filter((name) => !core.has(name) && !bindings.includes(name));
    expect(own.sort()).toEqual([...settings].sort());
  }
});

function namesRead(features: readonly FeatureModule[]): ReadonlySet<string> {
  const names = new Set<string>();
  deploymentOf(new Proxy({}, { get: (_, name) => void names.add(String(name)) }), [...features]);
  // Bindings, and what the check of restrictions reads.
  for (const name of ['WEIR_KV', 'WEIR_LEDGER', 'USAGE_QUEUE', 'WEIR_RESPONSES', 'USERS']) {
    if (name !== 'USERS' || !features.some((feature) => feature.name === 'attribution')) names.delete(name);
  }
  return names;
}

/** Two gateways over one store: the first lists all features, the second only these. */
class Pair {
  readonly full: LimitedGateway;
  readonly host: LimitedGateway;

  constructor(features: readonly FeatureName[]) {
    const store = new MemoryStore().asStore as never;
    this.full = new LimitedGateway({}, { store });
    const listed = ALL_FEATURES.filter(({ name }) => features.includes(name));
    // It would open a key whose limits cannot be checked.
    this.host = new LimitedGateway({ BUDGET_FAIL: 'open' }, { store, features: listed });
  }
}

async function errorOf(response: Response): Promise<JsonObject> {
  const { error } = decodeObject(await response.text()) ?? {};
  return { status: response.status, ...objectOf(error) };
}

const ADMIN = 'admin';

describe('W2 without the feature that enforces it, a key is refused and no provider is called', () => {
  test.each<[what: string, limits: JsonObject, listed: FeatureName[], import_: string]>([
    ['limits', { rpm: 100 }, [], 'weir-gateway/ledger'],
    [
      'limits, with all other features',
      { budget: { tokens: 1e9 } },
      without('ledger'),
      'weir-gateway/ledger',
    ],
    ['an output limit only', { max_output_tokens: 100 }, [], 'weir-gateway/ledger'],
    ['require_user', { require_user: true }, [], 'weir-gateway/attribution'],
    [
      'require_user, with all other features',
      { require_user: true },
      without('attribution'),
      'weir-gateway/attribution',
    ],
    ['limits for each user', { per_user: { rpm: 9 } }, without('attribution'), 'weir-gateway/attribution'],
  ])('%s', async (_, limits, listed, entry) => {
    const { full, host } = new Pair(listed);
    const token = await full.key(limits);
    const requested = { headers: { 'x-weir-user': 'ada' } };
    if (!('per_user' in limits)) expect((await full.ask(token, {}, requested)).status).toBe(200);
    const input = { model: 'openai/gpt-4o-mini', input: 'Hello' };
    for (const response of [
      await host.ask(token, {}, requested),
      await host.ask(token, { user: 'ada', stream: true }),
      await host.post('/v1/responses', token, input, requested),
      await host.post('/v1/embeddings', token, input, requested),
      await host.fetch('/v1/models', token),
      await host.fetch('/v1/key', token),
    ]) {
      const error = await errorOf(response);
      expect(error).toMatchObject({ status: 500, code: 'misconfigured' });
      expect(error.message).toContain(`from '${entry}'`);
    }
    expect(host.sent).toEqual([]);
    expect(host.logged).toContainEqual(
      expect.objectContaining({ event: 'misconfigured', key_id: expect.any(String) }),
    );
  });

  test('a key without such restrictions is served, and its request is recorded in KV', async () => {
    const { full, host } = new Pair([]);
    const token = await full.key();
    const response = await host.ask(token, { user: 'ada' }, { headers: { 'x-weir-tags': 'team=search' } });
    expect(response.status).toBe(200);
    await host.idle();
    const usage = decodeObject(await (await host.fetch('/v1/usage/records', token)).text());
    expect(objectsOf(usage?.data)).toMatchObject([{ total_tokens: 10, user: null }]);
  });
});

describe('W2 the admin of a host without features', () => {
  test.each([
    ['rpm', { rpm: 5 }],
    ['budget', { budget: { USD: 5, per: 'month' } }],
    ['require_user', { require_user: true }],
    ['per_user', { per_user: { rpm: 5 } }],
  ])('cannot set %s, of a new key or an old one', async (param, fields) => {
    const { host } = new Pair([]);
    const made = decodeObject(await (await host.post('/admin/keys', ADMIN, { name: 'a' })).text());
    const path = `/admin/keys/${textOf(made?.id)}`;
    const init = { method: 'PATCH', body: JSON.stringify(fields) };
    for (const response of [
      await host.post('/admin/keys', ADMIN, { name: 'b', ...fields }),
      await host.fetch(path, ADMIN, init),
    ]) {
      const error = await errorOf(response);
      expect(error).toMatchObject({ status: 400, code: 'invalid_request', param });
      expect(error.message).toContain('weir-gateway/');
    }
  });

  test('makes, changes and revokes keys without limits', async () => {
    const { host } = new Pair([]);
    const made = decodeObject(await (await host.post('/admin/keys', ADMIN, { name: 'a' })).text());
    const path = `/admin/keys/${textOf(made?.id)}`;
    const token = textOf(made?.key);
    const init = { method: 'PATCH', body: JSON.stringify({ models: ['deepseek/*'] }) };
    expect((await host.fetch(path, ADMIN, init)).status).toBe(200);
    expect((await host.ask(token)).status).toBe(403);
    expect((await host.fetch(path, ADMIN, { method: 'DELETE' })).status).toBe(200);
    expect((await host.ask(token)).status).toBe(401);
  });

  test('a key with limits keeps them when it is changed, and stays refused', async () => {
    const { full, host } = new Pair([]);
    const token = await full.key({ rpm: 100 });
    const listed = decodeObject(await (await host.fetch('/admin/keys', ADMIN)).text());
    const path = `/admin/keys/${textOf(objectsOf(listed?.data)[0]?.id)}`;
    const init = { method: 'PATCH', body: JSON.stringify({ name: 'renamed' }) };
    expect((await host.fetch(path, ADMIN, init)).status).toBe(200);
    expect((await host.ask(token)).status).toBe(500);
  });
});

describe('W2 a host without privacy()', () => {
  const ID = '01934e2e-0000-7000-8000-000000000000';
  const ROUTES = [
    ['DELETE', '/v1/admin/users/ada'],
    ['GET', '/admin/users/ada/export'],
    ['GET', `/v1/admin/erasures/${ID}`],
  ] as const;

  test.each([
    ['any feature', []],
    ['it, with all other features', without('privacy')],
  ])('and without %s: none of its routes is there', async (_, listed) => {
    const { host } = new Pair(listed);
    for (const [method, path] of ROUTES) {
      const error = await errorOf(await host.fetch(path, ADMIN, { method }));
      expect(error).toMatchObject({ status: 404, code: 'not_found' });
      expect(error.message).toContain(`There is no ${method} ${path}`);
    }
  });

  test('privacy() alone: all of its routes respond', async () => {
    const { host } = new Pair(['privacy']);
    const statuses = ROUTES.map(async ([method, path]) => (await host.fetch(path, ADMIN, { method })).status);
    // Without attribution() there is no secret for the hash, and no such erasure.
    expect(await Promise.all(statuses)).toEqual([500, 200, 404]);
  });

  test('an erasure that another version of the deployment started waits, and says what it needs', async () => {
    const { host } = new Pair(without('privacy'));
    const now = Date.now();
    const erasure: Erasure = {
      ...{ id: ID, startedAt: now, erasedAt: null, phase: 'waiting', dueAt: now - 1, names: ['ada'] },
      ...{ hashes: ['h'], position: ERASURE_START, callers: [], ownKeys: [], counts: NOTHING_ERASED },
      problem: null,
    };
    const held = await host.stepErasure(erasure);
    expect(held).toEqual({ ...erasure, problem: expect.any(String), dueAt: expect.any(Number) });
    expect(held?.problem).toContain("from 'weir-gateway/privacy'");
    expect(held?.dueAt).toBeGreaterThan(now);
    expect(host.logged).toContainEqual(expect.objectContaining({ event: 'erasure_failed', erasure: ID }));
  });

  test('the requests of a user whom another version erases stay refused', async () => {
    const store = new MemoryStore().asStore as never;
    // Erasures are in KV.
    const full = new LimitedGateway({ WEIR_LEDGER: undefined }, { store });
    const features = ALL_FEATURES.filter(({ name }) => name !== 'privacy');
    const host = new LimitedGateway({ WEIR_LEDGER: undefined }, { store, features });
    const token = await full.key();
    expect((await full.fetch('/v1/admin/users/ada', ADMIN, { method: 'DELETE' })).status).toBe(202);
    const error = await errorOf(await host.ask(token, { user: 'ada' }));
    expect(error).toMatchObject({ status: 403, code: 'user_being_erased' });
  });
});

function without(name: FeatureName): FeatureName[] {
  return NAMES.filter((other) => other !== name);
}

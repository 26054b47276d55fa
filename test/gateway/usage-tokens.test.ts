/** Tokens that read usage (K8): what they read, bound to a filter or not, and that no other route takes them. */
import { describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import type { Ports } from '../../src/http/context.ts';
import { ROUTES } from '../../src/routes.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { MemoryStore } from '../metering/records.ts';
import { deploymentOf } from '../settings/read-settings.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN = 'admin';
const RANGE = 'from=2026-11-01&to=2026-12-01';

const ANSWER = {
  ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  data: [],
};

class Deployment {
  now = Date.parse('2026-11-22T12:00:00Z');
  readonly store = new MemoryStore();
  readonly gateway: LimitedGateway;
  /** What providers received. */
  readonly sent: string[] = [];

  constructor(settings: JsonObject = {}, hooks?: ConstructorParameters<typeof LimitedGateway>[2]) {
    const store = this.store as unknown as Ports['store'];
    const clock = { now: () => this.now, startTimer: () => () => {} };
    const answer: GatewayPorts['fetch'] = async (input, init) => {
      this.sent.push(JSON.stringify([input, [...new Headers(init?.headers)], init?.body]));
      return Response.json(ANSWER);
    };
    this.gateway = new LimitedGateway(settings, { store, clock, fetch: answer }, hooks);
  }

  async call(method: string, path: string, token: string, body?: JsonObject): Promise<JsonObject> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await this.gateway.fetch(path, token, init);
    return { ...decodeObject(await response.text()), status: response.status };
  }

  async token(fields: JsonObject = {}): Promise<{ readonly id: string; readonly token: string }> {
    const made = await this.call('POST', '/admin/keys', ADMIN, { name: 'BI', scope: 'usage', ...fields });
    expect(made).toMatchObject({ status: 201, scope: 'usage', key: expect.stringMatching(/^weir-usage_/) });
    return { id: textOf(made.id), token: textOf(made.key) };
  }

  /** Two keys; a request of ada with each, and one of bob with the first. */
  async fill(): Promise<readonly [one: string, two: string]> {
    const [one, two] = [await this.gateway.key(), await this.gateway.key()];
    for (const [key, user] of [
      [one, 'ada'],
      [one, 'bob'],
      [two, 'ada'],
    ] as const) {
      this.now += 1;
      await (await this.gateway.ask(key, {}, { headers: { 'x-weir-user': user } })).text();
    }
    await this.gateway.idle();
    const { data } = await this.call('GET', '/admin/keys', ADMIN);
    const ids = objectsOf(data).map(({ id }) => textOf(id));
    const ofOne = await this.call('GET', '/v1/key', one);
    return ids[0] === ofOne.id ? [ids[0] ?? '', ids[1] ?? ''] : [ids[1] ?? '', ids[0] ?? ''];
  }

  async records(token: string, query = ''): Promise<JsonObject[]> {
    return objectsOf((await this.call('GET', `/v1/usage/records?${RANGE}${query}`, token)).data);
  }
}

describe('K8 a token that reads usage', () => {
  test('reads the usage, the records and the refusals of all keys by their ids, and the list of models', async () => {
    const deployment = new Deployment();
    const [one, two] = await deployment.fill();
    const { token } = await deployment.token();
    const usage = await deployment.call('GET', `/v1/usage?${RANGE}&group_by=key`, token);
    expect(new Set(objectsOf(usage.data).map(({ key }) => key))).toEqual(new Set([one, two]));
    expect(objectOf(usage.total)).toMatchObject({ requests: 3 });
    const records = await deployment.records(token);
    expect(records.map(({ key_id }) => key_id)).toEqual([two, one, one]);
    expect(await deployment.records(token, `&key=${two}`)).toHaveLength(1);
    const [{ request_id = '' } = {}] = records;
    expect((await deployment.call('GET', `/v1/usage/records/${textOf(request_id)}`, token)).key_id).toBe(two);
    expect((await deployment.call('GET', `/v1/usage/refusals?${RANGE}&group_by=key`, token)).status).toBe(
      200,
    );
    expect((await deployment.call('GET', '/v1/models', token)).status).toBe(200);
    expect(JSON.stringify([usage, records])).not.toContain('test');
  });

  test('reads no upstream address and no message that the caller did not get', async () => {
    const deployment = new Deployment();
    await deployment.fill();
    const [name = '', entry] = [...deployment.store.entries].find(([one]) => one.startsWith('usage/')) ?? [];
    const attempt = { provider: 'openai', model: 'm', status: 500, error_code: 'x', ms: 1 };
    const attempts = [{ ...attempt, cause: 'http://10.0.0.1', message: 'internal words' }];
    const value = JSON.stringify({ ...decodeObject(entry?.value ?? ''), attempts });
    await deployment.store.put(name, value, { metadata: entry?.metadata });
    const { token } = await deployment.token();
    expect(JSON.stringify(await deployment.records(ADMIN))).toContain('internal words');
    expect(JSON.stringify(await deployment.records(token))).not.toMatch(/internal words|10\.0\.0\.1/);
  });

  test('is listed without its secret, and not among the keys; a revoked one is refused and listed as revoked', async () => {
    const deployment = new Deployment();
    const { id, token } = await deployment.token({ filter: { user: 'ada' }, expires_at: '2027-01-01' });
    const listed = await deployment.call('GET', '/admin/keys', ADMIN);
    expect(listed).toMatchObject({
      data: [],
      tokens: [{ id, name: 'BI', filter: { user: 'ada' }, expires_at: '2027-01-01T00:00:00.000Z' }],
    });
    const secret = token.slice('weir-usage_'.length);
    const kept = [listed, [...deployment.store.entries], deployment.gateway.logged];
    expect(JSON.stringify(kept)).not.toContain(secret);
    expect(JSON.stringify(listed)).not.toMatch(/[0-9a-f]{64}/);
    expect((await deployment.call('DELETE', `/admin/keys/${id}`, ADMIN)).status).toBe(200);
    expect((await deployment.call('GET', '/v1/usage', token)).status).toBe(401);
    expect(await deployment.call('GET', '/admin/keys', ADMIN)).toMatchObject({
      tokens: [],
      revoked: [{ id, name: 'BI' }],
    });
    expect((await deployment.call('DELETE', `/admin/keys/${id}`, ADMIN)).status).toBe(404);
    const audit = objectsOf((await deployment.call('GET', '/admin/audit', ADMIN)).data);
    expect(new Set(audit.map(({ action }) => action))).toEqual(new Set(['key_created', 'key_revoked']));
    const created = audit.find(({ action }) => action === 'key_created');
    expect(created?.after).toMatchObject({ name: 'BI', scope: 'usage', filter: { user: 'ada' } });
  });

  test('an expired, an unknown and an unreadable token: 401', async () => {
    const deployment = new Deployment();
    const { id, token } = await deployment.token({ expires_at: '2026-11-22T12:00:01Z' });
    expect((await deployment.call('GET', '/v1/usage', token)).status).toBe(200);
    deployment.now += 1000;
    expect((await deployment.call('GET', '/v1/usage', token)).status).toBe(401);
    deployment.now -= 1000;
    const name = `usage-token/${id}`;
    const stored = decodeObject(deployment.store.entries.get(name)?.value ?? '') ?? {};
    for (const damage of [{ filter: 'none' }, { filter: { team: 'a' } }, { scope: 'all' }, { digest: 'a' }]) {
      await deployment.store.put(name, JSON.stringify({ ...stored, ...damage }));
      expect((await deployment.call('GET', '/v1/usage', token)).status).toBe(401);
    }
    expect((await deployment.call('GET', '/v1/usage', `weir-usage_${'0'.repeat(64)}`)).status).toBe(401);
  });

  test.each<[JsonObject, string]>([
    [{ scope: 'all' }, 'scope'],
    [{ scope: null }, 'scope'],
    [{ name: '' }, 'name'],
    [{ rpm: 5 }, 'rpm'],
    [{ expires_at: '2020-01-01' }, 'expires_at'],
    [{ filter: {} }, 'filter'],
    [{ filter: { team: 'a' } }, 'filter'],
    [{ filter: { user: '' } }, 'filter'],
    [{ filter: { user: 7 } }, 'filter'],
    [{ filter: { tag: 'search' } }, 'filter'],
    [{ filter: { key: '../x' } }, 'filter'],
  ])('requested as %j: 400 that names the field', async (fields, param) => {
    const body = { name: 'a', scope: 'usage', ...fields };
    const { status, error } = await new Deployment().call('POST', '/admin/keys', ADMIN, body);
    expect([status, objectOf(error).param]).toEqual([400, param]);
  });
});

describe('K8 a token that is bound to a filter', () => {
  test('of a user: reports, lists and single records are of that user, whatever the request asks', async () => {
    const deployment = new Deployment();
    const [, two] = await deployment.fill();
    const { token } = await deployment.token({ filter: { user: 'ada' } });
    const users = (list: readonly JsonObject[]) => list.map(({ user }) => user);
    const all = await deployment.records(ADMIN);
    expect(users(await deployment.records(token))).toEqual(['ada', 'ada']);
    expect(await deployment.records(token, `&user=ada&key=${two}`)).toHaveLength(1);
    const usage = await deployment.call('GET', `/v1/usage?${RANGE}&group_by=user`, token);
    expect(users(objectsOf(usage.data))).toEqual(['ada']);
    expect(objectOf(usage.total)).toMatchObject({ requests: 2 });
    for (const { request_id, user } of all) {
      const { status } = await deployment.call('GET', `/v1/usage/records/${textOf(request_id)}`, token);
      expect([user, status]).toEqual([user, user === 'ada' ? 200 : 404]);
    }
    for (const query of ['user=bob', 'user=ada&user=bob', 'user=bob&user=ada', 'user='])
      for (const path of ['/v1/usage', '/v1/usage/records'])
        expect([query, (await deployment.call('GET', `${path}?${query}`, token)).status]).toEqual([
          query,
          400,
        ]);
    expect((await deployment.call('GET', '/v1/usage/refusals', token)).status).toBe(400);
  });

  test('of a key: no other key, also in refusals', async () => {
    const deployment = new Deployment();
    const [one, two] = await deployment.fill();
    const { token } = await deployment.token({ filter: { key: one } });
    expect(new Set((await deployment.records(token)).map(({ key_id }) => key_id))).toEqual(new Set([one]));
    for (const path of ['/v1/usage', '/v1/usage/records', '/v1/usage/refusals']) {
      expect((await deployment.call('GET', `${path}?key=${two}`, token)).status).toBe(400);
      expect((await deployment.call('GET', `${path}?key=${one}`, token)).status).toBe(200);
    }
    for (const { request_id, key_id } of await deployment.records(ADMIN)) {
      const { status } = await deployment.call('GET', `/v1/usage/records/${textOf(request_id)}`, token);
      expect(status).toBe(key_id === one ? 200 : 404);
    }
  });

  test('of a tag: another value of that tag is refused, and a record without it is not found', async () => {
    const deployment = new Deployment();
    await deployment.fill();
    const { token } = await deployment.token({ filter: { tag: 'team:search' } });
    const other = await deployment.call('GET', '/v1/usage?tag=team:sales', token);
    expect([other.status, objectOf(other.error).param]).toEqual([400, 'tag']);
    const [{ request_id = '' } = {}] = await deployment.records(ADMIN);
    expect((await deployment.call('GET', `/v1/usage/records/${textOf(request_id)}`, token)).status).toBe(404);
  });
});

/** What a token may call. */
const READ = ['/models', '/models/:id+', '/usage', '/usage/records', '/usage/records/:id', '/usage/refusals'];
/** Routes without a caller. */
const PUBLIC = ['/health', '/dashboard'];

const BODIES: Readonly<Record<string, JsonObject>> = {
  default: {
    model: 'openai/gpt-4o-mini',
    messages: [{ role: 'user', content: 'Hi' }],
    input: 'Hi',
    prompt: 'Hi',
  },
};

/** Objects that no request may reach. */
const DURABLE = {
  RESPONSES: 'durable',
  WEIR_RESPONSES: { getByName: () => Promise.reject(new Error('called')) },
} as unknown as JsonObject;

describe.each<[string, JsonObject]>([
  ['keys', { AUTH: 'keys' }],
  ['keys and kept responses', DURABLE],
  ['open', { AUTH: 'open' }],
  ['passthrough', { AUTH: 'passthrough', DEFAULT_PROVIDER: 'openai' }],
])('K8 with AUTH=%s', (_, settings) => {
  const { features } = deploymentOf({ ADMIN_TOKEN: ADMIN, OPENAI_API_KEY: 'k', ...settings });
  const routes = [...ROUTES, ...features.flatMap((feature) => feature.routes ?? [])];
  const calls = routes.flatMap(({ path, prefixes = ['/v1', ''], methods }) =>
    prefixes.flatMap((prefix) =>
      Object.keys(methods).map((method) => [method, prefix + path, path] as const),
    ),
  );

  test('the table has all routes', () => {
    expect(calls.length).toBeGreaterThan(55);
    for (const path of [...READ, ...PUBLIC]) expect(calls.map(([, , own]) => own)).toContain(path);
  });

  test.each(calls)('%s %s', async (method, path, own) => {
    const deployment = new Deployment(settings);
    const { token } = await deployment.token();
    const before = JSON.stringify([...deployment.store.entries]);
    const called = path
      .replace('(fim|agents)', 'fim')
      .replace(/:[a-z]+\+?/g, own === '/models/:id+' ? 'openai/gpt-4o-mini' : '0123456789abcdef');
    const { status } = await deployment.call(
      ...([method, called, token] as const),
      ...(method === 'GET' || method === 'DELETE' ? [] : [BODIES.default]),
    );
    const isRead = READ.includes(own) && method === 'GET';
    if (isRead) expect([200, 404]).toContain(status);
    else if (!PUBLIC.includes(own)) expect([401, 404, 405]).toContain(status);
    // The list of models is read with the provider's own key.
    expect(deployment.sent.filter((call) => !own.startsWith('/models') || call.includes(token))).toEqual([]);
    expect(JSON.stringify([...deployment.store.entries])).toBe(before);
  });
});

test('K8 an earlier version of Weir, which knows the prefix of keys alone, finds no key for a token', async () => {
  const deployment = new Deployment();
  const { id, token } = await deployment.token();
  expect(token.startsWith('weir_')).toBe(false);
  const names = [...deployment.store.entries.keys()].filter((name) => name.includes(id));
  expect(names).toEqual([`usage-token/${id}`]);
});

test('K8 a host whose onRequest refuses everyone: the token reads usage, and calls no model', async () => {
  const onRequest = () => new Response('no', { status: 403 });
  const deployment = new Deployment({}, { onRequest, onRecord: null });
  const { token } = await deployment.token();
  expect((await deployment.call('GET', '/v1/usage', token)).status).toBe(200);
  expect((await deployment.call('POST', '/v1/chat/completions', token, BODIES.default)).status).toBe(401);
});

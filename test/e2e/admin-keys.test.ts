/** `/admin/keys` over real KV: keys are created, listed without their secret and revoked, by the admin only (K2). */
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ vars: { AUTH: 'keys' }, entrypoint: 'held-kv-worker.ts' });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function create(body: JsonObject): Promise<JsonObject> {
  const response = await gateway.post('/admin/keys', body, { headers: ADMIN });
  expect(response.status).toBe(201);
  return jsonOf(response);
}

async function list(): Promise<JsonObject[]> {
  return objectsOf((await jsonOf(await gateway.fetch('/admin/keys', { headers: ADMIN }))).data);
}

function revoke(id: string, headers: Record<string, string> = ADMIN): Promise<Response> {
  return gateway.fetch(`/admin/keys/${id}`, { method: 'DELETE', headers });
}

describe('a key', () => {
  test('K2: is returned when it is created, with the requested fields, and never again', async () => {
    const before = Date.now();
    const requested = { name: 'team a', models: ['deepseek/*'], expires_at: '2999-01-01T00:00:00.000Z' };
    const { key, id, created_at, ...rest } = await create(requested);
    expect(key).toMatch(/^weir_[\w-]{40,}$/);
    expect(id).toMatch(/^\w{8,}$/);
    expect(Date.parse(textOf(created_at))).toBeGreaterThanOrEqual(before);
    expect(rest).toEqual(requested);
    const listed = await list();
    expect(listed.find((entry) => entry.id === id)).toEqual({ id, created_at, ...requested });
    expect(JSON.stringify(listed)).not.toContain(textOf(key).slice('weir_'.length));
  });

  test('K2: without models and expiry has null for both', async () => {
    expect(await create({ name: 'all' })).toMatchObject({ models: null, expires_at: null });
  });

  test('K2: is unique, also where several are created at the same time', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, () => create({ name: 'same' })));
    expect(new Set(made.map(({ key }) => key)).size).toBe(12);
    expect(new Set(made.map(({ id }) => id)).size).toBe(12);
    const listed = (await list()).map(({ id }) => id);
    expect(listed).toEqual(expect.arrayContaining(made.map(({ id }) => id)));
  });

  test('K1: is stored in KV as its SHA-256 only, also after its use', async () => {
    const token = textOf((await create({ name: 'used' })).key);
    const headers = { authorization: `Bearer ${token}` };
    const used = await gateway.post('/v1/chat/completions', streamedChat('deepseek/deepseek-chat'), {
      headers,
    });
    await used.text();
    await gateway.record(used);
    const stored = JSON.stringify(await gateway.entries(''));
    expect(stored).toContain(createHash('sha256').update(token).digest('hex'));
    expect(stored).not.toContain(token.slice('weir_'.length));
    expect(stored).not.toContain(ADMIN_TOKEN);
    expect(gateway.logs().join()).not.toContain(token.slice('weir_'.length));
  });

  test('K2: that is revoked is listed as revoked alone, and its entry is gone; a second time gets 404', async () => {
    const id = textOf((await create({ name: 'brief' })).id);
    expect(await jsonOf(await revoke(id))).toMatchObject({ id, deleted: true });
    expect((await list()).map((entry) => entry.id)).not.toContain(id);
    const { revoked } = await jsonOf(await gateway.fetch('/admin/keys', { headers: ADMIN }));
    expect(objectsOf(revoked)).toContainEqual(expect.objectContaining({ id, name: 'brief' }));
    expect(JSON.stringify(await gateway.entries('key'))).not.toContain(id);
    expect((await errorOf(await revoke(id))).status).toBe(404);
  });

  test.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'a', models: 'deepseek/*' }, 'models'],
    [{ name: 'a', models: [] }, 'models'],
    [{ name: 'a', models: ['deepseek/*', 7] }, 'models'],
    [{ name: 'a', expires_at: 'tomorrow' }, 'expires_at'],
    [{ name: 'a', expires_at: '2999-02-29' }, 'expires_at'],
    [{ name: 'a', expires_at: '2999-02-31T00:00:00+02:00' }, 'expires_at'],
  ])('K2: requested as %j gets 400 that names the field, and none is created', async (body, param) => {
    const before = (await list()).length;
    const { status, error } = await errorOf(await gateway.post('/admin/keys', body, { headers: ADMIN }));
    expect([status, error.param]).toEqual([400, param]);
    expect(await list()).toHaveLength(before);
  });

  test('K2: with the longest allowed texts is listed', async () => {
    const name = '水'.repeat(100);
    const globs = Array.from({ length: 8 }, (_, at) => `deepseek/${'水'.repeat(20)}${at}`);
    const models = globs.slice(0, 7);
    const response = await gateway.post('/admin/keys', { name, models }, { headers: ADMIN });
    const { id } = await jsonOf(response);
    expect(response.status).toBe(201);
    expect((await list()).find((entry) => entry.id === id)).toMatchObject({ name, models });
    const larger = await gateway.post('/admin/keys', { name, models: globs }, { headers: ADMIN });
    expect([larger.status, (await errorOf(larger)).error.param]).toEqual([400, 'models']);
  });
});

describe('concurrent changes of one key, through the key’s object', () => {
  afterEach(() => gateway.fetch('/release'));

  function patch(id: string, body: JsonObject): Promise<Response> {
    const init = { method: 'PATCH', headers: ADMIN, body: JSON.stringify(body) };
    return gateway.fetch(`/admin/keys/${id}`, init);
  }

  /** Resolves when the log has `count` lines with these fields about a KV entry of the key. */
  function logged(id: string, line: JsonObject, count = 1): Promise<void> {
    const isThis = (one: JsonObject) =>
      textOf(one.name).endsWith(id) && Object.entries(line).every(([name, value]) => one[name] === value);
    return gateway.logged((lines) => lines.filter(isThis).length >= count);
  }

  async function statusOf(key: JsonObject): Promise<number> {
    const headers = { authorization: `Bearer ${textOf(key.key)}` };
    return (await gateway.fetch('/v1/models', { headers })).status;
  }

  test('K2 K3: a key stays revoked when a PATCH that began before the DELETE is written after it', async () => {
    const key = await create({ name: 'raced' });
    const id = textOf(key.id);
    await gateway.fetch('/hold');
    const patched = patch(id, { name: 'revived' });
    await logged(id, { event: 'held' });
    const revoked = revoke(id);
    await logged(id, { event: 'kv', call: 'delete', name: `key/${id}` });
    await gateway.fetch('/release');
    expect((await revoked).status).toBe(200);
    await (await patched).text();
    expect(await statusOf(key)).toBe(401);
    expect((await list()).map((entry) => entry.id)).not.toContain(id);
    expect((await patch(id, { name: 'revived' })).status).toBe(404);
    expect(JSON.stringify(await gateway.entries('key'))).not.toContain(id);
  });

  test('K2: two PATCHes that both read the key before either is written: both take effect', async () => {
    const key = await create({ name: 'shared' });
    const id = textOf(key.id);
    await gateway.fetch('/hold');
    const patched = [patch(id, { models: ['deepseek/*'] }), patch(id, { rpm: 7 })];
    await logged(id, { event: 'kv', call: 'get', name: `key/${id}` }, 2);
    await logged(id, { event: 'held' });
    await gateway.fetch('/release');
    for (const response of await Promise.all(patched)) expect(response.status).toBe(200);
    const listed = (await list()).find((entry) => entry.id === id);
    expect(listed).toMatchObject({ name: 'shared', models: ['deepseek/*'], rpm: 7 });
  });
});

describe('the admin routes', () => {
  const ROUTES = [
    ['POST', '/admin/keys', '{"name":"a"}'],
    ['GET', '/admin/keys', null],
    ['DELETE', '/admin/keys/0123456789abcdef', null],
  ] as const;

  async function statuses(headers: Record<string, string>): Promise<number[]> {
    const answers = ROUTES.map(([method, path, body]) => gateway.fetch(path, { method, headers, body }));
    return (await Promise.all(answers)).map(({ status }) => status);
  }

  test('K2: a gateway key, a token that is almost the admin token, or none gets 401', async () => {
    const token = textOf((await create({ name: 'no admin' })).key);
    for (const candidate of [token, ADMIN_TOKEN.slice(0, -1), `${ADMIN_TOKEN}x`, ADMIN_TOKEN.toUpperCase()])
      expect(await statuses({ authorization: `Bearer ${candidate}` })).toEqual([401, 401, 401]);
    expect(await statuses({})).toEqual([401, 401, 401]);
  });

  describe('without ADMIN_TOKEN', () => {
    beforeAll(() => gateway.set({ AUTH: 'keys', ADMIN_TOKEN: undefined }));

    test.each(['undefined', 'null', '""', ADMIN_TOKEN])(
      'K2: are closed to everyone, with the token %s',
      async (token) => {
        expect(await statuses({ authorization: `Bearer ${token}` })).toEqual([403, 403, 403]);
        expect(await statuses({})).toEqual([403, 403, 403]);
      },
    );

    test('K2: name the missing setting', async () => {
      const { error } = await errorOf(await gateway.fetch('/admin/keys'));
      expect(textOf(error.message)).toContain('ADMIN_TOKEN');
    });
  });
});

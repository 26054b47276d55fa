/** Keys whose stored state is missing, from another version, or damaged: no limit is left out, and an admin can mend it. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN = 'admin';

async function read(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

async function refusalOf(response: Response): Promise<unknown> {
  return objectOf((await read(response)).error).code ?? response.status;
}

/** A gateway over this store whose objects are new, as in another account. */
function deploy(store: MemoryStore, settings: JsonObject = {}): LimitedGateway {
  return new LimitedGateway(settings, { store: store as never });
}

function idOf(store: MemoryStore): string {
  const [name = ''] = [...store.entries.keys()].filter((key) => key.startsWith('key/'));
  return name.slice('key/'.length);
}

/** A key in KV, as a backup has it. */
async function backup(limits: JsonObject, withMetadata = true) {
  const source = new MemoryStore();
  const token = await deploy(source).key(limits);
  const store = new MemoryStore();
  for (const [name, { value, metadata }] of source.entries)
    await store.put(name, value, withMetadata ? { metadata } : {});
  return { store, token, id: idOf(store) };
}

async function patch(gateway: LimitedGateway, id: string, fields: JsonObject): Promise<JsonObject> {
  return read(
    await gateway.fetch(`/admin/keys/${id}`, ADMIN, { method: 'PATCH', body: JSON.stringify(fields) }),
  );
}

describe('K4 G1 a key that is restored from a backup', () => {
  test.each<[limit: string, limits: JsonObject, code: string]>([
    ['hard budget', { budget: { USD: 0.000001 } }, 'budget_exceeded'],
    ['budget in tokens', { budget: { tokens: 5 } }, 'budget_exceeded'],
    ['tpm', { tpm: 3 }, 'rate_limited'],
  ])('has its %s from the first request on', async (_, limits, code) => {
    const { store, token, id } = await backup(limits);
    const gateway = deploy(store);
    expect(await refusalOf(await gateway.ask(token))).toBe(code);
    expect(gateway.calls).not.toContain('upstream');
    const shown = await read(await gateway.fetch('/v1/key', token));
    expect(Object.keys(objectOf(shown.limits))).toEqual(Object.keys(limits));
    expect(await read(await gateway.fetch(`/admin/keys/${id}`, ADMIN))).toEqual(shown);
  });

  test('counts its requests and its output limit, and spending starts again at 0', async () => {
    const { store, token } = await backup({ rpm: 1, max_output_tokens: 7, budget: { tokens: 1e6 } });
    const gateway = deploy(store);
    const first = await gateway.ask(token, { max_tokens: 50 });
    expect(first.headers.get('x-ratelimit-limit-requests')).toBe('1');
    await first.text();
    expect(gateway.sent).toMatchObject([{ max_completion_tokens: 7 }]);
    expect(await refusalOf(await gateway.ask(token))).toBe('rate_limited');
    await gateway.idle();
    const shown = await read(await gateway.fetch('/v1/key', token));
    expect(objectOf(shown.budget)).toMatchObject({ spent: 10, reserved: 0 });
  });

  test('keeps its limits when it is shown or renamed before its first request', async () => {
    const limits = { budget: { tokens: 5, per: 'total', mode: 'hard' }, rpm: 3 };
    for (const rename of [false, true]) {
      const { store, token, id } = await backup(limits);
      const gateway = deploy(store);
      if (rename)
        expect(await patch(gateway, id, { name: 'other' })).toMatchObject({ name: 'other', ...limits });
      else expect((await read(await gateway.fetch('/v1/key', token))).limits).toEqual(limits);
      expect(await refusalOf(await gateway.ask(token))).toBe('budget_exceeded');
      // Also in the entry that a further backup has.
      expect(await refusalOf(await deploy(store).ask(token))).toBe('budget_exceeded');
    }
  });

  test('of which an object has other limits, or none any more, has those of the object', async () => {
    const store = new MemoryStore();
    const gateway = deploy(store);
    const token = await gateway.key({ budget: { tokens: 5 } });
    const id = idOf(store);
    const old = [...store.entries];
    await patch(gateway, id, { budget: null, rpm: 1 });
    await patch(gateway, id, { rpm: null });
    // KV has the entries of before.
    store.entries.clear();
    for (const [name, entry] of old) store.entries.set(name, entry);
    for (let n = 0; n < 3; n++) expect((await gateway.ask(token)).status).toBe(200);
    expect((await read(await gateway.fetch('/v1/key', token))).limits).toBeNull();
  });

  test.each<[what: string, limits: unknown]>([
    ['a limit that this version does not know', { rpm: 5, tpd: 100 }],
    ['a limit that is no number', { rpm: 'five' }],
    ['a later version', { version: 2, rpm: 5 }],
  ])('whose entry lists %s is refused', async (_, limits) => {
    const { store, token, id } = await backup({ rpm: 5 });
    const entry = store.entries.get(`key/${id}`);
    const value = { ...decodeObject(entry?.value ?? ''), limits };
    await store.put(`key/${id}`, JSON.stringify(value), { metadata: value });
    const gateway = deploy(store);
    expect(await refusalOf(await gateway.ask(token))).toBe('ledger_unreadable');
    expect(gateway.sql.count('limits')).toBe(0);
  });

  test('is listed, also where its entries were copied without metadata', async () => {
    for (const withMetadata of [true, false]) {
      const { store, id } = await backup({ rpm: 5 }, withMetadata);
      await patch(deploy(store), id, { name: 'renamed' });
      const changed = store.entries.get(`key-change/${id}`);
      if (!withMetadata) await store.put(`key-change/${id}`, changed?.value ?? '');
      const listed = await read(await deploy(store).fetch('/admin/keys', ADMIN));
      expect(objectsOf(listed.data)).toMatchObject([{ id, name: 'renamed', rpm: 5 }]);
      expect(listed).not.toHaveProperty('unreadable');
    }
  });

  test('is listed without metadata beyond what KV reads at once', async () => {
    const { store } = await backup({ rpm: 5 }, false);
    const [[, { value }] = ['', { value: '' }]] = store.entries;
    for (let n = 0; n < 1500; n++) {
      const id = n.toString(16).padStart(16, '0');
      await store.put(`key/${id}`, JSON.stringify({ ...decodeObject(value), id }));
    }
    const listed = await read(await deploy(store).fetch('/admin/keys', ADMIN));
    expect(objectsOf(listed.data)).toHaveLength(1501);
  });
});

describe('G6 limits that the object cannot read', () => {
  const DAMAGED: readonly [what: string, row: string][] = [
    ['no JSON', '{"rpm":5'],
    ['a list', '[]'],
    ['a later version', '{"version":2,"rpm":5}'],
    ['an unknown limit', '{"rpm":5,"tpd":100}'],
    ['a limit that is a text', '{"rpm":"5"}'],
    ['a budget without an amount', '{"budget":{"per":"day"}}'],
    ['nothing', ''],
  ];

  async function damaged(row: string, settings: JsonObject = {}) {
    const store = new MemoryStore();
    const gateway = deploy(store, settings);
    const token = await gateway.key({ rpm: 5, budget: { tokens: 1e6 } });
    gateway.sql.exec('UPDATE limits SET json = ?', row);
    return { gateway, token, id: idOf(store), store };
  }

  test.each(DAMAGED)('%s: every request is refused by one call, and logged', async (_, row) => {
    for (const BUDGET_FAIL of ['closed', 'open']) {
      const { gateway, token } = await damaged(row, { BUDGET_FAIL });
      const response = await gateway.ask(token);
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([500, 'false']);
      expect(await refusalOf(response)).toBe('ledger_unreadable');
      await gateway.idle();
      expect(gateway.calls.filter((call) => !call.startsWith('kv'))).toEqual(['reserve']);
      const logged = gateway.logged.filter(({ event }) => event === 'ledger_unreadable');
      expect(logged).toMatchObject([{ reason: expect.any(String), key_id: expect.any(String) }]);
      expect(await refusalOf(await gateway.fetch('/v1/key', token))).toBe('ledger_unreadable');
    }
  });

  test.each(DAMAGED)(
    '%s: an admin reads them out; a change that builds on them is refused',
    async (_, row) => {
      const { gateway, id } = await damaged(row);
      const shown = await read(await gateway.fetch(`/admin/keys/${id}/limits`, ADMIN));
      expect(shown).toMatchObject({
        object: 'key.limits',
        id,
        limits: null,
        row,
        problem: expect.any(String),
      });
      expect(objectOf((await patch(gateway, id, { name: 'other' })).error).code).toBe('ledger_unreadable');
      expect(objectOf((await patch(gateway, id, { rpm: 9 })).error).code).toBe('ledger_unreadable');
      const [{ json } = { json: '' }] = gateway.sql
        .exec<{ json: string }>('SELECT json FROM limits')
        .toArray();
      expect(json).toBe(row);
    },
  );

  test.each(DAMAGED)('%s: an admin sets them anew', async (_, row) => {
    const { gateway, token, id, store } = await damaged(row);
    const body = JSON.stringify({ rpm: 1 });
    const put = await gateway.fetch(`/admin/keys/${id}/limits`, ADMIN, { method: 'PUT', body });
    expect(await read(put)).toMatchObject({ id, name: 'test', rpm: 1 });
    const shown = await read(await gateway.fetch(`/admin/keys/${id}/limits`, ADMIN));
    expect(shown).toMatchObject({ limits: { rpm: 1 }, problem: null });
    expect((await gateway.ask(token)).status).toBe(200);
    expect(await refusalOf(await gateway.ask(token))).toBe('rate_limited');
    expect(decodeObject(store.entries.get(`key-change/${id}`)?.value ?? '')?.limits).toEqual({ rpm: 1 });
  });

  test.each(DAMAGED)('%s: an admin removes them, or revokes the key', async (_, row) => {
    for (const path of ['/limits', '']) {
      const { gateway, token, id } = await damaged(row);
      const removed = await gateway.fetch(`/admin/keys/${id}${path}`, ADMIN, { method: 'DELETE' });
      expect(removed.status).toBe(200);
      const answers = await Promise.all(Array.from({ length: 7 }, () => gateway.ask(token)));
      expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(path === '' ? 401 : 200));
    }
  });

  test('a key of which the object cannot read the last change: as its limits', async () => {
    const { gateway, id, token } = await damaged('{"rpm":5}');
    await patch(gateway, id, { name: 'other' });
    gateway.sql.exec('UPDATE held_key SET json = ?', '{"name":"other"}');
    expect(objectOf((await patch(gateway, id, { name: 'third' })).error).code).toBe('ledger_unreadable');
    const body = JSON.stringify({ rpm: 1 });
    const put = await gateway.fetch(`/admin/keys/${id}/limits`, ADMIN, { method: 'PUT', body });
    expect(await read(put)).toMatchObject({ name: 'other', rpm: 1 });
    expect((await gateway.ask(token)).status).toBe(200);
    expect(await refusalOf(await gateway.ask(token))).toBe('rate_limited');
  });

  test('PUT takes limits alone, and its routes are the admin’s', async () => {
    const { gateway, id, token } = await damaged('{"rpm":5}');
    const put = (body: JsonObject, bearer = ADMIN, path = id) =>
      gateway.fetch(`/admin/keys/${path}/limits`, bearer, { method: 'PUT', body: JSON.stringify(body) });
    for (const body of [{ name: 'x' }, { rpm: 0 }, { budget: { XYZ: 1 } }, { rpm: 5, tpd: 1 }])
      expect((await put(body)).status).toBe(400);
    expect((await put({ rpm: 1 }, token)).status).toBe(401);
    expect((await put({ rpm: 1 }, ADMIN, '0'.repeat(16))).status).toBe(404);
    for (const method of ['GET', 'DELETE']) {
      const path = `/admin/keys/${id}/limits`;
      expect((await gateway.fetch(path, token, { method })).status).toBe(401);
    }
    const [{ json } = { json: '' }] = gateway.sql.exec<{ json: string }>('SELECT json FROM limits').toArray();
    expect(json).toBe('{"rpm":5}');
  });
});

describe('K1 a key whose entry in KV cannot be read', () => {
  test.each<[what: string, change: JsonObject]>([
    ['models that are a text', { models: 'deepseek/*' }],
    ['models that are not all texts', { models: ['deepseek/*', 7] }],
    ['an expiry that is no time', { expires_at: 'tomorrow' }],
    ['an expiry that is a number', { expires_at: 1 }],
    ['limits that are a list', { limits: [] }],
    ['limits that are a text', { limits: 'none' }],
    ['a user that is a number', { user: 7 }],
    ['tags that are a list', { tags: ['a'] }],
    ['require_user that is a text', { require_user: 'yes' }],
    ['no id', { id: null }],
  ])('%s: is refused, logged, listed by its id, and revoked', async (_, change) => {
    for (const prefix of ['key', 'key-change']) {
      const { store, token, id } = await backup({});
      await patch(deploy(store), id, { name: 'other' });
      const name = `${prefix}/${id}`;
      const value = { ...decodeObject(store.entries.get(name)?.value ?? ''), ...change };
      await store.put(name, JSON.stringify(value), { metadata: value });
      const gateway = deploy(store);
      const isRead = prefix === 'key-change';
      if (!isRead) await store.delete(`key-change/${id}`);
      expect(await refusalOf(await gateway.ask(token))).toBe('ledger_unreadable');
      expect(gateway.calls).not.toContain('upstream');
      expect(gateway.logged).toContainEqual(
        expect.objectContaining({ event: 'ledger_unreadable', key_id: id }),
      );
      const listed = await read(await gateway.fetch('/admin/keys', ADMIN));
      expect([listed.data, listed.unreadable]).toEqual([[], [id]]);
      expect((await gateway.fetch(`/admin/keys/${id}`, ADMIN, { method: 'DELETE' })).status).toBe(200);
      expect(await refusalOf(await gateway.ask(token))).toBe('invalid_api_key');
    }
  });
});

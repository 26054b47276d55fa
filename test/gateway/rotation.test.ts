/** Disabled and rotated keys (K6, K7): what is refused, from when on, also by an earlier version of Weir, and what stays. */
import { describe, expect, test } from 'vitest';
import { decodeKey, KEY_TTL_MS } from '../../src/auth/keys.ts';
import type { Ports } from '../../src/http/context.ts';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN = 'admin';
const HOUR_MS = 3_600_000;

interface Made {
  readonly id: string;
  readonly token: string;
}

/** Isolates with one store and one clock. */
class Isolates {
  now = Date.parse('2026-11-22T12:00:00Z');
  readonly store = new StaleStore();
  readonly settings: JsonObject;
  readonly one: LimitedGateway;

  constructor(settings: JsonObject = {}) {
    this.settings = settings;
    this.one = this.open();
  }

  /** Another isolate, which has cached nothing. */
  open(): LimitedGateway {
    const store = this.store as unknown as Ports['store'];
    const clock = { now: () => this.now, startTimer: () => () => {} };
    return new LimitedGateway(this.settings, { store, clock });
  }

  async call(method: string, path: string, body?: JsonObject, gateway = this.one): Promise<JsonObject> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await gateway.fetch(path, ADMIN, init);
    return { status: response.status, ...decodeObject(await response.text()) };
  }

  async make(fields: JsonObject = {}): Promise<Made> {
    const { id, key } = await this.call('POST', '/admin/keys', { name: 'test', ...fields });
    return { id: textOf(id), token: textOf(key) };
  }

  async rotate(id: string, overlap_hours = 24): Promise<string> {
    const rotated = await this.call('POST', `/v1/admin/keys/${id}/rotate`, { overlap_hours });
    expect([rotated.status, rotated.id]).toEqual([200, id]);
    return textOf(rotated.key);
  }

  /** The status of a request in an isolate, by default a new one. */
  async use(token: string, gateway = this.open()): Promise<number> {
    const response = await gateway.ask(token);
    await response.text();
    return response.status;
  }

  /** What an earlier version of Weir makes of the key: the first secret is valid until `expires_at`. */
  expiryForEarlier(id: string): string | null {
    const stored = this.store.entries.get(`key-change/${id}`) ?? this.store.entries.get(`key/${id}`);
    const { expires_at } = decodeObject(stored?.value ?? '') ?? {};
    return typeof expires_at === 'string' ? expires_at : null;
  }
}

/** A KV namespace that can return what it had at an earlier time. */
class StaleStore extends MemoryStore {
  #old: ReadonlyMap<string, string> | null = null;

  /** From now on, entries that exist are read as they are now. */
  freeze(): void {
    this.#old = new Map([...this.entries].map(([name, { value }]) => [name, value]));
  }

  thaw(): void {
    this.#old = null;
  }

  override async get(names: string | readonly string[]): Promise<unknown> {
    const old = typeof names === 'string' ? this.#old?.get(names) : undefined;
    return old === undefined ? super.get(names) : JSON.parse(old);
  }
}

const STORES: readonly (readonly [where: string, settings: JsonObject])[] = [
  ['KV alone', { WEIR_LEDGER: undefined }],
  ["the key's object", {}],
];

describe.each(STORES)('K6 a disabled key, with %s', (_, settings) => {
  test('is refused until it is enabled, stays listed, and keeps its expiry', async () => {
    const isolates = new Isolates(settings);
    const expires_at = '2027-01-01T00:00:00.000Z';
    const { id, token } = await isolates.make({ expires_at });
    expect(await isolates.use(token)).toBe(200);
    expect(await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: true })).toMatchObject({
      ...{ status: 200, disabled: true, expires_at },
    });
    expect(await isolates.use(token)).toBe(401);
    expect((await isolates.call('GET', '/admin/keys')).data).toMatchObject([
      { id, disabled: true, expires_at },
    ]);
    expect(await isolates.call('GET', `/admin/keys/${id}`)).toMatchObject({ disabled: true, expires_at });
    await isolates.call('PATCH', `/admin/keys/${id}`, { name: 'still disabled' });
    expect(await isolates.use(token)).toBe(401);
    const enabled = await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: false });
    expect(enabled).toMatchObject({ name: 'still disabled', expires_at });
    expect(enabled).not.toHaveProperty('disabled');
    expect(await isolates.use(token)).toBe(200);
  });

  test('is expired for an earlier version, and after a change by it', async () => {
    const isolates = new Isolates(settings);
    const { id } = await isolates.make();
    await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: true });
    expect(isolates.expiryForEarlier(id)).toBe('1970-01-01T00:00:00.000Z');
    await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: null });
    expect(isolates.expiryForEarlier(id)).toBeNull();
  });
});

describe('K6', () => {
  test('the isolate that disables a key refuses it at once, another one when its cache entry expires', async () => {
    const isolates = new Isolates();
    const { id, token } = await isolates.make();
    const other = isolates.open();
    expect([await isolates.use(token, isolates.one), await isolates.use(token, other)]).toEqual([200, 200]);
    await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: true });
    expect(await isolates.use(token, isolates.one)).toBe(401);
    isolates.now += KEY_TTL_MS;
    expect(await isolates.use(token, other)).toBe(401);
  });

  test('a key may be created disabled; another value than true, false or null is a 400', async () => {
    const isolates = new Isolates();
    const { token } = await isolates.make({ disabled: true });
    expect(await isolates.use(token)).toBe(401);
    expect((await isolates.call('POST', '/admin/keys', { name: 'a', disabled: 'yes' })).status).toBe(400);
  });

  test.each([
    { disabled: 'true' },
    { disabled: true, expires_at: 'soon' },
    { secrets: 'none' },
    { secrets: { current: 'a' } },
    { secrets: { current: 'a', rotated_at: '2026-11-22T12:00:00Z', previous: { id: 'b', until: 'later' } } },
    [],
  ])('a stored state that cannot be read, %j, is no key', (state) => {
    expect(decodeKey({ id: '0123456789abcdef', name: 'a', expires_at: null })).not.toBeNull();
    expect(decodeKey({ id: '0123456789abcdef', name: 'a', expires_at: null, state })).toBeNull();
  });

  test('a key whose entry is too large for metadata is listed from its value', async () => {
    const isolates = new Isolates();
    const models = ['m'.repeat(833)];
    const { id } = await isolates.make({ models, expires_at: '2027-01-01' });
    await isolates.rotate(id);
    await isolates.call('PATCH', `/admin/keys/${id}`, { disabled: true });
    expect(isolates.store.entries.get(`key-change/${id}`)?.metadata).toBeUndefined();
    expect((await isolates.call('GET', '/admin/keys')).data).toMatchObject([{ id, models, disabled: true }]);
  });
});

describe.each(STORES)('K7 a rotated key, with %s', (_, settings) => {
  test('both secrets are valid during the overlap, and then the new one alone', async () => {
    const isolates = new Isolates(settings);
    const { id, token } = await isolates.make();
    const next = await isolates.rotate(id, 2);
    expect(next).not.toBe(token);
    isolates.now += 2 * HOUR_MS - 1;
    const warm = isolates.open();
    expect([await isolates.use(token, warm), await isolates.use(next, warm)]).toEqual([200, 200]);
    isolates.now += 1;
    // Also where the isolate has the key in its cache.
    expect([await isolates.use(token, warm), await isolates.use(next, warm)]).toEqual([401, 200]);
    expect([await isolates.use(token), await isolates.use(next)]).toEqual([401, 200]);
  });

  test('with an overlap of 0 the old secret is refused at once', async () => {
    const isolates = new Isolates(settings);
    const { id, token } = await isolates.make();
    expect(await isolates.use(token, isolates.one)).toBe(200);
    const next = await isolates.rotate(id, 0);
    expect([await isolates.use(token, isolates.one), await isolates.use(next, isolates.one)]).toEqual([
      401, 200,
    ]);
  });

  test('a second rotation ends the secret before the previous one, and its entry', async () => {
    const isolates = new Isolates(settings);
    const { id, token } = await isolates.make();
    const second = await isolates.rotate(id);
    isolates.now += HOUR_MS;
    const third = await isolates.rotate(id);
    isolates.now += HOUR_MS;
    const fourth = await isolates.rotate(id);
    const statuses = [token, second, third, fourth].map((one) => isolates.use(one));
    expect(await Promise.all(statuses)).toEqual([401, 401, 200, 200]);
    const secrets = [...isolates.store.entries.keys()].filter((name) => name.startsWith('secret/'));
    expect(secrets).toHaveLength(2);
  });

  test('a revocation ends all its secrets and deletes their entries', async () => {
    const isolates = new Isolates(settings);
    const { id, token } = await isolates.make();
    const second = await isolates.rotate(id);
    const third = await isolates.rotate(id);
    await isolates.call('DELETE', `/admin/keys/${id}`);
    for (const gateway of [isolates.one, isolates.open()])
      for (const one of [token, second, third]) expect(await isolates.use(one, gateway)).toBe(401);
    const left = [...isolates.store.entries.keys()].filter((name) => /^(secret|key)/.test(name));
    expect(left).toEqual([]);
  });

  test('keeps its id, limits and history; the response is the only one with the secret', async () => {
    const isolates = new Isolates(settings);
    const limits = settings.WEIR_LEDGER === undefined && 'WEIR_LEDGER' in settings ? {} : { rpm: 3 };
    const { id, token } = await isolates.make({ models: ['openai/*'], ...limits });
    const { one } = isolates;
    expect(await isolates.use(token, one)).toBe(200);
    await one.idle();
    const next = await isolates.rotate(id);
    const shown = await isolates.one.fetch('/v1/key', next);
    expect(decodeObject(await shown.text())).toMatchObject({
      ...{ id, name: 'test', models: ['openai/*'], rotated_at: '2026-11-22T12:00:00.000Z' },
      old_key_expires_at: '2026-11-23T12:00:00.000Z',
    });
    const [listed] = objectsOf((await isolates.call('GET', '/admin/keys')).data);
    expect(listed).toMatchObject({ id, ...limits });
    const all = JSON.stringify([listed, [...isolates.store.entries], isolates.one.logged]);
    expect(all).not.toContain(next.slice(5));
    const records = await isolates.call('GET', '/v1/usage/records?from=2026-11-01&to=2026-12-01');
    await isolates.use(next, one);
    await one.idle();
    const after = await isolates.call('GET', '/v1/usage/records?from=2026-11-01&to=2026-12-01');
    expect(objectsOf(records.data).map(({ key_id }) => key_id)).toEqual([id]);
    expect(objectsOf(after.data).map(({ key_id }) => key_id)).toEqual([id, id]);
  });

  test('a KV that still returns the key as it was before the rotation: neither secret is refused', async () => {
    const isolates = new Isolates(settings);
    const { id, token } = await isolates.make();
    await isolates.call('PATCH', `/admin/keys/${id}`, { name: 'changed' });
    isolates.store.freeze();
    const next = await isolates.rotate(id);
    expect([await isolates.use(token), await isolates.use(next)]).toEqual([200, 200]);
  });

  test('an earlier version refuses the first secret when its overlap ends, and at once after a second rotation', async () => {
    const isolates = new Isolates(settings);
    const { id } = await isolates.make({ expires_at: '2027-01-01' });
    await isolates.rotate(id, 24);
    expect(isolates.expiryForEarlier(id)).toBe('2026-11-23T12:00:00.000Z');
    await isolates.rotate(id, 24);
    expect(isolates.expiryForEarlier(id)).toBe('1970-01-01T00:00:00.000Z');
    expect(await isolates.call('GET', `/admin/keys/${id}`)).toMatchObject({
      expires_at: '2027-01-01T00:00:00.000Z',
    });
  });
});

describe('K7', () => {
  test('a secret whose entry in KV has lost its key, or was made for another digest, is refused', async () => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    const next = await isolates.rotate(id);
    const [name = ''] = [...isolates.store.entries.keys()].filter((one) => one.startsWith('secret/'));
    const stored = isolates.store.entries.get(name)?.value ?? '';
    const key = isolates.store.entries.get(`key/${id}`)?.value ?? '';
    await isolates.store.delete(`key/${id}`);
    expect(await isolates.use(next)).toBe(401);
    await isolates.store.put(`key/${id}`, key);
    expect(await isolates.use(next)).toBe(200);
    await isolates.store.put(name, JSON.stringify({ ...decodeObject(stored), digest: '0'.repeat(64) }));
    expect(await isolates.use(next)).toBe(401);
  });

  test('a clock behind the one of the rotation before revives no secret', async () => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    const second = await isolates.rotate(id, 0);
    const [name = ''] = [...isolates.store.entries.keys()].filter((one) => one.startsWith('secret/'));
    const entry = isolates.store.entries.get(name)?.value ?? '';
    isolates.now -= 5000;
    const third = await isolates.rotate(id, 0);
    // As if its deletion were not visible yet.
    await isolates.store.put(name, entry);
    expect([await isolates.use(second), await isolates.use(third)]).toEqual([401, 200]);
  });

  test('rotations at the same time: the key has one current secret, and each response that is 200 has a valid one', async () => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    const [one = '', two = ''] = await Promise.all([isolates.rotate(id), isolates.rotate(id)]);
    expect([await isolates.use(one), await isolates.use(two)]).toEqual([200, 200]);
  });

  test('the audit says when it was rotated, and until when the old secret is valid', async () => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    isolates.now += 1;
    await isolates.rotate(id);
    const [entry] = objectsOf((await isolates.call('GET', '/v1/admin/audit')).data);
    expect(entry).toMatchObject({
      action: 'key_changed',
      before: { rotated_at: null, old_key_expires_at: null },
      after: { rotated_at: '2026-11-22T12:00:00.001Z', old_key_expires_at: '2026-11-23T12:00:00.001Z' },
    });
    expect(JSON.stringify(isolates.one.logged)).not.toContain('secrets');
  });

  test('an object that cannot be reached: 503, the old secret stays valid, and no entry of a secret is left', async () => {
    const isolates = new Isolates();
    const { id, token } = await isolates.make();
    isolates.one.trouble = 'fails';
    expect((await isolates.call('POST', `/admin/keys/${id}/rotate`, {})).status).toBe(503);
    expect(await isolates.use(token)).toBe(200);
    expect([...isolates.store.entries.keys()].filter((name) => name.startsWith('secret/'))).toEqual([]);
  });

  test.each([
    [{ overlap_hours: -1 }, 'overlap_hours'],
    [{ overlap_hours: 720.5 }, 'overlap_hours'],
    [{ overlap_hours: '24' }, 'overlap_hours'],
    [{ hours: 24 }, 'hours'],
  ])('%j: 400 that names the field', async (body, param) => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    const { status, error } = await isolates.call('POST', `/admin/keys/${id}/rotate`, body);
    expect([status, decodeObject(JSON.stringify(error))?.param]).toEqual([400, param]);
  });

  test('an unknown or revoked key: 404', async () => {
    const isolates = new Isolates();
    const { id } = await isolates.make();
    await isolates.call('DELETE', `/admin/keys/${id}`);
    for (const one of [id, '0123456789abcdef', 'x'])
      expect((await isolates.call('POST', `/admin/keys/${one}/rotate`, {})).status).toBe(404);
  });
});

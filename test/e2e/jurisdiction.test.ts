/** `JURISDICTION` in workerd (W6): whatever a deployment does, each object that it makes is in the jurisdiction. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf, streamedChat } from './client.ts';
import type { Gateway } from './gateway.ts';
import {
  ADMIN,
  ERASURES,
  EU,
  type Key,
  LIMITS,
  MODEL,
  makeKey,
  objectsIn,
  recordsOf,
  start,
  TODAY,
  textFrom,
} from './jurisdiction-gateway.ts';

describe('W6 with JURISDICTION=eu, no object is made outside of it', () => {
  let gateway: Gateway;
  let key: Key;
  beforeAll(async () => {
    gateway = await start(EU);
    key = await makeKey(gateway, LIMITS);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const ask = async (user: string, body = chat(MODEL)) => {
    const response = await gateway.post('/v1/chat/completions', body, {
      headers: { ...key.headers, 'x-weir-user': user },
    });
    return { status: response.status, text: await response.text() };
  };

  function expectAllInside(names: readonly (string | RegExp)[]): void {
    expect(objectsIn(gateway, 'object_outside')).toEqual([]);
    const inside = objectsIn(gateway, 'object_in_eu');
    for (const name of names) expect(inside).toContainEqual(expect.stringMatching(name));
  }

  test('by requests and records: of the key, its users and the directory', async () => {
    expect((await ask('ada')).status).toBe(200);
    expect((await ask('ada', streamedChat(MODEL))).text).toContain('data: [DONE]');
    await expect.poll(() => recordsOf(gateway, key)).toHaveLength(2);
    const directory = () => objectsIn(gateway, 'object_in_eu').some((name) => name.startsWith('ledger *'));
    await expect.poll(directory).toBe(true);
    expectAllInside([`^ledger ${key.id}$`, new RegExp(`^ledger ${key.id}.+$`)]);
  });

  test('L10 by requests from two continents, which no shards are near to', async () => {
    const called = await makeKey(gateway, { budget: LIMITS.budget });
    for (let i = 0; i < 16; i++) {
      const headers = { ...called.headers, 'x-test-continent': i % 2 === 0 ? 'EU' : 'NA' };
      const response = await gateway.post('/v1/chat/completions', chat(MODEL), { headers });
      expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
    }
    expect(await jsonOf(await gateway.fetch(`/admin/keys/${called.id}`, ADMIN))).not.toHaveProperty('shards');
    expectAllInside([`^ledger ${called.id}$`]);
    const shards = objectsIn(gateway, 'object_in_eu').filter((name) => name.includes('/s/'));
    expect(shards).toEqual([]);
  });

  test('by the admin routes, the reports, the export and the daily run', async () => {
    for (const path of [
      `/admin/keys/${key.id}`,
      '/admin/keys',
      '/admin/status',
      `/v1/usage?from=${TODAY}`,
      `/v1/usage?from=${TODAY}&group_by=user`,
      `/v1/usage/records?from=${TODAY}`,
      '/v1/admin/users/ada/export',
    ])
      await textFrom(gateway, path);
    await textFrom(gateway, `/admin/keys/${key.id}`, { method: 'PATCH', body: '{"rpm":900}' });
    await textFrom(gateway, '/test/daily');
    const other = await makeKey(gateway, { rpm: 5 });
    await textFrom(gateway, `/admin/keys/${other.id}`, { method: 'DELETE' });
    expectAllInside([`^ledger ${other.id}$`]);
  });

  test('by kept responses: in the foreground, in the background, continued, read, cancelled and deleted', async () => {
    const post = async (path: string, body: JsonObject) =>
      jsonOf(await gateway.post(path, body, { headers: { ...key.headers, 'x-weir-user': 'ben' } }));
    const respond = (body: JsonObject) => post('/v1/responses', { model: MODEL, input: 'Hello', ...body });
    const read = async (id: string, init: RequestInit = {}) =>
      jsonOf(await gateway.fetch(`/v1/responses/${id}`, { ...init, headers: key.headers }));
    const first = textOf((await respond({ store: true })).id);
    const second = await respond({ previous_response_id: first });
    expect(second.error).toBeNull();
    const background = textOf((await respond({ background: true })).id);
    await expect.poll(async () => (await read(background)).status).toBe('completed');
    await post(`/v1/responses/${background}/cancel`, {});
    await textFrom(gateway, `/v1/responses/${first}/input_items`, { headers: key.headers });
    expect((await read(first, { method: 'DELETE' })).deleted).toBe(true);
    await expect.poll(() => recordsOf(gateway, key)).toHaveLength(5);
    // The index of what the key keeps is called by the gateway and by the response's object.
    const responses = [first, textOf(second.id), background].map((id) => `^response ${id}$`);
    expectAllInside([...responses, `^response .+${key.id}$`]);
  });

  test('by an erasure, which runs in an object and searches all others', async () => {
    const started = await gateway.fetch('/v1/admin/users/ada', { method: 'DELETE', ...ADMIN });
    expect(started.status).toBe(202);
    const id = textOf((await jsonOf(started)).id);
    await textFrom(gateway, `/test/fire?name=${encodeURIComponent(ERASURES)}`);
    await textFrom(gateway, `/v1/admin/erasures/${id}`);
    expectAllInside([/^ledger \*erasures$/]);
  });
});

test('W6 without JURISDICTION, this suite sees that objects are outside', async () => {
  await using gateway = await start({});
  await gateway.post('/admin/keys', { name: 'k', rpm: 5 }, ADMIN);
  expect(objectsIn(gateway, 'object_outside')).toContainEqual(expect.stringMatching(/^ledger /));
  expect(objectsIn(gateway, 'object_in_eu')).toEqual([]);
});

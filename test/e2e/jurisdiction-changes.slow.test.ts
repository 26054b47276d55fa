/** A `JURISDICTION` that is removed or changed after the first key, in workerd (W6). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf } from './client.ts';
import type { Gateway, Vars } from './gateway.ts';
import {
  ADMIN,
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

describe('W6 after the first key', () => {
  let gateway: Gateway;
  let key: Key;
  let isEu = true;
  const base = (vars: Vars): Vars => ({ AUTH: 'keys', LEDGER: 'object', RESPONSES: 'durable', ...vars });
  beforeAll(async () => {
    gateway = await start({ ...EU, HOLD: 'yes' });
    key = await makeKey(gateway, LIMITS);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  const spentBy = async ({ id }: Key) =>
    Number(objectOf((await jsonOf(await gateway.fetch(`/admin/keys/${id}`, ADMIN))).budget).spent);
  beforeEach(async () => {
    if (isEu) return;
    await gateway.set(base({ ...EU, HOLD: 'yes' }));
    isEu = true;
  });

  test.each<[what: string, vars: Vars]>([
    ['removed', {}],
    ['changed', { JURISDICTION: 'us' }],
  ])('a JURISDICTION that is %s: no path reaches an object, and set back, all is there', async (_, vars) => {
    const spentBefore = await spentBy(key);
    const sent = await gateway.post('/v1/chat/completions', chat(MODEL), { headers: key.headers });
    expect([sent.status, await sent.text()]).toEqual([200, expect.anything()]);
    const id = textOf(sent.headers.get('x-weir-request-id'));
    await expect.poll(() => textFrom(gateway, '/test/held')).toContain(id);
    const held = await textFrom(gateway, '/test/held');
    await expect.poll(() => spentBy(key)).toBeGreaterThan(spentBefore);
    const spent = await spentBy(key);
    await gateway.set(base({ ...vars, HOLD: 'yes', BUDGET_FAIL: 'open' }));
    isEu = false;
    const before = objectsIn(gateway, 'object_in_eu').length;
    const send = (path: string, body: JsonObject) => gateway.post(path, body, { headers: key.headers });
    const answers = {
      chat: await send('/v1/chat/completions', chat(MODEL)),
      response: await send('/v1/responses', { model: MODEL, input: 'Hello', store: true }),
      background: await send('/v1/responses', { model: MODEL, input: 'Hello', background: true }),
      create: await gateway.post('/admin/keys', { name: 'k' }, ADMIN),
      read: await gateway.fetch(`/v1/responses/resp_${'0'.repeat(32)}`, { headers: key.headers }),
      report: await gateway.fetch(`/v1/usage/records?from=${TODAY}`, ADMIN),
      erase: await gateway.fetch('/v1/admin/users/ada', { method: 'DELETE', ...ADMIN }),
      daily: await gateway.fetch('/test/daily'),
      deliver: await gateway.fetch('/test/deliver', { method: 'POST', body: held }),
    };
    const { daily, deliver, ...requests } = answers;
    for (const [name, response] of Object.entries(requests)) {
      const { code, param } = objectOf(decodeObject(await response.text())?.error);
      expect([name, response.status, code, param]).toEqual([name, 500, 'misconfigured', 'JURISDICTION']);
    }
    // The consumer takes every message: its record waits in KV.
    const messages: unknown = JSON.parse(held);
    expect([daily.status, await deliver.text()]).toEqual([
      200,
      String(Array.isArray(messages) && messages.length),
    ]);
    expect(objectsIn(gateway, 'object_outside')).toEqual([]);
    expect(objectsIn(gateway, 'object_in_eu')).toHaveLength(before);
    await gateway.set(base({ ...EU, HOLD: 'yes' }));
    isEu = true;
    // The record that the queue delivered meanwhile.
    await textFrom(gateway, '/test/deliver', { method: 'POST', body: held });
    await textFrom(gateway, '/test/daily');
    const records = await recordsOf(gateway, key);
    expect(records.filter(({ request_id }) => request_id === id)).toHaveLength(1);
    expect(await spentBy(key)).toBe(spent);
    expect((await send('/v1/chat/completions', chat(MODEL))).status).toBe(200);
    await expect.poll(() => spentBy(key)).toBeGreaterThan(spent);
    expect(objectsIn(gateway, 'object_outside')).toEqual([]);
  });
});

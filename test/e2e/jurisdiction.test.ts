/** `JURISDICTION` in workerd (W6): whatever a deployment does, each object that it makes is in the jurisdiction. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway, type Vars } from './gateway.ts';

const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
const MODEL = 'openai/gpt-4o-mini';
const ERASURES = '*erasures';
const TODAY = new Date().toISOString().slice(0, 10);
const EU: Vars = { JURISDICTION: 'eu', LOCATION_HINT: 'weur' };

const start = (vars: Vars) =>
  startGateway({
    entrypoint: 'jurisdiction-worker.ts',
    vars: { AUTH: 'keys', LEDGER: 'object', RESPONSES: 'durable', ...vars },
    bindings: {
      EU_LEDGER: { type: 'durable-object', worker: 'weir', exportName: 'EuLedger' },
      EU_RESPONSES: { type: 'durable-object', worker: 'weir', exportName: 'EuResponse' },
    },
  });

/** The objects that have been made, each as `<kind> <name>`. */
function objectsIn(gateway: Gateway, place: 'object_in_eu' | 'object_outside'): string[] {
  const lines = gateway.logs().map((line) => decodeObject(line));
  return lines.flatMap((line) => (line?.event === place ? `${line.kind} ${line.name}` : []));
}

interface Key {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function makeKey(gateway: Gateway, fields: JsonObject = {}): Promise<Key> {
  const made = await jsonOf(await gateway.post('/admin/keys', { name: 'k', ...fields }, ADMIN));
  expect(made).toHaveProperty('key');
  return { id: textOf(made.id), headers: { authorization: `Bearer ${textOf(made.key)}` } };
}

const LIMITS = {
  rpm: 1000,
  budget: { tokens: 1_000_000, per: 'day', mode: 'hard' },
  per_user: { rpm: 500, budget: { tokens: 100_000, per: 'day' } },
};

async function recordsOf(gateway: Gateway, key: Key): Promise<readonly JsonObject[]> {
  return objectsOf(
    (await jsonOf(await gateway.fetch(`/v1/usage/records?from=${TODAY}&key=${key.id}`, ADMIN))).data,
  );
}

async function textFrom(gateway: Gateway, path: string, init: RequestInit = {}): Promise<string> {
  const response = await gateway.fetch(path, { ...ADMIN, ...init });
  const text = await response.text();
  expect([response.status, text]).toEqual([expect.toSatisfy((status) => status < 300), expect.anything()]);
  return text;
}

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

test('W6 without JURISDICTION, this suite sees that objects are outside', async () => {
  await using gateway = await start({});
  await gateway.post('/admin/keys', { name: 'k', rpm: 5 }, ADMIN);
  expect(objectsIn(gateway, 'object_outside')).toContainEqual(expect.stringMatching(/^ledger /));
  expect(objectsIn(gateway, 'object_in_eu')).toEqual([]);
});

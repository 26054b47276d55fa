/** How long a gateway caches a key that it has read. */
import { expect, test } from 'vitest';
import { KEY_TTL_MS } from '../../src/auth/keys.ts';
import type { Ports } from '../../src/http/context.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { MemoryStore } from '../metering/records.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN_TOKEN = 'admin';

/** Two isolates with one store and one clock. */
class Two {
  now = Date.parse('2026-11-22T12:00:00Z');
  readonly store = new MemoryStore();
  readonly one = this.#open();
  readonly other = this.#open();

  #open(): LimitedGateway {
    const store = this.store as unknown as Ports['store'];
    const startTimer = () => () => {};
    return new LimitedGateway({}, { store, clock: { now: () => this.now, startTimer } });
  }

  async make(fields: JsonObject = {}): Promise<{ readonly id: string; readonly token: string }> {
    const response = await this.one.post('/admin/keys', ADMIN_TOKEN, { name: 'test', ...fields });
    const { id, key } = decodeObject(await response.text()) ?? {};
    return { id: textOf(id), token: textOf(key) };
  }
}

async function statusOf(sent: Promise<Response>): Promise<number> {
  const response = await sent;
  await response.text();
  return response.status;
}

test('K3 a key that was read: KV is not read again until the cache entry expires', async () => {
  const gateway = new LimitedGateway();
  const token = await gateway.key();
  for (let request = 0; request < 3; request++) expect(await statusOf(gateway.ask(token))).toBe(200);
  expect(gateway.calls.filter((call) => call === 'kv get key')).toHaveLength(1);
});

test('K3 an unknown key: KV is read each time', async () => {
  const gateway = new LimitedGateway();
  const token = `weir_${'0'.repeat(64)}`;
  for (let request = 0; request < 2; request++) expect(await statusOf(gateway.ask(token))).toBe(401);
  expect(gateway.calls.filter((call) => call === 'kv get key')).toHaveLength(2);
});

test('K3 a key that this isolate revokes: 401 at once', async () => {
  const two = new Two();
  const { one } = two;
  const { id, token } = await two.make();
  expect(await statusOf(one.ask(token))).toBe(200);
  expect(await statusOf(one.fetch(`/admin/keys/${id}`, ADMIN_TOKEN, { method: 'DELETE' }))).toBe(200);
  expect(await statusOf(one.ask(token))).toBe(401);
});

test('K3 a key that another isolate revokes: 401 when the cache entry expires', async () => {
  const two = new Two();
  const { id, token } = await two.make();
  expect(await statusOf(two.one.ask(token))).toBe(200);
  expect(await statusOf(two.other.fetch(`/admin/keys/${id}`, ADMIN_TOKEN, { method: 'DELETE' }))).toBe(200);
  two.now += KEY_TTL_MS;
  expect(await statusOf(two.one.ask(token))).toBe(401);
});

test('K3 a cached key that expires: 401', async () => {
  const two = new Two();
  const { token } = await two.make({ expires_at: new Date(two.now + 1000).toISOString() });
  expect(await statusOf(two.one.ask(token))).toBe(200);
  two.now += 1000;
  expect(await statusOf(two.one.ask(token))).toBe(401);
});

test('G8 limits that this isolate sets: apply to the next request', async () => {
  const gateway = new LimitedGateway();
  const response = await gateway.post('/admin/keys', ADMIN_TOKEN, { name: 'test' });
  const { id, key } = decodeObject(await response.text()) ?? {};
  expect(await statusOf(gateway.ask(textOf(key)))).toBe(200);
  const body = JSON.stringify({ budget: { tokens: 1 } });
  const changed = gateway.fetch(`/admin/keys/${textOf(id)}`, ADMIN_TOKEN, { method: 'PATCH', body });
  expect(await statusOf(changed)).toBe(200);
  expect(await statusOf(gateway.ask(textOf(key)))).toBe(429);
});

/** A KV namespace in which reads of keys never resolve. */
class HangingStore extends MemoryStore {
  override get(names: string | readonly string[]): Promise<unknown> {
    return String(names).startsWith('key/') ? new Promise(() => {}) : super.get(names);
  }
}

test.each([
  ['POST', '/v1/chat/completions'],
  ['GET', '/v1/models'],
])(
  'T3 a KV read of a key that never resolves: %s %s ends at the deadline, and the error names the key store',
  async (method, path) => {
    const clock = new FakeClock();
    const store = new HangingStore() as unknown as Ports['store'];
    const gateway = new LimitedGateway({ DEADLINE_SECONDS: '6' }, { store, clock });
    const sent = gateway.fetch(path, `weir_${'0'.repeat(64)}`, { method });
    // The token's digest does not depend on the fake clock.
    for (let turn = 0; turn < 40; turn++) await new Promise(setImmediate);
    clock.advance(6000);
    const response = await sent;
    expect(response.status).toBe(504);
    const { error } = decodeObject(await response.text()) ?? {};
    expect(error).toMatchObject({ code: 'timeout', type: 'timeout_error' });
    expect(textOf(objectOf(error).message)).toMatch(
      /^The key store \(WEIR_KV\) did not answer within 6 seconds/,
    );
    expect(gateway.calls).toEqual([]);
  },
);

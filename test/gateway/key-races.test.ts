/** Concurrent changes and revocations of one key, with KV alone and with the key's ledger object. */
import { describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN_TOKEN = 'admin';

/** A KV namespace whose writes of keys can be held and released in any order. */
class HeldStore extends MemoryStore {
  isHolding = false;
  /** How many of the next writes of keys fail, as KV fails a second write within a second. */
  refusals = 0;
  readonly held: { readonly call: 'put' | 'delete'; readonly release: () => void }[] = [];
  /** Attempted writes, and reads, of keys. */
  writes = 0;
  reads = 0;

  override async get(names: string | readonly string[]): Promise<unknown> {
    const read = await super.get(names);
    if (String(names).startsWith('key/')) this.reads++;
    return read;
  }

  override async put(...entry: Parameters<MemoryStore['put']>): Promise<void> {
    await this.#pass('put', entry[0]);
    return super.put(...entry);
  }

  override async delete(name: string): Promise<void> {
    await this.#pass('delete', name);
    return super.delete(name);
  }

  async #pass(call: 'put' | 'delete', name: string): Promise<void> {
    if (!name.startsWith('key')) return;
    this.writes++;
    if (this.refusals > 0) {
      this.refusals--;
      throw new Error('KV PUT failed: 429 Too Many Requests');
    }
    if (this.isHolding) await new Promise<void>((release) => this.held.push({ call, release }));
  }

  releaseAll(): void {
    this.isHolding = false;
    for (const { release } of this.held.splice(0)) release();
  }
}

class Keys {
  readonly store = new HeldStore();
  readonly gateway: LimitedGateway;
  id = '';
  token = '';

  private constructor(settings: JsonObject) {
    const ports = { store: this.store as unknown as GatewayPorts['store'] };
    this.gateway = new LimitedGateway(settings, ports);
  }

  static async open(settings: JsonObject = {}): Promise<Keys> {
    const keys = new Keys(settings);
    const made = await keys.gateway.post('/admin/keys', ADMIN_TOKEN, { name: 'before' });
    const { id, key } = decodeObject(await made.text()) ?? {};
    keys.id = textOf(id);
    keys.token = textOf(key);
    return keys;
  }

  async patch(body: JsonObject): Promise<number> {
    const init = { method: 'PATCH', body: JSON.stringify(body) };
    return (await this.gateway.fetch(`/admin/keys/${this.id}`, ADMIN_TOKEN, init)).status;
  }

  async revoke(): Promise<number> {
    return (await this.gateway.fetch(`/admin/keys/${this.id}`, ADMIN_TOKEN, { method: 'DELETE' })).status;
  }

  async listed(): Promise<JsonObject[]> {
    const answer = await this.gateway.fetch('/admin/keys', ADMIN_TOKEN);
    return objectsOf(decodeObject(await answer.text())?.data);
  }

  /** The status of a request with the key. */
  async use(): Promise<number> {
    return (await this.gateway.ask(this.token)).status;
  }
}

/** Resolves when the condition is true. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

describe.each<[where: string, settings: JsonObject]>([
  ['KV alone', { WEIR_LEDGER: undefined }],
  ["the key's object", {}],
])('with %s', (_, settings) => {
  test('K2 a revoked key stays revoked when a PATCH that began before the DELETE writes after it', async () => {
    const keys = await Keys.open(settings);
    keys.store.isHolding = true;
    const patched = keys.patch({ name: 'after' });
    await until(() => keys.store.held.length === 1);
    const [late] = keys.store.held.splice(0);
    keys.store.isHolding = false;
    const revoked = keys.revoke();
    await until(() => !keys.store.entries.has(`key/${keys.id}`));
    late?.release();
    await patched;
    expect(await revoked).toBe(200);
    expect(await keys.use()).toBe(401);
    expect(await keys.listed()).toEqual([]);
    expect(await keys.patch({ name: 'again' })).toBe(404);
    expect(await keys.revoke()).toBe(404);
  });

  test('K2 a revoked key stays revoked when KV takes the writes of PATCH and DELETE in any order', async () => {
    for (const isReversed of [false, true]) {
      const keys = await Keys.open(settings);
      keys.store.isHolding = true;
      const answers = [keys.patch({ name: 'after' }), keys.revoke()];
      await until(() => keys.store.held.length === 2);
      const late = keys.store.held.splice(0);
      keys.store.isHolding = false;
      for (const { release } of late.sort((a, b) => (a.call < b.call === isReversed ? 1 : -1))) {
        release();
        await new Promise(setImmediate);
      }
      await Promise.all(answers);
      expect([await keys.use(), await keys.listed()]).toEqual([401, []]);
    }
  });
});

describe('K2 changes of one key in its object', () => {
  test('two PATCHes at once: neither loses the other', async () => {
    const keys = await Keys.open();
    keys.store.isHolding = true;
    const answers = [keys.patch({ models: ['openai/*'] }), keys.patch({ name: 'renamed' })];
    await until(() => keys.store.reads === 2 && keys.store.held.length > 0);
    keys.store.releaseAll();
    expect(await Promise.all(answers)).toEqual([200, 200]);
    expect(await keys.listed()).toMatchObject([{ name: 'renamed', models: ['openai/*'] }]);
  });

  test('many PATCHes at once: KV is written twice at most, and has the last value of each field', async () => {
    const keys = await Keys.open();
    keys.store.writes = 0;
    keys.store.isHolding = true;
    const answers: Promise<number>[] = [];
    for (let at = 0; at < 20; at++) {
      answers.push(keys.patch({ name: `name ${at}`, rpm: at + 1 }));
      // Checking the token ends in any order: the next one is sent when the object has this one.
      await until(() => keys.gateway.calls.filter((call) => call === 'changeKey').length === at + 1);
    }
    await new Promise(setImmediate);
    keys.store.releaseAll();
    await Promise.all(answers);
    expect(keys.store.writes).toBeLessThanOrEqual(2);
    expect(await keys.listed()).toMatchObject([{ name: 'name 19', rpm: 20 }]);
  });

  test('a write that KV refuses as the second one within a second is repeated', async () => {
    const keys = await Keys.open();
    keys.store.refusals = 2;
    expect(await keys.patch({ name: 'renamed' })).toBe(200);
    expect(await keys.listed()).toMatchObject([{ name: 'renamed' }]);
  });

  test('a KV that refuses every write: 503, and a repeated PATCH is written', async () => {
    const keys = await Keys.open();
    keys.store.refusals = 6;
    expect(await keys.patch({ name: 'renamed' })).toBe(503);
    expect(await keys.patch({ name: 'renamed' })).toBe(200);
    expect(await keys.listed()).toMatchObject([{ name: 'renamed' }]);
  });

  test('two PATCHes that are small enough alone but not together: the second one is refused', async () => {
    const keys = await Keys.open();
    expect(await keys.patch({ models: ['m'.repeat(800)] })).toBe(200);
    expect(await keys.patch({ name: 'n'.repeat(100) })).toBe(400);
    expect(await keys.patch({ rpm: 5 })).toBe(400);
    expect(await keys.listed()).toMatchObject([{ name: 'before' }]);
    expect((await keys.listed())[0]).not.toHaveProperty('rpm');
  });

  test('an unreachable object: a PATCH gets 503 and changes nothing, a DELETE revokes the key', async () => {
    const keys = await Keys.open();
    keys.gateway.trouble = 'fails';
    expect(await keys.patch({ name: 'renamed' })).toBe(503);
    expect(await keys.listed()).toMatchObject([{ name: 'before' }]);
    expect(await keys.revoke()).toBe(200);
    expect(await keys.use()).toBe(401);
  });
});

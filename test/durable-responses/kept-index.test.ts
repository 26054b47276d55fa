/** What an owner may keep: the index of a key with a clock that tests move, and its limits through the gateway in memory. */
import { describe, expect, test } from 'vitest';
import { KeptIndex } from '../../src/durable-responses/kept-index.ts';
import { indexName } from '../../src/durable-responses/response-calls.ts';
import { NO_HOOKS } from '../../src/http/hooks.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from '../gateway/limited-gateway.ts';
import { seeded } from '../random.ts';
// For streams, whose classes only workerd has.
import '../gateway/upstreams.ts';
import { MemoryResponses } from './memory-responses.ts';
import { MemoryStorage } from './memory-storage.ts';

const HOUR_MS = 3_600_000;

class Fixture {
  now = 1_000_000;
  readonly storage = new MemoryStorage();
  index = this.open();

  /** A new instance of the object over the same storage. */
  open(): KeptIndex {
    this.index = new KeptIndex({
      sql: this.storage,
      transaction: (write) => this.storage.transaction(write),
      now: () => this.now,
      setAlarm: async (at) => {
        this.storage.alarm = at;
      },
      getAlarm: async () => this.storage.alarm,
      deleteAll: async () => this.storage.clear(),
    });
    return this.index;
  }

  async claim(id: string, { owner = 'k', user = null as string | null, bytes = 10, ms = HOUR_MS } = {}) {
    const limits = { responses: 3, bytes: 100 };
    const { kind } = await this.index.claim({ id, owner, user, bytes, expiresAt: this.now + ms, limits });
    return kind;
  }
}

describe('X11 the index of a key', () => {
  test('has room for as many responses and bytes as the owner may keep; another owner has its own', async () => {
    const fixture = new Fixture();
    const kinds = [];
    for (const id of ['a', 'b', 'c', 'd']) kinds.push(await fixture.claim(id));
    expect(kinds).toEqual(['claimed', 'claimed', 'claimed', 'full']);
    expect(fixture.index.sums('k')).toEqual({ responses: 3, bytes: 30 });
    expect(await fixture.claim('e', { owner: 'k other', bytes: 100 })).toBe('claimed');
    expect(await fixture.claim('f', { owner: 'k other', bytes: 1 })).toBe('full');
    expect(fixture.index.sums('k')).toEqual({ responses: 3, bytes: 30 });
  });

  test('a repeated claim, release or end changes nothing, and neither does the end of a deleted response', async () => {
    const fixture = new Fixture();
    for (let n = 0; n < 2; n++) expect(await fixture.claim('a', { bytes: 50 })).toBe('claimed');
    const settled = { id: 'a', bytes: 20, expiresAt: fixture.now + HOUR_MS };
    for (let n = 0; n < 2; n++) fixture.index.settle(settled);
    expect(fixture.index.sums('k')).toEqual({ responses: 1, bytes: 20 });
    for (let n = 0; n < 2; n++) fixture.index.release('a');
    fixture.index.settle(settled);
    expect(fixture.index.sums('k')).toEqual({ responses: 0, bytes: 0 });
  });

  test('what has expired takes no room, also if the alarm is late; the alarm deletes it, and at last everything', async () => {
    const fixture = new Fixture();
    for (const id of ['a', 'b', 'c']) await fixture.claim(id, { ms: id === 'c' ? 5 * HOUR_MS : HOUR_MS });
    fixture.now += HOUR_MS;
    expect(fixture.open().sums('k')).toEqual({ responses: 1, bytes: 10 });
    expect(await fixture.claim('d', { ms: HOUR_MS })).toBe('claimed');
    for (let n = 0; n < 20 && fixture.storage.alarm !== null; n++) {
      fixture.now = fixture.storage.alarm;
      fixture.storage.alarm = null;
      await fixture.open().alarm();
    }
    expect(fixture.now).toBeLessThan(1_000_000 + 10 * HOUR_MS);
    expect(fixture.storage.tables).toBe(0);
    expect(await fixture.claim('e')).toBe('claimed');
  });

  test('reading what was never there stores nothing', async () => {
    const fixture = new Fixture();
    fixture.index.release('a');
    await fixture.index.alarm();
    expect([fixture.index.sums('k'), fixture.index.ofUser(['ada'], [], '')]).toEqual([
      { responses: 0, bytes: 0 },
      [],
    ]);
    expect(fixture.storage.tables).toBe(0);
  });

  test('rows of a later version are neither counted nor deleted', async () => {
    const fixture = new Fixture();
    await fixture.claim('a');
    fixture.storage.exec('UPDATE kept_sums SET version = 2');
    fixture.now += 2 * HOUR_MS;
    await expect(fixture.claim('b')).rejects.toThrow('version 2');
    expect(() => fixture.open().sums('k')).toThrow('version 2');
    await fixture.index.alarm();
    expect(fixture.storage.exec('SELECT id FROM kept').toArray()).toHaveLength(1);
    expect(await fixture.claim('c', { owner: 'other' })).toBe('claimed');
  });

  test('lists the responses of a user', async () => {
    const fixture = new Fixture();
    await fixture.claim('b', { user: 'ada' });
    await fixture.claim('a', { user: 'ada', owner: 'k other' });
    await fixture.claim('c', { user: 'ben' });
    const ids = (...query: Parameters<KeptIndex['ofUser']>) =>
      fixture.index.ofUser(...query).map(({ id }) => id);
    expect(fixture.index.ofUser(['ada'], [], '')).toEqual([
      { id: 'a', owner: 'k other' },
      { id: 'b', owner: 'k' },
    ]);
    expect(ids(['ada'], [], 'a')).toEqual(['b']);
    expect(ids(['nobody'], ['k other'], '')).toEqual(['a']);
    // An expired row has the name until it is swept.
    fixture.now += HOUR_MS;
    expect(ids(['ben'], [], '')).toEqual(['c']);
  });

  test('the sums are those of the rows after any sequence of calls', async () => {
    const random = seeded(7);
    const dice = (max: number) => Math.floor(random() * max);
    const fixture = new Fixture();
    await fixture.claim('first');
    for (let n = 0; n < 2000; n++) {
      const id = String(dice(12));
      const owner = `k${dice(3)}`;
      const act = dice(6);
      if (act < 3) await fixture.claim(id, { owner, bytes: dice(60), ms: dice(HOUR_MS) });
      else if (act === 3) fixture.index.release(id);
      else if (act === 4)
        fixture.index.settle({ id, bytes: dice(90), expiresAt: fixture.now + dice(HOUR_MS) });
      else fixture.now += dice(HOUR_MS / 8);
      const sums = fixture.index.sums(owner);
      const [row] = fixture.storage
        .exec<{ responses: number; bytes: number | null }>(
          'SELECT count(*) AS responses, sum(bytes) AS bytes FROM kept WHERE owner = ? AND expires_at > ?',
          owner,
          fixture.now,
        )
        .toArray();
      expect(sums).toEqual({ responses: row?.responses, bytes: row?.bytes ?? 0 });
      expect(sums.responses).toBeLessThanOrEqual(3);
    }
  });
});

const ANSWER = {
  id: 'resp_up',
  object: 'response',
  status: 'completed',
  model: 'gpt-4o-mini',
  output: [
    { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
  ],
  usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
};

class Owner {
  readonly responses = new MemoryResponses();
  readonly gateway: LimitedGateway;

  /** The host fixes the key and the user that a token names, as `key:ada`. */
  constructor(settings: JsonObject = {}) {
    const onRequest = ({ headers }: Request) => {
      const [id, user] = (headers.get('authorization') ?? '').replace('Bearer ', '').split(':');
      return id === 'admin' ? undefined : { id, user };
    };
    this.gateway = new LimitedGateway(
      { RESPONSES: 'durable', WEIR_RESPONSES: this.responses as never, ...settings },
      { fetch: async () => Response.json(ANSWER) },
      { ...NO_HOOKS, onRequest },
    );
  }

  async create(fields: JsonObject = {}, token = 'host'): Promise<JsonObject> {
    const body = { model: 'openai/gpt-4o-mini', input: 'Hello', ...fields };
    const response = await this.gateway.post('/v1/responses', token, body);
    const made = decodeObject(await response.text()) ?? {};
    await this.gateway.idle();
    const { status, headers } = response;
    return { ...made, status, shouldRetry: headers.get('x-should-retry') };
  }

  async kept(token = 'host'): Promise<JsonObject> {
    const response = await this.gateway.fetch('/v1/key', token);
    return objectOf(decodeObject(await response.text())?.kept);
  }

  async usedResponses(token?: string): Promise<unknown> {
    return objectOf((await this.kept(token)).responses).used;
  }
}

describe('X11 what an owner may keep', () => {
  test('the last response that fits is kept; the next one says store: false, and its reason is logged', async () => {
    const owner = new Owner({ KEPT_RESPONSES: '2' });
    const made = [];
    for (let n = 0; n < 3; n++) made.push(await owner.create());
    expect(made.map(({ store }) => store)).toEqual([true, true, false]);
    expect((await owner.gateway.fetch(`/v1/responses/${textOf(made[2]?.id)}`, 'host')).status).toBe(404);
    const [logged] = owner.gateway.logged.filter(({ event }) => event === 'response_not_stored');
    expect(logged?.reason).toContain('KEPT_RESPONSES');
    // A deletion makes room.
    const path = `/v1/responses/${textOf(made[0]?.id)}`;
    expect((await owner.gateway.fetch(path, 'host', { method: 'DELETE' })).status).toBe(200);
    await owner.gateway.idle();
    expect(await owner.usedResponses()).toBe(1);
    expect((await owner.create()).store).toBe(true);
  });

  test('KEPT_BYTES counts input and events', async () => {
    const owner = new Owner({ KEPT_BYTES: '20000' });
    expect((await owner.create({ input: 'x'.repeat(9800) })).store).toBe(true);
    const { used, limit, remaining } = objectOf((await owner.kept()).bytes);
    expect([limit, Number(used) > 9800, Number(remaining) + Number(used)]).toEqual([20000, true, 20000]);
    expect((await owner.create({ input: 'x'.repeat(9800) })).store).toBe(false);
    expect(await owner.usedResponses()).toBe(1);
  });

  test.each([
    ['', {}],
    [', with what it continues', { previous: true }],
  ])(
    'a background request beyond it%s is a 429 that is not retried, and starts nothing',
    async (_, {
      previous,
    }: {
      previous?: boolean;
    }) => {
      const owner = new Owner({ KEPT_RESPONSES: '1' });
      const first = await owner.create();
      owner.responses.calls.length = 0;
      const continued = previous === true ? { previous_response_id: textOf(first.id) } : {};
      const refused = await owner.create({ background: true, ...continued });
      expect(refused.status).toBe(429);
      expect(objectOf(refused.error)).toMatchObject({
        code: 'kept_limit_reached',
        type: 'insufficient_quota',
      });
      expect(refused.shouldRetry).toBe('false');
      const calls = owner.responses.calls.map((call) => call.split(' ')[0]);
      expect(calls).toEqual(previous === true ? ['conversation', 'claimKept'] : ['claimKept']);
    },
  );

  test('a background request that is refused, or too large to be sent, gives its place back', async () => {
    const owner = new Owner({ MAX_REQUEST_BYTES: String(64 * 1024 * 1024) });
    owner.responses.startRefusal = 403;
    expect((await owner.create({ background: true })).status).toBe(403);
    const large = { background: true, input: 'x'.repeat(16 * 1024 * 1024) };
    expect((await owner.create(large)).status).toBe(413);
    expect(await owner.usedResponses()).toBe(0);
    const claims = owner.responses.calls.filter((call) => call.startsWith('claimKept'));
    expect(claims).toHaveLength(2);
  });

  test('one whose start failed keeps its place, because it may have started', async () => {
    const owner = new Owner();
    expect((await owner.create({ background: true })).status).toBe(503);
    expect(await owner.usedResponses()).toBe(1);
  });

  test('a response that could not be stored takes no place', async () => {
    const owner = new Owner();
    owner.responses.putError = new Error('The object is gone');
    expect((await owner.create()).store).toBe(false);
    expect(await owner.usedResponses()).toBe(0);
  });

  test('an index that does not answer stores nothing, and a background request is a 503', async () => {
    const owner = new Owner();
    owner.responses.resets = 2;
    expect((await owner.create()).store).toBe(false);
    owner.responses.resets = 2;
    expect((await owner.create({ background: true })).status).toBe(503);
  });

  test('each user whom the host fixes has its own; GET /v1/key shows it with the defaults', async () => {
    const owner = new Owner();
    await owner.create({}, 'host:ada');
    expect(await owner.kept('host:ada')).toMatchObject({
      responses: { limit: 100_000, used: 1, remaining: 99_999 },
      bytes: { limit: 10 * 1024 ** 3 },
    });
    expect(await owner.usedResponses('host:ben')).toBe(0);
    // One index for both.
    const indexes = new Set(owner.responses.calls.filter((call) => call.startsWith('claimKept')));
    expect(indexes.size).toBe(1);
  });

  test('with AUTH=open all callers share one', async () => {
    const responses = new MemoryResponses();
    const gateway = new LimitedGateway(
      { AUTH: 'open', RESPONSES: 'durable', WEIR_RESPONSES: responses as never, KEPT_RESPONSES: '1' },
      { fetch: async () => Response.json(ANSWER) },
    );
    const stored = [];
    for (const user of ['ada', 'ben']) {
      const body = { model: 'openai/gpt-4o-mini', input: 'Hello', user };
      const response = await gateway.post('/v1/responses', '', body);
      stored.push(decodeObject(await response.text())?.store);
    }
    expect(stored).toEqual([true, false]);
  });

  test.each([
    ['plain', 'ada'],
    ['off', null],
  ])('with USERS=%s the index has the user as usage records have it', async (USERS, stored) => {
    const owner = new Owner({ USERS });
    await owner.create({ user: 'ada' });
    const { storage } = owner.responses.indexOf(indexName('host_host'));
    expect(storage.exec<{ user: string | null }>('SELECT user FROM kept').toArray()).toEqual([
      { user: stored },
    ]);
  });

  test('where nothing is kept, GET /v1/key has no such field', async () => {
    const gateway = new LimitedGateway({ AUTH: 'open' });
    const key = decodeObject(await (await gateway.fetch('/v1/key', '')).text()) ?? {};
    expect(Object.keys(key)).not.toContain('kept');
  });
});

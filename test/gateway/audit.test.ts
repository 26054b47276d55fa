/** The audit (K5): each change of a key, by whom, from what to what, in `GET /admin/audit`, in the log and in KV. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { requestId } from '../../src/metering/time.ts';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { ACCESS_HEADER, AccessTeam, AUDIENCE } from '../attribution/access-team.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';

const ADMIN = 'admin';

/** Keeps how long each entry is to be kept, and refuses writes below `refused`. */
class WatchedStore extends MemoryStore {
  readonly seconds = new Map<string, number | undefined>();
  refused = 'nothing';

  override async put(
    name: string,
    value: string,
    options?: { readonly metadata?: unknown; readonly expirationTtl?: number },
  ): Promise<void> {
    if (name.startsWith(this.refused)) throw new Error('KV PUT failed: 429 Too Many Requests');
    this.seconds.set(name, options?.expirationTtl);
    return super.put(name, value, options);
  }
}

class Audited {
  readonly store = new WatchedStore();
  readonly gateway: LimitedGateway;
  /** Each reading is later than the one before, as entries of one ms have no order. */
  #now = Date.now();

  constructor(settings: JsonObject = {}, ports: Partial<GatewayPorts> = {}) {
    const store = this.store as unknown as GatewayPorts['store'];
    const clock = { now: () => ++this.#now, startTimer: () => () => {} };
    this.gateway = new LimitedGateway(settings, { store, clock, ...ports });
  }

  async call(method: string, path: string, body?: JsonObject): Promise<JsonObject> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await this.gateway.fetch(path, ADMIN, init);
    return { status: response.status, ...decodeObject(await response.text()) };
  }

  async create(body: JsonObject): Promise<string> {
    return textOf((await this.call('POST', '/admin/keys', body)).id);
  }

  async entries(query = ''): Promise<JsonObject[]> {
    return objectsOf((await this.call('GET', `/v1/admin/audit${query}`)).data);
  }

  logged(event: string): readonly Readonly<Record<string, unknown>>[] {
    return this.gateway.logged.filter((entry) => entry.event === event);
  }
}

describe.each<[where: string, settings: JsonObject]>([
  ['KV alone', { WEIR_LEDGER: undefined }],
  ["the key's object", {}],
])('K5 with %s', (_, settings) => {
  test('a key that is created, changed and revoked: three entries, the latest first, with what differs', async () => {
    const before = new Date().toISOString();
    const audited = new Audited(settings);
    const id = await audited.create({ name: 'team a', models: ['openai/*'] });
    await audited.call('PATCH', `/admin/keys/${id}`, { name: 'team b', models: null });
    await audited.call('DELETE', `/admin/keys/${id}`);
    const [revoked, changed, created, ...others] = await audited.entries();
    expect(others).toEqual([]);
    expect(created).toMatchObject({ action: 'key_created', key_id: id, actor: 'admin token', before: null });
    expect(created?.after).toMatchObject({ name: 'team a', models: ['openai/*'], expires_at: null });
    expect(changed).toMatchObject({
      ...{ action: 'key_changed', key_id: id },
      before: { name: 'team a', models: ['openai/*'] },
      after: { name: 'team b', models: null },
    });
    expect(Object.keys(changed?.after ?? {})).toEqual(['name', 'models']);
    expect(revoked).toMatchObject({ action: 'key_revoked', before: { name: 'team b' }, after: null });
    expect(textOf(created?.time) >= before && textOf(created?.time) <= textOf(revoked?.time)).toBe(true);
    for (const entry of [created, changed, revoked]) {
      const { id: request_id, action, time: ___, ...rest } = entry ?? {};
      expect(audited.logged(textOf(action))).toEqual([{ event: action, request_id, ...rest }]);
    }
  });

  test('a revoked key is listed as revoked, with its name', async () => {
    const audited = new Audited(settings);
    const id = await audited.create({ name: 'brief' });
    const other = await audited.create({ name: 'stays' });
    await audited.call('DELETE', `/admin/keys/${id}`);
    const { data, revoked } = await audited.call('GET', '/admin/keys');
    expect(data).toMatchObject([{ id: other }]);
    expect(revoked).toMatchObject([{ id, name: 'brief', revoked_at: expect.stringMatching(/^2.*Z$/) }]);
  });
});

describe('K5', () => {
  test('a changed budget: from what to what, and the limits that it removes', async () => {
    const audited = new Audited();
    const id = await audited.create({ name: 'a', budget: { USD: 5, per: 'month' }, rpm: 60 });
    await audited.call('PATCH', `/admin/keys/${id}`, { budget: { USD: 50, per: 'month' } });
    await audited.call('PUT', `/admin/keys/${id}/limits`, { rpm: 10 });
    await audited.call('DELETE', `/admin/keys/${id}/limits`);
    const [removed, replaced, raised] = await audited.entries();
    const budget = (USD: number) => ({ USD, per: 'month', mode: 'hard' });
    expect(raised).toMatchObject({ before: { budget: budget(5) }, after: { budget: budget(50) } });
    expect(replaced).toMatchObject({
      ...{ before: { budget: budget(50), rpm: 60 }, after: { budget: null, rpm: 10 } },
    });
    expect(removed).toMatchObject({ before: { rpm: 10 }, after: { rpm: null } });
  });

  test('G8 what is added to a budget: one entry for each id, who added it for the admin, and the raised limit for the key', async () => {
    const audited = new Audited();
    const made = await audited.call('POST', '/admin/keys', { name: 'a', budget: { USD: 5, per: 'month' } });
    const id = textOf(made.id);
    const add = (body: JsonObject) => audited.call('POST', `/v1/admin/keys/${id}/budget`, body);
    const shown = await add({ add: { USD: 2.5 }, id: 'launch', note: 'launch week' });
    const added = {
      id: 'launch',
      actor: 'admin token',
      add: { USD: 2.5 },
      per: 'month',
      note: 'launch week',
    };
    expect(shown).toMatchObject({
      status: 200,
      limits: { budget: { USD: 5 } },
      budget: { limit: 7.5, added: 2.5 },
      top_ups: [added],
    });
    expect(await add({ add: { USD: 2.5 }, id: 'launch' })).toMatchObject({ budget: { limit: 7.5 } });
    const [entry, ...others] = await audited.entries();
    expect(entry).toMatchObject({ action: 'budget_added', key_id: id, before: null, after: added });
    expect(others).toMatchObject([{ action: 'key_created' }]);
    expect(audited.logged('budget_added')).toMatchObject([
      { key_id: id, actor: 'admin token', after: added },
    ]);
    const own = await audited.gateway.fetch('/v1/key', textOf(made.key));
    const { top_ups, budget } = decodeObject(await own.text()) ?? {};
    expect([top_ups, budget]).toMatchObject([undefined, { limit: 7.5, added: 2.5 }]);
  });

  test.each<[what: string, body: JsonObject, param: string]>([
    ['no amount', {}, 'add'],
    ['an amount of 0', { add: { USD: 0 } }, 'add'],
    ['two amounts', { add: { USD: 1, tokens: 1 } }, 'add'],
    ['an unknown period', { add: { USD: 1 }, per: 'year' }, 'per'],
    ['another unit', { add: { tokens: 1 } }, 'add'],
    ['a long id', { add: { USD: 1 }, id: 'x'.repeat(65) }, 'id'],
    ['a long note', { add: { USD: 1 }, note: 'x'.repeat(201) }, 'note'],
    ['an unknown field', { add: { USD: 1 }, amount: 1 }, 'amount'],
  ])('G8 %s adds nothing to a budget, and has no entry', async (_, body, param) => {
    const audited = new Audited();
    const id = await audited.create({ name: 'a', budget: { USD: 5, per: 'month' } });
    const refused = await audited.call('POST', `/v1/admin/keys/${id}/budget`, body);
    expect(refused).toMatchObject({ status: 400, error: { param } });
    expect(await audited.entries()).toHaveLength(1);
    const { budget } = await audited.call('GET', `/admin/keys/${id}`);
    expect(budget).toMatchObject({ limit: 5 });
  });

  test('a change whose first answer was lost has an entry, although the object has made it before', async () => {
    const audited = new Audited();
    const id = await audited.create({ name: 'before' });
    // The object takes the change, and KV refuses it.
    audited.store.refused = 'key-change/';
    expect((await audited.call('PATCH', `/admin/keys/${id}`, { name: 'after' })).status).toBe(503);
    audited.store.refused = 'nothing';
    expect((await audited.call('PATCH', `/admin/keys/${id}`, { name: 'after' })).status).toBe(200);
    expect((await audited.entries())[0]).toMatchObject({
      before: { name: 'before' },
      after: { name: 'after' },
    });
  });

  test('what is refused, and what changes nothing, has no entry', async () => {
    const audited = new Audited();
    const id = await audited.create({ name: 'a' });
    await audited.call('PATCH', `/admin/keys/${id}`, { name: 'a' });
    await audited.call('PATCH', `/admin/keys/${id}`, { name: '' });
    await audited.call('PATCH', '/admin/keys/0123456789abcdef', { name: 'b' });
    await audited.call('DELETE', '/admin/keys/0123456789abcdef');
    expect(await audited.entries()).toMatchObject([{ action: 'key_created' }]);
  });

  test('no entry and no line has the token, its hash or the admin token', async () => {
    const audited = new Audited();
    const made = await audited.call('POST', '/admin/keys', { name: 'a' });
    await audited.call('PATCH', `/admin/keys/${textOf(made.id)}`, { name: 'b' });
    await audited.call('DELETE', `/admin/keys/${textOf(made.id)}`);
    const kept = [...audited.store.entries].filter(([name]) => /^(audit|revoked-key)\//.test(name));
    expect(kept).toHaveLength(4);
    const all = JSON.stringify([kept, audited.gateway.logged]);
    expect(all).not.toContain(textOf(made.key).slice(5));
    expect(all).not.toMatch(/[0-9a-f]{64}/);
  });

  test.each([
    ['hash', /^h_[0-9a-f]{24}$/],
    ['off', null],
  ])('with USERS=%s the user of a key stands there as in records', async (USERS, form) => {
    const audited = new Audited({ USERS, USER_HASH_KEY: 'a secret of 16 characters' });
    await audited.create({ name: 'a', user: 'ada@example.com' });
    const [created] = await audited.entries();
    const { user } = decodeObject(JSON.stringify(created?.after)) ?? {};
    if (form === null) expect(user).toBeNull();
    else expect(user).toMatch(form);
    expect(JSON.stringify(audited.gateway.logged)).not.toContain('ada@');
  });

  test('entries and names of revoked keys are kept for 400 days', async () => {
    const audited = new Audited();
    await audited.call('DELETE', `/admin/keys/${await audited.create({ name: 'a' })}`);
    const kept = [...audited.store.seconds].filter(([name]) => /^(audit|revoked-key)\//.test(name));
    expect(kept.map(([, seconds]) => seconds)).toEqual([1, 2, 3].map(() => 400 * 86_400));
  });

  test.each(['audit/', 'revoked-key/'])(
    'where KV refuses %s: the key is revoked, and the log says so',
    async (name) => {
      const audited = new Audited();
      const id = await audited.create({ name: 'a' });
      audited.store.refused = name;
      expect((await audited.call('DELETE', `/admin/keys/${id}`)).status).toBe(200);
      expect((await audited.call('GET', '/admin/keys')).data).toEqual([]);
      expect(audited.logged('key_revoked')).toMatchObject([{ key_id: id, before: { name: 'a' } }]);
      expect(audited.logged('audit_not_stored')).toMatchObject([{ key_id: id }]);
    },
  );
});

describe('GET /admin/audit', () => {
  test('pages: each entry once, also of one key, over several listings of KV', async () => {
    let now = Date.parse('2026-11-23T12:00:00Z');
    // Several changes in each ms.
    const tick = () => {
      now += 0.4;
      return Math.floor(now);
    };
    const clock = { now: tick, startTimer: () => () => {} };
    const audited = new Audited({}, { clock });
    const one = await audited.create({ name: 'one' });
    const two = await audited.create({ name: 'two' });
    for (let at = 0; at < 12; at++)
      await audited.call('PATCH', `/admin/keys/${at % 3 === 0 ? one : two}`, { name: `name ${at}` });
    const pages = async (query: string) => {
      const found: JsonObject[] = [];
      for (let cursor = ''; ; ) {
        const page = await audited.call('GET', `/admin/audit?limit=3${query}${cursor}`);
        const data = objectsOf(page.data);
        expect(data.length).toBe(page.has_more === true ? 3 : Math.min(data.length, 3));
        found.push(...data);
        if (page.next_cursor === null) return found;
        cursor = `&cursor=${textOf(page.next_cursor)}`;
      }
    };
    const all = await pages('');
    expect(all).toEqual(await audited.entries());
    expect(new Set(all.map(({ id }) => id)).size).toBe(14);
    expect(all.map(({ time }) => textOf(time))).toEqual(
      all
        .map(({ time }) => textOf(time))
        .sort()
        .reverse(),
    );
    const ofOne = all.filter(({ key_id }) => key_id === one);
    expect(ofOne).toHaveLength(5);
    expect(await pages(`&key=${one}`)).toEqual(ofOne);
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['cursor=x', 'cursor'],
    [`cursor=${encodeURIComponent('../x')}`, 'cursor'],
    ['key=a%20b', 'key'],
  ])('%s: 400 that names the parameter', async (query, param) => {
    const { status, error } = await new Audited().call('GET', `/admin/audit?${query}`);
    expect([status, decodeObject(JSON.stringify(error))?.param]).toEqual([400, param]);
  });

  test('a cursor of an entry that is gone continues after its place', async () => {
    const audited = new Audited();
    await audited.create({ name: 'a' });
    const later = requestId(Date.now() + 1000, crypto.randomUUID());
    const earlier = requestId(Date.now() - 1000, crypto.randomUUID());
    expect(await audited.entries(`?cursor=${later}`)).toHaveLength(1);
    expect(await audited.entries(`?cursor=${earlier}`)).toHaveLength(0);
  });

  test('without the admin token, and with a gateway key: 401', async () => {
    const { gateway } = new Audited();
    for (const token of ['', 'wrong', await gateway.key()])
      expect((await gateway.fetch('/admin/audit', token)).status).toBe(401);
  });

  test('beside a site without a base path: only below /v1', async () => {
    const { gateway } = new Audited({ ORIGIN: 'https://www.example.com' });
    expect((await gateway.fetch('/v1/admin/audit', ADMIN)).status).toBe(200);
    expect((await gateway.fetch('/admin/audit', ADMIN)).status).toBe(404);
  });
});

describe('the actor', () => {
  const clock = { now: () => Date.now(), startTimer: () => () => {} };
  let team: AccessTeam;
  beforeAll(async () => {
    team = await AccessTeam.start();
  });
  afterAll(() => team[Symbol.asyncDispose]());

  test.each<[string, JsonObject, string]>([
    ['a user', { email: 'Ada@example.com' }, 'ada@example.com'],
    ['a service token', { email: undefined, common_name: 'ci.access' }, 'ci.access'],
  ])('is the name at Cloudflare Access of %s', async (_, claims, actor) => {
    const settings = {
      ...{ ACCESS_TEAM_DOMAIN: team.url, ACCESS_AUD: AUDIENCE },
      ACCESS_ADMINS: 'ada@example.com, ci.access',
    };
    const audited = new Audited(settings, { clock, fetch: (input, init) => fetch(input, init) });
    const { gateway } = audited;
    const headers = { [ACCESS_HEADER]: team.token(claims), 'content-type': 'application/json' };
    const made = await gateway.post('/admin/keys', '', { name: 'a' }, { headers });
    expect(made.status).toBe(201);
    expect(await audited.entries()).toMatchObject([{ actor }]);
  });
});

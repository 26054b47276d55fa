/**
 * Many requests of one key from five regions, in workerd, against an independent sum: records, reports and budgets (L10).
 * REQUESTS=20000 sends more.
 */
import { expect, test } from 'vitest';
import { cpuMs } from '../../../bench/load/accounting.ts';
import { LEASE_MS } from '../../../src/ledger/limits/parent-lease.ts';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Key, type Limited, startLimited } from '../limits/limited.ts';
import { workerdIds } from '../processes.ts';
import { ALERT_SECRET, startReceiver } from './alert-receiver.ts';

const REQUESTS = Number(process.env.REQUESTS ?? 500);
const REGIONS = ['EU', 'EU', 'EU', 'NA', 'NA', 'AS', 'SA', 'OC'];
const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
/** The names of users. */
const USERS = ['ada', 'ben', 'cy'];

interface Sent {
  readonly id: string;
  readonly user: string;
}

class Run implements AsyncDisposable {
  readonly limited: Limited;
  readonly sent: Sent[] = [];

  private constructor(limited: Limited) {
    this.limited = limited;
  }

  static async start(vars: Readonly<Record<string, string>>): Promise<Run> {
    const entrypoint = 'ledger/regions-worker.ts';
    return new Run(await startLimited({ entrypoint, vars: { USERS: 'plain', ...vars } }));
  }

  async ask(key: Key, i: number): Promise<void> {
    const user = USERS[i % USERS.length] ?? '';
    const response = await this.limited.gateway.post(
      '/v1/chat/completions',
      {
        model: 'deepseek/deepseek-flash',
        messages: [{ role: 'user', content: `Hello ${i}` }],
        max_tokens: 100,
        stream: i % 3 === 0,
      },
      {
        headers: {
          authorization: `Bearer ${key.token}`,
          'x-test-continent': REGIONS[i % REGIONS.length] ?? 'EU',
          'x-weir-session': `session-${i % 100}`,
          'x-weir-user': user,
        },
      },
    );
    await response.text();
    if (response.status === 200)
      this.sent.push({ id: response.headers.get('x-weir-request-id') ?? '', user });
  }

  async askMany(key: Key, count: number): Promise<void> {
    const numbers = Array.from({ length: count }, (_, i) => i).values();
    const next = async () => {
      for (const i of numbers) await this.ask(key, i);
    };
    await Promise.all(Array.from({ length: 20 }, next));
  }

  async read(path: string, init: RequestInit = ADMIN): Promise<JsonObject> {
    return jsonOf(await this.limited.gateway.fetch(path, init));
  }

  async object(name: string, method: string): Promise<unknown> {
    const path = `/test/object?name=${encodeURIComponent(name)}&method=${method}`;
    return (await this.limited.gateway.fetch(path)).json();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.limited[Symbol.asyncDispose]();
  }
}

const TOKENS = 10;
/** One for each region: they are called less than 50 times a second. */
const SHARDS = 5;

test(`L10 ${REQUESTS} requests of one key from five regions: records, reports and budgets are the sums of the requests`, async () => {
  await using run = await Run.start({ LEDGER: 'object' });
  const key = await run.limited.create({ budget: { tokens: 1e9 }, rpm: 1e6, max_concurrent: 1000 });
  await run.askMany(key, REQUESTS);
  expect(run.sent).toHaveLength(REQUESTS);
  const standing = await run.limited.settled(key);
  expect(objectOf(standing.budget)).toMatchObject({ spent: REQUESTS * TOKENS, reserved: 0, estimated: 0 });
  expect(Object.keys(objectOf(standing.shards)).toSorted()).toEqual(['AS', 'EU', 'NA', 'OC', 'SA']);
  const own = { headers: { authorization: `Bearer ${key.token}` } };
  const byUser = objectsOf((await run.read('/v1/usage?group_by=user', own)).data);
  for (const user of USERS)
    expect(byUser.find((row) => row.user === user)?.requests).toBe(
      run.sent.filter((one) => one.user === user).length,
    );
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await run.read(`/v1/usage/records?limit=300${cursor}`, own);
    ids.push(...objectsOf(page.data).map(({ request_id }) => textOf(request_id)));
    if (page.next_cursor == null) break;
    cursor = `&cursor=${textOf(page.next_cursor)}`;
  }
  expect(ids).toEqual(
    run.sent
      .map(({ id }) => id)
      .toSorted()
      .reverse(),
  );
  const calls = async () => Number(await run.object(key.id, 'callCount'));
  const [before, startedAt] = [await calls(), performance.now()];
  await run.askMany(key, REQUESTS);
  // On a slow machine a lease runs out before it is used up: a shard returns it, asks for another one, and reports charges.
  const renewals = SHARDS * 3 * Math.ceil((performance.now() - startedAt) / LEASE_MS);
  const after = await calls();
  expect(after - before).toBeLessThanOrEqual(0.1 * REQUESTS + renewals);
});

test('L10 with LEDGER=kv shards hold the limits, and records are in KV', async () => {
  await using run = await Run.start({ LEDGER: 'kv' });
  const key = await run.limited.create({ budget: { tokens: 1e9 }, rpm: 1e6 });
  await run.askMany(key, 160);
  const standing = await run.limited.settled(key);
  expect(standing.shards).toMatchObject({ EU: 1, NA: 1 });
  expect(objectOf(standing.budget)).toMatchObject({ spent: 160 * TOKENS, reserved: 0 });
  expect(await run.limited.gateway.records(160)).toHaveLength(160);
});

test.each([
  ['SHARDS=off', { SHARDS: 'off' }],
  ['LOCATION_HINT', { LOCATION_HINT: 'weur' }],
])('L10 with %s a key that several regions call has one object', async (_, vars) => {
  await using run = await Run.start({ LEDGER: 'object', ...vars });
  const key = await run.limited.create({ budget: { tokens: 1e9 }, rpm: 1e6 });
  await run.askMany(key, 120);
  expect(await run.limited.settled(key)).not.toHaveProperty('shards');
  expect(await run.object(key.id, 'shards')).toEqual([]);
});

test('L10 a session of a spread key is compared in its shard', async () => {
  await using run = await Run.start({ LEDGER: 'object' });
  const key = await run.limited.create({ budget: { tokens: 1e9 }, rpm: 1e6 });
  await run.askMany(key, 160);
  const headers = {
    authorization: `Bearer ${key.token}`,
    'x-test-continent': 'NA',
    'x-weir-session': 'one',
    'x-weir-cache-report': '1',
  };
  const messages = [{ role: 'user', content: 'a long prompt '.repeat(300) }];
  const reports: (string | null)[] = [];
  for (let i = 0; i < 2; i++) {
    const response = await run.limited.gateway.post(
      '/v1/chat/completions',
      { model: 'deepseek/deepseek-flash', messages, max_tokens: 100 },
      { headers },
    );
    await response.text();
    reports.push(response.headers.get('x-weir-cache'));
    await run.limited.settled(key);
  }
  expect(reports[0]).not.toBeNull();
  expect(reports[1]).not.toBe(reports[0]);
});

test('L10 a percentage of a budget that shards reach together is alerted once', async () => {
  await using receiver = await startReceiver();
  const vars = { LEDGER: 'object', BUDGET_ALERTS: '50', ALERT_URL: receiver.url, ALERT_SECRET };
  await using run = await Run.start(vars);
  run.limited.usage = { prompt: 900, completion: 100 };
  const key = await run.limited.create({ budget: { tokens: 400_000, per: 'month' }, rpm: 1e6 });
  const next = receiver.next();
  await run.askMany(key, 240);
  expect((await run.limited.settled(key)).shards).toMatchObject({ EU: 1, NA: 1 });
  const { body } = await next;
  expect(body).toMatchObject({ event: 'budget_alert', key_id: key.id, percent: 50, limit: 400_000 });
  expect(Number(body.spent)).toBeGreaterThanOrEqual(200_000);
  await run.askMany(key, 20);
  await run.limited.settled(key);
  expect(receiver.arrived).toHaveLength(1);
});

/** In turns, and the least counts: other processes only add to it. */
const ROUNDS = 4;
const MAX_CPU_RATIO = 1.3;

test('L10 a request of a spread key takes at most 1.3 times the CPU of one that is not spread', async () => {
  const least = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++)
    for (const SHARDS of ['on', 'off']) {
      await using run = await Run.start({ LEDGER: 'object', SHARDS });
      const key = await run.limited.create({ budget: { tokens: 1e9 }, rpm: 1e6 });
      // The code is compiled, and the key spread.
      await run.askMany(key, 300);
      const used = () => workerdIds().reduce((sum, id) => sum + cpuMs(id), 0);
      const before = used();
      await run.askMany(key, 600);
      least.set(SHARDS, Math.min(least.get(SHARDS) ?? Number.POSITIVE_INFINITY, (used() - before) / 600));
    }
  const [on = 0, off = 1] = ['on', 'off'].map((name) => least.get(name));
  expect(on / off).toBeLessThanOrEqual(MAX_CPU_RATIO);
});

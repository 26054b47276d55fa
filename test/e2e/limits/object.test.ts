/** Limits with LEDGER=object: storing the record settles the reservation, in one transaction. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf } from '../../../tools/simulator/json.ts';
import { basePaths } from '../../../tools/simulator/scenes.ts';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { event, many, replayOf } from '../scenarios.ts';
import { type Key, type Limited, startLimited } from './limited.ts';

let limited: Limited;
beforeAll(async () => {
  const replay = replayOf({
    endless: { chunks: [event('word ')], ending: 'hang' },
    'text-embedding-3-large': {
      chunks: [`{"data":[{"embedding":[${'0.125,'.repeat(2000)}`, ...many('0.125,'.repeat(500), 4000)],
      gapMs: 10,
    },
  });
  limited = await startLimited({
    vars: (url) => ({
      LEDGER: 'object',
      HEARTBEAT_SECONDS: '1',
      PROVIDERS: JSON.stringify({
        stops: { base_url: url + basePaths.compatible, like: 'llamacpp', stops_on_close: 1000 },
      }),
    }),
    replay,
  });
});
afterAll(() => limited[Symbol.asyncDispose]());

test.each([{}, { stream: true }])(
  'G3 the spent amount of a budget equals the sum of the report: %j',
  async (fields) => {
    const key = await limited.create({ budget: { tokens: 1e6, per: 'month' }, max_concurrent: 100 });
    const answers = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const response = await limited.ask(key, fields);
        await response.text();
        return response.status;
      }),
    );
    expect(answers).toEqual(Array(40).fill(200));
    const standing = await limited.settled(key);
    expect(standing).toMatchObject({
      budget: { spent: 400, reserved: 0, estimated: 0 },
      concurrent: { running: 0 },
    });
    const headers = { authorization: `Bearer ${key.token}` };
    const report = await jsonOf(await limited.gateway.fetch('/v1/usage?group_by=model', { headers }));
    expect(objectOf(report.total)).toMatchObject({ requests: 40, total_tokens: 400 });
  },
);

test('G2 in money: a budget without room for the upper bound refuses', async () => {
  // 100,000 output tokens at 0.90 dollars per million.
  const fields = { model: 'mistral/codestral-latest', max_tokens: 100_000 };
  limited.usage = { prompt: 10, completion: 100_000 };
  const key = await limited.create({ budget: { USD: 0.2, per: 'day' } });
  for (const expected of [200, 200, 429]) {
    const response = await limited.ask(key, fields);
    expect([response.status, await response.text()]).toEqual([expected, expect.any(String)]);
    await limited.settled(key);
  }
  const { budget } = await limited.standing(key);
  const headers = { authorization: `Bearer ${key.token}` };
  const report = await jsonOf(await limited.gateway.fetch('/v1/usage?group_by=model', { headers }));
  // 100,000 x 0.90 and 10 x 0.30 per million, twice: the exact cost of the records.
  expect(objectOf(budget).spent).toBe(0.180006);
  expect(objectOf(objectOf(report.total).cost)).toEqual({ USD: 0.180006 });
});

test('G3 unreported usage is charged at its upper bound, which neither the record nor the report has', async () => {
  const key = await limited.create({ budget: { tokens: 1e6 } });
  const client = new AbortController();
  const fields = { model: 'deepseek/endless', stream: true, max_tokens: 50_000 };
  const response = await limited.ask(key, fields, { signal: client.signal });
  await response.body?.getReader().read();
  client.abort();
  const { budget } = await limited.settled(key);
  const { spent, unreported } = objectOf(budget);
  expect(Number(spent)).toBeGreaterThan(50_000);
  expect(unreported).toBe(spent);
  const headers = { authorization: `Bearer ${key.token}` };
  const list = await jsonOf(await limited.gateway.fetch('/v1/usage/records', { headers }));
  expect(list.data).toMatchObject([{ status: 'cancelled', estimated: true }]);
  expect(JSON.stringify(list)).not.toContain('charge');
  const report = await jsonOf(await limited.gateway.fetch('/v1/usage?group_by=model', { headers }));
  expect(Number(objectOf(report.total).total_tokens)).toBeLessThan(1000);
});

test('G3 a cancelled stream of a server that is said to stop is charged what was received and a second', async () => {
  const key = await limited.create({ budget: { tokens: 1e6 } });
  const client = new AbortController();
  const fields = { model: 'stops/endless', stream: true, max_tokens: 50_000 };
  const response = await limited.ask(key, fields, { signal: client.signal });
  const left = Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
  await response.body?.getReader().read();
  client.abort();
  const { budget } = await limited.settled(key);
  const promptTokens = 1e6 - left - 50_000;
  expect(Number(objectOf(budget).spent) - promptTokens).toBe('word '.length + 1000);
});

function embed(key: Key, fields: JsonObject = {}, init: RequestInit = {}): Promise<Response> {
  const body = { model: 'openai/text-embedding-3-small', input: 'two words', user: 'ada', ...fields };
  // The development server compresses JSON, and a compressor holds small pieces back.
  const headers = {
    authorization: `Bearer ${key.token}`,
    'x-weir-session': 'session-1',
    'accept-encoding': 'identity',
  };
  return limited.gateway.post('/v1/embeddings', body, { ...init, headers });
}

test('J1 a burst of embeddings: each has a record with its facts, and the budget has their cost', async () => {
  limited.usage = null;
  const key = await limited.create({ budget: { USD: 1, per: 'month' }, rpm: 20, max_concurrent: 100 });
  const statuses = await Promise.all(
    Array.from({ length: 26 }, async () => {
      const response = await embed(key);
      await response.text();
      return response.status;
    }),
  );
  expect(statuses.sort()).toEqual([...Array(20).fill(200), ...Array(6).fill(429)]);
  const { budget, concurrent } = await limited.settled(key);
  // 20 times 2 tokens at 0.02 dollars per million.
  expect([objectOf(budget).spent, objectOf(concurrent).running]).toEqual([8e-7, 0]);
  const headers = { authorization: `Bearer ${key.token}` };
  const report = await jsonOf(
    await limited.gateway.fetch('/v1/usage?group_by=route,user,session', { headers }),
  );
  expect(report.data).toMatchObject([
    { route: 'embeddings', user: 'ada', session: 'session-1', requests: 20, total_tokens: 40 },
  ]);
  const list = await jsonOf(await limited.gateway.fetch('/v1/usage/records?limit=1', { headers }));
  expect(list.data).toMatchObject([
    { route: 'embeddings', status: 'finished', user: 'ada', session: 'session-1', prompt_tokens: 2 },
  ]);
});

// Two of eight have room: 40 tokens against a rate, the upper bound against a budget.
test.each([
  { tpm: 100 },
  { budget: { tokens: 300 } },
  { budget: { USD: 300 * 0.13e-6 } },
  { max_concurrent: 2 },
])(
  'J1 a burst of embeddings whose responses do not end, with %j: exactly as many as have room',
  async (limits) => {
    limited.usage = null;
    const key = await limited.create(limits);
    const client = new AbortController();
    const fields = { model: 'openai/text-embedding-3-large', input: Array.from({ length: 40 }, () => 7) };
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => embed(key, fields, { signal: client.signal })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, ...many(429, 6)]);
    client.abort();
    await Promise.allSettled(responses.map((response) => response.text()));
  },
);

test('J1 a client that disconnects within its embeddings: upstream aborted, record cancelled, reservation settled', async () => {
  limited.usage = null;
  const key = await limited.create({ budget: { tokens: 1e6 }, max_concurrent: 1 });
  const client = new AbortController();
  const requestCount = limited.gateway.simulator.requests.length;
  const response = await embed(key, { model: 'openai/text-embedding-3-large' }, { signal: client.signal });
  await response.body?.getReader().read();
  expect((await embed(key)).status).toBe(429);
  client.abort();
  expect(await (await limited.gateway.simulator.request(requestCount)).closed).toBe('disconnected');
  expect(await limited.settled(key)).toMatchObject({ concurrent: { running: 0 } });
  const headers = { authorization: `Bearer ${key.token}` };
  const list = await jsonOf(await limited.gateway.fetch('/v1/usage/records', { headers }));
  expect(list.data).toMatchObject([{ route: 'embeddings', status: 'cancelled', estimated: true }]);
  expect((await embed(key)).status).toBe(200);
});

describe('Y6 limits for each user', () => {
  const own = async (key: Key, user: string) => {
    const headers = { authorization: `Bearer ${key.token}`, 'x-weir-user': user };
    return jsonOf(await limited.gateway.fetch('/v1/key', { headers }));
  };

  test('a request is charged once to its user and once to its key, and its record only reports it', async () => {
    limited.usage = { prompt: 7, completion: 3 };
    const key = await limited.create({
      // So little that each settlement is reported at once.
      budget: { tokens: 20_000, per: 'month' },
      per_user: { budget: { tokens: 1e5, per: 'month' }, rpm: 100 },
    });
    for (const user of ['ada', 'ada', 'bob']) {
      const response = await limited.ask(key, { user });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
      expect(response.headers.get('x-ratelimit-limit-requests')).toBe('100');
    }
    expect(await limited.settled(key)).toMatchObject({ budget: { spent: 30 } });
    const shown = await own(key, 'ada');
    expect(shown).toMatchObject({
      limits: { per_user: { budget: { tokens: 1e5 }, rpm: 100 } },
      per_user: { user: 'ada', budget: { spent: 20, reserved: 0 }, requests: { limit: 100, remaining: 98 } },
    });
    const headers = { authorization: `Bearer ${key.token}` };
    const report = await jsonOf(await limited.gateway.fetch('/v1/usage?group_by=model', { headers }));
    expect(objectOf(report.total)).toMatchObject({ requests: 3, total_tokens: 30 });
  });

  test('requests without a user share one allowance, and those beyond max_users another', async () => {
    const key = await limited.create({ per_user: { rpm: 1, max_users: 1 } });
    const statuses = [];
    for (const user of ['ada', 'ada', undefined, undefined, 'bob', 'cy']) {
      const response = await limited.ask(key, user === undefined ? {} : { user });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses).toEqual([200, 429, 200, 429, 200, 429]);
  });

  test('the users of a revoked key are refused', async () => {
    const key = await limited.create({ per_user: { rpm: 1 } });
    await (await limited.ask(key, { user: 'ada' })).text();
    const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const path = `/admin/keys/${key.id}`;
    await (await limited.gateway.fetch(path, { method: 'DELETE', headers: admin })).text();
    expect((await limited.ask(key, { user: 'ada' })).status).toBe(401);
  });

  test('USERS=hash: no refusal, status or log has the plain name', async () => {
    await limited.gateway.set({
      AUTH: 'keys',
      LEDGER: 'object',
      USERS: 'hash',
      USER_HASH_KEY: 'a secret of these tests',
    });
    const key = await limited.create({ per_user: { rpm: 1 } });
    await (await limited.ask(key, { user: 'ada.lovelace' })).text();
    const refused = await limited.ask(key, { user: 'ada.lovelace' });
    expect([refused.status, refused.headers.get('x-weir-limit')]).toEqual([429, 'user']);
    expect(await refused.text()).toContain('Each user of this key may send 1 request a minute');
    const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const path = `/admin/keys/${key.id}?user=ada.lovelace`;
    const shown = await jsonOf(await limited.gateway.fetch(path, { headers: admin }));
    expect(shown.per_user).toMatchObject({
      user: expect.stringMatching(/^h_[0-9a-f]{24}$/),
      requests: { limit: 1, remaining: 0 },
    });
    expect(JSON.stringify(shown)).not.toContain('lovelace');
    expect(limited.gateway.logs().join('\n')).not.toContain('lovelace');
  });
});

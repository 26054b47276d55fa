/** Limits in the gateway: calls to the ledger object, output limits that are sent upstream, and an unreachable object. */
import { describe, expect, test } from 'vitest';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

async function statusOf(response: Response): Promise<number> {
  await response.text();
  return response.status;
}

async function errorOf(response: Response) {
  return objectOf(decodeObject(await response.text())?.error);
}

describe('G1 a key without limits', () => {
  test('makes no call to a ledger object', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key();
    expect(await statusOf(await gateway.ask(token))).toBe(200);
    await gateway.idle();
    expect(gateway.calls.filter((call) => !call.startsWith('kv'))).toEqual(['upstream']);
  });

  test('gets no limit headers, and its body is not changed', async () => {
    const gateway = new LimitedGateway();
    const response = await gateway.ask(await gateway.key());
    expect([...response.headers.keys()].filter((name) => /ratelimit|budget/.test(name))).toEqual([]);
    expect(gateway.sent[0]).not.toHaveProperty('max_completion_tokens');
  });
});

describe('G2 a key with limits', () => {
  test('one call reserves before the upstream is called, and one settles after it', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ budget: { tokens: 1e6 }, rpm: 5, tpm: 1e6, max_concurrent: 1 });
    expect(await statusOf(await gateway.ask(token))).toBe(200);
    await gateway.idle();
    const calls = gateway.calls.filter((call) => !call.startsWith('kv'));
    expect(calls).toEqual(['reserve', 'upstream', 'settleReservation']);
    expect([gateway.sql.count('reservations'), gateway.sql.count('spent')]).toEqual([0, 1]);
  });

  test.each([
    [
      'chat',
      '/v1/chat/completions',
      { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }] },
    ],
    ['completions', '/v1/completions', { model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Hi' }],
    ['fim', '/v1/fim/completions', { model: 'deepseek/deepseek-flash', prompt: 'a', suffix: 'b' }],
    [
      'agents',
      '/v1/agents/completions',
      { agent_id: 'mistral/ag', messages: [{ role: 'user', content: 'Hi' }] },
    ],
    [
      'azure',
      '/openai/deployments/gpt-4o-mini/chat/completions',
      { messages: [{ role: 'user', content: 'Hi' }] },
    ],
    ['beta', '/beta/completions', { model: 'deepseek/deepseek-flash', prompt: 'a' }],
  ])('calls no upstream beyond its budget on the route of %s', async (_, path, body) => {
    const gateway = new LimitedGateway({ MISTRAL_API_KEY: 'k', DEFAULT_PROVIDER: 'openai' });
    const token = await gateway.key({ budget: { tokens: 1 } });
    for (const stream of [false, true]) {
      const response = await gateway.post(path, token, { ...body, stream });
      expect([response.status, (await errorOf(response)).code]).toEqual([429, 'budget_exceeded']);
    }
    expect(gateway.calls).not.toContain('upstream');
  });

  const ITEMS = [{ role: 'user', content: 'Hi' }];
  const THINKING = { type: 'reasoning', id: 'rs_0a', summary: [] };
  test.each<[what: string, body: object, isTold: boolean]>([
    ['items alone', { input: ITEMS }, true],
    ['reasoning that it has itself', { input: [{ ...THINKING, encrypted_content: 'gAA' }, ...ITEMS] }, true],
    ['reasoning that its provider keeps', { input: [THINKING, ...ITEMS] }, false],
    ['previous_response_id', { input: ITEMS, previous_response_id: 'resp_1' }, false],
    ['a hosted tool', { input: ITEMS, tools: [{ type: 'web_search' }] }, false],
    [
      'a file by its id',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      false,
    ],
    ['messages alone', { messages: ITEMS, max_tokens: 9 }, true],
    [
      'a thread that is gone on with',
      { messages: ITEMS, max_tokens: 9, thread: { type: 'continue' } },
      false,
    ],
    ['servers of tools', { messages: ITEMS, max_tokens: 9, mcp_servers: [{ url: 'https://x' }] }, false],
    [
      'a tool of Anthropic’s',
      { messages: ITEMS, max_tokens: 9, tools: [{ type: 'web_search_20260209', name: 'web_search' }] },
      false,
    ],
  ])('N2 in a passthrough, a body with %s: a budget of a million tokens holds', async (_, body, isTold) => {
    const isMessages = 'messages' in body;
    const gateway = new LimitedGateway({ ANTHROPIC_API_KEY: 'k' });
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    const model = isMessages ? 'anthropic/claude-sonnet-5' : 'openai/gpt-5';
    const path = isMessages ? '/v1/messages' : '/v1/responses';
    const response = await gateway.post(path, token, { model, ...body });
    expect(response.status === 429).toBe(!isTold);
    expect(gateway.calls.includes('upstream')).toBe(isTold);
  });

  test.each([
    ['no limit of the caller', {}, 4096, 'max_completion_tokens'],
    ['a lower one', { max_tokens: 50 }, 50, null],
    ['the newer name', { max_completion_tokens: 60 }, 60, null],
    ['both names, of which the higher counts', { max_tokens: 50, max_completion_tokens: 70 }, 70, null],
    ['null', { max_tokens: null }, 4096, 'max_completion_tokens'],
  ])('under a hard budget sends the reserved output limit: %s', async (_, fields, limit, changed) => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    const response = await gateway.ask(token, fields);
    expect(gateway.sent).toMatchObject([{ max_completion_tokens: limit }]);
    expect(gateway.sent[0]).not.toHaveProperty('max_tokens');
    expect(response.headers.get('x-weir-changed')).toBe(changed);
  });

  test('lowers a higher output limit, under the name that the provider takes, and reports it', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ max_output_tokens: 100 });
    const response = await gateway.ask(token, {
      model: 'deepseek/deepseek-flash',
      max_completion_tokens: 500,
    });
    expect(gateway.sent[0]).toMatchObject({ max_tokens: 100 });
    expect(gateway.sent[0]).not.toHaveProperty('max_completion_tokens');
    expect(response.headers.get('x-weir-changed')).toBe('max_tokens');
  });

  test('sends one output limit to a provider that takes both names', async () => {
    const PROVIDERS = JSON.stringify({ own: { base_url: 'https://own.example/v1' } });
    const gateway = new LimitedGateway({ PROVIDERS });
    const token = await gateway.key({ max_output_tokens: 100 });
    await gateway.ask(token, { model: 'own/m', max_tokens: 50, max_completion_tokens: 900 });
    expect(gateway.sent[0]).toMatchObject({ max_tokens: 100 });
    expect(gateway.sent[0]).not.toHaveProperty('max_completion_tokens');
  });

  test.each([
    [{ max_tokens: '100000' }, 'max_completion_tokens'],
    [{ max_tokens: -1 }, 'max_completion_tokens'],
    [{ max_tokens: 0.5 }, 'max_completion_tokens'],
    [{ n: '128' }, 'n'],
    [{ n: 0 }, 'n'],
    [{ best_of: true }, 'n'],
  ])('refuses %j, which upstreams may interpret differently', async (fields, param) => {
    const gateway = new LimitedGateway();
    const response = await gateway.ask(await gateway.key({ budget: { tokens: 1e6 } }), fields);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(gateway.calls.filter((call) => !call.startsWith('kv'))).toEqual([]);
  });

  test('reserves for each choice of n, of best_of and of every prompt', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ budget: { tokens: 1e9 } });
    const prompt = ['a', 'b', 'c'];
    const model = 'openai/gpt-3.5-turbo-instruct';
    const reserved: number[] = [];
    for (const more of [{}, { n: 2 }, { best_of: 5 }]) {
      const response = await gateway.post('/v1/completions', token, {
        model,
        prompt,
        max_tokens: 1e6,
        ...more,
      });
      const left = Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
      await statusOf(response);
      await gateway.idle();
      reserved.push(Math.round((1e9 - left) / 1e6));
    }
    expect(reserved).toEqual([3, 6, 15]);
  });

  test('a client that disconnects during the reservation: no upstream is called, and nothing stays reserved', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    const client = new AbortController();
    gateway.onReserve = () => client.abort();
    await gateway.ask(token, {}, { signal: client.signal }).catch(() => undefined);
    await gateway.idle();
    expect(gateway.calls).not.toContain('upstream');
    expect(gateway.calls).toContain('settleReservation');
    expect([gateway.sql.count('reservations'), gateway.sql.count('spent')]).toEqual([0, 0]);
  });

  test('in money, a model without a price: refused; with an entry in PRICES it is admitted', async () => {
    const budget = { USD: 5 };
    const model = 'openai/of-nobody';
    const gateway = new LimitedGateway();
    const refused = await gateway.ask(await gateway.key({ budget }), { model });
    expect([refused.status, (await errorOf(refused)).code]).toEqual([403, 'model_not_allowed']);
    const price = {
      provider: 'openai',
      models: ['of-*'],
      since: '2026-01-01',
      currency: 'USD',
      input: 1,
      output: 2,
    };
    const priced = new LimitedGateway({
      PRICES: JSON.stringify([{ ...price, since: '2026-01-01T00:00:00Z' }]),
    });
    expect(await statusOf(await priced.ask(await priced.key({ budget }), { model }))).toBe(200);
  });

  test.each([
    ['priority', 403],
    ['default', 200],
    ['flex', 200],
    [null, 200],
  ])(
    'G2 in money, with service_tier %j: %i, because the premium tier of this model has no known price',
    async (tier, status) => {
      const price = { provider: 'openai', models: ['one-tier'], currency: 'USD', input: 1, output: 1 };
      const gateway = new LimitedGateway({
        PRICES: JSON.stringify([{ ...price, since: '2026-01-01T00:00:00Z' }]),
      });
      const key = await gateway.key({ budget: { USD: 5 } });
      const answer = await gateway.ask(key, { model: 'openai/one-tier', service_tier: tier });
      expect(await statusOf(answer)).toBe(status);
      const inTokens = await gateway.key({ budget: { tokens: 1_000_000 } });
      expect(await statusOf(await gateway.ask(inTokens, { service_tier: tier }))).toBe(200);
    },
  );

  test.each([
    [{}, 200],
    [{ prompt_cache_options: { ttl: '12h' } }, 429],
    [{ prompt_cache_retention: '24h' }, 429],
    [{ messages: [{ role: 'user', content: 'What does "ttl" mean?' }] }, 200],
  ])(
    'G2 in money, with %j: %i, because only a longer cache has the price of its writes',
    async (fields, status) => {
      const rates = { since: '2026-01-01', currency: 'USD', input: 1, cache_write_long: 1000, output: 1 };
      const PRICES = [{ provider: 'openai', models: ['gpt-4o-mini'], ...rates }];
      const gateway = new LimitedGateway({ PRICES: JSON.stringify(PRICES) });
      const token = await gateway.key({ budget: { USD: 0.1 } });
      expect(await statusOf(await gateway.ask(token, fields))).toBe(status);
    },
  );

  test.each([
    [['priority'], 200],
    // It may be the price of the default tier only.
    [undefined, 403],
  ])('G2 in money, a premium tier where a price lists the tiers %j: %i', async (service_tiers, status) => {
    const rates = { since: '2026-01-01', currency: 'USD', input: 1, output: 2 };
    const PRICES = [{ provider: 'openai', models: ['gpt-4o-mini'], ...rates, service_tiers }];
    const gateway = new LimitedGateway({ PRICES: JSON.stringify(PRICES) });
    const key = await gateway.key({ budget: { USD: 5 } });
    const answer = await gateway.ask(key, { model: 'openai/gpt-4o-mini', service_tier: 'priority' });
    expect(await statusOf(answer)).toBe(status);
  });

  test('in money: a router that may serve a more expensive model reserves the price of that model', async () => {
    const entry = { since: '2026-01-01T00:00:00Z', currency: 'USD', input: 0 };
    const prices = ['openai', 'anthropic'].flatMap((provider) => [
      { ...entry, provider, models: ['cheap'], output: 1 },
      { ...entry, provider, models: ['dear'], output: 50 },
    ]);
    const gateway = new LimitedGateway({ PRICES: JSON.stringify(prices), ANTHROPIC_API_KEY: 'k' });
    const token = await gateway.key({ budget: { USD: 5 } });
    const left = async (fields: object) =>
      (await gateway.ask(token, { model: 'openai/cheap', max_tokens: 10_000, ...fields })).headers.get(
        'x-weir-budget-remaining',
      );
    expect(await left({})).toBe('4.99 USD');
    await gateway.idle();
    gateway.sql.exec('DELETE FROM spent');
    expect(await left({ fallbacks: ['dear'] })).toBe('4.50 USD');
    await gateway.idle();
    gateway.sql.exec('DELETE FROM spent');
    const body = { model: 'anthropic/cheap', max_tokens: 10_000, fallbacks: ['dear'] };
    const messages = [{ role: 'user', content: 'Hello' }];
    const onLane = await gateway.post('/v1/messages', token, { ...body, messages });
    // Anthropic bills each of them that has started to respond.
    expect(onLane.headers.get('x-weir-budget-remaining')).toBe('4.00 USD');
  });
});

describe.each([
  ['fails', 'ledger_unreachable', 'failed', 2],
  ['lost', 'ledger_unreachable', 'failed', 2],
  ['reset', 'ledger_unreachable', 'reset', 2],
  ['hangs', 'ledger_unreachable', 'slow', 1],
  ['overloaded', 'ledger_overloaded', 'overloaded', 1],
] as const)('G6 the ledger object: %s', (trouble, code, cause, calls) => {
  test('BUDGET_FAIL=closed: 503, no upstream, and nothing stays reserved', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    gateway.trouble = trouble;
    const pending = gateway.ask(token);
    const response = await pending;
    expect([response.status, (await errorOf(response)).code]).toEqual([503, code]);
    expect(response.headers.get('retry-after')).toBe(trouble === 'overloaded' ? '2' : null);
    gateway.trouble = 'none';
    await gateway.idle();
    expect(gateway.calls).not.toContain('upstream');
    expect(gateway.calls.filter((call) => call === 'reserve')).toHaveLength(calls);
    expect([gateway.sql.count('reservations'), gateway.sql.count('spent')]).toEqual([0, 0]);
    expect(gateway.logged).toContainEqual(expect.objectContaining({ event: 'ledger_unreachable', cause }));
  });

  test('BUDGET_FAIL=open: the request is sent, and charged once the object is reachable', async () => {
    const gateway = new LimitedGateway({ BUDGET_FAIL: 'open' });
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    gateway.trouble = trouble;
    const runner = gateway.ask(token);
    const response = await runner;
    gateway.trouble = 'none';
    expect(await statusOf(response)).toBe(200);
    await gateway.idle();
    expect(gateway.sql.count('reservations')).toBe(0);
    const spent = gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM spent').toArray();
    expect(spent).toEqual([{ tokens: 10 }]);
  });

  test('a key without limits is not affected', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key();
    gateway.trouble = trouble;
    expect(await statusOf(await gateway.ask(token))).toBe(200);
  });
});

test('G2 a budget that warns admits, reports by how much it is overdrawn, and logs it', async () => {
  const gateway = new LimitedGateway();
  const token = await gateway.key({ budget: { tokens: 5, mode: 'warn' } });
  for (const left of ['5 tokens', '-5 tokens', '-15 tokens']) {
    const response = await gateway.ask(token);
    expect([response.status, response.headers.get('x-weir-budget-remaining')]).toEqual([200, left]);
    await gateway.idle();
  }
  const warnings = gateway.logged.filter(({ event }) => event === 'budget_overdrawn');
  expect(warnings.map(({ by }) => by)).toEqual(['5 tokens', '15 tokens']);
});

test('G3 a settlement that fails is retried', async () => {
  const gateway = new LimitedGateway();
  const token = await gateway.key({ budget: { tokens: 1e6 } });
  gateway.onReserve = () => {
    gateway.trouble = 'fails';
  };
  expect(await statusOf(await gateway.ask(token))).toBe(200);
  expect(gateway.sql.count('reservations')).toBe(1);
  gateway.trouble = 'none';
  await gateway.idle();
  expect(gateway.calls.filter((call) => call === 'settleReservation').length).toBeGreaterThan(2);
  expect([gateway.sql.count('reservations'), gateway.sql.count('spent')]).toEqual([0, 1]);
});

test('G1 G8 without WEIR_LEDGER a key with limits cannot be created, and the error names the binding', async () => {
  const gateway = new LimitedGateway({ WEIR_LEDGER: undefined });
  const response = await gateway.post('/admin/keys', 'admin', { name: 'a', rpm: 5 });
  expect(response.status).toBe(400);
  const error = await errorOf(response);
  expect(error).toMatchObject({ code: 'invalid_request', param: 'rpm' });
  expect(error.message).toContain('WEIR_LEDGER');
  expect(await statusOf(await gateway.post('/admin/keys', 'admin', { name: 'a' }))).toBe(201);
});

describe('G7 LIMITER', () => {
  function shield(limit: number) {
    const counts = new Map<string, number>();
    const limiter = {
      limit: async ({ key }: { readonly key?: string }) => {
        const count = (counts.get(key ?? '') ?? 0) + 1;
        counts.set(key ?? '', count);
        return { success: count <= limit };
      },
    };
    return { counts, gateway: new LimitedGateway({}, { limiter }) };
  }

  test.each(['/v1/models', '/v1/usage', '/v1/key', '/v1/chat/completions'])(
    'shields KV from a caller that asks %s too often, with a wrong key, too',
    async (path) => {
      const { gateway } = shield(2);
      const statuses: number[] = [];
      for (let i = 0; i < 5; i++) {
        const init = path.endsWith('completions') ? { method: 'POST', body: '{}' } : {};
        const response = await gateway.fetch(path, 'weir_wrong', init);
        statuses.push(response.status);
        if (response.status === 429) {
          expect((await errorOf(response)).code).toBe('rate_limited');
          expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
        }
      }
      expect(statuses).toEqual([401, 401, 429, 429, 429]);
      expect(gateway.calls.filter((call) => call === 'kv get key')).toHaveLength(2);
    },
  );

  test('distinguishes callers without receiving their keys', async () => {
    const { gateway, counts } = shield(1);
    expect((await gateway.fetch('/v1/key', 'weir_a')).status).toBe(401);
    expect((await gateway.fetch('/v1/key', 'weir_b')).status).toBe(401);
    expect((await gateway.fetch('/v1/key', 'weir_a')).status).toBe(429);
    expect([...counts.keys()].join()).not.toContain('weir_');
  });

  test('a limiter that fails refuses no request', async () => {
    const limiter = { limit: () => Promise.reject(new Error('away')) };
    const gateway = new LimitedGateway({}, { limiter });
    expect(await statusOf(await gateway.ask(await gateway.key()))).toBe(200);
  });
});

describe('L10 a shard of a spread key', () => {
  /** A gateway that knows two shards of a key, and asks as a caller in Europe. */
  async function spreadGateway(settings: Readonly<Record<string, unknown>> = {}) {
    const gateway = new LimitedGateway(settings);
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    gateway.spread = { EU: 2 };
    const ask = async () => {
      gateway.asked.length = 0;
      const request = new Request('https://weir.example/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'x-weir-session': 'one' },
        body: JSON.stringify({
          model: 'openai/gpt-4o-mini',
          messages: [{ role: 'user', content: 'Hello' }],
        }),
      });
      return gateway.send(Object.defineProperty(request, 'cf', { value: { continent: 'EU' } }));
    };
    expect(await statusOf(await ask())).toBe(200);
    const [key = ''] = gateway.asked;
    expect(await statusOf(await ask())).toBe(200);
    const [shard = ''] = gateway.asked;
    expect(shard).toMatch(new RegExp(`^${key}/s/EU/[01]$`));
    return { gateway, ask, key, shard, other: shard.endsWith('0') ? `${key}/s/EU/1` : `${key}/s/EU/0` };
  }

  test('is overloaded: the next one is asked at once, and no object twice', async () => {
    const { gateway, ask, shard, other } = await spreadGateway();
    gateway.overloaded.add(shard);
    expect(await statusOf(await ask())).toBe(200);
    expect(gateway.asked).toEqual([shard, other]);
  });

  test.each(['closed', 'open'])(
    'and the next one are overloaded: BUDGET_FAIL=%s decides',
    async (BUDGET_FAIL) => {
      const { gateway, ask, shard, other } = await spreadGateway({ BUDGET_FAIL });
      gateway.overloaded.add(shard).add(other);
      const response = await ask();
      expect(gateway.asked).toEqual([shard, other]);
      expect(response.status).toBe(BUDGET_FAIL === 'closed' ? 503 : 200);
      if (BUDGET_FAIL === 'closed') expect((await errorOf(response)).code).toBe('ledger_overloaded');
      await gateway.idle();
      expect(gateway.sql.count('reservations')).toBe(0);
      const spent = gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM spent').toArray();
      expect(spent).toEqual([{ tokens: BUDGET_FAIL === 'closed' ? 20 : 30 }]);
    },
  );

  test('runs an earlier version, which would take it for a key: the key’s own object is asked', async () => {
    const { gateway, ask, key } = await spreadGateway();
    gateway.hasOldShards = true;
    expect(await statusOf(await ask())).toBe(200);
    expect(gateway.asked).toEqual([key]);
  });

  test('hangs: the wait is bounded, and no other object is asked', async () => {
    const { gateway, ask, shard } = await spreadGateway();
    gateway.trouble = 'hangs';
    const response = await ask();
    expect([response.status, (await errorOf(response)).code]).toEqual([503, 'ledger_unreachable']);
    expect(gateway.asked).toEqual([shard]);
  });

  test('SHARDS=off: only the key’s own object is asked', async () => {
    const gateway = new LimitedGateway({ SHARDS: 'off' });
    const token = await gateway.key({ budget: { tokens: 1e6 } });
    gateway.spread = { EU: 2, all: 2 };
    for (let i = 0; i < 3; i++) {
      const body = { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] };
      const request = new Request('https://weir.example/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      });
      const sent = Object.defineProperty(request, 'cf', { value: { continent: 'EU' } });
      expect(await statusOf(await gateway.send(sent))).toBe(200);
    }
    expect(new Set(gateway.asked).size).toBe(1);
    expect(gateway.asked[0]).not.toContain('/s/');
  });
});

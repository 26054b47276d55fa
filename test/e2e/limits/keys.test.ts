/** Limits of keys with KV and ledger objects in workerd: set, changed while requests run, reported, and refused where invalid. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { errorOf, jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Limited, startLimited } from './limited.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

let limited: Limited;
beforeAll(async () => {
  limited = await startLimited();
});
afterAll(() => limited[Symbol.asyncDispose]());

async function listed(id: string): Promise<JsonObject | undefined> {
  const response = await limited.gateway.fetch('/admin/keys', { headers: ADMIN });
  return objectsOf((await jsonOf(response)).data).find((key) => key.id === id);
}

async function status(response: Response): Promise<number> {
  await response.text();
  return response.status;
}

const BUDGET = { USD: 5, per: 'month', mode: 'hard' };

describe('G8 POST /admin/keys', () => {
  test('sets limits, which the response and the list have as they were requested', async () => {
    const limits = { budget: BUDGET, rpm: 60, tpm: 100_000, max_concurrent: 4, max_output_tokens: 2000 };
    const response = await limited.gateway.post('/admin/keys', { name: 'a', ...limits }, { headers: ADMIN });
    expect(response.status).toBe(201);
    const made = await jsonOf(response);
    expect(made).toMatchObject(limits);
    expect(await listed(String(made.id))).toMatchObject({ name: 'a', ...limits });
  });

  test('without limits: neither the response nor the list mentions them', async () => {
    const { id } = await limited.create({});
    expect(Object.keys((await listed(id)) ?? {}).sort()).toEqual([
      'created_at',
      'expires_at',
      'id',
      'models',
      'name',
    ]);
  });

  test.each([
    [{ budget: { USD: -5 } }, 'budget'],
    [{ budget: { USD: 5, per: 'year' } }, 'budget'],
    [{ rpm: 0 }, 'rpm'],
    [{ tpm: 1.5 }, 'tpm'],
    [{ max_concurrent: '5' }, 'max_concurrent'],
    [{ budgets: { USD: 5 } }, 'budgets'],
  ])('refuses %j', async (limits, param) => {
    const requested = await limited.gateway.post('/admin/keys', { name: 'a', ...limits }, { headers: ADMIN });
    expect(await errorOf(requested)).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', param },
    });
  });

  test('rejects integers that JSON cannot represent', async () => {
    const body = '{"name":"a","budget":{"tokens":123456789012345678901234567890}}';
    const response = await limited.gateway.fetch('/admin/keys', { method: 'POST', headers: ADMIN, body });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'budget' } });
  });

  test('the longest name and models that fit into KV metadata with limits', async () => {
    const limits = {
      budget: { USD: 123_456.123456789 },
      rpm: 1e15,
      tpm: 1e15,
      max_concurrent: 1e15,
      max_output_tokens: 1e15,
    };
    const fits = { name: 'n'.repeat(100), models: ['m'.repeat(541)], ...limits };
    const { id } = await limited.create(fits);
    expect(await listed(id)).toMatchObject({ rpm: 1e15 });
    const tooLong = { ...fits, models: ['m'.repeat(542)] };
    const response = await limited.gateway.post('/admin/keys', tooLong, { headers: ADMIN });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'models' } });
  });
});

test('G4 a budget per week, of a key and of each user: set, spent, added to, refused with the time of the next Monday, changed', async () => {
  const week = { tokens: 30_000, per: 'week', mode: 'hard' };
  const per_user = { budget: { tokens: 1e6, per: 'week', mode: 'running' } };
  const key = await limited.create({ budget: week, per_user });
  expect(await listed(key.id)).toMatchObject({ budget: week, per_user });
  expect(await status(await limited.ask(key, {}))).toBe(200);
  const monday = new Date(Date.now());
  monday.setUTCHours(0, 0, 0, 0);
  monday.setUTCDate(monday.getUTCDate() + ((8 - monday.getUTCDay()) % 7 || 7));
  const { budget } = await limited.settled(key);
  expect(budget).toMatchObject({ limit: 30_000, resets_at: monday.toISOString() });
  expect(textOf(objectOf(budget).period)).toMatch(/^\d{4}-W\d\d$/);
  await expect
    .poll(async () => Number(objectOf((await limited.standing(key)).budget).spent))
    .toBeGreaterThan(0);
  const added = { add: { tokens: 50 }, per: 'week', id: 'launch', note: '' };
  const topUp = await limited.gateway.post(`/v1/admin/keys/${key.id}/budget`, added, { headers: ADMIN });
  expect(await jsonOf(topUp)).toMatchObject({
    top_ups: [{ per: 'week', period: objectOf(budget).period }],
  });
  const refused = await errorOf(await limited.ask(key, { max_tokens: 50_000 }));
  expect(refused).toMatchObject({ error: { code: 'budget_exceeded' } });
  expect(refused.error.message).toContain('30050 tokens a week');
  expect(
    await jsonOf(await limited.patch(key, { budget: [week, { tokens: 900, per: 'month' }] })),
  ).toMatchObject({
    budget: [week, { tokens: 900, per: 'month', mode: 'hard' }],
    per_user,
  });
});

describe('Y6 per_user', () => {
  test('is set, listed, replaced as a whole, and removed', async () => {
    const per_user = { budget: { USD: 5, per: 'month', mode: 'hard' }, rpm: 5, max_users: 20 };
    const key = await limited.create({ rpm: 50, per_user });
    expect(await listed(key.id)).toMatchObject({ rpm: 50, per_user });
    const changed = await jsonOf(await limited.patch(key, { per_user: { tpm: 1000 } }));
    expect(changed).toMatchObject({ rpm: 50, per_user: { tpm: 1000 } });
    expect(objectOf((await limited.standing(key)).limits)).toEqual({ rpm: 50, per_user: { tpm: 1000 } });
    expect(await jsonOf(await limited.patch(key, { rpm: 60 }))).toMatchObject({ per_user: { tpm: 1000 } });
    expect(await jsonOf(await limited.patch(key, { per_user: null }))).not.toHaveProperty('per_user');
    expect((await limited.standing(key)).per_user).toBeUndefined();
  });

  test.each([
    [[]],
    [{}],
    [{ max_users: 5 }],
    [{ rpm: 0 }],
    [{ max_output_tokens: 5 }],
    [{ budget: { XYZ: 5 } }],
    [{ rpm: 5, max_users: 0 }],
    [{ rpm: 5, max_users: 1e6 }],
    [{ per_user: { rpm: 1 } }],
  ])('refuses %j', async (per_user) => {
    const response = await limited.gateway.post('/admin/keys', { name: 'a', per_user }, { headers: ADMIN });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'per_user' } });
  });

  test('the longest name and models that fit into KV metadata with limits of users', async () => {
    const counts = { rpm: 1e15, tpm: 1e15, max_concurrent: 1e15 };
    const budget = { USD: 123_456.123456789, per: 'month' };
    const limits = { ...counts, budget, max_output_tokens: 1e15 };
    const per_user = { ...counts, budget, max_users: 99_999 };
    const fits = { name: 'n'.repeat(100), models: ['m'.repeat(321)], ...limits, per_user };
    const key = await limited.create(fits);
    await status(await limited.patch(key, { expires_at: '2999-01-01T00:00:00Z' }));
    expect(await listed(key.id)).toMatchObject({ per_user });
    const tooLong = { ...fits, models: ['m'.repeat(322)] };
    const response = await limited.gateway.post('/admin/keys', tooLong, { headers: ADMIN });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'models' } });
  });

  test('GET shows a user what it has used; a user without requests has used nothing', async () => {
    const key = await limited.create({ per_user: { rpm: 3, budget: { tokens: 1e6 }, max_concurrent: 2 } });
    expect(await status(await limited.ask(key, { user: 'ada' }))).toBe(200);
    const shown = async (path: string, headers: Record<string, string>) =>
      objectOf((await jsonOf(await limited.gateway.fetch(path, { headers }))).per_user);
    const bearer = { authorization: `Bearer ${key.token}` };
    const ada = { user: 'ada', requests: { limit: 3, remaining: 2 } };
    expect(await shown('/v1/key', { ...bearer, 'x-weir-user': 'ada' })).toMatchObject(ada);
    expect(await shown(`/admin/keys/${key.id}?user=ada`, ADMIN)).toMatchObject(ada);
    const unused = { requests: { remaining: 3 }, budget: { spent: 0 }, concurrent: { running: 0 } };
    expect(await shown('/v1/key', bearer)).toMatchObject({ user: null, ...unused });
    expect(await shown(`/admin/keys/${key.id}?user=bob`, ADMIN)).toMatchObject({ user: 'bob', ...unused });
    expect(await shown(`/admin/keys/${key.id}`, ADMIN)).toEqual({});
  });
});

describe('G8 PATCH /admin/keys/:id', () => {
  test('changes the limits that it names, immediately and while requests run', async () => {
    const key = await limited.create({ budget: { tokens: 1e6 }, rpm: 3 });
    expect(await status(await limited.ask(key))).toBe(200);
    await limited.settled(key);
    const running = Array.from({ length: 2 }, () => limited.ask(key));
    const response = await limited.patch(key, { rpm: 1, budget: { tokens: 20 } });
    expect(await jsonOf(response)).toMatchObject({ id: key.id, rpm: 1, budget: { tokens: 20 } });
    for (const response of await Promise.all(running)) expect([200, 429]).toContain(await status(response));
    expect(await status(await limited.ask(key))).toBe(429);
    const changed = await jsonOf(
      await limited.patch(key, { rpm: null, budget: { tokens: 1e6, per: 'day' } }),
    );
    expect(changed).not.toHaveProperty('rpm');
    expect(await status(await limited.ask(key))).toBe(200);
    const { budget } = await limited.settled(key);
    // What was spent before each change still counts.
    expect(Number(objectOf(budget).spent)).toBeGreaterThanOrEqual(20);
    expect(await listed(key.id)).toMatchObject({ budget: { tokens: 1e6, per: 'day', mode: 'hard' } });
  });

  test('changes name, models and expiry, and no limit; null removes models and expiry', async () => {
    const key = await limited.create({ rpm: 7, expires_at: '2999-01-01T00:00:00Z' });
    const body = { name: 'renamed', models: ['openai/*'] };
    const answer = await jsonOf(await limited.patch(key, body));
    expect(answer).toMatchObject({ ...body, rpm: 7, expires_at: '2999-01-01T00:00:00.000Z' });
    expect(await listed(key.id)).toMatchObject({ ...body, rpm: 7 });
    const freed = await jsonOf(await limited.patch(key, { models: null, expires_at: null }));
    expect(freed).toMatchObject({ name: 'renamed', models: null, expires_at: null, rpm: 7 });
    expect(objectOf((await limited.standing(key)).limits)).toEqual({ rpm: 7 });
  });

  test('adds limits to a key without any, and removes all limits', async () => {
    const key = await limited.create({});
    expect((await limited.ask(key)).headers.has('x-weir-budget-remaining')).toBe(false);
    expect(await status(await limited.patch(key, { budget: { tokens: 1 } }))).toBe(200);
    expect(await status(await limited.ask(key))).toBe(429);
    expect(await jsonOf(await limited.patch(key, { budget: null }))).not.toHaveProperty('budget');
    expect(await status(await limited.ask(key))).toBe(200);
  });

  test.each([
    ['an unknown field', { id: 'other' }, 400],
    ['an invalid name', { name: 7 }, 400],
    ['an expiry in the past', { expires_at: '2020-01-01' }, 400],
    ['nonsense', { rpm: 'many' }, 400],
    ['a list', [], 400],
  ])('refuses %s and does not change the key', async (_, body, expected) => {
    const key = await limited.create({ rpm: 7 });
    expect(await status(await limited.patch(key, body))).toBe(expected);
    expect(objectOf((await limited.standing(key)).limits)).toEqual({ rpm: 7 });
  });

  test('an unknown key, and a request without the admin token', async () => {
    expect(await status(await limited.patch({ id: '0'.repeat(16), token: '' }, { rpm: 1 }))).toBe(404);
    const key = await limited.create({});
    const init = { method: 'PATCH', headers: { authorization: `Bearer ${key.token}` }, body: '{"rpm":1}' };
    expect(await status(await limited.gateway.fetch(`/admin/keys/${key.id}`, init))).toBe(401);
    expect(
      (await limited.gateway.fetch(`/admin/keys/${key.id}`, { method: 'PUT' })).headers.get('allow'),
    ).toBe('GET, PATCH, DELETE');
  });
});

describe('G8 GET /admin/keys/:id', () => {
  test('shows a key as its bearer sees it, only to the admin', async () => {
    const key = await limited.create({ budget: { tokens: 1e6 }, rpm: 5 });
    await status(await limited.ask(key));
    const own = await limited.settled(key);
    const shown = await jsonOf(await limited.gateway.fetch(`/admin/keys/${key.id}`, { headers: ADMIN }));
    expect({ ...shown, requests: null }).toEqual({ ...own, requests: null });
    expect(Number(objectOf(shown.budget).spent)).toBeGreaterThan(0);
    const bearer = { authorization: `Bearer ${key.token}` };
    expect(await status(await limited.gateway.fetch(`/admin/keys/${key.id}`, { headers: bearer }))).toBe(401);
    const unknown = await limited.gateway.fetch(`/admin/keys/${'0'.repeat(16)}`, { headers: ADMIN });
    expect(await status(unknown)).toBe(404);
  });

  test('a key without limits: no ledger object is called', async () => {
    const { id } = await limited.create({});
    const shown = await jsonOf(await limited.gateway.fetch(`/admin/keys/${id}`, { headers: ADMIN }));
    expect(shown).toMatchObject({ id, limits: null });
  });
});

describe('G8 GET /v1/key', () => {
  test('shows the limits, what is spent, reserved and left, and the reset time', async () => {
    limited.usage = { prompt: 7, completion: 3 };
    const key = await limited.create({
      budget: { tokens: 1e6, per: 'day' },
      rpm: 5,
      tpm: 1e6,
      max_concurrent: 2,
    });
    await status(await limited.ask(key));
    const standing = await limited.settled(key);
    const tomorrow = new Date(Math.ceil(Date.now() / 86_400_000) * 86_400_000).toISOString();
    expect(standing).toMatchObject({
      object: 'key',
      id: key.id,
      name: 'test',
      models: null,
      limits: { budget: { tokens: 1e6, per: 'day', mode: 'hard' }, rpm: 5, tpm: 1e6, max_concurrent: 2 },
      budget: {
        unit: 'tokens',
        period: new Date().toISOString().slice(0, 10),
        limit: 1e6,
        spent: 10,
        reserved: 0,
        remaining: 1e6 - 10,
        estimated: 0,
        resets_at: tomorrow,
      },
      requests: { limit: 5, remaining: 4 },
      tokens: { limit: 1e6, remaining: 1e6 - 10 },
      concurrent: { limit: 2, running: 0 },
    });
    expect(JSON.stringify(standing)).not.toContain(key.token);
  });

  test('a key without limits, and a request without a key', async () => {
    const key = await limited.create({});
    expect(await limited.standing(key)).toMatchObject({ id: key.id, name: 'test', limits: null });
    expect(await status(await limited.gateway.fetch('/v1/key'))).toBe(401);
    expect(await status(await limited.gateway.fetch('/v1/key', { method: 'POST' }))).toBe(405);
  });
});

describe('G5 every response under a limit', () => {
  test.each([{}, { stream: true }])('reports the status of the limits: %j', async (fields) => {
    const key = await limited.create({ budget: { tokens: 1e6 }, rpm: 5, tpm: 1e6 });
    const response = await limited.ask(key, fields);
    await response.text();
    const { headers } = response;
    expect(headers.get('x-ratelimit-limit-requests')).toBe('5');
    expect(headers.get('x-ratelimit-remaining-requests')).toBe('4');
    // A request counts for 60 to 61 s.
    expect(headers.get('x-ratelimit-reset-requests')).toMatch(/^1m(0(\.\d+)?|1)s$/);
    expect(headers.get('x-ratelimit-limit-tokens')).toBe('1000000');
    expect(Number(headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(1e6 - 100);
    expect(headers.get('x-weir-budget-remaining')).toMatch(/^\d+ tokens$/);
  });

  test('also where the provider refuses the request', async () => {
    const key = await limited.create({ budget: { tokens: 1e6 }, rpm: 5 });
    limited.usage = null;
    const response = await limited.ask(key, { model: 'deepseek/no-such-model' });
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('5');
    await response.text();
    // It used no tokens.
    expect((await limited.settled(key)).budget).toMatchObject({ spent: 0, reserved: 0 });
  });

  test('a refused request gets a retry-after', async () => {
    const key = await limited.create({ rpm: 1 });
    await status(await limited.ask(key));
    const response = await limited.ask(key);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(50);
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    expect(await errorOf(response)).toMatchObject({ status: 429, error: { code: 'rate_limited' } });
  });
});

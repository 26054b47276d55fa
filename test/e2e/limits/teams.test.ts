/** Teams in workerd: their routes, and limits that hold over all keys of a team while requests run (G13). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { errorOf, jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Key, type Limited, startLimited } from './limited.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

let limited: Limited;
/** What a request reserves: the bound of its prompt, and its output limit of 100. */
let each: number;
beforeAll(async () => {
  limited = await startLimited();
  const response = await limited.ask(await limited.create({ budget: { tokens: 1e9 } }));
  await response.text();
  each = 1e9 - Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
});
afterAll(() => limited[Symbol.asyncDispose]());

const call = (method: string, path: string, body?: JsonObject) =>
  limited.gateway.fetch(`/v1/admin/teams${path}`, {
    method,
    headers: ADMIN,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function create(fields: JsonObject): Promise<string> {
  const response = await call('POST', '', { name: 'search', ...fields });
  const made = await jsonOf(response);
  if (response.status !== 201) throw new Error(JSON.stringify(made));
  return textOf(made.id);
}

const show = async (team: string) => jsonOf(await call('GET', `/${team}`));

/** Waits until nothing of the team runs. */
async function settled(team: string): Promise<JsonObject> {
  for (;;) {
    const shown = await show(team);
    if (objectOf(shown.budget).reserved === 0) return shown;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Sends requests with each key at once. */
async function burst(keys: readonly Key[], count: number, fields: JsonObject = {}) {
  const responses = await Promise.all(
    keys.flatMap((key) => Array.from({ length: count }, () => limited.ask(key, fields))),
  );
  return Promise.all(
    responses.map(async (response) => {
      await response.text();
      return { status: response.status, by: response.headers.get('x-weir-limit') };
    }),
  );
}

describe('G13 a team', () => {
  test('is created, listed, shown, changed and deleted', async () => {
    const fields = {
      models: ['deepseek/*'],
      budget: [
        { USD: 5, per: 'month', mode: 'running' },
        { USD: 1, per: 'day', mode: 'running' },
      ],
      ...{ rpm: 100, tpm: 100_000, max_concurrent: 9 },
      per_key: { rpm: 20, max_output_tokens: 500 },
      per_user: { budget: { USD: 1, per: 'week', mode: 'warn' }, rpm: 5 },
    };
    const response = await call('POST', '', { name: 'search', ...fields });
    expect(response.status).toBe(201);
    const { id, created_at, ...made } = await jsonOf(response);
    expect(made).toEqual({ name: 'search', ...fields });
    const all = objectsOf((await jsonOf(await call('GET', ''))).data);
    expect(all).toContainEqual({ id, created_at, name: 'search', ...fields });
    expect(await show(textOf(id))).toMatchObject({ object: 'team', id, keys: 0, requests: { limit: 100 } });
    const changed = await jsonOf(
      await call('PATCH', `/${textOf(id)}`, { name: 'find', rpm: null, models: null }),
    );
    expect(changed).toMatchObject({ name: 'find', models: null, tpm: 100_000 });
    expect(changed).not.toHaveProperty('rpm');
    expect(await jsonOf(await call('DELETE', `/${textOf(id)}`))).toEqual({ id, deleted: true });
    expect((await call('GET', `/${textOf(id)}`)).status).toBe(404);
    expect((await call('PATCH', `/${textOf(id)}`, { rpm: 1 })).status).toBe(404);
  });

  test.each([
    [{ rmp: 5 }, 'rmp', 'did you mean rpm?'],
    [{ team: '0123456789abcdef' }, 'team', 'A team is in no other team'],
    [{ max_output_tokens: 5 }, 'max_output_tokens', 'A team has no field'],
    [{ per_key: { per_user: { rpm: 1 } } }, 'per_key', 'per_key must be an object with budget'],
    [{ per_key: {} }, 'per_key', 'per_key must set a limit'],
    [{ budget: { XXX: 5 } }, 'budget', 'No model has a price in XXX'],
    [{ name: '' }, 'name', 'name must be a text'],
    [{ models: [] }, 'models', 'models must be a list'],
  ])('refuses %j', async (fields, param, message) => {
    expect(await errorOf(await call('POST', '', { name: 'a', ...fields }))).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', param, message: expect.stringContaining(message) },
    });
  });

  test('warns of limits of a key, or of each key, above those of the team', async () => {
    const response = await call('POST', '', { name: 'a', rpm: 5, per_key: { rpm: 6 } });
    const { id, warnings } = await jsonOf(response);
    expect(warnings).toMatchObject([{ param: 'per_key', message: expect.stringContaining('6') }]);
    const key = await limited.gateway.post(
      '/admin/keys',
      { name: 'above', team: id ?? '', rpm: 7 },
      { headers: ADMIN },
    );
    expect(await jsonOf(key)).toMatchObject({ team: id, warnings: [{ param: 'rpm' }] });
  });

  test('that has keys is not deleted: a 409 counts them, and a revoked key is none', async () => {
    const team = await create({ rpm: 5 });
    const keys = [await limited.create({ team }), await limited.create({ team })];
    expect(await errorOf(await call('DELETE', `/${team}`))).toMatchObject({
      status: 409,
      error: { code: 'team_has_keys', message: expect.stringContaining('2 keys') },
    });
    await limited.gateway.fetch(`/admin/keys/${keys[0]?.id}`, { method: 'DELETE', headers: ADMIN });
    await limited.patch(keys[1] as Key, { team: null });
    while ((await show(team)).keys !== 0) await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await call('DELETE', `/${team}`)).status).toBe(200);
  });
});

test('G13 a key that was revoked while its object could not be reached: its team is deleted two days later', async () => {
  const vars = { NO_LEDGER: undefined };
  await using own = await startLimited({ entrypoint: 'later-worker.ts', vars });
  const { gateway } = own;
  const send = async (path: string, init: RequestInit) => {
    const response = await gateway.fetch(path, { headers: ADMIN, ...init });
    return { status: response.status, ...(await jsonOf(response)) } as JsonObject;
  };
  const body = JSON.stringify({ name: 'a', budget: { tokens: 1e6 } });
  const path = `/v1/admin/teams/${textOf((await send('/v1/admin/teams', { method: 'POST', body })).id)}`;
  const team = path.slice(-16);
  const [lost, kept] = [await own.create({ team }), await own.create({ team })];
  await (await own.ask(lost)).text();
  await gateway.set({ NO_LEDGER: 'yes' });
  expect(await send(`/admin/keys/${lost.id}`, { method: 'DELETE' })).toMatchObject({ status: 200 });
  await gateway.set(vars);
  const remove = () => send(path, { method: 'DELETE' });
  const has = (keys: string) => ({
    status: 409,
    error: { message: expect.stringContaining(`has ${keys}:`) },
  });
  expect(await remove()).toMatchObject(has('2 keys'));
  await gateway.fetch(`/test/later?ms=${2 * 86_400_000}`);
  expect(await remove()).toMatchObject(has('1 key'));
  // The object of the revoked key reports its last charge.
  while (objectOf((await send(path, {})).budget).spent !== 10)
    await new Promise((resolve) => setTimeout(resolve, 200));
  await own.patch(kept, { team: null });
  expect(await remove()).toMatchObject({ status: 200, deleted: true });
});

describe('G13 the keys of a team', () => {
  test('an unknown team is a 400, and nothing is changed', async () => {
    const body = { name: 'a', team: '0123456789abcdef' };
    const response = await limited.gateway.post('/admin/keys', body, { headers: ADMIN });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'team' } });
    const key = await limited.create({ rpm: 100 });
    expect(await errorOf(await limited.patch(key, { team: 'nobody' }))).toMatchObject({ status: 400 });
    expect(await limited.standing(key)).not.toHaveProperty('team');
  });

  test('a hard budget holds over two keys with concurrent requests, whatever their own limits', async () => {
    limited.usage = { prompt: each - 100, completion: 100 };
    const team = await create({ budget: { tokens: 5 * each + each - 1 } });
    const keys = [await limited.create({ team }), await limited.create({ team, budget: { tokens: 1e6 } })];
    const responses = await burst(keys, 12);
    limited.usage = { prompt: 7, completion: 3 };
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(5);
    for (const { by } of responses.filter(({ status }) => status !== 200)) expect(by).toBe('team');
    const { budget, keys: count } = await settled(team);
    expect(count).toBe(2);
    expect(objectOf(budget)).toMatchObject({ spent: 5 * each, reserved: 0 });
  });

  test('rpm of the team holds over its keys, and the models of the team for each', async () => {
    const team = await create({ rpm: 6, models: ['deepseek/*'] });
    const keys = [
      await limited.create({ team }),
      await limited.create({ team, models: ['deepseek/*', 'mistral/*'] }),
    ];
    const responses = await burst(keys, 5);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(6);
    const other = await limited.ask(keys[1] as Key, { model: 'mistral/mistral-small-latest' });
    expect(await errorOf(other)).toMatchObject({ status: 403, error: { code: 'model_not_allowed' } });
  });

  test('per_key and per_user hold for a key without limits of that kind, and the key shows them', async () => {
    const team = await create({ per_key: { rpm: 3 }, per_user: { rpm: 2 } });
    const key = await limited.create({ team });
    const asked = [];
    for (const user of ['ada', 'ada', 'ada', 'bob', 'bob']) asked.push(...(await burst([key], 1, { user })));
    expect(asked.map(({ by }) => by)).toEqual([null, null, 'user', null, 'key']);
    expect(await limited.standing(key)).toMatchObject({
      team,
      limits: { rpm: 3, per_user: { rpm: 2 } },
      requests: { limit: 3, remaining: 0 },
    });
  });

  test('a top-up of the team admits more, and the audit has it with the changes of the team', async () => {
    const team = await create({ budget: { tokens: 10, per: 'day' } });
    const key = await limited.create({ team });
    expect(await burst([key], 1)).toEqual([{ status: 429, by: 'team' }]);
    const added = await jsonOf(
      await call('POST', `/${team}/budget`, { add: { tokens: 5 * each }, note: 'release' }),
    );
    expect(added).toMatchObject({
      id: team,
      budget: { limit: 10 + 5 * each, added: 5 * each },
      top_ups: [{ note: 'release' }],
    });
    expect(await burst([key], 1)).toEqual([{ status: 200, by: null }]);
    await call('PATCH', `/${team}`, { rpm: 9 });
    const audit = await jsonOf(
      await limited.gateway.fetch(`/v1/admin/audit?team=${team}`, { headers: ADMIN }),
    );
    expect(objectsOf(audit.data).map(({ action }) => action)).toEqual([
      ...['team_changed', 'budget_added', 'team_created'],
    ]);
  });

  test('a key that changes its team spends from the other one', async () => {
    const [small, large] = [
      await create({ budget: { tokens: 10 } }),
      await create({ budget: { tokens: 5 * each } }),
    ];
    const key = await limited.create({ team: small });
    expect(await burst([key], 1)).toEqual([{ status: 429, by: 'team' }]);
    expect(await jsonOf(await limited.patch(key, { team: large }))).toMatchObject({ team: large });
    expect(await burst([key], 1)).toEqual([{ status: 200, by: null }]);
    expect(objectOf((await settled(large)).budget)).toMatchObject({ spent: 10 });
    expect(await show(small)).toMatchObject({ budget: { spent: 0, reserved: 0 } });
  });
});

describe('G13 a key whose entry has no room for its team', () => {
  /** Fields of a key that take so many bytes as JSON. */
  const sized = (bytes: number): JsonObject => {
    const models = ['deepseek/*', ...Array.from({ length: 4 }, (_, n) => `${n}${'x'.repeat(150)}`)];
    const name = 'n';
    const rest = bytes - JSON.stringify([name, models]).length - 3;
    return { name, models: [...models, 'y'.repeat(rest)] };
  };
  const teamsOfKeys = async () => {
    const { data } = await jsonOf(await limited.gateway.fetch('/admin/keys', { headers: ADMIN }));
    return new Map(objectsOf(data).map((key) => [key.id, key.team]));
  };
  const message = /must not take more than \d+ bytes$/;

  test('is not made: a 400 names the bound, and no key counts at the team', async () => {
    const team = await create({ rpm: 5 });
    const post = (fields: JsonObject) =>
      limited.gateway.post('/admin/keys', { ...fields, team }, { headers: ADMIN });
    expect(await errorOf(await post(sized(813)))).toMatchObject({
      status: 400,
      error: { param: 'models', message: expect.stringMatching(message) },
    });
    expect(await show(team)).toMatchObject({ keys: 0 });
    expect((await post(sized(812))).status).toBe(201);
    expect(await show(team)).toMatchObject({ keys: 1 });
  });

  test('keeps what it had when a PATCH names the team, and does not count at the team', async () => {
    const [team, other] = [await create({ rpm: 5 }), await create({ rpm: 5 })];
    const plain = await limited.create(sized(850));
    const small = await limited.create({ ...sized(812), team: other });
    const bound = { ...small, fields: { rpm: 9, team } };
    for (const { id, fields } of [{ ...plain, fields: { team } }, bound]) {
      const response = await limited.patch({ id, token: '' }, fields);
      expect(await errorOf(response)).toMatchObject({
        status: 400,
        error: { param: 'models', message: expect.stringMatching(message) },
      });
    }
    expect(await show(team)).toMatchObject({ keys: 0 });
    expect(await show(other)).toMatchObject({ keys: 1 });
    const listed = await teamsOfKeys();
    expect([listed.get(plain.id), listed.get(small.id)]).toEqual([undefined, other]);
    expect(await burst([plain, small], 1)).toEqual([
      { status: 200, by: null },
      { status: 200, by: null },
    ]);
    expect(await show(other)).toMatchObject({ requests: { remaining: 4 } });
  });

  test('is rotated at the bound: its secrets belong to the team, and lists have it with its team', async () => {
    const team = await create({ rpm: 3 });
    const key = await limited.create({ ...sized(812), team });
    for (let rotations = 0; rotations < 2; rotations++) {
      const rotated = await limited.gateway.post(
        `/v1/admin/keys/${key.id}/rotate`,
        { overlap_hours: 1 },
        { headers: ADMIN },
      );
      const { key: token, team: shown } = await jsonOf(rotated);
      expect([rotated.status, shown]).toEqual([200, team]);
      expect(await burst([{ id: key.id, token: textOf(token) }], 1)).toEqual([{ status: 200, by: null }]);
    }
    expect((await teamsOfKeys()).get(key.id)).toBe(team);
    expect(await show(team)).toMatchObject({ keys: 1, requests: { remaining: 1 } });
  });
});

describe.each(['kv', 'object'])('with LEDGER=%s', (LEDGER) => {
  test('G13 records have the team of the key, and reports and lists are by team, reports with its name', async () => {
    await using own = await startLimited({ vars: { LEDGER } });
    const { gateway } = own;
    const get = async (path: string) => jsonOf(await gateway.fetch(path, { headers: ADMIN }));
    const team = textOf(
      (await jsonOf(await gateway.post('/v1/admin/teams', { name: 'a', rpm: 99 }, { headers: ADMIN }))).id,
    );
    for (const limits of [{ team }, { team }, {}]) await (await own.ask(await own.create(limits))).text();
    const all = () => get('/v1/usage?group_by=team');
    let rows = objectsOf((await all()).data);
    while (rows.reduce((sum, { requests }) => sum + Number(requests), 0) < 3)
      rows = objectsOf((await all()).data);
    const counts = Object.fromEntries(rows.map((row) => [textOf(row.team), row.requests]));
    expect(counts).toEqual({ [team]: 2, '': 1 });
    const names = rows.map((row) => [row.team, row.team_name]).toSorted();
    expect(names).toEqual([
      ['', undefined],
      [team, 'a'],
    ]);
    const csv = await gateway.fetch('/v1/usage?group_by=team&format=csv', { headers: ADMIN });
    const lines = (await csv.text()).split('\r\n');
    expect(lines[0]).toMatch(/^team,team_name,requests,/);
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^${team},a,2,`)));
    expect(lines).toContainEqual(expect.stringMatching(/^,,1,/));
    expect(await get(`/v1/usage?team=${team}`)).toMatchObject({ total: { requests: 2 } });
    const listed = objectsOf((await get(`/v1/usage/records?team=${team}`)).data);
    expect(listed.map((record) => record.team)).toEqual([team, team]);
  });
});

describe('K9 the token of a team lead', () => {
  test('manages the keys of its team, reads its usage, and nothing else', async () => {
    const [team, other] = [await create({ rpm: 90 }), await create({ rpm: 90 })];
    const foreign = await limited.create({ name: 'foreign', team: other });
    const { gateway } = limited;
    const made = await gateway.post('/admin/keys', { name: 'lead', scope: 'team', team }, { headers: ADMIN });
    const token = await jsonOf(made);
    expect([made.status, token.scope, token.team]).toEqual([201, 'team', team]);
    const headers = { authorization: `Bearer ${textOf(token.key)}` };
    const ask = async (method: string, path: string, body?: JsonObject) => {
      const response = await gateway.fetch(path, {
        ...{ method, headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, ...(await jsonOf(response)) } as JsonObject;
    };
    const key = await ask('POST', '/admin/keys', { name: 'mine', budget: { tokens: 9000, per: 'day' } });
    expect(key).toMatchObject({ status: 201, team });
    const path = `/admin/keys/${textOf(key.id)}`;
    const own = { id: textOf(key.id), token: textOf(key.key) };
    expect((await burst([own, foreign], 1)).map(({ status }) => status)).toEqual([200, 200]);
    const list = await ask('GET', '/admin/keys');
    expect(objectsOf(list.data).map(({ id }) => id)).toEqual([own.id]);
    expect([list.tokens, list.revoked]).toEqual([[], []]);
    expect(await ask('GET', path)).toMatchObject({ status: 200, team });
    expect(await ask('PATCH', path, { rpm: 9 })).toMatchObject({ status: 200, rpm: 9 });
    expect(await ask('POST', `/v1${path}/budget`, { add: { tokens: 100 } })).toMatchObject({ status: 200 });
    expect(await ask('GET', `/v1/admin/teams/${team}`)).toMatchObject({ status: 200, keys: 1 });
    const usage = await ask('GET', '/v1/usage');
    expect(usage).toMatchObject({ status: 200, total: { requests: 1 } });
    const audit = await jsonOf(await gateway.fetch(`/v1/admin/audit?key=${own.id}`, { headers: ADMIN }));
    expect(objectsOf(audit.data)[0]).toMatchObject({ actor: `team token ${textOf(token.id)}` });
    // What is not its own.
    for (const [method, to, body, status] of [
      ['PATCH', path, { team: other }, 400],
      ['PATCH', path, { team: null }, 400],
      ['POST', '/admin/keys', { name: 'a', team: other }, 400],
      ['POST', '/admin/keys', { name: 'a', scope: 'usage' }, 400],
      ['POST', '/admin/keys', { name: 'a', scope: 'team', team }, 400],
      ['GET', `/admin/keys/${foreign.id}`, undefined, 404],
      ['PATCH', `/admin/keys/${foreign.id}`, { rpm: 1 }, 404],
      ['DELETE', `/admin/keys/${foreign.id}`, undefined, 404],
      ['DELETE', `/admin/keys/${textOf(token.id)}`, undefined, 404],
      ['POST', `/v1/admin/keys/${foreign.id}/rotate`, {}, 404],
      ['POST', `/v1/admin/keys/${foreign.id}/budget`, { add: { tokens: 1 } }, 404],
      ['GET', `/v1/usage?team=${other}`, undefined, 400],
      ['GET', `/v1/admin/teams/${other}`, undefined, 404],
      ['GET', '/v1/admin/teams', undefined, 401],
      ['PATCH', `/v1/admin/teams/${team}`, { rpm: 900 }, 401],
      ['POST', `/v1/admin/teams/${team}/budget`, { add: { USD: 1 } }, 401],
      ['DELETE', `/admin/keys/${own.id}/limits`, undefined, 401],
      ['GET', '/v1/admin/audit', undefined, 401],
    ] as const)
      expect([method, to, (await ask(method, to, body)).status]).toEqual([method, to, status]);
    expect(await burst([{ id: '', token: textOf(token.key) }], 1)).toEqual([{ status: 401, by: null }]);
    expect(await ask('POST', `/v1${path}/rotate`, { overlap_hours: 0 })).toMatchObject({ status: 200 });
    expect(await ask('DELETE', path)).toMatchObject({ status: 200, deleted: true });
    const tokenPath = `/admin/keys/${textOf(token.id)}`;
    expect((await gateway.fetch(tokenPath, { method: 'DELETE', headers: ADMIN })).status).toBe(200);
    expect(await ask('GET', '/admin/keys')).toMatchObject({ status: 401 });
  });

  test('needs a team that exists', async () => {
    const body = { name: 'lead', scope: 'team', team: '0123456789abcdef' };
    const response = await limited.gateway.post('/admin/keys', body, { headers: ADMIN });
    expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'team' } });
  });
});

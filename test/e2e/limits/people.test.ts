/** People of teams in workerd: callers of Cloudflare Access without a key fall under the limits of a team (Y12). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../../tools/simulator/json.ts';
import { AccessTeam } from '../../attribution/access-team.ts';
import { errorOf, jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Limited, startLimited } from './limited.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const TOTAL = 1e9;

let access: AccessTeam;
let limited: Limited;
/** What a request reserves: the bound of its prompt, and its output limit of 100. */
let each: number;
beforeAll(async () => {
  access = await AccessTeam.start();
  limited = await start({});
  const response = await limited.ask(await limited.create({ budget: { tokens: TOTAL } }));
  await response.text();
  each = TOTAL - Number.parseInt(response.headers.get('x-weir-budget-remaining') ?? '', 10);
});
afterAll(async () => {
  await limited[Symbol.asyncDispose]();
  await access[Symbol.asyncDispose]();
});

const start = (vars: Readonly<Record<string, string>>) =>
  startLimited({ vars: { AUTH: 'access', ...access.settings, ACCESS_GROUPS_CLAIM: 'groups', ...vars } });

const call = (method: string, path: string, body?: JsonObject, of = limited) =>
  of.gateway.fetch(`/v1/admin/teams${path}`, {
    method,
    headers: ADMIN,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function create(fields: JsonObject, of = limited): Promise<string> {
  const response = await call('POST', '', { name: 'search', ...fields }, of);
  const made = await jsonOf(response);
  if (response.status !== 201) throw new Error(JSON.stringify(made));
  return textOf(made.id);
}

const show = async (team: string) => jsonOf(await call('GET', `/${team}`));

let people = 0;
/** An address that no other test has. */
const someone = (domain: string) => `p${people++}@${domain}`;

/** Sends a request with a token of Access as the key. */
function ask(claims: JsonObject, fields: JsonObject = {}, of = limited): Promise<Response> {
  return of.ask({ id: '', token: access.token(claims) }, fields);
}

async function outcome(response: Response) {
  await response.text();
  return { status: response.status, by: response.headers.get('x-weir-limit') };
}

const own = async (claims: JsonObject, of = limited) =>
  jsonOf(await of.gateway.fetch('/v1/key', { headers: { authorization: `Bearer ${access.token(claims)}` } }));

/** Waits until nothing of the team runs. */
async function settled(team: string): Promise<JsonObject> {
  for (;;) {
    const shown = await show(team);
    if (objectOf(shown.budget).reserved === 0) return shown;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

describe('Y12 a person', () => {
  test('without a team has no limits, as before teams', async () => {
    const email = someone('nobody.example');
    expect(await outcome(await ask({ email, groups: [] }))).toEqual({ status: 200, by: null });
    expect(await own({ email, groups: [] })).toMatchObject({ user: email, limits: null });
    expect(await own({ email, groups: [] })).not.toHaveProperty('team');
  });

  test('falls under per_user of a team that lists its address, and each person for itself', async () => {
    const team = await create({ people: ['*@eng.example'], per_user: { rpm: 2 } });
    const [ada, bob] = [someone('eng.example'), someone('eng.example')];
    const asked = [];
    for (const email of [ada, ada, ada, bob, bob, bob]) asked.push(await outcome(await ask({ email })));
    expect(asked.map(({ by }) => by)).toEqual([null, null, 'user', null, null, 'user']);
    expect(await show(team)).toMatchObject({ keys: 0, people: ['*@eng.example'] });
  });

  test('falls under the budget of its team with its keys, and is told its team and what is left', async () => {
    const budget = { tokens: 10 * each, per: 'day' };
    const team = await create({
      people: ['*@both.example'],
      budget,
      per_user: { budget: { tokens: 5 * each } },
    });
    const key = await limited.create({ team });
    const email = someone('both.example');
    for (const response of [await limited.ask(key), await ask({ email }), await ask({ email })])
      expect(await outcome(response)).toEqual({ status: 200, by: null });
    await settled(team);
    const shown = await own({ email });
    expect(shown).toMatchObject({
      ...{ object: 'key', user: email, team, team_name: 'search', name: null },
      budget: { limit: 10 * each, spent: 30 },
      per_user: { user: email, budget: { limit: 5 * each, spent: 20 } },
      limits: { per_user: { budget: { tokens: 5 * each } } },
    });
    expect(textOf(shown.id)).toMatch(/^access_/);
    // An admin reads it by the address, in any case.
    for (const [user, spent] of [
      [email, 20],
      [email.toUpperCase(), 20],
      [someone('both.example'), 0],
    ] as const)
      expect(await show(`${team}?user=${user}`)).toMatchObject({
        budget: { spent: 30 },
        per_user: { user: user.toLowerCase(), budget: { limit: 5 * each, spent } },
      });
    expect(await show(team)).not.toHaveProperty('per_user');
  });

  test('a refusal by the team names it, and no person', async () => {
    await create({ people: ['*@small.example'], budget: { tokens: 10 } });
    const email = someone('small.example');
    const response = await ask({ email });
    expect(response.headers.get('x-weir-limit')).toBe('team');
    const { status, error } = await errorOf(response);
    expect([status, error.code]).toEqual([429, 'budget_exceeded']);
    expect(error.message).toContain('The team of this caller has a budget of 10 tokens');
    expect(error.message).not.toContain(email);
  });

  test('spends of the budgets of its team, which sends their alerts', async () => {
    const budget = { tokens: 2 * each, per: 'week' };
    const people = ['*@alert.example'];
    const team = await create({ people, budget, per_user: { budget: { tokens: each } } });
    limited.usage = { prompt: each - 100, completion: 100 };
    for (const percent of [50, 100]) {
      expect((await ask({ email: someone('alert.example') })).status).toBe(200);
      await limited.gateway.logged((lines) =>
        lines.some((line) => line.event === 'budget_alert' && line.team === team && line.percent === percent),
      );
    }
    limited.usage = { prompt: 7, completion: 3 };
  });

  test('may use the models of its team only', async () => {
    await create({ people: ['*@models.example'], models: ['deepseek/*'] });
    const email = someone('models.example');
    expect(await outcome(await ask({ email }))).toMatchObject({ status: 200 });
    const other = await ask({ email }, { model: 'mistral/mistral-small-latest' });
    expect(await errorOf(other)).toMatchObject({ status: 403, error: { code: 'model_not_allowed' } });
  });

  test('beyond max_users shares one allowance with the others there', async () => {
    await create({ people: ['*@many.example'], per_user: { rpm: 1, max_users: 1 } });
    const asked = [];
    for (let n = 0; n < 3; n++) asked.push(await outcome(await ask({ email: someone('many.example') })));
    expect(asked.map(({ by }) => by)).toEqual([null, null, 'user']);
  });
});

describe('Y12 which team a person falls under', () => {
  test('by a group of the token, by people before that, else by the default, which only one team is', async () => {
    await using of = await start({});
    const ids: string[] = [];
    for (const fields of [{ groups: ['eng-*'] }, { people: ['boss@*'] }, { default: true, groups: ['ops'] }])
      ids.push(await create(fields, of));
    const teamOf = async (claims: JsonObject) => ids.indexOf(textOf((await own(claims, of)).team));
    expect(await teamOf({ groups: ['x', 'eng-web'] })).toBe(0);
    expect(await teamOf({ custom: { groups: ['eng-web'] } })).toBe(0);
    expect(await teamOf({ email: 'boss@example.com', groups: ['eng-web', 'ops'] })).toBe(1);
    expect(await teamOf({ groups: ['eng-web', 'ops'] })).toBe(2);
    for (const groups of [[], ['x'], undefined, 'eng-web', ['eng-web', 1]] as const)
      expect(await teamOf({ groups } as JsonObject)).toBe(2);
    expect(await teamOf(access.service('ci.access'))).toBe(2);
    // A second default changes nothing, in a new team or in another.
    const seconds: readonly [method: string, path: string, body: JsonObject][] = [
      ['POST', '', { name: 'b', default: true, rpm: 1 }],
      ['PATCH', `/${ids[0]}`, { default: true, people: ['x@y.z'], rpm: 1 }],
    ];
    for (const [method, path, body] of seconds) {
      const refused = await call(method, path, body, of);
      expect(await errorOf(refused)).toMatchObject({
        status: 400,
        error: { param: 'default', message: expect.stringContaining(`The team ${ids[2]} is the default`) },
      });
    }
    const all = objectsOf((await jsonOf(await call('GET', '', undefined, of))).data);
    expect(all).toHaveLength(3);
    expect(all.find(({ id }) => id === ids[0])).toEqual({
      ...{ id: ids[0], name: 'search', models: null, created_at: expect.any(String), groups: ['eng-*'] },
    });
    // Once it is free, another team takes it.
    expect((await call('PATCH', `/${ids[2]}`, { default: false }, of)).status).toBe(200);
    expect(await jsonOf(await call('PATCH', `/${ids[0]}`, { default: true }, of))).toMatchObject({
      ...{ groups: ['eng-*'], default: true },
    });
    expect(await teamOf({ groups: ['x'] })).toBe(0);
  });

  test.each<[JsonObject, string, string]>([
    [{ people: 'ada@example.com' }, 'people', 'must be a list of at most 200 texts'],
    [{ people: [''] }, 'people', 'people[0] must be a text of 1 to 256 characters'],
    [{ people: ['ada@example.com', '  '] }, 'people', 'people[1]'],
    [{ people: [7] }, 'people', 'people[0]'],
    [{ people: ['a@b@c'] }, 'people', 'people[0] must be an address'],
    [{ people: [`${'a'.repeat(300)}@x`] }, 'people', '1 to 256 characters'],
    [{ people: Array.from({ length: 201 }, (_, n) => `p${n}@x`) }, 'people', 'at most 200'],
    [{ groups: ['eng', null] }, 'groups', 'groups[1]'],
    [{ groups: {} }, 'groups', 'must be a list'],
    [{ groups: ['a\u0000b'] }, 'groups', 'groups[0]'],
    [{ default: 'yes' }, 'default', 'default must be true or false'],
    [{ member: ['x'] }, 'member', 'A team has no field'],
  ])('is not said by %j: a 400', async (fields, param, message) => {
    expect(await errorOf(await call('POST', '', { name: 'a', ...fields }))).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', param, message: expect.stringContaining(message) },
    });
  });
});

describe('Y12 a change of a team', () => {
  test('of people keeps the groups, and the limits; null and an empty list remove them', async () => {
    const team = await create({ people: ['A@X.example'], groups: ['g'], rpm: 5 });
    const changed = await jsonOf(await call('PATCH', `/${team}`, { people: ['b@x.example', 'b@x.example'] }));
    expect(changed).toMatchObject({ people: ['b@x.example'], groups: ['g'], rpm: 5 });
    expect(await jsonOf(await call('PATCH', `/${team}`, { groups: [] }))).not.toHaveProperty('groups');
    expect(await jsonOf(await call('PATCH', `/${team}`, { rpm: 6 }))).toMatchObject({
      people: ['b@x.example'],
    });
    const bare = await jsonOf(await call('PATCH', `/${team}`, { people: null }));
    expect(bare).not.toHaveProperty('people');
    const audit = await limited.gateway.fetch(`/v1/admin/audit?team=${team}`, { headers: ADMIN });
    const entries = objectsOf((await jsonOf(audit)).data);
    expect(entries.map(({ after }) => after)).toMatchObject([
      { people: null },
      { rpm: 6 },
      { groups: null },
      { people: ['b@x.example'] },
      { people: ['a@x.example'], groups: ['g'] },
    ]);
    expect(Object.keys(objectOf(entries[1]?.after))).toEqual(['rpm']);
  });

  test('moves its people: what runs and what was spent stays with the former team', async () => {
    const email = someone('move.example');
    const budget = { tokens: 10 * each };
    const from = await create({ people: [email], budget });
    const to = await create({ budget });
    const { simulator } = limited.gateway;
    const before = simulator.requests.length;
    const leaving = new AbortController();
    limited.usage = null;
    const person = { id: '', token: access.token({ email }) };
    const fields = { model: 'deepseek/deepseek-flash:hang', stream: true };
    const running = limited.ask(person, fields, { signal: leaving.signal }).catch(() => null);
    while (simulator.requests.length === before) await new Promise((resolve) => setTimeout(resolve, 20));
    limited.usage = { prompt: 7, completion: 3 };
    expect((await call('PATCH', `/${from}`, { people: null })).status).toBe(200);
    expect((await call('PATCH', `/${to}`, { people: [email] })).status).toBe(200);
    expect(await outcome(await ask({ email }))).toEqual({ status: 200, by: null });
    expect(objectOf((await show(from)).budget).reserved).toBeGreaterThan(0);
    leaving.abort();
    await running;
    // A hard budget is charged the output limit of a stream that its client leaves.
    expect(Number(objectOf((await settled(from)).budget).spent)).toBeGreaterThan(100);
    expect(await settled(to)).toMatchObject({ budget: { spent: 10 } });
  });

  test('that deletes it leaves nobody under it, and frees the default', async () => {
    const email = someone('deleted.example');
    const team = await create({ people: [email], per_user: { rpm: 1 } });
    for (const by of [null, 'user']) expect((await outcome(await ask({ email }))).by).toBe(by);
    expect(await jsonOf(await call('DELETE', `/${team}`))).toEqual({ id: team, deleted: true });
    expect(await outcome(await ask({ email }))).toEqual({ status: 200, by: null });
    expect(await own({ email })).not.toHaveProperty('team');
  });

  test('that has keys and people is not deleted, and keeps its people', async () => {
    const email = someone('kept.example');
    const team = await create({ people: [email] });
    await limited.create({ team });
    expect((await call('DELETE', `/${team}`)).status).toBe(409);
    expect(await own({ email })).toMatchObject({ team });
  });
});

describe('Y12 a person with a key and a token', () => {
  test('has two allowances under one team, by key and by sign-in', async () => {
    const email = someone('twice.example');
    const team = await create({ people: [email], per_user: { rpm: 1 }, rpm: 3 });
    const key = await limited.create({ team, user: email });
    const asked = [];
    for (let n = 0; n < 2; n++) {
      asked.push(await outcome(await limited.ask(key)));
      asked.push(await outcome(await ask({ email })));
    }
    expect(asked.map(({ by }) => by)).toEqual([null, null, 'user', 'user']);
    expect(await show(team)).toMatchObject({ keys: 1, requests: { limit: 3, remaining: 1 } });
  });
});

describe.each(['kv', 'object'])('with LEDGER=%s', (LEDGER) => {
  test('Y12 records of people have their team, and reports are by team', async () => {
    await using of = await start({ LEDGER });
    const team = await create({ people: ['*@example.com', 'ci.access'], rpm: 99 }, of);
    for (const claims of [{}, access.service('ci.access'), { email: 'a@other.example', groups: [] }])
      await (await ask(claims, {}, of)).text();
    const get = async (path: string) => jsonOf(await of.gateway.fetch(path, { headers: ADMIN }));
    let rows = objectsOf((await get('/v1/usage?group_by=team')).data);
    while (rows.reduce((sum, { requests }) => sum + Number(requests), 0) < 3)
      rows = objectsOf((await get('/v1/usage?group_by=team')).data);
    expect(Object.fromEntries(rows.map((row) => [textOf(row.team), row.requests]))).toEqual({
      [team]: 2,
      '': 1,
    });
    const listed = objectsOf((await get(`/v1/usage/records?team=${team}`)).data);
    expect(listed.map(({ user }) => user).sort()).toEqual(['ada@example.com', 'ci.access']);
  });
});

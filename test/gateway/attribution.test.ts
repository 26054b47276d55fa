/** Attribution through the gateway in memory: facts in records, reports, CSV and logs; what keys fix; users as hashes. */
import { describe, expect, test } from 'vitest';
import { NO_HOOKS } from '../../src/http/hooks.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { answerWith, RoutedGateway, read, refuse } from './upstreams.ts';

const ADMIN = 'admin';
const HASHED = { USERS: 'hash', USER_HASH_KEY: 'a secret of users' };

const headers = (sent: Readonly<Record<string, string>>) => ({ headers: sent });

async function jsonOf(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

async function rowsOf(gateway: LimitedGateway, token: string, query: string): Promise<JsonObject[]> {
  const body = await jsonOf(await gateway.fetch(`/v1/usage?${query}`, token));
  if (!Array.isArray(body.data)) throw new Error(JSON.stringify(body));
  return objectsOf(body.data);
}

async function recordsOf(gateway: LimitedGateway, token: string, query = ''): Promise<JsonObject[]> {
  return objectsOf((await jsonOf(await gateway.fetch(`/v1/usage/records?${query}`, token))).data);
}

describe('Y4 Y5 requests of coding agents', () => {
  test('appear by session and by app with their sums, and can be listed by session', async () => {
    const gateway = new LimitedGateway({});
    const key = await gateway.key();
    // The headers that the programs sent on 2026-11-22.
    const claude = (id: string) => ({
      'user-agent': 'claude-cli/2.1.330 (external, sdk-cli)',
      'x-claude-code-session-id': id,
    });
    const codex = (id: string) => ({
      'user-agent': 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.169.0)',
      originator: 'codex_exec',
      'session-id': id,
      'thread-id': id,
    });
    const opencode = (id: string) => ({
      'user-agent': 'opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14',
      'x-session-affinity': id,
      'x-session-id': id,
    });
    for (const client of [claude, codex, opencode]) {
      for (const id of ['one', 'one', 'two'])
        await gateway.ask(key, {}, headers(client(`${client.name}-${id}`)));
    }
    await gateway.idle();
    const bySession = await rowsOf(gateway, key, 'group_by=session');
    expect(bySession.map(({ session, requests, total_tokens }) => [session, requests, total_tokens])).toEqual(
      [
        ['claude-one', 2, 20],
        ['claude-two', 1, 10],
        ['codex-one', 2, 20],
        ['codex-two', 1, 10],
        ['opencode-one', 2, 20],
        ['opencode-two', 1, 10],
      ],
    );
    const byApp = await rowsOf(gateway, key, 'group_by=app');
    expect(byApp.map(({ app, requests }) => [app, requests])).toEqual([
      ['claude-cli', 3],
      ['codex_exec', 3],
      ['opencode', 3],
    ]);
    expect(await rowsOf(gateway, key, 'group_by=model&session=codex-one')).toMatchObject([{ requests: 2 }]);
    const listed = await recordsOf(gateway, key, 'session=codex-one');
    expect(listed.map(({ session, app, user, tags }) => [session, app, user, tags])).toEqual([
      ['codex-one', 'codex_exec', null, {}],
      ['codex-one', 'codex_exec', null, {}],
    ]);
    const limited = await rowsOf(gateway, key, 'group_by=session&limit=1');
    expect(limited.at(-1)).toMatchObject({ session: '(other)', requests: 7 });
  });
});

describe('Y2 what a key fixes', () => {
  const forged = headers({ 'x-weir-user': 'forged', 'x-weir-tags': 'team=forged,env=prod' });

  test('no request overrides, and a change of the key applies to the next request', async () => {
    const gateway = new LimitedGateway({ TAGS: 'team' });
    const key = await gateway.key({ user: 'ada', tags: { team: 'search' } });
    await gateway.ask(key, { user: 'forged', metadata: { team: 'forged' } }, forged);
    const shown = await jsonOf(await gateway.fetch('/v1/key', key));
    expect(shown).toMatchObject({ user: 'ada', tags: { team: 'search' } });
    const path = `/admin/keys/${textOf(shown.id)}`;
    const change = async (body: JsonObject) =>
      jsonOf(await gateway.fetch(path, ADMIN, { method: 'PATCH', body: JSON.stringify(body) }));
    expect(await change({ user: null, require_user: true })).toMatchObject({
      tags: { team: 'search' },
      require_user: true,
    });
    const refused = await gateway.ask(key);
    expect(refused.status).toBe(400);
    expect(objectOf((await jsonOf(refused)).error).code).toBe('user_required');
    await gateway.ask(key, {}, headers({ 'x-weir-user': 'bob' }));
    await gateway.idle();
    const records = await recordsOf(gateway, key);
    expect(records.map(({ user, tags }) => [user, tags])).toEqual([
      ['bob', { team: 'search' }],
      ['ada', { team: 'search', env: 'prod' }],
    ]);
    expect(gateway.calls.filter((call) => call === 'upstream')).toHaveLength(2);
  });

  test.each([
    ['user', { user: '' }],
    ['user', { user: 7 }],
    ['tags', { tags: { TEAM: 'x' } }],
    ['tags', { tags: { team: 7 } }],
    ['tags', { tags: 'team=x' }],
    ['tags', { tags: Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`t${i}`, 'v'])) }],
    ['require_user', { require_user: 'yes' }],
  ])('an invalid %s is a 400: %j', async (param, fields) => {
    const response = await new LimitedGateway({}).post('/admin/keys', ADMIN, { name: 'x', ...fields });
    expect([response.status, objectOf((await jsonOf(response)).error).param]).toEqual([400, param]);
  });

  test('the host’s user comes before the request’s, and one that is not text is a 500', async () => {
    const names: unknown[] = ['ada', 7];
    const onRequest = () => ({ id: 'team', user: names.shift() });
    const gateway = new LimitedGateway({}, {}, { ...NO_HOOKS, onRequest });
    expect((await gateway.ask('x', {}, forged)).status).toBe(200);
    expect((await gateway.ask('x', {}, forged)).status).toBe(500);
    await gateway.idle();
    expect(gateway.logged.find(({ event }) => event === 'request')?.user).toBe('ada');
  });
});

describe('Y2 users as hashes', () => {
  test('the plain name is in no log, no record and no report, and a report takes it', async () => {
    const gateway = new LimitedGateway(HASHED);
    const key = await gateway.key();
    await gateway.ask(key, { user: 'zoltan@example.com' });
    await gateway.ask(key, { user: 'wystan@example.com' });
    await gateway.idle();
    // Names with letters that no random id has.
    const everything = JSON.stringify([gateway.logged, await recordsOf(gateway, key)]);
    expect(everything).not.toMatch(/zoltan|wystan/);
    const rows = await rowsOf(gateway, key, 'group_by=user&user=zoltan%40example.com');
    expect(rows).toMatchObject([{ user: expect.stringMatching(/^h_/), requests: 1 }]);
    expect(await rowsOf(gateway, key, 'group_by=user&user=eve')).toEqual([]);
  });
});

describe('Y5 names with any characters', () => {
  const names = [
    '=1+1',
    '"quoted", with a comma',
    '🌊 wave',
    "'; DROP TABLE users",
    'line\nbreak',
    '../../key/x',
  ];

  test('are one cell of CSV each, never a formula, and leave the stores’ keys as they are', async () => {
    const gateway = new LimitedGateway({});
    const key = await gateway.key();
    for (const user of [...names, 'n'.repeat(10_000)]) await gateway.ask(key, { user });
    await gateway.idle();
    const csv = await (await gateway.fetch('/v1/usage?group_by=user&format=csv', key)).text();
    const lines = csv.trimEnd().split('\r\n');
    expect(lines).toHaveLength(1 + names.length + 1);
    expect(lines.filter((line) => /^"?[=+@-]/.test(line))).toEqual([]);
    expect(csv).toContain("'=1+1,");
    expect(csv).toContain('"""quoted"", with a comma",');
    const found = await rowsOf(gateway, key, `group_by=user&user=${encodeURIComponent('line\nbreak')}`);
    expect(found).toMatchObject([{ requests: 1 }]);
  });
});

test.each([
  ['group_by=tag:team', 'tag'],
  ['group_by=model&tag=team:search', 'tag'],
  ['group_by=tag:TEAM', 'group_by'],
  ['tag=team', 'tag'],
  ['limit=0', 'limit'],
  ['limit=10001', 'limit'],
])('Y5 with LEDGER=kv a report with %s is a 400 that says why', async (query, param) => {
  const gateway = new LimitedGateway({});
  const response = await gateway.fetch(`/v1/usage?${query}`, await gateway.key());
  expect([response.status, objectOf((await jsonOf(response)).error).param]).toEqual([400, param]);
});

describe('Y7 two weighted targets', () => {
  const ALIASES = {
    both: [
      { model: 'deepseek/first', weight: 1 },
      { model: 'mistral/second', weight: 1 },
    ],
  };

  test.each([
    ['x-session-id', (id: string) => ({ init: headers({ 'x-session-id': id }), fields: {} })],
    ['user', (id: string) => ({ init: {}, fields: { user: id } })],
    ['the opening', (id: string) => ({ init: {}, fields: { messages: [{ role: 'user', content: id }] } })],
  ])('each session stays on one target over ten turns, known by %s', async (_, sent) => {
    const gateway = new RoutedGateway({ first: [answerWith('Hi')], second: [answerWith('Hi')] }, { ALIASES });
    const targets = new Set<string>();
    for (let session = 0; session < 10; session++) {
      const { init, fields } = sent(`session ${session}`);
      gateway.requests.length = 0;
      for (let turn = 0; turn < 10; turn++) await read(await gateway.ask({ model: 'both', ...fields }, init));
      expect(new Set(gateway.models).size).toBe(1);
      targets.add(String(gateway.models[0]));
    }
    expect([...targets].sort()).toEqual(['first', 'second']);
  });

  test('a session moves when its target fails, and returns when it is back', async () => {
    let down = '';
    const behavior = (model: string) => (isStreamed: boolean) => {
      if (model === down) return refuse(503);
      const answer = answerWith('Hi');
      return typeof answer === 'function' ? answer(isStreamed) : answer;
    };
    const gateway = new RoutedGateway(
      { first: [behavior('first')], second: [behavior('second')] },
      { ALIASES },
    );
    const init = headers({ 'x-session-id': 'one' });
    const turn = async () => {
      await read(await gateway.ask({ model: 'both' }, init));
      await gateway.gateway.idle();
      return String(gateway.records.at(-1)?.model);
    };
    const home = await turn();
    down = home;
    const away = await turn();
    expect(away).not.toBe(home);
    expect(await turn()).toBe(away);
    down = '';
    expect([await turn(), await turn()]).toEqual([home, home]);
  });
});

describe('O6 a known session gives the key of the prompt cache', () => {
  const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];

  /** The keys that the upstream received, of one request each. */
  async function keysOf(requests: readonly (readonly [sent: Record<string, string>, fields: JsonObject])[]) {
    const own = { base_url: 'https://own', api: 'responses' };
    const gateway = new RoutedGateway({}, { PROVIDERS: { own } });
    for (const [sent, fields] of requests)
      await read(
        await gateway.ask({ model: 'openai/gpt-6.1-terra', tools: TOOLS, ...fields }, headers(sent)),
      );
    expect(gateway.requests).toHaveLength(requests.length);
    return gateway.requests.map(({ body }) => body.prompt_cache_key);
  }

  test('of Responses: one for each session, 32 digits of a hash', async () => {
    const one = { 'x-session-id': 'session-of-ada@example.com' };
    const keys = await keysOf([
      [one, {}],
      [
        { ...one, 'x-weir-user': 'ada' },
        { user: 'bob', messages: [{ role: 'user', content: 'Other' }] },
      ],
      [{ 'x-session-id': 'another' }, {}],
    ]);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys[2]).not.toBe(keys[0]);
  });

  test('not where the client sends its own, and never from a user', async () => {
    const session = { 'x-session-id': 'one' };
    const keys = await keysOf([
      [session, { prompt_cache_key: 'own' }],
      [{ 'x-weir-user': 'ada' }, { user: 'ada', safety_identifier: 'ada' }],
    ]);
    expect(keys).toEqual(['own', undefined]);
  });

  test('not in Chat Completions, and not at a server of which it is not known', async () => {
    const models = ['openai/gpt-4o-mini', 'own/m'];
    const keys = await keysOf(models.map((model) => [{ 'x-session-id': 'one' }, { model }]));
    expect(keys).toEqual([undefined, undefined]);
  });
});

/**
 * Cloudflare Access through the gateway in memory: whom a token names, callers without a key, admins without the token,
 * and requests of other sites.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { type Hooks, NO_HOOKS } from '../../src/http/hooks.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { ACCESS_HEADER, AccessTeam, makeSigningKey, part } from '../attribution/access-team.ts';
import { FakeTracing } from './fake-tracing.ts';
import { LimitedGateway, passingClock, startTimer } from './limited-gateway.ts';

const ADMIN = 'admin';
const ADA = { email: 'ada@example.com' };
const EVE = { email: 'eve@example.com' };
const ADMINS = 'ada@example.com, *@ops.example.com, ci.access';
const SDK_KEY = 'not-needed';

let team: AccessTeam;

beforeAll(async () => {
  team = await AccessTeam.start();
});
afterAll(() => team[Symbol.asyncDispose]());

const ANSWER = {
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};

const EMBEDDINGS = {
  object: 'list',
  model: 'm',
  data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
  usage: { prompt_tokens: 2, total_tokens: 2 },
};

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output: [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
  usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
};

const ANSWERS: Readonly<Record<string, object>> = { responses: RESPONSE, embeddings: EMBEDDINGS };

/** What providers received, as text. */
let sent: string[] = [];

const clock = passingClock({ now: () => 0, startTimer });

function gatewayWith(
  settings: JsonObject = {},
  hooks: Hooks = NO_HOOKS,
  ports: Partial<GatewayPorts> = {},
): LimitedGateway {
  sent = [];
  const upstream = async (input: Request | string, init?: RequestInit) => {
    if (String(input).startsWith(team.url)) return fetch(input, init);
    sent.push(JSON.stringify([input, [...new Headers(init?.headers)], init?.body]));
    const [, route = ''] = /\/(responses|embeddings)$/.exec(String(input)) ?? [];
    return Response.json(ANSWERS[route] ?? ANSWER);
  };
  return new LimitedGateway({ ...team.settings, ...settings }, { fetch: upstream, clock, ...ports }, hooks);
}

async function jsonOf(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

async function codeOf(response: Response): Promise<[status: number, code: unknown]> {
  return [response.status, objectOf((await jsonOf(response)).error).code];
}

const DENIED = [401, 'invalid_api_key'];
const CROSS_SITE = [403, 'cross_site'];

/** The records, as they were logged. */
async function recordsOf(gateway: LimitedGateway) {
  await gateway.idle();
  return gateway.logged.filter(({ event }) => event === 'request');
}

const BODY = { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 9 };
const JSON_HEADERS = { 'content-type': 'application/json' };

const ROUTES: readonly [method: string, path: string, body?: JsonObject][] = [
  ['POST', '/v1/chat/completions', BODY],
  ['POST', '/v1/completions', { model: 'openai/gpt-4o-mini', prompt: 'Hello' }],
  ['POST', '/v1/messages', BODY],
  ['POST', '/v1/messages/count_tokens', BODY],
  ['POST', '/v1/responses', { model: 'deepseek/deepseek-chat', input: 'Hello' }],
  ['POST', '/v1/responses/input_tokens', { model: 'openai/gpt-4o-mini', input: 'Hello' }],
  ['POST', '/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hello' }],
  ['GET', '/v1/responses/resp_1'],
  ['GET', '/v1/models'],
  ['GET', '/v1/models/openai/gpt-4o-mini'],
  ['GET', '/v1/usage'],
  ['GET', '/v1/usage/records'],
  ['GET', '/v1/usage/records/01a20438-82ea-7af1-a785-8432e5b266a9'],
  ['GET', '/v1/usage/refusals'],
  ['GET', '/v1/key'],
  ['GET', '/admin/keys'],
  ['POST', '/admin/keys', { name: 'x' }],
  ['GET', '/admin/keys/0123456789abcdef'],
  ['PATCH', '/admin/keys/0123456789abcdef', { name: 'x' }],
  ['DELETE', '/admin/keys/0123456789abcdef'],
  ['GET', '/dashboard'],
  ['GET', '/v1/unknown'],
];

function call(
  gateway: LimitedGateway,
  [method, path, body]: (typeof ROUTES)[number],
  token: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const own = body === undefined ? {} : { body: JSON.stringify(body) };
  const typed = body === undefined ? headers : { ...JSON_HEADERS, ...headers };
  return gateway.fetch(path, token, { method, headers: typed, ...own });
}

describe('Y3 an invalid token', () => {
  const invalid: [string, () => string][] = [
    ['of another application', () => team.token({ aud: ['other'] })],
    ['that has expired', () => team.token({ exp: 1_700_000_000 })],
    ['that another key signed', () => team.token({}, {}, makeSigningKey('first'))],
    ['that is empty', () => ''],
  ];

  test.each(invalid)(
    '%s is a 401 on every route, also beside a valid key or the admin token',
    async (_, token) => {
      const gateway = gatewayWith({ ACCESS_ADMINS: ADMINS, AUTH: 'access' });
      const key = await gateway.key({ user: 'fixed' });
      const headers = { [ACCESS_HEADER]: token() };
      for (const route of ROUTES) {
        for (const credential of [key, ADMIN, '']) {
          const response = await call(gateway, route, credential, headers);
          expect([route[0], route[1], response.status]).toEqual([route[0], route[1], 401]);
          expect(await response.text()).toContain('Cloudflare Access');
        }
      }
      expect(sent).toEqual([]);
      expect((await gateway.fetch('/health', '', { headers })).status).toBe(200);
      expect((await gateway.fetch('/v1/chat/completions', '', { method: 'OPTIONS', headers })).status).toBe(
        204,
      );
      const hosted = gatewayWith({}, { ...NO_HOOKS, onRequest: () => ({ id: 'team', user: 'host' }) });
      expect(await codeOf(await hosted.ask('x', {}, { headers }))).toEqual(DENIED);
    },
  );

  test('is not read without the settings', async () => {
    const gateway = gatewayWith({ ACCESS_TEAM_DOMAIN: '', ACCESS_AUD: '' });
    expect((await gateway.ask(await gateway.key(), {}, { headers: { [ACCESS_HEADER]: 'x' } })).status).toBe(
      200,
    );
  });

  test('and one that cannot be verified is a 503 with a time to wait, in the client’s form', async () => {
    team.state = 'down';
    const gateway = gatewayWith();
    const key = await gateway.key();
    const chat = await gateway.ask(key, {}, { headers: team.headers() });
    expect(chat.headers.get('retry-after')).toBe('5');
    expect(await codeOf(chat)).toEqual([503, 'access_unreachable']);
    const messages = await gateway.post('/v1/messages', key, BODY, { headers: team.headers() });
    expect([messages.status, (await jsonOf(messages)).type]).toEqual([529, 'error']);
    team.state = 'up';
    expect((await gateway.ask(key)).status).toBe(200);
    expect(sent).toHaveLength(1);
  });
});

describe('Y3 a valid token', () => {
  const forged = { 'x-weir-user': 'forged' };

  test('names the user beside a key: before the names of the request, after those of the key and the host', async () => {
    const gateway = gatewayWith();
    const headers = { ...forged, ...team.headers(EVE) };
    await gateway.ask(await gateway.key(), { user: 'forged', safety_identifier: 'forged' }, { headers });
    await gateway.ask(await gateway.key({ user: 'fixed' }), {}, { headers });
    await gateway.ask(
      await gateway.key({ require_user: true }),
      {},
      { headers: team.headers(team.service()) },
    );
    const users = (await recordsOf(gateway)).map(({ user }) => user);
    expect(users).toEqual(['eve@example.com', 'fixed', team.service().common_name]);
    const onRequest = (request: Request) =>
      request.headers.has('x-host') ? { id: 'host', user: 'host' } : { id: 'host' };
    const hosted = gatewayWith({}, { ...NO_HOOKS, onRequest });
    await hosted.ask('', {}, { headers: { ...headers, 'x-host': '1' } });
    await hosted.ask('', {}, { headers });
    expect((await recordsOf(hosted)).map(({ user }) => user)).toEqual(['host', 'eve@example.com']);
  });

  test('does not reach a provider', async () => {
    const gateway = gatewayWith();
    const headers = { ...team.headers(EVE), cookie: `CF_Authorization=${team.token(EVE)}` };
    await gateway.ask(await gateway.key(), {}, { headers });
    expect(sent).toHaveLength(1);
    expect(sent[0]).not.toMatch(/eyJ|eve@example|cf-access|CF_Auth/i);
  });

  test('is no key with AUTH=keys', async () => {
    const gateway = gatewayWith({ ACCESS_ADMINS: ADMINS });
    expect(await codeOf(await gateway.ask('', {}, { headers: team.headers(ADA) }))).toEqual(DENIED);
    expect(await codeOf(await gateway.fetch('/v1/key', '', { headers: team.headers(ADA) }))).toEqual(DENIED);
    expect(await codeOf(await gateway.fetch('/v1/usage', '', { headers: team.headers(EVE) }))).toEqual(
      DENIED,
    );
  });
});

describe('Y3 AUTH=access', () => {
  const ask = (gateway: LimitedGateway, claims: JsonObject, token = '', more: Record<string, string> = {}) =>
    gateway.ask(token, {}, { headers: { ...JSON_HEADERS, ...team.headers(claims), ...more } });

  test('takes users and services without a key, each with an id and usage of its own', async () => {
    const gateway = gatewayWith({ AUTH: 'access' });
    for (const claims of [ADA, EVE, { email: 'Ada@Example.com' }, team.service('ci.access')])
      expect((await ask(gateway, claims)).status).toBe(200);
    const records = await recordsOf(gateway);
    const ids = records.map(({ key_id }) => textOf(String(key_id)));
    expect(ids.every((id) => /^access_[0-9a-f]{24}$/.test(id))).toBe(true);
    expect([ids[0] === ids[2], new Set(ids).size]).toEqual([true, 3]);
    expect(records.map(({ user }) => user)).toEqual([
      'ada@example.com',
      'eve@example.com',
      'ada@example.com',
      'ci.access',
    ]);
    const usage = await jsonOf(await gateway.fetch('/v1/usage', '', { headers: team.headers(ADA) }));
    expect(objectOf(usage.total).requests).toBe(2);
    const path = `/v1/usage?key=${ids[1]}`;
    expect((await gateway.fetch(path, '', { headers: team.headers(ADA) })).status).toBe(400);
    const own = await jsonOf(await gateway.fetch('/v1/key', '', { headers: team.headers(ADA) }));
    expect([own.id, own.limits]).toEqual([ids[0], null]);
  });

  test('takes the key that an SDK must send, and a gateway key as itself; an unknown gateway key is a 401', async () => {
    const gateway = gatewayWith({ AUTH: 'access' });
    const key = await gateway.key({ models: ['openai/gpt-4o*'] });
    expect((await ask(gateway, EVE, SDK_KEY)).status).toBe(200);
    expect((await ask(gateway, EVE, key)).status).toBe(200);
    expect((await gateway.ask(key)).status).toBe(200);
    const [viaSdk, viaKey, keyAlone] = await recordsOf(gateway);
    expect([viaKey?.key_id, viaKey?.user]).toEqual([keyAlone?.key_id, 'eve@example.com']);
    expect(viaSdk?.key_id).not.toBe(viaKey?.key_id);
    const unknown = `weir_${'0'.repeat(64)}`;
    expect(await codeOf(await ask(gateway, EVE, unknown))).toEqual(DENIED);
    expect(await codeOf(await gateway.ask(SDK_KEY))).toEqual(DENIED);
    const none = await gateway.ask('');
    expect(none.status).toBe(401);
    expect(await none.text()).toContain('Sign in through Cloudflare Access');
    expect((await gateway.fetch('/admin/keys', ADMIN)).status).toBe(200);
  });

  test('limits each user by itself at LIMITER, whatever key it makes up', async () => {
    const keys: string[] = [];
    const limiter = {
      limit: async ({ key = '' }: { key?: string }) => {
        keys.push(key);
        return { success: true };
      },
    };
    const gateway = gatewayWith({ AUTH: 'access' }, NO_HOOKS, { limiter });
    for (const token of ['', 'made-up-1', 'made-up-2']) await ask(gateway, EVE, token);
    await ask(gateway, ADA);
    await gateway.ask('made-up-3', {}, { headers: { 'cf-connecting-ip': '192.0.2.1' } });
    expect([new Set(keys).size, keys[0] === keys[2]]).toEqual([3, true]);
    expect(keys.at(-1)).toBe('address/192.0.2.1');
    expect(keys.join()).not.toContain('@');
  });
});

describe('Y11 a token of Access as the credential', () => {
  const AS: Readonly<Record<string, (token: string) => Record<string, string>>> = {
    authorization: (token) => ({ authorization: `Bearer ${token}` }),
    'x-api-key': (token) => ({ 'x-api-key': token }),
    'api-key': (token) => ({ 'api-key': token }),
    // A key helper of Claude Code sends both.
    both: (token) => ({ authorization: `Bearer ${token}`, 'x-api-key': token }),
  };
  const send = (gateway: LimitedGateway, headers: Record<string, string>, path = '/v1/chat/completions') =>
    gateway.fetch(path, '', {
      method: 'POST',
      body: JSON.stringify(BODY),
      headers: { ...JSON_HEADERS, ...headers },
    });

  describe.each(['keys', 'access'])('under AUTH=%s', (AUTH) => {
    test.each(Object.entries(AS))(
      'in %s: calls models as its user or service, who is the same caller in each form',
      async (_, as) => {
        const gateway = gatewayWith({ AUTH });
        for (const claims of [ADA, { email: 'Ada@Example.com' }, team.service('ci.access')])
          for (const path of ['/v1/chat/completions', '/v1/messages'])
            expect((await send(gateway, as(team.token(claims)), path)).status).toBe(200);
        const records = await recordsOf(gateway);
        expect(records.map(({ user }) => user)).toEqual([
          ...Array<string>(4).fill('ada@example.com'),
          ...Array<string>(2).fill('ci.access'),
        ]);
        expect(new Set(records.map(({ key_id }) => key_id)).size).toBe(2);
        const byHeader = gatewayWith({ AUTH: 'access' });
        await byHeader.ask('', {}, { headers: { ...JSON_HEADERS, ...team.headers(ADA) } });
        expect((await recordsOf(byHeader))[0]?.key_id).toBe(records[0]?.key_id);
      },
    );

    test('reads the models, its own usage and who it is', async () => {
      const gateway = gatewayWith({ AUTH });
      const headers = { authorization: `Bearer ${team.token(ADA)}` };
      await send(gateway, headers);
      await gateway.idle();
      expect((await gateway.fetch('/v1/models', '', { headers })).status).toBe(200);
      const usage = await jsonOf(await gateway.fetch('/v1/usage', '', { headers }));
      expect(objectOf(usage.total).requests).toBe(1);
      const own = await jsonOf(await gateway.fetch('/v1/key', '', { headers }));
      expect(own).toMatchObject({ id: expect.stringMatching(/^access_/), user: 'ada@example.com' });
    });

    test('that is forged is a 401 in every header, also beside a good header of Access or a gateway key', async () => {
      const gateway = gatewayWith({ AUTH });
      const key = await gateway.key();
      const tokens = team.forgeries().filter(([, token]) => token.startsWith('eyJ'));
      expect(tokens.length).toBeGreaterThan(25);
      for (const [what, token] of tokens)
        for (const [form, as] of Object.entries(AS))
          for (const beside of [{}, team.headers(ADA), { 'api-key': key }]) {
            const response = await send(gateway, { ...beside, ...as(token) });
            expect([what, form, response.status]).toEqual([what, form, 401]);
          }
      expect(sent).toEqual([]);
    });

    test('beside a gateway key only names the user', async () => {
      const gateway = gatewayWith({ AUTH });
      const key = await gateway.key();
      const bearer = { authorization: `Bearer ${team.token(EVE)}` };
      expect((await send(gateway, { ...bearer, 'x-api-key': key })).status).toBe(200);
      expect((await gateway.ask(key)).status).toBe(200);
      const [both, alone] = await recordsOf(gateway);
      expect(both).toMatchObject({ key_id: alone?.key_id, user: 'eve@example.com' });
      const unknown = `weir_${'0'.repeat(64)}`;
      expect((await send(gateway, { ...bearer, 'x-api-key': unknown })).status).toBe(401);
    });

    test('comes before another user in the header of Access', async () => {
      const gateway = gatewayWith({ AUTH });
      await send(gateway, { ...team.headers(team.service()), authorization: `Bearer ${team.token(ADA)}` });
      expect((await recordsOf(gateway))[0]?.user).toBe('ada@example.com');
    });

    test('opens no admin route and no report over others, beside no header and beside that of an admin', async () => {
      const gateway = gatewayWith({ AUTH, ACCESS_ADMINS: ADMINS });
      for (const beside of [{}, team.headers(ADA)])
        for (const route of ROUTES.filter(([, path]) => path.startsWith('/admin'))) {
          const headers = { ...beside, authorization: `Bearer ${team.token(ADA)}` };
          expect((await call(gateway, route, '', headers)).status).toBe(401);
        }
      const headers = { authorization: `Bearer ${team.token(ADA)}` };
      expect((await gateway.fetch('/v1/usage?group_by=key', '', { headers })).status).toBe(400);
    });

    test('is served to pages of other sites, which can send no token of their own', async () => {
      const gateway = gatewayWith({ AUTH });
      const headers = { authorization: `Bearer ${team.token(ADA)}`, 'sec-fetch-site': 'cross-site' };
      expect((await send(gateway, headers)).status).toBe(200);
    });

    test('is read from no cookie and no query parameter', async () => {
      const gateway = gatewayWith({ AUTH });
      const token = team.token(ADA);
      const path = `/v1/chat/completions?token=${token}&CF_Authorization=${token}&key=${token}`;
      expect((await send(gateway, { cookie: `CF_Authorization=${token}` }, path)).status).toBe(401);
    });

    test("is read from Google's header and, on Google's paths, from its query parameter", async () => {
      const gateway = gatewayWith({ AUTH });
      const token = team.token(ADA);
      expect((await send(gateway, { 'x-goog-api-key': token })).status).toBe(200);
      const list = (query: string) => gateway.fetch(`/v1beta/models${query}`, '', { method: 'GET' });
      expect([(await list(`?key=${token}`)).status, (await list('')).status]).toEqual([200, 401]);
    });

    test('reaches no provider, log, record, span or response', async () => {
      const tracing = new FakeTracing();
      const gateway = gatewayWith({ AUTH }, NO_HOOKS, { tracing });
      const texts: string[] = [];
      for (const token of [team.token(ADA), team.token({ aud: ['other'] })])
        for (const route of ROUTES) {
          const response = await call(gateway, route, '', { authorization: `Bearer ${token}` });
          texts.push(JSON.stringify([...response.headers]), await response.text());
        }
      await gateway.idle();
      const spans = tracing.spans.map(({ name, attributes, error }) => [name, attributes, error]);
      expect(sent).not.toEqual([]);
      expect(JSON.stringify([texts, sent, gateway.logged, spans])).not.toContain('eyJ');
    });

    test('cannot be verified while the keys of Access cannot be read: a 503', async () => {
      team.state = 'down';
      const gateway = gatewayWith({ AUTH });
      const response = await send(gateway, { 'x-api-key': team.token(ADA) });
      team.state = 'up';
      expect(await codeOf(response)).toEqual([503, 'access_unreachable']);
    });
  });

  test('is counted at LIMITER under its user, whatever token it has', async () => {
    const keys: string[] = [];
    const limiter = {
      limit: async ({ key = '' }: { key?: string }) => {
        keys.push(key);
        return { success: true };
      },
    };
    const gateway = gatewayWith({ AUTH: 'keys' }, NO_HOOKS, { limiter });
    for (const nonce of ['a', 'b'])
      await send(gateway, { 'x-api-key': team.token({ ...ADA, identity_nonce: nonce }) });
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  test('is no credential without the settings, under AUTH=passthrough, or where it is the admin token', async () => {
    const token = team.token(ADA);
    const unset = gatewayWith({ ACCESS_TEAM_DOMAIN: '', ACCESS_AUD: '' });
    expect((await send(unset, { 'x-api-key': token })).status).toBe(401);
    const passing = gatewayWith({ AUTH: 'passthrough' });
    expect((await send(passing, { authorization: `Bearer ${part({ alg: 'RS256' })}.x.y` })).status).toBe(200);
    const admin = `${part({ alg: 'none' })}.admin.token`;
    const own = gatewayWith({ ADMIN_TOKEN: admin });
    expect((await own.fetch('/v1/usage?group_by=key', admin)).status).toBe(200);
  });

  test('comes after the host, whose tokens may have the same form', async () => {
    const hosted = gatewayWith({}, { ...NO_HOOKS, onRequest: () => ({ id: 'host', user: 'host' }) });
    const token = `${part({ alg: 'HS256' })}.${part({ sub: 'x' })}.x`;
    expect((await send(hosted, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await recordsOf(hosted))[0]?.user).toBe('host');
  });
});

describe('Y3 a certificate whose name is the address of a user', () => {
  const ADDRESS = 'ada@example.com';

  test('is another caller, with another name', async () => {
    const gateway = gatewayWith({ AUTH: 'access' });
    for (const claims of [{ email: ADDRESS }, team.service(ADDRESS)]) {
      const headers = { ...JSON_HEADERS, ...team.headers(claims) };
      const response = await gateway.ask('', {}, { headers });
      expect(response.status).toBe(200);
    }
    const [user, service] = await recordsOf(gateway);
    expect(user?.user).toBe(ADDRESS);
    expect(service?.user).toBe(`Service:${ADDRESS}`);
    expect(service?.key_id).not.toBe(user?.key_id);
  });
});

describe('Y3 ACCESS_ADMINS', () => {
  const settings = { ACCESS_ADMINS: ADMINS };
  const as = (claims: JsonObject) => ({ headers: team.headers(claims) });

  test.each([
    ADA,
    { email: 'ADA@example.com' },
    { email: 'bob@ops.example.com' },
    { email: undefined, common_name: 'ci.access' },
  ])('%j reads and changes keys and sees all usage without the token', async (claims) => {
    const gateway = gatewayWith({ ...settings, ADMIN_TOKEN: '' });
    const made = await call(gateway, ['POST', '/admin/keys', { name: 'x' }], '', team.headers(claims));
    const { id, key } = await jsonOf(made);
    expect(made.status).toBe(201);
    await gateway.ask(textOf(key));
    await gateway.idle();
    const rows = await jsonOf(await gateway.fetch('/v1/usage?group_by=key', '', as(claims)));
    expect(objectsOf(rows.data)).toMatchObject([{ key: id, requests: 1 }]);
    const listed = await jsonOf(await gateway.fetch('/v1/usage/records', '', as(claims)));
    expect(objectsOf(listed.data)).toHaveLength(1);
    expect((await gateway.fetch('/v1/models', '', as(claims))).status).toBe(200);
    const path = `/admin/keys/${textOf(id)}`;
    const changed = await call(gateway, ['PATCH', path, { name: 'y' }], '', team.headers(claims));
    expect((await jsonOf(changed)).name).toBe('y');
    expect((await gateway.fetch(path, '', { method: 'DELETE', ...as(claims) })).status).toBe(200);
  });

  test('are only those that it names, and a credential of the request comes before Access', async () => {
    const gateway = gatewayWith({ ...settings, AUTH: 'access' });
    const key = await gateway.key();
    for (const claims of [EVE, team.service(), { email: 'a@evil.com@ops.example.com' }]) {
      for (const route of ROUTES.filter(([, path]) => path.startsWith('/admin'))) {
        expect(await codeOf(await call(gateway, route, '', team.headers(claims)))).toEqual(DENIED);
        expect(await codeOf(await call(gateway, route, key, team.headers(ADA)))).toEqual(DENIED);
        expect(await codeOf(await call(gateway, route, 'wrong', team.headers(ADA)))).toEqual(DENIED);
      }
      expect((await gateway.fetch('/v1/usage?group_by=key', '', as(claims))).status).toBe(400);
    }
    expect((await gateway.fetch('/v1/usage?group_by=key', key, as(ADA))).status).toBe(400);
    expect((await gateway.fetch('/v1/usage?group_by=key', '', as(ADA))).status).toBe(200);
  });

  test('without ADMIN_TOKEN and admins of Access the admin routes are closed', async () => {
    const gateway = gatewayWith({ ADMIN_TOKEN: '' });
    expect(await codeOf(await gateway.fetch('/admin/keys', '', as(ADA)))).toEqual([403, 'admin_closed']);
  });

  test('the page has the mark of a sign-in only for users of Access', async () => {
    const markOf = async (own: JsonObject, claims: JsonObject | null) => {
      const init = claims === null ? {} : as(claims);
      const html = await (await gatewayWith({ ...settings, ...own }).fetch('/dashboard', '', init)).text();
      return /^<!doctype html><html ([^>]*)>/.exec(html)?.[1];
    };
    // The gateway of tests has no assets, so none of the documents' page.
    const plain = 'data-without-docs lang="en"';
    expect(await markOf({}, ADA)).toBe(`data-signed-in="admin" data-user="ada@example.com" ${plain}`);
    expect(await markOf({}, EVE)).toBe(plain);
    expect(await markOf({ AUTH: 'access' }, EVE)).toBe(
      `data-signed-in="user" data-user="eve@example.com" ${plain}`,
    );
    const odd = { ...EVE, email: '"><b>&@example.com' };
    expect(await markOf({ AUTH: 'access' }, odd)).toContain(
      'data-user="&#34;&#62;&#60;b&#62;&#38;@example.com"',
    );
    expect(await markOf({ AUTH: 'access' }, null)).toBe(plain);
  });
});

describe('Y3 requests that another site may have sent', () => {
  const OWN = 'https://weir.example';
  const admitted: Record<string, string>[] = [
    {},
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-origin', origin: OWN },
    { 'sec-fetch-site': 'none' },
    { origin: OWN },
    { 'content-type': 'application/json; charset=utf-8' },
    { 'content-type': 'Application/JSON' },
  ];
  const refused: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'same-site', origin: 'https://other.weir.example' },
    { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-origin, cross-site' },
    { 'sec-fetch-site': '' },
    { origin: 'null' },
    { origin: '' },
    { origin: 'https://evil.example' },
    { origin: 'http://weir.example' },
    { origin: 'https://weir.example:8443' },
    { origin: 'https://weir.example.evil.example' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'text/plain;application/json' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': '' },
  ];
  const authority = ROUTES.filter(
    ([, path]) => path !== '/dashboard' && !path.includes('unknown') && !path.includes('resp_1'),
  );

  async function tryAll(cases: readonly Record<string, string>[], credential: '' | 'key' | 'admin') {
    const gateway = gatewayWith({ ACCESS_ADMINS: ADMINS, AUTH: 'access' });
    const token = credential === 'key' ? await gateway.key() : credential;
    const tries: { path: string; headers: object; status: number; isRefused: boolean }[] = [];
    for (const headers of cases) {
      for (const route of authority) {
        const [, path, body] = route;
        if (body === undefined && 'content-type' in headers) continue;
        const response = await call(gateway, route, token, { ...team.headers(ADA), ...headers });
        const { status } = response;
        const isRefused = (await response.text()).includes('With Cloudflare Access instead of a key');
        tries.push({ path, headers, status, isRefused });
      }
    }
    expect(tries.length).toBeGreaterThan(100);
    return tries;
  }

  test('are a 403 on every route, where Access stands for a key or for the admin token', async () => {
    const tries = await tryAll(refused, '');
    expect(tries.filter(({ status, isRefused }) => status !== 403 || !isRefused)).toEqual([]);
    expect(sent).toEqual([]);
  });

  test('are served from the deployment’s own pages and from programs', async () => {
    const tries = await tryAll(admitted, '');
    const isServed = (status: number) => [200, 201, 404].includes(status);
    expect(tries.filter(({ status }) => !isServed(status))).toEqual([]);
  });

  test('are served with a key or the admin token, which no browser adds by itself', async () => {
    expect((await tryAll(refused, 'key')).filter(({ isRefused }) => isRefused)).toEqual([]);
    const isForAdmins = (path: string) => /admin|usage|models/.test(path);
    const byAdmin = await tryAll(refused, 'admin');
    expect(byAdmin.filter(({ path, isRefused }) => isRefused && isForAdmins(path))).toEqual([]);
  });

  test('with a body but without a type are refused, as are admins’ with AUTH=keys', async () => {
    const gateway = gatewayWith({ ACCESS_ADMINS: ADMINS });
    const body = new Blob(['{"name":"x"}']);
    const typeless = await gateway.fetch('/admin/keys', '', {
      method: 'POST',
      body,
      headers: team.headers(ADA),
    });
    expect(await codeOf(typeless)).toEqual(CROSS_SITE);
    const headers = { ...team.headers(ADA), 'sec-fetch-site': 'cross-site' };
    expect(await codeOf(await gateway.fetch('/v1/usage', '', { headers }))).toEqual(CROSS_SITE);
    expect(await codeOf(await gateway.fetch('/admin/keys', '', { headers }))).toEqual(CROSS_SITE);
  });
});

describe.each([
  ['hash', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
  ['off', { USERS: 'off', USER_HASH_KEY: 'a secret of users' }],
])('Y2 AUTH=access with USERS=%s', (users, settings) => {
  test('leaves the user’s name in no log, record, report, span, key or response', async () => {
    const records: unknown[] = [];
    const hooks = { ...NO_HOOKS, onRecord: (record: unknown) => void records.push(record) };
    const tracing = new FakeTracing();
    const own = { ...settings, AUTH: 'access', ACCESS_ADMINS: ADMINS };
    const gateway = gatewayWith(own, hooks, { tracing });
    const responses: string[] = [];
    const claims = { email: 'Zoe.Quint@example.com', common_name: 'zoe.quint' };
    for (const more of [{}, { 'sec-fetch-site': 'cross-site' }, { [ACCESS_HEADER]: 'zoe.quint' }]) {
      for (const route of ROUTES) {
        const response = await call(gateway, route, '', { ...team.headers(claims), ...more });
        if (route[1] !== '/dashboard')
          responses.push(JSON.stringify([...response.headers]), await response.text());
        else await response.text();
      }
    }
    await gateway.idle();
    expect(records).not.toEqual([]);
    const spans = tracing.spans.map(({ name, attributes, error }) => [name, attributes, error]);
    expect(spans).not.toEqual([]);
    const everything = JSON.stringify([responses, records, gateway.logged, spans]);
    expect(everything).not.toMatch(/zoe|quint/i);
    const user = users === 'hash' ? expect.stringMatching(/^h_[0-9a-f]{24}$/) : null;
    for (const record of records)
      expect(record).toMatchObject({ user, key_id: expect.stringMatching(/^access_/) });
    const byUser = await jsonOf(
      await gateway.fetch('/v1/usage?user=zoe.quint@example.com', '', { headers: team.headers(ADA) }),
    );
    expect(objectOf(byUser.total).requests).toBe(users === 'hash' ? records.length : 0);
  });
});

describe('caches', () => {
  const ID = '0123456789abcdef';
  const ADMIN_ROUTES = [
    ...[
      '/admin/keys',
      `/admin/keys/${ID}`,
      `/admin/keys/${ID}/limits`,
      '/admin/audit',
      '/admin/status',
      '/admin/none',
    ],
    ...[`/admin/erasures/${ID}`, '/admin/users/ada/export', '/v1/admin/status', '/v1/admin/audit', '/admin'],
  ];

  test('keep no response of an admin route: for the token, a user of Access, a stranger, any method, an error', async () => {
    const gateway = gatewayWith({ ACCESS_ADMINS: ADMINS });
    for (const path of ADMIN_ROUTES)
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
        for (const [token, headers] of [
          [ADMIN, {}],
          ['', team.headers(ADA)],
          ['', {}],
          ['wrong', {}],
        ] as const) {
          const body = method === 'GET' || method === 'HEAD' ? undefined : '{}';
          const init = { method, headers: { ...JSON_HEADERS, ...headers }, ...(body && { body }) };
          const response = await gateway.fetch(path, token, init);
          expect(response.headers.get('cache-control'), `${method} ${path} ${response.status}`).toBe(
            'no-store',
          );
        }
    const made = await gateway.fetch('/admin/keys', ADMIN, { method: 'POST', body: '{"name":"k"}' });
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const based = gatewayWith({ BASE_PATH: '/ai' });
    expect((await based.fetch('/ai/admin/keys', ADMIN)).headers.get('cache-control')).toBe('no-store');
  });

  test('keep nothing that a caller reads of its own, and may keep /health', async () => {
    const gateway = gatewayWith({ AUTH: 'access', ACCESS_ADMINS: ADMINS });
    for (const path of [
      '/v1/key',
      '/v1/usage',
      '/v1/usage/records',
      '/v1/usage/refusals',
      '/v1/usage?format=csv',
    ])
      for (const claims of [ADA, EVE]) {
        const { status, headers } = await gateway.fetch(path, '', { headers: team.headers(claims) });
        expect([status, headers.get('cache-control')], path).toEqual([200, 'no-store']);
      }
    expect((await gateway.fetch('/health', '')).headers.get('cache-control')).toBe(null);
  });
});

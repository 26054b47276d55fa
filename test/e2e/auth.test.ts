/** Authentication over real HTTP and with real KV: gateway keys, a caller's own provider key, and no key. */
import { createHash, createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { ACCESS_HEADER, AccessTeam, makeSigningKey, part } from '../attribution/access-team.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { ADMIN_TOKEN, CREDENTIALS, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const ALIASES = '{"fast":"mistral/mistral-small-latest"}';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    vars: { AUTH: 'keys', ALIASES, DEFAULT_PROVIDER: 'openai', MAX_REQUEST_BYTES: '2000' },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Key {
  readonly id: string;
  readonly token: string;
}

async function makeKey(more: JsonObject = {}): Promise<Key> {
  const response = await gateway.post('/admin/keys', { name: 'test', ...more }, { headers: ADMIN });
  const { id, key } = await jsonOf(response);
  return { id: textOf(id), token: textOf(key) };
}

function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}

function ask(model: string, headers: Record<string, string>): Promise<Response> {
  return gateway.post(CHAT, streamedChat(model), { headers });
}

/** The error of a request that must not reach any upstream. */
async function refused(model: string, headers: Record<string, string>) {
  const requestCount = gateway.simulator.requests.length;
  const { status, error } = await errorOf(await ask(model, headers));
  expect(gateway.simulator.requests).toHaveLength(requestCount);
  return [status, error.type, error.code];
}

const UNAUTHORIZED = [401, 'authentication_error', 'invalid_api_key'];
const FORBIDDEN = [403, 'permission_error', 'model_not_allowed'];

/** The upstream's status for a caller, and the credential that it received. */
async function served(model: string, headers: Record<string, string>) {
  const at = gateway.simulator.requests.length;
  const response = await ask(model, headers);
  await response.text();
  const upstream = await gateway.simulator.request(at);
  const { key_id } = await gateway.record(response);
  return { status: response.status, credential: upstream.headers.authorization, upstream, key_id };
}

describe('AUTH=keys', () => {
  let key: Key;
  beforeAll(async () => {
    key = await makeKey();
  });

  test("K1 H2: a key is accepted, and the upstream receives the deployment's credential, not the key", async () => {
    const { status, credential, upstream, key_id } = await served(
      'deepseek/deepseek-chat',
      bearer(key.token),
    );
    expect(status).toBe(200);
    expect(credential).toBe(`Bearer ${CREDENTIALS.DEEPSEEK_API_KEY}`);
    expect(JSON.stringify([upstream.headers, upstream.text, upstream.path])).not.toContain(key.token);
    expect(key_id).toBe(key.id);
  });

  test.each([
    ['no header', () => ({})],
    ['an empty one', () => ({ authorization: '' })],
    ['no token', () => ({ authorization: 'Bearer ' })],
    ['a key without Bearer', () => ({ authorization: key.token })],
    ['another scheme', () => ({ authorization: `Basic ${key.token}` })],
    ['two tokens', () => ({ authorization: `Bearer ${key.token} ${key.token}` })],
    ['a made-up key', () => bearer(`weir_${'0'.repeat(64)}`)],
    ['a key without its last digit', () => bearer(key.token.slice(0, -1))],
    ['a key with an extra digit', () => bearer(`${key.token}0`)],
    ['a key in capitals', () => bearer(key.token.toUpperCase())],
    ["the key's id", () => bearer(key.id)],
    ["a provider's own credential", () => bearer(CREDENTIALS.DEEPSEEK_API_KEY)],
    ['the admin token', () => ADMIN],
    ['a made-up key in another header', () => ({ 'x-api-key': `weir_${'0'.repeat(64)}` })],
  ])('K3: %s gets 401, and no upstream is called', async (_, headers) => {
    expect(await refused('deepseek/deepseek-chat', headers())).toEqual(UNAUTHORIZED);
  });

  test.each(['api-key', 'x-api-key'])('Q12: a key in the header %s is a key', async (header) => {
    expect((await served('deepseek/deepseek-chat', { [header]: key.token })).status).toBe(200);
  });

  test('H2: equal idempotency keys of two gateway keys differ at the upstream, and those of one gateway key stay equal', async () => {
    const other = await makeKey();
    const sent: unknown[] = [];
    for (const { token } of [key, other, key]) {
      const headers = { ...bearer(token), 'idempotency-key': 'retry-1' };
      const { upstream } = await served('openai/gpt-4o-mini', headers);
      sent.push(upstream.headers['idempotency-key']);
    }
    expect(sent[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(sent[1]).not.toBe(sent[0]);
    expect(sent[2]).toBe(sent[0]);
  });

  test('K3: a revoked key gets 401, other keys stay valid', async () => {
    const revoked = await makeKey();
    expect((await served('deepseek/deepseek-chat', bearer(revoked.token))).status).toBe(200);
    await gateway.fetch(`/admin/keys/${revoked.id}`, { method: 'DELETE', headers: ADMIN });
    expect(await refused('deepseek/deepseek-chat', bearer(revoked.token))).toEqual(UNAUTHORIZED);
    expect((await served('deepseek/deepseek-chat', bearer(key.token))).status).toBe(200);
  });

  test.each([
    ['2020-01-01T00:00:00Z', 401],
    ['2999-01-01T00:00:00Z', 200],
  ])('K3: a key that expires at %s gets %d', async (expires_at, status) => {
    const { token } = await makeKey({ expires_at });
    const response = await ask('deepseek/deepseek-chat', bearer(token));
    await response.text();
    expect(response.status).toBe(status);
  });

  test.each([
    ['is not JSON', '{"model":'],
    ['names no model', '{"messages":[]}'],
    ['is too large', JSON.stringify(chat('deepseek/deepseek-chat', { user: 'x'.repeat(2000) }))],
  ])('K3: an invalid key gets 401 before the check of a body that %s', async (_, body) => {
    const headers = bearer('weir_invalid');
    const { status } = await errorOf(await gateway.fetch(CHAT, { method: 'POST', headers, body }));
    expect(status).toBe(401);
    const own = await gateway.fetch(CHAT, { method: 'POST', headers: bearer(key.token), body });
    expect([400, 413]).toContain((await errorOf(own)).status);
  });

  test.each(['/v1/models', '/v1/usage'])('K3: %s needs a key', async (path) => {
    const { status } = await errorOf(await gateway.fetch(path));
    expect(status).toBe(401);
    expect((await gateway.fetch(path, { headers: bearer(key.token) })).status).toBe(200);
  });
});

describe('a key with globs of models', () => {
  let headers: { authorization: string };
  beforeAll(async () => {
    const models = ['deepseek/*', 'openai/gpt-4o*', 'anthropic/claude-haiku*'];
    headers = bearer((await makeKey({ models })).token);
  });

  test.each(['deepseek/deepseek-chat', 'openai/gpt-4o-mini', 'gpt-4o-mini'])(
    'K3: may use %s',
    async (model) => {
      expect((await served(model, headers)).status).toBe(200);
    },
  );

  test.each(['openai/o4-mini', 'o4-mini', 'mistral/mistral-small-latest', 'fast', 'compatible/deepseek/x'])(
    'K3: gets 403 for %s, and no upstream is called',
    async (model) => {
      expect(await refused(model, headers)).toEqual(FORBIDDEN);
    },
  );

  test.each<[field: string, more: JsonObject]>([
    ['fallbacks', { fallbacks: ['o4-mini'] }],
    ['fallbacks', { fallbacks: [{ model: 'o4-mini' }] }],
  ])(
    'K3: gets 403 for a forbidden model in %s, which a router such as OpenRouter would serve',
    async (_, more) => {
      const requestCount = gateway.simulator.requests.length;
      // The body of the last one would be passed through unchanged.
      for (const [path, body] of [
        [CHAT, chat('openai/gpt-4o-mini', more)],
        [CHAT, streamedChat('openai/gpt-4o-mini', more)],
        ['/v1/messages', chat('anthropic/claude-haiku-4-5', { max_tokens: 9, ...more })],
      ] as const) {
        const { status, error } = await errorOf(await gateway.post(path, body, { headers }));
        expect([status, error.type]).toEqual([403, 'permission_error']);
      }
      expect(gateway.simulator.requests).toHaveLength(requestCount);
    },
  );

  test('R3: a forbidden model in models is skipped, reported, and not sent upstream', async () => {
    const requestCount = gateway.simulator.requests.length;
    for (const more of [
      { models: ['openai/gpt-4o-mini', 'o4-mini'], route: 'fallback' },
      { models: ['o4-mini'] },
    ]) {
      const response = await gateway.post(CHAT, chat('openai/gpt-4o-mini', more), { headers });
      await response.text();
      expect(response.headers.get('x-weir-attempts')).toMatch(
        /^openai\/o4-mini model_not_allowed, openai\/gpt-4o-mini 200 \d+ms$/,
      );
    }
    for (const { body } of gateway.simulator.requests.slice(requestCount)) {
      expect(body).toMatchObject({ model: 'gpt-4o-mini' });
      expect(body).not.toHaveProperty('models');
    }
  });

  test('K3: sees only its own models in the list of models', async () => {
    const { data } = await jsonOf(await gateway.fetch('/v1/models', { headers }));
    const ids = objectsOf(data).map(({ id }) => textOf(id));
    expect(ids).toContain('openai/gpt-4o-mini');
    expect(ids.filter((id) => !/^deepseek\/|^openai\/gpt-4o|^anthropic\/claude-haiku/.test(id))).toEqual([]);
  });
});

describe('AUTH=passthrough', () => {
  beforeAll(async () => {
    const vars = { AUTH: 'passthrough', DEEPSEEK_API_KEY: undefined, DEFAULT_PROVIDER: 'deepseek' };
    await gateway.set(vars);
  });
  const OWN = 'sim-own-key-of-the-caller';

  test.each(['deepseek/deepseek-chat', 'openai/gpt-4o-mini', 'keyless/openai/gpt-oss-20b'])(
    "K1: %s: the caller's own credential is forwarded, and usage is recorded under its hash",
    async (model) => {
      const { status, credential, key_id } = await served(model, bearer(OWN));
      expect([status, credential]).toEqual([200, `Bearer ${OWN}`]);
      expect(createHash('sha256').update(OWN).digest('hex').startsWith(key_id)).toBe(true);
      expect(key_id.length).toBeGreaterThanOrEqual(16);
      expect(JSON.stringify(await gateway.entries(''))).not.toContain(OWN);
    },
  );

  test("K1 E1: an upstream's 401 is about the caller's key, and stays 401", async () => {
    const response = await ask('openai/gpt-4o-mini', bearer('invalid-key-of-the-caller'));
    const { status, error } = await errorOf(response);
    expect([status, error.type, error.code]).toEqual(UNAUTHORIZED);
    expect(error.message).toBe('OpenAI: Invalid API key');
  });

  test.each([
    ['status-403', 403, 'permission_error'],
    ['status-429', 429, 'rate_limit_error'],
    ['status-500', 502, 'server_error'],
  ])("E1: an upstream's %s is %d", async (fault, expected, type) => {
    const { status, error } = await errorOf(await ask(`openai/gpt-4o-mini:${fault}`, bearer(OWN)));
    expect([status, error.type]).toEqual([expected, type]);
  });

  test('K3: no credential gets 401, and no upstream is called', async () => {
    expect(await refused('openai/gpt-4o-mini', {})).toEqual(UNAUTHORIZED);
  });

  test("H2: for its list of models the caller's credential is sent only to the default provider", async () => {
    const at = gateway.simulator.requests.length;
    await (await gateway.fetch('/v1/models', { headers: bearer(OWN) })).text();
    const requested = gateway.simulator.requests
      .slice(at)
      .map(({ path, headers }) => [path, headers.authorization]);
    expect(requested).toEqual([['/deepseek/models', `Bearer ${OWN}`]]);
  });

  test('M5: a caller sees only the usage of its own credential', async () => {
    const total = async (token: string) =>
      (await jsonOf(await gateway.fetch('/v1/usage', { headers: bearer(token) }))).total;
    expect(await total(OWN)).toMatchObject({ requests: 6, failed_requests: 3 });
    expect(await total('sim-of-somebody-else')).toMatchObject({ requests: 0 });
  });
});

describe('Y3 Cloudflare Access', () => {
  const ADA = { email: 'ada@example.com' };
  const EVE = { email: 'eve@example.com' };
  let team: AccessTeam;
  let key: Key;
  beforeAll(async () => {
    team = await AccessTeam.start();
    const access = { ...team.settings, AUTH: 'access', ACCESS_ADMINS: '*@ops.example.com' };
    await gateway.set({ ...access, RESPONSES: 'durable' });
    key = await makeKey();
  });
  afterAll(() => team[Symbol.asyncDispose]());

  test('tokens of another audience, expired, not yet valid, unsigned, or signed otherwise get 401, and no upstream is called', async () => {
    const [signing] = team.keys;
    const [, payload = ''] = team.token(EVE).split('.');
    const head = (alg: string) => part({ alg, kid: signing?.kid });
    const pem = signing?.publicKey.export({ format: 'pem', type: 'spki' }) ?? '';
    const hmac = createHmac('sha256', pem)
      .update(`${head('HS256')}.${payload}`)
      .digest('base64url');
    const now = Math.floor(Date.now() / 1000);
    for (const token of [
      team.token({ ...EVE, aud: ['other'] }),
      team.token({ ...EVE, iss: 'https://other.cloudflareaccess.com' }),
      team.token({ ...EVE, exp: now - 60 }),
      team.token({ ...EVE, nbf: now + 3600 }),
      team.token(EVE, { kid: 'unknown' }),
      team.token(EVE, {}, makeSigningKey('first')),
      `${head('none')}.${payload}.`,
      `${head('HS256')}.${payload}.${hmac}`,
      'x',
    ])
      for (const headers of [{}, bearer(key.token), ADMIN])
        expect(await refused('openai/gpt-4o-mini', { [ACCESS_HEADER]: token, ...headers })).toEqual(
          UNAUTHORIZED,
        );
    expect(team.reads).toBe(1);
  });

  test('users and services call without a key, under ids of their own, and name the user of a key', async () => {
    const ids: string[] = [];
    for (const claims of [ADA, EVE, ADA, team.service()]) {
      const { status, key_id, upstream } = await served('openai/gpt-4o-mini', {
        ...team.headers(claims),
        'x-weir-user': 'forged',
      });
      expect(status).toBe(200);
      expect(JSON.stringify(upstream.headers)).not.toMatch(/eyJ|cf-access|@|forged/);
      ids.push(key_id);
    }
    expect([ids[0] === ids[2], new Set(ids).size]).toEqual([true, 3]);
    const beside = await ask('openai/gpt-4o-mini', { ...bearer(key.token), ...team.headers(EVE) });
    await beside.text();
    expect(await gateway.record(beside)).toMatchObject({ key_id: key.id, user: EVE.email });
    const { total } = await jsonOf(await gateway.fetch('/v1/usage', { headers: team.headers(ADA) }));
    expect(total).toMatchObject({ requests: 2 });
    expect(await refused('openai/gpt-4o-mini', {})).toEqual(UNAUTHORIZED);
    const unknown = { ...bearer(`weir_${'0'.repeat(64)}`), ...team.headers(EVE) };
    expect(await refused('openai/gpt-4o-mini', unknown)).toEqual(UNAUTHORIZED);
  });

  test('a background response of a user has its name in the record, and no other user can read it', async () => {
    const body = { model: 'openai/gpt-4o-mini', input: 'Hello', background: true };
    const started = await gateway.post('/v1/responses', body, { headers: team.headers(ADA) });
    const path = `/v1/responses/${textOf((await jsonOf(started)).id)}`;
    const statusOf = async () =>
      (await jsonOf(await gateway.fetch(path, { headers: team.headers(ADA) }))).status;
    await expect.poll(statusOf).toBe('completed');
    for (const headers of [team.headers(EVE), bearer(key.token), ADMIN])
      expect((await gateway.fetch(path, { headers })).status).toBe(404);
    expect(await gateway.record(started)).toMatchObject({ user: ADA.email });
  });

  test('admins make and revoke keys without the token, others do not', async () => {
    const admin = team.headers({ email: 'Bob@Ops.example.com' });
    const made = await gateway.post('/admin/keys', { name: 'x' }, { headers: admin });
    const { id } = await jsonOf(made);
    expect(made.status).toBe(201);
    const path = `/admin/keys/${textOf(id)}`;
    expect((await gateway.fetch(path, { method: 'DELETE', headers: team.headers(EVE) })).status).toBe(401);
    expect((await gateway.fetch(path, { method: 'DELETE', headers: admin })).status).toBe(200);
    const rows = await jsonOf(await gateway.fetch('/v1/usage?group_by=key', { headers: admin }));
    expect(objectsOf(rows.data).length).toBeGreaterThan(3);
  });

  test('requests of another site, or with a body that a form can send, get 403 from users and admins', async () => {
    const headers = team.headers({ email: 'bob@ops.example.com' });
    const cross: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'multipart/form-data; boundary=x' },
    ];
    for (const more of cross) {
      for (const path of ['/admin/keys', CHAT]) {
        const body = { name: 'x', ...chat('openai/gpt-4o-mini') };
        const { status, error } = await errorOf(
          await gateway.post(path, body, { headers: { ...headers, ...more } }),
        );
        expect([more, path, status, error.code]).toEqual([more, path, 403, 'cross_site']);
      }
    }
    const own = { ...headers, origin: gateway.url, 'sec-fetch-site': 'same-origin' };
    expect((await ask('openai/gpt-4o-mini', own)).status).toBe(200);
    // A body without a type, which a script of any site can send without a preflight.
    const body = new Blob([JSON.stringify({ name: 'x' })]);
    const { error } = await errorOf(await gateway.fetch('/admin/keys', { method: 'POST', headers, body }));
    expect(error.code).toBe('cross_site');
    // Requests without a body need no type.
    expect((await gateway.fetch('/admin/keys/0123456789abcdef', { method: 'DELETE', headers })).status).toBe(
      404,
    );
  });

  test('keys that cannot be read are a 503 after one read for all requests at once; keys that are known stay in use', async () => {
    const other = await AccessTeam.start();
    other.state = 'down';
    await gateway.set({ ...other.settings, AUTH: 'access' });
    const waiting = [
      ask('openai/gpt-4o-mini', other.headers(EVE)),
      ask('openai/gpt-4o-mini', other.headers(ADA)),
    ];
    for (const response of await Promise.all(waiting)) {
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
      await response.text();
    }
    expect(other.reads).toBe(1);
    other.state = 'up';
    await gateway.set({ ...other.settings, AUTH: 'access', RETRIES: '1' });
    expect((await served('openai/gpt-4o-mini', other.headers(EVE))).status).toBe(200);
    await other[Symbol.asyncDispose]();
    expect((await served('openai/gpt-4o-mini', other.headers(ADA))).status).toBe(200);
  });
});

describe('AUTH=open', () => {
  beforeAll(() => gateway.set({ AUTH: 'open' }));

  test.each([
    ['no credential', {}],
    ["a credential of the caller's", bearer('sim-own-key-of-the-caller')],
  ])("K1 H2: %s: served with the deployment's credential", async (_, headers) => {
    const { status, credential, key_id } = await served('openai/gpt-4o-mini', headers);
    expect([status, credential, key_id]).toEqual([200, `Bearer ${CREDENTIALS.OPENAI_API_KEY}`, 'open']);
  });

  test('M1: a non-streaming request without a key is recorded', async () => {
    const response = await gateway.post(CHAT, chat('openai/gpt-4o-mini'));
    await response.text();
    expect(await gateway.record(response)).toMatchObject({ key_id: 'open', total_tokens: 15 });
  });
});

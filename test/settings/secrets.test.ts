/** Secrets that Secrets Store does not return: what needs one waits, nothing takes its place, and it is read again (W5). */
import { timingSafeEqual } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createHandlers } from '../../src/environment.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import type { WeirOptions } from '../../src/types.ts';
import { FakeGoogle, SERVICE_ACCOUNT } from '../credentials/fake-google.ts';
import { MemoryStore } from '../metering/records.ts';
import { ALL_FEATURES } from './read-settings.ts';

// workerd has these; Node has them elsewhere, or only in later versions.
Object.assign(crypto.subtle, { timingSafeEqual });
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const ADMIN = 'adm-secret-token';
const HASH_KEY = 'a secret of the users';
const UPSTREAM = 'https://upstream.example';

/** Secrets Store, and what it returns now. */
class SecretsStore {
  state: 'up' | 'down' | 'silent' = 'up';
  reads = 0;

  secret(text: string) {
    return {
      get: async () => {
        this.reads++;
        if (this.state === 'silent') return new Promise<string>(() => {});
        if (this.state === 'down') throw new Error('Secret not found');
        return text;
      },
    };
  }
}

interface Called {
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly code: unknown;
  readonly json: JsonObject;
}

const called: Called[] = [];
const logged: JsonObject[] = [];
let store: SecretsStore;
/** KV, which all isolates share. */
let kv: MemoryStore;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 10, 28) });
  called.length = 0;
  logged.length = 0;
  store = new SecretsStore();
  kv = new MemoryStore();
  vi.spyOn(console, 'log').mockImplementation((line) => void logged.push(JSON.parse(String(line))));
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = input instanceof Request ? input : new Request(input, init);
    called.push({ url: request.url, headers: request.headers, body: await request.text() });
    const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' };
    return Response.json({ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices: [choice] });
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Some time later, but soon enough for W5. */
function later(ms = 10_000): void {
  vi.setSystemTime(Date.now() + ms);
}

/** One isolate with this environment. */
class Isolate {
  readonly #env: object;
  readonly #handlers;
  readonly #work: Promise<unknown>[] = [];

  constructor(own: object, options: WeirOptions<unknown> = {}) {
    this.#env = { WEIR_KV: kv.asStore, AUTH: 'open', RETRIES: '0', OPENAI_API_KEY: 'sk-openai', ...own };
    this.#handlers = createHandlers({ features: ALL_FEATURES, ...options }, null);
  }

  async send(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: unknown,
  ): Promise<Answer> {
    const request = new Request(`https://weir.example${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const context = { waitUntil: (work: Promise<unknown>) => void this.#work.push(work) };
    const { fetch } = this.#handlers as { fetch: (...all: unknown[]) => Promise<Response> }; // decode
    const response = await fetch(request, this.#env, context);
    const text = await response.text();
    const json = text.startsWith('{') && !text.includes('\n') ? JSON.parse(text) : {};
    const code = json.error?.code;
    return { status: response.status, retryAfter: response.headers.get('retry-after'), code, json };
  }

  get(path: string, headers?: Record<string, string>): Promise<Answer> {
    return this.send('GET', path, headers);
  }

  chat(model = 'openai/gpt-4o-mini', headers?: Record<string, string>): Promise<Answer> {
    const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
    return this.send('POST', '/v1/chat/completions', headers, body);
  }

  /** The work after the responses. */
  async settle(): Promise<void> {
    await Promise.all(this.#work);
  }

  async scheduled(): Promise<void> {
    const { scheduled } = this.#handlers as { scheduled: (...all: unknown[]) => Promise<void> }; // decode
    await scheduled({}, this.#env);
  }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const UNREADABLE = { status: 503, code: 'secret_unreadable', retryAfter: '5' };

describe('W5 the key of a provider', () => {
  test('W11 the key of a service account, with line ends: a 503 while the store is down, then tokens are made of it', async () => {
    const answer = () =>
      Response.json({
        candidates: [{ content: { parts: [{ text: 'Hi' }], role: 'model' }, finishReason: 'STOP' }],
      });
    const google = new FakeGoogle(() => Date.now(), answer);
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => google.fetch(String(input), init));
    store.state = 'down';
    const key = JSON.stringify(SERVICE_ACCOUNT, null, 2);
    const isolate = new Isolate({ VERTEX_LOCATION: 'eu', GOOGLE_SERVICE_ACCOUNT: store.secret(key) });
    expect(await isolate.chat('vertex/gemini-2.5-flash')).toMatchObject(UNREADABLE);
    store.state = 'up';
    later();
    expect((await isolate.chat('vertex/gemini-2.5-flash')).status).toBe(200);
    expect(google.requests.map(({ url }) => url)).toEqual([
      'https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/acme-llm/locations/eu/publishers/google/models/gemini-2.5-flash:generateContent',
    ]);
    expect(JSON.stringify(logged)).not.toMatch(/PRIVATE KEY|ya29/);
  });

  test('is a 503 until the store is back, and is served again within 30 s of that', async () => {
    store.state = 'down';
    const isolate = new Isolate({ DEEPSEEK_API_KEY: store.secret('sk-deepseek') });
    expect(await isolate.chat('deepseek/deepseek-chat')).toMatchObject(UNREADABLE);
    later();
    expect(await isolate.chat('deepseek/deepseek-chat')).toMatchObject(UNREADABLE);
    store.state = 'up';
    later();
    expect((await isolate.chat('deepseek/deepseek-chat')).status).toBe(200);
    expect(called.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer sk-deepseek']);
    const { reads } = store;
    later();
    await isolate.chat('deepseek/deepseek-chat');
    expect(store.reads).toBe(reads);
  });

  test('is read once more after some seconds, whatever the number of requests', async () => {
    store.state = 'down';
    const isolate = new Isolate({ DEEPSEEK_API_KEY: store.secret('sk-deepseek') });
    for (let request = 0; request < 20; request++) await isolate.chat('deepseek/deepseek-chat');
    expect(store.reads).toBe(1);
    later();
    await Promise.all(Array.from({ length: 20 }, () => isolate.chat('deepseek/deepseek-chat')));
    expect(store.reads).toBe(2);
  });

  test.each([
    ['CODESTRAL_API_KEY', 'codestral/codestral-latest'],
    ['GEMINI_API_KEY', 'gemini/gemini-3-flash'],
    ['ANTHROPIC_API_KEY', 'claude-haiku-4-5'],
  ])('%s that is unreadable: no other secret is sent in its place', async (name, model) => {
    store.state = 'down';
    const isolate = new Isolate({ MISTRAL_API_KEY: 'sk-mistral', [name]: store.secret('its own') });
    expect(await isolate.chat(model)).toMatchObject(UNREADABLE);
    expect(called).toEqual([]);
  });

  test('CODESTRAL_API_KEY that is absent: the key of Mistral serves it, as before', async () => {
    const isolate = new Isolate({ MISTRAL_API_KEY: 'sk-mistral' });
    expect((await isolate.chat('codestral/codestral-latest')).status).toBe(200);
    expect(called[0]?.headers.get('authorization')).toBe('Bearer sk-mistral');
  });

  test('an alias goes on to its next target; with none left it is a 503, also where others are forbidden', async () => {
    store.state = 'down';
    const isolate = new Isolate({
      DEEPSEEK_API_KEY: store.secret('sk-deepseek'),
      ALIASES: {
        fast: ['deepseek/a', 'openai/b'],
        slow: ['deepseek/a', 'deepseek/b'],
        mixed: ['openai/b', 'deepseek/a'],
      },
      AUTH: 'keys',
      ADMIN_TOKEN: ADMIN,
    });
    const made = await isolate.send('POST', '/admin/keys', bearer(ADMIN), {
      name: 'k',
      models: ['deepseek/*'],
    });
    const all = await isolate.send('POST', '/admin/keys', bearer(ADMIN), { name: 'all' });
    expect((await isolate.chat('fast', bearer(String(all.json.key)))).status).toBe(200);
    expect(await isolate.chat('slow', bearer(String(all.json.key)))).toMatchObject(UNREADABLE);
    expect(await isolate.chat('mixed', bearer(String(made.json.key)))).toMatchObject(UNREADABLE);
    expect(called).toHaveLength(1);
  });

  test('of an entry, in a header and in its query: 503, also where callers send the key', async () => {
    store.state = 'down';
    const PROVIDERS = {
      keyed: { base_url: UPSTREAM, api_key: 'OWN_KEY' },
      header: { base_url: UPSTREAM, headers: { 'x-project': '$OWN_KEY' } },
      query: { base_url: UPSTREAM, query: { project: '$OWN_KEY' } },
    };
    const own = { PROVIDERS, OWN_KEY: store.secret('own') };
    const open = new Isolate(own);
    for (const name of Object.keys(PROVIDERS)) expect(await open.chat(`${name}/m`)).toMatchObject(UNREADABLE);
    const passing = new Isolate({ ...own, AUTH: 'passthrough', DEFAULT_PROVIDER: 'header' });
    for (const name of ['header', 'query'])
      expect(await passing.chat(`${name}/m`, bearer('sk-caller'))).toMatchObject(UNREADABLE);
    expect(await passing.get('/v1/models', bearer('sk-caller'))).toMatchObject(UNREADABLE);
    expect(called).toEqual([]);
    expect((await passing.chat('keyed/m', bearer('sk-caller'))).status).toBe(200);
    expect(called[0]?.headers.get('authorization')).toBe('Bearer sk-caller');
  });

  test('the list of models has those of the other providers; a model of its provider, and an empty list, are a 503', async () => {
    vi.mocked(fetch).mockImplementation(async () => Response.json({ data: [{ id: 'gpt-4o-mini' }] }));
    store.state = 'down';
    const own = { DEEPSEEK_API_KEY: store.secret('sk-deepseek') };
    const isolate = new Isolate(own);
    expect(await isolate.get('/v1/models')).toMatchObject({
      status: 200,
      json: { data: [{ id: 'openai/gpt-4o-mini' }] },
    });
    expect(await isolate.get('/v1/models/deepseek/deepseek-chat')).toMatchObject(UNREADABLE);
    expect(await isolate.get('/v1/models/openai/unknown')).toMatchObject({ status: 404 });
    expect(await new Isolate({ ...own, OPENAI_API_KEY: '' }).get('/v1/models')).toMatchObject(UNREADABLE);
    store.state = 'up';
    later();
    expect((await isolate.get('/v1/models/deepseek/gpt-4o-mini')).status).toBe(200);
  });

  test('a store that stays silent holds requests that do not need it for a second at most', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 10, 28) });
    store.state = 'silent';
    const isolate = new Isolate({ DEEPSEEK_API_KEY: store.secret('sk-deepseek') });
    const first = isolate.chat();
    await vi.advanceTimersByTimeAsync(5000);
    expect((await first).status).toBe(200);
    await vi.advanceTimersByTimeAsync(10_000);
    const begun = Date.now();
    const others = Promise.all([isolate.chat(), isolate.chat()]);
    let isOver = false;
    void others.then(() => {
      isOver = true;
    });
    while (!isOver) await vi.advanceTimersByTimeAsync(10);
    expect(Date.now() - begun).toBeLessThanOrEqual(1100);
    expect(store.reads).toBe(2);
  });

  test('what the isolate knows stays when the secret arrives: a request that runs is counted', async () => {
    const ended = Promise.withResolvers<Response>();
    vi.mocked(fetch).mockImplementationOnce(() => ended.promise);
    store.state = 'down';
    const isolate = new Isolate({ ADMIN_TOKEN: ADMIN, DEEPSEEK_API_KEY: store.secret('sk-deepseek') });
    const running = isolate.chat();
    await vi.waitUntil(() => vi.mocked(fetch).mock.calls.length === 1);
    store.state = 'up';
    later();
    const inFlight = async () =>
      (await isolate.get('/admin/status?only=isolate', bearer(ADMIN))).json.in_flight;
    expect(await inFlight()).toMatchObject({ requests: 1 });
    expect((await isolate.chat('deepseek/a')).status).toBe(200);
    ended.resolve(Response.json({ error: { message: 'no' } }, { status: 400 }));
    await running;
    expect(await inFlight()).toMatchObject({ requests: 0 });
  });
});

describe('W5 ADMIN_TOKEN', () => {
  const ROUTES = [
    '/v1/chat/completions',
    '/v1/embeddings',
    '/v1/messages',
    '/v1/responses',
    '/v1/messages/count_tokens',
  ];
  const SPELLINGS = [
    bearer(ADMIN),
    { 'api-key': ADMIN },
    { 'x-api-key': ADMIN },
    { authorization: `bearer  ${ADMIN}` },
  ];

  test('under AUTH=passthrough reaches no provider, in no spelling and on no route, before and after it can be read', async () => {
    store.state = 'down';
    const isolate = new Isolate({
      AUTH: 'passthrough',
      ADMIN_TOKEN: store.secret(ADMIN),
      DEFAULT_PROVIDER: 'openai',
      ANTHROPIC_API_KEY: 'k',
    });
    const body = {
      model: 'openai/gpt-4o-mini',
      messages: [{ role: 'user', content: 'x' }],
      input: 'x',
      max_tokens: 9,
    };
    const askAll = async (expected: object) => {
      for (const headers of SPELLINGS) {
        for (const path of ROUTES)
          expect(await isolate.send('POST', path, headers, body)).toMatchObject(
            // Messages have another status for 503.
            path.includes('messages') ? { ...expected, status: 529 } : expected,
          );
        expect(await isolate.get('/v1/models', headers)).toMatchObject(expected);
        expect(await isolate.get('/v1/models/openai/gpt-4o-mini', headers)).toMatchObject(expected);
        expect(await isolate.get('/v1/key', headers)).toMatchObject(expected);
      }
    };
    await askAll({ status: 503, retryAfter: '5' });
    expect(await isolate.chat('openai/gpt-4o-mini', bearer('sk-caller'))).toMatchObject(UNREADABLE);
    store.state = 'up';
    later();
    expect((await isolate.chat('openai/gpt-4o-mini', bearer('sk-caller'))).status).toBe(200);
    for (const headers of SPELLINGS)
      for (const path of ROUTES) expect((await isolate.send('POST', path, headers, body)).status).toBe(401);
    expect(called).toHaveLength(1);
    expect(JSON.stringify([...called.map(({ headers }) => [...headers]), called, kv, logged])).not.toContain(
      ADMIN,
    );
  });

  test('admin routes are a 503 with a credential, as they may be the admin’s, a 401 without one, and open when it is read', async () => {
    store.state = 'down';
    const isolate = new Isolate({ AUTH: 'keys', ADMIN_TOKEN: store.secret(ADMIN) });
    const paths = [
      '/admin/keys',
      '/admin/status',
      '/admin/audit',
      '/admin/users/ada/export',
      '/v1/admin/keys/0123/limits',
    ];
    for (const path of paths) {
      expect(await isolate.get(path, bearer(ADMIN))).toMatchObject({
        status: path.startsWith('/v1/admin/keys') ? 404 : 503,
      });
      expect((await isolate.get(path)).status).not.toBe(200);
    }
    expect(await isolate.get('/admin/keys')).toMatchObject({ status: 401 });
    store.state = 'up';
    later();
    expect((await isolate.get('/admin/keys', bearer(ADMIN))).status).toBe(200);
    expect((await isolate.get('/admin/keys', bearer('another'))).status).toBe(401);
  });

  test('routes that admins share with callers: a gateway key reads its own, any other credential is a 503', async () => {
    const made = await new Isolate({ AUTH: 'keys', ADMIN_TOKEN: ADMIN }).send(
      'POST',
      '/admin/keys',
      bearer(ADMIN),
      {
        name: 'k',
      },
    );
    const usage = await new Isolate({ AUTH: 'keys', ADMIN_TOKEN: ADMIN }).send(
      'POST',
      '/admin/keys',
      bearer(ADMIN),
      {
        name: 'u',
        scope: 'usage',
      },
    );
    store.state = 'down';
    const isolate = new Isolate({ AUTH: 'keys', ADMIN_TOKEN: store.secret(ADMIN) });
    const open = new Isolate({ ADMIN_TOKEN: store.secret(ADMIN) });
    for (const path of ['/v1/usage', '/v1/usage/records', '/v1/usage/refusals', '/v1/models']) {
      for (const key of [made.json.key, usage.json.key])
        expect(await isolate.get(path, bearer(String(key))), path).toMatchObject({ status: 200 });
      expect(await isolate.get(path, bearer(ADMIN)), path).toMatchObject(UNREADABLE);
      expect(await isolate.get(path), path).toMatchObject({ status: 401 });
    }
    expect(await open.get('/v1/usage', bearer(ADMIN))).toMatchObject(UNREADABLE);
    expect(await open.get('/v1/usage')).toMatchObject({ status: 200 });
    expect(await isolate.chat('openai/a', bearer(String(made.json.key)))).toMatchObject({ status: 200 });
    expect(await isolate.chat('openai/a', bearer(ADMIN))).toMatchObject({ status: 401 });
  });

  test('the host’s hook is asked about other routes only: an admin route waits for the token', async () => {
    store.state = 'down';
    const asked: string[] = [];
    const onRequest = ({ url }: Request) => {
      asked.push(new URL(url).pathname);
      return new Response('unknown session', { status: 401 });
    };
    const isolate = new Isolate(
      { AUTH: 'keys', ADMIN_TOKEN: store.secret(ADMIN), BASE_PATH: '/ai' },
      { onRequest },
    );
    expect(await isolate.get('/ai/admin/keys', bearer(ADMIN))).toMatchObject(UNREADABLE);
    expect(asked).toEqual([]);
    expect((await isolate.send('POST', '/ai/v1/chat/completions', bearer('session'), {})).status).toBe(401);
    expect(asked).toEqual(['/ai/v1/chat/completions']);
    expect((await isolate.get('/ai/admin/keys')).status).toBe(401);
  });

  test.each<[string, string, Record<string, string>]>([
    ['a bearer', '/shop', bearer(ADMIN)],
    ['Basic', '/shop', { authorization: `Basic ${btoa(`x:${ADMIN}`)}` }],
    ['a header of another provider', '/shop', { 'x-goog-api-key': ADMIN }],
    ['a parameter', `/shop?key=${ADMIN}`, {}],
    ['an encoded parameter', `/shop?access_token=${encodeURIComponent(ADMIN)}`, {}],
  ])('with %s, no request is passed on to the site; without a credential it is', async (_, path, headers) => {
    store.state = 'down';
    const isolate = new Isolate({ ADMIN_TOKEN: store.secret(ADMIN), BASE_PATH: '/ai', ORIGIN: UPSTREAM });
    expect(await isolate.get(path, headers)).toMatchObject(UNREADABLE);
    expect(called).toEqual([]);
    expect((await isolate.get('/shop')).status).toBe(200);
    store.state = 'up';
    later();
    expect((await isolate.get('/shop', bearer('of the site'))).status).toBe(200);
    expect((await isolate.get(path, headers)).status).toBe(404);
    expect(called).toHaveLength(2);
  });
});

describe('W5 USER_HASH_KEY', () => {
  const base = { AUTH: 'keys', ADMIN_TOKEN: ADMIN, DEADLINE_SECONDS: '30' };

  async function keyOf(isolate: Isolate, fields: object = {}): Promise<Record<string, string>> {
    const made = await isolate.send('POST', '/admin/keys', bearer(ADMIN), { name: 'k', ...fields });
    return bearer(String(made.json.key));
  }

  test('under USERS=hash a request that names a user waits, and is then recorded under the one hash', async () => {
    const own = { ...base, USERS: 'hash', USER_HASH_KEY: store.secret(HASH_KEY) };
    const good = new Isolate(own);
    const key = await keyOf(good);
    const named = { ...key, 'x-weir-user': 'ada' };
    await good.chat('openai/a', named);
    store.state = 'down';
    const isolate = new Isolate(own);
    expect(await isolate.chat('openai/a', named)).toMatchObject(UNREADABLE);
    expect((await isolate.chat('openai/a', key)).status).toBe(200);
    expect(await isolate.get('/v1/usage?user=ada', bearer(ADMIN))).toMatchObject(UNREADABLE);
    expect(
      await isolate.send('POST', '/admin/keys', bearer(ADMIN), { name: 'a', user: 'ada' }),
    ).toMatchObject(UNREADABLE);
    expect((await isolate.send('POST', '/admin/keys', bearer(ADMIN), { name: 'b' })).status).toBe(201);
    store.state = 'up';
    later();
    expect((await isolate.chat('openai/a', named)).status).toBe(200);
    await Promise.all([good.settle(), isolate.settle()]);
    const users = logged.flatMap(({ event, user }) => (event === 'request' ? [user] : []));
    expect(users).toEqual([expect.stringMatching(/^h_/), null, users[0]]);
    expect(JSON.stringify(logged)).not.toContain('"ada"');
  });

  test('a key that turns out to be too short is reported then', async () => {
    store.state = 'down';
    const isolate = new Isolate({ USERS: 'hash', USER_HASH_KEY: store.secret('short') });
    expect((await isolate.chat()).status).toBe(200);
    store.state = 'up';
    later();
    expect(await isolate.chat()).toMatchObject({ status: 500, code: 'misconfigured' });
    expect(logged).toContainEqual(expect.objectContaining({ event: 'misconfigured' }));
  });

  test('an erasure: its user is never served where the hash is unknown, and none begins, ends or is exported there', async () => {
    const own = { ...base, USER_HASH_KEY: store.secret(HASH_KEY) };
    const good = new Isolate(own);
    const key = await keyOf(good);
    const begun = await good.send('DELETE', '/admin/users/ada', bearer(ADMIN));
    expect(begun.status).toBe(202);
    expect(await good.chat('openai/a', { ...key, 'x-weir-user': 'ada' })).toMatchObject({
      code: 'user_being_erased',
    });
    store.state = 'down';
    const isolate = new Isolate(own);
    for (const user of ['ada', 'bob'])
      expect(await isolate.chat('openai/a', { ...key, 'x-weir-user': user })).toMatchObject(UNREADABLE);
    expect((await isolate.chat('openai/a', key)).status).toBe(200);
    for (const user of ['ada', 'bob']) {
      expect(await isolate.send('DELETE', `/admin/users/${user}`, bearer(ADMIN))).toMatchObject(UNREADABLE);
      expect(await isolate.get(`/admin/users/${user}/export`, bearer(ADMIN))).toMatchObject(UNREADABLE);
    }
    const statusOf = async (one: Isolate) =>
      (await one.get(`/admin/erasures/${begun.json.id}`, bearer(ADMIN))).json;
    later(60 * 60_000);
    await isolate.scheduled();
    expect(await statusOf(isolate)).toMatchObject({
      status: 'waiting',
      problem: expect.stringContaining('USER_HASH_KEY'),
    });
    store.state = 'up';
    later(60 * 60_000);
    await isolate.scheduled();
    expect(await statusOf(isolate)).toMatchObject({ status: 'erased', problem: null });
  });

  test('the late search of an erasure waits, too, and finds what arrived meanwhile', async () => {
    const own = { ...base, USER_HASH_KEY: store.secret(HASH_KEY) };
    const good = new Isolate(own);
    const begun = await good.send('DELETE', '/admin/users/ada', bearer(ADMIN));
    later(60 * 60_000);
    await good.scheduled();
    later(16 * 24 * 60 * 60_000);
    store.state = 'down';
    const isolate = new Isolate(own);
    const statusOf = async () =>
      (await isolate.get(`/admin/erasures/${begun.json.id}`, bearer(ADMIN))).json.status;
    await isolate.scheduled();
    expect(await statusOf()).toBe('erased');
    store.state = 'up';
    later(60 * 60_000);
    await isolate.scheduled();
    expect(await statusOf()).toBe('done');
  });

  test('that is absent: ADMIN_TOKEN takes its place, as before; if that cannot be read, users wait', async () => {
    const good = new Isolate({ ...base, ADMIN_TOKEN: store.secret(ADMIN) });
    const key = await keyOf(good);
    const named = { ...key, 'x-weir-user': 'ada' };
    expect((await good.send('DELETE', '/admin/users/ada', bearer(ADMIN))).status).toBe(202);
    expect(await good.chat('openai/a', named)).toMatchObject({ code: 'user_being_erased' });
    store.state = 'down';
    const isolate = new Isolate({ ...base, ADMIN_TOKEN: store.secret(ADMIN) });
    expect(await isolate.chat('openai/a', named)).toMatchObject(UNREADABLE);
    expect((await isolate.chat('openai/a', key)).status).toBe(200);
  });
});

describe('W5 alerts', () => {
  test.each(['ALERT_URL', 'ALERT_SECRET'])('%s that is unreadable does not stop requests', async (name) => {
    store.state = 'down';
    const own = { ALERT_URL: 'https://alerts.example', ALERT_SECRET: 'a secret of the alerts' };
    expect((await new Isolate({ ...own, [name]: store.secret('x') }).chat()).status).toBe(200);
    expect(logged.filter(({ event }) => event === 'misconfigured')).toEqual([]);
  });
});

describe('W5 a secret of Weir’s own', () => {
  test.each(['ADMIN_TOKEN', 'USER_HASH_KEY', 'ALERT_SECRET', 'ALERT_URL'])(
    '%s is no key, header or parameter of a provider, as a variable, a binding or an option',
    async (name) => {
      const forms = [{ api_key: name }, { headers: { 'x-key': `$${name}` } }, { query: { key: `$${name}` } }];
      for (const form of forms) {
        const PROVIDERS = { evil: { base_url: UPSTREAM, ...form } };
        for (const value of ['a secret of sixteen', store.secret('a secret of sixteen')]) {
          const asVariable = await new Isolate({ PROVIDERS, [name]: value }).chat('evil/m');
          expect(asVariable).toMatchObject({ status: 500, code: 'misconfigured' });
          expect(JSON.stringify(asVariable.json)).toContain(name);
        }
        const asOption = new Isolate({ [name]: 'a secret of sixteen' }, { providers: PROVIDERS });
        expect(await asOption.chat('evil/m')).toMatchObject({ status: 500, code: 'misconfigured' });
      }
      expect(called).toEqual([]);
    },
  );
});

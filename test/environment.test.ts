/** A Worker's environment: its settings, secrets and bindings; what a host does wrongly gets a response that says so. */
import { timingSafeEqual } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createHandlers, Environment } from '../src/environment.ts';
import type { OpenGateway } from '../src/feature.ts';
import { ledger } from '../src/ledger/feature.ts';
import { isRequestId } from '../src/metering/time.ts';
import type { SettingsReader } from '../src/settings/reader.ts';
import type { WeirOptions } from '../src/types.ts';
import { MemoryStore } from './metering/records.ts';
import { ALL_FEATURES } from './settings/read-settings.ts';

/** The package's `weir()`, without the runtime's tracing, which Node does not have. */
function weir(options: WeirOptions<unknown> = {}) {
  return createHandlers({ features: ALL_FEATURES, ...options }, null);
}

// workerd has these; Node has them elsewhere, or only in later versions.
Object.assign(crypto.subtle, { timingSafeEqual });
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

type Call = (...args: readonly unknown[]) => Promise<Response>;

const request = new Request('https://weir.example/v1/models');
const ctx = { waitUntil: () => {} };
const logged: string[] = [];

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation((line) => logged.push(String(line)));
});
afterEach(() => {
  vi.restoreAllMocks();
  logged.length = 0;
});

/** Variables that CI systems, hosts, shells and Workers set. */
const PLATFORM = Object.fromEntries(
  (
    'PATH HOME HOST PORT PWD USER SHELL LANG TERM EDITOR LOGNAME HOSTNAME NODE_ENV ENVIRONMENT ENV STAGE DEBUG LOG_LEVEL TZ ' +
    'CI CF_PAGES CF_PAGES_URL CF_PAGES_BRANCH CF_PAGES_COMMIT_SHA CF_ACCOUNT_ID CLOUDFLARE_ACCOUNT_ID CLOUDFLARE_API_TOKEN ' +
    'CLOUDFLARE_ENV CLOUDFLARE_API_BASE_URL WORKERS_CI WORKERS_CI_BRANCH WRANGLER_SEND_METRICS NEXT_PUBLIC_URL DATABASE_URL ' +
    'REGION AWS_REGION API_KEY API_TOKEN BASE_URL API_BASE_URL PUBLIC_URL SITE_URL JWT_SECRET SESSION_SECRET SENTRY_DSN ' +
    'VERSION COMMIT RELEASE ORIGIN_URL CORS_ORIGIN_LIST STRIPE_API_KEY RESEND_API_KEY GITHUB_TOKEN AUTHOR AUTHORS TITLE MODEL'
  )
    .split(' ')
    .map((name) => [name, 'x']),
);

async function call(fetch: unknown, ...args: readonly unknown[]) {
  const response = await (fetch as Call)(...args); // decode
  return { status: response.status, text: await response.text() };
}

describe('W2 weir().fetch', () => {
  test.each([
    ['the request alone', [request]],
    ['no context', [request, {}]],
    ['no environment', [request, null, ctx]],
  ])('with %s says what it takes', async (_, args) => {
    const { status, text } = await call(weir().fetch, ...args);
    expect(status).toBe(500);
    expect(text).toContain('(request, env, ctx)');
  });

  test('without its KV namespace, and with an unknown option, names both', async () => {
    const options: object = { basepath: '/ai' };
    const { status, text } = await call(weir(options).fetch, request, {}, ctx);
    expect(status).toBe(500);
    expect(text).toMatch(
      /the option basepath does not exist: did you mean basePath\?; WEIR_KV must be bound/,
    );
    expect(logged.join()).toContain('"event":"misconfigured"');
  });

  test('logs variables that resemble settings, once, and not those of the platform', async () => {
    const env = {
      WEIR_KV: ctx,
      AUTH: 'open',
      LEGDER: 'object',
      ALIAS: '{}',
      HEARTBEAT_SECOND: '5',
      DEPSEEK_API_KEY: 'sk-secret',
      // An object is a binding.
      LEDGERS: ctx,
      // OPENAI_API_KEY is set, so a variable with a similar name is not a misspelling.
      OPENAI_API_KEY: 'k',
      OPENAI_API_KEY2: 'k',
      ...PLATFORM,
    };
    const { fetch } = weir();
    for (let i = 0; i < 2; i++) {
      expect((await call(fetch, new Request('https://weir.example/health'), env, ctx)).status).toBe(200);
    }
    const lines = logged.filter((line) => line.includes('setting_unknown'));
    expect(lines.join()).not.toContain('sk-secret');
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      [
        ['LEGDER', 'LEDGER'],
        ['ALIAS', 'ALIASES'],
        ['HEARTBEAT_SECOND', 'HEARTBEAT_SECONDS'],
        ['DEPSEEK_API_KEY', 'DEEPSEEK_API_KEY'],
      ].map(([setting, meant]) => ({
        event: 'setting_unknown',
        setting,
        message: `is no setting: did you mean ${meant}?`,
      })),
    );
  });

  test.each([
    ['TOGETHERAI_API_KEY', 'TOGETHER_API_KEY'],
    ['FIREWORKS_AI_API_KEY', 'FIREWORKS_API_KEY'],
    ['ANTHROPIC_KEY', 'ANTHROPIC_API_KEY'],
    ['CLAUDE_API_KEY', 'ANTHROPIC_API_KEY'],
    ['GROK_API_KEY', 'XAI_API_KEY'],
    ['KIMI_API_KEY', 'MOONSHOT_API_KEY'],
    ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    ['OPEN_ROUTER_TOKEN', 'OPENROUTER_API_KEY'],
  ])(
    'W7 the secret %s, which looks like a provider’s and is used by none: one line, about %s',
    async (name, meant) => {
      const linesOf = async (more: object) => {
        logged.length = 0;
        await call(
          weir().fetch,
          new Request('https://weir.example/health'),
          { [name]: 'sk-secret', ...more },
          ctx,
        );
        return logged.filter((line) => line.includes('setting_unknown')).map((line) => JSON.parse(line));
      };
      const line = { event: 'setting_unknown', setting: name };
      expect(await linesOf({})).toEqual([{ ...line, message: `is no setting: did you mean ${meant}?` }]);
      expect(await linesOf({ [meant]: 'k' })).toEqual([
        { ...line, message: `is no setting, and no provider uses it: ${meant} is set` },
      ]);
      const entry = { base_url: 'https://own.example/v1', api_key: name };
      expect(await linesOf({ PROVIDERS: { own: entry } })).toEqual([]);
    },
  );

  test('W7 the secret of a provider whose name an entry of PROVIDERS has, with another key: one line that says so', async () => {
    logged.length = 0;
    const groq = { base_url: 'https://own.example/v1', api_key: 'OTHER' };
    const env = { PROVIDERS: { groq }, OTHER: 'k', GROQ_API_KEY: 'sk-secret' };
    await call(weir().fetch, new Request('https://weir.example/health'), env, ctx);
    const lines = logged.filter((line) => line.includes('setting_unknown')).map((line) => JSON.parse(line));
    const message = 'is used by no provider: an entry of PROVIDERS has the name of its provider';
    expect(lines).toEqual([{ event: 'setting_unknown', setting: 'GROQ_API_KEY', message }]);
  });

  test.each([
    ['fifteen-chars-x', 1],
    ['sixteen-chars-xx', 0],
  ])('logs an ADMIN_TOKEN of fewer than 16 characters, without its text: %s', async (token, count) => {
    await call(weir().fetch, new Request('https://weir.example/health'), { ADMIN_TOKEN: token }, ctx);
    const lines = logged.filter((line) => line.includes('setting_weak'));
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      Array.from({ length: count }, () => ({
        event: 'setting_weak',
        setting: 'ADMIN_TOKEN',
        message: expect.stringContaining('fewer than 16 characters'),
      })),
    );
    expect(logged.join()).not.toContain(token);
  });

  test.each(['X_API_KEY', 'API_KEY', 'API_BASE_URL', 'AI_API_KEY', 'GITHUB_TOKEN', 'CLOUDFLARE_API_TOKEN'])(
    'the variable %s looks like no provider’s: no line',
    async (name) => {
      await call(weir().fetch, new Request('https://weir.example/health'), { [name]: 'sk-secret' }, ctx);
      expect(logged.filter((line) => line.includes('setting_unknown'))).toEqual([]);
    },
  );

  test('I1 misconfigured: the response has a request id, which an error in the form of Messages repeats', async () => {
    const requested = new Request('https://weir.example/v1/messages', { method: 'POST', body: '{}' });
    const response = await weir().fetch(requested, {}, ctx);
    const id = response.headers.get('x-request-id') ?? '';
    expect(isRequestId(id)).toBe(true);
    expect(['x-weir-request-id', 'request-id'].map((name) => response.headers.get(name))).toEqual([id, id]);
    expect(await response.json()).toMatchObject({ type: 'error', request_id: id });
  });

  test('X1 misconfigured: RESPONSES=durable without its binding names the binding and the class', async () => {
    const options = { responses: 'durable', auth: 'open' } as const;
    const { status, text } = await call(weir(options).fetch, request, { WEIR_KV: ctx }, ctx);
    expect(status).toBe(500);
    expect(text).toContain('"param":"WEIR_RESPONSES"');
    expect(text).toContain('must be bound to the Durable Object ResponseObject');
  });

  test('B5 with options that make reading the settings throw, responds and logs the reason', async () => {
    const options: object = { prices: [{ input: 1n }] };
    const { status, text } = await call(weir(options).fetch, request, {}, ctx);
    expect(status).toBe(500);
    expect(text).toContain('"code":"internal_error"');
    expect(logged.join()).toMatch(/internal_error.*BigInt/);
  });
});

/** A secret of Secrets Store, and how often it was read. */
class Secret {
  reads = 0;
  readonly #read: () => Promise<unknown>;

  constructor(read: () => Promise<unknown>) {
    this.#read = read;
  }

  get(): Promise<unknown> {
    this.reads++;
    return this.#read();
  }
}

const failing = () => new Secret(() => Promise.reject(new Error('Secret not found')));
const withText = (text: unknown) => new Secret(async () => text);

describe('W5 secrets of Secrets Store', () => {
  const UPSTREAM = 'https://upstream.example';
  const called: { url: string; authorization: string | null }[] = [];

  beforeEach(() => {
    called.length = 0;
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      called.push({ url: String(input), authorization: new Headers(init?.headers).get('authorization') });
      const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' };
      return Response.json({ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices: [choice] });
    });
  });

  const envOf = (own: object) => ({ WEIR_KV: new MemoryStore().asStore, AUTH: 'open', RETRIES: '0', ...own });

  function chat(fetch: unknown, model: string, env: object) {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
    return call(
      fetch,
      new Request('https://weir.example/v1/chat/completions', { method: 'POST', body }),
      env,
      ctx,
    );
  }

  test('are read once for each environment, at the first request, also by concurrent requests', async () => {
    const secret = withText(' sk-of-the-store ');
    const env = envOf({ OPENAI_API_KEY: secret });
    const { fetch } = createHandlers({}, null, env);
    expect(secret.reads).toBe(0);
    const responses = await Promise.all([1, 2, 3].map(() => chat(fetch, 'openai/gpt-4o-mini', env)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    await chat(fetch, 'openai/gpt-4o-mini', env);
    expect(secret.reads).toBe(1);
    expect(new Set(called.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer sk-of-the-store']),
    );
  });

  test.each([
    ['fails', failing],
    [
      'throws',
      () =>
        new Secret(() => {
          throw new Error('no');
        }),
    ],
    ['is empty', () => withText(' ')],
    ['is no text', () => withText(7)],
  ])('one that %s: its provider is not called, and the others serve', async (_, secret) => {
    const bad = secret();
    const env = envOf({
      OPENAI_API_KEY: 'k',
      DEEPSEEK_API_KEY: bad,
      PROVIDERS: { acme: { base_url: UPSTREAM, api_key: 'ACME_KEY' } },
      ACME_KEY: withText('acme-key'),
    });
    const { fetch } = createHandlers({}, null);
    const refused = await chat(fetch, 'deepseek/deepseek-chat', env);
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining('DEEPSEEK_API_KEY')]);
    for (const model of ['openai/gpt-4o-mini', 'acme/m'])
      expect((await chat(fetch, model, env)).status).toBe(200);
    expect(called.map(({ authorization }) => authorization)).toEqual(['Bearer k', 'Bearer acme-key']);
    expect(bad.reads).toBe(1);
  });

  test('one that fails, of an entry, a header, the default provider and an alias: only that target is skipped', async () => {
    const env = envOf({
      OPENAI_API_KEY: 'k',
      MISTRAL_API_KEY: failing(),
      DEFAULT_PROVIDER: 'mistral',
      ALIASES: { fast: ['mistral/a', 'azure/b', 'acme/c', 'openai/gpt-4o-mini'] },
      PROVIDERS: {
        acme: { base_url: UPSTREAM, api_key: 'ACME_KEY' },
        azure: { base_url: UPSTREAM, headers: { 'api-key': '$AZURE_KEY' } },
      },
      ACME_KEY: failing(),
      AZURE_KEY: failing(),
    });
    const { fetch } = createHandlers({}, null);
    expect((await chat(fetch, 'fast', env)).status).toBe(200);
    expect(called).toEqual([expect.objectContaining({ authorization: 'Bearer k' })]);
    for (const model of ['mistral-small-latest', 'acme/c', 'azure/b'])
      expect((await chat(fetch, model, env)).status).toBe(503);
    expect(called).toHaveLength(1);
    const unreadable = logged.filter((line) => line.includes('"event":"secret_unreadable"'));
    expect(unreadable).toHaveLength(3);
  });

  test('ADMIN_TOKEN and USER_HASH_KEY: one that fails opens nothing', async () => {
    const features = ALL_FEATURES;
    const open = (own: object) => createHandlers({ features }, null).fetch(asked, envOf(own), ctx);
    const asked = new Request('https://weir.example/admin/keys', { headers: { authorization: 'Bearer t' } });
    expect((await open({ ADMIN_TOKEN: withText('t') })).status).toBe(200);
    expect((await open({ ADMIN_TOKEN: failing() })).status).toBe(503);
    expect((await open({})).status).toBe(403);
    const hashed = { ADMIN_TOKEN: 't', USERS: 'hash', USER_HASH_KEY: failing() };
    expect((await open(hashed)).status).toBe(200);
    const known = { ADMIN_TOKEN: 't', USERS: 'hash', USER_HASH_KEY: withText('a secret of users') };
    expect((await open(known)).status).toBe(200);
  });

  test('ADMIN_TOKEN that fails: no request with a credential is passed on to the site, others are', async () => {
    const env = envOf({ ADMIN_TOKEN: failing(), BASE_PATH: '/ai', ORIGIN: UPSTREAM });
    const { fetch } = createHandlers({ features: ALL_FEATURES }, null);
    const page = (headers: Record<string, string>) =>
      call(fetch, new Request('https://weir.example/shop', { headers }), env, ctx);
    expect((await page({ authorization: 'Bearer the-admin-token' })).status).toBe(503);
    expect(called).toEqual([]);
    expect((await page({})).status).toBe(200);
    expect(called).toHaveLength(1);
  });

  test('one that never answers counts as unreadable after 5 s', async () => {
    vi.useFakeTimers();
    try {
      const env = envOf({ OPENAI_API_KEY: 'k', DEEPSEEK_API_KEY: new Secret(() => new Promise(() => {})) });
      const response = chat(createHandlers({}, null).fetch, 'deepseek/a', env);
      await vi.advanceTimersByTimeAsync(5000);
      expect((await response).status).toBe(503);
    } finally {
      vi.useRealTimers();
    }
  });

  test('any other binding in the place of a secret, and a secret in the place of another setting, are invalid', async () => {
    const { fetch } = createHandlers({}, null);
    for (const own of [{ OPENAI_API_KEY: {} }, { RETRIES: withText('2') }, { AUTH: withText('open') }]) {
      const { status, text } = await call(fetch, request, envOf(own), ctx);
      expect([status, text]).toEqual([500, expect.stringContaining('must be text')]);
    }
  });
});

describe('W5 an entry of PROVIDERS with a service binding', () => {
  test('its base_url is called through the binding, for completions and models, and never over the network', async () => {
    const network = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('not this way'));
    const seen: string[] = [];
    const VPC_LLM = {
      async fetch(input: RequestInfo, init?: RequestInit) {
        seen.push(
          `${init?.method ?? 'GET'} ${input} ${this === VPC_LLM} ${new Headers(init?.headers).get('authorization')}`,
        );
        if (init?.method !== 'POST') return Response.json({ data: [{ id: 'llama' }] });
        const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' };
        return Response.json({
          id: 'a',
          choices: [choice],
          usage: { prompt_tokens: 1, completion_tokens: 1 },
        });
      },
    };
    const env = {
      WEIR_KV: new MemoryStore().asStore,
      AUTH: 'open',
      VPC_LLM,
      LOCAL_KEY: 'k',
    };
    const providers = {
      local: { base_url: 'http://llm.internal:8000/v1', binding: 'VPC_LLM', api_key: 'LOCAL_KEY' },
    };
    const { fetch } = createHandlers({ providers }, null);
    const body = JSON.stringify({ model: 'local/llama', messages: [{ role: 'user', content: 'Hello' }] });
    const chat = new Request('https://weir.example/v1/chat/completions', { method: 'POST', body });
    expect((await call(fetch, chat, env, ctx)).status).toBe(200);
    expect((await call(fetch, request, env, ctx)).text).toContain('"id":"local/llama"');
    expect(seen).toEqual([
      'POST http://llm.internal:8000/v1/chat/completions true Bearer k',
      'GET http://llm.internal:8000/v1/models true Bearer k',
    ]);
    expect(network).not.toHaveBeenCalled();
  });

  test.each<[what: string, binding: unknown, message: RegExp]>([
    ['a name that is not bound', 'VPC_OTHER', /binding names no service binding of this Worker: VPC_OTHER/],
    ['a binding of another kind', 'WEIR_KV', /binding names no service binding of this Worker: WEIR_KV/],
    ['a URL', 'https://a.example', /binding must be the name of a service binding/],
    ['no text', 7, /binding must be the name of a service binding/],
  ])('%s is an invalid setting', async (_, binding, message) => {
    const env = {
      WEIR_KV: new MemoryStore().asStore,
      PROVIDERS: { local: { base_url: 'http://llm.internal/v1', binding } },
    };
    const { status, text } = await call(createHandlers({}, null).fetch, request, env, ctx);
    expect(status).toBe(500);
    expect(text).toMatch(message);
  });
});

describe('W2 settings of features that are not listed', () => {
  const bindings = { WEIR_KV: ctx };

  test.each<[name: string, env: object]>([
    ['AUTH', { AUTH: 'access', ACCESS_TEAM_DOMAIN: 'team.cloudflareaccess.com', ACCESS_AUD: 'a' }],
    ['AUTH', { AUTH: ' access ' }],
    ['USERS', { USERS: 'hash', USER_HASH_KEY: 'a secret of users' }],
    ['USERS', { USERS: 'off' }],
    ['USERS', { USERS: 'of' }],
  ])('%s, which restricts access, is an error that names the import: %j', async (name, env) => {
    const { fetch } = createHandlers({}, null);
    const { status, text } = await call(fetch, request, { ...bindings, AUTH: 'open', ...env }, ctx);
    expect(status).toBe(500);
    expect(text).toContain(`"param":"${name}"`);
    expect(text).toContain("from 'weir-gateway/attribution'");
  });

  test.each<[option: string, value: unknown, entry: string]>([
    ['ledger', 'object', 'ledger'],
    ['budgetFail', 'closed', 'ledger'],
    ['recordDays', 40, 'ledger'],
    ['users', 'plain', 'attribution'],
    ['tags', ['team'], 'attribution'],
    ['responses', 'durable', 'durable-responses'],
    ['origin', 'pass', 'origin'],
  ])('the option %s is an error that names the import', async (option, value, entry) => {
    const { fetch } = createHandlers({ auth: 'open', [option]: value }, null);
    const { status, text } = await call(fetch, request, bindings, ctx);
    expect(status).toBe(500);
    expect(text).toContain(`the option ${option} needs`);
    expect(text).toContain(`from 'weir-gateway/${entry}'`);
  });

  test('an undefined option, and USERS=plain, are none', async () => {
    const { fetch } = createHandlers({ auth: 'open', recordDays: undefined }, null);
    expect((await call(fetch, request, { ...bindings, USERS: 'plain' }, ctx)).status).toBe(200);
  });

  test('any other variable is a line of the log, once, because the host may have it for itself', async () => {
    const { fetch } = createHandlers({ auth: 'open' }, null);
    const env = { ...bindings, ORIGIN: 'https://a.example', TAGS: 'b', RECORD_DAYS: 'x', WEIR_LEDGER: ctx };
    for (let i = 0; i < 2; i++) expect((await call(fetch, request, env, ctx)).status).toBe(200);
    const lines = logged.filter((line) => line.includes('setting_unused')).map((line) => JSON.parse(line));
    expect(lines.map(({ setting }) => setting).sort()).toEqual([
      'ORIGIN',
      'RECORD_DAYS',
      'TAGS',
      'WEIR_LEDGER',
    ]);
    expect(lines.find(({ setting }) => setting === 'ORIGIN').message).toContain("from 'weir-gateway/origin'");
  });

  test.each<[what: string, features: unknown, message: RegExp]>([
    ['a feature twice', [...ALL_FEATURES, ...ALL_FEATURES], /lists ledger\(\) twice/],
    ['a function that was not called', [() => {}], /must be a list of features/],
    ['no list', {}, /must be a list of features/],
    ['null', null, /must be a list of features/],
    ['an object that no feature made', [{ name: 'ledger' }], /must be a list of features/],
  ])('features with %s: an error', async (_, features, message) => {
    const options: object = { auth: 'open', features };
    const { status, text } = await call(createHandlers(options, null).fetch, request, bindings, ctx);
    expect(status).toBe(500);
    expect(text).toMatch(message);
  });
});

test('G10 Durable Objects read settings with the options, which come before the environment', () => {
  let settings: SettingsReader | undefined;
  const probe = {
    ...ledger(),
    objects: (gateway: OpenGateway<object>) => {
      settings = gateway.settings({ ALERT_URL: 'https://env.example', ALERT_SECRET: 'env' });
      return {};
    },
  };
  createHandlers({ features: [probe], alertUrl: 'https://option.example' }, null);
  const read = ['ALERT_URL', 'ALERT_SECRET'].map((name) => settings?.secret(name));
  expect(read).toEqual(['https://option.example', 'env']);
});

test('W2 queue and scheduled reject where nothing is bound, so that messages are delivered again', async () => {
  const { queue, scheduled } = weir();
  await expect(queue({ messages: [] }, {})).rejects.toThrow(/WEIR_KV/);
  await expect(scheduled(null, {})).rejects.toThrow(/WEIR_KV/);
});

test.each([
  ['the same values: is used', { AUTH: 'open', WEIR_KV: ctx }, 1],
  ['another value: is not used', { AUTH: 'keys', WEIR_KV: ctx }, 0],
  ['one more value: is not used', { AUTH: 'open', WEIR_KV: ctx, RETRIES: '0' }, 0],
  ['one value less: is not used', { AUTH: 'open' }, 0],
])('the environment of the startup, for requests with %s', async (_, env, uses) => {
  const { fetch } = createHandlers({}, null, { AUTH: 'open', WEIR_KV: ctx });
  logged.length = 0;
  const opened = vi.spyOn(Environment.prototype, 'hasValuesOf');
  await fetch(new Request('https://weir.example/health'), env, ctx);
  expect(opened.mock.results).toEqual([{ type: 'return', value: uses === 1 }]);
  expect(logged).toEqual([]);
});

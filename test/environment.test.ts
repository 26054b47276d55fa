/** The Worker's handlers when a host uses them wrongly: a response that says so, and no exception. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createHandlers, Environment } from '../src/environment.ts';
import { isRequestId } from '../src/metering/time.ts';
import type { WeirOptions } from '../src/types.ts';
import { ALL_FEATURES } from './settings/read-settings.ts';

/** The package's `weir()`, without the runtime's tracing, which Node does not have. */
function weir(options: WeirOptions<unknown> = {}) {
  return createHandlers({ features: ALL_FEATURES, ...options }, null);
}

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

  test('I1 misconfigured: the response has a request id, which an error in the form of Messages repeats', async () => {
    const asked = new Request('https://weir.example/v1/messages', { method: 'POST', body: '{}' });
    const response = await weir().fetch(asked, {}, ctx);
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

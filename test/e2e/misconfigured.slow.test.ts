/** Tests invalid settings: every route except `/health` reports them, with the setting's name and never its value. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../src/settings/version.ts';
import { decodeObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { type Runtime, startWorkers, type WorkerOptions } from './workers.ts';

const SECRET = 'sim-never-shown';

/** Each setting of the contract's table that can be invalid, with values that all contain the word INVALID or a number. */
const INVALID: readonly (readonly [setting: string, vars: Readonly<Record<string, string>>])[] = [
  ['DEEPSEEK_BASE_URL', { DEEPSEEK_API_KEY: SECRET, DEEPSEEK_BASE_URL: 'INVALID' }],
  ['MISTRAL_BASE_URL', { MISTRAL_API_KEY: SECRET, MISTRAL_BASE_URL: 'ftp://INVALID' }],
  ['CODESTRAL_BASE_URL', { CODESTRAL_API_KEY: SECRET, CODESTRAL_BASE_URL: 'INVALID.example/v1' }],
  ['OPENTOKEN_BASE_URL', { OPENTOKEN_API_KEY: SECRET }],
  ['XEROTIER_BASE_URL', { XEROTIER_API_KEY: SECRET }],
  ['OPENAI_BASE_URL', { OPENAI_API_KEY: SECRET, OPENAI_BASE_URL: 'https://' }],
  ['PROVIDERS', { PROVIDERS: '{"INVALID"' }],
  ['PROVIDERS', { PROVIDERS: '["INVALID"]' }],
  ['PROVIDERS', { PROVIDERS: '{"groq":{"base_url":"INVALID"}}' }],
  ['PROVIDERS', { PROVIDERS: '{"groq":{"base_url":"https://a.example/v1","api_key":"GROQ_API_KEY"}}' }],
  // A secret instead of the name of a secret.
  ['PROVIDERS', { PROVIDERS: '{"groq":{"base_url":"https://a.example/v1","api_key":"gsk_INVALID4f2a"}}' }],
  ['PROVIDERS', { PROVIDERS: '{"aws":{"base_url":"https://a.example/v1","api_key":"AKIAINVALID7EXAMPLE"}}' }],
  [
    'PROVIDERS',
    { PROVIDERS: '{"aws":{"base_url":"https://a.example/v1","headers":{"x-key":"$AKIAINVALID7EXAMPLE"}}}' },
  ],
  ['PROVIDERS', { PROVIDERS: '{"openai":{"base_url":"https://INVALID.example/v1"}}' }],
  ['DEFAULT_PROVIDER', { DEFAULT_PROVIDER: 'INVALID' }],
  ['ALIASES', { ALIASES: 'fast=INVALID' }],
  ['ALIASES', { ALIASES: '{"fast":7}' }],
  ['AUTH', { AUTH: 'INVALID' }],
  ['VENDOR_EVENTS', { VENDOR_EVENTS: 'pass, INVALID' }],
  ['REASONING', { REASONING: 'INVALID' }],
  ['USAGE_CHUNK', { USAGE_CHUNK: 'INVALID' }],
  ['ERROR_FRAMES', { ERROR_FRAMES: 'INVALID' }],
  ['HEARTBEAT_SECONDS', { HEARTBEAT_SECONDS: 'INVALID' }],
  ['IDLE_TIMEOUT_SECONDS', { IDLE_TIMEOUT_SECONDS: '-7777' }],
  ['DEADLINE_SECONDS', { DEADLINE_SECONDS: '7777m' }],
  ['MAX_EVENT_BYTES', { MAX_EVENT_BYTES: '7777.5' }],
  ['MAX_REQUEST_BYTES', { MAX_REQUEST_BYTES: '0' }],
  ['BASE_PATH', { BASE_PATH: 'INVALID' }],
  ['LEDGER', { LEDGER: 'INVALID' }],
  ['RECORD_DAYS', { RECORD_DAYS: '7777' }],
  ['RECORD_BYTES', { RECORD_BYTES: '99999' }],
  ['BUDGET_ALERTS', { BUDGET_ALERTS: 'INVALID' }],
  ['ALERT_URL', { ALERT_URL: 'http://INVALID.example' }],
  ['ORIGIN', { ORIGIN: 'INVALID' }],
  ['ORIGIN', { ORIGIN: 'https://shop.example/INVALID' }],
  ['ORIGIN_HOSTS', { ORIGIN: 'pass' }],
  ['ORIGIN_HOSTS', { ORIGIN: 'pass', ORIGIN_HOSTS: '*.INVALID.*' }],
  ['CORS_ORIGINS', { CORS_ORIGINS: 'https://app.example.com/INVALID' }],
];

/** One workerd runs a Worker for each invalid deployment. None of them calls an upstream. */
const WORKERS: readonly WorkerOptions[] = [
  ...INVALID.map(([, vars], at) => ({ name: `invalid-${at}`, vars })),
  { name: 'invalid-all', vars: Object.assign({}, ...INVALID.map(([, vars]) => vars)) },
  { name: 'storeless', vars: { AUTH: 'open' }, bindings: { WEIR_KV: false } },
  { name: 'ledgerless', vars: { AUTH: 'open', LEDGER: 'object' }, bindings: { WEIR_LEDGER: false } },
  { name: 'bare' },
];

const logs: string[] = [];
let runtime: Runtime;
beforeAll(async () => {
  runtime = await startWorkers({ workers: WORKERS, onLog: (line) => logs.push(line) });
});
afterAll(() => runtime[Symbol.asyncDispose]());

/** Sends a request to one of the Workers. */
async function request(name: string, path: string, method = 'GET') {
  const worker = await runtime.miniflare.getWorker(name);
  return worker.fetch(`http://weir.example${path}`, { method });
}

const ROUTES = [
  ['POST', '/v1/chat/completions'],
  ['GET', '/v1/models'],
  ['GET', '/v1/usage'],
  ['GET', '/admin/keys'],
  ['GET', '/any/other'],
] as const;

/** The error that every route of that Worker returns. */
async function misconfigured(name: string) {
  const errors: string[] = [];
  for (const [method, path] of ROUTES) {
    const response = await request(name, path, method);
    expect([path, response.status]).toEqual([path, 500]);
    expect(response.headers.get('x-should-retry')).toBe('false');
    errors.push(await response.text());
  }
  expect(new Set(errors).size).toBe(1);
  return objectOf(decodeObject(errors[0] ?? '')?.error);
}

describe.each(INVALID.map(([setting, vars], at) => [setting, JSON.stringify(vars), at, vars] as const))(
  '%s as in %s',
  (setting, _, at, vars) => {
    test(`every route returns 500 misconfigured with the name of ${setting} and not its value`, async () => {
      const error = await misconfigured(`invalid-${at}`);
      expect(error).toMatchObject({ type: 'server_error', code: 'misconfigured', param: setting });
      expect(textOf(error.message)).toMatch(new RegExp(`^${setting} .*(must|can't|names)`));
      // Each of these Workers logs the error at start.
      const lines = logs.map((line) => decodeObject(line));
      const logged = lines.filter((line) => {
        const [problem, ...others] = objectsOf(line?.problems);
        return line?.event === 'misconfigured' && problem?.setting === setting && others.length === 0;
      });
      expect(logged.length).toBeGreaterThan(0);
      const output = JSON.stringify([error, logged]);
      expect(output).not.toMatch(/INVALID|7777/);
      for (const value of Object.values(vars).filter((text) => text.length > 2))
        expect(output).not.toContain(value);
    });

    test('/health still responds', async () => {
      const response = await request(`invalid-${at}`, '/health');
      expect(response.status).toBe(200);
      expect(decodeObject(await response.text())).toMatchObject({ status: 'ok', version: VERSION });
    });
  },
);

test('several invalid settings are all reported at once', async () => {
  const { message } = await misconfigured('invalid-all');
  for (const setting of new Set(INVALID.map(([name]) => name))) expect(message).toContain(setting);
});

test('a missing KV namespace is reported', async () => {
  expect(await misconfigured('storeless')).toMatchObject({ code: 'misconfigured', param: 'WEIR_KV' });
});

test('L4 LEDGER=object without the Durable Object is reported', async () => {
  expect(await misconfigured('ledgerless')).toMatchObject({ code: 'misconfigured', param: 'WEIR_LEDGER' });
});

test('a deployment without variables is valid and closed', async () => {
  expect((await request('bare', '/health')).status).toBe(200);
  expect((await request('bare', '/v1/models')).status).toBe(401);
  expect((await request('bare', '/admin/keys')).status).toBe(403);
});

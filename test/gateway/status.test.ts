/** `GET /admin/status` and `GET /health`: what runs, how its providers do, and nothing secret. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { VERSION } from '../../src/settings/version.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const METADATA = { id: 'f7c1-id', tag: '1a936323', timestamp: '2026-11-23T09:00:00.000Z' };

async function read(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

async function status(gateway: LimitedGateway, path = '/v1/admin/status'): Promise<JsonObject> {
  const response = await gateway.fetch(path, 'admin');
  expect(response.status).toBe(200);
  return read(response);
}

const find = (list: unknown, field: string, value: string) =>
  objectsOf(list).find((item) => item[field] === value);

test('the version is that of package.json', () => {
  const file = decodeObject(readFileSync(`${import.meta.dirname}/../../package.json`, 'utf8'));
  expect(VERSION).toBe(textOf(file?.version));
});

describe('GET /health', () => {
  test('without version metadata: the version alone', async () => {
    const health = await read(await new LimitedGateway().fetch('/health', ''));
    expect(health).toEqual({ status: 'ok', version: VERSION });
  });

  test('with version metadata: also the commit and the id of the version', async () => {
    const gateway = new LimitedGateway({ CF_VERSION_METADATA: METADATA });
    expect(await read(await gateway.fetch('/health', ''))).toEqual({
      ...{ status: 'ok', version: VERSION, commit: METADATA.tag, version_id: METADATA.id },
    });
  });
});

describe('GET /admin/status', () => {
  test('without the admin token: 401, and with a gateway key, too', async () => {
    const gateway = new LimitedGateway();
    for (const token of ['', 'wrong', await gateway.key()])
      expect((await gateway.fetch('/admin/status', token)).status).toBe(401);
  });

  test('below a site without a base path: only below /v1; with a base path: both paths', async () => {
    const ORIGIN = 'https://www.example.com';
    const beside = new LimitedGateway({ ORIGIN });
    expect((await beside.fetch('/v1/admin/status', 'admin')).status).toBe(200);
    expect((await beside.fetch('/admin/status', 'admin')).status).toBe(404);
    const below = new LimitedGateway({ ORIGIN, BASE_PATH: '/ai' });
    expect((await below.fetch('/ai/admin/status', 'admin')).status).toBe(200);
    expect((await below.fetch('/ai/v1/admin/status', 'admin')).status).toBe(200);
  });

  test('names version, features, settings with their source, and providers that are and are not set up', async () => {
    const gateway = new LimitedGateway({ CF_VERSION_METADATA: METADATA, RETRIES: '3' });
    const shown = await status(gateway);
    expect(shown).toMatchObject({
      ...{ object: 'status', version: VERSION, commit: METADATA.tag, version_id: METADATA.id },
      features: ['ledger', 'attribution', 'durableResponses', 'privacy', 'dashboard', 'origin'],
    });
    expect(find(shown.settings, 'setting', 'RETRIES')).toMatchObject({ value: '3', source: 'environment' });
    expect(find(shown.settings, 'setting', 'AUTH')).toMatchObject({ value: 'keys', source: 'default' });
    expect(find(shown.providers, 'id', 'openai')).toMatchObject({ is_set_up: true, credential: 'present' });
    expect(find(shown.providers, 'id', 'mistral')).toMatchObject({
      ...{ is_set_up: false, credential: 'absent', setting: 'MISTRAL_API_KEY' },
    });
  });

  test('contains no secret: not of a key, a header, a URL, a price or an alias', async () => {
    const gateway = new LimitedGateway({
      OPENAI_API_KEY: 'secret-1',
      ADMIN_TOKEN: 'admin',
      USER_HASH_KEY: 'secret-2-of-16-characters',
      OPENAI_BASE_URL: 'https://user:secret-3@api.example/v1?key=secret-4',
      PROVIDERS: {
        own: { base_url: 'https://own.example/v1?key=secret-5', headers: { 'x-key': 'secret-6' } },
      },
      ALIASES: { fast: { model: 'openai/gpt-4o-mini', set: { user: 'secret-7' } } },
    });
    const shown = await status(gateway);
    expect(JSON.stringify(shown)).not.toMatch(/secret-/);
    expect(find(shown.settings, 'setting', 'OPENAI_API_KEY')).toMatchObject({ value: null });
    expect(find(shown.providers, 'id', 'openai')).toMatchObject({ base_url: 'https://api.example/v1' });
  });

  test('an alias has its targets with their prices in force', async () => {
    const shown = await status(
      new LimitedGateway({ ALIASES: { fast: ['openai/gpt-4o-mini', 'openai/made-up'] } }),
    );
    expect(find(shown.aliases, 'name', 'fast')).toMatchObject({
      targets: [
        { model: 'openai/gpt-4o-mini', price: { currency: 'USD', input: expect.any(Number) } },
        { model: 'openai/made-up', price: null },
      ],
    });
  });

  test('after failures: the rates of the last hour, the last error with the sentence of the provider, and the open circuit', async () => {
    let isDown = false;
    const gateway = new LimitedGateway(
      { RETRIES: '0' },
      {
        fetch: async () =>
          isDown
            ? Response.json({ error: { message: 'Out of service' } }, { status: 503 })
            : Response.json({
                ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
                choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
                usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
              }),
      },
    );
    const token = await gateway.key();
    for (let asked = 0; asked < 5; asked++) expect((await gateway.ask(token)).status).toBe(200);
    isDown = true;
    for (let asked = 0; asked < 5; asked++) await (await gateway.ask(token)).text();
    await gateway.idle();
    const shown = await status(gateway);
    expect(objectOf(find(shown.providers, 'id', 'openai')?.last_hour)).toMatchObject({
      ...{ calls: 10, failed_calls: 5, error_rate: 0.5, retry_rate: 0, models: ['gpt-4o-mini'] },
    });
    expect(shown.errors).toEqual([
      expect.objectContaining({
        ...{ provider: 'openai', model: 'gpt-4o-mini', status: 503, message: 'Out of service' },
      }),
    ]);
    const open = objectsOf(objectOf(shown.circuits).open);
    expect(open).toMatchObject([{ route: 'chat', model: 'openai/gpt-4o-mini', failures: 5 }]);
    expect(shown.ledger).toMatchObject({ store: 'kv', lag_ms: 0, waiting_records: 0, problem: null });
  });

  test('the last error of each fault of a provider: an outage does not hide a refused credential', async () => {
    const answers = [401, 503, 503, 400];
    const gateway = new LimitedGateway(
      { RETRIES: '0' },
      {
        fetch: async () => {
          const status = answers.shift() ?? 500;
          return Response.json({ error: { message: `It says ${status}` } }, { status });
        },
      },
    );
    const token = await gateway.key();
    while (answers.length > 0) await (await gateway.ask(token)).text();
    await gateway.idle();
    const { errors } = await status(gateway);
    expect(objectsOf(errors).map(({ fault, status: one, message }) => [fault, one, message])).toEqual([
      ['caller', 400, 'It says 400'],
      ['provider', 503, 'It says 503'],
      ['deployment', 401, 'It says 401'],
    ]);
  });

  test('requests in flight: those of this isolate whose provider has not ended, also where it fails', async () => {
    const held = Promise.withResolvers<Response>();
    const gateway = new LimitedGateway({ RETRIES: '0' }, { fetch: async () => (await held.promise).clone() });
    const token = await gateway.key();
    const inFlight = async () => (await status(gateway, '/v1/admin/status?only=isolate')).in_flight;
    expect((await status(gateway)).in_flight).toEqual({ scope: 'isolate', requests: 0 });
    expect(await inFlight()).toEqual({ scope: 'isolate', requests: 0 });
    const asked = [1, 2, 3].map(() => gateway.ask(token));
    await expect.poll(inFlight).toEqual({ scope: 'isolate', requests: 3 });
    held.resolve(Response.json({ error: { message: 'Out of service' } }, { status: 503 }));
    for (const response of await Promise.all(asked)) expect(response.status).toBe(503);
    await gateway.idle();
    expect(await inFlight()).toEqual({ scope: 'isolate', requests: 0 });
  });

  test('only=isolate: no ledger is read; another value is a 400', async () => {
    const gateway = new LimitedGateway();
    gateway.calls.length = 0;
    expect(Object.keys(await status(gateway, '/v1/admin/status?only=isolate'))).toEqual([
      ...['object', 'time', 'in_flight', 'circuits'],
    ]);
    expect(gateway.calls).toEqual([]);
    const refused = await gateway.fetch('/v1/admin/status?only=nothing', 'admin');
    expect(refused.status).toBe(400);
    expect(objectOf((await read(refused)).error).param).toBe('only');
  });

  test('an unreachable ledger: the rest of the status, and the reason', async () => {
    const broken = {
      get: async () => null,
      put: async () => {},
      delete: async () => {},
      list: async () => Promise.reject(new Error('KV is down')),
    };
    const shown = await status(new LimitedGateway({}, { store: broken as never }));
    expect(shown.version).toBe(VERSION);
    expect(objectOf(shown.ledger).problem).toContain('KV is down');
  });
});

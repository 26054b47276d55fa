/** Refused requests: a log line for each, and counts by key, code and hour. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectsOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const WRONG = `weir_${'0'.repeat(64)}`;

function linesOf({ logged }: LimitedGateway) {
  return logged.filter(({ event }) => event === 'request_refused');
}

async function read(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

/** The report, after the counts are written. */
async function refusals(gateway: LimitedGateway, token: string, query = ''): Promise<JsonObject> {
  await gateway.idle();
  return read(await gateway.fetch(`/v1/usage/refusals?${query}`, token));
}

describe('M6 a refused request is logged once with its key, code, status and route, and without a credential', () => {
  const ask = (body: JsonObject) => (gateway: LimitedGateway, token: string) => gateway.ask(token, body);
  test.each<
    [string, (gateway: LimitedGateway, token: string) => Promise<Response>, boolean, string, number, string]
  >([
    ['a wrong key', (gateway) => gateway.ask(WRONG), false, 'chat', 401, 'invalid_api_key'],
    ['a model outside its globs', ask({ model: 'deepseek/x' }), true, 'chat', 403, 'model_not_allowed'],
    ['an unknown model', ask({ model: 'nowhere' }), true, 'chat', 404, 'model_not_found'],
    ['a body with invalid messages', ask({ messages: 1 }), true, 'chat', 400, 'invalid_request'],
    [
      'a body that is too large',
      ask({ user: 'x'.repeat(11 * 1024 * 1024) }),
      true,
      'chat',
      413,
      'request_too_large',
    ],
    [
      'a budget that is spent',
      (gateway, token) => gateway.ask(token, { max_tokens: 1e9 }),
      true,
      'chat',
      429,
      'budget_exceeded',
    ],
    ['no such path', (gateway, token) => gateway.fetch('/v2/chats', token), false, 'none', 404, 'not_found'],
    [
      'a wrong admin token',
      (gateway) => gateway.fetch('/admin/keys', WRONG),
      false,
      'admin',
      401,
      'invalid_api_key',
    ],
    [
      'a count of tokens with a wrong key',
      (gateway) => gateway.post('/v1/messages/count_tokens', WRONG, {}),
      false,
      'messages',
      401,
      'invalid_api_key',
    ],
    [
      'a report of too many days',
      (gateway, token) => gateway.fetch('/v1/usage?from=2020-01-01&to=2026-01-01', token),
      true,
      'usage',
      400,
      'invalid_request',
    ],
  ])('%s', async (_, send, isKnown, route, status, code) => {
    const gateway = new LimitedGateway();
    const token = await gateway.key({ models: ['openai/*'], budget: { tokens: 1e6 } });
    const { id } = await read(await gateway.fetch('/v1/key', token));
    const response = await send(gateway, token);
    expect(response.status).toBe(status);
    expect(linesOf(gateway)).toEqual([
      {
        event: 'request_refused',
        request_id: response.headers.get('x-request-id'),
        key_id: isKnown ? id : 'none',
        route,
        status,
        code,
      },
    ]);
    const written = JSON.stringify(gateway.logged);
    for (const secret of [token, WRONG]) expect(written).not.toContain(secret.slice('weir_'.length));
  });

  test('a request that is served, or that its upstream refuses, is not logged as refused', async () => {
    const refuse = new LimitedGateway({}, { fetch: async () => Response.json({}, { status: 400 }) });
    for (const gateway of [new LimitedGateway(), refuse]) {
      const response = await gateway.ask(await gateway.key());
      await response.text();
      await gateway.idle();
      expect(linesOf(gateway)).toEqual([]);
    }
  });

  test('an expired key is logged with its id if this isolate has read the key', async () => {
    let now = Date.now();
    const gateway = new LimitedGateway({}, { clock: { now: () => now, startTimer: () => () => {} } });
    const token = await gateway.key({ expires_at: new Date(now + 3_600_000).toISOString() });
    const { id } = await read(await gateway.fetch('/v1/key', token));
    now += 3_600_001;
    expect((await gateway.fetch('/v1/key', token)).status).toBe(401);
    expect(linesOf(gateway)).toMatchObject([{ key_id: id, code: 'invalid_api_key', route: 'key' }]);
  });

  test('a key over the LIMITER rate is logged with its id if this isolate has read the key', async () => {
    let success = true;
    const gateway = new LimitedGateway({}, { limiter: { limit: async () => ({ success }) } });
    const token = await gateway.key();
    const { id } = await read(await gateway.fetch('/v1/key', token));
    success = false;
    await gateway.ask(token);
    await gateway.ask(WRONG);
    const codes = linesOf(gateway).map(({ key_id, code }) => [key_id, code]);
    expect(codes).toEqual([
      [id, 'rate_limited'],
      ['none', 'rate_limited'],
    ]);
  });
});

describe('M6 GET /v1/usage/refusals', () => {
  test('sums the refusals of the calling key by code', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key();
    const other = await gateway.key();
    for (const model of ['nowhere', 'nowhere', 'nope/x']) await gateway.ask(token, { model });
    await gateway.ask(other, { model: 'nowhere' });
    await gateway.ask(WRONG);
    const { data, total, group_by } = await refusals(gateway, token);
    expect([data, total, group_by]).toEqual([
      [{ code: 'model_not_found', refused_requests: 3 }],
      { refused_requests: 3 },
      ['code'],
    ]);
  });

  test('the admin sees all keys by hour, and one row for every wrong key', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key();
    const { id } = await read(await gateway.fetch('/v1/key', token));
    await gateway.ask(token, { model: 'nowhere' });
    for (let n = 0; n < 20; n++) await gateway.ask(`weir_${String(n).padStart(64, '0')}`);
    const { data, total } = await refusals(gateway, 'admin', 'group_by=key,code,hour');
    expect(objectsOf(data).map(({ key, code, refused_requests }) => [key, code, refused_requests])).toEqual([
      [id, 'model_not_found', 1],
      ['none', 'invalid_api_key', 20],
    ]);
    expect(total).toEqual({ refused_requests: 21 });
    const one = await refusals(gateway, 'admin', `key=${id}`);
    expect(one.total).toEqual({ refused_requests: 1 });
    const csv = await gateway.fetch('/v1/usage/refusals?format=csv', 'admin');
    expect(await csv.text()).toBe('code,refused_requests\r\ninvalid_api_key,20\r\nmodel_not_found,1\r\n');
  });

  test('AUTH=passthrough: made-up credentials share one row', async () => {
    const gateway = new LimitedGateway({ AUTH: 'passthrough' });
    for (let n = 0; n < 20; n++) await gateway.ask(`sk-${n}`, { model: 'nowhere' });
    const { data } = await refusals(gateway, 'admin', 'group_by=key');
    expect(data).toEqual([{ key: 'none', refused_requests: 20 }]);
  });

  test('a refusal responds before counts are written, and reads nothing to be counted', async () => {
    const gateway = new LimitedGateway();
    const token = await gateway.key();
    // The isolate now caches the key.
    await gateway.fetch('/v1/key', token);
    gateway.calls.length = 0;
    await gateway.ask(token, { model: 'nowhere' });
    expect(gateway.calls).toEqual([]);
  });

  test.each([
    ['group_by=model', 'group_by'],
    ['group_by=code,code', 'group_by'],
    ['group_by=key', 'group_by'],
    ['from=yesterday', 'from'],
    ['format=xml', 'format'],
  ])('%s is a 400 that names the parameter', async (query, param) => {
    const gateway = new LimitedGateway();
    const response = await gateway.fetch(`/v1/usage/refusals?${query}`, await gateway.key());
    expect(response.status).toBe(400);
    expect((await read(response)).error).toMatchObject({ param });
  });
});

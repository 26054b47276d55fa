/** Tests request translation through the deployed gateway: reported fields, and the paths and keys that clients may use (Q5-Q13). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, MESSAGES, streamedChat } from './client.ts';
import { ADMIN_TOKEN, startGateway } from './gateway.ts';

const PAGE = 'https://app.example.com';
const VARS = { CORS_ORIGINS: PAGE, ALIASES: '{"fast":"openai/gpt-4o-mini"}' };
const gateway = await startGateway({ vars: VARS });
afterAll(() => gateway[Symbol.asyncDispose]());

const CHAT = '/v1/chat/completions';
const MISTRAL = 'mistral/mistral-small-latest';
const TOOLS = [
  { type: 'function', function: { name: 'tide', parameters: { type: 'object', properties: {} } } },
];

async function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const response = await gateway.post(CHAT, body, { headers });
  await response.clone().text();
  return response;
}

describe('dropped and changed fields', () => {
  test.each([
    ['a stream', streamedChat],
    ['a non-streaming response', chat],
  ])('Q5 %s: its names are in a header, in the log and in the record', async (_, body) => {
    const named = [{ role: 'user', name: 'ada', content: 'Hello' }];
    const response = await post(body(MISTRAL, { store: true, user: 'u', messages: named }));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-dropped')).toBe('store, user, messages.name');
    expect(response.headers.has('x-weir-changed')).toBe(false);
    await gateway.record(response);
    const id = textOf(response.headers.get('x-weir-request-id'));
    const line = gateway.logs().find((text) => text.includes(id) && text.includes('"request"'));
    expect(line).toContain('"dropped":["store","user","messages.name"]');
    const [entry] = (await gateway.entries('usage/')).filter(({ name }) => name.endsWith(id));
    expect(entry?.value).toContain('"dropped":["store","user","messages.name"]');
  });

  test('Q5 the header has at most 512 characters of names', async () => {
    const message = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`field\r\n-${i}-ü`, 1]));
    const response = await post(
      chat(MISTRAL, { messages: [{ role: 'user', content: 'Hello', ...message }] }),
    );
    expect(response.status).toBe(200);
    const dropped = textOf(response.headers.get('x-weir-dropped'));
    expect(dropped).toHaveLength(512);
    expect(dropped).toMatch(/^[\x20-\x7e]*$/);
  });

  test('Q6 DeepSeek, a forced tool in a request that does not set thinking: thinking is turned off, and reported', async () => {
    const response = await post(chat('deepseek/deepseek-flash', { tools: TOOLS, tool_choice: 'required' }));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-changed')).toBe('thinking');
    const requested = { tools: TOOLS, tool_choice: 'required', thinking: { type: 'enabled' } };
    const changed = await post(chat('deepseek/deepseek-flash', requested));
    // Z3: by its refusal, and not by the table, because the client asked for thinking.
    expect([changed.status, changed.headers.get('x-weir-changed')]).toEqual([200, 'thinking']);
    const strict = { 'x-weir-unsupported': 'refuse' };
    const refused = await errorOf(await post(chat('deepseek/deepseek-flash', requested), strict));
    expect(refused).toMatchObject({
      status: 400,
      error: { message: 'DeepSeek: Thinking mode does not support this tool_choice' },
    });
  });

  test('Q8 x-weir-unsupported: drop drops refused fields, refuse names them, another value is an error', async () => {
    const body = chat(MISTRAL, { logprobs: true, user: 'u' });
    expect((await post(body)).status).toBe(400);
    const dropped = await post(body, { 'x-weir-unsupported': 'drop' });
    expect([dropped.status, dropped.headers.get('x-weir-dropped')]).toEqual([200, 'logprobs, user']);
    const refused = await errorOf(await post(body, { 'x-weir-unsupported': 'refuse' }));
    expect(refused).toMatchObject({ status: 400, error: { code: 'unsupported_parameter', param: 'user' } });
    const invalid = await errorOf(await post(body, { 'x-weir-unsupported': 'maybe' }));
    expect(invalid).toMatchObject({ status: 400, error: { code: 'invalid_request' } });
  });

  test('Q11 integers beyond 2^53 arrive as they were written', async () => {
    const at = gateway.simulator.requests.length;
    const seed = '12345678901234567890';
    const body = `{"model":"compatible/openai/gpt-oss-20b","seed":${seed},"max":-9007199254740993,"n":1,"messages":[{"role":"user","content":"${seed}"}]}`;
    const response = await gateway.fetch(CHAT, { method: 'POST', body });
    expect(response.status).toBe(200);
    await response.text();
    const { text } = await gateway.simulator.request(at);
    expect(text).toContain(`"seed":${seed},"max":-9007199254740993`);
  });
});

describe('Q10 a refused credential of the deployment', () => {
  beforeAll(() => gateway.set({ COMPATIBLE_SECRET: 'no-simulator-key' }));
  afterAll(() => gateway.set(VARS));

  test.each(['xai/grok-4.3', 'gemini-compatible/gemini-3-flash'])(
    '%s responds with a 400: the client gets 502',
    async (model) => {
      for (const body of [chat(model), streamedChat(model)]) {
        const { status, error } = await errorOf(await post(body));
        expect([status, error.code]).toEqual([502, 'upstream_credential']);
      }
    },
  );
});

describe('Q12 alternative paths of clients', () => {
  const body = { messages: MESSAGES };

  test.each([
    ['/beta/chat/completions', { ...body, model: 'deepseek/deepseek-flash' }, 'chat.completion'],
    ['/beta/completions', { model: 'deepseek/deepseek-flash', prompt: 'a', suffix: 'b' }, 'text_completion'],
    ['/openai/deployments/openai%2Fgpt-4o-mini/chat/completions?api-version=1', body, 'chat.completion'],
    ['/openai/deployments/openai/gpt-4o-mini/chat/completions', body, 'chat.completion'],
    ['/openai/deployments/fast/chat/completions', { ...body, model: 'ignored' }, 'chat.completion'],
    ['//v1/chat/completions', { ...body, model: 'fast' }, 'chat.completion'],
    ['/v1//chat/completions', { ...body, model: 'fast' }, 'chat.completion'],
    ['/v1/v1/chat/completions', { ...body, model: 'fast' }, 'chat.completion'],
    ['/openai/v1/chat/completions', { ...body, model: 'fast' }, 'chat.completion'],
  ] as const)('POST %s: responds', async (path, sent, object) => {
    const answer = await jsonOf(await gateway.post(path, sent));
    expect(answer.object).toBe(object);
  });

  test('GET /v1/models/<id>: that model, also with a percent-encoded slash; 404 for an unknown one', async () => {
    for (const id of ['openai/gpt-4o-mini', encodeURIComponent('openai/gpt-4o-mini')]) {
      expect(await jsonOf(await gateway.fetch(`/v1/models/${id}`))).toMatchObject({
        id: 'openai/gpt-4o-mini',
        object: 'model',
      });
    }
    expect(await errorOf(await gateway.fetch('/v1/models/openai/nothing'))).toMatchObject({
      status: 404,
      error: { code: 'model_not_found' },
    });
  });

  test('GET /v1/models: the list of a provider, or its failure, is cached', async () => {
    await gateway.set(VARS);
    await (await gateway.fetch('/v1/models')).text();
    const requestCount = gateway.simulator.requests.length;
    await (await gateway.fetch('/v1/models')).text();
    expect(gateway.simulator.requests).toHaveLength(requestCount);
  });

  test('another path: a 404 that names the path and the routes', async () => {
    const { status, error } = await errorOf(await gateway.post('/v1/images/generations', {}));
    expect(status).toBe(404);
    expect(error.message).toContain('There is no POST /v1/images/generations here');
    expect(error.message).toContain('POST /v1/chat/completions');
  });

  test('the preflight of an unknown path succeeds, and a page can read the 404', async () => {
    const origin = PAGE;
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-a',
    };
    const preflight = await gateway.fetch('/v1/images/generations', { method: 'OPTIONS', headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe(origin);
    expect(preflight.headers.get('access-control-allow-headers')).toBe('x-a');
    const response = await gateway.post('/v1/images/generations', {}, { headers: { origin } });
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
  });

  test.each(['/health', '/v1/models', '/v1/models/openai/gpt-4o-mini', '/v1/usage', '/admin/keys'])(
    'HEAD %s: the head of its GET, without a body',
    async (path) => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) => gateway.fetch(path, { method, headers })),
      );
      expect([head?.status, await head?.text()]).toEqual([200, '']);
      expect(head?.headers.get('content-type')).toBe(get?.headers.get('content-type'));
      await get?.text();
    },
  );
});

describe('Q13 with gateway keys', () => {
  const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
  beforeAll(() => gateway.set({ AUTH: 'keys' }));

  async function create(body: JsonObject): Promise<{ status: number; error: JsonObject }> {
    return errorOf(await gateway.post('/admin/keys', body, { headers: ADMIN }));
  }

  test('/v1/models: the admin token sees every model', async () => {
    const { data } = await jsonOf(await gateway.fetch('/v1/models', { headers: ADMIN }));
    expect(objectsOf(data).map(({ id }) => id)).toContain('openai/gpt-4o-mini');
    expect((await gateway.fetch('/v1/models')).status).toBe(401);
  });

  test.each(['model', 'expires', 'limit', '__proto__'])(
    'Q13 a key with the unknown field %s is refused by its name',
    async (field) => {
      const sent = `{"name":"b","${field}":["deepseek/*"]}`;
      const response = await gateway.fetch('/admin/keys', { method: 'POST', headers: ADMIN, body: sent });
      const { status, error } = await errorOf(response);
      expect([status, error.param]).toEqual([400, field]);
      expect(error.message).toContain('name, models, expires_at');
    },
  );

  test.each([
    ['in the past', '2020-01-01T00:00:00Z'],
    ['in the past, in seconds', 1_500_000_000],
    ['in milliseconds', 1_900_000_000_000],
    ['in milliseconds, as text', '1900000000000'],
    ['a number alone', '2'],
    ['in words', 'next year'],
    ['a year', '2030'],
    ["in America's order", '12/11/2030'],
    ['a text around a year', 'foo 2030'],
    ['without a zone', '2030-01-01T00:00:00'],
    ['negative', -1],
  ])('Q13 expires_at %s: refused', async (_, expires_at) => {
    expect(await create({ name: 'b', expires_at })).toMatchObject({
      status: 400,
      error: { param: 'expires_at' },
    });
  });

  test.each(['2099-01-01', '2099-01-01T00:00:00+02:00', '2099-01-01T10:00Z', 4_000_000_000])(
    'Q13 expires_at %s is accepted',
    async (expires_at) => {
      const response = await gateway.post('/admin/keys', { name: 'b', expires_at }, { headers: ADMIN });
      expect(response.status).toBe(201);
      expect(objectOf(await response.json()).expires_at).toMatch(/Z$/);
    },
  );

  test.each(['x', '0'.repeat(600), '..%2Fusage', 'ABCDEF0123456789'])(
    'DELETE /admin/keys/%s: 404',
    async (id) => {
      const response = await gateway.fetch(`/admin/keys/${id}`, { method: 'DELETE', headers: ADMIN });
      expect(response.status).toBe(404);
    },
  );
});

describe('AUTH=passthrough', () => {
  beforeAll(() => gateway.set({ AUTH: 'passthrough' }));

  test('K1 the admin token as a provider key: 401, and no upstream is called', async () => {
    const requestCount = gateway.simulator.requests.length;
    const response = await post(chat('openai/gpt-4o-mini'), { authorization: `Bearer ${ADMIN_TOKEN}` });
    expect(response.status).toBe(401);
    expect(gateway.simulator.requests).toHaveLength(requestCount);
  });
});

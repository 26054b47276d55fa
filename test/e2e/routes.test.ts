/** The contract's routes as clients address them: with and without `/v1`, below a base path, beside a zone's own origin. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../simulator/json.ts';
import { chat, contentOf, errorOf, jsonOf, MESSAGES, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
const FIM = { model: 'codestral/codestral-latest', prompt: 'def f(n):', suffix: 'return x' };

/** Every completion route, a body for it, and the object that answers it. */
const COMPLETIONS = [
  ['/chat/completions', chat('deepseek/deepseek-chat'), 'chat.completion'],
  ['/completions', { model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Below' }, 'text_completion'],
  ['/completions', FIM, 'text_completion'],
  ['/fim/completions', FIM, 'chat.completion'],
  ['/agents/completions', { agent_id: 'mistral/ag:1', messages: MESSAGES }, 'chat.completion'],
] as const;

/** Asserts that the whole of Weir answers below a path. */
async function expectRoutes(base: string): Promise<void> {
  expect(await jsonOf(await gateway.fetch(`${base}/health`))).toEqual({ status: 'ok' });
  const keys = await gateway.fetch(`${base}/admin/keys`, ADMIN);
  expect(await jsonOf(keys)).toMatchObject({ object: 'list' });
  for (const prefix of [base, `${base}/v1`]) {
    for (const [path, body, object] of COMPLETIONS) {
      const plain = await gateway.post(prefix + path, body);
      expect([path, (await jsonOf(plain)).object]).toEqual([path, object]);
      const streamed = await gateway.post(prefix + path, { ...body, stream: true });
      const chunk = object === 'chat.completion' ? 'chat.completion.chunk' : object;
      expect(await streamed.text()).toMatch(new RegExp(`^data: \\{"id":"[^"]+","object":"${chunk}",`));
    }
    for (const path of ['/models', '/usage']) {
      expect(await jsonOf(await gateway.fetch(prefix + path))).toMatchObject({ object: 'list' });
    }
  }
}

describe('routes', () => {
  test('each answers in its shape, with and without /v1, plain and streamed', () => expectRoutes(''));

  test.each([
    ['GET', '/v1/chat/completions', 'POST'],
    ['PUT', '/fim/completions', 'POST'],
    ['DELETE', '/v1/agents/completions', 'POST'],
    ['GET', '/completions', 'POST'],
    ['POST', '/v1/models', 'GET'],
    ['POST', '/usage', 'GET'],
    ['POST', '/health', 'GET'],
    ['DELETE', '/admin/keys', 'GET, POST'],
    ['GET', '/admin/keys/0123456789abcdef', 'PATCH, DELETE'],
  ])('%s %s gets 405, which names the allowed methods', async (method, path, allow) => {
    const response = await gateway.fetch(path, { method });
    expect(response.headers.get('allow')).toBe(allow);
    const { status, error } = await errorOf(response);
    expect(status).toBe(405);
    expect(error).toMatchObject({ code: 'method_not_allowed', message: `This route takes ${allow}` });
  });

  test.each(['/', '/v1', '/v1/embeddings', '/v2/models', '/v1/chat/completions/x'])(
    'ORIGIN=404: %s is no route of Weir and gets 404',
    async (path) => {
      const { status, error } = await errorOf(await gateway.fetch(path));
      expect(status).toBe(404);
      expect(error).toMatchObject({ type: 'not_found_error', code: 'not_found' });
      expect(error.message).toContain(`GET ${path} `);
      expect(error.message).toContain('POST /v1/chat/completions');
    },
  );

  test('H1: every answer of Weir has a request id of its own', async () => {
    const ids: string[] = [];
    for (const path of ['/health', '/v1/models', '/nowhere', '/v1/chat/completions'])
      ids.push(textOf((await gateway.fetch(path)).headers.get('x-weir-request-id')));
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(ids).size).toBe(4);
  });
});

describe.each(['/ai/gate', '/ai/gate/'])('BASE_PATH=%s', (BASE_PATH) => {
  beforeAll(() => gateway.set({ BASE_PATH }));

  test('every route answers below it', () => expectRoutes('/ai/gate'));

  test.each(['/health', '/v1/models', '/ai/v1/models', '/ai/gatev1/models', '/ai/gate2/v1/models'])(
    '%s, which is not below it, gets 404',
    async (path) => {
      expect((await gateway.fetch(path)).status).toBe(404);
    },
  );
});

describe('ORIGIN=pass', () => {
  let origin: Origin;
  let beside: Gateway;

  beforeAll(async () => {
    origin = await startOrigin();
    const vars = { ORIGIN: 'pass', BASE_PATH: '/ai', CORS_ORIGINS: 'https://app.example.com' };
    beside = await startGateway({ vars, zone: `127.0.0.1:${origin.port}` });
  });
  afterAll(async () => {
    await beside[Symbol.asyncDispose]();
    await origin.close();
  });

  test("a path that is not Weir's reaches the origin unchanged, and its answer is returned unchanged", async () => {
    const response = await beside.fetch('/shop/42?colour=red', {
      method: 'PUT',
      headers: {
        cookie: 'session=1',
        authorization: 'Bearer of-the-shop',
        origin: 'https://app.example.com',
      },
      body: 'Zürich',
    });
    const asked = origin.requests.at(-1);
    expect(asked).toMatchObject({ method: 'PUT', url: '/shop/42?colour=red', body: 'Zürich' });
    expect(asked?.headers).toMatchObject({ cookie: 'session=1', authorization: 'Bearer of-the-shop' });
    expect(response.status).toBe(418);
    expect(await response.text()).toBe('the shop');
    expect(response.headers.get('set-cookie')).toBe('session=2');
    const added = [...response.headers.keys()].filter((name) => /^(x-weir|access-control)-/.test(name));
    expect(added).toEqual([]);
  });

  test.each(['/', '/v1/models', '/health', '/ai2/v1/models', '/ai/unknown'])(
    '%s reaches the origin',
    async (path) => {
      const before = origin.requests.length;
      const response = await beside.fetch(path);
      expect(await response.text()).toBe('the shop');
      expect(origin.requests.slice(before).map(({ url }) => url)).toEqual([path]);
    },
  );

  test.each(['/ai/v1/responses', '/ai/v1/chat/completion', '/ai/v1/'])(
    '%s, a mistyped path of the API: 404, and no key reaches the origin',
    async (path) => {
      const before = origin.requests.length;
      const headers = { authorization: 'Bearer sk-of-the-caller' };
      expect((await beside.post(path, {}, { headers })).status).toBe(404);
      expect(origin.requests).toHaveLength(before);
    },
  );

  test.each<[name: string, headers: Record<string, string>]>([
    ['a gateway key', { authorization: `Bearer weir_${'0'.repeat(64)}` }],
    ['a gateway key in another header', { 'x-api-key': `weir_${'0'.repeat(64)}` }],
    ['the admin token', { authorization: `Bearer ${ADMIN_TOKEN}` }],
  ])('a request with %s on any path: 404, and it does not reach the origin', async (_, headers) => {
    const before = origin.requests.length;
    expect((await beside.fetch('/shop/42', { headers })).status).toBe(404);
    expect(origin.requests).toHaveLength(before);
  });

  test('an origin that is this Worker again: 508 after one round, and no request is passed twice', async () => {
    const port = new URL(beside.url).port;
    await using looped = await startGateway({
      vars: { ORIGIN: 'pass', BASE_PATH: '/ai' },
      zone: `127.0.0.1:${port}`,
    });
    const before = origin.requests.length;
    const { status, error } = await errorOf(await looped.fetch('/shop'));
    expect([status, error.code]).toEqual([508, 'origin_loop']);
    expect(origin.requests).toHaveLength(before);
  });

  test('a redirect of the origin is returned to the client', async () => {
    const response = await beside.fetch('/moved');
    expect(response.status).toBe(302);
    expect(origin.requests.at(-1)?.url).toBe('/moved');
  });

  test("a preflight for a path that is not Weir's is the origin's to answer", async () => {
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'PUT' };
    const response = await beside.fetch('/shop/42', { method: 'OPTIONS', headers });
    expect(response.status).toBe(418);
    expect(origin.requests.at(-1)).toMatchObject({ method: 'OPTIONS', url: '/shop/42' });
  });

  test("Weir's own paths, and other methods on them, never reach the origin", async () => {
    const before = origin.requests.length;
    const streamed = await beside.post('/ai/v1/chat/completions', streamedChat('deepseek/deepseek-chat'));
    expect(contentOf(await streamed.text())).toMatch(/^A weir/);
    expect((await beside.fetch('/ai/health')).status).toBe(200);
    expect((await beside.fetch('/ai/v1/chat/completions')).status).toBe(405);
    expect(origin.requests.slice(before)).toEqual([]);
  });

  test('E4: the admin token never reaches the origin, whatever the method on an admin route', async () => {
    const before = origin.requests.length;
    for (const path of ['/ai/admin/keys', '/ai/admin/keys/0123456789abcdef']) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH']) {
        await beside.fetch(path, { method, ...ADMIN });
      }
    }
    expect(origin.requests.slice(before).map(({ method, url }) => `${method} ${url}`)).toEqual([]);
  });
});

/** The server that the zone had before Weir. */
interface Origin {
  readonly port: number;
  readonly requests: Pick<
    IncomingMessage & { readonly body: string },
    'method' | 'url' | 'headers' | 'body'
  >[];
  close(): Promise<void>;
}

async function startOrigin(): Promise<Origin> {
  const requests: Origin['requests'] = [];
  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url, headers } = incoming;
    const parts: Buffer[] = [];
    for await (const part of incoming) if (part instanceof Buffer) parts.push(part);
    requests.push({ method, url, headers, body: Buffer.concat(parts).toString() });
    if (url === '/moved') response.writeHead(302, { location: '/here' }).end();
    else response.writeHead(418, { 'set-cookie': 'session=2' }).end('the shop');
  }
  const server = createServer((incoming, response) => void serve(incoming, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The origin has no port');
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { port: address.port, requests, close };
}

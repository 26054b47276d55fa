/** The origin proxy: requests that are not for Weir reach the site's own server unchanged, and no other request and no other host does. */
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';
import { contentOf, errorOf, findClosedPort, streamedChat } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway, type Vars } from './gateway.ts';
import { type Origin, startOrigin } from './origin-server.ts';

const BASE = { BASE_PATH: '/ai', CORS_ORIGINS: 'https://app.example.com' };
const KEY = `weir_${'0'.repeat(64)}`;

let origin: Origin;
let gateway: Gateway;
let vars: Vars;

beforeAll(async () => {
  origin = await startOrigin();
});
afterAll(() => origin[Symbol.asyncDispose]());

/** The requests that the origin received while something ran. */
async function receivedDuring(run: () => Promise<unknown>): Promise<string[]> {
  const before = origin.requests.length;
  await run();
  return origin.requests.slice(before).map(({ method, url }) => `${method} ${url}`);
}

interface Raw {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends what `fetch` refuses to send: another `Host`, or a GET with a body. */
async function raw(path: string, { method = 'GET', headers = {}, body }: Raw) {
  const sent = request(gateway.url + path, { method, headers, agent: false });
  sent.end(body);
  const [response] = await once(sent, 'response');
  return { status: Number(response.statusCode), text: await text(response) };
}

/** Asserts that a text sent through a WebSocket of the gateway comes back. */
async function expectEcho(path: string, message: string): Promise<void> {
  const socket = new WebSocket(gateway.url.replace('http', 'ws') + path);
  await once(socket, 'open');
  const answered = once(socket, 'message');
  socket.send(message);
  const [event] = await answered;
  expect(event instanceof MessageEvent && event.data).toBe(message);
  const closed = once(socket, 'close');
  socket.close();
  await closed;
}

describe.each(['ORIGIN=pass', 'ORIGIN=<an origin>'])('W1 %s', (kind) => {
  beforeAll(async () => {
    const isPass = kind === 'ORIGIN=pass';
    const own = isPass ? { ORIGIN: 'pass', ORIGIN_HOSTS: origin.host } : { ORIGIN: `http://${origin.host}` };
    vars = { ...BASE, ...own };
    gateway = await startGateway({ vars, ...(isPass && { zone: origin.host }) });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test('D1 the site’s own /dashboard and files reach the origin, and the page is below the base path', async () => {
    const received = await receivedDuring(async () => {
      await gateway.fetch('/dashboard');
      await gateway.fetch('/dashboard.html');
      await gateway.fetch('/dashboard/');
    });
    expect(received).toEqual(['GET /dashboard', 'GET /dashboard.html', 'GET /dashboard/']);
    let page: Response | undefined;
    expect(
      await receivedDuring(async () => {
        page = await gateway.fetch('/ai/dashboard');
      }),
    ).toEqual([]);
    expect(page?.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page?.text()).toContain('<title>Weir</title>');
  });

  test('a request that is not for Weir reaches the origin unchanged, and its response reaches the client unchanged', async () => {
    const response = await gateway.fetch('/shop/42?colour=red', {
      method: 'PUT',
      headers: {
        cookie: 'session=1',
        authorization: 'Bearer of-the-shop',
        origin: 'https://app.example.com',
      },
      body: 'Zürich',
    });
    const received = origin.requests.at(-1);
    expect(received).toMatchObject({ method: 'PUT', url: '/shop/42?colour=red', body: 'Zürich' });
    expect(received?.headers).toMatchObject({
      host: origin.host,
      cookie: 'session=1',
      authorization: 'Bearer of-the-shop',
    });
    expect(response.status).toBe(418);
    expect(await response.text()).toBe('the shop');
    expect(response.headers.get('set-cookie')).toBe('session=2');
    const added = [...response.headers.keys()].filter((name) =>
      /^(x-weir|x-request-id|access-control)/.test(name),
    );
    expect(added).toEqual([]);
  });

  test.each([
    '/',
    '/v1/models',
    '/health',
    '/ai2/v1/models',
    '/shop/ai/v1/models',
    '/ai-docs',
    '/weir_shop?key=1',
    '/a//b?c=//d',
  ])('%s reaches the origin', async (path) => {
    const received = await receivedDuring(async () => {
      expect(await (await gateway.fetch(path)).text()).toBe('the shop');
    });
    expect(received).toEqual([`GET ${path}`]);
  });

  test('a body on a path with a doubled slash, and the body of a GET, reach the origin', async () => {
    const response = await gateway.fetch('/shop//42', { method: 'POST', body: 'two slashes' });
    expect([response.status, origin.requests.at(-1)?.body]).toEqual([418, 'two slashes']);
    const searched = await raw('/search', { headers: { 'content-length': '5' }, body: 'query' });
    expect([searched.status, origin.requests.at(-1)]).toMatchObject([418, { method: 'GET', body: 'query' }]);
  });

  test('a WebSocket is opened through it, and its messages pass both ways', async () => {
    const received = await receivedDuring(() => expectEcho('/live?room=1', 'Grüße'));
    expect(received).toEqual(['GET /live?room=1']);
  });

  test('a redirect of the origin is returned to the client', async () => {
    const received = await receivedDuring(async () => {
      expect((await gateway.fetch('/moved', { method: 'POST', body: 'a' })).status).toBe(302);
    });
    expect(received).toEqual(['POST /moved']);
  });

  test("a preflight for a path that is not Weir's reaches the origin", async () => {
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'PUT' };
    const response = await gateway.fetch('/shop/42', { method: 'OPTIONS', headers });
    expect(response.status).toBe(418);
    expect(origin.requests.at(-1)).toMatchObject({ method: 'OPTIONS', url: '/shop/42' });
  });

  test.each([
    '/ai/v1/embedding',
    '/ai/v1/chat/completion',
    '/ai/v1/',
    '/ai//v1/embedding',
    '/ai/openai/v1/x',
    '/ai',
    '/ai/',
    '/ai/v1',
    '/ai/v2/chat/completions',
    '/ai/v1alpha/models/gemini-3-flash:generateContent',
    '/ai/unknown',
    '/AI/v1/chat/completions',
    '/ai/%761/chat/completions',
    '/a%69/v1/chat/completions',
    '/%2561i/v1/chat/completions',
    '//ai/v1/embedding',
    '/./ai/v1/embedding',
    '/shop/..%2fai/v1/chat/completions',
    '/shop/%2e%2e/ai/v1/chat/completion',
    '/ai/..%2fshop',
    '/ai%2fv1/chat/completions',
    '/ai%5cv1/chat/completions',
    '/ai;a=b/v1/chat/completions',
    '/ai%20/v1/chat/completions',
  ])('%s, a mistyped path of the API: 404, and no key reaches the origin', async (path) => {
    const received = await receivedDuring(async () => {
      const headers = { authorization: 'Bearer sk-of-the-caller' };
      const { status } = await raw(path, { method: 'POST', headers, body: '{}' });
      expect(status).toBe(404);
    });
    expect(received).toEqual([]);
  });

  test.each<[name: string, path: string, headers: Record<string, string>]>([
    ['a gateway key', '/shop', { authorization: `Bearer ${KEY}` }],
    ['a gateway key without a scheme', '/shop', { authorization: KEY }],
    ['the beginning of one', '/shop', { authorization: `Bearer ${KEY.slice(0, 20)}` }],
    ['a gateway key in another header', '/shop', { 'x-api-key': KEY }],
    ['a gateway key beside a token', '/shop', { authorization: 'Bearer of-the-shop', 'x-api-key': KEY }],
    ['a gateway key in a cookie', '/shop', { cookie: `a=1; key=${KEY}` }],
    ['a gateway key in the URL', `/shop?key=${KEY}`, {}],
    ['the admin token', '/shop', { authorization: `Bearer ${ADMIN_TOKEN}` }],
    ['the admin token of another scheme', '/shop', { authorization: `Token ${ADMIN_TOKEN}` }],
    ['a gateway key as a password', '/shop', { authorization: `Basic ${btoa(`a:${KEY}`)}` }],
    ['a gateway key as a user', '/shop', { authorization: `Basic ${btoa(`${KEY}:`)}` }],
    ['a gateway key in quotes', '/shop', { authorization: `Bearer "${KEY}"` }],
    ['a gateway key in capitals', '/shop', { 'x-other': KEY.toUpperCase() }],
    ['an encoded gateway key in the URL', `/shop?a=${KEY.replace('_', '%5f')}`, {}],
    ['a twice encoded gateway key in the URL', `/shop?a=${KEY.replace('_', '%255F')}`, {}],
    ['an encoded gateway key in a cookie', '/shop', { cookie: `a=${KEY.replace('_', '%5F')}` }],
    ['half a gateway key in the URL', `/shop/${KEY.slice(0, 40)}`, {}],
    ['the beginning of one as a parameter', '/shop?api_key=weir_0123', {}],
    ['the beginning of one for Google', '/shop', { 'x-goog-api-key': 'weir_0123' }],
    ['a gateway key in a WebSocket protocol', '/shop', { 'sec-websocket-protocol': `x, key.${KEY}` }],
    ['the admin token in the URL', `/shop?a=${ADMIN_TOKEN}`, {}],
    ['the admin token encoded in the URL', `/shop?a=${ADMIN_TOKEN.replaceAll('-', '%2D')}`, {}],
    ['the admin token in a cookie', '/shop', { cookie: `b=2; a=${ADMIN_TOKEN}; c=3` }],
    ['the admin token in quotes', '/shop', { authorization: `Bearer "${ADMIN_TOKEN}"` }],
    ['the admin token as a password', '/shop', { authorization: `Basic ${btoa(`admin:${ADMIN_TOKEN}`)}` }],
    ['the admin token in another header', '/shop', { 'x-token': ADMIN_TOKEN }],
    ['the admin token beside a token', '/shop', { authorization: 'Bearer a', 'api-key': ADMIN_TOKEN }],
  ])('E4 a request with %s: 404, and it does not reach the origin', async (_, path, headers) => {
    const received = await receivedDuring(async () => {
      expect((await gateway.fetch(path, { headers })).status).toBe(404);
    });
    expect(received).toEqual([]);
  });

  test("Weir's own paths, and other methods on them, never reach the origin", async () => {
    const received = await receivedDuring(async () => {
      const streamed = await gateway.post('/ai/v1/chat/completions', streamedChat('deepseek/deepseek-chat'));
      expect(contentOf(await streamed.text())).toMatch(/^A weir/);
      expect((await gateway.fetch('/ai/health')).status).toBe(200);
      expect((await gateway.fetch('/ai/v1/chat/completions')).status).toBe(405);
      for (const path of ['/ai/admin/keys', '/ai/admin/keys/0123456789abcdef']) {
        for (const method of ['GET', 'POST', 'PUT', 'PATCH']) await gateway.fetch(path, { method });
      }
    });
    expect(received).toEqual([]);
  });

  describe('with invalid settings', () => {
    beforeAll(() => gateway.set({ ...vars, AUTH: 'nonsense', DEADLINE_SECONDS: 'x' }));

    test('a request that is not for Weir still reaches the origin', async () => {
      const response = await gateway.fetch('/shop/42', { method: 'POST', body: 'a' });
      expect([response.status, await response.text()]).toEqual([418, 'the shop']);
      expect(origin.requests.at(-1)).toMatchObject({ method: 'POST', url: '/shop/42', body: 'a' });
    });

    test('a request for Weir, or with a key, does not, and the error names the settings', async () => {
      const received = await receivedDuring(async () => {
        for (const path of ['/ai/v1/models', '/ai/v1/embeddings', '/ai/admin/keys', '/shop']) {
          const headers = { authorization: `Bearer ${KEY}` };
          const { status, error } = await errorOf(await gateway.fetch(path, { headers }));
          expect([path, status, error.code]).toEqual([path, 500, 'misconfigured']);
          expect(error.message).toMatch(/AUTH.*DEADLINE_SECONDS/);
        }
        expect((await gateway.fetch('/ai/health')).status).toBe(200);
      });
      expect(received).toEqual([]);
    });
  });
});

describe("W1 a Host that is not the deployment's, in a runtime that accepts any Host", () => {
  let other: Origin;
  beforeAll(async () => {
    other = await startOrigin();
    gateway = await startGateway();
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  const FORGED = {
    'accept-encoding': 'identity',
    'cf-ray': '8c1f-FRA',
    'cf-connecting-ip': '192.0.2.1',
    'MF-CF-Blob': '{"colo":"FRA"}',
  };

  test('ORIGIN=pass: a host that ORIGIN_HOSTS does not name is not called, and the error names the setting', async () => {
    await gateway.set({ ...BASE, ORIGIN: 'pass', ORIGIN_HOSTS: 'www.example.com, *.shop.example' });
    for (const host of [
      other.host,
      `localhost:${other.port}`,
      'www.example.com.evil.example',
      'shop.example',
    ]) {
      const response = await raw('/internal', { headers: { ...FORGED, host }, method: 'POST', body: 'a' });
      expect([host, response.status]).toEqual([host, 500]);
      const error = objectOf(decodeObject(response.text)?.error);
      expect(error).toMatchObject({ code: 'misconfigured', param: 'ORIGIN_HOSTS' });
    }
    expect(other.requests).toEqual([]);
  });

  test('ORIGIN=pass: a host that ORIGIN_HOSTS names is called', async () => {
    await gateway.set({ ...BASE, ORIGIN: 'pass', ORIGIN_HOSTS: `www.example.com, ${other.host}` });
    expect(await raw('/page', { headers: { host: other.host } })).toEqual({ status: 418, text: 'the shop' });
  });

  test('ORIGIN=<an origin>: that one is called for every Host', async () => {
    await gateway.set({ ...BASE, ORIGIN: `http://${origin.host}` });
    const before = other.requests.length;
    const received = await receivedDuring(() => raw('/page', { headers: { ...FORGED, host: other.host } }));
    expect(received).toEqual(['GET /page']);
    expect(origin.requests.at(-1)?.headers.host).toBe(origin.host);
    expect(other.requests).toHaveLength(before);
  });

  test('an origin that is this Worker: 508 after one request', async () => {
    const { host } = new URL(gateway.url);
    for (const own of [{ ORIGIN: gateway.url }, { ORIGIN: 'pass', ORIGIN_HOSTS: host }]) {
      await gateway.set({ ...BASE, ...own });
      const { status, error } = await errorOf(await gateway.fetch('/shop'));
      expect([status, error.code]).toEqual([508, 'origin_loop']);
    }
  });

  test('E4 an origin that is down: 502 without its address, which the log has', async () => {
    const closed = `127.0.0.1:${await findClosedPort()}`;
    await gateway.set({ ...BASE, ORIGIN: `http://${closed}` });
    const { status, error } = await errorOf(await gateway.fetch('/shop'));
    expect([status, error.code]).toEqual([502, 'upstream_unreachable']);
    expect(error.message).not.toContain('127.0.0.1');
    await gateway.logged((lines) => lines.some((line) => line.event === 'origin_unreachable'));
  });
});

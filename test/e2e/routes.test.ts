/** Tests the routes: with and without `/v1`, and below a base path. */
import { once } from 'node:events';
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../src/settings/version.ts';
import { decodeObject, textOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, MESSAGES } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const ADMIN = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
const FIM = { model: 'codestral/codestral-latest', prompt: 'def f(n):', suffix: 'return x' };

/** Every completion route, a body for it, and the type of the response's object. */
const COMPLETIONS = [
  ['/chat/completions', chat('deepseek/deepseek-chat'), 'chat.completion'],
  ['/completions', { model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Below' }, 'text_completion'],
  ['/completions', FIM, 'text_completion'],
  ['/fim/completions', FIM, 'chat.completion'],
  ['/agents/completions', { agent_id: 'mistral/ag:1', messages: MESSAGES }, 'chat.completion'],
] as const;

const EMBEDDINGS = { model: 'openai/text-embedding-3-small', input: 'Hello' };

/** Asserts that every route responds below a path. */
async function expectRoutes(base: string): Promise<void> {
  expect(await jsonOf(await gateway.fetch(`${base}/health`))).toMatchObject({
    status: 'ok',
    version: VERSION,
  });
  expect(await jsonOf(await gateway.fetch(`${base}/v1/admin/status`, ADMIN))).toMatchObject({
    object: 'status',
  });
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
    const vectors = await gateway.post(`${prefix}/embeddings`, EMBEDDINGS);
    expect(await jsonOf(vectors)).toMatchObject({ object: 'list', data: [{ object: 'embedding' }] });
    for (const path of ['/models', '/usage']) {
      expect(await jsonOf(await gateway.fetch(prefix + path))).toMatchObject({ object: 'list' });
    }
  }
}

describe('routes', () => {
  test('each responds in its form, with and without /v1, streaming and non-streaming', () =>
    expectRoutes(''));

  test.each([
    ['GET', '/v1/chat/completions', 'POST'],
    ['PUT', '/fim/completions', 'POST'],
    ['GET', '/v1/embeddings', 'POST'],
    ['DELETE', '/v1/agents/completions', 'POST'],
    ['GET', '/completions', 'POST'],
    ['POST', '/v1/models', 'GET'],
    ['POST', '/usage', 'GET'],
    ['POST', '/health', 'GET'],
    ['DELETE', '/admin/keys', 'GET, POST'],
    ['PUT', '/admin/keys/0123456789abcdef', 'GET, PATCH, DELETE'],
  ])('%s %s gets 405, which names the allowed methods', async (method, path, allow) => {
    const response = await gateway.fetch(path, { method });
    expect(response.headers.get('allow')).toBe(allow);
    const { status, error } = await errorOf(response);
    expect(status).toBe(405);
    expect(error).toMatchObject({ code: 'method_not_allowed', message: `This route takes ${allow}` });
  });

  test.each(['/', '/v1', '/v1/images', '/v2/models', '/v1/chat/completions/x'])(
    'ORIGIN=404: %s is not a route of Weir and gets 404',
    async (path) => {
      const { status, error } = await errorOf(await gateway.fetch(path));
      expect(status).toBe(404);
      expect(error).toMatchObject({ type: 'not_found_error', code: 'not_found' });
      expect(error.message).toContain(`GET ${path} `);
      expect(error.message).toContain('POST /v1/chat/completions');
    },
  );

  test('a browser that opens / is sent to the dashboard; other clients get the list of routes', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const opened = await gateway.fetch('/', { headers: { accept }, redirect: 'manual' });
    expect([opened.status, opened.headers.get('location')]).toEqual([302, '/dashboard']);
    expect((await gateway.fetch('/', { headers: { accept: '*/*' } })).status).toBe(404);
    expect((await gateway.fetch('/nowhere', { headers: { accept } })).status).toBe(404);
    expect((await gateway.fetch('/', { method: 'POST', headers: { accept } })).status).toBe(404);
  });

  test('J2: the deployed Worker responds to a WebSocket handshake on /v1/responses with 426', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const handshake = get(`${gateway.url}/v1/responses`, {
      headers: { ...headers, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
    });
    const [response] = await once(handshake, 'response');
    expect(response.statusCode).toBe(426);
    expect(decodeObject(await text(response))).toMatchObject({ error: { code: 'websocket_unsupported' } });
  });

  test('H1: every response has its own request id', async () => {
    const ids: string[] = [];
    for (const path of ['/health', '/v1/models', '/nowhere', '/v1/chat/completions'])
      ids.push(textOf((await gateway.fetch(path)).headers.get('x-weir-request-id')));
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(ids).size).toBe(4);
  });
});

describe.each(['/ai/gate', '/ai/gate/'])('BASE_PATH=%s', (BASE_PATH) => {
  beforeAll(() => gateway.set({ BASE_PATH }));

  test('every route responds below it', () => expectRoutes('/ai/gate'));

  test.each(['/health', '/v1/models', '/ai/v1/models', '/ai/gatev1/models', '/ai/gate2/v1/models'])(
    '%s, which is not below it, gets 404',
    async (path) => {
      expect((await gateway.fetch(path)).status).toBe(404);
    },
  );
});

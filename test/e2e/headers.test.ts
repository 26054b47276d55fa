/** Tests the headers that clients and upstreams receive, and cross-origin access. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { chat, streamedChat } from './client.ts';
import { CREDENTIALS, type Gateway, startGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const APP = 'https://app.example.com';

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ replay });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Headers that providers send. Only the first four are passed to the client. */
const UPSTREAM_HEADERS = {
  'retry-after': '7',
  'x-ratelimit-limit-requests': '100',
  'x-ratelimit-remaining-tokens': '9000',
  'x-ratelimit-reset-requests': '6ms',
  server: 'cloudflare',
  'set-cookie': '__cf_bm=tracked',
  'x-request-id': 'req_upstream',
  'openai-organization': 'org-of-the-deployment',
  'openai-processing-ms': '12',
  'x-internal-host': '10.0.0.3',
  'access-control-allow-origin': '*',
  'x-weir-provider': 'forged',
  link: '</preload>; rel=preload',
};

function replay({ body }: RecordedRequest): Replay | undefined {
  if (typeof body?.model !== 'string' || !body.model.startsWith('chatty')) return undefined;
  if (body.model === 'chatty-refusal') return { status: 429, headers: UPSTREAM_HEADERS, chunks: [] };
  const choice = { index: 0, finish_reason: 'stop' };
  if (body.stream !== true) {
    const choices = [{ ...choice, message: { role: 'assistant', content: 'Hi' } }];
    const headers = { ...UPSTREAM_HEADERS, 'content-type': 'application/json' };
    return { headers, chunks: [Buffer.from(JSON.stringify({ choices }))] };
  }
  const choices = [{ ...choice, delta: { content: 'Hi' } }];
  const headers = { ...UPSTREAM_HEADERS, 'content-type': 'text/event-stream' };
  return { headers, chunks: [Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`)] };
}

/** A response's headers, without those of the connection between workerd and this client. */
function headersOf(response: Response): Record<string, string> {
  const own = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'content-encoding', 'date'];
  return Object.fromEntries([...response.headers].filter(([name]) => !own.includes(name)));
}

const PASSED = Object.fromEntries(Object.entries(UPSTREAM_HEADERS).slice(0, 4));

describe('what the client receives', () => {
  test.each([
    ['a stream', 'chatty', true, 200, 'text/event-stream; charset=utf-8'],
    ['a non-streaming response', 'chatty', false, 200, 'application/json; charset=utf-8'],
    ['a refusal', 'chatty-refusal', true, 429, 'application/json; charset=utf-8'],
  ])(
    "H1 H2: %s: Weir's own headers, and only the allowlisted ones of the upstream",
    async (_, model, stream, status, type) => {
      const response = await gateway.post(CHAT, chat(`openai/${model}`, { stream }));
      await response.text();
      expect(response.status).toBe(status);
      expect(headersOf(response)).toEqual({
        ...PASSED,
        'content-type': type,
        ...(stream && status === 200 ? { 'cache-control': 'no-cache, no-transform' } : {}),
        'x-request-id': response.headers.get('x-weir-request-id'),
        'x-weir-request-id': expect.stringMatching(/^[0-9a-f]{8}-/),
        'x-weir-provider': 'openai',
        'x-weir-model': model,
      });
    },
  );

  test('H1: a model with any characters is named in ASCII', async () => {
    const response = await gateway.post(CHAT, streamedChat('openai/chatty 水 ü'));
    await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-model')).toBe('chatty%20%E6%B0%B4%20%C3%BC');
  });
});

/** Headers that clients send, each with its own value. Only the first four are passed to the upstream. */
const CLIENT_HEADERS = {
  'idempotency-key': 'of-the-client-1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=1',
  'x-client-request-id': 'of-the-client-2',
  authorization: 'Bearer sim-of-the-client',
  cookie: 'session=of-the-client',
  'x-api-key': 'sim-of-the-client',
  'api-key': 'sim-of-the-client',
  'openai-organization': 'org-of-the-client',
  'openai-project': 'of-the-client',
  'user-agent': 'of-the-client/1.0',
  'x-stainless-lang': 'of-the-client',
  'x-forwarded-for': '203.0.113.7',
  'x-real-ip': '203.0.113.7',
  forwarded: 'for=203.0.113.7',
  referer: 'https://of-the-client.example/',
  origin: 'https://of-the-client.example',
  'accept-language': 'de-of-the-client',
  'x-simulator-fault': 'status-500',
  'x-weir-vendor-events': 'strip',
};

describe('what the upstream receives', () => {
  test.each([
    ['a stream', true, 'text/event-stream'],
    ['a non-streaming response', false, 'application/json'],
  ])("H2: %s: only the allowlisted ones of the client's headers", async (_, stream, accept) => {
    const at = gateway.simulator.requests.length;
    const response = await gateway.post(CHAT, chat('openai/gpt-4o-mini', { stream }), {
      headers: CLIENT_HEADERS,
    });
    await response.text();
    expect(response.status).toBe(200);
    const { headers } = await gateway.simulator.request(at);
    // Cloudflare adds cf-worker to all requests of a Worker.
    const ofTheConnection = [
      'cf-worker',
      'host',
      'connection',
      'content-length',
      'transfer-encoding',
      'accept-encoding',
    ];
    const received = Object.entries(headers).filter(([name]) => !ofTheConnection.includes(name));
    expect(Object.fromEntries(received)).toEqual({
      ...Object.fromEntries(Object.entries(CLIENT_HEADERS).slice(0, 4)),
      // All callers share one credential at the provider, and must not share idempotency keys.
      'idempotency-key': createHash('sha256').update('["open","of-the-client-1"]').digest('hex'),
      'content-type': 'application/json',
      accept,
      'user-agent': 'weir',
      authorization: `Bearer ${CREDENTIALS.OPENAI_API_KEY}`,
    });
  });

  test("H2: a request for its list of models has the deployment's credential, and no header of the client", async () => {
    const at = gateway.simulator.requests.length;
    await (await gateway.fetch('/v1/models', { headers: CLIENT_HEADERS })).text();
    const received = gateway.simulator.requests.slice(at);
    expect(received.length).toBeGreaterThanOrEqual(7);
    for (const { headers } of received)
      expect(JSON.stringify(headers)).not.toMatch(/of-the-client|203\.0\.113/);
  });
});

describe('CORS_ORIGINS', () => {
  async function preflight(origin: string): Promise<Response> {
    const requested = 'authorization, content-type, x-stainless-lang';
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': requested,
    };
    return gateway.fetch(CHAT, { method: 'OPTIONS', headers });
  }

  function allowedOrigin(response: Response): string | null {
    return response.headers.get('access-control-allow-origin');
  }

  test('not set: no other origin may call', async () => {
    expect(allowedOrigin(await preflight(APP))).toBeNull();
    const response = await gateway.post(CHAT, chat('openai/gpt-4o-mini'), { headers: { origin: APP } });
    await response.text();
    expect(allowedOrigin(response)).toBeNull();
  });

  describe('set to two origins', () => {
    beforeAll(() => gateway.set({ AUTH: 'open', CORS_ORIGINS: `${APP}, https://b.example.com:8443` }));

    test.each([APP, 'https://b.example.com:8443'])(
      'a preflight of %s: allows the requested headers',
      async (origin) => {
        const response = await preflight(origin);
        expect(response.status).toBe(204);
        expect(headersOf(response)).toMatchObject({
          'access-control-allow-origin': origin,
          'access-control-allow-headers': 'authorization, content-type, x-stainless-lang',
          vary: 'Origin',
        });
        expect(response.headers.get('access-control-allow-methods')).toBe('POST');
      },
    );

    test.each(['https://evil.example.com', 'http://app.example.com', `${APP}.evil.com`, 'null'])(
      'a preflight of %s: allows nothing',
      async (origin) => {
        const allowed = [...(await preflight(origin)).headers.keys()];
        expect(allowed.filter((name) => name.startsWith('access-control-'))).toEqual([]);
      },
    );

    test.each([
      ['a stream', streamedChat('openai/gpt-4o-mini'), 200],
      ['a non-streaming response', chat('openai/gpt-4o-mini'), 200],
      ['an error', chat('openai/nothing'), 404],
    ])('%s: the origin may read the response, and its headers are exposed', async (_, body, status) => {
      const response = await gateway.post(CHAT, body, { headers: { origin: APP } });
      await response.text();
      expect(response.status).toBe(status);
      expect(allowedOrigin(response)).toBe(APP);
      expect(response.headers.get('vary')).toBe('Origin');
      expect(response.headers.get('access-control-expose-headers')).toContain('x-weir-request-id');
    });

    test('a response to another origin has no such header, and varies by origin', async () => {
      const headers = { origin: 'https://evil.example.com' };
      const response = await gateway.post(CHAT, streamedChat('openai/gpt-4o-mini'), { headers });
      await response.text();
      expect(allowedOrigin(response)).toBeNull();
      expect(response.headers.get('vary')).toBe('Origin');
    });
  });

  describe('set to *', () => {
    beforeAll(() => gateway.set({ CORS_ORIGINS: '*' }));

    test('every origin may call', async () => {
      expect(allowedOrigin(await preflight('https://anyone.example'))).toMatch(
        /^(\*|https:\/\/anyone\.example)$/,
      );
    });
  });
});

/** Tests that text of a client or an upstream never becomes a separate header, frame or log line (H1, H2, F1). */
import { beforeAll, describe, expect, test } from 'vitest';
import { decodeObject } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { chat, DONE, errorOf, framesOf, streamedChat } from './client.ts';
import { type Gateway, sharedGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
/** The only model here that a scene of the simulator serves. */
const SIMULATED = 'gpt-4o-mini';
const BREAK = '\r\nx-injected: yes\r\n\r\ndata: {"injected":true}\n\n';
const SEPARATORS = '\u0085\u2028\u2029';
const JSON_TYPE = { 'content-type': 'application/json' };

function event(more: object): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'word' } }], ...more })}\n\n`;
}

const FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const EVIL = { message: `no${BREAK}`, type: `t${BREAK}`, code: `c${BREAK}`, param: `p${BREAK}` };

/** The maximal length of a name, and six times as long in JSON. */
const CONTROLS = '\u0001'.repeat(512);
const NAMES = { id: CONTROLS, model: CONTROLS, service_tier: CONTROLS, system_fingerprint: CONTROLS };
const CHUNKS = 2000;

const SCENARIOS: Readonly<Record<string, Omit<Replay, 'chunks'> & { readonly body: string }>> = {
  'evil-names': {
    body:
      event({ id: `i${BREAK}`, model: `m${BREAK}`, system_fingerprint: `f${BREAK}${SEPARATORS}` }) + FINISH,
  },
  'control-names': { body: event(NAMES) + event({}).repeat(CHUNKS) + FINISH },
  'evil-refusal': { status: 400, headers: JSON_TYPE, body: JSON.stringify({ error: EVIL }) },
  'evil-error-first': { body: `data: ${JSON.stringify({ error: { ...EVIL, status: 429 } })}\n\n` },
  'evil-error-later': { body: `${event({})}data: ${JSON.stringify({ error: EVIL })}\n\n` },
  'evil-finish': { body: FINISH.replace('"stop"', JSON.stringify(`stop${BREAK}`)) },
  'not-modified': { status: 304, body: '' },
  'long-type': { body: `data: {"type":"x_${'a'.repeat(100_000)}"}\n\n${event({})}${FINISH}` },
  'long-retry': {
    status: 429,
    headers: { ...JSON_TYPE, 'retry-after': '7'.repeat(50_000) },
    body: '{"error":{"message":"Slow down"}}',
  },
  'evil-headers': {
    status: 429,
    headers: {
      ...JSON_TYPE,
      'retry-after': '7',
      'x-ratelimit-limit-tokens': 'y'.repeat(512),
      'retry-after-ms': '\u00fc\u00ff',
      'x-ratelimit-reset-tokens': 'x'.repeat(4000),
      'x-injected': 'yes',
      'set-cookie': 'session=upstream',
      'x-weir-request-id': 'upstream',
      'x-weir-model': 'upstream',
      'access-control-allow-origin': '*',
      location: 'https://elsewhere.example',
    },
    body: '{"error":{"message":"Slow down"}}',
  },
};

function replay({ body }: RecordedRequest): Replay | undefined {
  const model = String(body?.model);
  if (model === SIMULATED) return undefined;
  const behavior = (Object.hasOwn(SCENARIOS, model) ? SCENARIOS[model] : undefined) ?? {
    body: event({}) + FINISH,
  };
  const { body: text, ...head } = behavior;
  return { ...head, chunks: [Buffer.from(text)] };
}

let gateway: Gateway;

beforeAll(async () => {
  gateway = await sharedGateway(replay);
});

/** The headers of the contract and of the server. No others are allowed. */
const HEADERS =
  /^(?:content-type|content-length|content-encoding|transfer-encoding|vary|date|connection|keep-alive|cache-control|retry-after|retry-after-ms|x-ratelimit-(?:limit|remaining|reset)-(?:requests|tokens)|x-request-id|x-weir-(?:request-id|provider|model|changed))$/;

function expectOwnHeaders(response: Response): void {
  const names = [...response.headers.keys()];
  expect(names.filter((name) => !HEADERS.test(name))).toEqual([]);
  expect([...response.headers.values()].filter((value) => !/^[\x20-\x7e]*$/.test(value))).toEqual([]);
  expect(response.headers.get('x-weir-request-id')).toMatch(/^[0-9a-f-]{36}$/);
}

describe("H1 a model's name", () => {
  test.each([
    'openai/a\r\nx-injected: yes',
    'openai/a\nb',
    'openai/a\u0000b',
    'openai/a\u0085b',
    'openai/\u007f',
    '\r\nx-injected: yes',
  ])('with a control character, %j: 400 without an upstream request', async (model) => {
    const requestCount = gateway.simulator.requests.length;
    for (const body of [chat(model), streamedChat(model)]) {
      const response = await gateway.post(CHAT, body);
      expectOwnHeaders(response);
      expect(await errorOf(response)).toMatchObject({ status: 400, error: { param: 'model' } });
    }
    expect(gateway.simulator.requests).toHaveLength(requestCount);
  });

  test.each([
    ['gpt 4 (mini)', 'gpt%204%20(mini)'],
    ['модель-🌊', '%D0%BC%D0%BE%D0%B4%D0%B5%D0%BB%D1%8C-%F0%9F%8C%8A'],
    ['a\u2028b\u2029c', 'a%E2%80%A8b%E2%80%A9c'],
    ['a%0d%0ax-injected: yes', 'a%0d%0ax-injected:%20yes'],
    ['\ud800', '%EF%BF%BD'],
    ['"quoted", b; c=d', '"quoted",%20b;%20c=d'],
    ['__proto__', '__proto__'],
  ])(
    '%j: printable ASCII in its header, and as whole characters for the upstream and in the record',
    async (model, header) => {
      const requestCount = gateway.simulator.requests.length;
      const response = await gateway.post(CHAT, streamedChat(`openai/${model}`));
      await response.text();
      expectOwnHeaders(response);
      expect(response.headers.get('x-weir-model')).toBe(header);
      // Half of a surrogate pair becomes U+FFFD in a request that Weir writes, and no store keeps one.
      const whole = model.toWellFormed();
      expect((await gateway.simulator.request(requestCount)).body?.model).toBe(whole);
      const { request_id } = await gateway.record(response);
      const [entry] = (await gateway.entries('usage/')).filter(({ name }) => name.endsWith(request_id));
      expect(decodeObject(entry?.value ?? '')?.model).toBe(whole);
      const lines = gateway.logs().filter((line) => line.includes(request_id));
      expect(lines.map((line) => decodeObject(line)?.model)).toEqual([whole]);
    },
  );
});

describe('H2 what an upstream sends', () => {
  test("in headers: only the allowlisted ones are forwarded, and none overrides Weir's own", async () => {
    for (const body of [chat('openai/evil-headers'), streamedChat('openai/evil-headers')]) {
      const response = await gateway.post(CHAT, body);
      await response.text();
      expect(response.status).toBe(429);
      expectOwnHeaders(response);
      expect(response.headers.get('retry-after')).toBe('7');
      expect(response.headers.has('x-ratelimit-limit-tokens')).toBe(false);
      expect(response.headers.has('retry-after-ms')).toBe(false);
      expect(response.headers.has('x-ratelimit-reset-tokens')).toBe(false);
      expect(response.headers.get('x-weir-model')).toBe('evil-headers');
    }
  });

  test('a retry-after of 50,000 characters is dropped, and the error is readable', async () => {
    const response = await gateway.post(CHAT, streamedChat('openai/long-retry'));
    expect(response.headers.has('retry-after')).toBe(false);
    expect(await errorOf(response)).toMatchObject({ status: 429, error: { message: 'OpenAI: Slow down' } });
  });

  test('E1 a 304 is an error that names the status, and no redirect', async () => {
    for (const body of [chat('openai/not-modified'), streamedChat('openai/not-modified')]) {
      const error = { code: 'upstream_error', message: 'OpenAI answered 304' };
      expect(await errorOf(await gateway.post(CHAT, body))).toMatchObject({ status: 502, error });
    }
  });

  test('V2 a long glob is rejected, and a type of 100,000 characters matches no glob', async () => {
    const ask = (globs: string) =>
      gateway.post(CHAT, streamedChat('openai/long-type'), { headers: { 'x-weir-vendor-events': globs } });
    expect((await errorOf(await ask(`x_${'*a'.repeat(1000)}`))).status).toBe(400);
    for (const globs of ['pass', `x_${'*a'.repeat(500)}`]) {
      const text = await (await ask(globs)).text();
      expect(framesOf(text).at(-1)).toBe(DONE);
      expect(text).toContain('"word"');
      expect(text).not.toContain('x_a');
    }
  });

  test.each(['evil-refusal', 'evil-error-first'])(
    'E1 %s: an error with line ends stays one JSON body',
    async (name) => {
      for (const body of [chat(`openai/${name}`), streamedChat(`openai/${name}`)]) {
        const response = await gateway.post(CHAT, body);
        expectOwnHeaders(response);
        const { status, error } = await errorOf(response);
        expect(status).toBeGreaterThanOrEqual(400);
        expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
      }
    },
  );

  test.each(['evil-names', 'evil-error-later', 'evil-finish'])(
    'F1 %s: line ends in it start no frame',
    async (name) => {
      const loggedBefore = gateway.logs().length;
      const response = await gateway.post(CHAT, streamedChat(`openai/${name}`));
      const text = await response.text();
      expectOwnHeaders(response);
      const frames = framesOf(text);
      expect(frames.at(-1)).toBe(DONE);
      for (const frame of frames.slice(0, -1)) {
        expect(frame).toMatch(/^data: \{"(?:id|error)":[^\r\n]*\}$/);
        expect(decodeObject(frame.slice('data: '.length))).toBeDefined();
      }
      expect(text).not.toMatch(/^data: \{"injected"/m);
      const { request_id } = await gateway.record(response);
      expect(
        gateway
          .logs()
          .slice(loggedBefore)
          .map((line) => decodeObject(line)?.request_id),
      ).toEqual([request_id]);
    },
  );
});

describe('B3 names full of control characters', () => {
  test.each([
    ['a stream', streamedChat],
    ['a non-streaming response', chat],
  ])('%s: no name is repeated, and the cost of a chunk is unchanged', async (_, body) => {
    const response = await gateway.post(CHAT, body('openai/control-names'));
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text.match(/word/g)).toHaveLength(CHUNKS + 1);
    expect(text).not.toContain('\\u0001');
    expect(text.length / CHUNKS).toBeLessThan(300);
  });
});

describe('H1 H2 what a client sends', () => {
  test("its own x-weir-request-id does not replace Weir's, and other headers are dropped", async () => {
    const requestCount = gateway.simulator.requests.length;
    const headers = {
      'x-weir-request-id': 'mine',
      'x-client-request-id': 'ab,"c"; d',
      traceparent: 'a\u00fcb',
      cookie: 'session=client',
      'x-forwarded-for': '192.0.2.1',
      'x-injected': 'yes',
    };
    const response = await gateway.post(CHAT, chat(`openai/${SIMULATED}`), { headers });
    await response.text();
    expectOwnHeaders(response);
    const upstream = await gateway.simulator.request(requestCount);
    const sent = JSON.stringify(upstream.headers);
    expect(sent).not.toMatch(/"mine"|session=client|192\.0\.2\.1|x-injected/);
    expect(upstream.headers['x-client-request-id']).toBe('ab,"c"; d');
    expect(upstream.headers.traceparent).toBeUndefined();
  });
});

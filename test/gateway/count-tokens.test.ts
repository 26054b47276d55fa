/** The token-counting routes: the provider's own counter, and the estimate where there is none or it fails. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject } from '../../tools/simulator/json.ts';
import { MemoryResponses } from '../durable-responses/memory-responses.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: JsonObject;
}

const ENV = { ANTHROPIC_API_KEY: 'key-of-anthropic', GEMINI_API_KEY: 'key-of-gemini' };
const BODY = { messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 100 };
const CLAUDE = { ...BODY, model: 'anthropic/claude-opus-5' };
const GEMINI = { ...BODY, model: 'gemini/gemini-3-flash', system: 'Be brief.' };
const ESTIMATE = { input_tokens: expect.any(Number) };
const MESSAGES = '/v1/messages/count_tokens';

function gatewayWith(counter: () => Promise<Response>, settings: JsonObject = {}) {
  const sent: Sent[] = [];
  const clock = new FakeClock();
  const gateway = new LimitedGateway(
    { ...ENV, AUTH: 'open', ...settings },
    {
      clock,
      fetch: async (url, init) => {
        const body = decodeObject(String(init?.body)) ?? {};
        sent.push({ url: String(url), headers: new Headers(init?.headers), body });
        const aborted = new Promise<never>((_, reject) => {
          init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
        });
        return await Promise.race([counter(), aborted]);
      },
    },
  );
  return { gateway, sent, clock };
}

async function counted(response: Response) {
  return [response.status, response.headers.get('x-weir-estimated'), decodeObject(await response.text())];
}

/** The logged failures of counters. */
function failures({ logged }: LimitedGateway) {
  return logged
    .filter(({ event }) => event === 'counter_failed')
    .map(({ provider, reason }) => ({ provider, reason }));
}

describe('J3 a counter', () => {
  test("of Claude: the fields that it takes, the client's version and betas, the deployment's key", async () => {
    const { gateway, sent } = gatewayWith(async () => Response.json({ input_tokens: 4321 }));
    const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'context-1m-2025-08-07' };
    const body = { ...CLAUDE, stream: true, metadata: { user_id: 'u' }, thinking: { type: 'adaptive' } };
    const response = await gateway.post(MESSAGES, 'x', body, { headers });
    expect(await counted(response)).toEqual([200, 'false', { input_tokens: 4321 }]);
    expect(sent.map(({ url }) => url)).toEqual(['https://api.anthropic.com/v1/messages/count_tokens']);
    expect(sent[0]?.body).toEqual({
      model: 'claude-opus-5',
      messages: BODY.messages,
      thinking: { type: 'adaptive' },
    });
    expect(Object.fromEntries(sent[0]?.headers ?? [])).toMatchObject({
      ...headers,
      'x-api-key': ENV.ANTHROPIC_API_KEY,
    });
  });

  test('of Gemini: the translated request', async () => {
    const { gateway, sent } = gatewayWith(async () => Response.json({ totalTokens: 77 }));
    expect(await counted(await gateway.post(MESSAGES, 'x', GEMINI))).toEqual([
      200,
      'false',
      { input_tokens: 77 },
    ]);
    expect(sent[0]?.url).toBe(
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:countTokens',
    );
    expect(sent[0]?.body).toEqual({
      generateContentRequest: expect.objectContaining({
        model: 'models/gemini-3-flash',
        contents: [{ role: 'user', parts: [{ text: 'Hello there' }] }],
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
      }),
    });
  });

  test('serves clients of Responses, too', async () => {
    const { gateway } = gatewayWith(async () => Response.json({ input_tokens: 5 }));
    const body = { model: CLAUDE.model, input: 'Hello' };
    const response = await gateway.post('/v1/responses/input_tokens', 'x', body);
    expect(await counted(response)).toEqual([
      200,
      'false',
      { object: 'response.input_tokens', input_tokens: 5 },
    ]);
  });

  test('of an alias is that of its first target', async () => {
    const { gateway } = gatewayWith(async () => Response.json({ input_tokens: 5 }), {
      ALIASES: '{"best":["anthropic/claude-opus-5","openai/gpt-4o-mini"]}',
    });
    const response = await gateway.post(MESSAGES, 'x', { ...BODY, model: 'best' });
    expect(await counted(response)).toEqual([200, 'false', { input_tokens: 5 }]);
  });

  test('writes no record and no charge', async () => {
    const { gateway } = gatewayWith(async () => Response.json({ input_tokens: 5 }));
    await gateway.post(MESSAGES, 'x', CLAUDE);
    await gateway.idle();
    expect(gateway.logged.filter(({ event }) => event === 'request')).toEqual([]);
  });
});

describe('J3 the estimate', () => {
  test('after 2 seconds without a count', async () => {
    const { gateway, clock, sent } = gatewayWith(() => new Promise(() => {}));
    const response = gateway.post(MESSAGES, 'x', CLAUDE);
    while (sent.length === 0) await setImmediate();
    clock.advance(2000);
    expect(await counted(await response)).toEqual([200, 'true', ESTIMATE]);
    expect(failures(gateway)).toEqual([{ provider: 'anthropic', reason: 'no count within 2 s' }]);
  });

  test.each([
    ['a refusal', async () => Response.json({ error: { message: 'no' } }, { status: 429 })],
    ['a failed connection', () => Promise.reject(new Error('refused'))],
    ['a response without a count', async () => Response.json({ tokens: 5 })],
    ['a negative count', async () => Response.json({ input_tokens: -1 })],
    ['a page', async () => new Response('<html>')],
  ])('after %s', async (_, counter) => {
    const { gateway } = gatewayWith(counter);
    expect(await counted(await gateway.post(MESSAGES, 'x', CLAUDE))).toEqual([200, 'true', ESTIMATE]);
    expect(failures(gateway)).toEqual([{ provider: 'anthropic', reason: expect.stringMatching(/./) }]);
  });

  test.each(['openai/gpt-4o-mini', 'nobody/x'])(
    'without a call for %s, which has no counter',
    async (model) => {
      const { gateway, sent } = gatewayWith(async () => Response.json({ input_tokens: 5 }));
      const response = await gateway.post(MESSAGES, 'x', { ...BODY, model });
      expect(await counted(response)).toEqual([200, 'true', ESTIMATE]);
      expect(sent).toEqual([]);
    },
  );
});

test("J3: a model that the key's globs exclude gets 403, and no provider is called", async () => {
  const { gateway, sent } = gatewayWith(async () => Response.json({ input_tokens: 5 }), { AUTH: 'keys' });
  const key = await gateway.key({ models: ['openai/*'] });
  const response = await gateway.post(MESSAGES, key, CLAUDE);
  expect([response.status, response.headers.get('x-weir-estimated')]).toEqual([403, null]);
  expect(decodeObject(await response.text())).toMatchObject({ error: { type: 'permission_error' } });
  expect(sent).toEqual([]);
});

describe('J3 G2 a key with limits', () => {
  const COUNT = async () => Response.json({ input_tokens: 7 });
  function limitedWith(counter: () => Promise<Response>, settings: JsonObject = {}) {
    let counts = 0;
    const gateway = new LimitedGateway(
      { ...ENV, ...settings },
      {
        fetch: () => {
          counts++;
          return counter();
        },
      },
    );
    return { gateway, counts: () => counts };
  }
  const ROUTES: readonly [path: string, body: JsonObject, settings: JsonObject][] = [
    [MESSAGES, CLAUDE, {}],
    ['/v1/responses/input_tokens', { model: CLAUDE.model, input: 'Hello' }, {}],
    ['/v1/responses/input_tokens', { model: CLAUDE.model, input: 'Hello' }, { RESPONSES: 'durable' }],
  ];

  test.each(ROUTES)(
    '%s: each call of a counter is a request of its rates, and costs nothing',
    async (path, body, settings) => {
      const responses = new MemoryResponses();
      const { gateway, counts } = limitedWith(COUNT, {
        ...settings,
        WEIR_RESPONSES: responses as never,
      });
      const token = await gateway.key({ rpm: 2, max_concurrent: 1, budget: { tokens: 50 } });
      for (const status of [200, 200, 429]) {
        await gateway.idle();
        gateway.calls.length = 0;
        const response = await gateway.post(path, token, body);
        expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
      }
      await gateway.idle();
      // Refused with one call, and none to the provider or to what is kept.
      expect(gateway.calls.filter((call) => !call.startsWith('kv'))).toEqual(['reserve']);
      expect(responses.calls).toEqual([]);
      expect(counts()).toBe(2);
      const shown = decodeObject(await (await gateway.fetch('/v1/key', token)).text());
      expect(shown).toMatchObject({ budget: { spent: 0, reserved: 0 }, concurrent: { running: 0 } });
    },
  );

  test('all at once: no more than max_concurrent counters are called', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { gateway, counts } = limitedWith(
      async () => {
        await promise;
        return COUNT();
      },
      { AUTH: 'keys' },
    );
    const token = await gateway.key({ max_concurrent: 3 });
    let refused = 0;
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { status } = await gateway.post(MESSAGES, token, CLAUDE);
        if (status === 429 && ++refused === 17) resolve();
        return status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
    expect(counts()).toBe(3);
    await gateway.idle();
    expect(gateway.sql.count('reservations')).toBe(0);
  });

  test('an estimate calls nothing, and counts against nothing', async () => {
    const { gateway } = limitedWith(COUNT);
    const token = await gateway.key({ rpm: 1 });
    for (let n = 0; n < 3; n++)
      expect((await gateway.post(MESSAGES, token, { ...CLAUDE, model: 'openai/gpt-4o-mini' })).status).toBe(
        200,
      );
    expect(gateway.calls).not.toContain('reserve');
  });
});

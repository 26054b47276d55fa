/** Embeddings: every form of input, both encodings, limits and records, before providers that answer by script. */
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { type Hooks, NO_HOOKS } from '../../src/http/hooks.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { FakeTracing } from './fake-tracing.ts';
import { LimitedGateway, passingClock } from './limited-gateway.ts';
import './upstreams.ts';

const ENV = { AUTH: 'open', MISTRAL_API_KEY: 'k', GEMINI_API_KEY: 'k' };
const SMALL = 'openai/text-embedding-3-small';
const LIST = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }],
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 8, total_tokens: 8 },
};

interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: JsonObject;
}

/** Of DEADLINE_SECONDS=5, with what timers add. */
const DEADLINE_MS = 6000;

type Answer = (sent: Sent, signal: AbortSignal | null | undefined) => Response | Promise<Response>;

function gatewayWith(
  answer: Answer,
  settings: JsonObject = {},
  ports: Partial<GatewayPorts> = {},
  hooks: Hooks = NO_HOOKS,
) {
  const sent: Sent[] = [];
  const gateway = new LimitedGateway(
    { ...ENV, ...settings },
    {
      fetch: async (url, init) => {
        const body = decodeObject(String(init?.body)) ?? {};
        const one = { url: String(url), headers: new Headers(init?.headers), body };
        sent.push(one);
        return answer(one, init?.signal);
      },
      ...ports,
    },
    hooks,
  );
  const embed = (fields: JsonObject, token = 'x', path = '/v1/embeddings') =>
    gateway.post(path, token, { model: SMALL, input: 'Hello', ...fields });
  const record = async () => {
    await gateway.idle();
    return gateway.logged.find(({ event }) => event === 'request');
  };
  return { gateway, sent, embed, record };
}

const ok: Answer = () => Response.json(LIST);

describe('J1 OpenAI', () => {
  test.each<[string, JsonObject]>([
    ['a text', { input: 'Hello' }],
    ['texts', { input: ['a', 'b'] }],
    ['tokens', { input: [1, 2, 3] }],
    ['token lists', { input: [[1, 2], [3]] }],
    ['dimensions, an encoding and a user', { dimensions: 256, encoding_format: 'base64', user: 'u' }],
  ])('%s go up unchanged, and the response passes byte for byte', async (_, fields) => {
    const text = JSON.stringify(LIST, null, 1);
    const { sent, embed } = gatewayWith(() => new Response(text));
    const response = await embed(fields);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('x-weir-provider')).toBe('openai');
    expect(await response.text()).toBe(text);
    expect(sent).toMatchObject([
      {
        url: 'https://api.openai.com/v1/embeddings',
        body: { input: 'Hello', ...fields, model: 'text-embedding-3-small' },
      },
    ]);
  });

  test.each([
    '/embeddings',
    '/v1/embeddings',
    '/openai/deployments/openai%2Ftext-embedding-3-small/embeddings',
  ])('%s is served', async (path) => {
    const { embed } = gatewayWith(ok);
    expect((await embed({}, 'x', path)).status).toBe(200);
  });

  test('one record with the route, the reported tokens, and their price', async () => {
    const { embed, record } = gatewayWith(ok);
    const response = await embed({});
    const bytes = (await response.text()).length;
    expect(await record()).toMatchObject({
      route: 'embeddings',
      status: 'finished',
      model: 'text-embedding-3-small',
      prompt_tokens: 8,
      completion_tokens: 0,
      estimated: false,
      bytes_out: bytes,
      // $0.02 per million.
      cost_nanos: 160,
      currency: 'USD',
    });
  });

  test('usage behind megabytes of vectors is read, and no byte is lost', async () => {
    const vector = `[${'0.12345678,'.repeat(100_000)}1]`;
    const text = `{"object":"list","data":[${`{"embedding":${vector}},`.repeat(9)}{"embedding":${vector}}],"usage":{"prompt_tokens":77,"total_tokens":77}}`;
    const { embed, record } = gatewayWith(() => new Response(text));
    expect((await (await embed({})).text()) === text).toBe(true);
    expect(await record()).toMatchObject({ prompt_tokens: 77, bytes_out: text.length });
  });

  test('without usage in the response the tokens are estimated', async () => {
    const { embed, record } = gatewayWith(() => Response.json({ ...LIST, usage: undefined }));
    await (await embed({ input: [1, 2, 3] })).text();
    expect(await record()).toMatchObject({ prompt_tokens: 3, completion_tokens: 0, estimated: true });
  });

  test.each<[string, JsonObject, string]>([
    ['no input', { input: null }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['an unknown encoding', { encoding_format: 'hex' }, 'encoding_format'],
  ])('%s is refused before a provider is called', async (_, fields, param) => {
    const { sent, embed } = gatewayWith(ok);
    const response = await embed(fields);
    expect(decodeObject(await response.text())?.error).toMatchObject({ code: 'invalid_request', param });
    expect([response.status, sent.length]).toEqual([400, 0]);
  });

  test.each([
    ['200,000 tokens are within the bound on JSON values', 200_000, 200],
    ['a list of 10 MiB is refused before a call', 5_000_000, 400],
  ])('%s', async (_, count, status) => {
    const { sent, embed } = gatewayWith(ok);
    const response = await embed({ input: Array.from({ length: count }, () => 7) });
    await response.text();
    expect([response.status, sent.length]).toEqual([status, status === 200 ? 1 : 0]);
  });

  test('a cut response is recorded as failed, and the client sees the break', async () => {
    let isSent = false;
    const cut = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (isSent) return controller.error(new Error('reset'));
        isSent = true;
        controller.enqueue(new TextEncoder().encode(`{"data":[{"embedding":[${'0.125,'.repeat(1000)}`));
      },
    });
    const { embed, record } = gatewayWith(() => new Response(cut));
    await expect((await embed({})).text()).rejects.toThrow();
    expect(await record()).toMatchObject({ status: 'failed', error_code: 'upstream_truncated' });
  });

  test('a response that ends within its vectors is recorded as failed', async () => {
    const text = `{"object":"list","data":[{"embedding":[${'0.125,'.repeat(2000)}`;
    const { embed, record } = gatewayWith(() => new Response(text));
    await expect((await embed({})).text()).rejects.toThrow();
    expect(await record()).toMatchObject({ status: 'failed', error_code: 'upstream_truncated' });
  });

  test.each([
    ['garbage', '<html>busy</html>'],
    ['half of an object', '{"object":"list","data":[{"emb'],
    ['an object without a list', '{"status":"ok"}'],
    ['nothing', ''],
  ])('%s in a success is no response', async (_, text) => {
    const { embed, record } = gatewayWith(() => new Response(text));
    expect((await embed({})).status).toBe(502);
    expect(await record()).toMatchObject({ status: 'failed', prompt_tokens: 0 });
  });

  test('a connection that breaks within the first bytes is tried again', async () => {
    let calls = 0;
    const { embed, record } = gatewayWith(() => {
      calls++;
      const pull = (controller: ReadableStreamDefaultController) => controller.error(new Error('reset'));
      return calls === 1 ? new Response(new ReadableStream({ pull })) : Response.json(LIST);
    });
    const response = await embed({});
    expect(response.status).toBe(200);
    await response.text();
    expect(objectsOf((await record())?.attempts as never)).toHaveLength(2);
  });

  test('an error in a success is recognized in pieces, after whitespace', async () => {
    const pieces = ['  ', '\n', '{"err', 'or":{"message":"no such model","code":404}}'];
    const body = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
          controller.close();
        },
      });
    const { embed } = gatewayWith(() => new Response(body()));
    expect((await embed({})).status).toBe(404);
  });

  test.each([
    ['before the first byte', ''],
    ['within the vectors', `{"data":[{"embedding":[${'0.125,'.repeat(2000)}`],
  ])('a body that stalls %s ends at the deadline', async (_, sent) => {
    const stalled = (signal: AbortSignal | null | undefined) =>
      new ReadableStream<Uint8Array>({
        start: (controller) => {
          signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
          if (sent !== '') controller.enqueue(new TextEncoder().encode(sent));
        },
      });
    const deadlines = new FakeClock();
    const read = Promise.withResolvers<void>();
    const { embed, record } = gatewayWith(
      (_call, signal) => {
        read.resolve();
        return new Response(stalled(signal));
      },
      { DEADLINE_SECONDS: '5' },
      { clock: passingClock(deadlines) },
    );
    const pending = embed({});
    if (sent === '') {
      await read.promise;
      deadlines.advance(DEADLINE_MS);
      expect((await pending).status).toBe(504);
    } else {
      const response = await pending;
      deadlines.advance(DEADLINE_MS);
      await expect(response.text()).rejects.toThrow();
    }
    expect(await record()).toMatchObject({ status: 'timed_out' });
  });

  test('an error in a success is an error of the gateway', async () => {
    const { embed, record } = gatewayWith(() =>
      Response.json({ error: { message: 'no such model', code: 404 } }),
    );
    expect((await embed({})).status).toBe(404);
    expect(await record()).toMatchObject({ status: 'failed', prompt_tokens: 0 });
  });
});

describe('J1 other providers', () => {
  test('Mistral gets its own name of the dimensions, and no user', async () => {
    const { sent, embed } = gatewayWith(ok);
    const fields = {
      model: 'mistral/codestral-embed',
      dimensions: 256,
      user: 'u',
      encoding_format: 'base64',
    };
    const response = await embed(fields);
    expect(sent[0]?.body).toEqual({
      model: 'codestral-embed',
      input: 'Hello',
      output_dimension: 256,
      encoding_format: 'base64',
    });
    expect(response.headers.get('x-weir-dropped')).toBe('user');
  });

  const GEMINI = {
    embeddings: [{ values: [0.5, -0.25] }, { values: [1, 2e-3] }],
    usageMetadata: { promptTokenCount: 5, promptTokenDetails: [{ modality: 'TEXT', tokenCount: 5 }] },
  };
  const BOTH = { model: 'gemini/gemini-embedding-001', input: ['a', 'b'] };

  test('Gemini gets one request for each text', async () => {
    const { sent, embed } = gatewayWith(() => Response.json(GEMINI));
    await embed({ ...BOTH, dimensions: 768 });
    const model = 'models/gemini-embedding-001';
    expect(sent).toMatchObject([
      {
        url: `https://generativelanguage.googleapis.com/v1beta/${model}:batchEmbedContents`,
        body: {
          requests: ['a', 'b'].map((text) => ({
            model,
            content: { parts: [{ text }] },
            outputDimensionality: 768,
          })),
        },
      },
    ]);
  });

  test("Gemini's vectors are OpenAI's list of numbers, with usage and a record", async () => {
    const { embed, record } = gatewayWith(() => Response.json(GEMINI));
    expect(decodeObject(await (await embed(BOTH)).text())).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [0.5, -0.25] },
        { object: 'embedding', index: 1, embedding: [1, 0.002] },
      ],
      model: 'gemini-embedding-001',
      usage: { prompt_tokens: 5, total_tokens: 5 },
    });
    expect(await record()).toMatchObject({ route: 'embeddings', prompt_tokens: 5, estimated: false });
  });

  test("Gemini's vectors are base64 of 32-bit floats if the client requests base64", async () => {
    const { embed } = gatewayWith(() => Response.json(GEMINI));
    const response = await embed({ ...BOTH, encoding_format: 'base64' });
    const [first] = objectsOf(decodeObject(await response.text())?.data);
    const bytes = Buffer.from(String(objectOf(first).embedding), 'base64');
    expect([bytes.length, bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([8, 0.5, -0.25]);
  });

  test('Gemini without usage: the tokens are estimated, for the client and in the record', async () => {
    const { embed, record } = gatewayWith(() => Response.json({ embeddings: GEMINI.embeddings }));
    const { usage } = decodeObject(await (await embed(BOTH)).text()) ?? {};
    expect(usage).toEqual({ prompt_tokens: 2, total_tokens: 2 });
    expect(await record()).toMatchObject({ prompt_tokens: 2, estimated: true });
  });

  test('Gemini takes no tokens: 400 before a call', async () => {
    const { sent, embed } = gatewayWith(ok);
    expect((await embed({ ...BOTH, input: [1, 2] })).status).toBe(400);
    expect(sent).toEqual([]);
  });

  test('a provider without embeddings: unsupported_route', async () => {
    const response = await gatewayWith(ok).embed({ model: 'deepseek/deepseek-chat' });
    expect(decodeObject(await response.text())).toMatchObject({ error: { code: 'unsupported_route' } });
  });
});

describe('J1 Gemini responses without a list of vectors', () => {
  test.each<[string, object | string]>([
    ['no vectors', { embeddings: [] }],
    ['a vector with a word', '{"embeddings":[{"values":[0.5,null]}]}'],
    ['a vector that is no JSON', '{"embeddings":[{"values":[0.5,,1]}]}'],
    ['vectors elsewhere', { embeddings: [{}], other: { values: [1] } }],
    ['half of a response', '{"embeddings":[{"values":[0.5'],
  ])('%s', async (_, answer) => {
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
    const { embed, record } = gatewayWith(() => new Response(text));
    const model = 'gemini/gemini-embedding-001';
    expect((await embed({ model, encoding_format: 'base64' })).status).toBe(502);
    expect(await record()).toMatchObject({ status: 'failed' });
  });

  test('responses that arrive after the timeout of an alias release their memory', async () => {
    const vector = `[${'0.12345678,'.repeat(200_000)}1]`;
    const text = `{"embeddings":[{"values":${vector}}]}`;
    let isSlow = true;
    const { embed, gateway } = gatewayWith(
      async (_, signal) => {
        if (isSlow && signal) await once(signal, 'abort');
        return new Response(text);
      },
      { ALIASES: '{"slow":[{"model":"gemini/gemini-embedding-001","timeout_seconds":1}]}', RETRIES: '0' },
    );
    // Together they have more bytes than all bodies of an isolate may hold.
    for (let i = 0; i < 12; i++) expect((await embed({ model: 'slow' })).status).toBe(504);
    isSlow = false;
    const response = await embed({ model: 'gemini/gemini-embedding-001' });
    expect(response.status).toBe(200);
    await response.text();
    await gateway.idle();
  });
});

describe('J1 fallbacks', () => {
  const BACKUP = {
    PROVIDERS: '{"backup":{"base_url":"https://backup.example/v1","api_key":"BACKUP_KEY"}}',
    BACKUP_KEY: 'k',
    ALIASES: `{"small":["${SMALL}","backup/openai/text-embedding-3-small"],"mixed":["${SMALL}","mistral/mistral-embed"]}`,
  };
  const failing: Answer = ({ url }) =>
    url.startsWith('https://api.openai.com') ? new Response('', { status: 503 }) : Response.json(LIST);

  test('the same model at another provider is called after a failure', async () => {
    const { embed, record } = gatewayWith(failing, BACKUP);
    const response = await embed({ model: 'small' });
    expect([response.status, response.headers.get('x-weir-provider')]).toEqual([200, 'backup']);
    expect(response.headers.get('x-weir-attempts')).toMatch(
      /^openai\/text-embedding-3-small 503 \d+ms, backup\/openai\/text-embedding-3-small 200 \d+ms$/,
    );
    await response.text();
    expect(objectsOf((await record())?.attempts as never)).toHaveLength(2);
  });

  test('a step with "api" is called at the embeddings endpoint all the same', async () => {
    const aliases = JSON.stringify({ small: [{ model: SMALL, api: 'responses' }] });
    const { sent, embed } = gatewayWith(ok, { ALIASES: aliases });
    expect((await embed({ model: 'small' })).status).toBe(200);
    expect(sent.map(({ url }) => url)).toEqual(['https://api.openai.com/v1/embeddings']);
  });

  test.each<[string, JsonObject]>([
    ['an alias', { model: 'mixed' }],
    ['a list of models', { models: ['mistral/mistral-embed'] }],
  ])('%s of unlike models is refused', async (_, fields) => {
    const { sent, embed } = gatewayWith(ok, BACKUP);
    const response = await embed(fields);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("Embeddings of different models can't be mixed");
    expect(sent).toEqual([]);
  });
});

describe('J1 keys', () => {
  const KEYS = { AUTH: 'keys' };

  test('globs hold', async () => {
    const { gateway, embed } = gatewayWith(ok, KEYS);
    const key = await gateway.key({ models: ['mistral/*'] });
    expect((await embed({}, key)).status).toBe(403);
  });

  test('a hard budget is charged the input tokens only, and an output limit of the key is not sent', async () => {
    const { gateway, sent, embed } = gatewayWith(ok, KEYS);
    const key = await gateway.key({
      budget: { per: 'total', mode: 'hard', USD: 1 },
      max_output_tokens: 100,
    });
    const response = await embed({}, key);
    expect(response.status).toBe(200);
    await response.text();
    await gateway.idle();
    expect(Object.keys(sent[0]?.body ?? {}).sort()).toEqual(['input', 'model']);
    const own = decodeObject(await (await gateway.fetch('/v1/key', key)).text());
    expect(objectOf(own?.budget)).toMatchObject({ spent: 1.6e-7 });
  });

  test('tokens per minute with too little room for the input refuse it', async () => {
    const { gateway, sent, embed } = gatewayWith(ok, KEYS);
    const key = await gateway.key({ tpm: 100 });
    expect((await embed({ input: 'a'.repeat(5000) }, key)).status).toBe(429);
    expect(sent).toEqual([]);
  });

  test('a budget with too little room for the input refuses it', async () => {
    const { gateway, sent, embed } = gatewayWith(ok, KEYS);
    const key = await gateway.key({ budget: { per: 'total', mode: 'hard', tokens: 10 } });
    expect((await embed({ input: 'a'.repeat(5000) }, key)).status).toBe(429);
    expect(sent).toEqual([]);
  });
});

describe('J1 what all completions have', () => {
  test('AUTH=passthrough: the upstream gets the caller’s own credential, and the record its hash', async () => {
    const { sent, embed, record } = gatewayWith(ok, { AUTH: 'passthrough' });
    await (await embed({}, 'sk-of-the-caller')).text();
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer sk-of-the-caller');
    expect((await record())?.key_id).toMatch(/^[0-9a-f]{16}$/);
    expect((await embed({}, '')).status).toBe(401);
  });

  test('headers of limits and budget', async () => {
    const { gateway, embed } = gatewayWith(ok, { AUTH: 'keys' });
    const key = await gateway.key({ rpm: 10, tpm: 1000, budget: { per: 'total', mode: 'hard', USD: 1 } });
    const { headers } = await embed({}, key);
    expect(headers.get('x-ratelimit-limit-requests')).toBe('10');
    expect(headers.get('x-ratelimit-remaining-requests')).toBe('9');
    expect(headers.get('x-ratelimit-limit-tokens')).toBe('1000');
    expect(headers.get('x-weir-budget-remaining')).toMatch(/^(1|0\.\d+) USD$/);
    expect(headers.get('x-weir-model')).toBe('text-embedding-3-small');
  });

  test('onRequest names the caller, and onRecord gets the record', async () => {
    const records: unknown[] = [];
    const hooks = {
      onRequest: () => ({ id: 'team-a', models: ['openai/*'] }),
      onRecord: (record: unknown) => void records.push(record),
    };
    const { gateway, embed } = gatewayWith(ok, {}, {}, hooks);
    await (await embed({})).text();
    await gateway.idle();
    expect(records).toMatchObject([{ route: 'embeddings', key_id: 'host_team-a', prompt_tokens: 8 }]);
    expect((await embed({ model: 'mistral/mistral-embed' })).status).toBe(403);
  });

  test('one span for the request and one below it for the attempt', async () => {
    const tracing = new FakeTracing();
    const { gateway, embed } = gatewayWith(ok, {}, { tracing });
    await (await embed({})).text();
    await gateway.idle();
    const [request, ...attempts] = tracing.spans;
    expect(tracing.below(request)).toEqual(attempts);
    expect(request).toMatchObject({
      name: `embeddings ${SMALL}`,
      ends: 1,
      attributes: { 'gen_ai.operation.name': 'embeddings', 'gen_ai.usage.input_tokens': 8 },
    });
    expect(attempts).toMatchObject([{ name: 'embeddings text-embedding-3-small', ends: 1, error: null }]);
  });

  test.each([
    ['a body that stalls until the deadline', true],
    ['a body that its client does not read until the deadline', false],
  ])('%s holds its reservation no longer', async (_, isRead) => {
    const stalled = (_: Sent, signal: AbortSignal | null | undefined) =>
      new Response(
        new ReadableStream<Uint8Array>({
          start: (controller) => {
            controller.enqueue(new TextEncoder().encode(`{"data":[${'0.125,'.repeat(2000)}`));
            signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
          },
        }),
      );
    const deadlines = new FakeClock();
    const { gateway, embed } = gatewayWith(
      stalled,
      { AUTH: 'keys', DEADLINE_SECONDS: '5' },
      { clock: passingClock(deadlines) },
    );
    const key = await gateway.key({
      max_concurrent: 1,
      budget: { per: 'total', mode: 'hard', tokens: 1e6 },
    });
    const response = await embed({}, key);
    expect((await embed({}, key)).status).toBe(429);
    deadlines.advance(DEADLINE_MS);
    if (isRead) await expect(response.text()).rejects.toThrow();
    await gateway.idle();
    const own = decodeObject(await (await gateway.fetch('/v1/key', key)).text());
    expect(own).toMatchObject({ concurrent: { running: 0 }, budget: { reserved: 0 } });
  });
});

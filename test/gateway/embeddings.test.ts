/** Embeddings: every form of input, both encodings, limits and records, before providers that answer by script. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';
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
  readonly body: JsonObject;
}

type Answer = (sent: Sent) => Response;

function gatewayWith(answer: Answer, settings: JsonObject = {}) {
  const sent: Sent[] = [];
  const gateway = new LimitedGateway(
    { ...ENV, ...settings },
    {
      fetch: async (url, init) => {
        const one = { url: String(url), body: decodeObject(String(init?.body)) ?? {} };
        sent.push(one);
        return answer(one);
      },
    },
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
    expect(sent).toEqual([
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

  test('a cut response is recorded as failed, and the client sees the break', async () => {
    let isSent = false;
    const cut = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (isSent) return controller.error(new Error('reset'));
        isSent = true;
        controller.enqueue(new TextEncoder().encode('{"data":[{"embedding":[0.1'));
      },
    });
    const { embed, record } = gatewayWith(() => new Response(cut));
    await expect((await embed({})).text()).rejects.toThrow();
    expect(await record()).toMatchObject({ status: 'failed', error_code: 'upstream_truncated' });
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
    expect(sent).toEqual([
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

  test("Gemini's vectors are base64 of 32-bit floats where the client wants that", async () => {
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

describe('J1 fallbacks', () => {
  const BACKUP = {
    PROVIDERS: '{"backup":{"base_url":"https://backup.example/v1","api_key":"BACKUP_KEY"}}',
    BACKUP_KEY: 'k',
    ALIASES: `{"small":["${SMALL}","backup/openai/text-embedding-3-small"],"mixed":["${SMALL}","mistral/mistral-embed"]}`,
  };
  const failing: Answer = ({ url }) =>
    url.startsWith('https://api.openai.com') ? new Response('', { status: 503 }) : Response.json(LIST);

  test('the same model at another provider answers after a failure', async () => {
    const { embed, record } = gatewayWith(failing, BACKUP);
    const response = await embed({ model: 'small' });
    expect([response.status, response.headers.get('x-weir-provider')]).toEqual([200, 'backup']);
    await response.text();
    expect(objectsOf((await record())?.attempts as never)).toHaveLength(2);
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

  test('a hard budget is charged the input tokens alone, and an output limit of the key is not sent', async () => {
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

  test('a budget with too little room for the input refuses it', async () => {
    const { gateway, sent, embed } = gatewayWith(ok, KEYS);
    const key = await gateway.key({ budget: { per: 'total', mode: 'hard', tokens: 10 } });
    expect((await embed({ input: 'a'.repeat(5000) }, key)).status).toBe(429);
    expect(sent).toEqual([]);
  });
});

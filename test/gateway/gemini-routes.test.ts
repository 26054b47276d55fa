/**
 * The routes of Gemini's clients in memory: counts, embeddings, lists of models, keys, Vertex AI's paths, numbers for
 * enums, attribution (I9).
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GoogleGenAI } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { Router } from '../../src/routes.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { FakeTracing } from './fake-tracing.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { answerWith, json, RoutedGateway, refuse, settle } from './upstreams.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/requests/gemini/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/requests is not here)';
const GEMINI = { GEMINI_API_KEY: 'key-of-gemini', GEMINI_BASE_URL: 'https://gemini' };
const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const HI = {
  candidates: [{ content: { parts: [{ text: 'Hi' }], role: 'model' }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 5, totalTokenCount: 8, candidatesTokenCount: 3 },
};

function recorded(name: string): JsonObject {
  return decodeObject(readFileSync(FOLDER + name, 'utf8')) ?? {};
}

async function objectIn(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

describe('countTokens', () => {
  test.each([
    ['contents alone', { contents: CONTENTS }],
    ['a wrapped request', { generateContentRequest: { model: 'models/m', contents: CONTENTS } }],
  ])('%s: Gemini counts', async (_, body) => {
    const gateway = new RoutedGateway({ '': [json({ totalTokens: 11 })] }, GEMINI);
    const response = await gateway.gateway.post('/v1beta/models/gemini/m:countTokens', 'x', body);
    expect(await objectIn(response)).toEqual({ totalTokens: 11 });
    expect(gateway.requests[0]?.url).toBe('https://gemini/v1beta/models/m:countTokens');
    expect(gateway.requests[0]?.body).toEqual({
      generateContentRequest: { contents: CONTENTS, model: 'models/m' },
    });
  });

  test('another provider: estimated', async () => {
    const gateway = new RoutedGateway({});
    const response = await gateway.gateway.post('/v1beta/models/mistral/a:countTokens', 'x', {
      contents: CONTENTS,
    });
    expect(response.headers.get('x-weir-estimated')).toBe('true');
    expect(await objectIn(response)).toEqual({ totalTokens: expect.any(Number) });
  });
});

describe('embeddings', () => {
  test.skipIf(note !== '').each([
    ['generative-ai-js--embed', 'text-embedding-004:embedContent'],
    ['llm--embed-768', 'gemini-embedding-001:batchEmbedContents'],
  ])(`%s: passes through to Gemini, byte for byte${note}`, async (name, path) => {
    const answer = readFileSync(`${FOLDER}${name}.json`, 'utf8');
    const request = recorded(`${name}.request.json`);
    const gateway = new RoutedGateway(
      { '': [{ kind: 'answer', type: 'application/json', pieces: [answer] }] },
      GEMINI,
    );
    const response = await gateway.gateway.post(`/v1beta/models/${path}`, 'x', request);
    expect(await response.text()).toBe(answer);
    expect(gateway.requests[0]).toMatchObject({ url: `https://gemini/v1beta/models/${path}`, body: request });
    expect(gateway.records).toMatchObject([{ client: 'gemini', route: 'embeddings', status: 'finished' }]);
  });

  test('another provider: OpenAI’s form there, Google’s here; what has no counterpart is named', async () => {
    const data = [
      { index: 0, embedding: [1, 2] },
      { index: 1, embedding: [3, 4] },
    ];
    const gateway = new RoutedGateway({ e: [json({ data, usage: { prompt_tokens: 4, total_tokens: 4 } })] });
    const requests = ['a', 'b'].map((text) => ({
      content: { parts: [{ text }] },
      taskType: 'RETRIEVAL_QUERY',
      output_dimensionality: 2,
    }));
    const response = await gateway.gateway.post('/v1beta/models/openai/e:batchEmbedContents', 'x', {
      requests,
    });
    expect(response.headers.get('x-weir-dropped')).toBe('taskType');
    expect(await objectIn(response)).toEqual({
      embeddings: [{ values: [1, 2] }, { values: [3, 4] }],
      usageMetadata: { promptTokenCount: 4 },
    });
    expect(gateway.requests[0]?.body).toEqual({ model: 'e', input: ['a', 'b'], dimensions: 2 });
    const content = { parts: [{ text: 'a' }] };
    const one = await gateway.gateway.post('/v1beta/models/openai/e:embedContent', 'x', { content });
    expect(await objectIn(one)).toMatchObject({ embedding: { values: [1, 2] } });
    expect(gateway.requests[1]?.body).toEqual({ model: 'e', input: 'a' });
  });

  test.each([
    ['no content', 'embedContent', {}, 'content'],
    ['an empty list', 'batchEmbedContents', { requests: [] }, 'requests'],
    ['an image', 'embedContent', { content: { parts: [{ inlineData: {} }] } }, 'content'],
  ])('%s: 400 by name', async (_, method, body, param) => {
    const gateway = new RoutedGateway({});
    const response = await gateway.gateway.post(`/v1beta/models/openai/e:${method}`, 'x', body);
    expect(response.status).toBe(400);
    expect(await objectIn(response)).toMatchObject({
      error: { status: 'INVALID_ARGUMENT', details: [{ metadata: { param } }] },
    });
  });
});

describe('models', () => {
  const LISTED = {
    models: [{ name: 'models/gemini-3-pro', inputTokenLimit: 10, outputTokenLimit: 5, thinking: true }],
  };
  const KEYED = { headers: { 'x-goog-api-key': 'x' } };

  function lists() {
    return new LimitedGateway(
      { AUTH: 'open', ...GEMINI, OPENAI_API_KEY: '', DEEPSEEK_API_KEY: '' },
      { fetch: async () => Response.json(LISTED) },
    );
  }

  const MODEL = {
    name: 'models/gemini/gemini-3-pro',
    displayName: 'gemini/gemini-3-pro',
    inputTokenLimit: 10,
    outputTokenLimit: 5,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
    thinking: true,
  };

  test.each([
    ['below /v1beta', '/v1beta/models', {}],
    ['below /v1 with Google’s header', '/v1/models', KEYED],
    ['below /v1 with a key in the query', '/v1/models?key=x', {}],
  ])('%s: Google’s form', async (_, path, init) => {
    expect(await objectIn(await lists().fetch(path, '', init))).toEqual({ models: [MODEL] });
  });

  test('below /v1 with a bearer: OpenAI’s form', async () => {
    expect(await objectIn(await lists().fetch('/v1/models', 'x'))).toMatchObject({ object: 'list' });
  });

  test('one model, and one that is not there', async () => {
    const path = '/v1beta/models/gemini%2Fgemini-3-pro';
    expect(await objectIn(await lists().fetch(path, ''))).toEqual(MODEL);
    const absent = await lists().fetch('/v1beta/models/none', '');
    expect(absent.status).toBe(404);
    expect(await objectIn(absent)).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } });
  });
});

describe('keys', () => {
  test.each(['header', 'query'])('a key in the %s is taken, and is in no log', async (place) => {
    const gateway = new LimitedGateway();
    const key = await gateway.key();
    const ask = (path: string, headers: HeadersInit = {}) =>
      gateway.post(path, '', { contents: CONTENTS }, { headers });
    const path = '/v1beta/models/openai/gpt-4o-mini:generateContent';
    const response =
      place === 'header'
        ? await ask(path, { 'x-goog-api-key': key })
        : await ask(`${path}?key=${key}&alt=json`);
    expect(response.status).toBe(200);
    await gateway.idle();
    expect(JSON.stringify(gateway.logged)).not.toContain(key);
    expect(JSON.stringify([...response.headers])).not.toContain(key);
  });

  test.each(['key', 'k%65y'])(
    'a key as %s in the query is in no span, record or request to a provider',
    async (name) => {
      const tracing = new FakeTracing();
      const gateway = new RoutedGateway({ a: [answerWith('Hi')] }, {}, { tracing });
      for (const method of ['streamGenerateContent', 'generateContent', 'countTokens', 'predict']) {
        const path = `/v1beta/models/openai/a:${method}?alt=sse&${name}=weir_0123456789abcdef0123`;
        await (await gateway.gateway.post(path, '', { contents: CONTENTS })).text();
      }
      await settle();
      expect(tracing.spans.length).toBeGreaterThan(2);
      const said = [
        tracing.spans.map(({ name: span, attributes }) => [span, attributes]),
        gateway.gateway.logged,
      ];
      const sent = gateway.requests.map(({ url, headers }) => [url, [...headers]]);
      expect(JSON.stringify([said, sent])).not.toContain('0123456789abcdef');
    },
  );

  test.each([
    ['none', {}, ''],
    ['an empty header, as Gemini CLI sends it', { 'x-goog-api-key': '' }, ''],
    ['a wrong one', { 'x-goog-api-key': 'weir_wrong' }, ''],
    ['a wrong one in the query', {}, '?key=weir_wrong'],
  ])('%s: 401 UNAUTHENTICATED', async (_, headers, query) => {
    const gateway = new LimitedGateway();
    const path = `/v1beta/models/openai/m:generateContent${query}`;
    const response = await gateway.post(path, '', { contents: CONTENTS }, { headers });
    expect(response.status).toBe(401);
    expect(await objectIn(response)).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } });
    expect(JSON.stringify(gateway.logged)).not.toContain('weir_wrong');
  });

  test('the host’s hook sees no key in the URL', async () => {
    let seen = '';
    const hooks = {
      onRecord: null,
      onRequest: (request: Request) => {
        seen = request.url;
      },
    };
    const gateway = new LimitedGateway({ AUTH: 'open' }, {}, hooks as never);
    await gateway.post('/v1beta/models/openai/m:generateContent?key=secret', '', { contents: CONTENTS });
    expect(seen).toBe('https://weir.example/v1beta/models/openai/m:generateContent');
  });
});

describe('paths', () => {
  test.each([
    ['/v1beta/models/gemini-3-pro:generateContent', 'gemini-3-pro'],
    ['/v1/models/gemini-3-pro:generateContent', 'gemini-3-pro'],
    ['/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3-pro:generateContent', 'gemini-3-pro'],
    ['/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro:generateContent', 'gemini-3-pro'],
    ['/v1beta1/publishers/google/models/gemini-3-pro:generateContent', 'gemini-3-pro'],
  ])('%s is Gemini’s', async (path, model) => {
    const gateway = new RoutedGateway({ '': [json(HI)] }, GEMINI);
    expect((await gateway.gateway.post(path, 'x', { contents: CONTENTS })).status).toBe(200);
    expect(gateway.requests[0]?.url).toBe(`https://gemini/v1beta/models/${model}:generateContent`);
  });

  test.each([
    ['a slash', '/v1beta/models/openai/a:generateContent', 'a'],
    ['an escaped slash', '/v1beta/models/openai%2Fa:generateContent', 'a'],
    ['a colon in the name', '/v1beta/models/openai/a:8b:generateContent', 'a:8b'],
    ['no models/, as of @ai-sdk/google', '/v1beta/openai/a:generateContent', 'a'],
    ['the same below /v1', '/v1/openai/a:generateContent', 'a'],
    ['another publisher', '/v1beta1/publishers/openai/models/a:generateContent', 'a'],
  ])('%s: the model ends at the last colon', async (_, path, model) => {
    const gateway = new RoutedGateway({ [model]: [answerWith('Hi')] });
    expect((await gateway.gateway.post(path, 'x', { contents: CONTENTS })).status).toBe(200);
    expect(gateway.models).toEqual([model]);
  });

  test('an alias takes a name of Gemini CLI’s, also by the path of Vertex AI', async () => {
    const aliases = { ALIASES: JSON.stringify({ 'gemini-*flash*': 'openai/a' }) };
    const gateway = new RoutedGateway({ a: [answerWith('Hi')] }, { ...GEMINI, ...aliases });
    for (const path of ['/v1beta/models', '/v1beta1/publishers/google/models'])
      await gateway.gateway.post(`${path}/gemini-3-flash-preview:generateContent`, 'x', {
        contents: CONTENTS,
      });
    expect(gateway.models).toEqual(['a', 'a']);
  });

  test('the SDK’s mode for Vertex AI', async () => {
    const gateway = new RoutedGateway({ '': [json(HI)] }, GEMINI);
    const ai = new GoogleGenAI({
      vertexai: true,
      apiKey: 'x',
      httpOptions: {
        baseUrl: 'https://weir.example',
        fetch: (url: string, init?: RequestInit) => {
          const { pathname, search } = new URL(url);
          return gateway.gateway.fetch(pathname + search, '', { ...init, signal: null });
        },
      } as never,
    });
    const answer = await ai.models.generateContent({ model: 'gemini-3-pro', contents: 'Hello' });
    expect(answer.text).toBe('Hi');
  });

  test.each([
    ['another method', 'POST', '/v1beta/models/openai/a:predict', 404, 'NOT_FOUND'],
    ['no method', 'POST', '/v1beta/models/openai/a', 404, 'NOT_FOUND'],
    ['the Interactions API', 'POST', '/v1beta/interactions', 404, 'NOT_FOUND'],
    ['an interaction', 'GET', '/v1beta/interactions/x', 404, 'NOT_FOUND'],
    ['another of Google’s APIs', 'POST', '/v1beta/cachedContents', 404, 'NOT_FOUND'],
  ])('%s: refused in Google’s form', async (_, method, path, code, status) => {
    const gateway = new RoutedGateway({});
    const response = await gateway.gateway.fetch(path, 'x', {
      method,
      ...(method === 'POST' && { body: '{}' }),
    });
    expect(response.status).toBe(code);
    expect(await objectIn(response)).toMatchObject({ error: { code, status } });
  });
});

describe('numbers for enums', () => {
  const INT = '?%24alt=json%3Benum-encoding%3Dint';

  test('the answer of another provider', async () => {
    const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
    const path = `/v1beta/models/openai/a:generateContent${INT}`;
    const body = await objectIn(await gateway.gateway.post(path, 'x', { contents: CONTENTS }));
    expect(body).toMatchObject({ candidates: [{ finishReason: 1 }] });
  });

  test('names of Gemini’s own answer', async () => {
    const rated = {
      ...HI,
      promptFeedback: { safetyRatings: [{ category: 'HARM_CATEGORY_HARASSMENT', probability: 'LOW' }] },
    };
    const gateway = new RoutedGateway({ '': [json(rated)] }, GEMINI);
    const path = `/v1beta/models/gemini/m:generateContent${INT}`;
    expect(await objectIn(await gateway.gateway.post(path, 'x', { contents: CONTENTS }))).toMatchObject({
      candidates: [{ finishReason: 1 }],
      promptFeedback: { safetyRatings: [{ category: 7, probability: 2 }] },
    });
  });

  test('types of a schema and the mode of a choice', async () => {
    const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
    const parameters = {
      type: 6,
      properties: { a: { type: 1, nullable: true }, type: { type: 5, items: { type: 2 } } },
    };
    await gateway.gateway.post('/v1beta/models/openai/a:generateContent', 'x', {
      contents: CONTENTS,
      tools: [{ function_declarations: [{ name: 'get', parameters }] }],
      tool_config: { function_calling_config: { mode: 2 } },
    });
    expect(gateway.requests[0]?.body).toMatchObject({
      tool_choice: 'required',
      tools: [
        {
          function: {
            parameters: {
              type: 'object',
              properties: {
                a: { type: ['string', 'null'] },
                type: { type: 'array', items: { type: 'number' } },
              },
            },
          },
        },
      ],
    });
  });
});

test('references of a schema, by the names of Vertex AI: those of JSON Schema; a property may have such a name', async () => {
  const gateway = new RoutedGateway({ a: [answerWith('{}')] });
  const responseSchema = {
    type: 'OBJECT',
    defs: { Gate: { type: 'STRING', max_length: '9' } },
    properties: {
      gate: { ref: '#/defs/Gate' },
      ref: { type: 'STRING' },
      any_of: { any_of: [{ type: 'NULL' }] },
    },
  };
  await gateway.gateway.post('/v1beta/models/openai/a:generateContent', 'x', {
    contents: CONTENTS,
    generationConfig: { responseMimeType: 'application/json', responseSchema },
  });
  const { json_schema } = objectOf(gateway.requests[0]?.body.response_format);
  expect(objectOf(json_schema).schema).toEqual({
    type: 'object',
    $defs: { Gate: { type: 'string', maxLength: 9 } },
    properties: {
      gate: { $ref: '#/$defs/Gate' },
      ref: { type: 'string' },
      any_of: { anyOf: [{ type: 'null' }] },
    },
  });
});

test('Gemini CLI: its name, and its installation as the user', async () => {
  const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
  const headers = {
    'user-agent': 'GeminiCLI/0.40.0/gemini-3-pro (linux; x64; terminal)',
    'x-gemini-api-privileged-user-id': 'installed-1',
  };
  await gateway.gateway.post(
    '/v1beta/models/openai/a:generateContent',
    'x',
    { contents: CONTENTS },
    { headers },
  );
  expect(gateway.records).toMatchObject([{ app: 'GeminiCLI', user: 'installed-1', client: 'gemini' }]);
});

test.each([
  ['a tool of Google’s', { tools: [{ googleSearch: {} }] }, 'tools.googleSearch'],
  ['a cached content', { cachedContent: 'cachedContents/1' }, 'cachedContent'],
  [
    'a file at Google',
    {
      contents: [
        { parts: [{ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/1' } }] },
      ],
    },
    'contents.parts.fileData',
  ],
])('%s: Gemini gets it, another provider’s request is refused by name', async (_, fields, param) => {
  const gateway = new RoutedGateway({ '': [json(HI)], a: [answerWith('Hi')] }, GEMINI);
  const ask = (model: string) =>
    gateway.gateway.post(`/v1beta/models/${model}:generateContent`, 'x', { contents: CONTENTS, ...fields });
  expect((await ask('gemini/m')).status).toBe(200);
  const refused = await ask('openai/a');
  expect(refused.status).toBe(400);
  expect(objectsOf(objectOf((await objectIn(refused)).error).details)).toMatchObject([
    { reason: 'UNSUPPORTED_PARAMETER', metadata: { param } },
  ]);
});

test('Gemini’s own wait stays exact, before the head and within a stream', async () => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '45.837906927s' }];
  const error = { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED', details };
  const path = '/v1beta/models/gemini/m:streamGenerateContent?alt=sse';
  const before = new RoutedGateway({ '': [refuse(429, error)] }, GEMINI);
  const response = await before.gateway.post(path, 'x', { contents: CONTENTS });
  expect(response.headers.get('retry-after')).toBe('46');
  expect(objectsOf(objectOf((await objectIn(response)).error).details)[1]).toEqual(details[0]);
  const text = { candidates: [{ content: { parts: [{ text: 'Hi' }], role: 'model' } }] };
  const pieces = [text, { error }].map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`);
  const within = new RoutedGateway({ '': [{ kind: 'answer', type: 'text/event-stream', pieces }] }, GEMINI);
  const stream = await (await within.gateway.post(path, 'x', { contents: CONTENTS })).text();
  const last = decodeObject(
    stream
      .split('\r\n\r\n')
      .at(-2)
      ?.replace(/^data: /, '') ?? '',
  );
  expect(objectOf(last?.error)).toMatchObject({ code: 429, status: 'RESOURCE_EXHAUSTED' });
  expect(objectsOf(objectOf(last?.error).details)[1]).toEqual(details[0]);
});

describe('W1 beside a site', () => {
  const router = new Router('', [], true);
  test.each([
    ['/v1beta/models/a:generateContent', true],
    ['/v1beta/models', true],
    ['/v1/models/a:generateContent', true],
    ['/v1/projects/p/locations/l/publishers/google/models/a:generateContent', true],
    ['/v1beta1/projects/p/locations/l/publishers/google/models/a:generateContent', false],
    ['/v1beta1/publishers/google/models/a:generateContent', false],
    ['/publishers/google/models/a', false],
  ])('%s is Weir’s: %j', (path, isOwn) => {
    expect(router.hasRoute(path)).toBe(isOwn);
  });
});

describe('heartbeats', () => {
  test.each([
    ['?alt=sse', /^: heartbeat\r\n\r\n/],
    ['', /^ /],
  ])('of a stream with %j', async (query, form) => {
    const gateway = new RoutedGateway({ a: [{ kind: 'hang' }] }, { HEARTBEAT_SECONDS: '5' });
    const path = `/v1beta/models/openai/a:streamGenerateContent${query}`;
    const asked = gateway.gateway.post(path, 'x', { contents: CONTENTS });
    await settle();
    gateway.clock.advance(5000);
    const reader = (await asked).body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toMatch(form);
    await reader?.cancel();
  });
});

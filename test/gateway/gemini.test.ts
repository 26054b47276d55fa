/** Gemini's clients through the gateway in memory: responses in each form at any provider, errors, signatures that come back. */
import { GoogleGenAI } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { encodeStateBytes } from '../../src/protocols/shared/reasoning-state.ts';
import { decodeObject, type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { gatewayFetch, UPSTREAMS } from './sdk-clients.ts';
import {
  answerWith,
  type Behavior,
  DONE,
  event,
  json,
  ROLE,
  RoutedGateway,
  refuse,
  sse,
} from './upstreams.ts';

const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const PATH = '/v1beta/models/openai/a';

function cut(...pieces: string[]): Behavior {
  return { kind: 'answer', type: 'text/event-stream', pieces, ending: 'cut' };
}

function call(gateway: RoutedGateway, method: string, fields: object = {}): Promise<Response> {
  return gateway.gateway.post(`${PATH}:${method}`, 'x', { contents: CONTENTS, ...fields });
}

/** The elements of a stream of events, each of which ends in CRLF. */
function elementsOf(text: string): JsonObject[] {
  const events = text.split('\r\n\r\n');
  expect(events.pop()).toBe('');
  return events
    .filter((one) => !one.startsWith(':'))
    .map((one) => decodeObject(one.replace(/^data: /, '')) ?? {});
}

function candidateOf(element: JsonObject | undefined): JsonObject {
  return objectsOf(element?.candidates)[0] ?? {};
}

function partsOf(element: JsonObject | undefined): JsonObject[] {
  return objectsOf(objectOf(candidateOf(element).content).parts);
}

/** The body of an upstream's response, which the test writes. */
function openBody() {
  const encoder = new TextEncoder();
  const pieces: string[] = [];
  let isClosed = false;
  let wake = () => {};
  const body = new ReadableStream<Uint8Array>({
    type: 'bytes',
    async pull(controller: ReadableByteStreamController) {
      while (pieces.length === 0 && !isClosed) await new Promise<void>((resolve) => (wake = resolve));
      const piece = pieces.shift();
      if (piece !== undefined) return controller.enqueue(encoder.encode(piece));
      controller.close();
      controller.byobRequest?.respond(0);
    },
  } as never);
  return {
    body,
    write: (text: string) => {
      pieces.push(text);
      wake();
    },
    close: () => {
      isClosed = true;
      wake();
    },
  };
}

/** Google's client, whose server is the gateway. */
function genai({ gateway }: RoutedGateway, options: object = {}): GoogleGenAI {
  return new GoogleGenAI({
    apiKey: 'x',
    ...options,
    httpOptions: {
      baseUrl: 'https://weir.example',
      fetch: (url: string | URL | Request, init?: RequestInit) => {
        const { pathname, search } = new URL(url instanceof Request ? url.url : url);
        const headers = { 'x-goog-api-key': 'x', 'content-type': 'application/json' };
        return gateway.fetch(pathname + search, '', { ...init, headers, signal: null });
      },
    } as never,
  });
}

describe('I9 forms of a response', () => {
  test('one object: the text, the finish, the usage, the model and the request’s id', async () => {
    const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
    const response = await call(gateway, 'generateContent');
    expect(await response.json()).toEqual({
      candidates: [{ content: { parts: [{ text: 'Hi' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 },
      modelVersion: 'openai/a',
      responseId: response.headers.get('x-weir-request-id'),
    });
    expect(gateway.records).toMatchObject([{ client: 'gemini', status: 'finished' }]);
  });

  test('events with CRLF: usage on each, the finish on the last', async () => {
    const gateway = new RoutedGateway({ a: [answerWith('Hi')] });
    const response = await call(gateway, 'streamGenerateContent?alt=sse');
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const elements = elementsOf(await response.text());
    expect(elements.map(partsOf)).toEqual([[{ text: 'Hi' }], [{ text: '' }]]);
    expect(elements.map((one) => candidateOf(one).finishReason)).toEqual([undefined, 'STOP']);
    expect(elements.map(({ usageMetadata }) => Object.keys(objectOf(usageMetadata)))).toEqual([
      ['promptTokenCount', 'totalTokenCount'],
      ['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount'],
    ]);
  });

  test('a JSON array, whose elements are sent as they come', async () => {
    const { body, write, close } = openBody();
    const gateway = new RoutedGateway({ a: [{ kind: 'stream', body }] });
    const asked = call(gateway, 'streamGenerateContent');
    write(ROLE + event({ content: 'Hi' }));
    const response = await asked;
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const first = (await reader?.read())?.value ?? '';
    expect(first).toMatch(/^\[\{.*"text":"Hi".*\}\n$/);
    write(event({ content: ' there' }) + event({}, 'stop') + DONE);
    close();
    let text = first;
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
      text += next.value;
    const elements = JSON.parse(text) as JsonObject[];
    expect(elements.map(partsOf)).toEqual([[{ text: 'Hi' }], [{ text: ' there' }], [{ text: '' }]]);
    expect(candidateOf(elements.at(-1)).finishReason).toBe('STOP');
  });
});

describe('@google/genai', () => {
  test('a chat with a tool: its call comes whole, and its result goes to the provider with the same id', async () => {
    const tool = { index: 0, id: 'call_9', type: 'function', function: { name: 'get', arguments: '{"a"' } };
    const rest = { index: 0, function: { arguments: ':1}' } };
    const gateway = new RoutedGateway({
      a: [
        sse(
          ROLE,
          event({ tool_calls: [tool] }),
          event({ tool_calls: [rest] }),
          event({}, 'tool_calls'),
          DONE,
        ),
        answerWith('Done'),
      ],
    });
    const chat = genai(gateway).chats.create({
      model: 'openai/a',
      config: {
        tools: [{ functionDeclarations: [{ name: 'get', parametersJsonSchema: { type: 'object' } }] }],
      },
    });
    const calls = [];
    for await (const chunk of await chat.sendMessageStream({ message: 'Go' })) {
      calls.push(...(chunk.functionCalls ?? []));
    }
    expect(calls).toEqual([{ id: 'call_9', name: 'get', args: { a: 1 } }]);
    const functionResponse = { id: 'call_9', name: 'get', response: { output: 'x' } };
    const answer = await chat.sendMessage({ message: [{ functionResponse }] });
    expect(answer.text).toBe('Done');
    const { messages } = gateway.requests[1]?.body ?? {};
    expect(objectsOf(messages).slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'get', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'call_9', content: 'x' },
    ]);
  });

  test('an error before the head: its status and its wait', async () => {
    const gateway = new RoutedGateway({ a: [refuse(429, {}, { 'retry-after': '7' })] });
    const asked = genai(gateway).models.generateContent({ model: 'openai/a', contents: 'Hi' });
    await expect(asked).rejects.toMatchObject({ status: 429 });
    const response = await call(gateway, 'generateContent');
    expect(await response.json()).toMatchObject({
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        details: [
          { reason: 'RATE_LIMITED' },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' },
        ],
      },
    });
  });

  test('a cut stream: its text, no finish, and an error that the client throws', async () => {
    const gateway = new RoutedGateway({ a: [cut(ROLE, event({ content: 'Hal' }))] });
    const stream = await genai(gateway).models.generateContentStream({ model: 'openai/a', contents: 'Hi' });
    let text = '';
    const read = async () => {
      for await (const chunk of stream) {
        text += chunk.text ?? '';
        expect(chunk.candidates?.[0]?.finishReason).toBeUndefined();
      }
    };
    await expect(read()).rejects.toThrow(/UNAVAILABLE/);
    expect(text).toBe('Hal');
  });
});

describe('I9 fields of a request', () => {
  const RESPONSE = {
    id: 'r',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
  };
  const answerOf = (name: string) => (name === 'a' ? answerWith('Hi') : json(RESPONSE));

  async function sent(fields: object, model = 'openai/a', headers: HeadersInit = {}) {
    const name = model.slice('openai/'.length);
    const gateway = new RoutedGateway({ [name]: [answerOf(name)] });
    const path = `/v1beta/models/${model}:generateContent`;
    const response = await gateway.gateway.post(path, 'x', { contents: CONTENTS, ...fields }, { headers });
    const { body, url } = gateway.requests[0] ?? { body: {}, url: '' };
    const { message } = objectOf(decodeObject(await response.text())?.error);
    return { body, url, status: response.status, message, dropped: response.headers.get('x-weir-dropped') };
  }

  test('stopSequences at a provider of Responses: left out, named as the client names them', async () => {
    const tools = [{ functionDeclarations: [{ name: 'get' }] }];
    const generationConfig = { stopSequences: ['END'], topK: 4 };
    const { body, ...rest } = await sent({ tools, generationConfig }, 'openai/gpt-6.1-terra');
    expect(rest).toEqual({
      status: 200,
      url: 'https://openai/responses',
      dropped: 'generationConfig.topK, stopSequences',
    });
    expect(body).not.toHaveProperty('stop');
  });

  test('stopSequences that are not to be left out: a 400 with their name', async () => {
    const tools = [{ functionDeclarations: [{ name: 'get' }] }];
    const headers = { 'x-weir-unsupported': 'refuse' };
    const generationConfig = { stopSequences: ['END'] };
    const { status, message, url } = await sent({ tools, generationConfig }, 'openai/gpt-6.1-terra', headers);
    expect([status, url]).toEqual([400, '']);
    expect(message).toContain('stopSequences');
  });

  test.each([
    [
      'a place of the user',
      { toolConfig: { retrieval_config: { latLng: {} } } },
      'toolConfig.retrievalConfig',
    ],
    [
      'a tool that is null',
      { tools: [{ functionDeclarations: [{ name: 'get' }], googleSearch: null }] },
      null,
    ],
  ])('%s', async (_, fields, dropped) => {
    expect(await sent(fields)).toMatchObject({ status: 200, dropped });
  });

  test('numbers as texts, as JSON of protobuf may have them', async () => {
    const { body } = await sent({ generationConfig: { maxOutputTokens: '55', temperature: '0.5' } });
    expect(body).toMatchObject({ max_completion_tokens: 55, temperature: 0.5 });
  });
});

test('contents of the model in a row, as SDKs keep a stream, are one message, and its result follows its call', async () => {
  const gateway = new RoutedGateway({ a: [answerWith('Done')] });
  const model = (...parts: object[]) => ({ role: 'model', parts });
  const response = await call(gateway, 'generateContent', {
    contents: [
      ...CONTENTS,
      ...[
        model({ text: 'Let ' }),
        model({ text: 'me.' }),
        model({ functionCall: { name: 'get', args: {} } }),
      ],
      model({ text: '' }),
      { role: 'user', parts: [{ functionResponse: { name: 'get', response: { output: 'x' } } }] },
    ],
  });
  expect(response.headers.get('x-weir-dropped')).toBeNull();
  expect(objectsOf(gateway.requests[0]?.body.messages).slice(1)).toMatchObject([
    { role: 'assistant', content: 'Let me.', tool_calls: [{ function: { name: 'get', arguments: '{}' } }] },
    { role: 'tool', content: 'x' },
  ]);
});

describe('reasoning that comes back', () => {
  const tool = { index: 0, id: 'c', type: 'function', function: { name: 'get', arguments: '{}' } };
  const details = [
    { type: 'reasoning.text', text: 'Hm', signature: 's', format: 'anthropic-claude-v1', index: 0 },
  ];
  const SET = {
    OPENROUTER_API_KEY: 'key-of-openrouter',
    OPENROUTER_BASE_URL: 'https://openrouter',
  };

  test.each(['with thoughts', 'without thoughts, as Gemini CLI does'])(
    '%s: the provider gets it back',
    async (how) => {
      const gateway = new RoutedGateway(
        {
          a: [
            sse(
              ROLE,
              event({ reasoning: 'Hm', reasoning_details: details }),
              event({ tool_calls: [tool] }),
              event({}, 'tool_calls'),
              DONE,
            ),
            answerWith('Done'),
          ],
        },
        SET,
      );
      const ask = (contents: unknown[]) =>
        gateway.gateway.post('/v1beta/models/openrouter%2Fa:streamGenerateContent?alt=sse', 'x', {
          contents,
          tools: [{ functionDeclarations: [{ name: 'get' }] }],
          generationConfig: { thinkingConfig: { includeThoughts: true } },
        });
      const elements = elementsOf(await (await ask(CONTENTS)).text());
      const parts = elements.flatMap(partsOf);
      expect(parts[0]).toEqual({ text: 'Hm', thought: true });
      const sent = how === 'with thoughts' ? parts : parts.filter(({ thought }) => thought !== true);
      const result = { role: 'user', parts: [{ functionResponse: { name: 'get', response: {} } }] };
      await (await ask([...CONTENTS, { role: 'model', parts: sent }, result])).text();
      const message = objectsOf(gateway.requests[1]?.body.messages)[1];
      expect(objectsOf(message?.reasoning_details)).toMatchObject([{ text: 'Hm', signature: 's', index: 0 }]);
    },
  );
});

describe('I7 calls of other models that Gemini 3 gets', () => {
  const user = (...parts: object[]) => ({ role: 'user', parts });
  const model = (...parts: object[]) => ({ role: 'model', parts });
  const call = (fields: object = {}) => ({ functionCall: { name: 'get', args: {} }, ...fields });
  const result = { functionResponse: { name: 'get', response: {} } };
  const placeholder = { thoughtSignature: 'skip_thought_signature_validator' };

  async function sent(contents: object[], name = 'gemini-3-flash-preview'): Promise<unknown> {
    const gateway = ofGemini([]);
    const path = `/v1beta/models/gemini/${name}:generateContent`;
    expect((await gateway.gateway.post(path, 'x', { contents })).status).toBe(200);
    return gateway.requests[0]?.body.contents;
  }

  test('a step since the last prompt without a signature: its first call gets Google’s placeholder', async () => {
    const contents = (signed: object) => [
      user({ text: 'Go' }),
      model({ text: 'So.' }, call(signed), call()),
      user(result, result),
    ];
    expect(await sent(contents({}))).toEqual(contents(placeholder));
    const old = contents({});
    expect(await sent(old, 'gemini-2.5-flash')).toEqual(old);
  });

  test.each([
    ['a signed step, also of several contents', [model(call({ thoughtSignature: 'c2ln' })), model(call())]],
    [
      'a step before the last prompt',
      [model(call()), user(result), model({ text: 'Hi' }), user({ text: 'And' })],
    ],
  ])('%s stays as it came', async (_, contents) => {
    const all = [user({ text: 'Go' }), ...contents];
    expect(await sent(all)).toEqual(all);
  });

  test('a signature of another provider’s Gemini is no signature here', async () => {
    const other = encodeStateBytes('openrouter', [
      { call: 'c', extra_content: { google: { thought_signature: 'c2ln' } } },
    ]);
    const contents = (signed: object) => [user({ text: 'Go' }), model(call(signed)), user(result)];
    expect(await sent(contents({ thoughtSignature: other }))).toEqual(contents(placeholder));
  });
});

describe('contents without a role', () => {
  const answers: Readonly<Record<string, Behavior>> = {
    chat: sse(ROLE, event({ content: 'Hi' }), event({}, 'stop'), DONE),
    messages: json({
      ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
      ...{ content: [{ type: 'text', text: 'Hi' }], usage: { input_tokens: 5, output_tokens: 3 } },
    }),
    gemini: json({
      candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    }),
    responses: json({
      ...{ id: 'r', object: 'response', status: 'completed', model: 'm' },
      output: [
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
        },
      ],
    }),
  };

  test.each(Object.entries(UPSTREAMS))('are the user’s at a provider of %s', async (name, model) => {
    const sent: JsonObject[] = [];
    const fetch = gatewayFetch(answers[name] ?? refuse(404), {
      onSent: (body) => sent.push(body),
    });
    for (const contents of [
      [{ parts: [{ text: 'Hello there' }] }],
      [{ role: '', parts: [{ text: 'Hello there' }] }],
      { parts: [{ text: 'Hello there' }] },
      [{ parts: [{ text: 'Hello' }] }, { parts: [{ text: 'there' }] }],
    ]) {
      const response = await fetch(`https://weir.example/v1beta/models/${model}:generateContent`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ contents }),
      });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      expect(text).toContain('Hi');
      expect(JSON.stringify(sent.at(-1))).toContain('there');
      if (name !== 'gemini') expect(JSON.stringify(sent.at(-1))).toContain('"role":"user"');
    }
  });
});

/** A provider of Gemini's that answers each request, after these responses. */
function ofGemini(first: readonly Behavior[], own: JsonObject = {}): RoutedGateway {
  const candidates = [{ content: { parts: [{ text: 'Hi' }], role: 'model' }, finishReason: 'STOP' }];
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const env = { GEMINI_API_KEY: 'key-of-gemini', GEMINI_BASE_URL: 'https://gemini', ...own };
  return new RoutedGateway({ '': [...first, json({ candidates, usageMetadata })] }, env);
}

const GEMINI_PATH = '/v1beta/models/gemini-3-pro:generateContent';

test.each([
  ['topK', 'topK', 'generationConfig'],
  ['top_k', 'top_k', 'generation_config'],
  ['topK', 'top_k', 'generation_config'],
  ['generation_config.top_k', 'top_k', 'generation_config'],
  ['top_k', 'topK', 'generation_config'],
  ['topK', 'top_k', 'generationConfig'],
])(
  'Z1 a field that Gemini refuses in passthrough as %s, sent as %s in %s: once more without it, and from then on',
  async (said, sent, config) => {
    const message = `Invalid JSON payload received. Unknown name "${said}" at 'generation_config': Cannot find field.`;
    const gateway = ofGemini([refuse(400, { code: 400, message, status: 'INVALID_ARGUMENT' })]);
    const rest = { temperature: 1, max_output_tokens: 50 };
    const body = { contents: CONTENTS, [config]: { [sent]: 5, ...rest } };
    for (let request = 0; request < 2; request++) {
      const response = await gateway.gateway.post(GEMINI_PATH, 'x', body);
      expect(response.status).toBe(200);
      expect(response.headers.get('x-weir-dropped')).toBe('generationConfig.topK');
    }
    const without = { contents: CONTENTS, [config]: rest };
    expect(gateway.requests.map((request) => request.body)).toEqual([body, without, without]);
  },
);

test('Z1 a keyword of a schema that Gemini refuses in passthrough: removed in either spelling', async () => {
  const message = `Invalid JSON payload received. Unknown name "pattern" at 'generation_config.response_schema': Cannot find field.`;
  const gateway = ofGemini([refuse(400, { code: 400, message, status: 'INVALID_ARGUMENT' })]);
  const bodyWith = (schema: object) => ({
    contents: CONTENTS,
    tools: [
      { function_declarations: [{ name: 'a', parameters: { type: 'OBJECT', properties: { b: schema } } }] },
    ],
    generation_config: { response_mime_type: 'application/json', response_schema: schema },
  });
  const response = await gateway.gateway.post(GEMINI_PATH, 'x', bodyWith({ type: 'STRING', pattern: 'a' }));
  expect(response.status).toBe(200);
  expect(gateway.requests.map((request) => request.body)[1]).toEqual(bodyWith({ type: 'STRING' }));
});

test.each([
  ['generationConfig', 'thinkingConfig', 'includeThoughts'],
  ['generation_config', 'thinking_config', 'include_thoughts'],
  ['generation_config', 'thinkingConfig', 'include_thoughts'],
])('REASONING=strip in passthrough: %s.%s.%s goes up as false', async (config, thinking, field) => {
  const gateway = ofGemini([], { REASONING: 'strip' });
  const bodyWith = (shown: boolean) => ({
    contents: CONTENTS,
    [config]: { temperature: 1, [thinking]: { [field]: shown } },
  });
  const response = await gateway.gateway.post(GEMINI_PATH, 'x', bodyWith(true));
  expect(response.status).toBe(200);
  expect(gateway.requests.map((request) => request.body)).toEqual([bodyWith(false)]);
});

describe('G2 the output limit of a config in passthrough, in either spelling', () => {
  const CONFIGS: readonly JsonObject[] = [
    { generation_config: { top_k: 5, max_output_tokens: 100, temperature: 1 } },
    { generation_config: { maxOutputTokens: 100, top_k: 5 } },
    { generationConfig: { max_output_tokens: 100, topK: 5 } },
    { generationConfig: { maxOutputTokens: 100, thinking_config: { include_thoughts: true } } },
  ];

  async function sent(fields: JsonObject, limits?: JsonObject) {
    const gateway = ofGemini([], { AUTH: limits === undefined ? 'open' : 'keys' });
    const token = limits === undefined ? 'x' : await gateway.gateway.key(limits);
    const response = await gateway.gateway.post(GEMINI_PATH, token, { ...fields, contents: CONTENTS });
    expect(response.status).toBe(200);
    const [request] = gateway.requests;
    return { json: JSON.stringify(request?.body), headers: response.headers };
  }

  test.each(CONFIGS)('%j: as it came, without a key and with limits that are not lower', async (fields) => {
    const whole = JSON.stringify({ ...fields, contents: CONTENTS });
    for (const limits of [undefined, { rpm: 60 }, { max_output_tokens: 100 }, { budget: { tokens: 1e9 } }]) {
      const { json: body, headers } = await sent(fields, limits);
      expect(body).toBe(whole);
      expect(headers.get('x-weir-changed')).toBe(null);
    }
  });

  test.each(CONFIGS)('%j: a lower limit of the key is set in its place', async (fields) => {
    const { json: body, headers } = await sent(fields, { max_output_tokens: 40 });
    expect(body).toBe(JSON.stringify({ ...fields, contents: CONTENTS }).replace('100', '40'));
    expect(headers.get('x-weir-changed')).toBe('generationConfig.maxOutputTokens');
  });

  test.each([
    [{ generation_config: { top_k: 5 } }, { generation_config: { top_k: 5, max_output_tokens: 40 } }],
    [{ generationConfig: { top_k: 5 } }, { generationConfig: { top_k: 5, maxOutputTokens: 40 } }],
    [{ generation_config: { max_output_tokens: 0 } }, { generation_config: { max_output_tokens: 40 } }],
    [
      { generation_config: { max_output_tokens: 90 }, generationConfig: { maxOutputTokens: 50 } },
      { generationConfig: { maxOutputTokens: 40 } },
    ],
    [
      { generation_config: { max_output_tokens: 50, maxOutputTokens: 90 } },
      { generationConfig: { maxOutputTokens: 40 } },
    ],
  ])('%j with the limit of a key', async (fields, limited) => {
    const { json: body } = await sent(fields, { max_output_tokens: 40 });
    expect(JSON.parse(body)).toEqual({ ...limited, contents: CONTENTS });
  });

  test.each(CONFIGS)('%j: a budget reserves it', async (fields) => {
    const reserved = async (limit: number) => {
      const body = JSON.stringify(fields).replace('100', String(limit));
      const { headers } = await sent(decodeObject(body) ?? {}, { budget: { tokens: 1e9 } });
      return 1e9 - Number.parseInt(headers.get('x-weir-budget-remaining') ?? '', 10);
    };
    expect((await reserved(900)) - (await reserved(100))).toBe(800);
  });
});

/** Tests what each upstream receives for the same OpenAI request: path, credential and body (U4, H2). */
import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import { basePaths } from '../../tools/simulator/scenes.ts';
import { chat, contentOf, framesOf, jsonOf, MESSAGES, streamedChat } from './client.ts';
import { CREDENTIALS, type Gateway, sharedGateway } from './gateway.ts';

const CHAT = '/v1/chat/completions';
const USAGE = { include_usage: true };

let gateway: Gateway;

beforeAll(async () => {
  gateway = await sharedGateway();
});

/** Sends a request; returns the upstream request and the response's text. */
async function send(path: string, body: JsonObject): Promise<RecordedRequest & { readonly answer: string }> {
  const requestCount = gateway.simulator.requests.length;
  const response = await gateway.post(path, body);
  const answer = await response.text();
  expect(response.status, answer).toBe(200);
  expect(gateway.simulator.requests).toHaveLength(requestCount + 1);
  return { ...(await gateway.simulator.request(requestCount)), answer };
}

async function sent(path: string, body: JsonObject): Promise<JsonObject | undefined> {
  return (await send(path, body)).body;
}

describe('every provider', () => {
  test.each([
    ['deepseek/deepseek-chat', `${basePaths.deepseek}/chat/completions`, CREDENTIALS.DEEPSEEK_API_KEY],
    ['mistral/mistral-small-latest', `${basePaths.mistral}/chat/completions`, CREDENTIALS.MISTRAL_API_KEY],
    ['codestral/codestral-latest', `${basePaths.codestral}/chat/completions`, CREDENTIALS.CODESTRAL_API_KEY],
    [
      'opentoken/google/gemini-3-flash',
      `${basePaths.opentoken}/chat/completions`,
      CREDENTIALS.OPENTOKEN_API_KEY,
    ],
    ['xerotier/llama-3.1-8b', `${basePaths.xerotier}/chat/completions`, CREDENTIALS.XEROTIER_API_KEY],
    ['openai/gpt-4o-mini', `${basePaths.openai}/chat/completions`, CREDENTIALS.OPENAI_API_KEY],
    [
      'compatible/openai/gpt-oss-20b',
      `${basePaths.compatible}/chat/completions`,
      CREDENTIALS.COMPATIBLE_SECRET,
    ],
  ])('%s: its own path, credential and model name', async (address, path, credential) => {
    const request = await send(CHAT, streamedChat(address));
    expect(request.method).toBe('POST');
    expect(request.path).toBe(path);
    expect(request.headers.authorization).toBe(`Bearer ${credential}`);
    expect(request.headers['content-type']).toBe('application/json');
    expect(request.headers.accept).toBe('text/event-stream');
    expect(request.body).toMatchObject({
      model: address.slice(address.indexOf('/') + 1),
      messages: MESSAGES,
    });
  });

  test.each([
    ['deepseek/deepseek-chat', USAGE, 'on its finish chunk'],
    ['mistral/mistral-small-latest', undefined, 'on its finish chunk'],
    ['codestral/codestral-latest', undefined, 'on its finish chunk'],
    ['xerotier/llama-3.1-8b', USAGE, 'on its finish chunk'],
    ['openai/gpt-4o-mini', USAGE, 'after it'],
    ['compatible/openai/gpt-oss-20b', USAGE, 'on its finish chunk'],
  ] as const)(
    'U2 U4: %s: requested upstream as %j, and reported to a client without the option %s',
    async (model, options, where) => {
      for (const more of [{}, { stream_options: { include_usage: false } }, { stream_options: null }]) {
        const request = await send(CHAT, streamedChat(model, more));
        expect(request.body?.stream_options).toEqual(options);
        const withUsage = framesOf(request.answer).filter((frame) => frame.includes('"usage"'));
        expect(withUsage).toHaveLength(where === 'after it' ? 0 : 1);
        for (const frame of withUsage) expect(frame).toContain('"finish_reason":"stop"');
      }
      const runner = await send(CHAT, streamedChat(model, { stream_options: USAGE }));
      expect(runner.body?.stream_options).toEqual(options);
      const last = framesOf(runner.answer).at(-2);
      expect(last).toContain('"choices":[],"usage"');
      expect(runner.answer.split('"usage"')).toHaveLength(2);
    },
  );

  test.each(['deepseek/deepseek-chat', 'mistral/mistral-small-latest', 'openai/gpt-4o-mini'])(
    'U4: %s: a non-streaming request has no stream_options, which the upstream would reject',
    async (model) => {
      expect(await sent(CHAT, chat(model, { stream_options: USAGE }))).not.toHaveProperty('stream_options');
    },
  );

  test('an unknown field is forwarded unchanged', async () => {
    const more = {
      temperature: 0.7,
      metadata: { team: 'Zürich' },
      store: true,
      user: 'u-1',
      x_own: [1, null, { a: 'b' }],
    };
    expect(await sent(CHAT, chat('compatible/openai/gpt-oss-20b', more))).toEqual({
      model: 'openai/gpt-oss-20b',
      messages: MESSAGES,
      ...more,
    });
  });
});

describe('DeepSeek', () => {
  const model = 'deepseek/deepseek-reasoner';

  test('only the reasoning of earlier turns is removed from the messages', async () => {
    const earlier = { role: 'assistant', content: 'Yes', reasoning_content: 'Hm' };
    const messages = [...MESSAGES, earlier, ...MESSAGES];
    const body = await sent(CHAT, { model, messages });
    expect(body?.messages).toEqual([...MESSAGES, { role: 'assistant', content: 'Yes' }, ...MESSAGES]);
  });

  test('a message with prefix: true goes to the beta path', async () => {
    const messages = [...MESSAGES, { role: 'assistant', content: 'Yes', prefix: true }];
    const request = await send(CHAT, { model, messages });
    expect(request.path).toBe('/deepseek/beta/chat/completions');
    expect(request.body?.messages).toEqual(messages);
  });

  test('a message with prefix: false stays on the stable path', async () => {
    const messages = [{ role: 'user', content: 'Hello', prefix: false }];
    expect((await send(CHAT, { model, messages })).path).toBe('/deepseek/chat/completions');
  });

  test('max_completion_tokens becomes max_tokens', async () => {
    const request = await send(CHAT, chat(model, { max_completion_tokens: 3 }));
    expect(request.body).toMatchObject({ max_tokens: 3 });
    expect(request.body).not.toHaveProperty('max_completion_tokens');
    expect(request.answer).toContain('"finish_reason":"length"');
  });

  test('max_tokens stays max_tokens', async () => {
    expect(await sent(CHAT, chat(model, { max_tokens: 4 }))).toMatchObject({ max_tokens: 4 });
  });
});

describe('Mistral', () => {
  const model = 'mistral/mistral-small-latest';

  test("OpenAI's parameters become Mistral's, which rejects all others", async () => {
    const tools = [{ type: 'function', function: { name: 'tide' } }];
    const more = { seed: 7, max_completion_tokens: 90, tool_choice: 'required', tools };
    expect(await sent(CHAT, chat(model, more))).toEqual({
      model: 'mistral-small-latest',
      messages: MESSAGES,
      random_seed: 7,
      max_tokens: 90,
      tool_choice: 'required',
      tools: [
        { type: 'function', function: { name: 'tide', parameters: { type: 'object', properties: {} } } },
      ],
    });
  });

  test.each([
    ['auto', 'auto'],
    ['none', 'none'],
    ['any', 'required'],
  ])('Q1 tool_choice %s is %s', async (tool_choice, sentUp) => {
    expect(await sent(CHAT, chat(model, { tool_choice }))).toMatchObject({ tool_choice: sentUp });
  });

  test('an agent is requested at its own path, by its id and without a model', async () => {
    for (const agent_id of ['mistral/ag:1', 'ag:1']) {
      const requested = { agent_id, messages: MESSAGES, stream: true, stream_options: USAGE, seed: 7 };
      const request = await send('/v1/agents/completions', { ...requested, model: 'left/out' });
      expect(request.path).toBe('/mistral/v1/agents/completions');
      expect(request.body).toEqual({ agent_id: 'ag:1', messages: MESSAGES, stream: true, random_seed: 7 });
      expect(contentOf(request.answer)).toBe('Looking that up in the lock register.');
      expect(request.answer).toContain('"model":"mistral/mistral-medium-2508"');
    }
  });
});

describe('OpenToken', () => {
  test('stream_options are dropped, and a client that requested usage still receives it', async () => {
    const request = await send(
      CHAT,
      streamedChat('opentoken/google/gemini-3-pro', { stream_options: USAGE }),
    );
    expect(request.body).not.toHaveProperty('stream_options');
    expect(request.answer).toContain('"usage":{"prompt_tokens":2,"completion_tokens":31,"total_tokens":33');
  });
});

describe('OpenAI', () => {
  test("U4: the client's other stream options are kept", async () => {
    const more = { stream_options: { include_obfuscation: false } };
    const body = await sent(CHAT, streamedChat('openai/gpt-4o-mini', more));
    expect(body?.stream_options).toEqual({ include_obfuscation: false, include_usage: true });
  });

  test('max_completion_tokens is kept, because newer models accept no other limit', async () => {
    const body = await sent(CHAT, chat('openai/o4-mini', { max_completion_tokens: 500 }));
    expect(body).toMatchObject({ max_completion_tokens: 500 });
  });

  test('legacy completions use their own path', async () => {
    const body = { model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Below', stream: true };
    const request = await send('/v1/completions', body);
    expect(request.path).toBe('/openai/v1/completions');
    expect(request.body).toEqual({ ...body, model: 'gpt-3.5-turbo-instruct', stream_options: USAGE });
  });
});

describe('fill-in-the-middle', () => {
  const deepseek = '    if n < 2:\n        return n\n    previous = fib(n - 1)';
  const mistral = '    total = sum(values)\n    return total / len(values)';

  test.each([
    ['deepseek/deepseek-chat', '/deepseek/beta/completions', deepseek],
    ['mistral/codestral-latest', '/mistral/v1/fim/completions', mistral],
    ['codestral/codestral-latest', '/codestral/v1/fim/completions', mistral],
  ])('C10: %s serves both FIM routes, each in the form of the route', async (model, path, middle) => {
    const body = { model, prompt: 'def f(n):', suffix: 'return x', max_tokens: 64 };
    const routes = [
      { route: '/v1/completions', chunk: 'text_completion', object: 'text_completion' },
      { route: '/v1/fim/completions', chunk: 'chat.completion.chunk', object: 'chat.completion' },
    ];
    for (const { route, chunk, object } of routes) {
      const streamed = await send(route, { ...body, stream: true });
      expect(streamed.path).toBe(path);
      expect(streamed.body).toMatchObject({ prompt: 'def f(n):', suffix: 'return x', max_tokens: 64 });
      expect(contentOf(streamed.answer)).toBe(middle);
      expect(streamed.answer).toContain(`"object":"${chunk}"`);
      const plain = await jsonOf(await gateway.post(route, body));
      expect(plain.object).toBe(object);
      const fields = object === 'text_completion' ? { text: middle } : { message: { content: middle } };
      expect(plain.choices).toMatchObject([{ index: 0, finish_reason: 'stop', ...fields }]);
    }
  });

  test('U4: usage is requested from DeepSeek there, and Mistral reports it anyway', async () => {
    const body = { prompt: 'def f(n):', stream: true, stream_options: USAGE };
    const fim = '/v1/fim/completions';
    const ofDeepseek = await send(fim, { model: 'deepseek/deepseek-chat', ...body });
    expect(ofDeepseek.body?.stream_options).toEqual(USAGE);
    const ofMistral = await send(fim, { model: 'mistral/codestral-latest', ...body });
    expect(ofMistral.body).not.toHaveProperty('stream_options');
    expect(ofMistral.answer).toContain('"usage":{"prompt_tokens":2,"completion_tokens":7,"total_tokens":9');
  });
});

test("PROVIDERS: a provider without a secret gets no credential, not even the client's", async () => {
  const requestCount = gateway.simulator.requests.length;
  const headers = { authorization: 'Bearer sim-of-the-client' };
  const response = await gateway.post(CHAT, chat('keyless/openai/gpt-oss-20b'), { headers });
  await response.text();
  const request = await gateway.simulator.request(requestCount);
  expect(request.path).toBe('/compatible/v1/chat/completions');
  expect(request.headers).not.toHaveProperty('authorization');
});

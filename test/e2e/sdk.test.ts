/** Tests the unchanged `openai` SDK with the gateway: results and errors are the same as with OpenAI. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { vectorOf } from '../../tools/simulator/embeddings.ts';
import { decodeObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { jsonOf } from './client.ts';
import { ADMIN_TOKEN, type Gateway, startGateway } from './gateway.ts';

const TEXT = 'Water over the crest, “unhurried”, and every drop of it counted — naïvely.';
const messages = [{ role: 'user' as const, content: 'Hello there' }];

let gateway: Gateway;
let client: OpenAI;

function clientWith(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

beforeAll(async () => {
  gateway = await startGateway({ vars: { AUTH: 'keys' }, pace: 2 });
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const created = await gateway.post('/admin/keys', { name: 'sdk' }, { headers: admin });
  client = clientWith(textOf((await jsonOf(created)).key));
});
afterAll(() => gateway[Symbol.asyncDispose]());

describe('chat.completions.create', () => {
  test('U1 U2: a stream yields the text, and its usage on one last chunk without choices', async () => {
    const stream = await client.chat.completions.create({
      model: 'openai/gpt-4o-mini',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(TEXT);
    expect(chunks.filter((chunk) => chunk.usage)).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 2, completion_tokens: 13, total_tokens: 15 },
    });
    expect(new Set(chunks.map((chunk) => chunk.model))).toEqual(new Set(['openai/gpt-4o-mini-2024-07-18']));
  });

  test('C6: a stream shows the reasoning of another provider as reasoning_content, apart from the text', async () => {
    const stream = await client.chat.completions.create({
      model: 'mistral/magistral-medium-latest',
      messages,
      stream: true,
    });
    const received = { reasoning: '', content: '' };
    for await (const chunk of stream) {
      const delta = objectOf(decodeObject(JSON.stringify(chunk.choices[0]?.delta ?? {})));
      received.reasoning += textOf(delta.reasoning_content);
      received.content += textOf(delta.content);
    }
    expect(received).toEqual({
      reasoning: 'Two locks, ten minutes each, one boat…',
      content: 'Twenty minutes, if no boat comes against it.',
    });
  });

  test('a non-streaming response is one chat.completion with its usage', async () => {
    const completion = await client.chat.completions.create({ model: 'openai/gpt-4o-mini', messages });
    expect(completion.object).toBe('chat.completion');
    expect(completion.choices).toMatchObject([
      { index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' },
    ]);
    expect(completion.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 13, total_tokens: 15 });
  });

  test('T4: a stream that is aborted cancels the upstream, and its record is cancelled', async () => {
    const requestCount = gateway.simulator.requests.length;
    const abort = new AbortController();
    const { data: stream, response } = await client.chat.completions
      .create({ model: 'deepseek/deepseek-chat:flood', messages, stream: true }, { signal: abort.signal })
      .withResponse();
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) abort.abort();
    }
    const upstream = await gateway.simulator.request(requestCount);
    expect(await upstream.closed).toBe('disconnected');
    expect(await gateway.record(response)).toMatchObject({ status: 'cancelled', estimated: true });
  });
});

describe('chat.completions.stream', () => {
  test('finalChatCompletion assembles the chunks, each choice by itself', async () => {
    const stream = client.chat.completions.stream({ model: 'openai/gpt-4o-mini', messages, n: 2 });
    const final = await stream.finalChatCompletion();
    expect(final.choices).toMatchObject(
      [0, 1].map((index) => ({
        index,
        message: { role: 'assistant', content: TEXT },
        finish_reason: 'stop',
      })),
    );
  });
});

describe('chat.completions.runTools', () => {
  test.each([
    ['openai/gpt-4o-mini', TEXT],
    ['deepseek/deepseek-reasoner', 'Yes: 17 is prime, for neither 2 nor 3 divides it.'],
    ['mistral/mistral-small-latest', 'The weir sets the flow – each barge waits for its turn.'],
    ['xerotier/llama-3.1-8b', 'A fixed weir needs no keeper; a movable one needs a good one.'],
    ['compatible/openai/gpt-oss-20b', 'Three edges, through the second lock.'],
  ])('C7: %s calls the tool with its arguments, receives its result and answers', async (model, answer) => {
    const calls: unknown[] = [];
    const runner = client.chat.completions.runTools({
      model,
      messages,
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            name: 'tide',
            description: 'Returns the tide',
            parameters: {
              type: 'object',
              properties: { city: { type: 'string' }, days: { type: 'integer' } },
            },
            parse: JSON.parse,
            function: (wanted: unknown) => {
              calls.push(wanted);
              return 'It is high';
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe(answer);
    expect(calls).toEqual([{ city: 'Zürich', days: 7 }]);
    const result = objectsOf(gateway.simulator.requests.at(-1)?.body?.messages).at(-1);
    expect(result).toMatchObject({ role: 'tool', content: 'It is high' });
  });
});

describe('completions.create', () => {
  test.each([
    ['openai/gpt-3.5-turbo-instruct', '\n\nBelow the weir the water runs white'],
    ['deepseek/deepseek-chat', '    if n < 2:\n        return n\n    previous = fib(n - 1)'],
    ['codestral/codestral-latest', '    total = sum(values)\n    return total / len(values)'],
  ])('C10: %s: the same legacy completion, streaming and non-streaming', async (model, answer) => {
    const requested = { model, prompt: 'def f(n):', suffix: 'return x' };
    const stream = await client.completions.create({ ...requested, stream: true });
    let text = '';
    for await (const chunk of stream) {
      expect(chunk.object).toBe('text_completion');
      text += chunk.choices[0]?.text ?? '';
    }
    expect(text).toBe(answer);
    const plain = await client.completions.create(requested);
    expect(plain.choices).toMatchObject([{ index: 0, text: answer, finish_reason: 'stop' }]);
  });
});

test('models.list yields addresses that can be requested', async () => {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual(expect.arrayContaining(['deepseek/deepseek-chat', 'opentoken/google/gemini-3-flash']));
});

describe('errors', () => {
  /** The error that the SDK throws for a request. */
  async function thrown(request: Promise<unknown>): Promise<unknown> {
    return request.then(
      () => undefined,
      (error: unknown) => error,
    );
  }

  test.each([
    ['an unknown model', 'openai/gpt-1', OpenAI.NotFoundError, 404, 'model_not_found'],
    ['an unknown provider', 'nowhere/model', OpenAI.NotFoundError, 404, 'model_not_found'],
    [
      'too many requests',
      'openai/gpt-4o-mini:status-429-openai',
      OpenAI.RateLimitError,
      429,
      'simulated_429',
    ],
    [
      'an invalid request',
      'openai/gpt-4o-mini:status-400-openai',
      OpenAI.BadRequestError,
      400,
      'simulated_400',
    ],
    [
      'an upstream that fails',
      'openai/gpt-4o-mini:status-500',
      OpenAI.InternalServerError,
      502,
      'upstream_error',
    ],
  ])('E1: %s is the error class of its status', async (_, model, errorClass, status, code) => {
    const error = await thrown(client.chat.completions.create({ model, messages, stream: true }));
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ status, code });
  });

  test('E1: the SDK receives retry-after', async () => {
    const model = 'openai/gpt-4o-mini:status-429';
    const error = await thrown(client.chat.completions.create({ model, messages }));
    if (!(error instanceof OpenAI.RateLimitError)) throw error;
    expect(error.headers.get('retry-after')).toBe('7');
  });

  test('K3: an invalid key is an AuthenticationError', async () => {
    const error = await thrown(clientWith('weir_invalid').models.list());
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key' });
  });

  test('E2: an error after the head raises an APIError, after the text that came before it', async () => {
    const stream = await client.chat.completions.create({
      model: 'openai/gpt-4o-mini:error-data',
      messages,
      stream: true,
    });
    let text = '';
    const error = await thrown(
      (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      })(),
    );
    expect(text).toBe('Water over the crest, “unhurried”, and every');
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ message: 'OpenAI: The server had an error', type: 'server_error' });
  });
});

describe('embeddings.create', () => {
  const vectorsOf = ({ data }: OpenAI.CreateEmbeddingResponse) =>
    data.map(({ embedding, index }) => [index, Array.from(embedding)]);

  // As many texts as Gemini takes. Without `dimensions` each model has its own size.
  test.each([
    ['openai/text-embedding-3-small', 1536],
    ['mistral/codestral-embed', 1536],
    ['gemini/gemini-embedding-001', 3072],
  ] as const)('J1: %s with 100 texts: the vector of each, as base64 and as float', async (model, size) => {
    const input = Array.from({ length: 100 }, (_, i) => `text ${i}`);
    const expected = input.map((text, index) => [index, vectorOf(text, size)]);
    // Exactly what the provider has: the SDK returns the vectors as 64-bit numbers.
    expect(vectorsOf(await client.embeddings.create({ model, input }))).toEqual(expected);
    const requested = { model, input, encoding_format: 'float' } as const;
    expect(vectorsOf(await client.embeddings.create(requested))).toEqual(expected);
  });

  test.each([[[1, 2, 3]], [[[1, 2], [3]]]])('J1: tokens %j at OpenAI', async (input) => {
    const model = 'openai/text-embedding-3-small';
    const result = await client.embeddings.create({ model, input });
    const lists = typeof input[0] === 'number' ? [input] : input;
    expect(vectorsOf(result)).toEqual(lists.map((tokens, index) => [index, vectorOf(tokens, 1536)]));
    expect(result.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
  });

  test('J1: tokens at Gemini are a BadRequestError that names the field', async () => {
    const requested = client.embeddings.create({ model: 'gemini/gemini-embedding-001', input: [1, 2] });
    await expect(requested).rejects.toMatchObject({ status: 400, param: 'input' });
  });

  // Without an encoding the SDK requests base64 and decodes it.
  test.each([
    ['openai/text-embedding-3-small', undefined],
    ['openai/text-embedding-3-small', 'float'],
    ['mistral/codestral-embed', undefined],
    ['mistral/codestral-embed', 'float'],
    ['gemini/gemini-embedding-001', undefined],
    ['gemini/gemini-embedding-001', 'float'],
  ] as const)('J1: %s with encoding_format %s', async (model, encoding_format) => {
    const input = ['two words', 'and three more'];
    const { data, response } = await client.embeddings
      .create({ model, input, dimensions: 256, ...(encoding_format && { encoding_format }) })
      .withResponse();
    expect(data.data.map(({ embedding }) => Array.from(embedding))).toEqual(
      input.map((text) => vectorOf(text, 256)),
    );
    expect(data.usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
    const record = await gateway.record(response);
    expect(record).toMatchObject({ route: 'embeddings', status: 'finished', prompt_tokens: 5 });
  });
});

/** Tests the unchanged `openai` SDK with Responses: streams, non-streaming responses, tools and errors, over several providers. */
import OpenAI from 'openai';
import type { ResponseInputItem, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkResponses } from '../../../tools/conformance/contract/check-responses.ts';
import { responseFaults } from '../../../tools/conformance/contract/responses-schema.ts';
import { objectsOf } from '../../../tools/simulator/json.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { isOurs } from './loops.ts';

const TEXT = 'Water over the crest, “unhurried”, and every drop of it counted — naïvely.';
const input = 'Hello there';
const TIDE = {
  type: 'function' as const,
  name: 'tide',
  strict: false,
  description: 'Returns the tide',
  parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
};

let gateway: Gateway;
let client: OpenAI;

beforeAll(async () => {
  // Providers with chat only: `passthrough.test.ts` tests those with Responses.
  const entry = (url: string, path: string, like: string) => {
    return { base_url: `${url}/${path}`, api_key: 'COMPATIBLE_SECRET', like };
  };
  gateway = await startGateway({
    pace: 2,
    vars: (url) => ({
      PROVIDERS: JSON.stringify({
        chat: entry(url, 'openai/v1', 'openai'),
        seek: entry(url, 'deepseek', 'deepseek'),
        openrouter: entry(url, 'openrouter/v1', 'openrouter'),
      }),
    }),
  });
  client = new OpenAI({ apiKey: 'unused', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The error that the SDK throws for a request. */
async function thrown(request: Promise<unknown>): Promise<unknown> {
  return request.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('responses.stream', () => {
  test('I4 finalResponse: the text, the usage and a model that can be sent back', async () => {
    const stream = client.responses.stream({ model: 'chat/gpt-4o-mini', input });
    const events: ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    const final = await stream.finalResponse();
    expect(final.output_text).toBe(TEXT);
    expect(final.model).toBe('chat/gpt-4o-mini-2024-07-18');
    expect(final).toMatchObject({ status: 'completed', store: false });
    expect(final.usage).toMatchObject({ input_tokens: 2, output_tokens: 13, total_tokens: 15 });
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
  });

  test.each([
    ['seek/deepseek-reasoner'],
    ['mistral/magistral-medium-latest'],
    ['openrouter/moonshotai/kimi-k2.5'],
  ])('I4 %s: the reasoning is a summary before the message', async (model) => {
    const stream = client.responses.stream({ model, input });
    const final = await stream.finalResponse();
    expect(final.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    const [reasoning] = final.output;
    expect(reasoning?.type === 'reasoning' && reasoning.summary.map(({ text }) => text).join('')).not.toBe(
      '',
    );
  });
});

describe('responses.create', () => {
  test('I4 non-streaming: one object of Open Responses', async () => {
    const response = await client.responses.create({ model: 'chat/gpt-4o-mini', input });
    expect(response.output_text).toBe(TEXT);
    const { output_text: _, ...object } = JSON.parse(JSON.stringify(response));
    expect(responseFaults(object)).toEqual([]);
  });

  test('I2 a manual tool loop: the items of each turn are sent back unchanged', async () => {
    const items: ResponseInputItem[] = [{ role: 'user', content: input }];
    const body = { model: 'seek/deepseek-reasoner', tools: [TIDE], store: false };
    const first = await client.responses.create({ ...body, input: items });
    const call = first.output.find((item) => item.type === 'function_call');
    expect(call).toMatchObject({ name: 'tide', arguments: '{"city":"Zürich","days":7}' });
    items.push(...first.output.filter(isOurs), {
      type: 'function_call_output',
      call_id: call?.call_id ?? '',
      output: 'It is high',
    });
    const second = await client.responses.create({ ...body, input: items });
    expect(second.output_text).toBe('Yes: 17 is prime, for neither 2 nor 3 divides it.');
    const sent = objectsOf(gateway.simulator.requests.at(-1)?.body?.messages);
    expect(sent.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });
});

test('I4 every event of a stream is valid', async () => {
  const response = await gateway.post('/v1/responses', { model: 'chat/gpt-4o-mini', input, stream: true });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(checkResponses(await response.text())).toEqual([]);
});

describe('errors', () => {
  test.each([
    ['an unknown model', 'chat/gpt-1', OpenAI.NotFoundError, 404, 'model_not_found'],
    ['too many requests', 'chat/gpt-4o-mini:status-429-openai', OpenAI.RateLimitError, 429, 'simulated_429'],
    [
      'an upstream that fails',
      'chat/gpt-4o-mini:status-500',
      OpenAI.InternalServerError,
      502,
      'upstream_error',
    ],
  ])('E1 I1 %s: the SDK’s error class of the status', async (_, model, errorClass, status, code) => {
    const error = await thrown(client.responses.create({ model, input, stream: true }));
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ status, code });
  });

  test('E2 I4 an error after the headers: an APIError after the text so far', async () => {
    const stream = await client.responses.create({
      model: 'chat/gpt-4o-mini:error-data',
      input,
      stream: true,
    });
    let text = '';
    const error = await thrown(
      (async () => {
        for await (const event of stream)
          if (event.type === 'response.output_text.delta') text += event.delta;
      })(),
    );
    expect(text).toBe('Water over the crest, “unhurried”, and every');
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ message: 'chat: The server had an error' });
  });

  test('I5 previous_response_id: a BadRequestError that names it', async () => {
    const error = await thrown(
      client.responses.create({ model: 'seek/deepseek-chat', input, previous_response_id: 'resp_1' }),
    );
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ param: 'previous_response_id', code: 'unsupported_parameter' });
  });

  test('I5 responses.retrieve and delete: a NotFoundError that says that no responses are stored', async () => {
    const asks = [() => client.responses.retrieve('resp_1'), () => client.responses.delete('resp_1')];
    for (const ask of asks) {
      const error = await thrown(ask());
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error).toMatchObject({ message: expect.stringContaining('keeps no responses') });
    }
  });
});

test('I1 responses.inputTokens.count: an estimate', async () => {
  const counted = await client.responses.inputTokens.count({ model: 'chat/gpt-4o-mini', input });
  expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: expect.any(Number) });
  expect(counted.input_tokens).toBeGreaterThan(0);
});

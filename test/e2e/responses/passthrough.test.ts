/** Tests the passthrough of Responses: requests and events pass unchanged, and what holds for other requests holds here too. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkResponses, eventsIn } from '../../../tools/conformance/contract/check-responses.ts';
import { eventsOf } from '../../../tools/conformance/contract/content.ts';
import { type JsonObject, objectOf, objectsOf } from '../../../tools/simulator/json.ts';
import type { RecordedRequest } from '../../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../../tools/simulator/server.ts';
import { readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { jsonOf, wholeRecord } from '../client.ts';
import { type Gateway, startGateway } from '../gateway.ts';

const recordings = readRecordings().filter(
  ({ protocol, kind }) => protocol === 'responses' && kind === 'sse',
);
const encoder = new TextEncoder();

let gateway: Gateway;
/** What the simulator sends instead of its scenes. */
let replay: ((request: RecordedRequest) => Replay | undefined) | undefined;

beforeAll(async () => {
  gateway = await startGateway({
    replay: (request) => replay?.(request),
    vars: (url) => ({
      ALIASES: JSON.stringify({ either: ['openai/gpt-4o-mini', 'mistral/mistral-small-latest'] }),
      PROVIDERS: JSON.stringify({
        azure: { base_url: `${url}/openai/v1`, api_key: 'OPENAI_API_KEY', like: 'openai', responses: true },
        chat: { base_url: `${url}/openai/v1`, api_key: 'OPENAI_API_KEY', like: 'openai' },
      }),
    }),
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const ask = (body: object) =>
  gateway.post('/v1/responses', { model: 'openai/gpt-4o-mini', input: 'Hello there', ...body });

async function replayed<Value>(
  chunks: readonly Uint8Array[],
  ends: Replay['ends'],
  use: () => Promise<Value>,
) {
  replay = () => ({ chunks, ...(ends && { ends }) });
  try {
    return await use();
  } finally {
    replay = undefined;
  }
}

/** With the model's name in the gateway. */
function withNamedModel([name, data]: readonly [string, string]): readonly [string, string] {
  const event = JSON.parse(data);
  if (event.response === undefined) return [name, data];
  const response = { ...event.response, model: `openai/${event.response.model}` };
  return [name, JSON.stringify({ ...event, response })];
}

/** Name and data of each event. */
function framesIn(text: string): readonly (readonly [string, string])[] {
  return [...eventsOf(text)].map(({ name, data }) => [name, data] as const);
}

describe.skipIf(recordingsNote !== '')(`N1 providers' own streams${recordingsNote}`, () => {
  test.each(recordings.map((recording) => [recording.name, recording.text] as const))(
    '%s: only the model of each event changes, and the usage is metered',
    async (_, text) => {
      const response = await replayed([encoder.encode(text)], 'end', () => ask({ stream: true }));
      const client = await response.text();
      expect(framesIn(client)).toEqual(framesIn(text).map(withNamedModel));
      expect(client).not.toContain('[DONE]');
      const usage = objectOf(objectOf(eventsIn(text).at(-1)?.response).usage);
      const record = await gateway.record(response);
      expect(record).toMatchObject({
        status: 'finished',
        prompt_tokens: usage.input_tokens,
        completion_tokens: usage.output_tokens,
        estimated: false,
        client: 'responses',
      });
      expect(record.first_token_ms === null).toBe(!/"(?:delta|name)":"/.test(text));
    },
  );

  test('C2 the model of a response, streamed or not, is a valid model of a request', async () => {
    const streamed = eventsIn(await (await ask({ model: 'deepseek/deepseek-flash', stream: true })).text());
    const models = streamed.flatMap(({ response }) => (response ? [objectOf(response).model] : []));
    const whole = objectOf(await jsonOf(await ask({ model: 'deepseek/deepseek-flash' })));
    expect(new Set([...models, whole.model])).toEqual(new Set(['deepseek/deepseek-flash']));
    expect((await ask({ model: whole.model })).status).toBe(200);
  });

  test('N2 truncated after any event: error, response.failed, [DONE], with consecutive numbers', async () => {
    const { text = '' } = recordings.find(({ name }) => name === 'openai--responses-tool-call.sse') ?? {};
    const frames = text.split('\n\n').filter((frame) => frame !== '');
    for (const count of [3, 6, frames.length - 1]) {
      const cut = frames.slice(0, count).map((frame) => encoder.encode(`${frame}\n\n`));
      const response = await replayed(cut, 'end', () => ask({ stream: true }));
      const events = eventsIn(await response.text());
      expect(events.slice(0, count).map(({ type }) => type)).toEqual(
        eventsIn(text)
          .slice(0, count)
          .map(({ type }) => type),
      );
      expect(events.slice(count)).toMatchObject([
        { type: 'error', sequence_number: count, error: { code: 'server_error' } },
        {
          type: 'response.failed',
          sequence_number: count + 1,
          response: {
            id: objectOf(events[0]?.response).id,
            status: 'failed',
            error: { code: 'server_error' },
          },
        },
      ]);
      expect(await gateway.record(response)).toMatchObject({
        status: 'failed',
        error_code: 'upstream_truncated',
      });
    }
  });

  test('N2 E4 an error in the stream: the upstream’s code with Weir’s message, without a credential', async () => {
    const { text = '' } =
      readRecordings().find(({ name }) => name.includes('responses-error-in-stream')) ?? {};
    const frames = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => `event: ${JSON.parse(line).type}\ndata: ${line}\n\n`);
    const delta = `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"x","sequence_number":2}\n\n`;
    const sent = [...frames.slice(0, 2), delta, ...frames.slice(2)].map((frame) => encoder.encode(frame));
    const response = await replayed(sent, 'end', () => ask({ stream: true }));
    const client = await response.text();
    expect(eventsIn(client).slice(-2)).toMatchObject([
      { type: 'error', error: { code: 'insufficient_quota' } },
      { type: 'response.failed', response: { error: { code: 'insufficient_quota' } } },
    ]);
    expect(await gateway.record(response)).toMatchObject({
      status: 'failed',
      error_code: 'insufficient_quota',
    });
  });
});

describe('P1 costs besides tokens', () => {
  /** A stream with only its items and its end. */
  function streamOf(usage: JsonObject, output: readonly JsonObject[] = []): Uint8Array[] {
    const response = { id: 'resp_1', object: 'response', status: 'completed', output, usage };
    const events = [
      ...output.map((item, output_index) => ({ type: 'response.output_item.done', item, output_index })),
      { type: 'response.completed', response },
    ];
    return events.map((event, sequence_number) =>
      encoder.encode(`event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`),
    );
  }

  async function recordOf(model: string, chunks: readonly Uint8Array[]): Promise<JsonObject> {
    const response = await replayed(chunks, 'end', () => ask({ model, stream: true }));
    await response.text();
    return wholeRecord(gateway, response);
  }

  test('a cache write for 12 hours costs 2.5 times the input', async () => {
    const written = {
      cached_tokens: 0,
      cache_write_tokens: 1000,
      cache_write_tokens_details: { ttl_30m_tokens: 400, ttl_12h_tokens: 600 },
    };
    const usage = { input_tokens: 1000, input_tokens_details: written, output_tokens: 0, total_tokens: 1000 };
    expect(await recordOf('openai/gpt-6.2-sol', streamOf(usage))).toMatchObject({
      cache_write_tokens: 1000,
      cache_write_long_tokens: 600,
      cost: 0.004,
    });
  });

  test('searches of DeepSeek: each query and each opened page', async () => {
    const call = (action: JsonObject) => ({ type: 'web_search_call', status: 'completed', action });
    const output = [call({ type: 'search', queries: ['a', 'b'] }), call({ type: 'open_page', url: 'u' })];
    const usage = { input_tokens: 0, output_tokens: 1, total_tokens: 1 };
    const record = await recordOf('deepseek/deepseek-v4-pro', streamOf(usage, output));
    expect(record).toMatchObject({ searches: 3, price_since: '2026-10-31T16:00:00.000Z' });
    // The price of the token depends on the hour, the price of the searches does not.
    const token = Math.round((Number(record.cost) - 3 * 0.00075) * 1e9);
    expect([1980, 3960]).toContain(token);
  });

  test.skipIf(recordingsNote !== '')("OpenAI's own: those that its usage of tools names", async () => {
    const { text = '' } = recordings.find(({ name }) => name === 'openai--responses-web-search.sse') ?? {};
    const record = await recordOf('openai/gpt-4o-mini', [encoder.encode(text)]);
    expect(record).toMatchObject({ searches: 1 });
    expect(Number(record.cost)).toBeGreaterThan(0.025);
  });
});

describe('N1 the request', () => {
  test('is sent unchanged, except for the model’s name, the credential and reasoning that Weir encoded', async () => {
    const theirs = {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: 'Hi', unknown: { a: 1 } }],
    };
    const body = {
      model: 'openai/gpt-4o-mini',
      input: [
        theirs,
        { type: 'reasoning', id: 'rs_019a00000000700080000000000000ff_0', summary: [] },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'weir1:deepseek:W10' },
        { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      ],
      tools: [{ type: 'web_search' }],
      text: { verbosity: 'low' },
      // No code of Weir's names it.
      access_programs: [1, 2],
      store: true,
    };
    const requestCount = gateway.simulator.requests.length;
    const response = await gateway.post('/v1/responses', body);
    expect(response.status).toBe(200);
    const request = await gateway.simulator.request(requestCount);
    expect(request.path).toBe('/openai/v1/responses');
    expect(request.headers.authorization).toBe('Bearer sim-openai-15e6d3');
    expect(request.body).toEqual({ ...body, model: 'gpt-4o-mini', input: [body.input[0], body.input[3]] });
    const { output } = await jsonOf(response);
    expect(objectsOf(output)).toMatchObject([{ type: 'message', role: 'assistant' }]);
    expect(await gateway.record(response)).toMatchObject({
      status: 'finished',
      estimated: false,
      model: 'gpt-4o-mini',
    });
  });

  test('Codex’s client_metadata, which OpenAI refuses, is dropped and named', async () => {
    const requestCount = gateway.simulator.requests.length;
    const response = await ask({ client_metadata: { 'x-codex-installation-id': 'installation-1' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-weir-dropped')).toBe('client_metadata');
    expect((await gateway.simulator.request(requestCount)).text).not.toContain('client_metadata');
    expect(await wholeRecord(gateway, response)).toMatchObject({ dropped: ['client_metadata'] });
  });

  test('a provider in PROVIDERS has the passthrough if its entry says so', async () => {
    const requestCount = gateway.simulator.requests.length;
    await (await ask({ model: 'azure/gpt-4o-mini' })).text();
    await (await ask({ model: 'chat/gpt-4o-mini' })).text();
    expect((await gateway.simulator.request(requestCount)).path).toBe('/openai/v1/responses');
    expect((await gateway.simulator.request(requestCount + 1)).path).toBe('/openai/v1/chat/completions');
  });
});

describe('N2 previous_response_id', () => {
  test('continues at the provider that stores it', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 });
    const body = { model: 'openai/gpt-4o-mini' };
    const tools = [
      { type: 'function' as const, name: 'tide', strict: false, parameters: { type: 'object' } },
    ];
    const first = await client.responses.create({ ...body, input: 'Hello', tools });
    const call = first.output.find((item) => item.type === 'function_call');
    const second = client.responses.stream({
      ...body,
      previous_response_id: first.id,
      tools,
      input: [{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'high' }],
    });
    expect((await second.finalResponse()).output_text).toContain('Water over the crest');
  });

  test('an unknown one: the provider’s error', async () => {
    const response = await ask({ previous_response_id: 'resp_unknown' });
    expect(response.status).toBe(400);
    expect(await jsonOf(response)).toMatchObject({
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    });
  });

  test('for an alias of several targets, or a provider without the passthrough: 400 that says what to send', async () => {
    const several = await ask({ model: 'either', previous_response_id: 'resp_1' });
    expect(several.status).toBe(400);
    expect(await jsonOf(several)).toMatchObject({
      error: { param: 'model', message: expect.stringContaining('x-weir-model') },
    });
    const other = await ask({ model: 'mistral/mistral-small-latest', previous_response_id: 'resp_1' });
    expect(other.status).toBe(400);
    expect(await jsonOf(other)).toMatchObject({ error: { param: 'previous_response_id' } });
  });
});

describe('N2 routing before the first output', () => {
  test('after a failed target with the passthrough comes one without: the client receives one complete stream', async () => {
    const response = await gateway.post('/v1/responses', {
      models: ['openai/gpt-4o-mini:error-first', 'mistral/mistral-small-latest'],
      input: 'Hello there',
      stream: true,
    });
    const text = await response.text();
    expect(response.headers.get('x-weir-provider')).toBe('mistral');
    expect(checkResponses(text)).toEqual([]);
  });
});

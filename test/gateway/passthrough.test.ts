/** The passthrough through the whole gateway, in memory: an upstream that answers otherwise than it was asked (N1, N2). */
import { describe, expect, test } from 'vitest';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { checkResponses } from '../../tools/conformance/contract/check-responses.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { readMessage } from '../contract/reference-message.ts';
import { type Behavior, json, RoutedGateway, sse } from './upstreams.ts';

const ENV = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  ALIASES: JSON.stringify({ both: ['anthropic/a', 'anthropic/b'] }),
};

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'a',
  content: [
    { type: 'thinking', thinking: 'Hm', signature: 's' },
    { type: 'text', text: 'Look' },
    { type: 'tool_use', id: 'toolu_1', name: 'gauge', input: { at: 'pier' } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 3 },
};
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 5,
  status: 'completed',
  model: 'a',
  output: [
    { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Look' }] },
    { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'gauge', arguments: '{"at":"pier"}' },
  ],
  usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
};

async function ask(path: string, model: string, behaviors: Record<string, readonly Behavior[]>) {
  const gateway = new RoutedGateway(behaviors, ENV);
  const body: JsonObject = path === '/v1/messages' ? { max_tokens: 9 } : { input: 'Hi' };
  const response = await gateway.ask({ ...body, model, stream: true }, {}, path);
  const { status } = response;
  return { status, text: await response.text(), gateway };
}

describe('N2 U3 more tokens of the cache than the prompt has, in Responses', () => {
  const usageOf = (input_tokens: number, input_tokens_details: JsonObject) => ({
    ...{ input_tokens, input_tokens_details, output_tokens: 3, total_tokens: input_tokens + 3 },
  });
  const rows = [
    ['cached alone', 7, { cached_tokens: 161 }, { cached_tokens: 7 }],
    [
      'both together',
      9,
      { cached_tokens: 6, cache_write_tokens: 5, x: 1 },
      { cached_tokens: 6, cache_write_tokens: 3, x: 1 },
    ],
    ['neither', 9, { cached_tokens: 6, cache_write_tokens: 3 }, { cached_tokens: 6, cache_write_tokens: 3 }],
  ] as const;

  test.each(rows.flatMap((row) => [true, false].map((isStreamed) => [...row, isStreamed] as const)))(
    '%s, %d of %j: the client gets %j, streamed: %s',
    async (_, input, given, expected, isStreamed) => {
      const response = { ...RESPONSE, usage: usageOf(input, given) };
      const event = { type: 'response.completed', sequence_number: 0, response };
      const upstream = isStreamed
        ? sse(`event: response.completed\ndata: ${JSON.stringify(event)}\n\n`)
        : json(response);
      const gateway = new RoutedGateway({ a: [upstream] }, ENV);
      const body = { model: 'openai/a', input: 'Hi', stream: isStreamed };
      const text = await (await gateway.ask(body, {}, '/v1/responses')).text();
      const data = isStreamed ? (/^data: (\{.*"response\.completed".*)$/m.exec(text)?.[1] ?? '{}') : text;
      const { usage } = isStreamed ? JSON.parse(data).response : JSON.parse(data);
      expect(usage).toEqual(usageOf(input, expected));
      expect(gateway.records).toMatchObject([
        { prompt_tokens: input, cached_tokens: expected.cached_tokens },
      ]);
    },
  );
});

describe('N1 a stream was asked for, and the upstream sends one object', () => {
  test('a message: its blocks as events, its tokens counted', async () => {
    const { status, text, gateway } = await ask('/v1/messages', 'anthropic/a', { a: [json(MESSAGE)] });
    expect(status).toBe(200);
    expect(checkMessages(text)).toEqual([]);
    expect(readMessage(text)).toMatchObject({
      text: 'Look',
      reasoning: 'Hm',
      calls: [{ id: 'toolu_1', name: 'gauge', arguments: '{"at":"pier"}' }],
      stop: 'tool_use',
      usage: { input_tokens: 5, output_tokens: 3 },
    });
    expect(gateway.records).toMatchObject([{ status: 'finished', prompt_tokens: 5, completion_tokens: 3 }]);
  });

  test('a response: its items as events, its tokens counted', async () => {
    const { status, text, gateway } = await ask('/v1/responses', 'openai/a', { a: [json(RESPONSE)] });
    expect(status).toBe(200);
    expect(checkResponses(text)).toEqual([]);
    expect(text).toContain('"type":"response.output_text.delta"');
    expect(text).toContain('"arguments":"{\\"at\\":\\"pier\\"}"');
    expect(gateway.records).toMatchObject([{ status: 'finished', prompt_tokens: 5, completion_tokens: 3 }]);
  });

  test('E1 an error in it: its status, and no stream', async () => {
    const failed = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    const { status, text } = await ask('/v1/messages', 'anthropic/a', { a: [json(failed)] });
    expect([status, JSON.parse(text).error.type]).toEqual([529, 'overloaded_error']);
  });

  test('R5 one that fails so gives way to a target that streams, whose events pass as they are', async () => {
    const failed = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    const events = [
      { type: 'message_start', message: { ...MESSAGE, model: 'both', content: [], stop_reason: null } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop', of: 'the upstream' },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const behaviors = { a: [json(failed)], b: [sse(...events)] };
    const { status, text, gateway } = await ask('/v1/messages', 'both', behaviors);
    expect([status, text]).toEqual([200, events.join('')]);
    expect(gateway.models).toEqual(['a', 'b']);
  });
});

test('N1 Q11 a whole message with an integer beyond 2^53 in a call: its digits as they were, for a chat as well', async () => {
  const text = JSON.stringify(MESSAGE).replace('"pier"', '1234567890123456789');
  const behavior: Behavior = { kind: 'answer', type: 'application/json', pieces: [text] };
  const gateway = new RoutedGateway({ a: [behavior] }, ENV);
  const body = { model: 'anthropic/a', max_tokens: 9 };
  const message = await (await gateway.ask(body, {}, '/v1/messages')).text();
  expect(message).toContain('"input":{"at":1234567890123456789}');
  const completion = await (await gateway.ask(body)).text();
  expect(completion).toContain('{\\"at\\":1234567890123456789}');
});

describe('I5 background in the Responses passthrough of a gateway that keeps no responses', () => {
  test.each([
    { background: true },
    { background: true, stream: true },
    { background: true, store: true },
    { background: 'true' },
  ])('%j: 400 that names the field, and nothing is sent', async (fields) => {
    const queued = { id: 'resp_1', object: 'response', status: 'queued', output: [], usage: null };
    const gateway = new RoutedGateway({ a: [json(queued)] }, ENV);
    const response = await gateway.ask({ model: 'openai/a', input: 'Hi', ...fields }, {}, '/v1/responses');
    const { error } = JSON.parse(await response.text());
    expect([response.status, error.code, error.param]).toEqual([400, 'unsupported_parameter', 'background']);
    expect(error.message).toContain('keeps no responses');
    expect([gateway.models, gateway.records]).toEqual([[], []]);
  });

  test.each([false, null])('%j is passed on', async (background) => {
    const gateway = new RoutedGateway({ a: [json(RESPONSE)] }, ENV);
    const response = await gateway.ask({ model: 'openai/a', input: 'Hi', background }, {}, '/v1/responses');
    expect([response.status, gateway.models]).toEqual([200, ['a']]);
  });
});

describe('N1 a response that fails in the Responses passthrough', () => {
  const SAID = {
    id: 'resp_1',
    object: 'response',
    created_at: 1_790_000_000,
    model: 'a',
    service_tier: 'priority',
    store: true,
    metadata: { job: '7' },
    tools: [{ type: 'function', name: 'gauge', parameters: { maximum: 1 }, strict: true }],
    temperature: 0.25,
  };
  const USED = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
  const frame = (type: string, members: object) =>
    `event: response.${type}\ndata: ${JSON.stringify({ type: `response.${type}`, ...members })}\n\n`;
  const created = frame('created', {
    sequence_number: 0,
    response: { ...SAID, status: 'in_progress', output: [], usage: null },
  });
  const delta = frame('output_text.delta', {
    sequence_number: 1,
    output_index: 0,
    item_id: 'm',
    delta: 'Hi',
  });
  const error = { code: 'server_error', message: 'Broken, with the key key-of-openai' };
  const failed = frame('failed', {
    sequence_number: 2,
    response: { ...SAID, status: 'failed', error, output: RESPONSE.output, usage: USED },
  });

  /** The failed response that the client received, and the gateway. */
  async function failing(...pieces: string[]) {
    const gateway = new RoutedGateway({ a: [sse(...pieces)] }, ENV);
    const body = { model: 'openai/a', input: 'Hi', stream: true };
    const text = await (await gateway.ask(body, {}, '/v1/responses')).text();
    const last = text.split('\n\n').find((one) => one.startsWith('event: response.failed')) ?? '';
    return { text, response: JSON.parse(last.split('\ndata: ')[1] ?? '{}').response, gateway };
  }

  test('has what the provider said at the failure, without the credential in its error', async () => {
    const { text, response, gateway } = await failing(created, delta, failed);
    expect(response).toMatchObject({
      ...SAID,
      model: 'openai/a',
      status: 'failed',
      output: RESPONSE.output,
      usage: USED,
      completed_at: null,
      error: { code: 'server_error' },
    });
    expect(text).not.toContain('key-of-openai');
    expect(gateway.records).toMatchObject([{ status: 'failed', prompt_tokens: 5, completion_tokens: 3 }]);
  });

  test('has what the provider said before the connection ended', async () => {
    const { response } = await failing(created, delta);
    expect(response).toMatchObject({ ...SAID, model: 'openai/a', status: 'failed', usage: null, output: [] });
    expect(response.error.code).toBe('server_error');
  });

  test('is complete by the protocol where the provider said nothing', async () => {
    const { text, response } = await failing(delta);
    expect(response).toMatchObject({ status: 'failed', tools: [], metadata: {}, model: 'openai/a' });
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each([
    [
      'instructions of 100,000 characters: all but those and the tools',
      { instructions: 'x'.repeat(100_000) },
      { ...SAID, tools: [] },
    ],
    [
      'metadata of 100,000 characters: its names and numbers',
      { metadata: { a: 'x'.repeat(100_000) } },
      { id: 'resp_1', created_at: SAID.created_at, service_tier: 'priority', store: true, metadata: {} },
    ],
  ])('holds a bounded part of %s', async (_, large, kept) => {
    const response = { ...SAID, ...large, status: 'in_progress', output: [], usage: null };
    const read = await failing(frame('created', { sequence_number: 0, response }), delta);
    expect(read.response).toMatchObject({ ...kept, model: 'openai/a', status: 'failed' });
    expect(JSON.stringify(read.response).length).toBeLessThan(10_000);
  });
});
